//! What is remembered of a finished request, so that its repetition is answered and not done again.

use crate::id::{HoldId, OperationId, OrderId, TransferId};
use crate::refusal::Refusal;
use crate::time::Timestamp;

/// A request's key: `id` names account, route and key together, `digest` its content.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RequestKey {
    /// First 128 bits of a SHA-256 over account, route and key.
    pub id: u128,
    /// First 128 bits of a SHA-256 over the request's meaning.
    pub digest: u128,
}

/// A finished request.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct KeyRecord {
    /// What it was.
    pub key: RequestKey,
    /// What came of it.
    pub answer: StoredAnswer,
    /// When.
    pub created_at: Timestamp,
}

/// An answer that can be given again.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum StoredAnswer {
    /// A hold was placed.
    HoldPlaced(HoldId),
    /// A checkout was begun.
    CheckoutBegun(OrderId),
    /// A refund was begun.
    RefundBegun(OperationId),
    /// A transfer was begun.
    TransferBegun(TransferId),
    /// It was decided against.
    Refused(Refusal),
}
