//! The provider's entries for the payments of a home: money as it reaches the seller's account, with its fees. They are no
//! part of any decision; what is kept twice is kept once.

use onsale_core::id::{OperationId, OrderId};
use onsale_core::money::Money;
use onsale_core::time::Timestamp;

use crate::error::StoreError;
use crate::look::Look;

/// An entry of the provider's for a payment of ours.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SettlementLine {
    /// The provider's name of it.
    pub id: String,
    /// The order it is of.
    pub order: OrderId,
    /// The attempt whose money it is.
    pub attempt: OperationId,
    /// What kind of entry, in the provider's words.
    pub category: String,
    /// What came or, less than zero, went.
    pub amount: Money,
    /// What the provider kept of it.
    pub fee_minor: i64,
    /// When it was made.
    pub created_at: Timestamp,
    /// From when on it can be paid out.
    pub available_at: Timestamp,
}

/// Keeps entries that aren't kept yet, of events at home here; how many.
pub(crate) fn keep(db: Look<'_>, lines: &[SettlementLine]) -> Result<u64, StoreError> {
    // An event that leaves while this is done leaves it behind: it is found in the provider's list again.
    let text = "INSERT INTO settlement_lines (line_id, event_no, order_id, operation_id, category, amount_minor, fee_minor, currency,
           created_at, available_at)
         SELECT ?1, event_no, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10 FROM events WHERE event_no = ?2 AND elsewhere IS NULL
         ON CONFLICT DO NOTHING";
    let mut kept = 0;
    for line in lines {
        kept += db.execute(
            text,
            &[
                line.id.as_str().into(),
                line.attempt.event().0.into(),
                line.order.0.into(),
                line.attempt.0.into(),
                line.category.as_str().into(),
                line.amount.amount_minor.into(),
                line.fee_minor.into(),
                line.amount.currency.as_str().into(),
                line.created_at.millis().into(),
                line.available_at.millis().into(),
            ],
        )?;
    }
    Ok(kept)
}
