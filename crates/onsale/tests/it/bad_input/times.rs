//! Sales that aren't open: not yet, no longer, halted, or behind a waiting room.

use reqwest::Method;
use serde_json::json;

use crate::util::{App, Hall, text};

use super::Stage;

const OPENING_MS: i64 = 3_600_000;

#[tokio::test]
async fn a_sale_that_is_not_open_sells_nothing() {
    let stage = Stage::set().await;
    let operator = &stage.app.operator;
    let set = async |state: &str| {
        operator.put(&stage.path("/on-sale"), &json!({ "state": state })).await.ok(200);
    };
    set("paused").await;
    stage.refuses(stage.ada.hold(&stage.hall, &["A-2"]), 503, "event-paused", &[]).await;
    // The same key is free once the sale goes on.
    stage.refuses(stage.ada.hold_as("k-1", &stage.hall, &["A-2"]), 503, "event-paused", &[]).await;
    set("open").await;
    stage.ada.hold_as("k-1", &stage.hall, &["A-2"]).await.ok(201);
    set("closed").await;
    stage.refuses(stage.ada.hold(&stage.hall, &["A-3"]), 409, "event-not-on-sale", &[]).await;

    let new = json!({ "name": "A draft", "currency": "EUR", "starts_at": "2030-05-01T19:30:00Z" });
    let made = operator.post("/v1/events", &new).await.ok(201);
    let draft = Hall { event_id: text(&made, "event_id").to_owned() };
    stage.refuses(stage.ada.hold(&draft, &["A-1"]), 409, "event-not-on-sale", &[]).await;
    let path = format!("/v1/events/{}/manifest", draft.event_id);
    let csv = "seat_id,section,row,seat,category\nA-1,A,1,1,Stalls\n";
    operator.ask(Method::PUT, &path).body("text/csv", csv).await.ok(200);
    stage.refuses(stage.ada.hold(&draft, &["A-1"]), 409, "event-not-on-sale", &[]).await;
    set("open").await;
    stage.finish().await;
}

/// Who held before the sale was halted or closed may still pay.
#[tokio::test]
async fn a_hold_in_hand_outlives_its_sale() {
    let stage = Stage::set().await;
    for state in ["paused", "closed"] {
        let body = json!({ "state": state });
        stage.app.operator.put(&stage.path("/on-sale"), &body).await.ok(200);
    }
    let order_id = stage.ada.pay(&stage.hold).await;
    stage.app.passes("payments", 2).await;
    stage.ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    stage.app.operator.put(&stage.path("/on-sale"), &json!({ "state": "open" })).await.ok(200);
    stage.finish().await;
}

#[tokio::test]
async fn an_event_behind_a_waiting_room_asks_for_admission() {
    let stage = Stage::set().await;
    let queue = stage.app.hall(json!({ "admission": "queue" }), &["A-1"]).await;
    stage.refuses(stage.ada.hold(&queue, &["A-1"]), 403, "admission-required", &[]).await;
    for token in ["", "nonsense", &"x".repeat(4_000), &stage.ada_token] {
        let ask = stage.ada.hold(&queue, &["A-1"]).header("Admission-Token", token);
        stage.refuses(ask, 403, "admission-invalid", &[]).await;
    }
    // Elsewhere it is of no use and does no harm.
    stage.ada.hold(&stage.hall, &["A-2"]).header("Admission-Token", "nonsense").await.ok(201);
    stage.finish().await;
}

/// The first instant of a sale is in it; its last is not.
#[tokio::test]
async fn a_sale_begins_and_ends_to_the_millisecond() {
    let app = App::start().await;
    let now_ms = app.now_ms().await;
    let (opens_ms, ends_ms) = (now_ms + OPENING_MS, now_ms + 2 * OPENING_MS);
    let name = |ms| jiff::Timestamp::from_millisecond(ms).expect("an instant").to_string();
    let new = json!({
        "name": "A short sale", "currency": "EUR", "starts_at": "2030-05-01T19:30:00Z",
        "on_sale_at": name(opens_ms), "off_sale_at": name(ends_ms),
    });
    let hall = app.opened(&new, &["A-1", "A-2", "A-3"]).await;
    let ada = app.buyer().await;
    for (ms, seat, sells) in [
        (now_ms, "A-1", false),
        (opens_ms - 1, "A-1", false),
        (opens_ms, "A-1", true),
        (ends_ms - 1, "A-2", true),
        (ends_ms, "A-3", false),
        (ends_ms + OPENING_MS, "A-3", false),
    ] {
        app.set_clock(ms).await;
        let reply = ada.hold(&hall, &[seat]).await;
        match sells {
            true => drop(reply.ok(201)),
            false => drop(reply.problem(409, "event-not-on-sale")),
        }
    }
    app.finish().await;
}
