//! Checkpoints: who copies the WAL into the database, and what a copy that failed means.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::{Connection, Row, ffi};

use crate::error::chain;
use crate::fail_point;
use crate::limits::{CHECKPOINT_REST_PAGES, CHECKPOINT_ROUNDS_MAX};

use super::open;

/// Whether every checkpoint's sync has succeeded. When one has failed, this process can't go on. The system holds the pages
/// for written, and will not write them again. Nor will the engine write them all: a checkpoint that didn't reach the end of
/// the WAL has synced nothing, but its pages count as copied, and the next one passes them over, succeeds, and begins the WAL
/// anew. That would be the end of them. As long as the WAL is left as it is, nothing is lost: when all have closed the
/// database, whoever opens it next copies the whole WAL again. A file beside it tells the next start to see to that.
///
/// So checkpoints of this process take turns, and none begins after one that failed.
pub(super) struct Soundness {
    turn: Mutex<()>,
    has_failed: AtomicBool,
    mark: Option<PathBuf>,
}

impl Soundness {
    pub(super) fn new(path: Option<&Path>) -> Soundness {
        Soundness {
            turn: Mutex::new(()),
            has_failed: AtomicBool::new(false),
            mark: path.map(open::unsynced_mark),
        }
    }

    pub(super) fn is_sound(&self) -> bool {
        !self.has_failed.load(Ordering::SeqCst)
    }

    /// Runs a checkpoint when no other runs, unless one has failed for good; `None` then, or when this one fails. Why it
    /// failed is known before the next may begin.
    pub(super) fn attempt<R>(&self, checkpoint: impl FnOnce() -> rusqlite::Result<R>) -> Option<R> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_sound() {
            return None;
        }
        checkpoint()
            .inspect_err(|error| {
                self.note(error);
                tracing::warn!(error = chain(error), "Could not checkpoint");
            })
            .ok()
    }

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
pub(super) struct Checkpointer {
    wake: Option<SyncSender<()>>,
    caught_up: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    pub(super) fn start(connection: Connection, soundness: Arc<Soundness>) -> Checkpointer {
        let (wake, woken) = sync_channel::<()>(1);
        let caught_up = Arc::new(AtomicBool::new(false));
        let tells = Arc::clone(&caught_up);
        let work = move || {
            while woken.recv().is_ok() && soundness.is_sound() {
                fail_point!("checkpoint.before", continue);
                let caught_up = soundness.attempt(|| catch_up(&connection));
                fail_point!("checkpoint.after", continue);
                if caught_up.is_some() {
                    tells.store(true, Ordering::Relaxed);
                }
            }
        };
        let thread = std::thread::Builder::new().name("checkpoints".to_owned()).spawn(work);
        if let Err(error) = &thread {
            tracing::error!(error = chain(error), "Could not start the checkpointer; the writer does it");
        }
        Checkpointer { wake: Some(wake), caught_up, thread: thread.ok() }
    }

    pub(super) fn wake(&self) {
        // A full channel means that it is awake already.
        let _ = self.wake.as_ref().map(|wake| wake.try_send(()));
    }

    /// Whether it has been through the WAL since this was last asked.
    pub(super) fn has_caught_up(&self) -> bool {
        self.caught_up.swap(false, Ordering::Relaxed)
    }
}

/// Copies until little is left. What is written meanwhile is copied in the next round, which is the shorter for it.
fn catch_up(connection: &Connection) -> rusqlite::Result<()> {
    for _ in 0..CHECKPOINT_ROUNDS_MAX {
        let counts = |row: &Row<'_>| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
        let (pages, copied) = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], counts)?;
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
