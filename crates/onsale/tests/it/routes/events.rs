//! Making events: once under a key, and drafts are nobody else's business.

use serde_json::{Value, json};

use crate::util::{App, text};

fn concert() -> Value {
    json!({ "name": "Winter Concert", "currency": "EUR", "starts_at": "2027-05-01T19:30:00Z" })
}

/// A repeated request finds the event it made, as it was made, even after the event has gone on.
#[tokio::test]
async fn a_key_makes_an_event_once() {
    let app = App::start().await;
    let make = |key: &str, body: &Value| app.operator.post("/v1/events", body).key(key);
    let first = make("spring-1", &concert()).await;
    assert!(!first.replayed());
    let first = first.ok(201);
    let path = format!("/v1/events/{}", text(&first, "event_id"));
    let seats = "seat_id,section,row,seat,category\nA-1,Stalls,A,1,Stalls\n";
    app.operator.ask(reqwest::Method::PUT, &format!("{path}/manifest")).body("text/csv", seats).await.ok(200);

    let again = make("spring-1", &concert()).await;
    assert!(again.replayed());
    assert_eq!(again.ok(201), first, "the first body again");
    let mut other = concert();
    other["name"] = "Summer Concert".into();
    make("spring-1", &other).await.problem(422, "idempotency-key-reused");
    let second = make("spring-2", &concert()).await.ok(201);
    assert_ne!(second["event_id"], first["event_id"]);
    // Without a key every request is a new event.
    let third = app.operator.post("/v1/events", &concert()).await.ok(201);
    assert_ne!(third["event_id"], second["event_id"]);
    make(&"k".repeat(256), &concert()).await.problem(422, "validation-failed");
    app.finish().await;
}

#[tokio::test]
async fn drafts_are_listed_to_operators_alone() {
    let app = App::start().await;
    app.operator.post("/v1/events", &concert()).await.ok(201);
    let hall = app.hall(json!({}), &["A-1"]).await;
    let listed = |reply: Value| -> Vec<String> {
        let events = reply["events"].as_array().cloned().unwrap_or_default();
        events.iter().map(|event| text(event, "status").to_owned()).collect()
    };
    assert_eq!(listed(app.operator.get("/v1/events").await.ok(200)).len(), 2);
    assert_eq!(listed(app.buyers.get("/v1/events").await.ok(200)), ["OPEN"]);
    let ada = app.buyer().await;
    assert_eq!(listed(ada.client.get("/v1/events").await.ok(200)), ["OPEN"]);
    ada.hold(&hall, &["A-1"]).await.ok(201);
    app.finish().await;
}
