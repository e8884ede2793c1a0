//! Random worlds. One seed makes one world: buyers with several devices and little patience, an operator, processes that
//! end between any two steps, clocks that go wrong, a network that loses, doubles and delays, a database that fails and a
//! provider that does what providers do. Everything happens in one thread, in virtual time, by one stream of chance: the
//! same seed gives the same trace.
//!
//! A world has three phases. While faults happen, what must hold is looked at after every commit. Then everything is
//! mended. Then all that was begun must come to an end, and the books are compared with the provider's and with what
//! buyers were told.

mod buyer;
mod chance;
mod checks;
mod coverage;
mod database;
mod ledger;
mod operator;
mod plan;
mod process;
mod provider;
mod sim;
mod trace;

use std::panic::{AssertUnwindSafe, catch_unwind};

pub use coverage::{Coverage, Sometimes};
use database::Real;
use onsale_world::World;
use onsale_world::invariants::INVARIANTS;
pub use plan::{Spared, Trouble};
use sim::Sim;

/// What is not as it must be.
#[derive(Clone, Debug)]
pub struct Broken {
    /// The check that found it.
    pub check: &'static str,
    /// What it found.
    pub what: String,
}

impl Broken {
    fn new(check: &'static str, what: impl Into<String>) -> Broken {
        Broken { check, what: what.into() }
    }
}

/// Which real stores decide beside the one in memory.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Beside {
    /// None.
    #[default]
    Nothing,
    /// SQLite.
    Sqlite,
    /// PostgreSQL.
    Postgres,
    /// Both.
    Both,
}

impl Beside {
    fn databases(self, processes: usize) -> Vec<Real> {
        let file = || Real::file(processes);
        let server = || Real::server(processes);
        match self {
            Beside::Nothing => vec![],
            Beside::Sqlite => vec![file()],
            Beside::Postgres => vec![server()],
            Beside::Both => vec![file(), server()],
        }
    }
}

/// How a world is run.
#[derive(Clone, Copy, Default, Debug)]
pub struct Options {
    /// Which real stores decide beside the one in memory.
    pub beside: Beside,
    /// Whether the whole trace is kept, and not only its end.
    pub whole_trace: bool,
    /// Troubles that the world is spared.
    pub spared: Spared,
}

/// What became of a world.
#[derive(Debug)]
pub struct Report {
    /// Which.
    pub seed: u64,
    /// What was broken, if anything.
    pub broken: Option<Broken>,
    /// Events that happened.
    pub steps: u64,
    /// Virtual time from the end of all faults to the end of all that was begun.
    pub settling_ms: i64,
    /// What happened now and then.
    pub coverage: Coverage,
    /// Over every line of the trace.
    pub hash: u64,
    /// The trace, or its end.
    pub lines: Vec<String>,
}

/// Runs the world of a seed to its end, or to the first thing that is broken.
pub fn run(seed: u64, options: Options) -> Report {
    let mut sim = Sim::new(seed, options);
    let ended = catch_unwind(AssertUnwindSafe(|| sim.run()));
    let broken = match ended {
        Ok(done) => done.err(),
        Err(panic) => {
            let what = panic.downcast_ref::<String>().cloned();
            let what = what.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Some(Broken::new(invariant(&sim), what.unwrap_or_default()))
        }
    };
    let (hash, coverage, steps) = (sim.trace.hash(), sim.coverage.clone(), sim.steps);
    let settling_ms = sim.settling_ms();
    Report { seed, broken, steps, settling_ms, coverage, hash, lines: sim.trace.into_lines() }
}

/// The invariant that ended a world in a panic; or else it was the code itself.
fn invariant(sim: &Sim) -> &'static str {
    let fails = |check: &fn(&World)| catch_unwind(AssertUnwindSafe(|| check(&sim.database.world))).is_err();
    INVARIANTS.iter().find(|(_, check)| fails(check)).map_or("panic", |(name, _)| name)
}

/// Looks for a simpler world of the same seed in which the same check fails: spares it one trouble after the other, and
/// keeps what isn't needed for the failure away.
pub fn shrink(report: Report, mut options: Options) -> (Report, Options) {
    let mut simplest = report;
    for trouble in Trouble::ALL {
        let fewer = Options { spared: options.spared.and(*trouble), ..options };
        let again = run(simplest.seed, fewer);
        let check = |report: &Report| report.broken.as_ref().map(|broken| broken.check);
        if check(&again) == check(&simplest) {
            (simplest, options) = (again, fewer);
        }
    }
    (simplest, options)
}

/// Keeps panics, which are findings here, from being printed.
pub fn quiet_panics() {
    std::panic::set_hook(Box::new(|_| ()));
}
