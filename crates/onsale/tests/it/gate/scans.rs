//! Shown at a gate: one is let in with a ticket, whoever asks and however often.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::util::{App, Reply, fresh_key, text, together};

use super::{Scanner, ticketed};

/// How often each result was told.
fn results(replies: &[Reply]) -> BTreeMap<&str, usize> {
    let mut results = BTreeMap::new();
    for reply in replies {
        assert_eq!(reply.status, 200, "{}", reply.text);
        *results.entry(text(&reply.body, "result")).or_default() += 1;
    }
    results
}

/// Gimhae-Yay/Regional-Event-Platform-Backend#798: a second scan of a ticket and the repeat of a lost first one had one and
/// the same answer. quadshot/opentickets-community#21: one ticket of an order let in as many as the order had tickets.
#[tokio::test]
async fn a_ticket_lets_one_in_and_a_scan_has_one_answer() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1", "A-2"]).await;
    let ada = app.buyer().await;
    let tickets = ticketed(&app, &ada, &hall, &["A-1", "A-2"]).await;
    let [one, two] = [0, 1].map(|at| text(&tickets[at], "barcode"));
    let (north, south) = (Scanner::at(&app, "north").await, Scanner::at(&app, "south").await);

    let first = north.show("n-1", one, json!({})).await.ok(200);
    assert_eq!(
        (text(&first, "result"), text(&first, "ticket_id")),
        ("ADMIT", text(&tickets[0], "ticket_id"))
    );
    let place = ["seat_id", "section", "row", "seat", "admitted_gate"].map(|member| text(&first, member));
    assert_eq!(place, ["A-1", "A", "1", "1", "north"]);
    app.advance(60_000).await;
    // The answer was lost: asked again, it is the same to the letter.
    assert_eq!(north.show("n-1", one, json!({})).await.ok(200), first);
    let second = south.show("s-1", one, json!({})).await.ok(200);
    assert_eq!(text(&second, "result"), "ALREADY_USED");
    assert_eq!((text(&second, "admitted_gate"), &second["admitted_at"]), ("north", &first["admitted_at"]));
    assert_eq!(south.show("s-1", one, json!({})).await.ok(200), second);

    // The same id for anything else is a fault of the scanner, and lets nobody in.
    let reused = [
        north.show("n-1", two, json!({})),
        south.show("n-1", one, json!({})),
        north.show("n-1", one, json!({ "direction": "out" })),
        north.show("n-1", one, json!({ "scanned_at": "2026-01-01T10:00:00Z" })),
    ];
    for reused in reused {
        reused.await.problem(422, "idempotency-key-reused");
    }
    assert_eq!(south.scan(two).await, "ADMIT");
    app.finish().await;
}

/// unlock-protocol/unlock#9247: two came at the same time with the same code, and both were let in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_gates_that_ask_at_once_let_one_in() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1", "A-2"]).await;
    let ada = app.buyer().await;
    let tickets = ticketed(&app, &ada, &hall, &["A-1", "A-2"]).await;
    let [one, two] = [0, 1].map(|at| text(&tickets[at], "barcode"));
    let gates = [Scanner::at(&app, "north").await, Scanner::at(&app, "south").await];
    let asks = (0..64).map(|turn| gates[turn % 2].show(&format!("scan-{turn}"), one, json!({})));
    let replies = together(asks.collect()).await;
    assert_eq!(results(&replies), BTreeMap::from([("ADMIT", 1), ("ALREADY_USED", 63)]));
    // One scan that is sent again and again is one scan.
    let replies = together((0..64).map(|_| gates[0].show("one", two, json!({}))).collect()).await;
    assert_eq!(results(&replies), BTreeMap::from([("ADMIT", 64)]));
    assert!(replies.iter().all(|reply| reply.body == replies[0].body));
    app.finish().await;
}

/// SandeepVashishtha/Eventra#12578: "seen before" was asked before "still good", and hid that it was not.
#[tokio::test]
async fn a_ticket_issued_anew_makes_the_one_before_worthless() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1"]).await;
    let ada = app.buyer().await;
    let old = ticketed(&app, &ada, &hall, &["A-1"]).await.remove(0);
    let north = Scanner::at(&app, "north").await;
    let path = format!("/v1/tickets/{}/reissue", text(&old, "ticket_id"));
    let reissue = |generation: u32| app.operator.post(&path, &json!({ "generation": generation }));
    let new = reissue(1).await.ok(200);
    assert_eq!((&new["generation"], &new["ticket_id"]), (&json!(2), &old["ticket_id"]));
    assert_ne!(new["barcode"], old["barcode"]);
    // Asked again, it has been done.
    assert_eq!(reissue(1).await.ok(200), new);
    let replies = together((0..16).map(|_| reissue(2)).collect()).await;
    let newest = replies[0].clone().ok(200);
    assert!(replies.into_iter().all(|reply| reply.ok(200) == newest));
    assert_eq!(newest["generation"], 3);
    reissue(4).await.problem(409, "action-not-possible");

    for dead in [&old, &new] {
        let told = north.show(&fresh_key(), text(dead, "barcode"), json!({})).await.ok(200);
        assert_eq!(text(&told, "result"), "REVOKED");
        assert!(told["admitted_at"].is_null());
    }
    assert_eq!(north.scan(text(&newest, "barcode")).await, "ADMIT");
    assert_eq!(north.scan(text(&old, "barcode")).await, "REVOKED");
    // Whoever is inside is in with the ticket, not with the paper.
    let again = reissue(3).await.ok(200);
    assert_eq!(north.scan(text(&again, "barcode")).await, "ALREADY_USED");
    app.finish().await;
}

#[tokio::test]
async fn who_has_left_comes_in_again_where_the_event_allows_it() {
    let app = App::start().await;
    for reentry in [true, false] {
        let hall = app.hall(json!({ "reentry": reentry }), &["A-1"]).await;
        let ada = app.buyer().await;
        let ticket = ticketed(&app, &ada, &hall, &["A-1"]).await.remove(0);
        let (north, barcode) = (Scanner::at(&app, "north").await, text(&ticket, "barcode"));
        assert_eq!(north.scan_out(barcode).await, "NOT_INSIDE");
        assert_eq!(north.scan(barcode).await, "ADMIT");
        assert_eq!(north.scan_out(barcode).await, "EXITED");
        assert_eq!(north.scan_out(barcode).await, "NOT_INSIDE");
        let again = if reentry { "ADMIT" } else { "ALREADY_USED" };
        assert_eq!(north.scan(barcode).await, again);
        assert_eq!(north.scan(barcode).await, "ALREADY_USED");
    }
    app.finish().await;
}

#[tokio::test]
async fn what_is_no_ticket_of_this_evening_lets_nobody_in() {
    let app = App::start().await;
    let (hall, other) = (app.hall(json!({}), &["A-1"]).await, app.hall(json!({}), &["A-1"]).await);
    let ada = app.buyer().await;
    let ticket = ticketed(&app, &ada, &hall, &["A-1"]).await.remove(0);
    let (north, barcode) = (Scanner::at(&app, "north").await, text(&ticket, "barcode").to_owned());

    let elsewhere = json!({ "event_id": other.event_id });
    let told = north.show("w-1", &barcode, elsewhere).await.ok(200);
    assert_eq!((text(&told, "result"), &told["ticket_id"]), ("WRONG_EVENT", &ticket["ticket_id"]));

    let mut strangers = vec![
        String::new(),
        "hello".to_owned(),
        "https://example.com/?".repeat(2_000),
        barcode.to_lowercase(),
        format!("{barcode} "),
        barcode[1..].to_owned(),
        // Signed with the secret of 32 times 7, which isn't ours.
        "ONSALE:FB0%EGJC29OIH%MJ2RW10L60$Y88IHA-PHK0K-BMANAWEKCE41NNUB94P%6P+XU/K29V6VSOCMCETF5SPQLQKMM/YFLN3PHS7E4 33$J9 +E1*5FD35-3 FJ.1R0NB.BMF0".to_owned(),
    ];
    // One bit in each of its characters.
    for at in 0..barcode.len() {
        let mut bytes = barcode.clone().into_bytes();
        bytes[at] ^= 1;
        strangers.push(String::from_utf8(bytes).expect("ASCII"));
    }
    for stranger in strangers {
        let told = north.show(&fresh_key(), &stranger, json!({})).await.ok(200);
        assert_eq!(text(&told, "result"), "INVALID", "{stranger:.200}");
        assert_eq!((&told["ticket_id"], &told["seat_id"]), (&Value::Null, &Value::Null));
    }
    assert_eq!(
        north.show("w-2", &barcode, json!({ "event_id": hall.event_id })).await.ok(200)["result"],
        "ADMIT"
    );
    app.finish().await;
}
