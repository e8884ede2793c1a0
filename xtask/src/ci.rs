//! `cargo xtask ci`: what must hold before a change is taken, in order, up to the first that doesn't.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::tools::{self, cargo, succeed};
use crate::{openapi, provider_client, tidy};

struct Step {
    name: &'static str,
    run: fn(&Path) -> Result<(), String>,
}

/// Cheap steps come first. Clippy and doc share one check of the dependencies; the tests, the diff and the provider's
/// client share one build, and only the demo is built for release.
const STEPS: &[Step] = &[
    Step { name: "tools", run: tools::check },
    Step { name: "format", run: |root| succeed(&mut cargo(root, &["fmt", "--all", "--check"])) },
    Step { name: "tidy", run: tidy::run },
    Step { name: "clippy", run: clippy },
    Step { name: "doc", run: doc },
    Step { name: "test", run: |root| succeed(&mut cargo(root, &["nextest", "run", "--workspace"])) },
    Step { name: "openapi", run: openapi::compare },
    Step { name: "provider client", run: provider_client::run },
    Step { name: "demo", run: |root| succeed(&mut cargo(root, &["run", "--release", "--", "demo"])) },
];

fn clippy(root: &Path) -> Result<(), String> {
    succeed(&mut cargo(root, &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

fn doc(root: &Path) -> Result<(), String> {
    let mut doc = cargo(root, &["doc", "--workspace", "--no-deps", "--document-private-items"]);
    succeed(doc.env("RUSTDOCFLAGS", "-D warnings"))
}

/// Runs every step, and stops at the first that fails.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    run_steps(root, STEPS)
}

fn run_steps(root: &Path, steps: &[Step]) -> Result<(), String> {
    let begun = Instant::now();
    let mut times = Vec::new();
    for (index, Step { name, run }) in steps.iter().enumerate() {
        let place = format!("step {} of {}, {name}", index + 1, steps.len());
        println!("\n== {place}");
        let step_begun = Instant::now();
        let done = run(root);
        let took = step_begun.elapsed();
        times.push((*name, took));
        if let Err(error) = done {
            println!("\n{}", table(&times, begun.elapsed()));
            return Err(format!("ci: {place}, failed after {}: {error}", seconds(took)));
        }
        println!("== {name} passed in {}", seconds(took));
    }
    println!("\n{}", table(&times, begun.elapsed()));
    println!("ci: all steps passed in {}", seconds(begun.elapsed()));
    Ok(())
}

fn table(times: &[(&str, Duration)], total: Duration) -> String {
    let lines = times.iter().copied().chain([("total", total)]);
    lines.map(|(name, took)| format!("{name:<16} {:>10}\n", seconds(took))).collect()
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_stops_the_run_and_names_its_step() {
        let steps = [
            Step { name: "good", run: |_| Ok(()) },
            Step { name: "bad", run: |_| Err("it broke".to_owned()) },
            Step { name: "never", run: |_| panic!("a step after a failure was run") },
        ];
        let error = run_steps(Path::new("."), &steps).unwrap_err();
        assert!(error.starts_with("ci: step 2 of 3, bad, failed after "), "{error}");
        assert!(error.ends_with(": it broke"), "{error}");
        assert_eq!(run_steps(Path::new("."), &steps[..1]), Ok(()));
    }

    #[test]
    fn the_table_has_a_line_for_each_step_and_the_total() {
        let text = table(&[("format", Duration::from_millis(1_250))], Duration::from_secs(61));
        assert_eq!(text, "format                1.2 s\ntotal                61.0 s\n");
    }
}
