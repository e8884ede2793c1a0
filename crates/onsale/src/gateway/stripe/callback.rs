//! Callbacks: is it the provider's, and what is it about. A callback moves no money; it says what to read again.

use hmac::{Hmac, KeyInit, Mac};
use onsale_core::id::{OperationId, OrderId};
use onsale_core::money::Money;
use serde::Deserialize;
use serde_json::Value;
use sha2::Sha256;
use subtle::{Choice, ConstantTimeEq};

use super::objects::{Expandable, Metadata, amount_now};
use super::{amounts, clip};

/// A callback older than this is not taken, so that a recorded one can't be played again for ever.
const AGE_S_MAX: i64 = 300;

/// Longest id or kind taken from outside.
const NAME_LENGTH_MAX: usize = 255;

/// What a callback claims. Its object is to be read back before anything is believed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CallbackEvent {
    /// The provider's own name of the event (`evt_…`); deliveries of the same event share it.
    pub(crate) provider_event_id: String,
    /// What happened, such as `payment_intent.succeeded`.
    pub(crate) kind: String,
    /// The intent it is about (`pi_…`).
    pub(crate) reference: Option<String>,
    /// The order named by what we attached to the object.
    pub(crate) order: Option<OrderId>,
    /// The operation named by what we attached to the object; a refund carries its own.
    pub(crate) operation: Option<OperationId>,
    /// The amount of the object it is about: the intent, the charge or the refund.
    pub(crate) amount: Option<Money>,
    /// Whether this kind asks us to act.
    pub(crate) relevant: bool,
}

/// Why a callback isn't taken.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum CallbackError {
    /// Not shown to be the provider's, or shown too long ago.
    #[error("the callback's signature is missing, malformed, wrong or too old")]
    Signature,
    /// The provider's, but not an event we can read.
    #[error("the callback can't be understood: {0}")]
    Malformed(String),
}

#[derive(Deserialize)]
struct Event {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    data: Option<EventData>,
}

#[derive(Deserialize)]
struct EventData {
    object: Value,
}

/// The members that intents, charges and refunds have in common.
#[derive(Deserialize, Default)]
struct Subject {
    id: Option<String>,
    payment_intent: Option<Expandable<Named>>,
    status: Option<String>,
    amount: Option<i64>,
    amount_capturable: Option<i64>,
    amount_received: Option<i64>,
    currency: Option<String>,
    metadata: Option<Metadata>,
}

#[derive(Deserialize)]
struct Named {
    id: String,
}

/// Takes a callback that one of the secrets has signed lately.
pub(super) fn verify(
    secrets: &[String],
    header: Option<&str>,
    body: &[u8],
    now_s: i64,
) -> Result<CallbackEvent, CallbackError> {
    check_signature(secrets, header.ok_or(CallbackError::Signature)?, body, now_s)?;
    read(body)
}

fn check_signature(secrets: &[String], header: &str, body: &[u8], now_s: i64) -> Result<(), CallbackError> {
    let mut signed_at = None;
    let mut signatures = Vec::new();
    for part in header.split(',') {
        match part.split_once('=') {
            Some(("t", text)) => signed_at = Some(text),
            Some(("v1", text)) => signatures.push(text),
            // Other schemes prove nothing to us.
            Some(_) => {}
            None => return Err(CallbackError::Signature),
        }
    }
    let signed_at = signed_at.ok_or(CallbackError::Signature)?;

    // During a rotation there are several secrets, and the provider signs with each of them. Every pair is compared
    // in full, whatever was found before.
    let mut genuine = Choice::from(0);
    for secret in secrets {
        // The key is the secret as written, prefix and all.
        let mut mac =
            Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("a MAC takes keys of any length");
        mac.update(signed_at.as_bytes());
        mac.update(b".");
        mac.update(body);
        let expected = hex(&mac.finalize().into_bytes());
        for signature in &signatures {
            genuine |= expected.as_bytes().ct_eq(signature.as_bytes());
        }
    }

    let signed_at: i64 = signed_at.parse().map_err(|_| CallbackError::Signature)?;
    // A time ahead of ours is let through: clocks differ, and the provider vouches for it.
    if !bool::from(genuine) || signed_at < now_s.saturating_sub(AGE_S_MAX) {
        return Err(CallbackError::Signature);
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

fn read(body: &[u8]) -> Result<CallbackEvent, CallbackError> {
    let malformed = |why: &dyn std::fmt::Display| CallbackError::Malformed(clip(&why.to_string()));
    let event: Event = serde_json::from_slice(body).map_err(|error| malformed(&error))?;
    for name in [&event.id, &event.kind] {
        if name.is_empty() || name.len() > NAME_LENGTH_MAX || !name.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(malformed(&"its id or type is no name"));
        }
    }
    let relevant = is_relevant(&event.kind);
    let subject = match event.data {
        Some(data) => match Subject::deserialize(data.object) {
            Ok(subject) => subject,
            Err(error) if relevant => return Err(malformed(&error)),
            // Kinds that ask nothing of us may be about objects of any shape.
            Err(_) => Subject::default(),
        },
        None if relevant => return Err(malformed(&"it has no data")),
        None => Subject::default(),
    };

    let about_intent = event.kind.starts_with("payment_intent.");
    let amount = if about_intent {
        let status = subject.status.as_deref().unwrap_or_default();
        amount_now(status, subject.amount, subject.amount_capturable, subject.amount_received)
    } else {
        subject.amount
    };
    let reference = if about_intent {
        subject.id
    } else {
        subject.payment_intent.map(|intent| match intent {
            Expandable::Name(id) | Expandable::Object(Named { id }) => id,
        })
    };
    let metadata = subject.metadata.unwrap_or_default();
    Ok(CallbackEvent {
        provider_event_id: event.id,
        kind: event.kind,
        reference,
        order: metadata.order(),
        operation: metadata.operation(),
        // A claim we can't express is no claim; the object read back will say the same with more authority.
        amount: amount
            .zip(subject.currency)
            .and_then(|(amount, code)| amounts::to_ledger(amount, &code).ok()),
        relevant,
    })
}

fn is_relevant(kind: &str) -> bool {
    match kind.split_once('.') {
        Some(("payment_intent", what)) => matches!(
            what,
            "requires_action"
                | "processing"
                | "amount_capturable_updated"
                | "succeeded"
                | "payment_failed"
                | "canceled"
        ),
        Some(("charge", what)) => matches!(what, "refunded" | "expired"),
        Some(("refund", _)) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NOW_S: i64 = 1_700_000_000;
    const BODY: &[u8] = br#"{"id":"evt_1","object":"event"}"#;
    const SIGNATURE: &str = "0c8670ed117751cc551a20e35839447075c42800ea3cf3e8a2fbda99cd1e6edd";

    fn genuine(secrets: &[&str], header: &str, body: &[u8], now_s: i64) -> bool {
        let secrets: Vec<String> = secrets.iter().map(|secret| secret.to_string()).collect();
        check_signature(&secrets, header, body, now_s).is_ok()
    }

    #[test]
    fn signatures_are_checked_as_documented() {
        let ours: &[&str] = &["whsec_test_secret"];
        let wrong = SIGNATURE.replace('0', "1");
        let cut = &SIGNATURE[..63];
        let upper = SIGNATURE.to_uppercase();
        for (expected, secrets, header) in [
            (true, ours, format!("t={NOW_S},v1={SIGNATURE}")),
            (true, ours, format!("v0=junk,v1={wrong},v1={SIGNATURE},t={NOW_S}")),
            (true, &["whsec_new", "whsec_test_secret"], format!("t={NOW_S},v1={SIGNATURE}")),
            (true, &["whsec_test_secret", "whsec_new"], format!("t={NOW_S},v1={SIGNATURE},v1={wrong}")),
            (false, &["whsec_new"], format!("t={NOW_S},v1={SIGNATURE}")),
            (false, &["test_secret"], format!("t={NOW_S},v1={SIGNATURE}")),
            (false, &[], format!("t={NOW_S},v1={SIGNATURE}")),
            (false, ours, format!("t={NOW_S},v0={SIGNATURE}")),
            (false, ours, format!("t={},v1={SIGNATURE}", NOW_S + 1)),
            (false, ours, format!("t={NOW_S},v1={wrong}")),
            (false, ours, format!("t={NOW_S},v1={cut}")),
            (false, ours, format!("t={NOW_S},v1={upper}")),
            (false, ours, format!("t={NOW_S},v1=")),
            (false, ours, format!("t={NOW_S}")),
            (false, ours, format!("v1={SIGNATURE}")),
            (false, ours, format!("t=,v1={SIGNATURE}")),
            (false, ours, format!("t=soon,v1={SIGNATURE}")),
            (false, ours, SIGNATURE.to_string()),
            (false, ours, String::new()),
        ] {
            assert_eq!(genuine(secrets, &header, BODY, NOW_S), expected, "{secrets:?} {header}");
        }
    }

    #[test]
    fn bodies_that_were_touched_and_old_callbacks_are_refused() {
        let header = format!("t={NOW_S},v1={SIGNATURE}");
        let check = |body: &[u8], now_s| genuine(&["whsec_test_secret"], &header, body, now_s);
        assert!(check(BODY, NOW_S + 300));
        assert!(!check(BODY, NOW_S + 301));
        assert!(check(BODY, NOW_S - 100_000), "the provider's clock may be ahead");
        assert!(!check(br#"{"id":"evt_2","object":"event"}"#, NOW_S));
        assert!(!check(br#"{"id":"evt_1","object":"event"} "#, NOW_S));
        assert_eq!(verify(&["whsec_test_secret".into()], None, BODY, NOW_S), Err(CallbackError::Signature));
        // The vector is genuine but says nothing.
        let taken = verify(&["whsec_test_secret".into()], Some(&header), BODY, NOW_S);
        assert!(matches!(taken, Err(CallbackError::Malformed(_))), "{taken:?}");
    }

    fn event(kind: &str, object: Value) -> Result<CallbackEvent, CallbackError> {
        let event =
            json!({"id": "evt_1", "object": "event", "type": kind, "data": {"object": object}, "new": 1});
        read(event.to_string().as_bytes())
    }

    #[test]
    fn events_say_what_they_are_about() {
        let (order, operation) = (OrderId(5 << 56), OperationId(6));
        let metadata = json!({"order_id": order.to_string(), "operation_id": operation.to_string()});
        for (kind, object, amount_minor) in [
            (
                "payment_intent.amount_capturable_updated",
                json!({"id": "pi_1", "status": "requires_capture", "amount": 1250, "amount_capturable": 1200}),
                1200,
            ),
            (
                "payment_intent.succeeded",
                json!({"id": "pi_1", "status": "succeeded", "amount": 1250, "amount_received": 900}),
                900,
            ),
            ("payment_intent.payment_failed", json!({"id": "pi_1", "status": "x", "amount": 1250}), 1250),
            ("charge.refunded", json!({"id": "ch_1", "payment_intent": "pi_1", "amount": 1250}), 1250),
            ("refund.updated", json!({"id": "re_1", "payment_intent": {"id": "pi_1"}, "amount": 300}), 300),
        ] {
            let mut object = object;
            object["currency"] = json!("eur");
            object["metadata"] = metadata.clone();
            let seen = event(kind, object).unwrap();
            assert_eq!(seen.provider_event_id, "evt_1");
            assert_eq!((seen.kind.as_str(), seen.relevant), (kind, true));
            assert_eq!(seen.reference.as_deref(), Some("pi_1"), "{kind}");
            assert_eq!((seen.order, seen.operation), (Some(order), Some(operation)), "{kind}");
            assert_eq!(seen.amount.unwrap().to_string(), format!("{amount_minor} EUR"), "{kind}");
        }
    }

    #[test]
    fn strange_events_are_tolerated_only_where_they_ask_nothing() {
        for kind in
            ["payment_intent.created", "charge.succeeded", "charge.refund.updated", "payout.paid", "ping"]
        {
            assert!(!event(kind, json!({"id": "x_1"})).unwrap().relevant, "{kind}");
        }
        assert!(!event("balance.available", json!({"amount": [1], "status": {}})).unwrap().relevant);
        assert!(!read(br#"{"id":"evt_1","type":"ping"}"#).unwrap().relevant);

        let bare = event("charge.expired", json!({"amount": 1, "currency": "zzz"})).unwrap();
        assert_eq!((bare.relevant, bare.reference, bare.amount, bare.order), (true, None, None, None));

        let odd = event("payment_intent.succeeded", json!({"id": "pi_1", "amount": "12"}));
        assert!(matches!(odd, Err(CallbackError::Malformed(_))), "{odd:?}");
        for body in [
            "",
            "[]",
            r#"{"id":"evt_1","type":"payment_intent.succeeded"}"#,
            r#"{"id":"","type":"ping"}"#,
            r#"{"id":"evt 1","type":"ping"}"#,
            r#"{"type":"ping"}"#,
        ] {
            let taken = read(body.as_bytes());
            assert!(matches!(taken, Err(CallbackError::Malformed(_))), "{body}: {taken:?}");
        }
    }
}
