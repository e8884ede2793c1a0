//! A sale on a real PostgreSQL cluster whose parts are killed, frozen, cut off and filled up, checked by a ledger that
//! stands outside of it all.

mod cluster;
mod enclosure;
mod faults;
mod play;
mod process;
mod report;
mod sale;
mod tools;
mod verdict;
mod wait;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Parser, ValueEnum};

use crate::cluster::{Cluster, FAST, HONEST, Route};
use crate::enclosure::Part;
use crate::faults::{FAULTS, Fault, Scene};
use crate::report::{Line, table};
use crate::sale::{Shop, Store};
use crate::verdict::Judge;

/// Breaks a cluster in the middle of a sale, and checks that nothing acknowledged is lost and nothing is sold twice.
#[derive(Parser)]
struct Arguments {
    /// The faults to try [default: all]
    names: Vec<String>,
    /// Name the faults, and try none
    #[arg(long)]
    list: bool,
    /// The few that are tried at every change, with Patroni as fast as it goes
    #[arg(long)]
    short: bool,
    /// Where the application keeps its data
    #[arg(long, value_enum, default_value_t = Kept::Postgres)]
    store: Kept,
    /// How the application reaches the cluster
    #[arg(long, value_enum, default_value_t = Route::Proxy)]
    route: Route,
    /// Processes of the application
    #[arg(long, default_value_t = 2)]
    processes: usize,
    /// What the buyers' choices follow from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The program under test
    #[arg(long)]
    onsale: PathBuf,
    /// Where the Python environment and the logs of a run are kept
    #[arg(long)]
    kept: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kept {
    /// In the cluster
    Postgres,
    /// In a file, by one process: the cluster's faults go by unnoticed
    File,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    done(&arguments).unwrap_or_else(|error| {
        eprintln!("chaos: {error:#}");
        ExitCode::FAILURE
    })
}

fn done(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.list {
        for fault in FAULTS {
            println!("{:<18} {}{}", fault.name, fault.what, if fault.short { " (short)" } else { "" });
        }
        return Ok(ExitCode::SUCCESS);
    }
    let faults = chosen(arguments)?;
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    match Part::this() {
        Part::Init => enclosure::init(),
        Part::Outside => {
            tools::check(&arguments.kept)?;
            runtime()?.block_on(enclosure::enter())
        }
        Part::Runner => runtime()?.block_on(run(arguments, &faults)),
    }
}

fn chosen(arguments: &Arguments) -> anyhow::Result<Vec<&'static Fault>> {
    if let Some(unknown) =
        arguments.names.iter().find(|name| !FAULTS.iter().any(|fault| fault.name == **name))
    {
        bail!("there is no fault {unknown}: see --list");
    }
    let wanted = |fault: &&Fault| match arguments.names.is_empty() {
        true => fault.short || !arguments.short,
        false => arguments.names.iter().any(|name| name == fault.name),
    };
    Ok(FAULTS.iter().filter(wanted).collect())
}

/// Inside the enclosure: brings everything up, tries every fault, and says what came of it.
async fn run(arguments: &Arguments, faults: &[&'static Fault]) -> anyhow::Result<ExitCode> {
    // No address here is https, but the client asks for a provider all the same.
    rustls::crypto::ring::default_provider().install_default().ok();
    let logs = arguments.kept.join("logs");
    if logs.exists() {
        std::fs::remove_dir_all(&logs).context("failed to remove the last run's logs")?;
    }
    enclosure::furnish(&logs)?;
    let result = tried(arguments, faults, &logs).await;
    if !matches!(&result, Ok(code) if *code == ExitCode::SUCCESS) {
        eprintln!("chaos: the logs and the ledgers are in {}", logs.display());
    }
    result
}

async fn tried(arguments: &Arguments, faults: &[&'static Fault], logs: &Path) -> anyhow::Result<ExitCode> {
    let pace = if arguments.short { FAST } else { HONEST };
    let cluster = Cluster::start(pace, &arguments.kept.join("venv"), logs).await?;
    let (store, processes) = match arguments.store {
        Kept::Postgres => (Store::Postgres(cluster.url(arguments.route)), arguments.processes),
        Kept::File => (Store::File, 1),
    };
    let shop = Shop::start_all(0, &arguments.onsale, store, processes, logs).await?;
    let mut scene = Scene { cluster, shop };
    let mut judge = Judge::default();
    let mut lines: Vec<Line> = Vec::new();
    for fault in faults {
        eprintln!("{}: {}", fault.name, fault.what);
        match play::play(fault, &mut scene, &mut judge, logs, arguments.seed).await {
            Ok(line) => {
                eprintln!("{}: {line}", fault.name);
                lines.push(line);
            }
            // What comes next would stand on something broken.
            Err(error) => {
                println!("{}", table(&lines));
                return Err(error.context(fault.name));
            }
        }
    }
    let since = judge.judge_all_again(&scene.shop).await?;
    for found in &since {
        eprintln!("at the end: {found}");
    }
    println!("{}", table(&lines));
    scene.shop.stop().await?;
    scene.cluster.stop().await?;
    let good = since.is_empty() && lines.iter().all(Line::is_good);
    println!(
        "chaos: {}",
        if good { "nothing acknowledged is lost, nothing is sold twice" } else { "something is wrong" }
    );
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
