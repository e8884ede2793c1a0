//! A server to test: the real program in a process of its own.

#[cfg(feature = "fail-points")]
mod ended;

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::provider::{Provider, ProviderProcess, SECRET_KEY, WEBHOOK_SECRET, signature};
use super::{Ask, Buyer, Client, keep_in, text};

/// The first operator's key.
pub(crate) const OPERATOR_KEY: &str = "osk_operator_of_the_tests";
/// What every seat of a [`hall`](App::hall) costs, in cents.
pub(crate) const SEAT_PRICE: i64 = 2_500;

/// How a server is started.
#[derive(Default)]
pub(crate) struct Options {
    workers: bool,
    webhooks: Option<&'static str>,
    config: String,
    env: Vec<(String, String)>,
    data: Option<Arc<TempDir>>,
    provider: Option<String>,
}

impl Options {
    /// Workers run by themselves, and the clock with them.
    pub(crate) fn workers(self) -> Options {
        Options { workers: true, ..self }
    }

    /// How callbacks come at first. Unless set: `off`, but `normal` where workers run.
    pub(crate) fn webhooks(self, mode: &'static str) -> Options {
        Options { webhooks: Some(mode), ..self }
    }

    /// More settings, as TOML: members of `[http]` first, then other tables.
    pub(crate) fn config(self, toml: &str) -> Options {
        Options { config: toml.to_owned(), ..self }
    }

    /// One more environment variable.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Options {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The data of a server that ran before.
    pub(crate) fn data(self, data: Arc<TempDir>) -> Options {
        Options { data: Some(data), ..self }
    }

    /// Keeps its data in the PostgreSQL database at this URL, whatever the other tests do.
    pub(crate) fn database(self, url: &str) -> Options {
        self.env("ONSALE_DATABASE_URL", url)
    }

    /// Pays through a provider that outlives it.
    pub(crate) fn provider(self, provider: &ProviderProcess) -> Options {
        Options { provider: Some(provider.base.clone()), ..self }
    }

    /// Starts the server; it serves when this returns.
    pub(crate) async fn start(self) -> App {
        App::launch(self).await
    }
}

/// An event with its seats.
#[derive(Clone)]
pub(crate) struct Hall {
    pub(crate) event_id: String,
}

/// A running server. Every test ends with [`finish`](App::finish).
pub(crate) struct App {
    child: Child,
    log: Arc<Mutex<String>>,
    log_reader: Option<JoinHandle<()>>,
    finished: bool,
    strangers: bool,
    pub(crate) data: Arc<TempDir>,
    /// Nobody, at the buyers' listener.
    pub(crate) buyers: Client,
    /// An operator, at the operators' listener.
    pub(crate) operator: Client,
    pub(crate) provider: Provider,
}

impl App {
    /// A server whose clock stands, without workers, with its own provider that sends no callbacks by itself.
    pub(crate) async fn start() -> App {
        App::options().start().await
    }

    pub(crate) fn options() -> Options {
        Options::default()
    }

    async fn launch(options: Options) -> App {
        let data = options.data.unwrap_or_else(|| Arc::new(tempfile::tempdir().expect("a folder")));
        let config = data.path().join("onsale.toml");
        std::fs::write(&config, settings(&options.config, options.provider.as_deref())).expect("settings");
        let mut command = Command::new(env!("CARGO_BIN_EXE_onsale"));
        without_settings(&mut command);
        command.args(["serve", "--test-mode", "--listen", "127.0.0.1:0", "--operator-listen", "127.0.0.1:0"]);
        command.arg("--data").arg(data.path()).arg("--config").arg(&config);
        if options.workers {
            command.arg("--workers");
        }
        keep_in(&mut command, data.path());
        command.env("ONSALE_OPERATOR_KEY", OPERATOR_KEY).envs(options.env);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the server starts");
        let log = Arc::new(Mutex::new(String::new()));
        let log_reader = keep_log(&mut child, &log);
        let Some(ready) = ready_line(&mut child) else {
            child.kill().ok();
            child.wait().ok();
            log_reader.join().ok();
            panic!("the server did not get ready:\n{}", log.lock().expect("the log"));
        };
        let base = |member| format!("http://{}", text(&ready, member));
        let buyers = Client::new(base("listen"));
        let provider = Provider::new(options.provider.unwrap_or_else(|| base("payment_simulator")));
        let app = App {
            child,
            log,
            log_reader: Some(log_reader),
            finished: false,
            strangers: false,
            data,
            operator: buyers.at(&base("operator_listen")).with_token(OPERATOR_KEY),
            buyers,
            provider,
        };
        app.provider.webhook_url(&format!("{}/v1/payment-callbacks/stripe", app.buyers.base)).await;
        app.provider
            .webhooks(options.webhooks.unwrap_or(if options.workers { "normal" } else { "off" }))
            .await;
        app
    }

    /// An event on sale with these seats, all of section A, row 1.
    pub(crate) async fn hall(&self, policy: Value, seats: &[&str]) -> Hall {
        let new = json!({
            "name": "An evening", "currency": "EUR", "starts_at": "2030-05-01T19:30:00Z", "policy": policy,
        });
        self.opened(&new, seats).await
    }

    /// An event as described, on sale with these seats, all of section A, row 1.
    pub(crate) async fn opened(&self, new: &Value, seats: &[&str]) -> Hall {
        let event_id = text(&self.operator.post("/v1/events", new).await.ok(201), "event_id").to_owned();
        let path = format!("/v1/events/{event_id}");
        let mut csv = String::from("seat_id,section,row,seat,category\n");
        for (index, seat) in seats.iter().enumerate() {
            let _ = writeln!(csv, "{seat},A,1,{},Stalls", index + 1);
        }
        let manifest = self.operator.ask(reqwest::Method::PUT, &format!("{path}/manifest"));
        manifest.body("text/csv", csv).await.ok(200);
        let prices = json!({ "price_levels": [{ "price_level": "Stalls", "amount_minor": SEAT_PRICE }] });
        self.operator.put(&format!("{path}/prices"), &prices).await.ok(200);
        self.operator.put(&format!("{path}/on-sale"), &json!({ "state": "open" })).await.ok(200);
        Hall { event_id }
    }

    /// A guest with a new session.
    pub(crate) async fn buyer(&self) -> Buyer {
        let session = self.buyers.post("/v1/sessions", &json!({})).await.ok(201);
        let client = self.buyers.with_token(text(&session, "session_token"));
        Buyer { client, account_id: text(&session, "account_id").to_owned() }
    }

    /// Runs one pass of a worker.
    pub(crate) async fn worker(&self, name: &str) {
        self.operator.post(&format!("/_test/workers/{name}"), &json!({})).await.ok(200);
    }

    /// Runs passes of a worker one after another.
    pub(crate) async fn passes(&self, name: &str, count: usize) {
        for _ in 0..count {
            self.worker(name).await;
        }
    }

    /// Lets time and the payments' worker go on by turns until an order is `"ORDER_STATUS PAYMENT_STATUS"`; the order.
    pub(crate) async fn work_until(&self, buyer: &Buyer, order_id: &str, want: &str) -> Value {
        for _ in 0..12 {
            self.worker("payments").await;
            let order = buyer.order(order_id).await;
            if format!("{} {}", text(&order, "order_status"), text(&order, "payment_status")) == want {
                return order;
            }
            self.advance(2_500).await;
        }
        buyer.expect_order(order_id, want).await
    }

    /// The server's time in milliseconds.
    pub(crate) async fn now_ms(&self) -> i64 {
        self.operator.get("/_test/clock").await.ok(200)["now_ms"].as_i64().expect("now_ms")
    }

    /// Moves the clock to an instant.
    pub(crate) async fn set_clock(&self, to_ms: i64) {
        self.operator.post("/_test/clock", &json!({ "set": to_ms })).await.ok(200);
    }

    /// Moves the clock on.
    pub(crate) async fn advance(&self, by_ms: i64) {
        self.operator.post("/_test/clock", &json!({ "advance_ms": by_ms })).await.ok(200);
    }

    /// The digits of the seat map.
    pub(crate) async fn seat_states(&self, hall: &Hall) -> String {
        let seats = self.buyers.get(&format!("/v1/events/{}/seats", hall.event_id)).await.ok(200);
        text(&seats, "states").to_owned()
    }

    /// The operator's report of an event.
    pub(crate) async fn report(&self, hall: &Hall) -> Value {
        self.operator.get(&format!("/v1/events/{}/report", hall.event_id)).await.ok(200)
    }

    /// Open cases, the oldest first.
    pub(crate) async fn open_cases(&self) -> Vec<Value> {
        let cases = self.operator.get("/v1/reconciliation/cases?status=OPEN").await.ok(200);
        cases["cases"].as_array().expect("cases").clone()
    }

    /// The kinds of the open cases, sorted, in a line.
    pub(crate) async fn open_kinds(&self) -> String {
        let cases = self.open_cases().await;
        let mut kinds: Vec<&str> = cases.iter().map(|case| text(case, "kind")).collect();
        kinds.sort_unstable();
        kinds.join(" ")
    }

    /// The first open case of a kind.
    pub(crate) async fn open_case(&self, kind: &str) -> Value {
        let found = self.open_cases().await.into_iter().find(|case| case["kind"] == kind);
        found.unwrap_or_else(|| panic!("no open case is of kind {kind}"))
    }

    /// Acts on a case (its JSON).
    pub(crate) fn resolve(&self, case: &Value, action: &str, note: &str) -> Ask {
        let path = format!("/v1/reconciliation/cases/{}/resolution", text(case, "case_id"));
        self.operator.post(&path, &json!({ "action": action, "note": note }))
    }

    /// Sends a callback that is signed as a [`ProviderProcess`] signs, now.
    pub(crate) fn callback(&self, event: &Value) -> Ask {
        let body = event.to_string();
        let signed = signature(WEBHOOK_SECRET, wall_seconds(), &body);
        self.raw_callback(&signed, body)
    }

    /// Sends a callback with any signature.
    pub(crate) fn raw_callback(&self, signature: &str, body: String) -> Ask {
        let ask = self.buyers.ask(reqwest::Method::POST, "/v1/payment-callbacks/stripe");
        ask.header("Stripe-Signature", signature).body("application/json; charset=utf-8", body)
    }

    /// The audit: no invariant may be broken.
    pub(crate) async fn audit(&self) {
        let audit = self.operator.get("/_test/audit").await.ok(200);
        let checks = audit["checks"].as_array().expect("checks");
        assert!(checks.len() > 5, "{audit}");
        let broken: Vec<&Value> = checks.iter().filter(|check| check["violations"] != 0).collect();
        assert!(broken.is_empty() && audit["violations"] == 0, "broken invariants: {broken:#?}");
    }

    /// The provider's ledger may have money of orders this server doesn't know.
    pub(crate) fn expect_strangers(&mut self) {
        self.strangers = true;
    }

    /// Compares the provider's ledger with the books, order by order and event by event.
    pub(crate) async fn compare_books(&self) {
        super::ledger::compare(self, self.strangers).await;
    }

    /// The memory it takes now.
    pub(crate) fn memory_mib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("memory is told");
        line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("a figure") / 1_024
    }

    /// What the server wrote to its log so far.
    pub(crate) fn log_text(&self) -> String {
        self.log.lock().expect("the log").clone()
    }

    /// Audits, compares books with the provider's, stops the server and checks that it ends well.
    pub(crate) async fn finish(self) {
        self.audit().await;
        self.compare_books().await;
        self.stop();
    }

    /// Stops the server, which must end well; its data, for a restart.
    pub(crate) fn stop(mut self) -> Arc<TempDir> {
        let killed = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(killed.is_ok_and(|status| status.success()), "SIGTERM can be sent");
        let status = self.wait();
        assert_eq!(status.code(), Some(0), "the server did not end well: {status}");
        Arc::clone(&self.data)
    }

    /// Kills the server where it stands; its data, for a restart.
    pub(crate) fn kill(mut self) -> Arc<TempDir> {
        self.child.kill().expect("it can be killed");
        self.wait();
        Arc::clone(&self.data)
    }

    fn wait(&mut self) -> ExitStatus {
        self.finished = true;
        self.child.wait().expect("it can be waited for")
    }
}

impl Drop for App {
    fn drop(&mut self) {
        let forgotten = !self.finished;
        if forgotten {
            self.child.kill().ok();
            self.child.wait().ok();
        }
        if let Some(reader) = self.log_reader.take() {
            reader.join().ok();
        }
        if std::thread::panicking() {
            eprintln!("--- what the server wrote ---\n{}", self.log_text());
        } else {
            assert!(!forgotten, "the test forgot to finish its server");
        }
    }
}

/// Real seconds since 1970: callbacks are signed with them.
pub(crate) fn wall_seconds() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("it is past 1970").as_secs() as i64
}

/// Takes away what the environment of the tests may set.
pub(super) fn without_settings(command: &mut Command) {
    for (name, _) in std::env::vars() {
        if name.starts_with("ONSALE_") {
            command.env_remove(name);
        }
    }
}

/// The one line a program prints when it is ready; `None` when it ends instead.
pub(super) fn ready_line(child: &mut Child) -> Option<Value> {
    let mut line = String::new();
    BufReader::new(child.stdout.take()?).read_line(&mut line).ok()?;
    serde_json::from_str(&line).ok().filter(|ready: &Value| ready["ready"] == true)
}

fn keep_log(child: &mut Child, log: &Arc<Mutex<String>>) -> JoinHandle<()> {
    let mut stderr = child.stderr.take().expect("it is piped");
    let log = Arc::clone(log);
    std::thread::spawn(move || {
        let mut bytes = [0; 16 * 1024];
        while let Ok(count @ 1..) = stderr.read(&mut bytes) {
            log.lock().expect("the log").push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
    })
}

/// The file of settings: stops at once, and pays where it should.
fn settings(more: &str, provider: Option<&str>) -> String {
    let mut text = String::new();
    if let Some(base_url) = provider {
        let _ = writeln!(
            text,
            "[payment]\nbase_url = \"{base_url}\"\nsecret_key = \"{SECRET_KEY}\"\nwebhook_secrets = [\"{WEBHOOK_SECRET}\"]"
        );
    }
    format!("{text}[http]\ndrain_ms = 0\n{more}\n")
}

/// Where a server keeps its database.
pub(crate) fn database(data: &Path) -> std::path::PathBuf {
    data.join("onsale.db")
}
