//! Limits that are got around, and limits that stand in the way of those who keep to them.

use serde_json::json;

use crate::util::{App, counts, tally, together};

const EIGHT: [&str; 8] = ["A-1", "A-2", "A-3", "A-4", "A-5", "A-6", "A-7", "A-8"];

/// big-neon/bn-api#1052: with a limit of one for each order, one could be bought again and again. big-neon/bn-api#891: the
/// check looked at what was reserved and not at what was bought. Decided: the limit counts what an account has held and
/// bought of an event, together.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_counts_what_was_bought_before_and_what_is_asked_for_at_once() {
    let app = App::start().await;
    let hall = app.hall(json!({ "tickets_per_account_max": 2 }), &EIGHT).await;
    let ada = app.buyer().await;
    for seat in ["A-1", "A-2"] {
        let hold = ada.hold(&hall, &[seat]).await.ok(201);
        let order_id = ada.pay(&hold).await;
        app.passes("payments", 2).await;
        ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    }
    let refused = ada.hold(&hall, &["A-3"]).await.problem(409, "account-limit");
    assert_eq!((&refused["limit"], &refused["in_use"]), (&json!(2), &json!(2)));

    // Many requests at once, each of which alone would be within the limit.
    let ben = app.buyer().await;
    let free = &EIGHT[2..];
    let replies = together(free.iter().map(|seat| ben.hold(&hall, &[seat])).collect()).await;
    assert_eq!(tally(&replies), counts([("201 ok", 2), ("409 account-limit", 4)]));
    for held in replies.iter().filter(|reply| reply.status == 201) {
        ben.pay(&held.body).await;
    }
    app.passes("payments", 2).await;
    let replies = together(free.iter().map(|seat| ben.hold(&hall, &[seat])).collect()).await;
    assert_eq!(tally(&replies), counts([("409 account-limit", 6)]));
    assert_eq!(app.seat_states(&hall).await.matches('2').count(), 4);
    app.finish().await;
}

/// SparkDevNetwork/Rock#6882, odoo/odoo#89283: when the last places were taken, those who had them could not pay, because
/// their own places counted against them. woocommerce/woocommerce#67354: and a buyer was kept out by its own forgotten
/// reservation. Decided: a second wish for seats one holds already is refused by name; giving them back frees them at once.
#[tokio::test]
async fn ones_own_seats_do_not_stand_in_the_way() {
    let app = App::start().await;
    let hall = app.hall(json!({ "tickets_per_account_max": 2 }), &["A-1", "A-2"]).await;
    let ada = app.buyer().await;
    let forgotten = ada.hold(&hall, &["A-1"]).await.ok(201);
    let refused = ada.hold(&hall, &["A-1"]).await.problem(409, "seat-unavailable");
    assert_eq!(refused["seats"], json!(["A-1"]));
    ada.release(&forgotten).await.ok(204);
    // Sold out to the last seat, and at the limit: paying needs nothing more.
    let hold = ada.hold(&hall, &["A-1", "A-2"]).await.ok(201);
    app.provider.script("authorize", &["declined"]).await;
    let order_id = ada.pay(&hold).await;
    app.worker("payments").await;
    ada.expect_order(&order_id, "AWAITING_PAYMENT DECLINED").await;
    assert_eq!(ada.pay(&hold).await, order_id);
    app.passes("payments", 2).await;
    ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    assert_eq!(app.seat_states(&hall).await, "22");
    app.finish().await;
}
