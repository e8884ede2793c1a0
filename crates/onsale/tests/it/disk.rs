//! A disk that is full, and a database that another program keeps to itself: nothing is lost, nothing is done by halves,
//! and when there is room again it goes on.

use std::future::IntoFuture;

use reqwest::Method;
use serde_json::{Value, json};

use crate::util::{App, Buyer, Hall, Lock, Reply, fresh_key, text};

/// Enough for the schema and a few events.
const SMALL: &str = "[database]\nsize_mib_max = 1";

/// What can be read of an event.
async fn truth(app: &App, hall: &Hall) -> [Value; 3] {
    let path = format!("/v1/events/{}", hall.event_id);
    let seats = app.buyers.get(&format!("{path}/seats")).await.ok(200);
    [app.buyers.get(&path).await.ok(200), seats, app.report(hall).await]
}

/// Checks that an answer says "not now", and that the same request may be sent again.
#[track_caller]
fn not_now(reply: Reply) {
    let code = text(&reply.body, "code").to_owned();
    assert!(matches!(code.as_str(), "authority-unavailable" | "outcome-unknown"), "{}", reply.text);
    let problem = reply.problem(503, &code);
    assert_eq!(problem["retryable"], true, "{problem}");
}

/// Lays out events until there is no room for another; how many there are.
async fn fill(app: &App) -> usize {
    let csv: String = (0..400).map(|seat| format!("A-{seat},A,1,{seat},Stalls\n")).collect();
    let csv = format!("seat_id,section,row,seat,category\n{csv}");
    for count in 0..1_000 {
        let new = json!({ "name": "x".repeat(200), "currency": "EUR", "starts_at": "2030-05-01T19:30:00Z" });
        let made = app.operator.post("/v1/events", &new).await;
        if made.status != 201 {
            not_now(made);
            return count;
        }
        let path = format!("/v1/events/{}/manifest", text(&made.body, "event_id"));
        let laid_out = app.operator.ask(Method::PUT, &path).body("text/csv", csv.clone()).await;
        if laid_out.status != 200 {
            not_now(laid_out);
            // Seats no longer fit; smaller things may.
            app.buyers.get(&path).await.problem(404, "not-found");
        }
    }
    panic!("the disk is never full");
}

/// What an account has: key, seat and hold.
type Held<'a> = Vec<(String, &'a str, Value)>;

/// Holds seat after seat in what is left of the last pages; the key and the seat of the first that doesn't fit.
async fn take_what_fits<'a>(
    buyer: &Buyer,
    hall: &Hall,
    names: &[&'a str],
    held: &mut Held<'a>,
) -> (String, &'a str) {
    loop {
        let (key, seat) = (fresh_key(), names[held.len() + 1]);
        let reply = buyer.hold_as(&key, hall, &[seat]).await;
        if reply.status != 201 {
            not_now(reply);
            return (key, seat);
        }
        held.push((key, seat, reply.body));
    }
}

#[tokio::test]
async fn a_full_disk_halts_the_sale_and_loses_nothing() {
    let app = App::options().config(SMALL).start().await;
    let names: Vec<String> = (0..500).map(|seat| format!("A-{seat}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let hall = app.hall(json!({ "tickets_per_account_max": 10_000 }), &names).await;
    let ada = app.buyer().await;
    let before = ada.hold_as("k-paid", &hall, &[names[0]]).await.ok(201);
    let order_id = ada.pay(&before).await;
    fill(&app).await;
    let mut held = Vec::new();
    let mut refused = take_what_fits(&ada, &hall, &names, &mut held).await;
    // Reading goes on, and what is refused leaves no trace.
    for _ in 0..5 {
        let stands = truth(&app, &hall).await;
        assert_eq!(stands[2]["held"], json!(held.len() + 1));
        assert!(text(&stands[1], "states")[held.len() + 1..].starts_with('0'));
        let reply = ada.hold_as(&refused.0, &hall, &[refused.1]).await;
        if reply.status == 201 {
            // Its rows have found a page with room this time.
            held.push((refused.0, refused.1, reply.body));
            refused = take_what_fits(&ada, &hall, &names, &mut held).await;
        } else {
            not_now(reply);
            assert_eq!(truth(&app, &hall).await, stands);
        }
    }
    let stands = truth(&app, &hall).await;
    let again = ada.hold_as("k-paid", &hall, &[names[0]]).await;
    assert!(again.replayed(), "a request that was answered is answered: {}", again.text);
    assert_eq!(again.ok(201), before);
    for (_, _, hold) in &held {
        assert_eq!(ada.hold_now(hold).await["status"], "ACTIVE");
    }
    app.operator.get("/metrics").await.ok(200);
    app.audit().await;

    // With more room it goes on where it was.
    let app = App::options().data(app.stop()).start().await;
    let ada = Buyer { client: ada.client.at(&app.buyers.base), ..ada };
    assert_eq!(truth(&app, &hall).await, stands);
    for (key, seat, hold) in &held {
        let again = ada.hold_as(key, &hall, &[seat]).await;
        assert!(again.replayed());
        assert_eq!(again.ok(201), *hold);
    }
    let fresh = ada.hold_as(&refused.0, &hall, &[refused.1]).await;
    assert!(!fresh.replayed(), "what was not done is done now");
    fresh.ok(201);
    app.passes("payments", 2).await;
    ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    app.finish().await;
}

/// Another program that keeps the database to itself is waited for as long as a buyer's patience lasts; then it is said
/// that nothing was done, and nothing was. Whoever only looks isn't kept waiting.
#[tokio::test]
async fn a_database_another_program_locks_is_waited_for_and_then_refused() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1", "A-2"]).await;
    let ada = app.buyer().await;
    let hold = ada.hold(&hall, &["A-1"]).await.ok(201);
    let before = truth(&app, &hall).await;
    let lock = Lock::take(app.data.path());
    let looks = async {
        for _ in 0..20 {
            assert_eq!(truth(&app, &hall).await, before);
        }
        assert_eq!(ada.hold_now(&hold).await["status"], "ACTIVE");
    };
    let (refused, ()) = tokio::join!(ada.hold_as("k-1", &hall, &["A-2"]).into_future(), looks);
    let problem = refused.problem(503, "authority-unavailable");
    assert_eq!(problem["retryable"], true, "{problem}");
    assert_eq!(truth(&app, &hall).await, before);
    drop(lock);
    let placed = ada.hold_as("k-1", &hall, &["A-2"]).await;
    assert!(!placed.replayed());
    placed.ok(201);
    let order_id = ada.pay(&hold).await;
    app.passes("payments", 2).await;
    ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    app.finish().await;
}
