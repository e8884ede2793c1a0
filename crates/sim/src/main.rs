//! `onsale-sim`: runs the worlds of many seeds and says what it found.

use std::collections::BTreeMap;
use std::ops::Range;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use onsale_sim::{Beside, Coverage, Options, Report, Sometimes, Spared, quiet_panics, run, shrink};

/// Lines of a trace shown before what was broken.
const LINES_SHOWN: usize = 60;

/// Runs random worlds, each from its seed, until one breaks a rule.
#[derive(Parser)]
#[command(name = "onsale-sim")]
struct Arguments {
    /// The worlds to run, as `0..1000` or one number.
    #[arg(long, default_value = "0..200", value_parser = seeds)]
    seeds: Range<u64>,
    /// What decides: the store in memory alone, or real ones beside it.
    #[arg(long, value_enum, default_value_t = Stores::Memory)]
    store: Stores,
    /// A bug to plant (with the feature `planted-bugs`).
    #[arg(long)]
    bug: Option<String>,
    /// Print the whole trace of one seed, and run nothing else.
    #[arg(long)]
    trace: Option<u64>,
    /// Troubles that the worlds are spared, as a failure names them.
    #[arg(long, default_value = "")]
    spare: Spared,
    /// Worlds run at the same time.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Go on after a failure, and count the worlds that broke by the check that found it.
    #[arg(long)]
    keep_going: bool,
    /// Stop after so many seconds.
    #[arg(long)]
    seconds: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Stores {
    Memory,
    Sqlite,
    Postgres,
    Both,
}

impl Stores {
    fn beside(self) -> Beside {
        match self {
            Stores::Memory => Beside::Nothing,
            Stores::Sqlite => Beside::Sqlite,
            Stores::Postgres => Beside::Postgres,
            Stores::Both => Beside::Both,
        }
    }
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
    let options = Options { beside: arguments.store.beside(), whole_trace: false, spared: arguments.spare };
    if let Some(seed) = arguments.trace {
        let report = run(seed, Options { whole_trace: true, ..options });
        report.lines.iter().for_each(|line| println!("{line}"));
        return tell(&report, &arguments, options, 0);
    }
    many(&arguments, options)
}

/// What the worlds so far have come to.
#[derive(Default)]
struct Done {
    worlds: u64,
    steps: u64,
    /// The longest that a world took to come to an end.
    settling_ms: i64,
    coverage: Coverage,
    /// Worlds that broke a rule, by the check.
    checks: BTreeMap<&'static str, u64>,
    /// The first of them.
    broken: Option<Report>,
}

impl Done {
    fn take(&mut self, report: Report) {
        self.worlds += 1;
        self.steps += report.steps;
        self.settling_ms = self.settling_ms.max(report.settling_ms);
        self.coverage.add(&report.coverage);
        if let Some(broken) = &report.broken {
            *self.checks.entry(broken.check).or_default() += 1;
            if self.broken.as_ref().is_none_or(|other| other.seed > report.seed) {
                self.broken = Some(report);
            }
        }
    }
}

fn many(arguments: &Arguments, options: Options) -> ExitCode {
    let (next, begun) = (AtomicU64::new(arguments.seeds.start), Instant::now());
    let until = arguments.seconds.map(Duration::from_secs);
    let done: Mutex<Done> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..arguments.threads.max(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let over = until.is_some_and(|until| begun.elapsed() >= until);
                    if seed >= arguments.seeds.end || over {
                        return;
                    }
                    let report = run(seed, options);
                    let mut done = done.lock().expect("nothing panics under the lock");
                    if report.broken.is_some() && !arguments.keep_going {
                        // No later seed is begun.
                        next.store(arguments.seeds.end, Ordering::Relaxed);
                    }
                    done.take(report);
                }
            });
        }
    });
    let Done { worlds, steps, settling_ms, coverage, checks, broken } =
        done.into_inner().expect("nothing panics under the lock");
    let seconds = begun.elapsed().as_secs_f64();
    println!("{worlds} worlds, {steps} steps in {seconds:.1} s: {:.1} worlds/s", worlds as f64 / seconds);
    println!("everything had come to an end at most {} s after it was mended", settling_ms / 1_000);
    for what in Sometimes::ALL {
        println!("{:>9}  {what:?}", coverage.count(*what));
    }
    for (check, count) in checks {
        println!("{count:>9}  worlds broke: {check}");
    }
    match broken {
        Some(report) => {
            let (report, options) = shrink(report, options);
            tell(&report, arguments, options, LINES_SHOWN)
        }
        None => ExitCode::SUCCESS,
    }
}

/// Says what was broken, what came before it, and how to see it again.
fn tell(report: &Report, arguments: &Arguments, options: Options, lines: usize) -> ExitCode {
    let Some(broken) = &report.broken else {
        println!("seed {}: {} steps, trace {:016x}", report.seed, report.steps, report.hash);
        return ExitCode::SUCCESS;
    };
    let from = report.lines.len().saturating_sub(lines);
    if lines > 0 {
        report.lines[from..].iter().for_each(|line| println!("{line}"));
    }
    println!("\nseed {} broke: {}\n{}", report.seed, broken.check, broken.what);
    let store = match arguments.store {
        Stores::Memory => "",
        Stores::Sqlite => " --store sqlite",
        Stores::Postgres => " --store postgres",
        Stores::Both => " --store both",
    };
    let bug = arguments.bug.as_ref().map(|bug| format!(" --bug {bug}")).unwrap_or_default();
    let spare = match options.spared == Spared::default() {
        true => String::new(),
        false => format!(" --spare {}", options.spared),
    };
    let features = if bug.is_empty() { "" } else { " --features planted-bugs" };
    println!("again: cargo run -p onsale-sim{features} -- --trace {}{store}{spare}{bug}", report.seed);
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
