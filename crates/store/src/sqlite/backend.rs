//! One batch, one transaction: lock, load, decide, write, commit.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use onsale_core::command::{Command, Decision, Request, decide};
use onsale_core::event::PriceTable;
use onsale_core::id::EventNo;
use onsale_core::snapshot::{Bulk, Snapshot};
use onsale_core::time::Timestamp;
use rusqlite::hooks::Wal;
use rusqlite::{Connection, TransactionBehavior};

use crate::limits::{
    BATCH_TIME_MAX, CHECKPOINT_PAGES, CHECKPOINT_PAGES_FORCED, CHECKPOINT_REST_PAGES, CHECKPOINT_ROUNDS_MAX,
    RESTART_TIMEOUT, RESTART_TIMEOUT_FORCED,
};
use crate::writer::{Backend, BatchError, Committed};

use super::{apply, load};

/// Price tables never change once written, so they may be remembered.
pub(super) type PriceCache = BTreeMap<(EventNo, u32), PriceTable>;

/// The writer's side of the database.
pub(crate) struct SqliteBackend {
    connection: Connection,
    prices: PriceCache,
    /// Pages in the WAL after the last commit, as the engine tells its hook.
    wal_pages: Arc<AtomicU32>,
    /// Pages in the WAL at which it is to begin anew.
    pub(super) restart_at: u32,
    busy_timeout: Duration,
    checkpointer: Checkpointer,
}

impl SqliteBackend {
    pub(super) fn new(
        mut connection: Connection,
        checkpoints: Connection,
        busy_timeout: Duration,
    ) -> rusqlite::Result<SqliteBackend> {
        let wal_pages = Arc::new(AtomicU32::new(0));
        let noted = Arc::clone(&wal_pages);
        let note = move |_: &mut Wal, pages: c_int| {
            noted.store(pages.max(0) as u32, Ordering::Relaxed);
            Ok(())
        };
        connection.wal_hook(Some(note))?;
        let checkpointer = Checkpointer::start(checkpoints);
        let prices = PriceCache::new();
        let restart_at = CHECKPOINT_PAGES;
        Ok(SqliteBackend { connection, prices, wal_pages, restart_at, busy_timeout, checkpointer })
    }

    pub(super) fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Under load the checkpointer is never quite done. Once little is left, the writer stands still for that little and
    /// begins the WAL anew. A long look at the database forbids it; then it is tried again when the WAL has grown by as
    /// much as is worth the wait.
    fn restart_wal(&mut self, pages: u32) {
        let is_forced = pages >= CHECKPOINT_PAGES_FORCED;
        let (wait, grows) = match is_forced {
            true => (RESTART_TIMEOUT_FORCED, CHECKPOINT_PAGES_FORCED / 4),
            false => (RESTART_TIMEOUT, CHECKPOINT_PAGES),
        };
        match self.try_to_restart_wal(wait) {
            Ok(true) => {
                self.wal_pages.store(0, Ordering::Relaxed);
                self.restart_at = CHECKPOINT_PAGES;
            }
            Ok(false) => {
                self.restart_at = pages.saturating_add(grows);
                if is_forced {
                    tracing::warn!(wal.pages = pages, "Could not begin the WAL anew: someone reads for long");
                }
            }
            Err(error) => {
                self.restart_at = pages.saturating_add(grows);
                tracing::warn!(error = &error as &dyn std::error::Error, "Could not begin the WAL anew");
            }
        }
    }

    fn try_to_restart_wal(&self, wait: Duration) -> rusqlite::Result<bool> {
        self.connection.busy_timeout(wait)?;
        // The file keeps its length: to write over it is cheaper than to make it grow anew.
        let is_busy = self.connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| row.get(0));
        self.connection.busy_timeout(self.busy_timeout)?;
        is_busy.map(|is_busy: bool| !is_busy)
    }
}

impl Backend for SqliteBackend {
    fn commit_batch<'a>(
        &mut self,
        locked: impl FnOnce() -> (Vec<&'a Request>, Timestamp),
    ) -> Result<(Vec<Decision>, Committed), BatchError> {
        let immediate = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(immediate);
        let transaction = transaction.map_err(|error| BatchError::NotBegun(error.into()))?;
        let (requests, now) = locked();
        let begun = Instant::now();
        let mut snapshot = Snapshot::new([], now);
        let mut decisions = Vec::with_capacity(requests.len());
        for request in requests {
            // Seats laid out anew are written past the snapshot, which must then hold no seat, old or new.
            let is_alone = matches!(request.command, Command::ReplaceManifest { .. });
            if is_alone && !decisions.is_empty() {
                break;
            }
            snapshot.want_request(request);
            load::fill(&transaction, &mut self.prices, &mut snapshot).map_err(BatchError::NotDone)?;
            decisions.push(decide(&mut snapshot, request));
            if is_alone || begun.elapsed() > BATCH_TIME_MAX {
                break;
            }
        }
        if snapshot.is_unchanged() {
            // Nothing to keep: what was decided is true of what is stored.
            return Ok((decisions, Committed::default()));
        }
        apply::write(&transaction, &snapshot).map_err(BatchError::NotDone)?;
        let replaced = snapshot.bulk.iter().filter_map(|bulk| match bulk {
            Bulk::Manifest(event, ..) => Some(*event),
            Bulk::Prices(..) => None,
        });
        let committed = Committed { replaced: replaced.collect(), log: snapshot.log };
        // From here on a failure leaves it open whether the batch is durable.
        transaction.commit().map_err(|error| BatchError::Unknown(error.into()))?;
        Ok((decisions, committed))
    }

    fn tend(&mut self) {
        let pages = self.wal_pages.load(Ordering::Relaxed);
        if pages < self.restart_at {
            return;
        }
        if self.checkpointer.has_caught_up() || pages >= CHECKPOINT_PAGES_FORCED {
            self.restart_wal(pages);
        } else {
            self.checkpointer.wake();
        }
    }
}

/// The one owner of checkpoints: a thread that copies the WAL into the database while the writer goes on.
struct Checkpointer {
    wake: Option<std::sync::mpsc::SyncSender<()>>,
    caught_up: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Checkpointer {
    fn start(connection: Connection) -> Checkpointer {
        let (wake, woken) = std::sync::mpsc::sync_channel::<()>(1);
        let caught_up = Arc::new(AtomicBool::new(false));
        let tells = Arc::clone(&caught_up);
        let work = move || {
            while woken.recv().is_ok() {
                match catch_up(&connection) {
                    Ok(()) => tells.store(true, Ordering::Relaxed),
                    Err(error) => {
                        tracing::warn!(error = &error as &dyn std::error::Error, "Could not checkpoint");
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().name("checkpoints".to_owned()).spawn(work);
        if let Err(error) = &thread {
            tracing::error!(
                error = error as &dyn std::error::Error,
                "Could not start the checkpointer; the writer does it"
            );
        }
        Checkpointer { wake: Some(wake), caught_up, thread: thread.ok() }
    }

    fn wake(&self) {
        // A full channel means that it is awake already.
        let _ = self.wake.as_ref().map(|wake| wake.try_send(()));
    }

    /// Whether it has been through the WAL since this was last asked.
    fn has_caught_up(&self) -> bool {
        self.caught_up.swap(false, Ordering::Relaxed)
    }
}

/// Copies until little is left. What is written meanwhile is copied in the next round, which is the shorter for it.
fn catch_up(connection: &Connection) -> rusqlite::Result<()> {
    for _ in 0..CHECKPOINT_ROUNDS_MAX {
        let (pages, copied) = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
            Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
        })?;
        if pages - copied <= CHECKPOINT_REST_PAGES {
            break;
        }
    }
    Ok(())
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
