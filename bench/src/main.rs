//! Benchmarks: the real program as a process of its own, asked over loopback HTTP, beside what the same machine does at
//! best in the same run. The load's share of the two cores is part of every figure.

mod client;
mod hall;
mod load;
mod machine;
mod report;
mod scenario;
mod server;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use clap::Parser;

use crate::report::Report;
use crate::scenario::{SCENARIOS, Setup};

/// Measures onsale on this machine.
#[derive(Parser)]
struct Arguments {
    /// The program to measure [default: the one built beside this].
    #[arg(long)]
    onsale: Option<PathBuf>,
    /// Scenarios to run, by name [default: all].
    scenarios: Vec<String>,
    /// The same, with commas between them.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Seconds that each load lasts.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Connections at once.
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=4_000))]
    connections: u32,
    /// What the order of seats follows from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the figures here too, as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Fail when a figure that must be reached is not.
    #[arg(long)]
    check: bool,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let onsale = match &arguments.onsale {
        Some(path) => path.clone(),
        None => std::env::current_exe()?.with_file_name("onsale"),
    };
    ensure!(onsale.exists(), "{} is not there: run `cargo xtask bench`, which builds it", onsale.display());
    let wanted: Vec<&String> = arguments.scenarios.iter().chain(&arguments.only).collect();
    for name in &wanted {
        ensure!(SCENARIOS.iter().any(|scenario| scenario.name == *name), "there is no scenario `{name}`");
    }
    let setup = Setup {
        onsale,
        lasts: Duration::from_secs(arguments.seconds),
        connections: arguments.connections as usize,
        seed: arguments.seed,
    };
    let mut report = Report::new(machine::describe());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for scenario in SCENARIOS {
        if wanted.is_empty() || wanted.iter().any(|name| *name == scenario.name) {
            eprintln!("{}: {}", scenario.name, scenario.about);
            runtime.block_on((scenario.run)(&setup, &mut report))?;
        }
    }
    print!("{report}");
    if let Some(path) = &arguments.json {
        std::fs::write(path, report.to_json().to_string())?;
    }
    let missed = report.missed();
    ensure!(!arguments.check || missed.is_empty(), "not reached: {}", missed.join("; "));
    Ok(())
}
