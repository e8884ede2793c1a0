//! The power is cut between any two operations of the disk. Each image is opened on a sound disk, as after a restart.

use std::sync::atomic::Ordering;

use onsale_core::command::{Command, Outcome};
use onsale_faulty_disk::{Disk, Image};
use onsale_store::{Ground, Options, Store};
use tempfile::TempDir;

use super::crowd::{Crowd, Receipt, missing};
use super::ground;
use crate::world::{HALL, START, TestClock, World, account, place_hold, policy};

const SEATS: u32 = 240;
/// So many images of each half of a sale, and of each opening or closing.
const CUTS: usize = 16;
const CUTS_AT_OPENING: usize = 12;

/// How many seeds; the ordinary suite takes few.
pub(super) fn seeds() -> u64 {
    std::env::var("ONSALE_DISK_SEEDS").map_or(4, |text| text.parse().expect("a number of seeds"))
}

/// A sale between two power cuts: what may be left of it, and what had been acknowledged.
struct Life {
    images: Vec<Image>,
    receipts: Vec<Receipt>,
    batches: u64,
    commands: u64,
}

/// Sells on a faulty disk, from nothing or from what a power cut has left. In the middle the store is closed and opened again.
fn live(seed: u64, disk: Disk, ground: Ground, from: Option<(&Image, &[Receipt])>) -> Life {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let mut receipts = Vec::new();
    if let Some((image, before)) = from {
        image.write_to(folder.path()).expect("an image can be written");
        receipts.extend_from_slice(&before[..image.acknowledged]);
    }
    disk.note(receipts.len());
    disk.cut_about_every(3, CUTS_AT_OPENING);
    let mut world = World::on(folder, ground);
    if receipts.is_empty() {
        // The cut may have come before anything was acknowledged, and after something was done.
        if world.store.read(|db| db.event(HALL)).expect("it can be read").is_none() {
            world.add_event(HALL, SEATS, policy());
            receipts.push(Receipt::OnSale);
        }
    }
    let (mut batches, mut commands) = (0, 0);
    for half in 0..2 {
        disk.cut_about_every(160, CUTS);
        let crowd = Crowd::new(&world, disk, SEATS, receipts);
        crowd.shop(seed.wrapping_mul(2) + half, 6, 10);
        assert_eq!(crowd.unknown.load(Ordering::SeqCst) + crowd.unavailable.load(Ordering::SeqCst), 0);
        receipts = crowd.into_receipts();
        batches += world.store.figures().batches;
        commands += world.store.figures().commands;
        disk.cut_about_every(3, CUTS_AT_OPENING);
        world.reopen(world.options());
    }
    world.finish();
    Life { images: disk.take_images(), receipts, batches, commands }
}

/// Opens an image as after a restart: every invariant holds and service goes on. The receipts it has nothing to show for.
pub(super) fn losses<'a>(seed: u64, image: &Image, receipts: &'a [Receipt]) -> Vec<&'a Receipt> {
    let folder = tempfile::tempdir().expect("a folder can be made");
    image.write_to(folder.path()).expect("an image can be written");
    let store = Store::open(Options::new(folder.path().to_owned(), TestClock::new()), |_| ());
    let store = store.unwrap_or_else(|error| keep(seed, image, &format!("{error:?}")));
    let audit = store.audit(START).expect("it can be audited");
    if audit.violations() > 0 {
        keep(seed, image, &format!("{audit:?}"));
    }
    let missing = missing(&store, &receipts[..image.acknowledged]);
    if image.acknowledged > 0 && missing.is_empty() {
        let free = store.read(|db| db.seat_digits(HALL)).expect("it can be read").expect("the hall is there");
        if let Some(free) = free.digits.iter().position(|digit| *digit == b'0') {
            let outcome = place(&store, free as u32);
            assert!(matches!(outcome, Outcome::HoldPlaced(_)), "service goes on: {outcome:?}");
        }
    }
    missing
}

fn place(store: &Store, seat: u32) -> Outcome {
    let command: Command = place_hold(&account("late"), &[seat]);
    store.submit_blocking(crate::world::request(command, START)).expect("it is decided").outcome
}

/// Fails, and says where the image is that it failed on.
fn keep(seed: u64, image: &Image, why: &str) -> ! {
    let kept = TempDir::with_prefix("onsale-image-").expect("a folder can be made").keep();
    image.write_to(&kept).expect("an image can be written");
    panic!("seed {seed}, cut after {} operations, image in {}: {why}", image.operations, kept.display());
}

#[derive(Default, Debug)]
pub(super) struct Tally {
    images: usize,
    /// Images that lack a change that wasn't durable.
    pub(super) short: usize,
    /// Images with a change in part.
    pub(super) torn: usize,
    /// Images that lack a file, or have a deleted one.
    names: usize,
    receipts: usize,
    /// Images that lack something that was acknowledged, and how many such things.
    losing: usize,
    lost: usize,
}

impl Tally {
    pub(super) fn count(&mut self, image: &Image, lost: usize) {
        self.images += 1;
        self.short += usize::from(image.lost > 0);
        self.torn += usize::from(image.torn > 0);
        self.names += usize::from(image.names > 0);
        self.receipts += image.acknowledged;
        self.losing += usize::from(lost > 0);
        self.lost += lost;
    }

    fn add(&mut self, other: &Tally) {
        self.images += other.images;
        self.short += other.short;
        self.torn += other.torn;
        self.names += other.names;
        self.receipts += other.receipts;
        self.losing += other.losing;
        self.lost += other.lost;
    }
}

/// Two lives for each seed, the second on what the last cut of the first has left.
fn cut_and_look(seed: u64, syncs_commits: bool, tally: &mut Tally) {
    let mut before: Option<(Image, Vec<Receipt>)> = None;
    for number in 0..2 {
        let seed = seed << 8 | number;
        let disk = Disk::new(seed);
        let from = before.as_ref().map(|(image, receipts)| (image, receipts.as_slice()));
        let ground = Ground { syncs_commits, ..ground(disk) };
        let mut life = live(seed, disk, ground, from);
        assert!(life.batches < life.commands, "no commit was a group");
        for image in &life.images {
            let lost = losses(seed, image, &life.receipts);
            assert!(
                lost.is_empty() || !syncs_commits,
                "seed {seed}, cut after {} operations: {} of {} acknowledged are lost: {:?}",
                image.operations,
                lost.len(),
                image.acknowledged,
                lost[0],
            );
            tally.count(image, lost.len());
        }
        let last = life.images.pop().expect("the power was cut");
        if !syncs_commits {
            break;
        }
        before = Some((last, life.receipts));
    }
}

#[test]
fn a_power_cut_at_any_moment_loses_nothing_that_was_acknowledged() {
    let mut tally = Tally::default();
    // Most of the time goes into waiting for the real disk: some seeds at a time.
    for seed in (1..=seeds()).step_by(4) {
        std::thread::scope(|scope| {
            let some = seed..(seed + 4).min(seeds() + 1);
            let cut = |seed| {
                scope.spawn(move || {
                    let mut tally = Tally::default();
                    cut_and_look(seed, true, &mut tally);
                    tally
                })
            };
            let cutting: Vec<_> = some.map(cut).collect();
            cutting.into_iter().for_each(|cut| tally.add(&cut.join().expect("the panic says what is lost")));
        });
    }
    println!("{tally:?}");
    assert!(tally.short > 0 && tally.torn > 0 && tally.names > 0, "the cuts were harmless: {tally:?}");
}

/// The same without a sync for each commit loses what was acknowledged: the test above would see it.
#[test]
fn without_a_sync_for_each_commit_a_power_cut_loses_what_was_acknowledged() {
    const SEEDS_MAX: u64 = 8;
    let mut tally = Tally::default();
    for seed in 1..=SEEDS_MAX {
        cut_and_look(seed, false, &mut tally);
        println!("{tally:?}");
        if tally.losing > 0 {
            return;
        }
    }
    panic!("the cuts were harmless: {tally:?}");
}
