//! An event, as its operator makes it: seats, a price, and the opening.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Context;
use reqwest::Method;
use serde_json::json;

use super::client::Client;
use crate::wait::until;

/// More than are sold while any fault lasts.
pub(crate) const SEATS: usize = 10_000;
/// What everybody wants.
pub(crate) const HOT_SEATS: usize = 24;
const PRICE_MINOR: i64 = 2_500;

#[derive(Clone)]
pub(crate) struct Event {
    pub(crate) id: String,
}

impl Event {
    /// Makes an event and opens its sale.
    pub(crate) async fn open(operator: &Client, name: &str) -> anyhow::Result<Event> {
        let new = json!({
            "name": format!("Chaos: {name}"), "currency": "EUR", "starts_at": "2099-05-01T19:30:00Z",
            "policy": { "hold_ttl_s": 60, "payment_grace_s": 120 },
        });
        let key = format!("event-{name}");
        let make = async || operator.ask(Method::POST, "/v1/events", Some(&key), Some(&new)).await.ok(201);
        let made = until("an event is made", Duration::from_secs(60), make).await?;
        let id = made["event_id"].as_str().context("an event has an id")?.to_owned();
        let mut csv = String::from("seat_id,section,row,seat,category\n");
        for seat in 0..SEATS {
            let _ = writeln!(csv, "{},Stalls,{},{},Stalls", seat_name(seat), seat / 50, seat % 50);
        }
        let path = format!("/v1/events/{id}");
        operator.put(&format!("{path}/manifest"), "text/csv", csv).await?;
        let prices = json!({ "price_levels": [{ "price_level": "Stalls", "amount_minor": PRICE_MINOR }] });
        operator.put(&format!("{path}/prices"), "application/json", prices.to_string()).await?;
        let open = json!({ "state": "open" });
        operator.put(&format!("{path}/on-sale"), "application/json", open.to_string()).await?;
        Ok(Event { id })
    }
}

pub(crate) fn seat_name(seat: usize) -> String {
    format!("S-{seat}")
}
