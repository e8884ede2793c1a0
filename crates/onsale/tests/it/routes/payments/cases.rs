//! Cases: what a person may do about each, and what is kept of it.

use serde_json::{Value, json};

use super::{Begun, CAPTURED, VOIDED, begun};
use crate::routes::sale::members;
use crate::util::{App, Client, ProviderProcess, SEAT_PRICE, text};

/// The one open case, of this kind.
async fn the_case(app: &App, kind: &str) -> Value {
    assert_eq!(app.open_kinds().await, kind);
    let case = app.open_case(kind).await;
    members(
        &case,
        "case_id event_id kind order_id operation_id reference opened_at age_s evidence status owner next_check_at resolution",
    );
    assert!(
        text(&case, "case_id").starts_with("cas_") && text(&case, "operation_id").starts_with("op_"),
        "{case}"
    );
    assert_eq!((text(&case, "status"), text(&case, "owner")), ("OPEN", "worker"));
    assert_eq!(case["resolution"], Value::Null);
    case
}

/// The case as it is now; whoever acted on it and why is kept.
async fn kept(app: &App, case: &Value, status: &str, action: &str, note: &str) {
    let all = app.operator.get("/v1/reconciliation/cases").await.ok(200);
    let found = all["cases"].as_array().expect("cases").iter().find(|it| it["case_id"] == case["case_id"]);
    let found = found.expect("cases are never forgotten");
    let resolution = &found["resolution"];
    members(resolution, "action note actor at");
    assert_eq!((text(found, "status"), text(resolution, "action")), (status, action), "{found}");
    assert_eq!(text(resolution, "note"), note, "{found}");
    assert!(text(resolution, "actor").starts_with("key_"), "{found}");
    assert_eq!(found["owner"], resolution["actor"], "{found}");
}

/// A hold whose grace is over while the provider is silent or undecided.
async fn in_doubt(app: &App, scripted: &str) -> (Begun, Value) {
    app.provider.script("authorize", &[scripted]).await;
    let it = begun(app, json!({ "hold_ttl_s": 10, "payment_grace_s": 10 })).await;
    app.worker("payments").await;
    app.advance(20_000).await;
    app.worker("expirer").await;
    let case = the_case(app, "in_doubt").await;
    assert_eq!(
        (text(&case, "order_id"), text(&case, "event_id")),
        (it.order_id.as_str(), it.hall.event_id.as_str())
    );
    (it, case)
}

/// Without proof the operator has the provider asked; the proof then completes the order.
#[tokio::test]
async fn confirm_if_bound_asks_for_the_proof_and_then_completes() {
    let app = App::start().await;
    let (it, case) = in_doubt(&app, "lost_reply").await;
    let acted = app.resolve(&case, "confirm_if_bound", "seen at the provider").await.ok(200);
    assert_eq!(
        (text(&acted, "status"), text(&acted["resolution"], "note")),
        ("OPEN", "seen at the provider")
    );
    it.ada.expect_order(&it.order_id, "AWAITING_PAYMENT UNKNOWN").await;
    app.work_until(&it.ada, &it.order_id, "CONFIRMED CAPTURED").await;
    kept(&app, &case, "CLOSED", "confirm_if_bound", "seen at the provider").await;
    assert_eq!(app.provider.money(&it.order_id).await, CAPTURED);
    assert_eq!(app.seat_states(&it.hall).await, "2");
    app.finish().await;
}

/// The operator frees the seats; should there be money after all, it goes back and buys nothing.
#[tokio::test]
async fn release_frees_the_seats_and_whatever_comes_later_goes_back() {
    let app = App::start().await;
    for (scripted, end, money) in [
        ("lost_reply", "CANCELLED VOIDED", VOIDED),
        ("lost_request", "CANCELLED VOIDED", [0; 4]),
        ("requires_action", "CANCELLED VOIDED", [0; 4]),
    ] {
        let (it, case) = in_doubt(&app, scripted).await;
        app.resolve(&case, "confirm_if_bound", "let us see").await.ok(200);
        app.resolve(&case, "release", "the bank says no").await.ok(200);
        kept(&app, &case, "CLOSED", "release", "the bank says no").await;
        assert_eq!(it.ada.hold_now(&it.hold).await["status"], "RELEASED");
        assert_eq!(app.seat_states(&it.hall).await, "0");
        let ben = app.buyer().await;
        ben.hold(&it.hall, super::SEAT).await.ok(201);
        app.work_until(&it.ada, &it.order_id, end).await;
        assert_eq!(app.provider.money(&it.order_id).await, money, "{scripted}");
        assert_eq!(app.seat_states(&it.hall).await, "1", "it is Ben's");
        for action in ["release", "dismiss", "void"] {
            app.resolve(&case, action, "again").await.problem(409, "case-closed");
        }
        kept(&app, &case, "CLOSED", "release", "the bank says no").await;
        assert_eq!(app.open_kinds().await, "");
    }
    app.finish().await;
}

/// A void the provider refused stays a question until an operator has it done; only the proof closes it.
#[tokio::test]
async fn void_is_asked_for_again_and_closed_by_proof() {
    let app = App::start().await;
    app.provider.script("authorize", &["amount_mismatch"]).await;
    app.provider.script("void", &["declined"]).await;
    let it = begun(&app, json!({})).await;
    app.passes("payments", 2).await;
    assert_eq!(app.open_kinds().await, "amount_mismatch void_failed");
    let case = &app.open_case("void_failed").await;
    for (action, why) in [
        ("refund", "no money has been taken"),
        ("confirm_if_bound", "the amount paid is not the order's total"),
    ] {
        let refused = app.resolve(case, action, "try").await.problem(409, "action-not-possible");
        assert!(text(&refused, "detail").contains(why), "{refused}");
    }
    let acted = app.resolve(case, "void", "agreed with the provider").await.ok(200);
    assert_eq!(acted["status"], "OPEN", "asked for is not done: {acted}");
    it.ada.expect_order(&it.order_id, "AWAITING_PAYMENT VOID_PENDING").await;
    app.worker("payments").await;
    it.ada.expect_order(&it.order_id, "AWAITING_PAYMENT VOIDED").await;
    kept(&app, case, "CLOSED", "void", "agreed with the provider").await;
    assert_eq!(app.open_kinds().await, "");
    assert_eq!(app.provider.outcomes("void", &it.order_id).await, "declined ok");
    assert_eq!(super::keys(&app, "void", &it.order_id).await.len(), 2, "a new try is a new operation");
    app.finish().await;
}

/// The same of a refund.
#[tokio::test]
async fn refund_is_asked_for_again_and_closed_by_proof() {
    let app = App::start().await;
    app.provider.script("authorize", &["lost_reply"]).await;
    app.provider.script("refund", &["declined"]).await;
    let policy =
        json!({ "payment": "charge", "hold_ttl_s": 10, "payment_grace_s": 0, "in_doubt": "release" });
    let it = begun(&app, policy).await;
    app.worker("payments").await;
    app.advance(10_000).await;
    app.worker("expirer").await;
    assert_eq!(app.provider.deliver_of(&it.order_id).await, "refund_pending");
    app.worker("payments").await;
    assert_eq!(app.open_kinds().await, "late_success refund_failed");
    let case = &app.open_case("refund_failed").await;
    app.resolve(case, "void", "try").await.problem(409, "action-not-possible");
    app.resolve(case, "release", "try").await.problem(409, "action-not-possible");
    app.resolve(case, "refund", "the account is open again").await.ok(200);
    it.ada.expect_order(&it.order_id, "EXPIRED REFUND_PENDING").await;
    app.worker("payments").await;
    it.ada.expect_order(&it.order_id, "EXPIRED REFUNDED").await;
    kept(&app, case, "CLOSED", "refund", "the account is open again").await;
    assert_eq!(app.open_kinds().await, "");
    assert_eq!(app.provider.money(&it.order_id).await, [SEAT_PRICE, SEAT_PRICE, 0, SEAT_PRICE]);
    app.finish().await;
}

/// Dismissed, a case is closed without an act, by whom and why; the books are as before.
#[tokio::test]
async fn dismiss_closes_and_does_nothing_else() {
    let app = App::start().await;
    let (it, case) = in_doubt(&app, "processing").await;
    app.resolve(&case, "dismiss", "known at the bank, will come").await.ok(200);
    kept(&app, &case, "CLOSED", "dismiss", "known at the bank, will come").await;
    assert_eq!(it.ada.hold_now(&it.hold).await["status"], "PAYMENT_PENDING");
    assert_eq!(app.seat_states(&it.hall).await, "1");
    app.provider.complete(&app.provider.intent_of(&it.order_id).await, "success").await;
    app.work_until(&it.ada, &it.order_id, "CONFIRMED CAPTURED").await;
    app.finish().await;
}

#[tokio::test]
async fn an_act_needs_an_operator_a_word_and_a_reason() {
    let app = App::start().await;
    let (it, case) = in_doubt(&app, "lost_reply").await;
    let path = format!("/v1/reconciliation/cases/{}/resolution", text(&case, "case_id"));
    for (body, pointer) in [
        (json!({ "action": "forget", "note": "x" }), "/action"),
        (json!({ "action": "void", "note": " " }), "/note"),
        (json!({ "action": "void" }), "/note"),
        (json!({ "action": "void", "note": "x".repeat(2_001) }), "/note"),
        (json!({ "action": "void", "note": "x", "amount_minor": 1 }), "/amount_minor"),
    ] {
        let refused = app.operator.post(&path, &body).await.problem(422, "validation-failed");
        assert_eq!(text(&refused["errors"][0], "pointer"), pointer, "{refused}");
    }
    let made = app.operator.post("/v1/keys", &json!({ "role": "reader" })).await.ok(201);
    let reader: Client = app.operator.with_token(text(&made, "secret"));
    let act = json!({ "action": "dismiss", "note": "x" });
    reader.post(&path, &act).await.problem(403, "forbidden");
    reader.get("/v1/reconciliation/cases?status=OPEN").await.ok(200);
    it.ada.client.at(&app.operator.base).post(&path, &act).await.problem(403, "forbidden");
    app.operator.get("/v1/reconciliation/cases?status=LOST").await.problem(422, "validation-failed");
    let nobody = format!(
        "/v1/reconciliation/cases/{}/resolution",
        text(&it.hold, "hold_id").replacen("hld", "cas", 1)
    );
    app.operator.post(&nobody, &act).await.problem(404, "not-found");
    app.work_until(&it.ada, &it.order_id, "CONFIRMED CAPTURED").await;
    // The proof has closed it.
    app.operator.post(&path, &act).await.problem(409, "case-closed");
    app.finish().await;
}

/// What an order's seats were sold for isn't taken away by way of a case.
#[tokio::test]
async fn a_case_does_not_undo_a_sale() {
    let provider = ProviderProcess::start();
    let app = App::options().provider(&provider).start().await;
    let it = begun(&app, json!({})).await;
    app.passes("payments", 2).await;
    it.ada.expect_order(&it.order_id, "CONFIRMED CAPTURED").await;
    let mut lie = app.provider.event(&it.order_id, "payment_intent.succeeded").await;
    assert_eq!(app.callback(&lie).await.ok(200)["outcome"], "already_paid_reconcile");
    lie["created"] = json!(1);
    assert_eq!(app.callback(&lie).await.ok(200)["outcome"], "conflict");
    let case = the_case(&app, "callback_conflict").await;
    for (action, why) in [
        ("void", "refund the order instead"),
        ("refund", "refund the order instead"),
        ("confirm_if_bound", "not bound to this order"),
        ("release", "the hold binds no seats"),
    ] {
        let refused = app.resolve(&case, action, "try").await.problem(409, "action-not-possible");
        assert!(text(&refused, "detail").contains(why), "{refused}");
    }
    app.resolve(&case, "dismiss", "a test's lie").await.ok(200);
    app.passes("payments", 2).await;
    assert_eq!(app.provider.money(&it.order_id).await, CAPTURED);
    app.finish().await;
}
