//! The writer: commits in groups, a bounded queue, and what it says when the database doesn't serve.

use std::sync::Arc;
use std::time::{Duration, Instant};

use onsale_core::command::{Command, Outcome, Wish};
use onsale_core::event::EventStatus;
use onsale_core::id::{EventNo, HoldId};
use onsale_core::idempotency::RequestKey;
use onsale_core::refusal::Refusal;
use onsale_store::{BATCH_COMMANDS_MAX, QUEUE_MAX, SubmitError, WriterFigures};

use crate::ON_POSTGRES;
use crate::world::{
    PRICES, World, account, ada, ask, ben, draft, hall, manifest, ordinals, place_hold, policy, wait_until,
};

fn read(figures: WriterFigures) -> (u64, u64) {
    (figures.batches, figures.commands)
}

/// Something to decide that needs almost nothing.
fn trifle(world: &World) -> onsale_core::command::Request {
    world.request(Command::ExpireHold { hold: HoldId(1) })
}

#[test]
fn requests_that_wait_are_committed_together_and_answered_when_they_are_durable() {
    let world = hall(2_000, policy());
    let before = read(world.store.figures());
    let lock = world.lock();
    let place = |seat: u32| world.request(place_hold(&account(&format!("acc_{seat}")), &[seat]));
    let mut asked: Vec<_> = (0..2_000).map(|seat| ask(&world.store, place(seat), None)).collect();
    assert!(asked.iter_mut().all(|asked| asked.poll().is_none()));
    drop(lock);

    let looking = world.another_store();
    for asked in asked {
        let Outcome::HoldPlaced(placed) = asked.outcome() else { panic!("every seat is free") };
        let stored = looking.read(|db| db.hold(placed.hold.id)).expect("it can be asked");
        assert!(stored.is_some(), "answered before it was durable");
    }
    let after = read(world.store.figures());
    assert_eq!(after.1 - before.1, 2_000);
    assert!(after.0 - before.0 < 200, "{} batches for 2,000 commands", after.0 - before.0);
    world.finish();
}

#[test]
fn a_full_queue_turns_requests_away_and_keeps_those_it_took() {
    let world = hall(1, policy());
    let lock = world.lock();
    let mut taken = Vec::new();
    let turned_away = loop {
        let mut asked = ask(&world.store, trifle(&world), None);
        match asked.poll() {
            None => taken.push(asked),
            Some(answer) => break answer.clone(),
        }
    };
    assert_eq!(turned_away, Err(SubmitError::Overloaded));
    // The writer has taken out what it is trying to begin.
    assert!((QUEUE_MAX..=QUEUE_MAX + BATCH_COMMANDS_MAX).contains(&taken.len()), "{}", taken.len());
    assert_eq!(world.store.queue_depth(), QUEUE_MAX);
    drop(lock);
    for asked in taken {
        assert_eq!(asked.outcome(), Outcome::Refused(Refusal::NotFound));
    }
    assert!(matches!(world.place(&ada(), &[0]), Outcome::HoldPlaced(_)));
    world.finish();
}

/// A caller whose deadline has passed has been told "not done": so it must not be.
#[test]
fn a_deadline_that_passes_while_it_waits_leaves_nothing_behind() {
    let world = hall(3, policy());
    let version = world.event().version;
    let request = |seat| world.request(place_hold(&ada(), &[seat]));
    let lock = world.lock();
    let soon = Instant::now() + Duration::from_millis(20);
    // The writer takes the first and waits for the lock with it; the second waits in the line.
    let at_the_lock = ask(&world.store, request(0), Some(soon));
    wait_until("the writer is at it", || world.store.queue_depth() == 0);
    let in_line = ask(&world.store, request(1), Some(soon));
    wait_until("the deadline has passed", || Instant::now() > soon);
    drop(lock);
    assert_eq!(at_the_lock.answer(), Err(SubmitError::Expired));
    assert_eq!(in_line.answer(), Err(SubmitError::Expired));
    assert_eq!((world.digits().as_str(), world.event().version), ("000", version));
    assert_eq!(world.store.figures().expired, 2);
    let in_time = ask(&world.store, request(2), Some(Instant::now() + Duration::from_secs(600)));
    assert!(matches!(in_time.outcome(), Outcome::HoldPlaced(_)));
    world.finish();
}

/// What one asked for is done whether or not anyone still waits for the answer.
#[test]
fn a_caller_who_has_gone_changes_nothing_about_the_decision() {
    let world = hall(1, policy());
    let lock = world.lock();
    drop(ask(&world.store, world.request(place_hold(&ada(), &[0])), None));
    let next = ask(&world.store, world.request(place_hold(&ben(), &[0])), None);
    drop(lock);
    assert_eq!(next.outcome(), Outcome::Refused(Refusal::SeatUnavailable(ordinals(&[0]))));
    world.finish();
}

/// The time of a decision is read when the lock is held, not when the request came.
#[test]
fn a_decision_is_made_at_the_time_at_which_its_lock_is_held() {
    let world = hall(1, policy());
    world.hold(&ada(), &[0]);
    world.pass_ms(policy().hold_ttl_ms - 1);
    let lock = world.lock();
    let asked = ask(&world.store, world.request(place_hold(&ben(), &[0])), None);
    wait_until("the writer is at it", || world.store.queue_depth() == 0);
    world.pass_ms(1);
    drop(lock);
    let Outcome::HoldPlaced(placed) = asked.outcome() else { panic!("the old hold is over by now") };
    assert_eq!(placed.hold.created_at, world.now());
    world.finish();
}

#[test]
fn one_broken_row_does_not_take_the_other_commands_down() {
    let world = hall(4, policy());
    let db = world.raw();
    let lax = if ON_POSTGRES {
        "ALTER TABLE seats DROP CONSTRAINT seats_status_check"
    } else {
        "PRAGMA ignore_check_constraints = ON"
    };
    db.execute(lax);
    db.execute("UPDATE seats SET status = 9 WHERE ordinal = 1");
    let lock = world.lock();
    let place =
        |who: &str, seats: &[u32]| ask(&world.store, world.request(place_hold(&account(who), seats)), None);
    let (first, broken, last) = (place("a", &[0]), place("b", &[1]), place("c", &[2]));
    drop(lock);
    assert!(matches!(first.outcome(), Outcome::HoldPlaced(_)));
    assert!(matches!(broken.answer(), Err(SubmitError::Unavailable(_))));
    assert!(matches!(last.outcome(), Outcome::HoldPlaced(_)));
    db.execute("UPDATE seats SET status = 0 WHERE ordinal = 1");
    assert_eq!(world.digits(), "1010");
    world.finish();
}

/// Commands of one batch are decided as if each had been alone, also around a manifest that is replaced.
#[test]
fn a_batch_decides_like_its_commands_one_after_the_other() {
    let world = hall(1, policy());
    let no = EventNo(2);
    let layout = |seats| Command::ReplaceManifest { event: no, manifest: Arc::new(manifest(seats)) };
    world.submit(Command::CreateEvent(Box::new(draft(no, policy()))));
    world.submit(layout(4));
    let keep = |manifest_version, seat| {
        let (seats, actor) = (ordinals(&[seat]), "key_1".to_owned());
        Command::SetSeatsStatus { event: no, manifest_version, seats, not_for_sale: true, actor }
    };
    let hold = |seats: &[u32]| Command::PlaceHold {
        event: no,
        manifest_version: 2,
        account: ada(),
        wish: Wish::of_seats(ordinals(seats)),
        code: None,
    };
    let set = Command::SetOnSale { event: no, status: EventStatus::Open, actor: "key_1".to_owned() };
    let levels = (0..).zip(PRICES).collect();
    let commands = [
        keep(1, 0),
        layout(6),
        keep(1, 1),
        keep(2, 5),
        Command::SetPrices { event: no, manifest_version: 2, levels },
        set,
        hold(&[0, 4]),
        hold(&[4, 5]),
    ];
    let lock = world.lock();
    let asked: Vec<_> =
        commands.map(|command| ask(&world.store, world.request(command), None)).into_iter().collect();
    drop(lock);
    let outcomes: Vec<Outcome> = asked.into_iter().map(|asked| asked.outcome()).collect();
    let Outcome::HoldPlaced(placed) = &outcomes[6] else { panic!("{outcomes:?}") };
    assert_eq!(placed.hold.total_minor, PRICES[0] * 2);
    assert_eq!(
        outcomes[..6],
        [
            Outcome::SeatsStatusSet,
            Outcome::ManifestReplaced { version: 2 },
            Outcome::Refused(Refusal::ManifestChanged),
            Outcome::SeatsStatusSet,
            Outcome::PricesSet { price_version: 1 },
            Outcome::OnSaleSet,
        ]
    );
    assert_eq!(outcomes[7], Outcome::Refused(Refusal::SeatUnavailable(ordinals(&[4, 5]))));
    let seats = world.store.read(|db| db.seat_digits(no)).unwrap().expect("the event exists");
    assert_eq!(seats.digits, b"100013");
    world.finish();
}

#[test]
fn a_key_is_one_within_a_batch_and_whatever_the_event() {
    let world = hall(2, policy());
    world.add_event(EventNo(2), 2, policy());
    let keyed = |command| onsale_core::command::Request {
        key: Some(RequestKey { id: 5, digest: 5 }),
        ..world.request(command)
    };
    let other = Command::PlaceHold {
        event: EventNo(2),
        manifest_version: 1,
        account: ada(),
        wish: Wish::of_seats(ordinals(&[0])),
        code: None,
    };
    let lock = world.lock();
    let first = ask(&world.store, keyed(place_hold(&ada(), &[0])), None);
    let same = ask(&world.store, keyed(place_hold(&ada(), &[0])), None);
    let elsewhere = ask(&world.store, keyed(other), None);
    drop(lock);
    let all = [first, same, elsewhere].map(|asked| asked.answer().unwrap());
    // The digest is the same, so it is the same request. On a server each event has a queue of its own: either may be first.
    assert_eq!(all.iter().filter(|decision| !decision.replayed).count(), 1, "{all:?}");
    assert!(ON_POSTGRES || !all[0].replayed, "{all:?}");
    assert!(all.iter().all(|decision| decision.outcome == all[0].outcome), "{all:?}");
    assert_eq!(world.raw().number("SELECT count(*) FROM holds"), 1);
    world.finish();
}

#[test]
fn closing_answers_everyone_who_waits_and_nobody_after() {
    let world = hall(60, policy());
    let lock = world.lock();
    let place = |seat: u32| world.request(place_hold(&account(&format!("acc_{seat}")), &[seat]));
    let asked: Vec<_> = (0..50).map(|seat| ask(&world.store, place(seat), None)).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| world.store.close());
        drop(lock);
        for asked in asked {
            assert!(matches!(asked.outcome(), Outcome::HoldPlaced(_)));
        }
    });
    let late = ask(&world.store, place(50), None).answer();
    assert!(matches!(&late, Err(SubmitError::Unavailable(why)) if why.contains("shutting down")), "{late:?}");
    assert_eq!(world.digits().matches('1').count(), 50);
    world.store.close();
    world.finish();
}
