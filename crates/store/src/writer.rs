//! The writer: one thread that takes requests from a bounded queue and commits them in groups. Requests that arrive
//! while a transaction runs join the next one. Nothing is answered before the commit.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use onsale_core::command::{Decision, Request};
use onsale_core::log::LogEntry;
use onsale_core::time::Timestamp;
use tokio::sync::{oneshot, watch};

use crate::error::{StoreError, SubmitError, chain};
use crate::fail_point;
use crate::limits::{BATCH_COMMANDS_MAX, CLOCKS_APART_MAX, QUEUE_MAX, QUEUE_WAIT_MAX};

/// Where the time of decisions comes from.
pub trait Clock: Send + Sync {
    /// The time now.
    fn now(&self) -> Timestamp;

    /// The time of a decision where the database has a clock of its own: the database's, so that all programs go by one clock.
    /// `None` when it is too far from this one, for then one of them is wrong.
    fn agreed(&self, database: Timestamp) -> Option<Timestamp> {
        let apart = database.since_ms(self.now()).unsigned_abs();
        (apart <= CLOCKS_APART_MAX.as_millis() as u64).then_some(database)
    }
}

/// What a committed batch changed, for those who follow.
#[derive(Debug, Default)]
pub struct Committed {
    /// Log entries, in order for each event.
    pub log: Vec<LogEntry>,
}

/// What the writer has been doing, for the metrics.
#[derive(Debug, Default)]
pub(crate) struct WriterStats {
    /// Batches committed.
    pub(crate) batches: AtomicU64,
    /// Commands decided.
    pub(crate) commands: AtomicU64,
    /// Commands refused because the queue was full.
    pub(crate) overloaded: AtomicU64,
    /// Commands dropped because their deadline passed in the queue.
    pub(crate) expired: AtomicU64,
    /// Batches that failed.
    pub(crate) failed: AtomicU64,
    /// Microseconds commands spent in the queue, in sum.
    pub(crate) queue_wait_us: AtomicU64,
    /// Microseconds spent in transactions, in sum.
    pub(crate) busy_us: AtomicU64,
}

/// Why a batch has no decisions.
pub(crate) enum BatchError {
    /// The lock could not be had: no command is at fault, and none was looked at.
    NotBegun(StoreError),
    /// It failed before the commit: nothing of it remains.
    NotDone(StoreError),
    /// The commit failed: it may or may not remain.
    Unknown(StoreError),
}

/// The requests that wait to be decided in one batch.
pub(crate) struct Waiting<'q> {
    jobs: Vec<Job>,
    stats: &'q WriterStats,
    clock: &'q dyn Clock,
}

impl<'q> Waiting<'q> {
    /// One request that waits for ever, for whoever has a backend without a writer.
    #[cfg(test)]
    pub(crate) fn alone(request: Request, stats: &'q WriterStats, clock: &'q dyn Clock) -> Waiting<'q> {
        let (reply, _) = oneshot::channel();
        let job = Job { request: Box::new(request), deadline: None, queued_at: Instant::now(), reply };
        Waiting { jobs: vec![job], stats, clock }
    }

    /// All of them. Until the lock is held some may still run out of time.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Request> {
        self.jobs.iter().map(|job| &*job.request)
    }

    /// The lock is held: those that are still in time. The lock may have been long in coming, and what waits for it waits in
    /// the queue.
    pub(crate) fn locked(&mut self) -> impl Iterator<Item = &Request> {
        self.drop_expired();
        self.all()
    }

    /// Where the time of decisions comes from.
    pub(crate) fn clock(&self) -> &dyn Clock {
        self.clock
    }

    /// When the last of their callers stops waiting; `None` when one of them waits for ever.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.jobs.iter().map(|job| job.deadline).max_by_key(|deadline| (deadline.is_none(), *deadline))?
    }

    /// Drops whoever has waited too long. A caller whose deadline has passed has been told "not done", or is gone: its
    /// command is never decided.
    fn drop_expired(&mut self) {
        let now = Instant::now();
        let is_over = |job: &mut Job| job.deadline.is_some_and(|deadline| deadline <= now);
        let over: Vec<Job> = self.jobs.extract_if(.., is_over).collect();
        self.stats.expired.fetch_add(over.len() as u64, Ordering::Relaxed);
        answer(over, &SubmitError::Expired);
    }
}

/// What came of a batch: an answer for each of the first requests that were in time, and what was committed.
pub(crate) type Done = (Vec<Result<Decision, SubmitError>>, Committed);

/// What a database must do for the writer.
pub(crate) trait Backend: Send + 'static {
    /// Takes the lock, has what waits decided in one transaction, and commits. Decides at least the first request; the others as
    /// far as time allows.
    fn commit_batch(&mut self, waiting: &mut Waiting<'_>) -> Result<Done, BatchError>;
    /// Upkeep between batches.
    fn tend(&mut self);
    /// Whether it may go on. When it may not, the writer ends.
    fn is_sound(&self) -> bool {
        true
    }
}

/// Upkeep that needs the writer's own connection.
pub(crate) type Chore<B> = Box<dyn FnOnce(&mut B) + Send>;

struct Job {
    request: Box<Request>,
    deadline: Option<Instant>,
    queued_at: Instant,
    reply: oneshot::Sender<Result<Decision, SubmitError>>,
}

struct Line<B> {
    jobs: VecDeque<Job>,
    chores: VecDeque<Chore<B>>,
    closed: bool,
}

/// The bounded queue before the writer.
pub(crate) struct Queue<B> {
    line: Mutex<Line<B>>,
    arrived: Condvar,
    ended: watch::Sender<bool>,
    /// Set by whoever is turned away, cleared when the writer makes room. It may be wrong for a moment.
    turns_away: AtomicBool,
    pub(crate) stats: WriterStats,
}

impl<B: Backend> Queue<B> {
    pub(crate) fn new() -> Arc<Queue<B>> {
        let line = Line { jobs: VecDeque::new(), chores: VecDeque::new(), closed: false };
        Arc::new(Queue {
            line: Mutex::new(line),
            arrived: Condvar::new(),
            ended: watch::Sender::new(false),
            turns_away: AtomicBool::new(false),
            stats: WriterStats::default(),
        })
    }

    /// Waits for the writer's end.
    pub(crate) async fn ended(&self) {
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }

    /// Queues a request; its answer comes through the channel.
    pub(crate) fn submit(
        &self,
        request: Request,
        deadline: Option<Instant>,
    ) -> Result<oneshot::Receiver<Result<Decision, SubmitError>>, SubmitError> {
        let (reply, answer) = oneshot::channel();
        let job = Job { request: Box::new(request), deadline, queued_at: Instant::now(), reply };
        let mut line = self.line.lock().expect("the queue's lock is never poisoned: nothing panics under it");
        if line.closed {
            return Err(SubmitError::Unavailable("the store is shutting down".to_owned()));
        }
        // A slow disk is known by how long the first has waited, whatever the queue's length. What a worker brings may
        // not be refused for that: it has no caller who could come again.
        let waits = |job: &Job| job.queued_at.elapsed() >= QUEUE_WAIT_MAX;
        let is_slow = deadline.is_some() && line.jobs.front().is_some_and(waits);
        if is_slow || line.jobs.len() >= QUEUE_MAX {
            self.turns_away.store(true, Ordering::Relaxed);
            drop(line);
            self.stats.overloaded.fetch_add(1, Ordering::Relaxed);
            return Err(SubmitError::Overloaded);
        }
        line.jobs.push_back(job);
        // The writer looks at the queue before it sleeps: only a first arrival can find it asleep.
        let first = line.jobs.len() == 1;
        drop(line);
        if first {
            self.arrived.notify_one();
        }
        Ok(answer)
    }

    /// Queues upkeep.
    pub(crate) fn chore(&self, chore: Chore<B>) -> Result<(), StoreError> {
        let mut line = self.line.lock().expect("the queue's lock is never poisoned: nothing panics under it");
        if line.closed {
            return Err(StoreError::Closed);
        }
        line.chores.push_back(chore);
        drop(line);
        self.arrived.notify_one();
        Ok(())
    }

    /// Lets the writer finish what is queued, and then end.
    pub(crate) fn close(&self) {
        self.line.lock().expect("the queue's lock is never poisoned: nothing panics under it").closed = true;
        self.arrived.notify_all();
    }

    /// Whether callers are being turned away: then whoever can may say so before any work is done for another.
    pub(crate) fn turns_away(&self) -> bool {
        self.turns_away.load(Ordering::Relaxed)
    }

    /// Requests waiting now.
    pub(crate) fn depth(&self) -> usize {
        self.line.lock().expect("the queue's lock is never poisoned: nothing panics under it").jobs.len()
    }

    fn take(&self, limit: usize) -> Option<(Vec<Job>, Vec<Chore<B>>)> {
        let mut line = self.line.lock().expect("the queue's lock is never poisoned: nothing panics under it");
        loop {
            if !line.jobs.is_empty() || !line.chores.is_empty() {
                let count = line.jobs.len().min(limit);
                self.turns_away.store(false, Ordering::Relaxed);
                return Some((line.jobs.drain(..count).collect(), line.chores.drain(..).collect()));
            }
            if line.closed {
                return None;
            }
            line =
                self.arrived.wait(line).expect("the queue's lock is never poisoned: nothing panics under it");
        }
    }

    fn put_back(&self, jobs: Vec<Job>) {
        let mut line = self.line.lock().expect("the queue's lock is never poisoned: nothing panics under it");
        jobs.into_iter().rev().for_each(|job| line.jobs.push_front(job));
    }

    /// Closes the queue and answers whoever still waits in it: there is no writer any more.
    fn abandon(&self) {
        self.close();
        let mut line = self.line.lock().expect("the queue's lock is never poisoned: nothing panics under it");
        let (jobs, chores) = (std::mem::take(&mut line.jobs), std::mem::take(&mut line.chores));
        drop(line);
        drop(chores);
        answer(jobs, &SubmitError::Unavailable("the writer has ended".to_owned()));
        self.ended.send_replace(true);
    }
}

/// However the writer's thread ends, nobody waits for it in vain.
struct Ending<'a, B: Backend>(&'a Queue<B>);

impl<B: Backend> Drop for Ending<'_, B> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// The writer's life: batch after batch until the queue is closed and empty.
pub(crate) fn run<B: Backend>(
    queue: &Queue<B>,
    mut backend: B,
    clock: &dyn Clock,
    publish: &dyn Fn(&Committed),
) {
    let _ending = Ending(queue);
    while let Some((jobs, chores)) = queue.take(BATCH_COMMANDS_MAX) {
        if !backend.is_sound() {
            tracing::error!(
                "A sync of the database has failed: nothing more is written until it is opened anew"
            );
            let why = "the disk has failed to keep the database: the program must be started anew";
            return answer(jobs, &SubmitError::Unavailable(why.to_owned()));
        }
        for chore in chores {
            let _ = guarded("upkeep", || chore(&mut backend));
        }
        if !jobs.is_empty() {
            run_jobs(queue, &mut backend, clock, publish, jobs);
        }
        let _ = guarded("upkeep", || backend.tend());
    }
}

/// Runs work whose panic must not take the writer down with it.
fn guarded<R>(what: &'static str, work: impl FnOnce() -> R) -> Result<R, StoreError> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().copied().map(str::to_owned);
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        tracing::error!(panic = text, "A panic in the writer: {what}");
        StoreError::Panicked(text)
    })
}

/// Decides jobs together, or one by one when together they fail: one command must not take the others down with it.
fn run_jobs<B: Backend>(
    queue: &Queue<B>,
    backend: &mut B,
    clock: &dyn Clock,
    publish: &dyn Fn(&Committed),
    mut jobs: Vec<Job>,
) {
    let Err(error) = run_batch(queue, backend, clock, publish, &mut jobs) else {
        return;
    };
    let told = error.told(jobs.len());
    if jobs.len() == 1 || !matches!(error, BatchError::NotDone(_)) {
        return answer(jobs, &told);
    }
    let mut rest = VecDeque::from(jobs);
    while let Some(job) = rest.pop_front() {
        let mut alone = vec![job];
        if let Err(error) = run_batch(queue, backend, clock, publish, &mut alone) {
            let told = error.told(1);
            answer(alone, &told);
            // Each would only wait for the lock anew, and in vain.
            if matches!(error, BatchError::NotBegun(_)) {
                return answer(rest, &told);
            }
        }
    }
}

/// Decides jobs in one transaction and answers them. When that fails, those that still wait are left in `jobs`.
fn run_batch<B: Backend>(
    queue: &Queue<B>,
    backend: &mut B,
    clock: &dyn Clock,
    publish: &dyn Fn(&Committed),
    jobs: &mut Vec<Job>,
) -> Result<(), BatchError> {
    let begun = Instant::now();
    fail_point!("batch.taken", return Err(BatchError::NotBegun(StoreError::Busy)));
    let mut waiting = Waiting { jobs: std::mem::take(jobs), stats: &queue.stats, clock };
    // A panic unwinds through the transaction, which undoes it.
    let result = guarded("deciding", || backend.commit_batch(&mut waiting));
    *jobs = waiting.jobs;
    queue.stats.busy_us.fetch_add(micros(begun.elapsed()), Ordering::Relaxed);
    let (decisions, committed) =
        result.unwrap_or_else(|error| Err(BatchError::NotDone(error))).inspect_err(|_| {
            queue.stats.failed.fetch_add(1, Ordering::Relaxed);
        })?;
    queue.stats.batches.fetch_add(1, Ordering::Relaxed);
    queue.stats.commands.fetch_add(decisions.len() as u64, Ordering::Relaxed);
    queue.put_back(jobs.split_off(decisions.len()));
    // Whoever is answered must find the change wherever it looks.
    let _ = guarded("publishing", || {
        fail_point!("publish.before", panic!("a fail point"));
        publish(&committed);
    });
    fail_point!("publish.after", return Err(BatchError::Unknown(StoreError::Busy)));
    for (job, decision) in jobs.drain(..).zip(decisions) {
        let waited = begun.saturating_duration_since(job.queued_at);
        queue.stats.queue_wait_us.fetch_add(micros(waited), Ordering::Relaxed);
        fail_point!("reply.before", continue);
        let _ = job.reply.send(decision);
    }
    Ok(())
}

fn answer(jobs: impl IntoIterator<Item = Job>, told: &SubmitError) {
    for job in jobs {
        let _ = job.reply.send(Err(told.clone()));
    }
}

impl BatchError {
    /// What the callers of so many commands are told; the log is told the whole of it.
    fn told(&self, commands: usize) -> SubmitError {
        match self {
            // Said once, where it was found out, and not again for each of a crowd.
            BatchError::NotBegun(error @ (StoreError::Away(_) | StoreError::Unusable(_))) => {
                tracing::debug!(error = chain(error), commands, "Could not begin a batch");
                SubmitError::Unavailable(chain(error))
            }
            BatchError::NotBegun(error) => {
                tracing::error!(error = chain(error), commands, "Could not begin a batch");
                SubmitError::Unavailable(chain(error))
            }
            BatchError::NotDone(error) => {
                tracing::error!(error = chain(error), commands, "Undid a batch");
                SubmitError::Unavailable(chain(error))
            }
            BatchError::Unknown(error) => {
                let why = "A commit failed: its outcome is unknown";
                tracing::error!(error = chain(error), commands, "{why}");
                SubmitError::Unknown(chain(error))
            }
        }
    }
}

fn micros(duration: Duration) -> u64 {
    duration.as_micros().min(u64::MAX as u128) as u64
}

#[cfg(test)]
mod tests;
