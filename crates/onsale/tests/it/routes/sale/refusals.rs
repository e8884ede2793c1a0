//! What a buyer is refused, and with which words.

use serde_json::json;

use super::{begin, put_on_sale};
use crate::util::{App, fresh_key, text};

#[tokio::test]
async fn keys_are_needed_bound_to_one_request_and_remembered_once_decided() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1", "A-2", "A-3"]).await;
    let (ada, ben) = (app.buyer().await, app.buyer().await);
    let path = format!("/v1/events/{}/holds", hall.event_id);
    let wish = json!({ "seats": ["A-1"] });
    ada.client.post(&path, &wish).await.problem(400, "idempotency-key-missing");
    for wrong in ["", "two words", "\"open", "ä"] {
        let refused = ada.client.post(&path, &wish).key(wrong).await;
        assert!(matches!(refused.status, 400 | 422), "{wrong:?}: {}", refused.text);
    }
    ada.client.post(&path, &wish).key(&"k".repeat(256)).await.problem(422, "validation-failed");
    let hold = ada.client.post(&path, &wish).key(&"k".repeat(255)).await.ok(201);

    // Not stored: what was refused before it was decided.
    ada.hold_as("one", &hall, &["A-9"]).await.problem(422, "validation-failed");
    app.buyers.post(&path, &wish).key("one").await.problem(401, "unauthenticated");
    ada.hold_as("one", &hall, &["A-2"]).await.ok(201);
    ada.hold_as("one", &hall, &["A-3"]).await.problem(422, "idempotency-key-reused");
    // Another account's key, and another route's, is another key.
    ben.hold_as("one", &hall, &["A-3"]).await.ok(201);
    ada.checkout_as("one", &hold, "pm_card_visa").await.ok(202);
    ada.checkout_as("one", &hold, "pm_card_mastercard").await.problem(422, "idempotency-key-reused");

    // Stored: a decided refusal, even after the seat is free again.
    let lost = ben.hold_as("two", &hall, &["A-2"]).await;
    assert!(!lost.replayed());
    let held = ada.hold_as("one", &hall, &["A-2"]).await.ok(201);
    ada.release(&held).await.ok(204);
    let again = ben.hold_as("two", &hall, &["A-2"]).await;
    assert!(again.replayed());
    assert_eq!((again.status, &again.text), (409, &lost.text));
    again.problem(409, "seat-unavailable");
    // And the hold that was given back is told again as it was placed.
    let told = ada.hold_as("one", &hall, &["A-2"]).await;
    assert!(told.replayed());
    assert_eq!(told.ok(201), held);
    ben.hold(&hall, &["A-2"]).await.ok(201);
    app.finish().await;
}

#[tokio::test]
async fn each_refusal_has_its_code_and_says_what_stood_in_the_way() {
    let app = App::start().await;
    let policy = json!({ "seats_per_hold_max": 3, "tickets_per_account_max": 4 });
    let hall = app.hall(policy, &["A-1", "A-2", "A-3", "A-4", "A-5", "A-6", "A-7"]).await;
    let (ada, ben) = (app.buyer().await, app.buyer().await);
    let hold = ada.hold(&hall, &["A-1", "A-2", "A-3"]).await.ok(201);
    let blocked = ben.hold(&hall, &["A-3", "A-4", "A-2"]).await.problem(409, "seat-unavailable");
    assert_eq!((&blocked["seats"], &blocked["retryable"]), (&json!(["A-2", "A-3"]), &json!(false)));
    assert_eq!(app.seat_states(&hall).await, "1110000", "all or none");
    let many = ben.hold(&hall, &["A-4", "A-5", "A-6", "A-7"]).await.problem(422, "too-many-seats");
    assert_eq!(many["limit"], 3);
    let limit = ada.hold(&hall, &["A-4", "A-5"]).await.problem(409, "account-limit");
    assert_eq!((&limit["limit"], &limit["in_use"]), (&json!(4), &json!(3)));

    let path = format!("/v1/events/{}", hall.event_id);
    for (body, pointer) in [
        (json!({ "seats": ["A-4", "A-44"] }), "/seats/1"),
        (json!({ "seats": ["A-4", "A-4"] }), "/seats/1"),
        (json!({ "seats": [] }), "/seats"),
        (json!({}), "/seats"),
        (json!({ "seat": ["A-4"] }), "/seat"),
        (json!({ "seats": "A-4" }), "/seats"),
        (json!({ "seats": [4] }), "/seats/0"),
        (json!({ "ga": [{ "ga_area": "floor", "quantity": 1 }] }), "/ga/0/ga_area"),
        (json!({ "best_available": { "quantity": 0 } }), "/best_available/quantity"),
    ] {
        let refused = ben.client.post(&format!("{path}/holds"), &body).key(&fresh_key()).await;
        let refused = refused.problem(422, "validation-failed");
        let error = &refused["errors"][0];
        assert_eq!(text(error, "pointer"), pointer, "{body}: {refused}");
        assert!(!text(error, "detail").is_empty());
    }
    let odd = ben.client.ask(reqwest::Method::POST, &format!("{path}/holds")).key("k");
    odd.body("text/plain", "{}").await.problem(415, "unsupported-media-type");
    let huge = json!({ "seats": ["x".repeat(70_000)] });
    ben.client.post(&format!("{path}/holds"), &huge).key("k").await.problem(413, "payload-too-large");
    let checkout = format!("/v1/holds/{}/checkout", text(&hold, "hold_id"));
    for (body, pointer) in [
        (json!({}), "/payment_method_token"),
        (json!({ "payment_method_token": "" }), "/payment_method_token"),
        (json!({ "payment_method_token": "pm_x", "amount_minor": 1 }), "/amount_minor"),
        (json!({ "payment_method_token": "pm_x", "email": "nobody" }), "/email"),
        (json!({ "payment_method_token": "pm_x", "return_url": "javascript:alert(1)" }), "/return_url"),
    ] {
        let refused =
            ada.client.post(&checkout, &body).key(&fresh_key()).await.problem(422, "validation-failed");
        assert_eq!(text(&refused["errors"][0], "pointer"), pointer, "{body}: {refused}");
    }

    // A price that has changed is told before money moves; the hold stands as it was.
    let prices = json!({ "price_levels": [{ "price_level": "Stalls", "amount_minor": 2_600 }] });
    app.operator.put(&format!("{path}/prices"), &prices).await.ok(200);
    ada.checkout(&hold, "pm_card_visa").await.problem(409, "price-changed");
    assert_eq!(ada.hold_now(&hold).await["status"], "ACTIVE");

    for (state, status, code) in [("paused", 503, "event-paused"), ("closed", 409, "event-not-on-sale")] {
        app.operator.put(&format!("{path}/on-sale"), &json!({ "state": state })).await.ok(200);
        ben.hold(&hall, &["A-5"]).await.problem(status, code);
    }
    // What is in hand stays, and may be given back.
    ada.release(&hold).await.ok(204);
    assert!(app.provider.log().await.is_empty(), "nothing was asked of the provider");
    app.finish().await;
}

/// Outside the times of its sale an event sells nothing: at the first instant it does, at the last it doesn't.
#[tokio::test]
async fn a_sale_begins_and_ends_at_its_times() {
    let app = begin().await;
    let hall = put_on_sale(&app).await;
    let ada = app.buyer().await;
    let draft = json!({ "name": "Later", "currency": "EUR", "starts_at": "2030-05-01T19:30:00Z" });
    let draft = app.operator.post("/v1/events", &draft).await.ok(201);
    let holds = format!("/v1/events/{}/holds", text(&draft, "event_id"));
    let wish = json!({ "seats": ["7"] });
    ada.client.post(&holds, &wish).key("draft").await.problem(409, "event-not-on-sale");
    app.operator
        .put(&format!("/v1/events/{}/on-sale", text(&draft, "event_id")), &json!({ "state": "open" }))
        .await
        .problem(409, "action-not-possible");

    // 2030-01-01T18:00:00Z, and a millisecond before.
    let off_sale = 1_893_520_800_000;
    app.set_clock(off_sale - 1).await;
    let ada = app.buyer().await;
    ada.hold(&hall, &["7"]).await.ok(201);
    app.set_clock(off_sale).await;
    ada.hold(&hall, &["007"]).await.problem(409, "event-not-on-sale");
    let backwards = app.operator.post("/_test/clock", &json!({ "set": off_sale - 1 })).await;
    backwards.problem(409, "action-not-possible");
    app.finish().await;
}
