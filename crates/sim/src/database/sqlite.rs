//! The real store: one handle for each process on the same file, one command at a time, so that its threads decide
//! nothing about the order of things.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use onsale_core::command::{Decision, Request};
use onsale_core::id::HoldId;
use onsale_core::payment::Operation;
use onsale_core::reconcile::Callback;
use onsale_core::time::Timestamp;
use onsale_store::{Check, Clock, Options, Store};

use crate::Broken;

/// Commits between two audits.
const AUDIT_EVERY: u64 = 40;
const ROWS_MAX: u32 = 10_000;

struct Hands(Arc<AtomicI64>);

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

pub(crate) struct Sqlite {
    folder: tempfile::TempDir,
    stores: Vec<Option<Store>>,
    clock: Arc<AtomicI64>,
    commits: u64,
}

impl Sqlite {
    /// A new database for so many processes; in memory-backed files where the system has them.
    pub(crate) fn new(processes: usize) -> Sqlite {
        let shm = PathBuf::from("/dev/shm");
        let builder = || tempfile::Builder::new().prefix("onsale-sim-").to_owned();
        let folder = match shm.is_dir() {
            true => builder().tempdir_in(&shm).or_else(|_| builder().tempdir()),
            false => builder().tempdir(),
        };
        let folder = folder.expect("a temporary folder can be made");
        let clock = Arc::new(AtomicI64::new(0));
        Sqlite { folder, stores: (0..processes).map(|_| None).collect(), clock, commits: 0 }
    }

    /// The handle of a process; opened anew after a crash.
    fn store(&mut self, process: usize) -> &Store {
        let (path, clock) = (self.folder.path().to_owned(), Arc::clone(&self.clock));
        self.stores[process].get_or_insert_with(|| {
            let options = Options::new(path, Arc::new(Hands(clock)));
            Store::open(options, |_| ()).expect("the database opens")
        })
    }

    /// The process has ended: its handle is gone.
    pub(crate) fn crash(&mut self, process: usize) {
        self.stores[process] = None;
    }

    pub(crate) fn commit(
        &mut self,
        process: usize,
        requests: &[Request],
        expected: &[Decision],
        now: Timestamp,
    ) -> Result<(), Broken> {
        self.clock.store(now.millis(), Ordering::SeqCst);
        for (request, expected) in requests.iter().zip(expected) {
            match self.store(process).submit_blocking(request.clone()) {
                Ok(decision) if decision == *expected => {}
                other => {
                    let what = format!("{request:?}\nin memory: {expected:?}\nin SQLite: {other:?}");
                    return Err(Broken::new("SQLite decides as the store in memory", what));
                }
            }
        }
        self.commits += 1;
        // While processes are down or a day passes, nobody is in time.
        if self.commits.is_multiple_of(AUDIT_EVERY) { self.audit(process, now, &["I-17"]) } else { Ok(()) }
    }

    /// Every invariant as a query, but for those that are excused.
    pub(crate) fn audit(&mut self, process: usize, now: Timestamp, excused: &[&str]) -> Result<(), Broken> {
        let audit = self.store(process).audit(now).expect("the audit reads");
        let counts = |check: &&Check| check.violations > 0 && !excused.contains(&check.id);
        let mut broken = audit.checks.iter().filter(counts);
        match broken.next() {
            None => Ok(()),
            Some(check) => {
                Err(Broken::new("audit", format!("{} {}: {:?}", check.id, check.title, check.rows)))
            }
        }
    }

    pub(crate) fn compare_due_operations(
        &mut self,
        process: usize,
        now: Timestamp,
        expected: &[Operation],
    ) -> Result<(), Broken> {
        let read = self.store(process).read(|reader| reader.due_operations(now, ROWS_MAX));
        let mut found: Vec<Operation> =
            read.expect("operations are read").into_iter().map(|view| view.operation).collect();
        found.sort_by_key(|operation| (operation.due_at, operation.id));
        same("operations that are due", &found[..], expected)
    }

    pub(crate) fn compare_due_holds(
        &mut self,
        process: usize,
        now: Timestamp,
        expected: &[HoldId],
    ) -> Result<(), Broken> {
        let read = self.store(process).read(|reader| reader.due_holds(now, ROWS_MAX));
        let mut found = read.expect("holds are read");
        found.sort();
        same("holds that are due", &found[..], expected)
    }

    pub(crate) fn compare_due_callbacks(
        &mut self,
        process: usize,
        now: Timestamp,
        expected: &[Callback],
    ) -> Result<(), Broken> {
        let read = self.store(process).read(|reader| reader.due_callbacks(now, ROWS_MAX));
        let mut found = read.expect("callbacks are read");
        found.sort_by(|one, other| one.provider_event_id.cmp(&other.provider_event_id));
        same("callbacks that are due", &found[..], expected)
    }
}

fn same<T: PartialEq + std::fmt::Debug + ?Sized>(what: &str, found: &T, expected: &T) -> Result<(), Broken> {
    if found == expected {
        return Ok(());
    }
    let text = format!("{what}\nin memory: {expected:?}\nin SQLite: {found:?}");
    Err(Broken::new("SQLite shows what the store in memory shows", text))
}
