//! What other systems are to be told, from the log alone, compared with what is kept of it.

use super::Query;

/// What a message is called is said here once more, apart from the program (`webhooks/message.rs`): a kind of entry that is told
/// under a name of its own has a line, and all others under the kind's. Where the two tables differ, messages are missing or
/// made up.
pub(super) const CHECKS: &[Query] = &[(
    "I-27",
    "what there is to tell other systems is kept in full and once: no progress beyond the log, no message missing or made up",
    "WITH said AS (SELECT l.event_no, l.version, CASE l.kind
             WHEN 'on_sale.set' THEN CASE json_extract(l.payload, '$.status') WHEN 'OPEN' THEN 'sale.opened'
               WHEN 'PAUSED' THEN 'sale.paused' WHEN 'CLOSED' THEN 'sale.closed' END
             WHEN 'hold.released' THEN CASE WHEN json_extract(l.payload, '$.order') IS NULL THEN l.kind ELSE 'order.cancelled' END
             WHEN 'hold.expired' THEN CASE WHEN json_extract(l.payload, '$.order') IS NULL THEN l.kind ELSE 'order.expired' END
             WHEN 'operation.moved' THEN CASE json_extract(l.payload, '$.kind') || ' ' || json_extract(l.payload, '$.status')
               WHEN 'AUTHORIZE SUCCEEDED' THEN 'payment.authorized' WHEN 'AUTHORIZE FAILED' THEN 'payment.declined'
               WHEN 'CAPTURE SUCCEEDED' THEN 'payment.captured' WHEN 'CAPTURE FAILED' THEN 'payment.capture_failed'
               WHEN 'VOID SUCCEEDED' THEN 'payment.voided' WHEN 'VOID FAILED' THEN 'payment.void_failed'
               WHEN 'REFUND SUCCEEDED' THEN 'payment.refunded' WHEN 'REFUND FAILED' THEN 'payment.refund_failed' END
             ELSE l.kind END AS type
           FROM log l WHERE l.event_no IN (SELECT event_no FROM webhook_progress)),
         told AS (SELECT g.event_no, g.endpoint_id, m.version FROM webhook_progress g JOIN said m ON m.event_no = g.event_no
           WHERE m.version > g.started AND m.version <= g.version AND g.types LIKE '%\"' || m.type || '\"%')
         SELECT g.event_no, g.endpoint_id, g.version, 'beyond the log' AS what FROM webhook_progress g
         LEFT JOIN events e ON e.event_no = g.event_no WHERE g.version > coalesce(e.version, -1)
         UNION ALL
         SELECT event_no, endpoint_id, told, 'missing' FROM (
           SELECT g.event_no, g.endpoint_id, g.forgotten, coalesce(t.told, 0) AS told, coalesce(d.kept, 0) AS kept
           FROM webhook_progress g
           LEFT JOIN (SELECT event_no, endpoint_id, count(*) AS told FROM told GROUP BY event_no, endpoint_id) t
             ON t.event_no = g.event_no AND t.endpoint_id = g.endpoint_id
           LEFT JOIN (SELECT event_no, endpoint_id, count(*) AS kept FROM webhook_deliveries GROUP BY event_no, endpoint_id) d
             ON d.event_no = g.event_no AND d.endpoint_id = g.endpoint_id) c WHERE told <> kept + forgotten
         UNION ALL
         SELECT d.event_no, d.endpoint_id, d.version, 'made up' FROM webhook_deliveries d
         LEFT JOIN told t ON t.event_no = d.event_no AND t.endpoint_id = d.endpoint_id AND t.version = d.version
         WHERE t.version IS NULL",
)];
