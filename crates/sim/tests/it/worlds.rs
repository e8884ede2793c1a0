//! No world breaks a rule, everything that may go wrong goes wrong somewhere, and a seed says everything about its world.

use onsale_sim::{Report, run};

use crate::{SEEDS, SEEDS_ON_BOTH, SEEDS_ON_SQLITE, in_memory, on_both, on_sqlite, search, turn};

/// The report of a world that broke a rule, as a test shows it.
fn told(report: &Report) -> String {
    let broken = report.broken.as_ref().expect("it was broken");
    let from = report.lines.len().saturating_sub(40);
    let lines = report.lines[from..].join("\n");
    let again = format!("cargo run -p onsale-sim -- --trace {}", report.seed);
    format!("{lines}\nseed {} broke: {}\n{}\nagain: {again}", report.seed, broken.check, broken.what)
}

#[test]
fn in_memory_every_rule_holds_and_everything_happens() {
    let _turn = turn();
    let (coverage, broken) = search(SEEDS, in_memory());
    if let Some(report) = broken {
        panic!("{}", told(&report));
    }
    assert_eq!(coverage.never(), [], "what a run must meet and didn't");
}

#[test]
fn sqlite_decides_as_the_store_in_memory_and_passes_every_audit() {
    let _turn = turn();
    if let (_, Some(report)) = search(SEEDS_ON_SQLITE, on_sqlite()) {
        panic!("{} (with --store sqlite)", told(&report));
    }
}

/// The differential test: every answer of SQLite and of PostgreSQL is that of the store in memory, and so is all that they show.
#[test]
fn both_databases_decide_as_the_store_in_memory_and_pass_every_audit() {
    let _turn = turn();
    if let (_, Some(report)) = search(SEEDS_ON_BOTH, on_both()) {
        panic!("{} (with --store both)", told(&report));
    }
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let _turn = turn();
    for (seeds, options) in [(0..20, in_memory()), (0..6, on_sqlite())] {
        let mut hashes = Vec::new();
        for seed in seeds {
            let (once, again) = (run(seed, options), run(seed, options));
            assert_eq!((once.hash, once.steps), (again.hash, again.steps), "seed {seed}, {options:?}");
            hashes.push(once.hash);
        }
        hashes.sort();
        hashes.dedup();
        assert!(hashes.len() > 5, "other seeds give other worlds");
    }
}
