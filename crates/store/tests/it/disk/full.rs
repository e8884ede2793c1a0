//! A disk that is full, may only be read, or fails an operation: who asks is told "not now", nothing is done by halves, reading
//! goes on, and so does everything when the disk is sound again.

use std::sync::atomic::Ordering;

use onsale_core::command::{Decision, Outcome, Request};
use onsale_core::idempotency::RequestKey;
use onsale_faulty_disk::{Chance, Disk, Fault, Kind, Operation, Room};
use onsale_store::{OpenError, Store, SubmitError};

use super::crowd::{Crowd, Receipt, missing};
use super::ground;
use super::power::{losses, seeds};
use crate::world::{World, account, hall_on, place_hold, policy};

const SEATS: u32 = 160;

/// A hold of a seat under a key of its own.
fn hold(world: &World, seat: u32) -> Result<Decision, SubmitError> {
    let key = Some(RequestKey { id: u128::from(seat) + 1, digest: 1 });
    let command = place_hold(&account(&format!("acc_{seat}")), &[seat]);
    world.store.submit_blocking(Request { key, ..world.request(command) })
}

/// It isn't done, and as long as the disk is as it is, nothing is; reading goes on.
#[track_caller]
fn is_not_done(world: &World, seat: u32, before: &str) {
    assert_eq!(world.digits(), before);
    for _ in 0..2 {
        let next = hold(world, seat);
        assert!(matches!(next, Err(SubmitError::Unavailable(_))), "{next:?}");
        assert_eq!(world.digits(), before);
    }
}

/// The same request is done when the disk is sound again.
#[track_caller]
fn is_done_now(world: &World, seat: u32) {
    let decision = hold(world, seat).expect("it is decided");
    assert!(matches!(decision.outcome, Outcome::HoldPlaced(_)) && !decision.replayed, "{decision:?}");
    assert!(hold(world, seat).expect("it is decided").replayed);
}

/// The disk is full after so many bytes of a commit, for many numbers up to all that it writes.
#[test]
fn at_whatever_byte_the_disk_is_full_nothing_is_done_by_halves() {
    let disk = Disk::new(3);
    let world = hall_on(SEATS, policy(), ground(disk));
    let mut chance = Chance::new(3);
    let mut room = 0;
    for seat in 0.. {
        let before = world.digits();
        disk.set_room(Room::ToWrite(room));
        match hold(&world, seat) {
            Ok(_) if seat < 20 => panic!("a commit of {room} bytes is too small for this test"),
            Ok(_) => break,
            Err(SubmitError::Unknown(why)) => assert!(why.contains("full"), "{why}"),
            Err(error) => panic!("{error}"),
        }
        is_not_done(&world, seat, &before);
        let lost = losses(room, &disk.cut(), &[Receipt::OnSale]);
        assert!(lost.is_empty(), "{lost:?}");
        disk.mend();
        is_done_now(&world, seat);
        room += chance.below(1_200);
    }
    world.finish();
}

/// Sales into a disk that is full at some point, in its WAL or in the middle of a checkpoint. What power cuts leave, and what
/// stands when there is room again.
#[test]
fn a_sale_on_a_disk_that_fills_up_loses_nothing_and_goes_on_with_room() {
    let (mut struck, mut failed) = (0, 0);
    for seed in 1..=seeds() {
        let disk = Disk::new(seed);
        let world = hall_on(SEATS, policy(), ground(disk));
        let mut chance = Chance::new(seed);
        let mut receipts = vec![Receipt::OnSale];
        for round in 0..4 {
            let bytes = chance.below(600_000);
            disk.set_room(if round % 2 == 0 { Room::ToGrow(bytes) } else { Room::ToWrite(bytes) });
            disk.cut_about_every(150, 4);
            (receipts, failed) = shop(&world, disk, receipts, seed << 8 | round, failed);
            assert_eq!(world.digits().len(), SEATS as usize, "reading goes on");
            disk.mend();
            let sound = failed;
            (receipts, failed) = shop(&world, disk, receipts, seed << 8 | round | 16, failed);
            assert_eq!(failed, sound, "with room everything goes on");
        }
        struck += disk.struck();
        stands(seed, &world, disk, &receipts);
        world.finish();
    }
    println!("full {struck} times, {failed} requests not done");
    assert!(struck > 0 && failed > 0);
}

/// Reads and writes that fail, as a whole or half-way.
#[test]
fn an_operation_that_fails_fails_what_needs_it_and_nothing_else() {
    let operations = [
        (Kind::Wal, Operation::Write),
        (Kind::Wal, Operation::ShortWrite),
        (Kind::Wal, Operation::Read),
        (Kind::Wal, Operation::ShortRead),
        (Kind::Database, Operation::Write),
        (Kind::Database, Operation::ShortWrite),
        (Kind::Database, Operation::Read),
    ];
    for (seed, (kind, operation)) in (1..).zip(operations) {
        let disk = Disk::new(seed);
        let mut world = hall_on(SEATS, policy(), ground(disk));
        let mut receipts = vec![Receipt::OnSale];
        let mut failed = 0;
        for round in 0..2 {
            for after in [0, 1, 5, 20, 21, 22, 60] {
                disk.fail(Fault { kind, operation, after: after + seed, times: 1 + round });
            }
            disk.cut_about_every(150, 4);
            // A new start has read nothing yet.
            let (told, more) = shop(&world, disk, receipts, seed << 8 | round, failed);
            disk.mend();
            (receipts, failed) = shop(&world, disk, told, seed << 8 | round | 16, more);
            assert_eq!(failed, more, "{kind:?} {operation:?}: on a sound disk everything goes on");
            world.reopen(world.options());
        }
        println!("{kind:?} {operation:?}: {} faults, {failed} requests not done", disk.struck());
        assert!(disk.struck() > 0, "{kind:?} {operation:?} never failed");
        stands(seed, &world, disk, &receipts);
        world.finish();
    }
}

/// Shoppers on a disk as it is; their receipts, and how many requests have failed by now.
fn shop(world: &World, disk: Disk, receipts: Vec<Receipt>, seed: u64, failed: u64) -> (Vec<Receipt>, u64) {
    let crowd = Crowd::new(world, disk, SEATS, receipts);
    crowd.shop(seed, 3, 3);
    let failed = failed + crowd.unknown.load(Ordering::SeqCst) + crowd.unavailable.load(Ordering::SeqCst);
    (crowd.into_receipts(), failed)
}

/// What was acknowledged is there, now and in every image.
#[track_caller]
fn stands(seed: u64, world: &World, disk: Disk, receipts: &[Receipt]) {
    let lost = missing(&world.store, receipts);
    assert!(lost.is_empty(), "{lost:?}");
    for image in disk.take_images() {
        let lost = losses(seed, &image, receipts);
        assert!(lost.is_empty(), "{lost:?}");
    }
}

#[test]
fn a_disk_that_may_only_be_read_is_read_and_not_written_and_a_start_is_refused() {
    let disk = Disk::new(9);
    let mut world = hall_on(SEATS, policy(), ground(disk));
    is_done_now(&world, 0);
    let before = world.digits();
    disk.forbid_writing();
    assert!(matches!(hold(&world, 1), Err(SubmitError::Unknown(_))));
    is_not_done(&world, 1, &before);
    assert_eq!(world.store.audit(world.now()).expect("it can be read").violations(), 0);
    disk.mend();
    is_done_now(&world, 1);

    disk.forbid_writing();
    world.store.close();
    let error = Store::open(world.options(), |_| ()).err().expect("it isn't served");
    let OpenError::Open { source, .. } = &error else { panic!("{error:?}") };
    println!("{error}: {source}");
    assert!(source.to_string().contains("readonly"), "{source}");
    disk.mend();
    world.reopen(world.options());
    is_done_now(&world, 2);
    world.finish();
}
