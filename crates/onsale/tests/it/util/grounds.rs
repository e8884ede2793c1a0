//! Events with standing areas, and what the database itself says of their places.

use reqwest::Method;
use serde_json::{Value, json};

use super::{App, Ask, Buyer, Hall, SEAT_PRICE, fresh_key, text};

/// What every standing place of the [`grounds`](App::grounds) costs, in cents.
pub(crate) const PLACE_PRICE: i64 = 1_500;

impl App {
    /// A draft with these seats, all of section A, row 1, and these standing areas (name, capacity, buckets); it has its prices.
    pub(crate) async fn drafted(&self, new: &Value, seats: &[&str], areas: &[(&str, u32, u16)]) -> Hall {
        let event_id = text(&self.operator.post("/v1/events", new).await.ok(201), "event_id").to_owned();
        let hall = Hall { event_id };
        let seat = |(index, id): (usize, &&str)| json!({ "seat_id": id, "seat": (index + 1).to_string(), "price_level": "Stalls" });
        let seats: Vec<Value> = seats.iter().enumerate().map(seat).collect();
        let area = |(name, capacity, buckets): &(&str, u32, u16)| json!({ "ga_area": name, "capacity": capacity, "buckets": buckets, "price_level": "Standing" });
        let sections = match seats.is_empty() {
            true => json!([]),
            false => json!([{ "name": "A", "rows": [{ "row": "1", "seats": seats }] }]),
        };
        let manifest = json!({
            "price_levels": [{ "name": "Stalls" }, { "name": "Standing" }],
            "sections": sections,
            "ga_areas": areas.iter().map(area).collect::<Vec<_>>(),
        });
        self.operator.put(&hall.path("/manifest"), &manifest).await.ok(200);
        let prices = json!({ "price_levels": [
            { "price_level": "Stalls", "amount_minor": SEAT_PRICE },
            { "price_level": "Standing", "amount_minor": PLACE_PRICE },
        ] });
        self.operator.put(&hall.path("/prices"), &prices).await.ok(200);
        hall
    }

    /// An event on sale with these seats and these standing areas: name, capacity, buckets.
    pub(crate) async fn grounds(&self, policy: Value, seats: &[&str], areas: &[(&str, u32, u16)]) -> Hall {
        let new = json!({
            "name": "An evening outside", "currency": "EUR", "starts_at": "2030-05-01T19:30:00Z", "policy": policy,
        });
        let hall = self.drafted(&new, seats, areas).await;
        self.operator.put(&hall.path("/on-sale"), &json!({ "state": "open" })).await.ok(200);
        hall
    }

    /// How many places of an area the seat map shows.
    pub(crate) async fn available(&self, hall: &Hall, area: &str) -> i64 {
        let map = self.buyers.get(&hall.path("/seats")).await.ok(200);
        let areas = map["ga"].as_array().expect("areas");
        let found = areas.iter().find(|shown| shown["ga_area"] == area);
        found.and_then(|shown| shown["available"].as_i64()).unwrap_or_else(|| panic!("no {area} in {map}"))
    }

    /// The operator's view of the standing areas.
    pub(crate) async fn areas(&self, hall: &Hall) -> Value {
        self.operator.get(&hall.path("/ga")).await.ok(200)
    }

    /// Lets capacity leave one bucket for another.
    pub(crate) fn transfer(&self, hall: &Hall, area: &str, (from, to): (u16, u16), quantity: u32) -> Ask {
        let body = json!({ "ga_area": area, "from_bucket": from, "to_bucket": to, "quantity": quantity });
        self.operator.post(&hall.path("/ga/transfers"), &body).key(&fresh_key())
    }

    /// Makes an access code, or changes it; the code as it stands.
    pub(crate) async fn code(&self, hall: &Hall, code: &Value) -> Value {
        self.operator.put(&hall.path("/access-codes"), code).await.ok(200)
    }

    /// Tickets held and bought with an access code.
    pub(crate) async fn code_in_use(&self, hall: &Hall, code: &str) -> i64 {
        let codes = self.operator.get(&hall.path("/access-codes")).await.ok(200);
        let found =
            codes["access_codes"].as_array().expect("codes").iter().find(|known| known["code"] == code);
        found
            .and_then(|known| known["tickets_in_use"].as_i64())
            .unwrap_or_else(|| panic!("no {code} in {codes}"))
    }

    /// Sets seats aside for an allocation, which is made if need be.
    pub(crate) async fn set_aside(&self, hall: &Hall, allocation: &str, seats: &[&str]) {
        self.operator.post(&hall.path("/allocations"), &json!({ "name": allocation })).await.ok(201);
        let aside = json!({ "seats": seats, "allocation": allocation });
        self.operator.ask(Method::PUT, &hall.path("/seats/allocation")).json(&aside).await.ok(200);
    }

    /// Asks for a refund of an order under a key of its own. `part` has `seats`, `ga` or `amount_minor`, or nothing.
    pub(crate) fn refund(&self, order_id: &str, part: &Value) -> Ask {
        self.refund_as(&fresh_key(), order_id, part)
    }

    /// Asks for a refund of an order under this key; resold unless the part says otherwise.
    pub(crate) fn refund_as(&self, key: &str, order_id: &str, part: &Value) -> Ask {
        let mut body = json!({ "reason": "the buyer is ill", "resell": true });
        for (member, value) in part.as_object().expect("an object") {
            body[member] = value.clone();
        }
        self.operator.post(&format!("/v1/orders/{order_id}/refunds"), &body).key(key)
    }

    /// The refunds of an order, the oldest first.
    pub(crate) async fn refunds(&self, order_id: &str) -> Vec<Value> {
        let refunds = self.operator.get(&format!("/v1/orders/{order_id}/refunds")).await.ok(200);
        refunds["refunds"].as_array().expect("refunds").clone()
    }
}

impl Hall {
    /// The path of something of the event.
    pub(crate) fn path(&self, rest: &str) -> String {
        format!("/v1/events/{}{rest}", self.event_id)
    }
}

impl Buyer {
    /// Asks for a hold with this body, under a key of its own.
    pub(crate) fn wish(&self, hall: &Hall, body: &Value) -> Ask {
        self.client.post(&hall.path("/holds"), body).key(&fresh_key())
    }

    /// Asks for places of one area.
    pub(crate) fn places(&self, hall: &Hall, area: &str, quantity: u32) -> Ask {
        self.wish(hall, &json!({ "ga": [{ "ga_area": area, "quantity": quantity }] }))
    }
}
