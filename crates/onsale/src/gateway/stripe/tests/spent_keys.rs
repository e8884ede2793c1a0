//! Keys under which the provider keeps a failure of its own.

use super::*;

/// The provider keeps its own failures under their keys for good. What did not happen is asked for under the next key, and
/// never before the intent has been looked at.
#[tokio::test]
async fn a_spent_key_is_followed_by_a_look_and_the_next_key() {
    let kept = || {
        let body = error(json!({"type": "api_error"})).to_string();
        Answer::Raw(500, &[("idempotent-replayed", "true")], body)
    };
    let standing = || Answer::Json(200, intent("requires_capture"));
    let taken = || Answer::Json(200, refunded_intent(0));
    let (post, look) =
        ("POST /v1/payment_intents/pi_1/capture", "GET /v1/payment_intents/pi_1 expand[]=latest_charge");
    let sent = |number: &str| format!("{post} {OPERATION}:capture{number} amount_to_capture=1250");

    let stub = Stub::new([kept(), standing(), kept(), standing(), taken()]).await;
    let seen = stub.stripe.capture("pi_1", OPERATION, eur(1250)).await;
    assert_eq!(seen, Ok(observation(IntentState::Captured, 0)));
    stub.check_asked(&[&sent(""), look, &sent(":2"), look, &sent(":3")]);

    // It was done after all: nothing is sent again.
    let stub = Stub::new([kept(), taken()]).await;
    let seen = stub.stripe.capture("pi_1", OPERATION, eur(1250)).await;
    assert_eq!(seen, Ok(observation(IntentState::Captured, 0)));
    stub.check_asked(&[&sent(""), look]);

    // Without a look there is no next key, and there is an end to them.
    let stub = Stub::new([kept(), Answer::Json(500, json!({}))]).await;
    let seen = stub.stripe.capture("pi_1", OPERATION, eur(1250)).await;
    assert!(matches!(seen, Err(GatewayError::NoAnswer(_))), "{seen:?}");
    stub.check_asked(&[&sent(""), look]);
    let stub = Stub::new((0..KEYS_TRIED_MAX).flat_map(|_| [kept(), standing()])).await;
    let seen = stub.stripe.capture("pi_1", OPERATION, eur(1250)).await;
    assert!(matches!(seen, Err(GatewayError::NoAnswer(_))), "{seen:?}");

    // A failure that comes for the first time says nothing about the key.
    let stub = Stub::new([Answer::Json(500, json!({}))]).await;
    let seen = stub.stripe.capture("pi_1", OPERATION, eur(1250)).await;
    assert!(matches!(seen, Err(GatewayError::NoAnswer(_))), "{seen:?}");

    // Making an object moves nothing: no look, and none would be possible.
    let stub = Stub::new([kept(), Answer::Json(200, intent("requires_confirmation"))]).await;
    let new =
        NewIntent { operation: OPERATION, order: ORDER, amount: eur(1250), capture: CaptureMode::Manual };
    assert!(stub.stripe.create(&new).await.is_ok());
    let asked = stub.asked.lock().unwrap();
    let keys: Vec<&str> =
        asked.iter().map(|asked| asked.headers["idempotency-key"].to_str().unwrap()).collect();
    assert_eq!(keys, [format!("{OPERATION}:create"), format!("{OPERATION}:create:2")]);
}
