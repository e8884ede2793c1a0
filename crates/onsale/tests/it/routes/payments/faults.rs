//! Answers that never come. Each operation is brought to its end under its one key, and no money moves twice.

use serde_json::json;

use super::{CAPTURED, VOIDED, begun, keys};
use crate::util::{App, Buyer, ProviderProcess, SEAT_PRICE};

const FAULTS: [&str; 5] = ["lost_reply", "lost_request", "error_500_done", "error_500_not_done", "delay:50"];

/// Each fault once, and some in a row.
fn faults() -> Vec<Vec<&'static str>> {
    let mut rows: Vec<Vec<&str>> = FAULTS.iter().map(|fault| vec![*fault]).collect();
    rows.push(vec!["lost_request", "error_500_not_done", "lost_request", "lost_reply"]);
    rows.push(vec!["error_500_not_done", "lost_request", "error_500_done"]);
    rows
}

/// One object and one key for each attempt. With a second object (solidusio/solidus_stripe#44), or with a key that
/// changed with each try (woocommerce/woocommerce-gateway-stripe#683), one order was charged twice.
#[tokio::test]
async fn an_authorization_is_made_once_whatever_is_lost() {
    let app = App::start().await;
    for fault in faults() {
        app.provider.script("authorize", &fault).await;
        let it = begun(&app, json!({})).await;
        app.worker("payments").await;
        let unsure = !fault[0].starts_with("delay");
        let status = if unsure { "AWAITING_PAYMENT UNKNOWN" } else { "CONFIRMED AUTHORIZED" };
        it.ada.expect_order(&it.order_id, status).await;
        if unsure {
            // Not knowing is neither: no second payment, no way back, no sale.
            it.ada.checkout(&it.hold, "pm_card_visa").await.problem(409, "payment-pending");
            it.ada.release(&it.hold).await.problem(409, "payment-pending");
            assert_eq!(app.seat_states(&it.hall).await, "1");
        }
        app.work_until(&it.ada, &it.order_id, "CONFIRMED CAPTURED").await;
        assert_eq!(keys(&app, "authorize", &it.order_id).await.len(), 1, "{fault:?}");
        assert_eq!(app.provider.intents(&it.order_id).await.len(), 1, "{fault:?}");
        assert_eq!(app.provider.money(&it.order_id).await, CAPTURED, "{fault:?}");
        let sent = app.provider.outcomes("authorize", &it.order_id).await;
        let mut want = fault.join(" ");
        // Only what the provider says was not done is sent again.
        if fault.last().is_some_and(|last| last.contains("not_done") || *last == "lost_request") {
            want.push_str(" ok");
        }
        assert_eq!(sent, want, "{fault:?}");
    }
    assert_eq!(app.open_kinds().await, "");
    app.finish().await;
}

/// In medusajs/medusa#16292 a capture without an answer was sent again under a new key.
#[tokio::test]
async fn a_capture_is_made_once_whatever_is_lost() {
    let app = App::start().await;
    for fault in faults() {
        app.provider.script("capture", &fault).await;
        let it = begun(&app, json!({})).await;
        app.worker("payments").await;
        it.ada.expect_order(&it.order_id, "CONFIRMED AUTHORIZED").await;
        app.worker("payments").await;
        // The seat and the order are kept, whatever is known of the money.
        assert_eq!(app.seat_states(&it.hall).await, "2");
        app.work_until(&it.ada, &it.order_id, "CONFIRMED CAPTURED").await;
        assert_eq!(keys(&app, "capture", &it.order_id).await.len(), 1, "{fault:?}");
        assert_eq!(app.provider.money(&it.order_id).await, CAPTURED, "{fault:?}");
        assert_eq!(app.provider.outcomes("void", &it.order_id).await, "", "{fault:?}");
    }
    assert_eq!(app.open_kinds().await, "");
    app.finish().await;
}

#[tokio::test]
async fn a_void_is_made_once_whatever_is_lost() {
    let app = App::start().await;
    for fault in faults() {
        app.provider.script("authorize", &["lost_reply"]).await;
        app.provider.script("void", &fault).await;
        let policy = json!({ "hold_ttl_s": 10, "payment_grace_s": 0, "in_doubt": "release" });
        let it = begun(&app, policy).await;
        app.worker("payments").await;
        app.advance(10_000).await;
        app.worker("expirer").await;
        it.ada.expect_order(&it.order_id, "EXPIRED VOID_PENDING").await;
        app.work_until(&it.ada, &it.order_id, "EXPIRED VOIDED").await;
        assert_eq!(keys(&app, "void", &it.order_id).await.len(), 1, "{fault:?}");
        assert_eq!(app.provider.money(&it.order_id).await, VOIDED, "{fault:?}");
        assert_eq!(app.seat_states(&it.hall).await, "0");
        assert_eq!(app.open_kinds().await, "", "{fault:?}");
    }
    app.finish().await;
}

/// The same of a refund: medusajs/medusa#16681.
#[tokio::test]
async fn a_refund_is_made_once_whatever_is_lost() {
    let app = App::start().await;
    for fault in faults() {
        app.provider.script("authorize", &["lost_reply"]).await;
        app.provider.script("refund", &fault).await;
        let policy =
            json!({ "payment": "charge", "hold_ttl_s": 10, "payment_grace_s": 0, "in_doubt": "release" });
        let it = begun(&app, policy).await;
        app.worker("payments").await;
        app.advance(10_000).await;
        app.worker("expirer").await;
        assert_eq!(app.provider.deliver_of(&it.order_id).await, "refund_pending");
        app.work_until(&it.ada, &it.order_id, "EXPIRED REFUNDED").await;
        assert_eq!(keys(&app, "refund", &it.order_id).await.len(), 1, "{fault:?}");
        assert_eq!(
            app.provider.money(&it.order_id).await,
            [SEAT_PRICE, SEAT_PRICE, 0, SEAT_PRICE],
            "{fault:?}"
        );
        assert_eq!(app.open_kinds().await, "", "{fault:?}");
    }
    app.finish().await;
}

/// a payment without an answer is asked about, twice as late each time, and never made again; after a while
/// a person is told. The answer, when it comes, ends the doubt.
#[tokio::test]
async fn an_unknown_payment_is_asked_about_ever_more_seldom() {
    let app = App::start().await;
    app.provider.script("authorize", &["lost_reply"]).await;
    app.provider.script("query", &["lost_request"; 9]).await;
    let it = begun(&app, json!({ "hold_ttl_s": 3_600 })).await;
    let begin = app.now_ms().await;
    app.worker("payments").await;
    // First asked two seconds after the answer was lost, then after twice as long each time, up to five minutes.
    let mut at_s = 0;
    for (asked, wait_s) in [2, 4, 8, 16, 32, 64, 128, 256, 300].into_iter().enumerate() {
        at_s += wait_s;
        app.set_clock(begin + at_s * 1_000 - 1).await;
        app.worker("payments").await;
        assert_eq!(app.provider.calls("query", &it.order_id).await.len(), asked, "not before {at_s} s");
        app.set_clock(begin + at_s * 1_000).await;
        app.passes("payments", 2).await;
        assert_eq!(app.provider.calls("query", &it.order_id).await.len(), asked + 1, "at {at_s} s, once");
        it.ada.expect_order(&it.order_id, "AWAITING_PAYMENT UNKNOWN").await;
        // With the lost answer to the payment itself, the eighth silence is the seventh question's.
        let told = if asked >= 6 { "payment_unknown" } else { "" };
        assert_eq!(app.open_kinds().await, told, "at {at_s} s");
        assert_eq!(app.seat_states(&it.hall).await, "1");
    }
    app.advance(300_000).await;
    app.work_until(&it.ada, &it.order_id, "CONFIRMED CAPTURED").await;
    assert_eq!(app.open_kinds().await, "");
    assert_eq!(app.provider.outcomes("authorize", &it.order_id).await, "lost_reply", "never made again");
    assert_eq!(app.provider.money(&it.order_id).await, CAPTURED);
    app.finish().await;
}

/// The provider can't be reached at all: nothing is known to be wrong, nothing is given up, and all goes on afterwards.
#[tokio::test]
async fn an_absent_provider_delays_and_breaks_nothing() {
    let provider = ProviderProcess::start();
    let nowhere = App::options().env("ONSALE_PAYMENT_BASE_URL", "http://127.0.0.1:9");
    let app = nowhere.provider(&provider).start().await;
    let it = begun(&app, json!({})).await;
    app.passes("payments", 2).await;
    it.ada.expect_order(&it.order_id, "AWAITING_PAYMENT PENDING").await;
    app.advance(5_000).await;
    app.worker("payments").await;
    it.ada.expect_order(&it.order_id, "AWAITING_PAYMENT PENDING").await;
    let now = app.now_ms().await;
    let app = App::options().provider(&provider).data(app.stop()).start().await;
    app.set_clock(now + 60_000).await;
    let ada = Buyer { client: it.ada.client.at(&app.buyers.base), ..it.ada };
    app.work_until(&ada, &it.order_id, "CONFIRMED CAPTURED").await;
    assert_eq!(app.provider.outcomes("authorize", &it.order_id).await, "ok");
    app.finish().await;
}

/// Past the time in which the provider knows a key, what was not done is never sent again: a person sees to it there.
#[tokio::test]
async fn past_the_horizon_of_its_key_nothing_is_sent() {
    let app = App::start().await;
    app.provider.script("capture", &["lost_request"]).await;
    let it = begun(&app, json!({})).await;
    app.passes("payments", 2).await;
    app.advance(23 * 3_600_000).await;
    app.passes("payments", 2).await;
    it.ada.expect_order(&it.order_id, "CONFIRMED AUTHORIZED").await;
    assert_eq!(app.provider.outcomes("capture", &it.order_id).await, "lost_request");
    assert_eq!(app.open_kinds().await, "capture_failed");
    let intent = app.provider.intent_of(&it.order_id).await;
    let by_hand =
        app.provider.client.ask(reqwest::Method::POST, &format!("/v1/payment_intents/{intent}/capture"));
    by_hand.await.ok(200);
    app.advance(300_000).await;
    app.worker("payments").await;
    it.ada.expect_order(&it.order_id, "CONFIRMED CAPTURED").await;
    assert_eq!(app.open_kinds().await, "");
    assert_eq!(app.provider.money(&it.order_id).await, CAPTURED);
    app.finish().await;
}
