//! The programs that the automation calls: how they are called, and how a machine that lacks one gets it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const NODE_MAJOR_MIN: u32 = 20;

/// Cargo, with arguments, in the repository. What cargo told this program about the package `xtask` is not passed on:
/// some build scripts look at it, and would run again each time that cargo is called now from here and now by hand.
pub(crate) fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(arguments).current_dir(root);
    for (name, _) in std::env::vars_os() {
        let Some(text) = name.to_str() else { continue };
        if ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|prefix| text.starts_with(prefix)) {
            cargo.env_remove(&name);
        }
    }
    cargo
}

/// Shows a command, runs it, and asks that it succeeds.
pub(crate) fn succeed(command: &mut Command) -> Result<(), String> {
    let shown = shown(command);
    println!("$ {shown}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{shown}` ended with {status}")),
        Err(error) => Err(format!("`{shown}` could not be started: {error}")),
    }
}

/// What a command prints on standard output.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let shown = shown(command);
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("`{shown}` could not be started: {error}"))?;
    if !output.status.success() {
        return Err(format!("`{shown}` ended with {}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("`{shown}` printed what is no text"))
}

fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Builds `onsale` as the tests do, which after them is nothing to do, and says where it is.
pub(crate) fn onsale(root: &Path) -> Result<PathBuf, String> {
    succeed(&mut cargo(root, &["build", "--package", "onsale", "--bin", "onsale"]))?;
    // Cargo puts all programs of one profile beside each other, wherever the target folder is.
    let this =
        std::env::current_exe().map_err(|error| format!("where this program is, is unknown: {error}"))?;
    Ok(this.with_file_name("onsale"))
}

/// Asks that every program the later steps need is there, and installs what can be installed. Nothing is ever skipped
/// for want of a tool.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    for (component, subcommand) in [("rustfmt", "fmt"), ("clippy", "clippy")] {
        if !answers(&mut cargo(root, &[subcommand, "--version"])) {
            return Err(format!("{component} is missing: run `rustup component add {component}`"));
        }
    }
    if !answers(Command::new("cc").arg("--version")) {
        apt_install(&["gcc", "libc6-dev"], "a C compiler, called `cc`")?;
    }
    if !answers(&mut cargo(root, &["nextest", "--version"])) {
        succeed(&mut cargo(root, &["install", "cargo-nextest", "--locked"]))?;
    }
    postgres()?;
    node()
}

/// PostgreSQL's server and its programs. Debian makes a server of its own after it has installed them, unless it is told
/// beforehand not to; nothing here needs that one, which would go on running.
fn postgres() -> Result<(), String> {
    if postgres_is_there().is_ok() {
        return Ok(());
    }
    let told = Path::new("/etc/postgresql-common/createcluster.conf");
    if may_install() && !told.exists() {
        let failed = |error| format!("failed to write {}: {error}", told.display());
        fs::create_dir_all("/etc/postgresql-common").map_err(failed)?;
        fs::write(told, "create_main_cluster = false\n").map_err(failed)?;
    }
    apt_install(&["postgresql"], "PostgreSQL with its server and pgbench")?;
    postgres_is_there()
}

fn postgres_is_there() -> Result<(), String> {
    let programs = onsale_postgres_server::find_programs().map_err(|error| error.to_string())?;
    if answers(Command::new(programs.join("pgbench")).arg("--version")) {
        Ok(())
    } else {
        Err(format!("pgbench is missing in {}", programs.display()))
    }
}

/// Node and npm, for the provider's own client. A release of Debian may come with an older Node; npm has newer ones.
fn node() -> Result<(), String> {
    let wanted = format!("Node {NODE_MAJOR_MIN} or newer with npm");
    if node_is_there() {
        return Ok(());
    }
    apt_install(&["nodejs", "npm"], &wanted)?;
    if node_is_there() {
        return Ok(());
    }
    succeed(Command::new("npm").args(["install", "--global", "--no-audit", "--no-fund", "node@22"]))?;
    if node_is_there() {
        Ok(())
    } else {
        Err(format!("{wanted} is still missing: install it, and try again"))
    }
}

fn node_is_there() -> bool {
    let version = Command::new("node").arg("--version").output();
    let version =
        version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    node_major(&version).is_some_and(|major| major >= NODE_MAJOR_MIN)
        && answers(Command::new("npm").arg("--version"))
}

fn node_major(version: &str) -> Option<u32> {
    version.trim().strip_prefix('v')?.split('.').next()?.parse().ok()
}

pub(crate) fn answers(command: &mut Command) -> bool {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Are we root on a Debian?
fn may_install() -> bool {
    let is_root = output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    is_root && Path::new("/etc/debian_version").exists()
}

fn apt_install(packages: &[&str], what: &str) -> Result<(), String> {
    if !may_install() {
        return Err(format!(
            "{what} is missing: install it (on Debian: `apt-get install {}`)",
            packages.join(" ")
        ));
    }
    let apt = || {
        let mut apt = Command::new("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive");
        apt
    };
    succeed(apt().arg("update"))?;
    succeed(apt().args(["install", "-y"]).args(packages))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_of_node_is_read() {
        let check = |version, major| assert_eq!(node_major(version), major, "{version:?}");
        check("v20.20.2\n", Some(20));
        check("v8.0.0", Some(8));
        check("", None);
        check("20.1", None);
        check("vx.1", None);
    }

    #[test]
    fn a_command_that_fails_is_named() {
        let error = succeed(Command::new("false").arg("now")).unwrap_err();
        assert!(error.starts_with("`false now` ended with "), "{error}");
        let error = output(&mut Command::new("no-such-program-at-all")).unwrap_err();
        assert!(error.contains("could not be started"), "{error}");
    }
}
