//! Settings: defaults, a file, the environment, flags; each goes before the one before it. `config.default.toml` says
//! what each means.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use onsale_core::limits::PROVIDER_TIMEOUT_MS;
use serde::Deserialize;

/// The file that documents every setting; the program reads its defaults from it too, so that it can't be wrong.
pub(crate) const DEFAULT_TEXT: &str = include_str!("../../../config.default.toml");

/// All settings.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    pub(crate) data: PathBuf,
    pub(crate) listen: SocketAddr,
    pub(crate) operator_listen: SocketAddr,
    pub(crate) database: DatabaseSettings,
    pub(crate) http: HttpSettings,
    pub(crate) payment: PaymentSettings,
    pub(crate) log: LogSettings,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DatabaseSettings {
    pub(crate) size_mib_max: u32,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HttpSettings {
    pub(crate) connections_max: usize,
    pub(crate) header_read_timeout_ms: u64,
    pub(crate) drain_ms: u64,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PaymentSettings {
    pub(crate) base_url: String,
    pub(crate) secret_key: String,
    pub(crate) secret_key_file: PathBuf,
    pub(crate) webhook_secrets: Vec<String>,
    pub(crate) request_timeout_ms: u64,
    pub(crate) connections_max: usize,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogSettings {
    pub(crate) level: String,
}

impl Settings {
    /// Defaults, then a file's settings, then the environment's.
    pub(crate) fn load(file: Option<&Path>) -> anyhow::Result<Settings> {
        let mut table: toml::Table = DEFAULT_TEXT.parse().context("the defaults are not valid")?;
        if let Some(file) = file {
            let text = std::fs::read_to_string(file)
                .with_context(|| format!("failed to read {}", file.display()))?;
            let given: toml::Table =
                text.parse().with_context(|| format!("{} is not valid TOML", file.display()))?;
            merge(&mut table, given);
        }
        let mut settings: Settings = table.try_into().context("the settings are not valid")?;
        settings.take_environment(|name| std::env::var(name).ok())?;
        settings.check()?;
        Ok(settings)
    }

    fn take_environment(&mut self, read: impl Fn(&str) -> Option<String>) -> anyhow::Result<()> {
        let address = |name: &str| match read(name) {
            Some(text) => {
                text.parse().map(Some).with_context(|| format!("{name} must be an address and a port"))
            }
            None => Ok(None),
        };
        self.listen = address("ONSALE_LISTEN")?.unwrap_or(self.listen);
        self.operator_listen = address("ONSALE_OPERATOR_LISTEN")?.unwrap_or(self.operator_listen);
        if let Some(data) = read("ONSALE_DATA") {
            self.data = data.into();
        }
        if let Some(level) = read("ONSALE_LOG") {
            self.log.level = level;
        }
        if let Some(url) = read("ONSALE_PAYMENT_BASE_URL") {
            self.payment.base_url = url;
        }
        if let Some(key) = read("ONSALE_PAYMENT_SECRET_KEY") {
            self.payment.secret_key = key;
        }
        if let Some(secrets) = read("ONSALE_PAYMENT_WEBHOOK_SECRETS") {
            self.payment.webhook_secrets =
                secrets.split(',').map(|secret| secret.trim().to_owned()).collect();
        }
        let file = &self.payment.secret_key_file;
        if !file.as_os_str().is_empty() {
            ensure!(
                self.payment.secret_key.is_empty(),
                "give payment.secret_key or payment.secret_key_file, not both"
            );
            let text = std::fs::read_to_string(file)
                .with_context(|| format!("failed to read {}", file.display()))?;
            self.payment.secret_key = text.trim().to_owned();
        }
        Ok(())
    }

    fn check(&self) -> anyhow::Result<()> {
        let timeout = self.payment.request_timeout_ms;
        if !(1_000..=PROVIDER_TIMEOUT_MS as u64).contains(&timeout) {
            bail!("payment.request_timeout_ms must be 1000 to {PROVIDER_TIMEOUT_MS}");
        }
        ensure!(
            (1..=1_024).contains(&self.payment.connections_max),
            "payment.connections_max must be 1 to 1024"
        );
        ensure!(
            (1..=1_000_000).contains(&self.http.connections_max),
            "http.connections_max must be 1 to 1000000"
        );
        ensure!(
            (100..=120_000).contains(&self.http.header_read_timeout_ms),
            "http.header_read_timeout_ms must be 100 to 120000"
        );
        ensure!(self.database.size_mib_max <= 1 << 20, "database.size_mib_max must be at most 1048576");
        ensure!(self.http.drain_ms <= 60_000, "http.drain_ms must be at most 60000");
        if !self.payment.secret_key.is_empty() {
            ensure!(
                !self.payment.webhook_secrets.is_empty(),
                "payment.webhook_secrets must not be empty: callbacks are signed"
            );
        }
        Ok(())
    }
}

/// Puts the settings of one table over those of another, member by member.
fn merge(into: &mut toml::Table, from: toml::Table) {
    for (name, value) in from {
        match (into.get_mut(&name), value) {
            (Some(toml::Value::Table(inner)), toml::Value::Table(given)) => merge(inner, given),
            (_, value) => {
                into.insert(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_defaults_are_the_defaults_and_unknown_settings_are_refused() {
        let settings = Settings::load(None).unwrap();
        assert_eq!(settings.listen.port(), 8080);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("onsale.toml");
        std::fs::write(&file, "[http]\nconnections_max = 5\n").unwrap();
        let settings = Settings::load(Some(&file)).unwrap();
        assert_eq!((settings.http.connections_max, settings.http.drain_ms), (5, 500));
        for wrong in
            ["[http]\nconnectoins_max = 5\n", "listen = 7\n", "[payment]\nrequest_timeout_ms = 60000\n", "]["]
        {
            std::fs::write(&file, wrong).unwrap();
            assert!(Settings::load(Some(&file)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_environment_goes_before_the_file() {
        let mut settings = Settings::load(None).unwrap();
        let read = |name: &str| (name == "ONSALE_LISTEN").then(|| "127.0.0.1:9".to_owned());
        settings.take_environment(read).unwrap();
        assert_eq!(settings.listen.port(), 9);
        assert!(settings.take_environment(|name| (name == "ONSALE_LISTEN").then(|| "x".to_owned())).is_err());
    }
}
