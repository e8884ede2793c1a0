//! Worlds of the seeds of one run, and the bugs that such a run must find.

#[cfg(feature = "planted-bugs")]
mod planted;
mod worlds;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use onsale_sim::{Beside, Coverage, Options, Report, quiet_panics, run};

/// Worlds in memory in one run.
const SEEDS: u64 = 1_000;
/// Worlds in one run with SQLite beside the store in memory.
const SEEDS_ON_SQLITE: u64 = 100;
/// Worlds in one run with both real stores beside the one in memory.
const SEEDS_ON_BOTH: u64 = 40;

/// How most worlds are run.
fn in_memory() -> Options {
    Options::default()
}

/// SQLite beside the store in memory.
fn on_sqlite() -> Options {
    Options { beside: Beside::Sqlite, ..Options::default() }
}

/// PostgreSQL beside the store in memory.
#[cfg(feature = "planted-bugs")]
fn on_postgres() -> Options {
    Options { beside: Beside::Postgres, ..Options::default() }
}

/// Both real stores beside the one in memory.
fn on_both() -> Options {
    Options { beside: Beside::Both, ..Options::default() }
}

/// What is planted is planted in the whole process: tests take turns where they share one.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the worlds of the seeds below `count` on two threads, up to the first that breaks a rule.
fn search(count: u64, options: Options) -> (Coverage, Option<Report>) {
    quiet_panics();
    let next = AtomicU64::new(0);
    let found: Mutex<(Coverage, Option<Report>)> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= count {
                        return;
                    }
                    let report = run(seed, options);
                    let mut found = found.lock().expect("nothing panics under the lock");
                    found.0.add(&report.coverage);
                    if report.broken.is_some() {
                        next.store(count, Ordering::Relaxed);
                        if found.1.as_ref().is_none_or(|other| other.seed > report.seed) {
                            found.1 = Some(report);
                        }
                    }
                }
            });
        }
    });
    let _ = std::panic::take_hook();
    found.into_inner().expect("nothing panics under the lock")
}
