//! What the provider's word does to the books. An observation is always about an attempt's object; every operation on
//! that attempt moves with it, whoever asked and in whatever order words arrive.

use crate::gateway::{IntentState, Observation};
use crate::id::{OperationId, OrderId, Seed};
use crate::limits::ACTION_POLL_MS;
use crate::order::OrderStatus;
use crate::payment::{Operation, OperationKind, OperationStatus, poll_wait_ms};
use crate::reconcile::CaseKind;
use crate::seat_map::SeatStatus;
use crate::snapshot::Snapshot;
use crate::time::Timestamp;

use super::{books, checkout, refund};

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

/// Takes in what the provider says about an attempt. `asked` is the operation on whose behalf it was asked, if any.
pub(super) fn observe(
    state: &mut Snapshot,
    attempt: OperationId,
    asked: Option<OperationId>,
    observation: &Observation,
    now: Timestamp,
    seed: &mut Seed,
) -> Effect {
    let Some(operation) = state.operations.get(&attempt) else {
        return Effect::Nothing;
    };
    let (order, known) = (operation.order, operation.reference.clone());
    answered(state, attempt, asked, now);
    let name = observation.reference.as_str();
    let other_object = known.as_ref().is_some_and(|known| known != name)
        || state.references.get(name).is_some_and(|named| *named != attempt);
    if other_object
        || observation.operation.is_some_and(|attached| attached != attempt)
        || observation.order.is_some_and(|attached| attached != order)
    {
        let evidence =
            format!("{name} at the provider is not what this payment is known as, or not its order's");
        books::open_case(state, CaseKind::CallbackConflict, order, attempt, evidence, now, seed);
        return Effect::Conflict;
    }
    if known.is_none() {
        // The provider's word came before the answer that would have told us the name.
        state.name_attempt(attempt, name);
    }
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

/// The provider has spoken, whatever it said: its silence is over, and what is due is asked about anew, later the older it
/// is. An operation that has yet to be sent waits for nobody.
fn answered(state: &mut Snapshot, attempt: OperationId, asked: Option<OperationId>, now: Timestamp) {
    let Some(order) = state.operations.get(&attempt).map(|operation| operation.order) else {
        return;
    };
    let silence = |kind| kind == CaseKind::PaymentUnknown;
    books::close_cases(state, order, attempt, silence, "the provider has answered", now);
    let asked_about: Vec<OperationId> = state
        .operations_of(order)
        .into_iter()
        .filter(|o| o.attempt() == attempt && o.status.is_live())
        .filter(|o| o.id == attempt || Some(o.id) == asked || o.status == OperationStatus::Unknown)
        .map(|o| o.id)
        .collect();
    for id in asked_about {
        let row = state.operations.change(&id);
        row.tries = 0;
        if row.due_at <= now {
            row.due_at = now.plus_ms(poll_wait_ms(now.since_ms(row.created_at)));
        }
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
    // What the provider is working on can't be called off. Its end is waited for, and a success is judged when it
    // comes: asking for a void at every word would only be refused each time, and never end.
    let in_work = status == OperationStatus::Pending;
    if !in_work && !checkout::may_send_authorization(state, attempt, now) {
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
pub(super) fn attempt_failed(
    state: &mut Snapshot,
    attempt: OperationId,
    code: &str,
    now: Timestamp,
    seed: &mut Seed,
) {
    books::fail_operation(state, attempt, code, now);
    let Some(order) = state.operations.get(&attempt).map(|operation| operation.order) else {
        return;
    };
    let settled = |kind| matches!(kind, CaseKind::InDoubt | CaseKind::VoidFailed);
    books::close_cases(state, order, attempt, settled, "the provider says that nothing was paid", now);
    books::return_hold(state, order, now, seed);
}

/// The attempt's object is called off: whatever was set aside has been let go.
fn voided(state: &mut Snapshot, attempt: OperationId, now: Timestamp, seed: &mut Seed) -> Effect {
    let Some(operation) = state.operations.get(&attempt) else {
        return Effect::Nothing;
    };
    let (order, was) = (operation.order, operation.status);
    let mut effect = Effect::Nothing;
    if let Some(void) = live_on(state, order, attempt, OperationKind::Void) {
        books::move_operation(state, void, OperationStatus::Succeeded, now);
        effect = Effect::Applied;
    }
    if was.is_live() {
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
    if pays(state, order, attempt) {
        let evidence = "the provider says that the payment of these seats was called off".to_owned();
        books::open_case(state, CaseKind::CallbackConflict, order, attempt, evidence, now, seed);
        return Effect::Conflict;
    }
    if was == OperationStatus::Succeeded && !books::is_returned(state, attempt) {
        // It lapsed by itself. The books show it like money that we let go.
        books::ensure_returned(state, attempt, OperationKind::Void, now, seed);
        if let Some(void) = live_on(state, order, attempt, OperationKind::Void) {
            books::move_operation(state, void, OperationStatus::Succeeded, now);
        }
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
    let proof = "the provider says that the authorization was let go";
    books::close_cases(state, order, attempt, settled, proof, now);
    effect
}

/// Whether an attempt is what an order's seats are sold for.
fn pays(state: &Snapshot, order: OrderId, attempt: OperationId) -> bool {
    let order = state.orders.get(&order);
    order.is_some_and(|row| row.status == OrderStatus::Confirmed && row.paid_by == Some(attempt))
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
    if !captured && books::is_returned(state, attempt) {
        // Read before the money was let go, recorded after: the later proof stands.
        return Effect::Nothing;
    }
    let mut effect = None;
    if operation.status != OperationStatus::Succeeded {
        let asked = operation.amount;
        books::move_operation(state, attempt, OperationStatus::Succeeded, now);
        let objection = match asked == observation.amount || planted!(AmountNotCompared) {
            true => may_sell(state, order, attempt, now).err(),
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
                let back = if captured { OperationKind::Refund } else { OperationKind::Void };
                books::open_case(state, kind, order, attempt, evidence, now, seed);
                let is_forgotten = planted!(ReturnOnlyInMemory);
                if !planted!(SurplusKept) && !is_forgotten {
                    books::ensure_returned(state, attempt, back, now, seed);
                }
                let doubt = |kind| kind == CaseKind::InDoubt;
                let proof = "the provider says that the payment succeeded";
                books::close_cases(state, order, attempt, doubt, proof, now);
                books::return_hold(state, order, now, seed);
                effect = Some(Effect::MoneyBack);
            }
        }
    }
    if captured {
        effect = taken(state, order, attempt, observation, now, seed).or(effect);
    }
    effect.unwrap_or(if pays(state, order, attempt) { Effect::AlreadyPaid } else { Effect::MoneyBack })
}

/// The attempt's money has been taken. Where it pays for nothing it is given back.
fn taken(
    state: &mut Snapshot,
    order: OrderId,
    attempt: OperationId,
    observation: &Observation,
    now: Timestamp,
    seed: &mut Seed,
) -> Option<Effect> {
    let mut effect = None;
    if let Some(capture) = live_on(state, order, attempt, OperationKind::Capture) {
        let asked = state.operations.get(&capture).map(|capture| capture.amount);
        if let Some(asked) = asked.filter(|asked| *asked != observation.amount) {
            let evidence = format!("sold for {asked}, the provider took {}", observation.amount);
            books::open_case(state, CaseKind::AmountMismatch, order, attempt, evidence, now, seed);
        }
        books::move_operation(state, capture, OperationStatus::Succeeded, now);
        let settled = |kind| kind == CaseKind::CaptureFailed;
        books::close_cases(state, order, attempt, settled, "the provider says that the money was taken", now);
        effect = Some(Effect::Applied);
    }
    if !pays(state, order, attempt) {
        if let Some(void) = live_on(state, order, attempt, OperationKind::Void) {
            // Too late to let go.
            books::fail_operation(state, void, "captured", now);
            effect = Some(Effect::MoneyBack);
        }
        // A refund that was refused is not repeated at every word of the provider: a person has been told.
        let refunds = |o: &&Operation| o.kind == OperationKind::Refund && o.target == Some(attempt);
        if !state.operations_of(order).iter().any(refunds) {
            books::ensure_returned(state, attempt, OperationKind::Refund, now, seed);
            effect = Some(Effect::MoneyBack);
        }
    }
    if let Some(back) = live_on(state, order, attempt, OperationKind::Refund) {
        let base_minor = |o: &Operation| if planted!(RefundBaseForgotten) { 0 } else { o.base_minor };
        let asked = state.operations.get(&back).map_or(0, |o| base_minor(o) + o.amount.amount_minor);
        if observation.refunded_minor >= asked {
            books::move_operation(state, back, OperationStatus::Succeeded, now);
            refund::complete(state, back);
            let keeps_seats = pays(state, order, attempt);
            // Of a sale that stands only this question is answered.
            let settled = |kind| match keeps_seats {
                true => kind == CaseKind::RefundFailed,
                false => kind != CaseKind::CallbackConflict,
            };
            let proof = "the provider says that the money was given back";
            books::close_cases(state, order, attempt, settled, proof, now);
            effect = Some(Effect::Applied);
        }
    }
    effect
}

/// Whether an order with its money there may have its seats, checked anew: hold, seats, count, limit, price.
pub(super) fn may_sell(
    state: &Snapshot,
    order: OrderId,
    attempt: OperationId,
    now: Timestamp,
) -> Result<(), (CaseKind, String)> {
    let late = |why: &str| Err((CaseKind::LateSuccess, why.to_owned()));
    let Some(row) = state.orders.get(&order) else {
        return late("the order is gone");
    };
    match row.status {
        OrderStatus::AwaitingPayment => {}
        OrderStatus::Cancelled | OrderStatus::Expired if planted!(LateSuccessSells) => return Ok(()),
        OrderStatus::Confirmed => {
            let why = "the order was already paid by another attempt".to_owned();
            return Err((CaseKind::SurplusAuthorization, why));
        }
        OrderStatus::Cancelled => return late("the order was cancelled before the payment succeeded"),
        OrderStatus::Expired => return late("the hold had run out before the payment succeeded"),
    }
    if books::is_returning(state, attempt) {
        // Sold for money that is being let go, the seats would be sold for nothing.
        return late("the payment had been called off before it succeeded");
    }
    let (Some(hold), Some(event)) = (state.holds.get(&row.hold), state.events.get(&order.event())) else {
        return late("the hold is gone");
    };
    if !hold.binds(&event.policy, now) && !planted!(HoldNotRechecked) {
        return late("the hold had run out when the payment succeeded");
    }
    let owns = |ordinal| {
        let seat = state.seats.get(&(event.no(), ordinal));
        matches!(seat.map(|seat| seat.status), Some(SeatStatus::Held { hold, .. }) if hold == row.hold)
    };
    if hold.tickets() != row.ticket_count || !hold.seats.iter().all(|ordinal| owns(*ordinal)) {
        return late("the seats are not the hold's any more");
    }
    if hold.price_version != row.price_version
        || checkout::total_now(state, row.hold, row.price_version) != Some(row.total.amount_minor)
    {
        return late("the total is not what the seats cost");
    }
    let sold = state.accounts.get(&(event.no(), row.account.clone())).map_or(0, |usage| usage.sold);
    if sold + row.ticket_count > event.policy.tickets_per_account_max {
        return late("the account has as many tickets as it may");
    }
    Ok(())
}
