//! Standing areas, allocations, access codes and refunds.

use onsale_core::access::{AccessCode, Allocation};
use onsale_core::ga::{Bucket, Transfer};
use onsale_core::id::{EventNo, OrderId, TransferId};
use onsale_core::payment::OperationStatus;
use onsale_core::refund::Refund;

use crate::look::Parsed;
use crate::rows::{self, ALLOCATION, BUCKET, CODE, REFUND, TRANSFER};

use super::Reader;

/// A refund with where its money is.
#[derive(Clone, Debug)]
pub struct RefundView {
    /// What it gives back.
    pub refund: Refund,
    /// How much, in minor units.
    pub amount_minor: i64,
    /// What the provider has said.
    pub status: OperationStatus,
}

impl Reader<'_> {
    /// The buckets of an event's standing areas, and what is in flight between them.
    pub fn buckets(&self, no: EventNo) -> Parsed<(Vec<Bucket>, Vec<Transfer>)> {
        self.0.still(|| {
            let text = format!("SELECT {BUCKET} FROM ga_buckets WHERE event_no = ?1 ORDER BY area, bucket");
            let buckets = self.0.all(&text, &[no.0.into()], rows::bucket)?;
            let text = format!(
                "SELECT {TRANSFER} FROM quota_transfers WHERE status = 'IN_FLIGHT' AND event_no = ?1 ORDER BY created_at"
            );
            Ok((buckets, self.0.all(&text, &[no.0.into()], rows::transfer)?))
        })
    }

    /// Transfers that have not arrived yet, the oldest first.
    pub fn transfers_in_flight(&self, limit: u32) -> Parsed<Vec<TransferId>> {
        let text = "SELECT transfer_id FROM quota_transfers t WHERE status = 'IN_FLIGHT'
               AND EXISTS (SELECT 1 FROM events e WHERE e.event_no = t.event_no AND e.elsewhere IS NULL)
             ORDER BY created_at LIMIT ?1";
        self.0.all(text, &[limit.into()], |row| row.id(0))
    }

    /// An event's allocations.
    pub fn allocations(&self, no: EventNo) -> Parsed<Vec<Allocation>> {
        let text = format!("SELECT {ALLOCATION} FROM allocations WHERE event_no = ?1 ORDER BY allocation");
        self.0.all(&text, &[no.0.into()], rows::allocation)
    }

    /// An event's access codes after one, at most `limit`.
    pub fn access_codes(&self, no: EventNo, after: &str, limit: u32) -> Parsed<Vec<AccessCode>> {
        let text = format!(
            "SELECT {CODE} FROM access_codes WHERE event_no = ?1 AND code > ?2 ORDER BY code LIMIT ?3"
        );
        self.0.all(&text, &[no.0.into(), after.into(), limit.into()], rows::code)
    }

    /// One of an event's access codes.
    pub fn access_code(&self, no: EventNo, code: &str) -> Parsed<Option<AccessCode>> {
        let text = format!("SELECT {CODE} FROM access_codes WHERE event_no = ?1 AND code = ?2");
        self.0.one(&text, &[no.0.into(), code.into()], rows::code)
    }

    /// The refunds of an order, the oldest first.
    pub fn refunds(&self, order: OrderId) -> Parsed<Vec<RefundView>> {
        let columns =
            REFUND.split(", ").map(|column| format!("r.{}", column.trim())).collect::<Vec<_>>().join(", ");
        let text = format!(
            "SELECT {columns}, o.amount_minor, o.status FROM refunds r JOIN operations o ON o.operation_id = r.operation_id
             WHERE r.order_id = ?1 ORDER BY o.seq"
        );
        let refunds = self.0.all(&text, &[order.0.into()], |row| {
            Ok(RefundView { refund: rows::refund(row)?, amount_minor: row.number(8)?, status: row.word(9)? })
        })?;
        self.0.prove()?;
        Ok(refunds)
    }
}
