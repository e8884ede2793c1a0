//! Refunds whose answers are late, lost or a no: the buyer keeps the seats until the money is proven to be back, and it goes
//! back once.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{TOTAL, sold, statuses};
use crate::util::{App, Buyer, ProviderProcess, SEAT_PRICE, eventually, text};

const FAULTS: [&[&str]; 7] = [
    &["lost_reply"],
    &["lost_request"],
    &["error_500_done"],
    &["error_500_not_done"],
    &["delay:50"],
    &["lost_request", "error_500_not_done", "lost_reply"],
    &["error_500_not_done", "lost_request", "error_500_done"],
];

/// Under one key, whatever is lost, for the whole and for a part; after each the next part goes on from there.
#[tokio::test]
async fn money_goes_back_once_whatever_is_lost() {
    let app = App::start().await;
    for fault in FAULTS {
        let it = sold(&app).await;
        let mut left = TOTAL;
        for (part, cost) in [
            (json!({ "seats": ["A-1"] }), SEAT_PRICE),
            (json!({ "amount_minor": 77 }), 77),
            (json!({}), TOTAL - SEAT_PRICE - 77),
        ] {
            let last = part == json!({});
            app.provider.script("refund", fault).await;
            app.refund(&it.order_id, &part).await.ok(202);
            let shown = it.shown(&app).await;
            app.worker("payments").await;
            if !fault[0].starts_with("delay") {
                let order = it.ada.expect_order(&it.order_id, "CONFIRMED REFUND_PENDING").await;
                assert_eq!(order["refunded_minor"], TOTAL - left, "not known is not refunded: {fault:?}");
                assert_eq!(it.shown(&app).await, shown, "{fault:?}");
                app.refund(&it.order_id, &part).await.problem(409, "refund-pending");
            }
            left -= cost;
            let end = if last { "CANCELLED REFUNDED" } else { "CONFIRMED CAPTURED" };
            let order = app.work_until(&it.ada, &it.order_id, end).await;
            assert_eq!(
                (order["refunded_minor"].as_i64(), it.kept(&app).await),
                (Some(TOTAL - left), left),
                "{fault:?} {part}"
            );
        }
        let calls = app.provider.calls("refund", &it.order_id).await;
        let keys: BTreeSet<&str> = calls.iter().map(|call| text(call, "idempotency_key")).collect();
        assert_eq!(keys.len(), 3, "one key for each refund: {calls:?}");
        assert_eq!(it.shown(&app).await, ("00".to_owned(), 10), "{fault:?}");
        assert_eq!(app.open_kinds().await, "", "{fault:?}");
    }
    app.finish().await;
}

/// The provider's no is a no: the buyer keeps seats and places, a case tells of it, and another refund may be asked for.
#[tokio::test]
async fn a_refused_refund_leaves_the_buyer_what_was_bought() {
    let app = App::start().await;
    let it = sold(&app).await;
    app.provider.script("refund", &["declined"]).await;
    app.refund(&it.order_id, &json!({ "seats": ["A-1"] })).await.ok(202);
    app.worker("payments").await;
    it.stands(&app).await;
    assert_eq!(app.open_kinds().await, "refund_failed");
    assert_eq!(statuses(&app.refunds(&it.order_id).await), ["FAILED"]);
    app.advance(600_000).await;
    app.passes("payments", 2).await;
    it.stands(&app).await;
    assert_eq!(app.provider.calls("refund", &it.order_id).await.len(), 1, "a no is not asked again");
    app.refund(&it.order_id, &json!({})).await.ok(202);
    app.worker("payments").await;
    it.ada.expect_order(&it.order_id, "CANCELLED REFUNDED").await;
    assert_eq!(statuses(&app.refunds(&it.order_id).await), ["FAILED", "SUCCEEDED"]);
    assert_eq!(app.open_kinds().await, "", "the case is settled by the proof");
    app.finish().await;
}

/// The provider's own message is proof enough, comes before our question, and changes nothing the second time.
#[tokio::test]
async fn a_callback_proves_a_refund_once() {
    let app = App::start().await;
    let it = sold(&app).await;
    app.provider.script("refund", &["lost_reply"]).await;
    app.refund(&it.order_id, &json!({ "seats": ["A-1"], "ga": [{ "ga_area": "Floor", "quantity": 1 }] }))
        .await
        .ok(202);
    app.worker("payments").await;
    it.ada.expect_order(&it.order_id, "CONFIRMED REFUND_PENDING").await;
    assert_eq!(app.provider.tell(&it.order_id, "charge.refunded").await, "applied");
    let order = it.ada.expect_order(&it.order_id, "CONFIRMED CAPTURED").await;
    assert_eq!(it.shown(&app).await, ("02".to_owned(), 8));
    // Someone else has the seat now; a late or repeated proof must not take it away.
    let ben = app.buyer().await;
    let hold = ben.hold(&it.hall, &["A-1"]).await.ok(201);
    let resold = ben.pay(&hold).await;
    app.passes("payments", 2).await;
    for _ in 0..3 {
        let told = app.provider.tell_anew(&it.order_id, "charge.refunded").await;
        assert!(matches!(told.as_str(), "already_paid_reconcile" | "stale" | "duplicate"), "{told}");
        app.provider.deliver_of(&it.order_id).await;
        app.passes("payments", 1).await;
    }
    ben.expect_order(&resold, "CONFIRMED CAPTURED").await;
    assert_eq!(it.shown(&app).await, ("22".to_owned(), 8));
    assert_eq!(it.ada.order(&it.order_id).await, order);
    app.finish().await;
}

/// A message about a refund that was not asked for yet, or about less than was asked for, proves nothing of it.
#[tokio::test]
async fn a_message_about_a_smaller_refund_is_no_proof_of_a_larger_one() {
    let app = App::start().await;
    let it = sold(&app).await;
    app.refund(&it.order_id, &json!({ "amount_minor": 100 })).await.ok(202);
    app.worker("payments").await;
    app.provider.script("refund", &["lost_request"]).await;
    app.refund(&it.order_id, &json!({ "seats": ["A-1"] })).await.ok(202);
    app.worker("payments").await;
    it.ada.expect_order(&it.order_id, "CONFIRMED REFUND_PENDING").await;
    app.provider.tell_anew(&it.order_id, "charge.refunded").await;
    let order = it.ada.expect_order(&it.order_id, "CONFIRMED REFUND_PENDING").await;
    assert_eq!((&order["refunded_minor"], it.shown(&app).await.0.as_str()), (&json!(100), "22"));
    app.work_until(&it.ada, &it.order_id, "CONFIRMED CAPTURED").await;
    assert_eq!((it.kept(&app).await, it.shown(&app).await.0.as_str()), (TOTAL - 100 - SEAT_PRICE, "02"));
    app.finish().await;
}

/// Killed between the provider's refund and our books: the next server asks, and finds it done.
#[tokio::test]
async fn a_killed_servers_refund_is_found_done() {
    for (script, part) in
        [("lost_reply", json!({ "seats": ["A-2"] })), ("lost_request", json!({})), ("delay:1000", json!({}))]
    {
        let provider = ProviderProcess::start();
        let app = App::options().provider(&provider).start().await;
        let it = sold(&app).await;
        app.provider.script("refund", &[script]).await;
        app.refund(&it.order_id, &part).await.ok(202);
        if script.starts_with("delay") {
            // In the midst of the call, and the provider does it all the same.
            let call = app.operator.post("/_test/workers/payments", &json!({}));
            let pass = tokio::spawn(async move { call.try_send().await });
            let is_sent = async || app.provider.calls("refund", &it.order_id).await.len() == 1;
            eventually("the refund is sent", async || is_sent().await.then_some(())).await;
            pass.abort();
        } else {
            app.worker("payments").await;
        }
        it.ada.expect_order(&it.order_id, "CONFIRMED REFUND_PENDING").await;
        let data = app.kill();
        let app = App::options().provider(&provider).data(data).start().await;
        let ada = Buyer { client: it.ada.client.at(&app.buyers.base), account_id: it.ada.account_id.clone() };
        ada.expect_order(&it.order_id, "CONFIRMED REFUND_PENDING").await;
        app.advance(60_000).await;
        if script.starts_with("delay") {
            let is_done = async || it.kept(&app).await == 0;
            eventually("the provider has done it", async || is_done().await.then_some(())).await;
        }
        let (end, kept) = match part == json!({}) {
            true => ("CANCELLED REFUNDED", 0),
            false => ("CONFIRMED CAPTURED", TOTAL - SEAT_PRICE),
        };
        app.work_until(&ada, &it.order_id, end).await;
        assert_eq!(it.kept(&app).await, kept, "{script}");
        let done: Vec<Value> = app.provider.calls("refund", &it.order_id).await;
        let keys: BTreeSet<&str> = done.iter().map(|call| text(call, "idempotency_key")).collect();
        assert_eq!(keys.len(), 1, "{done:?}");
        app.finish().await;
    }
}
