//! What may be given back: all of an order, some of it, or money alone; once, and never more than was taken.

use serde_json::{Value, json};

use super::{TOTAL, sold, statuses};
use crate::util::{App, PLACE_PRICE, SEAT_PRICE, counts, fresh_key, tally, text, together};

/// asked for is not done. Until the provider has proven it, the money shows as on its way and the seats as sold.
#[tokio::test]
async fn the_whole_goes_back_when_the_provider_says_so() {
    let app = App::start().await;
    let it = sold(&app).await;
    let begun = app.refund(&it.order_id, &json!({})).await.ok(202);
    assert_eq!(begun["status"], "PENDING");
    let order = it.ada.expect_order(&it.order_id, "CONFIRMED REFUND_PENDING").await;
    assert_eq!(order["refunded_minor"], 0);
    assert_eq!(it.shown(&app).await, ("22".to_owned(), 7), "sold until the money is back");
    app.buyer().await.hold(&it.hall, &["A-1"]).await.problem(409, "seat-unavailable");
    assert_eq!(statuses(&app.refunds(&it.order_id).await), ["PENDING"]);
    app.worker("payments").await;
    let order = it.ada.expect_order(&it.order_id, "CANCELLED REFUNDED").await;
    assert_eq!((&order["refunded_minor"], &order["total_minor"]), (&json!(TOTAL), &json!(TOTAL)));
    assert_eq!(order["returned_seats"], json!(["A-1", "A-2"]));
    assert_eq!(order["returned_ga"], json!([{ "ga_area": "Floor", "quantity": 3 }]));
    assert_eq!(it.shown(&app).await, ("00".to_owned(), 10));
    let refund = &app.refunds(&it.order_id).await[0];
    assert_eq!(refund["operation_id"], begun["operation_id"]);
    assert_eq!((&refund["status"], &refund["amount_minor"]), (&json!("SUCCEEDED"), &json!(TOTAL)));
    assert_eq!((&refund["reason"], &refund["resell"]), (&json!("the buyer is ill"), &json!(true)));
    assert_eq!(app.provider.outcomes("refund", &it.order_id).await, "ok");
    // A seat is resold as a sale of its own: another order, with its own keys.
    let ben = app.buyer().await;
    let hold = ben.hold(&it.hall, &["A-1"]).await.ok(201);
    let resold = ben.pay(&hold).await;
    app.passes("payments", 2).await;
    ben.expect_order(&resold, "CONFIRMED CAPTURED").await;
    assert_ne!(resold, it.order_id);
    let (new, old) =
        (app.provider.calls("authorize", &resold).await, app.provider.calls("authorize", &it.order_id).await);
    assert_ne!(new[0]["idempotency_key"], old[0]["idempotency_key"]);
    it.ada.expect_order(&it.order_id, "CANCELLED REFUNDED").await;
    app.refund(&it.order_id, &json!({})).await.problem(409, "not-refundable");
    // What she gave back doesn't count against her any more.
    let wish = json!({ "seats": ["A-2"], "ga": [{ "ga_area": "Floor", "quantity": 5 }] });
    it.ada.wish(&it.hall, &wish).await.ok(201);
    app.finish().await;
}

#[tokio::test]
async fn parts_add_up_to_the_whole() {
    let app = App::start().await;
    let it = sold(&app).await;
    let mut left = TOTAL;
    for (part, cost, shown) in [
        (json!({ "seats": ["A-1"] }), SEAT_PRICE, ("02", 7)),
        (json!({ "ga": [{ "ga_area": "Floor", "quantity": 1 }] }), PLACE_PRICE, ("02", 8)),
        (json!({ "amount_minor": 100 }), 100, ("02", 8)),
        (json!({ "ga": [{ "ga_area": "Floor", "quantity": 1 }] }), PLACE_PRICE, ("02", 9)),
    ] {
        app.refund(&it.order_id, &part).await.ok(202);
        it.ada.expect_order(&it.order_id, "CONFIRMED REFUND_PENDING").await;
        app.worker("payments").await;
        left -= cost;
        let order = it.ada.expect_order(&it.order_id, "CONFIRMED CAPTURED").await;
        assert_eq!(order["refunded_minor"], TOTAL - left, "{part}");
        assert_eq!(
            (it.shown(&app).await, it.kept(&app).await),
            ((shown.0.to_owned(), shown.1), left),
            "{part}"
        );
        app.audit().await;
    }
    // Not twice.
    app.refund(&it.order_id, &json!({ "seats": ["A-1"] })).await.problem(409, "not-refundable");
    app.refund(&it.order_id, &json!({ "ga": [{ "ga_area": "Floor", "quantity": 2 }] }))
        .await
        .problem(409, "not-refundable");
    // A seat and a place cost more than is left: a part of it went back as money alone.
    let rest = json!({ "seats": ["A-2"], "ga": [{ "ga_area": "Floor", "quantity": 1 }] });
    let problem = app.refund(&it.order_id, &rest).await.problem(409, "refund-too-large");
    assert_eq!(problem["left_minor"], left);
    app.refund(&it.order_id, &json!({})).await.ok(202);
    app.worker("payments").await;
    let order = it.ada.expect_order(&it.order_id, "CANCELLED REFUNDED").await;
    assert_eq!(order["refunded_minor"], TOTAL);
    assert_eq!((it.shown(&app).await, it.kept(&app).await), (("00".to_owned(), 10), 0));
    assert_eq!(statuses(&app.refunds(&it.order_id).await), ["SUCCEEDED"; 5]);
    app.finish().await;
}

/// All of the money never leaves seats with a buyer who has paid nothing: the last of it takes with it what is left.
#[tokio::test]
async fn the_last_of_the_money_takes_the_last_of_the_seats() {
    let app = App::start().await;
    let it = sold(&app).await;
    let spare = TOTAL - SEAT_PRICE;
    app.refund(&it.order_id, &json!({ "amount_minor": TOTAL })).await.problem(409, "not-refundable");
    app.refund(&it.order_id, &json!({ "amount_minor": spare })).await.ok(202);
    app.worker("payments").await;
    it.ada.expect_order(&it.order_id, "CONFIRMED CAPTURED").await;
    // One seat costs what is left; the other, and the places, would be hers for nothing.
    app.refund(&it.order_id, &json!({ "seats": ["A-1"] })).await.problem(409, "not-refundable");
    app.refund(&it.order_id, &json!({ "amount_minor": SEAT_PRICE })).await.problem(409, "not-refundable");
    app.refund(&it.order_id, &json!({})).await.ok(202);
    app.worker("payments").await;
    it.ada.expect_order(&it.order_id, "CANCELLED REFUNDED").await;
    assert_eq!(it.shown(&app).await, ("00".to_owned(), 10));
    app.finish().await;
}

/// What is not to be sold again is nobody's: the seat is not for sale, and the area takes so many fewer.
#[tokio::test]
async fn what_is_not_resold_is_gone_from_the_sale() {
    let app = App::start().await;
    let it = sold(&app).await;
    let part = json!({ "seats": ["A-2"], "ga": [{ "ga_area": "Floor", "quantity": 2 }], "resell": false });
    app.refund(&it.order_id, &part).await.ok(202);
    app.worker("payments").await;
    it.ada.expect_order(&it.order_id, "CONFIRMED CAPTURED").await;
    assert_eq!(it.shown(&app).await, ("23".to_owned(), 7));
    let areas = app.areas(&it.hall).await;
    assert_eq!((&areas["areas"][0]["capacity"], &areas["in_use"]), (&json!(8), &json!(1)));
    app.buyer().await.hold(&it.hall, &["A-2"]).await.problem(409, "seat-unavailable");
    app.buyer().await.places(&it.hall, "Floor", 6).await.ok(201);
    app.buyer().await.places(&it.hall, "Floor", 2).await.problem(409, "not-enough-available");
    // The organiser may change their mind.
    let status = json!({ "seats": ["A-2"], "status": "AVAILABLE" });
    app.operator.put(&it.hall.path("/seats/status"), &status).await.ok(200);
    app.buyer().await.hold(&it.hall, &["A-2"]).await.ok(201);
    app.finish().await;
}

/// An area may shrink to nothing, and be opened again.
#[tokio::test]
async fn an_area_may_be_refunded_away() {
    let app = App::start().await;
    let hall = app.grounds(json!({}), &["A-1"], &[("Pit", 2, 1)]).await;
    let ada = app.buyer().await;
    let hold = ada.places(&hall, "Pit", 2).await.ok(201);
    let order_id = ada.pay(&hold).await;
    app.passes("payments", 2).await;
    app.refund(&order_id, &json!({ "resell": false })).await.ok(202);
    app.worker("payments").await;
    ada.expect_order(&order_id, "CANCELLED REFUNDED").await;
    assert_eq!(
        (&app.areas(&hall).await["areas"][0]["capacity"], app.available(&hall, "Pit").await),
        (&json!(0), 0)
    );
    ada.places(&hall, "Pit", 1).await.problem(409, "not-enough-available");
    app.operator.put(&hall.path("/ga/capacity"), &json!({ "ga_area": "Pit", "capacity": 1 })).await.ok(200);
    ada.places(&hall, "Pit", 1).await.ok(201);
    app.finish().await;
}

/// A seat that was set aside goes back to its party; its code may be used again.
#[tokio::test]
async fn a_partys_seat_goes_back_to_its_party() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1", "A-2"]).await;
    app.set_aside(&hall, "Press", &["A-1", "A-2"]).await;
    app.code(&hall, &json!({ "code": "PRESS-1", "allocation": "Press", "tickets_max": 2 })).await;
    let ada = app.buyer().await;
    let hold = ada.wish(&hall, &json!({ "seats": ["A-1", "A-2"], "access_code": "PRESS-1" })).await.ok(201);
    let order_id = ada.pay(&hold).await;
    app.passes("payments", 2).await;
    assert_eq!(app.seat_states(&hall).await, "22");
    let version = app.buyers.get(&hall.path("/seats")).await.ok(200)["version"].as_u64().expect("a version");
    app.refund(&order_id, &json!({ "seats": ["A-1"] })).await.ok(202);
    app.worker("payments").await;
    assert_eq!((app.seat_states(&hall).await.as_str(), app.code_in_use(&hall, "PRESS-1").await), ("32", 1));
    let since = format!("/seats?since={version}");
    assert_eq!(app.buyers.get(&hall.path(&since)).await.ok(200)["changes"], json!([[0, 3]]));
    app.buyer().await.hold(&hall, &["A-1"]).await.problem(409, "seat-unavailable");
    app.buyer().await.wish(&hall, &json!({ "seats": ["A-1"], "access_code": "PRESS-1" })).await.ok(201);
    app.finish().await;
}

#[tokio::test]
async fn one_key_is_one_refund_and_one_is_open_at_a_time() {
    let app = App::start().await;
    let it = sold(&app).await;
    let (key, part) = (fresh_key(), json!({ "seats": ["A-1"] }));
    let begun = app.refund_as(&key, &it.order_id, &part).await.ok(202);
    let again = app.refund_as(&key, &it.order_id, &part).await;
    assert!(again.replayed());
    assert_eq!(again.ok(202), begun);
    app.refund_as(&key, &it.order_id, &json!({ "seats": ["A-2"] }))
        .await
        .problem(422, "idempotency-key-reused");
    app.refund(&it.order_id, &part).await.problem(409, "refund-pending");
    app.refund(&it.order_id, &json!({ "amount_minor": 1 })).await.problem(409, "refund-pending");
    app.worker("payments").await;
    assert_eq!(app.refund_as(&key, &it.order_id, &part).await.ok(202), begun);
    app.refund(&it.order_id, &part).await.problem(409, "not-refundable");
    assert_eq!(it.kept(&app).await, TOTAL - SEAT_PRICE);
    assert_eq!(app.provider.outcomes("refund", &it.order_id).await, "ok");
    app.finish().await;
}

/// Sixty-four at once, each with its own key: of the whole, of a seat, of money.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_refunds_at_once_one_is_begun() {
    let app = App::start().await;
    for part in [json!({}), json!({ "seats": ["A-1"] }), json!({ "amount_minor": TOTAL - 1 })] {
        let it = sold(&app).await;
        let replies = together((0..64).map(|_| app.refund(&it.order_id, &part)).collect()).await;
        assert_eq!(tally(&replies), counts([("202 ok", 1), ("409 refund-pending", 63)]));
        app.passes("payments", 3).await;
        assert_eq!(app.provider.outcomes("refund", &it.order_id).await, "ok", "{part}");
        assert_eq!(app.refunds(&it.order_id).await.len(), 1);
    }
    app.finish().await;
}

#[tokio::test]
async fn what_can_not_be_refunded_is_refused_with_its_place() {
    let app = App::start().await;
    let it = sold(&app).await;
    let ga = |area: &str, quantity: Value| json!({ "ga": [{ "ga_area": area, "quantity": quantity }] });
    for (part, place) in [
        (json!({ "reason": " " }), "/reason"),
        (json!({ "reason": "ill\0" }), "/reason"),
        (json!({ "reason": "x".repeat(10_000) }), "/reason"),
        (json!({ "resell": null }), "/resell"),
        (json!({ "resell": "yes" }), "/resell"),
        (json!({ "seats": [] }), "/seats"),
        (json!({ "seats": ["A-1", "A-1"] }), "/seats/1"),
        (json!({ "seats": ["Z-1"] }), "/seats/0"),
        (json!({ "seats": ["A-1"], "amount_minor": 5 }), "/amount_minor"),
        (ga("Floor", json!(0)), "/ga/0/quantity"),
        (ga("Floor", json!(-1)), "/ga/0/quantity"),
        (ga("Floor", json!(1.5)), "/ga/0/quantity"),
        (ga("Floor", json!("1")), "/ga/0/quantity"),
        (ga("Roof", json!(1)), "/ga/0/ga_area"),
        (json!({ "amount_minor": 0 }), "/amount_minor"),
        (json!({ "amount_minor": -1 }), "/amount_minor"),
        (json!({ "amount_minor": 1.5 }), "/amount_minor"),
        (json!({ "amount_minor": "1" }), "/amount_minor"),
        (json!({ "more": 1 }), "/more"),
    ] {
        let problem = app.refund(&it.order_id, &part).await.problem(422, "validation-failed");
        assert_eq!(text(&problem["errors"][0], "pointer"), place, "{problem}");
    }
    for large in [TOTAL + 1, 1 << 31, i64::MAX] {
        let problem = app
            .refund(&it.order_id, &json!({ "amount_minor": large }))
            .await
            .problem(409, "refund-too-large");
        assert_eq!(problem["left_minor"], TOTAL);
    }
    for many in [4, 7, 2_147_483_648u32] {
        app.refund(&it.order_id, &ga("Floor", json!(many))).await.problem(409, "not-refundable");
    }
    let unkeyed = format!("/v1/orders/{}/refunds", it.order_id);
    let body = json!({ "reason": "no key", "resell": true });
    app.operator.post(&unkeyed, &body).await.problem(400, "idempotency-key-missing");
    // Only for operators: a buyer doesn't refund, nor look.
    let buyer = it.ada.client.at(&app.operator.base);
    for ask in [buyer.post(&unkeyed, &body).key(&fresh_key()), buyer.get(&unkeyed)] {
        let reply = ask.await;
        assert!(matches!(reply.status, 401 | 403), "{}", reply.text);
    }
    let nobody = it.order_id.replace("ord_0", "ord_1");
    app.refund(&nobody, &json!({})).await.problem(404, "not-found");
    it.stands(&app).await;
    app.finish().await;
}

/// Only money that was taken can be given back: not before the capture, and not of a sale that is no sale.
#[tokio::test]
async fn only_what_was_taken_can_be_given_back() {
    let app = App::start().await;
    let hall = app.hall(json!({ "hold_ttl_s": 60 }), &["A-1"]).await;
    let ada = app.buyer().await;
    let hold = ada.hold(&hall, &["A-1"]).await.ok(201);
    app.provider.script("authorize", &["declined"]).await;
    let order_id = ada.pay(&hold).await;
    let refuse = async || drop(app.refund(&order_id, &json!({})).await.problem(409, "not-refundable"));
    refuse().await;
    app.worker("payments").await;
    ada.expect_order(&order_id, "AWAITING_PAYMENT DECLINED").await;
    refuse().await;
    ada.pay(&hold).await;
    app.worker("payments").await;
    ada.expect_order(&order_id, "CONFIRMED AUTHORIZED").await;
    refuse().await;
    app.worker("payments").await;
    ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    app.refund(&order_id, &json!({})).await.ok(202);
    app.worker("payments").await;
    ada.expect_order(&order_id, "CANCELLED REFUNDED").await;
    refuse().await;
    app.finish().await;
}
