//! Events from the command line, with nobody serving and beside a server.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::util::{App, Hall, eventually, fresh_key, text};

use super::at;

const CREATE: &[&str] =
    &["event", "create", "--name", "An evening", "--currency", "EUR", "--starts-at", "2030-05-01T19:30:00Z"];
const SEATS: &str =
    "seat_id,section,row,seat,category\nA-1,A,1,1,Stalls\nA-2,A,1,2,Stalls\n007,A,1,3,Circle\n";

#[test]
fn an_event_is_set_up_while_nobody_serves() {
    let folder = TempDir::new().expect("a folder");
    let data = folder.path().join("a/new/folder");
    let run = |arguments: &[&str]| at(&data, arguments);
    let more = [
        "--timezone",
        "Europe/Berlin",
        "--policy",
        "{\"hold_ttl_s\":60}",
        "--on-sale-at",
        "2030-01-01T10:00:00+01:00",
    ];
    let id = run(&[CREATE, &more].concat()).ok();
    let id = id.strip_suffix('\n').expect("a line");
    let other = run(CREATE).ok();
    assert_ne!(other.trim(), id);

    let show = || serde_json::from_str::<Value>(&run(&["event", "show", id]).ok()).expect("JSON");
    let shown = show();
    assert_eq!((text(&shown, "event_id"), text(&shown, "status")), (id, "DRAFT"));
    assert_eq!(
        (text(&shown, "timezone"), text(&shown, "on_sale_at")),
        ("Europe/Berlin", "2030-01-01T09:00:00.000Z")
    );
    assert_eq!(shown["policy"]["hold_ttl_s"], 60);

    let list = run(&["event", "list"]).ok();
    assert!(list.contains(id) && list.contains(other.trim()) && list.contains("An evening"), "{list}");
    let list: Value = serde_json::from_str(&run(&["event", "list", "--json"]).ok()).expect("JSON");
    assert_eq!(list.as_array().expect("a list").len(), 2);

    run(&["event", "open", id]).refused("the event has nothing to sell");
    run(&["event", "pause", id]).refused("has never been opened");
    run(&["event", "prices", id, "Stalls=2500"]).refused("import a manifest first");
    let file = folder.path().join("seats.csv").display().to_string();
    std::fs::write(&file, SEATS).expect("a file");
    run(&["import", "--event", id, &file]).ok();
    run(&["event", "open", id]).refused("not every price level has a price");
    for (prices, words) in [
        (&["Stalls"][..], "\"Stalls\" is not LEVEL=MINOR_UNITS"),
        (&["Stalls=2,500"], "\"2,500\" is not a whole number"),
        (&["Stalls=0"], "/price_levels/0/amount_minor"),
        (&["Stalls=2500", "Balcony=1"], "/price_levels/1/price_level: the manifest has no such price level"),
        (&["Stalls=2500", "Stalls=2600"], "named twice"),
    ] {
        run(&[&["event", "prices", id], prices].concat()).refused(words);
    }
    assert_eq!(run(&["event", "prices", id, "Stalls=2500", "Circle=4500"]).ok(), "prices version 1\n");
    for (command, status) in [("open", "OPEN"), ("pause", "PAUSED"), ("close", "CLOSED"), ("open", "OPEN")] {
        assert_eq!(run(&["event", command, id]).ok(), format!("{id} is {status}\n"));
        assert_eq!(text(&show(), "status"), status);
    }
    run(&["import", "--event", id, &file]).refused("seats can't be laid out anew");
    assert!(run(&["audit"]).ok().contains("invariants hold"));
}

/// A server beside it sees each change by itself.
#[tokio::test]
async fn an_event_is_set_up_and_run_beside_a_server() {
    let app = App::options().workers().start().await;
    let data = app.data.path();
    let run = |arguments: &[&str]| at(data, arguments);
    let id = run(CREATE).ok().trim().to_owned();
    let (hall, path) = (Hall { event_id: id.clone() }, format!("/v1/events/{id}"));
    assert_eq!(text(&app.buyers.get(&path).await.ok(200), "status"), "DRAFT");
    // The server has now looked at the event, at its seats and its map, so that it has something to bring up to date.
    app.buyers.get(&format!("{path}/manifest")).await.problem(404, "not-found");
    let ada = app.buyer().await;
    ada.hold(&hall, &["A-1"]).await.problem(409, "event-not-on-sale");

    let file = data.join("seats.csv").display().to_string();
    std::fs::write(&file, SEATS).expect("a file");
    run(&["import", "--event", &id, &file]).ok();
    let states = || async {
        let seats = app.buyers.get(&format!("{path}/seats")).await.ok(200);
        text(&seats, "states").to_owned()
    };
    eventually("the seats are seen", || async { (states().await == "000").then_some(()) }).await;
    let printed = || async {
        let manifest = app.buyers.get(&format!("{path}/manifest")).await;
        (manifest.status == 200).then_some(())
    };
    eventually("the manifest is seen", printed).await;
    run(&["event", "prices", &id, "Stalls=2500", "Circle=4500"]).ok();
    let priced = || async {
        let manifest = app.buyers.get(&format!("{path}/manifest")).await.ok(200);
        (manifest["price_levels"][1]["amount_minor"] == 4_500).then_some(())
    };
    eventually("the prices are seen", priced).await;
    run(&["event", "open", &id]).ok();
    let hold = ada.hold(&hall, &["A-1", "007"]).await.ok(201);
    assert_eq!(hold["total_minor"], 7_000);
    assert_eq!(states().await, "101");

    // What is decided is decided by the database; what is shown follows within a moment.
    run(&["event", "pause", &id]).ok();
    ada.hold(&hall, &["A-2"]).await.problem(503, "event-paused");
    run(&["event", "prices", &id, "Stalls=2600"]).ok();
    run(&["event", "open", &id]).ok();
    let new_price = || async {
        let held = ada
            .client
            .post(&format!("{path}/holds"), &json!({ "seats": ["A-2"] }))
            .key(&fresh_key())
            .await
            .ok(201);
        ada.release(&held).await.ok(204);
        (held["total_minor"] == 2_600).then_some(())
    };
    eventually("the new price is asked", new_price).await;
    ada.checkout(&hold, "pm_card_visa").await.problem(409, "price-changed");
    ada.release(&hold).await.ok(204);
    let order_id = ada.pay(&ada.hold(&hall, &["A-1", "007"]).await.ok(201)).await;
    ada.await_order(&order_id, "CONFIRMED CAPTURED").await;
    run(&["event", "close", &id]).ok();
    ada.hold(&hall, &["A-2"]).await.problem(409, "event-not-on-sale");
    let closed =
        || async { (text(&app.buyers.get(&path).await.ok(200), "status") == "CLOSED").then_some(()) };
    eventually("it is seen to be closed", closed).await;
    app.finish().await;
}
