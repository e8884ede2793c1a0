//! Shoppers who know that a server may end: they send what was not answered again, with the same key, until it is, and
//! after each return of the server they ask for their last answer once more.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::util::{App, Buyer, Client, Hall, Reply, fresh_key, text};

/// How long a shopper waits before it tries again.
const A_MOMENT: Duration = Duration::from_millis(20);
/// A card that the provider declines.
const BAD_CARD: &str = "pm_card_visa_chargeDeclined";
const GOOD_CARD: &str = "pm_card_visa";

/// What a shopper was promised.
#[derive(Default)]
pub(super) struct Receipts {
    /// Holds as they were placed.
    pub(super) holds: Vec<Value>,
    /// Orders, each with the number of times it was tried to be paid.
    pub(super) orders: Vec<(String, usize)>,
    /// Answers asked for again after a return of the server.
    pub(super) replays: usize,
}

/// All shoppers of a hall.
pub(super) struct Crowd {
    hall: Hall,
    server: watch::Sender<(usize, String)>,
    acknowledged: Arc<AtomicU64>,
    shoppers: JoinSet<Receipts>,
    chance: Chance,
}

impl Crowd {
    pub(super) fn new(app: &App, hall: &Hall, seed: u64) -> Crowd {
        Crowd {
            hall: hall.clone(),
            server: watch::Sender::new((0, app.buyers.base.clone())),
            acknowledged: Arc::default(),
            shoppers: JoinSet::new(),
            chance: Chance(seed),
        }
    }

    /// One more shopper begins.
    pub(super) async fn enter(&mut self, app: &App) {
        let Buyer { client, .. } = app.buyer().await;
        let shopper = Shopper {
            hall: self.hall.clone(),
            client,
            server: self.server.subscribe(),
            seen: 0,
            acknowledged: Arc::clone(&self.acknowledged),
            chance: Chance(self.chance.next()),
            last: None,
            receipts: Receipts::default(),
        };
        self.shoppers.spawn(shopper.shop());
    }

    /// How many requests have been answered with a decision.
    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::SeqCst)
    }

    pub(super) fn chance(&mut self) -> u64 {
        self.chance.next()
    }

    /// Tells all where the server is now.
    pub(super) fn move_to(&self, app: &App) {
        self.server.send_modify(|(generation, base)| {
            *generation += 1;
            base.clone_from(&app.buyers.base);
        });
    }

    /// Waits until the hall is sold out and all is paid.
    pub(super) async fn leave(self) -> Vec<Receipts> {
        self.shoppers.join_all().await
    }
}

/// A request that was answered.
struct Answered {
    path: String,
    body: Value,
    key: String,
    reply: Reply,
}

struct Shopper {
    hall: Hall,
    client: Client,
    server: watch::Receiver<(usize, String)>,
    /// The server's generation that this shopper has talked to.
    seen: usize,
    acknowledged: Arc<AtomicU64>,
    chance: Chance,
    last: Option<Answered>,
    receipts: Receipts,
}

impl Shopper {
    async fn shop(mut self) -> Receipts {
        let holds = format!("/v1/events/{}/holds", self.hall.event_id);
        loop {
            let states = self.get(&format!("/v1/events/{}/seats", self.hall.event_id)).await;
            let states = text(&states, "states").to_owned();
            let free: Vec<usize> =
                states.char_indices().filter(|(_, state)| *state == '0').map(|(seat, _)| seat).collect();
            if free.is_empty() {
                break;
            }
            let from = self.chance.below(free.len());
            let wanted: Vec<String> = free
                .iter()
                .skip(from)
                .take(1 + self.chance.below(3))
                .map(|seat| format!("A-{seat}"))
                .collect();
            let reply = self.ask(&holds, json!({ "seats": wanted })).await;
            if reply.status == 409 {
                reply.problem(409, "seat-unavailable");
                continue;
            }
            let hold = reply.ok(201);
            self.receipts.holds.push(hold.clone());
            self.pay(&hold).await;
        }
        for (order_id, _) in self.receipts.orders.clone() {
            self.wait_for(&order_id, "CAPTURED").await;
        }
        // The last answer of all, once more.
        self.ask_again().await;
        self.receipts
    }

    /// Pays for a hold; one time in six with a card that is declined at first.
    async fn pay(&mut self, hold: &Value) {
        let path = format!("/v1/holds/{}/checkout", text(hold, "hold_id"));
        let cards: &[&str] = if self.chance.below(6) == 0 { &[BAD_CARD, GOOD_CARD] } else { &[GOOD_CARD] };
        let mut order_id = String::new();
        for card in cards {
            if !order_id.is_empty() {
                self.wait_for(&order_id, "DECLINED").await;
            }
            let begun = self.ask(&path, json!({ "payment_method_token": card })).await.ok(202);
            assert!(order_id.is_empty() || order_id == text(&begun, "order_id"), "another order: {begun}");
            order_id = text(&begun, "order_id").to_owned();
        }
        self.receipts.orders.push((order_id, cards.len()));
    }

    async fn wait_for(&mut self, order_id: &str, payment_status: &str) {
        loop {
            let order = self.get(&format!("/v1/orders/{order_id}?wait_s=1")).await;
            if order["payment_status"] == payment_status {
                return;
            }
        }
    }

    /// Looks until there is an answer.
    async fn get(&mut self, path: &str) -> Value {
        loop {
            let client = self.client_now();
            match client.get(path).try_send().await {
                Some(reply) if reply.status != 503 => return reply.ok(200),
                _ => self.wait_a_moment().await,
            }
        }
    }

    /// Has something decided: sends it, always with the same key, until it is.
    async fn ask(&mut self, path: &str, body: Value) -> Reply {
        let key = fresh_key();
        if self.server.borrow().0 != self.seen {
            self.ask_again().await;
        }
        let reply = self.send(path, &body, &key).await;
        self.acknowledged.fetch_add(1, Ordering::SeqCst);
        self.last = Some(Answered { path: path.to_owned(), body, key, reply: reply.clone() });
        reply
    }

    async fn send(&mut self, path: &str, body: &Value, key: &str) -> Reply {
        loop {
            let client = self.client_now();
            match client.post(path, body).key(key).try_send().await {
                Some(reply) if reply.status == 503 => self.wait_a_moment().await,
                Some(reply) => {
                    assert!(matches!(reply.status, 201 | 202 | 409), "{}: {}", reply.what, reply.text);
                    return reply;
                }
                None => self.wait_a_moment().await,
            }
        }
    }

    /// Asks for the last answer again: a new server must give the same.
    async fn ask_again(&mut self) {
        self.seen = self.server.borrow().0;
        let Some(last) = self.last.take() else {
            return;
        };
        let again = self.send(&last.path, &last.body, &last.key).await;
        assert!(again.replayed(), "it was decided anew: {} {}", last.path, again.text);
        assert_eq!((again.status, &again.body), (last.reply.status, &last.reply.body), "{}", last.path);
        self.receipts.replays += 1;
        self.last = Some(last);
    }

    fn client_now(&self) -> Client {
        self.client.at(&self.server.borrow().1)
    }

    /// Until the server has moved, or a moment.
    async fn wait_a_moment(&mut self) {
        timeout(A_MOMENT, self.server.changed()).await.ok();
    }
}

/// A sequence that follows from its seed (SplitMix64).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}
