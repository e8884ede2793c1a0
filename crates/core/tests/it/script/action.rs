//! What a step asks for.

use std::hash::{DefaultHasher, Hash, Hasher};

use onsale_core::best_available::Best;
use onsale_core::command::{Answer, Command, Request, Wish};
use onsale_core::event::EventStatus;
use onsale_core::gateway::{IntentState, Observation};
use onsale_core::id::{AreaNo, CaseId, EventNo, HoldId, OperationId, OrderId, Seed};
use onsale_core::idempotency::RequestKey;
use onsale_core::money::{Currency, Money};
use onsale_core::payment::{Operation, OperationKind};
use onsale_core::reconcile::{About, Callback, CaseAction, CaseKind, Verdict};
use onsale_core::refund::RefundPart;
use onsale_core::time::Timestamp;

use super::words::{Words, is_name};
use super::{Page, account, manifest};
use crate::world::{HALL, euro};

/// A request at a time, and the name that what it makes is to have.
pub(super) struct Step {
    pub(super) at: Timestamp,
    pub(super) request: Request,
    pub(super) name: Option<String>,
}

impl Page {
    pub(super) fn step(&mut self, mut words: Words<'_>) -> Step {
        let at = words.time();
        let (mut key, mut name) = (None, None);
        let command = match words.next() {
            "callback" => self.callback(&mut words),
            "list" => self.list(&mut words),
            "operator" => self.operator(&mut words),
            "worker" => self.worker(&mut words),
            "gate" => self.gate(&mut words),
            hold if is_name(hold, |letter| letter == 'h') => {
                words.expect("expires");
                Command::ExpireHold { hold: self.hold(hold) }
            }
            order if order.starts_with('o') => self.provider(order, &mut words),
            buyer => {
                let command = self.buyer(buyer, &mut words);
                name = words.take("as").then(|| words.next().to_owned());
                let meaning = digest(&format!("{command:?}"));
                key = words.take("key").then(|| RequestKey { id: digest(words.next()), digest: meaning });
                command
            }
        };
        words.end();
        Step { at, request: self.request(command, key, at), name }
    }

    pub(super) fn request(&mut self, command: Command, key: Option<RequestKey>, at: Timestamp) -> Request {
        self.requests += 1;
        let seed = Seed::new(command.event(), at, self.requests << 8);
        Request { command, key, seed }
    }

    /// `ada holds A1 A2 [standing 1] [reading 2]`, `ada holds best 3 [of B] [split]`, `ada pays h1`, `ada releases h1`.
    fn buyer(&self, buyer: &str, words: &mut Words<'_>) -> Command {
        let account = account(buyer);
        match words.next() {
            "holds" => {
                let seats = words.seats().into_iter().map(|label| self.ordinal(label)).collect();
                let best = words.take("best").then(|| best(words));
                let standing = words.take("standing").then(|| words.number() as u32);
                let ga = standing.map(|quantity| (AreaNo(0), quantity)).into_iter().collect();
                let read = words.take("reading").then(|| words.number() as u32);
                let manifest_version = read.unwrap_or(self.world.hall().manifest_version);
                Command::PlaceHold {
                    event: HALL,
                    manifest_version,
                    account,
                    wish: Wish { seats, ga, best },
                    code: None,
                }
            }
            "pays" => Command::Checkout {
                hold: self.hold(words.next()),
                account,
                payment_method_token: "pm_card".to_owned(),
                email: None,
                return_url: None,
            },
            "releases" => Command::ReleaseHold { hold: self.hold(words.next()), account: Some(account) },
            other => panic!("{buyer} {other} what?"),
        }
    }

    fn operator(&self, words: &mut Words<'_>) -> Command {
        let actor = "olga".to_owned();
        let event = HALL;
        let manifest_version = self.world.hall().manifest_version;
        let status = |status| Command::SetOnSale { event, status, actor: actor.clone() };
        match words.next() {
            "opens" => status(EventStatus::Open),
            "pauses" => status(EventStatus::Paused),
            "closes" => status(EventStatus::Closed),
            "unpublishes" => status(EventStatus::Draft),
            "prices" => {
                let mut levels = Vec::new();
                while let Some(level) = words.next_if_any() {
                    levels.push(((level.as_bytes()[0] - b'A') as u16, words.number()));
                }
                Command::SetPrices { event, manifest_version, levels }
            }
            word @ ("withholds" | "offers") => {
                let seats = words.seats().into_iter().map(|label| self.ordinal(label)).collect();
                let not_for_sale = word == "withholds";
                Command::SetSeatsStatus { event, manifest_version, seats, not_for_sale, actor }
            }
            "replaces" => {
                let seats: Vec<String> = words.seats().into_iter().map(str::to_owned).collect();
                Command::ReplaceManifest { event, manifest: manifest(&seats, 0) }
            }
            "releases" => Command::ReleaseHold { hold: self.hold(words.next()), account: None },
            "reissues" => self.reissue(words),
            // All that is left, or some seats of it.
            "refunds" => {
                let order = self.order(words.next());
                let seats: Vec<_> = words.seats().into_iter().map(|label| self.ordinal(label)).collect();
                let part = match seats.is_empty() {
                    true => RefundPart::Rest,
                    false => RefundPart::Places { seats, ga: Vec::new() },
                };
                Command::BeginRefund { order, part, resell: true, reason: "asked for".to_owned(), actor }
            }
            "resolves" => {
                let kind = words.next();
                let order = (!words.take("with")).then(|| words.next());
                if order.is_some() {
                    words.expect("with");
                }
                let action = match words.next() {
                    "void" => CaseAction::Void,
                    "refund" => CaseAction::Refund,
                    "confirm" => CaseAction::ConfirmIfBound,
                    "release" => CaseAction::Release,
                    "dismiss" => CaseAction::Dismiss,
                    other => panic!("resolve with {other}?"),
                };
                let case = self.case(kind, order);
                Command::ResolveCase { case, action, note: "seen to".to_owned(), actor }
            }
            other => panic!("operator {other} what?"),
        }
    }

    /// `o1 is referenced pi_1`, `o1#2 answers authorized`, `o1 capture answers none`.
    fn provider(&self, order: &str, words: &mut Words<'_>) -> Command {
        let operation = self.operation(order, words);
        let id = operation.id;
        match words.next() {
            "is" => {
                words.expect("referenced");
                Command::RecordReference { operation: id, reference: words.next().to_owned() }
            }
            "answers" => {
                let answer = if words.take("none") {
                    Answer::NoAnswer
                } else if words.take("busy") {
                    Answer::Busy(words.time().millis())
                } else if words.take("refused") {
                    Answer::Refused("refused_by_provider".to_owned())
                } else {
                    Answer::Observed(self.observation(Some(operation.attempt()), None, words))
                };
                Command::RecordAnswer { operation: id, answer }
            }
            other => panic!("{order} {other} what?"),
        }
    }

    /// An order's latest attempt, or `#n`, or an operation on it by its kind.
    pub(super) fn operation(&self, word: &str, words: &mut Words<'_>) -> &Operation {
        let attempt = self.attempt(word);
        let kind = match words.peek() {
            Some("capture") => OperationKind::Capture,
            Some("void") => OperationKind::Void,
            Some("refund") => OperationKind::Refund,
            _ => return attempt,
        };
        words.next();
        let of_kind = |o: &&Operation| o.kind == kind && o.target == Some(attempt.id);
        let operations = self.world.operations_of(attempt.order);
        operations.into_iter().rfind(of_kind).unwrap_or_else(|| panic!("{word} has no {kind:?}"))
    }

    fn attempt(&self, word: &str) -> &Operation {
        let (order, number) = word.split_once('#').unwrap_or((word, ""));
        let mut attempts = self.world.operations_of(self.order(order));
        attempts.retain(|o| o.kind == OperationKind::Authorize);
        match number {
            "" => attempts.pop().expect("an order has an attempt"),
            number => attempts[number.parse::<usize>().expect("attempts are numbered from 1") - 1],
        }
    }

    pub(super) fn hold(&self, name: &str) -> HoldId {
        *self.holds.get(name).unwrap_or_else(|| panic!("there is no hold {name}"))
    }

    pub(super) fn order(&self, name: &str) -> OrderId {
        *self.orders.get(name).unwrap_or_else(|| panic!("there is no order {name}"))
    }

    /// The latest case of a kind, about an order or about none of ours.
    pub(super) fn case(&self, kind: &str, order: Option<&str>) -> CaseId {
        let order = order.map(|order| self.attempt(order));
        let is_it = |case: &&onsale_core::reconcile::Case| {
            case.kind.as_str() == kind && case.operation == order.map(|attempt| attempt.id)
        };
        let found = self.world.cases.values().rfind(is_it);
        found.unwrap_or_else(|| panic!("there is no case {kind}")).id
    }

    /// `authorized [amount 900] [currency USD] [refunded 100] [named pi_2] [claiming o2]`
    fn observation(
        &self,
        attempt: Option<OperationId>,
        reference: Option<&str>,
        words: &mut Words<'_>,
    ) -> Observation {
        let state = match words.next() {
            "unconfirmed" => IntentState::Unconfirmed,
            "requires_action" => IntentState::RequiresAction(Some("https://bank.example/3ds".to_owned())),
            "processing" => IntentState::Processing,
            "declined" => IntentState::Declined("card_declined".to_owned()),
            "authorized" => IntentState::Authorized,
            "captured" => IntentState::Captured,
            "voided" => IntentState::Voided,
            other => panic!("the provider says {other}?"),
        };
        let row = attempt.map(|attempt| &self.world.operations[&attempt]);
        let named = reference.or(row.and_then(|row| row.reference.as_deref()));
        let amount = row.map_or(Money { amount_minor: 1_000, currency: euro() }, |row| row.amount);
        let (mut named, order) = (named.unwrap_or("pi_unnamed").to_owned(), row.map(|row| row.order));
        let mut seen = Observation {
            reference: String::new(),
            state,
            amount,
            refunded_minor: 0,
            order,
            operation: attempt,
        };
        while let Some(word) = words.next_if_any() {
            match word {
                "amount" => seen.amount.amount_minor = words.number(),
                "refunded" => seen.refunded_minor = words.number(),
                "currency" => seen.amount.currency = Currency::parse(words.next()).expect("a currency"),
                "named" => named = words.next().to_owned(),
                "claiming" => seen.order = Some(self.order(words.next())),
                "unmarked" => (seen.order, seen.operation) = (None, None),
                other => panic!("what is {other}?"),
            }
        }
        seen.reference = named;
        seen
    }

    /// A look at the provider's books: `list o1 says authorized ...`, `list o1 misses`, `list stale o1 says captured`, and of an
    /// object that is nobody's: `list finds pi_9`, `list settles pi_9`.
    fn list(&self, words: &mut Words<'_>) -> Command {
        if words.take("finds") {
            let about = About::Object(EventNo::HOUSE, words.next().to_owned());
            return Command::OpenCase {
                about,
                kind: CaseKind::OrphanPayment,
                evidence: "it has money".to_owned(),
            };
        }
        if words.take("settles") {
            let case = CaseId::about(EventNo::HOUSE, words.next());
            return Command::SettleCase { case, proof: "it has found its order".to_owned() };
        }
        let is_stale = words.take("stale");
        let attempt = self.attempt(words.next());
        let on_it = |o: &&&Operation| o.attempt() == attempt.id;
        let moved_at =
            self.world.operations_of(attempt.order).iter().filter(on_it).map(|o| o.updated_at).max();
        let as_of = if is_stale { Timestamp::ZERO } else { moved_at.expect("an attempt is one of them") };
        let observation = match words.next() {
            "says" => Some(self.observation(Some(attempt.id), None, words)),
            "misses" => None,
            other => panic!("the provider's list {other} what?"),
        };
        Command::Reconcile { attempt: attempt.id, observation, as_of }
    }

    /// `callback ev1 about pi_1 [of o1] [claims o2] [content x] [at house|hall|nowhere]
    /// (says authorized ... | unread | irrelevant)`
    fn callback(&self, words: &mut Words<'_>) -> Command {
        let id = words.next();
        let (mut reference, mut claimed, mut attached, mut content, mut at) = (None, None, None, "", None);
        let (observation, relevant) = loop {
            match words.next() {
                "about" => reference = Some(words.next()),
                "of" => attached = Some(self.attempt(words.next()).id),
                "claims" => claimed = Some(self.order(words.next())),
                "content" => content = words.next(),
                "at" => {
                    at = Some(match words.next() {
                        "house" => EventNo::HOUSE,
                        "hall" => HALL,
                        "nowhere" => EventNo::MAX,
                        other => panic!("where is {other}?"),
                    });
                }
                "unread" => break (None, true),
                "irrelevant" => break (None, false),
                "says" => {
                    let known = reference.and_then(|name| self.world.attempt_named(name)).map(|row| row.id);
                    break (Some(self.observation(attached.or(known), reference, words)), true);
                }
                other => panic!("what is {other}?"),
            }
        };
        let known = reference.and_then(|name| self.world.attempt_named(name));
        let event = known.map(|row| row.id.event()).or(attached.map(OperationId::event));
        let callback = Callback {
            provider_event_id: id.to_owned(),
            event: EventNo::HOUSE,
            digest: digest(&format!("{reference:?} {claimed:?} {content}")),
            kind: "payment.changed".to_owned(),
            reference: reference.map(str::to_owned),
            claimed_order: claimed,
            verdict: Verdict::Parked,
            received_at: Timestamp::ZERO,
            due_at: Timestamp::ZERO,
            case: None,
        };
        let event = at.or(event).unwrap_or(EventNo::HOUSE);
        Command::JudgeCallback { event, callback: Box::new(callback), observation, relevant }
    }
}

fn best(words: &mut Words<'_>) -> Best {
    let quantity = words.number() as u32;
    let price_level = words.take("of").then(|| u16::from(words.next().as_bytes()[0] - b'A'));
    let split_rows = words.take("split");
    Best { quantity, price_level, section: None, accessible: false, split_rows }
}

fn digest(text: &str) -> u128 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish().into()
}
