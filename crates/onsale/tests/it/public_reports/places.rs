//! Standing places: more of them sold than there are, or fewer than there are after a refund.

use serde_json::json;

use crate::util::{App, counts, off_balance, tally, text, together};

/// verbb/events#129, fossasia/open-event-server#3346, verbb/events#158: a limit was asked of each line of a cart, or of each
/// order, and the event went over it. CoderDojo/community-platform#778: sold out, and still bookable.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_places_are_ten_however_they_are_asked_for() {
    let app = App::start().await;
    let hall = app
        .grounds(json!({ "seats_per_hold_max": 50, "tickets_per_account_max": 50 }), &[], &[("Floor", 10, 3)])
        .await;
    let ada = app.buyer().await;
    ada.places(&hall, "Floor", 11).await.problem(409, "not-enough-available");
    let line = json!({ "ga_area": "Floor", "quantity": 6 });
    let problem = ada.wish(&hall, &json!({ "ga": [line, line] })).await.problem(422, "validation-failed");
    assert_eq!(text(&problem["errors"][0], "pointer"), "/ga/1/ga_area", "one area is one line");
    let hold = ada.places(&hall, "Floor", 8).await.ok(201);
    let mut asks = Vec::new();
    for _ in 0..24 {
        asks.push(app.buyer().await.places(&hall, "Floor", 1));
    }
    assert_eq!(tally(&together(asks).await), counts([("201 ok", 2), ("409 not-enough-available", 22)]));
    let order_id = ada.pay(&hold).await;
    app.passes("payments", 2).await;
    ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    assert_eq!(app.available(&hall, "Floor").await, 0, "sold out is shown");
    ada.places(&hall, "Floor", 1).await.problem(409, "not-enough-available");
    app.finish().await;
}

/// verbb/events#32: with the capacity set below what was sold, every buyer met an error of the server.
#[tokio::test]
async fn a_capacity_below_what_is_sold_is_refused_and_the_sale_goes_on() {
    let app = App::start().await;
    let hall = app.grounds(json!({}), &[], &[("Floor", 64, 2)]).await;
    let ada = app.buyer().await;
    let hold = ada.places(&hall, "Floor", 6).await.ok(201);
    let order_id = ada.pay(&hold).await;
    app.passes("payments", 2).await;
    ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    let set = |capacity: u32| {
        app.operator.put(&hall.path("/ga/capacity"), &json!({ "ga_area": "Floor", "capacity": capacity }))
    };
    set(5).await.problem(409, "not-enough-available");
    app.buyer().await.places(&hall, "Floor", 1).await.ok(201);
    set(7).await.ok(200);
    app.buyer().await.places(&hall, "Floor", 1).await.problem(409, "not-enough-available");
    assert_eq!(off_balance(app.data.path()), 0);
    app.finish().await;
}

/// odoo/odoo#47898, fossasia/open-event-v1#48, verbb/events#168: kinds of tickets with a limit each exceeded the house
/// together. the-events-calendar/event-tickets#2520: where they shared one, the smallest became everybody's.
#[tokio::test]
async fn areas_together_keep_to_the_house_and_each_to_its_own() {
    let app = App::start().await;
    let policy = json!({ "ga_max": 10, "seats_per_hold_max": 50, "tickets_per_account_max": 50 });
    let hall = app.grounds(policy, &[], &[("Adults", 10, 1), ("Children", 4, 1)]).await;
    let ada = app.buyer().await;
    assert_eq!((app.available(&hall, "Adults").await, app.available(&hall, "Children").await), (10, 4));
    ada.places(&hall, "Children", 5).await.problem(409, "not-enough-available");
    ada.places(&hall, "Adults", 7).await.ok(201);
    ada.places(&hall, "Children", 4).await.problem(409, "not-enough-available");
    ada.places(&hall, "Children", 3).await.ok(201);
    for area in ["Adults", "Children"] {
        assert_eq!(app.available(&hall, area).await, 0);
        ada.places(&hall, area, 1).await.problem(409, "not-enough-available");
    }
    app.finish().await;
}

/// big-neon/bn-api#901, pretix/pretix#1405, verbb/events#228, emfcamp/Website#2386, reachweb/statamic-resrv#10: what was
/// cancelled or refunded went on counting, and could not be sold. mintopia/control#45: a removed ticket kept its seat.
#[tokio::test]
async fn what_was_refunded_is_for_sale_again() {
    let app = App::start().await;
    let hall = app.grounds(json!({ "ga_max": 2 }), &["A-1"], &[("Floor", 2, 1)]).await;
    app.code(&hall, &json!({ "code": "WAITED", "presale": true, "tickets_max": 3 })).await;
    let wish =
        json!({ "seats": ["A-1"], "ga": [{ "ga_area": "Floor", "quantity": 2 }], "access_code": "WAITED" });
    for turn in 0..3 {
        let buyer = app.buyer().await;
        let hold = buyer.wish(&hall, &wish).await.ok(201);
        let order_id = buyer.pay(&hold).await;
        app.passes("payments", 2).await;
        buyer.expect_order(&order_id, "CONFIRMED CAPTURED").await;
        assert_eq!(
            (app.available(&hall, "Floor").await, app.code_in_use(&hall, "WAITED").await),
            (0, 3),
            "{turn}"
        );
        app.refund(&order_id, &json!({})).await.ok(202);
        app.worker("payments").await;
        buyer.expect_order(&order_id, "CANCELLED REFUNDED").await;
        assert_eq!(
            (app.available(&hall, "Floor").await, app.code_in_use(&hall, "WAITED").await),
            (2, 0),
            "{turn}"
        );
        assert_eq!(app.seat_states(&hall).await, "0");
    }
    app.finish().await;
}
