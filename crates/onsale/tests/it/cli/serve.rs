//! `serve` and `payment-simulator`: when they refuse to start, and what they say when they do.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::util::{App, Client, Lock, database, keep_in, make_changed, make_newer, program, text};

use super::{Said, finish};

/// Ports that the system chooses.
const ANYWHERE: [&str; 4] = ["--listen", "127.0.0.1:0", "--operator-listen", "127.0.0.1:0"];

fn serve(data: &Path, arguments: &[&str]) -> Command {
    let mut command = program(&["serve"]);
    keep_in(&mut command, data);
    command.arg("--data").arg(data).args(arguments);
    command
}

/// Starts a server that must refuse; what it said.
fn refusal(data: &Path, arguments: &[&str]) -> Said {
    finish(serve(data, arguments).spawn().expect("the program starts"))
}

/// A program that has said it is ready.
struct Running {
    child: Child,
    stdout: BufReader<std::process::ChildStdout>,
    ready: Value,
}

impl Running {
    fn start(mut command: Command) -> Running {
        let mut child = command.spawn().expect("the program starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("a line");
        let ready = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not ready: {line:?}"));
        Running { child, stdout, ready }
    }

    /// Stops it; what it wrote to standard error. To standard output it has written nothing more.
    fn stop(mut self, signal: &str) -> String {
        Command::new("kill").args([signal, &self.child.id().to_string()]).status().expect("kill runs");
        let (mut rest, mut log) = (String::new(), String::new());
        self.stdout.read_to_string(&mut rest).expect("UTF-8");
        self.child.stderr.take().expect("it is piped").read_to_string(&mut log).expect("UTF-8");
        assert_eq!(self.child.wait().expect("it ends").code(), Some(0), "{log}");
        assert_eq!(rest, "", "standard output has one line");
        log
    }
}

#[test]
fn a_server_that_would_be_wrong_does_not_start() {
    let folder = TempDir::new().expect("a folder");
    let data = folder.path().join("data");
    let with = |arguments: &[&str]| refusal(&data, &[&ANYWHERE, arguments].concat());
    for (listen, operators) in
        [("0.0.0.0:0", "127.0.0.1:0"), ("127.0.0.1:0", "0.0.0.0:0"), ("[::]:0", "[::1]:0")]
    {
        let arguments = ["--test-mode", "--listen", listen, "--operator-listen", operators];
        refusal(&data, &arguments).refused("test mode is refused: a listener is not on loopback");
    }
    with(&["--database-url", "mysql://localhost/onsale"]).refused("is not a PostgreSQL URL");
    with(&["--config", "/nowhere/onsale.toml"]).refused("failed to read /nowhere/onsale.toml");
    let settings = folder.path().join("onsale.toml").display().to_string();
    std::fs::write(&settings, "[http]\nconnectoins_max = 1\n").expect("a file");
    with(&["--config", &settings]).refused("unknown field `connectoins_max`");
    std::fs::write(&settings, "[log]\nlevel = \"onsale=chatty\"\n").expect("a file");
    with(&["--config", &settings]).refused("log");
    assert!(!data.exists(), "nothing has been made so far");

    for key in [
        "osk_short",
        "key_of_the_operator",
        "osk_with a space in it",
        "osk_\u{e4}\u{f6}\u{fc}\u{df}\u{e4}\u{f6}",
    ] {
        let child = serve(&data, &ANYWHERE).env("ONSALE_OPERATOR_KEY", key).spawn();
        finish(child.expect("the program starts")).refused("ONSALE_OPERATOR_KEY must begin with osk_");
        assert!(!data.join("operator.key").exists());
    }
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = listener.local_addr().expect("an address").to_string();
    for flag in ["--listen", "--operator-listen"] {
        let other = if flag == "--listen" { "--operator-listen" } else { "--listen" };
        let said = refusal(&data, &[flag, &taken, other, "127.0.0.1:0"]);
        said.refused(&format!("failed to listen on {taken}"));
    }
    let said = with(&["--payment-simulator", &taken]);
    said.refused(&format!("failed to start the payment simulator on {taken}"));
}

#[test]
fn a_database_that_is_not_this_programs_is_left_alone() {
    let folder = TempDir::new().expect("a folder");
    let refuse = |name: &str, spoil: &dyn Fn(&Path), words: &str| {
        let data = folder.path().join(name);
        super::at(&data, &["event", "list"]).ok();
        spoil(&data);
        let before = std::fs::read(database(&data)).ok();
        refusal(&data, &ANYWHERE).refused(words);
        assert!(std::fs::read(database(&data)).ok() == before, "{name} was changed");
        super::at(&data, &["event", "list"]).refused(words);
    };
    refuse("newer", &|data| make_newer(data), "use the newer program");
    refuse("changed", &|data| make_changed(data), "it was changed after it was applied");
    let text = |data: &Path| {
        std::fs::remove_dir_all(data).expect("it goes");
        std::fs::create_dir(data).expect("a folder");
        std::fs::write(database(data), "no database at all, but a text of some length").expect("a file");
    };
    refuse("text", &text, "failed to open the database");
    let folder_for_file = |data: &Path| {
        std::fs::remove_dir_all(data).expect("it goes");
        std::fs::create_dir_all(database(data)).expect("a folder");
    };
    refuse("folder", &folder_for_file, "failed to open the database");
    let file_for_folder = |data: &Path| {
        std::fs::remove_dir_all(data).expect("it goes");
        std::fs::write(data, "a file").expect("a file");
    };
    refuse("file", &file_for_folder, "failed to make the data folder");
    // Where nobody may make a folder, not even root.
    refusal(Path::new("/proc/onsale"), &ANYWHERE).refused("failed to make the data folder /proc/onsale");
}

/// Another program that keeps the database to itself is waited for, and then it is said that the database can't be
/// used.
#[test]
fn a_database_that_is_kept_locked_is_refused() {
    let folder = TempDir::new().expect("a folder");
    super::at(folder.path(), &["event", "list"]).ok();
    let lock = Lock::take(folder.path());
    let child = serve(folder.path(), &ANYWHERE).spawn().expect("the program starts");
    finish(child).refused("database is locked");
    drop(lock);
    Running::start(serve(folder.path(), &ANYWHERE)).stop("-TERM");
}

#[tokio::test]
async fn a_first_start_makes_an_operators_key_once_for_its_owners_eyes() {
    let folder = TempDir::new().expect("a folder");
    let (data, path) = (folder.path(), folder.path().join("operator.key"));
    // Even where a file that everyone may read lies in its place.
    std::fs::write(&path, "old").expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("a mode");
    let running = Running::start(serve(data, &ANYWHERE));
    let key = std::fs::read_to_string(&path).expect("the key");
    let mode = std::fs::metadata(&path).expect("the key").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{mode:o}");
    let secret = key.strip_suffix('\n').expect("a line").to_owned();
    assert!(secret.starts_with("osk_") && secret.len() >= 40, "{} characters", secret.len());
    let keys = async |running: &Running| {
        let operator =
            Client::new(format!("http://{}", text(&running.ready, "operator_listen"))).with_token(&secret);
        operator.post("/v1/keys", &json!({ "role": "reader" })).await.ok(201);
        operator.get("/_test/clock").await.problem(404, "not-found");
    };
    keys(&running).await;
    let log = running.stop("-TERM");
    assert!(log.contains("operator.key") && !log.contains(&secret), "{log}");

    let running = Running::start(serve(data, &ANYWHERE));
    keys(&running).await;
    let log = running.stop("-INT");
    assert!(!log.contains("operator.key") && !log.contains(&secret), "{log}");
    assert_eq!(std::fs::read_to_string(&path).expect("the key"), key);
}

/// Standard output has the line that says where it serves, and nothing else, whatever happens.
#[tokio::test]
async fn a_server_prints_one_line() {
    let folder = TempDir::new().expect("a folder");
    let mut command = serve(folder.path(), &ANYWHERE);
    command.args(["--payment-simulator", "127.0.0.1:0"]).env("ONSALE_LOG", "debug");
    let running = Running::start(command);
    let ready = running.ready.as_object().expect("an object");
    let mut members: Vec<&str> = ready.keys().map(String::as_str).collect();
    members.sort_unstable();
    assert_eq!(members, ["listen", "operator_listen", "payment_simulator", "ready", "version"]);
    for member in ["listen", "operator_listen", "payment_simulator"] {
        let address: std::net::SocketAddr = text(&running.ready, member).parse().expect("an address");
        assert!(address.ip().is_loopback() && address.port() != 0);
    }
    let buyers = Client::new(format!("http://{}", text(&running.ready, "listen")));
    let listed = buyers.get("/readyz").await.ok(200);
    assert_eq!(
        (&listed["test_mode"], &listed["payment_provider"]),
        (&json!(false), &json!(true)),
        "{listed}"
    );
    buyers.post("/v1/sessions", &json!({})).await.ok(201);
    buyers.get("/nowhere").await.problem(404, "not-found");
    let log = running.stop("-TERM");
    let lines: Vec<&str> = log.lines().collect();
    for line in &lines {
        let entry: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}"));
        assert!(entry["level"].is_string() && entry["timestamp"].is_string(), "{line}");
    }

    // In test mode, the first line of the log says so.
    let app = App::start().await;
    let first = app.log_text().lines().next().expect("a line").to_owned();
    assert!(first.contains("\"test_mode\":true"), "{first}");
    app.finish().await;
}

#[tokio::test]
async fn a_payment_simulator_of_its_own_prints_one_line() {
    let running = Running::start(program(&["payment-simulator", "--listen", "127.0.0.1:0", "--seed", "1"]));
    assert_eq!(running.ready["ready"], true);
    let base = format!("http://{}", text(&running.ready, "payment_simulator"));
    assert_eq!(Client::new(base).get("/_sim/ledger").await.ok(200)["orders"], json!([]));
    running.stop("-TERM");
}
