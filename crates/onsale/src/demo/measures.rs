//! What the crowd measures while it buys.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hdrhistogram::Histogram;

/// Slower answers than this are all the same; a request is given up before.
const LATENCY_US_MAX: u64 = 60_000_000;
/// Findings that are told one by one; the rest are counted.
const FINDINGS_MAX: usize = 50;

/// What is timed.
#[derive(Clone, Copy)]
pub(super) enum Timed {
    Hold,
    Checkout,
    Order,
    SeatMap,
}

impl Timed {
    pub(super) const ALL: [(Timed, &'static str); 4] = [
        (Timed::Hold, "hold"),
        (Timed::Checkout, "checkout"),
        (Timed::Order, "order status"),
        (Timed::SeatMap, "seat map"),
    ];
}

/// What is counted.
#[derive(Clone, Copy)]
pub(super) enum Counted {
    Sessions,
    Holds,
    Checkouts,
    Declines,
    Authentications,
    Releases,
    Vanished,
    /// Requests that were sent again, and were answered with the first answer.
    Replays,
    /// Requests whose connection was broken off.
    Broken,
}

impl Counted {
    pub(super) const ALL: [(Counted, &'static str); 9] = [
        (Counted::Sessions, "buyers"),
        (Counted::Holds, "holds"),
        (Counted::Checkouts, "checkouts"),
        (Counted::Declines, "attempts declined"),
        (Counted::Authentications, "authentications asked for"),
        (Counted::Releases, "holds given back"),
        (Counted::Vanished, "buyers who walked away"),
        (Counted::Replays, "requests replayed"),
        (Counted::Broken, "connections broken off"),
    ];
}

/// All of it.
pub(super) struct Measures {
    latencies: [Mutex<Histogram<u64>>; Timed::ALL.len()],
    /// Holds since someone last looked.
    lately: Mutex<Histogram<u64>>,
    counts: [AtomicU64; Counted::ALL.len()],
    refusals: Mutex<BTreeMap<String, u64>>,
    findings: Mutex<Findings>,
}

/// Whatever was not as promised.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) told: Vec<String>,
    pub(super) more: usize,
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_US_MAX, 3).expect("the bounds are valid")
}

impl Measures {
    pub(super) fn new() -> Measures {
        Measures {
            latencies: std::array::from_fn(|_| Mutex::new(histogram())),
            lately: Mutex::new(histogram()),
            counts: Default::default(),
            refusals: Mutex::default(),
            findings: Mutex::default(),
        }
    }

    pub(super) fn time(&self, what: Timed, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.latencies[what as usize].lock().expect(UNPOISONED).saturating_record(micros);
        if matches!(what, Timed::Hold) {
            self.lately.lock().expect(UNPOISONED).saturating_record(micros);
        }
    }

    pub(super) fn latency(&self, what: Timed) -> Histogram<u64> {
        self.latencies[what as usize].lock().expect(UNPOISONED).clone()
    }

    /// The p99 of holds since this was last asked, in microseconds.
    pub(super) fn hold_p99_lately(&self) -> u64 {
        let mut lately = self.lately.lock().expect(UNPOISONED);
        let p99 = lately.value_at_quantile(0.99);
        lately.reset();
        p99
    }

    pub(super) fn count(&self, what: Counted) {
        self.counts[what as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn counted(&self, what: Counted) -> u64 {
        self.counts[what as usize].load(Ordering::Relaxed)
    }

    pub(super) fn refused(&self, code: &str) {
        let mut refusals = self.refusals.lock().expect(UNPOISONED);
        match refusals.get_mut(code) {
            Some(count) => *count += 1,
            None => drop(refusals.insert(code.to_owned(), 1)),
        }
    }

    pub(super) fn refusals(&self) -> BTreeMap<String, u64> {
        self.refusals.lock().expect(UNPOISONED).clone()
    }

    /// Notes that something was not as promised: the demo has failed, and goes on to find what else is wrong.
    pub(super) fn find(&self, finding: String) {
        let mut findings = self.findings.lock().expect(UNPOISONED);
        match findings.told.len() < FINDINGS_MAX {
            true => findings.told.push(finding),
            false => findings.more += 1,
        }
    }

    pub(super) fn findings(&self) -> Findings {
        std::mem::take(&mut *self.findings.lock().expect(UNPOISONED))
    }
}

/// Why a lock of the demo is never poisoned.
pub(super) const UNPOISONED: &str = "nothing panics under the locks of the demo";
