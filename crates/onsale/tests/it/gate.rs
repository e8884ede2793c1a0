//! Tickets and the gate: when there are any, who has them, and who gets in with them.

mod issuing;
mod money;
mod offline;
mod scans;

use serde_json::{Value, json};

use crate::util::{App, Ask, Buyer, Client, Hall, fresh_key, text};

/// A new key of a role, at the operators' listener.
async fn key(app: &App, role: &str) -> Client {
    let made = app.operator.post("/v1/keys", &json!({ "role": role, "name": "of a test" })).await.ok(201);
    app.operator.with_token(text(&made, "secret"))
}

/// Buys seats to the end; the order.
async fn bought(app: &App, buyer: &Buyer, hall: &Hall, seats: &[&str]) -> String {
    let order_id = buyer.pay(&buyer.hold(hall, seats).await.ok(201)).await;
    app.passes("payments", 2).await;
    buyer.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    order_id
}

/// The tickets of an order.
async fn tickets(buyer: &Buyer, order_id: &str) -> Vec<Value> {
    let answer = buyer.client.get(&format!("/v1/orders/{order_id}/tickets")).await.ok(200);
    answer["tickets"].as_array().expect("tickets").clone()
}

/// Buys seats and has their tickets made.
async fn ticketed(app: &App, buyer: &Buyer, hall: &Hall, seats: &[&str]) -> Vec<Value> {
    let order_id = bought(app, buyer, hall, seats).await;
    app.worker("issuer").await;
    let tickets = tickets(buyer, &order_id).await;
    assert_eq!(tickets.len(), seats.len(), "{tickets:?}");
    tickets
}

/// A scanner of a gate.
#[derive(Clone)]
struct Scanner {
    client: Client,
    gate: &'static str,
}

impl Scanner {
    async fn at(app: &App, gate: &'static str) -> Scanner {
        Scanner { client: key(app, "gate").await, gate }
    }

    /// Shows a barcode under an id, with more members.
    fn show(&self, scan_id: &str, barcode: &str, more: Value) -> Ask {
        let mut body = json!({ "scan_id": scan_id, "barcode": barcode, "gate": self.gate });
        let members = body.as_object_mut().expect("an object");
        members.extend(more.as_object().expect("an object").clone());
        self.client.post("/v1/gate/scans", &body)
    }

    /// Shows a barcode; what the gate is told.
    async fn scan(&self, barcode: &str) -> String {
        let told = self.show(&fresh_key(), barcode, json!({})).await.ok(200);
        text(&told, "result").to_owned()
    }

    /// Shows a barcode on the way out; what the gate is told.
    async fn scan_out(&self, barcode: &str) -> String {
        let told = self.show(&fresh_key(), barcode, json!({ "direction": "out" })).await.ok(200);
        text(&told, "result").to_owned()
    }

    fn upload(&self, scans: &[Value]) -> Ask {
        self.client.post("/v1/gate/uploads", &json!({ "scans": scans }))
    }

    /// Somebody let in without asking.
    fn let_in(&self, scan_id: &str, barcode: &str) -> Value {
        let at = "2026-01-01T10:00:00Z";
        json!({ "scan_id": scan_id, "barcode": barcode, "gate": self.gate, "scanned_at": at, "verdict": "ADMIT" })
    }
}

/// What a gate was told of each scan of an upload, with a star where it is a conflict.
fn told(uploaded: &Value) -> Vec<String> {
    let scans = uploaded["scans"].as_array().expect("scans").iter();
    let text = |scan: &Value| {
        let star = if scan["conflict"] == true { "*" } else { "" };
        format!("{} {}{star}", text(scan, "scan_id"), text(scan, "result"))
    };
    scans.map(text).collect()
}
