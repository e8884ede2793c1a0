//! One batch, one transaction: lock, load, decide, write, commit.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use onsale_core::command::{Command, Decision, Request, decide};
use onsale_core::event::PriceTable;
use onsale_core::id::EventNo;
use onsale_core::snapshot::{Bulk, Snapshot};
use onsale_core::time::Timestamp;
use rusqlite::config::DbConfig;
use rusqlite::hooks::Wal;
use rusqlite::{Connection, TransactionBehavior, ffi};

use crate::error::StoreError;
use crate::limits::{BATCH_TIME_MAX, TRUNCATE_TIMEOUT};
use crate::writer::{Backend, BatchError, Committed};

use super::{Ground, apply, load, open};

/// Price tables never change once written, so they may be remembered.
pub(super) type PriceCache = BTreeMap<(EventNo, u32), PriceTable>;

/// The writer's side of the database.
pub(crate) struct SqliteBackend {
    pub(super) connection: Connection,
    prices: PriceCache,
    /// Pages in the WAL after the last commit, as the engine tells its hook.
    wal_pages: Arc<AtomicU32>,
    /// Pages in the WAL at which the writer itself sees to it.
    pub(super) truncate_at: u32,
    busy_timeout: Duration,
    ground: Ground,
    /// Whether a commit has failed since the last that hasn't. Nobody sees it, but it may lie in the WAL, where whoever opens
    /// the database next would find it done.
    in_doubt: bool,
    soundness: Arc<Soundness>,
    checkpointer: Option<Checkpointer>,
}

impl SqliteBackend {
    pub(super) fn new(
        mut connection: Connection,
        checkpoints: Connection,
        busy_timeout: Duration,
        ground: Ground,
    ) -> rusqlite::Result<SqliteBackend> {
        let wal_pages = Arc::new(AtomicU32::new(0));
        let noted = Arc::clone(&wal_pages);
        let note = move |_: &mut Wal, pages: c_int| {
            noted.store(pages.max(0) as u32, Ordering::Relaxed);
            Ok(())
        };
        connection.wal_hook(Some(note))?;
        let soundness = Arc::new(Soundness::new(connection.path().map(Path::new)));
        let checkpointer = Some(Checkpointer::start(checkpoints, Arc::clone(&soundness)));
        let prices = PriceCache::new();
        let truncate_at = ground.checkpoint_pages_forced;
        Ok(SqliteBackend {
            connection,
            prices,
            wal_pages,
            truncate_at,
            busy_timeout,
            ground,
            in_doubt: false,
            soundness,
            checkpointer,
        })
    }

    /// Work that commits by itself.
    pub(super) fn upkeep<R>(
        &mut self,
        work: impl FnOnce(&mut Connection) -> Result<R, StoreError>,
    ) -> Result<R, StoreError> {
        self.settle()?;
        let done = work(&mut self.connection);
        // What failed may have been the commit.
        self.in_doubt = done.is_err();
        done
    }

    /// Makes sure that a commit that failed is not done. It may lie in the WAL, whole and unsynced: a crash could still bring
    /// it back, and then it must not have been told otherwise to anyone. Something is committed over it that changes
    /// nothing: its pages take the place of the others, and what is left of these doesn't follow from them.
    fn settle(&mut self) -> rusqlite::Result<()> {
        if self.in_doubt {
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
            transaction.pragma_update(None, "user_version", version)?;
            transaction.commit()?;
            self.in_doubt = false;
        }
        Ok(())
    }

    /// Under load a passive checkpoint never catches up: stands still once and begins the WAL anew. A long look at the
    /// database forbids that; it is tried again when the WAL has grown by as much as is worth the wait.
    fn truncate_wal(&mut self, pages: u32) {
        match self.try_to_truncate_wal() {
            Ok(true) => {
                self.wal_pages.store(0, Ordering::Relaxed);
                self.truncate_at = self.ground.checkpoint_pages_forced;
            }
            Ok(false) => {
                self.truncate_at = pages.saturating_add(self.ground.checkpoint_pages);
                tracing::warn!(wal.pages = pages, "Could not truncate the WAL: someone reads for long");
            }
            Err(error) => {
                self.soundness.note(&error);
                self.truncate_at = pages.saturating_add(self.ground.checkpoint_pages);
                tracing::warn!(error = &error as &dyn std::error::Error, "Could not truncate the WAL");
            }
        }
    }

    fn try_to_truncate_wal(&self) -> rusqlite::Result<bool> {
        self.connection.busy_timeout(TRUNCATE_TIMEOUT)?;
        let is_busy = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
        self.connection.busy_timeout(self.busy_timeout)?;
        is_busy.map(|is_busy: bool| !is_busy)
    }
}

impl Backend for SqliteBackend {
    fn commit_batch<'a>(
        &mut self,
        locked: impl FnOnce() -> (Vec<&'a Request>, Timestamp),
    ) -> Result<(Vec<Decision>, Committed), BatchError> {
        self.settle().map_err(|error| BatchError::NotBegun(error.into()))?;
        let done = self.decide_and_commit(locked);
        self.in_doubt = matches!(done, Err(BatchError::Unknown(_)));
        done
    }

    fn tend(&mut self) {
        let pages = self.wal_pages.load(Ordering::Relaxed);
        if pages >= self.truncate_at {
            self.truncate_wal(pages);
        } else if pages >= self.ground.checkpoint_pages
            && let Some(checkpointer) = &self.checkpointer
        {
            checkpointer.wake();
        }
    }

    fn is_sound(&self) -> bool {
        self.soundness.is_sound()
    }
}

impl SqliteBackend {
    fn decide_and_commit<'a>(
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
}

impl Drop for SqliteBackend {
    fn drop(&mut self) {
        self.checkpointer = None;
        if !self.is_sound() {
            return;
        }
        // Others may have the database open still, and leave the WAL as it is when they close.
        match self.try_to_truncate_wal() {
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "Could not truncate the WAL");
                self.soundness.note(&error);
            }
        }
        if self.is_sound() {
            let _ = self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false);
        }
    }
}

/// Whether every checkpoint's sync has succeeded. When one has failed, this process can't go on. The system holds the pages
/// for written, and will not write them again. Nor will the engine write them all: a checkpoint that didn't reach the end of
/// the WAL has synced nothing, but its pages count as copied, and the next one passes them over, succeeds, and begins the WAL
/// anew. That would be the end of them. As long as the WAL is left as it is, nothing is lost: when all have closed the
/// database, whoever opens it next copies the whole WAL again. A file beside it tells the next start to see to that.
struct Soundness {
    has_failed: AtomicBool,
    mark: Option<PathBuf>,
}

impl Soundness {
    fn new(path: Option<&Path>) -> Soundness {
        Soundness { has_failed: AtomicBool::new(false), mark: path.map(open::unsynced_mark) }
    }

    fn is_sound(&self) -> bool {
        !self.has_failed.load(Ordering::SeqCst)
    }

    /// Notes why a checkpoint has failed.
    fn note(&self, error: &rusqlite::Error) {
        let code = error.sqlite_error().map(|error| error.extended_code);
        if matches!(code, Some(ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC)) {
            self.has_failed.store(true, Ordering::SeqCst);
            // On a disk that fails this may fail too. Then it must do that all close the database.
            let _ = self.mark.as_ref().map(|mark| open::make_private(mark));
        }
    }
}

/// The one owner of checkpoints: a thread that copies the WAL into the database while the writer goes on.
struct Checkpointer {
    wake: Option<std::sync::mpsc::SyncSender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Checkpointer {
    fn start(connection: Connection, soundness: Arc<Soundness>) -> Checkpointer {
        let (wake, woken) = std::sync::mpsc::sync_channel::<()>(1);
        let work = move || {
            while woken.recv().is_ok() {
                if !soundness.is_sound() {
                    return;
                }
                if let Err(error) = connection.execute_batch("PRAGMA wal_checkpoint(PASSIVE)") {
                    soundness.note(&error);
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
