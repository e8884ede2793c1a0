//! Callbacks with their verdicts, and cases: questions about money that wait for proof or a person.

use crate::id::{CaseId, EventNo, OperationId, OrderId};
use crate::time::Timestamp;

/// A callback as stored, by the provider's own event id.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Callback {
    /// The provider's id of the message.
    pub provider_event_id: String,
    /// The event it is kept with: the one it was judged under, or its case's.
    pub event: EventNo,
    /// Digest of its content: the same id with other content is a conflict.
    pub digest: u128,
    /// The provider's word for what happened.
    pub kind: String,
    /// The provider's object it is about.
    pub reference: Option<String>,
    /// The order it claims to be for.
    pub claimed_order: Option<OrderId>,
    /// What was made of it.
    pub verdict: Verdict,
    /// When it first came.
    pub received_at: Timestamp,
    /// When a parked one is tried again; far away for all others.
    pub due_at: Timestamp,
    /// The case it led to, if any.
    pub case: Option<CaseId>,
}

/// What was made of a callback (API.md).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Verdict {
    /// It moved the books.
    Applied,
    /// The same message again.
    Duplicate,
    /// The books were past it.
    Stale,
    /// The same id or payment with other content or holder.
    Conflict,
    /// A success for an order already paid.
    AlreadyPaidReconcile,
    /// A success that can't have its seats: the money goes back.
    RefundPending,
    /// Nobody's yet, or not to be proven yet.
    Parked,
}

/// A question about money that waits for proof or a person.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Case {
    /// Its id, which also names its event.
    pub id: CaseId,
    /// What kind of question.
    pub kind: CaseKind,
    /// The order in question.
    pub order: Option<OrderId>,
    /// The attempt in question.
    pub operation: Option<OperationId>,
    /// The provider's object in question, where it is no attempt of ours.
    pub subject: Option<String>,
    /// When it arose.
    pub opened_at: Timestamp,
    /// What was seen, in a sentence.
    pub evidence: String,
    /// Whether it is still a question.
    pub status: CaseStatus,
    /// Who works on it: `worker` until a person has acted.
    pub owner: String,
    /// When someone should look next.
    pub next_check_at: Timestamp,
    /// How it ended, or what was last done.
    pub resolution: Option<Resolution>,
}

impl Case {
    /// The event it belongs to; the house for a payment nobody can place.
    pub fn event(&self) -> EventNo {
        self.id.event()
    }
}

/// What kind of question a case is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CaseKind {
    /// A success after the hold was over.
    LateSuccess,
    /// A success of a second attempt for an order already paid.
    SurplusAuthorization,
    /// The provider's amount or currency isn't the order's.
    AmountMismatch,
    /// A message that contradicts the books.
    CallbackConflict,
    /// A payment whose order never appeared.
    OrphanPayment,
    /// A hold whose grace ended without an answer.
    InDoubt,
    /// The provider has not answered for long.
    PaymentUnknown,
    /// Sold, but the money could not be taken.
    CaptureFailed,
    /// Money set aside could not be let go.
    VoidFailed,
    /// Money taken could not be given back.
    RefundFailed,
    /// A payment that has money here, and that the provider doesn't know.
    MissingAtProvider,
    /// The provider has given back more or less than the books say.
    RefundMismatch,
    /// The provider's object stands where, by the books, it can't.
    StateMismatch,
    /// Paid, and without its tickets for too long.
    TicketsMissing,
}

impl CaseKind {
    /// Its name in the API and the database.
    pub fn as_str(self) -> &'static str {
        match self {
            CaseKind::LateSuccess => "late_success",
            CaseKind::SurplusAuthorization => "surplus_authorization",
            CaseKind::AmountMismatch => "amount_mismatch",
            CaseKind::CallbackConflict => "callback_conflict",
            CaseKind::OrphanPayment => "orphan_payment",
            CaseKind::InDoubt => "in_doubt",
            CaseKind::PaymentUnknown => "payment_unknown",
            CaseKind::CaptureFailed => "capture_failed",
            CaseKind::VoidFailed => "void_failed",
            CaseKind::RefundFailed => "refund_failed",
            CaseKind::MissingAtProvider => "missing_at_provider",
            CaseKind::RefundMismatch => "refund_mismatch",
            CaseKind::StateMismatch => "state_mismatch",
            CaseKind::TicketsMissing => "tickets_missing",
        }
    }
}

/// What a case is opened about from outside a payment's own way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum About {
    /// An object of the provider's that is no attempt of ours; the event that it claims, or the house.
    Object(EventNo, String),
    /// An attempt of ours.
    Attempt(OperationId),
}

/// What came of comparing an attempt with the provider's word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reconciled {
    /// Both agree, or a worker is about to make them.
    Agreed,
    /// The provider was ahead: the books have moved.
    Moved,
    /// They differ.
    Differs {
        /// The question.
        case: CaseId,
        /// Whether it is new.
        opened: bool,
    },
    /// The books have moved since the provider was asked: it is to be asked again.
    Overtaken,
}

/// Whether a case is still a question.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CaseStatus {
    /// It is.
    Open,
    /// It isn't: proven or decided.
    Closed,
}

/// What was done about a case.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Resolution {
    /// What.
    pub action: String,
    /// Why, in the actor's words or the proof's.
    pub note: String,
    /// By whom: a key's id, or `worker`.
    pub actor: String,
    /// When.
    pub at: Timestamp,
}

/// What an operator may do about a case (API.md).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CaseAction {
    /// Let go of money set aside.
    Void,
    /// Give money back.
    Refund,
    /// Complete the order if its seats are still bound to it.
    ConfirmIfBound,
    /// Free the seats: the operator has made sure that nothing was paid.
    Release,
    /// It needs nothing.
    Dismiss,
}

impl CaseAction {
    /// Its name in the API and the database.
    pub fn as_str(self) -> &'static str {
        match self {
            CaseAction::Void => "void",
            CaseAction::Refund => "refund",
            CaseAction::ConfirmIfBound => "confirm_if_bound",
            CaseAction::Release => "release",
            CaseAction::Dismiss => "dismiss",
        }
    }
}
