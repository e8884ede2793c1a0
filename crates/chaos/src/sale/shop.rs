//! The application: any number of its processes over one store, and the payment provider that outlives them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

use super::client::Client;
use crate::enclosure::FOLDER;
use crate::process::{Held, Output};

/// The operator's key, made at the first start.
const OPERATOR_KEY: &str = "osk_operator_of_the_chaos";
const SECRET_KEY: &str = "sk_test_of_the_chaos";
const WEBHOOK_SECRET: &str = "whsec_of_the_chaos";
/// A home's ports: the provider's, and then three for each process. Nobody else is in the enclosure.
const PORTS_FROM: usize = 8_000;
const PORTS_OF_A_HOME: usize = 100;
/// A server that keeps a commit for itself is refused.
const SETTINGS: &str = "[database]\nstandby = \"required\"\n";
/// The first start makes the tables, each of them committed on two nodes.
const START: Duration = Duration::from_secs(60);

/// Where the application keeps its data.
#[derive(Clone)]
pub(crate) enum Store {
    /// A file on this machine, for one process.
    File,
    /// A PostgreSQL database, for any number.
    Postgres(String),
}

pub(crate) struct Process {
    pub(crate) held: Option<Held>,
    /// Anyone, at the buyers' listener.
    pub(crate) buyers: Client,
    /// The operator, at the operators' listener.
    pub(crate) operator: Client,
}

/// A home of events. There may be several beside each other, each with a number and a store of its own: what goes wrong in
/// one must not be noticed in another.
pub(crate) struct Shop {
    onsale: PathBuf,
    store: Store,
    folder: PathBuf,
    logs: PathBuf,
    provider: Held,
    /// The provider, as its own operator.
    pub(crate) books: Client,
    pub(crate) processes: Vec<Process>,
}

impl Shop {
    /// Starts the provider, and then process after process.
    pub(crate) async fn start_all(
        home: usize,
        onsale: &Path,
        store: Store,
        processes: usize,
        logs: &Path,
    ) -> anyhow::Result<Shop> {
        let folder = Path::new(FOLDER).join(format!("home-{home}"));
        std::fs::create_dir(&folder)?;
        let logs = logs.join(format!("home-{home}"));
        std::fs::create_dir(&logs)?;
        let address = |offset: usize| format!("127.0.0.1:{}", PORTS_FROM + home * PORTS_OF_A_HOME + offset);
        let base = |offset: usize| format!("http://{}", address(offset));
        let mut provider = program(onsale);
        // Callbacks go to the first process; what it misses, the provider sends again.
        let callbacks = format!("{}/v1/payment-callbacks/stripe", base(1));
        provider.args(["payment-simulator", "--listen", &address(0), "--webhook-url", &callbacks]);
        provider.args(["--webhook-secret", WEBHOOK_SECRET]);
        let log = logs.join("provider.log");
        let mut provider = Held::start("the provider", &mut provider, Output::Read(&log))?;
        ready(&mut provider).await?;
        let client = |base: String, token: &str| Client::new(base).map(|client| client.with_token(token));
        let process = |number: usize| -> anyhow::Result<Process> {
            Ok(Process {
                held: None,
                buyers: Client::new(base(3 * number + 1))?,
                operator: client(base(3 * number + 2), OPERATOR_KEY)?,
            })
        };
        let processes = (0..processes).map(process).collect::<anyhow::Result<_>>()?;
        let books = client(base(0), SECRET_KEY)?;
        let onsale = onsale.to_owned();
        let mut shop = Shop { onsale, store, folder, logs, provider, books, processes };
        for number in 0..shop.processes.len() {
            shop.start(number).await?;
        }
        Ok(shop)
    }

    /// Starts a process of the application; it serves when this returns.
    pub(crate) async fn start(&mut self, number: usize) -> anyhow::Result<()> {
        let process = &mut self.processes[number];
        let mut serve = program(&self.onsale);
        serve.arg("serve");
        match &self.store {
            Store::File => serve.arg("--data").arg(self.folder.join("data")),
            Store::Postgres(url) => {
                let settings = self.folder.join("onsale.toml");
                std::fs::write(&settings, SETTINGS).context("failed to write the settings")?;
                serve.arg("--config").arg(settings);
                serve.arg("--data").arg(self.folder.join(format!("process-{number}")));
                // What is on a command line, anyone can read.
                serve.env("ONSALE_DATABASE_URL", url)
            }
        };
        serve.args(["--listen", process.buyers.address(), "--operator-listen", process.operator.address()]);
        serve.env("ONSALE_OPERATOR_KEY", OPERATOR_KEY).env("ONSALE_LOG", "info");
        serve.env("ONSALE_PAYMENT_BASE_URL", self.books.base());
        serve.env("ONSALE_PAYMENT_SECRET_KEY", SECRET_KEY);
        serve.env("ONSALE_PAYMENT_WEBHOOK_SECRETS", WEBHOOK_SECRET);
        let log = self.logs.join(format!("process-{number}.log"));
        let name = format!("process {number} of the application");
        let mut held = Held::start(&name, &mut serve, Output::Read(&log))?;
        ready(&mut held).await.with_context(|| format!("{name}: see {}", log.display()))?;
        process.held = Some(held);
        Ok(())
    }

    /// Kills a process.
    pub(crate) async fn kill(&mut self, number: usize) -> anyhow::Result<()> {
        self.processes[number].held.take().context("the process runs")?.kill().await
    }

    /// No process has ended by itself.
    pub(crate) fn all_run(&mut self) -> anyhow::Result<()> {
        for (number, process) in self.processes.iter_mut().enumerate() {
            let Some(held) = &mut process.held else { bail!("process {number} was not started again") };
            if let Some(status) = held.ended()? {
                bail!("process {number} of the application ended by itself with {status}");
            }
        }
        Ok(())
    }

    /// The program's own audit of its store: every invariant, as a query for its violations.
    pub(crate) async fn audit(&self) -> anyhow::Result<()> {
        let mut audit = program(&self.onsale);
        audit.arg("audit");
        match &self.store {
            Store::File => audit.arg("--data").arg(self.folder.join("data")),
            Store::Postgres(url) => audit.env("ONSALE_DATABASE_URL", url),
        };
        let output = timeout(Duration::from_secs(60), audit.kill_on_drop(true).output()).await;
        let output = output.context("the audit took too long")??;
        if !output.status.success() {
            let said = [output.stdout, output.stderr].concat();
            bail!("the audit found: {}", String::from_utf8_lossy(&said).trim());
        }
        Ok(())
    }

    /// Whether the database can be asked by others than the program.
    pub(crate) fn has_database(&self) -> bool {
        matches!(self.store, Store::Postgres(_))
    }

    /// Stops all of it in good order.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        let patience = Duration::from_secs(20);
        for process in &mut self.processes {
            if let Some(held) = &mut process.held {
                held.stop(patience).await?;
            }
        }
        self.provider.stop(patience).await
    }
}

/// The program under test, without any setting of whoever runs this.
fn program(onsale: &Path) -> Command {
    let mut command = Command::new(onsale);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ONSALE_") {
            command.env_remove(name);
        }
    }
    command
}

/// Waits for the one line that says that it serves.
async fn ready(held: &mut Held) -> anyhow::Result<Value> {
    let output = held.output().context("its output was taken already")?;
    let mut lines = BufReader::new(output).lines();
    let line = timeout(START, lines.next_line()).await.context("it did not get ready")??;
    let line = line.context("it ended before it was ready")?;
    serde_json::from_str(&line).with_context(|| format!("it said {line:?}"))
}
