//! Callbacks against orders in every state: duplicated, reversed, early, late, forged, and about others' money.

mod orders;
mod unknown;

use serde_json::{Value, json};

use crate::util::{App, ProviderProcess, SEAT_PRICE, WEBHOOK_SECRET, signature, text, wall_seconds};
use orders::{AUTHORIZED, Paid, begun, order_in};

/// A server with a provider whose secret is known, so that callbacks can be made by hand.
async fn start() -> (App, ProviderProcess) {
    let provider = ProviderProcess::start();
    let app = App::options().provider(&provider).start().await;
    (app, provider)
}

/// The end of each row: one authorization for each attempt, the money where the order says it is.
async fn check_end(app: &App, it: &Paid, end: &str, money: [i64; 4], what: &str) {
    app.work_until(&it.ada, &it.order_id, end).await;
    let sent = app.provider.calls("authorize", &it.order_id).await;
    assert_eq!(sent.len(), 1, "{what}: one attempt, one authorization: {sent:?}");
    assert_eq!(app.provider.money(&it.order_id).await, money, "{what}");
    let seat = if end.starts_with("CONFIRMED") { "2" } else { "0" };
    assert_eq!(app.seat_states(&it.hall).await, seat, "{what}");
    assert_eq!(app.open_kinds().await, "", "{what}");
    app.audit().await;
    app.compare_books().await;
}

const CAPTURED: [i64; 4] = [SEAT_PRICE, SEAT_PRICE, 0, 0];
const VOIDED: [i64; 4] = [SEAT_PRICE, 0, SEAT_PRICE, 0];

/// What each message does to an order in each state: when it first comes, when it comes again, and as a new message of
/// the same content.
#[tokio::test]
async fn a_success_does_its_part_once_in_every_state() {
    let (app, _provider) = start().await;
    let bound = ["applied", "duplicate", "already_paid_reconcile"];
    let paid = ["already_paid_reconcile", "duplicate", "already_paid_reconcile"];
    let over = ["refund_pending", "duplicate", "refund_pending"];
    for (state, verdicts, end, money) in [
        ("pending", bound, "CONFIRMED CAPTURED", CAPTURED),
        ("requires_action", bound, "CONFIRMED CAPTURED", CAPTURED),
        ("unknown", bound, "CONFIRMED CAPTURED", CAPTURED),
        ("authorized", paid, "CONFIRMED CAPTURED", CAPTURED),
        ("captured", paid, "CONFIRMED CAPTURED", CAPTURED),
        ("cancelled", over, "CANCELLED VOIDED", VOIDED),
        ("expired", over, "EXPIRED VOIDED", VOIDED),
    ] {
        let it = order_in(&app, state).await;
        let [first, again, anew] = verdicts;
        assert_eq!(app.provider.deliver_of(&it.order_id).await, first, "{state}");
        assert_eq!(app.provider.deliver_of(&it.order_id).await, again, "{state}");
        assert_eq!(app.provider.deliver_anew(&it.order_id).await, anew, "{state}");
        check_end(&app, &it, end, money, state).await;
        // Long after, the message about the authorization tells nothing new, and changes nothing.
        app.advance(3_600_000).await;
        let late = app.provider.tell_anew(&it.order_id, AUTHORIZED);
        let stale = if end.starts_with("CONFIRMED") { "already_paid_reconcile" } else { "stale" };
        assert_eq!(late.await, stale, "{state}");
        check_end(&app, &it, end, money, state).await;
    }
    app.finish().await;
}

/// Of an attempt that ends in failure.
#[tokio::test]
async fn a_failure_leads_back_to_the_hold_once() {
    let (app, _provider) = start().await;
    for (state, result) in [("requires_action", "failure"), ("pending", "failure")] {
        let it = begun(&app, state).await;
        app.provider.complete(&app.provider.intent_of(&it.order_id).await, result).await;
        assert_eq!(app.provider.deliver_of(&it.order_id).await, "applied", "{state}");
        assert_eq!(app.provider.deliver_of(&it.order_id).await, "duplicate", "{state}");
        assert_eq!(app.provider.deliver_anew(&it.order_id).await, "stale", "{state}");
        it.ada.expect_order(&it.order_id, "AWAITING_PAYMENT DECLINED").await;
        assert_eq!(it.ada.hold_now(&it.hold).await["status"], "ACTIVE");
        it.ada.release(&it.hold).await.ok(204);
        check_end(&app, &it, "CANCELLED DECLINED", [0; 4], state).await;
    }
    app.finish().await;
}

/// A callback says what to look at, not what is so: in any order they come to the same.
#[tokio::test]
async fn reversed_messages_come_to_the_same() {
    let (app, _provider) = start().await;
    let it = begun(&app, "requires_action").await;
    let tell = async |kind: &str| app.provider.tell(&it.order_id, kind).await;
    app.provider.complete(&app.provider.intent_of(&it.order_id).await, "success").await;
    assert_eq!(tell(AUTHORIZED).await, "applied");
    // What it was before: read back, it is the success of the attempt that paid.
    assert_eq!(tell("payment_intent.requires_action").await, "already_paid_reconcile");
    app.worker("payments").await;
    it.ada.expect_order(&it.order_id, "CONFIRMED CAPTURED").await;
    assert_eq!(tell("payment_intent.succeeded").await, "already_paid_reconcile");
    assert_eq!(tell(AUTHORIZED).await, "duplicate");
    check_end(&app, &it, "CONFIRMED CAPTURED", CAPTURED, "reversed").await;

    // The capture's message overtakes the answer to the authorization, which was lost.
    let it = begun(&app, "unknown").await;
    let intent = app.provider.intent_of(&it.order_id).await;
    let at_provider =
        app.provider.client.ask(reqwest::Method::POST, &format!("/v1/payment_intents/{intent}/capture"));
    at_provider.await.ok(200);
    let tell = async |kind: &str| app.provider.tell(&it.order_id, kind).await;
    assert_eq!(tell("payment_intent.succeeded").await, "applied");
    it.ada.expect_order(&it.order_id, "CONFIRMED CAPTURED").await;
    assert_eq!(tell(AUTHORIZED).await, "already_paid_reconcile");
    check_end(&app, &it, "CONFIRMED CAPTURED", CAPTURED, "overtaken").await;
    app.finish().await;
}

/// The message of an authorization overtakes its reply: it counts, and the reply then tells nothing new.
#[tokio::test]
async fn an_early_message_counts_before_its_reply() {
    let app = App::options().webhooks("early").start().await;
    let it = begun(&app, "authorized").await;
    let metrics = app.operator.get("/metrics").await.text;
    assert!(metrics.contains("onsale_callbacks_total{outcome=\"applied\"} 1"), "{metrics}");
    app.provider.webhooks("off").await;
    assert_eq!(app.provider.tell(&it.order_id, AUTHORIZED).await, "duplicate");
    check_end(&app, &it, "CONFIRMED CAPTURED", CAPTURED, "early").await;
    app.finish().await;
}

/// The provider's own ways of telling, without a test's hand: whatever the mode, each order ends the same. A message before
/// the answer made a second order or a second capture (mercurjs/mercur#1400, medusajs/medusa#13301, saleor/saleor#12652)
/// or was lost for good (duncanmcclean/statamic-cargo#190); where none was accepted, since a clock was wrong, nothing was
/// completed (woocommerce/woocommerce-gateway-stripe#1196).
#[tokio::test]
async fn each_way_of_telling_ends_the_same() {
    let app = App::options().workers().start().await;
    let hall = app.hall(json!({}), &["A-1", "A-2", "A-3", "A-4", "A-5", "A-6"]).await;
    for (seat, mode) in [
        ("A-1", "early"),
        ("A-2", "duplicate"),
        ("A-3", "reverse"),
        ("A-4", "bad_signature"),
        ("A-5", "delay:30"),
        ("A-6", "off"),
    ] {
        app.provider.webhooks(mode).await;
        let ada = app.buyer().await;
        let hold = ada.hold(&hall, &[seat]).await.ok(201);
        let order_id = ada.pay(&hold).await;
        ada.await_order(&order_id, "CONFIRMED CAPTURED").await;
        assert_eq!(app.provider.outcomes("authorize", &order_id).await, "ok", "{mode}");
        assert_eq!(app.provider.money(&order_id).await, CAPTURED, "{mode}");
    }
    assert_eq!(app.seat_states(&hall).await, "222222");
    assert_eq!(app.open_kinds().await, "");
    app.finish().await;
}

/// Forged, too old, or not signed at all: 400, and nothing is kept. The genuine one then still has its say.
#[tokio::test]
async fn what_is_not_signed_by_the_provider_leaves_no_trace() {
    let (app, _provider) = start().await;
    for state in ["pending", "requires_action", "unknown", "authorized", "captured", "cancelled", "expired"] {
        let it = order_in(&app, state).await;
        let before = it.ada.order(&it.order_id).await;
        app.provider.webhooks("bad_signature").await;
        let (status, body) = app.provider.deliver_raw(&json!({ "order_id": it.order_id })).await;
        assert_eq!((status, text(&body, "code")), (400, "signature-invalid"), "{state}");
        app.provider.webhooks("off").await;

        let kind = if state == "captured" { "payment_intent.succeeded" } else { AUTHORIZED };
        let body = app.provider.event(&it.order_id, kind).await.to_string();
        let now = wall_seconds();
        let mut touched = body.clone();
        touched.push(' ');
        for (signed, body) in [
            (signature(WEBHOOK_SECRET, now - 310, &body), &body),
            (signature("whsec_another", now, &body), &body),
            (signature(WEBHOOK_SECRET, now, &body), &touched),
            (signature(WEBHOOK_SECRET, now, &body).replace("v1=", "v0="), &body),
            (format!("t={now}"), &body),
            (String::new(), &body),
        ] {
            app.raw_callback(&signed, body.clone()).await.problem(400, "signature-invalid");
        }
        let unsigned = app.buyers.ask(reqwest::Method::POST, "/v1/payment-callbacks/stripe");
        unsigned.body("application/json", body.clone()).await.problem(400, "signature-invalid");
        let other = app.buyers.ask(reqwest::Method::POST, "/v1/payment-callbacks/another");
        other.body("application/json", body.clone()).await.problem(404, "not-found");
        assert_eq!(it.ada.order(&it.order_id).await, before, "{state}");

        // A minute ahead of our clock is no harm.
        let verdict = app.raw_callback(&signature(WEBHOOK_SECRET, now + 60, &body), body).await.ok(200);
        let first = match state {
            "pending" | "requires_action" | "unknown" => "applied",
            "authorized" | "captured" => "already_paid_reconcile",
            _ => "refund_pending",
        };
        assert_eq!(verdict, json!({ "outcome": first }), "{state}");
        app.passes("payments", 2).await;
    }
    let metrics = app.operator.get("/metrics").await.text;
    assert!(metrics.lines().any(|line| line.contains("bad_signature") && line.ends_with(" 56")), "{metrics}");
    // Signed, but no event.
    for body in ["{}", "[]", "nothing", r#"{"id":"evt_1","type":"payment_intent.succeeded"}"#] {
        let signed = signature(WEBHOOK_SECRET, wall_seconds(), body);
        app.raw_callback(&signed, body.to_owned()).await.problem(422, "validation-failed");
    }
    app.finish().await;
}

/// A message that names another's order, or comes again with other content, is a conflict: a case, and nothing else.
#[tokio::test]
async fn a_message_that_contradicts_the_books_moves_nothing() {
    let (app, _provider) = start().await;
    let other = begun(&app, "authorized").await;
    for state in ["pending", "requires_action", "unknown", "authorized", "captured", "cancelled", "expired"] {
        let it = order_in(&app, state).await;
        let before = it.ada.order(&it.order_id).await;
        let kind = if state == "captured" { "payment_intent.succeeded" } else { AUTHORIZED };
        let mut lie = app.provider.event(&it.order_id, kind).await;
        lie["id"] = json!(format!("evt_lie_{state}"));
        lie["data"]["object"]["metadata"]["order_id"] = json!(other.order_id);
        let verdict = |event: &Value| {
            let ask = app.callback(event);
            async move { text(&ask.await.ok(200), "outcome").to_owned() }
        };
        assert_eq!(verdict(&lie).await, "conflict", "{state}");
        assert_eq!(verdict(&lie).await, "duplicate", "{state}");
        // The same id, other content.
        lie["data"]["object"]["amount"] = json!(1);
        assert_eq!(verdict(&lie).await, "conflict", "{state}");
        assert_eq!(it.ada.order(&it.order_id).await, before, "{state}");
        let cases = app.open_cases().await;
        let case = cases.iter().find(|case| case["order_id"] == it.order_id.as_str()).expect("a case");
        assert_eq!((text(case, "kind"), cases.len()), ("callback_conflict", 1), "{state}: {cases:?}");
        app.resolve(case, "dismiss", "a test's lie").await.ok(200);
        let (end, money) = match state {
            "cancelled" => ("CANCELLED VOIDED", VOIDED),
            "expired" => ("EXPIRED VOIDED", VOIDED),
            _ => ("CONFIRMED CAPTURED", CAPTURED),
        };
        if before["payment_status"] != "CAPTURED" {
            app.provider.deliver_of(&it.order_id).await;
        }
        check_end(&app, &it, end, money, state).await;
    }
    check_end(&app, &other, "CONFIRMED CAPTURED", CAPTURED, "the one that was named").await;
    app.finish().await;
}
