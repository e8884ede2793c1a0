//! What must hold in every state and after every step, beside the invariants of [`crate::world`] that hold after every
//! decision; and the rare states that a search must have come to.

use std::cell::RefCell;

use onsale_core::command::{Expiry, Outcome};
use onsale_core::event::InDoubt;
use onsale_core::hold::{Hold, HoldStatus};
use onsale_core::id::SeatOrdinal;
use onsale_core::order::OrderStatus;
use onsale_core::payment::{Operation, OperationKind, OperationStatus};
use onsale_core::reconcile::{CaseAction, CaseStatus, Verdict};
use onsale_core::seat_map::SeatStatus;

use super::action::{Action, Fault, Message, Reply, Sale};
use super::explore::{Known, Way};
use super::model::State;
use super::moves;
use super::provider::Standing;
use crate::world::HALL;

/// After a step: what was refused has changed nothing, seats go where they may, and nothing is begun too late.
pub(super) fn step(before: &State, action: Action, outcome: Option<&Outcome>, after: &State, sale: &Sale) {
    if let (Action::Hold(buyer, choice), Some(outcome)) = (action, outcome) {
        let free = sale.choices[buyer][choice].iter().all(|seat| is_free(before, SeatOrdinal(*seat)));
        let placed = matches!(outcome, Outcome::HoldPlaced(_));
        assert_eq!(placed, free, "seats are given to whoever asks when nothing binds them: {outcome:?}");
    }
    if let (Action::Expire(hold), Some(Outcome::Expiry(expiry))) = (action, outcome) {
        let due = before.world.holds[&hold].expires_at <= before.now();
        assert_eq!(*expiry != Expiry::NotDue, due, "a hold ends at its time and not before: {expiry:?}");
    }
    if let Action::Deliver(Message::Again(..)) = action {
        assert_eq!(outcome, Some(&Outcome::Judged(Verdict::Duplicate)), "a callback counts once");
    }
    before.world.seats.iter().for_each(|(key, seat)| {
        sold(before, seat.status, after, after.world.seats[key].status);
    });
    for message in after.under_way.difference(&before.under_way) {
        if let Message::Call(operation) = message {
            may_be_sent(after, &after.world.operations[operation]);
        }
    }
}

/// Whether nothing binds a seat, by the rows and the clock alone.
fn is_free(state: &State, seat: SeatOrdinal) -> bool {
    let keeps = state.world.hall().policy.in_doubt == InDoubt::Keep;
    let binds = |hold: &&Hold| {
        let pending = hold.status == HoldStatus::PaymentPending;
        hold.seats.contains(&seat) && (hold.expires_at > state.now() || pending && keeps)
    };
    let sold = matches!(state.world.seats[&(HALL, seat)].status, SeatStatus::Sold { .. });
    !sold && !state.live().any(|hold| binds(&hold))
}

/// A seat is sold to one order; it comes back only when that order's money can't be had; and it is sold only to a hold
/// that binds it, for money that is there.
fn sold(before: &State, was: SeatStatus, after: &State, is: SeatStatus) {
    match (was, is) {
        (SeatStatus::Sold { order: first, .. }, SeatStatus::Sold { order, .. }) => {
            assert_eq!(first, order, "a sold seat has one order");
        }
        (SeatStatus::Sold { order, .. }, _) => {
            let capture =
                before.world.operations_of(order).into_iter().find(|o| o.kind == OperationKind::Capture);
            let taken = capture.is_none_or(|capture| !capture.status.is_live());
            assert!(!taken, "a sale is undone only as long as its money isn't taken: {order:?}");
        }
        (_, SeatStatus::Sold { hold, order }) => {
            let hold = &before.world.holds[&hold];
            let pending = hold.status == HoldStatus::PaymentPending;
            let keeps = before.world.hall().policy.in_doubt == InDoubt::Keep;
            let bound = hold.expires_at > before.now() || pending && keeps;
            assert!(hold.status.is_live() && bound, "seats are sold to a hold that binds them: {hold:?}");
            let paid = after.world.orders[&order].paid_by.expect("a sold order was paid");
            let money = after.objects[&paid].has_money() || after.left.of[Fault::Surprise as usize] == 0;
            assert!(money, "seats are sold for money: the provider has {:?}", after.objects[&paid]);
        }
        _ => {}
    }
}

/// An authorization is sent only in time, for an order that awaits it and that nobody has called off; money is taken
/// only for seats that are sold.
fn may_be_sent(state: &State, operation: &Operation) {
    let order = &state.world.orders[&operation.order];
    let hold = &state.world.holds[&order.hold];
    let on_it = |kind| {
        let mut on_it = state.world.operations.values();
        on_it.any(|o| o.kind == kind && o.target == Some(operation.id) && o.status != OperationStatus::Failed)
    };
    let may = match operation.kind {
        OperationKind::Authorize => {
            let called_off = on_it(OperationKind::Void) || on_it(OperationKind::Refund);
            hold.status.is_live() && hold.expires_at > state.now() && !called_off
        }
        OperationKind::Capture => order.status == OrderStatus::Confirmed,
        OperationKind::Void | OperationKind::Refund => {
            !state.is_sold(&order.hold) || order.paid_by != operation.target
        }
    };
    assert!(may, "{operation:?} is sent for {order:?}, {hold:?}");
}

/// More than there are causes to let money go or to give it back, each with its refusal and a person who tries again.
const OPERATIONS_MAX: usize = 6;

/// The provider's book and ours, whatever is under way: all money is somewhere where somebody will find it.
pub(super) fn always(state: &State) {
    for (attempt, standing) in state.attempts() {
        let order = &state.world.orders[&attempt.order];
        let on_it = |kind| {
            state.world.operations.values().filter(move |o| o.kind == kind && o.target == Some(attempt.id))
        };
        let lives = |kind| on_it(kind).any(|o| o.status != OperationStatus::Failed);
        let asked = state.world.cases.values().any(|case| case.operation == Some(attempt.id));
        let pays = order.status == OrderStatus::Confirmed && order.paid_by == Some(attempt.id);
        let found = attempt.status.is_live()
            || pays
            || asked
            || lives(OperationKind::Void)
            || lives(OperationKind::Refund);
        // A success after the provider's own final no is learned from a callback or its list alone.
        let unheard = attempt.status == OperationStatus::Failed && surprised(state);
        let asked_for =
            OPERATIONS_MAX >= on_it(OperationKind::Void).count() + on_it(OperationKind::Refund).count();
        assert!(asked_for, "the provider is asked for the same again and again: {attempt:?}");
        let is_over = order.status != OrderStatus::AwaitingPayment;
        if is_over && attempt.status.is_live() && attempt.reference.is_some() {
            assert!(on_it(OperationKind::Void).count() > 0, "nobody has called off {attempt:?} of {order:?}");
        }
        match standing {
            Standing::Authorized | Standing::Captured => {
                assert!(
                    found || unheard,
                    "{standing:?} at the provider and nobody looks: {attempt:?}, {order:?}"
                );
            }
            Standing::Refunded => {
                assert!(!pays && lives(OperationKind::Refund), "money was given back unasked: {attempt:?}");
            }
            Standing::Voided => {
                let lapsed = surprised(state);
                assert!(
                    lapsed || !pays && lives(OperationKind::Void),
                    "money was let go unasked: {attempt:?}"
                );
            }
            Standing::Unconfirmed | Standing::RequiresAction | Standing::Processing | Standing::Declined => {
                assert!(!pays, "{order:?} was paid by nothing: {standing:?}");
            }
        }
        if standing == Standing::Captured && state.paid() == Standing::Authorized {
            assert!(
                surprised(state) || lives(OperationKind::Capture),
                "money was taken unasked: {attempt:?}"
            );
        }
    }
}

fn surprised(state: &State) -> bool {
    state.left.of[Fault::Surprise as usize] == 0
}

/// More clock than any sale needs to come to rest.
const INSTANTS_MAX: usize = 16;

/// Left to the workers, with time passing and the provider telling the truth, a sale comes to rest: nothing is live,
/// and what is still asked needs a person. `known` are states from which this has been seen.
pub(super) fn settles(state: &State, sale: &Sale, known: &mut Known, way: &RefCell<Way>) {
    let mut state = state.clone();
    loop {
        if !known.insert(state.rows()) {
            return;
        }
        if state.is_settled() {
            return at_rest(state, sale, way);
        }
        state = work(&state, sale, way);
        always(&state);
    }
}

/// The next thing that a worker does and that changes something.
fn work(state: &State, sale: &Sale, way: &RefCell<Way>) -> State {
    assert!(state.at < INSTANTS_MAX, "something is open for ever");
    let rows = state.rows();
    for action in moves::chores(state) {
        let (next, _) = state.after(sale, action);
        if next.rows() != rows {
            way.borrow_mut().then(action);
            return next;
        }
    }
    unreachable!("time passes");
}

fn to_rest(mut state: State, sale: &Sale, way: &RefCell<Way>) -> State {
    while !state.is_settled() {
        state = work(&state, sale, way);
    }
    state
}

/// Nothing is live. When the provider has told what it has to tell, and a person has done what only a person may, no
/// question is left and the provider's book is ours.
fn at_rest(mut state: State, sale: &Sale, way: &RefCell<Way>) {
    only_questions_for_a_person(&state);
    let attempts: Vec<_> = state.objects.keys().copied().collect();
    for attempt in attempts {
        if state.objects.contains_key(&attempt) {
            let action = Action::Notify(attempt, Reply::Kept);
            way.borrow_mut().then(action);
            state = to_rest(state.after(sale, action).0, sale, way);
        }
    }
    only_questions_for_a_person(&state);
    while let Some((action, next)) = a_person(&state, sale) {
        way.borrow_mut().then(action);
        state = to_rest(next, sale, way);
    }
    let open: Vec<_> = state.world.cases.values().filter(|case| case.status == CaseStatus::Open).collect();
    assert!(open.is_empty(), "a question without an answer: {open:?}");
    for (attempt, standing) in state.attempts() {
        let order = &state.world.orders[&attempt.order];
        let pays = order.status == OrderStatus::Confirmed && order.paid_by == Some(attempt.id);
        assert_ne!(standing, Standing::Authorized, "money is neither taken nor let go: {attempt:?}");
        assert_eq!(
            standing == Standing::Captured,
            pays,
            "what is taken is what was sold: {attempt:?} {order:?}"
        );
    }
    let awaits = state.world.orders.values().find(|order| order.status == OrderStatus::AwaitingPayment);
    assert_eq!(awaits, None, "an order waits for nothing");
}

/// A person is asked only where the provider has refused for good.
fn only_questions_for_a_person(state: &State) {
    for case in state.world.cases.values().filter(|case| case.status == CaseStatus::Open) {
        let refused = |o: &Operation| {
            let back = matches!(o.kind, OperationKind::Void | OperationKind::Refund);
            back && o.target == case.operation && o.status == OperationStatus::Failed
        };
        assert!(state.world.operations.values().any(refused), "the workers leave a question open: {case:?}");
    }
}

/// What a person then does about it: money that was taken is given back, and money that is set aside let go.
fn a_person(state: &State, sale: &Sale) -> Option<(Action, State)> {
    let open = state.world.cases.values().filter(|case| case.status == CaseStatus::Open);
    let acts =
        open.flat_map(|case| [CaseAction::Refund, CaseAction::Void].map(|act| Action::Act(case.id, act)));
    acts.map(|action| (action, state.after(sale, action))).find_map(|(action, (next, outcome))| {
        // Where the books have all that they need, the act does nothing and is no help.
        (outcome == Some(Outcome::CaseActed) && !next.is_settled()).then_some((action, next))
    })
}
