//! Messages about what is not ours.

use reqwest::Method;
use serde_json::json;

use super::{CAPTURED, paying};
use crate::util::{App, ProviderProcess};

/// duncanmcclean/simple-commerce#1176, enupal/stripe#384: a payment made by hand at the same account, without the shop's
/// marks, ended in an error, and the provider kept sending it.
#[tokio::test]
async fn a_payment_without_our_marks_is_answered_and_moves_nothing() {
    let provider = ProviderProcess::start();
    let mut app = App::options().provider(&provider).start().await;
    app.expect_strangers();
    let it = paying(&app, json!({}), "processing").await;
    let made = app.provider.client.ask(Method::POST, "/v1/payment_intents").body(
        "application/x-www-form-urlencoded",
        "amount=2500&currency=eur&confirm=true&payment_method=pm_card_visa",
    );
    let made = made.await.ok(200);
    let message = app.provider.client.get("/v1/events?limit=1").await.ok(200)["data"][0].clone();
    assert_eq!(message["data"]["object"]["id"], made["id"]);
    for _ in 0..3 {
        assert_eq!(app.callback(&message).await.ok(200), json!({ "outcome": "parked" }));
    }
    // Other products of the provider speak of other objects.
    for (number, (kind, object)) in [
        (
            "checkout.session.completed",
            json!({ "id": "cs_1", "object": "checkout.session", "metadata": null }),
        ),
        ("invoice.paid", json!({ "id": "in_1", "object": "invoice", "amount_paid": "2500" })),
        ("customer.created", json!({})),
        ("payout.paid", json!([1, 2])),
    ]
    .into_iter()
    .enumerate()
    {
        let event = json!({
            "id": format!("evt_other_{number}"), "object": "event", "type": kind, "data": { "object": object },
        });
        assert_eq!(app.callback(&event).await.ok(200), json!({ "outcome": "stale" }), "{kind}");
    }
    it.ada.expect_order(&it.order_id, "AWAITING_PAYMENT PENDING").await;
    assert_eq!(app.open_kinds().await, "");
    // After ten minutes it is a question for a person, once.
    app.provider.complete(&app.provider.intent_of(&it.order_id).await, "success").await;
    app.work_until(&it.ada, &it.order_id, "CONFIRMED CAPTURED").await;
    app.advance(600_000).await;
    app.passes("reconciler", 2).await;
    assert_eq!(app.callback(&message).await.ok(200), json!({ "outcome": "parked" }));
    assert_eq!(app.open_kinds().await, "orphan_payment");
    assert_eq!(app.provider.money(&it.order_id).await, CAPTURED);
    app.finish().await;
}
