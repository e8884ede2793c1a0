//! A provider that keeps its own failure under an idempotency key, and tells it to every repetition.

use serde_json::json;

use super::{CAPTURED, VOIDED, paying, short};
use crate::util::{App, SEAT_PRICE, text};

/// The outcomes of a kind of operation, and the endings of the keys it was sent under.
async fn sent(app: &App, operation: &str, order_id: &str) -> (String, Vec<String>) {
    let calls = app.provider.calls(operation, order_id).await;
    let ending = |key: &str| key.split_once(':').expect("a key has parts").1.to_owned();
    let keys = calls.iter().map(|call| ending(text(call, "idempotency_key"))).collect();
    (app.provider.outcomes(operation, order_id).await, keys)
}

/// alphagov/pay-connector#3989: after an internal error of the provider, every repeated capture was told the same error,
/// since it went under the same key; two days of repeating brought nothing. alphagov/pay-connector#3962: and where the
/// money had been taken all the same, it was not looked at. Decided: when a key turns out to be spent, the provider is
/// asked how things are, and what was not done is sent under the next key.
#[tokio::test]
async fn a_kept_failure_neither_stops_nor_doubles_what_is_to_be_done() {
    let app = App::start().await;
    let mut charge = short("release");
    charge["payment"] = json!("charge");
    for (operation, what) in
        [("authorize", "confirm"), ("capture", "capture"), ("void", "cancel"), ("refund", "refund")]
    {
        let (policy, authorize, end, money) = match operation {
            "authorize" => (json!({}), "error_500_kept", "CONFIRMED CAPTURED", CAPTURED),
            "capture" => (json!({}), "ok", "CONFIRMED CAPTURED", CAPTURED),
            "void" => (short("release"), "lost_reply", "EXPIRED VOIDED", VOIDED),
            _ => (charge.clone(), "lost_reply", "EXPIRED REFUNDED", [SEAT_PRICE, SEAT_PRICE, 0, SEAT_PRICE]),
        };
        if operation != "authorize" {
            app.provider.script(operation, &["error_500_kept"]).await;
        }
        let it = paying(&app, policy, authorize).await;
        if end.starts_with("EXPIRED") {
            app.advance(20_000).await;
            app.worker("expirer").await;
            let told = app.provider.deliver_of(&it.order_id).await;
            assert_eq!(told, "refund_pending", "{operation}");
        }
        app.work_until(&it.ada, &it.order_id, end).await;
        let (outcomes, keys) = sent(&app, operation, &it.order_id).await;
        assert_eq!(outcomes, "error_500_kept replayed ok", "{operation}");
        assert_eq!(keys, [what, what, &format!("{what}:2")], "{operation}");
        assert_eq!(app.provider.money(&it.order_id).await, money, "{operation}");
        assert_eq!(app.open_kinds().await, "", "{operation}");
    }
    app.finish().await;
}

/// The second key is spent as well, and then the third is used. Nothing of it is remembered by the server.
#[tokio::test]
async fn several_spent_keys_are_gone_through_in_order() {
    let app = App::start().await;
    app.provider.script("capture", &["error_500_kept", "error_500_kept"]).await;
    let it = paying(&app, json!({}), "ok").await;
    app.work_until(&it.ada, &it.order_id, "CONFIRMED CAPTURED").await;
    let (outcomes, keys) = sent(&app, "capture", &it.order_id).await;
    assert_eq!(outcomes, "error_500_kept replayed error_500_kept replayed replayed ok");
    assert_eq!(keys, ["capture", "capture", "capture:2", "capture", "capture:2", "capture:3"]);
    assert_eq!(app.provider.money(&it.order_id).await, CAPTURED);
    assert_eq!(app.seat_states(&it.hall).await, "2");
    app.finish().await;
}
