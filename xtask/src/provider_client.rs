//! Drives the payment simulator with the provider's own client: what passes there, the real provider's users
//! understand.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::tools::{onsale, succeed};

const FOLDER: &str = "crates/onsale/tests/provider_client";
const WEBHOOK_SECRET: &str = "whsec_test";
const READY_MAX: Duration = Duration::from_secs(30);

/// Installs the client, starts a simulator, runs the client's tests against it, and ends the simulator.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let folder = root.join(FOLDER);
    succeed(Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(&folder))?;
    let mut simulator = Simulator::start(&onsale(root)?)?;
    let address = simulator.ready()?;
    println!("the simulator is at {address}");
    let mut test = Command::new("npm");
    test.arg("test").current_dir(&folder).env("SIMULATOR", address).env("WEBHOOK_SECRET", WEBHOOK_SECRET);
    succeed(&mut test)
}

/// A running simulator, which ends with this value however the step ends.
struct Simulator(Child);

impl Simulator {
    fn start(program: &Path) -> Result<Simulator, String> {
        let mut simulator = Command::new(program);
        simulator.args(["payment-simulator", "--listen", "127.0.0.1:0", "--webhook-secret", WEBHOOK_SECRET]);
        // Its logs go to standard error, and are of interest only where a test fails.
        let child = simulator.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        child.map(Simulator).map_err(|error| format!("the simulator could not be started: {error}"))
    }

    /// Where it listens, once it does.
    fn ready(&mut self) -> Result<String, String> {
        let printed = self.0.stdout.take().ok_or("the simulator's output was read before")?;
        let (found, address) = mpsc::channel();
        // Reads to the end, so that the simulator can always go on printing.
        thread::spawn(move || announce(printed, &found));
        address.recv_timeout(READY_MAX).map_err(|_| "the simulator did not say where it listens".to_owned())
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        // It may have ended by itself, which the tests have then noticed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn announce(printed: impl Read, found: &mpsc::Sender<String>) {
    for line in BufReader::new(printed).lines().map_while(Result::ok) {
        if let Some(address) = listening(&line) {
            let _ = found.send(address.to_owned());
        }
    }
}

/// The address in the line with which a simulator says that it is ready.
fn listening(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("\"payment_simulator\":\"")?;
    let (address, _) = rest.split_once('"')?;
    line.contains("\"ready\":true").then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ready_line_is_found_among_others() {
        let (found, address) = mpsc::channel();
        let printed = "starting\n{\"payment_simulator\":\"127.0.0.1:4242\",\"ready\":true}\nmore\n";
        announce(printed.as_bytes(), &found);
        assert_eq!(address.try_recv(), Ok("127.0.0.1:4242".to_owned()));
        assert_eq!(listening("{\"ready\":false,\"payment_simulator\":\"127.0.0.1:1\"}"), None);
        assert_eq!(listening("{\"ready\":true,\"payment_simulator\":null}"), None);
    }
}
