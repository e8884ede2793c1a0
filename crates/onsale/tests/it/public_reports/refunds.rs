//! Refunds: done twice, too large, shown as done when they were not, or taking more with them than was given back.

use serde_json::json;

use super::figures;
use crate::util::{App, Buyer, Hall, SEAT_PRICE, counts, fresh_key, tally, together};

const SEATS: &[&str] = &["A-1", "A-2", "A-3"];
const TOTAL: i64 = 3 * SEAT_PRICE;

/// An order of three seats that is paid for.
async fn paid(app: &App) -> (Hall, Buyer, String) {
    let hall = app.hall(json!({}), SEATS).await;
    let ada = app.buyer().await;
    let hold = ada.hold(&hall, SEATS).await.ok(201);
    let order_id = ada.pay(&hold).await;
    app.passes("payments", 2).await;
    ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    (hall, ada, order_id)
}

async fn kept(app: &App, order_id: &str) -> i64 {
    let [_, captured, _, refunded] = app.provider.money(order_id).await;
    captured - refunded
}

/// openfoodfoundation/openfoodnetwork#6330, coopcycle/coopcycle-web#4608, govuk-pay/pay-selfservice#4985,
/// polarsource/polar#5256: a double click on the button gave the money back twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_double_click_gives_back_once() {
    let app = App::start().await;
    let (_, ada, order_id) = paid(&app).await;
    let part = json!({ "amount_minor": 392 });
    let key = fresh_key();
    let mut asks: Vec<_> = (0..8).map(|_| app.refund_as(&key, &order_id, &part)).collect();
    asks.extend((0..8).map(|_| app.refund(&order_id, &part)));
    let told = tally(&together(asks).await);
    // Whichever came first, with one key or another, is the only one.
    let begun = told.get("202 ok").copied().unwrap_or(0);
    assert!(begun == 8 || begun == 1, "{told:?}");
    assert_eq!(told.get("409 refund-pending").copied(), Some(16 - begun), "{told:?}");
    app.passes("payments", 3).await;
    ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    assert_eq!((kept(&app, &order_id).await, app.refunds(&order_id).await.len()), (TOTAL - 392, 1));
    app.finish().await;
}

/// craftcms/commerce#1098: all but one, and then all once more. killbill/killbill#334: more was given back than had been taken.
#[tokio::test]
async fn steps_never_add_up_to_more_than_was_taken() {
    let app = App::start().await;
    let (_, ada, order_id) = paid(&app).await;
    app.refund(&order_id, &json!({ "amount_minor": TOTAL - 1 })).await.ok(202);
    app.worker("payments").await;
    ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    for amount in [2, TOTAL, i64::MAX] {
        let problem =
            app.refund(&order_id, &json!({ "amount_minor": amount })).await.problem(409, "refund-too-large");
        assert_eq!(problem["left_minor"], 1);
    }
    app.refund(&order_id, &json!({ "seats": ["A-1"] })).await.problem(409, "refund-too-large");
    assert_eq!(kept(&app, &order_id).await, 1);
    app.refund(&order_id, &json!({})).await.ok(202);
    app.worker("payments").await;
    ada.expect_order(&order_id, "CANCELLED REFUNDED").await;
    assert_eq!(kept(&app, &order_id).await, 0);
    app.finish().await;
}

/// awesomemotive/easy-digital-downloads#9013, fluent-cart/fluent-cart#42, woocommerce/woocommerce-gateway-stripe#4405,
/// Automattic/woocommerce-payments#312: the provider said no, and the shop said that the money was back.
#[tokio::test]
async fn a_refund_that_failed_is_not_shown_as_done() {
    let app = App::start().await;
    let (hall, ada, order_id) = paid(&app).await;
    app.provider.script("refund", &["declined"]).await;
    app.refund(&order_id, &json!({})).await.ok(202);
    ada.expect_order(&order_id, "CONFIRMED REFUND_PENDING").await;
    app.worker("payments").await;
    let order = ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    assert_eq!(order["refunded_minor"], 0);
    assert_eq!(app.refunds(&order_id).await[0]["status"], "FAILED");
    assert_eq!(
        (app.seat_states(&hall).await.as_str(), app.open_kinds().await.as_str()),
        ("222", "refund_failed")
    );
    assert_eq!(kept(&app, &order_id).await, TOTAL);
    app.finish().await;
}

/// Automattic/camptix#66, 202-ecommerce/stripe_official#159: one ticket of three was refunded, or a part of the money, and
/// the whole order was pending or cancelled. woocommerce/woocommerce#22685: it was shown as refunded in full.
#[tokio::test]
async fn a_part_takes_nothing_else_with_it() {
    let app = App::start().await;
    let (hall, ada, order_id) = paid(&app).await;
    app.refund(&order_id, &json!({ "seats": ["A-2"] })).await.ok(202);
    app.worker("payments").await;
    assert_eq!(app.provider.tell_anew(&order_id, "charge.refunded").await, "already_paid_reconcile");
    let order = ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    assert_eq!((&order["refunded_minor"], &order["returned_seats"]), (&json!(SEAT_PRICE), &json!(["A-2"])));
    assert_eq!(app.seat_states(&hall).await, "202");
    assert_eq!(figures(&app, &hall, ["sold", "orders", "orders_cancelled"]).await, [2, 1, 0]);
    app.finish().await;
}

/// nopSolutions/nopCommerce#740, grandnode/grandnode#951: parts that were the whole together left it refunded in part.
/// WonderTix/WonderTix#588: what had been bought was gone from the history of who had it refunded.
#[tokio::test]
async fn parts_that_are_the_whole_are_the_whole() {
    let app = App::start().await;
    let (hall, ada, order_id) = paid(&app).await;
    for (seat, end) in
        [("A-1", "CONFIRMED CAPTURED"), ("A-2", "CONFIRMED CAPTURED"), ("A-3", "CANCELLED REFUNDED")]
    {
        app.refund(&order_id, &json!({ "seats": [seat] })).await.ok(202);
        app.worker("payments").await;
        ada.expect_order(&order_id, end).await;
    }
    let order = ada.order(&order_id).await;
    assert_eq!((&order["refunded_minor"], &order["total_minor"]), (&json!(TOTAL), &json!(TOTAL)));
    assert_eq!(order["seats"].as_array().map(Vec::len), Some(3), "what was bought stays told: {order}");
    assert_eq!(order["returned_seats"], json!(SEATS));
    assert_eq!(app.seat_states(&hall).await, "000");
    app.finish().await;
}

/// mollie/Shopware6#1445: the whole was refunded of what had not been captured.
#[tokio::test]
async fn what_was_not_taken_is_not_given_back() {
    let app = App::start().await;
    let hall = app.hall(json!({}), SEATS).await;
    let ada = app.buyer().await;
    let hold = ada.hold(&hall, SEATS).await.ok(201);
    let order_id = ada.pay(&hold).await;
    app.worker("payments").await;
    ada.expect_order(&order_id, "CONFIRMED AUTHORIZED").await;
    let replies = together((0..4).map(|_| app.refund(&order_id, &json!({}))).collect()).await;
    assert_eq!(tally(&replies), counts([("409 not-refundable", 4)]));
    app.worker("payments").await;
    ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    assert_eq!(app.provider.outcomes("refund", &order_id).await, "");
    app.finish().await;
}
