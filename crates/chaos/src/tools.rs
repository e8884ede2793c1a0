//! The software that a run needs, taken from where its users have it: Debian's packages, and Patroni from PyPI in a Python
//! environment of its own. What is missing is installed; nothing is ever skipped for want of it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};

/// Debian's programs, each with the package that has it.
const PROGRAMS: &[(&str, &str)] = &[
    ("ip", "iproute2"),
    ("nft", "nftables"),
    ("unshare", "util-linux"),
    ("setpriv", "util-linux"),
    ("psql", "postgresql-client-15"),
    ("etcd", "etcd-server"),
    ("etcdctl", "etcd-client"),
    ("haproxy", "haproxy"),
];

/// Where Debian keeps a version's own programs.
pub(crate) const POSTGRES: &str = "/usr/lib/postgresql/15/bin";

/// The system's Python: PostgreSQL's user may not be able to run one of somebody's home.
const PYTHON: &str = "/usr/bin/python3";

const PATRONI: &str = "patroni[etcd3]==4.1.5";
const DRIVER: &str = "psycopg[binary]==3.3.9";

/// Asks that all of it is there; the folder of the Python environment.
pub(crate) fn check(kept: &Path) -> anyhow::Result<PathBuf> {
    let mut missing: Vec<&str> =
        PROGRAMS.iter().filter(|(name, _)| find(name).is_none()).map(|(_, package)| *package).collect();
    if !Path::new(POSTGRES).join("postgres").exists() {
        missing.push("postgresql-15");
    }
    // Without `ensurepip`, an environment can be made, but nothing installed into it.
    let environments =
        Command::new(PYTHON).args(["-c", "import venv, ensurepip"]).stderr(Stdio::null()).status();
    if !environments.is_ok_and(|status| status.success()) {
        missing.push("python3-venv");
    }
    if !missing.is_empty() {
        apt_install(&missing)?;
    }
    for (name, package) in PROGRAMS {
        ensure!(find(name).is_some(), "{name} is missing: install Debian's package {package}");
    }
    ensure!(Path::new(POSTGRES).join("postgres").exists(), "{POSTGRES} is missing: install postgresql-15");
    let environment = kept.join("venv");
    if !has_patroni(&environment) {
        make(&environment)?;
        ensure!(has_patroni(&environment), "{PATRONI} was installed and does not run");
    }
    Ok(environment)
}

fn has_patroni(environment: &Path) -> bool {
    let asked = Command::new(environment.join("bin/python3")).args(["-m", "patroni", "--version"]).output();
    let version = PATRONI.rsplit("==").next().unwrap_or_default();
    asked.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim().ends_with(version))
}

fn make(environment: &Path) -> anyhow::Result<()> {
    succeed(Command::new(PYTHON).args(["-m", "venv", "--clear"]).arg(environment))?;
    let mut pip = Command::new(environment.join("bin/pip"));
    succeed(pip.args(["install", "--quiet", "--no-cache-dir", PATRONI, DRIVER]))
}

fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

fn apt_install(packages: &[&str]) -> anyhow::Result<()> {
    let names = packages.join(" ");
    if !Path::new("/etc/debian_version").exists() {
        bail!("missing: {names}, as Debian calls them. This runs on Debian 12");
    }
    // Debian starts what it installs. A cluster of its own is not wanted here, and its ports may be somebody's.
    let apt = || {
        let mut apt = Command::new("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1");
        apt
    };
    succeed(apt().args(["update", "--quiet"]))?;
    succeed(apt().args(["install", "--yes", "--quiet", "--no-install-recommends"]).args(packages))
        .with_context(|| format!("failed to install {names}"))
}

/// Shows a command, runs it, and asks that it succeeds.
fn succeed(command: &mut Command) -> anyhow::Result<()> {
    eprintln!("$ {command:?}");
    // What is printed on standard output is the result alone.
    let status = command.stdin(Stdio::null()).stdout(std::io::stderr()).status();
    let status = status.with_context(|| format!("failed to start {command:?}"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}
