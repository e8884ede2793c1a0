//! The last check before seats are sold looks at every row anew, and not at how it should have come about. So it is tried
//! on books that no decision leaves behind: whatever is wrong with them, nothing is sold.

use std::rc::Rc;

use onsale_core::command::{Answer, Command, Request, decide};
use onsale_core::gateway::{IntentState, Observation};
use onsale_core::id::{SeatOrdinal, Seed};
use onsale_core::order::OrderStatus;
use onsale_core::reconcile::CaseKind;
use onsale_core::seat_map::SeatStatus;
use onsale_core::snapshot::Snapshot;
use onsale_core::time::Timestamp;

use crate::script::Page;
use crate::world::HALL;

const PAYING: [&str; 5] = [
    "hall A1 A2 A3 price 1000",
    "0s ben holds A3 as h2",
    "0s ada holds A1 A2 as h1",
    "1s ada pays h1 as o1",
    "1s o1 is referenced pi_1",
];

/// Whether a payment that succeeds sells its seats, on books that something has happened to.
fn sells(happened: impl FnOnce(&mut Page)) -> bool {
    let mut page = Page::default();
    PAYING.iter().for_each(|line| drop(page.tell(line)));
    let order = page.orders["o1"];
    let attempt = page.world.operations_of(order)[0].clone();
    happened(&mut page);
    let observation = Observation {
        reference: "pi_1".to_owned(),
        state: IntentState::Authorized,
        amount: attempt.amount,
        refunded_minor: 0,
        order: Some(order),
        operation: Some(attempt.id),
    };
    let at = Timestamp::from_millis(2_000);
    let command = Command::RecordAnswer { operation: attempt.id, answer: Answer::Observed(observation) };
    let request = Request { command, key: None, seed: Seed::new(HALL, at, 1 << 32) };
    let mut snapshot = Snapshot::new([&request], at);
    page.world.fill(&mut snapshot);
    let _ = decide(&mut snapshot, &request);
    let sold = snapshot.orders.get(&order).is_some_and(|order| order.status == OrderStatus::Confirmed);
    let seats = (0..3).filter_map(|seat| snapshot.seats.get(&(HALL, SeatOrdinal(seat))));
    let seats_sold = seats.filter(|seat| matches!(seat.status, SeatStatus::Sold { .. })).count();
    assert_eq!(seats_sold, if sold { 2 } else { 0 }, "all seats are sold, or none");
    let told = snapshot.cases.changes().any(|change| change.after.kind == CaseKind::LateSuccess);
    assert_ne!(sold, told, "whoever paid has the seats, or there is a case");
    sold
}

#[test]
fn nothing_is_sold_on_broken_books() {
    assert!(sells(|_| ()), "nothing is wrong");
    let second = (HALL, SeatOrdinal(1));
    let seat_is = |status| {
        sells(|page| Rc::make_mut(&mut page.world.seats).get_mut(&second).expect("a seat").status = status)
    };
    assert!(!seat_is(SeatStatus::Available), "a seat that nobody holds");
    assert!(!seat_is(SeatStatus::NotForSale), "a seat that isn't for sale");
    let of_ben = |page: &mut Page| {
        let (hold, expires_at) = (page.holds["h2"], Timestamp::from_millis(300_000));
        let seats = Rc::make_mut(&mut page.world.seats);
        seats.get_mut(&second).expect("a seat").status = SeatStatus::Held { hold, expires_at };
    };
    assert!(!sells(of_ben), "a seat that another holds");

    let hold = |changed: fn(&mut onsale_core::hold::Hold)| {
        sells(|page| {
            let id = page.holds["h1"];
            changed(Rc::make_mut(&mut page.world.holds).get_mut(&id).expect("a hold"));
        })
    };
    assert!(!hold(|hold| hold.price_version = 0), "a hold that was promised other prices");
    assert!(!hold(|hold| hold.seats.truncate(1)), "a hold of fewer seats than were ordered");

    let order = |changed: fn(&mut onsale_core::order::Order)| {
        sells(|page| {
            let id = page.orders["o1"];
            changed(Rc::make_mut(&mut page.world.orders).get_mut(&id).expect("an order"));
        })
    };
    assert!(!order(|order| order.total.amount_minor = 1_999), "a total that isn't what the seats cost");
    assert!(!order(|order| order.ticket_count = 1), "an order of fewer seats than are held");
}
