//! `onsale serve` and `onsale payment-simulator`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use crate::config::Settings;
use crate::gateway::simulator::{Simulator, SimulatorConfig};
use crate::server::{Mode, Server};
use crate::telemetry;

use super::{any_port, say};

#[derive(clap::Args)]
pub(crate) struct ServeArgs {
    /// Folder of the database and of operator.key [default: onsale-data]
    #[arg(long)]
    data: Option<PathBuf>,
    /// A PostgreSQL database instead of the file [env: ONSALE_DATABASE_URL]
    #[arg(long)]
    database_url: Option<String>,
    /// Where buyers connect [default: 127.0.0.1:8080]
    #[arg(long)]
    listen: Option<SocketAddr>,
    /// Where operators connect [default: 127.0.0.1:8081]
    #[arg(long)]
    operator_listen: Option<SocketAddr>,
    /// Run the payment simulator in this process, at this address, and pay through it
    #[arg(long)]
    payment_simulator: Option<SocketAddr>,
    /// Let tests move the clock; on loopback only
    #[arg(long)]
    test_mode: bool,
    /// In test mode: let workers run by themselves, and time with them
    #[arg(long, requires = "test_mode")]
    workers: bool,
    /// A file of settings
    #[arg(long)]
    config: Option<PathBuf>,
}

pub(crate) fn serve(args: ServeArgs) -> anyhow::Result<ExitCode> {
    let settings = Settings::load_with(args.config.as_deref(), |settings| {
        if let Some(data) = args.data {
            settings.data = data;
        }
        if let Some(url) = args.database_url {
            settings.set_database_url(url);
        }
        settings.listen = args.listen.unwrap_or(settings.listen);
        settings.operator_listen = args.operator_listen.unwrap_or(settings.operator_listen);
    })?;
    telemetry::start(&settings.log.level)?;
    // Test mode has its simulator unless a provider is configured.
    let by_default = (args.test_mode && settings.payment.secret_key.is_empty()).then(any_port);
    let simulator = args.payment_simulator.or(by_default);
    let mode = Mode { test: args.test_mode, workers: args.workers, simulator };
    runtime()?.block_on(async {
        // Listened to before anything else: a stop that comes early is a stop all the same.
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let server = Server::start(&settings, mode).await?;
        let ready = json!({
            "ready": true,
            "listen": server.listen.to_string(),
            "operator_listen": server.operator_listen.to_string(),
            "payment_simulator": server.simulator.as_ref().map(|simulator| simulator.addr.to_string()),
            "version": env!("CARGO_PKG_VERSION"),
        });
        say(&ready)?;
        tracing::info!(listen = %server.listen, operator_listen = %server.operator_listen, "Serving");
        let mut exit = ExitCode::SUCCESS;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            () = server.writer_ended() => {
                tracing::error!("The writer has ended by itself: start the program anew");
                exit = ExitCode::FAILURE;
            }
        }
        tracing::info!("Stopping");
        server.stop().await;
        tracing::info!("Stopped");
        Ok(exit)
    })
}

pub(crate) fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

#[derive(clap::Args)]
pub(crate) struct SimulatorArgs {
    /// Where to listen
    #[arg(long, default_value = "127.0.0.1:8082")]
    listen: SocketAddr,
    /// Where events are sent; they are only kept while there is none
    #[arg(long)]
    webhook_url: Option<String>,
    /// What events are signed with
    #[arg(long, env = "ONSALE_SIMULATOR_WEBHOOK_SECRET", default_value = "whsec_simulator")]
    webhook_secret: String,
    /// What its ids follow from [default: by chance]
    #[arg(long)]
    seed: Option<u64>,
}

pub(crate) fn simulator(args: SimulatorArgs) -> anyhow::Result<ExitCode> {
    telemetry::start("info")?;
    runtime()?.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let config = SimulatorConfig {
            listen: args.listen,
            webhook_secret: args.webhook_secret,
            webhook_url: args.webhook_url,
            seed: args.seed.unwrap_or_else(rand::random),
        };
        let simulator = Simulator::start(config).await?;
        say(json!({ "ready": true, "payment_simulator": simulator.addr.to_string() }))?;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        simulator.stop().await;
        Ok(ExitCode::SUCCESS)
    })
}
