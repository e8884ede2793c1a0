//! The ledger: what was asked and what was answered, by those who asked. It stands outside of the application and of its
//! database, and is only ever added to.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::client::{Client, Said};

/// What was wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asking {
    Hold,
    Checkout,
    Release,
}

/// One wish of a buyer: it may be sent many times, under one key.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) asking: Asking,
    /// Whose it is; an account makes one wish for seats in its life, so that the database can be asked what came of it.
    pub(crate) token: String,
    pub(crate) account: String,
    pub(crate) path: String,
    pub(crate) key: String,
    pub(crate) body: Option<Value>,
    pub(crate) answers: Vec<Said>,
}

impl Request {
    /// The first answer that decided it.
    pub(crate) fn decision(&self) -> Option<&Said> {
        self.answers.iter().find(|said| said.is_decision())
    }

    /// Whether nobody has told what came of it, and something may have.
    pub(crate) fn is_unknown(&self) -> bool {
        self.decision().is_none() && self.answers.iter().any(Said::is_unknown)
    }

    /// Whether it was only ever told that nothing was done.
    pub(crate) fn is_refused(&self) -> bool {
        self.decision().is_none() && !self.is_unknown()
    }

    /// Sends it to a process, once more or for the first time.
    pub(crate) async fn send(&self, process: &Client) -> Said {
        let method = match self.asking {
            Asking::Hold | Asking::Checkout => Method::POST,
            Asking::Release => Method::DELETE,
        };
        let key = (self.asking != Asking::Release).then_some(self.key.as_str());
        process.with_token(&self.token).ask(method, &self.path, key, self.body.as_ref()).await
    }
}

/// A state of an order, as it was seen.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) order_id: String,
    pub(crate) order: Value,
}

#[derive(Default)]
struct Pages {
    requests: Vec<Request>,
    seen: Vec<Seen>,
    /// When a hold was acknowledged, and by which process.
    holds: Vec<(Instant, usize)>,
    answers: Vec<Said>,
}

/// Clones write to the same ledger.
#[derive(Clone)]
pub(crate) struct Ledger {
    begun: Instant,
    file: Arc<Mutex<File>>,
    pages: Arc<Mutex<Pages>>,
}

impl Ledger {
    pub(crate) fn open(path: &Path) -> anyhow::Result<Ledger> {
        let file = File::create(path).with_context(|| format!("failed to make {}", path.display()))?;
        let pages = Arc::default();
        Ok(Ledger { begun: Instant::now(), file: Arc::new(Mutex::new(file)), pages })
    }

    /// A new wish; its number.
    pub(crate) fn wish(&self, request: Request) -> usize {
        let mut pages = self.pages();
        let number = pages.requests.len();
        self.write(
            &json!({ "wish": number, "asking": format!("{:?}", request.asking), "account": request.account,
            "path": request.path, "key": request.key, "body": request.body }),
        );
        pages.requests.push(request);
        number
    }

    /// What a process said to a wish.
    pub(crate) fn answer(&self, number: usize, process: usize, said: &Said) {
        let mut pages = self.pages();
        self.write(&json!({ "wish": number, "process": process, "said": said.json() }));
        let request = &mut pages.requests[number];
        let first = request.decision().is_none();
        request.answers.push(said.clone());
        let placed = request.asking == Asking::Hold && said.status() == 201;
        pages.answers.push(said.clone());
        if placed && first {
            pages.holds.push((Instant::now(), process));
        }
    }

    /// What a process said to another question, of which only its form is judged.
    pub(crate) fn aside(&self, path: &str, process: usize, said: &Said) {
        let mut pages = self.pages();
        if !said.is_decision() {
            self.write(&json!({ "asked": path, "process": process, "said": said.json() }));
        }
        pages.answers.push(said.clone());
    }

    /// A state of an order that somebody was shown.
    pub(crate) fn saw(&self, order_id: &str, process: usize, order: &Value) {
        let mut pages = self.pages();
        self.write(&json!({ "order": order_id, "process": process, "state": order }));
        pages.seen.push(Seen { order_id: order_id.to_owned(), order: order.clone() });
    }

    /// A heading, for people.
    pub(crate) fn remark(&self, text: &str) {
        self.write(&json!({ "remark": text }));
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.pages().requests.clone()
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.pages().seen.clone()
    }

    pub(crate) fn answers(&self) -> Vec<Said> {
        self.pages().answers.clone()
    }

    /// How many holds each process has acknowledged since a moment.
    pub(crate) fn holds_since(&self, since: Instant, process: usize) -> usize {
        self.pages().holds.iter().filter(|(at, by)| *at >= since && *by == process).count()
    }

    /// How many holds were acknowledged before a moment, and from then on.
    pub(crate) fn holds_around(&self, moment: Instant) -> (usize, usize) {
        let pages = self.pages();
        let before = pages.holds.iter().filter(|(at, _)| *at < moment).count();
        (before, pages.holds.len() - before)
    }

    /// The longest time without an acknowledged hold between two moments.
    pub(crate) fn gap(&self, from: Instant, to: Instant) -> Duration {
        let pages = self.pages();
        let inside = pages.holds.iter().map(|(at, _)| *at).filter(|at| (from..to).contains(at));
        let mut last = from;
        let mut longest = Duration::ZERO;
        for at in inside.chain([to]) {
            longest = longest.max(at - last);
            last = at;
        }
        longest
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, entry: &Value) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let at_ms = self.begun.elapsed().as_millis();
        // A ledger that can't be written is noticed when it is read: by people, after a failure.
        let _ = writeln!(file, "{at_ms} {entry}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, code: &str) -> Said {
        Said::Answer { status, replayed: false, retry_after: true, body: json!({ "code": code }) }
    }

    fn request(answers: &[Said]) -> Request {
        Request {
            asking: Asking::Hold,
            token: String::new(),
            account: "ada".to_owned(),
            path: "/".to_owned(),
            key: "key".to_owned(),
            body: None,
            answers: answers.to_vec(),
        }
    }

    #[test]
    fn what_is_known_of_a_request_follows_from_its_answers() {
        let nothing = Said::Nothing { why: "reset".to_owned() };
        let check = |answers: &[Said], decided: bool, unknown: bool, refused: bool| {
            let request = request(answers);
            let known = (request.decision().is_some(), request.is_unknown(), request.is_refused());
            assert_eq!(known, (decided, unknown, refused), "{answers:?}");
        };
        check(&[answer(201, "")], true, false, false);
        check(&[answer(503, "outcome-unknown"), answer(409, "seat-unavailable")], true, false, false);
        check(&[nothing], false, true, false);
        check(&[answer(503, "outcome-unknown"), answer(503, "overloaded")], false, true, false);
        check(&[answer(503, "overloaded"), answer(503, "authority-unavailable")], false, false, true);
        check(&[answer(500, "internal")], false, true, false);
    }

    #[test]
    fn the_gap_counts_from_the_beginning_and_to_the_end() {
        let folder = std::env::temp_dir().join(format!("onsale-chaos-ledger-{}", std::process::id()));
        let ledger = Ledger::open(&folder).unwrap();
        std::fs::remove_file(folder).unwrap();
        let begun = Instant::now();
        let at = |seconds: u64| begun + Duration::from_secs(seconds);
        for (second, process) in [(1, 0), (2, 1), (7, 0)] {
            ledger.pages().holds.push((at(second), process));
        }
        let gap = |from: u64, to: u64| ledger.gap(at(from), at(to)).as_secs();
        assert_eq!((gap(0, 8), gap(0, 20), gap(1, 3), gap(3, 6)), (5, 13, 1, 3));
        assert_eq!(ledger.holds_around(at(2)), (1, 2));
        assert_eq!((ledger.holds_since(at(2), 0), ledger.holds_since(at(0), 1)), (1, 1));
    }
}
