//! One database with its writers and readers, of either kind: what the program asks of it, and what that is on each.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use onsale_core::command::{Decision, Request};
use onsale_core::id::{AccountId, EventNo, KeyId};
use onsale_core::time::Timestamp;
use tokio::sync::oneshot;

use crate::audit::{self, Audit, Scope};
use crate::erasure::{self, Erased, Erasure};
use crate::error::{InspectError, OpenError, StoreError, SubmitError};
use crate::fail_point;
use crate::keys::ApiKey;
use crate::limits::AUDIT_PATIENCE;
use crate::look::Look;
use crate::postgres::{self, Duty, HomeOptions, Link};
use crate::read::Reader;
use crate::settlement::{self, SettlementLine};
use crate::sqlite::{self, Options, SqliteBackend};
use crate::upkeep;
use crate::writer::{Committed, WriterStats};

/// A database, its writers and its readers.
pub struct Store {
    engine: Engine,
    writers: Mutex<Vec<JoinHandle<()>>>,
}

enum Engine {
    File(sqlite::File),
    Home(postgres::Home),
}

/// The writers' figures added up.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "the figures of [`WriterStats`]")]
pub struct WriterFigures {
    pub batches: u64,
    pub commands: u64,
    pub overloaded: u64,
    pub expired: u64,
    pub failed: u64,
    pub queue_wait_us: u64,
    pub busy_us: u64,
}

impl Store {
    /// Opens the database in a folder, making both if need be; takes over what a crash left. `publish` is called by a
    /// writer after each commit and before anyone is answered: it must be quick.
    pub fn open(
        options: Options,
        publish: impl Fn(&Committed) + Send + Sync + 'static,
    ) -> Result<Store, OpenError> {
        let (file, writer) = sqlite::File::open(options, Arc::new(publish))?;
        Ok(Store { engine: Engine::File(file), writers: Mutex::new(vec![writer]) })
    }

    /// Opens a home on a PostgreSQL server, making its schema if need be.
    pub fn connect(
        options: HomeOptions,
        publish: impl Fn(&Committed) + Send + Sync + 'static,
    ) -> Result<Store, OpenError> {
        let (home, writers) = postgres::Home::open(options, Arc::new(publish))?;
        Ok(Store { engine: Engine::Home(home), writers: Mutex::new(writers) })
    }

    /// The database's file, when it is one.
    pub fn path(&self) -> Option<&Path> {
        match &self.engine {
            Engine::File(file) => Some(file.path()),
            Engine::Home(_) => None,
        }
    }

    fn queue(
        &self,
        request: Request,
        deadline: Option<Instant>,
    ) -> Result<oneshot::Receiver<Result<Decision, SubmitError>>, SubmitError> {
        match &self.engine {
            Engine::File(file) => file.queue.submit(request, deadline),
            Engine::Home(home) => home.queue(request.command.event()).submit(request, deadline),
        }
    }

    /// Has a request decided. A deadline that passes while it queues drops it undecided; once it is being decided, it
    /// is finished whether or not anyone still waits.
    pub async fn submit(&self, request: Request, deadline: Option<Instant>) -> Result<Decision, SubmitError> {
        let answer = self.queue(request, deadline)?;
        fail_point!(async "queue.accepted", return Err(SubmitError::Unknown("a fail point".to_owned())));
        answer.await.unwrap_or_else(|_| Err(SubmitError::Unknown("the writer has ended".to_owned())))
    }

    /// [`submit`](Store::submit) for threads that may block.
    pub fn submit_blocking(&self, request: Request) -> Result<Decision, SubmitError> {
        let answer = self.queue(request, None)?;
        answer
            .blocking_recv()
            .unwrap_or_else(|_| Err(SubmitError::Unknown("the writer has ended".to_owned())))
    }

    /// Whether a look blocks for longer than a moment, so that it belongs on a thread that may: a server is asked over a
    /// connection, and may be away.
    pub fn looks_block(&self) -> bool {
        matches!(self.engine, Engine::Home(_))
    }

    /// Reads through a connection of its own. Blocks for the time of the reading: from async code only where that is a moment
    /// ([`looks_block`](Store::looks_block)), and then only for look-ups by key. May read twice, when a connection was found
    /// dead at the first try.
    pub fn read<R>(&self, work: impl Fn(&Reader<'_>) -> Result<R, StoreError>) -> Result<R, StoreError> {
        match &self.engine {
            Engine::File(file) => file.with_reader(|db| work(&Reader(Look::Sqlite(db)))),
            Engine::Home(home) => home.with_link(|link| work(&Reader(Look::Postgres(link)))),
        }
    }

    /// Checks every invariant on one state of the database.
    pub fn audit(&self, now: Timestamp) -> Result<Audit, StoreError> {
        match &self.engine {
            Engine::File(file) => file.audit(now),
            Engine::Home(home) => audit_server(&home.connect()?, now),
        }
    }

    /// What only one program at a time needs to do about this database: see [`Duty`]. On the file each has it.
    pub fn duty(&self) -> Duty {
        match &self.engine {
            Engine::File(_) => Duty::everyones(),
            Engine::Home(home) => home.duty(),
        }
    }

    /// Stores a new API key.
    pub async fn add_key(&self, key: ApiKey) -> Result<(), StoreError> {
        self.upkeep(move |db| upkeep::add_key(db, &key)).await
    }

    /// Revokes an API key; false when there is none.
    pub async fn revoke_key(&self, key: KeyId, now: Timestamp) -> Result<bool, StoreError> {
        self.upkeep(move |db| upkeep::revoke_key(db, key, now)).await
    }

    /// A secret of the installation, made of `fresh` when there is none yet.
    pub async fn secret(
        &self,
        name: &'static str,
        fresh: Vec<u8>,
        now: Timestamp,
    ) -> Result<Vec<u8>, StoreError> {
        self.upkeep(move |db| upkeep::secret(db, name, &fresh, now)).await
    }

    /// Forgets finished requests older than their time; how many.
    pub async fn forget_keys(&self, before: Timestamp) -> Result<usize, StoreError> {
        self.upkeep(move |db| upkeep::forget_keys(db, before)).await
    }

    /// Remembers that somebody was erased, unless it is remembered already; whether it is new.
    pub async fn remember_erasure(&self, erasure: Erasure) -> Result<bool, StoreError> {
        self.upkeep(move |db| erasure::remember(db, &erasure)).await
    }

    /// Puts a pseudonym in an account's place in the events at home here, and takes its addresses out, unless it has something
    /// under way.
    pub async fn erase(&self, account: AccountId, pseudonym: AccountId) -> Result<Erased, StoreError> {
        self.upkeep(move |db| erasure::erase(db, &account, &pseudonym)).await
    }

    /// Keeps entries of the provider's that aren't kept yet; how many.
    pub async fn keep_settlement_lines(&self, lines: Vec<SettlementLine>) -> Result<u64, StoreError> {
        self.upkeep(move |db| settlement::keep(db, &lines)).await
    }

    /// Keeps how far some upkeep has come, if that still stands where `was` says; whether it did.
    pub async fn keep_progress(
        &self,
        name: &'static str,
        was: Option<String>,
        value: String,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.upkeep(move |db| upkeep::keep_progress(db, name, was.as_deref(), &value, now)).await
    }

    /// Raises an event's epoch, so that whatever is remembered of before is visibly older; the new one, or `None` when the event
    /// isn't at home here.
    pub async fn fence(&self, event: EventNo) -> Result<Option<u64>, StoreError> {
        self.upkeep(move |db| upkeep::fence(db, event)).await
    }

    /// Enters the home of an event in this main home's directory. Blocks.
    pub(crate) fn enter_home(&self, event: EventNo, name: &str) -> Result<(), StoreError> {
        match &self.engine {
            Engine::File(_) => Ok(()),
            Engine::Home(home) => home.upkeep(|link| upkeep::enter_home(Look::Postgres(link), event, name)),
        }
    }

    /// Work that commits by itself: on the file with the writer's own connection, on a server with one of the pool's, in this
    /// thread.
    pub(crate) async fn upkeep<R: Send + 'static>(
        &self,
        work: impl Fn(Look<'_>) -> Result<R, StoreError> + Send + 'static,
    ) -> Result<R, StoreError> {
        let file = match &self.engine {
            Engine::File(file) => file,
            Engine::Home(home) => {
                return tokio::task::block_in_place(|| {
                    home.upkeep(|link| upkeep::at_home(Look::Postgres(link), || work(Look::Postgres(link))))
                });
            }
        };
        let (reply, answer) = oneshot::channel();
        file.queue.chore(Box::new(move |backend: &mut SqliteBackend| {
            let done = backend.upkeep(|db| upkeep::at_home(Look::Sqlite(db), || work(Look::Sqlite(db))));
            let _ = reply.send(done);
        }))?;
        answer.await.unwrap_or(Err(StoreError::Closed))
    }

    fn each_stats(&self) -> Vec<&WriterStats> {
        match &self.engine {
            Engine::File(file) => vec![&file.queue.stats],
            Engine::Home(home) => home.queues.iter().map(|queue| &queue.stats).collect(),
        }
    }

    /// What the writers have been doing.
    pub fn figures(&self) -> WriterFigures {
        let mut sum = WriterFigures::default();
        for stats in self.each_stats() {
            for (figure, counter) in [
                (&mut sum.batches, &stats.batches),
                (&mut sum.commands, &stats.commands),
                (&mut sum.overloaded, &stats.overloaded),
                (&mut sum.expired, &stats.expired),
                (&mut sum.failed, &stats.failed),
                (&mut sum.queue_wait_us, &stats.queue_wait_us),
                (&mut sum.busy_us, &stats.busy_us),
            ] {
                *figure += counter.load(Ordering::Relaxed);
            }
        }
        sum
    }

    /// Whether callers are being turned away because too many wait for the writer of an event; of any event, where it isn't
    /// known which.
    pub fn turns_away(&self, event: Option<EventNo>) -> bool {
        match (&self.engine, event) {
            (Engine::File(file), _) => file.queue.turns_away(),
            (Engine::Home(home), Some(no)) => home.queue(no).turns_away(),
            (Engine::Home(home), None) => home.queues.iter().all(|queue| queue.turns_away()),
        }
    }

    /// Requests waiting for the writers.
    pub fn queue_depth(&self) -> usize {
        match &self.engine {
            Engine::File(file) => file.queue.depth(),
            Engine::Home(home) => home.queues.iter().map(|queue| queue.depth()).sum(),
        }
    }

    /// Whether the database could not be reached when it was last tried.
    pub fn is_away(&self) -> bool {
        match &self.engine {
            Engine::File(_) => false,
            Engine::Home(home) => home.is_away(),
        }
    }

    /// Waits until a writer has ended, be it of itself: then nothing more is decided, and the program must start anew.
    pub async fn ended(&self) {
        match &self.engine {
            Engine::File(file) => file.queue.ended().await,
            // They end when they are told to, and all together.
            Engine::Home(home) => home.queues[0].ended().await,
        }
    }

    /// Finishes what is queued and closes the database.
    pub fn close(&self) {
        match &self.engine {
            Engine::File(file) => file.close(),
            Engine::Home(home) => home.close(),
        }
        let writers =
            std::mem::take(&mut *self.writers.lock().expect("nothing panics under the writers' lock"));
        for writer in writers {
            if writer.join().is_err() {
                tracing::error!("The writer ended in a panic");
            }
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.close();
    }
}

/// Checks every invariant of the database at an address, whether or not programs serve it.
pub fn audit_url(home: &str, url: &str, now: Timestamp) -> Result<Audit, InspectError> {
    Ok(audit_server(&postgres::existing(home, url)?, now)?)
}

/// Checks every invariant over a connection of its own. The checks join whole tables: the server is told how large they are by
/// now, or it would choose ways that take time with the square of a sale that has just begun.
fn audit_server(link: &Link, now: Timestamp) -> Result<Audit, StoreError> {
    link.be_patient(AUDIT_PATIENCE);
    link.batch("SET statement_timeout = 0; SET jit = off; SET work_mem = '64MB'")?;
    link.batch("ANALYZE")?;
    audit::run(Look::Postgres(link), now, Scope::AtHome)
}
