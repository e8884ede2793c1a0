//! The end of the sale, as its buyers, the books and the provider each know it. However often a server was killed on the
//! way, it is the same picture.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;

use crate::util::{App, SEAT_PRICE, text};

use super::script::STRANGER;
use super::stage::{Cast, Ledger};

/// The seats of the halls, 2 where sold, and the money taken for them; the orders, what the provider has kept of their
/// money, how many objects it has for it, and under how many keys it was asked for; the holds; the open cases.
const PICTURE: &str = "\
seats 2222222, taken 17500
seats 0, taken 0
seats 20, taken 2500
ada A-1 A-2 A-3 CONFIRMED CAPTURED, kept 7500, 1 objects, 1 cards, 1 captures
ben A-4 A-5 CONFIRMED CAPTURED, kept 5000, 2 objects, 2 cards, 1 captures
cy A-6 CONFIRMED CAPTURED, kept 2500, 1 objects, 1 cards, 1 captures
eve B-1 EXPIRED VOIDED, kept 0, 1 objects, 1 cards, 0 captures
gus C-1 CONFIRMED CAPTURED, kept 2500, 1 objects, 1 cards, 0 captures
hal C-2 EXPIRED REFUNDED, kept 0, 1 objects, 1 cards, 0 captures
ida A-7 CONFIRMED CAPTURED, kept 2500, 1 objects, 1 cards, 1 captures
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

/// Compares the three with each other, and with the picture.
pub(super) async fn check(app: &App, cast: &Cast, ledger: &Ledger) {
    let orders = consistent(app, cast, ledger).await;
    let holds = ledger.holds.lock().expect("the ledger").clone();
    let mut picture = String::new();
    for hall in &cast.halls {
        let report = app.report(hall).await;
        let _ =
            writeln!(picture, "seats {}, taken {}", app.seat_states(hall).await, report["captured_minor"]);
    }
    for (who, line) in orders {
        let _ = writeln!(picture, "{who} {line}");
    }
    for (key, hold) in &holds {
        let now = app.operator.get(&format!("/v1/holds/{}", text(hold, "hold_id"))).await.ok(200);
        assert_eq!(now["seats"], hold["seats"], "{key}");
        let _ = writeln!(picture, "{key}: {}", text(&now, "status"));
    }
    let _ = writeln!(picture, "cases: {}", app.open_kinds().await);
    assert_eq!(picture, PICTURE);
}

/// Compares the clients' ledger, the books and the provider's ledger, whatever has come of the sale: each has the same
/// orders, no seat is sold twice, no money is anywhere but where seats are sold for it. A line about each order.
pub(super) async fn consistent(app: &App, cast: &Cast, ledger: &Ledger) -> BTreeMap<&'static str, String> {
    let orders = ledger.orders.lock().expect("the ledger").clone();
    let mut booked = 0;
    for hall in &cast.halls {
        let report = app.report(hall).await;
        let number = |name: &str| report[name].as_i64().unwrap_or_else(|| panic!("no {name} in {report}"));
        booked += number("orders") + number("orders_expired") + number("orders_cancelled");
    }
    assert!(booked <= orders.len() as i64, "the books have orders that no client knows of");
    for entry in &app.provider.ledger().await {
        let order_id = text(entry, "order_id");
        let known = order_id == STRANGER || orders.values().any(|known| known == order_id);
        assert!(known, "the provider has money of an order that no client knows of: {entry}");
    }
    let open = app.open_kinds().await;
    assert!(matches!(open.as_str(), "" | "orphan_payment"), "cases are open: {open}");
    let log = app.provider.log().await;
    let mut sold = BTreeSet::new();
    let mut lines = BTreeMap::new();
    for (who, order_id) in &orders {
        let order = app.operator.get(&format!("/v1/orders/{order_id}")).await.ok(200);
        let seats: Vec<&str> =
            order["seats"].as_array().expect("seats").iter().map(|seat| text(seat, "seat_id")).collect();
        let (status, payment) = (text(&order, "order_status"), text(&order, "payment_status"));
        let [authorised, captured, voided, refunded] = app.provider.money(order_id).await;
        let (kept, set_aside) = (captured - refunded, authorised - captured - voided);
        let confirmed = status == "CONFIRMED";
        let tickets = app.operator.get(&format!("/v1/orders/{order_id}/tickets")).await.ok(200);
        let tickets = tickets["tickets"].as_array().expect("tickets").len();
        assert_eq!(tickets, if confirmed { seats.len() } else { 0 }, "the tickets of {who}: {order}");
        let price = if confirmed { SEAT_PRICE * seats.len() as i64 } else { 0 };
        assert_eq!((kept, set_aside), (price, 0), "the money of {who}: {order}");
        for seat in seats.iter().filter(|_| confirmed) {
            assert!(sold.insert(seat.to_string()), "{seat} was sold twice");
        }
        let [cards, captures] = ["authorize", "capture"].map(|operation| keys(&log, operation, order_id));
        let (seats, objects) = (seats.join(" "), app.provider.intents(order_id).await.len());
        let line = format!(
            "{seats} {status} {payment}, kept {kept}, {objects} objects, {cards} cards, {captures} captures"
        );
        lines.insert(*who, line);
    }
    lines
}

/// Under how many keys an operation was sent for an order.
fn keys(log: &[Value], operation: &str, order_id: &str) -> usize {
    let sent = log.iter().filter(|call| call["operation"] == operation && call["order_id"] == order_id);
    sent.map(|call| text(call, "idempotency_key")).collect::<BTreeSet<_>>().len()
}
