//! The project's own automation. It uses the standard library, and of this workspace what does
//! too, so it is built in a moment and needs no network.

mod bench;
mod chaos;
mod ci;
mod mutants;
mod openapi;
mod prove;
mod provider_client;
mod serving;
mod steps;
mod tidy;
mod tools;
mod webhook_client;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask ci        everything that must hold before a change is taken
cargo xtask tidy      the checks on the code itself: layers, words, files, documents
cargo xtask bench     measure on this machine; options follow, see `cargo xtask bench --help`
cargo xtask prove     what takes too long for ci: every crash point, many power cuts and worlds, mutants, bench
cargo xtask chaos     break a real database cluster in the middle of a sale: `--short`, `--list`, or names of faults
cargo xtask openapi   write docs/openapi.json from the program";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = root().and_then(|root| match arguments[..] {
        ["ci"] => ci::run(&root),
        ["tidy"] => tidy::run(&root),
        ["bench", ref options @ ..] => bench::run(&root, options),
        ["chaos", ref options @ ..] => chaos::run(&root, options),
        ["prove", ref names @ ..] => prove::run(&root, names),
        ["openapi"] => openapi::write(&root),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        _ => Err(format!("no such task\n\n{USAGE}")),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the repository. Cargo says at run time where this package is, so a tree that was moved is found again.
fn root() -> Result<PathBuf, String> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").ok_or("run this as `cargo xtask`")?;
    let root = Path::new(&package).parent().ok_or("the package xtask is not inside the repository")?;
    Ok(root.to_owned())
}
