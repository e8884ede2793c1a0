//! What must hold after every batch, whatever happened in it.

mod places;
mod tickets;

use std::collections::BTreeMap;

use onsale_core::event::PaymentMode;
use onsale_core::ga::GaLine;
use onsale_core::hold::{Hold, HoldStatus};
use onsale_core::id::EventNo;
use onsale_core::limits::QUERY_BACKOFF_MS_MAX;
use onsale_core::order::{Order, OrderStatus};
use onsale_core::payment::{Operation, OperationKind, OperationStatus, payment_status};
use onsale_core::reconcile::{Case, CaseKind, CaseStatus, Verdict};
use onsale_core::seat_map::SeatStatus;
use onsale_core::time::Timestamp;

use crate::World;

/// A look at a world that panics with what is broken.
pub type Invariant = fn(&World);

/// Each invariant with its name.
pub const INVARIANTS: [(&str, Invariant); 13] = [
    ("invariants: seats", seats),
    ("invariants: live holds", |world| world.holds.values().for_each(|hold| live_hold(world, hold))),
    ("invariants: orders", |world| world.orders.values().for_each(|order| one_order(world, order))),
    ("invariants: operations", |world| world.operations.values().for_each(|row| one_operation(world, row))),
    ("invariants: open cases", |world| {
        let open = |case: &&Case| case.status == CaseStatus::Open;
        world.cases.values().filter(open).for_each(|case| open_case(world, case));
    }),
    ("invariants: places", places::buckets),
    ("invariants: access codes", places::codes),
    ("invariants: allocations", places::allocations),
    ("invariants: refunds", places::refunds),
    ("invariants: counters", counters),
    ("invariants: log", log),
    ("invariants: callbacks", callbacks),
    ("invariants: tickets", tickets::check),
];

/// Panics with what is broken.
pub fn check(world: &World) {
    INVARIANTS.iter().for_each(|(_, check)| check(world));
}

/// A seat's owner lists it, and agrees about the deadline (INV-1, INV-2, INV-3).
fn seats(world: &World) {
    for ((no, ordinal), seat) in world.seats.iter() {
        match seat.status {
            SeatStatus::Available | SeatStatus::NotForSale => {}
            SeatStatus::Held { hold, expires_at } => {
                let hold = &world.holds[&hold];
                assert!(hold.status.is_live(), "seat {ordinal:?} is held by {hold:?}");
                assert!(hold.seats.contains(ordinal), "seat {ordinal:?} is none of {hold:?}");
                assert_eq!(hold.expires_at, expires_at, "seat {ordinal:?} and {hold:?} share a deadline");
            }
            SeatStatus::Sold { hold, order } => {
                let order = &world.orders[&order];
                assert_eq!(order.status, OrderStatus::Confirmed, "seat {ordinal:?} is sold to {order:?}");
                assert_eq!(order.hold, hold, "seat {ordinal:?} is sold through its order's hold");
                assert!(world.holds[&hold].seats.contains(ordinal), "seat {ordinal:?} is none of {order:?}");
                assert!(
                    !order.returned_seats.contains(ordinal),
                    "seat {ordinal:?} was given back: {order:?}"
                );
            }
        }
        let shown = world.digits[&(*no, *ordinal)];
        // What is set aside for a party is not for sale to all.
        let is_aside = seat.status == SeatStatus::Available && seat.allocation.is_some();
        let digit = if is_aside { SeatStatus::NotForSale.digit() } else { seat.status.digit() };
        assert_eq!(shown, digit, "the log shows seat {ordinal:?} as it is");
    }
}

/// A live hold has all its seats; one in doubt is in PAYMENT_PENDING, and that is entered for an open attempt alone.
fn live_hold(world: &World, hold: &Hold) {
    let pending = hold.status == HoldStatus::PaymentPending;
    assert!(!hold.in_doubt || pending, "{hold:?} is in doubt");
    assert!(hold.expires_at >= hold.first_expires_at, "{hold:?} has lost time");
    let order = hold.order.map(|order| &world.orders[&order]);
    assert!(order.is_none_or(|order| order.hold == hold.id), "{hold:?} and its order know each other");
    if pending {
        let order = order.expect("a payment belongs to an order").id;
        let open = |o: &&Operation| o.kind == OperationKind::Authorize && o.status.is_live();
        assert!(world.operations_of(order).into_iter().any(|o| open(&o)), "{hold:?} waits for nothing");
        assert!(hold.grace_used, "{hold:?} has used its grace");
    }
    if hold.status.is_live() {
        for ordinal in &hold.seats {
            let expected = SeatStatus::Held { hold: hold.id, expires_at: hold.expires_at };
            assert_eq!(world.seats[&(hold.event(), *ordinal)].status, expected, "a seat of {hold:?}");
        }
        let prices = &world.prices[&(hold.event(), hold.price_version)];
        let seats = hold.seats.iter().map(|seat| (world.seats[&(hold.event(), *seat)].price_level, 1));
        let area = |line: &GaLine| world.areas[&(hold.event(), line.area)].price_level;
        let ga = hold.ga.iter().map(|line| (area(line), i64::from(line.quantity)));
        let total = seats.chain(ga).map(|(level, count)| Some(prices.price(level)? * count));
        assert_eq!(total.sum::<Option<i64>>(), Some(hold.total_minor), "the total of {hold:?}");
        assert!(order.is_none_or(|order| order.status == OrderStatus::AwaitingPayment), "order of {hold:?}");
    }
}

/// An order goes with its hold, owns its seats when it is paid, and shows what its operations say.
fn one_order(world: &World, order: &Order) {
    let hold = &world.holds[&order.hold];
    assert_eq!(hold.order, Some(order.id), "{order:?} and its hold know each other");
    assert_eq!((&hold.account, hold.total_minor), (&order.account, order.total.amount_minor), "{order:?}");
    let holds = match order.status {
        OrderStatus::AwaitingPayment => hold.status.is_live(),
        OrderStatus::Confirmed => hold.status == HoldStatus::Converted,
        OrderStatus::Cancelled => matches!(hold.status, HoldStatus::Released | HoldStatus::Converted),
        OrderStatus::Expired => hold.status == HoldStatus::Expired,
    };
    assert!(holds, "{order:?} goes with {hold:?}");
    let operations = world.operations_of(order.id);
    let charge = world.events[&order.id.event()].policy.payment == PaymentMode::Charge;
    let shown = payment_status(&operations, order.paid_by, charge);
    assert_eq!(order.payment_status, shown, "{order:?} shows what its operations say: {operations:?}");
    for (seq, operation) in (0..).zip(&operations) {
        assert_eq!(operation.seq, seq, "operations of {order:?} are numbered without gaps");
    }
    let mut live: BTreeMap<_, u32> = BTreeMap::new();
    for operation in operations.iter().filter(|o| o.status.is_live()) {
        *live.entry((operation.kind, operation.target)).or_default() += 1;
    }
    assert!(live.values().all(|count| *count == 1), "one live operation of a kind: {operations:?}");
    match order.status {
        OrderStatus::Confirmed => {
            for ordinal in hold.seats.iter().filter(|seat| !order.returned_seats.contains(seat)) {
                let expected = SeatStatus::Sold { hold: hold.id, order: order.id };
                assert_eq!(world.seats[&(hold.event(), *ordinal)].status, expected, "a seat of {order:?}");
            }
            let paid = order.paid_by.expect("a confirmed order was paid");
            assert_eq!(world.operations[&paid].status, OperationStatus::Succeeded, "what paid {order:?}");
            assert_eq!(world.operations[&paid].amount, order.total, "what paid {order:?}");
            let of = |kind: OperationKind| {
                let on_it = operations.iter().filter(move |o| o.kind == kind && o.target == Some(paid));
                on_it.filter(|o| o.status != OperationStatus::Failed).count()
            };
            assert_eq!(
                of(OperationKind::Capture),
                usize::from(!charge),
                "the money of {order:?} is taken once"
            );
            // What is given back of it, and what for, is looked at with the refunds.
            assert_eq!(of(OperationKind::Void), 0, "the money of {order:?} stays: {operations:?}");
        }
        OrderStatus::AwaitingPayment | OrderStatus::Expired => assert_eq!(order.paid_by, None, "{order:?}"),
        OrderStatus::Cancelled => {}
    }
}

fn one_operation(world: &World, operation: &Operation) {
    assert_eq!(operation.kind == OperationKind::Authorize, operation.target.is_none(), "{operation:?}");
    let live = operation.status.is_live();
    assert!(live || operation.payment_method_token.is_none(), "{operation:?} keeps a card");
    if live {
        // Someone will look again, before long.
        let wait = operation.due_at.since_ms(world.events[&operation.id.event()].clock);
        assert!(wait <= QUERY_BACKOFF_MS_MAX, "{operation:?} is left alone for {wait} ms");
    }
    if let (OperationKind::Authorize, Some(name)) = (operation.kind, &operation.reference) {
        let named = world.attempt_named(name).map(|attempt| attempt.id);
        assert_eq!(named, Some(operation.id), "{name} is the name of one attempt");
    }
    if operation.kind == OperationKind::Authorize && operation.status == OperationStatus::Succeeded {
        let on_its_way = |o: &&Operation| {
            let back = matches!(o.kind, OperationKind::Void | OperationKind::Refund);
            back && o.target == Some(operation.id) && o.status != OperationStatus::Failed
        };
        let returns = world.operations.values().any(|o| on_its_way(&o));
        let asked = |case: &Case| {
            let person = case.resolution.as_ref().is_some_and(|resolution| resolution.actor != "worker");
            case.operation == Some(operation.id) && (case.status == CaseStatus::Open || person)
        };
        assert!(
            pays(world, operation) || returns || world.cases.values().any(asked),
            "money unaccounted for: {operation:?}"
        );
    }
}

/// Whether an attempt is what an order's seats are sold for.
fn pays(world: &World, attempt: &Operation) -> bool {
    let order = &world.orders[&attempt.order];
    order.status == OrderStatus::Confirmed && order.paid_by == Some(attempt.id)
}

/// A case about money is open while there is something to be known or done, and no longer.
fn open_case(world: &World, case: &Case) {
    let (Some(attempt), Some(order)) = (case.operation, case.order) else {
        return assert!(case.operation.is_none() && case.order.is_none(), "{case:?}");
    };
    let attempt = &world.operations[&attempt];
    assert_eq!(attempt.order, order, "{case:?} is about an attempt of its order");
    let on_it = || world.operations.values().filter(|o| o.attempt() == attempt.id);
    let waits = on_it().any(|o| o.status.is_live());
    let gone = |o: &Operation| {
        matches!(o.kind, OperationKind::Void | OperationKind::Refund)
            && o.status == OperationStatus::Succeeded
    };
    let ended = attempt.status == OperationStatus::Failed || on_it().any(gone);
    let refused = || {
        let refunds = on_it().filter(|o| o.kind == OperationKind::Refund);
        refunds.max_by_key(|o| o.seq).is_some_and(|o| o.status != OperationStatus::Succeeded)
    };
    let needed = match case.kind {
        // A part of what a sale brought: whoever wanted it back is told.
        CaseKind::RefundFailed if pays(world, attempt) => refused(),
        CaseKind::InDoubt => attempt.status.is_live(),
        CaseKind::PaymentUnknown => waits,
        // What contradicts the books stays a question until a person has answered it.
        CaseKind::CallbackConflict | CaseKind::OrphanPayment => true,
        // Only the provider's books can say.
        CaseKind::MissingAtProvider | CaseKind::RefundMismatch | CaseKind::StateMismatch => true,
        CaseKind::TicketsMissing => pays(world, attempt),
        // It may pay for seats, and its money is yet to come, or has come short.
        CaseKind::CaptureFailed | CaseKind::AmountMismatch => waits || !ended || pays(world, attempt),
        CaseKind::LateSuccess
        | CaseKind::SurplusAuthorization
        | CaseKind::VoidFailed
        | CaseKind::RefundFailed => !pays(world, attempt) && (waits || !ended),
    };
    assert!(needed, "{case:?} is a question no more");
}

fn counters(world: &World) {
    for (no, event) in world.events.iter() {
        let pending = |hold: &&Hold| hold.event() == *no && hold.status == HoldStatus::PaymentPending;
        let count = world.holds.values().filter(pending).count();
        assert_eq!(event.payment_pending as usize, count, "PAYMENT_PENDING of event {no:?}");
        assert!(event.payment_pending <= event.policy.payment_pending_max, "the event's cap");
        let mut tickets: BTreeMap<_, u32> = BTreeMap::new();
        for hold in world.holds.values().filter(|hold| hold.event() == *no) {
            let bound = if hold.binds(&event.policy, event.clock) { hold.tickets() } else { 0 };
            *tickets.entry(&hold.account).or_default() += bound;
        }
        for (account, held) in tickets {
            let given = world.elsewhere.get(account).copied().unwrap_or_default();
            let bought = world.sold_to(*no, account) - given;
            assert!(held + bought <= event.policy.tickets_per_account_max, "tickets of {account}");
        }
    }
}

fn log(world: &World) {
    let mut last: BTreeMap<EventNo, (u64, Timestamp)> = BTreeMap::new();
    for entry in &world.log {
        let (version, at) = last.entry(entry.event).or_default();
        assert_eq!(entry.version, *version + 1, "the log has no gaps: {entry:?}");
        assert!(entry.at >= *at, "the log's time never runs backwards: {entry:?}");
        (*version, *at) = (entry.version, entry.at);
    }
    // Whatever was decided at a time moves the clock to it: the next decision can't be earlier.
    let clock = |no: EventNo| world.events[&no].clock;
    world.operations.values().for_each(|row| assert!(row.updated_at <= clock(row.id.event()), "{row:?}"));
    world.keys.iter().for_each(|((no, _), row)| assert!(row.created_at <= clock(*no), "{row:?}"));
    for (no, event) in world.events.iter() {
        let (version, at) = last.get(no).copied().unwrap_or_default();
        assert_eq!(event.version, version, "the version of event {no:?}");
        assert!(event.clock >= at, "the clock of event {no:?}");
    }
}

/// A parked callback is tried again, or has become a case; all others have had their say.
fn callbacks(world: &World) {
    for callback in world.callbacks.values() {
        assert_ne!(callback.verdict, Verdict::Duplicate, "a duplicate is not stored: {callback:?}");
        let again = callback.due_at < Timestamp::from_millis(i64::MAX);
        let waits = callback.verdict == Verdict::Parked && callback.case.is_none();
        assert_eq!(again, waits, "{callback:?} is looked at again as long as it must be");
    }
}
