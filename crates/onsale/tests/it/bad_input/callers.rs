//! Callers without a token, with one that is over, and with one that may not.

use reqwest::Method;
use serde_json::{Value, json};

use crate::util::{App, Client, fresh_key, text};

use super::Stage;

/// A new key of a role: its id, and a client with it at the operators' listener.
async fn key(app: &App, role: &str) -> (String, Client) {
    let made = app.operator.post("/v1/keys", &json!({ "role": role, "name": "of a test" })).await.ok(201);
    (text(&made, "key_id").to_owned(), app.operator.with_token(text(&made, "secret")))
}

#[tokio::test]
async fn who_has_no_valid_token_is_told_to_bring_one() {
    let stage = Stage::set().await;
    let (seats, holds) = (json!({ "seats": ["A-2"] }), stage.path("/holds"));
    let nobody = &stage.app.buyers;
    let mut forged = stage.ada_token.clone();
    let last = forged.pop().expect("a token");
    forged.push(if last == 'A' { 'B' } else { 'A' });
    let schemes = [
        "Basic YWRhOmFkYQ==".to_owned(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        "Bearer nonsense".to_owned(),
        "Bearer osk_nonsense".to_owned(),
        format!("Bearer {forged}"),
        format!("Bearer {}", stage.ada_token.to_uppercase()),
        stage.ada_token.clone(),
    ];
    for scheme in &schemes {
        let ask = nobody.post(&holds, &seats).key(&fresh_key()).header("Authorization", scheme);
        stage.refuses(ask, 401, "unauthenticated", &[]).await;
    }
    let twice = stage.ada.client.post(&holds, &seats).key(&fresh_key()).header("Authorization", "Bearer x");
    stage.refuses(twice, 401, "unauthenticated", &[]).await;

    let order = stage.hold_path("").replace("hld_", "ord_").replace("holds", "orders");
    let nobody = stage.app.buyers.at(&stage.app.operator.base);
    let closed = [
        (Method::POST, holds.clone()),
        (Method::GET, stage.hold_path("")),
        (Method::DELETE, stage.hold_path("")),
        (Method::POST, stage.hold_path("/checkout")),
        (Method::GET, order),
        (Method::POST, "/v1/events".to_owned()),
        (Method::PUT, stage.path("/manifest")),
        (Method::PUT, stage.path("/prices")),
        (Method::PUT, stage.path("/on-sale")),
        (Method::PUT, stage.path("/seats/status")),
        (Method::GET, stage.path("/report")),
        (Method::GET, "/v1/reconciliation/cases".to_owned()),
        (Method::GET, "/v1/gate/keys".to_owned()),
        (Method::POST, "/v1/keys".to_owned()),
        (Method::DELETE, stage.hold_path("").replace("hld_", "key_").replace("holds", "keys")),
    ];
    for (method, path) in closed {
        let reply = nobody.ask(method, &path).key(&fresh_key()).json(&json!({})).await;
        assert_eq!(reply.header("www-authenticate"), Some("Bearer"), "{}", reply.what);
        reply.problem(401, "unauthenticated");
    }
    stage.finish().await;
}

#[tokio::test]
async fn a_role_may_do_what_it_may_and_nothing_else() {
    let stage = Stage::set().await;
    let app = &stage.app;
    let (partner, reader, gate) =
        (key(app, "partner").await, key(app, "reader").await, key(app, "gate").await);
    let buyer = stage.ada.client.at(&app.operator.base);
    let case =
        stage.hold_path("/resolution").replace("hld_", "cas_").replace("holds", "reconciliation/cases");
    let for_operators = [
        (Method::POST, "/v1/events".to_owned()),
        (Method::PUT, stage.path("/prices")),
        (Method::PUT, stage.path("/on-sale")),
        (Method::PUT, stage.path("/seats/status")),
        (Method::PUT, stage.path("/manifest")),
        (Method::POST, "/v1/keys".to_owned()),
        (Method::DELETE, format!("/v1/keys/{}", partner.0)),
        (Method::POST, case),
    ];
    for client in [&partner.1, &reader.1, &gate.1, &buyer] {
        for (method, path) in &for_operators {
            let ask = client.ask(method.clone(), path).json(&json!({ "name": "x" }));
            stage.refuses(ask, 403, "forbidden", &[]).await;
        }
    }
    for client in [&partner.1, &gate.1, &buyer] {
        stage.refuses(client.get(&stage.path("/report")), 403, "forbidden", &[]).await;
        stage.refuses(client.get("/v1/reconciliation/cases"), 403, "forbidden", &[]).await;
    }
    reader.1.get(&stage.path("/report")).await.ok(200);
    reader.1.get(&stage.hold_path("")).await.ok(200);

    let (holds, seats) = (stage.path("/holds"), json!({ "seats": ["A-2"] }));
    let hold = |client: &Client| client.post(&holds, &seats).key(&fresh_key());
    for client in [&reader.1, &gate.1] {
        stage.refuses(hold(client), 403, "forbidden", &[]).await;
        stage.refuses(hold(&client.for_account("ada")), 403, "forbidden", &[]).await;
        stage.refuses(client.delete(&stage.hold_path("")), 403, "forbidden", &[]).await;
    }
    for client in [&partner.1, &app.operator] {
        stage.faulty(hold(client), &["/headers/Onsale-Account"]).await;
        for account in ["", "a b", &"a".repeat(129)] {
            stage.faulty(hold(&client.for_account(account)), &["/headers/Onsale-Account"]).await;
        }
    }
    stage.refuses(gate.1.get(&stage.hold_path("")), 403, "forbidden", &[]).await;
    hold(&partner.1.for_account("carla")).await.ok(201);
    stage.finish().await;
}

#[tokio::test]
async fn a_revoked_key_is_no_key_at_once() {
    let stage = Stage::set().await;
    let (id, partner) = key(&stage.app, "partner").await;
    let carla = partner.for_account("carla");
    let ask = |seat: &str| carla.post(&stage.path("/holds"), &json!({ "seats": [seat] })).key(&fresh_key());
    ask("A-2").await.ok(201);
    let path = format!("/v1/keys/{id}");
    stage.app.operator.delete(&path).await.ok(204);
    stage.refuses(ask("A-3"), 401, "unauthenticated", &[]).await;
    stage.refuses(ask("A-3"), 401, "unauthenticated", &[]).await;
    stage.app.operator.delete(&path).await.ok(204);
    let unknown = stage.hold_path("").replace("hld_", "key_").replace("holds", "keys");
    stage.refuses(stage.app.operator.delete(&unknown), 404, "not-found", &[]).await;
    for odd in ["superuser", "", "Operator"] {
        stage.faulty(stage.app.operator.post("/v1/keys", &json!({ "role": odd })), &["/role"]).await;
    }
    let long = json!({ "role": "reader", "name": "x".repeat(201) });
    stage.faulty(stage.app.operator.post("/v1/keys", &long), &["/name"]).await;
    stage.finish().await;
}

/// A buyer's own things are there for nobody else; nor can anyone tell whether they exist.
#[tokio::test]
async fn what_is_another_buyers_is_not_there() {
    let stage = Stage::set().await;
    let order_id = stage.ada.pay(&stage.hold).await;
    let ben = stage.app.buyer().await;
    let card = json!({ "payment_method_token": "pm_card_visa" });
    let order = format!("/v1/orders/{order_id}");
    let unknown = stage.hold_path("").replace("0", "1");
    let mut said: Vec<Value> = Vec::new();
    for path in [stage.hold_path(""), unknown, "/v1/holds/nonsense".to_owned()] {
        let checkout = ben.client.post(&format!("{path}/checkout"), &card).key(&fresh_key());
        for ask in [ben.client.get(&path), ben.client.delete(&path), checkout] {
            said.push(stage.refuses(ask, 404, "not-found", &[]).await);
        }
    }
    for path in [order.clone(), format!("{order}?wait_s=5"), order.replace("0", "1")] {
        said.push(stage.refuses(ben.client.get(&path), 404, "not-found", &[]).await);
    }
    assert!(said.windows(2).all(|pair| pair[0] == pair[1]), "{said:#?}");
    let as_ben = stage.app.operator.for_account(&ben.account_id);
    stage.refuses(as_ben.get(&order), 404, "not-found", &[]).await;
    stage.app.passes("payments", 2).await;
    stage.finish().await;
}

#[tokio::test]
async fn a_session_ends_when_it_said_it_would() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1", "A-2"]).await;
    let session = app.buyers.post("/v1/sessions", &json!({})).await.ok(201);
    let client = app.buyers.with_token(text(&session, "session_token"));
    let path = format!("/v1/events/{}/holds", hall.event_id);
    let hold = |seat| client.post(&path, &json!({ "seats": [seat] })).key(&fresh_key());
    app.advance(24 * 3_600_000 - 1).await;
    let held = hold("A-1").await.ok(201);
    let own = format!("/v1/holds/{}", text(&held, "hold_id"));
    app.operator.post("/_test/clock", &json!({ "set": session["expires_at"] })).await.ok(200);
    hold("A-2").await.problem(401, "unauthenticated");
    client.get(&own).await.problem(401, "unauthenticated");
    client.delete(&own).await.problem(401, "unauthenticated");
    assert_eq!(app.seat_states(&hall).await, "10");
    let ada = app.buyer().await;
    ada.hold(&hall, &["A-2"]).await.ok(201);
    app.finish().await;
}
