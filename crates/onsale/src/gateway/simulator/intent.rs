//! One payment intent: its states, and what each operation does to it. Pure: no clock, no chance, no I/O.

use std::sync::Arc;

/// Where an intent stands, in the provider's words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Status {
    RequiresPaymentMethod,
    RequiresConfirmation,
    RequiresAction,
    Processing,
    RequiresCapture,
    Canceled,
    Succeeded,
}

impl Status {
    /// The word on the wire.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Status::RequiresPaymentMethod => "requires_payment_method",
            Status::RequiresConfirmation => "requires_confirmation",
            Status::RequiresAction => "requires_action",
            Status::Processing => "processing",
            Status::RequiresCapture => "requires_capture",
            Status::Canceled => "canceled",
            Status::Succeeded => "succeeded",
        }
    }
}

/// What happened to an intent; each is told by exactly one webhook event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Transition {
    Authorized,
    Succeeded,
    Canceled,
    Failed,
    ActionRequired,
    Processing,
    Refunded,
}

impl Transition {
    /// The event's type on the wire.
    pub(super) fn event_type(self) -> &'static str {
        match self {
            Transition::Authorized => "payment_intent.amount_capturable_updated",
            Transition::Succeeded => "payment_intent.succeeded",
            Transition::Canceled => "payment_intent.canceled",
            Transition::Failed => "payment_intent.payment_failed",
            Transition::ActionRequired => "payment_intent.requires_action",
            Transition::Processing => "payment_intent.processing",
            Transition::Refunded => "charge.refunded",
        }
    }
}

/// Why an attempt to pay failed.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Decline {
    pub(super) kind: &'static str,
    pub(super) code: &'static str,
    pub(super) decline_code: Option<&'static str>,
    pub(super) message: &'static str,
}

const fn card_declined(decline_code: &'static str, message: &'static str) -> Decline {
    Decline { kind: "card_error", code: "card_declined", decline_code: Some(decline_code), message }
}

static GENERIC_DECLINE: Decline = card_declined("generic_decline", "Your card was declined.");
static INSUFFICIENT_FUNDS: Decline = card_declined("insufficient_funds", "Your card has insufficient funds.");
static EXPIRED_CARD: Decline = Decline {
    kind: "card_error",
    code: "expired_card",
    decline_code: Some("expired_card"),
    message: "Your card has expired.",
};
static AUTHENTICATION_FAILURE: Decline = Decline {
    kind: "invalid_request_error",
    code: "payment_intent_authentication_failure",
    decline_code: None,
    message: "The provided PaymentMethod has failed authentication.",
};

/// What the card's bank says to an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    Approved,
    /// Approved for one minor unit less than asked: a fault no buyer should meet.
    ApprovedLess,
    Declined(&'static Decline),
    ActionRequired,
    Processing,
}

impl Verdict {
    /// The plain refusal.
    pub(super) fn declined() -> Verdict {
        Verdict::Declined(&GENERIC_DECLINE)
    }

    /// What the provider's test payment methods stand for; any other one is approved.
    pub(super) fn of(payment_method: &str) -> Verdict {
        let card = payment_method.strip_prefix("pm_card_").or_else(|| payment_method.strip_prefix("tok_"));
        let card = card.map(|card| card.strip_prefix("visa_").unwrap_or(card));
        match card {
            Some("chargeDeclined") => Verdict::declined(),
            Some("chargeDeclinedInsufficientFunds") => Verdict::Declined(&INSUFFICIENT_FUNDS),
            Some("chargeDeclinedExpiredCard") => Verdict::Declined(&EXPIRED_CARD),
            Some("authenticationRequired" | "threeDSecure2Required") => Verdict::ActionRequired,
            _ => Verdict::Approved,
        }
    }
}

/// When money goes from set aside to taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CaptureMethod {
    Automatic,
    AutomaticAsync,
    Manual,
}

impl CaptureMethod {
    /// The word on the wire.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            CaptureMethod::Automatic => "automatic",
            CaptureMethod::AutomaticAsync => "automatic_async",
            CaptureMethod::Manual => "manual",
        }
    }
}

/// What the client attached, in the order sent.
pub(super) type Metadata = Box<[(Box<str>, Box<str>)]>;

/// What never changes about an intent; its snapshots share it.
#[derive(Debug)]
pub(super) struct Origin {
    pub(super) id: Arc<str>,
    pub(super) secret: Box<str>,
    /// Unix seconds.
    pub(super) created: i64,
    /// Lower case, as on the wire.
    pub(super) currency: Box<str>,
    pub(super) capture_method: CaptureMethod,
    pub(super) description: Option<Box<str>>,
    pub(super) payment_method_types: Box<[Box<str>]>,
    pub(super) metadata: Metadata,
    /// `metadata[order_id]`, for the log and the ledger.
    pub(super) order_id: Option<Arc<str>>,
}

/// A payment intent at one moment. Cheap to clone: events and kept answers hold the moment they speak of.
#[derive(Clone, Debug)]
pub(super) struct Intent {
    pub(super) origin: Arc<Origin>,
    pub(super) status: Status,
    pub(super) amount: i64,
    pub(super) amount_capturable: i64,
    pub(super) amount_received: i64,
    pub(super) amount_refunded: i64,
    /// All that was ever set aside, and what of it was let go without being taken.
    pub(super) authorised: i64,
    pub(super) voided: i64,
    /// Unix seconds of the approval; there is a charge from then on.
    pub(super) charged_at: Option<i64>,
    pub(super) payment_method: Option<Arc<str>>,
    pub(super) return_url: Option<Arc<str>>,
    /// The last failure and the payment method that met it.
    pub(super) last_error: Option<(&'static Decline, Option<Arc<str>>)>,
    pub(super) canceled_at: Option<i64>,
    pub(super) cancellation_reason: Option<&'static str>,
}

/// An operation that the state doesn't allow; nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    UnexpectedState,
    PaymentMethodMissing,
    AmountTooLarge,
    AlreadyRefunded,
}

impl Intent {
    /// An intent that nobody has tried to pay.
    pub(super) fn new(origin: Origin, amount: i64, payment_method: Option<Arc<str>>) -> Intent {
        let status = match payment_method {
            Some(_) => Status::RequiresConfirmation,
            None => Status::RequiresPaymentMethod,
        };
        Intent {
            origin: Arc::new(origin),
            status,
            amount,
            amount_capturable: 0,
            amount_received: 0,
            amount_refunded: 0,
            authorised: 0,
            voided: 0,
            charged_at: None,
            payment_method,
            return_url: None,
            last_error: None,
            canceled_at: None,
            cancellation_reason: None,
        }
    }

    /// The buyer tries to pay. Without a scripted verdict the payment method decides.
    pub(super) fn confirm(
        &mut self,
        payment_method: Option<Arc<str>>,
        scripted: Option<Verdict>,
        now: i64,
    ) -> Result<Transition, Refusal> {
        match self.status {
            Status::RequiresPaymentMethod | Status::RequiresConfirmation | Status::RequiresAction => (),
            Status::Processing | Status::RequiresCapture | Status::Canceled | Status::Succeeded => {
                return Err(Refusal::UnexpectedState);
            }
        }
        let Some(method) = payment_method.or_else(|| self.payment_method.clone()) else {
            return Err(Refusal::PaymentMethodMissing);
        };
        // Past this line the attempt counts.
        let verdict = scripted.unwrap_or_else(|| Verdict::of(&method));
        self.payment_method = Some(method);
        Ok(match verdict {
            Verdict::Approved => self.approve(now),
            Verdict::ApprovedLess => {
                self.amount -= 1;
                self.approve(now)
            }
            Verdict::Declined(decline) => self.fail(decline),
            Verdict::ActionRequired => {
                self.status = Status::RequiresAction;
                Transition::ActionRequired
            }
            Verdict::Processing => {
                self.status = Status::Processing;
                Transition::Processing
            }
        })
    }

    /// The buyer finished or abandoned the extra authentication, or the bank finished processing.
    pub(super) fn complete(&mut self, success: bool, now: i64) -> Result<Transition, Refusal> {
        match self.status {
            Status::RequiresAction | Status::Processing if success => Ok(self.approve(now)),
            Status::RequiresAction | Status::Processing => Ok(self.fail(&AUTHENTICATION_FAILURE)),
            Status::RequiresPaymentMethod
            | Status::RequiresConfirmation
            | Status::RequiresCapture
            | Status::Canceled
            | Status::Succeeded => Err(Refusal::UnexpectedState),
        }
    }

    fn approve(&mut self, now: i64) -> Transition {
        self.authorised = self.amount;
        self.charged_at = Some(now);
        self.last_error = None;
        match self.origin.capture_method {
            CaptureMethod::Manual => {
                self.status = Status::RequiresCapture;
                self.amount_capturable = self.amount;
                Transition::Authorized
            }
            CaptureMethod::Automatic | CaptureMethod::AutomaticAsync => {
                self.status = Status::Succeeded;
                self.amount_received = self.amount;
                Transition::Succeeded
            }
        }
    }

    fn fail(&mut self, decline: &'static Decline) -> Transition {
        self.status = Status::RequiresPaymentMethod;
        self.last_error = Some((decline, self.payment_method.take()));
        Transition::Failed
    }

    /// Takes money that was set aside; what isn't taken is let go.
    pub(super) fn capture(&mut self, amount: Option<i64>) -> Result<Transition, Refusal> {
        if self.status != Status::RequiresCapture {
            return Err(Refusal::UnexpectedState);
        }
        let amount = amount.unwrap_or(self.amount_capturable);
        if amount > self.amount_capturable {
            return Err(Refusal::AmountTooLarge);
        }
        self.status = Status::Succeeded;
        self.amount_received = amount;
        self.voided = self.amount_capturable - amount;
        self.amount_capturable = 0;
        Ok(Transition::Succeeded)
    }

    /// Calls the payment off; money set aside goes back to the buyer.
    pub(super) fn cancel(&mut self, reason: Option<&'static str>, now: i64) -> Result<Transition, Refusal> {
        match self.status {
            Status::RequiresPaymentMethod
            | Status::RequiresConfirmation
            | Status::RequiresAction
            | Status::RequiresCapture => (),
            // The bank's answer is on its way: only it can end this.
            Status::Processing => return Err(Refusal::UnexpectedState),
            Status::Canceled | Status::Succeeded => return Err(Refusal::UnexpectedState),
        }
        self.status = Status::Canceled;
        self.canceled_at = Some(now);
        self.cancellation_reason = reason;
        self.voided = self.amount_capturable;
        self.amount_capturable = 0;
        Ok(Transition::Canceled)
    }

    /// How much a refund of `amount`, or of all that is left, would give back.
    pub(super) fn refundable(&self, amount: Option<i64>) -> Result<i64, Refusal> {
        if self.status != Status::Succeeded {
            return Err(Refusal::UnexpectedState);
        }
        let left = self.amount_received - self.amount_refunded;
        match amount.unwrap_or(left) {
            _ if left == 0 => Err(Refusal::AlreadyRefunded),
            amount if amount > left => Err(Refusal::AmountTooLarge),
            amount => Ok(amount),
        }
    }

    /// Gives money back.
    pub(super) fn refund(&mut self, amount: Option<i64>) -> Result<Transition, Refusal> {
        self.amount_refunded += self.refundable(amount)?;
        Ok(Transition::Refunded)
    }
}

/// Money given back.
#[derive(Debug)]
pub(super) struct Refund {
    pub(super) id: Arc<str>,
    /// The intent as it was once the refund was made.
    pub(super) intent: Arc<Intent>,
    pub(super) created: i64,
    pub(super) amount: i64,
    pub(super) reason: Option<&'static str>,
    pub(super) failed: bool,
    pub(super) metadata: Metadata,
}

#[cfg(test)]
mod tests;
