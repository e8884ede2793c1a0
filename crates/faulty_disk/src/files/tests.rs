//! What is durable, when, and who hears of it.

use super::*;

const DB: &str = "/data/a.db";
const WAL: &str = "/data/a.db-wal";

/// Files with two named ones, each of four bytes that are durable; what the handles have heard.
fn files() -> Files {
    let mut files = Files::new(Chance::new(1));
    for path in [DB, WAL] {
        files.open(path, || b"0000".to_vec());
    }
    files
}

fn put(files: &mut Files, path: &str, offset: usize, data: &[u8]) {
    assert_eq!(files.write(path, offset, data), (data.len(), Ok(())));
}

/// Every content of a file that some cut of many leaves; `None` where its name is lost.
fn contents(files: &mut Files, name: &str) -> Vec<Option<Vec<u8>>> {
    let mut found: Vec<_> = (0..200)
        .map(|_| {
            let image = files.image();
            image.files.into_iter().find(|(file, _)| file == name).map(|(_, bytes)| bytes)
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

fn some(bytes: &[u8]) -> Option<Vec<u8>> {
    Some(bytes.to_vec())
}

#[test]
fn what_is_synced_is_kept_and_what_is_not_may_be_there_or_not() {
    let mut files = files();
    let mut heard = 0;
    assert_eq!(files.write(DB, 0, b"1"), (1, Ok(())));
    assert_eq!(files.write(DB, 1, b"1"), (1, Ok(())));
    assert_eq!(contents(&mut files, "a.db"), [b"0000", b"0100", b"1000", b"1100"].map(|bytes| some(bytes)));
    files.sync(DB, &mut heard).unwrap();
    assert_eq!(contents(&mut files, "a.db"), [some(b"1100")]);
    files.truncate(DB, 2).unwrap();
    assert_eq!(contents(&mut files, "a.db"), [some(b"11"), some(b"1100")]);
}

#[test]
fn a_write_may_be_torn_between_sectors() {
    let mut files = files();
    files.open("/data/b.db", || vec![0; 1_024]);
    put(&mut files, "/data/b.db", 510, &[1; 4]);
    let ones = |bytes: &Option<Vec<u8>>| {
        let bytes = bytes.as_ref().expect("it has a name");
        [510, 511, 512, 513].map(|at| bytes[at])
    };
    let found: Vec<_> = contents(&mut files, "b.db").iter().map(ones).collect();
    assert_eq!(found, [[0; 4], [0, 0, 1, 1], [1, 1, 0, 0], [1; 4]]);
}

/// A failed sync is over: a later one that succeeds doesn't write again what the first was to write, and every handle that was
/// open hears of it once.
#[test]
fn what_a_failed_sync_has_lost_stays_lost_and_each_handle_hears_of_it() {
    for (left, kept) in [(Left::Nothing, b"0000"), (Left::All, b"1000")] {
        let mut files = files();
        let (mut one, mut other) = (0, 0);
        files.faults.push(Fault { kind: Kind::Wal, operation: Operation::Sync(left), after: 0, times: 1 });
        put(&mut files, WAL, 0, b"1");
        assert_eq!(files.sync(DB, &mut 0), Ok(()), "it is the other file that fails");
        assert_eq!(files.sync(WAL, &mut one), Err(ffi::SQLITE_IOERR_FSYNC));
        assert_eq!(files.sync(WAL, &mut one), Ok(()));
        assert_eq!(contents(&mut files, "a.db-wal"), [some(kept)]);
        assert_eq!(files.sync(WAL, &mut other), Err(ffi::SQLITE_IOERR_FSYNC));
        assert_eq!(files.sync(WAL, &mut other), Ok(()));
        let mut late = files.open(WAL, || unreachable!("it is known"));
        assert_eq!(files.sync(WAL, &mut late), Ok(()));
    }
}

#[test]
fn a_full_disk_takes_what_fits() {
    let mut files = files();
    files.room = Room::ToGrow(3);
    assert_eq!(files.write(DB, 0, b"1111"), (4, Ok(())), "in place");
    assert_eq!(files.write(DB, 2, b"22222"), (5, Ok(())));
    assert_eq!(files.write(DB, 6, b"333"), (1, Err(ffi::SQLITE_FULL)));
    files.room = Room::ToWrite(2);
    assert_eq!(files.write(DB, 0, b"444"), (2, Err(ffi::SQLITE_FULL)));
    assert_eq!(files.write(DB, 0, b"5"), (0, Err(ffi::SQLITE_FULL)));
    assert_eq!(files.struck, 3);
    files.sync(DB, &mut 0).unwrap();
    assert_eq!(contents(&mut files, "a.db"), [some(b"4422223")]);
}

/// The name of a new file, and that a file is gone, are durable when its folder is synced.
#[test]
fn names_are_kept_with_the_first_sync_of_a_new_log() {
    let mut files = Files::new(Chance::new(1));
    files.open(DB, Vec::new);
    put(&mut files, DB, 0, b"1");
    files.sync(DB, &mut 0).unwrap();
    assert_eq!(contents(&mut files, "a.db"), [None, some(b"1")]);
    files.open(WAL, Vec::new);
    files.sync(WAL, &mut 0).unwrap();
    assert_eq!(contents(&mut files, "a.db"), [some(b"1")]);
    assert_eq!(contents(&mut files, "a.db-wal"), [some(b"")]);
    files.delete(WAL, false);
    assert_eq!(contents(&mut files, "a.db-wal"), [None, some(b"")]);
    files.open(WAL, Vec::new);
    put(&mut files, WAL, 0, b"2");
    assert_eq!(contents(&mut files, "a.db-wal"), [None, some(b""), some(b"2")]);
    files.sync(WAL, &mut 0).unwrap();
    assert_eq!(contents(&mut files, "a.db-wal"), [some(b"2")]);
    files.delete(WAL, true);
    assert_eq!(contents(&mut files, "a.db-wal"), [None]);
}
