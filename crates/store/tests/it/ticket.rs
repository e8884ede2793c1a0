//! Tickets and the gate through the real database: every row that a decision about them writes is read back by the next.

use std::sync::Arc;

use onsale_core::command::{Command, Outcome, Scanned, Showing, Wish};
use onsale_core::event::Policy;
use onsale_core::gateway::IntentState;
use onsale_core::id::{AreaNo, OperationId, OrderId, SeatOrdinal, Seed, TicketId};
use onsale_core::manifest::GaArea;
use onsale_core::payment::OperationKind;
use onsale_core::refund::RefundPart;
use onsale_core::refusal::Refusal;
use onsale_core::ticket::{Direction, Place, ScanResult, Ticket, TicketStatus};

use crate::world::{HALL, PRICES, World, ada, ben, draft, manifest, ordinals, policy};

/// Four seats, and a lawn for a hundred.
fn hall() -> World {
    let world = World::empty();
    let mut manifest = manifest(4);
    manifest.ga_areas =
        vec![GaArea { ga_area: "lawn".to_owned(), capacity: 100, price_level: 1, buckets: 2 }];
    let levels = (0..).zip(PRICES).collect();
    for command in [
        Command::CreateEvent(Box::new(draft(HALL, Policy { reentry: true, ..policy() }))),
        Command::ReplaceManifest { event: HALL, manifest: Arc::new(manifest) },
        Command::SetPrices { event: HALL, manifest_version: 1, levels },
        Command::SetOnSale {
            event: HALL,
            status: onsale_core::event::EventStatus::Open,
            actor: "test".to_owned(),
        },
    ] {
        let outcome = world.submit(command);
        assert!(!matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
    }
    world
}

/// Sells seats and places of the lawn to ada, up to the authorization.
fn authorized(world: &World, seats: &[u32], lawn: u32) -> (OrderId, OperationId) {
    let ga = if lawn > 0 { vec![(AreaNo(0), lawn)] } else { Vec::new() };
    let wish = Wish { seats: ordinals(seats), ga, best: None };
    let place = Command::PlaceHold { event: HALL, manifest_version: 1, account: ada(), wish, code: None };
    let Outcome::HoldPlaced(placed) = world.submit(place) else { panic!("there is room") };
    let reference = format!("pi_{}", placed.hold.id);
    let (order, attempt) = world.checkout_as(placed.hold.id, &ada(), &reference);
    world.observe(attempt, world.observed(order, attempt, &reference, IntentState::Authorized));
    (order, attempt)
}

/// The same, and its money is taken.
fn captured(world: &World, seats: &[u32], lawn: u32) -> OrderId {
    let (order, attempt) = authorized(world, seats, lawn);
    let capture = world.live(order, OperationKind::Capture).expect("it is sold").id;
    let reference = format!("pi_{}", world.order(order).order.hold);
    world.observe(capture, world.observed(order, attempt, &reference, IntentState::Captured));
    order
}

fn tickets(world: &World, order: OrderId) -> Vec<Ticket> {
    world.store.read(|db| db.tickets(order)).expect("tickets can be read")
}

fn due(world: &World) -> Vec<OrderId> {
    world.store.read(|db| db.orders_to_ticket(10)).expect("orders can be read")
}

fn showing(scan: &str, ticket: TicketId, generation: u16) -> Showing {
    Showing {
        scan: scan.into(),
        ticket,
        generation,
        at: None,
        direction: Direction::In,
        gate: "north".to_owned(),
        scanned_at: None,
        let_in_offline: false,
    }
}

#[track_caller]
fn scans(world: &World, showing: Showing, expected: ScanResult) -> Scanned {
    match world.submit(Command::ScanTicket(showing)) {
        Outcome::TicketScanned(scanned) => {
            assert_eq!(scanned.result, expected);
            scanned
        }
        other => panic!("a ticket is judged: {other:?}"),
    }
}

#[test]
fn an_order_is_due_until_it_has_its_tickets() {
    let world = hall();
    let (order, attempt) = authorized(&world, &[0, 2], 3);
    assert_eq!(due(&world), [], "the money is only set aside");
    assert_eq!(world.submit(Command::IssueTickets { order }), Outcome::TicketsNotDue);
    let capture = world.live(order, OperationKind::Capture).expect("it is sold").id;
    let reference = format!("pi_{}", world.order(order).order.hold);
    world.observe(capture, world.observed(order, attempt, &reference, IntentState::Captured));
    world.pass_ms(1_000);
    let later = captured(&world, &[1], 0);
    assert_eq!(due(&world), [order, later]);
    for _ in 0..2 {
        assert_eq!(world.submit(Command::IssueTickets { order }), Outcome::TicketsIssued);
        assert_eq!(due(&world), [later]);
    }
    let made = tickets(&world, order);
    let places: Vec<Place> = made.iter().map(|ticket| ticket.place).collect();
    let lawn = Place::Area(AreaNo(0));
    assert_eq!(places, [Place::Seat(SeatOrdinal(0)), Place::Seat(SeatOrdinal(2)), lawn, lawn, lawn]);
    assert!(made.iter().all(|ticket| ticket.generation == 1 && ticket.status == TicketStatus::Valid));
    assert!(world.order(order).order.ticketed && tickets(&world, later).is_empty());
    let nobody: OrderId = Seed::new(HALL, world.now(), 1).mint();
    assert_eq!(world.submit(Command::IssueTickets { order: nobody }), Outcome::Refused(Refusal::NotFound));
    assert_eq!(world.submit(Command::IssueTickets { order: later }), Outcome::TicketsIssued);
    world.finish();
}

#[test]
fn what_came_of_a_scan_is_what_the_next_one_sees() {
    let world = hall();
    let order = captured(&world, &[0, 1], 0);
    world.submit(Command::IssueTickets { order });
    let [one, two] = [0, 1].map(|at| tickets(&world, order)[at].id);
    let first = scans(&world, showing("s1", one, 1), ScanResult::Admit);
    assert_eq!(first.admitted, Some((world.now(), "north".to_owned())));
    world.pass_ms(5_000);
    assert_eq!(scans(&world, showing("s1", one, 1), ScanResult::Admit), first);
    assert_eq!(scans(&world, showing("s2", one, 1), ScanResult::AlreadyUsed).admitted, first.admitted);
    let other = Command::ScanTicket(showing("s2", two, 1));
    assert_eq!(world.submit(other), Outcome::Refused(Refusal::KeyReused));
    let out = |scan: &str| Showing { direction: Direction::Out, ..showing(scan, one, 1) };
    scans(&world, out("s3"), ScanResult::Exited);
    scans(&world, out("s4"), ScanResult::NotInside);
    assert_eq!(scans(&world, showing("s5", one, 1), ScanResult::Admit).admitted, first.admitted);

    let reissue = Command::ReissueTicket { ticket: two, generation: 1, actor: "key_1".to_owned() };
    for _ in 0..2 {
        assert_eq!(world.submit(reissue.clone()), Outcome::TicketReissued);
        assert_eq!(tickets(&world, order)[1].generation, 2);
    }
    scans(&world, showing("s6", two, 1), ScanResult::Revoked);
    scans(&world, showing("s7", two, 2), ScanResult::Admit);

    // A genuine barcode of a ticket that the books don't have: they were restored from an older copy.
    let lost: TicketId = Seed::new(HALL, world.now(), 7).mint();
    let offline = Showing { let_in_offline: true, ..showing("s8", lost, 1) };
    for _ in 0..2 {
        assert_eq!(scans(&world, offline.clone(), ScanResult::Invalid).place, None);
    }
    // Nothing but this changes in its transaction.
    let told_later = Showing { let_in_offline: true, ..showing("s2", one, 1) };
    for _ in 0..2 {
        scans(&world, told_later.clone(), ScanResult::AlreadyUsed);
    }
    let conflicts = world.store.read(|db| db.gate_conflicts(HALL, 10)).expect("they can be read");
    let mut told: Vec<_> = conflicts.iter().map(|found| (&*found.scan.id, found.place)).collect();
    told.sort_unstable();
    assert_eq!(told, [("s2", Some(Place::Seat(SeatOrdinal(0)))), ("s8", None)]);
    world.finish();
}

/// whoever asks for the money back doesn't come in with the ticket; whoever has the seat next does.
#[test]
fn a_ticket_goes_with_its_money() {
    let world = hall();
    let order = captured(&world, &[0, 1], 2);
    world.submit(Command::IssueTickets { order });
    let issued = tickets(&world, order);
    let before = revoked(&world, None).0;
    let refund = Command::BeginRefund {
        order,
        part: RefundPart::Places { seats: ordinals(&[0]), ga: vec![(AreaNo(0), 1)] },
        resell: true,
        reason: "ill".to_owned(),
        actor: "key_1".to_owned(),
    };
    let Outcome::RefundBegun(operation) = world.submit(refund.clone()) else { panic!("it is begun") };
    assert_eq!(statuses(&world, order), "SVVS");
    scans(&world, showing("s1", issued[0].id, 1), ScanResult::Revoked);
    scans(&world, showing("s2", issued[1].id, 1), ScanResult::Admit);
    let reissue = Command::ReissueTicket { ticket: issued[0].id, generation: 1, actor: "key_1".to_owned() };
    assert!(matches!(world.submit(reissue), Outcome::Refused(Refusal::ActionNotPossible(_))));
    let (suspended, changed) = revoked(&world, Some(before));
    let both = |status| vec![(issued[0].id, 1, status), (issued[3].id, 1, status)];
    assert_eq!(changed, both(TicketStatus::Suspended));

    // The provider will not: the ticket is good again, and a scanner hears of that, too.
    world.answer(operation, onsale_core::command::Answer::Refused("no".to_owned()));
    assert_eq!(statuses(&world, order), "VVVV");
    let (good_again, changed) = revoked(&world, Some(suspended));
    assert_eq!(changed, both(TicketStatus::Valid));
    assert_eq!(revoked(&world, None).1, []);

    let Outcome::RefundBegun(operation) = world.submit(refund) else { panic!("it is begun anew") };
    let paid = world.order(order).order.paid_by.expect("it is paid");
    let reference = format!("pi_{}", world.order(order).order.hold);
    let mut observed = world.observed(order, paid, &reference, IntentState::Captured);
    observed.refunded_minor = PRICES[0] + PRICES[1];
    world.observe(operation, observed);
    assert_eq!(statuses(&world, order), "RVVR");
    assert_eq!(revoked(&world, Some(good_again)).1, both(TicketStatus::Revoked));
    assert_eq!(revoked(&world, None).1, both(TicketStatus::Revoked));
    scans(&world, showing("s3", issued[0].id, 1), ScanResult::Revoked);

    // The seat's next ticket stands beside the one before.
    let (resold, attempt) = world.sell(&ben(), &[0], "pi_ben");
    let capture = world.live(resold, OperationKind::Capture).expect("it is sold").id;
    world.observe(capture, world.observed(resold, attempt, "pi_ben", IntentState::Captured));
    world.submit(Command::IssueTickets { order: resold });
    let next = tickets(&world, resold).remove(0);
    scans(&world, showing("s4", next.id, 1), ScanResult::Admit);
    scans(&world, showing("s5", issued[0].id, 1), ScanResult::Revoked);
    world.finish();
}

/// The status of each ticket of an order, by its first letter.
fn statuses(world: &World, order: OrderId) -> String {
    let letter = |ticket: &Ticket| match ticket.status {
        TicketStatus::Valid => 'V',
        TicketStatus::Suspended => 'S',
        TicketStatus::Revoked => 'R',
    };
    tickets(world, order).iter().map(letter).collect()
}

/// What a scanner is told, and the version to ask with next.
fn revoked(world: &World, since: Option<u64>) -> (u64, Vec<(TicketId, u16, TicketStatus)>) {
    let told = world.store.read(|db| db.revoked_tickets(HALL, since)).expect("they can be read");
    let told = told.expect("the event is here");
    assert_eq!(told.since, since);
    (told.version, told.tickets)
}
