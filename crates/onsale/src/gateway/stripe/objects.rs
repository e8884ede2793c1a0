//! The provider's objects, as far as we read them, and what they mean in our words. Members we don't know are ignored.

use onsale_core::gateway::{IntentState, Observation};
use onsale_core::id::{OperationId, OrderId};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::amounts::{self, Inexact};
use super::{GatewayError, clip};

/// One attempt to pay.
#[derive(Deserialize)]
pub(super) struct Intent {
    id: String,
    status: String,
    amount: i64,
    amount_capturable: Option<i64>,
    amount_received: Option<i64>,
    currency: String,
    metadata: Option<Metadata>,
    last_payment_error: Option<Failure>,
    next_action: Option<NextAction>,
    latest_charge: Option<Expandable<Charge>>,
}

/// What we attached when we made the object. Strangers' objects may use the same names for other things.
#[derive(Deserialize, Default)]
pub(super) struct Metadata {
    order_id: Option<Value>,
    operation_id: Option<Value>,
}

impl Metadata {
    pub(super) fn order(&self) -> Option<OrderId> {
        self.order_id.as_ref()?.as_str()?.parse().ok()
    }

    pub(super) fn operation(&self) -> Option<OperationId> {
        self.operation_id.as_ref()?.as_str()?.parse().ok()
    }
}

/// A member that holds a name, or the object itself when it was asked for.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Expandable<T> {
    Name(String),
    Object(T),
}

#[derive(Deserialize)]
struct NextAction {
    redirect_to_url: Option<Redirect>,
}

#[derive(Deserialize)]
struct Redirect {
    url: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Charge {
    amount: Option<i64>,
    amount_captured: Option<i64>,
    amount_refunded: Option<i64>,
    captured: Option<bool>,
}

/// Money given back.
#[derive(Deserialize)]
pub(super) struct Refund {
    pub(super) id: String,
    pub(super) status: Option<String>,
    pub(super) failure_reason: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct FailureBody {
    pub(super) error: Failure,
}

/// Why something was not done: the `error` of an answer, or the last error of an intent.
#[derive(Deserialize, Default)]
pub(super) struct Failure {
    #[serde(rename = "type")]
    kind: Option<String>,
    code: Option<String>,
    decline_code: Option<String>,
    message: Option<String>,
    payment_intent: Option<Value>,
}

impl Failure {
    pub(super) fn is_kind(&self, kind: &str) -> bool {
        self.kind.as_deref() == Some(kind)
    }

    pub(super) fn is_code(&self, code: &str) -> bool {
        self.code.as_deref() == Some(code)
    }

    /// The issuer's reason when there is one, else the provider's.
    fn decline(&self) -> String {
        let code = self.decline_code.as_deref().or(self.code.as_deref()).or(self.kind.as_deref());
        clip(code.unwrap_or("declined"))
    }

    pub(super) fn message(&self) -> String {
        clip(self.message.as_deref().unwrap_or("the provider gave no reason"))
    }

    pub(super) fn refused(&self, status: u16) -> GatewayError {
        let code = self.code.as_deref().or(self.kind.as_deref()).unwrap_or("unknown");
        GatewayError::Refused { status, code: clip(code), message: self.message() }
    }
}

/// Reads an answer's body.
pub(super) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, GatewayError> {
    serde_json::from_slice(body).map_err(misread)
}

fn misread(error: serde_json::Error) -> GatewayError {
    GatewayError::Misconfigured(format!("the answer can't be understood: {}", clip(&error.to_string())))
}

impl From<Inexact> for GatewayError {
    fn from(inexact: Inexact) -> GatewayError {
        GatewayError::Misconfigured(inexact.to_string())
    }
}

/// What an intent says, in our words.
pub(super) fn observe(intent: &Intent) -> Result<Observation, GatewayError> {
    let state = state(intent)?;
    let amount =
        amount_now(&intent.status, Some(intent.amount), intent.amount_capturable, intent.amount_received)
            .ok_or_else(|| {
                GatewayError::Misconfigured(format!("{}: no amount for its status", clip(&intent.id)))
            })?;
    let refunded = match &intent.latest_charge {
        Some(Expandable::Object(charge)) => refunded(charge),
        Some(Expandable::Name(_)) | None => 0,
    };
    let metadata = intent.metadata.as_ref();
    Ok(Observation {
        reference: intent.id.clone(),
        state,
        amount: amounts::to_ledger(amount, &intent.currency)?,
        refunded_minor: amounts::to_ledger(refunded, &intent.currency)?.amount_minor,
        order: metadata.and_then(Metadata::order),
        operation: metadata.and_then(Metadata::operation),
    })
}

/// What a declined confirmation says: the intent travels inside the error.
pub(super) fn observe_decline(failure: &Failure) -> Result<Option<Observation>, GatewayError> {
    let Some(value) = &failure.payment_intent else { return Ok(None) };
    let mut seen = observe(&Intent::deserialize(value).map_err(misread)?)?;
    match seen.state {
        // An intent that has failed too often is called off by the provider; the attempt was declined all the same.
        IntentState::Unconfirmed | IntentState::Declined(_) | IntentState::Voided => {
            seen.state = IntentState::Declined(failure.decline());
        }
        // Money is or may be held: that outweighs the error around it.
        IntentState::RequiresAction(_)
        | IntentState::Processing
        | IntentState::Authorized
        | IntentState::Captured => {}
    }
    Ok(Some(seen))
}

fn state(intent: &Intent) -> Result<IntentState, GatewayError> {
    Ok(match intent.status.as_str() {
        "requires_payment_method" => match &intent.last_payment_error {
            Some(failure) => IntentState::Declined(failure.decline()),
            None => IntentState::Unconfirmed,
        },
        "requires_confirmation" => IntentState::Unconfirmed,
        "requires_action" => {
            let redirect = intent.next_action.as_ref().and_then(|next| next.redirect_to_url.as_ref());
            IntentState::RequiresAction(redirect.and_then(|redirect| redirect.url.clone()))
        }
        "processing" => IntentState::Processing,
        "requires_capture" => IntentState::Authorized,
        "succeeded" => IntentState::Captured,
        "canceled" => IntentState::Voided,
        unknown => {
            let text = format!("{}: unknown status {:?}", clip(&intent.id), clip(unknown));
            return Err(GatewayError::Misconfigured(text));
        }
    })
}

/// How much is really set aside or taken; before that, what was asked for.
pub(super) fn amount_now(
    status: &str,
    asked: Option<i64>,
    capturable: Option<i64>,
    received: Option<i64>,
) -> Option<i64> {
    match status {
        "requires_capture" => capturable,
        "succeeded" => received,
        _ => asked,
    }
}

/// How much of the money taken has been given back. The provider also books as refunded what it let go without ever
/// taking it: a cancelled authorization, and the rest after a partial capture.
fn refunded(charge: &Charge) -> i64 {
    let refunded = charge.amount_refunded.unwrap_or(0);
    match (charge.captured, charge.amount, charge.amount_captured) {
        (Some(false), _, _) => 0,
        (_, Some(amount), Some(captured)) => {
            refunded.saturating_sub(amount.saturating_sub(captured).max(0)).max(0)
        }
        _ => refunded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// An intent over 12.50 EUR with some members replaced.
    fn check(members: Value) -> Result<Observation, GatewayError> {
        let mut intent = json!({
            "id": "pi_1", "object": "payment_intent", "status": "requires_confirmation", "currency": "eur",
            "amount": 1250, "amount_capturable": 0, "amount_received": 0, "metadata": {}, "latest_charge": null,
            "next_action": null, "last_payment_error": null, "a_member_of_tomorrow": [1],
        });
        intent.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        observe(&Intent::deserialize(intent).unwrap())
    }

    #[test]
    fn every_status_has_a_state_and_an_amount() {
        let declined = |code: &str| IntentState::Declined(code.into());
        for (members, state, amount_minor) in [
            (json!({"status": "requires_payment_method"}), IntentState::Unconfirmed, 1250),
            (
                json!({"status": "requires_payment_method", "last_payment_error":
                    {"type": "card_error", "code": "card_declined", "decline_code": "insufficient_funds"}}),
                declined("insufficient_funds"),
                1250,
            ),
            (
                json!({"status": "requires_payment_method", "last_payment_error":
                    {"type": "card_error", "code": "payment_intent_authentication_failure"}}),
                declined("payment_intent_authentication_failure"),
                1250,
            ),
            (
                json!({"status": "requires_payment_method", "last_payment_error": {}}),
                declined("declined"),
                1250,
            ),
            (json!({}), IntentState::Unconfirmed, 1250),
            (
                json!({"status": "requires_action", "next_action": {"type": "redirect_to_url",
                    "redirect_to_url": {"url": "https://bank.example/3ds", "return_url": null}}}),
                IntentState::RequiresAction(Some("https://bank.example/3ds".into())),
                1250,
            ),
            (
                json!({"status": "requires_action", "next_action": {"type": "use_stripe_sdk", "use_stripe_sdk": {}}}),
                IntentState::RequiresAction(None),
                1250,
            ),
            (json!({"status": "processing"}), IntentState::Processing, 1250),
            (json!({"status": "requires_capture", "amount_capturable": 1200}), IntentState::Authorized, 1200),
            (json!({"status": "succeeded", "amount_received": 900}), IntentState::Captured, 900),
            (json!({"status": "canceled"}), IntentState::Voided, 1250),
        ] {
            let seen = check(members.clone()).unwrap();
            assert_eq!((seen.state, seen.amount.amount_minor), (state, amount_minor), "{members}");
            assert_eq!((seen.reference.as_str(), seen.amount.currency.as_str()), ("pi_1", "EUR"));
        }
    }

    #[test]
    fn what_is_not_understood_is_not_guessed() {
        for members in [
            json!({"status": "requires_prayer"}),
            json!({"status": "requires_capture", "amount_capturable": null}),
            json!({"status": "succeeded", "amount_received": null}),
            json!({"currency": "isk"}),
            json!({"currency": "zzz"}),
            json!({"amount": -1}),
        ] {
            let seen = check(members.clone());
            assert!(matches!(seen, Err(GatewayError::Misconfigured(_))), "{members}: {seen:?}");
        }
    }

    #[test]
    fn only_money_that_was_taken_can_have_been_given_back() {
        for (charge, refunded_minor) in [
            (json!(null), 0),
            (json!("ch_1"), 0),
            (json!({"amount_refunded": 400}), 400),
            (json!({"captured": false, "amount_refunded": 1250}), 0),
            (json!({"captured": true, "amount": 1250, "amount_captured": 1250, "amount_refunded": 400}), 400),
            (json!({"captured": true, "amount": 1250, "amount_captured": 1000, "amount_refunded": 250}), 0),
            (json!({"captured": true, "amount": 1250, "amount_captured": 1000, "amount_refunded": 650}), 400),
            (json!({"captured": false, "amount": 1250, "amount_captured": 0, "amount_refunded": 1250}), 0),
        ] {
            let seen = check(json!({"latest_charge": charge})).unwrap();
            assert_eq!(seen.refunded_minor, refunded_minor, "{charge}");
        }
    }

    #[test]
    fn metadata_names_the_order_unless_it_is_a_strangers() {
        let (order, operation) = (OrderId(7 << 56), OperationId(9));
        let ours = json!({"order_id": order.to_string(), "operation_id": operation.to_string(), "note": "x"});
        let seen = check(json!({ "metadata": ours })).unwrap();
        assert_eq!((seen.order, seen.operation), (Some(order), Some(operation)));

        for metadata in [
            json!(null),
            json!({}),
            json!({"order_id": "1001", "operation_id": ""}),
            json!({"order_id": 1001, "operation_id": order.to_string()}),
        ] {
            let seen = check(json!({ "metadata": metadata })).unwrap();
            assert_eq!((seen.order, seen.operation), (None, None), "{metadata}");
        }
    }
}
