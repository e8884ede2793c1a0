//! A buyer: holds seats, pays or doesn't, and asks again with the same key when there was no answer.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::client::{Client, Said};
use super::event::{Event, HOT_SEATS, SEATS, seat_name};
use super::is_settled;
use super::ledger::{Asking, Ledger, Request};

const GOOD_CARD: &str = "pm_card_visa";
const BAD_CARD: &str = "pm_card_visa_chargeDeclined";
/// The pause after an answer that is none, with some chance added. `Retry-After` says a second.
const PAUSE_MS: u64 = 300;
/// Between two wishes.
const THOUGHT_MS: u64 = 120;

pub(super) struct Buyer {
    pub(super) processes: Vec<Client>,
    pub(super) event: Event,
    pub(super) ledger: Ledger,
    /// Turns true when the doors close: nobody begins anything new.
    pub(super) closed: watch::Receiver<bool>,
    pub(super) random: StdRng,
    /// Orders that were followed to an end, each with its buyer's token.
    pub(super) orders: Vec<(String, String)>,
}

impl Buyer {
    pub(super) fn random(seed: u64) -> StdRng {
        StdRng::seed_from_u64(seed)
    }

    pub(super) async fn shop(mut self) {
        while !self.is_closed() {
            self.buy().await;
            self.look_again().await;
            let thought = self.random.random_range(0..THOUGHT_MS);
            self.pause(thought).await;
        }
    }

    /// One purchase, to its end or as far as it goes.
    async fn buy(&mut self) -> Option<()> {
        let (token, account) = self.session().await?;
        let body = json!({ "seats": self.seats() });
        let path = format!("/v1/events/{}/holds", self.event.id);
        let hold = self.ask(Asking::Hold, &token, &account, path, Some(body)).await?;
        if hold.status() != 201 {
            return None;
        }
        let hold_id = hold.body()["hold_id"].as_str()?.to_owned();
        match self.random.random_range(0..100) {
            0..12 => {
                self.ask(Asking::Release, &token, &account, format!("/v1/holds/{hold_id}"), None).await?;
            }
            // Left to run out.
            12..20 => {}
            _ => self.pay(&token, &account, &hold_id).await?,
        }
        Some(())
    }

    async fn pay(&mut self, token: &str, account: &str, hold_id: &str) -> Option<()> {
        let cards: &[&str] =
            if self.random.random_ratio(1, 10) { &[BAD_CARD, GOOD_CARD] } else { &[GOOD_CARD] };
        for card in cards {
            let body = json!({ "payment_method_token": card });
            let path = format!("/v1/holds/{hold_id}/checkout");
            let begun = self.ask(Asking::Checkout, token, account, path, Some(body)).await?;
            let order_id = begun.body()["order_id"].as_str()?.to_owned();
            let order = self.follow(token, &order_id).await?;
            if order["payment_status"] != "DECLINED" {
                self.orders.push((token.to_owned(), order_id));
                break;
            }
        }
        Some(())
    }

    /// Watches an order until nothing more will happen by itself.
    async fn follow(&mut self, token: &str, order_id: &str) -> Option<Value> {
        let path = format!("/v1/orders/{order_id}?wait_s=2");
        let mut last = Value::Null;
        loop {
            let process = self.any();
            let said = self.processes[process].with_token(token).get(&path).await;
            self.ledger.aside(&path, process, &said);
            if said.status() == 200 {
                let order = said.body();
                if (&last["order_status"], &last["payment_status"])
                    != (&order["order_status"], &order["payment_status"])
                {
                    self.ledger.saw(order_id, process, order);
                    last = order.clone();
                }
                if is_settled(order) {
                    return Some(last);
                }
            } else {
                self.pause(PAUSE_MS).await;
            }
            if self.is_closed() {
                return None;
            }
        }
    }

    /// Looks at an order of before: what was shown must stay.
    async fn look_again(&mut self) {
        let recent = self.orders.len().saturating_sub(3);
        let Some((token, order_id)) = self.orders[recent..].choose(&mut self.random).cloned() else { return };
        let (process, path) = (self.any(), format!("/v1/orders/{order_id}"));
        let said = self.processes[process].with_token(&token).get(&path).await;
        self.ledger.aside(&path, process, &said);
        if said.status() == 200 {
            self.ledger.saw(&order_id, process, said.body());
        }
    }

    async fn session(&mut self) -> Option<(String, String)> {
        loop {
            let process = self.any();
            let said = self.processes[process].ask(Method::POST, "/v1/sessions", None, None).await;
            self.ledger.aside("/v1/sessions", process, &said);
            if said.status() == 201 {
                let member = |name: &str| said.body()[name].as_str().map(ToOwned::to_owned);
                return Some((member("session_token")?, member("account_id")?));
            }
            self.pause(PAUSE_MS).await;
            if self.is_closed() {
                return None;
            }
        }
    }

    /// Asks until there is a decision, at one process or the other. One in five clicks twice, and asks two at once. One in four
    /// who were told nothing leaves it at that; the verdict finds out what came of it. One in ten who were answered asks once
    /// more.
    async fn ask(
        &mut self,
        asking: Asking,
        token: &str,
        account: &str,
        path: String,
        body: Option<Value>,
    ) -> Option<Said> {
        let key = format!("{:032x}", self.random.random::<u128>());
        let (token, account) = (token.to_owned(), account.to_owned());
        let request = Request { asking, token, account, path, key, body, answers: Vec::new() };
        let number = self.ledger.wish(request.clone());
        loop {
            let process = self.any();
            let said = match self.random.random_ratio(1, 5) {
                true => self.send_twice(&request, number, process).await,
                false => self.send(&request, number, process).await,
            };
            if said.is_decision() {
                if self.random.random_ratio(1, 10) {
                    let process = self.any();
                    self.send(&request, number, process).await;
                }
                return Some(said);
            }
            if said.is_unknown() && self.random.random_ratio(1, 4) || self.is_closed() {
                return None;
            }
            let pause = self.random.random_range(PAUSE_MS / 2..2 * PAUSE_MS);
            self.pause(pause).await;
        }
    }

    async fn send(&self, request: &Request, number: usize, process: usize) -> Said {
        let said = request.send(&self.processes[process]).await;
        self.ledger.answer(number, process, &said);
        said
    }

    /// To this process and to the next, at the same time. A decision is taken from either.
    async fn send_twice(&self, request: &Request, number: usize, process: usize) -> Said {
        let next = (process + 1) % self.processes.len();
        let (one, other) =
            tokio::join!(self.send(request, number, process), self.send(request, number, next));
        if one.is_decision() || one.is_unknown() && !other.is_decision() { one } else { other }
    }

    /// One to four seats beside each other; every fifth time among those that everybody wants.
    fn seats(&mut self) -> Vec<String> {
        let count = *[1, 2, 2, 3, 4].choose(&mut self.random).unwrap_or(&1);
        let seats = if self.random.random_ratio(1, 5) { HOT_SEATS } else { SEATS };
        let first = self.random.random_range(0..=seats - count);
        (first..first + count).map(seat_name).collect()
    }

    fn any(&mut self) -> usize {
        self.random.random_range(0..self.processes.len())
    }

    fn is_closed(&self) -> bool {
        *self.closed.borrow()
    }

    /// A while, or until the doors close.
    async fn pause(&mut self, ms: u64) {
        let mut closed = self.closed.clone();
        if timeout(Duration::from_millis(ms), closed.wait_for(|closed| *closed)).await.is_ok() {
            // Everyone gives up at once otherwise, and asks a last time all together.
            sleep(Duration::from_millis(ms / 4)).await;
        }
    }
}
