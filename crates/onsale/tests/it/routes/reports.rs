//! What an organiser counts: sales, settlements and attendees, as JSON and as CSV.

use serde_json::{Value, json};

use crate::routes::sale::members;
use crate::util::{App, Buyer, Hall, text};

const DAY_MS: i64 = 24 * 3_600_000;

/// A hall of two price levels at a venue where a day begins before it does in UTC.
async fn two_levels(app: &App) -> Hall {
    let new = json!({
        "name": "An evening", "currency": "EUR", "starts_at": "2030-05-01T19:30:00Z", "timezone": "Asia/Tokyo",
    });
    let event_id = text(&app.operator.post("/v1/events", &new).await.ok(201), "event_id").to_owned();
    let path = format!("/v1/events/{event_id}");
    let csv = "seat_id,section,row,seat,category\nA-1,A,1,1,Stalls\nA-2,A,1,2,Stalls\n=B,B,1,1,=Gallery\n";
    let manifest = app.operator.ask(reqwest::Method::PUT, &format!("{path}/manifest"));
    manifest.body("text/csv", csv.to_owned()).await.ok(200);
    let prices = json!({ "price_levels": [
        { "price_level": "Stalls", "amount_minor": 2_500 }, { "price_level": "=Gallery", "amount_minor": 1_000 },
    ] });
    app.operator.put(&format!("{path}/prices"), &prices).await.ok(200);
    app.operator.put(&format!("{path}/on-sale"), &json!({ "state": "open" })).await.ok(200);
    Hall { event_id }
}

async fn buy(app: &App, hall: &Hall, seats: &[&str], email: &str) -> (Buyer, String) {
    let buyer = app.buyer().await;
    let hold = buyer.hold(hall, seats).await.ok(201);
    let path = format!("/v1/holds/{}/checkout", text(&hold, "hold_id"));
    let body = json!({ "payment_method_token": "pm_card_visa", "email": email });
    let key = format!("\"{}\"", text(&hold, "hold_id"));
    let begun = buyer.client.post(&path, &body).header("Idempotency-Key", &key).await.ok(202);
    let order_id = text(&begun, "order_id").to_owned();
    app.passes("payments", 2).await;
    buyer.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    (buyer, order_id)
}

#[tokio::test]
async fn sales_are_added_up_by_price_level_day_and_hour_of_the_venue() {
    let app = App::start().await;
    let hall = two_levels(&app).await;
    // 23:30 in Tokyo, and half an hour later it is another day there, though not in UTC.
    app.set_clock(1_900_074_600_000).await;
    buy(&app, &hall, &["A-1", "=B"], "ada@example.com").await;
    app.advance(3_600_000).await;
    let (_, second) = buy(&app, &hall, &["A-2"], "ben@example.com").await;
    let path = format!("/v1/events/{}/reports/sales", hall.event_id);
    let report = |by: &str| app.operator.get(&format!("{path}?by={by}"));
    let rows = |report: &Value| {
        let rows = report["rows"].as_array().expect("rows").iter();
        rows.map(|row| format!("{} {} {}", text(row, "key"), row["tickets"], row["gross_minor"]))
            .collect::<Vec<_>>()
    };
    let by_level = report("price_level").await.ok(200);
    members(&by_level, "by timezone currency rows");
    assert_eq!(rows(&by_level), ["=Gallery 1 1000", "Stalls 2 5000"]);
    let by_day = report("day").await.ok(200);
    assert_eq!(rows(&by_day), ["2030-03-18 2 3500", "2030-03-19 1 2500"], "{by_day}");
    let by_hour = report("hour").await.ok(200);
    assert_eq!(rows(&by_hour), ["2030-03-18T23:00+09:00 2 3500", "2030-03-19T00:00+09:00 1 2500"]);

    let csv = app.operator.get(&path).header("Accept", "text/csv").await;
    assert_eq!(csv.header("content-type"), Some("text/csv; charset=utf-8; header=present"));
    assert_eq!(
        csv.text,
        "price_level,tickets,gross_minor,returned_tickets,returned_minor,net_minor,currency\r\n\
         '=Gallery,1,1000,0,0,1000,EUR\r\nStalls,2,5000,0,0,5000,EUR\r\n"
    );
    assert_eq!(app.operator.get(&format!("{path}?format=csv")).await.text, csv.text);

    // What is given back is told with the day it was sold on, and no day is rewritten.
    let refund = json!({ "reason": "ill", "resell": false });
    let key = "\"refund-of-ben\"";
    let asked = app
        .operator
        .post(&format!("/v1/orders/{second}/refunds"), &refund)
        .header("Idempotency-Key", key)
        .await;
    assert!((200..300).contains(&asked.status), "{}", asked.text);
    app.advance(3_000).await;
    app.passes("payments", 2).await;
    let by_day = report("day").await.ok(200);
    let row = &by_day["rows"][1];
    assert_eq!(
        (&row["gross_minor"], &row["returned_tickets"], &row["returned_minor"], &row["net_minor"]),
        (&json!(2_500), &json!(1), &json!(2_500), &json!(0)),
        "{by_day}"
    );
    let short = app.report(&hall).await;
    assert_eq!((&short["refunded_minor"], &short["tickets_issued"]), (&json!(2_500), &json!(0)), "{short}");
    for by in ["week", "", "Day"] {
        report(by).await.problem(422, "validation-failed");
    }
    app.operator.get(&format!("{path}?format=xml")).await.problem(422, "validation-failed");
    app.operator.get(&format!("{path}?limit=1")).await.problem(422, "validation-failed");
    app.audit().await;
    app.stop();
}

/// What the provider has settled comes from its own entries, by day, with its fees; as new as the last comparison.
#[tokio::test]
async fn settlements_are_what_the_provider_entered() {
    let app = App::start().await;
    let hall = two_levels(&app).await;
    let (_, order_id) = buy(&app, &hall, &["A-1", "=B"], "ada@example.com").await;
    buy(&app, &hall, &["A-2"], "ben@example.com").await;
    let path = format!("/v1/events/{}/reports/settlement", hall.event_id);
    let empty = app.operator.get(&path).await.ok(200);
    members(&empty, "by timezone rows");
    assert_eq!(empty["rows"], json!([]), "the provider's books have not been looked at yet");
    let intent = app.provider.intent_of(&order_id).await;
    let form = format!("payment_intent={intent}&amount=700");
    let ask = app.provider.client.ask(reqwest::Method::POST, "/v1/refunds");
    ask.body("application/x-www-form-urlencoded", form).await.ok(200);
    for _ in 0..2 {
        app.operator.post("/v1/reconciliation/runs", &json!({})).await.ok(200);
        let report = app.operator.get(&path).await.ok(200);
        // 1.5 % and 25 of each charge: 78 of 3500 (52.5 is rounded to 53), 63 of 2500 (37.5 to 38).
        let rows = report["rows"].as_array().expect("rows");
        let sum = |name: &str| rows.iter().map(|row| row[name].as_i64().expect("a figure")).sum::<i64>();
        let sums =
            ["gross_minor", "refunds_minor", "other_minor", "fees_minor", "net_minor", "lines"].map(sum);
        assert_eq!(sums, [6_000, 700, 0, 141, 5_159, 3], "{report}");
        assert!(rows.iter().all(|row| row["currency"] == "EUR" && text(row, "day").len() == 10), "{report}");
    }
    let csv = app.operator.get(&format!("{path}?by=day&format=csv")).await.text;
    assert!(
        csv.starts_with("day,currency,gross_minor,refunds_minor,other_minor,fees_minor,net_minor,lines\r\n"),
        "{csv}"
    );
    app.operator.get(&format!("{path}?by=hour")).await.problem(422, "validation-failed");
    app.audit().await;
    app.stop();
}

#[tokio::test]
async fn attendees_are_exported_whole_and_safe_to_open() {
    let app = App::start().await;
    let hall = two_levels(&app).await;
    let path = format!("/v1/events/{}/exports/attendees", hall.event_id);
    let none = app.operator.get(&path).await.ok(200);
    assert_eq!(none, json!({ "attendees": [], "next": null }));
    let (_, first) = buy(&app, &hall, &["A-1", "=B"], "=cmd@example.com").await;
    app.advance(DAY_MS).await;
    let (_, second) = buy(&app, &hall, &["A-2"], "ben@example.com").await;
    let page = app.operator.get(&path).await;
    assert_eq!(page.header("cache-control"), Some("no-store"));
    let page = page.ok(200);
    let rows = page["attendees"].as_array().expect("attendees");
    members(
        &rows[0],
        "order_id ticket_id seat_id ga_area email account_id order_status payment_status confirmed_at ticket_status \
         generation inside admitted_at admitted_gate",
    );
    let told: Vec<_> =
        rows.iter().map(|row| (text(row, "order_id"), text(row, "seat_id"), text(row, "email"))).collect();
    let expected = [
        (&*first, "A-1", "=cmd@example.com"),
        (&*first, "=B", "=cmd@example.com"),
        (&*second, "A-2", "ben@example.com"),
    ];
    assert_eq!(told, expected);
    let rest = app.operator.get(&format!("{path}?after={first}")).await.ok(200);
    assert_eq!(rest["attendees"].as_array().map(Vec::len), Some(1));

    let csv = app.operator.get(&path).header("Accept", "text/csv").await;
    assert_eq!(csv.header("cache-control"), Some("no-store"));
    assert!(
        csv.header("content-disposition")
            .is_some_and(|value| value.starts_with("attachment; filename=\"attendees-evt_"))
    );
    let lines: Vec<&str> = csv.text.split_terminator("\r\n").collect();
    assert_eq!(lines.len(), 4, "{}", csv.text);
    assert!(lines[0].starts_with("order_id,ticket_id,seat_id,ga_area,email,"), "{}", lines[0]);
    assert!(lines[1].contains(",'=cmd@example.com,") && lines[2].contains(",'=B,"), "{}", csv.text);

    for wrong in ["?after=1", "?after=ord_00000000000000000000000000", "?format=pdf", "?limit=1"] {
        app.operator.get(&format!("{path}{wrong}")).await.problem(422, "validation-failed");
    }
    let reader = app.operator.post("/v1/keys", &json!({ "role": "reader" })).await.ok(201);
    let reader = app.operator.with_token(text(&reader, "secret"));
    reader.get(&path).await.problem(403, "forbidden");
    let sales = format!("/v1/events/{}/reports/sales", hall.event_id);
    reader.get(&sales).await.ok(200);
    app.buyer().await.client.get(&sales).await.problem(404, "not-found");
    let nowhere = format!("/v1/events/evt_{}/exports/attendees", "0".repeat(26));
    app.operator.get(&nowhere).await.problem(404, "not-found");
    app.finish().await;
}
