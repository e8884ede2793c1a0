//! Book against book: what the provider says of an attempt's object beside what the books say of the attempt. Pure, and the same
//! for who looks through the provider's list and for the decision that follows.

use crate::gateway::{IntentState, Observation};
use crate::order::{Order, OrderStatus};
use crate::payment::{Operation, OperationKind, OperationStatus};
use crate::reconcile::CaseKind;
use crate::time::Timestamp;

/// What comes of a comparison.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// Both say the same, or a worker is about to make them.
    Agreed,
    /// The provider is ahead: its word is to be fed to the books.
    Behind,
    /// No worker will make them agree: a question, with what was seen.
    Differs(CaseKind, String),
}

/// An attempt as the books have it.
#[derive(Clone, Copy, Debug)]
pub struct Books<'a> {
    /// The attempt.
    pub attempt: &'a Operation,
    /// Its order.
    pub order: &'a Order,
    /// All operations of the order.
    pub operations: &'a [&'a Operation],
    /// Whether a success takes the money at once.
    pub charge: bool,
}

impl Books<'_> {
    /// The attempt's operations of a kind.
    fn on_attempt(&self, kind: OperationKind) -> impl Iterator<Item = &Operation> {
        let target = Some(self.attempt.id);
        self.operations.iter().copied().filter(move |o| o.kind == kind && o.target == target)
    }

    fn has(&self, kind: OperationKind, fits: impl Fn(OperationStatus) -> bool) -> bool {
        self.on_attempt(kind).any(|operation| fits(operation.status))
    }

    fn has_live(&self, kind: OperationKind) -> bool {
        self.has(kind, OperationStatus::is_live)
    }

    fn has_done(&self, kind: OperationKind) -> bool {
        self.has(kind, |status| status == OperationStatus::Succeeded)
    }

    /// Whether the order's seats are sold for this attempt.
    fn pays(&self) -> bool {
        self.order.status == OrderStatus::Confirmed && self.order.paid_by == Some(self.attempt.id)
    }

    /// How much of its money has been given back, by proof.
    fn refunded_minor(&self) -> i64 {
        let done = self.on_attempt(OperationKind::Refund).filter(|o| o.status == OperationStatus::Succeeded);
        done.map(|refund| refund.amount.amount_minor).sum()
    }

    /// When an operation on the attempt last moved.
    pub fn moved_at(&self) -> Timestamp {
        let id = self.attempt.id;
        let on_it = self.operations.iter().filter(|operation| operation.attempt() == id);
        on_it.map(|operation| operation.updated_at).max().unwrap_or(self.attempt.updated_at)
    }
}

/// Compares what the provider says with the books.
pub fn compare(books: Books<'_>, seen: &Observation) -> Comparison {
    if let Some(evidence) = other_identity(books, seen) {
        return Comparison::Differs(CaseKind::CallbackConflict, evidence);
    }
    match books.attempt.status {
        OperationStatus::Pending | OperationStatus::RequiresAction | OperationStatus::Unknown => {
            still_open(books, seen)
        }
        OperationStatus::Failed => over(books, seen),
        OperationStatus::Succeeded => paid(books, seen),
    }
}

/// What is wrong when a provider that must know an attempt's object doesn't; `None` when nothing is.
pub fn missing(books: Books<'_>) -> Option<String> {
    let name = books.attempt.reference.as_deref()?;
    match books.attempt.status {
        OperationStatus::Succeeded => {
            Some(format!("{name} has money here, and the provider knows no {name}"))
        }
        // Nothing was ever set aside, or the worker asks and hears it.
        OperationStatus::Pending
        | OperationStatus::RequiresAction
        | OperationStatus::Unknown
        | OperationStatus::Failed => None,
    }
}

/// The object is another's: by its name, or by what was attached to it when it was made.
fn other_identity(books: Books<'_>, seen: &Observation) -> Option<String> {
    let (attempt, name) = (books.attempt, &seen.reference);
    if let Some(known) = attempt.reference.as_ref().filter(|known| *known != name) {
        return Some(format!("{name} claims to be {}, which is known as {known}", attempt.id));
    }
    let other = |what: &str, id: String| Some(format!("{name} is of {}, and claims {what} {id}", attempt.id));
    match (seen.operation, seen.order) {
        (Some(claimed), _) if claimed != attempt.id => other("operation", claimed.to_string()),
        (_, Some(claimed)) if claimed != attempt.order => other("order", claimed.to_string()),
        _ => None,
    }
}

/// The attempt hasn't ended here.
fn still_open(books: Books<'_>, seen: &Observation) -> Comparison {
    match &seen.state {
        IntentState::Unconfirmed => Comparison::Agreed,
        IntentState::RequiresAction(_) if books.attempt.status == OperationStatus::RequiresAction => {
            Comparison::Agreed
        }
        IntentState::Processing if books.attempt.status == OperationStatus::Pending => Comparison::Agreed,
        IntentState::RequiresAction(_)
        | IntentState::Processing
        | IntentState::Declined(_)
        | IntentState::Authorized
        | IntentState::Captured
        | IntentState::Voided => Comparison::Behind,
    }
}

/// The attempt has brought nothing here.
fn over(books: Books<'_>, seen: &Observation) -> Comparison {
    let name = &seen.reference;
    match &seen.state {
        IntentState::Unconfirmed | IntentState::Declined(_) | IntentState::Voided => Comparison::Agreed,
        IntentState::Authorized if books.has_done(OperationKind::Void) => Comparison::Differs(
            CaseKind::StateMismatch,
            format!("{name} has its money set aside at the provider; here it was let go"),
        ),
        // A decline that was taken back.
        IntentState::Authorized | IntentState::Captured => Comparison::Behind,
        IntentState::RequiresAction(_) | IntentState::Processing => Comparison::Differs(
            CaseKind::StateMismatch,
            format!("{name} is under way again at the provider; here it has failed"),
        ),
    }
}

/// The attempt has money here, or had.
fn paid(books: Books<'_>, seen: &Observation) -> Comparison {
    let name = &seen.reference;
    let differs = |evidence: String| Comparison::Differs(CaseKind::StateMismatch, evidence);
    match &seen.state {
        IntentState::Voided if books.pays() && !books.has_live(OperationKind::Capture) => {
            let evidence = format!("{name} was called off at the provider; here it pays for an order");
            Comparison::Differs(CaseKind::CallbackConflict, evidence)
        }
        IntentState::Voided if books.has_done(OperationKind::Void) => Comparison::Agreed,
        IntentState::Voided if books.has_done(OperationKind::Refund) => {
            differs(format!("{name} was called off at the provider; here its money was taken and given back"))
        }
        IntentState::Voided => Comparison::Behind,
        IntentState::Authorized => set_aside(books, seen),
        IntentState::Captured => taken(books, seen),
        IntentState::Unconfirmed => {
            differs(format!("{name} was never confirmed at the provider; here it has money"))
        }
        IntentState::RequiresAction(_) => {
            differs(format!("{name} waits for the buyer at the provider; here it has money"))
        }
        IntentState::Processing => differs(format!("{name} is in work at the provider; here it has money")),
        IntentState::Declined(code) => {
            differs(format!("{name} was declined at the provider ({code}); here it has money"))
        }
    }
}

fn set_aside(books: Books<'_>, seen: &Observation) -> Comparison {
    let name = &seen.reference;
    let differs = |here: &str| {
        let evidence = format!("{name} has its money set aside at the provider; here {here}");
        Comparison::Differs(CaseKind::StateMismatch, evidence)
    };
    if books.attempt.amount != seen.amount {
        return other_amount(seen, "set aside", books.attempt);
    }
    if books.has_done(OperationKind::Void) {
        return differs("it was let go");
    }
    if books.charge || books.has_done(OperationKind::Capture) {
        return differs("it was taken");
    }
    // Sold, and to be taken; or on its way back. One of these is always there: I-11 and I-12.
    Comparison::Agreed
}

fn taken(books: Books<'_>, seen: &Observation) -> Comparison {
    let captures = || books.on_attempt(OperationKind::Capture);
    if books.has_live(OperationKind::Capture) {
        return Comparison::Behind;
    }
    let by_capture = captures().find(|capture| capture.status == OperationStatus::Succeeded);
    let asked = by_capture.unwrap_or(books.attempt);
    let has_refund = books.on_attempt(OperationKind::Refund).next().is_some();
    if !books.pays() && (books.has_live(OperationKind::Void) || !has_refund) {
        return Comparison::Behind;
    }
    if asked.amount != seen.amount {
        return other_amount(seen, "taken", asked);
    }
    if books.pays() && by_capture.is_none() && !books.charge {
        let evidence = format!("{} was taken at the provider; here nothing of it was", seen.reference);
        return Comparison::Differs(CaseKind::StateMismatch, evidence);
    }
    given_back(books, seen)
}

fn given_back(books: Books<'_>, seen: &Observation) -> Comparison {
    let here = books.refunded_minor();
    let live = books.on_attempt(OperationKind::Refund).find(|refund| refund.status.is_live());
    match live {
        Some(refund) if seen.refunded_minor >= refund.base_minor + refund.amount.amount_minor => {
            Comparison::Behind
        }
        // It is on its way.
        Some(_) => Comparison::Agreed,
        None if seen.refunded_minor == here => Comparison::Agreed,
        None => {
            let (name, there) = (&seen.reference, seen.refunded_minor);
            let evidence = format!("the provider has given back {there} of {name}, the books {here}");
            Comparison::Differs(CaseKind::RefundMismatch, evidence)
        }
    }
}

fn other_amount(seen: &Observation, how: &str, here: &Operation) -> Comparison {
    let evidence = format!("{}: {} {how} at the provider, {} here", seen.reference, seen.amount, here.amount);
    Comparison::Differs(CaseKind::AmountMismatch, evidence)
}
