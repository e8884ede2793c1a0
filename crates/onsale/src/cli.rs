//! The command line: one program, a subcommand for each thing to do.

mod audit;
mod case;
mod event;
mod import;
mod moving;
mod offline;
mod reconcile;
mod serve;
mod tickets;

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::{self, Settings};

/// A self-hosted ticket on-sale system: seats that are sold once, payments that are accounted for.
#[derive(Parser)]
#[command(name = "onsale", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve buyers and operators
    Serve(serve::ServeArgs),
    /// Sell out an arena with simulated buyers, and check the books
    Demo(crate::demo::DemoArgs),
    /// Make, list and run events
    Event(event::EventArgs),
    /// Lay out an event's seats from a file
    Import(import::ImportArgs),
    /// Make a stadium of any size, as a seating plan on standard output
    Bowl(import::BowlArgs),
    /// Check every invariant of a live or a stopped database
    Audit(audit::AuditArgs),
    /// Compare the payment provider's books with these, on a live or a stopped database
    Reconcile(reconcile::ReconcileArgs),
    /// List, show and resolve cases: questions about money that wait for proof or a person
    Case(case::CaseArgs),
    /// Copy a live or a stopped database into a new file
    Backup(audit::BackupArgs),
    /// Move everything from the file to a new database on a PostgreSQL server
    ToPostgres(moving::ToPostgresArgs),
    /// Print the public key that tickets are verified with
    TicketKey(tickets::TicketKeyArgs),
    /// Tell a genuine ticket from any other, with the public key alone; the exit status says which
    VerifyTicket(tickets::VerifyTicketArgs),
    /// A payment provider to test against
    PaymentSimulator(serve::SimulatorArgs),
    /// Look at settings
    Config(ConfigArgs),
    /// Print the OpenAPI document
    #[command(hide = true)]
    Openapi,
}

#[derive(clap::Args)]
struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Subcommand)]
enum ConfigCommand {
    /// Print every setting with its default and meaning
    PrintDefault,
    /// Check a file of settings, with the environment as it is
    Check {
        /// The file
        file: PathBuf,
    },
}

/// Where the database of an installation is.
#[derive(clap::Args, Clone)]
pub(crate) struct DataArgs {
    /// Folder of the database [env: ONSALE_DATA] [default: onsale-data]
    #[arg(long, global = true)]
    pub(crate) data: Option<PathBuf>,
    /// A PostgreSQL database instead of the file [env: ONSALE_DATABASE_URL]
    #[arg(long, global = true)]
    pub(crate) database_url: Option<String>,
    /// The file of the server's settings: needed when it has more homes than one
    #[arg(long, global = true)]
    pub(crate) config: Option<PathBuf>,
}

impl DataArgs {
    /// The settings, with what is said here in place of what they say.
    pub(crate) fn settings(self) -> anyhow::Result<Settings> {
        Settings::load_with(self.config.as_deref(), |settings| {
            if let Some(data) = self.data {
                settings.data = data;
            }
            if let Some(url) = self.database_url {
                settings.set_database_url(url);
            }
        })
    }
}

/// Runs what the arguments say.
pub(crate) fn run() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command {
        Command::Serve(args) => serve::serve(args),
        Command::Demo(args) => crate::demo::run(args),
        Command::Event(args) => event::run(args).map(|()| ExitCode::SUCCESS),
        Command::Import(args) => import::run(args),
        Command::Bowl(args) => import::bowl(args).map(|()| ExitCode::SUCCESS),
        Command::Audit(args) => audit::audit(args),
        Command::Reconcile(args) => reconcile::reconcile(args),
        Command::Case(args) => case::run(args).map(|()| ExitCode::SUCCESS),
        Command::Backup(args) => audit::backup(args).map(|()| ExitCode::SUCCESS),
        Command::ToPostgres(args) => moving::to_postgres(args).map(|()| ExitCode::SUCCESS),
        Command::TicketKey(args) => tickets::key(args).map(|()| ExitCode::SUCCESS),
        Command::VerifyTicket(args) => tickets::verify(args),
        Command::PaymentSimulator(args) => serve::simulator(args),
        Command::Config(args) => config_command(args),
        Command::Openapi => openapi(),
    };
    done.unwrap_or_else(|error| {
        eprintln!("onsale: {error:#}");
        ExitCode::FAILURE
    })
}

fn config_command(args: ConfigArgs) -> anyhow::Result<ExitCode> {
    match args.command {
        ConfigCommand::PrintDefault => say(config::DEFAULT_TEXT.trim_end())?,
        ConfigCommand::Check { file } => {
            Settings::load(Some(&file))?;
            say(format_args!("{} is valid", file.display()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn openapi() -> anyhow::Result<ExitCode> {
    say(crate::http::router::openapi().to_pretty_json()?)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints to standard output. Whoever has stopped reading has read enough.
pub(crate) fn say(text: impl std::fmt::Display) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

/// A port on loopback that the system chooses.
pub(crate) fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}
