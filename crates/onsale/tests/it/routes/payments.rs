//! Payments and the provider's ways to answer: declines, extra authentication, charges, and answers that never come.

mod cases;
mod faults;

use serde_json::{Value, json};

use crate::util::{App, Buyer, Hall, SEAT_PRICE, text};

const SEAT: &[&str] = &["A-1"];
const CAPTURED: [i64; 4] = [SEAT_PRICE, SEAT_PRICE, 0, 0];
const VOIDED: [i64; 4] = [SEAT_PRICE, 0, SEAT_PRICE, 0];

/// A hold of one seat, to be paid for.
struct Begun {
    hall: Hall,
    ada: Buyer,
    hold: Value,
    order_id: String,
}

/// Begins to pay for the one seat of a hall with these rules; the payments' worker has yet to run.
async fn begun(app: &App, policy: Value) -> Begun {
    let hall = app.hall(policy, SEAT).await;
    let ada = app.buyer().await;
    let hold = ada.hold(&hall, SEAT).await.ok(201);
    let order_id = ada.pay(&hold).await;
    Begun { hall, ada, hold, order_id }
}

/// The keys under which an order's operations of a kind were sent, each once.
async fn keys(app: &App, operation: &str, order_id: &str) -> Vec<String> {
    let calls = app.provider.calls(operation, order_id).await;
    let mut keys: Vec<String> = calls.iter().map(|call| text(call, "idempotency_key").to_owned()).collect();
    keys.dedup();
    keys
}

#[tokio::test]
async fn after_a_decline_another_card_pays_the_same_order() {
    let app = App::start().await;
    let hall = app.hall(json!({}), SEAT).await;
    let ada = app.buyer().await;
    let hold = ada.hold(&hall, SEAT).await.ok(201);
    let mut orders = Vec::new();
    for card in ["pm_card_chargeDeclined", "pm_card_visa_chargeDeclinedInsufficientFunds", "pm_card_visa"] {
        let begun = ada.checkout_as(card, &hold, card).await.ok(202);
        orders.push(text(&begun, "order_id").to_owned());
        app.worker("payments").await;
        if card != "pm_card_visa" {
            ada.expect_order(&orders[0], "AWAITING_PAYMENT DECLINED").await;
            let back = ada.hold_now(&hold).await;
            assert_eq!((&back["status"], &back["expires_at"]), (&json!("ACTIVE"), &hold["expires_at"]));
            assert_eq!(app.seat_states(&hall).await, "1", "a decline frees nothing");
            // The key that was declined says what it said; only a new one tries again.
            let again = ada.checkout_as(card, &hold, card).await;
            assert!(again.replayed());
            assert_eq!(again.ok(202), begun);
        }
    }
    orders.dedup();
    let [order_id] = orders.as_slice() else { panic!("one hold, one order: {orders:?}") };
    app.worker("payments").await;
    ada.expect_order(order_id, "CONFIRMED CAPTURED").await;
    assert_eq!(app.provider.outcomes("authorize", order_id).await, "declined declined ok");
    assert_eq!(keys(&app, "authorize", order_id).await.len(), 3, "each attempt is an operation of its own");
    assert_eq!(app.provider.money(order_id).await, CAPTURED);
    assert_eq!(app.open_kinds().await, "");
    app.finish().await;
}

/// A first attempt that was declined and succeeds after all: while its order waits it pays, afterwards it is one too
/// many.
#[tokio::test]
async fn an_earlier_attempt_may_come_too_late() {
    let app = App::start().await;
    for paid_meanwhile in [false, true] {
        app.provider.script("authorize", &["declined"]).await;
        let it = begun(&app, json!({})).await;
        app.worker("payments").await;
        it.ada.expect_order(&it.order_id, "AWAITING_PAYMENT DECLINED").await;
        let first = app.provider.intent_of(&it.order_id).await;
        if paid_meanwhile {
            it.ada.pay(&it.hold).await;
            app.passes("payments", 2).await;
            it.ada.expect_order(&it.order_id, "CONFIRMED CAPTURED").await;
        }
        let path = format!("/v1/payment_intents/{first}/confirm");
        let confirm = app.provider.client.ask(reqwest::Method::POST, &path);
        confirm.body("application/x-www-form-urlencoded", "payment_method=pm_card_visa").await.ok(200);
        let told = app.provider.deliver_of(&it.order_id).await;
        if paid_meanwhile {
            assert_eq!(told, "refund_pending");
            let case = app.open_case("surplus_authorization").await;
            assert_eq!(text(&case, "order_id"), it.order_id);
            it.ada.expect_order(&it.order_id, "CONFIRMED CAPTURED").await;
        } else {
            assert_eq!(told, "applied");
            it.ada.expect_order(&it.order_id, "CONFIRMED AUTHORIZED").await;
        }
        app.worker("payments").await;
        it.ada.expect_order(&it.order_id, "CONFIRMED CAPTURED").await;
        let back = if paid_meanwhile { SEAT_PRICE } else { 0 };
        assert_eq!(app.provider.money(&it.order_id).await, [SEAT_PRICE + back, SEAT_PRICE, back, 0]);
        assert_eq!(app.open_kinds().await, "");
        assert_eq!(app.seat_states(&it.hall).await, "2");
    }
    app.finish().await;
}

#[tokio::test]
async fn a_buyer_may_try_ten_times() {
    let app = App::start().await;
    let hall = app.hall(json!({}), SEAT).await;
    let ada = app.buyer().await;
    let hold = ada.hold(&hall, SEAT).await.ok(201);
    for _ in 0..10 {
        ada.checkout(&hold, "pm_card_chargeDeclinedExpiredCard").await.ok(202);
        app.worker("payments").await;
    }
    ada.checkout(&hold, "pm_card_visa").await.problem(409, "attempts-exhausted");
    ada.release(&hold).await.ok(204);
    app.finish().await;
}

/// The extra authentication is done, with and without a callback, or abandoned. In payloadcms/payload#15902 the browser's
/// return was enough for an order.
#[tokio::test]
async fn a_buyer_proves_who_it_is_or_walks_away() {
    let app = App::start().await;
    for (result, told, end) in [
        ("success", true, "CONFIRMED CAPTURED"),
        ("success", false, "CONFIRMED CAPTURED"),
        ("failure", true, "AWAITING_PAYMENT DECLINED"),
        ("failure", false, "AWAITING_PAYMENT DECLINED"),
    ] {
        let hall = app.hall(json!({}), SEAT).await;
        let ada = app.buyer().await;
        let hold = ada.hold(&hall, SEAT).await.ok(201);
        let path = format!("/v1/holds/{}/checkout", text(&hold, "hold_id"));
        let card = json!({
            "payment_method_token": "pm_card_threeDSecure2Required", "return_url": "https://shop.example/back",
        });
        let begun = ada.client.post(&path, &card).key(result).await.ok(202);
        let order_id = text(&begun, "order_id").to_owned();
        app.worker("payments").await;
        let order = ada.expect_order(&order_id, "AWAITING_PAYMENT REQUIRES_ACTION").await;
        let intent = app.provider.intent_of(&order_id).await;
        let action = &order["next_action"];
        assert_eq!(action["type"], "redirect", "{order}");
        assert!(text(action, "url").contains(&intent), "{order}");
        assert_eq!(
            app.provider.intents(&order_id).await[0]["next_action"]["redirect_to_url"]["return_url"],
            card["return_url"]
        );
        ada.checkout(&hold, "pm_card_visa").await.problem(409, "payment-pending");

        app.provider.complete(&intent, result).await;
        // The browser's way back proves nothing.
        ada.expect_order(&order_id, "AWAITING_PAYMENT REQUIRES_ACTION").await;
        if told {
            assert_eq!(app.provider.deliver_of(&order_id).await, "applied");
        }
        let order = app.work_until(&ada, &order_id, end).await;
        assert_eq!(order.get("next_action"), None, "{order}");
        assert_eq!(app.provider.calls("authorize", &order_id).await.len(), 1);
        if result == "failure" {
            let back = ada.hold_now(&hold).await;
            assert_eq!((&back["status"], &back["expires_at"]), (&json!("ACTIVE"), &hold["expires_at"]));
            assert_eq!(ada.pay(&hold).await, order_id);
            app.work_until(&ada, &order_id, "CONFIRMED CAPTURED").await;
        }
        assert_eq!(app.provider.money(&order_id).await, CAPTURED);
    }
    app.finish().await;
}

/// What the provider is working on is asked about, ever more seldom, until it is over.
#[tokio::test]
async fn a_payment_in_process_is_waited_for() {
    let app = App::start().await;
    for (result, end) in [("success", "CONFIRMED CAPTURED"), ("failure", "AWAITING_PAYMENT DECLINED")] {
        app.provider.script("authorize", &["processing"]).await;
        let it = begun(&app, json!({})).await;
        for _ in 0..4 {
            app.worker("payments").await;
            it.ada.expect_order(&it.order_id, "AWAITING_PAYMENT PENDING").await;
            app.advance(5_000).await;
        }
        app.provider.complete(&app.provider.intent_of(&it.order_id).await, result).await;
        app.work_until(&it.ada, &it.order_id, end).await;
        assert_eq!(app.provider.outcomes("authorize", &it.order_id).await, "processing");
        it.ada.release(&it.hold).await;
    }
    app.finish().await;
}

/// Authorised for another amount than the order's: no sale, a case, and the money let go; the hold goes on. In
/// evershopcommerce/evershop#1033 the amount of a success was not compared with the order's.
#[tokio::test]
async fn a_wrong_amount_sells_nothing() {
    let app = App::start().await;
    app.provider.script("authorize", &["amount_mismatch"]).await;
    let it = begun(&app, json!({})).await;
    app.worker("payments").await;
    it.ada.expect_order(&it.order_id, "AWAITING_PAYMENT VOID_PENDING").await;
    let case = &app.open_cases().await[0];
    assert_eq!((text(case, "kind"), text(case, "order_id")), ("amount_mismatch", it.order_id.as_str()));
    assert!(text(case, "evidence").contains("2499"), "{case}");
    assert_eq!(app.seat_states(&it.hall).await, "1");
    app.worker("payments").await;
    it.ada.expect_order(&it.order_id, "AWAITING_PAYMENT VOIDED").await;
    assert_eq!(app.open_kinds().await, "", "the money is back, by proof");
    assert_eq!(app.provider.money(&it.order_id).await, [SEAT_PRICE - 1, 0, SEAT_PRICE - 1, 0]);
    let back = it.ada.hold_now(&it.hold).await;
    assert_eq!((&back["status"], &back["expires_at"]), (&json!("ACTIVE"), &it.hold["expires_at"]));
    // The right amount buys the seat.
    assert_eq!(it.ada.pay(&it.hold).await, it.order_id);
    app.work_until(&it.ada, &it.order_id, "CONFIRMED CAPTURED").await;
    app.finish().await;
}

/// Where the provider takes the money at once, there is nothing to capture, and what comes late is given back.
#[tokio::test]
async fn a_charge_is_taken_at_once_and_refunded_when_late() {
    let app = App::start().await;
    let policy =
        json!({ "payment": "charge", "hold_ttl_s": 10, "payment_grace_s": 0, "in_doubt": "release" });
    let it = begun(&app, policy.clone()).await;
    app.worker("payments").await;
    it.ada.expect_order(&it.order_id, "CONFIRMED CAPTURED").await;
    app.worker("payments").await;
    assert_eq!(app.provider.outcomes("capture", &it.order_id).await, "");
    assert_eq!(app.provider.deliver_of(&it.order_id).await, "already_paid_reconcile");

    app.provider.script("authorize", &["lost_reply"]).await;
    let it = begun(&app, policy).await;
    app.worker("payments").await;
    app.advance(10_000).await;
    let ben = app.buyer().await;
    ben.hold(&it.hall, SEAT).await.ok(201);
    assert_eq!(app.provider.deliver_of(&it.order_id).await, "refund_pending");
    it.ada.expect_order(&it.order_id, "EXPIRED REFUND_PENDING").await;
    assert_eq!(app.open_kinds().await, "late_success");
    app.worker("payments").await;
    it.ada.expect_order(&it.order_id, "EXPIRED REFUNDED").await;
    assert_eq!(app.provider.money(&it.order_id).await, [SEAT_PRICE, SEAT_PRICE, 0, SEAT_PRICE]);
    assert_eq!(app.provider.outcomes("refund", &it.order_id).await, "ok");
    assert_eq!(app.open_kinds().await, "");
    assert_eq!(app.report(&it.hall).await["gross_minor"], 0);
    app.finish().await;
}

/// Sold, but the money can't be taken: the sale is undone before any ticket exists, and the seat is for sale again
///
#[tokio::test]
async fn a_refused_capture_undoes_the_sale() {
    let app = App::start().await;
    app.provider.script("capture", &["declined"]).await;
    let it = begun(&app, json!({})).await;
    app.worker("payments").await;
    it.ada.expect_order(&it.order_id, "CONFIRMED AUTHORIZED").await;
    assert_eq!(app.seat_states(&it.hall).await, "2");
    app.work_until(&it.ada, &it.order_id, "CANCELLED VOIDED").await;
    assert_eq!(app.seat_states(&it.hall).await, "0");
    assert_eq!(app.provider.money(&it.order_id).await, VOIDED);
    assert_eq!(app.open_kinds().await, "");
    let closed = app.operator.get("/v1/reconciliation/cases?status=CLOSED").await.ok(200);
    assert_eq!(closed["cases"][0]["kind"], "capture_failed", "it leaves a trace: {closed}");
    let report = app.report(&it.hall).await;
    assert_eq!(
        [&report["orders_cancelled"], &report["orders"], &report["gross_minor"]],
        [&json!(1), &json!(0), &json!(0)]
    );
    it.ada.checkout(&it.hold, "pm_card_visa").await.problem(409, "hold-not-active");

    let ben = app.buyer().await;
    let hold = ben.hold(&it.hall, SEAT).await.ok(201);
    let order_id = ben.pay(&hold).await;
    app.passes("payments", 2).await;
    ben.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    app.finish().await;
}
