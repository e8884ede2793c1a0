//! The embedded database: one writer, many readers, one checkpoint owner, over one file in WAL mode.

mod apply;
mod backend;
mod checkpoints;
mod load;
mod open;
pub(crate) mod read;
mod rows;
mod upkeep;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use onsale_core::command::{Decision, Request};
use onsale_core::id::KeyId;
use onsale_core::time::Timestamp;
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::audit::{self, Audit};
use crate::error::{InspectError, OpenError, StoreError, SubmitError};
use crate::fail_point;
use crate::keys::ApiKey;
use crate::limits::{BUSY_TIMEOUT, CHECKPOINT_PAGES, CHECKPOINT_PAGES_FORCED, READERS_MAX};
use crate::writer::{self, Clock, Committed, Queue, WriterStats};

use backend::SqliteBackend;
use read::Reader;

/// How a store is opened.
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

/// The database of an installation.
pub struct Store {
    queue: Arc<Queue<SqliteBackend>>,
    path: PathBuf,
    ground: Ground,
    readers: Mutex<Vec<Connection>>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl Store {
    /// Opens the database in a folder, making both if need be; takes over what a crash left. `publish` is called by the
    /// writer after each commit and before anyone is answered: it must be quick.
    pub fn open(
        options: Options,
        mut publish: impl FnMut(&Committed) + Send + 'static,
    ) -> Result<Store, OpenError> {
        let path = options.folder.join("onsale.db");
        let connection = open::for_writing(&options, &path)?;
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
            .spawn(move || writer::run(&for_thread, backend, &*clock, &mut publish))
            .map_err(|source| OpenError::Folder { path: path.clone(), source })?;
        let (readers, writer) = (Mutex::new(Vec::new()), Mutex::new(Some(writer)));
        Ok(Store { queue, path, ground, readers, writer })
    }

    /// The database's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Has a request decided. A deadline that passes while it queues drops it undecided; once it is being decided, it
    /// is finished whether or not anyone still waits.
    pub async fn submit(&self, request: Request, deadline: Option<Instant>) -> Result<Decision, SubmitError> {
        let answer = self.queue.submit(request, deadline)?;
        fail_point!(async "queue.accepted", return Err(SubmitError::Unknown("a fail point".to_owned())));
        answer.await.unwrap_or_else(|_| Err(SubmitError::Unknown("the writer has ended".to_owned())))
    }

    /// [`submit`](Store::submit) for threads that may block.
    pub fn submit_blocking(&self, request: Request) -> Result<Decision, SubmitError> {
        let answer = self.queue.submit(request, None)?;
        answer
            .blocking_recv()
            .unwrap_or_else(|_| Err(SubmitError::Unknown("the writer has ended".to_owned())))
    }

    /// Reads through a connection of its own. Blocks for the time of the reading: from async code only for look-ups by
    /// key, anything larger belongs on a blocking thread.
    pub fn read<R>(&self, work: impl FnOnce(&Reader<'_>) -> Result<R, StoreError>) -> Result<R, StoreError> {
        let pooled = self.readers.lock().expect("nothing panics under the readers' lock").pop();
        let connection = match pooled {
            Some(connection) => connection,
            None => open::for_reading(self.ground, &self.path)?,
        };
        let result = work(&Reader(&connection));
        if result.is_ok() {
            let mut readers = self.readers.lock().expect("nothing panics under the readers' lock");
            if readers.len() < READERS_MAX {
                readers.push(connection);
            }
        }
        result
    }

    /// Checks every invariant on one state of the database.
    pub fn audit(&self, now: Timestamp) -> Result<Audit, StoreError> {
        audit::run(&open::for_reading(self.ground, &self.path)?, now)
    }

    /// Stores a new API key.
    pub async fn add_key(&self, key: ApiKey) -> Result<(), StoreError> {
        self.chore(move |connection| upkeep::add_key(connection, &key)).await
    }

    /// Revokes an API key; false when there is none.
    pub async fn revoke_key(&self, key: KeyId, now: Timestamp) -> Result<bool, StoreError> {
        self.chore(move |connection| upkeep::revoke_key(connection, key, now)).await
    }

    /// A secret of the installation, made of `fresh` when there is none yet.
    pub async fn secret(
        &self,
        name: &'static str,
        fresh: Vec<u8>,
        now: Timestamp,
    ) -> Result<Vec<u8>, StoreError> {
        self.chore(move |connection| upkeep::secret(connection, name, &fresh, now)).await
    }

    /// Forgets finished requests older than their time; how many.
    pub async fn forget_keys(&self, before: Timestamp) -> Result<usize, StoreError> {
        self.chore(move |connection| upkeep::forget_keys(connection, before)).await
    }

    async fn chore<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<R, StoreError> + Send + 'static,
    ) -> Result<R, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.queue.chore(Box::new(move |backend: &mut SqliteBackend| {
            let _ = reply.send(backend.upkeep(work));
        }))?;
        answer.await.unwrap_or(Err(StoreError::Closed))
    }

    /// What the writer has been doing.
    pub fn stats(&self) -> &WriterStats {
        &self.queue.stats
    }

    /// Whether callers are being turned away because too many wait for the writer.
    pub fn turns_away(&self) -> bool {
        self.queue.turns_away()
    }

    /// Requests waiting for the writer.
    pub fn queue_depth(&self) -> usize {
        self.queue.depth()
    }

    /// Waits until the writer has ended, be it of itself: then nothing more is decided, and the program must start anew.
    pub async fn ended(&self) {
        self.queue.ended().await;
    }

    /// Finishes what is queued and closes the database.
    pub fn close(&self) {
        self.queue.close();
        // The writer's connection should be the last.
        self.readers.lock().expect("nothing panics under the readers' lock").clear();
        let writer = self.writer.lock().expect("nothing panics under the writer's lock").take();
        if let Some(writer) = writer
            && writer.join().is_err()
        {
            tracing::error!("The writer ended in a panic");
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.close();
    }
}

/// Checks every invariant of the database in a folder, whether or not a program serves it.
pub fn audit_folder(folder: &Path, now: Timestamp) -> Result<Audit, InspectError> {
    let connection = open::existing_for_reading(&folder.join("onsale.db"))?;
    Ok(audit::run(&connection, now)?)
}

/// Copies the database in a folder into a new file, whether or not a program serves it.
pub fn backup_folder(folder: &Path, to: &Path) -> Result<(), InspectError> {
    let connection = open::existing_for_reading(&folder.join("onsale.db"))?;
    Ok(upkeep::backup(&connection, to)?)
}

#[cfg(test)]
mod tests;
