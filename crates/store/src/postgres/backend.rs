//! One batch, one transaction on a server: lock and load in one round trip, decide, write in another, commit. What may fail
//! between here and there is tried again as long as nothing of it can have been done; a commit without an answer is asked about.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use onsale_core::command::{Command, Request, decide};
use onsale_core::event::PriceTable;
use onsale_core::id::EventNo;
use onsale_core::snapshot::Snapshot;
use tokio_postgres::error::SqlState;
use uuid::Uuid;

use crate::boards::Boards;
use crate::error::{StoreError, SubmitError, chain};
use crate::fail_point;
use crate::limits::{COMMIT_PATIENCE, DOUBT_PATIENCE, STEP_PATIENCE, TRIES_MAX};
use crate::look::{Parsed, Value};
use crate::writer::{Backend, BatchError, Committed, Done, Waiting};

use super::link::PROOF;
use super::load::Unloaded;
use super::{Link, Server, apply, load};

/// Price tables never change once written, so they may be remembered.
pub(super) type PriceCache = BTreeMap<(EventNo, u32), PriceTable>;

/// What a writer's connection is set to. A client that has gone must not keep locks: its session ends when the server notices,
/// and when a transaction stands still; that is sooner than others lose their patience with the lock. Rows are found by their
/// keys; what the server may guess of a table's size changes nothing about that.
const SETTINGS: &str = "SET lock_timeout = '4s'; SET idle_in_transaction_session_timeout = '3s';
     SET client_connection_check_interval = '1s'; SET default_transaction_isolation = 'read committed';
     SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off; SET enable_seqscan = off;
     SET enable_bitmapscan = off; SET jit = off";

/// Tells the outcome of a batch for good: who comes first, this or the batch itself, has entered it, and the other waits for it
/// or comes too late. The row changes in any case, so that the commit that follows is one that waits for the standby.
const SETTLE: &str =
    "INSERT INTO batches (batch_id, applied, at) VALUES ($1, 0, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)
     ON CONFLICT (batch_id) DO UPDATE SET at = excluded.at RETURNING applied";

/// The writer's side of a home.
pub(crate) struct PostgresBackend {
    server: Arc<Server>,
    link: Option<Link>,
    prices: PriceCache,
    boards: Boards,
    /// A batch whose commit was not answered. Nothing else is begun before it is known what became of it: each try could
    /// leave another session behind that waits on the server.
    in_doubt: Option<Uuid>,
}

/// Why an attempt came to nothing.
enum Failed {
    /// Nothing of it was done, and no command is at fault.
    Outside(StoreError),
    /// Nothing of it was done.
    NotDone(StoreError),
    /// A row names an event whose lock was not taken.
    Late(EventNo),
    /// The commit was not answered, or with a warning. What it would have come to is known.
    InDoubt(Uuid, StoreError, Box<Done>),
}

impl PostgresBackend {
    pub(super) fn new(server: Arc<Server>) -> PostgresBackend {
        PostgresBackend {
            server,
            link: None,
            prices: PriceCache::new(),
            boards: Boards::default(),
            in_doubt: None,
        }
    }

    /// A connection that can be used; the one there is, or another. Whoever takes it puts it back when nothing is left under
    /// way on it; one that isn't put back is closed, and the server undoes what was begun.
    fn take_link(&mut self) -> Parsed<Link> {
        if let Some(link) = self.link.take().filter(Link::is_sound) {
            return Ok(link);
        }
        let link = self.server.connect(SETTINGS)?;
        // It may lead to another machine, which need not have all that the one before had.
        self.boards.clear();
        // A warning about the session's beginning is none about a commit.
        link.take_warning();
        Ok(link)
    }

    /// Finds out what became of a batch whose commit was not answered; whether it is done. Only a commit of one's own that the
    /// standby has too proves that what was seen stays.
    fn settle(&mut self) -> Parsed<bool> {
        let Some(batch) = self.in_doubt else {
            return Ok(true);
        };
        let link = self.take_link()?;
        link.be_patient(STEP_PATIENCE);
        link.batch("BEGIN")?;
        let found = link.query(SETTLE, &[Value::Bits(batch.as_u128())]);
        let applied = match found {
            Ok(rows) => rows.first().map(|row| row.get::<_, i16>(0) != 0).ok_or(StoreError::NoAnswer)?,
            Err(error) => {
                // The batch may still be under way, and then it was waited for in vain.
                if link.batch("ROLLBACK").is_ok() {
                    self.link = Some(link);
                }
                return Err(error);
            }
        };
        link.be_patient(COMMIT_PATIENCE);
        link.batch("COMMIT")?;
        if link.take_warning() {
            return Err(StoreError::NotReplicated);
        }
        tracing::info!(batch.id = %batch, batch.applied = applied, "A commit in doubt is settled");
        (self.in_doubt, self.link) = (None, Some(link));
        Ok(applied)
    }

    /// Asks about a batch in doubt until it is known, or until nobody waits any more.
    fn settle_by(&mut self, deadline: Instant) -> Parsed<bool> {
        let mut pause = Duration::from_millis(20);
        loop {
            match self.settle() {
                Ok(applied) => return Ok(applied),
                Err(error) if Instant::now() + pause >= deadline => return Err(error),
                Err(_) => std::thread::sleep(pause),
            }
            pause = (pause * 2).min(Duration::from_millis(250));
        }
    }

    /// One try of a batch. A panic in it closes the connection.
    fn attempt(&mut self, waiting: &mut Waiting<'_>, late: &BTreeSet<EventNo>) -> Result<Done, Failed> {
        let link = self.take_link().map_err(Failed::Outside)?;
        let done = decide_and_commit(&link, &mut self.prices, &mut self.boards, waiting, late);
        match &done {
            Ok(_) => {
                self.server.is_here();
                self.link = Some(link);
            }
            // The server may be long in finding out that nobody waits for the commit; a new connection asks.
            Err(Failed::InDoubt(batch, ..)) => self.in_doubt = Some(*batch),
            Err(_) => {
                if abandon(&link) {
                    self.link = Some(link);
                }
            }
        }
        done
    }
}

/// Undoes whatever a connection has begun; whether that was answered.
fn abandon(link: &Link) -> bool {
    let undone = link.is_sound() && link.batch("ROLLBACK").is_ok();
    link.take_warning();
    undone
}

impl Backend for PostgresBackend {
    fn commit_batch(&mut self, waiting: &mut Waiting<'_>) -> Result<Done, BatchError> {
        self.settle().map_err(BatchError::NotBegun)?;
        let (mut late, mut tries) = (BTreeSet::new(), 0);
        loop {
            tries += 1;
            let error = match self.attempt(waiting, &late) {
                Ok(done) => return Ok(done),
                Err(Failed::Late(no)) => {
                    late.insert(no);
                    if tries < TRIES_MAX {
                        continue;
                    }
                    return Err(BatchError::NotDone(StoreError::Busy));
                }
                Err(Failed::NotDone(error)) if !passes(&error) => return Err(BatchError::NotDone(error)),
                Err(Failed::NotDone(error) | Failed::Outside(error)) => error,
                Err(Failed::InDoubt(_, error, done)) => {
                    let why = "A commit was not answered: asking what became of it";
                    tracing::warn!(error = chain(&error), "{why}");
                    let longest = Instant::now() + DOUBT_PATIENCE;
                    let by = waiting.deadline().map_or(longest, |deadline| deadline.min(longest));
                    match self.settle_by(by) {
                        Ok(true) => return Ok(*done),
                        Ok(false) => error,
                        Err(_) => return Err(BatchError::Unknown(error)),
                    }
                }
            };
            let is_late = waiting.deadline().is_some_and(|deadline| Instant::now() >= deadline);
            if tries >= TRIES_MAX || is_late || !is_worth_another(&error) {
                return Err(BatchError::NotBegun(error));
            }
            tracing::debug!(error = chain(&error), tries, "A batch is tried again");
            // Those who were in each other's way should not be so again.
            std::thread::sleep(Duration::from_millis(rand::random_range(1..10u64 << tries)));
        }
    }

    fn tend(&mut self) {}
}

/// Whether an error has nothing to do with what was decided: another try may well succeed.
fn passes(error: &StoreError) -> bool {
    let StoreError::Postgres(error) = error else {
        return !matches!(error, StoreError::Mismatch { .. } | StoreError::Corrupt { .. } | StoreError::Busy);
    };
    let Some(code) = error.code() else {
        return true;
    };
    // Two events can't share a key, a callback or a name at the provider: who comes second finds the first's.
    let is_shared = *code == SqlState::UNIQUE_VIOLATION
        && error.as_db_error().and_then(|error| error.constraint()).is_some_and(|name| {
            matches!(
                name,
                "idempotency_keys_pkey" | "callbacks_pkey" | "operations_reference" | "batches_pkey"
            )
        });
    let class = &code.code()[..2];
    is_shared
        || matches!(class, "08" | "25" | "40" | "53" | "57" | "58" | "XX")
        || matches!(*code, SqlState::LOCK_NOT_AVAILABLE)
}

/// Whether the same may go better at once: not where the server is away, or has no room, or keeps a lock.
fn is_worth_another(error: &StoreError) -> bool {
    match error {
        StoreError::Postgres(error) => error.code().is_none_or(|code| {
            *code != SqlState::LOCK_NOT_AVAILABLE && !matches!(&code.code()[..2], "53" | "58" | "XX")
        }),
        StoreError::NoAnswer | StoreError::NotReplicated => true,
        _ => false,
    }
}

fn decide_and_commit(
    link: &Link,
    prices: &mut PriceCache,
    boards: &mut Boards,
    waiting: &mut Waiting<'_>,
    late: &BTreeSet<EventNo>,
) -> Result<Done, Failed> {
    link.be_patient(STEP_PATIENCE);
    let mut snapshot = Snapshot::default();
    let mut loaded = VecDeque::new();
    for request in together(waiting.all()) {
        snapshot.want_request(request);
        loaded.push_back(std::ptr::from_ref(request));
    }
    let clock = waiting.clock();
    let at = |database| {
        let apart_ms = onsale_core::time::Timestamp::since_ms(database, clock.now());
        clock.agreed(database).ok_or(StoreError::Clocks { apart_ms })
    };
    let elsewhere = match load::begin(link, prices, boards, &mut snapshot, late, at) {
        Ok(elsewhere) => elsewhere,
        Err(Unloaded::Late(no)) => return Err(Failed::Late(no)),
        Err(Unloaded::Failed(error)) => return Err(Failed::NotDone(error)),
    };
    fail_point!("transaction.begun", return Err(Failed::NotDone(StoreError::Busy)));
    let mut decisions = Vec::new();
    for request in waiting.locked() {
        // Some may have run out of time since; the others are still in the order in which they were loaded.
        while loaded.pop_front_if(|first| !std::ptr::eq(*first, request)).is_some() {}
        if loaded.pop_front().is_none() {
            break;
        }
        if elsewhere.contains(&request.command.event()) {
            decisions.push(Err(SubmitError::Elsewhere));
            continue;
        }
        decisions.push(Ok(decide(&mut snapshot, request)));
        fail_point!("command.decided", return Err(Failed::NotDone(StoreError::Busy)));
    }
    if snapshot.is_unchanged() {
        // Nothing to keep: what was decided is true of what is stored, if what is stored stays. A request that was answered
        // before may be answered from a row that no standby has.
        link.be_patient(COMMIT_PATIENCE);
        link.query(PROOF, &[]).and_then(|_| link.batch("COMMIT")).map_err(Failed::Outside)?;
        return match link.take_warning() {
            true => Err(Failed::Outside(StoreError::NotReplicated)),
            false => {
                boards.keep(&mut snapshot, &[]);
                Ok((decisions, Committed::default()))
            }
        };
    }
    let batch = Uuid::now_v7();
    apply::write(link, &snapshot, batch).map_err(Failed::NotDone)?;
    let done = Box::new((decisions, Committed { log: std::mem::take(&mut snapshot.log) }));
    fail_point!("commit.before", return Err(Failed::NotDone(StoreError::Busy)));
    link.be_patient(COMMIT_PATIENCE);
    // From here on a failure leaves it open whether the batch is durable.
    let committed = link.batch("COMMIT");
    fail_point!("commit.after", return Err(Failed::InDoubt(batch, StoreError::Busy, done)));
    match committed {
        Ok(()) if !link.take_warning() => {
            boards.keep(&mut snapshot, &done.1.log);
            Ok(*done)
        }
        Ok(()) => Err(Failed::InDoubt(batch, StoreError::NotReplicated, done)),
        Err(error) => Err(Failed::InDoubt(batch, error, done)),
    }
}

/// The first requests that can be decided in one go: seats laid out anew are written past the snapshot, which must then hold no
/// seat, old or new.
fn together<'a>(requests: impl Iterator<Item = &'a Request>) -> impl Iterator<Item = &'a Request> {
    let is_alone = |request: &Request| matches!(request.command, Command::ReplaceManifest { .. });
    let (mut count, mut is_full) = (0, false);
    requests.take_while(move |request| {
        let fits = count == 0 || (!is_full && !is_alone(request));
        count += 1;
        is_full |= is_alone(request);
        fits
    })
}
