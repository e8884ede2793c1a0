//! Opening: what is taken over, what is refused, and what a crash leaves.

use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Command as Process, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use onsale_core::command::Outcome;
use onsale_core::hold::HoldStatus;
use onsale_core::id::HoldId;
use onsale_store::{InspectError, OpenError, Options, Store, audit_folder, backup_folder};
use rusqlite::Connection;

use crate::file::open;
use crate::world::{START, TestClock, World, account, ada, ben, hall, place_hold, policy, request};

/// Why a database is not opened, for service or for a look.
fn refused(folder: &Path) -> (OpenError, InspectError) {
    let served = Store::open(Options::new(folder.to_owned(), TestClock::new()), |_| ());
    (served.err().expect("it isn't served"), audit_folder(folder, START).expect_err("it isn't looked into"))
}

#[test]
fn a_database_of_a_newer_program_is_left_alone() {
    let world = hall(1, policy());
    world.store.close();
    let newer =
        "INSERT INTO schema_migrations VALUES (999, 'from the future', x'00', '2100-01-01T00:00:00Z')";
    world.db().execute_batch(newer).unwrap();
    let (served, looked) = refused(world.folder.path());
    assert!(
        matches!(&served, OpenError::Newer { number: 999, name } if name == "from the future"),
        "{served}"
    );
    assert!(matches!(looked, InspectError::Open(OpenError::Newer { number: 999, .. })), "{looked}");
    world.db().execute_batch("DELETE FROM schema_migrations WHERE number = 999").unwrap();
    world.finish();
}

#[test]
fn a_migration_that_was_changed_after_it_was_applied_is_refused() {
    let world = hall(1, policy());
    world.store.close();
    let sum: Vec<u8> = world
        .db()
        .query_row("SELECT sha256 FROM schema_migrations WHERE number = 1", [], |row| row.get(0))
        .unwrap();
    world.db().execute_batch("UPDATE schema_migrations SET sha256 = x'00'").unwrap();
    let (served, looked) = refused(world.folder.path());
    assert!(matches!(served, OpenError::Changed { number: 1 }), "{served}");
    assert!(matches!(looked, InspectError::Open(OpenError::Changed { number: 1 })), "{looked}");
    world.db().execute("UPDATE schema_migrations SET sha256 = ?1", [sum]).unwrap();
    world.finish();
}

#[test]
fn what_is_no_database_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(audit_folder(folder.path(), START), Err(InspectError::Open(OpenError::Open { .. }))));
    assert!(!folder.path().join("onsale.db").exists(), "a look makes no database");

    Connection::open(folder.path().join("onsale.db")).unwrap().execute_batch("VACUUM").unwrap();
    let empty = audit_folder(folder.path(), START);
    assert!(matches!(empty, Err(InspectError::Open(OpenError::Older { found: 0, wanted: 1 }))), "{empty:?}");

    std::fs::write(folder.path().join("onsale.db"), [b'x'; 8_192]).unwrap();
    let (served, _) = refused(folder.path());
    assert!(matches!(served, OpenError::Open { .. }), "{served}");

    let no_folder = folder.path().join("onsale.db/data");
    let served = Store::open(Options::new(no_folder, TestClock::new()), |_| ()).err().expect("it is a file");
    assert!(matches!(served, OpenError::Folder { .. }), "{served}");
}

/// A file that may only be read is not served, is not changed, and can be looked into.
#[test]
fn a_file_that_may_only_be_read_is_looked_into_and_not_served() {
    let world = hall(1, policy());
    world.hold(&ada(), &[0]);
    let copy = tempfile::tempdir().unwrap();
    let file = copy.path().join("onsale.db");
    backup_folder(world.folder.path(), &file).unwrap();
    // The engine's own mark for "written by a format that may only be read", which holds for every user of the machine.
    let mut bytes = std::fs::OpenOptions::new().write(true).read(true).open(&file).unwrap();
    bytes.seek(SeekFrom::Start(18)).unwrap();
    bytes.write_all(&[3]).unwrap();
    let mut before = Vec::new();
    bytes.rewind().unwrap();
    bytes.read_to_end(&mut before).unwrap();

    let served = Store::open(Options::new(copy.path().to_owned(), TestClock::new()), |_| ());
    let error = served.err().expect("it isn't served");
    assert!(
        matches!(error, OpenError::Open { .. } | OpenError::Setting { .. } | OpenError::Migrate(_)),
        "{error}"
    );
    assert_eq!(audit_folder(copy.path(), START).unwrap().violations(), 0);
    assert!(std::fs::read(&file).unwrap() == before, "not a byte has changed");
    world.finish();
}

#[test]
fn every_commit_is_synced_and_a_setting_that_is_not_in_force_is_an_error() {
    let world = hall(1, policy());
    let mode: String = world.db().query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
    let setting = OpenError::Setting { name: "synchronous", found: "1".to_owned(), wanted: "2" };
    assert_eq!(setting.to_string(), "the database engine runs with synchronous = 1, but 2 is needed");
    world.finish();
}

/// The file keeps e-mail addresses and secrets: it is its owner's alone, and so is what lies beside it.
#[test]
fn the_files_are_their_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let world = hall(1, policy());
    let files = std::fs::read_dir(world.folder.path()).unwrap().map(|file| file.unwrap());
    let mut names: Vec<String> = Vec::new();
    for file in files {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
        names.push(file.file_name().into_string().expect("it is text"));
    }
    names.sort();
    assert_eq!(names, ["onsale.db", "onsale.db-shm", "onsale.db-wal"], "and there is nothing else");
    world.finish();
}

/// A copy is a whole database of one moment, also while the writer goes on without a pause.
#[test]
fn a_copy_is_made_while_the_sale_goes_on() {
    let world = hall(20_000, policy());
    let copy = tempfile::tempdir().unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    let placed = AtomicU32::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                let seat = placed.fetch_add(1, Ordering::SeqCst);
                world.hold(&account(&format!("acc_{seat}")), &[seat]);
            }
        });
        crate::world::wait_until("the sale is under way", || placed.load(Ordering::SeqCst) > 10);
        backup_folder(world.folder.path(), &copy.path().join("onsale.db")).expect("a copy can be made");
        done.store(true, Ordering::SeqCst);
    });
    let audit = audit_folder(copy.path(), world.now()).unwrap();
    assert_eq!(audit.violations(), 0, "{audit:?}");
    let store = open(copy.path(), &world.clock);
    let held =
        store.read(|db| db.seat_digits(crate::world::HALL)).unwrap().expect("it is in the copy").digits;
    let held = held.iter().filter(|digit| **digit == b'1').count();
    assert!((10..=placed.load(Ordering::SeqCst) as usize).contains(&held), "{held}");
    drop(store);
    world.finish();
}

const CHILD: &str = "ONSALE_TEST_CRASH_FOLDER";

/// a process that is killed amid its commits loses nothing it has acknowledged.
#[test]
fn a_crash_loses_nothing_that_was_acknowledged() {
    if let Ok(folder) = std::env::var(CHILD) {
        return place_holds_until_killed(Path::new(&folder));
    }
    let mut world = hall(20_000, policy());
    world.store.close();
    let mut child = Process::new(std::env::current_exe().expect("a test has a file"))
        .args(["--exact", "open::a_crash_loses_nothing_that_was_acknowledged", "--nocapture"])
        .env(CHILD, world.folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the test runs again as a child");
    let mut told = BufReader::new(child.stdout.take().expect("its words are taken"));
    let mut acknowledged = Vec::new();
    let mut line = String::new();
    let mut is_killed = false;
    while told.read_line(&mut line).expect("its words are text") > 0 {
        // What the kill has cut off was not told.
        let whole = line.strip_suffix('\n').and_then(|line| line.strip_prefix("placed "));
        acknowledged.extend(whole.map(|id| id.parse::<HoldId>().expect("a hold's id")));
        line.clear();
        if acknowledged.len() >= 500 && !is_killed {
            child.kill().expect("it can be killed");
            is_killed = true;
        }
    }
    assert!(!child.wait().expect("it has ended").success(), "it was killed");
    assert!(acknowledged.len() >= 500);

    world.reopen(world.options());
    for hold in &acknowledged {
        assert_eq!(world.hold_view(*hold).hold.status, HoldStatus::Active);
    }
    let held = world.digits().matches('1').count();
    assert!(held >= acknowledged.len(), "{held} held, {} acknowledged", acknowledged.len());
    let free = world.digits().find('0').expect("seats are left") as u32;
    world.hold(&ben(), &[free]);
    world.finish();
}

/// Four buyers at a time, so that commits are groups.
fn place_holds_until_killed(folder: &Path) {
    let clock = TestClock::new();
    let store = open(folder, &clock);
    let next = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let seat = next.fetch_add(1, Ordering::SeqCst);
                    let command = place_hold(&account(&format!("acc_{seat}")), &[seat]);
                    let decision = store.submit_blocking(request(command, START)).expect("it is decided");
                    let Outcome::HoldPlaced(placed) = decision.outcome else { panic!("{decision:?}") };
                    let mut out = std::io::stdout().lock();
                    writeln!(out, "placed {}", placed.hold.id).expect("the parent listens");
                    out.flush().expect("the parent listens");
                }
            });
        }
    });
}

/// The schema as one file, for reading and for review: what the migrations make is what it says.
#[test]
fn the_migrations_make_the_schema_on_file() {
    let world = World::empty();
    let db = world.db();
    let mut statement =
        db.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name, type").unwrap();
    let texts = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let mut made = String::from("-- Written by a test from what the migrations make. Do not edit.\n");
    for text in texts {
        let lines: Vec<String> = text.unwrap().lines().map(|line| line.trim_end().to_owned()).collect();
        made.push_str(&format!("\n{};\n", lines.join("\n")));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql/sqlite/schema.sql");
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|set| set == "1") {
        std::fs::write(&path, &made).expect("the schema can be written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == made, "{} differs: run this test with UPDATE_GOLDEN=1 and review", path.display());
    drop(statement);
    world.finish();
}
