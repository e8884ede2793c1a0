//! The provider's JSON objects.

use serde::{Serialize, Serializer};

use super::error::ApiError;
use super::events::Event;
use super::intent::{CaptureMethod, Intent, Metadata, Refund, Status, Transition};

/// The version of the provider's API whose shapes these are.
pub(super) const API_VERSION: &str = "2026-10-28.endive";

/// How long money stays set aside: seven days, as for a buyer's own card payment online.
const AUTHORISATION_LIFETIME_S: i64 = 7 * 24 * 3_600;

/// The bytes of an object.
pub(super) fn render(object: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(object).expect("these objects have string keys and nothing that can fail")
}

/// The charge of an intent is named after it: an intent has at most one that succeeds.
pub(super) fn charge_id(intent: &Intent) -> Option<String> {
    intent.charged_at.map(|_| intent.origin.id.replacen("pi_", "ch_", 1))
}

/// A payment intent, its charge as an id or whole.
pub(super) fn intent<'a>(
    intent: &'a Intent,
    expand_charge: bool,
    authentication_base: &str,
) -> impl Serialize + use<'a> {
    let origin = &*intent.origin;
    IntentObject {
        id: &origin.id,
        object: "payment_intent",
        amount: intent.amount,
        amount_capturable: intent.amount_capturable,
        amount_received: intent.amount_received,
        canceled_at: intent.canceled_at,
        cancellation_reason: intent.cancellation_reason,
        capture_method: origin.capture_method.as_str(),
        client_secret: &origin.secret,
        confirmation_method: "automatic",
        created: origin.created,
        currency: &origin.currency,
        description: origin.description.as_deref(),
        last_payment_error: intent.last_error.as_ref().map(|(decline, method)| PaymentError {
            kind: decline.kind,
            code: decline.code,
            decline_code: decline.decline_code,
            message: decline.message,
            payment_method: method.as_deref().map(|id| PaymentMethod {
                id,
                object: "payment_method",
                kind: "card",
            }),
        }),
        latest_charge: charge_id(intent).map(|id| match expand_charge {
            true => LatestCharge::Whole(Box::new(charge(intent))),
            false => LatestCharge::Id(id),
        }),
        livemode: false,
        metadata: Entries(&origin.metadata),
        next_action: (intent.status == Status::RequiresAction).then(|| NextAction {
            kind: "redirect_to_url",
            redirect_to_url: Redirect {
                url: format!("{authentication_base}/_sim/intents/{}/complete", origin.id),
                return_url: intent.return_url.as_deref(),
            },
        }),
        payment_method: intent.payment_method.as_deref(),
        payment_method_types: &origin.payment_method_types,
        status: intent.status.as_str(),
    }
}

/// The charge of an intent that was approved.
pub(super) fn charge(intent: &Intent) -> ChargeObject<'_> {
    let origin = &*intent.origin;
    let created = intent.charged_at.unwrap_or(origin.created);
    let captured = intent.amount_received > 0;
    ChargeObject {
        id: charge_id(intent),
        object: "charge",
        amount: intent.authorised,
        amount_captured: intent.amount_received,
        amount_refunded: intent.amount_refunded,
        captured,
        created,
        currency: &origin.currency,
        livemode: false,
        metadata: Entries(&origin.metadata),
        paid: true,
        payment_intent: &origin.id,
        payment_method: intent.payment_method.as_deref(),
        payment_method_details: MethodDetails {
            kind: "card",
            card: CardDetails {
                capture_before: (origin.capture_method == CaptureMethod::Manual && !captured)
                    .then_some(created + AUTHORISATION_LIFETIME_S),
            },
        },
        refunded: captured && intent.amount_refunded == intent.amount_received,
        status: "succeeded",
    }
}

/// A refund.
pub(super) fn refund(refund: &Refund) -> RefundObject<'_> {
    RefundObject {
        id: &refund.id,
        object: "refund",
        amount: refund.amount,
        charge: charge_id(&refund.intent),
        created: refund.created,
        currency: &refund.intent.origin.currency,
        failure_reason: refund.failed.then_some("declined"),
        metadata: Entries(&refund.metadata),
        payment_intent: &refund.intent.origin.id,
        reason: refund.reason,
        status: if refund.failed { "failed" } else { "succeeded" },
    }
}

/// An event with the object as it was then.
pub(super) fn event<'a>(event: &'a Event, authentication_base: &str) -> impl Serialize + use<'a> {
    EventObject {
        id: &event.id,
        object: "event",
        api_version: API_VERSION,
        created: event.created,
        data: Data {
            object: match event.transition {
                Transition::Refunded => Subject::Charge(Box::new(charge(&event.intent))),
                Transition::Authorized
                | Transition::Succeeded
                | Transition::Canceled
                | Transition::Failed
                | Transition::ActionRequired
                | Transition::Processing => {
                    Subject::Intent(intent(&event.intent, false, authentication_base))
                }
            },
        },
        livemode: false,
        pending_webhooks: 1,
        request: Cause { id: event.request_id.as_deref(), idempotency_key: event.idempotency_key.as_deref() },
        kind: event.transition.event_type(),
    }
}

/// An error in its envelope.
pub(super) fn error<'a>(error: &'a ApiError, authentication_base: &str) -> impl Serialize + use<'a> {
    Envelope {
        error: ErrorObject {
            kind: error.kind,
            code: error.code,
            decline_code: error.decline_code,
            message: &error.message,
            param: error.param.as_deref(),
            payment_intent: error.intent.as_ref().map(|it| intent(it, false, authentication_base)),
        },
    }
}

/// A page of a list.
#[derive(Serialize)]
pub(super) struct Page<'a, T> {
    pub(super) object: &'static str,
    pub(super) url: &'a str,
    pub(super) has_more: bool,
    pub(super) data: Vec<T>,
}

struct Entries<'a>(&'a Metadata);

impl Serialize for Entries<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

#[derive(Serialize)]
struct IntentObject<'a> {
    id: &'a str,
    object: &'static str,
    amount: i64,
    amount_capturable: i64,
    amount_received: i64,
    canceled_at: Option<i64>,
    cancellation_reason: Option<&'static str>,
    capture_method: &'static str,
    client_secret: &'a str,
    confirmation_method: &'static str,
    created: i64,
    currency: &'a str,
    description: Option<&'a str>,
    last_payment_error: Option<PaymentError<'a>>,
    latest_charge: Option<LatestCharge<'a>>,
    livemode: bool,
    metadata: Entries<'a>,
    next_action: Option<NextAction<'a>>,
    payment_method: Option<&'a str>,
    payment_method_types: &'a [Box<str>],
    status: &'static str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum LatestCharge<'a> {
    Id(String),
    Whole(Box<ChargeObject<'a>>),
}

#[derive(Serialize)]
struct PaymentError<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    decline_code: Option<&'static str>,
    message: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    payment_method: Option<PaymentMethod<'a>>,
}

#[derive(Serialize)]
struct PaymentMethod<'a> {
    id: &'a str,
    object: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
struct NextAction<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    redirect_to_url: Redirect<'a>,
}

#[derive(Serialize)]
struct Redirect<'a> {
    url: String,
    return_url: Option<&'a str>,
}

#[derive(Serialize)]
pub(super) struct ChargeObject<'a> {
    id: Option<String>,
    object: &'static str,
    amount: i64,
    amount_captured: i64,
    amount_refunded: i64,
    captured: bool,
    created: i64,
    currency: &'a str,
    livemode: bool,
    metadata: Entries<'a>,
    paid: bool,
    payment_intent: &'a str,
    payment_method: Option<&'a str>,
    payment_method_details: MethodDetails,
    refunded: bool,
    status: &'static str,
}

#[derive(Serialize)]
struct MethodDetails {
    #[serde(rename = "type")]
    kind: &'static str,
    card: CardDetails,
}

#[derive(Serialize)]
struct CardDetails {
    #[serde(skip_serializing_if = "Option::is_none")]
    capture_before: Option<i64>,
}

#[derive(Serialize)]
pub(super) struct RefundObject<'a> {
    id: &'a str,
    object: &'static str,
    amount: i64,
    charge: Option<String>,
    created: i64,
    currency: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_reason: Option<&'static str>,
    metadata: Entries<'a>,
    payment_intent: &'a str,
    reason: Option<&'static str>,
    status: &'static str,
}

#[derive(Serialize)]
struct EventObject<'a, I> {
    id: &'a str,
    object: &'static str,
    api_version: &'static str,
    created: i64,
    data: Data<'a, I>,
    livemode: bool,
    pending_webhooks: u8,
    request: Cause<'a>,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
struct Data<'a, I> {
    object: Subject<'a, I>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Subject<'a, I> {
    Intent(I),
    Charge(Box<ChargeObject<'a>>),
}

#[derive(Serialize)]
struct Cause<'a> {
    id: Option<&'a str>,
    idempotency_key: Option<&'a str>,
}

#[derive(Serialize)]
struct Envelope<T> {
    error: T,
}

#[derive(Serialize)]
struct ErrorObject<'a, I> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decline_code: Option<&'static str>,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    param: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payment_intent: Option<I>,
}
