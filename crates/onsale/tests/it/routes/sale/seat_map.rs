//! The manifest and the map: what never changes, what changes, and what changed since.

use serde_json::{Value, json};

use super::{begin, members, put_on_sale};
use crate::util::{App, hide_prices, text};

#[tokio::test]
async fn the_manifest_is_told_in_ordinal_order_and_kept_by_its_etag() {
    let app = begin().await;
    let hall = put_on_sale(&app).await;
    let path = format!("/v1/events/{}/manifest", hall.event_id);
    let reply = app.buyers.get(&path).await;
    let etag = reply.header("etag").expect("an ETag").to_owned();
    assert!(etag.starts_with('"'), "{etag} is strong");
    let manifest = reply.ok(200);
    members(&manifest, "event_id version price_version currency price_levels sections seats ga_areas");
    let levels = json!([
        { "price_level": "Front", "color": null, "amount_minor": 10_000 },
        { "price_level": "Back", "color": null, "amount_minor": 4_500 },
    ]);
    assert_eq!(manifest["price_levels"], levels);
    let sections = json!([{ "section": "Stalls", "rows": ["A"] }, { "section": "Balcony", "rows": ["B"] }]);
    assert_eq!((&manifest["sections"], &manifest["ga_areas"]), (&sections, &json!([])));
    assert_eq!((&manifest["version"], &manifest["price_version"]), (&json!(1), &json!(2)));
    let seats = manifest["seats"].as_array().expect("seats");
    let ids: Vec<&str> = seats.iter().map(|seat| text(seat, "seat_id")).collect();
    assert_eq!(ids, ["007", "7", "Z-1"]);
    for seat in seats {
        members(seat, "seat_id section row seat x y price_level");
        assert!(
            seat["x"].is_f64() && seat["y"].is_f64(),
            "without a place in the file, a seat gets one: {seat}"
        );
    }
    assert_eq!((text(&seats[2], "section"), text(&seats[2], "price_level")), ("Balcony", "Back"));

    let known = app.buyers.get(&path).header("If-None-Match", &etag).await;
    assert_eq!((known.status, known.text.as_str(), known.header("etag")), (304, "", Some(etag.as_str())));
    let prices = json!({ "price_levels": [{ "price_level": "Back", "amount_minor": 5_000 }] });
    app.operator.put(&format!("/v1/events/{}/prices", hall.event_id), &prices).await.ok(200);
    let anew = app.buyers.get(&path).header("If-None-Match", &etag).await;
    assert_ne!(anew.header("etag"), Some(etag.as_str()), "the prices in it have changed");
    let anew = anew.ok(200);
    assert_eq!(anew["price_levels"][0]["amount_minor"], 10_000, "a level that isn't named keeps its price");
    assert_eq!(anew["price_levels"][1]["amount_minor"], 5_000);
    app.finish().await;
}

#[tokio::test]
async fn the_map_is_a_digit_for_each_seat_and_its_changes_can_be_asked_for() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1", "A-2", "A-3", "A-4"]).await;
    let path = format!("/v1/events/{}/seats", hall.event_id);
    let reply = app.buyers.get(&path).await;
    let etag = reply.header("etag").expect("an ETag").to_owned();
    assert!(etag.starts_with("W/\""), "{etag} is weak");
    let first = reply.ok(200);
    members(&first, "version epoch states ga bookable");
    assert_eq!((&first["states"], &first["ga"]), (&json!("0000"), &json!([])));
    let known = app.buyers.get(&path).header("If-None-Match", &etag).await;
    assert_eq!((known.status, known.text.as_str()), (304, ""));

    let ada = app.buyer().await;
    let hold = ada.hold(&hall, &["A-1", "A-3"]).await.ok(201);
    let withheld = json!({ "seats": ["A-4"], "status": "NOT_FOR_SALE" });
    let status = app.operator.put(&format!("{path}/status"), &withheld);
    assert_eq!(status.await.ok(200), json!({ "seats": 1 }));
    let from = first["version"].as_u64().expect("a version");
    let since = |version: u64| app.buyers.get(&format!("{path}?since={version}"));
    let delta = since(from).await.ok(200);
    members(&delta, "from version changes ga bookable");
    assert_eq!(delta["from"], from);
    assert_eq!(delta["changes"], json!([[0, 1], [2, 1], [3, 3]]));
    let changed = app.buyers.get(&path).header("If-None-Match", &etag).await.ok(200);
    assert_eq!((&changed["states"], &changed["version"]), (&json!("1013"), &delta["version"]));

    // Only the last word on a seat.
    let order_id = ada.pay(&hold).await;
    app.passes("payments", 2).await;
    ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    assert_eq!(since(from).await.ok(200)["changes"], json!([[0, 2], [2, 2], [3, 3]]));
    let now = version(&since(from).await.ok(200));
    assert_eq!(since(now).await.ok(200)["changes"], json!([]));
    since(now + 1).await.problem(410, "gone");
    app.buyers.get(&format!("{path}?since=soon")).await.problem(422, "validation-failed");
    app.buyers.get(&format!("{path}?until=1")).await.problem(422, "validation-failed");

    // A sold seat isn't kept from sale, nor is any seat named beside it.
    let both = json!({ "seats": ["A-2", "A-3"], "status": "NOT_FOR_SALE" });
    let refused = app.operator.put(&format!("{path}/status"), &both).await.problem(409, "seat-unavailable");
    assert_eq!(refused["seats"], json!(["A-3"]));
    let back = json!({ "seats": ["A-4"], "status": "AVAILABLE" });
    app.operator.put(&format!("{path}/status"), &back).await.ok(200);
    assert_eq!(app.seat_states(&hall).await, "2020");
    app.finish().await;
}

/// A restart forgets the deltas but not the state, and says so.
#[tokio::test]
async fn a_gap_that_is_too_old_is_gone() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1", "A-2"]).await;
    app.buyer().await.hold(&hall, &["A-2"]).await.ok(201);
    let path = format!("/v1/events/{}/seats", hall.event_id);
    let before = app.buyers.get(&path).await.ok(200);
    let app = App::options().data(app.stop()).start().await;
    assert_eq!(app.buyers.get(&path).await.ok(200), before);
    let since = |version: u64| app.buyers.get(&format!("{path}?since={version}"));
    assert_eq!(since(version(&before)).await.ok(200)["changes"], json!([]));
    let gone = since(version(&before) - 1).await.problem(410, "gone");
    assert_eq!(gone["retryable"], false);
    app.finish().await;
}

fn version(answer: &Value) -> u64 {
    answer["version"].as_u64().expect("a version")
}

/// What could not be read when it had changed is read again, and not shown as it was before.
#[tokio::test]
async fn prices_that_could_not_be_read_are_read_again() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1"]).await;
    let path = format!("/v1/events/{}", hall.event_id);
    // The seat map is read too: its version must not hide that of the prices.
    app.seat_states(&hall).await;
    app.buyers.get(&format!("{path}/manifest")).await.ok(200);
    let prices = json!({ "price_levels": [{ "price_level": "Stalls", "amount_minor": 2_600 }] });
    app.operator.put(&format!("{path}/prices"), &prices).await.ok(200);
    hide_prices(app.data.path(), true);
    app.buyers.get(&format!("{path}/manifest")).await.problem(503, "authority-unavailable");
    hide_prices(app.data.path(), false);
    let manifest = app.buyers.get(&format!("{path}/manifest")).await.ok(200);
    assert_eq!(manifest["price_levels"][0]["amount_minor"], 2_600, "{manifest}");
    app.finish().await;
}
