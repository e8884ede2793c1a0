//! What only a file can have: its one lock, its length, its WAL.

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use onsale_core::command::{Command, Outcome};
use onsale_core::id::EventNo;
use onsale_core::idempotency::RequestKey;
use onsale_store::{CHECKPOINT_PAGES, Options, Store, SubmitError};

use crate::world::{
    HALL, TestClock, World, account, ada, ask, draft, hall, manifest, place_hold, policy, wait_until,
};

#[test]
fn a_lock_that_does_not_come_fails_a_whole_batch_at_once_and_service_goes_on() {
    let mut world = hall(100, policy());
    world.reopen(Options { busy_timeout: Duration::from_millis(20), ..world.options() });
    let version = world.event().version;
    let lock = world.lock();
    let place = |seat: u32| world.request(place_hold(&account(&format!("acc_{seat}")), &[seat]));
    let asked: Vec<_> = (0..100).map(|seat| ask(&world.store, place(seat), None)).collect();
    for asked in asked {
        let answer = asked.answer();
        assert!(
            matches!(&answer, Err(SubmitError::Unavailable(why)) if why.contains("locked")),
            "{answer:?}"
        );
    }
    // One wait for the one the writer took first, and one for all others: not one for each.
    let failed = world.store.figures().failed;
    assert!(failed <= 3, "the lock was waited for {failed} times");
    assert_eq!(world.event().version, version);
    drop(lock);
    world.hold(&ada(), &[0]);
    world.finish();
}

/// A bound on the file's size behaves like a full disk.
#[test]
fn a_full_disk_loses_nothing_and_service_resumes_with_room() {
    let mut world = hall(3_000, policy());
    let pages = world.raw().number("PRAGMA page_count") as u32;
    world.reopen(Options { pages_max: Some(pages + 2), ..world.options() });
    let place = |world: &World, seat: u32| {
        let request = world.request(place_hold(&account(&format!("acc_{seat}")), &[seat]));
        let key = Some(RequestKey { id: u128::from(seat) + 1, digest: 1 });
        world.store.submit_blocking(onsale_core::command::Request { key, ..request })
    };
    let mut acknowledged = 0;
    let refused = loop {
        match place(&world, acknowledged) {
            Ok(_) => acknowledged += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(&refused, SubmitError::Unavailable(why) if why.contains("full")), "{refused:?}");
    assert!(place(&world, acknowledged).is_err(), "it stays full");
    assert_eq!(world.raw().number("SELECT count(*) FROM holds"), i64::from(acknowledged));
    let held = world.digits().bytes().filter(|digit| *digit == b'1').count();
    assert_eq!(held, acknowledged as usize, "reading goes on");

    world.reopen(world.options());
    let decision = place(&world, acknowledged).expect("there is room again");
    assert!(matches!(decision.outcome, Outcome::HoldPlaced(_)) && !decision.replayed, "{decision:?}");
    assert!(place(&world, 0).expect("there is room again").replayed);
    world.finish();
}

/// The WAL is copied into the database and begins anew, so that it doesn't grow with the sale.
#[test]
fn the_wal_begins_anew_when_it_has_grown() {
    let world = hall(1, policy());
    let db = world.db();
    let frames = || -> i64 { db.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| row.get(1)).unwrap() };
    let no = EventNo(2);
    world.submit(Command::CreateEvent(Box::new(draft(no, policy()))));
    let layout = Arc::new(manifest(20_000));
    let mut highest = frames();
    wait_until("the WAL has begun anew", || {
        world.submit(Command::ReplaceManifest { event: no, manifest: Arc::clone(&layout) });
        let now = frames();
        let is_anew = now < highest;
        highest = highest.max(now);
        is_anew
    });
    assert!(highest >= i64::from(CHECKPOINT_PAGES), "{highest} pages: too few to begin anew");
    assert!(frames() < i64::from(CHECKPOINT_PAGES));
    assert_eq!(world.event().no(), HALL);
    world.finish();
}

/// The engine itself doesn't wait for another that turns the WAL on at the same instant.
#[test]
fn programs_that_start_at_once_make_one_database() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (clock, start) = (TestClock::new(), Barrier::new(16));
    for round in 0..10 {
        let path = folder.path().join(round.to_string());
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    start.wait();
                    let store = Store::open(Options::new(path.clone(), clock.clone()), |_| ());
                    store.expect("the database opens").read(|db| db.events()).expect("it can be read")
                });
            }
        });
        let db = rusqlite::Connection::open(path.join("onsale.db")).unwrap();
        let text = "SELECT count(*) FROM schema_migrations";
        let applied: i64 = db.query_row(text, [], |row| row.get(0)).unwrap();
        assert_eq!(applied, 1);
    }
}
