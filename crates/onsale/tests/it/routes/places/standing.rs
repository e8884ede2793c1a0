//! Places are held, shown, sold and given back by number; a hold may mix them with seats, all or none.

use serde_json::{Value, json};

use crate::util::{App, Hall, PLACE_PRICE, SEAT_PRICE, free_in_rows, off_balance, text};

async fn mixed(app: &App, policy: Value) -> Hall {
    app.grounds(policy, &["A-1", "A-2"], &[("Floor", 10, 3), ("Lawn", 5, 1)]).await
}

fn ga(areas: &[(&str, Value)]) -> Value {
    areas.iter().map(|(area, quantity)| json!({ "ga_area": area, "quantity": quantity })).collect()
}

#[tokio::test]
async fn seats_and_places_are_one_hold_and_one_total() {
    let app = App::start().await;
    let hall = mixed(&app, json!({})).await;
    let (ada, ben) = (app.buyer().await, app.buyer().await);
    let wish = json!({ "seats": ["A-1"], "ga": ga(&[("Lawn", json!(1)), ("Floor", json!(4))]) });
    let hold = ada.wish(&hall, &wish).await.ok(201);
    assert_eq!(hold["total_minor"], SEAT_PRICE + 5 * PLACE_PRICE);
    assert_eq!(
        hold["ga"],
        json!([
            { "ga_area": "Floor", "quantity": 4, "price_level": "Standing", "amount_minor": PLACE_PRICE },
            { "ga_area": "Lawn", "quantity": 1, "price_level": "Standing", "amount_minor": PLACE_PRICE },
        ])
    );
    assert_eq!((app.available(&hall, "Floor").await, app.available(&hall, "Lawn").await), (6, 4));

    // One thing that can't be had, and nothing is: neither the seat nor the places.
    let lacking = json!({ "seats": ["A-2"], "ga": ga(&[("Lawn", json!(5))]) });
    let problem = ben.wish(&hall, &lacking).await.problem(409, "not-enough-available");
    assert_eq!(problem["ga_area"], "Lawn");
    let taken = json!({ "seats": ["A-1"], "ga": ga(&[("Floor", json!(1))]) });
    ben.wish(&hall, &taken).await.problem(409, "seat-unavailable");
    assert_eq!(app.seat_states(&hall).await, "10");
    assert_eq!((app.available(&hall, "Floor").await, app.available(&hall, "Lawn").await), (6, 4));

    let order_id = ada.pay(&hold).await;
    app.passes("payments", 2).await;
    let order = ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    assert_eq!((&order["ga"], &order["total_minor"]), (&hold["ga"], &hold["total_minor"]));
    assert_eq!(app.seat_states(&hall).await, "20");
    let floor = &app.areas(&hall).await["areas"][0];
    let sum = |member: &str| -> i64 {
        floor["buckets"]
            .as_array()
            .expect("buckets")
            .iter()
            .map(|bucket| bucket[member].as_i64().expect("a count"))
            .sum()
    };
    assert_eq!((sum("capacity"), sum("held"), sum("sold")), (10, 0, 4), "{floor}");
    app.finish().await;
}

/// Each is refused with its place, and nothing has changed. Elsewhere a quantity that was no number, or below zero, came
/// through to the stock (see docs/public-reports.md).
#[tokio::test]
async fn a_quantity_is_a_whole_number_from_one_on() {
    let app = App::start().await;
    let hall = mixed(&app, json!({})).await;
    let ada = app.buyer().await;
    let before = app.operator.get("/v1/events").await.ok(200);
    for odd in [
        json!(0),
        json!(-1),
        json!(1.5),
        json!("1"),
        json!(null),
        json!([1]),
        json!(true),
        json!(4_294_967_296u64),
        json!(1e30),
    ] {
        let problem =
            ada.wish(&hall, &json!({ "ga": ga(&[("Lawn", json!(1)), ("Floor", odd.clone())]) })).await;
        let problem = problem.problem(422, "validation-failed");
        assert_eq!(text(&problem["errors"][0], "pointer"), "/ga/1/quantity", "{odd}: {problem}");
    }
    for many in [json!(7), json!(2_147_483_648u64), json!(4_294_967_295u64)] {
        let problem = ada.wish(&hall, &json!({ "ga": ga(&[("Floor", many.clone())]) })).await;
        assert_eq!(problem.problem(422, "too-many-seats")["limit"], 6, "{many}");
        let problem =
            ada.wish(&hall, &json!({ "ga": ga(&[("Floor", many.clone()), ("Lawn", many.clone())]) })).await;
        problem.problem(422, "too-many-seats");
    }
    let six = ga(&[("Floor", json!(3)), ("Lawn", json!(3))]);
    ada.wish(&hall, &json!({ "seats": ["A-1"], "ga": six })).await.problem(422, "too-many-seats");
    for (body, place) in [
        (json!({ "ga": [] }), "/ga"),
        (json!({ "ga": ga(&[("Floor", json!(1)), ("Floor", json!(1))]) }), "/ga/1/ga_area"),
        (json!({ "ga": ga(&[("floor", json!(1))]) }), "/ga/0/ga_area"),
        (json!({ "ga": [{ "ga_area": "Floor" }] }), "/ga/0/quantity"),
        (json!({ "ga": [{ "ga_area": "Floor", "quantity": 1, "bucket": 0 }] }), "/ga/0/bucket"),
    ] {
        let problem = ada.wish(&hall, &body).await.problem(422, "validation-failed");
        assert_eq!(text(&problem["errors"][0], "pointer"), place, "{problem}");
    }
    assert_eq!(app.operator.get("/v1/events").await.ok(200), before, "nothing has changed");
    assert_eq!((app.available(&hall, "Floor").await, app.available(&hall, "Lawn").await), (10, 5));
    app.finish().await;
}

#[tokio::test]
async fn a_cap_over_all_areas_is_kept() {
    let app = App::start().await;
    let hall = mixed(&app, json!({ "ga_max": 8, "tickets_per_account_max": 20 })).await;
    let (ada, ben) = (app.buyer().await, app.buyer().await);
    assert_eq!((app.available(&hall, "Floor").await, app.available(&hall, "Lawn").await), (8, 5));
    let hold = ada.places(&hall, "Floor", 6).await.ok(201);
    assert_eq!((app.available(&hall, "Floor").await, app.available(&hall, "Lawn").await), (2, 2));
    let problem = ben.places(&hall, "Lawn", 3).await.problem(409, "not-enough-available");
    assert_eq!(problem.get("ga_area"), None, "no area is full: {problem}");
    ben.wish(&hall, &json!({ "ga": ga(&[("Floor", json!(1)), ("Lawn", json!(2))]) }))
        .await
        .problem(409, "not-enough-available");
    let both =
        ben.wish(&hall, &json!({ "ga": ga(&[("Floor", json!(1)), ("Lawn", json!(1))]) })).await.ok(201);
    ben.places(&hall, "Lawn", 1).await.problem(409, "not-enough-available");
    let areas = app.areas(&hall).await;
    assert_eq!((&areas["in_use"], &areas["ga_max"]), (&json!(8), &json!(8)));
    // What is sold counts as what is held does; what is given back counts no more.
    let order_id = ada.pay(&hold).await;
    app.passes("payments", 2).await;
    ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    ben.places(&hall, "Lawn", 1).await.problem(409, "not-enough-available");
    ben.release(&both).await.ok(204);
    assert_eq!((app.available(&hall, "Floor").await, app.available(&hall, "Lawn").await), (2, 2));
    ben.places(&hall, "Lawn", 2).await.ok(201);
    app.finish().await;
}

/// Held, given back, run out, sold, undone, moved between buckets, taken out of the sale: what is shown is what the
/// rows say, on this server and on the next one.
#[tokio::test]
async fn what_is_shown_of_places_is_what_the_rows_say() {
    let mut app = App::start().await;
    let hall = app
        .grounds(json!({ "hold_ttl_s": 60, "tickets_per_account_max": 50 }), &["A-1"], &[("Floor", 20, 3)])
        .await;
    let ada = app.buyer().await;
    let mut shown = Vec::new();
    let mut look = async |app: &App, what: &str, want: i64| {
        assert_eq!(app.available(&hall, "Floor").await, want, "{what}");
        assert_eq!(free_in_rows(app.data.path()), want, "{what}, by the rows");
        assert_eq!(off_balance(app.data.path()), 0, "{what}");
        shown.push(want);
    };
    look(&app, "at first", 20).await;
    let one = ada.places(&hall, "Floor", 5).await.ok(201);
    look(&app, "held", 15).await;
    ada.release(&one).await.ok(204);
    look(&app, "given back", 20).await;
    ada.places(&hall, "Floor", 4).await.ok(201);
    app.advance(60_000).await;
    app.worker("expirer").await;
    look(&app, "run out", 20).await;
    let hold = ada.places(&hall, "Floor", 6).await.ok(201);
    let order_id = ada.pay(&hold).await;
    look(&app, "paying", 14).await;
    app.passes("payments", 2).await;
    ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    look(&app, "sold", 14).await;
    // A capture that is refused for good undoes the sale.
    app.provider.script("capture", &["declined"]).await;
    let hold = ada.places(&hall, "Floor", 3).await.ok(201);
    let undone = ada.pay(&hold).await;
    app.passes("payments", 2).await;
    app.work_until(&ada, &undone, "CANCELLED VOIDED").await;
    look(&app, "undone", 14).await;
    app.transfer(&hall, "Floor", (0, 1), 1).await.ok(202);
    look(&app, "on its way", 13).await;
    app.worker("quota").await;
    look(&app, "arrived", 14).await;
    let bigger = json!({ "ga_area": "Floor", "capacity": 25 });
    app.operator.put(&hall.path("/ga/capacity"), &bigger).await.ok(200);
    look(&app, "enlarged", 19).await;
    app.refund(&order_id, &json!({ "ga": ga(&[("Floor", json!(2))]) })).await.ok(202);
    look(&app, "on its way back", 19).await;
    app.work_until(&ada, &order_id, "CONFIRMED CAPTURED").await;
    look(&app, "refunded, for sale again", 21).await;
    app.refund(&order_id, &json!({ "ga": ga(&[("Floor", json!(1))]), "resell": false })).await.ok(202);
    app.work_until(&ada, &order_id, "CONFIRMED CAPTURED").await;
    look(&app, "refunded, and gone", 21).await;
    assert_eq!(app.areas(&hall).await["areas"][0]["capacity"], 24);
    let areas = app.areas(&hall).await;
    let provider_gone = app.stop();
    app = App::options().data(provider_gone).start().await;
    assert_eq!(app.areas(&hall).await, areas);
    look(&app, "after a restart", 21).await;
    app.audit().await;
    app.stop();
}

/// at the deadline itself places are anyone's, without a sweep, and so is the room under the cap.
#[tokio::test]
async fn places_that_are_overdue_are_the_next_buyers() {
    let app = App::start().await;
    let policy = json!({ "hold_ttl_s": 10, "ga_max": 4 });
    let hall = app.grounds(policy, &["A-1"], &[("Floor", 4, 2), ("Lawn", 4, 1)]).await;
    for area in ["Floor", "Lawn"] {
        let (ada, ben) = (app.buyer().await, app.buyer().await);
        let hold = ada.places(&hall, "Floor", 4).await.ok(201);
        app.advance(9_999).await;
        ben.places(&hall, area, 1).await.problem(409, "not-enough-available");
        app.advance(1).await;
        let next = ben.places(&hall, area, 4).await.ok(201);
        assert_eq!(ada.hold_now(&hold).await["status"], "EXPIRED");
        ada.checkout(&hold, "pm_card_visa").await.problem(409, "hold-expired");
        ada.release(&hold).await.ok(204);
        app.worker("expirer").await;
        assert_eq!(ben.hold_now(&next).await["status"], "ACTIVE");
        ben.release(&next).await.ok(204);
    }
    app.finish().await;
}

/// However many other holds ran out before them, and were not swept: of seats, and of another area.
#[tokio::test]
async fn places_are_found_behind_all_else_that_is_overdue() {
    let app = App::start().await;
    let names: Vec<String> = (0..120).map(|seat| format!("S-{seat}")).collect();
    let seats: Vec<&str> = names.iter().map(String::as_str).collect();
    let hall = app.grounds(json!({ "hold_ttl_s": 10 }), &seats, &[("Floor", 2, 1), ("Lawn", 120, 1)]).await;
    let code = json!({ "code": "FANS-2030", "presale": true, "tickets_max": 2 });
    app.code(&hall, &code).await;
    for seat in &seats {
        app.buyer().await.hold(&hall, &[seat]).await.ok(201);
        app.buyer().await.places(&hall, "Lawn", 1).await.ok(201);
    }
    app.advance(1).await;
    let (ada, ben) = (app.buyer().await, app.buyer().await);
    let wish = json!({ "ga": ga(&[("Floor", json!(2))]), "access_code": "FANS-2030" });
    ada.wish(&hall, &wish).await.ok(201);
    ben.wish(&hall, &wish).await.problem(409, "access-code-exhausted");
    app.advance(10_000).await;
    ben.wish(&hall, &wish).await.ok(201);
    app.finish().await;
}

/// An event needs no seat to be sold: standing places are enough.
#[tokio::test]
async fn an_event_may_have_standing_places_alone() {
    let app = App::start().await;
    let hall = app.grounds(json!({}), &[], &[("Field", 3, 1)]).await;
    assert_eq!(app.seat_states(&hall).await, "");
    let ada = app.buyer().await;
    let hold = ada.places(&hall, "Field", 3).await.ok(201);
    let order_id = ada.pay(&hold).await;
    app.passes("payments", 2).await;
    ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    app.buyer().await.places(&hall, "Field", 1).await.problem(409, "not-enough-available");
    app.finish().await;
}
