//! Bytes that change by themselves on the disk: what is noticed, by whom, and what isn't.

use std::path::Path;

use onsale_core::command::Outcome;
use onsale_faulty_disk::{Chance, Disk};
use onsale_store::{Options, Store, audit_folder, backup_folder};
use tempfile::TempDir;

use super::crowd::{Crowd, Receipt, missing};
use super::ground;
use crate::file::open;
use crate::world::{START, TestClock, World, account, hall_on, place_hold, policy};

const PAGE: usize = 4_096;

/// A hall after a small sale, and its file.
fn sold() -> (World, Vec<u8>) {
    let disk = Disk::new(13);
    let world = hall_on(60, policy(), ground(disk));
    Crowd::new(&world, disk, 60, Vec::new()).shop(13, 2, 8);
    let copy = tempfile::tempdir().expect("a folder can be made");
    let file = copy.path().join("onsale.db");
    backup_folder(world.folder.path(), &file).expect("a copy can be made");
    (world, std::fs::read(file).expect("the copy can be read"))
}

fn folder_with(bytes: &[u8]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder can be made");
    std::fs::write(folder.path().join("onsale.db"), bytes).expect("a file can be written");
    folder
}

/// Whether a look at a database says that it is damaged.
fn is_noticed(folder: &Path) -> bool {
    audit_folder(folder, START).map_or(true, |audit| audit.violations() > 0)
}

/// The audit, or the opening before it, notices every page that is no page. A start looks at few of them: it may succeed, and
/// then the audit of what is served says so.
#[test]
fn a_page_that_was_overwritten_is_noticed_by_the_audit() {
    let (world, whole) = sold();
    assert!(!is_noticed(folder_with(&whole).path()));
    let pages = whole.len() / PAGE;
    let mut refused = 0;
    for page in 0..pages {
        let mut bytes = whole.clone();
        bytes[page * PAGE..(page + 1) * PAGE].fill(0xa5);
        assert!(is_noticed(folder_with(&bytes).path()), "page {} of {pages}", page + 1);
        let folder = folder_with(&bytes);
        match Store::open(Options::new(folder.path().to_owned(), TestClock::new()), |_| ()) {
            Err(_) => refused += 1,
            Ok(store) => assert!(store.audit(START).map_or(true, |audit| audit.violations() > 0)),
        }
    }
    println!("{pages} pages: the start is refused for {refused}, the audit notices all");
    assert!((1..pages).contains(&refused));
    world.finish();
}

/// Pages have no checksums. A single bit is noticed where it breaks the form of a page, an index or an invariant. No bit makes
/// a look fail in another way.
#[test]
fn a_bit_that_was_flipped_is_noticed_where_it_breaks_something() {
    let (world, whole) = sold();
    let mut chance = Chance::new(14);
    let mut noticed = 0;
    const FLIPS: u32 = 150;
    for _ in 0..FLIPS {
        let mut bytes = whole.clone();
        let at = chance.below(bytes.len() as u64) as usize;
        bytes[at] ^= 1 << chance.below(8);
        noticed += u32::from(is_noticed(folder_with(&bytes).path()));
    }
    println!("{noticed} of {FLIPS} flipped bits are noticed");
    assert!(noticed > 0);
    world.finish();
}

/// The WAL has checksums: what is behind a damaged frame is not taken in, and nothing tells that there was more. What is before
/// it stands, unless a checkpoint has already copied pages from behind it: the audit notices the mixture.
#[test]
fn damage_in_the_wal_ends_what_is_taken_in_or_is_noticed_by_the_audit() {
    let disk = Disk::new(15);
    let world = hall_on(60, policy(), ground(disk));
    let crowd = Crowd::new(&world, disk, 60, Vec::new());
    let mut chance = Chance::new(15);
    for seat in 0..5 {
        let outcome = crowd.told(place_hold(&account(&format!("acc_{seat}")), &[seat]), &mut chance);
        assert!(matches!(outcome, Some(Outcome::HoldPlaced(_))));
    }
    let receipts = crowd.into_receipts();
    let (mut counts, mut mixed) = (Vec::new(), 0);
    for _ in 0..40 {
        let folder = tempfile::tempdir().expect("a folder can be made");
        disk.cut().write_to(folder.path()).expect("an image can be written");
        let wal = folder.path().join("onsale.db-wal");
        let mut bytes = std::fs::read(&wal).expect("there is a WAL");
        let at = chance.below(bytes.len() as u64) as usize;
        bytes[at] ^= 0xff;
        std::fs::write(&wal, bytes).expect("the WAL can be written");
        let store = open(folder.path(), &world.clock);
        if store.audit(START).expect("it can be audited").violations() > 0 {
            mixed += 1;
            continue;
        }
        let lost = missing(&store, &receipts);
        let kept = receipts.len() - lost.len();
        let is_behind = |(receipt, lost): (&Receipt, &&Receipt)| std::ptr::eq(receipt, *lost);
        assert!(receipts[kept..].iter().zip(&lost).all(is_behind), "the last ones are lost");
        counts.push(kept);
    }
    counts.sort_unstable();
    println!("{mixed} are mixed; kept of 5: {counts:?}");
    assert!(counts[0] < 5);
    world.finish();
}
