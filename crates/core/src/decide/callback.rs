//! Judging callbacks. They come duplicated, reordered, early, late and forged; each is stored once with its verdict.

use crate::command::Outcome;
use crate::gateway::Observation;
use crate::id::{CaseId, EventNo, OperationId, OrderId, Seed};
use crate::limits::{PARKED_MS_MAX, PARKED_RETRY_MS};
use crate::reconcile::{Callback, CaseKind, Verdict};
use crate::refusal::Refusal;
use crate::snapshot::Snapshot;
use crate::time::Timestamp;

use super::books;
use super::observe::{Effect, observe};

/// For a callback that is never to be tried again.
const NEVER: Timestamp = Timestamp::from_millis(i64::MAX);

pub(super) fn judge(
    state: &mut Snapshot,
    callback: &Callback,
    observation: Option<&Observation>,
    relevant: bool,
    now: Timestamp,
    seed: &mut Seed,
) -> Outcome {
    let event = seed.event();
    if state.events.get(&event).is_none() {
        return Outcome::Refused(Refusal::NotFound);
    }
    let key = callback.provider_event_id.as_str();
    let known = state.callbacks.get(key);
    let known_as = known.map(|known| (known.digest, known.verdict, known.received_at, known.case));
    let found = attempt_of(state, callback, observation);
    // Another event's rows are not this one's to change: such a message is to be judged where it belongs.
    let attempt = found.filter(|(attempt, _)| attempt.event() == event);
    match known_as {
        Some((digest, verdict, _, case)) if digest != callback.digest => {
            let evidence = format!("{key} came again with other content");
            match attempt {
                Some((attempt, order)) => {
                    books::open_case(state, CaseKind::CallbackConflict, order, attempt, evidence, now, seed);
                }
                // About no payment known here: kept once. A parked one is a question already.
                None if case.is_none() && verdict != Verdict::Parked => {
                    let id: CaseId = seed.mint();
                    books::add_case(state, id, CaseKind::CallbackConflict, None, None, evidence, now);
                    state.callbacks.change(key).case = Some(id);
                }
                None => {}
            }
            return Outcome::Judged(Verdict::Conflict);
        }
        // A parked one is judged anew whenever it is seen; all others have had their say.
        Some((_, verdict, ..)) if verdict != Verdict::Parked && !planted!(CallbackJudgedTwice) => {
            return Outcome::Judged(Verdict::Duplicate);
        }
        _ => {}
    }
    let received_at = known_as.map_or(now, |(_, _, received_at, _)| received_at);
    let mut case = known_as.and_then(|(.., case)| case);
    let verdict = match attempt {
        _ if !relevant => Verdict::Stale,
        Some((attempt, order)) if callback.claimed_order.is_some_and(|claimed| claimed != order) => {
            let evidence = format!("{key} is about this payment but claims to be for another order");
            case = Some(books::open_case(
                state,
                CaseKind::CallbackConflict,
                order,
                attempt,
                evidence,
                now,
                seed,
            ));
            Verdict::Conflict
        }
        Some((attempt, _)) => match observation {
            Some(observation) => verdict_of(observe(state, attempt, None, observation, now, seed)),
            // It could not be read back: a success that can't be verified moves nothing. The worker asks again.
            None => {
                books::look_now(state, attempt, now);
                Verdict::Parked
            }
        },
        None => Verdict::Parked,
    };
    if attempt.is_some()
        && let Some(orphan) = case
        && books::settle_orphan(state, orphan, event, now)
    {
        case = None;
    }
    if verdict == Verdict::Parked
        && found.is_none()
        && case.is_none()
        && now.since_ms(received_at) >= PARKED_MS_MAX
    {
        let what = callback.reference.as_deref().unwrap_or("no payment");
        let evidence = format!("{key} ({}) speaks of {what}, which is no payment of ours", callback.kind);
        // The reconciler may have found the same payment in the provider's list.
        case = Some(match &callback.reference {
            Some(reference) if event == EventNo::HOUSE => {
                books::ask_about(state, event, CaseKind::OrphanPayment, reference, evidence, now).0
            }
            _ => {
                let id: CaseId = seed.mint();
                books::add_case(state, id, CaseKind::OrphanPayment, None, None, evidence, now);
                id
            }
        });
    }
    let due_at = match verdict {
        Verdict::Parked if case.is_none() => now.plus_ms(PARKED_RETRY_MS),
        _ => NEVER,
    };
    // A case stays where it was opened, and the message with it.
    let kept_with = case.map_or(event, CaseId::event);
    let row = Callback { event: kept_with, verdict, received_at, due_at, case, ..callback.clone() };
    match known_as {
        None => state.callbacks.insert(key.into(), row),
        Some(_) => *state.callbacks.change(key) = row,
    }
    state.touch_clock(event);
    Outcome::Judged(verdict)
}

/// The attempt a callback is about: by the provider's name for it, or, when the name isn't known yet, by what we
/// attached to the object and have just read back from the provider itself.
fn attempt_of(
    state: &Snapshot,
    callback: &Callback,
    observation: Option<&Observation>,
) -> Option<(OperationId, OrderId)> {
    let by_name =
        callback.reference.as_deref().and_then(|reference| state.references.get(reference)).copied();
    let attached = observation.and_then(|observation| observation.operation);
    let attempt = by_name.or(attached)?;
    state.operations.get(&attempt).map(|operation| (attempt, operation.order))
}

fn verdict_of(effect: Effect) -> Verdict {
    match effect {
        Effect::Applied => Verdict::Applied,
        Effect::Nothing => Verdict::Stale,
        Effect::AlreadyPaid => Verdict::AlreadyPaidReconcile,
        Effect::MoneyBack => Verdict::RefundPending,
        Effect::Conflict => Verdict::Conflict,
    }
}
