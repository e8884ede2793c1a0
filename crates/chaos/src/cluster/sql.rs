//! What the runner itself asks of PostgreSQL, with `psql`, and never without an end: on a strict cluster a commit may wait
//! for ever.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, ensure};
use tokio::process::Command;
use tokio::time::timeout;

use super::net::BRIDGE;
use super::settings::{PASSWORD, PROXY_PORT, ROLE};

const LIMIT: Duration = Duration::from_secs(5);

/// Asks a node's own PostgreSQL, as its superuser.
pub(crate) async fn ask_socket(folder: &Path, statement: &str) -> anyhow::Result<String> {
    run(on_socket(folder, "postgres"), statement).await
}

/// A `psql` at a node's socket, as its superuser, for whoever wants to wait for it in his own way.
pub(crate) fn on_socket(folder: &Path, database: &str) -> Command {
    let mut psql = psql();
    psql.arg("-h").arg(folder).args(["-U", "postgres", "-d", database]);
    psql
}

/// Asks whatever primary the proxy leads to, as the application would.
pub(crate) async fn ask_proxy(statement: &str) -> anyhow::Result<String> {
    let mut psql = psql();
    psql.env("PGPASSWORD", PASSWORD).args([
        "-h",
        BRIDGE,
        "-p",
        &PROXY_PORT.to_string(),
        "-U",
        ROLE,
        "-d",
        ROLE,
    ]);
    run(psql, statement).await
}

fn psql() -> Command {
    let mut psql = Command::new("psql");
    psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]).env("PGCONNECT_TIMEOUT", "3");
    psql.stdin(Stdio::null()).kill_on_drop(true);
    psql
}

async fn run(mut psql: Command, statement: &str) -> anyhow::Result<String> {
    let asked = timeout(LIMIT, psql.args(["-c", statement]).output()).await;
    let output = asked.with_context(|| format!("no answer to {statement:?}"))??;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{statement:?}: {}", error.trim());
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
