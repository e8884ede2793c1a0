//! One batch, one transaction: lock, load, decide, write, commit.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use onsale_core::command::{Decision, Request, decide};
use onsale_core::event::PriceTable;
use onsale_core::id::EventNo;
use onsale_core::snapshot::{Bulk, Snapshot};
use onsale_core::time::Timestamp;
use rusqlite::hooks::Wal;
use rusqlite::{Connection, TransactionBehavior};

use crate::limits::{BATCH_TIME_MAX, CHECKPOINT_PAGES, CHECKPOINT_PAGES_FORCED};
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
    checkpointer: Checkpointer,
}

impl SqliteBackend {
    pub(super) fn new(
        mut connection: Connection,
        checkpoints: Connection,
    ) -> rusqlite::Result<SqliteBackend> {
        let wal_pages = Arc::new(AtomicU32::new(0));
        let noted = Arc::clone(&wal_pages);
        let note = move |_: &mut Wal, pages: c_int| {
            noted.store(pages.max(0) as u32, Ordering::Relaxed);
            Ok(())
        };
        connection.wal_hook(Some(note))?;
        let checkpointer = Checkpointer::start(checkpoints);
        Ok(SqliteBackend { connection, prices: PriceCache::new(), wal_pages, checkpointer })
    }

    pub(super) fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }
}

impl Backend for SqliteBackend {
    fn commit_batch(
        &mut self,
        requests: &[&Request],
        now: Timestamp,
    ) -> Result<(Vec<Decision>, Committed), BatchError> {
        let not_done = |error: rusqlite::Error| BatchError::NotDone(error.into());
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(not_done)?;
        let begun = Instant::now();
        let mut snapshot = Snapshot::new([], now);
        let mut decisions = Vec::with_capacity(requests.len());
        for request in requests {
            snapshot.want_request(request);
            load::fill(&transaction, &mut self.prices, &mut snapshot).map_err(BatchError::NotDone)?;
            decisions.push(decide(&mut snapshot, request));
            if begun.elapsed() > BATCH_TIME_MAX {
                break;
            }
        }
        if snapshot.is_unchanged() {
            // Nothing to keep: what was decided is true of what is stored.
            return Ok((decisions, Committed::default()));
        }
        apply::write(&transaction, &snapshot).map_err(BatchError::NotDone)?;
        // From here on a failure leaves it open whether the batch is durable.
        transaction.commit().map_err(|error| BatchError::Unknown(error.into()))?;
        let replaced = snapshot.bulk.iter().filter_map(|bulk| match bulk {
            Bulk::Manifest(event, ..) => Some(*event),
            Bulk::Prices(..) => None,
        });
        let replaced = replaced.collect();
        Ok((decisions, Committed { log: snapshot.log, replaced }))
    }

    fn tend(&mut self) {
        let pages = self.wal_pages.load(Ordering::Relaxed);
        if pages >= CHECKPOINT_PAGES_FORCED {
            // Under load a passive checkpoint never catches up: stand still once and begin the WAL anew.
            if let Err(error) = self.connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)") {
                tracing::warn!(error = &error as &dyn std::error::Error, "Could not truncate the WAL");
            }
        } else if pages >= CHECKPOINT_PAGES {
            self.checkpointer.wake();
        }
    }
}

/// The one owner of checkpoints: a thread that copies the WAL into the database while the writer goes on.
struct Checkpointer {
    wake: Option<std::sync::mpsc::SyncSender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Checkpointer {
    fn start(connection: Connection) -> Checkpointer {
        let (wake, woken) = std::sync::mpsc::sync_channel::<()>(1);
        let work = move || {
            while woken.recv().is_ok() {
                if let Err(error) = connection.execute_batch("PRAGMA wal_checkpoint(PASSIVE)") {
                    tracing::warn!(error = &error as &dyn std::error::Error, "Could not checkpoint");
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
        Checkpointer { wake: Some(wake), thread: thread.ok() }
    }

    fn wake(&self) {
        // A full channel means that it is awake already.
        let _ = self.wake.as_ref().map(|wake| wake.try_send(()));
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
