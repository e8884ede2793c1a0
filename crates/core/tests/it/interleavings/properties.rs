//! What must hold in every state and after every step, beside the invariants of [`crate::world`] that hold
//! after every decision; and the rare states that a search must have come to.

use std::cell::RefCell;

use onsale_core::command::{Expiry, Outcome};
use onsale_core::event::InDoubt;
use onsale_core::ga::places;
use onsale_core::hold::{Hold, HoldStatus};
use onsale_core::id::{HoldId, OrderId, SeatOrdinal};
use onsale_core::limits::AUTHORIZE_WINDOW_MS_MIN;
use onsale_core::order::{Order, OrderStatus};
use onsale_core::payment::{Operation, OperationKind, OperationStatus};
use onsale_core::reconcile::{CaseAction, CaseStatus, Verdict};
use onsale_core::seat_map::{Seat, SeatStatus};

use super::action::{Action, Message, Part, Reply, Sale};
use super::explore::{Known, Way};
use super::model::State;
use super::moves;
use super::provider::Standing;
use crate::world::HALL;

/// After a step: what was refused has changed nothing, seats go where they may, and nothing is begun too
/// late.
pub(super) fn step(before: &State, action: Action, outcome: Option<&Outcome>, after: &State, sale: &Sale) {
    if let (Action::Hold(buyer, choice), Some(outcome)) = (action, outcome) {
        let places = sale.places[buyer].get(choice).copied().unwrap_or_default();
        let free = sale.choices[buyer][choice].iter().all(|seat| is_free(before, SeatOrdinal(*seat)))
            && places <= places_free(before);
        let placed = matches!(outcome, Outcome::HoldPlaced(_));
        assert_eq!(placed, free, "seats are given to whoever asks when nothing binds them: {outcome:?}");
    }
    if let (Action::Release(hold), Some(outcome)) = (action, outcome) {
        let released = *outcome == Outcome::HoldReleased;
        assert_eq!(
            released,
            !is_asked(before, hold),
            "a hold is given back when no payment is open: {outcome:?}"
        );
    }
    if let (Action::Pay(hold), Some(outcome)) = (action, outcome) {
        let begun = matches!(outcome, Outcome::CheckoutBegun(_));
        assert_eq!(begun, may_be_paid(before, hold), "a hold in time is paid once: {outcome:?}");
    }
    if let (Action::Refund(hold, _), Some(outcome)) = (action, outcome) {
        let begun = matches!(outcome, Outcome::RefundBegun(_));
        assert_eq!(begun, may_be_refunded(before, hold), "what was taken is refunded: {outcome:?}");
    }
    if let (Action::Expire(hold), Some(Outcome::Expiry(expiry))) = (action, outcome) {
        let row = &before.world.holds[&hold];
        let doubt = row.status == HoldStatus::PaymentPending && keeps(before) && is_known(before, hold);
        let expected = match row.expires_at <= before.now() {
            true if doubt => Expiry::InDoubt,
            true => Expiry::Expired,
            false => Expiry::NotDue,
        };
        assert_eq!(*expiry, expected, "a hold ends at its time, not before, and not in doubt: {row:?}");
    }
    if let Action::Deliver(Message::Again(..)) = action {
        assert_eq!(outcome, Some(&Outcome::Judged(Verdict::Duplicate)), "a callback counts once");
    }
    before.world.seats.iter().for_each(|(key, seat)| {
        sold(before, seat, after, after.world.seats[key].status);
    });
    for message in after.under_way.difference(&before.under_way) {
        if let Message::Call(operation) = message {
            may_be_sent(after, &after.world.operations[operation]);
        }
    }
}

/// Whether nothing binds a seat, by the rows and the clock alone.
fn is_free(state: &State, seat: SeatOrdinal) -> bool {
    let binds = |hold: &&Hold| {
        let pending = hold.status == HoldStatus::PaymentPending;
        hold.seats.contains(&seat) && (hold.expires_at > state.now() || pending && keeps(state))
    };
    let sold = matches!(state.world.seats[&(HALL, seat)].status, SeatStatus::Sold { .. });
    !sold && !state.live().any(|hold| binds(&hold))
}

/// The standing places that nothing binds, counted from holds and orders.
fn places_free(state: &State) -> u32 {
    let binds = |hold: &&Hold| {
        hold.expires_at > state.now() || hold.status == HoldStatus::PaymentPending && keeps(state)
    };
    let held: u32 = state.live().filter(binds).map(|hold| places(&hold.ga)).sum();
    let left = |(hold, order): (&Hold, &Order)| places(&hold.ga) - places(&order.returned_ga);
    let sold: u32 = state.sold().map(left).sum();
    let capacity: u32 = state.world.areas.values().map(|area| area.capacity).sum();
    capacity - held - sold
}

/// Whether something of what was sold through a hold may be refunded: its money has been taken, and none is on its way back.
fn may_be_refunded(state: &State, hold: HoldId) -> bool {
    let Some((_, order)) = state.sold().find(|(sold, _)| sold.id == hold) else {
        return false;
    };
    let operations = state.world.operations_of(order.id);
    let of = |kind| operations.iter().filter(move |o| o.kind == kind && o.target == order.paid_by);
    let taken = of(OperationKind::Capture).all(|o| o.status == OperationStatus::Succeeded);
    taken && !of(OperationKind::Refund).any(|o| o.status.is_live())
}

/// Whether only proof ends a payment that was begun in time.
fn keeps(state: &State) -> bool {
    state.world.hall().policy.in_doubt == InDoubt::Keep
}

/// The attempts of a hold whose answer is still to come.
fn asked(state: &State, hold: HoldId) -> impl Iterator<Item = &Operation> {
    let order = state.world.holds[&hold].order;
    let attempts = state.world.operations.values().filter(|o| o.kind == OperationKind::Authorize);
    attempts.filter(move |attempt| Some(attempt.order) == order && attempt.status.is_live())
}

fn is_asked(state: &State, hold: HoldId) -> bool {
    asked(state, hold).next().is_some()
}

/// Whether the provider has heard of one of them.
fn is_known(state: &State, hold: HoldId) -> bool {
    asked(state, hold).any(|attempt| attempt.reference.is_some())
}

/// Whether a payment of a hold may begin: before its deadline, with time enough for an answer.
fn may_be_paid(state: &State, id: HoldId) -> bool {
    let (hold, now) = (&state.world.holds[&id], state.now());
    let grace = if hold.grace_used { 0 } else { state.world.hall().policy.payment_grace_ms };
    let time = hold.expires_at.plus_ms(grace).since_ms(now);
    hold.expires_at > now && time >= AUTHORIZE_WINDOW_MS_MIN && !is_asked(state, id)
}

/// A seat is sold to one order; it comes back only when that order's money can't be had, or is back by the
/// provider's own book; and it is sold only to a hold that binds it, for money that is there.
fn sold(before: &State, seat: &Seat, after: &State, is: SeatStatus) {
    let refund = |order: OrderId| {
        let refunds = before.world.refunds.values().filter(move |refund| refund.order == order);
        let rows = refunds.filter(|refund| refund.seats.contains(&seat.ordinal));
        rows.map(|refund| &before.world.operations[&refund.operation]).find(|o| o.status.is_live())
    };
    match (seat.status, is) {
        (SeatStatus::Sold { order: first, .. }, SeatStatus::Sold { order, .. }) => {
            assert_eq!(first, order, "a sold seat has one order");
        }
        (SeatStatus::Sold { order, .. }, _) if refund(order).is_some() => {
            let refund = refund(order).expect("it was found");
            let standing = after.objects.get(&refund.attempt());
            let whole = standing.is_none_or(|standing| *standing == Standing::Refunded);
            let done = whole || after.refunded.contains(&refund.id);
            assert!(done, "a seat comes back when the money has: {refund:?}, {standing:?}");
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
            let bound = hold.expires_at > before.now() || pending && keeps(before);
            assert!(hold.status.is_live() && bound, "seats are sold to a hold that binds them: {hold:?}");
            let paid = after.world.orders[&order].paid_by.expect("a sold order was paid");
            let money = after.objects[&paid].has_money() || after.surprised;
            assert!(money, "seats are sold for money: the provider has {:?}", after.objects[&paid]);
        }
        _ => {}
    }
}

/// An authorization is sent only in time, for an order that awaits it and that nobody has called off; money
/// is taken only for seats that are sold.
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
            let asked = state.world.refunds.contains_key(&operation.id);
            asked || !state.is_sold(&order.hold) || order.paid_by != operation.target
        }
    };
    assert!(may, "{operation:?} is sent for {order:?}, {hold:?}");
}

/// A hold has its first deadline, and one grace beside it as long as its payment is open.
fn has_its_time(state: &State, hold: &Hold) {
    let policy = &state.world.hall().policy;
    let first = hold.created_at.plus_ms(policy.hold_ttl_ms);
    let until = match hold.status == HoldStatus::PaymentPending {
        true => first.plus_ms(policy.payment_grace_ms),
        false => first,
    };
    assert_eq!((hold.first_expires_at, hold.expires_at), (first, until), "the time of {hold:?}");
}

/// More than there are causes to let money go or to give it back, each with its refusal and a person who
/// tries again.
const OPERATIONS_MAX: usize = 6;

/// The provider's book and ours, whatever is under way: all money is somewhere where somebody will find it.
/// Money that was taken and is neither on its way back nor asked about pays for an order; and a seat has one.
pub(super) fn always(state: &State) {
    state.live().for_each(|hold| has_its_time(state, hold));
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
        let unheard = attempt.status == OperationStatus::Failed && state.surprised;
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
            Standing::Refunded | Standing::HalfRefunded => {
                let sum = |test: &dyn Fn(OperationStatus) -> bool| -> i64 {
                    let refunds = on_it(OperationKind::Refund).filter(|o| test(o.status));
                    refunds.map(|o| o.amount.amount_minor).sum()
                };
                let back_minor = standing.back_minor(attempt.amount.amount_minor);
                let asked_minor = sum(&|status| status != OperationStatus::Failed);
                let known_minor = sum(&|status| status == OperationStatus::Succeeded);
                assert!(back_minor <= asked_minor, "money was given back unasked: {attempt:?}");
                assert!(known_minor <= back_minor, "money is said to be back and isn't: {attempt:?}");
                let awaited = on_it(OperationKind::Refund).any(|o| o.status.is_live());
                let whole = standing == Standing::Refunded;
                assert!(!(pays && whole) || awaited, "sold for money that is back: {order:?}");
            }
            Standing::Voided => {
                let lapsed = state.surprised;
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
            assert!(state.surprised || lives(OperationKind::Capture), "money was taken unasked: {attempt:?}");
        }
    }
}

/// More clock, and more work, than any sale needs to come to rest.
const INSTANTS_MAX: usize = 16;
const STEPS_MAX: usize = 100;

/// Left to the workers, with time passing and the provider telling the truth, a sale comes to rest: nothing
/// is live, and what is still asked needs a person. `known` are states from which this has been seen.
pub(super) fn settles(state: &State, sale: &Sale, known: &mut Known, way: &RefCell<Way>) {
    let (mut state, mut passed) = (state.clone(), Vec::new());
    while !known.contains(&state.rows()) {
        assert!(!passed.contains(&state.rows()), "the workers go round in circles");
        passed.push(state.rows());
        if state.is_settled() {
            at_rest(state, sale, way);
            break;
        }
        state = work(&state, sale, way);
        always(&state);
    }
    known.extend(passed);
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
    for _ in 0..STEPS_MAX {
        if state.is_settled() {
            return state;
        }
        state = work(&state, sale, way);
    }
    panic!("the workers never come to rest");
}

/// Nothing is live. When the provider has told what it has to tell, and a person has done what only a person
/// may, no question is left and the provider's book is ours.
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
            matches!(standing, Standing::Captured | Standing::HalfRefunded),
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
    let open = || state.world.cases.values().filter(|case| case.status == CaseStatus::Open);
    let acts =
        open().flat_map(|case| [CaseAction::Refund, CaseAction::Void].map(|act| Action::Act(case.id, act)));
    // What was sold is refunded as such, once more.
    let sold = open().filter_map(|case| state.sold().find(|(_, order)| Some(order.id) == case.order));
    let acts = acts.chain(sold.map(|(hold, _)| Action::Refund(hold.id, Part::Rest)));
    acts.map(|action| (action, state.after(sale, action))).find_map(|(action, (next, outcome))| {
        // Where the books have all that they need, the act does nothing and is no help.
        let acted = matches!(outcome, Some(Outcome::CaseActed | Outcome::RefundBegun(_)));
        (acted && !next.is_settled()).then_some((action, next))
    })
}
