//! Our books against the provider's: what it believes of the money must be what the orders say.

use std::collections::HashMap;

use serde_json::Value;

use super::{App, text};

/// Sums of one event's orders.
#[derive(Default, Debug, PartialEq)]
struct Sums {
    orders: i64,
    sold: i64,
    gross_minor: i64,
    captured_minor: i64,
}

/// Compares order by order, then event by event.
pub(super) async fn compare(app: &App, strangers: bool) {
    let mut events: HashMap<String, Sums> = HashMap::new();
    for entry in app.provider.ledger().await {
        let order_id = entry["order_id"].as_str().unwrap_or("unnamed");
        let reply = app.operator.get(&format!("/v1/orders/{order_id}")).await;
        if reply.status == 404 {
            assert!(strangers, "the provider has money of an order we don't know: {entry}");
            continue;
        }
        let order = reply.ok(200);
        compare_order(&order, &entry);
        if order["order_status"] == "CONFIRMED" {
            let sums = events.entry(text(&order, "event_id").to_owned()).or_default();
            let total = number(&order, "total_minor");
            sums.orders += 1;
            let count = |member: &str| order[member].as_array().expect("seats").len() as i64;
            sums.sold += count("seats") - count("returned_seats");
            sums.gross_minor += total;
            sums.captured_minor += if order["payment_status"] == "CAPTURED" { total } else { 0 };
        }
    }
    let listed = app.operator.get("/v1/events").await.ok(200);
    for event in listed["events"].as_array().expect("events") {
        let event_id = text(event, "event_id");
        let report = app.operator.get(&format!("/v1/events/{event_id}/report")).await.ok(200);
        let [orders, sold, gross_minor, captured_minor] =
            ["orders", "sold", "gross_minor", "captured_minor"].map(|member| number(&report, member));
        let reported = Sums { orders, sold, gross_minor, captured_minor };
        assert_eq!(reported, events.remove(event_id).unwrap_or_default(), "report of {event_id}: {report}");
    }
}

fn compare_order(order: &Value, entry: &Value) {
    let [authorised, captured, voided, refunded] =
        ["authorised", "captured", "voided", "refunded"].map(|member| number(entry, member));
    let (kept, set_aside) = (captured - refunded, authorised - captured - voided);
    let total = number(order, "total_minor");
    assert!(kept >= 0 && set_aside >= 0 && kept + set_aside <= authorised, "{entry}");
    assert_eq!(order["currency"], entry["currency"], "{order} {entry}");
    let agree = match (text(order, "order_status"), text(order, "payment_status")) {
        ("CONFIRMED", "CAPTURED") => kept == total - number(order, "refunded_minor") && set_aside == 0,
        // Asked for, and perhaps done already, with the answer lost.
        ("CONFIRMED", "REFUND_PENDING") => kept <= total - number(order, "refunded_minor") && set_aside == 0,
        // Its capture may be done already, with the answer lost.
        ("CONFIRMED", "AUTHORIZED") => kept + set_aside == total,
        ("CONFIRMED", _) => false,
        (_, "AUTHORIZED" | "CAPTURED") => false,
        (_, "VOIDED" | "REFUNDED" | "DECLINED") => kept == 0 && set_aside == 0,
        // Not known to be over, so anything up to the whole may be there.
        _ => kept + set_aside <= total,
    };
    assert!(agree, "the books differ: ours {order}, the provider's {entry}");
}

fn number(value: &Value, member: &str) -> i64 {
    value[member].as_i64().unwrap_or_else(|| panic!("no number {member:?} in {value}"))
}
