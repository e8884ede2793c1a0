//! Idempotency keys that are missing or odd, and keys that were used for something else.

use serde_json::json;

use crate::util::{Raw, fresh_key, text};

use super::{KEY, Stage};

#[tokio::test]
async fn a_key_is_one_visible_word_of_at_most_255() {
    let stage = Stage::set().await;
    let (seats, card) = (json!({ "seats": ["A-2"] }), json!({ "payment_method_token": "pm_card_visa" }));
    let routes = [(stage.path("/holds"), seats), (stage.hold_path("/checkout"), card)];
    for (path, body) in &routes {
        let ask = || stage.ada.client.post(path, body);
        stage.refuses(ask(), 400, "idempotency-key-missing", &[]).await;
        let (long, long_quoted) = ("k".repeat(256), format!("\"{}\"", "k".repeat(256)));
        for odd in
            ["", " ", "\"", "\"\"", "\"k", "k k", "\"k k\"", "\"k\"x", "\"k\";a=1", &long, &long_quoted]
        {
            stage.faulty(ask().key(odd), &[KEY]).await;
        }
        stage.faulty(ask().key("k-1").key("k-1"), &[KEY]).await;
        stage.faulty(ask().key("k-1").key("k-2"), &[KEY]).await;
        let mut raw = Raw::to(&stage.app.buyers.base);
        let text = body.to_string();
        raw.send(format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
             idempotency-key: k\u{e4}\r\ncontent-length: {}\r\n\r\n{text}",
            stage.ada_token,
            text.len()
        ));
        let problem = raw.reply().problem(422, "validation-failed");
        assert_eq!(problem["errors"][0]["pointer"], KEY);
    }
    let longest = "k".repeat(255);
    let made = stage.ada.hold_as(&longest, &stage.hall, &["A-2"]).await.ok(201);
    // Bare or quoted, it is the same key.
    let again = stage.ada.hold_as(&format!("\"{longest}\""), &stage.hall, &["A-2"]).await;
    assert!(again.replayed());
    assert_eq!(again.ok(201), made);
    stage.finish().await;
}

#[tokio::test]
async fn a_key_belongs_to_its_account_its_route_and_its_request() {
    let stage = Stage::set().await;
    let other = stage.app.hall(json!({}), &["A-1", "A-2"]).await;
    let made = stage.ada.hold_as("the-key", &stage.hall, &["A-2"]).await.ok(201);
    for (hall, seats) in [(&stage.hall, &["A-3"][..]), (&stage.hall, &["A-2", "A-3"]), (&other, &["A-2"])] {
        let ask = stage.ada.hold_as("the-key", hall, seats);
        stage.refuses(ask, 422, "idempotency-key-reused", &[]).await;
    }
    // Another route, and another account: other keys.
    let ben = stage.app.buyer().await;
    ben.hold_as("the-key", &stage.hall, &["A-4"]).await.ok(201);
    let begun = stage.ada.checkout_as("the-key", &made, "pm_card_visa").await.ok(202);
    for (hold, card) in [(&made, "pm_card_mastercard"), (&stage.hold, "pm_card_visa")] {
        let ask = stage.ada.checkout_as("the-key", hold, card);
        stage.refuses(ask, 422, "idempotency-key-reused", &[]).await;
    }
    let with_email = json!({ "payment_method_token": "pm_card_visa", "email": "ada@example.org" });
    let path = format!("/v1/holds/{}/checkout", text(&made, "hold_id"));
    let ask = stage.ada.client.post(&path, &with_email).key("the-key");
    stage.refuses(ask, 422, "idempotency-key-reused", &[]).await;

    let again = stage.ada.hold_as("the-key", &stage.hall, &["A-2"]).await;
    assert!(again.replayed());
    assert_eq!(again.ok(201), made);
    let again = stage.ada.checkout_as("the-key", &made, "pm_card_visa").await;
    assert!(again.replayed());
    assert_eq!(again.ok(202), begun);
    stage.app.passes("payments", 2).await;
    stage.finish().await;
}

/// What was refused before it was decided leaves its key free; a decided refusal is an answer for good.
#[tokio::test]
async fn a_key_remembers_decisions_and_nothing_else() {
    let stage = Stage::set().await;
    let holds = stage.path("/holds");
    let ada = &stage.ada.client;
    stage.faulty(stage.ada.hold_as("k-1", &stage.hall, &["Z-1"]), &["/seats/0"]).await;
    stage.faulty(ada.post(&holds, &json!({ "seat": "A-2" })).key("k-1"), &["/seat"]).await;
    let nobody = stage.app.buyers.post(&holds, &json!({ "seats": ["A-2"] })).key("k-1");
    stage.refuses(nobody, 401, "unauthenticated", &[]).await;
    let large = " ".repeat(70_000);
    let ask = ada.ask(reqwest::Method::POST, &holds).key("k-1").body("application/json", large);
    stage.refuses(ask, 413, "payload-too-large", &[]).await;
    let fresh = stage.ada.hold_as("k-1", &stage.hall, &["A-2"]).await;
    assert!(!fresh.replayed());
    fresh.ok(201);

    let ben = stage.app.buyer().await;
    let taken = ben.hold_as("k-2", &stage.hall, &["A-2"]).await;
    assert!(!taken.replayed());
    let taken = taken.problem(409, "seat-unavailable");
    stage.app.advance(600_000).await;
    stage.app.worker("expirer").await;
    let again = ben.hold_as("k-2", &stage.hall, &["A-2"]).await;
    assert!(again.replayed());
    assert_eq!(again.problem(409, "seat-unavailable"), taken);
    ben.hold_as(&fresh_key(), &stage.hall, &["A-2"]).await.ok(201);
    stage.finish().await;
}
