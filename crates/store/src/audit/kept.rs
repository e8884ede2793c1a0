//! What is kept beside the sale: the provider's entries, and that persons were erased.

use super::Query;

pub(super) const CHECKS: &[Query] = &[
    (
        "I-28",
        "an entry of the provider's account belongs to an attempt, with its order and its event",
        "SELECT l.event_no, l.line_id, l.order_id, l.operation_id FROM settlement_lines l
         LEFT JOIN operations a ON a.operation_id = l.operation_id
         WHERE a.kind IS DISTINCT FROM 'AUTHORIZE' OR a.order_id <> l.order_id OR a.event_no <> l.event_no",
    ),
    (
        "I-29",
        "a person who was erased is erased from hold and order alike, with every address, and has nothing under way",
        "SELECT h.event_no, h.hold_id, o.order_id FROM holds h LEFT JOIN orders o ON o.order_id = h.order_id
         WHERE substr(h.account_id, 1, 5) = 'anon_'
           AND (h.status IN ('ACTIVE', 'PAYMENT_PENDING') OR o.email IS NOT NULL OR o.return_url IS NOT NULL)
         UNION ALL
         SELECT o.event_no, o.hold_id, o.order_id FROM orders o JOIN holds h ON h.hold_id = o.hold_id
         WHERE (substr(o.account_id, 1, 5) = 'anon_') <> (substr(h.account_id, 1, 5) = 'anon_')",
    ),
];
