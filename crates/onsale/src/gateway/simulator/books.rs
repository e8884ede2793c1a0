//! All that the simulator knows, and what each call does to it. Synchronous: time comes in, events and answers come
//! out, and the caller holds the lock for no longer than this takes.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::answer::{Answer, Reply};
use super::balance::Entry;
use super::error::ApiError;
use super::events::{Event, Events};
use super::idempotency::{Arrival, Keys};
use super::ids::Ids;
use super::intent::{Intent, Refund, Status, Transition};
use super::limits::INTENTS_MAX;
use super::operations::{Call, Request};
use super::record::{Log, LogEntry};
use super::script::{Operation, Outcome, Script};

/// The provider's whole state.
pub(super) struct Books {
    pub(super) ids: Ids,
    /// In order of creation, and so of `created`.
    pub(super) intents: Vec<Arc<Intent>>,
    pub(super) intent_index: HashMap<Arc<str>, usize>,
    /// In order of creation.
    pub(super) refunds: Vec<Arc<Refund>>,
    pub(super) refunds_of_intent: HashMap<usize, Vec<usize>>,
    /// In order of creation.
    pub(super) balance: Vec<Arc<Entry>>,
    pub(super) events: Events,
    pub(super) script: Script,
    pub(super) log: Log,
    keys: Keys,
    /// What happened in this transaction and waits for delivery.
    pub(super) outgoing: Vec<Outgoing>,
    /// The latest second seen: lists are searched by `created`, so it never goes back.
    second_latest: i64,
}

/// An event on its way out.
pub(super) struct Outgoing {
    pub(super) event: Arc<Event>,
    /// Whether an authorization that is not yet answered caused it.
    pub(super) authorizing: bool,
}

/// How far a call has come.
pub(super) enum Step {
    Done(Answer),
    /// It is to be [performed](Books::perform) after this time, whether or not its client waits.
    Later(Duration),
}

impl Books {
    /// Nothing yet.
    pub(super) fn new(seed: u64) -> Books {
        Books {
            ids: Ids::new(seed),
            intents: Vec::new(),
            intent_index: HashMap::new(),
            refunds: Vec::new(),
            refunds_of_intent: HashMap::new(),
            balance: Vec::new(),
            events: Events::default(),
            script: Script::default(),
            log: Log::default(),
            keys: Keys::default(),
            outgoing: Vec::new(),
            second_latest: 0,
        }
    }

    /// A well-formed call arrives: it is logged, and unless its key has been seen it takes the next scripted outcome.
    pub(super) fn receive(&mut self, request: &Request, now_ms: i64) -> Step {
        // The amount in the log is the one asked for, before the operation changes it.
        let entry = self.log_entry(request, now_ms);
        if let Some(key) = &request.idempotency_key {
            let asked = entry.as_ref().and_then(|entry| entry.amount);
            match self.keys.arrive(key, request.fingerprint, asked) {
                Arrival::Fresh => (),
                Arrival::Replay { reply, amount } => {
                    self.log.push(entry.map(|entry| LogEntry { amount, ..entry }), "replayed");
                    return Step::Done(Answer::Replayed(reply));
                }
                Arrival::Clash(error) => {
                    self.log.push(entry, error.code.unwrap_or(error.kind));
                    return Step::Done(Answer::Reply(Reply::Error(error.into())));
                }
            }
        }
        let scripted = request.call.operation().and_then(|operation| self.script.pop(operation));
        if let Some(Outcome::Delay(delay)) = scripted {
            // As received: how it ends isn't known yet.
            self.log.push(entry, Outcome::Delay(delay).to_string());
            return Step::Later(delay);
        }
        let answer = self.perform(request, scripted, now_ms);
        if let Some(operation) = request.call.operation() {
            self.log.push(entry, outcome_of(operation, scripted, &answer));
        }
        Step::Done(answer)
    }

    /// Does what was received, as scripted.
    pub(super) fn perform(&mut self, request: &Request, scripted: Option<Outcome>, now_ms: i64) -> Answer {
        // After most of these a key answers with the truth: a caller that asks again learns what was done, and does it
        // afresh when nothing was. One keeps its 500 under the key for good, as the provider may.
        match scripted {
            Some(Outcome::LostRequest) => {
                self.forget_key(request);
                return Answer::Lost;
            }
            Some(Outcome::Error500NotDone) => {
                self.forget_key(request);
                return Answer::Reply(Reply::Error(ApiError::internal().into()));
            }
            Some(Outcome::Error500Kept) => {
                let reply = Reply::Error(ApiError::internal().into());
                if let Some(key) = &request.idempotency_key {
                    self.keys.finish(key, reply.clone());
                }
                return Answer::Reply(reply);
            }
            _ => (),
        }
        let second = self.second(now_ms);
        let result = self.execute(request, scripted, second);
        let keep = result.as_ref().map_or_else(|error| error.executed, |_| true);
        let reply = Reply::from(result);
        match &request.idempotency_key {
            Some(key) if keep => self.keys.finish(key, reply.clone()),
            Some(key) => self.keys.forget(key),
            None => (),
        }
        match scripted {
            Some(Outcome::LostReply) => Answer::Lost,
            Some(Outcome::Error500Done) => Answer::Reply(Reply::Error(ApiError::internal().into())),
            _ => Answer::Reply(reply),
        }
    }

    /// The second of an instant, never before one already given out.
    pub(super) fn second(&mut self, now_ms: i64) -> i64 {
        self.second_latest = self.second_latest.max(now_ms / 1_000);
        self.second_latest
    }

    fn forget_key(&mut self, request: &Request) {
        if let Some(key) = &request.idempotency_key {
            self.keys.forget(key);
        }
    }

    /// The intent of that id and its place.
    pub(super) fn find(&self, id: &str) -> Option<(usize, &Arc<Intent>)> {
        let place = *self.intent_index.get(id)?;
        Some((place, &self.intents[place]))
    }

    /// Takes a new intent.
    pub(super) fn insert(&mut self, intent: Intent) -> Result<usize, ApiError> {
        if self.intents.len() >= INTENTS_MAX {
            return Err(ApiError::full("payment intents"));
        }
        let place = self.intents.len();
        self.intent_index.insert(intent.origin.id.clone(), place);
        self.intents.push(Arc::new(intent));
        Ok(place)
    }

    /// Puts the changed intent in its place and tells what happened to it.
    pub(super) fn change(
        &mut self,
        place: usize,
        intent: Intent,
        transition: Transition,
        cause: Option<&Request>,
        second: i64,
    ) -> Arc<Intent> {
        let intent = Arc::new(intent);
        self.intents[place] = intent.clone();
        if transition == Transition::Succeeded {
            self.balance.push(Entry::charge(&intent, second));
        }
        let event = Arc::new(Event {
            id: self.ids.mint("evt_").into(),
            transition,
            created: second,
            intent: intent.clone(),
            request_id: cause.map(|request| request.id.clone()),
            idempotency_key: cause.and_then(|request| request.idempotency_key.clone()),
        });
        self.events.push(event.clone());
        let authorizing = cause.is_some_and(|request| request.call.operation() == Some(Operation::Authorize));
        self.outgoing.push(Outgoing { event, authorizing });
        intent
    }

    /// The entry of an operation, its outcome still open; nothing for a plain create.
    fn log_entry(&self, request: &Request, now_ms: i64) -> Option<LogEntry> {
        let operation = request.call.operation()?;
        let intent = request.call.intent_id().and_then(|id| self.find(id)).map(|(_, intent)| intent);
        let mut entry = LogEntry {
            at_ms: now_ms,
            operation,
            idempotency_key: request.idempotency_key.clone(),
            order_id: intent.and_then(|intent| intent.origin.order_id.clone()),
            amount: intent.map(|intent| intent.amount),
            currency: intent.map(|intent| intent.origin.currency.to_ascii_uppercase().into()),
            outcome: "".into(),
        };
        match &request.call {
            Call::Create(create) => {
                entry.order_id = create.order_id.clone();
                entry.amount = Some(create.amount);
                entry.currency = Some(create.currency.to_ascii_uppercase().into());
            }
            Call::Capture { amount, .. } => {
                entry.amount = amount.or(intent.map(|intent| intent.amount_capturable));
            }
            Call::Refund(refund) => {
                let left = intent.map(|intent| intent.amount_received - intent.amount_refunded);
                entry.amount = refund.amount.or(left);
            }
            Call::Confirm { .. } | Call::Cancel { .. } | Call::Query { .. } => (),
        }
        Some(entry)
    }
}

/// How an operation ended, in a word for the log: the fault where there was one, else what came of it.
fn outcome_of(operation: Operation, scripted: Option<Outcome>, answer: &Answer) -> Cow<'static, str> {
    let (reply, fault) = match (answer, scripted) {
        (Answer::Lost, Some(fault)) => return fault.to_string().into(),
        (
            Answer::Reply(_),
            Some(fault @ (Outcome::Error500Done | Outcome::Error500NotDone | Outcome::Error500Kept)),
        ) => return fault.to_string().into(),
        (Answer::Reply(reply) | Answer::Replayed(reply), fault) => (reply, fault),
        (Answer::Lost, None) => return "lost_reply".into(),
    };
    let word = match reply {
        Reply::Intent { .. } if fault == Some(Outcome::AmountMismatch) => "amount_mismatch",
        Reply::Intent { intent, .. } if operation == Operation::Authorize => match intent.status {
            Status::RequiresAction => "requires_action",
            Status::Processing => "processing",
            Status::RequiresPaymentMethod
            | Status::RequiresConfirmation
            | Status::RequiresCapture
            | Status::Canceled
            | Status::Succeeded => "ok",
        },
        Reply::Error(_) if fault == Some(Outcome::Declined) => "declined",
        Reply::Error(error) if error.status == 402 => "declined",
        Reply::Error(_) => "refused",
        Reply::Refund(refund) if refund.failed => "declined",
        Reply::Refund(_) | Reply::Intent { .. } => "ok",
    };
    word.into()
}

#[cfg(test)]
mod tests;
