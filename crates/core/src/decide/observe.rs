//! What the provider's word does to the books. An observation is always about an attempt's object; every operation on
//! that attempt moves with it, whoever asked and in whatever order words arrive.

use crate::command::{Answer, Outcome};
use crate::gateway::{IntentState, Observation};
use crate::hold::HoldStatus;
use crate::id::{OperationId, OrderId, Seed};
use crate::limits::{ACTION_POLL_MS, KEY_HORIZON_MS, QUERIES_BEFORE_CASE};
use crate::order::OrderStatus;
use crate::payment::{Operation, OperationKind, OperationStatus, poll_wait_ms, query_backoff_ms};
use crate::reconcile::CaseKind;
use crate::refusal::Refusal;
use crate::seat_map::SeatStatus;
use crate::snapshot::Snapshot;
use crate::time::Timestamp;

use super::{books, checkout};

/// What an observation did to the books.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// It moved them.
    Applied,
    /// It told nothing new.
    Nothing,
    /// A success, and the order was already paid by this very attempt.
    AlreadyPaid,
    /// A success whose money goes back.
    MoneyBack,
    /// It contradicts the books.
    Conflict,
}

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
        Answer::Observed(observation) => observe(state, attempt, observation, now, seed),
        Answer::Refused(code) => refused(state, id, code, now, seed),
        Answer::NoAnswer => no_answer(state, id, now, seed),
        Answer::Busy(wait_ms) => {
            let row = state.operations.change(&id);
            row.due_at = now.plus_ms((*wait_ms).max(1));
            Effect::Nothing
        }
    };
    let send = match answer {
        Answer::Observed(observation) => is_to_be_sent(state, id, observation, now),
        Answer::Refused(_) | Answer::NoAnswer | Answer::Busy(_) => false,
    };
    Outcome::Recorded { effect, send }
}

/// Whether the provider says that a live operation has not been done, so that it is to be sent (again, under its own
/// key, and never past the horizon within which the provider knows that key).
fn is_to_be_sent(state: &Snapshot, id: OperationId, observation: &Observation, now: Timestamp) -> bool {
    let Some(operation) = state.operations.get(&id) else {
        return false;
    };
    if !operation.status.is_live() || now.since_ms(operation.created_at) >= KEY_HORIZON_MS {
        return false;
    }
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

/// Takes in what the provider says about an attempt.
pub(super) fn observe(
    state: &mut Snapshot,
    attempt: OperationId,
    observation: &Observation,
    now: Timestamp,
    seed: &mut Seed,
) -> Effect {
    let Some(operation) = state.operations.get(&attempt) else {
        return Effect::Nothing;
    };
    let order = operation.order;
    let other_object = operation.reference.as_ref().is_some_and(|known| *known != observation.reference);
    if other_object || observation.order.is_some_and(|claimed| claimed != order) {
        let evidence = format!("{} at the provider says it is for another order", observation.reference);
        books::open_case(state, CaseKind::CallbackConflict, order, attempt, evidence, now, seed);
        return Effect::Conflict;
    }
    if operation.reference.is_none() {
        // The provider's word came before the answer that would have told us the name.
        state.operations.change(&attempt).reference = Some(observation.reference.clone());
    }
    answered(state, attempt, now);
    match &observation.state {
        IntentState::Unconfirmed => still_open(state, attempt, OperationStatus::Unknown, None, now, seed),
        IntentState::Processing => still_open(state, attempt, OperationStatus::Pending, None, now, seed),
        IntentState::RequiresAction(url) => {
            still_open(state, attempt, OperationStatus::RequiresAction, url.clone(), now, seed)
        }
        IntentState::Declined(code) => match is_open(state, attempt) {
            true => {
                attempt_failed(state, attempt, code, now, seed);
                Effect::Applied
            }
            false => Effect::Nothing,
        },
        IntentState::Voided => voided(state, attempt, now, seed),
        IntentState::Authorized | IntentState::Captured => succeeded(state, attempt, observation, now, seed),
    }
}

fn is_open(state: &Snapshot, attempt: OperationId) -> bool {
    state.operations.get(&attempt).is_some_and(|operation| operation.status.is_live())
}

/// The live operation of a kind on an attempt.
fn live_on(
    state: &Snapshot,
    order: OrderId,
    attempt: OperationId,
    kind: OperationKind,
) -> Option<OperationId> {
    let is_it = |o: &&Operation| o.kind == kind && o.target == Some(attempt) && o.status.is_live();
    state.operations_of(order).into_iter().find(is_it).map(|operation| operation.id)
}

/// The provider has spoken: what waits on this attempt waits anew, longer the older it is.
fn answered(state: &mut Snapshot, attempt: OperationId, now: Timestamp) {
    let Some(order) = state.operations.get(&attempt).map(|operation| operation.order) else {
        return;
    };
    let waiting: Vec<OperationId> = state
        .operations_of(order)
        .into_iter()
        .filter(|o| o.attempt() == attempt && o.status.is_live() && o.due_at <= now)
        .map(|o| o.id)
        .collect();
    for id in waiting {
        let row = state.operations.change(&id);
        row.due_at = now.plus_ms(poll_wait_ms(now.since_ms(row.created_at)));
        row.tries = 0;
    }
}

/// The attempt hasn't ended. While its order may still be paid it goes on; otherwise it is called off, so that nothing
/// new can come of it.
fn still_open(
    state: &mut Snapshot,
    attempt: OperationId,
    status: OperationStatus,
    action_url: Option<String>,
    now: Timestamp,
    seed: &mut Seed,
) -> Effect {
    let Some(operation) = state.operations.get(&attempt) else {
        return Effect::Nothing;
    };
    if !operation.status.is_live() {
        return Effect::Nothing;
    }
    let (order, was) = (operation.order, operation.status);
    if !checkout::may_send_authorization(state, attempt, now) {
        let moved = live_on(state, order, attempt, OperationKind::Void).is_none();
        if status == OperationStatus::RequiresAction {
            books::move_operation(state, attempt, status, now);
        }
        books::ensure_returned(state, attempt, OperationKind::Void, now, seed);
        return if moved { Effect::Applied } else { Effect::Nothing };
    }
    if status == OperationStatus::RequiresAction {
        let row = state.operations.change(&attempt);
        row.next_action_url = action_url;
        row.due_at = now.plus_ms(ACTION_POLL_MS);
    }
    // An attempt that was never confirmed is no less unknown than before: it is to be sent again.
    let status = if status == OperationStatus::Unknown { was } else { status };
    books::move_operation(state, attempt, status, now);
    if was == status { Effect::Nothing } else { Effect::Applied }
}

/// The attempt has ended without money.
fn attempt_failed(state: &mut Snapshot, attempt: OperationId, code: &str, now: Timestamp, seed: &mut Seed) {
    books::fail_operation(state, attempt, code, now);
    let Some(order) = state.operations.get(&attempt).map(|operation| operation.order) else {
        return;
    };
    let settled = |kind| matches!(kind, CaseKind::InDoubt | CaseKind::PaymentUnknown);
    books::close_cases(state, order, attempt, settled, "the provider says that nothing was paid", now);
    books::return_hold(state, order, now, seed);
}

/// The attempt's object is called off: whatever was set aside has been let go.
fn voided(state: &mut Snapshot, attempt: OperationId, now: Timestamp, seed: &mut Seed) -> Effect {
    let Some(operation) = state.operations.get(&attempt) else {
        return Effect::Nothing;
    };
    let order = operation.order;
    let was_open = operation.status.is_live();
    let mut effect = Effect::Nothing;
    if let Some(void) = live_on(state, order, attempt, OperationKind::Void) {
        books::move_operation(state, void, OperationStatus::Succeeded, now);
        effect = Effect::Applied;
    }
    if was_open {
        attempt_failed(state, attempt, "canceled", now, seed);
        effect = Effect::Applied;
    }
    if let Some(capture) = live_on(state, order, attempt, OperationKind::Capture) {
        // The authorization lapsed before it was taken: the sale can't be paid any more.
        books::fail_operation(state, capture, "authorization_lapsed", now);
        let evidence = "the authorization lapsed before it could be captured".to_owned();
        books::compensate(state, order, attempt, evidence, now, seed);
        effect = Effect::Applied;
    }
    let settled = |kind| {
        matches!(
            kind,
            CaseKind::LateSuccess
                | CaseKind::SurplusAuthorization
                | CaseKind::AmountMismatch
                | CaseKind::CaptureFailed
                | CaseKind::VoidFailed
        )
    };
    books::close_cases(
        state,
        order,
        attempt,
        settled,
        "the provider says that the authorization was let go",
        now,
    );
    effect
}

/// The attempt has money, set aside or taken.
fn succeeded(
    state: &mut Snapshot,
    attempt: OperationId,
    observation: &Observation,
    now: Timestamp,
    seed: &mut Seed,
) -> Effect {
    let Some(operation) = state.operations.get(&attempt) else {
        return Effect::Nothing;
    };
    let order = operation.order;
    let captured = observation.state == IntentState::Captured;
    let back = if captured { OperationKind::Refund } else { OperationKind::Void };
    let mut effect = None;
    if operation.status != OperationStatus::Succeeded {
        let right_amount = operation.amount == observation.amount;
        let asked = operation.amount;
        books::move_operation(state, attempt, OperationStatus::Succeeded, now);
        let objection = match right_amount {
            true => may_sell(state, order, now).err(),
            false => Some((
                CaseKind::AmountMismatch,
                format!("asked for {asked}, the provider has {}", observation.amount),
            )),
        };
        match objection {
            None => {
                books::sell(state, order, attempt, now, seed);
                effect = Some(Effect::Applied);
            }
            Some((kind, evidence)) => {
                state.operations.change(&attempt).amount = observation.amount;
                books::open_case(state, kind, order, attempt, evidence, now, seed);
                books::ensure_returned(state, attempt, back, now, seed);
                let settled = |kind| matches!(kind, CaseKind::InDoubt | CaseKind::PaymentUnknown);
                books::close_cases(
                    state,
                    order,
                    attempt,
                    settled,
                    "the provider says that the payment succeeded",
                    now,
                );
                books::return_hold(state, order, now, seed);
                effect = Some(Effect::MoneyBack);
            }
        }
    }
    if captured {
        if let Some(capture) = live_on(state, order, attempt, OperationKind::Capture) {
            books::move_operation(state, capture, OperationStatus::Succeeded, now);
            effect = effect.or(Some(Effect::Applied));
        }
        if let Some(void) = live_on(state, order, attempt, OperationKind::Void) {
            // Too late to let go: it has been taken, so it is given back.
            books::fail_operation(state, void, "captured", now);
            books::ensure_returned(state, attempt, OperationKind::Refund, now, seed);
            effect = effect.or(Some(Effect::MoneyBack));
        }
        if let Some(refund) = live_on(state, order, attempt, OperationKind::Refund) {
            let asked = state.operations.get(&refund).map_or(0, |refund| refund.amount.amount_minor);
            if asked > 0 && observation.refunded_minor >= asked {
                books::move_operation(state, refund, OperationStatus::Succeeded, now);
                let proof = "the provider says that the money was given back";
                books::close_cases(
                    state,
                    order,
                    attempt,
                    |kind| kind != CaseKind::CallbackConflict,
                    proof,
                    now,
                );
                effect = effect.or(Some(Effect::Applied));
            }
        }
    }
    effect.unwrap_or_else(|| {
        let paid = state
            .orders
            .get(&order)
            .is_some_and(|row| row.status == OrderStatus::Confirmed && row.paid_by == Some(attempt));
        if paid { Effect::AlreadyPaid } else { Effect::MoneyBack }
    })
}

/// Whether an order with its money there may have its seats, checked anew: hold, seats, count, limit, price.
pub(super) fn may_sell(state: &Snapshot, order: OrderId, now: Timestamp) -> Result<(), (CaseKind, String)> {
    let late = |why: &str| Err((CaseKind::LateSuccess, why.to_owned()));
    let Some(row) = state.orders.get(&order) else {
        return late("the order is gone");
    };
    match row.status {
        OrderStatus::AwaitingPayment => {}
        OrderStatus::Confirmed => {
            let why = "the order was already paid by another attempt".to_owned();
            return Err((CaseKind::SurplusAuthorization, why));
        }
        OrderStatus::Cancelled => return late("the order was cancelled before the payment succeeded"),
        OrderStatus::Expired => return late("the hold had run out before the payment succeeded"),
    }
    let (Some(hold), Some(event)) = (state.holds.get(&row.hold), state.events.get(&order.event())) else {
        return late("the hold is gone");
    };
    if !hold.binds(&event.policy, now) {
        return late("the hold had run out when the payment succeeded");
    }
    let owns = |ordinal| {
        let seat = state.seats.get(&(event.no(), ordinal));
        matches!(seat.map(|seat| seat.status), Some(SeatStatus::Held { hold, .. }) if hold == row.hold)
    };
    if hold.seats.len() != row.seat_count as usize || !hold.seats.iter().all(|ordinal| owns(*ordinal)) {
        return late("the seats are not the hold's any more");
    }
    if hold.price_version != row.price_version
        || checkout::total_now(state, row.hold, row.price_version) != Some(row.total.amount_minor)
    {
        return late("the total is not what the seats cost");
    }
    let sold = state.accounts.get(&(event.no(), row.account.clone())).map_or(0, |usage| usage.sold);
    if sold + row.seat_count > event.policy.tickets_per_account_max {
        return late("the account has as many tickets as it may");
    }
    Ok(())
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
    match kind {
        OperationKind::Authorize => attempt_failed(state, id, code, now, seed),
        OperationKind::Capture => {
            books::fail_operation(state, id, code, now);
            let evidence = format!("the provider refused the capture: {code}");
            books::compensate(state, order, attempt, evidence, now, seed);
            books::ensure_returned(state, attempt, OperationKind::Void, now, seed);
        }
        OperationKind::Void => {
            books::fail_operation(state, id, code, now);
            let evidence = format!("the provider refused to let the authorization go: {code}");
            books::open_case(state, CaseKind::VoidFailed, order, attempt, evidence, now, seed);
        }
        OperationKind::Refund => {
            books::fail_operation(state, id, code, now);
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
