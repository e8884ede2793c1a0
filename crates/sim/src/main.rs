//! `onsale-sim`: runs the worlds of many seeds and says what it found.

use std::ops::Range;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use onsale_sim::{Coverage, Options, Report, Sometimes, quiet_panics, run};

/// Lines of a trace shown before what was broken.
const LINES_SHOWN: usize = 60;

/// Runs random worlds, each from its seed, until one breaks a rule.
#[derive(Parser)]
#[command(name = "onsale-sim")]
struct Arguments {
    /// The worlds to run, as `0..1000` or one number.
    #[arg(long, default_value = "0..200", value_parser = seeds)]
    seeds: Range<u64>,
    /// What decides: the store in memory alone, or SQLite beside it.
    #[arg(long, value_enum, default_value_t = Stores::Memory)]
    store: Stores,
    /// A bug to plant (with the feature `planted-bugs`).
    #[arg(long)]
    bug: Option<String>,
    /// Print the whole trace of one seed, and run nothing else.
    #[arg(long)]
    trace: Option<u64>,
    /// Worlds run at the same time.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Stop after so many seconds.
    #[arg(long)]
    seconds: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Stores {
    Memory,
    Sqlite,
}

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let number = |text: &str| text.parse::<u64>().map_err(|error| format!("{text:?}: {error}"));
    match text.split_once("..") {
        Some((first, end)) => Ok(number(first)?..number(end)?),
        None => number(text).map(|seed| seed..seed + 1),
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(name) = &arguments.bug
        && let Err(error) = plant(name)
    {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    quiet_panics();
    let on_sqlite = arguments.store == Stores::Sqlite;
    if let Some(seed) = arguments.trace {
        let report = run(seed, Options { on_sqlite, whole_trace: true });
        report.lines.iter().for_each(|line| println!("{line}"));
        return tell(&report, &arguments, 0);
    }
    many(&arguments, on_sqlite)
}

fn many(arguments: &Arguments, on_sqlite: bool) -> ExitCode {
    let (next, begun) = (AtomicU64::new(arguments.seeds.start), Instant::now());
    let until = arguments.seconds.map(Duration::from_secs);
    let done: Mutex<(u64, u64, Coverage, Option<Report>)> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..arguments.threads.max(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let over = until.is_some_and(|until| begun.elapsed() >= until);
                    if seed >= arguments.seeds.end || over {
                        return;
                    }
                    let report = run(seed, Options { on_sqlite, whole_trace: false });
                    let mut done = done.lock().expect("nothing panics under the lock");
                    done.0 += 1;
                    done.1 += report.steps;
                    done.2.add(&report.coverage);
                    let first = done.3.as_ref().is_none_or(|other| other.seed > seed);
                    if report.broken.is_some() {
                        // No later seed is begun.
                        next.store(arguments.seeds.end, Ordering::Relaxed);
                        if first {
                            done.3 = Some(report);
                        }
                    }
                }
            });
        }
    });
    let (worlds, steps, coverage, broken) = done.into_inner().expect("nothing panics under the lock");
    let seconds = begun.elapsed().as_secs_f64();
    println!("{worlds} worlds, {steps} steps in {seconds:.1} s: {:.1} worlds/s", worlds as f64 / seconds);
    for what in Sometimes::ALL {
        println!("{:>9}  {what:?}", coverage.count(*what));
    }
    match broken {
        Some(report) => tell(&report, arguments, LINES_SHOWN),
        None => ExitCode::SUCCESS,
    }
}

/// Says what was broken, what came before it, and how to see it again.
fn tell(report: &Report, arguments: &Arguments, lines: usize) -> ExitCode {
    let Some(broken) = &report.broken else {
        println!("seed {}: {} steps, trace {:016x}", report.seed, report.steps, report.hash);
        return ExitCode::SUCCESS;
    };
    let from = report.lines.len().saturating_sub(lines);
    if lines > 0 {
        report.lines[from..].iter().for_each(|line| println!("{line}"));
    }
    println!("\nseed {} broke: {}\n{}", report.seed, broken.check, broken.what);
    let store = if arguments.store == Stores::Sqlite { " --store sqlite" } else { "" };
    let bug = arguments.bug.as_ref().map(|bug| format!(" --bug {bug}")).unwrap_or_default();
    let features = if bug.is_empty() { "" } else { " --features planted-bugs" };
    println!("again: cargo run -p onsale-sim{features} -- --trace {}{store}{bug}", report.seed);
    ExitCode::FAILURE
}

#[cfg(feature = "planted-bugs")]
fn plant(name: &str) -> Result<(), String> {
    use onsale_core::planted::{Bug, plant};
    let all = || {
        Bug::ALL.iter().map(|bug| format!("{:<24} {}\n", format!("{bug:?}"), bug.what())).collect::<String>()
    };
    plant(Some(Bug::named(name).ok_or_else(|| format!("no such bug: {name}; there are\n{}", all()))?));
    Ok(())
}

#[cfg(not(feature = "planted-bugs"))]
fn plant(_: &str) -> Result<(), String> {
    Err("this build has no bugs to plant: run it with --features planted-bugs".to_owned())
}
