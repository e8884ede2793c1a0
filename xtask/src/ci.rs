//! `cargo xtask ci`: what must hold before a change is taken, in order, up to the first that doesn't.

use std::path::Path;
use std::process::Command;

use onsale_postgres_server::{Place, SHARED_FOLDER, SHARED_SETTINGS, Server};

use crate::steps::{Step, run_steps};
use crate::tools::{self, cargo, succeed};
use crate::{chaos, openapi, provider_client, tidy, webhook_client};

/// Cheap steps come first. Clippy and doc share one check of the dependencies; the tests, the diff and the
/// clients share one build, and only the demo is built for release.
const STEPS: &[Step] = &[
    Step { name: "tools", run: tools::check },
    Step { name: "format", run: |root| succeed(&mut cargo(root, &["fmt", "--all", "--check"])) },
    Step { name: "tidy", run: tidy::run },
    Step { name: "clippy", run: clippy },
    Step { name: "doc", run: doc },
    Step { name: "test", run: test },
    Step { name: "test on postgres", run: test_on_postgres },
    Step { name: "planted bugs", run: planted_bugs },
    Step { name: "openapi", run: openapi::compare },
    Step { name: "provider client", run: provider_client::run },
    Step { name: "webhook client", run: webhook_client::run },
    Step { name: "crash points", run: crash_points },
    Step { name: "chaos", run: |root| chaos::run(root, &["--short"]) },
    Step { name: "demo", run: |root| succeed(&mut cargo(root, &["run", "--release", "--", "demo"])) },
];

/// As it is shipped, and with all that is there for tests alone.
fn clippy(root: &Path) -> Result<(), String> {
    let whole = ["clippy", "--workspace", "--all-targets"];
    let strict = ["--", "-D", "warnings"];
    succeed(&mut cargo(root, &[&whole[..], &strict].concat()))?;
    succeed(&mut cargo(root, &[&whole[..], &["--all-features"], &strict].concat()))
}

/// All tests.
fn test(root: &Path) -> Result<(), String> {
    with_postgres(&mut cargo(root, &["nextest", "run", "--workspace"]))
}

/// The tests of the running program once more, with its data on a PostgreSQL server. Which of them are about the file alone, and
/// why, is said in `.config/nextest.toml`.
fn test_on_postgres(root: &Path) -> Result<(), String> {
    let tests = ["nextest", "run", "-p", "onsale", "--profile", "postgres"];
    with_postgres(cargo(root, &tests).env("ONSALE_TEST_STORE", "postgres"))
}

/// Runs tests that share one PostgreSQL server: each of them has databases of its own there. It is gone when this ends.
fn with_postgres(tests: &mut Command) -> Result<(), String> {
    let server = Server::start_with(Place::Memory, SHARED_SETTINGS).map_err(|error| error.to_string())?;
    println!("PostgreSQL is at {}", server.folder().display());
    succeed(tests.env(SHARED_FOLDER, server.folder()))
}

/// The program is killed, or fails, or is slow, at each of its fail points. A build of its own: no other has them.
fn crash_points(root: &Path) -> Result<(), String> {
    let tests = ["nextest", "run", "-p", "onsale", "-p", "onsale-store", "--features", "onsale/fail-points"];
    let tests = [&tests[..], &["crash_points::", "fail_point::"]].concat();
    succeed(&mut cargo(root, &tests))
}

/// The simulated worlds find what is planted for them. A build of its own: no other has the bugs in it.
fn planted_bugs(root: &Path) -> Result<(), String> {
    let tests = ["nextest", "run", "-p", "onsale-sim", "--features", "planted-bugs", "planted::"];
    succeed(&mut cargo(root, &tests))
}

fn doc(root: &Path) -> Result<(), String> {
    let mut doc = cargo(root, &["doc", "--workspace", "--no-deps", "--document-private-items"]);
    succeed(doc.env("RUSTDOCFLAGS", "-D warnings"))
}

/// Runs every step, and stops at the first that fails.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    run_steps("ci", root, STEPS)
}
