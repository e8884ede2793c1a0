//! Drives the payment simulator with the provider's own client: what passes there, the real provider's users
//! understand.

use std::path::Path;
use std::process::Command;

use crate::serving::{Serving, member};
use crate::tools::{onsale, succeed};

const FOLDER: &str = "crates/onsale/tests/provider_client";
const WEBHOOK_SECRET: &str = "whsec_test";

/// Installs the client, starts a simulator, runs the client's tests against it, and ends the simulator.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let folder = root.join(FOLDER);
    succeed(Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(&folder))?;
    let mut simulator = Command::new(onsale(root)?);
    simulator.args(["payment-simulator", "--listen", "127.0.0.1:0", "--webhook-secret", WEBHOOK_SECRET]);
    let (_simulator, line) = Serving::start(&mut simulator)?;
    let address = member(&line, "payment_simulator")?;
    println!("the simulator is at {address}");
    let mut test = Command::new("npm");
    test.arg("test").current_dir(&folder).env("SIMULATOR", address).env("WEBHOOK_SECRET", WEBHOOK_SECRET);
    succeed(&mut test)
}
