//! Money that comes when the seats are gone, is told of too late, or does not come at all.

use reqwest::Method;
use serde_json::json;

use super::{AUTHORIZED, CAPTURED, SEAT, VOIDED, figures, paying, short};
use crate::util::{App, Lock, ProviderProcess, SEAT_PRICE, text};

/// woocommerce/woocommerce-gateway-stripe#1756: who took longer over the bank's extra authentication than the stock was
/// held for paid for an order that had been cancelled, and nobody noticed.
#[tokio::test]
async fn an_authentication_that_takes_too_long_is_paid_in_full_or_not_at_all() {
    let app = App::start().await;
    for (in_doubt, asked, verdict, end, seat, money) in [
        ("keep", false, "applied", "CONFIRMED CAPTURED", "2", CAPTURED),
        // The provider has been asked, and the attempt is on its way to be called off.
        ("keep", true, "refund_pending", "EXPIRED VOIDED", "0", VOIDED),
        ("release", false, "refund_pending", "EXPIRED VOIDED", "0", VOIDED),
    ] {
        let what = format!("{in_doubt} {asked}");
        let it = paying(&app, short(in_doubt), "requires_action").await;
        it.ada.expect_order(&it.order_id, "AWAITING_PAYMENT REQUIRES_ACTION").await;
        app.advance(20_000).await;
        app.worker("expirer").await;
        if asked {
            app.worker("payments").await;
        }
        app.provider.complete(&app.provider.intent_of(&it.order_id).await, "success").await;
        assert_eq!(app.provider.tell(&it.order_id, AUTHORIZED).await, verdict, "{what}");
        app.work_until(&it.ada, &it.order_id, end).await;
        assert_eq!(app.seat_states(&it.hall).await, seat, "{what}");
        assert_eq!(app.provider.money(&it.order_id).await, money, "{what}");
        assert_eq!(app.open_kinds().await, "", "{what}");
    }
    app.finish().await;
}

/// big-neon/bn-api#1189: a payment told of after its order had expired was to reserve the tickets again. Decided: it does
/// not, even while the seats are still free. The money goes back, and an operator can't make it otherwise.
#[tokio::test]
async fn a_late_payment_does_not_bring_the_seats_back() {
    let app = App::start().await;
    let it = paying(&app, short("release"), "lost_reply").await;
    app.advance(20_000).await;
    app.worker("expirer").await;
    assert_eq!(app.seat_states(&it.hall).await, "0");
    assert_eq!(app.provider.deliver_of(&it.order_id).await, "refund_pending");
    let case = app.open_case("late_success").await;
    app.resolve(&case, "confirm_if_bound", "it is still free").await.problem(409, "action-not-possible");
    app.worker("payments").await;
    it.ada.expect_order(&it.order_id, "EXPIRED VOIDED").await;
    assert_eq!(app.seat_states(&it.hall).await, "0");
    assert_eq!(app.provider.money(&it.order_id).await, VOIDED);
    // The same buyer begins anew, like anyone.
    let hold = it.ada.hold(&it.hall, SEAT).await.ok(201);
    let anew = it.ada.pay(&hold).await;
    assert_ne!(anew, it.order_id);
    app.passes("payments", 2).await;
    it.ada.expect_order(&anew, "CONFIRMED CAPTURED").await;
    app.finish().await;
}

/// HiEventsDev/Hi.Events#513: a success for an expired order was refunded and answered with an error, so that it came
/// again and again.
#[tokio::test]
async fn a_late_charge_is_answered_and_refunded_once_however_often_it_is_told() {
    let app = App::start().await;
    let mut policy = short("release");
    policy["payment"] = json!("charge");
    let it = paying(&app, policy, "lost_reply").await;
    app.advance(20_000).await;
    app.worker("expirer").await;
    for _ in 0..3 {
        let told = app.provider.tell_anew(&it.order_id, "payment_intent.succeeded").await;
        assert_eq!(told, "refund_pending");
    }
    app.work_until(&it.ada, &it.order_id, "EXPIRED REFUNDED").await;
    for _ in 0..3 {
        app.provider.tell_anew(&it.order_id, "payment_intent.succeeded").await;
        app.worker("payments").await;
    }
    it.ada.expect_order(&it.order_id, "EXPIRED REFUNDED").await;
    assert_eq!(app.provider.outcomes("refund", &it.order_id).await, "ok");
    assert_eq!(app.provider.money(&it.order_id).await, [SEAT_PRICE, SEAT_PRICE, 0, SEAT_PRICE]);
    assert_eq!(app.open_kinds().await, "");
    app.finish().await;
}

/// HiEventsDev/Hi.Events#598: the message about a payment failed the first time; repeated, it was answered with success
/// though nothing had been done.
#[tokio::test]
async fn a_message_that_could_not_be_kept_has_not_been_had() {
    let provider = ProviderProcess::start();
    let app = App::options().provider(&provider).start().await;
    let it = paying(&app, json!({}), "lost_reply").await;
    let message = app.provider.event(&it.order_id, AUTHORIZED).await;
    let lock = Lock::take(app.data.path());
    let failed = app.callback(&message).await;
    assert_eq!((failed.status, failed.body["retryable"].as_bool()), (503, Some(true)), "{}", failed.text);
    drop(lock);
    it.ada.expect_order(&it.order_id, "AWAITING_PAYMENT UNKNOWN").await;
    assert_eq!(app.callback(&message).await.ok(200), json!({ "outcome": "applied" }));
    assert_eq!(app.callback(&message).await.ok(200), json!({ "outcome": "duplicate" }));
    app.work_until(&it.ada, &it.order_id, "CONFIRMED CAPTURED").await;
    assert_eq!(app.provider.money(&it.order_id).await, CAPTURED);
    app.finish().await;
}

/// fossasia/open-event-server#5016: tickets stayed locked after their payment had failed.
#[tokio::test]
async fn a_failed_payment_keeps_no_seat_longer_than_its_hold() {
    let app = App::start().await;
    let hall = app.hall(json!({ "hold_ttl_s": 60 }), &["A-1", "A-2"]).await;
    let (ada, ben, cleo) = (app.buyer().await, app.buyer().await, app.buyer().await);
    app.provider.script("authorize", &["declined", "declined"]).await;
    let mut orders = Vec::new();
    let mut holds = Vec::new();
    for (buyer, seat) in [(&ada, "A-1"), (&cleo, "A-2")] {
        let hold = buyer.hold(&hall, &[seat]).await.ok(201);
        orders.push(buyer.pay(&hold).await);
        holds.push(hold);
    }
    app.worker("payments").await;
    ada.expect_order(&orders[0], "AWAITING_PAYMENT DECLINED").await;
    // Ada gives up and says so, Cleo walks away. Nothing has swept when Ben asks.
    ada.release(&holds[0]).await.ok(204);
    ada.expect_order(&orders[0], "CANCELLED DECLINED").await;
    assert_eq!(app.seat_states(&hall).await, "01");
    ben.hold(&hall, &["A-1", "A-2"]).await.problem(409, "seat-unavailable");
    app.advance(60_000).await;
    let hold = ben.hold(&hall, &["A-1", "A-2"]).await.ok(201);
    cleo.expect_order(&orders[1], "EXPIRED DECLINED").await;
    let order_id = ben.pay(&hold).await;
    app.passes("payments", 2).await;
    ben.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    let orders = figures(&app, &hall, ["orders", "orders_cancelled", "orders_expired", "sold"]).await;
    assert_eq!(orders, [1, 1, 1, 2]);
    app.finish().await;
}

/// Automattic/woocommerce-payments#744: nobody noticed that an authorization had lapsed before it was captured.
/// Automattic/woocommerce-payments#5605: the money of a cancelled order could still be captured.
#[tokio::test]
async fn a_lapsed_authorization_undoes_the_sale_and_is_not_captured() {
    let app = App::start().await;
    let it = paying(&app, json!({}), "ok").await;
    it.ada.expect_order(&it.order_id, "CONFIRMED AUTHORIZED").await;
    let intent = app.provider.intent_of(&it.order_id).await;
    let cancel = app.provider.client.ask(Method::POST, &format!("/v1/payment_intents/{intent}/cancel"));
    cancel.await.ok(200);
    assert_eq!(app.provider.tell(&it.order_id, "payment_intent.canceled").await, "applied");
    it.ada.expect_order(&it.order_id, "CANCELLED VOIDED").await;
    app.advance(60_000).await;
    app.passes("payments", 2).await;
    assert_eq!(app.provider.outcomes("capture", &it.order_id).await, "", "nothing is taken for no seat");
    assert_eq!(app.provider.money(&it.order_id).await, VOIDED);
    let cases = app.operator.get("/v1/reconciliation/cases").await.ok(200);
    assert_eq!(text(&cases["cases"][0], "kind"), "capture_failed", "it leaves a trace: {cases}");
    assert_eq!(app.seat_states(&it.hall).await, "0");
    let ben = app.buyer().await;
    let hold = ben.hold(&it.hall, SEAT).await.ok(201);
    let order_id = ben.pay(&hold).await;
    app.passes("payments", 2).await;
    ben.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    app.finish().await;
}
