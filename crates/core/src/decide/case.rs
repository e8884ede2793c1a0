//! What an operator does about a case. Each act is kept with its actor and note; money's own proof still closes the
//! case.

use crate::command::Outcome;
use crate::event::PaymentMode;
use crate::hold::HoldStatus;
use crate::id::{CaseId, Seed};
use crate::log::LogKind;
use crate::payment::{OperationKind, OperationStatus};
use crate::reconcile::{CaseAction, CaseStatus, Resolution};
use crate::refusal::Refusal;
use crate::snapshot::Snapshot;
use crate::time::Timestamp;

use super::{books, observe};

pub(super) fn resolve(
    state: &mut Snapshot,
    id: CaseId,
    action: CaseAction,
    note: &str,
    actor: &str,
    now: Timestamp,
    seed: &mut Seed,
) -> Outcome {
    let Some(case) = state.cases.get(&id) else {
        return Outcome::Refused(Refusal::NotFound);
    };
    if case.status == CaseStatus::Closed {
        return Outcome::Refused(Refusal::CaseClosed);
    }
    let attempt = case.operation.and_then(|operation| state.operations.get(&operation)).cloned();
    let order = case.order.and_then(|order| state.orders.get(&order)).cloned();
    let not_possible = |why| Outcome::Refused(Refusal::ActionNotPossible(why));
    if action == CaseAction::Dismiss {
        act(state, id, action, note, actor, now);
        close(state, id, action, note, actor, now);
        return Outcome::CaseActed;
    }
    let (Some(attempt), Some(order)) = (attempt, order) else {
        return not_possible("the case has no payment of ours: settle it with the provider, then dismiss it");
    };
    let captured = |state: &Snapshot| {
        let charge = state.events.get(&id.event()).is_some_and(|e| e.policy.payment == PaymentMode::Charge);
        charge && attempt.status == OperationStatus::Succeeded
            || state.operations_of(order.id).iter().filter(|o| o.target == Some(attempt.id)).any(|o| {
                // A refund is made on the provider's word that there is something to give back.
                o.kind == OperationKind::Refund
                    || o.kind == OperationKind::Capture && o.status == OperationStatus::Succeeded
            })
    };
    let keeps_seats =
        order.paid_by == Some(attempt.id) && order.status == crate::order::OrderStatus::Confirmed;
    match action {
        CaseAction::Void | CaseAction::Refund if keeps_seats => {
            return not_possible(
                "this payment is what the order's seats were sold for: refund the order instead",
            );
        }
        CaseAction::Void if attempt.reference.is_none() => {
            return not_possible("nothing was ever sent for this payment");
        }
        CaseAction::Void if captured(state) => return not_possible("the money has been taken: refund it"),
        CaseAction::Refund if !captured(state) => return not_possible("no money has been taken: void it"),
        CaseAction::ConfirmIfBound if attempt.status == OperationStatus::Failed => {
            return not_possible("the provider has said that this payment failed");
        }
        CaseAction::ConfirmIfBound if attempt.amount != order.total => {
            return not_possible("the amount paid is not the order's total");
        }
        CaseAction::ConfirmIfBound if books::is_returning(state, attempt.id) => {
            return not_possible("the money of this payment is on its way back");
        }
        CaseAction::ConfirmIfBound if observe::may_sell(state, order.id, attempt.id, now).is_err() => {
            return not_possible("the seats are not bound to this order any more");
        }
        CaseAction::Release if state.holds.get(&order.hold).is_none_or(|hold| !hold.status.is_live()) => {
            return not_possible("the hold binds no seats");
        }
        CaseAction::Void
        | CaseAction::Refund
        | CaseAction::ConfirmIfBound
        | CaseAction::Release
        | CaseAction::Dismiss => {}
    }

    // Past this line the act is done.
    act(state, id, action, note, actor, now);
    match action {
        CaseAction::Void => books::ensure_returned(state, attempt.id, OperationKind::Void, now, seed),
        CaseAction::Refund => books::ensure_returned(state, attempt.id, OperationKind::Refund, now, seed),
        // Without the provider's word yet, it is asked now: a success completes the order.
        CaseAction::ConfirmIfBound if attempt.status.is_live() => books::look_now(state, attempt.id, now),
        CaseAction::ConfirmIfBound => {
            books::sell(state, order.id, attempt.id, now, seed);
            close(state, id, action, note, actor, now);
        }
        CaseAction::Release => {
            books::end_hold(state, order.hold, HoldStatus::Released, now, seed);
            close(state, id, action, note, actor, now);
        }
        CaseAction::Dismiss => {}
    }
    Outcome::CaseActed
}

/// Keeps who did what and why; from here on a person owns the case.
fn act(state: &mut Snapshot, id: CaseId, action: CaseAction, note: &str, actor: &str, now: Timestamp) {
    let case = state.cases.change(&id);
    case.owner = actor.to_owned();
    case.resolution = Some(resolution(action, note, actor, now));
    let log = LogKind::CaseActed { case: id, action: action.as_str().to_owned(), actor: actor.to_owned() };
    state.append(id.event(), log);
}

fn close(state: &mut Snapshot, id: CaseId, action: CaseAction, note: &str, actor: &str, now: Timestamp) {
    if state.cases.get(&id).is_some_and(|case| case.status == CaseStatus::Open) {
        books::close_case(state, id, resolution(action, note, actor, now));
    }
}

fn resolution(action: CaseAction, note: &str, actor: &str, now: Timestamp) -> Resolution {
    Resolution { action: action.as_str().to_owned(), note: note.to_owned(), actor: actor.to_owned(), at: now }
}
