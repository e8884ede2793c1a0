//! Logs: JSON lines on standard error. No card, no token, no e-mail address ever goes there.

use anyhow::Context;
use tracing_subscriber::EnvFilter;

/// Starts logging, once for the process.
pub(crate) fn start(level: &str) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(level).with_context(|| format!("{level:?} is not a log level"))?;
    let logs = tracing_subscriber::fmt().json().with_env_filter(filter).with_writer(std::io::stderr);
    logs.try_init().map_err(|error| anyhow::anyhow!("failed to start logging: {error}"))
}
