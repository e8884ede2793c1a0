//! The provider's calls on payment intents, carried out on the books.

use std::sync::Arc;

use super::answer::Reply;
use super::balance::Entry;
use super::books::Books;
use super::error::ApiError;
use super::intent::{CaptureMethod, Intent, Metadata, Origin, Refund, Refusal, Status};
use super::limits::REFUNDS_MAX;
use super::script::{Operation, Outcome};

/// One well-formed call with what HTTP says about it.
pub(super) struct Request {
    pub(super) id: Arc<str>,
    pub(super) call: Call,
    pub(super) idempotency_key: Option<Arc<str>>,
    /// Of path and parameters; a key is bound to it.
    pub(super) fingerprint: u64,
    pub(super) expand_charge: bool,
}

/// What is asked.
pub(super) enum Call {
    Create(Create),
    Confirm { intent_id: String, payment_method: Option<Arc<str>>, return_url: Option<Arc<str>> },
    Capture { intent_id: String, amount: Option<i64> },
    Cancel { intent_id: String, reason: Option<&'static str> },
    Refund(CreateRefund),
    Query { intent_id: String },
}

/// A new intent.
pub(super) struct Create {
    pub(super) amount: i64,
    pub(super) currency: Box<str>,
    pub(super) capture_method: CaptureMethod,
    pub(super) payment_method: Option<Arc<str>>,
    pub(super) payment_method_types: Box<[Box<str>]>,
    pub(super) confirm: bool,
    pub(super) return_url: Option<Arc<str>>,
    pub(super) description: Option<Box<str>>,
    pub(super) metadata: Metadata,
    pub(super) order_id: Option<Arc<str>>,
}

/// A new refund.
pub(super) struct CreateRefund {
    pub(super) intent_id: String,
    pub(super) amount: Option<i64>,
    pub(super) reason: Option<&'static str>,
    pub(super) metadata: Metadata,
}

impl Call {
    /// The kind of operation, for the script and the log; a plain create is none.
    pub(super) fn operation(&self) -> Option<Operation> {
        match self {
            Call::Create(create) => create.confirm.then_some(Operation::Authorize),
            Call::Confirm { .. } => Some(Operation::Authorize),
            Call::Capture { .. } => Some(Operation::Capture),
            Call::Cancel { .. } => Some(Operation::Void),
            Call::Refund(_) => Some(Operation::Refund),
            Call::Query { .. } => Some(Operation::Query),
        }
    }

    /// The intent it is about, when there is one already.
    pub(super) fn intent_id(&self) -> Option<&str> {
        match self {
            Call::Create(_) => None,
            Call::Confirm { intent_id, .. }
            | Call::Capture { intent_id, .. }
            | Call::Cancel { intent_id, .. }
            | Call::Query { intent_id } => Some(intent_id),
            Call::Refund(refund) => Some(&refund.intent_id),
        }
    }
}

impl Books {
    /// Does the call, as a script may bend it.
    pub(super) fn execute(
        &mut self,
        request: &Request,
        scripted: Option<Outcome>,
        second: i64,
    ) -> Result<Reply, ApiError> {
        let declined = scripted == Some(Outcome::Declined);
        let intent = match &request.call {
            Call::Create(create) => self.create(request, create, scripted, second)?,
            Call::Confirm { intent_id, payment_method, return_url } => {
                let (place, _) = self.wanted(intent_id, "intent")?;
                self.confirm(request, place, (payment_method, return_url), scripted, second)?
            }
            Call::Capture { intent_id, amount } => {
                self.capture(request, intent_id, *amount, declined, second)?
            }
            Call::Cancel { intent_id, reason } => {
                let (place, intent) = self.wanted(intent_id, "intent")?;
                let mut next = Intent::clone(&intent);
                match next.cancel(*reason, second) {
                    Ok(transition) if !declined => {
                        self.change(place, next, transition, Some(request), second)
                    }
                    Ok(_) | Err(_) => return Err(ApiError::unexpected_state(&intent, "canceled")),
                }
            }
            Call::Refund(refund) => return self.refund(request, refund, declined, second),
            Call::Query { intent_id } => self.wanted(intent_id, "intent")?.1,
        };
        Ok(Reply::Intent { intent, expand_charge: request.expand_charge })
    }

    fn wanted(&self, id: &str, param: &'static str) -> Result<(usize, Arc<Intent>), ApiError> {
        let found = self.find(id).map(|(place, intent)| (place, intent.clone()));
        found.ok_or_else(|| ApiError::no_such(404, "payment_intent", id, param))
    }

    fn create(
        &mut self,
        request: &Request,
        create: &Create,
        scripted: Option<Outcome>,
        second: i64,
    ) -> Result<Arc<Intent>, ApiError> {
        let id: Arc<str> = self.ids.mint("pi_").into();
        let origin = Origin {
            secret: self.ids.mint(&format!("{id}_secret_")).into(),
            id,
            created: second,
            currency: create.currency.clone(),
            capture_method: create.capture_method,
            description: create.description.clone(),
            payment_method_types: create.payment_method_types.clone(),
            metadata: create.metadata.clone(),
            order_id: create.order_id.clone(),
        };
        let place = self.insert(Intent::new(origin, create.amount, create.payment_method.clone()))?;
        if create.confirm {
            self.confirm(request, place, (&None, &create.return_url), scripted, second)
        } else {
            Ok(self.intents[place].clone())
        }
    }

    fn confirm(
        &mut self,
        request: &Request,
        place: usize,
        (payment_method, return_url): (&Option<Arc<str>>, &Option<Arc<str>>),
        scripted: Option<Outcome>,
        second: i64,
    ) -> Result<Arc<Intent>, ApiError> {
        let before = &self.intents[place];
        let mut next = Intent::clone(before);
        let verdict = scripted.and_then(Outcome::verdict);
        let transition = match next.confirm(payment_method.clone(), verdict, second) {
            Ok(transition) => transition,
            Err(Refusal::PaymentMethodMissing) => {
                return Err(ApiError::refused(
                    before,
                    "payment_intent_unexpected_state",
                    "You cannot confirm this PaymentIntent because it's missing a payment method.",
                ));
            }
            Err(Refusal::UnexpectedState | Refusal::AmountTooLarge | Refusal::AlreadyRefunded) => {
                return Err(ApiError::unexpected_state(before, "confirmed"));
            }
        };
        if return_url.is_some() {
            next.return_url = return_url.clone();
        }
        let intent = self.change(place, next, transition, Some(request), second);
        match &intent.last_error {
            Some((decline, _)) if intent.status == Status::RequiresPaymentMethod => {
                Err(ApiError::declined(&intent, decline))
            }
            _ => Ok(intent),
        }
    }

    fn capture(
        &mut self,
        request: &Request,
        intent_id: &str,
        amount: Option<i64>,
        declined: bool,
        second: i64,
    ) -> Result<Arc<Intent>, ApiError> {
        let (place, intent) = self.wanted(intent_id, "intent")?;
        let mut next = Intent::clone(&intent);
        match next.capture(amount) {
            Ok(_) if declined => {
                // What was set aside has lapsed: the money is back with the buyer and the intent is over.
                let mut lapsed = Intent::clone(&intent);
                let transition = lapsed.cancel(Some("expired"), second);
                let transition = transition.map_err(|_| ApiError::unexpected_state(&intent, "captured"))?;
                let lapsed = self.change(place, lapsed, transition, Some(request), second);
                Err(ApiError::refused(
                    &lapsed,
                    "charge_expired_for_capture",
                    "The authorization for this charge has expired and it can no longer be captured.",
                ))
            }
            Ok(transition) => Ok(self.change(place, next, transition, Some(request), second)),
            Err(Refusal::AmountTooLarge) => {
                let mut error = ApiError::refused(
                    &intent,
                    "amount_too_large",
                    format!(
                        "The amount to capture is more than the {} that can be.",
                        intent.amount_capturable
                    ),
                );
                error.param = Some("amount_to_capture".into());
                Err(error)
            }
            Err(Refusal::UnexpectedState | Refusal::PaymentMethodMissing | Refusal::AlreadyRefunded) => {
                Err(ApiError::unexpected_state(&intent, "captured"))
            }
        }
    }

    fn refund(
        &mut self,
        request: &Request,
        wanted: &CreateRefund,
        declined: bool,
        second: i64,
    ) -> Result<Reply, ApiError> {
        let (place, intent) = self.wanted(&wanted.intent_id, "payment_intent")?;
        if self.refunds.len() >= REFUNDS_MAX {
            return Err(ApiError::full("refunds"));
        }
        let amount = intent.refundable(wanted.amount).map_err(|refusal| match refusal {
            Refusal::AlreadyRefunded => {
                ApiError::refused(&intent, "charge_already_refunded", "The charge has already been refunded.")
            }
            Refusal::AmountTooLarge => {
                let left = intent.amount_received - intent.amount_refunded;
                let message = format!("The refund is more than the {left} left of the charge.");
                let mut error = ApiError::refused(&intent, "amount_too_large", message);
                error.param = Some("amount".into());
                error
            }
            Refusal::UnexpectedState | Refusal::PaymentMethodMissing => {
                ApiError::unexpected_state(&intent, "refunded")
            }
        })?;
        let mut after = intent.clone();
        if !declined {
            let mut next = Intent::clone(&intent);
            let transition = next.refund(Some(amount)).map_err(|_| ApiError::internal())?;
            after = self.change(place, next, transition, Some(request), second);
        }
        let refund = Arc::new(Refund {
            id: self.ids.mint("re_").into(),
            intent: after,
            created: second,
            amount,
            reason: wanted.reason,
            failed: declined,
            metadata: wanted.metadata.clone(),
        });
        self.refunds_of_intent.entry(place).or_default().push(self.refunds.len());
        self.refunds.push(refund.clone());
        if !declined {
            self.balance.push(Entry::refund(&refund));
        }
        Ok(Reply::Refund(refund))
    }

    /// The buyer's part of an authorization: finishing it, or walking away.
    pub(super) fn complete(
        &mut self,
        intent_id: &str,
        success: bool,
        now_ms: i64,
    ) -> Result<Arc<Intent>, ApiError> {
        let (place, intent) = self.wanted(intent_id, "intent")?;
        let mut next = Intent::clone(&intent);
        let second = self.second(now_ms);
        let transition =
            next.complete(success, second).map_err(|_| ApiError::unexpected_state(&intent, "completed"))?;
        Ok(self.change(place, next, transition, None, second))
    }
}
