//! The frame of a sale: events, seats, prices, and whether it sells.

use std::sync::Arc;

use onsale_core::command::{Command, Outcome, Wish};
use onsale_core::event::EventStatus;
use onsale_core::id::EventNo;
use onsale_core::refusal::Refusal;

use crate::world::{HALL, START, World, ada, ben, draft, hall, manifest, ordinals, place_hold, policy};

fn set_on_sale(world: &World, status: EventStatus) -> Outcome {
    world.submit(Command::SetOnSale { event: HALL, status, actor: "key_1".to_owned() })
}

fn set_seats(world: &World, seats: &[u32], not_for_sale: bool, manifest_version: u32) -> Outcome {
    let (seats, actor) = (ordinals(seats), "key_1".to_owned());
    world.submit(Command::SetSeatsStatus { event: HALL, manifest_version, seats, not_for_sale, actor })
}

#[test]
fn an_event_is_made_laid_out_priced_and_opened() {
    let world = World::empty();
    let mut made = draft(HALL, policy());
    made.on_sale_at = Some(START.plus_ms(1_000));
    made.off_sale_at = Some(START.plus_ms(2_000));
    let create = || Command::CreateEvent(Box::new(made.clone()));
    assert_eq!(world.submit(create()), Outcome::EventCreated);
    assert!(matches!(world.submit(create()), Outcome::Refused(Refusal::NotReady(_))));
    let read = world.event();
    let mut expected = made.clone();
    (expected.version, expected.clock) = (1, START);
    assert_eq!(read, expected, "an event reads back as it was made");

    assert!(matches!(set_on_sale(&world, EventStatus::Open), Outcome::Refused(Refusal::NotReady(_))));
    for version in [1, 2] {
        let seats = Arc::new(manifest(10 * version));
        let outcome = world.submit(Command::ReplaceManifest { event: HALL, manifest: seats });
        assert_eq!(outcome, Outcome::ManifestReplaced { version });
    }
    assert_eq!(world.digits().len(), 20);
    assert!(matches!(set_on_sale(&world, EventStatus::Open), Outcome::Refused(Refusal::NotReady(_))));
    let price = |manifest_version, levels: &[(u16, i64)]| {
        world.submit(Command::SetPrices { event: HALL, manifest_version, levels: levels.to_vec() })
    };
    assert_eq!(price(1, &[(0, 100)]), Outcome::Refused(Refusal::ManifestChanged));
    assert_eq!(price(2, &[(2, 100)]), Outcome::Refused(Refusal::NotFound));
    assert_eq!(price(2, &[(0, 100)]), Outcome::PricesSet { price_version: 1 });
    assert_eq!(price(2, &[(1, 200)]), Outcome::PricesSet { price_version: 2 });
    let view = world.store.read(|db| db.manifest(HALL)).unwrap().expect("there is a manifest");
    assert_eq!((view.version, view.price_version, view.prices), (2, 2, vec![Some(100), Some(200)]));
    assert_eq!(set_on_sale(&world, EventStatus::Open), Outcome::OnSaleSet);
    let frozen = world.submit(Command::ReplaceManifest { event: HALL, manifest: Arc::new(manifest(1)) });
    assert_eq!(frozen, Outcome::Refused(Refusal::ManifestFrozen));

    let place = || {
        world.submit(Command::PlaceHold {
            event: HALL,
            manifest_version: 2,
            account: ada(),
            wish: Wish::of_seats(ordinals(&[0])),
            code: None,
        })
    };
    assert_eq!(place(), Outcome::Refused(Refusal::NotOnSale), "too early");
    world.pass_ms(1_000);
    assert!(matches!(place(), Outcome::HoldPlaced(_)));
    world.pass_ms(1_000);
    assert_eq!(place(), Outcome::Refused(Refusal::NotOnSale), "too late");
    world.finish();
}

#[test]
fn a_halted_sale_places_no_holds_and_goes_on_when_it_is_opened_again() {
    let world = hall(3, policy());
    let stale = Command::PlaceHold {
        event: HALL,
        manifest_version: 0,
        account: ada(),
        wish: Wish::of_seats(ordinals(&[0])),
        code: None,
    };
    assert_eq!(world.submit(stale), Outcome::Refused(Refusal::ManifestChanged));
    assert_eq!(world.place(&ada(), &[3]), Outcome::Refused(Refusal::NotFound));
    set_on_sale(&world, EventStatus::Paused);
    assert_eq!(world.place(&ada(), &[0]), Outcome::Refused(Refusal::EventPaused));
    set_on_sale(&world, EventStatus::Open);
    world.hold(&ada(), &[0]);
    set_on_sale(&world, EventStatus::Closed);
    assert_eq!(world.place(&ben(), &[1]), Outcome::Refused(Refusal::NotOnSale));
    assert!(matches!(set_on_sale(&world, EventStatus::Draft), Outcome::Refused(Refusal::NotReady(_))));
    assert_eq!(world.event().status, EventStatus::Closed);
    world.finish();
}

#[test]
fn seats_are_kept_from_sale_all_or_none() {
    let world = hall(5, policy());
    world.hold(&ada(), &[0]);
    let taken = Outcome::Refused(Refusal::SeatUnavailable(ordinals(&[0])));
    assert_eq!(set_seats(&world, &[0, 1], true, 1), taken);
    assert_eq!(set_seats(&world, &[1], true, 0), Outcome::Refused(Refusal::ManifestChanged));
    assert_eq!(set_seats(&world, &[9], true, 1), Outcome::Refused(Refusal::NotFound));
    assert_eq!(world.digits(), "10000");
    assert_eq!(set_seats(&world, &[1, 2], true, 1), Outcome::SeatsStatusSet);
    let version = world.event().version;
    assert_eq!(set_seats(&world, &[1, 2], true, 1), Outcome::SeatsStatusSet);
    assert_eq!(world.event().version, version, "again changes nothing");
    assert_eq!(world.digits(), "13300");
    let refused = Outcome::Refused(Refusal::SeatUnavailable(ordinals(&[2])));
    assert_eq!(world.place(&ben(), &[2, 3]), refused);
    assert_eq!(set_seats(&world, &[2], false, 1), Outcome::SeatsStatusSet);
    world.hold(&ben(), &[2, 3]);
    assert_eq!(world.digits(), "13110");
    world.finish();
}

#[test]
fn events_do_not_touch_each_other() {
    let world = hall(2, policy());
    world.add_event(EventNo(2), 3, policy());
    world.hold(&ada(), &[0]);
    let other = Command::PlaceHold {
        event: EventNo(2),
        manifest_version: 1,
        account: ada(),
        wish: Wish::of_seats(ordinals(&[0, 1, 2])),
        code: None,
    };
    let Outcome::HoldPlaced(placed) = world.submit(other) else { panic!("the other event sells too") };
    assert_eq!(placed.hold.event(), EventNo(2));
    assert_eq!(world.digits(), "10");
    let nowhere = Command::PlaceHold {
        event: EventNo(3),
        manifest_version: 1,
        account: ada(),
        wish: Wish::of_seats(ordinals(&[0])),
        code: None,
    };
    assert_eq!(world.submit(nowhere), Outcome::Refused(Refusal::NotFound));
    let versions = world.store.read(|db| db.event_versions()).unwrap();
    assert_eq!(versions, [(HALL, 5), (EventNo(2), 5)]);
    assert!(matches!(world.submit(place_hold(&ben(), &[1])), Outcome::HoldPlaced(_)));
    world.finish();
}
