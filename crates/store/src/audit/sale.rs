//! Seats, orders, money and records: what holds of every sale.

use onsale_core::limits::{IDEMPOTENCY_TTL_MS, PARKED_MS_MAX};
use onsale_core::time::seconds;

use super::Query;

const _: () = assert!(PARKED_MS_MAX == seconds(600), "I-17 spells this time out");
const _: () = assert!(IDEMPOTENCY_TTL_MS == seconds(172_800), "I-16 spells this time out");

/// CROSS JOIN keeps the engine from walking all seats for each list of a few.
pub(super) const CHECKS: &[Query] = &[
    (
        "I-1",
        "a sold seat belongs to exactly one confirmed order, which lists it",
        "SELECT s.event_no, s.ordinal, s.order_id FROM seats s
         LEFT JOIN orders o ON o.order_id = s.order_id LEFT JOIN holds h ON h.hold_id = o.hold_id
         WHERE s.status = 2 AND (o.status IS DISTINCT FROM 'CONFIRMED' OR h.hold_id IS DISTINCT FROM s.hold_id OR h.event_no IS DISTINCT FROM s.event_no
           OR NOT EXISTS (SELECT 1 FROM json_each(h.seats) WHERE value = s.ordinal))",
    ),
    (
        "I-2",
        "a confirmed order owns exactly the seats it lists and hasn't given back",
        "SELECT * FROM (
           SELECT o.order_id, o.ticket_count, json_array_length(h.seats) - json_array_length(o.returned_seats) AS listed,
             (SELECT count(*) FROM json_each(h.seats) j CROSS JOIN seats s
               WHERE s.event_no = o.event_no AND s.ordinal = j.value AND s.status = 2 AND s.order_id = o.order_id) AS owned,
             (SELECT count(*) FROM json_each(o.returned_seats) j CROSS JOIN seats s
               WHERE s.event_no = o.event_no AND s.ordinal = j.value AND s.status = 2 AND s.order_id = o.order_id) AS kept,
             (SELECT coalesce(sum(CAST(json_extract(j.value, '$.q') AS BIGINT)), 0) FROM json_objects(h.ga) j)
               - (SELECT coalesce(sum(CAST(json_extract(j.value, '$.q') AS BIGINT)), 0) FROM json_objects(o.returned_ga) j) AS places
           FROM orders o JOIN holds h ON h.hold_id = o.hold_id WHERE o.status = 'CONFIRMED'
         ) t WHERE ticket_count <> listed + places OR owned <> listed OR kept <> 0",
    ),
    (
        "I-3",
        "a held seat belongs to a live hold of its event that lists it and has the same deadline",
        "SELECT s.event_no, s.ordinal, s.hold_id FROM seats s LEFT JOIN holds h ON h.hold_id = s.hold_id
         WHERE s.status = 1 AND (h.status IS NULL OR h.status NOT IN ('ACTIVE', 'PAYMENT_PENDING')
           OR h.event_no <> s.event_no OR h.expires_at <> s.hold_expires_at
           OR NOT EXISTS (SELECT 1 FROM json_each(h.seats) WHERE value = s.ordinal))",
    ),
    (
        "I-4",
        "a live hold holds exactly the seats it lists, all or none",
        "SELECT * FROM (
           SELECT h.hold_id, json_array_length(h.seats) AS listed,
             (SELECT count(*) FROM json_each(h.seats) j CROSS JOIN seats s
               WHERE s.event_no = h.event_no AND s.ordinal = j.value AND s.status = 1 AND s.hold_id = h.hold_id) AS held
           FROM holds h WHERE h.status IN ('ACTIVE', 'PAYMENT_PENDING')
         ) t WHERE held <> listed",
    ),
    (
        "I-5",
        "a hold that is over holds no seat, and one that was used sold all of its seats or none",
        "SELECT h.hold_id, h.status, o.status AS order_status FROM holds h LEFT JOIN orders o ON o.order_id = h.order_id
         WHERE (h.status = 'CONVERTED' AND (o.status IS NULL OR o.status NOT IN ('CONFIRMED', 'CANCELLED')))
            OR (h.status IN ('RELEASED', 'EXPIRED') AND o.status IN ('CONFIRMED', 'AWAITING_PAYMENT'))",
    ),
    (
        "I-6",
        "a hold has at most one order, and both name each other, the account and the event",
        "SELECT o.order_id, o.hold_id FROM orders o LEFT JOIN holds h ON h.hold_id = o.hold_id
         WHERE h.order_id IS DISTINCT FROM o.order_id OR h.account_id IS DISTINCT FROM o.account_id OR h.event_no IS DISTINCT FROM o.event_no
         UNION ALL
         SELECT h.order_id, h.hold_id FROM holds h WHERE h.order_id IS NOT NULL
           AND NOT EXISTS (SELECT 1 FROM orders o WHERE o.order_id = h.order_id AND o.hold_id = h.hold_id)",
    ),
    (
        "I-7",
        "an order awaits payment exactly while its hold lives",
        "SELECT o.order_id, o.status, h.status AS hold_status FROM orders o JOIN holds h ON h.hold_id = o.hold_id
         WHERE (o.status = 'AWAITING_PAYMENT') <> (h.status IN ('ACTIVE', 'PAYMENT_PENDING'))
            OR (o.status = 'CONFIRMED' AND h.status <> 'CONVERTED') OR (o.status = 'EXPIRED' AND h.status <> 'EXPIRED')",
    ),
    (
        "I-8",
        "an order and its hold cost what their seats cost at the price version promised",
        "SELECT * FROM (
           SELECT h.hold_id, h.total_minor, o.amount_minor, h.price_version, o.price_version AS charged,
             (SELECT CAST(coalesce(sum(p.amount_minor), 0) AS BIGINT) FROM json_each(h.seats) j CROSS JOIN seats s CROSS JOIN prices p
               WHERE s.event_no = h.event_no AND s.ordinal = j.value AND p.event_no = h.event_no
                 AND p.price_version = h.price_version AND p.level = s.price_level)
             + (SELECT CAST(coalesce(sum(p.amount_minor * CAST(json_extract(j.value, '$.q') AS BIGINT)), 0) AS BIGINT)
               FROM json_objects(h.ga) j CROSS JOIN ga_areas a CROSS JOIN prices p
               WHERE a.event_no = h.event_no AND a.position = CAST(json_extract(j.value, '$.a') AS BIGINT)
                 AND p.event_no = h.event_no AND p.price_version = h.price_version AND p.level = a.price_level) AS cost
           FROM holds h LEFT JOIN orders o ON o.order_id = h.order_id
         ) t WHERE cost IS DISTINCT FROM total_minor OR amount_minor <> total_minor OR charged <> price_version",
    ),
    (
        "I-9",
        "a confirmed order was paid by one of its own successful attempts, in its amount and currency",
        "SELECT o.order_id, o.paid_by FROM orders o LEFT JOIN operations p ON p.operation_id = o.paid_by
         WHERE o.status = 'CONFIRMED' AND (p.order_id IS DISTINCT FROM o.order_id OR p.kind <> 'AUTHORIZE' OR p.status <> 'SUCCEEDED'
           OR p.amount_minor <> o.amount_minor OR p.currency <> o.currency)",
    ),
    (
        "I-10",
        "an order has at most one live operation of a kind for an attempt, and acts only on its own attempts",
        "SELECT order_id, kind, target, count(*) AS live FROM operations
         WHERE status IN ('PENDING', 'REQUIRES_ACTION', 'UNKNOWN') GROUP BY order_id, kind, target HAVING count(*) > 1
         UNION ALL
         SELECT x.order_id, x.kind, x.target, 1 FROM operations x LEFT JOIN operations a ON a.operation_id = x.target
         WHERE x.target IS NOT NULL AND (a.order_id IS DISTINCT FROM x.order_id OR a.kind <> 'AUTHORIZE')",
    ),
    (
        "I-11",
        "all money that a provider has set aside or taken is accounted for: it paid for seats, or it goes back, or a case is open",
        "SELECT a.operation_id, a.order_id, a.amount_minor FROM operations a JOIN orders o ON o.order_id = a.order_id
         WHERE a.kind = 'AUTHORIZE' AND a.status = 'SUCCEEDED'
           AND NOT (o.status = 'CONFIRMED' AND o.paid_by = a.operation_id)
           AND NOT EXISTS (SELECT 1 FROM operations b WHERE b.target = a.operation_id AND b.order_id = a.order_id
             AND ((b.kind IN ('VOID', 'REFUND') AND b.status <> 'FAILED')
               OR (b.kind = 'CAPTURE' AND b.status = 'FAILED' AND b.failure_code = 'authorization_lapsed')))
           AND NOT EXISTS (SELECT 1 FROM cases c WHERE c.operation_id = a.operation_id AND c.kind <> 'callback_conflict'
             AND (c.status = 'OPEN' OR c.action = 'dismiss'))",
    ),
    (
        "I-12",
        "money is taken only for a confirmed order, and every confirmed order has its capture under way, done or in question",
        "SELECT c.operation_id, c.order_id FROM operations c JOIN orders o ON o.order_id = c.order_id
         WHERE c.kind = 'CAPTURE' AND c.status = 'SUCCEEDED' AND o.status <> 'CONFIRMED'
           AND NOT EXISTS (SELECT 1 FROM operations r WHERE r.order_id = c.order_id AND r.kind = 'REFUND' AND r.status <> 'FAILED')
           AND NOT EXISTS (SELECT 1 FROM cases k WHERE k.order_id = c.order_id AND k.kind <> 'callback_conflict'
             AND (k.status = 'OPEN' OR k.action = 'dismiss'))
         UNION ALL
         SELECT o.paid_by, o.order_id FROM orders o JOIN events e ON e.event_no = o.event_no
         WHERE o.status = 'CONFIRMED' AND e.payment = 'authorize_then_capture'
           AND NOT EXISTS (SELECT 1 FROM operations c WHERE c.order_id = o.order_id AND c.kind = 'CAPTURE'
             AND c.target = o.paid_by AND c.status <> 'FAILED')",
    ),
    (
        "I-13",
        "an event counts its holds in PAYMENT_PENDING rightly, and each of them has an order",
        "SELECT event_no, payment_pending, counted FROM (
           SELECT e.event_no, e.payment_pending, e.payment_pending_max,
             (SELECT count(*) FROM holds h WHERE h.event_no = e.event_no AND h.status = 'PAYMENT_PENDING'
               AND h.status IN ('ACTIVE', 'PAYMENT_PENDING')) AS counted
           FROM events e WHERE e.elsewhere IS NULL
         ) t WHERE payment_pending <> counted OR payment_pending > payment_pending_max
         UNION ALL
         SELECT h.event_no, 0, 1 FROM holds h WHERE h.status = 'PAYMENT_PENDING' AND h.order_id IS NULL",
    ),
    (
        "I-14",
        "no account has more tickets, bound or sold, than its event allows",
        "SELECT t.event_no, t.account_id, sum(t.tickets) AS tickets, e.tickets_per_account_max AS allowed FROM (
           SELECT event_no, account_id, ticket_count AS tickets FROM orders WHERE status = 'CONFIRMED'
           UNION ALL
           SELECT h.event_no, h.account_id, json_array_length(h.seats)
             + (SELECT coalesce(sum(CAST(json_extract(j.value, '$.q') AS BIGINT)), 0) FROM json_objects(h.ga) j)
           FROM holds h JOIN events v USING (event_no)
           WHERE h.status IN ('ACTIVE', 'PAYMENT_PENDING')
             AND ((h.expires_at > ?1 AND h.expires_at > v.clock) OR (h.status = 'PAYMENT_PENDING' AND v.in_doubt = 'keep'))
         ) t JOIN events e ON e.event_no = t.event_no GROUP BY t.event_no, t.account_id, e.tickets_per_account_max
         HAVING sum(t.tickets) > e.tickets_per_account_max",
    ),
    (
        "I-15",
        "the log numbers every change of an event without gaps, and the last word on each seat is the seat's state",
        "WITH laid_out AS MATERIALIZED (SELECT event_no, max(version) AS version FROM log
           WHERE kind = 'manifest.replaced' GROUP BY event_no)
         SELECT e.event_no, e.version, 'log' AS what, coalesce(max(l.version), 0) AS last, count(l.version) AS entries
         FROM events e LEFT JOIN log l ON l.event_no = e.event_no WHERE e.elsewhere IS NULL GROUP BY e.event_no, e.version
         HAVING coalesce(max(l.version), 0) <> e.version OR count(l.version) <> e.version
         UNION ALL
         SELECT s.event_no, s.version, 'seat ' || s.ordinal, s.status, -1 FROM seats s
         LEFT JOIN log l ON l.event_no = s.event_no AND l.version = s.version
         WHERE s.version > 0 AND (l.kind IS NULL
           OR (s.status = 0 AND l.kind NOT IN ('hold.released', 'hold.expired', 'order.cancelled', 'order.returned', 'seats.status_set',
             'seats.set_aside'))
           OR (s.status = 1 AND l.kind <> 'hold.placed') OR (s.status = 2 AND l.kind <> 'order.confirmed')
           OR (s.status = 3 AND l.kind NOT IN ('seats.status_set', 'order.returned'))
           OR (l.kind = 'seats.status_set' AND (s.status = 3) <> (l.payload LIKE '%_not_for_sale_:true%'))
           OR NOT EXISTS (SELECT 1 FROM json_each(l.payload, '$.seats') WHERE value = s.ordinal))
         UNION ALL
         SELECT s.event_no, l.version, 'seat ' || s.ordinal, s.status, s.version
         FROM log l JOIN laid_out m ON m.event_no = l.event_no CROSS JOIN json_each(l.payload, '$.seats') j CROSS JOIN seats s
         WHERE s.event_no = l.event_no AND s.ordinal = j.value AND s.version < l.version AND l.version > m.version",
    ),
    (
        "I-16",
        "a finished request is remembered with what it made, once, and no longer than its time",
        "SELECT k.event_no, k.key, k.answer FROM idempotency_keys k
         WHERE k.created_at < (SELECT max(clock) FROM events) - 172800000 - 86400000 OR k.answer = ''
         UNION ALL
         SELECT k.event_no, k.key, k.answer FROM (
           SELECT answer FROM idempotency_keys WHERE substr(answer, 1, 4) IN ('hld_', 'ord_')
           EXCEPT SELECT json_extract(payload, '$.hold') FROM log WHERE kind = 'hold.placed'
           EXCEPT SELECT json_extract(payload, '$.order') FROM log WHERE kind = 'checkout.begun'
         ) lost CROSS JOIN idempotency_keys k WHERE k.answer = lost.answer",
    ),
    (
        "I-17",
        "a callback nobody could place has become a case in time, and a conflict has one",
        "SELECT c.event_no, c.provider_event_id, c.verdict FROM callbacks c CROSS JOIN (SELECT max(clock) AS last FROM events) e
         WHERE c.verdict = 'parked' AND c.case_id IS NULL AND c.received_at < e.last - 600000 - 60000 AND c.due_at < e.last - 60000
         UNION ALL
         SELECT c.event_no, c.provider_event_id, c.verdict FROM callbacks c
         WHERE c.case_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM cases k WHERE k.case_id = c.case_id)
         UNION ALL
         SELECT c.event_no, c.provider_event_id, c.verdict FROM callbacks c
         LEFT JOIN operations o ON o.reference = c.reference AND o.kind = 'AUTHORIZE' AND o.reference IS NOT NULL
         WHERE c.verdict = 'conflict' AND c.case_id IS NULL AND NOT EXISTS (SELECT 1 FROM cases k
           WHERE k.kind = 'callback_conflict' AND (o.operation_id IS NULL OR k.operation_id = o.operation_id))",
    ),
    (
        "I-30",
        "an order's payment status is what its operations add up to",
        "WITH spoken AS (SELECT o.order_id, o.payment_status, e.payment, coalesce(
             (SELECT x.operation_id FROM operations x WHERE x.operation_id = o.paid_by AND x.order_id = o.order_id
               AND x.kind = 'AUTHORIZE'),
             (SELECT x.operation_id FROM operations x WHERE x.order_id = o.order_id AND x.kind = 'AUTHORIZE'
               ORDER BY x.seq DESC LIMIT 1)) AS attempt
           FROM orders o JOIN events e USING (event_no)),
         told AS (SELECT p.order_id, p.payment_status, p.payment, a.status AS attempt, a.amount_minor AS taken,
           (SELECT sum(x.amount_minor) FROM operations x WHERE x.order_id = p.order_id AND x.target = p.attempt
             AND x.kind = 'REFUND' AND x.status = 'SUCCEEDED') AS refunded,
           (SELECT x.status FROM operations x WHERE x.order_id = p.order_id AND x.target = p.attempt AND x.kind = 'REFUND'
             ORDER BY x.seq DESC LIMIT 1) AS refund,
           (SELECT x.status FROM operations x WHERE x.order_id = p.order_id AND x.target = p.attempt AND x.kind = 'VOID'
             ORDER BY x.seq DESC LIMIT 1) AS void,
           (SELECT x.status FROM operations x WHERE x.order_id = p.order_id AND x.target = p.attempt AND x.kind = 'CAPTURE'
             ORDER BY x.seq DESC LIMIT 1) AS capture
           FROM spoken p LEFT JOIN operations a ON a.operation_id = p.attempt)
         SELECT * FROM (SELECT order_id, payment_status, CASE
             WHEN refund IN ('PENDING', 'REQUIRES_ACTION', 'UNKNOWN') THEN 'REFUND_PENDING'
             WHEN refunded >= taken THEN 'REFUNDED'
             WHEN refunded > 0 THEN 'CAPTURED'
             WHEN void = 'SUCCEEDED' THEN 'VOIDED'
             WHEN void IN ('PENDING', 'REQUIRES_ACTION', 'UNKNOWN') THEN 'VOID_PENDING'
             WHEN capture = 'SUCCEEDED' OR refund = 'FAILED' THEN 'CAPTURED'
             WHEN attempt = 'FAILED' THEN 'DECLINED'
             WHEN attempt = 'SUCCEEDED' AND payment = 'charge' THEN 'CAPTURED'
             WHEN attempt = 'SUCCEEDED' THEN 'AUTHORIZED'
             ELSE coalesce(attempt, 'PENDING') END AS expected
         FROM told) t WHERE expected <> payment_status",
    ),
    (
        "I-31",
        "a seat's price level and ordinal are those of the manifest, and the manifest is whole",
        "SELECT * FROM (
           SELECT e.event_no, e.seat_count, (SELECT count(*) FROM seats s WHERE s.event_no = e.event_no) AS seats,
             (SELECT count(*) FROM manifest_seats m WHERE m.event_no = e.event_no) AS printed
           FROM events e WHERE e.elsewhere IS NULL
         ) t WHERE seats <> seat_count OR printed <> seat_count
         UNION ALL
         SELECT s.event_no, s.ordinal, s.price_level, -1 FROM seats s
         WHERE NOT EXISTS (SELECT 1 FROM price_levels p WHERE p.event_no = s.event_no AND p.level = s.price_level)
           OR NOT EXISTS (SELECT 1 FROM manifest_seats m WHERE m.event_no = s.event_no AND m.ordinal = s.ordinal)",
    ),
];
