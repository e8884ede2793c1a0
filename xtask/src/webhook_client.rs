//! Has the program's webhooks received by the standard's own library: what it takes, everybody's receiver takes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::serving::{Serving, member};
use crate::tools::{onsale, succeed};

const FOLDER: &str = "crates/onsale/tests/webhook_client";
const OPERATOR_KEY: &str = "osk_operator_of_the_webhook_client";

/// Installs the library, starts a server in test mode, runs the library's tests against it, and ends the server.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let folder = root.join(FOLDER);
    succeed(Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(&folder))?;
    let program = onsale(root)?;
    let data = Data::new()?;
    let mut server = Command::new(program);
    server.args([
        "serve",
        "--test-mode",
        "--listen",
        "127.0.0.1:0",
        "--operator-listen",
        "127.0.0.1:0",
        "--data",
    ]);
    server.arg(&data.0).env("ONSALE_OPERATOR_KEY", OPERATOR_KEY);
    let (_server, line) = Serving::start(&mut server)?;
    let (buyers, operators) = (member(&line, "listen")?, member(&line, "operator_listen")?);
    println!("the server is at {buyers} and {operators}");
    let mut test = Command::new("npm");
    test.arg("test").current_dir(&folder);
    test.env("BUYERS", buyers).env("OPERATORS", operators).env("OPERATOR_KEY", OPERATOR_KEY);
    succeed(&mut test)
}

/// A folder for the server's data, which goes with this value.
struct Data(PathBuf);

impl Data {
    fn new() -> Result<Data, String> {
        let folder = std::env::temp_dir().join(format!("onsale-webhook-client-{}", std::process::id()));
        match fs::create_dir(&folder) {
            Ok(()) => Ok(Data(folder)),
            Err(error) => Err(format!("failed to make {}: {error}", folder.display())),
        }
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
