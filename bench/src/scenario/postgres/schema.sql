-- What a careful engineer keeps for holds of seats, and no more. A seat whose hold has run out is free, whatever its row
-- says, so nothing has to be tidied up for a sale to go on.

CREATE TABLE events (
    event_no integer PRIMARY KEY,
    status text NOT NULL CHECK (status IN ('ON_SALE', 'CLOSED')),
    hold_ttl interval NOT NULL,
    tickets_per_account_max integer NOT NULL
);

-- No reference to the event: it would lock its one row in every hold, for all at once.
CREATE TABLE holds (
    hold_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_no integer NOT NULL,
    account_id bigint NOT NULL,
    status text NOT NULL CHECK (status IN ('ACTIVE', 'RELEASED', 'CONVERTED')),
    seats integer[] NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);

-- What an account has of an event.
CREATE INDEX holds_live ON holds (event_no, account_id) WHERE status <> 'RELEASED';

-- Half of each page is left empty, so that a seat's new version lies beside the old one and no index is touched.
CREATE TABLE seats (
    event_no integer NOT NULL,
    ordinal integer NOT NULL,
    is_sold boolean NOT NULL DEFAULT false,
    hold_id bigint,
    hold_expires_at timestamptz,
    PRIMARY KEY (event_no, ordinal)
) WITH (fillfactor = 50);

CREATE TABLE idempotency_keys (
    event_no integer NOT NULL,
    key bigint NOT NULL,
    digest bigint NOT NULL,
    hold_id bigint NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (event_no, key)
);

INSERT INTO events VALUES (1, 'ON_SALE', '1 second', 6);
INSERT INTO seats (event_no, ordinal) SELECT 1, ordinal FROM generate_series(0, 50009) AS ordinal;

-- The same as `hold.sql` in one call.
CREATE FUNCTION place_hold(wanted integer[], account bigint, asked_key bigint, asked_digest bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    free integer;
    placed bigint;
    ends timestamptz;
    is_allowed boolean;
BEGIN
    SELECT count(*) INTO free FROM (
        SELECT 1 FROM seats
        WHERE event_no = 1 AND ordinal = ANY (wanted) AND NOT is_sold
          AND (hold_id IS NULL OR hold_expires_at <= clock_timestamp())
        ORDER BY ordinal FOR UPDATE
    ) AS locked;
    IF free < cardinality(wanted) THEN
        SELECT hold_id INTO placed FROM idempotency_keys
        WHERE event_no = 1 AND key = asked_key AND digest = asked_digest;
        RETURN placed;
    END IF;
    PERFORM pg_advisory_xact_lock(1, hashint8(account));
    SELECT event.status = 'ON_SALE' AND event.tickets_per_account_max >= cardinality(wanted) + (
        SELECT coalesce(sum(cardinality(seats)), 0) FROM holds
        WHERE event_no = 1 AND account_id = account AND status <> 'RELEASED'
          AND (status = 'CONVERTED' OR expires_at > clock_timestamp())
    ), clock_timestamp() + event.hold_ttl INTO is_allowed, ends FROM events AS event WHERE event_no = 1;
    IF NOT is_allowed THEN
        RETURN NULL;
    END IF;
    INSERT INTO holds (event_no, account_id, status, seats, created_at, expires_at)
    VALUES (1, account, 'ACTIVE', wanted, clock_timestamp(), ends) RETURNING hold_id INTO placed;
    UPDATE seats SET hold_id = placed, hold_expires_at = ends WHERE event_no = 1 AND ordinal = ANY (wanted);
    -- A key that is there already fails all of it; whoever asked reads the first answer then.
    INSERT INTO idempotency_keys VALUES (1, asked_key, asked_digest, placed, clock_timestamp());
    RETURN placed;
END
$$;
