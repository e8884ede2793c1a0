//! Standing areas, allocations, access codes and refunds as stored: what is decided is written whole, read back as it was, and
//! closes in every state.

use std::sync::Arc;

use onsale_core::access::AccessCode;
use onsale_core::command::{Command, Outcome, PlacedHold, Wish};
use onsale_core::event::Policy;
use onsale_core::ga::{Bucket, places};
use onsale_core::gateway::{IntentState, Observation};
use onsale_core::id::{AccountId, AllocationNo, AreaNo, BucketNo, OperationId, OrderId, TransferId};
use onsale_core::manifest::GaArea;
use onsale_core::order::OrderStatus;
use onsale_core::payment::{OperationKind, PaymentStatus};
use onsale_core::refund::RefundPart;
use onsale_core::refusal::Refusal;

use crate::world::{HALL, World, account, ada, ben, draft, manifest, ordinals, policy, priced};

const LAWN: AreaNo = AreaNo(0);
const PIT: AreaNo = AreaNo(1);

fn actor() -> String {
    "key_1".to_owned()
}

/// Ten seats, a lawn of 100 in 4 buckets, a pit of 20.
fn festival(policy: Policy) -> World {
    let world = World::empty();
    let mut manifest = manifest(10);
    let area = |name: &str, capacity, buckets| GaArea {
        ga_area: name.to_owned(),
        capacity,
        price_level: 1,
        buckets,
    };
    manifest.ga_areas = vec![area("lawn", 100, 4), area("pit", 20, 1)];
    for command in [
        Command::CreateEvent(Box::new(draft(HALL, policy))),
        Command::ReplaceManifest { event: HALL, manifest: Arc::new(manifest) },
        priced(HALL),
        Command::SetOnSale { event: HALL, status: onsale_core::event::EventStatus::Open, actor: actor() },
    ] {
        let outcome = world.submit(command);
        assert!(!matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
    }
    world
}

fn wish(account: &AccountId, seats: &[u32], ga: &[(AreaNo, u32)], code: Option<&str>) -> Command {
    Command::PlaceHold {
        event: HALL,
        manifest_version: 1,
        account: account.clone(),
        wish: Wish { seats: ordinals(seats), ga: ga.to_vec(), best: None },
        code: code.map(Into::into),
    }
}

fn placed(outcome: Outcome) -> PlacedHold {
    match outcome {
        Outcome::HoldPlaced(placed) => placed,
        other => panic!("it is not held: {other:?}"),
    }
}

fn buckets(world: &World) -> Vec<Bucket> {
    world.store.read(|db| db.buckets(HALL)).expect("buckets can be read").0
}

/// Capacity, held and sold of an area, over its buckets.
fn counts(world: &World, area: AreaNo) -> (u32, u32, u32) {
    let of_area = buckets(world).into_iter().filter(|bucket| bucket.area == area);
    of_area.fold((0, 0, 0), |(capacity, held, sold), bucket| {
        (capacity + bucket.capacity, held + bucket.held, sold + bucket.sold)
    })
}

fn captured(world: &World, placed: &PlacedHold, name: &str) -> (OrderId, OperationId) {
    let (order, attempt) = world.checkout_as(placed.hold.id, &placed.hold.account, name);
    world.observe(attempt, world.observed(order, attempt, name, IntentState::Authorized));
    let capture = world.live(order, OperationKind::Capture).expect("it is sold").id;
    world.observe(capture, world.observed(order, attempt, name, IntentState::Captured));
    (order, attempt)
}

fn refund(world: &World, order: OrderId, part: RefundPart, resell: bool) -> Outcome {
    world.submit(Command::BeginRefund { order, part, resell, reason: "asked".to_owned(), actor: actor() })
}

/// The provider says how much has been given back altogether.
fn refunded(world: &World, order: OrderId, attempt: OperationId, name: &str, refunded_minor: i64) {
    let seen = world.observed(order, attempt, name, IntentState::Captured);
    let refund = world.live(order, OperationKind::Refund).expect("a refund is open").id;
    world.observe(refund, Observation { refunded_minor, ..seen });
}

#[test]
fn seats_and_places_are_held_together_or_not_at_all() {
    let world = festival(policy());
    let held = placed(world.submit(wish(&ada(), &[0, 1], &[(LAWN, 3), (PIT, 1)], None)));
    assert_eq!(places(&held.hold.ga), 4);
    let view = world.hold_view(held.hold.id);
    assert_eq!((view.hold.clone(), view.ga.clone()), (held.hold.clone(), held.ga.clone()));
    assert_eq!((counts(&world, LAWN), counts(&world, PIT)), ((100, 3, 0), (20, 1, 0)));

    let refused = world.submit(wish(&ben(), &[1], &[(LAWN, 3)], None));
    assert_eq!(refused, Outcome::Refused(Refusal::SeatUnavailable(ordinals(&[1]))));
    let (order, attempt) = world.checkout_as(held.hold.id, &ada(), "pi_1");
    world.observe(attempt, world.observed(order, attempt, "pi_1", IntentState::Authorized));
    assert_eq!((counts(&world, LAWN), counts(&world, PIT)), ((100, 0, 3), (20, 0, 1)));
    assert_eq!(world.order(order).order.ticket_count, 6);
    world.finish();
}

#[test]
fn an_area_is_sold_to_its_last_place_and_no_further() {
    let world = festival(Policy { seats_per_hold_max: 30, tickets_per_account_max: 60, ..policy() });
    // Larger than any bucket has: a hold may be taken from several.
    for (no, quantity) in [(0, 30), (1, 30), (2, 30), (3, 9)] {
        placed(world.submit(wish(&account(&format!("a{no}")), &[], &[(LAWN, quantity)], None)));
    }
    let too_many = world.submit(wish(&ada(), &[], &[(LAWN, 2)], None));
    assert_eq!(too_many, Outcome::Refused(Refusal::NotEnoughAvailable { area: Some(LAWN) }));
    placed(world.submit(wish(&ada(), &[], &[(LAWN, 1)], None)));
    assert!(buckets(&world).iter().filter(|bucket| bucket.area == LAWN).all(|bucket| bucket.free() == 0));
    world.finish();
}

/// correctness and supply don't wait for a timer.
#[test]
fn places_of_holds_that_are_over_are_the_next_buyers() {
    let world = festival(Policy { seats_per_hold_max: 20, tickets_per_account_max: 40, ..policy() });
    placed(world.submit(wish(&ada(), &[], &[(PIT, 20)], None)));
    world.pass_ms(policy().hold_ttl_ms - 1);
    let early = world.submit(wish(&ben(), &[], &[(PIT, 20)], None));
    assert_eq!(early, Outcome::Refused(Refusal::NotEnoughAvailable { area: Some(PIT) }));
    world.pass_ms(1);
    placed(world.submit(wish(&ben(), &[], &[(PIT, 20)], None)));
    assert_eq!(counts(&world, PIT), (20, 20, 0));
    world.finish();
}

#[test]
fn the_cap_counts_the_places_of_all_areas() {
    let world = festival(Policy { ga_max: Some(10), ..policy() });
    placed(world.submit(wish(&ada(), &[], &[(LAWN, 6)], None)));
    let over = world.submit(wish(&ben(), &[], &[(PIT, 5)], None));
    assert_eq!(over, Outcome::Refused(Refusal::NotEnoughAvailable { area: None }));
    placed(world.submit(wish(&ben(), &[5], &[(PIT, 4)], None)));
    assert_eq!(world.event().ga_in_use, 10);
    world.finish();
}

/// in every state that is committed the sum is the area's capacity.
#[test]
fn capacity_on_its_way_counts_until_it_arrives_or_comes_back() {
    let world = festival(policy());
    let begin = |from, to, quantity| {
        let (from, to) = (BucketNo(from), BucketNo(to));
        Command::BeginTransfer { event: HALL, area: LAWN, from, to, quantity, actor: actor() }
    };
    let transfer = |command| -> TransferId {
        match world.submit(command) {
            Outcome::TransferBegun(transfer) => transfer,
            other => panic!("{other:?}"),
        }
    };
    let first = transfer(begin(0, 1, 25));
    assert_eq!((counts(&world, LAWN), world.store.audit(world.now()).unwrap().violations()), ((75, 0, 0), 0));
    let refused = world.submit(begin(0, 1, 1));
    assert_eq!(refused, Outcome::Refused(Refusal::NotEnoughAvailable { area: Some(LAWN) }));
    let second = transfer(begin(2, 3, 10));
    let in_flight = world.store.read(|db| db.transfers_in_flight(10)).unwrap();
    assert_eq!(in_flight, [first, second]);
    for (transfer, arrives) in [(first, true), (first, true), (first, false), (second, false), (second, true)]
    {
        assert_eq!(world.submit(Command::EndTransfer { transfer, arrives }), Outcome::TransferEnded);
    }
    let capacities: Vec<u32> =
        buckets(&world).iter().filter(|bucket| bucket.area == LAWN).map(|bucket| bucket.capacity).collect();
    assert_eq!(capacities, [0, 50, 25, 25], "each has ended once");
    world.finish();
}

#[test]
fn an_area_takes_more_people_or_fewer_but_never_too_few() {
    let world = festival(policy());
    placed(world.submit(wish(&ada(), &[], &[(PIT, 5)], None)));
    let set =
        |capacity| world.submit(Command::SetCapacity { event: HALL, area: PIT, capacity, actor: actor() });
    assert_eq!(set(4), Outcome::Refused(Refusal::NotEnoughAvailable { area: Some(PIT) }));
    assert_eq!((set(5), counts(&world, PIT)), (Outcome::CapacitySet, (5, 5, 0)));
    assert_eq!((set(1_000_000), counts(&world, PIT)), (Outcome::CapacitySet, (1_000_000, 5, 0)));
    world.finish();
}

fn code(world: &World, code: &str, allocation: Option<AllocationNo>, tickets_max: u32) {
    let code = AccessCode {
        code: code.into(),
        allocation,
        presale: false,
        tickets_max,
        tickets_in_use: 0,
        valid_from: None,
        valid_until: None,
        revoked_at: None,
        created_at: world.now(),
    };
    let set = Command::SetAccessCode { event: HALL, code, actor: actor() };
    assert_eq!(world.submit(set), Outcome::AccessCodeSet);
}

fn in_use(world: &World, code: &str) -> u32 {
    let code = world.store.read(|db| db.access_code(HALL, code)).expect("a code can be read");
    code.expect("the code exists").tickets_in_use
}

/// Seats 0 and 1 and a bucket of 10 places on the lawn are set aside for sponsors, whose code is good for 4.
fn set_aside(world: &World) -> AllocationNo {
    let make = Command::MakeAllocation { event: HALL, name: "sponsors".to_owned(), actor: actor() };
    let Outcome::AllocationMade(sponsors) = world.submit(make) else { panic!("it can be made") };
    let allocation = Some(sponsors);
    let seats = ordinals(&[0, 1]);
    let aside =
        Command::SetSeatsAside { event: HALL, manifest_version: 1, seats, allocation, actor: actor() };
    assert_eq!(world.submit(aside), Outcome::SeatsSetAside);
    let bucket = Command::AddBucket { event: HALL, area: LAWN, allocation, actor: actor() };
    assert_eq!(world.submit(bucket), Outcome::BucketAdded(BucketNo(4)));
    let (from, to, quantity) = (BucketNo(0), BucketNo(4), 10);
    let begin = Command::BeginTransfer { event: HALL, area: LAWN, from, to, quantity, actor: actor() };
    let Outcome::TransferBegun(transfer) = world.submit(begin) else { panic!("there is room") };
    world.submit(Command::EndTransfer { transfer, arrives: true });
    code(world, "SPONSOR", allocation, 4);
    sponsors
}

#[test]
fn what_is_set_aside_opens_with_its_code_alone() {
    let world = festival(policy());
    set_aside(&world);
    assert_eq!(world.digits(), "3300000000", "it isn't for sale to all");
    for code in [None, Some("NOBODY")] {
        let refused = world.submit(wish(&ada(), &[0], &[], code));
        let expected = match code {
            None => Refusal::SeatUnavailable(ordinals(&[0])),
            Some(_) => Refusal::AccessCodeInvalid("there is no such code"),
        };
        assert_eq!(refused, Outcome::Refused(expected));
    }
    let held = placed(world.submit(wish(&ada(), &[0, 1], &[(LAWN, 1)], Some("SPONSOR"))));
    assert_eq!((world.digits().as_str(), in_use(&world, "SPONSOR")), ("1100000000", 3));
    let aside = buckets(&world).into_iter().find(|bucket| bucket.allocation.is_some()).unwrap();
    assert_eq!((aside.capacity, aside.held), (10, 1), "a party's places come from the party's bucket");
    let over = world.submit(wish(&ben(), &[5, 6], &[], Some("SPONSOR")));
    assert_eq!(over, Outcome::Refused(Refusal::AccessCodeExhausted { limit: 4, in_use: 3 }));
    world.submit(Command::ReleaseHold { hold: held.hold.id, account: Some(ada()) });
    assert_eq!((world.digits().as_str(), in_use(&world, "SPONSOR")), ("3300000000", 0));

    let held = placed(world.submit(wish(&ada(), &[0], &[], Some("SPONSOR"))));
    let (order, attempt) = captured(&world, &held, "pi_1");
    assert!(matches!(refund(&world, order, RefundPart::Rest, true), Outcome::RefundBegun(_)));
    let total = held.hold.total_minor;
    refunded(&world, order, attempt, "pi_1", total);
    assert_eq!((world.digits().as_str(), in_use(&world, "SPONSOR")), ("3300000000", 0), "back to the party");
    world.finish();
}

/// Two stores on one database are two processes.
#[test]
fn a_code_is_counted_by_all_processes_together() {
    let world = festival(Policy { tickets_per_account_max: 100, ..policy() });
    code(&world, "FOUR", None, 4);
    let other = world.another_store();
    let mut granted = 0;
    for turn in 0..8 {
        let request = world.request(wish(&account(&format!("a{turn}")), &[], &[(LAWN, 1)], Some("FOUR")));
        let store = if turn % 2 == 0 { &*world.store } else { &other };
        granted +=
            u32::from(matches!(store.submit_blocking(request).unwrap().outcome, Outcome::HoldPlaced(_)));
    }
    assert_eq!((granted, in_use(&world, "FOUR")), (4, 4));
    other.close();
    world.finish();
}

#[test]
fn part_of_an_order_is_refunded_and_then_the_rest() {
    let world = festival(policy());
    let held = placed(world.submit(wish(&ada(), &[2, 3], &[(LAWN, 3)], None)));
    let (order, attempt) = captured(&world, &held, "pi_1");
    let price = |seat: usize| held.seats[seat].2;
    let (lawn, total) = (held.ga[0].3, held.hold.total_minor);
    let part = RefundPart::Places { seats: ordinals(&[2]), ga: vec![(LAWN, 2)] };
    let first = price(0) + 2 * lawn;
    assert!(matches!(refund(&world, order, part.clone(), true), Outcome::RefundBegun(_)));
    assert_eq!(world.order(order).order.payment_status, PaymentStatus::RefundPending);
    assert_eq!(
        (&world.digits()[2..4], counts(&world, LAWN)),
        ("22", (100, 0, 3)),
        "the provider comes first"
    );
    assert_eq!(refund(&world, order, RefundPart::Rest, true), Outcome::Refused(Refusal::RefundPending));
    refunded(&world, order, attempt, "pi_1", first - 1);
    assert_eq!(
        world.order(order).order.payment_status,
        PaymentStatus::RefundPending,
        "not all of it is back"
    );
    refunded(&world, order, attempt, "pi_1", first);
    let view = world.order(order);
    assert_eq!(
        (view.order.status, view.order.payment_status),
        (OrderStatus::Confirmed, PaymentStatus::Captured)
    );
    assert_eq!((view.order.ticket_count, view.refunded_minor), (2, first));
    assert_eq!((&world.digits()[2..4], counts(&world, LAWN)), ("02", (100, 0, 1)));

    let again = refund(&world, order, part, true);
    assert!(matches!(again, Outcome::Refused(Refusal::NotRefundable(_))), "{again:?}");
    let left_minor = total - first;
    let more = refund(&world, order, RefundPart::Amount(left_minor + 1), true);
    assert_eq!(more, Outcome::Refused(Refusal::RefundTooLarge { left_minor }));
    assert!(matches!(refund(&world, order, RefundPart::Amount(1), true), Outcome::RefundBegun(_)));
    refunded(&world, order, attempt, "pi_1", first + 1);
    assert_eq!(&world.digits()[2..4], "02", "money alone frees nothing");
    // The rest, not to be sold again.
    assert!(matches!(refund(&world, order, RefundPart::Rest, false), Outcome::RefundBegun(_)));
    refunded(&world, order, attempt, "pi_1", total);
    let view = world.order(order);
    assert_eq!(
        (view.order.status, view.order.payment_status),
        (OrderStatus::Cancelled, PaymentStatus::Refunded)
    );
    assert_eq!((&world.digits()[2..4], counts(&world, LAWN)), ("03", (99, 0, 0)), "the area is smaller");
    assert_eq!(
        refund(&world, order, RefundPart::Rest, false),
        Outcome::Refused(Refusal::NotRefundable("all of it has been refunded"))
    );
    let kept = world.store.read(|db| db.refunds(order)).expect("refunds can be read");
    assert_eq!(kept.iter().map(|view| view.amount_minor).sum::<i64>(), total);
    // Who has given back may buy again, and others may have the seat.
    placed(world.submit(wish(&ben(), &[2], &[], None)));
    placed(world.submit(wish(&ada(), &[4, 5, 6, 7, 8], &[], None)));
    world.finish();
}

#[test]
fn what_is_not_paid_for_is_not_refunded() {
    let world = festival(policy());
    let held = placed(world.submit(wish(&ada(), &[2], &[], None)));
    let (order, attempt) = world.checkout_as(held.hold.id, &ada(), "pi_1");
    let refused = refund(&world, order, RefundPart::Rest, true);
    assert!(matches!(refused, Outcome::Refused(Refusal::NotRefundable(_))), "{refused:?}");
    world.observe(attempt, world.observed(order, attempt, "pi_1", IntentState::Authorized));
    let refused = refund(&world, order, RefundPart::Rest, true);
    assert!(matches!(refused, Outcome::Refused(Refusal::NotRefundable(_))), "not taken yet: {refused:?}");
    let nobody = OrderId(order.0 + 1);
    assert_eq!(refund(&world, nobody, RefundPart::Rest, true), Outcome::Refused(Refusal::NotFound));
    world.finish();
}

/// A festival with something of everything: ada has given seat 2 and a place on the lawn back and keeps the rest, ben holds
/// seat 0 and places with the sponsors' code, and capacity is on its way.
#[allow(dead_code, reason = "the audit's own tests are of the file alone")]
pub(crate) fn busy() -> (World, OrderId) {
    let world = festival(policy());
    set_aside(&world);
    let held = placed(world.submit(wish(&ada(), &[2, 3], &[(LAWN, 3)], None)));
    let (order, attempt) = captured(&world, &held, "pi_1");
    let part = RefundPart::Places { seats: ordinals(&[2]), ga: vec![(LAWN, 1)] };
    assert!(matches!(refund(&world, order, part, true), Outcome::RefundBegun(_)));
    refunded(&world, order, attempt, "pi_1", held.seats[0].2 + held.ga[0].3);
    placed(world.submit(wish(&ben(), &[0], &[(LAWN, 2)], Some("SPONSOR"))));
    let (from, to, quantity) = (BucketNo(1), BucketNo(2), 5);
    let begin = Command::BeginTransfer { event: HALL, area: LAWN, from, to, quantity, actor: actor() };
    assert!(matches!(world.submit(begin), Outcome::TransferBegun(_)));
    (world, order)
}
