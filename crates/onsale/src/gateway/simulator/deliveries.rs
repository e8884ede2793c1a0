//! The delivery of events: one bounded queue in order of due time, one task that starts what is due.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::events::Event;
use super::limits::{
    DELIVERIES_QUEUED_MAX, DELIVERIES_RUNNING_MAX, DELIVERY_ANSWER_BYTES_MAX, DELIVERY_BACKOFF,
    DELIVERY_TIMEOUT, REVERSE_HOLD,
};
use super::webhooks::{Mode, Signer};
use super::{objects, unix_ms};

/// Where events go, how, and what is on its way.
pub(super) struct Deliveries {
    signer: Signer,
    /// Signs what a receiver must refuse.
    forger: Signer,
    client: reqwest::Client,
    authentication_base: String,
    state: Mutex<State>,
    /// Rung when something was queued.
    queued: Notify,
}

struct State {
    mode: Mode,
    url: Option<Arc<str>>,
    /// By due time, then in the order queued.
    queue: BTreeMap<Due, Delivery>,
    sequence: u64,
    /// The event that mode `reverse` holds back, if it hasn't gone.
    held: Option<Due>,
}

type Due = (Instant, u64);

/// One event to deliver, and the one to deliver after it.
struct Delivery {
    event: Arc<Event>,
    then: Option<Arc<Event>>,
    forged: bool,
    /// How often it was refused so far.
    refused: usize,
}

/// What a receiver said; no status when it couldn't be reached or didn't answer in time.
pub(super) struct Receipt {
    pub(super) status: Option<u16>,
    pub(super) body: Value,
}

impl Receipt {
    fn accepted(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }
}

impl Deliveries {
    /// Nothing on its way yet; [`run`](Deliveries::run) delivers.
    pub(super) fn new(
        secret: &str,
        url: Option<String>,
        authentication_base: String,
    ) -> std::io::Result<Deliveries> {
        // The client wants a TLS provider even for plain HTTP; one that is there already is as good.
        rustls::crypto::ring::default_provider().install_default().ok();
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .pool_max_idle_per_host(DELIVERIES_RUNNING_MAX)
            .timeout(DELIVERY_TIMEOUT)
            .build()
            .map_err(std::io::Error::other)?;
        Ok(Deliveries {
            signer: Signer::new(secret),
            forger: Signer::new(&format!("{secret}_forged")),
            client,
            authentication_base,
            state: Mutex::new(State {
                mode: Mode::Normal,
                url: url.map(Arc::from),
                queue: BTreeMap::new(),
                sequence: 0,
                held: None,
            }),
            queued: Notify::new(),
        })
    }

    /// Where events go from now on.
    pub(super) fn set_url(&self, url: String) {
        self.lock().url = Some(url.into());
    }

    /// How events go from now on; those on their way go as they were sent.
    pub(super) fn set_mode(&self, mode: Mode) {
        self.lock().mode = mode;
    }

    /// Where and how events go.
    pub(super) fn settings(&self) -> (Mode, Option<Arc<str>>) {
        let state = self.lock();
        (state.mode, state.url.clone())
    }

    /// An event happened: sends it on its way as the mode wants.
    pub(super) fn dispatch(&self, event: Arc<Event>) {
        let mut state = self.lock();
        if state.url.is_none() {
            return; // Kept, like everything; there is nobody to tell.
        }
        let now = Instant::now();
        let delivery = Delivery { event, then: None, forged: state.mode == Mode::BadSignature, refused: 0 };
        match state.mode {
            Mode::Off => return,
            Mode::Normal | Mode::Early | Mode::BadSignature => drop(state.push(now, delivery)),
            Mode::Delay(delay) => drop(state.push(now + delay, delivery)),
            Mode::Duplicate => {
                let again = Delivery { event: delivery.event.clone(), then: None, ..delivery };
                state.push(now, delivery);
                state.push(now, again);
            }
            Mode::Reverse => match state.held.take().and_then(|due| state.queue.remove(&due)) {
                Some(held) => {
                    let pair = Delivery { then: Some(held.event), ..delivery };
                    state.push(now, pair);
                }
                None => state.held = state.push(now + REVERSE_HOLD, delivery),
            },
        }
        drop(state);
        self.queued.notify_one();
    }

    /// Delivers an event now and says how it was received. Where it can't be, the receipt has no status.
    pub(super) async fn deliver(&self, event: &Event) -> Receipt {
        let forged = self.settings().0 == Mode::BadSignature;
        self.send(event, forged).await
    }

    /// Delivers an event now; when it is refused it is tried again in the background.
    pub(super) async fn deliver_or_retry(&self, event: Arc<Event>) {
        let delivery = Delivery { event, then: None, forged: false, refused: 0 };
        self.attempt(delivery).await;
    }

    /// Delivers what is due, for ever. Dropped, it drops what is running.
    pub(super) async fn run(self: Arc<Deliveries>) {
        let mut running = JoinSet::new();
        loop {
            while running.try_join_next().is_some() {}
            if running.len() == DELIVERIES_RUNNING_MAX {
                running.join_next().await;
            }
            let next = self.lock().take_due(Instant::now());
            match next {
                Next::Due(delivery) => {
                    let deliveries = self.clone();
                    running.spawn(async move { deliveries.attempt(*delivery).await });
                }
                // Only this task waits on the bell, and a ring while it is busy is kept: none is missed.
                Next::At(due) => drop(tokio::time::timeout_at(due, self.queued.notified()).await),
                Next::Nothing => self.queued.notified().await,
            }
        }
    }

    async fn attempt(&self, mut delivery: Delivery) {
        loop {
            let then = delivery.then.take();
            if !self.send(&delivery.event, delivery.forged).await.accepted() {
                self.retry(Delivery { then: None, ..delivery });
            }
            match then {
                Some(event) => delivery = Delivery { event, then: None, forged: false, refused: 0 },
                None => return,
            }
        }
    }

    fn retry(&self, delivery: Delivery) {
        let Some(pause) = DELIVERY_BACKOFF.get(delivery.refused) else {
            tracing::warn!(event.id = %delivery.event.id, "Gave up a simulated webhook: refused too often");
            return;
        };
        let refused = delivery.refused + 1;
        self.lock().push(Instant::now() + *pause, Delivery { refused, ..delivery });
        self.queued.notify_one();
    }

    async fn send(&self, event: &Event, forged: bool) -> Receipt {
        let Some(url) = self.settings().1 else { return Receipt { status: None, body: Value::Null } };
        let body = objects::render(&objects::event(event, &self.authentication_base));
        let signer = if forged { &self.forger } else { &self.signer };
        let signature = signer.header(unix_ms() / 1_000, &body);
        let request = self
            .client
            .post(&*url)
            .header("content-type", "application/json; charset=utf-8")
            .header("stripe-signature", signature)
            .body(body);
        match request.send().await {
            Ok(answer) => {
                Receipt { status: Some(answer.status().as_u16()), body: read_bounded(answer).await }
            }
            Err(_) => Receipt { status: None, body: Value::Null },
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no holder of this lock panics")
    }
}

enum Next {
    Due(Box<Delivery>),
    At(Instant),
    Nothing,
}

impl State {
    fn push(&mut self, due: Instant, delivery: Delivery) -> Option<Due> {
        if self.queue.len() >= DELIVERIES_QUEUED_MAX {
            tracing::warn!(event.id = %delivery.event.id, "Gave up a simulated webhook: the queue is full");
            return None;
        }
        self.sequence += 1;
        self.queue.insert((due, self.sequence), delivery);
        Some((due, self.sequence))
    }

    fn take_due(&mut self, now: Instant) -> Next {
        match self.queue.first_entry() {
            None => Next::Nothing,
            Some(first) if first.key().0 > now => Next::At(first.key().0),
            Some(first) => Next::Due(Box::new(first.remove())),
        }
    }
}

/// The receiver's answer as JSON; as text when it isn't JSON, cut at its limit.
async fn read_bounded(mut answer: reqwest::Response) -> Value {
    let mut bytes = Vec::new();
    while let Ok(Some(chunk)) = answer.chunk().await {
        let room = DELIVERY_ANSWER_BYTES_MAX - bytes.len();
        bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if bytes.len() == DELIVERY_ANSWER_BYTES_MAX {
            break;
        }
    }
    match bytes.is_empty() {
        true => Value::Null,
        false => serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::intent::{CaptureMethod, Intent, Origin, Transition};
    use super::*;
    use std::time::Duration;

    fn event(id: &str) -> Arc<Event> {
        let origin = Origin {
            id: "pi_1".into(),
            secret: "s".into(),
            created: 1,
            currency: "eur".into(),
            capture_method: CaptureMethod::Manual,
            description: None,
            payment_method_types: Box::new([]),
            metadata: Box::new([]),
            order_id: None,
        };
        Arc::new(Event {
            id: id.into(),
            transition: Transition::Authorized,
            created: 1,
            intent: Arc::new(Intent::new(origin, 5, None)),
            request_id: None,
            idempotency_key: None,
        })
    }

    /// What is due after `ms`, in the order it would go.
    fn due(deliveries: &Deliveries, ms: u64) -> Vec<String> {
        let now = Instant::now() + Duration::from_millis(ms);
        let mut due = Vec::new();
        while let Next::Due(delivery) = deliveries.lock().take_due(now) {
            due.push(delivery.event.id.to_string());
            due.extend(delivery.then.map(|event| event.id.to_string()));
        }
        due
    }

    /// Nothing runs here, so nothing leaves the queue but by the hand of the test.
    fn queue(mode: Mode) -> Deliveries {
        let deliveries = Deliveries::new("whsec_1", Some("http://x/".into()), "http://y".into()).unwrap();
        deliveries.set_mode(mode);
        deliveries
    }

    #[test]
    fn in_reverse_the_second_goes_first_and_a_third_waits_alone() {
        let deliveries = queue(Mode::Reverse);
        for id in ["evt_1", "evt_2", "evt_3"] {
            deliveries.dispatch(event(id));
        }
        assert_eq!(due(&deliveries, 0), ["evt_2", "evt_1"]);
        assert_eq!(due(&deliveries, 60_000), ["evt_3"]);
        deliveries.dispatch(event("evt_4")); // What was held has gone, so this one is held.
        assert_eq!(due(&deliveries, 60_000), ["evt_4"]);
    }

    #[test]
    fn delayed_events_wait_and_the_queue_is_bounded() {
        let deliveries = queue(Mode::Delay(Duration::from_secs(30)));
        deliveries.dispatch(event("evt_late"));
        deliveries.set_mode(Mode::Normal);
        deliveries.dispatch(event("evt_soon"));
        assert_eq!(due(&deliveries, 0), ["evt_soon"]);
        assert_eq!(due(&deliveries, 60_000), ["evt_late"]);
        let flood = event("evt_flood");
        for _ in 0..=DELIVERIES_QUEUED_MAX {
            deliveries.dispatch(flood.clone());
        }
        assert_eq!(deliveries.lock().queue.len(), DELIVERIES_QUEUED_MAX);
    }
}
