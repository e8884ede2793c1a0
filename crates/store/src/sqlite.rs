//! The embedded database: one writer, many readers, one checkpoint owner, over one file in WAL mode.

mod apply;
mod backend;
mod checkpoints;
mod load;
mod open;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use onsale_core::time::Timestamp;
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use crate::audit::{self, Audit, Scope};
use crate::error::{InspectError, OpenError, StoreError};
use crate::limits::{BUSY_TIMEOUT, CHECKPOINT_PAGES, CHECKPOINT_PAGES_FORCED, READERS_MAX};
use crate::look::Look;
use crate::writer::{self, Clock, Committed, Queue};

pub(crate) use backend::SqliteBackend;

/// How a store is opened.
#[derive(Clone)]
pub struct Options {
    /// The folder of the database; the file in it is `onsale.db`.
    pub folder: PathBuf,
    /// Where the time of decisions comes from.
    pub clock: Arc<dyn Clock>,
    /// How long a statement waits for another process's transaction.
    pub busy_timeout: Duration,
    /// Most pages of 4 KiB the file may have; at the bound, decisions are refused as on a full disk, and reading goes
    /// on.
    pub pages_max: Option<u32>,
    /// Whether a database of an older program is brought up to date, or refused. A new one is always made.
    pub upgrades: bool,
    /// What it stands on; only tests of the store choose.
    pub ground: Ground,
}

/// What a store stands on. The program stands on the default, and nothing configures it: tests of the store put a faulty
/// disk under it, and take away what they mean to show the need of.
#[derive(Clone, Copy, Debug)]
pub struct Ground {
    /// The engine's file layer, where it isn't the usual one.
    pub vfs: Option<&'static str>,
    /// Whether each commit is synced. Without, what was acknowledged may go with the power.
    pub syncs_commits: bool,
    /// Pages in the WAL after which the checkpointer copies them into the database.
    pub checkpoint_pages: u32,
    /// Pages in the WAL after which the writer itself waits for a checkpoint.
    pub checkpoint_pages_forced: u32,
}

impl Default for Ground {
    fn default() -> Ground {
        Ground {
            vfs: None,
            syncs_commits: true,
            checkpoint_pages: CHECKPOINT_PAGES,
            checkpoint_pages_forced: CHECKPOINT_PAGES_FORCED,
        }
    }
}

impl Options {
    /// The usual: [`BUSY_TIMEOUT`], and no bound but the disk's.
    pub fn new(folder: PathBuf, clock: Arc<dyn Clock>) -> Options {
        let ground = Ground::default();
        Options { folder, clock, busy_timeout: BUSY_TIMEOUT, pages_max: None, upgrades: true, ground }
    }
}

/// The file of an installation: one writer, many readers.
pub(crate) struct File {
    pub(crate) queue: Arc<Queue<SqliteBackend>>,
    path: PathBuf,
    ground: Ground,
    readers: Mutex<Vec<Connection>>,
}

impl File {
    /// Opens the database in a folder, making both if need be; takes over what a crash left.
    pub(crate) fn open(
        options: Options,
        publish: Arc<dyn Fn(&Committed) + Send + Sync>,
    ) -> Result<(File, JoinHandle<()>), OpenError> {
        let path = options.folder.join("onsale.db");
        let connection = open::for_writing(&options, &path)?;
        open::require_home(&connection, &path)?;
        let ground = options.ground;
        let checkpointer = open::for_checkpoints(ground, &path)?;
        let queue = Queue::new();
        let failed = |source| OpenError::Open { path: path.clone(), source };
        let backend =
            SqliteBackend::new(connection, checkpointer, options.busy_timeout, ground).map_err(failed)?;
        let clock = options.clock;
        let for_thread = Arc::clone(&queue);
        let writer = std::thread::Builder::new()
            .name("writer".to_owned())
            .spawn(move || writer::run(&for_thread, backend, &*clock, &*publish))
            .map_err(|source| OpenError::Folder { path: path.clone(), source })?;
        Ok((File { queue, path, ground, readers: Mutex::new(Vec::new()) }, writer))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Work on a connection that can only read.
    pub(crate) fn with_reader<R>(
        &self,
        work: impl FnOnce(&Connection) -> Result<R, StoreError>,
    ) -> Result<R, StoreError> {
        let pooled = self.readers.lock().expect("nothing panics under the readers' lock").pop();
        let connection = match pooled {
            Some(connection) => connection,
            None => open::for_reading(self.ground, &self.path)?,
        };
        let result = work(&connection);
        if result.is_ok() {
            let mut readers = self.readers.lock().expect("nothing panics under the readers' lock");
            if readers.len() < READERS_MAX {
                readers.push(connection);
            }
        }
        result
    }

    /// Checks every invariant on one state of the database.
    pub(crate) fn audit(&self, now: Timestamp) -> Result<Audit, StoreError> {
        audit::run(Look::Sqlite(&open::for_reading(self.ground, &self.path)?), now, Scope::AtHome)
    }

    /// Lets the writer finish, and lets go of what isn't used: the writer's connection should be the last.
    pub(crate) fn close(&self) {
        self.queue.close();
        self.readers.lock().expect("nothing panics under the readers' lock").clear();
    }
}

/// Checks every invariant of the database in a folder, whether or not a program serves it.
pub fn audit_folder(folder: &Path, now: Timestamp) -> Result<Audit, InspectError> {
    let connection = open::existing_for_reading(&folder.join("onsale.db"))?;
    Ok(audit::run(Look::Sqlite(&connection), now, Scope::AtHome)?)
}

/// Copies the database in a folder into a new file, whether or not a program serves it.
pub fn backup_folder(folder: &Path, to: &Path) -> Result<(), InspectError> {
    let connection = open::existing_for_reading(&folder.join("onsale.db"))?;
    Ok(backup(&connection, to)?)
}

/// A connection to the database in a folder that writes, whether or not a program serves it, and wherever it is at home.
pub(crate) fn existing_for_writing(options: &Options) -> Result<Connection, OpenError> {
    let path = options.folder.join("onsale.db");
    drop(open::existing_for_reading(&path)?);
    open::for_writing(options, &path)
}

fn backup(db: &Connection, to: &Path) -> Result<(), StoreError> {
    let mut copy = Connection::open(to)?;
    let backup = Backup::new(db, &mut copy)?;
    // All pages in one look: it keeps no writer waiting, and a copy in steps begins anew whenever the database changes.
    if backup.step(-1)? != StepResult::Done {
        return Err(StoreError::Busy);
    }
    drop(backup);
    // The copy is one file that needs nothing beside it.
    copy.execute_batch("PRAGMA journal_mode = DELETE")?;
    Ok(())
}

#[cfg(test)]
mod tests;
