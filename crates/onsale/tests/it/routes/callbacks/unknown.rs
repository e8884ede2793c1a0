//! Callbacks that can't be placed or proven when they come: parked, looked at again, and in the end a case.

use reqwest::Method;
use serde_json::json;

use super::{CAPTURED, begun, check_end, order_in, start};
use crate::util::{App, text};

/// what can't be read back moves nothing. It is looked at again, and then it counts.
#[tokio::test]
async fn what_cannot_be_read_back_waits_for_proof() {
    let (app, _provider) = start().await;
    for state in ["pending", "requires_action", "unknown"] {
        let it = order_in(&app, state).await;
        let before = it.ada.order(&it.order_id).await;
        app.provider.script("query", &["lost_request", "error_500_not_done", "lost_reply"]).await;
        assert_eq!(app.provider.deliver_of(&it.order_id).await, "parked", "{state}");
        assert_eq!(app.provider.deliver_of(&it.order_id).await, "parked", "{state}");
        assert_eq!(it.ada.order(&it.order_id).await, before, "{state}");
        // Not before its time; then once more without an answer, then with one.
        app.worker("reconciler").await;
        assert_eq!(it.ada.order(&it.order_id).await, before, "{state}");
        app.advance(10_000).await;
        app.worker("reconciler").await;
        assert_eq!(it.ada.order(&it.order_id).await, before, "{state}");
        app.advance(10_000).await;
        app.worker("reconciler").await;
        it.ada.expect_order(&it.order_id, "CONFIRMED AUTHORIZED").await;
        assert_eq!(app.provider.deliver_of(&it.order_id).await, "duplicate", "{state}");
        check_end(&app, &it, "CONFIRMED CAPTURED", CAPTURED, state).await;
    }
    app.finish().await;
}

/// A payment of no order of ours: parked, looked at again until the horizon, then a case that a person closes.
#[tokio::test]
async fn a_payment_nobody_can_place_becomes_a_case() {
    let (mut app, _provider) = start().await;
    app.expect_strangers();
    let stranger = stranger(&app).await;
    let deliver = || app.provider.deliver(&stranger);
    assert_eq!(deliver().await, "parked");
    assert_eq!(deliver().await, "parked");
    let begin = app.now_ms().await;
    for at_s in [10, 20, 300, 599] {
        app.set_clock(begin + at_s * 1_000).await;
        app.worker("reconciler").await;
        assert_eq!(app.open_kinds().await, "", "after {at_s} s");
    }
    app.set_clock(begin + 599_999).await;
    assert_eq!(deliver().await, "parked");
    assert_eq!(app.open_kinds().await, "");
    app.set_clock(begin + 610_000).await;
    app.worker("reconciler").await;
    let cases = app.open_cases().await;
    assert_eq!(cases.len(), 1);
    let case = &cases[0];
    assert_eq!(
        (text(case, "kind"), &case["order_id"], &case["event_id"]),
        ("orphan_payment", &json!(null), &json!(null))
    );
    assert!(text(case, "evidence").contains("is no payment of ours"), "{case}");
    assert_eq!(case["age_s"], 0);
    // Told again, it is the same question.
    app.advance(60_000).await;
    assert_eq!(deliver().await, "parked");
    app.worker("reconciler").await;
    assert_eq!(app.open_kinds().await, "orphan_payment");
    app.resolve(case, "refund", "not ours").await.problem(409, "action-not-possible");
    app.resolve(case, "dismiss", "another shop's, at the same provider").await.ok(200);
    assert_eq!(deliver().await, "parked");
    app.passes("reconciler", 2).await;
    assert_eq!(app.open_kinds().await, "");
    let untouched = app.provider.log().await;
    assert!(
        untouched.iter().all(|call| matches!(text(call, "operation"), "authorize" | "query")),
        "{untouched:?}"
    );
    app.finish().await;
}

/// R-87 and a restart: what was parked before is looked at after, by the server that runs then.
#[tokio::test]
async fn a_parked_message_outlives_a_restart() {
    let (app, provider) = start().await;
    let it = order_in(&app, "unknown").await;
    app.provider.script("query", &["lost_request"]).await;
    assert_eq!(app.provider.deliver_of(&it.order_id).await, "parked");
    let now = app.now_ms().await;
    let app = App::options().provider(&provider).data(app.stop()).start().await;
    app.set_clock(now + 10_000).await;
    let ada = crate::util::Buyer { client: it.ada.client.at(&app.buyers.base), ..it.ada.clone() };
    let it = super::Paid { ada, ..it };
    it.ada.expect_order(&it.order_id, "AWAITING_PAYMENT UNKNOWN").await;
    app.worker("reconciler").await;
    it.ada.expect_order(&it.order_id, "CONFIRMED AUTHORIZED").await;
    check_end(&app, &it, "CONFIRMED CAPTURED", CAPTURED, "restarted").await;
    app.finish().await;
}

/// A stranger's payment that claims to be one of our attempts, or our order's, is not believed.
#[tokio::test]
async fn a_payment_that_pretends_to_be_ours_is_a_conflict() {
    let (mut app, _provider) = start().await;
    app.expect_strangers();
    let it = begun(&app, "unknown").await;
    let sent = app.provider.calls("authorize", &it.order_id).await;
    let operation_id = text(&sent[0], "idempotency_key").split(':').next().expect("an id").to_owned();
    let form = format!(
        "amount=1&currency=eur&confirm=true&payment_method=pm_card_visa&metadata[operation_id]={operation_id}"
    );
    let made = app.provider.client.ask(Method::POST, "/v1/payment_intents");
    let made = made.body("application/x-www-form-urlencoded", form).await.ok(200);
    let event = app.provider.client.get("/v1/events?limit=1").await.ok(200)["data"][0].clone();
    assert_eq!(event["data"]["object"]["id"], made["id"]);
    assert_eq!(app.callback(&event).await.ok(200)["outcome"], "conflict");
    it.ada.expect_order(&it.order_id, "AWAITING_PAYMENT UNKNOWN").await;
    let cases = app.open_cases().await;
    assert_eq!((cases.len(), text(&cases[0], "kind")), (1, "callback_conflict"));
    app.resolve(&cases[0], "dismiss", "a test's forgery").await.ok(200);
    check_end(&app, &it, "CONFIRMED CAPTURED", CAPTURED, "pretended").await;
    app.finish().await;
}

/// A payment made at the provider by someone else; what to deliver.
async fn stranger(app: &App) -> serde_json::Value {
    let form =
        "amount=700&currency=eur&confirm=true&payment_method=pm_card_visa&metadata[order_id]=of_another_shop";
    let made = app.provider.client.ask(Method::POST, "/v1/payment_intents");
    made.body("application/x-www-form-urlencoded", form).await.ok(200);
    json!({ "order_id": "of_another_shop" })
}
