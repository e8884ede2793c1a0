//! A PostgreSQL server of one's own, in a folder of its own, that ends with whoever started it. For tests, bench and xtask.
//!
//! A [`Server`] is made anew from the programs that are installed, and listens on a socket in its folder alone: no port is
//! taken, and no server that is there for something else is touched. It keeps what it acknowledges (`fsync`,
//! `synchronous_commit`), as the program asks of every server.
//!
//! When a [`Server`] is dropped, or its process ends in whatever way, a guard stops the server and removes the folder.

#![deny(missing_docs)]

mod guard;
mod programs;
#[cfg(test)]
mod tests;

use std::fmt;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use guard::Guard;
pub use programs::find as find_programs;

/// Holds the folder of a server that all tests of a run share.
pub const SHARED_FOLDER: &str = "ONSALE_TEST_POSTGRES";
/// What a server has that tests share: each of them has pools of its own.
pub const SHARED_SETTINGS: &[(&str, &str)] = &[("max_connections", "400")];

/// Part of the socket's name; nothing listens on a port.
const PORT: u16 = 5432;
/// The most bytes that a socket's path may have.
const SOCKET_PATH_BYTES_MAX: usize = 107;
/// A start after a crash first reads what was written since the last checkpoint.
const START_MAX: Duration = Duration::from_secs(60);
const RELOAD_MAX: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// So much of memory that is mounted as files is asked to be free.
const MEMORY_KIB_MIN: u64 = 2 * 1024 * 1024;
/// Lines of the server's log in an error.
const LOG_LINES: usize = 12;

/// Why a server could not be had or asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error(String);

impl Error {
    fn new(text: impl Into<String>) -> Error {
        Error(text.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// Where a server keeps its data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// In memory that is mounted as files, where there is enough of it; else on the disk. A sync costs nothing there.
    Memory,
    /// Where temporary files are, on the disk: a sync costs what it costs.
    Disk,
}

/// A server.
pub struct Server {
    folder: PathBuf,
    programs: PathBuf,
    /// None if the server is another process's.
    guard: Option<Guard>,
}

impl Server {
    /// Makes and starts a server in memory with the usual settings.
    pub fn start() -> Result<Server, Error> {
        Server::start_with(Place::Memory, &[])
    }

    /// Makes and starts a server with settings as in `postgresql.conf`.
    pub fn start_with(place: Place, settings: &[(&str, &str)]) -> Result<Server, Error> {
        let programs = programs::find()?;
        let mut guard = Guard::start(&folder_for(place), &programs, programs::user()?)?;
        let folder = guard.folder.clone();
        if guard.order("make")? != "made" {
            return Err(Error::new(format!("initdb failed:\n{}", log_end(&folder))));
        }
        let socket_folder = folder.to_str().ok_or_else(|| Error::new("the folder's name is no text"))?;
        let own = [("listen_addresses", ""), ("unix_socket_directories", socket_folder), ("fsync", "on")];
        let own = own.iter().chain(&[("full_page_writes", "on"), ("synchronous_commit", "on")]);
        let lines: String =
            own.chain(settings).map(|(name, value)| format!("{name} = {}\n", quoted(value))).collect();
        let file = folder.join("data/postgresql.conf");
        // Its first lines are of initdb and stay as they are; of two lines for one setting the later counts.
        let written = fs::OpenOptions::new()
            .append(true)
            .open(file)
            .and_then(|mut file| file.write_all(lines.as_bytes()));
        written.map_err(|error| Error::new(format!("the settings could not be written: {error}")))?;
        let mut server = Server { folder, programs, guard: Some(guard) };
        server.start_again()?;
        Ok(server)
    }

    /// The server that all tests of a run share, or one that this process starts for its tests and keeps to its end. It
    /// can't be stopped by one of them.
    pub fn shared() -> Result<&'static Server, Error> {
        static SHARED: OnceLock<Result<Server, Error>> = OnceLock::new();
        let start = || match std::env::var_os(SHARED_FOLDER) {
            Some(folder) => Server::at(folder.into()),
            None => Server::start_with(Place::Memory, SHARED_SETTINGS),
        };
        SHARED.get_or_init(start).as_ref().map_err(Error::clone)
    }

    /// A server of another process, which stops it.
    fn at(folder: PathBuf) -> Result<Server, Error> {
        if !is_ready(&folder, None) {
            return Err(Error::new(format!("{SHARED_FOLDER} is {}, where no server runs", folder.display())));
        }
        Ok(Server { folder, programs: programs::find()?, guard: None })
    }

    /// Where its socket is; `data` and `log` are there too.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where a database is, in the form that libpq and drivers take.
    pub fn url(&self, database: &str) -> String {
        let (folder, database) = (encoded(&self.folder.to_string_lossy()), encoded(database));
        format!("postgresql://postgres@{folder}:{PORT}/{database}")
    }

    /// Makes an empty database; its URL.
    pub fn create_database(&self) -> Result<String, Error> {
        // Nobody is ever connected to this one, so nobody is in the way.
        self.create_database_from("template0")
    }

    /// Makes a database with all that is in another one, to which nobody may be connected; its URL.
    pub fn create_database_from(&self, template: &str) -> Result<String, Error> {
        let name = format!("test_{:016x}", RandomState::new().hash_one(0));
        let template = template.replace('"', "\"\"");
        self.psql("postgres", &format!("CREATE DATABASE {name} TEMPLATE \"{template}\""))?;
        Ok(self.url(&name))
    }

    /// Runs statements, each in a transaction of its own unless they say otherwise, up to the first that fails. What they
    /// give comes without headers, columns divided by `|`.
    pub fn psql(&self, database: &str, sql: &str) -> Result<String, Error> {
        let mut psql = self.client("psql");
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-f", "-", "-d"]).arg(self.url(database));
        psql.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let failed = |error: std::io::Error| Error::new(format!("psql could not be run: {error}"));
        let mut child = psql.spawn().map_err(failed)?;
        // psql reads all before it says much, unless it fails: then the pipe is closed, and it says why.
        let fed = child.stdin.take().map(|mut input| input.write_all(sql.as_bytes()));
        let output = child.wait_with_output().map_err(failed)?;
        if !output.status.success() {
            return Err(Error::new(String::from_utf8_lossy(&output.stderr).trim_end()));
        }
        fed.transpose().map_err(failed)?;
        let text =
            String::from_utf8(output.stdout).map_err(|_| Error::new("psql printed what is no text"))?;
        Ok(text.trim_end_matches('\n').to_owned())
    }

    /// One of PostgreSQL's programs, of the server's version, which reads nothing in our environment.
    pub fn client(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        programs::forget_environment(&mut command);
        command.env("LC_ALL", "C");
        command
    }

    /// Changes a setting that needs no restart. When this returns, new connections have it.
    pub fn reload(&mut self, setting: &str, value: &str) -> Result<(), Error> {
        let loaded_at = "SELECT pg_conf_load_time()";
        let before = self.psql("postgres", loaded_at)?;
        let change = format!("ALTER SYSTEM SET {setting} = {}; SELECT pg_reload_conf();", quoted(value));
        self.psql("postgres", &change)?;
        let mut look = Ok(());
        let is_loaded = wait_until(RELOAD_MAX, || {
            let now = self.psql("postgres", loaded_at);
            let is_over = now.as_ref().map_or(true, |now| *now != before);
            look = now.map(drop);
            is_over
        });
        look?;
        is_loaded.then_some(()).ok_or_else(|| Error::new(format!("{setting} was set and is not read")))
    }

    /// Stops it as an operator does, so that whoever is connected is cut off, and starts it again.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.guard()?.order("INT")?;
        self.start_again()
    }

    /// Kills it. What it has not written is lost, and processes of it that are at work end when they notice.
    pub fn stop_hard(&mut self) -> Result<(), Error> {
        self.guard()?.order("KILL").map(drop)
    }

    /// Starts it after it was stopped, and waits until it accepts connections.
    pub fn start_again(&mut self) -> Result<(), Error> {
        let folder = self.folder.clone();
        let guard = self.guard()?;
        let mut process = guard.order("start")?;
        let mut failed = None;
        let is_started = wait_until(START_MAX, || {
            if is_ready(&folder, Some(&process)) {
                return true;
            }
            if !is_running(&process) {
                let log = log_end(&folder);
                // Processes of a server that was killed are still ending. They are no longer than what they are at takes.
                let again = log
                    .contains("still in use")
                    .then(|| guard.order("QUIT").and_then(|_| guard.order("start")));
                match again {
                    Some(Ok(next)) => process = next,
                    Some(Err(error)) => failed = Some(error),
                    None => failed = Some(Error::new(format!("the server ended while it started:\n{log}"))),
                }
            }
            failed.is_some()
        });
        match failed {
            Some(error) => Err(error),
            None if is_started => Ok(()),
            None => Err(Error::new(format!("the server is not ready for long:\n{}", log_end(&folder)))),
        }
    }

    fn guard(&mut self) -> Result<&mut Guard, Error> {
        self.guard
            .as_mut()
            .ok_or_else(|| Error::new("the server is another process's, which alone starts and stops it"))
    }
}

/// A folder so near the root that a socket's path has room.
fn folder_for(place: Place) -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if place == Place::Memory
        && memory.is_dir()
        && free_kib(&memory).is_some_and(|free| free >= MEMORY_KIB_MIN)
    {
        return memory;
    }
    let folder = std::env::temp_dir();
    let socket = folder.join("onsale-pg-XXXXXX/.s.PGSQL.5432");
    let fits = folder.is_absolute() && socket.as_os_str().len() <= SOCKET_PATH_BYTES_MAX;
    if fits { folder } else { PathBuf::from("/tmp") }
}

fn free_kib(folder: &Path) -> Option<u64> {
    let output = Command::new("df").arg("-Pk").arg(folder).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()
}

/// Does the server say, in the file that it keeps for its programs, that it accepts connections?
fn is_ready(folder: &Path, process: Option<&str>) -> bool {
    let state = fs::read_to_string(folder.join("data/postmaster.pid")).unwrap_or_default();
    let lines: Vec<&str> = state.lines().map(str::trim).collect();
    process.is_none_or(|process| lines.first() == Some(&process)) && lines.get(7) == Some(&"ready")
}

/// Is it still running? Its guard has not asked how it ended, so its number is no other's.
fn is_running(process: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

fn log_end(folder: &Path) -> String {
    let log = fs::read(folder.join("log")).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}

/// Looks again and again until it is so, or for so long.
fn wait_until(longest: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while !is_so() {
        if begun.elapsed() > longest {
            return false;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    true
}

/// A value in quotes, as settings and statements have it.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

/// A part of a URL: all but what means only itself as `%` and its number.
fn encoded(part: &str) -> String {
    let mut text = String::new();
    for byte in part.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => text.push(byte.into()),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}
