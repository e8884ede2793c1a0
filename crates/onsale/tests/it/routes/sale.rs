//! A sale from the first call to the last, and the form of every answer on the way (API.md).

mod access;
mod refusals;
mod seat_map;

use reqwest::Method;
use serde_json::{Value, json};

use crate::util::{App, Hall, text};

/// The instant at which these sales begin, and how a time is written.
const BEGIN: &str = "2029-12-01T10:00:00.123Z";

/// Checks that an object has these members and no others.
#[track_caller]
pub(super) fn members(object: &Value, names: &str) {
    let mut want: Vec<&str> = names.split_whitespace().collect();
    want.sort_unstable();
    let mut has: Vec<&str> = object.as_object().expect("an object").keys().map(String::as_str).collect();
    has.sort_unstable();
    assert_eq!(has, want, "{object}");
}

#[track_caller]
fn is_id(object: &Value, member: &str, prefix: &str) {
    let id = text(object, member);
    assert!(id.starts_with(prefix) && id.len() > prefix.len() + 10, "{id}");
}

const EVENT: &str = "event_id name currency starts_at on_sale_at off_sale_at timezone created_at status policy version \
                     manifest_version price_version seats home bookable";
const HOLD: &str =
    "hold_id event_id account_id status expires_at seats ga total_minor currency price_version";
const ORDER: &str = "order_id hold_id event_id order_status payment_status seats ga total_minor refunded_minor \
                     returned_seats returned_ga currency tickets_ready";
const MANIFEST: &str =
    "seat_id,section,row,seat,category\n007,Stalls,A,7,Front\n7,Stalls,A,8,Front\nZ-1,Balcony,B,1,Back\n";

/// An event at two prices with the seats 007, 7 and Z-1, each answer checked.
async fn put_on_sale(app: &App) -> Hall {
    let new = json!({
        "name": "Opening night", "currency": "EUR", "starts_at": "2030-01-01T19:30:00+01:00",
        "on_sale_at": "2029-12-01T10:00:00Z", "off_sale_at": "2030-01-01T18:00:00Z", "timezone": "Europe/Vienna",
    });
    let event = app.operator.post("/v1/events", &new).await.ok(201);
    members(&event, EVENT);
    is_id(&event, "event_id", "evt_");
    let defaults = json!({
        "hold_ttl_s": 300, "payment_grace_s": 120, "seats_per_hold_max": 6, "tickets_per_account_max": 6,
        "admission": "open", "queue_order": "fifo", "shoppers_max": 10_000, "in_doubt": "keep",
        "orphan_seats": "allow", "payment": "authorize_then_capture",
        "payment_pending_per_account_max": 6, "payment_pending_max": 10_000, "reentry": false,
    });
    assert_eq!(event["policy"], defaults);
    assert_eq!((&event["status"], &event["seats"]), (&json!("DRAFT"), &json!(0)));
    assert_eq!(text(&event, "starts_at"), "2030-01-01T18:30:00.000Z");
    assert_eq!(text(&event, "on_sale_at"), "2029-12-01T10:00:00.000Z");
    assert_eq!(text(&event, "created_at"), BEGIN);
    assert_eq!((&event["currency"], &event["timezone"]), (&json!("EUR"), &json!("Europe/Vienna")));

    let hall = Hall { event_id: text(&event, "event_id").to_owned() };
    let path = format!("/v1/events/{}", hall.event_id);
    let manifest = app.operator.ask(Method::PUT, &format!("{path}/manifest")).body("text/csv", MANIFEST);
    let taken =
        json!({ "seats": 3, "ga_areas": 0, "price_levels": ["Front", "Back"], "warnings": [], "version": 1 });
    assert_eq!(manifest.await.ok(200), taken);
    for (version, front) in [(1, 9_900), (2, 10_000)] {
        let prices = json!({ "price_levels": [
            { "price_level": "Front", "amount_minor": front }, { "price_level": "Back", "amount_minor": 4_500 },
        ] });
        let set = app.operator.put(&format!("{path}/prices"), &prices).await.ok(200);
        assert_eq!(set, json!({ "price_version": version }), "every call makes a new version");
    }
    let open = app.operator.put(&format!("{path}/on-sale"), &json!({ "state": "open" })).await.ok(200);
    assert_eq!(
        (&open["status"], &open["seats"], &open["price_version"]),
        (&json!("OPEN"), &json!(3), &json!(2))
    );
    hall
}

async fn begin() -> App {
    let app = App::start().await;
    let clock = app.operator.post("/_test/clock", &json!({ "set": BEGIN })).await.ok(200);
    assert_eq!(text(&clock, "now"), BEGIN);
    app
}

#[tokio::test]
async fn a_sale_from_the_first_call_to_the_last() {
    let app = begin().await;
    let hall = put_on_sale(&app).await;
    let path = format!("/v1/events/{}", hall.event_id);
    let event = app.buyers.get(&path).await.ok(200);
    members(&event, EVENT);
    assert_eq!(app.buyers.get("/v1/events").await.ok(200), json!({ "events": [event] }));

    let session = app.buyers.post("/v1/sessions", &json!({})).await.ok(201);
    members(&session, "session_token account_id expires_at");
    assert_eq!(text(&session, "expires_at"), "2029-12-02T10:00:00.123Z");
    let ada = app.buyer().await;
    assert!(ada.account_id.starts_with("acc_"));

    // The order of the wish doesn't matter; seats come in ordinal order, by the organiser's own ids.
    let placed = ada.hold_as("\"first\"", &hall, &["Z-1", "007"]).await;
    assert!(!placed.replayed());
    let hold = placed.clone().ok(201);
    members(&hold, HOLD);
    is_id(&hold, "hold_id", "hld_");
    let seats = json!([
        { "seat_id": "007", "price_level": "Front", "amount_minor": 10_000 },
        { "seat_id": "Z-1", "price_level": "Back", "amount_minor": 4_500 },
    ]);
    let want = json!({
        "hold_id": hold["hold_id"], "event_id": hall.event_id, "account_id": ada.account_id, "status": "ACTIVE",
        "expires_at": "2029-12-01T10:05:00.123Z", "seats": seats, "ga": [], "total_minor": 14_500, "currency": "EUR",
        "price_version": 2,
    });
    assert_eq!(hold, want);
    assert_eq!(ada.hold_now(&hold).await, want);
    assert_eq!(app.seat_states(&hall).await, "101");
    // Quoted or bare, it is the same key.
    let again = ada.hold_as("first", &hall, &["Z-1", "007"]).await;
    assert!(again.replayed());
    assert_eq!((again.status, &again.text), (201, &placed.text));

    let checkout = format!("/v1/holds/{}/checkout", text(&hold, "hold_id"));
    let card = json!({
        "payment_method_token": "pm_card_visa", "email": "ada@shop.example", "return_url": "https://shop.example/done",
    });
    let begun = ada.client.post(&checkout, &card).key("pay").await;
    assert!(!begun.replayed());
    let again = ada.client.post(&checkout, &card).key("pay").await;
    assert!(again.replayed());
    assert_eq!((again.status, &again.text), (202, &begun.text));
    let begun = begun.ok(202);
    members(&begun, "order_id order_status payment_status");
    is_id(&begun, "order_id", "ord_");
    assert_eq!(
        (&begun["order_status"], &begun["payment_status"]),
        (&json!("AWAITING_PAYMENT"), &json!("PENDING"))
    );
    let order_id = text(&begun, "order_id").to_owned();
    let pending = ada.hold_now(&hold).await;
    assert_eq!(pending["status"], "PAYMENT_PENDING");
    assert_eq!(text(&pending, "expires_at"), "2029-12-01T10:07:00.123Z", "the grace is added, once");

    let order = ada.expect_order(&order_id, "AWAITING_PAYMENT PENDING").await;
    members(&order, ORDER);
    for (member, value) in [
        ("hold_id", &hold["hold_id"]),
        ("event_id", &json!(hall.event_id)),
        ("seats", &seats),
        ("ga", &json!([])),
        ("total_minor", &json!(14_500)),
        ("currency", &json!("EUR")),
        ("tickets_ready", &json!(false)),
    ] {
        assert_eq!(&order[member], value, "{member}");
    }
    app.worker("payments").await;
    ada.expect_order(&order_id, "CONFIRMED AUTHORIZED").await;
    assert_eq!(app.seat_states(&hall).await, "202");
    app.worker("payments").await;
    ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    assert_eq!(ada.hold_now(&hold).await["status"], "CONVERTED");
    assert_eq!(app.provider.money(&order_id).await, [14_500, 14_500, 0, 0]);
    let sent = app.provider.calls("authorize", &order_id).await;
    assert_eq!(sent.len(), 1);
    assert_eq!((&sent[0]["amount_minor"], &sent[0]["currency"]), (&json!(14_500), &json!("EUR")));
    assert!(text(&sent[0], "idempotency_key").starts_with("op_"), "{}", sent[0]);
    // What was begun is told again as it was.
    assert_eq!(ada.client.post(&checkout, &card).key("pay").await.text, again.text);

    ada.hold(&hall, &["7"]).await.ok(201);
    let put = app.operator.put(&format!("{path}/on-sale"), &json!({ "state": "closed" }));
    assert_eq!(put.await.ok(200)["status"], "CLOSED");
    let report = json!({
        "available": 0, "held": 1, "sold": 2, "not_for_sale": 0, "orders": 1, "orders_awaiting_payment": 0,
        "orders_cancelled": 0, "orders_expired": 0, "gross_minor": 14_500, "captured_minor": 14_500,
        "returning_minor": 0, "refunded_minor": 0, "currency": "EUR", "cases_open": 0, "ga_capacity": 0, "ga_held": 0,
        "ga_sold": 0, "tickets_issued": 0, "tickets_admitted": 0,
    });
    assert_eq!(app.report(&hall).await, report);
    app.finish().await;
}

/// The long poll answers when the order changes, and with what it is then.
#[tokio::test]
async fn an_order_is_waited_for_until_it_changes() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1"]).await;
    let ada = app.buyer().await;
    let hold = ada.hold(&hall, &["A-1"]).await.ok(201);
    let order_id = ada.pay(&hold).await;
    let path = format!("/v1/orders/{order_id}?wait_s=30");
    let waiting = tokio::spawn({
        let client = ada.client.clone();
        async move { client.get(&path).await.ok(200) }
    });
    app.worker("payments").await;
    let order = waiting.await.expect("an order");
    assert_eq!(
        (&order["order_status"], &order["payment_status"]),
        (&json!("CONFIRMED"), &json!("AUTHORIZED"))
    );
    ada.client.get(&format!("/v1/orders/{order_id}?wait_s=31")).await.problem(422, "validation-failed");
    app.finish().await;
}

/// A hold can be given back twice; what was paid can't be given back.
#[tokio::test]
async fn a_hold_is_given_back_once_and_again() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1", "A-2"]).await;
    let ada = app.buyer().await;
    let hold = ada.hold(&hall, &["A-1"]).await.ok(201);
    for _ in 0..2 {
        let reply = ada.release(&hold).await;
        assert_eq!((reply.status, reply.text.as_str()), (204, ""));
        assert_eq!(ada.hold_now(&hold).await["status"], "RELEASED");
    }
    assert_eq!(app.seat_states(&hall).await, "00");
    ada.checkout(&hold, "pm_card_visa").await.problem(409, "hold-not-active");
    // Its id is never used again, and giving back the old one does nothing to the new one.
    let anew = ada.hold(&hall, &["A-1"]).await.ok(201);
    assert_ne!(anew["hold_id"], hold["hold_id"]);
    ada.release(&hold).await.ok(204);
    assert_eq!(app.seat_states(&hall).await, "10");

    let order_id = ada.pay(&anew).await;
    ada.release(&anew).await.problem(409, "payment-pending");
    app.passes("payments", 2).await;
    ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    ada.release(&anew).await.problem(409, "hold-not-active");
    ada.checkout(&anew, "pm_card_visa").await.problem(409, "hold-not-active");

    // Over by the clock, it is shown as over though nothing has swept it; giving it back says the same.
    let last = ada.hold(&hall, &["A-2"]).await.ok(201);
    app.advance(300_000).await;
    assert_eq!(ada.hold_now(&last).await["status"], "EXPIRED");
    ada.checkout(&last, "pm_card_visa").await.problem(409, "hold-expired");
    ada.release(&last).await.ok(204);
    assert_eq!(app.seat_states(&hall).await, "20");
    app.finish().await;
}
