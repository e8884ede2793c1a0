//! Tickets and the gate.

use super::Query;

pub(super) const CHECKS: &[Query] = &[
    (
        "I-23",
        "an order has its tickets once its money has been taken, once, one for each seat and place it has",
        "SELECT order_id, ticketed, ticket_count, tickets FROM (
           SELECT o.order_id, o.ticketed, o.ticket_count, count(t.ticket_id) AS tickets,
             sum(CASE WHEN t.status <> 'REVOKED' THEN 1 ELSE 0 END) AS good
           FROM orders o LEFT JOIN tickets t ON t.order_id = o.order_id GROUP BY o.order_id, o.ticketed, o.ticket_count
         ) x WHERE (ticketed = 0 AND tickets > 0) OR (ticketed = 1 AND good <> ticket_count)
         UNION ALL
         SELECT o.order_id, o.ticketed, o.ticket_count, -1 FROM orders o JOIN events e ON e.event_no = o.event_no
         WHERE o.ticketed = 1 AND NOT EXISTS (SELECT 1 FROM operations c WHERE c.order_id = o.order_id AND c.status = 'SUCCEEDED'
           AND ((c.kind = 'CAPTURE' AND c.target = o.paid_by) OR (e.payment = 'charge' AND c.operation_id = o.paid_by)))
         UNION ALL
         SELECT t.order_id, -1, -1, -1 FROM tickets t
         WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.order_id = t.order_id AND o.event_no = t.event_no)
         UNION ALL
         SELECT order_id, -1, area, CAST(sum(tickets) AS BIGINT) FROM (
           SELECT order_id, area, 1 AS tickets FROM tickets WHERE area IS NOT NULL AND status <> 'REVOKED'
           UNION ALL
           SELECT o.order_id, CAST(json_extract(j.value, '$.a') AS BIGINT), -CAST(json_extract(j.value, '$.q') AS BIGINT)
           FROM orders o JOIN holds h ON h.hold_id = o.hold_id CROSS JOIN json_objects(h.ga) j
           WHERE o.ticketed = 1 AND h.ga <> '[]'
           UNION ALL
           SELECT o.order_id, CAST(json_extract(j.value, '$.a') AS BIGINT), CAST(json_extract(j.value, '$.q') AS BIGINT)
           FROM orders o CROSS JOIN json_objects(o.returned_ga) j WHERE o.ticketed = 1 AND o.returned_ga <> '[]'
         ) x GROUP BY order_id, area HAVING sum(tickets) <> 0",
    ),
    (
        "I-24",
        "no ticket is good for what has been given back, or is being given back",
        "SELECT t.order_id, t.status, coalesce(t.ordinal, t.area) AS place, 1 AS tickets
         FROM tickets t JOIN orders o ON o.order_id = t.order_id WHERE t.status <> 'REVOKED' AND o.status <> 'CONFIRMED'
         UNION ALL
         SELECT t.order_id, t.status, t.ordinal, 1 FROM tickets t
         LEFT JOIN seats s ON s.event_no = t.event_no AND s.ordinal = t.ordinal
         WHERE t.status <> 'REVOKED' AND t.ordinal IS NOT NULL
           AND (s.status IS DISTINCT FROM 2 OR s.order_id IS DISTINCT FROM t.order_id)
         UNION ALL
         SELECT t.order_id, t.status, t.ordinal, 1 FROM operations p JOIN refunds r ON r.operation_id = p.operation_id
         CROSS JOIN json_each(r.seats) j CROSS JOIN tickets t
         WHERE p.kind = 'REFUND' AND p.status IN ('PENDING', 'REQUIRES_ACTION', 'UNKNOWN')
           AND t.order_id = r.order_id AND t.ordinal = j.value AND t.status = 'VALID'
         UNION ALL
         SELECT order_id, 'SUSPENDED', -1, CAST(sum(tickets) AS BIGINT) FROM (
           SELECT order_id, 1 AS tickets FROM tickets WHERE status = 'SUSPENDED'
           UNION ALL
           SELECT r.order_id, -json_array_length(r.seats)
             - (SELECT coalesce(sum(CAST(json_extract(j.value, '$.q') AS BIGINT)), 0) FROM json_objects(r.ga) j)
           FROM refunds r JOIN operations p ON p.operation_id = r.operation_id JOIN orders o ON o.order_id = r.order_id
           WHERE o.ticketed = 1 AND p.status IN ('PENDING', 'REQUIRES_ACTION', 'UNKNOWN')
         ) x GROUP BY order_id HAVING sum(tickets) <> 0",
    ),
    (
        "I-25",
        "a ticket lets one in at a time, and what it says of its holder is what its scans add up to",
        "SELECT * FROM (
           SELECT t.event_no, t.ticket_id, t.inside, t.admissions, e.reentry, t.admitted_at,
             (SELECT count(*) FROM scans s WHERE s.ticket_id = t.ticket_id AND s.result = 'ADMIT') AS admitted,
             (SELECT count(*) FROM scans s WHERE s.ticket_id = t.ticket_id AND s.result = 'EXITED') AS gone,
             (SELECT min(s.received_at) FROM scans s WHERE s.ticket_id = t.ticket_id AND s.result = 'ADMIT') AS first_at
           FROM tickets t JOIN events e ON e.event_no = t.event_no
         ) x WHERE admissions <> admitted OR inside <> admitted - gone OR (reentry = 0 AND admissions > 1)
           OR admitted_at IS DISTINCT FROM first_at
         UNION ALL
         SELECT s.event_no, s.ticket_id, -1, s.generation, -1, s.received_at, -1, -1, s.scanned_at FROM scans s
         LEFT JOIN tickets t ON t.ticket_id = s.ticket_id
         WHERE (t.ticket_id IS NULL) <> (s.result = 'INVALID') OR t.event_no <> s.event_no
           OR (s.result = 'ADMIT' AND (s.direction <> 'IN' OR s.generation > t.generation))
           OR (s.result IN ('EXITED', 'NOT_INSIDE') AND s.direction <> 'OUT')",
    ),
];
