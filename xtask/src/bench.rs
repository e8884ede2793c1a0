//! `cargo xtask bench`: builds the program and its load as they are shipped, and measures.

use std::path::Path;

use crate::tools::{cargo, succeed};

/// Builds both and runs the load with the arguments given.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<(), String> {
    succeed(&mut cargo(root, &["build", "--release", "--package", "onsale", "--package", "onsale-bench"]))?;
    let run = ["run", "--release", "--quiet", "--package", "onsale-bench", "--"];
    succeed(&mut cargo(root, &[&run[..], arguments].concat()))
}
