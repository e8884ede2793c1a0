//! One purchase, done or undone twice, by several attempts or by messages about them.

use serde_json::{Value, json};

use super::{AUTHORIZED, CAPTURED, confirm_by_hand, figures, paying};
use crate::util::{App, ProviderProcess, SEAT_PRICE, text, together};

/// pretix/pretix#1166, Automattic/woocommerce-payments#3520, getdokan/dokan#2994: the buyer's return and the provider's
/// message both found an order unpaid and both completed it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_messages_about_one_success_at_once_one_counts() {
    let provider = ProviderProcess::start();
    let app = App::options().provider(&provider).start().await;
    for turn in 0..4 {
        let it = paying(&app, json!({}), "lost_reply").await;
        let message = app.provider.event(&it.order_id, AUTHORIZED).await;
        let copy = |number: usize| {
            let mut copy = message.clone();
            copy["id"] = json!(format!("evt_copy_{turn}_{number}"));
            app.callback(&copy)
        };
        let mut asks: Vec<_> = (0..8).map(|_| app.callback(&message)).collect();
        asks.extend((0..8).map(copy));
        // The worker asks in the same moment.
        asks.push(app.operator.post("/_test/workers/payments", &json!({})));
        let mut verdicts: Vec<String> = Vec::new();
        for reply in together(asks).await {
            let said = reply.ok(200);
            verdicts.extend(said.get("outcome").and_then(Value::as_str).map(str::to_owned));
        }
        let count = |what: &str| verdicts.iter().filter(|verdict| *verdict == what).count();
        assert!(count("applied") <= 1, "{verdicts:?}");
        assert_eq!(count("duplicate"), 7, "{verdicts:?}");
        assert_eq!(count("applied") + count("already_paid_reconcile"), 9, "{verdicts:?}");
        app.work_until(&it.ada, &it.order_id, "CONFIRMED CAPTURED").await;
        assert_eq!(app.provider.outcomes("capture", &it.order_id).await, "ok");
        assert_eq!(app.provider.money(&it.order_id).await, CAPTURED);
        assert_eq!(figures(&app, &it.hall, ["sold", "orders", "gross_minor"]).await, [1, 1, SEAT_PRICE]);
    }
    app.finish().await;
}

/// woocommerce/woocommerce-gateway-stripe#902, 202-ecommerce/stripe_official#79, Adyen/adyen-shopware6#311: the failure
/// of a first card was told after the second had paid, and the paid order became a failed one.
#[tokio::test]
async fn a_failure_that_is_told_late_takes_nothing_back() {
    let app = App::start().await;
    let it = paying(&app, json!({}), "declined").await;
    it.ada.expect_order(&it.order_id, "AWAITING_PAYMENT DECLINED").await;
    assert_eq!(it.ada.pay(&it.hold).await, it.order_id);
    app.worker("payments").await;
    let paid = it.ada.expect_order(&it.order_id, "CONFIRMED AUTHORIZED").await;
    let failed = "payment_intent.payment_failed";
    assert_eq!(app.provider.tell(&it.order_id, failed).await, "stale");
    assert_eq!(it.ada.order(&it.order_id).await, paid);
    app.worker("payments").await;
    let paid = it.ada.expect_order(&it.order_id, "CONFIRMED CAPTURED").await;
    app.advance(3_600_000).await;
    assert_eq!(app.provider.tell(&it.order_id, failed).await, "duplicate");
    assert_eq!(app.provider.tell_anew(&it.order_id, failed).await, "stale");
    app.passes("payments", 2).await;
    assert_eq!(it.ada.order(&it.order_id).await, paid);
    assert_eq!(app.seat_states(&it.hall).await, "2");
    assert_eq!(app.provider.money(&it.order_id).await, CAPTURED);
    assert_eq!(app.open_kinds().await, "");
    app.finish().await;
}

/// Sylius/PayumStripePlugin#76: the first attempt had succeeded, but the order remembered only the second, which was
/// still open: paid, and told to be unpaid.
#[tokio::test]
async fn whichever_attempt_succeeds_pays_and_the_other_is_called_off() {
    let app = App::start().await;
    for both in [false, true] {
        let it = paying(&app, json!({}), "declined").await;
        let first = app.provider.intent_of(&it.order_id).await;
        app.provider.script("authorize", &["requires_action"]).await;
        it.ada.pay(&it.hold).await;
        app.worker("payments").await;
        it.ada.expect_order(&it.order_id, "AWAITING_PAYMENT REQUIRES_ACTION").await;
        let second = app.provider.intent_of(&it.order_id).await;
        assert_ne!(first, second);
        confirm_by_hand(&app, &first).await;
        assert_eq!(app.provider.tell(&it.order_id, AUTHORIZED).await, "applied", "{both}");
        it.ada.expect_order(&it.order_id, "CONFIRMED AUTHORIZED").await;
        if both {
            // At the same time the buyer finishes the second: once is enough.
            app.provider.complete(&second, "success").await;
            assert_eq!(app.provider.tell(&it.order_id, AUTHORIZED).await, "refund_pending");
            let surplus = app.open_case("surplus_authorization").await;
            assert_eq!(text(&surplus, "order_id"), it.order_id);
        }
        app.work_until(&it.ada, &it.order_id, "CONFIRMED CAPTURED").await;
        app.advance(60_000).await;
        app.passes("payments", 2).await;
        let back = if both { SEAT_PRICE } else { 0 };
        let money = app.provider.money(&it.order_id).await;
        assert_eq!(money, [SEAT_PRICE + back, SEAT_PRICE, back, 0], "{both}");
        let intents = app.provider.intents(&it.order_id).await;
        assert_eq!((&intents[0]["status"], &intents[1]["status"]), (&json!("succeeded"), &json!("canceled")));
        assert_eq!(app.open_kinds().await, "", "{both}");
        assert_eq!(app.seat_states(&it.hall).await, "2");
    }
    app.finish().await;
}
