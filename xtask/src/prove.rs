//! `cargo xtask prove`: what is too long for `ci`. Hours on a small machine; every step can be run alone by its name.

use std::path::Path;

use crate::steps::{Step, run_steps};
use crate::tools::{self, cargo, succeed};
use crate::{bench, chaos, mutants};

/// Simulated worlds in memory, with SQLite beside it, and with PostgreSQL too.
const WORLDS: &str = "0..100000";
const WORLDS_ON_SQLITE: &str = "0..5000";
const WORLDS_ON_BOTH: &str = "0..1000";
/// Sales during which the power is cut again and again. A test of more would be stopped for its time.
const DISK_SEEDS: &str = "24";

const STEPS: &[Step] = &[
    Step { name: "tools", run: tools::check },
    Step { name: "crash points", run: crash_points },
    Step { name: "power cuts", run: power_cuts },
    Step { name: "worlds", run: |root| worlds(root, "memory", WORLDS) },
    Step { name: "worlds on sqlite", run: |root| worlds(root, "sqlite", WORLDS_ON_SQLITE) },
    Step { name: "worlds on both", run: |root| worlds(root, "both", WORLDS_ON_BOTH) },
    Step { name: "chaos", run: |root| chaos::run(root, &[]) },
    Step { name: "mutants", run: mutants::run },
    Step { name: "bench", run: |root| bench::run(root, &["--check"]) },
];

/// Runs every step, or those that are named.
pub(crate) fn run(root: &Path, names: &[&str]) -> Result<(), String> {
    for name in names {
        if !STEPS.iter().any(|step| step.name == *name) {
            let known: Vec<_> = STEPS.iter().map(|step| step.name).collect();
            return Err(format!("there is no step `{name}`, only: {}", known.join(", ")));
        }
    }
    let wanted = STEPS.iter().filter(|step| names.is_empty() || names.contains(&step.name));
    run_steps("prove", root, wanted)
}

/// Every fail point at every hit, with every way to fail there.
fn crash_points(root: &Path) -> Result<(), String> {
    let tests = ["nextest", "run", "-p", "onsale", "-p", "onsale-store", "--features", "onsale/fail-points"];
    let tests = [&tests[..], &["crash_points::", "fail_point::"]].concat();
    succeed(cargo(root, &tests).env("ONSALE_CRASH_POINTS", "all"))
}

fn power_cuts(root: &Path) -> Result<(), String> {
    let tests = ["nextest", "run", "-p", "onsale-store", "disk::"];
    succeed(cargo(root, &tests).env("ONSALE_DISK_SEEDS", DISK_SEEDS))
}

fn worlds(root: &Path, store: &str, seeds: &str) -> Result<(), String> {
    let run = ["run", "--release", "--package", "onsale-sim", "--", "--store", store, "--seeds", seeds];
    succeed(&mut cargo(root, &run))
}
