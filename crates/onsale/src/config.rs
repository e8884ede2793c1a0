//! Settings: defaults, a file, the environment, flags; each goes before the one before it. `config.default.toml` says
//! what each means.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use onsale_core::limits::PROVIDER_TIMEOUT_MS;
use onsale_store::LANES_MAX;
use serde::Deserialize;

/// The file that documents every setting; the program reads its defaults from it too, so that it can't be wrong.
pub(crate) const DEFAULT_TEXT: &str = include_str!("../../../config.default.toml");

/// Longest name of a home: it is a label of the metrics and a column of the directory.
const HOME_NAME_LENGTH_MAX: usize = 64;

/// Seconds of a day.
const DAY_S: i64 = 24 * 3_600;

/// All settings. Some are secrets, so it can't be printed.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    pub(crate) data: PathBuf,
    pub(crate) listen: SocketAddr,
    pub(crate) operator_listen: SocketAddr,
    pub(crate) database: DatabaseSettings,
    pub(crate) http: HttpSettings,
    pub(crate) payment: PaymentSettings,
    pub(crate) reconcile: ReconcileSettings,
    pub(crate) webhooks: WebhookSettings,
    pub(crate) log: LogSettings,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DatabaseSettings {
    pub(crate) size_mib_max: u32,
    pub(crate) name: String,
    /// Empty where the database is the file.
    pub(crate) url: String,
    pub(crate) url_file: PathBuf,
    pub(crate) standby: Standby,
    pub(crate) writers: usize,
    pub(crate) homes: Vec<HomeSettings>,
}

/// Whether a server must keep every commit on a standby too.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Standby {
    Any,
    Required,
}

/// One more home.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HomeSettings {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) url: String,
    #[serde(default)]
    pub(crate) url_file: PathBuf,
}

impl DatabaseSettings {
    /// Name and URL of each home, the main one first; it has no URL where it is the file.
    pub(crate) fn homes(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        let main = (self.name.as_str(), Some(self.url.as_str()).filter(|url| !url.is_empty()));
        std::iter::once(main)
            .chain(self.homes.iter().map(|home| (home.name.as_str(), Some(home.url.as_str()))))
    }

    fn check(&self) -> anyhow::Result<()> {
        ensure!(self.size_mib_max <= 1 << 20, "database.size_mib_max must be at most 1048576");
        ensure!((1..=LANES_MAX).contains(&self.writers), "database.writers must be 1 to {LANES_MAX}");
        let mut names = HashSet::new();
        for (name, url) in self.homes() {
            let fits = (1..=HOME_NAME_LENGTH_MAX).contains(&name.len())
                && name.bytes().all(|byte| byte.is_ascii_graphic());
            ensure!(
                fits,
                "a home's name must be 1 to {HOME_NAME_LENGTH_MAX} visible ASCII characters: {name:?} isn't"
            );
            ensure!(names.insert(name), "two homes are called {name:?}: each needs a name of its own");
            ensure!(
                url.is_some() || self.homes.is_empty(),
                "database.homes needs database.url too: the directory of events is kept on a server"
            );
            ensure!(url != Some(""), "the home {name:?} needs a url or a url_file");
        }
        Ok(())
    }
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
pub(crate) struct ReconcileSettings {
    /// 0 for never.
    pub(crate) every_s: i64,
    pub(crate) overlap_s: i64,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WebhookSettings {
    pub(crate) allow_private: bool,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogSettings {
    pub(crate) level: String,
}

impl Settings {
    /// Defaults, then a file's settings, then the environment's.
    pub(crate) fn load(file: Option<&Path>) -> anyhow::Result<Settings> {
        Settings::load_with(file, |_| {})
    }

    /// The same, and then what flags say.
    pub(crate) fn load_with(
        file: Option<&Path>,
        take_flags: impl FnOnce(&mut Settings),
    ) -> anyhow::Result<Settings> {
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
        take_flags(&mut settings);
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
        take_file(&mut self.payment.secret_key, &self.payment.secret_key_file, "payment.secret_key")?;
        // Set to nothing is not set.
        let given = |name| read(name).filter(|value| !value.is_empty());
        match (given("ONSALE_DATABASE_URL"), given("ONSALE_DATABASE_URL_FILE")) {
            (Some(_), Some(_)) => bail!("give ONSALE_DATABASE_URL or ONSALE_DATABASE_URL_FILE, not both"),
            (Some(url), None) => self.set_database_url(url),
            (None, Some(file)) => (self.database.url, self.database.url_file) = (String::new(), file.into()),
            (None, None) => {}
        }
        take_file(&mut self.database.url, &self.database.url_file, "database.url")?;
        for home in &mut self.database.homes {
            take_file(&mut home.url, &home.url_file, "the url of a home")?;
        }
        Ok(())
    }

    /// Keeps everything in the file, whatever was said of servers.
    pub(crate) fn keep_in_file(&mut self) {
        self.set_database_url(String::new());
        self.database.homes.clear();
    }

    /// Puts the main home at an address, whatever was said of it before.
    pub(crate) fn set_database_url(&mut self, url: String) {
        (self.database.url, self.database.url_file) = (url, PathBuf::new());
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
        self.database.check()?;
        let ReconcileSettings { every_s, overlap_s } = self.reconcile;
        ensure!(
            every_s == 0 || (60..=DAY_S).contains(&every_s),
            "reconcile.every_s must be 0, or 60 to {DAY_S}"
        );
        ensure!((0..=31 * DAY_S).contains(&overlap_s), "reconcile.overlap_s must be 0 to {}", 31 * DAY_S);
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

/// Takes a secret from its file, where there is one.
fn take_file(secret: &mut String, file: &Path, name: &str) -> anyhow::Result<()> {
    if file.as_os_str().is_empty() {
        return Ok(());
    }
    ensure!(secret.is_empty(), "give {name} or {name}_file, not both");
    let text = std::fs::read_to_string(file).with_context(|| format!("failed to read {}", file.display()))?;
    *secret = text.trim().to_owned();
    Ok(())
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
    fn homes_have_names_of_their_own_and_a_url_from_one_place() {
        let folder = tempfile::tempdir().unwrap();
        let (file, secret) = (folder.path().join("onsale.toml"), folder.path().join("url"));
        std::fs::write(&secret, "postgresql://b/b\n").unwrap();
        let more = |text: &str| format!("[database]\nurl = \"postgresql://a/a\"\n[[database.homes]]\n{text}");
        let load = |text: &str| {
            std::fs::write(&file, text).unwrap();
            Settings::load(Some(&file)).map_err(|error| format!("{error:#}"))
        };
        let settings = load(&more(&format!("name = \"west\"\nurl_file = {secret:?}\n"))).unwrap();
        let homes: Vec<_> = settings.database.homes().collect();
        assert_eq!(homes, [("main", Some("postgresql://a/a")), ("west", Some("postgresql://b/b"))]);
        assert_eq!(load("").unwrap().database.homes().collect::<Vec<_>>(), [("main", None)]);
        for (wrong, why) in [
            (more("name = \"main\"\nurl = \"postgresql://b/b\"\n"), "a name of its own"),
            (more("name = \"far west\"\nurl = \"postgresql://b/b\"\n"), "visible ASCII"),
            (more("name = \"west\"\n"), "needs a url"),
            (more("name = \"west\"\nurl = \"u\"\nport = 7\n"), "unknown field `port`"),
            (more(&format!("name = \"west\"\nurl = \"u\"\nurl_file = {secret:?}\n")), "not both"),
            ("[[database.homes]]\nname = \"west\"\nurl = \"u\"\n".to_owned(), "database.url too"),
            ("[database]\nstandby = \"maybe\"\n".to_owned(), "unknown variant"),
            ("[database]\nwriters = 0\n".to_owned(), "must be 1 to"),
        ] {
            let said = load(&wrong).err().unwrap_or_default();
            assert!(said.contains(why), "{why:?} is not in {said:?} for {wrong}");
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
