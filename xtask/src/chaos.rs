//! `cargo xtask chaos`: builds the program and those who break its cluster, and lets them.

use std::path::Path;

use crate::tools::{cargo, onsale, succeed};

/// Runs all faults, or what the arguments say. See `cargo xtask chaos --list`.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let onsale = onsale(root)?;
    succeed(&mut cargo(root, &["build", "--package", "onsale-chaos"]))?;
    // What lasts longer than a run: Patroni's environment, and the logs of the last run.
    let kept = root.join("target").join("chaos");
    let mut chaos = std::process::Command::new(onsale.with_file_name("onsale-chaos"));
    succeed(chaos.args(arguments).arg("--onsale").arg(&onsale).arg("--kept").arg(kept))
}
