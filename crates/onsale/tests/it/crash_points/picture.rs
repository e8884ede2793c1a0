//! The end of the sale, as its buyers, the books and the provider each know it. However often a server was killed on the
//! way, it is the same picture.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;

use crate::util::{App, text};

use super::script::STRANGER;
use super::stage::{Cast, Ledger};

/// What is left of the money of an order, and under how many keys it was asked for.
const PICTURE: &str = "\
seats 2222222, taken 17500
seats 0, taken 0
seats 20, taken 2500
ada A-1 A-2 A-3 CONFIRMED CAPTURED, kept 7500, set aside 0, 1 cards, 1 captures
ben A-4 A-5 CONFIRMED CAPTURED, kept 5000, set aside 0, 2 cards, 1 captures
cy A-6 CONFIRMED CAPTURED, kept 2500, set aside 0, 1 cards, 1 captures
eve B-1 EXPIRED VOIDED, kept 0, set aside 0, 1 cards, 0 captures
gus C-1 CONFIRMED CAPTURED, kept 2500, set aside 0, 1 cards, 0 captures
hal C-2 EXPIRED REFUNDED, kept 0, set aside 0, 1 cards, 0 captures
ida A-7 CONFIRMED CAPTURED, kept 2500, set aside 0, 1 cards, 1 captures
ada-holds: CONVERTED
ben-holds: CONVERTED
cy-holds: CONVERTED
dan-holds: EXPIRED
eve-holds: EXPIRED
fay-holds: RELEASED
gus-holds: CONVERTED
hal-holds: EXPIRED
ida-holds: CONVERTED
cases: orphan_payment
";

/// Compares the three, and all of them with the picture.
pub(super) async fn check(app: &App, cast: &Cast, ledger: &Ledger) {
    let (orders, holds) = {
        let orders = ledger.orders.lock().expect("the ledger").clone();
        (orders, ledger.holds.lock().expect("the ledger").clone())
    };
    let mut picture = String::new();
    let mut booked = 0;
    for hall in &cast.halls {
        let report = app.report(hall).await;
        let number = |name: &str| report[name].as_i64().unwrap_or_else(|| panic!("no {name} in {report}"));
        booked += number("orders") + number("orders_expired") + number("orders_cancelled");
        let _ =
            writeln!(picture, "seats {}, taken {}", app.seat_states(hall).await, number("captured_minor"));
    }
    // Nobody has paid for what no client knows of, in our books or in the provider's.
    assert_eq!(booked, orders.len() as i64, "orders that no client knows of");
    let provider = app.provider.ledger().await;
    for entry in &provider {
        let order_id = text(entry, "order_id");
        let known = order_id == STRANGER || orders.values().any(|known| known == order_id);
        assert!(known, "the provider has money of an order that no client knows of: {entry}");
    }
    let log = app.provider.log().await;
    for (who, order_id) in &orders {
        let order = app.operator.get(&format!("/v1/orders/{order_id}")).await.ok(200);
        let seats: Vec<&str> =
            order["seats"].as_array().expect("seats").iter().map(|seat| text(seat, "seat_id")).collect();
        let (status, payment) = (text(&order, "order_status"), text(&order, "payment_status"));
        let [authorised, captured, voided, refunded] = app.provider.money(order_id).await;
        let (kept, set_aside) = (captured - refunded, authorised - captured - voided);
        let [cards, captures] = ["authorize", "capture"].map(|operation| keys(&log, operation, order_id));
        let _ = writeln!(
            picture,
            "{who} {} {status} {payment}, kept {kept}, set aside {set_aside}, {cards} cards, {captures} captures",
            seats.join(" ")
        );
    }
    for (key, hold) in &holds {
        let now = app.operator.get(&format!("/v1/holds/{}", text(hold, "hold_id"))).await.ok(200);
        assert_eq!(now["seats"], hold["seats"], "{key}");
        let _ = writeln!(picture, "{key}: {}", text(&now, "status"));
    }
    let _ = writeln!(picture, "cases: {}", app.open_kinds().await);
    assert_eq!(picture, PICTURE);
    sold_once(&orders, app).await;
}

/// Under how many keys an operation was sent for an order.
fn keys(log: &[Value], operation: &str, order_id: &str) -> usize {
    let sent = log.iter().filter(|call| call["operation"] == operation && call["order_id"] == order_id);
    sent.map(|call| text(call, "idempotency_key")).collect::<BTreeSet<_>>().len()
}

/// No seat is in two confirmed orders.
async fn sold_once(orders: &BTreeMap<&'static str, String>, app: &App) {
    let mut sold = BTreeSet::new();
    for order_id in orders.values() {
        let order = app.operator.get(&format!("/v1/orders/{order_id}")).await.ok(200);
        if order["order_status"] == "CONFIRMED" {
            for seat in order["seats"].as_array().expect("seats") {
                let seat = format!("{} {}", text(&order, "event_id"), text(seat, "seat_id"));
                assert!(sold.insert(seat.clone()), "{seat} was sold twice");
            }
        }
    }
}
