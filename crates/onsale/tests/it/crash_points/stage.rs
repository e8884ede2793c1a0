//! One server on stage: what the script asks of it, and the clients' ledger of what it has told.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

use reqwest::Method;
use serde_json::{Value, json};

use crate::util::{App, Buyer, Client, Hall, Reply, eventually, text};

/// How often a request that was not answered with a decision is sent again; a fail point fails once.
const TRIES: usize = 4;
/// How often an order is looked at until it stands as it should.
const LOOKS: usize = 60;
/// Longer than an operation that was under way is left alone.
pub(super) const LONGER_THAN_A_CALL_MS: i64 = 25_000;

/// The server has gone.
#[derive(Debug)]
pub(super) struct Gone;

/// Who does what by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// Nobody: the clock stands, and the script says when a worker passes and a callback comes.
    Stepped,
    /// Everybody at once: workers, callbacks, the clock, and the buyers.
    Alive,
}

/// Those who play, in every run the same.
pub(super) struct Cast {
    /// Sold as usual; with seats that are given up in doubt; charged at once.
    pub(super) halls: [Hall; 3],
    pub(super) buyers: BTreeMap<&'static str, Buyer>,
}

/// What the clients know, from the first server to the last.
#[derive(Default)]
pub(super) struct Ledger {
    /// In the order in which they were first sent.
    requests: Mutex<Vec<Request>>,
    /// Orders by their buyers.
    pub(super) orders: Mutex<BTreeMap<&'static str, String>>,
    /// Holds by their requests' keys.
    pub(super) holds: Mutex<BTreeMap<&'static str, Value>>,
    /// Answers that a server gave again.
    pub(super) replays: AtomicI64,
    /// The latest time of any server's clock that the script has set.
    pub(super) clock_ms: AtomicI64,
    /// When the script began.
    pub(super) zero_ms: AtomicI64,
}

/// A request of a buyer, and what came of it.
#[derive(Clone)]
struct Request {
    key: &'static str,
    who: &'static str,
    method: Method,
    path: String,
    body: Option<Value>,
    told: Told,
}

/// What is known of a request.
#[derive(Clone, PartialEq)]
enum Told {
    /// Nothing of it has been done.
    NotDone,
    /// It may have been done.
    Perhaps,
    /// It was answered with a decision.
    Answer(u16, Value),
}

pub(super) struct Stage<'a> {
    pub(super) app: &'a App,
    pub(super) cast: &'a Cast,
    pub(super) ledger: &'a Ledger,
    pub(super) manner: Manner,
    /// Whether this server may be killed by its fail point.
    pub(super) mortal: bool,
}

impl Stage<'_> {
    /// The way of a buyer to this server.
    pub(super) fn client(&self, who: &str) -> Client {
        self.cast.buyers[who].client.at(&self.app.buyers.base)
    }

    /// Has something decided under a key; the body of an answer that must have this status.
    pub(super) async fn ask(
        &self,
        who: &'static str,
        key: &'static str,
        (method, path, body): (Method, &str, Option<&Value>),
        want: u16,
    ) -> Result<Value, Gone> {
        let request =
            Request { key, who, method, path: path.to_owned(), body: body.cloned(), told: Told::NotDone };
        let reply = self.send(request).await?;
        assert_eq!(reply.status, want, "{key}, {}: {}", reply.what, reply.text);
        Ok(reply.body)
    }

    /// Sends all that was ever asked once more.
    pub(super) async fn ask_all_again(&self) -> Result<(), Gone> {
        let requests = self.ledger.requests.lock().expect("the ledger").clone();
        for request in requests {
            let reply = self.send(request.clone()).await?;
            assert!(
                matches!(reply.status, 201 | 202 | 204 | 409),
                "{}, {}: {}",
                request.key,
                reply.what,
                reply.text
            );
            if reply.status == 202 {
                self.keep_order(request.who, &reply.body);
            }
        }
        Ok(())
    }

    /// Sends a request until it is decided, and checks the answer against the ledger: what was answered before is
    /// answered the same, and what was said not to be done has not been done.
    async fn send(&self, request: Request) -> Result<Reply, Gone> {
        let Request { key, who, .. } = request;
        for _ in 0..TRIES {
            let mut ask = self.client(who).ask(request.method.clone(), &request.path).key(key);
            if let Some(body) = &request.body {
                ask = ask.json(body);
            }
            let before = self.told(key);
            let Some(reply) = ask.try_send().await else {
                self.keep(&request, Told::Perhaps);
                self.lost()?;
                continue;
            };
            if reply.status == 503 {
                let told = match text(&reply.body, "code") {
                    "authority-unavailable" => Told::NotDone,
                    "outcome-unknown" => Told::Perhaps,
                    other => panic!("{}: {other}", reply.what),
                };
                self.keep(&request, told);
                continue;
            }
            // To give something back needs no key: it is given back once.
            match before.filter(|_| request.method != Method::DELETE) {
                Some(Told::Answer(status, told)) => {
                    assert!(reply.replayed(), "{key} was decided anew: {}", reply.text);
                    assert_eq!((reply.status, &reply.body), (status, &told), "{key} is answered differently");
                    self.ledger.replays.fetch_add(1, Ordering::Relaxed);
                }
                Some(Told::NotDone) | None => {
                    assert!(!reply.replayed(), "{key} was done, and nobody was told: {}", reply.text);
                }
                Some(Told::Perhaps) => {}
            }
            self.keep(&request, Told::Answer(reply.status, reply.body.clone()));
            return Ok(reply);
        }
        panic!("{key} was never decided");
    }

    /// How many answers are known that a server must give again.
    pub(super) fn answered(&self) -> i64 {
        let requests = self.ledger.requests.lock().expect("the ledger");
        let answered = requests.iter().filter(|request| matches!(request.told, Told::Answer(..)));
        answered.filter(|request| request.method != Method::DELETE).count() as i64
    }

    fn told(&self, key: &str) -> Option<Told> {
        let requests = self.ledger.requests.lock().expect("the ledger");
        requests.iter().find(|request| request.key == key).map(|request| request.told.clone())
    }

    /// Notes what is known of a request now. What was answered stays answered, and what may have been done may have been
    /// done for good.
    fn keep(&self, request: &Request, told: Told) {
        let mut requests = self.ledger.requests.lock().expect("the ledger");
        match requests.iter_mut().find(|known| known.key == request.key) {
            None => requests.push(Request { told, ..request.clone() }),
            Some(known) => match (&known.told, &told) {
                (Told::Answer(..), _) | (Told::Perhaps, Told::NotDone) => {}
                _ => known.told = told,
            },
        }
    }

    fn keep_order(&self, who: &'static str, begun: &Value) -> String {
        let order_id = text(begun, "order_id").to_owned();
        let known = self.ledger.orders.lock().expect("the ledger").insert(who, order_id.clone());
        assert!(known.is_none_or(|known| known == order_id), "{who} has another order now");
        order_id
    }

    /// No answer came: the end of a server that may be killed, and a lost connection of any other.
    fn lost(&self) -> Result<(), Gone> {
        if self.mortal { Err(Gone) } else { Ok(()) }
    }

    /// Asks until there is an answer other than "not now".
    async fn until_answered(
        &self,
        client: &Client,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<Reply, Gone> {
        for _ in 0..TRIES {
            let ask = client.ask(method.clone(), path);
            match if body.is_null() { ask } else { ask.json(body) }.try_send().await {
                Some(reply) if reply.status == 503 => {}
                Some(reply) => return Ok(reply),
                None => self.lost()?,
            }
        }
        panic!("{method} {path} was never answered");
    }

    /// A hold by its buyer and key.
    pub(super) async fn hold(
        &self,
        who: &'static str,
        key: &'static str,
        hall: usize,
        seats: &[&str],
    ) -> Result<Value, Gone> {
        let path = format!("/v1/events/{}/holds", self.cast.halls[hall].event_id);
        let hold = self.ask(who, key, (Method::POST, &path, Some(&json!({ "seats": seats }))), 201).await?;
        self.ledger.holds.lock().expect("the ledger").insert(key, hold.clone());
        Ok(hold)
    }

    /// Begins to pay; the order's id.
    pub(super) async fn pay(
        &self,
        who: &'static str,
        key: &'static str,
        hold: &Value,
        card: &str,
    ) -> Result<String, Gone> {
        let path = format!("/v1/holds/{}/checkout", text(hold, "hold_id"));
        let body = json!({ "payment_method_token": card });
        let begun = self.ask(who, key, (Method::POST, &path, Some(&body)), 202).await?;
        Ok(self.keep_order(who, &begun))
    }

    /// Waits until the payment of an order stands as it should: where nothing goes by itself, by having it go on.
    pub(super) async fn settle(
        &self,
        who: &str,
        order_id: &str,
        want: impl Fn(&str) -> bool,
    ) -> Result<(), Gone> {
        let wait_s = if self.manner == Manner::Alive { 1 } else { 0 };
        let path = format!("/v1/orders/{order_id}?wait_s={wait_s}");
        let mut last = Value::Null;
        for look in 0..LOOKS {
            last = self.until_answered(&self.client(who), Method::GET, &path, &Value::Null).await?.ok(200);
            if want(text(&last, "payment_status")) {
                return Ok(());
            }
            if self.manner == Manner::Stepped {
                if look > 2 {
                    self.set_clock(self.ledger.clock_ms.load(Ordering::SeqCst) + 2_500).await?;
                }
                self.pass("payments").await?;
            }
        }
        panic!("{who}'s payment does not come to its end: {last}");
    }

    /// Waits until what buyers are shown of a hall is right. It may be behind for a moment, when who follows the commits
    /// has not heard of one.
    pub(super) async fn shows(
        &self,
        hall: usize,
        what: &str,
        is_right: impl Fn(&Value) -> bool,
    ) -> Result<(), Gone> {
        let path = format!("/v1/events/{}/{what}", self.cast.halls[hall].event_id);
        let (path, is_right) = (path.as_str(), &is_right);
        let look = || async move {
            match self.until_answered(&self.app.buyers, Method::GET, path, &Value::Null).await {
                Ok(reply) => is_right(&reply.ok(200)).then_some(Ok(())),
                Err(gone) => Some(Err(gone)),
            }
        };
        eventually(&format!("the {what} of hall {hall} are right"), look).await
    }

    /// The operator sets the price of all seats of a hall.
    pub(super) async fn price(&self, hall: usize, amount_minor: i64) -> Result<(), Gone> {
        let path = format!("/v1/events/{}/prices", self.cast.halls[hall].event_id);
        let body = json!({ "price_levels": [{ "price_level": "Stalls", "amount_minor": amount_minor }] });
        self.until_answered(&self.app.operator, Method::PUT, &path, &body).await?.ok(200);
        Ok(())
    }

    /// A gate shows the first of a buyer's tickets, under the same id on every server: it has the same answer.
    pub(super) async fn lets_in(&self, who: &str) -> Result<(), Gone> {
        let order_id = self.ledger.orders.lock().expect("the ledger")[who].clone();
        let path = format!("/v1/orders/{order_id}/tickets");
        let client = self.client(who);
        let look = || async {
            let answer = self.until_answered(&client, Method::GET, &path, &Value::Null).await;
            let tickets = answer.map(|reply| reply.ok(200)["tickets"][0].clone());
            tickets.map(|ticket| (!ticket.is_null()).then_some(ticket)).transpose()
        };
        let ticket = eventually("there are tickets", look).await?;
        let body =
            json!({ "scan_id": format!("{who}-comes"), "barcode": ticket["barcode"], "gate": "north" });
        let told =
            self.until_answered(&self.app.operator, Method::POST, "/v1/gate/scans", &body).await?.ok(200);
        assert_eq!(told["result"], "ADMIT", "{told}");
        Ok(())
    }

    /// Has a worker pass.
    pub(super) async fn pass(&self, worker: &str) -> Result<(), Gone> {
        let path = format!("/_test/workers/{worker}");
        self.until_answered(&self.app.operator, Method::POST, &path, &json!({})).await?.ok(200);
        Ok(())
    }

    /// Begins where another server has ended, so much later; the first of all begins now.
    pub(super) async fn take_over(&self, later_ms: i64) {
        let (now_ms, ledger) = (self.app.now_ms().await, &self.ledger);
        if ledger.zero_ms.load(Ordering::SeqCst) == 0 {
            ledger.zero_ms.store(now_ms, Ordering::SeqCst);
            ledger.clock_ms.store(now_ms, Ordering::SeqCst);
        } else {
            let to_ms = now_ms.max(ledger.clock_ms.load(Ordering::SeqCst)) + later_ms;
            self.set_clock(to_ms).await.expect("the clock is moved");
        }
    }

    /// Moves the clock to an instant, unless it is past it.
    pub(super) async fn set_clock(&self, to_ms: i64) -> Result<(), Gone> {
        let before = self.ledger.clock_ms.fetch_max(to_ms, Ordering::SeqCst);
        if to_ms > before {
            let body = json!({ "set": to_ms });
            self.until_answered(&self.app.operator, Method::POST, "/_test/clock", &body).await?.ok(200);
        }
        Ok(())
    }

    /// The provider delivers the latest event about an order; it is taken, in the end.
    pub(super) async fn deliver(&self, order_id: &str) -> Result<(), Gone> {
        for _ in 0..TRIES {
            let wanted = json!({ "order_id": order_id });
            let said = self.app.provider.client.post("/_sim/deliver", &wanted).await.ok(200);
            match said["deliveries"][0]["status"].as_u64() {
                Some(200) => return Ok(()),
                Some(status) => assert!(status >= 500, "{said}"),
                None => self.lost()?,
            }
        }
        panic!("the callback about {order_id} is never taken");
    }

    /// The buyer proves who it is where it is asked to; once more does no harm.
    pub(super) async fn complete(&self, order_id: &str) {
        for intent in self.app.provider.intents(order_id).await {
            let path = format!("/_sim/intents/{}/complete", text(&intent, "id"));
            self.app.provider.client.post(&path, &json!({ "result": "success" })).await;
        }
    }
}
