//! A list of steps, run in order up to the first that fails, and timed.

use std::path::Path;
use std::time::{Duration, Instant};

/// A step.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&Path) -> Result<(), String>,
}

/// Runs every step, and stops at the first that fails.
pub(crate) fn run_steps<'a>(
    task: &str,
    root: &Path,
    steps: impl IntoIterator<Item = &'a Step>,
) -> Result<(), String> {
    let steps: Vec<_> = steps.into_iter().collect();
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
            return Err(format!("{task}: {place}, failed after {}: {error}", seconds(took)));
        }
        println!("== {name} passed in {}", seconds(took));
    }
    println!("\n{}", table(&times, begun.elapsed()));
    println!("{task}: all steps passed in {}", seconds(begun.elapsed()));
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
        let error = run_steps("ci", Path::new("."), &steps).unwrap_err();
        assert!(error.starts_with("ci: step 2 of 3, bad, failed after "), "{error}");
        assert!(error.ends_with(": it broke"), "{error}");
        assert_eq!(run_steps("ci", Path::new("."), &steps[..1]), Ok(()));
    }

    #[test]
    fn the_table_has_a_line_for_each_step_and_the_total() {
        let text = table(&[("format", Duration::from_millis(1_250))], Duration::from_secs(61));
        assert_eq!(text, "format                1.2 s\ntotal                61.0 s\n");
    }
}
