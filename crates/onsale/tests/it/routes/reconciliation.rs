//! Book against book: what callbacks never said, and what somebody did at the provider by hand.

use serde_json::{Value, json};

use crate::routes::sale::members;
use crate::util::{App, Buyer, Hall, ProviderProcess, SEAT_PRICE, finish, fresh_key, keep_in, program, text};

const SEAT: &[&str] = &["A-1"];
const HOUR_MS: i64 = 3_600_000;

struct Paid {
    hall: Hall,
    ada: Buyer,
    order_id: String,
}

/// A sale of one seat, paid and captured, of which no callback told.
async fn paid(app: &App) -> Paid {
    let it = begun(app).await;
    app.passes("payments", 2).await;
    it.ada.expect_order(&it.order_id, "CONFIRMED CAPTURED").await;
    it
}

async fn begun(app: &App) -> Paid {
    let hall = app.hall(json!({}), SEAT).await;
    let ada = app.buyer().await;
    let order_id = ada.pay(&ada.hold(&hall, SEAT).await.ok(201)).await;
    Paid { hall, ada, order_id }
}

/// Compares now; the figures wanted.
async fn run(app: &App, wanted: &str) -> Vec<i64> {
    let found = app.operator.post("/v1/reconciliation/runs", &json!({})).await.ok(200);
    let differs =
        found["differs"].as_i64().expect("differs") + found["unreadable"].as_i64().expect("unreadable");
    assert_eq!(found["differences_remain"], differs > 0, "{found}");
    wanted
        .split(' ')
        .map(|name| found[name].as_i64().unwrap_or_else(|| panic!("no {name}: {found}")))
        .collect()
}

/// A call to the provider past the application.
async fn by_hand(app: &App, path: &str, form: &str) -> Value {
    let ask = app.provider.client.ask(reqwest::Method::POST, path);
    ask.body("application/x-www-form-urlencoded", form.to_owned()).await.ok(200)
}

#[tokio::test]
async fn books_that_agree_are_found_to_agree() {
    let app = App::start().await;
    paid(&app).await;
    let answer = app.operator.post("/v1/reconciliation/runs", &json!({})).await.ok(200);
    members(
        &answer,
        "from to looked_at agreed behind differs dismissed strangers overtaken unreadable cases_opened cases_closed \
         settlement_lines differences_remain",
    );
    assert_eq!(run(&app, "looked_at agreed behind differs strangers").await, [1, 1, 0, 0, 0]);
    assert_eq!(answer["settlement_lines"], 1, "the charge is entered once: {answer}");
    assert_eq!(run(&app, "settlement_lines").await, [0]);
    app.finish().await;
}

/// The one word that nobody asks for: a decline that was taken back, and whose callback was lost.
/// opencollective/opencollective#2285: a charge whose answer was lost was never in the books.
#[tokio::test]
async fn a_decline_taken_back_whose_callback_was_lost_is_brought_to_its_end() {
    let app = App::start().await;
    for released in [false, true] {
        app.provider.script("authorize", &["declined"]).await;
        let hall = app.hall(json!({}), SEAT).await;
        let ada = app.buyer().await;
        let hold = ada.hold(&hall, SEAT).await.ok(201);
        let order_id = ada.pay(&hold).await;
        app.worker("payments").await;
        ada.expect_order(&order_id, "AWAITING_PAYMENT DECLINED").await;
        if released {
            ada.client.delete(&format!("/v1/holds/{}", text(&hold, "hold_id"))).await.ok(204);
        }
        let intent = app.provider.intent_of(&order_id).await;
        by_hand(&app, &format!("/v1/payment_intents/{intent}/confirm"), "payment_method=pm_card_visa").await;
        assert_eq!(run(&app, "behind differs").await, [1, 0]);
        let end = if released { "CANCELLED VOIDED" } else { "CONFIRMED CAPTURED" };
        app.work_until(&ada, &order_id, end).await;
        assert_eq!(app.seat_states(&hall).await, if released { "0" } else { "2" });
        assert_eq!(app.open_kinds().await, "");
        assert_eq!(run(&app, "behind differs").await, [0, 0]);
    }
    app.finish().await;
}

#[tokio::test]
async fn a_refund_made_by_hand_is_one_case_until_it_is_answered() {
    let app = App::start().await;
    let it = paid(&app).await;
    let intent = app.provider.intent_of(&it.order_id).await;
    by_hand(&app, "/v1/refunds", &format!("payment_intent={intent}&amount=700")).await;
    assert_eq!(run(&app, "looked_at differs cases_opened settlement_lines").await, [1, 1, 1, 2]);
    let case = app.open_case("refund_mismatch").await;
    assert_eq!(text(&case, "order_id"), it.order_id);
    assert!(text(&case, "evidence").contains("700"), "{case}");
    assert_eq!(run(&app, "differs cases_opened").await, [1, 0], "found again it is the same question");
    assert_eq!(app.open_kinds().await, "refund_mismatch");
    it.ada.expect_order(&it.order_id, "CONFIRMED CAPTURED").await;
    assert_eq!(app.seat_states(&it.hall).await, "2", "nothing is decided over a person's head");
    // What a person has seen and dismissed is not asked again, unless it changes.
    app.resolve(&case, "dismiss", "agreed by telephone").await.ok(200);
    assert_eq!(run(&app, "differs dismissed cases_opened").await, [0, 1, 0]);
    by_hand(&app, "/v1/refunds", &format!("payment_intent={intent}&amount=1")).await;
    assert_eq!(run(&app, "differs dismissed cases_opened").await, [1, 0, 1]);
    app.audit().await;
    app.stop();
}

/// Nothing is left to be sent: the order is done with, and the money went back once.
#[tokio::test]
async fn what_was_given_back_whole_by_hand_is_refunded_here_without_more_money() {
    let app = App::start().await;
    let it = paid(&app).await;
    let intent = app.provider.intent_of(&it.order_id).await;
    let total =
        it.ada.client.get(&format!("/v1/orders/{}", it.order_id)).await.ok(200)["total_minor"].clone();
    by_hand(&app, "/v1/refunds", &format!("payment_intent={intent}&amount={total}")).await;
    assert_eq!(run(&app, "differs cases_opened").await, [1, 1]);
    let path = format!("/v1/orders/{}/refunds", it.order_id);
    let body = json!({ "reason": "refunded at the provider", "resell": true });
    app.operator.post(&path, &body).key(&fresh_key()).await.ok(202);
    app.work_until(&it.ada, &it.order_id, "CANCELLED REFUNDED").await;
    assert_eq!(run(&app, "differs").await, [0]);
    assert_eq!(app.open_kinds().await, "", "the question is answered");
    assert_eq!(app.seat_states(&it.hall).await, "0");
    app.finish().await;
}

/// Payments that are none of ours: with money they are a question, whoever finds them, and closed when the money is gone.
#[tokio::test]
async fn payments_that_are_in_no_book_are_cases_of_the_house() {
    let mut app = App::start().await;
    app.expect_strangers();
    let it = paid(&app).await;
    let card = "amount=1200&currency=eur&capture_method=manual";
    by_hand(&app, "/v1/payment_intents", card).await;
    let approved = format!("{card}&payment_method=pm_card_visa&confirm=true");
    let bare = by_hand(&app, "/v1/payment_intents", &approved).await;
    let elsewhere = format!("op_{}1", "0".repeat(25));
    let strange = format!("{approved}&metadata[operation_id]={elsewhere}");
    by_hand(&app, "/v1/payment_intents", &strange).await;
    assert_eq!(run(&app, "differs strangers cases_opened").await, [2, 1, 2]);
    assert_eq!(run(&app, "differs strangers cases_opened").await, [2, 1, 0]);
    assert_eq!(app.open_kinds().await, "orphan_payment orphan_payment");
    for case in app.open_cases().await {
        assert_eq!((&case["event_id"], &case["order_id"]), (&Value::Null, &Value::Null));
        assert!(text(&case, "evidence").contains(text(&case, "reference")), "{case}");
    }
    let name = text(&bare, "id");
    by_hand(&app, &format!("/v1/payment_intents/{name}/cancel"), "").await;
    assert_eq!(run(&app, "differs cases_closed").await, [1, 1]);
    let [left] = &app.open_cases().await[..] else { panic!("one is left") };
    assert!(text(left, "evidence").contains(&elsewhere), "{left}");
    app.resolve(left, "dismiss", "the other shop's").await.ok(200);
    assert_eq!(run(&app, "differs dismissed").await, [0, 1]);

    // One that carries another's marks is no proof of anything: it is a question about the payment it claims to be.
    let own = app.provider.intents(&it.order_id).await;
    let operation = text(&own[0]["metadata"], "operation_id").to_owned();
    by_hand(&app, "/v1/payment_intents", &format!("{approved}&metadata[operation_id]={operation}")).await;
    assert_eq!(run(&app, "differs cases_opened").await, [1, 1]);
    assert_eq!(app.open_kinds().await, "callback_conflict");
    it.ada.expect_order(&it.order_id, "CONFIRMED CAPTURED").await;
    app.finish().await;
}

/// A provider that doesn't know our payment, as after a restore at its side or with another account's key.
#[tokio::test]
async fn money_that_the_provider_does_not_know_is_a_case() {
    let provider = ProviderProcess::start();
    let app = App::options().provider(&provider).start().await;
    let it = paid(&app).await;
    let data = app.stop();
    let other = ProviderProcess::start();
    let app = App::options().data(data.clone()).provider(&other).start().await;
    assert_eq!(run(&app, "looked_at differs cases_opened").await, [1, 1, 1]);
    assert_eq!(text(&app.open_case("missing_at_provider").await, "order_id"), it.order_id);
    assert_eq!(run(&app, "differs cases_opened").await, [1, 0]);
    app.audit().await;
    app.stop();
    let app = App::options().data(data).provider(&provider).start().await;
    assert_eq!(run(&app, "differs").await, [0], "with the right account it is answered");
    assert_eq!(app.open_kinds().await, "");
    app.finish().await;
}

/// By itself the reconciler goes from where it was; a round is made when it is due, and no sooner.
#[tokio::test]
async fn rounds_are_made_by_themselves_and_their_progress_is_kept() {
    let provider = ProviderProcess::start();
    let app = App::options().provider(&provider).start().await;
    let it = paid(&app).await;
    let intent = app.provider.intent_of(&it.order_id).await;
    by_hand(&app, "/v1/refunds", &format!("payment_intent={intent}&amount=700")).await;
    app.passes("reconciler", 2).await;
    let state = app.operator.get("/v1/reconciliation").await.ok(200);
    members(&state, "every_s overlap_s compared_to next_due_at under_way last_completed_at last_found");
    assert_eq!((&state["every_s"], &state["last_found"]), (&json!(3_600), &Value::Null));
    assert_eq!(app.open_kinds().await, "");
    app.advance(HOUR_MS).await;
    app.worker("reconciler").await;
    let state = app.operator.get("/v1/reconciliation").await.ok(200);
    assert_eq!((&state["last_found"]["differs"], &state["under_way"]), (&json!(1), &json!(false)), "{state}");
    assert_eq!(app.open_kinds().await, "refund_mismatch");
    let metrics = app.operator.get("/metrics").await.text;
    for line in [
        "onsale_reconciled_payments_total{outcome=\"differs\"} 1",
        "onsale_reconciliation_age_seconds 0.0",
        "onsale_cases_open{kind=\"refund_mismatch\"} 1",
        "onsale_case_age_seconds{kind=\"refund_mismatch\"} 0.0",
    ] {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }
    // What was reached outlives the process.
    let data = app.stop();
    let app = App::options().data(data).provider(&provider).start().await;
    app.worker("reconciler").await;
    let again = app.operator.get("/v1/reconciliation").await.ok(200);
    assert_eq!(again["last_found"], state["last_found"]);
    app.stop();
}

/// What was compared before the provider fell silent is not compared again.
#[tokio::test]
async fn a_round_that_is_cut_off_goes_on_from_there() {
    let app = App::start().await;
    let it = paid(&app).await;
    app.worker("reconciler").await;
    app.advance(HOUR_MS).await;
    // A day in which nothing was, and at its end what has to be looked at.
    let intent = app.provider.intent_of(&it.order_id).await;
    by_hand(&app, "/v1/refunds", &format!("payment_intent={intent}&amount=700")).await;
    app.provider.script("query", &["lost_reply"]).await;
    app.worker("reconciler").await;
    let state = app.operator.get("/v1/reconciliation").await.ok(200);
    assert_eq!((&state["under_way"], &state["last_found"]), (&json!(true), &Value::Null), "{state}");
    app.worker("reconciler").await;
    let state = app.operator.get("/v1/reconciliation").await.ok(200);
    assert_eq!((&state["under_way"], &state["last_found"]["differs"]), (&json!(false), &json!(1)), "{state}");
    assert_eq!(app.open_kinds().await, "refund_mismatch");
    app.audit().await;
    app.stop();
}

/// Two programs over the same books at the same time come to the same question.
#[tokio::test]
async fn two_at_once_make_one_case() {
    let provider = ProviderProcess::start();
    let app = App::options().provider(&provider).start().await;
    let it = paid(&app).await;
    let intent = app.provider.intent_of(&it.order_id).await;
    by_hand(&app, "/v1/refunds", &format!("payment_intent={intent}&amount=700")).await;
    by_hand(&app, "/v1/payment_intents", "amount=900&currency=eur&payment_method=pm_card_visa&confirm=true")
        .await;
    let data = app.data.path();
    let config = data.join("onsale.toml").display().to_string();
    let programs: Vec<_> = (0..3)
        .map(|_| {
            let mut command = program(&["reconcile", "--json", "--since", "1h", "--config", &config]);
            keep_in(&mut command, data);
            command.env("ONSALE_DATA", data).spawn().expect("the program starts")
        })
        .collect();
    let mut opened = run(&app, "cases_opened").await[0];
    for program in programs {
        let said = finish(program);
        assert_eq!(said.code, Some(1), "differences remain: {said:?}");
        let found: Value = serde_json::from_str(&said.stdout).expect("JSON");
        assert_eq!((&found["found"]["differs"], &found["differences_remain"]), (&json!(2), &json!(true)));
        opened += found["found"]["cases_opened"].as_i64().expect("cases_opened");
    }
    assert_eq!((opened, &*app.open_kinds().await), (2, "orphan_payment refund_mismatch"));
    app.audit().await;
    app.stop();
}

/// While the provider doesn't answer nothing is said of it, and nothing is lost.
#[tokio::test]
async fn a_provider_that_does_not_answer_makes_no_case() {
    let app = App::start().await;
    let it = paid(&app).await;
    let intent = app.provider.intent_of(&it.order_id).await;
    by_hand(&app, "/v1/refunds", &format!("payment_intent={intent}&amount={SEAT_PRICE}")).await;
    app.provider.script("query", &["lost_reply", "error_500_not_done"]).await;
    let ask = || app.operator.post("/v1/reconciliation/runs", &json!({}));
    for _ in 0..2 {
        ask().await.problem(503, "provider-unavailable");
        assert_eq!(app.open_kinds().await, "");
    }
    assert_eq!(run(&app, "differs cases_opened").await, [1, 1]);
    app.audit().await;
    app.stop();
}

#[tokio::test]
async fn what_makes_no_sense_and_who_may_not_is_refused() {
    let app = App::start().await;
    let ask = |body: Value| app.operator.post("/v1/reconciliation/runs", &body);
    for since in ["yesterday", "2019-01-01T00:00:00Z", "2999-01-01T00:00:00Z", ""] {
        ask(json!({ "since": since })).await.problem(422, "validation-failed");
    }
    ask(json!({ "until": 7 })).await.problem(422, "validation-failed");
    ask(json!([])).await.problem(422, "validation-failed");
    let reader = app.operator.post("/v1/keys", &json!({ "role": "reader" })).await.ok(201);
    let reader = app.operator.with_token(text(&reader, "secret"));
    reader.post("/v1/reconciliation/runs", &json!({})).await.problem(403, "forbidden");
    reader.get("/v1/reconciliation").await.ok(200);
    app.buyer().await.client.get("/v1/reconciliation").await.problem(404, "not-found");
    app.finish().await;
}
