//! The provider's lists, as they are asked for and read.

use super::*;

fn list(data: Value, has_more: bool) -> Answer {
    Answer::Json(200, json!({ "object": "list", "url": "/v1/x", "has_more": has_more, "data": data }))
}

#[tokio::test]
async fn payments_are_listed_page_by_page_and_one_that_cannot_be_read_hides_no_other() {
    let mut strange = intent("requires_prayer");
    strange["id"] = json!("pi_2");
    let mut odd = intent("succeeded");
    (odd["id"], odd["amount"]) = (json!("pi_3"), json!("much"));
    let stub = Stub::new([
        list(json!([refunded_intent(300), strange, odd]), true),
        Answer::Json(200, refunds(&[("pending", 100), ("succeeded", 200)])),
        list(json!([]), false),
    ])
    .await;
    let page = stub.stripe.list_payments(&(100..200), None).await.unwrap();
    let [first, second, third] = &page.found[..] else { panic!("three payments") };
    assert_eq!((&*first.reference, &first.seen), ("pi_1", &Ok(observation(IntentState::Captured, 200))));
    for (listed, name) in [(second, "pi_2"), (third, "pi_3")] {
        assert_eq!(listed.reference, name);
        assert!(matches!(listed.seen, Err(GatewayError::Misconfigured(_))), "{listed:?}");
    }
    assert_eq!(page.next.as_deref(), Some("pi_3"));
    let last = stub.stripe.list_payments(&(100..200), page.next.as_deref()).await.unwrap();
    assert!(last.found.is_empty() && last.next.is_none());
    stub.check_asked(&[
        "GET /v1/payment_intents created[gte]=100 created[lt]=200 limit=100 expand[]=data.latest_charge",
        "GET /v1/refunds payment_intent=pi_1 limit=100",
        "GET /v1/payment_intents created[gte]=100 created[lt]=200 limit=100 starting_after=pi_3 \
         expand[]=data.latest_charge",
    ]);
}

#[tokio::test]
async fn refunds_name_their_payment_and_entries_of_the_balance_too() {
    let entry = |id: &str, amount: i64, source: Value| {
        json!({ "id": id, "created": 150, "available_on": 170, "reporting_category": "charge", "amount": amount,
            "fee": 44, "net": amount - 44, "currency": "eur", "source": source })
    };
    let stub = Stub::new([
        list(
            json!([{"id": "re_1", "payment_intent": "pi_1"}, {"id": "re_2", "payment_intent": null}]),
            false,
        ),
        list(
            json!([
                entry("txn_1", 1250, json!({"id": "ch_1", "payment_intent": "pi_1"})),
                entry("txn_2", -300, json!({"id": "re_1", "payment_intent": {"id": "pi_1"}})),
                entry("txn_3", -44, json!(null)),
                entry("txn_4", -44, json!("po_1")),
                entry("txn_5", -44, json!({"id": "po_2"})),
            ]),
            false,
        ),
    ])
    .await;
    let refunds = stub.stripe.list_refunds(&(100..200), None).await.unwrap();
    let names: Vec<_> = refunds.found.iter().map(|refund| refund.reference.as_deref()).collect();
    assert_eq!(names, [Some("pi_1"), None]);
    let lines = stub.stripe.list_balance(&(100..200), Some("txn_0")).await.unwrap().found;
    let told: Vec<_> =
        lines.iter().map(|line| (line.amount.amount_minor, line.reference.as_deref())).collect();
    assert_eq!(told, [(1250, Some("pi_1")), (-300, Some("pi_1")), (-44, None), (-44, None), (-44, None)]);
    assert_eq!((lines[0].fee_minor, lines[0].created_s, lines[0].available_on_s), (44, 150, 170));
    stub.check_asked(&[
        "GET /v1/refunds created[gte]=100 created[lt]=200 limit=100",
        "GET /v1/balance_transactions created[gte]=100 created[lt]=200 limit=100 starting_after=txn_0 \
         expand[]=data.source",
    ]);
}

#[tokio::test]
async fn a_list_that_cannot_go_on_or_has_nameless_objects_is_not_read() {
    for answer in [
        list(json!([]), true),
        list(json!([{"amount": 1}]), false),
        list(json!([{"id": 7}]), false),
        Answer::Json(200, json!({ "data": [] })),
        Answer::Json(200, json!([])),
    ] {
        let stub = Stub::new([answer]).await;
        let read = stub.stripe.list_payments(&(0..1), None).await;
        assert!(matches!(read, Err(GatewayError::Misconfigured(_))), "{read:?}");
    }
}
