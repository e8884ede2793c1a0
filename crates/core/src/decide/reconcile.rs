//! Book against book, decided: the provider's word is fed to the books like a callback's, and what still differs then becomes a
//! question; found again it is the same one, and found settled it is closed.

use crate::command::Outcome;
use crate::comparison::{self, Books, Comparison};
use crate::event::PaymentMode;
use crate::gateway::Observation;
use crate::id::{CaseId, OperationId, Seed};
use crate::reconcile::{About, CaseKind, CaseStatus, Reconciled};
use crate::refusal::Refusal;
use crate::snapshot::Snapshot;
use crate::time::Timestamp;

use super::{books, observe};

pub(super) fn reconcile(
    state: &mut Snapshot,
    attempt: OperationId,
    observation: Option<&Observation>,
    as_of: Timestamp,
    now: Timestamp,
    seed: &mut Seed,
) -> Outcome {
    let Some(found) = with_books(state, attempt, |books| (books.moved_at(), compare(books, observation)))
    else {
        return Outcome::Refused(Refusal::NotFound);
    };
    let (moved_at, mut comparison) = found;
    if moved_at != as_of {
        // What was read may be older than what the books have heard since: nothing can be said of a difference.
        return Outcome::Reconciled(Reconciled::Overtaken);
    }
    let mut moved = false;
    if comparison == Comparison::Behind
        && let Some(observation) = observation
    {
        observe::observe(state, attempt, None, observation, now, seed);
        moved = true;
        comparison = with_books(state, attempt, |books| compare(books, Some(observation)))
            .unwrap_or(Comparison::Agreed);
    }
    let Some(order) = state.operations.get(&attempt).map(|operation| operation.order) else {
        return Outcome::Refused(Refusal::NotFound);
    };
    let (kind, evidence) = match comparison {
        Comparison::Agreed => {
            let settled = |kind| is_reconcilers(kind);
            let proof = "the provider's books and these agree";
            books::close_cases(state, order, attempt, settled, proof, now);
            return Outcome::Reconciled(if moved { Reconciled::Moved } else { Reconciled::Agreed });
        }
        Comparison::Differs(kind, evidence) => (kind, evidence),
        // Whatever the books can take in they have: if this is ever true, a person is to see it.
        Comparison::Behind => {
            (CaseKind::StateMismatch, "the books don't take the provider's word in".to_owned())
        }
    };
    // Of several things that were wrong, those that aren't any more are answered.
    let settled = |old| is_reconcilers(old) && old != kind;
    books::close_cases(state, order, attempt, settled, "it is another difference by now", now);
    let before = state.open_cases_of(order);
    let case = books::open_case(state, kind, order, attempt, evidence, now, seed);
    Outcome::Reconciled(Reconciled::Differs { case, opened: !before.contains(&case) })
}

/// Kinds that nobody but the reconciler opens about an attempt: its finding agreement answers them.
fn is_reconcilers(kind: CaseKind) -> bool {
    match kind {
        CaseKind::MissingAtProvider | CaseKind::RefundMismatch | CaseKind::StateMismatch => true,
        CaseKind::LateSuccess
        | CaseKind::SurplusAuthorization
        | CaseKind::AmountMismatch
        | CaseKind::CallbackConflict
        | CaseKind::OrphanPayment
        | CaseKind::InDoubt
        | CaseKind::PaymentUnknown
        | CaseKind::CaptureFailed
        | CaseKind::VoidFailed
        | CaseKind::RefundFailed
        | CaseKind::TicketsMissing => false,
    }
}

fn compare(books: Books<'_>, observation: Option<&Observation>) -> Comparison {
    match observation {
        Some(observation) => comparison::compare(books, observation),
        None => match comparison::missing(books) {
            Some(evidence) => Comparison::Differs(CaseKind::MissingAtProvider, evidence),
            None => Comparison::Agreed,
        },
    }
}

fn with_books<R>(state: &Snapshot, attempt: OperationId, look: impl FnOnce(Books<'_>) -> R) -> Option<R> {
    let operation = state.operations.get(&attempt).filter(|operation| operation.target.is_none())?;
    let order = state.orders.get(&operation.order)?;
    let operations = state.operations_of(order.id);
    let charge = state.events.get(&attempt.event()).is_some_and(|e| e.policy.payment == PaymentMode::Charge);
    Some(look(Books { attempt: operation, order, operations: &operations, charge }))
}

/// Keeps a question, unless it is kept already.
pub(super) fn open_case(
    state: &mut Snapshot,
    about: &About,
    kind: CaseKind,
    evidence: &str,
    now: Timestamp,
    seed: &mut Seed,
) -> Outcome {
    match about {
        About::Object(event, _) if state.events.get(event).is_none() => Outcome::Refused(Refusal::NotFound),
        About::Object(event, subject) => {
            let (case, opened) = books::ask_about(state, *event, kind, subject, evidence.to_owned(), now);
            Outcome::CaseKept { case, opened }
        }
        About::Attempt(attempt) => {
            let Some(order) = state.operations.get(attempt).map(|operation| operation.order) else {
                return Outcome::Refused(Refusal::NotFound);
            };
            let before = state.open_cases_of(order);
            let case = books::open_case(state, kind, order, *attempt, evidence.to_owned(), now, seed);
            Outcome::CaseKept { case, opened: !before.contains(&case) }
        }
    }
}

/// Closes a question by proof. One that is closed stays as it was closed.
pub(super) fn settle_case(state: &mut Snapshot, id: CaseId, proof: &str, now: Timestamp) -> Outcome {
    let Some(case) = state.cases.get(&id) else {
        return Outcome::Refused(Refusal::NotFound);
    };
    if case.status == CaseStatus::Open {
        books::close_case(state, id, books::proof(proof, now));
    }
    Outcome::CaseSettled
}
