//! Keeping what came back from the provider for an operation: its word, a definite no, or nothing.

use crate::command::{Answer, Outcome};
use crate::gateway::{IntentState, Observation};
use crate::id::{OperationId, Seed};
use crate::limits::{KEY_HORIZON_MS, QUERIES_BEFORE_CASE, QUERY_BACKOFF_MS_MAX};
use crate::payment::{OperationKind, OperationStatus, query_backoff_ms};
use crate::reconcile::CaseKind;
use crate::refusal::Refusal;
use crate::snapshot::Snapshot;
use crate::time::Timestamp;

use super::observe::{self, Effect};
use super::{books, checkout, refund};

pub(super) fn record_answer(
    state: &mut Snapshot,
    id: OperationId,
    answer: &Answer,
    now: Timestamp,
    seed: &mut Seed,
) -> Outcome {
    let Some(operation) = state.operations.get(&id) else {
        return Outcome::Refused(Refusal::NotFound);
    };
    let attempt = operation.attempt();
    let effect = match answer {
        Answer::Observed(observation) => observe::observe(state, attempt, Some(id), observation, now, seed),
        Answer::Refused(code) => refused(state, id, code, now, seed),
        Answer::NoAnswer if planted!(SilenceIsFailure) => refused(state, id, "no_answer", now, seed),
        Answer::NoAnswer => no_answer(state, id, now, seed),
        Answer::Busy(wait_ms) => busy(state, id, *wait_ms, now),
    };
    let undone = match answer {
        // What contradicts the books is not acted upon.
        Answer::Observed(observation) if effect != Effect::Conflict => is_undone(state, id, observation, now),
        Answer::Observed(_) | Answer::Refused(_) | Answer::NoAnswer | Answer::Busy(_) => false,
    };
    // Under its own key, and never past the horizon within which the provider knows that key.
    let send = undone
        && state
            .operations
            .get(&id)
            .is_some_and(|o| now.since_ms(o.created_at) < KEY_HORIZON_MS || planted!(SentPastHorizon));
    if undone && !send {
        left_undone(state, id, now, seed);
    }
    state.touch_clock(id.event());
    Outcome::Recorded { effect, send }
}

/// Whether the provider says that a live operation has not been done.
fn is_undone(state: &Snapshot, id: OperationId, observation: &Observation, now: Timestamp) -> bool {
    let Some(operation) = state.operations.get(&id).filter(|operation| operation.status.is_live()) else {
        return false;
    };
    match (operation.kind, &observation.state) {
        (OperationKind::Authorize, IntentState::Unconfirmed) => {
            checkout::may_send_authorization(state, id, now)
        }
        (OperationKind::Capture, IntentState::Authorized) => true,
        (
            OperationKind::Void,
            IntentState::Unconfirmed
            | IntentState::RequiresAction(_)
            | IntentState::Declined(_)
            | IntentState::Authorized,
        ) => true,
        (OperationKind::Refund, IntentState::Captured) => true,
        _ => false,
    }
}

/// An operation that was not done in time and is never sent again: a person sees to it at the provider, and what the
/// provider says then ends it.
fn left_undone(state: &mut Snapshot, id: OperationId, now: Timestamp, seed: &mut Seed) {
    let Some(operation) = state.operations.get(&id) else {
        return;
    };
    let (order, attempt) = (operation.order, operation.attempt());
    let kind = match operation.kind {
        OperationKind::Authorize => return,
        OperationKind::Capture => CaseKind::CaptureFailed,
        OperationKind::Void => {
            if state.operations.get(&attempt).is_some_and(|paid| paid.status == OperationStatus::Failed) {
                // Nothing was set aside, so nothing is left to be let go.
                return books::fail_operation(state, id, "not_needed", now);
            }
            CaseKind::VoidFailed
        }
        OperationKind::Refund => CaseKind::RefundFailed,
    };
    let evidence = "it was not done within the time in which it may be sent to the provider".to_owned();
    books::open_case(state, kind, order, attempt, evidence, now, seed);
}

/// The provider has said no for good.
fn refused(state: &mut Snapshot, id: OperationId, code: &str, now: Timestamp, seed: &mut Seed) -> Effect {
    let Some(operation) = state.operations.get(&id) else {
        return Effect::Nothing;
    };
    if !operation.status.is_live() {
        return Effect::Nothing;
    }
    let (order, attempt, kind) = (operation.order, operation.attempt(), operation.kind);
    let silence = |kind| kind == CaseKind::PaymentUnknown;
    books::close_cases(state, order, attempt, silence, "the provider has answered", now);
    match kind {
        OperationKind::Authorize => observe::attempt_failed(state, id, code, now, seed),
        OperationKind::Capture => {
            books::fail_operation(state, id, code, now);
            let evidence = format!("the provider refused the capture: {code}");
            books::compensate(state, order, attempt, evidence, now, seed);
            books::ensure_returned(state, attempt, OperationKind::Void, now, seed);
        }
        OperationKind::Void => {
            books::fail_operation(state, id, code, now);
            // Where the attempt has failed, nothing was set aside.
            if state.operations.get(&attempt).is_some_and(|paid| paid.status != OperationStatus::Failed) {
                let evidence = format!("the provider refused to let the authorization go: {code}");
                books::open_case(state, CaseKind::VoidFailed, order, attempt, evidence, now, seed);
            }
        }
        OperationKind::Refund => {
            books::fail_operation(state, id, code, now);
            refund::abandon(state, id);
            let evidence = format!("the provider refused the refund: {code}");
            books::open_case(state, CaseKind::RefundFailed, order, attempt, evidence, now, seed);
        }
    }
    Effect::Applied
}

/// The provider has not answered: neither success nor failure.
fn no_answer(state: &mut Snapshot, id: OperationId, now: Timestamp, seed: &mut Seed) -> Effect {
    let Some(operation) = state.operations.get(&id) else {
        return Effect::Nothing;
    };
    if !operation.status.is_live() {
        return Effect::Nothing;
    }
    let (order, attempt, tries) = (operation.order, operation.attempt(), operation.tries.saturating_add(1));
    let row = state.operations.change(&id);
    row.tries = tries;
    row.due_at = now.plus_ms(query_backoff_ms(tries));
    books::move_operation(state, id, OperationStatus::Unknown, now);
    if tries >= QUERIES_BEFORE_CASE {
        let evidence = format!("the provider has not answered {tries} times in a row");
        books::open_case(state, CaseKind::PaymentUnknown, order, attempt, evidence, now, seed);
    }
    Effect::Applied
}

/// The provider wants to be asked later; how much later is ours to bound.
fn busy(state: &mut Snapshot, id: OperationId, wait_ms: i64, now: Timestamp) -> Effect {
    if state.operations.get(&id).is_some_and(|operation| operation.status.is_live()) {
        state.operations.change(&id).due_at = now.plus_ms(wait_ms.clamp(1, QUERY_BACKOFF_MS_MAX));
    }
    Effect::Nothing
}
