-- A hold of three seats. Seats are locked in their order and before the account, so nobody waits in a circle. A seat that is
-- held is passed over and not locked: whoever is refused writes nothing and makes nobody wait.
\set seat_2 :seat_1 + 1
\set seat_3 :seat_1 + 2
\set account random(1, 1000000000)
\set key random(1, 4000000000000000000)

BEGIN;
SELECT count(*) AS free FROM (
    SELECT 1 FROM seats
    WHERE event_no = 1 AND ordinal IN (:seat_1, :seat_2, :seat_3) AND NOT is_sold
      AND (hold_id IS NULL OR hold_expires_at <= clock_timestamp())
    ORDER BY ordinal FOR UPDATE
) AS locked \gset
\if :free < 3
    -- Perhaps they are held by this very request, asked before.
    SELECT count(*) AS known FROM idempotency_keys WHERE event_no = 1 AND key = :key AND digest = :key \gset
    ROLLBACK;
\else
    -- Statements that see what others have committed come after the lock, or they would see the time before it.
    SELECT pg_advisory_xact_lock(1, hashint8(:account));
    SELECT (event.status = 'ON_SALE' AND event.tickets_per_account_max >= 3 + (
        SELECT coalesce(sum(cardinality(seats)), 0) FROM holds
        WHERE event_no = 1 AND account_id = :account AND status <> 'RELEASED'
          AND (status = 'CONVERTED' OR expires_at > clock_timestamp())
    ))::integer AS is_allowed FROM events AS event WHERE event_no = 1 \gset
    \if :is_allowed = 0
        ROLLBACK;
    \else
        -- A key that is there already fails all of it; whoever asked reads the first answer then.
        WITH placed AS (
            INSERT INTO holds (event_no, account_id, status, seats, created_at, expires_at)
            SELECT 1, :account, 'ACTIVE', ARRAY[:seat_1, :seat_2, :seat_3]::integer[], clock_timestamp(),
              clock_timestamp() + hold_ttl FROM events WHERE event_no = 1
            RETURNING hold_id, expires_at
        ), taken AS (
            UPDATE seats SET hold_id = placed.hold_id, hold_expires_at = placed.expires_at FROM placed
            WHERE event_no = 1 AND ordinal IN (:seat_1, :seat_2, :seat_3)
        )
        INSERT INTO idempotency_keys SELECT 1, :key, :key, hold_id, clock_timestamp() FROM placed;
        COMMIT;
    \endif
\endif
