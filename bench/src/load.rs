//! Load on one thread: closed (each connection asks again as soon as it is answered) and open (requests are due at a
//! rate, whether or not the server keeps up; a late one's time counts from when it was due).

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::task::{JoinSet, LocalSet};

use crate::client::{Answer, Connection};

/// Longest time that is told apart, in microseconds.
const MICROS_MAX: u64 = 120_000_000;
/// Before it counts, a load that lasts for a time runs for this part of it.
pub(crate) const WARM_UP_PART: u32 = 8;
/// A load that ends by itself lasts no longer.
const LASTS_MAX: Duration = Duration::from_secs(120);

/// What a load measured.
pub(crate) struct Measured {
    pub(crate) elapsed: Duration,
    /// Times from when a request was due to its answer.
    by_status: BTreeMap<u16, Histogram<u64>>,
    /// Times from when it was sent: later than it was due, where the load itself could not keep up.
    from_sent: BTreeMap<u16, Histogram<u64>>,
    /// Refusals (503, 429) that didn't say when to come again.
    pub(crate) without_retry_after: u64,
    /// Connections that broke.
    pub(crate) broken: u64,
    /// In an open load: requests that were due and never sent, because every connection still waited.
    pub(crate) unsent: u64,
}

impl Measured {
    fn new() -> Measured {
        let (by_status, from_sent) = (BTreeMap::new(), BTreeMap::new());
        let elapsed = Duration::ZERO;
        Measured { elapsed, by_status, from_sent, without_retry_after: 0, broken: 0, unsent: 0 }
    }

    fn note(&mut self, answer: &Answer<'_>, took: Duration, took_from_sent: Duration) {
        let new = || Histogram::new_with_bounds(1, MICROS_MAX, 3).expect("the bounds are constants");
        for (times, took) in [(&mut self.by_status, took), (&mut self.from_sent, took_from_sent)] {
            let micros = (took.as_micros() as u64).clamp(1, MICROS_MAX);
            times.entry(answer.status).or_insert_with(new).saturating_record(micros);
        }
        if matches!(answer.status, 429 | 503) && !answer.has_retry_after {
            self.without_retry_after += 1;
        }
    }

    /// Answers with a status.
    pub(crate) fn count(&self, status: u16) -> u64 {
        self.by_status.get(&status).map_or(0, Histogram::len)
    }

    /// Answers.
    pub(crate) fn answers(&self) -> u64 {
        self.by_status.values().map(Histogram::len).sum()
    }

    pub(crate) fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.elapsed.as_secs_f64()
    }

    /// Milliseconds within which a part of the answers came; of all, or of one status.
    pub(crate) fn ms(&self, status: Option<u16>, quantile: f64) -> f64 {
        let mut all = Histogram::<u64>::new_with_bounds(1, MICROS_MAX, 3).expect("the bounds are constants");
        for (of, histogram) in &self.by_status {
            if status.is_none_or(|status| status == *of) {
                all.add(histogram).expect("all have the same bounds");
            }
        }
        all.value_at_quantile(quantile) as f64 / 1_000.0
    }

    /// Milliseconds from the sending within which a part of the answers with a status came.
    pub(crate) fn ms_from_sent(&self, status: u16, quantile: f64) -> f64 {
        self.from_sent.get(&status).map_or(0, |times| times.value_at_quantile(quantile)) as f64 / 1_000.0
    }

    /// Every status with its count.
    pub(crate) fn statuses(&self) -> String {
        let texts = self.by_status.iter().map(|(status, histogram)| format!("{status}: {}", histogram.len()));
        texts.collect::<Vec<_>>().join(", ")
    }
}

/// Writes the next request of a connection, given the answer to its last; false when there is none.
pub(crate) trait Asker: FnMut(usize, Option<Answer<'_>>, &mut Vec<u8>) -> bool + 'static {}
impl<F: FnMut(usize, Option<Answer<'_>>, &mut Vec<u8>) -> bool + 'static> Asker for F {}

/// A closed load for a time, or until nothing is left to ask. What comes while it warms up doesn't count.
pub(crate) async fn closed(
    server: SocketAddr,
    connections: usize,
    lasts: Duration,
    asker: impl Asker,
) -> anyhow::Result<Measured> {
    run_closed(server, connections, lasts / WARM_UP_PART, lasts, asker).await
}

/// A closed load until nothing is left to ask. All of it counts.
pub(crate) async fn all(
    server: SocketAddr,
    connections: usize,
    asker: impl Asker,
) -> anyhow::Result<Measured> {
    run_closed(server, connections, Duration::ZERO, LASTS_MAX, asker).await
}

async fn run_closed(
    server: SocketAddr,
    connections: usize,
    warm_up: Duration,
    lasts: Duration,
    asker: impl Asker,
) -> anyhow::Result<Measured> {
    let begun = Instant::now();
    let counts_from = begun + warm_up;
    let ends = counts_from + lasts;
    let last = Rc::new(Cell::new(begun));
    let measured = Rc::new(RefCell::new(Measured::new()));
    let asker = Rc::new(RefCell::new(asker));
    let set = LocalSet::new();
    let mut callers = JoinSet::new();
    for index in 0..connections {
        let (measured, asker, last) = (Rc::clone(&measured), Rc::clone(&asker), Rc::clone(&last));
        let caller = async move {
            let mut connection = Connection::open(server).await?;
            let mut request = Vec::with_capacity(512);
            let mut more = asker.borrow_mut()(index, None, &mut request);
            while more {
                let asked = Instant::now();
                let answer = connection.ask(&request).await?;
                let now = Instant::now();
                if asked >= counts_from {
                    measured.borrow_mut().note(&answer, now - asked, now - asked);
                    last.set(now);
                }
                if now >= ends {
                    break;
                }
                more = asker.borrow_mut()(index, Some(answer), &mut request);
            }
            anyhow::Ok(())
        };
        callers.spawn_local_on(caller, &set);
    }
    set.run_until(finish(&mut callers)).await?;
    let mut measured = std::mem::replace(&mut *measured.borrow_mut(), Measured::new());
    measured.elapsed = last.get().saturating_duration_since(counts_from);
    Ok(measured)
}

/// An open load: `rate` requests are due each second, whatever becomes of those before. A connection that breaks is
/// counted and replaced.
pub(crate) async fn open(
    server: SocketAddr,
    connections: usize,
    rate: f64,
    lasts: Duration,
    asker: impl Asker,
) -> anyhow::Result<Measured> {
    // The crowd is there before it asks: to let it in is not what is measured.
    let mut crowd = Vec::with_capacity(connections);
    for _ in 0..connections {
        crowd.push(Connection::open(server).await?);
    }
    let begun = Instant::now();
    let due_count = (rate * lasts.as_secs_f64()) as u64;
    let next = Rc::new(Cell::new(0_u64));
    let measured = Rc::new(RefCell::new(Measured::new()));
    let asker = Rc::new(RefCell::new(asker));
    let set = LocalSet::new();
    let mut callers = JoinSet::new();
    for (index, connection) in crowd.into_iter().enumerate() {
        let (measured, asker, next) = (Rc::clone(&measured), Rc::clone(&asker), Rc::clone(&next));
        let caller = async move {
            let mut connection = Some(connection);
            let mut request = Vec::with_capacity(512);
            loop {
                let turn = next.get();
                let due = begun + Duration::from_secs_f64(turn as f64 / rate);
                // Those that are still due when the time is over were never sent.
                if turn >= due_count || begun.elapsed() >= lasts {
                    return anyhow::Ok(());
                }
                next.set(turn + 1);
                tokio::time::sleep_until(due.into()).await;
                if !asker.borrow_mut()(index, None, &mut request) {
                    return Ok(());
                }
                let mut open = match connection.take() {
                    Some(open) => open,
                    None => Connection::open(server).await?,
                };
                let sent = Instant::now();
                match open.ask(&request).await {
                    Ok(answer) => measured.borrow_mut().note(&answer, due.elapsed(), sent.elapsed()),
                    Err(_) => {
                        measured.borrow_mut().broken += 1;
                        continue;
                    }
                }
                connection = Some(open);
            }
        };
        callers.spawn_local_on(caller, &set);
    }
    set.run_until(finish(&mut callers)).await?;
    let mut measured = std::mem::replace(&mut *measured.borrow_mut(), Measured::new());
    measured.elapsed = begun.elapsed();
    measured.unsent = due_count.saturating_sub(next.get());
    Ok(measured)
}

async fn finish(callers: &mut JoinSet<anyhow::Result<()>>) -> anyhow::Result<()> {
    while let Some(ended) = callers.join_next().await {
        ended??;
    }
    Ok(())
}
