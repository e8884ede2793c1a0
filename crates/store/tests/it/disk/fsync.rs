//! A sync fails, once or for a while. What it was to write may be on the disk or not, and no later sync writes it: the store
//! says that it doesn't know, and what it says after that is true after a power cut.

use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use onsale_core::command::{Command, Outcome, Request};
use onsale_core::event::EventStatus;
use onsale_core::idempotency::RequestKey;
use onsale_core::refusal::Refusal;
use onsale_faulty_disk::{Chance, Disk, Fault, Kind, Left, Operation};
use onsale_store::{Ground, OpenError, Options, Store, SubmitError};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::crowd::{Crowd, Receipt, missing};
use super::ground;
use super::power::{Tally, losses, seeds};
use crate::file::open;
use crate::world::{
    HALL, TestClock, World, account, ada, ben, draft, hall_on, manifest, place_hold, policy, wait_until,
};

const SEATS: u32 = 160;

fn failing(kind: Kind, left: Left, after: u64, times: u64) -> Fault {
    Fault { kind, operation: Operation::Sync(left), after, times }
}

/// A sale during which syncs fail now and then, and what power cuts leave of it. After each round the program starts anew, as
/// it must where the sync of a checkpoint has failed.
#[test]
fn what_is_acknowledged_after_a_failed_sync_survives_a_power_cut() {
    let mut tally = Tally::default();
    let (mut unknown, mut unavailable, mut struck) = (0, 0, 0);
    for seed in 1..=seeds() {
        let disk = Disk::new(seed);
        let mut world = hall_on(SEATS, policy(), ground(disk));
        let mut receipts = vec![Receipt::OnSale];
        for (round, left) in (0..).zip([Left::Nothing, Left::Some, Left::All].repeat(2)) {
            disk.cut_about_every(90, 10);
            match round % 2 {
                0 => [5, 12, 13, 30].into_iter().for_each(|after| {
                    disk.fail(failing(Kind::Wal, left, after + seed, 1));
                }),
                _ => disk.fail(failing(Kind::Database, left, seed % 2, 2)),
            }
            let crowd = Crowd::new(&world, disk, SEATS, receipts);
            crowd.shop(seed << 8 | round, 4, 7);
            unknown += crowd.unknown.load(Ordering::SeqCst);
            unavailable += crowd.unavailable.load(Ordering::SeqCst);
            receipts = crowd.into_receipts();
            disk.mend();
            world.reopen(world.options());
        }
        struck += disk.struck();
        for image in disk.take_images() {
            let lost = losses(seed, &image, &receipts);
            assert!(lost.is_empty(), "seed {seed}: {} of {}: {:?}", lost.len(), image.acknowledged, lost[0]);
            tally.count(&image, 0);
        }
        world.finish();
    }
    println!("{struck} failed syncs, {unknown} unknown, {unavailable} unavailable: {tally:?}");
    assert!(struck > 0 && unknown > 0 && tally.short > 0 && tally.torn > 0);
}

/// A checkpoint that doesn't reach the end of the WAL syncs nothing, and the engine counts its pages as copied. When the sync
/// of a later one fails they may be gone, and the engine would pass them over and begin the WAL anew. So the writer ends; the
/// next opening copies the whole WAL again.
#[test]
fn after_a_checkpoint_that_could_not_be_synced_the_writer_ends_and_the_next_opening_makes_it_anew() {
    let disk = Disk::new(11);
    let few = Ground { checkpoint_pages: 20, checkpoint_pages_forced: u32::MAX, ..ground(disk) };
    let mut world = hall_on(SEATS, policy(), few);
    let looker = Connection::open_with_flags_and_vfs(world.path(), OpenFlags::default(), disk.vfs()).unwrap();
    let copied = || -> i64 { looker.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| row.get(2)).unwrap() };
    let mut seats = 0..SEATS;
    let crowd = Crowd::new(&world, disk, SEATS, vec![Receipt::OnSale]);
    let mut chance = Chance::new(11);
    let mut hold = || {
        let seat = seats.next().expect("a seat is left");
        crowd.told(place_hold(&account(&format!("acc_{seat}")), &[seat]), &mut chance)
    };
    let look = Connection::open_with_flags_and_vfs(world.path(), OpenFlags::default(), disk.vfs()).unwrap();
    look.execute_batch("BEGIN; SELECT count(*) FROM holds").unwrap();
    let before = copied();
    // Whoever looks keeps the checkpoint from the end of the WAL.
    while copied() == before {
        hold().expect("the disk is sound");
    }
    disk.fail(failing(Kind::Database, Left::Nothing, 0, 1));
    look.execute_batch("COMMIT").unwrap();
    while hold().is_some() {}
    assert_eq!(disk.struck(), 1, "nothing else has failed");
    let ended = world.store.submit_blocking(world.request(place_hold(&ada(), &[SEATS - 1])));
    assert!(matches!(ended, Err(SubmitError::Unavailable(_))), "{ended:?}");
    let mut told = Box::pin(world.store.ended());
    let mut is_told = || told.as_mut().poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(());
    wait_until("the program is told to end", &mut is_told);
    drop(told);
    assert!(world.digits().starts_with('1'), "reading goes on");
    let receipts = crowd.into_receipts();

    // Whoever has the database open still remembers what counts as copied.
    look.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
    drop(looker);
    world.store.close();
    let error = Store::open(world.options(), |_| ()).err().expect("it isn't served");
    assert!(matches!(error, OpenError::Open { .. }), "{error:?}");
    drop(look);
    world.reopen(world.options());
    assert!(matches!(world.place(&ada(), &[SEATS - 1]), Outcome::HoldPlaced(_)));
    for _ in 0..8 {
        let lost = losses(11, &disk.cut(), &receipts);
        assert!(lost.is_empty(), "{lost:?}");
    }
    world.finish();
}

/// What a failed sync was to write is in the system's memory, and not on the disk. A program that starts anew finds it in
/// the WAL and takes it for kept; what it adds would hang on it.
#[test]
fn what_a_failed_sync_has_left_in_memory_is_kept_for_good_before_anything_is_added() {
    let disk = Disk::new(5);
    let mut world = hall_on(4, policy(), ground(disk));
    disk.fail(failing(Kind::Wal, Left::Nothing, 0, 1));
    assert!(matches!(world.try_submit(place_hold(&ada(), &[0])), Err(SubmitError::Unknown(_))));
    // The closing can neither undo it nor copy the WAL into the database, and leaves it.
    disk.fail(Fault { kind: Kind::Wal, operation: Operation::Write, after: 0, times: 1 });
    disk.fail(failing(Kind::Wal, Left::Nothing, 0, 1));
    world.reopen(world.options());
    assert_eq!((disk.struck(), world.digits().as_str()), (3, "1000"), "it was done after all");
    world.hold(&ben(), &[1]);
    for _ in 0..16 {
        let copy = tempfile::tempdir().expect("a folder can be made");
        disk.cut().write_to(copy.path()).expect("an image can be written");
        let store = open(copy.path(), &world.clock);
        let digits = store.read(|db| db.seat_digits(HALL)).unwrap().expect("the hall is there").digits;
        assert_eq!(digits, b"1100", "what was added is lost");
        assert_eq!(store.audit(world.now()).unwrap().violations(), 0);
    }
    world.finish();
}

/// Whoever was told "unknown" may find it not done, and for good: the next opening must not meet what the disk never had.
#[test]
fn a_commit_that_failed_is_undone_before_the_database_closes() {
    let disk = Disk::new(7);
    let mut world = hall_on(4, policy(), ground(disk));
    disk.fail(failing(Kind::Wal, Left::Nothing, 0, 1));
    assert!(matches!(world.try_submit(place_hold(&ada(), &[0])), Err(SubmitError::Unknown(_))));
    disk.cut_about_every(1, 64);
    world.reopen(world.options());
    assert_eq!((disk.struck(), world.digits().as_str()), (1, "0000"));
    let images = disk.take_images();
    assert!(images.len() > 4, "the closing and the opening write: {}", images.len());
    for image in images {
        let copy = tempfile::tempdir().expect("a folder can be made");
        image.write_to(copy.path()).expect("an image can be written");
        let store = open(copy.path(), &world.clock);
        let digits = store.read(|db| db.seat_digits(HALL)).unwrap().expect("the hall is there").digits;
        assert_eq!(digits, b"0000", "after {} operations", image.operations);
        assert_eq!(store.audit(world.now()).unwrap().violations(), 0);
    }
    world.finish();
}

/// A start that can't bring the WAL into the database is refused, and the next one makes it anew.
#[test]
fn a_start_whose_sync_fails_is_refused_and_loses_nothing() {
    let first = Disk::new(6);
    let world = hall_on(SEATS, policy(), ground(first));
    let crowd = Crowd::new(&world, first, SEATS, vec![Receipt::OnSale]);
    crowd.shop(6, 3, 5);
    let receipts = crowd.into_receipts();
    let cut = first.cut();
    world.finish();

    for (seed, left) in (0..).zip([Left::Nothing, Left::Some, Left::All]) {
        let disk = Disk::new(seed);
        disk.note(receipts.len());
        let folder = tempfile::tempdir().expect("a folder can be made");
        cut.write_to(folder.path()).expect("an image can be written");
        let options =
            || Options { ground: ground(disk), ..Options::new(folder.path().to_owned(), TestClock::new()) };
        disk.fail(failing(Kind::Database, left, 0, 1));
        let error = Store::open(options(), |_| ()).err().expect("it isn't served");
        assert!(matches!(error, OpenError::Open { .. }), "{error:?}");
        let store = Store::open(options(), |_| ()).expect("the disk is sound again");
        assert!(missing(&store, &receipts).is_empty());
        for _ in 0..8 {
            let lost = losses(seed, &disk.cut(), &receipts);
            assert!(lost.is_empty(), "{lost:?}");
        }
    }
}

/// Nobody is told anything while it is open whether a commit that failed is on the disk. A refusal isn't written, so it is
/// here that it would show: "the sale is over" would be followed by a hold.
#[test]
fn a_commit_that_failed_is_undone_for_good_before_the_next_answer() {
    for (left, more) in [(Left::Nothing, 0), (Left::Some, 0), (Left::All, 0), (Left::All, 2)] {
        let disk = Disk::new(7);
        let folder = tempfile::tempdir().expect("a folder can be made");
        let world = World::on(folder, ground(disk));
        let mut event = draft(HALL, policy());
        event.off_sale_at = Some(world.now().plus_ms(1_000));
        for command in [
            Command::CreateEvent(Box::new(event)),
            Command::ReplaceManifest { event: HALL, manifest: manifest(4).into() },
            Command::SetPrices { event: HALL, manifest_version: 1, levels: vec![(0, 100), (1, 100)] },
            Command::SetOnSale { event: HALL, status: EventStatus::Open, actor: "test".to_owned() },
        ] {
            world.submit(command);
        }
        let key = Some(RequestKey { id: 1, digest: 1 });
        let ask = || world.store.submit_blocking(Request { key, ..world.request(place_hold(&ada(), &[1])) });
        disk.fail(failing(Kind::Wal, left, 0, 1));
        assert!(matches!(ask(), Err(SubmitError::Unknown(_))));
        assert_eq!(world.digits(), "0000", "nobody sees what isn't committed");

        // While it can't be undone, nothing is said.
        disk.fail(failing(Kind::Wal, left, 0, more));
        world.pass_ms(1_000);
        for _ in 0..more {
            assert!(matches!(ask(), Err(SubmitError::Unavailable(_))));
            assert_eq!(world.digits(), "0000");
        }
        let answer = ask().expect("the disk is sound again");
        assert!(matches!(answer.outcome, Outcome::Refused(_)), "{answer:?}");
        assert_ne!(answer.outcome, Outcome::Refused(Refusal::NotFound));

        for _ in 0..8 {
            let copy = tempfile::tempdir().expect("a folder can be made");
            disk.cut().write_to(copy.path()).expect("an image can be written");
            let store = open(copy.path(), &world.clock);
            let digits = store.read(|db| db.seat_digits(HALL)).unwrap().expect("the hall is there").digits;
            assert_eq!(digits, b"0000", "{left:?}: it was done after all");
            assert_eq!(store.audit(world.now()).unwrap().violations(), 0);
        }
        world.finish();
    }
}
