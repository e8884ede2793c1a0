//! One movement of money asked of the provider: `PENDING → SUCCEEDED | FAILED | REQUIRES_ACTION | UNKNOWN`, and UNKNOWN
//! leaves only by evidence.
//!
//! An AUTHORIZE operation is an *attempt*: one card, one object at the provider, one key. CAPTURE, VOID and REFUND act
//! on an attempt and name it as their target.

use crate::id::{OperationId, OrderId};
use crate::limits::{QUERY_BACKOFF_MS_MAX, QUERY_BACKOFF_MS_MIN};
use crate::money::Money;
use crate::time::Timestamp;

/// One movement of money. Its id is the provider's idempotency key.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Operation {
    /// Its id.
    pub id: OperationId,
    /// The order it is for.
    pub order: OrderId,
    /// Its place among the order's operations, from 0.
    pub seq: u32,
    /// What is asked.
    pub kind: OperationKind,
    /// What is known of the answer.
    pub status: OperationStatus,
    /// The attempt it acts on; an AUTHORIZE is its own.
    pub target: Option<OperationId>,
    /// The provider's name of the attempt's object. Without one nothing can have been authorised.
    pub reference: Option<String>,
    /// How much.
    pub amount: Money,
    /// What had been given back of the attempt when a REFUND was made, in minor units; 0 for all others.
    pub base_minor: i64,
    /// The card, until the attempt is over.
    pub payment_method_token: Option<String>,
    /// Where the buyer proves who they are.
    pub next_action_url: Option<String>,
    /// The provider's word for why it failed.
    pub failure_code: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When a worker should look at it next.
    pub due_at: Timestamp,
    /// Questions in a row that brought no answer.
    pub tries: u32,
}

/// What is asked of the provider.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OperationKind {
    /// Set money aside (or take it, where that is all the provider can do).
    Authorize,
    /// Take money set aside.
    Capture,
    /// Let go of money set aside.
    Void,
    /// Give money back.
    Refund,
}

/// What is known of the provider's answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OperationStatus {
    /// To be sent, or in work.
    Pending,
    /// The buyer must act first.
    RequiresAction,
    /// Sent, no answer: neither success nor failure.
    Unknown,
    /// Done, by the provider's proof.
    Succeeded,
    /// Not done and never will be, by the provider's proof.
    Failed,
}

impl OperationStatus {
    /// Whether its answer is still to come.
    pub fn is_live(self) -> bool {
        match self {
            OperationStatus::Pending | OperationStatus::RequiresAction | OperationStatus::Unknown => true,
            OperationStatus::Succeeded | OperationStatus::Failed => false,
        }
    }
}

impl Operation {
    /// The attempt this operation is or acts on.
    pub fn attempt(&self) -> OperationId {
        self.target.unwrap_or(self.id)
    }
}

/// What an order's money looks like from outside (API.md).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PaymentStatus {
    /// Asked, not answered.
    Pending,
    /// The buyer must act.
    RequiresAction,
    /// Asked, and the answer was lost.
    Unknown,
    /// Money is set aside.
    Authorized,
    /// Refused.
    Declined,
    /// Money was taken.
    Captured,
    /// Money set aside is to be let go.
    VoidPending,
    /// Money set aside was let go, by proof.
    Voided,
    /// Money taken is to be given back.
    RefundPending,
    /// Money taken was given back, by proof.
    Refunded,
}

/// What an order's operations add up to. The attempt that paid speaks for the order; without one, the latest does.
/// `charge` says that a successful attempt has already taken the money.
pub fn payment_status(
    operations: &[&Operation],
    paid_by: Option<OperationId>,
    charge: bool,
) -> PaymentStatus {
    let attempts = || operations.iter().filter(|o| o.kind == OperationKind::Authorize);
    let Some(attempt) =
        attempts().find(|o| Some(o.id) == paid_by).or_else(|| attempts().max_by_key(|o| o.seq))
    else {
        return PaymentStatus::Pending;
    };
    // An attempt can have several operations of one kind when an earlier one failed: the latest counts.
    let on_attempt = |kind| {
        let of_kind = operations.iter().filter(|o| o.kind == kind && o.target == Some(attempt.id));
        of_kind.max_by_key(|o| o.seq).map(|o| o.status)
    };
    if on_attempt(OperationKind::Refund).is_some_and(OperationStatus::is_live) {
        return PaymentStatus::RefundPending;
    }
    let refunds =
        operations.iter().filter(|o| o.kind == OperationKind::Refund && o.target == Some(attempt.id));
    let mut refunded = refunds.filter(|o| o.status == OperationStatus::Succeeded).peekable();
    // A part that was given back leaves the rest taken.
    if refunded.peek().is_some() {
        let back: i64 = refunded.map(|refund| refund.amount.amount_minor).sum();
        return if back >= attempt.amount.amount_minor {
            PaymentStatus::Refunded
        } else {
            PaymentStatus::Captured
        };
    }
    match on_attempt(OperationKind::Void) {
        Some(OperationStatus::Succeeded) => return PaymentStatus::Voided,
        Some(status) if status.is_live() => return PaymentStatus::VoidPending,
        _ => {}
    }
    // A refund is of money that was taken, whoever asked for it; one that was refused leaves it taken.
    if on_attempt(OperationKind::Capture) == Some(OperationStatus::Succeeded)
        || on_attempt(OperationKind::Refund) == Some(OperationStatus::Failed)
    {
        return PaymentStatus::Captured;
    }
    match attempt.status {
        OperationStatus::Pending => PaymentStatus::Pending,
        OperationStatus::RequiresAction => PaymentStatus::RequiresAction,
        OperationStatus::Unknown => PaymentStatus::Unknown,
        OperationStatus::Failed => PaymentStatus::Declined,
        OperationStatus::Succeeded if charge => PaymentStatus::Captured,
        OperationStatus::Succeeded => PaymentStatus::Authorized,
    }
}

/// How long to wait before looking again at an operation whose answer says "not yet": half its age, within bounds.
pub fn poll_wait_ms(age_ms: i64) -> i64 {
    (age_ms / 2).clamp(QUERY_BACKOFF_MS_MIN, QUERY_BACKOFF_MS_MAX)
}

/// How long to wait before asking again after so many questions without an answer: doubling, within bounds.
pub fn query_backoff_ms(tries: u32) -> i64 {
    let doubled = QUERY_BACKOFF_MS_MIN.saturating_mul(1 << tries.min(20));
    doubled.min(QUERY_BACKOFF_MS_MAX)
}
