//! The program under load, in a process and a folder of its own.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

use crate::client::{Connection, write_request};

/// What the operator, and the shop that buys for its accounts, show.
const KEY: &str = "osk_operator_of_the_benchmarks";

/// A running server.
pub(crate) struct Server {
    child: Child,
    pub(crate) folder: TempDir,
    pub(crate) buyers: SocketAddr,
    operators: SocketAddr,
    /// Where its homes are, if its database is not a file in its folder.
    homes: Vec<String>,
}

impl Server {
    /// Starts the program with an empty database and the payment simulator in its process.
    pub(crate) async fn start(onsale: &Path) -> anyhow::Result<Server> {
        Server::start_on(onsale, Vec::new()).await
    }

    /// Starts it with homes on PostgreSQL, whose databases are empty. The first is called `main`, the others by their places.
    pub(crate) async fn start_on(onsale: &Path, homes: Vec<String>) -> anyhow::Result<Server> {
        let folder = tempfile::Builder::new().prefix("onsale-bench-").tempdir()?;
        let mut command = Command::new(onsale);
        command.arg("serve");
        command.args(where_it_keeps(folder.path(), &homes)?);
        for option in ["--listen", "--operator-listen", "--payment-simulator"] {
            command.args([option, "127.0.0.1:0"]);
        }
        command.env("ONSALE_OPERATOR_KEY", KEY).env("ONSALE_LOG", "error");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().with_context(|| format!("failed to start {}", onsale.display()))?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("no output")?).read_line(&mut line)?;
        let ready: Value =
            serde_json::from_str(&line).with_context(|| format!("the server said {line:?}"))?;
        let address = |member: &str| -> anyhow::Result<SocketAddr> {
            Ok(ready[member].as_str().with_context(|| format!("no {member} in {line}"))?.parse()?)
        };
        let (buyers, operators) = (address("listen")?, address("operator_listen")?);
        Ok(Server { child, folder, buyers, operators, homes })
    }

    /// Asks as the operator.
    pub(crate) async fn operator(
        &self,
        line: &str,
        content_type: &str,
        body: &str,
        status: u16,
    ) -> anyhow::Result<Value> {
        let mut request = Vec::new();
        let headers = format!("authorization: Bearer {KEY}\r\ncontent-type: {content_type}\r\n");
        write_request(&mut request, format_args!("{line}"), &headers, body);
        let mut connection = Connection::open(self.operators).await?;
        connection.ask(&request).await?.json(status).with_context(|| line.to_owned())
    }

    /// Makes an event whose seats are rows of `ROW` and opens its sale; its id.
    pub(crate) async fn event(&self, rows: usize) -> anyhow::Result<String> {
        self.event_at(None, rows).await
    }

    /// The same at a home.
    pub(crate) async fn event_at(&self, home: Option<&str>, rows: usize) -> anyhow::Result<String> {
        let mut event = json!({
            "name": "Bench", "currency": "EUR", "starts_at": "2030-05-01T19:30:00Z",
            "policy": { "hold_ttl_s": 3_600, "payment_pending_max": 1_000_000 },
        });
        if let Some(home) = home {
            event["home"] = json!(home);
        }
        let json = "application/json";
        let made = self.operator("POST /v1/events", json, &event.to_string(), 201).await?;
        let event_id = made["event_id"].as_str().context("an event has an id")?.to_owned();
        let path = format!("/v1/events/{event_id}");
        let mut csv = String::from("seat_id,section,row,seat,category\n");
        for row in 0..rows {
            for seat in 0..crate::hall::ROW {
                let _ = writeln!(csv, "{row}-{seat},A,{row},{seat},F");
            }
        }
        self.operator(&format!("PUT {path}/manifest"), "text/csv", &csv, 200).await?;
        let prices = json!({ "price_levels": [{ "price_level": "F", "amount_minor": 2_500 }] });
        self.operator(&format!("PUT {path}/prices"), json, &prices.to_string(), 200).await?;
        self.operator(&format!("PUT {path}/on-sale"), json, r#"{"state":"open"}"#, 200).await?;
        // Whoever comes first has the hall read into memory; that is not what is measured.
        self.operator(&format!("GET {path}/seats"), json, "", 200).await?;
        Ok(event_id)
    }

    /// The headers with which a shop buys for an account, each time with a new key.
    pub(crate) fn buyer_headers(account: u64) -> String {
        let key = Uuid::now_v7();
        format!(
            "authorization: Bearer {KEY}\r\nonsale-account: a{account}\r\nidempotency-key: {key}\r\n\
             content-type: application/json\r\n"
        )
    }

    /// The most memory it has had, in MiB.
    pub(crate) fn memory_mib(&self) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).context("no VmHWM")?;
        let kib: f64 = line.split_whitespace().nth(1).context("no figure")?.parse()?;
        Ok(kib / 1024.0)
    }

    /// The time its threads have worked, user and system, in seconds.
    pub(crate) fn worked_s(&self) -> anyhow::Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let (_, fields) = stat.rsplit_once(')').context("no stat")?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let ticks: f64 = fields[11].parse::<f64>()? + fields[12].parse::<f64>()?;
        // The kernel counts in hundredths of a second for every program, whatever its own clock does.
        Ok(ticks / 100.0)
    }

    /// Checks every invariant, by the program's own audit of what is stored.
    pub(crate) fn audit(&self, onsale: &Path) -> anyhow::Result<()> {
        let kept = where_it_keeps(self.folder.path(), &self.homes)?;
        let audit = Command::new(onsale).arg("audit").args(kept).output()?;
        ensure!(
            audit.status.success(),
            "the audit found: {}{}",
            String::from_utf8_lossy(&audit.stdout),
            String::from_utf8_lossy(&audit.stderr)
        );
        Ok(())
    }

    /// Stops it, and leaves its folder.
    pub(crate) fn stop(mut self) -> anyhow::Result<TempDir> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(std::mem::replace(&mut self.folder, tempfile::tempdir()?))
    }
}

/// The options that say where the program keeps what it keeps.
fn where_it_keeps(folder: &Path, homes: &[String]) -> anyhow::Result<Vec<OsString>> {
    let mut options = vec!["--data".into(), folder.into()];
    if let Some((main, others)) = homes.split_first() {
        let mut text = format!("[database]\nurl = {main:?}\n");
        for (place, url) in others.iter().enumerate() {
            let _ = write!(text, "[[database.homes]]\nname = \"{}\"\nurl = {url:?}\n", place + 1);
        }
        let file = folder.join("onsale.toml");
        std::fs::write(&file, text)?;
        options.extend(["--config".into(), file.into()]);
    }
    Ok(options)
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
