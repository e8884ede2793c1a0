//! Seats chosen for the buyer.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::util::{App, Ask, Buyer, Hall, counts, fresh_key, tally, text, together};

/// An event on sale with the seats of a manifest, every level at one price.
async fn sale(app: &App, policy: Value, csv: &str, levels: &[&str]) -> Hall {
    let new = json!({
        "name": "An evening", "currency": "EUR", "starts_at": "2030-05-01T19:30:00Z", "policy": policy,
    });
    let event_id = text(&app.operator.post("/v1/events", &new).await.ok(201), "event_id").to_owned();
    let path = format!("/v1/events/{event_id}");
    let put = app.operator.ask(reqwest::Method::PUT, &format!("{path}/manifest"));
    put.body("text/csv", csv.to_owned()).await.ok(200);
    let levels: Vec<Value> =
        levels.iter().map(|level| json!({ "price_level": level, "amount_minor": 4_500 })).collect();
    app.operator.put(&format!("{path}/prices"), &json!({ "price_levels": levels })).await.ok(200);
    app.operator.put(&format!("{path}/on-sale"), &json!({ "state": "open" })).await.ok(200);
    Hall { event_id }
}

fn wish(buyer: &Buyer, hall: &Hall, best: &Value) -> Ask {
    wish_as(&fresh_key(), buyer, hall, best)
}

fn wish_as(key: &str, buyer: &Buyer, hall: &Hall, best: &Value) -> Ask {
    let path = format!("/v1/events/{}/holds", hall.event_id);
    buyer.client.post(&path, &json!({ "best_available": best })).key(key)
}

fn seats(hold: &Value) -> Vec<&str> {
    hold["seats"].as_array().expect("seats").iter().map(|seat| text(seat, "seat_id")).collect()
}

/// A section of ten rows of forty, and a hundred parties of four at once: all of them sit, so nobody was given seats that spoilt
/// those of others, and nobody had to ask twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_who_ask_at_once_are_given_a_hundred_runs() {
    let app = App::start().await;
    let rows: String = ('A'..='J').map(|row| format!("Stalls,{row},Standard,1,40\n")).collect();
    let csv = format!("section,row,category,seat_from,seat_to\n{rows}");
    let hall = sale(&app, json!({ "orphan_seats": "avoid" }), &csv, &["Standard"]).await;
    let mut asks = Vec::new();
    for _ in 0..100 {
        let buyer = app.buyer().await;
        asks.push(wish(&buyer, &hall, &json!({ "quantity": 4, "section": "Stalls" })));
    }
    let replies = together(asks).await;
    assert_eq!(tally(&replies), counts([("201 ok", 100)]));
    let mut taken: HashSet<String> = HashSet::new();
    for reply in &replies {
        let seats = seats(&reply.body);
        let place = |seat: &str| {
            let mut parts = seat.rsplit('-');
            let number: u32 = parts.next().and_then(|number| number.parse().ok()).expect("a number");
            (parts.next().expect("a row").to_owned(), number)
        };
        let places: Vec<(String, u32)> = seats.iter().map(|seat| place(seat)).collect();
        let beside = |pair: &[(String, u32)]| pair[0].0 == pair[1].0 && pair[0].1 + 1 == pair[1].1;
        assert!(places.len() == 4 && places.windows(2).all(beside), "{seats:?}");
        assert_eq!(reply.body["total_minor"], 4 * 4_500);
        taken.extend(seats.into_iter().map(str::to_owned));
    }
    assert_eq!(taken.len(), 400);
    assert_eq!(app.seat_states(&hall).await, "1".repeat(400));
    let last = app.buyer().await;
    let full = wish(&last, &hall, &json!({ "quantity": 1 })).await.problem(409, "not-enough-available");
    assert_eq!(full["retryable"], false);
    app.finish().await;
}

#[tokio::test]
async fn a_wish_may_name_level_section_wheelchair_and_rows() {
    let app = App::start().await;
    let csv = "section,row,seat,seat_id,category,accessible,companion_of,rank\n\
        Stalls,A,1,a1,Front,yes,,1\nStalls,A,2,a2,Front,,a1,1\nStalls,A,3,a3,Front,,,1\nStalls,A,4,a4,Front,,,1\n\
        Stalls,B,1,b1,Back,,,\nStalls,B,2,b2,Back,,,\nStalls,B,3,b3,Back,,,\n\
        Box,1,1,x1,Back,,,0\nBox,1,2,x2,Back,,,0\n";
    let hall = sale(&app, json!({}), csv, &["Front", "Back"]).await;
    let mut chosen = Vec::new();
    for (best, expected) in [
        (json!({ "quantity": 2 }), vec!["x1", "x2"]),
        (json!({ "quantity": 2, "price_level": "Back" }), vec!["b2", "b3"]),
        (json!({ "quantity": 2, "accessible": true, "section": "Stalls" }), vec!["a1", "a2"]),
        (json!({ "quantity": 3, "split_rows": true, "accessible": false }), vec!["a3", "a4", "b1"]),
    ] {
        let buyer = app.buyer().await;
        let hold = wish(&buyer, &hall, &best).await.ok(201);
        assert_eq!(seats(&hold), expected, "{best}");
        assert_eq!((&hold["status"], &hold["ga"]), (&json!("ACTIVE"), &json!([])));
        chosen.push((buyer, hold));
    }
    let buyer = app.buyer().await;
    wish(&buyer, &hall, &json!({ "quantity": 1 })).await.problem(409, "not-enough-available");
    // What is given back can be chosen again.
    let (first, hold) = &chosen[0];
    first.release(hold).await.ok(204);
    let again = wish(&buyer, &hall, &json!({ "quantity": 2, "section": "Box" })).await.ok(201);
    assert_eq!(seats(&again), ["x1", "x2"]);
    app.finish().await;
}

#[tokio::test]
async fn the_same_key_gives_the_same_seats_and_another_wish_needs_another() {
    let app = App::start().await;
    let csv = "section,row,category,seat_from,seat_to\nStalls,A,Standard,1,6\n";
    let hall = sale(&app, json!({}), csv, &["Standard"]).await;
    let (ada, ben) = (app.buyer().await, app.buyer().await);
    let best = json!({ "quantity": 2 });
    let first = wish_as("k1", &ada, &hall, &best).await.ok(201);
    wish_as("k1", &ben, &hall, &best).await.ok(201);
    assert_eq!(wish_as("k1", &ada, &hall, &best).await.ok(201), first);
    for other in [
        json!({ "quantity": 1 }),
        json!({ "quantity": 2, "price_level": "Standard" }),
        json!({ "quantity": 2, "section": "Stalls" }),
        json!({ "quantity": 2, "accessible": true }),
        json!({ "quantity": 2, "split_rows": true }),
    ] {
        wish_as("k1", &ada, &hall, &other).await.problem(422, "idempotency-key-reused");
    }
    let named = json!({ "seats": seats(&first) });
    let path = format!("/v1/events/{}/holds", hall.event_id);
    ada.client.post(&path, &named).key("k1").await.problem(422, "idempotency-key-reused");
    // What was refused stays refused under its key.
    wish_as("k2", &ada, &hall, &json!({ "quantity": 3 })).await.problem(409, "not-enough-available");
    ada.release(&first).await.ok(204);
    wish_as("k2", &ada, &hall, &json!({ "quantity": 3 })).await.problem(409, "not-enough-available");
    wish_as("k3", &ada, &hall, &best).await.ok(201);
    app.finish().await;
}
