//! One batch, one transaction: lock, load, decide, write, commit.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_int;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use onsale_core::command::{Command, decide};
use onsale_core::event::PriceTable;
use onsale_core::id::EventNo;
use onsale_core::snapshot::Snapshot;
use rusqlite::config::DbConfig;
use rusqlite::hooks::Wal;
use rusqlite::{Connection, TransactionBehavior};

use crate::boards::Boards;
use crate::error::{StoreError, SubmitError, chain};
use crate::fail_point;
use crate::limits::{BATCH_TIME_MAX, RESTART_TIMEOUT, RESTART_TIMEOUT_FORCED};
use crate::look::Look;
use crate::writer::{Backend, BatchError, Committed, Done, Waiting};

use super::checkpoints::{Checkpointer, Soundness};
use super::{Ground, apply, load};

/// Price tables never change once written, so they may be remembered.
pub(super) type PriceCache = BTreeMap<(EventNo, u32), PriceTable>;

/// The writer's side of the database.
pub(crate) struct SqliteBackend {
    pub(super) connection: Connection,
    prices: PriceCache,
    boards: Boards,
    /// Pages in the WAL after the last commit, as the engine tells its hook.
    wal_pages: Arc<AtomicU32>,
    /// Pages in the WAL at which it is to begin anew.
    pub(super) restart_at: u32,
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
        let restart_at = ground.checkpoint_pages;
        Ok(SqliteBackend {
            connection,
            prices,
            boards: Boards::default(),
            wal_pages,
            restart_at,
            busy_timeout,
            ground,
            in_doubt: false,
            soundness,
            checkpointer,
        })
    }

    /// Work that commits by itself.
    pub(crate) fn upkeep<R>(
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

    /// Under load the checkpointer is never quite done. Once little is left, the writer stands still for that little and
    /// begins the WAL anew. A long look at the database forbids it; then it is tried again when the WAL has grown by as
    /// much as is worth the wait.
    fn restart_wal(&mut self, pages: u32) {
        let is_forced = pages >= self.ground.checkpoint_pages_forced;
        let (wait, grows) = match is_forced {
            true => (RESTART_TIMEOUT_FORCED, self.ground.checkpoint_pages_forced / 4),
            false => (RESTART_TIMEOUT, self.ground.checkpoint_pages),
        };
        fail_point!("restart.before", return);
        // The file keeps its length: to write over it is cheaper than to make it grow anew.
        let restarted = self.checkpoint("PRAGMA wal_checkpoint(RESTART)", wait);
        fail_point!("restart.after", return);
        match restarted {
            Some(true) => {
                self.wal_pages.store(0, Ordering::Relaxed);
                self.restart_at = self.ground.checkpoint_pages;
            }
            Some(false) => {
                self.restart_at = pages.saturating_add(grows);
                if is_forced {
                    tracing::warn!(wal.pages = pages, "Could not begin the WAL anew: someone reads for long");
                }
            }
            None => self.restart_at = pages.saturating_add(grows),
        }
    }

    /// Copies the whole WAL into the database; false when readers didn't let it, `None` when it can't be done.
    fn checkpoint(&self, text: &str, wait: Duration) -> Option<bool> {
        self.soundness.attempt(|| {
            self.connection.busy_timeout(wait)?;
            let is_busy = self.connection.query_row(text, [], |row| row.get(0));
            self.connection.busy_timeout(self.busy_timeout)?;
            is_busy.map(|is_busy: bool| !is_busy)
        })
    }
}

impl Backend for SqliteBackend {
    fn commit_batch(&mut self, waiting: &mut Waiting<'_>) -> Result<Done, BatchError> {
        self.settle().map_err(|error| BatchError::NotBegun(error.into()))?;
        let done = self.decide_and_commit(waiting);
        self.in_doubt = matches!(done, Err(BatchError::Unknown(_)));
        done
    }

    fn tend(&mut self) {
        let pages = self.wal_pages.load(Ordering::Relaxed);
        if pages < self.restart_at {
            return;
        }
        let caught_up = self.checkpointer.as_ref().is_none_or(Checkpointer::has_caught_up);
        if caught_up || pages >= self.ground.checkpoint_pages_forced {
            self.restart_wal(pages);
        } else if let Some(checkpointer) = &self.checkpointer {
            checkpointer.wake();
        }
    }

    fn is_sound(&self) -> bool {
        self.soundness.is_sound()
    }
}

impl SqliteBackend {
    fn decide_and_commit(&mut self, waiting: &mut Waiting<'_>) -> Result<Done, BatchError> {
        let immediate = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(immediate);
        let transaction = transaction.map_err(|error| BatchError::NotBegun(error.into()))?;
        fail_point!("transaction.begun", return Err(BatchError::NotDone(crate::StoreError::Busy)));
        let now = waiting.clock().now();
        let begun = Instant::now();
        let mut snapshot = Snapshot::new([], now);
        let mut elsewhere = BTreeSet::new();
        let mut decisions = Vec::new();
        for request in waiting.locked() {
            // Seats laid out anew are written past the snapshot, which must then hold no seat, old or new.
            let is_alone = matches!(request.command, Command::ReplaceManifest { .. });
            if is_alone && !decisions.is_empty() {
                break;
            }
            snapshot.want_request(request);
            let look = Look::Sqlite(&transaction);
            load::fill(look, &mut self.prices, &mut self.boards, &mut snapshot, &mut elsewhere)
                .map_err(BatchError::NotDone)?;
            fail_point!("rows.read", return Err(BatchError::NotDone(crate::StoreError::Busy)));
            if elsewhere.contains(&request.command.event()) {
                decisions.push(Err(SubmitError::Elsewhere));
                continue;
            }
            decisions.push(Ok(decide(&mut snapshot, request)));
            fail_point!("command.decided", return Err(BatchError::NotDone(crate::StoreError::Busy)));
            if is_alone || begun.elapsed() > BATCH_TIME_MAX {
                break;
            }
        }
        if snapshot.is_unchanged() {
            // Nothing to keep: what was decided is true of what is stored.
            self.boards.keep(&mut snapshot, &[]);
            return Ok((decisions, Committed::default()));
        }
        apply::write(&transaction, &snapshot).map_err(BatchError::NotDone)?;
        let committed = Committed { log: std::mem::take(&mut snapshot.log) };
        fail_point!("commit.before", return Err(BatchError::NotDone(crate::StoreError::Busy)));
        // From here on a failure leaves it open whether the batch is durable.
        transaction.commit().map_err(|error| BatchError::Unknown(error.into()))?;
        fail_point!("commit.after", return Err(BatchError::Unknown(crate::StoreError::Busy)));
        self.boards.keep(&mut snapshot, &committed.log);
        Ok((decisions, committed))
    }
}

impl Drop for SqliteBackend {
    fn drop(&mut self) {
        self.checkpointer = None;
        // The next opening copies what lies in the WAL. A commit that failed may lie there for the system alone and not for
        // the disk, and a power cut in the midst of the copying would leave the half of it.
        if let Err(error) = self.settle() {
            tracing::warn!(error = chain(&error), "Could not undo a failed commit for good");
        }
        if !self.is_sound() {
            return;
        }
        // Others may have the database open still, and leave the WAL as it is when they close. What fails is told there.
        let _ = self.checkpoint("PRAGMA wal_checkpoint(TRUNCATE)", RESTART_TIMEOUT_FORCED);
        if self.is_sound() {
            let _ = self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false);
        }
    }
}
