//! Orders in each of their states, with a success at the provider that nobody has been told of.

use serde_json::{Value, json};

use crate::util::{App, Buyer, Hall, text};

pub(super) const AUTHORIZED: &str = "payment_intent.amount_capturable_updated";

/// An order for the one seat of a hall.
pub(super) struct Paid {
    pub(super) hall: Hall,
    pub(super) ada: Buyer,
    pub(super) hold: Value,
    pub(super) order_id: String,
}

/// Begins to pay and lets the provider do its part, as a state needs it.
pub(super) async fn begun(app: &App, state: &str) -> Paid {
    let in_doubt = if state == "expired" { "release" } else { "keep" };
    let policy = json!({ "hold_ttl_s": 60, "payment_grace_s": 60, "in_doubt": in_doubt });
    let hall = app.hall(policy, &["A-1"]).await;
    let ada = app.buyer().await;
    let hold = ada.hold(&hall, &["A-1"]).await.ok(201);
    let (scripted, then) = match state {
        "pending" | "cancelled" => ("processing", "AWAITING_PAYMENT PENDING"),
        "requires_action" => ("requires_action", "AWAITING_PAYMENT REQUIRES_ACTION"),
        "unknown" | "expired" => ("lost_reply", "AWAITING_PAYMENT UNKNOWN"),
        "authorized" | "captured" => ("ok", "CONFIRMED AUTHORIZED"),
        other => panic!("no such state: {other}"),
    };
    app.provider.script("authorize", &[scripted]).await;
    let order_id = ada.pay(&hold).await;
    app.worker("payments").await;
    ada.expect_order(&order_id, then).await;
    Paid { hall, ada, hold, order_id }
}

/// An order in a state, with money at the provider that no message has told of yet.
pub(super) async fn order_in(app: &App, state: &str) -> Paid {
    let it = begun(app, state).await;
    let succeed = || async {
        app.provider.complete(&app.provider.intent_of(&it.order_id).await, "success").await;
    };
    match state {
        "pending" | "requires_action" => succeed().await,
        "captured" => {
            app.worker("payments").await;
            it.ada.expect_order(&it.order_id, "CONFIRMED CAPTURED").await;
        }
        "expired" => {
            app.advance(120_000).await;
            app.worker("expirer").await;
            it.ada.expect_order(&it.order_id, "EXPIRED VOID_PENDING").await;
        }
        // Called off by an operator while the provider was working on it.
        "cancelled" => {
            app.advance(120_000).await;
            app.worker("expirer").await;
            let case = &app.open_cases().await[0];
            assert_eq!(text(case, "kind"), "in_doubt");
            app.resolve(case, "release", "the buyer has called").await.ok(200);
            it.ada.expect_order(&it.order_id, "CANCELLED VOID_PENDING").await;
            succeed().await;
        }
        _ => {}
    }
    it
}
