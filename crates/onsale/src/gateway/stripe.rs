//! The adapter for Stripe's PaymentIntents: our words on one side, the provider's protocol on the other.
//!
//! One call is one request, or one and a look at what it did; sending again is the caller's decision. Every request
//! that moves money carries a key made of its operation's id, so that sending it again can't do it again. What matters
//! most is to tell three endings apart: done, not done, and no answer.

mod amounts;
mod callback;
mod lists;
mod objects;
#[cfg(test)]
mod tests;
mod transport;

use std::fmt;
use std::sync::Arc;

use anyhow::ensure;
use onsale_core::gateway::{IntentState, Observation};
use onsale_core::id::{OperationId, OrderId};
use onsale_core::money::Money;
use onsale_store::fail_point;

pub(crate) use callback::{CallbackError, CallbackEvent};
pub(crate) use lists::{BalanceLine, Listed, Page};
use objects::Refund;
use transport::{ANSWER_BYTES_MAX, Done, NotDone, Reply, Transport};

/// Longest text of the provider that is passed on.
const TEXT_CHARS_MAX: usize = 300;
/// Most keys of one operation that are tried in one go. A provider that fails as often as that is left alone for a while.
const KEYS_TRIED_MAX: usize = 4;

/// How to reach the provider.
pub(crate) struct StripeConfig {
    /// `https://api.stripe.com`, or a simulator's `http://127.0.0.1:port`.
    pub(crate) base_url: String,
    /// `sk_…` or `rk_…`.
    pub(crate) secret_key: String,
    /// `whsec_…`; several while one replaces another.
    pub(crate) webhook_secrets: Vec<String>,
    /// Longest wait for a connection to be free, and again for one answer.
    pub(crate) request_timeout_ms: u64,
    /// Most requests at a time.
    pub(crate) connections_max: usize,
}

/// The adapter. Clones share their connections.
#[derive(Clone)]
pub(crate) struct Stripe {
    transport: Transport,
    webhook_secrets: Arc<[String]>,
}

impl fmt::Debug for Stripe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The rest holds secrets.
        f.debug_struct("Stripe").field("base_url", &self.transport.base_url()).finish_non_exhaustive()
    }
}

/// Who says when money set aside is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CaptureMode {
    /// We do, with a capture.
    Manual,
    /// The provider does, at once.
    Automatic,
}

/// An attempt to pay that is to be made.
pub(crate) struct NewIntent {
    /// Which attempt.
    pub(crate) operation: OperationId,
    /// For which order.
    pub(crate) order: OrderId,
    /// How much.
    pub(crate) amount: Money,
    /// Whether to set aside or to take.
    pub(crate) capture: CaptureMode,
}

/// Why there is no observation.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum GatewayError {
    /// No connection was made: certainly not done.
    #[error("the provider can't be reached")]
    NotSent,
    /// No answer, or one that leaves it open: it may or may not have been done.
    #[error("no answer from the provider: {0}")]
    NoAnswer(String),
    /// Turned away for now: not done.
    #[error("the provider asks to come back later")]
    Busy {
        /// When, as far as the provider says.
        retry_after_s: Option<u64>,
    },
    /// A definite no: not done.
    #[error("the provider refused ({status} {code}): {message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The provider's code.
        code: String,
        /// The provider's explanation.
        message: String,
    },
    /// Access denied, or words we can't translate. Sent for an operation, the latter leaves open whether it was done.
    #[error("the provider and we don't understand each other: {0}")]
    Misconfigured(String),
}

/// Whether an amount can be asked for exactly. One that can't must not become a price: every attempt to pay it would end
/// before it began.
pub(crate) fn takes(amount: Money) -> bool {
    amounts::to_provider(amount).is_ok()
}

impl Stripe {
    /// Checks the configuration and sets up connections; nothing is sent.
    pub(crate) fn new(config: StripeConfig) -> anyhow::Result<Stripe> {
        // A MAC with an empty key is one that anybody can make.
        ensure!(config.webhook_secrets.iter().all(|secret| !secret.is_empty()), "a webhook secret is empty");
        let transport = Transport::new(&config)?;
        Ok(Stripe { transport, webhook_secrets: config.webhook_secrets.into() })
    }

    /// Makes an intent without confirming it: its name can be stored before money moves.
    pub(crate) async fn create(&self, intent: &NewIntent) -> Result<Observation, GatewayError> {
        let form = [
            ("amount", amounts::to_provider(intent.amount)?.to_string()),
            ("currency", intent.amount.currency.as_str().to_ascii_lowercase()),
            (
                "capture_method",
                match intent.capture {
                    CaptureMode::Manual => "manual".into(),
                    CaptureMode::Automatic => "automatic".into(),
                },
            ),
            // Left open, the account's settings decide, among them methods that can't be set aside.
            ("payment_method_types[0]", "card".into()),
            ("metadata[order_id]", intent.order.to_string()),
            ("metadata[operation_id]", intent.operation.to_string()),
        ];
        for number in 1..=KEYS_TRIED_MAX {
            let key = key(intent.operation, "create", number);
            fail_point!(async "provider.create.before", return Err(GatewayError::NotSent));
            let reply = self.transport.post("/v1/payment_intents", key, &form).await?;
            fail_point!(async "provider.create.after", return Err(lost()));
            // Should the one that failed have been made all the same, nobody will ever confirm it.
            if !reply.is_spent() {
                return self.observe(reply.done()?).await;
            }
        }
        Err(all_spent())
    }

    /// Confirms an intent with a card, or whatever the token stands for. Declined is an observation, not an error.
    pub(crate) async fn confirm(
        &self,
        reference: &str,
        operation: OperationId,
        payment_method_token: &str,
        return_url: Option<&str>,
    ) -> Result<Observation, GatewayError> {
        let mut form = vec![("payment_method", payment_method_token.to_owned())];
        form.extend(return_url.map(|url| ("return_url", url.to_owned())));
        let path = format!("{}/confirm", intent_path(reference)?);
        let moved = |now: &Observation| now.state != IntentState::Unconfirmed;
        fail_point!(async "provider.confirm.before", return Err(GatewayError::NotSent));
        let sent = self.send(reference, operation, "confirm", &path, &form, moved).await?;
        fail_point!(async "provider.confirm.after", return Err(lost()));
        let reply = match sent {
            Sent::Answered(reply) => reply,
            Sent::Moved(now) => return Ok(now),
        };
        if let Err(NotDone::Refused(402, failure)) = &reply.outcome
            && failure.is_kind("card_error")
            && let Some(declined) = objects::observe_decline(failure)?
        {
            return self.observe_now(declined, reply.replayed).await;
        }
        self.observe(reply.done()?).await
    }

    /// Takes money that was set aside.
    pub(crate) async fn capture(
        &self,
        reference: &str,
        operation: OperationId,
        amount: Money,
    ) -> Result<Observation, GatewayError> {
        let form = [("amount_to_capture", amounts::to_provider(amount)?.to_string())];
        let path = format!("{}/capture", intent_path(reference)?);
        let moved = |now: &Observation| now.state != IntentState::Authorized;
        fail_point!(async "provider.capture.before", return Err(GatewayError::NotSent));
        let sent = self.send(reference, operation, "capture", &path, &form, moved).await?;
        fail_point!(async "provider.capture.after", return Err(lost()));
        match sent {
            Sent::Answered(reply) => self.observe(reply.done()?).await,
            Sent::Moved(now) => Ok(now),
        }
    }

    /// Calls an intent off and lets money set aside go.
    pub(crate) async fn cancel(
        &self,
        reference: &str,
        operation: OperationId,
    ) -> Result<Observation, GatewayError> {
        let path = format!("{}/cancel", intent_path(reference)?);
        let moved = |now: &Observation| matches!(now.state, IntentState::Voided | IntentState::Captured);
        fail_point!(async "provider.void.before", return Err(GatewayError::NotSent));
        let sent = self.send(reference, operation, "cancel", &path, &[], moved).await?;
        fail_point!(async "provider.void.after", return Err(lost()));
        match sent {
            Sent::Answered(reply) => self.observe(reply.done()?).await,
            Sent::Moved(now) => Ok(now),
        }
    }

    /// Gives money back beside `base_minor` that was given back before, then looks how much has been given back altogether.
    pub(crate) async fn refund(
        &self,
        reference: &str,
        operation: OperationId,
        amount: Money,
        base_minor: i64,
    ) -> Result<Observation, GatewayError> {
        intent_path(reference)?;
        let form = [
            ("payment_intent", reference.to_owned()),
            ("amount", amounts::to_provider(amount)?.to_string()),
            ("metadata[operation_id]", operation.to_string()),
        ];
        let moved = |now: &Observation| now.refunded_minor >= base_minor + amount.amount_minor;
        fail_point!(async "provider.refund.before", return Err(GatewayError::NotSent));
        let sent = self.send(reference, operation, "refund", "/v1/refunds", &form, moved).await?;
        fail_point!(async "provider.refund.after", return Err(lost()));
        let reply = match sent {
            Sent::Answered(reply) => reply,
            Sent::Moved(now) => return Ok(now),
        };
        let status = reply.status;
        let refund: Refund = objects::parse(&reply.done()?.body)?;
        match refund.status.as_deref() {
            Some("succeeded") => self.look_back(reference).await,
            // The answer under this key is kept as it was: how a refund that takes days has ended is said by the list alone.
            Some("pending" | "requires_action") => {
                let vain = self.ended_in_vain(reference, &refund.id).await.map_err(unread)?;
                let message = format!("refund {} came to nothing", clip(&refund.id));
                match vain {
                    Some(code) => Err(GatewayError::Refused { status, code, message }),
                    None => self.look_back(reference).await,
                }
            }
            Some(ended @ ("failed" | "canceled")) => Err(GatewayError::Refused {
                status,
                code: clip(refund.failure_reason.as_deref().unwrap_or(ended)),
                message: format!("refund {} is {ended}", clip(&refund.id)),
            }),
            unknown => {
                let status = clip(unknown.unwrap_or_default());
                Err(GatewayError::Misconfigured(format!("{}: unknown status {status:?}", clip(&refund.id))))
            }
        }
    }

    /// Reads an intent.
    pub(crate) async fn query(&self, reference: &str) -> Result<Observation, GatewayError> {
        let query = [("expand[]", "latest_charge".into())];
        fail_point!(async "provider.query.before", return Err(GatewayError::NotSent));
        let reply = self.transport.get(&intent_path(reference)?, &query, ANSWER_BYTES_MAX).await?;
        fail_point!(async "provider.query.after", return Err(lost()));
        self.proven(objects::observe(&objects::parse(&reply.done()?.body)?)?).await
    }

    /// Takes a callback if one of our secrets has signed it within the last minutes.
    pub(crate) fn verify_callback(
        &self,
        signature_header: Option<&str>,
        body: &[u8],
        now_s: i64,
    ) -> Result<CallbackEvent, CallbackError> {
        callback::verify(&self.webhook_secrets, signature_header, body, now_s)
    }

    /// Sends what moves an intent under the first of its operation's keys that isn't spent. That a key is spent says that
    /// the request under it has ended, and not how: the intent is looked at before the next key is used, and where it has
    /// moved nothing more is sent. No count is kept: whoever sends again goes through the same keys.
    async fn send(
        &self,
        reference: &str,
        operation: OperationId,
        what: &str,
        path: &str,
        form: &[(&str, String)],
        moved: impl Fn(&Observation) -> bool,
    ) -> Result<Sent, GatewayError> {
        for number in 1..=KEYS_TRIED_MAX {
            let reply = self.transport.post(path, key(operation, what, number), form).await?;
            if !reply.is_spent() {
                return Ok(Sent::Answered(reply));
            }
            let now = self.look_back(reference).await?;
            if moved(&now) {
                return Ok(Sent::Moved(now));
            }
        }
        Err(all_spent())
    }

    async fn observe(&self, done: Done) -> Result<Observation, GatewayError> {
        self.observe_now(objects::observe(&objects::parse(&done.body)?)?, done.replayed).await
    }

    /// The answer kept from an earlier request with the same key tells of then. An observation tells of now.
    async fn observe_now(&self, then: Observation, replayed: bool) -> Result<Observation, GatewayError> {
        if replayed { self.look_back(&then.reference).await } else { Ok(then) }
    }

    /// Reads an intent after something was done to it. No failure of the reading may look like one of the doing.
    async fn look_back(&self, reference: &str) -> Result<Observation, GatewayError> {
        self.query(reference).await.map_err(unread)
    }
}

/// Something was done, whatever becomes of the look at it.
fn unread(error: GatewayError) -> GatewayError {
    GatewayError::NoAnswer(format!("it was settled, but not read back: {error}"))
}

/// What a fail point makes of an answer.
#[cfg(feature = "fail-points")]
fn lost() -> GatewayError {
    GatewayError::NoAnswer("a fail point".to_owned())
}

/// What came of sending.
enum Sent {
    Answered(Reply),
    /// A key was spent, and the intent has moved since it was asked to.
    Moved(Observation),
}

fn all_spent() -> GatewayError {
    GatewayError::NoAnswer("the provider keeps a failure under every key that was tried".into())
}

fn key(operation: OperationId, what: &str, number: usize) -> String {
    match number {
        1 => format!("{operation}:{what}"),
        _ => format!("{operation}:{what}:{number}"),
    }
}

/// The path of an intent, unless its name could lead elsewhere.
fn intent_path(reference: &str) -> Result<String, GatewayError> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if reference.is_empty() || reference.len() > 255 || !reference.bytes().all(is_name) {
        return Err(GatewayError::Misconfigured(format!("{:?} names no intent", clip(reference))));
    }
    Ok(format!("/v1/payment_intents/{reference}"))
}

fn clip(text: &str) -> String {
    text.chars().take(TEXT_CHARS_MAX).collect()
}
