//! A sale on a real PostgreSQL cluster whose parts are killed, frozen, cut off and filled up, checked by a ledger that
//! stands outside of it all.

mod cluster;
mod enclosure;
mod process;
mod tools;
mod wait;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use crate::enclosure::Part;

/// Breaks a cluster in the middle of a sale, and checks that nothing acknowledged is lost and nothing is sold twice.
#[derive(Parser)]
struct Arguments {
    /// The faults to try [default: all]
    names: Vec<String>,
    /// Name the faults, and try none
    #[arg(long)]
    list: bool,
    /// The few that are tried at every change
    #[arg(long)]
    short: bool,
    /// The program under test
    #[arg(long)]
    onsale: PathBuf,
    /// Where the Python environment and the logs of a run are kept
    #[arg(long)]
    kept: PathBuf,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let done = match Part::this() {
        Part::Init => enclosure::init(),
        Part::Outside => tools::check(&arguments.kept).and_then(|_| runtime()?.block_on(enclosure::enter())),
        Part::Runner => runtime().map_err(Into::into).and_then(|runtime| runtime.block_on(run(&arguments))),
    };
    done.unwrap_or_else(|error| {
        eprintln!("chaos: {error:#}");
        ExitCode::FAILURE
    })
}

async fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    // No address here is https, but the client asks for a provider all the same.
    rustls::crypto::ring::default_provider().install_default().ok();
    let logs = arguments.kept.join("logs");
    enclosure::furnish(&logs)?;
    let cluster = cluster::Cluster::start(cluster::HONEST, &arguments.kept.join("venv"), &logs).await?;
    cluster.healthy().await?;
    println!("up");
    cluster.stop().await?;
    println!("down");
    Ok(ExitCode::SUCCESS)
}
