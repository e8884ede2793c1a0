//! Standing areas, allocations, access codes and refunds.

use super::Query;

/// A hold's lines are taken apart once and then added up: nothing is looked up for each.
pub(super) const CHECKS: &[Query] = &[
    (
        "I-18",
        "the capacity of a standing area is that of its buckets and of what is in flight between them",
        "SELECT a.event_no, a.position AS area, a.capacity, coalesce(b.places, 0) AS in_buckets, coalesce(t.places, 0) AS in_flight
         FROM ga_areas a
         LEFT JOIN (SELECT event_no, area, CAST(sum(capacity) AS BIGINT) AS places FROM ga_buckets GROUP BY event_no, area) b
           ON b.event_no = a.event_no AND b.area = a.position
         LEFT JOIN (SELECT event_no, area, CAST(sum(quantity) AS BIGINT) AS places FROM quota_transfers
             WHERE status = 'IN_FLIGHT' GROUP BY event_no, area) t
           ON t.event_no = a.event_no AND t.area = a.position
         WHERE a.capacity <> coalesce(b.places, 0) + coalesce(t.places, 0)",
    ),
    (
        "I-19",
        "a bucket counts as held what live holds have of it, and as sold what confirmed orders have and haven't given back",
        "SELECT event_no, area, bucket, CAST(sum(held) AS BIGINT) AS held, CAST(sum(sold) AS BIGINT) AS sold FROM (
           SELECT event_no, area, bucket, held, sold FROM ga_buckets WHERE held > 0 OR sold > 0
           UNION ALL
           SELECT h.event_no, CAST(json_extract(j.value, '$.a') AS BIGINT), CAST(json_extract(j.value, '$.b') AS BIGINT),
             -CAST(json_extract(j.value, '$.q') AS BIGINT), 0
           FROM holds h CROSS JOIN json_objects(h.ga) j WHERE h.status IN ('ACTIVE', 'PAYMENT_PENDING') AND h.ga <> '[]'
           UNION ALL
           SELECT o.event_no, CAST(json_extract(j.value, '$.a') AS BIGINT), CAST(json_extract(j.value, '$.b') AS BIGINT), 0,
             -CAST(json_extract(j.value, '$.q') AS BIGINT)
           FROM orders o JOIN holds h ON h.hold_id = o.hold_id CROSS JOIN json_objects(h.ga) j
           WHERE o.status = 'CONFIRMED' AND h.ga <> '[]'
           UNION ALL
           SELECT o.event_no, CAST(json_extract(j.value, '$.a') AS BIGINT), CAST(json_extract(j.value, '$.b') AS BIGINT), 0,
             CAST(json_extract(j.value, '$.q') AS BIGINT)
           FROM orders o CROSS JOIN json_objects(o.returned_ga) j WHERE o.status = 'CONFIRMED' AND o.returned_ga <> '[]'
         ) t GROUP BY event_no, area, bucket HAVING sum(held) <> 0 OR sum(sold) <> 0",
    ),
    (
        "I-20",
        "an event counts its places in use rightly, and they are no more than it allows",
        "SELECT * FROM (
           SELECT e.event_no, e.ga_in_use, e.ga_max, (SELECT CAST(coalesce(sum(b.held + b.sold), 0) AS BIGINT) FROM ga_buckets b
             WHERE b.event_no = e.event_no) AS counted
           FROM events e WHERE e.elsewhere IS NULL
         ) t WHERE ga_in_use <> counted OR ga_in_use > ga_max",
    ),
    (
        "I-21",
        "an access code counts the tickets that are held and bought with it, no more than it allows, and every code used is known",
        "SELECT event_no, code, CAST(sum(tickets) AS BIGINT) AS counted, max(allowed) AS allowed FROM (
           SELECT event_no, code, tickets_in_use AS tickets, tickets_max AS allowed FROM access_codes
           UNION ALL
           SELECT h.event_no, h.code, -json_array_length(h.seats)
             - (SELECT coalesce(sum(CAST(json_extract(j.value, '$.q') AS BIGINT)), 0) FROM json_objects(h.ga) j), 0
           FROM holds h WHERE h.code IS NOT NULL AND h.status IN ('ACTIVE', 'PAYMENT_PENDING')
           UNION ALL
           SELECT h.event_no, h.code, -o.ticket_count, 0 FROM orders o JOIN holds h ON h.hold_id = o.hold_id
           WHERE h.code IS NOT NULL AND o.status = 'CONFIRMED'
         ) t GROUP BY event_no, code HAVING sum(tickets) <> 0 OR max(allowed) = 0",
    ),
    (
        "I-22",
        "what is set aside for a party is held and sold with its code alone",
        "SELECT s.event_no, s.ordinal, s.allocation, h.code FROM seats s JOIN holds h ON h.hold_id = s.hold_id
         WHERE s.allocation IS NOT NULL AND s.status IN (1, 2) AND NOT EXISTS (SELECT 1 FROM access_codes c
           WHERE c.event_no = s.event_no AND c.code = h.code AND c.allocation = s.allocation)",
    ),
    (
        "I-26",
        "no more is refunded than was taken, and what a refund gave back is its order's no more",
        "SELECT x.order_id, x.target AS operation_id, CAST(sum(x.amount_minor) AS BIGINT) AS refunded, a.amount_minor AS taken
         FROM operations x JOIN operations a ON a.operation_id = x.target
         WHERE x.kind = 'REFUND' AND x.status <> 'FAILED' GROUP BY x.order_id, x.target, a.amount_minor
         HAVING sum(x.amount_minor) > a.amount_minor
         UNION ALL
         SELECT r.order_id, r.operation_id, x.amount_minor, -1 FROM refunds r JOIN operations x ON x.operation_id = r.operation_id
         JOIN orders o ON o.order_id = r.order_id CROSS JOIN json_each(r.seats) j
         WHERE x.status = 'SUCCEEDED' AND NOT EXISTS (SELECT 1 FROM json_each(o.returned_seats) WHERE value = j.value)
         UNION ALL
         SELECT r.order_id, r.operation_id, 0, -2 FROM refunds r
         WHERE NOT EXISTS (SELECT 1 FROM operations x WHERE x.operation_id = r.operation_id AND x.order_id = r.order_id
           AND x.kind = 'REFUND')",
    ),
];
