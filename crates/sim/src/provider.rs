//! A provider that does what a provider may do, and keeps books of its own. It also watches what is asked of it: some
//! requests no correct program sends.

use std::collections::{BTreeMap, BTreeSet};

use onsale_core::errand::{Call, Reply};
use onsale_core::gateway::{IntentState, Observation};
use onsale_core::id::{OperationId, OrderId};
use onsale_core::money::Money;
use onsale_core::order::OrderStatus;
use onsale_core::payment::Operation;
use onsale_core::time::seconds;
use onsale_world::World;

use crate::Broken;
use crate::chance::Chance;
use crate::coverage::{Coverage, Sometimes};

/// After this a key may be forgotten, and the same key is a new request.
pub(crate) const KEY_LIFE_MS: i64 = seconds(24 * 3_600);

/// The object of one attempt, with its own account of the money.
#[derive(Clone, Debug)]
pub(crate) struct Intent {
    pub(crate) state: IntentState,
    pub(crate) amount: Money,
    pub(crate) refunded_minor: i64,
    pub(crate) order: OrderId,
    pub(crate) operation: OperationId,
    /// Codes with which it was declined.
    pub(crate) declined: BTreeSet<String>,
    pub(crate) was_voided: bool,
    pub(crate) was_captured: bool,
    /// When it last changed.
    since: i64,
}

/// A request as it was sent.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) call: Call,
    pub(crate) operation: OperationId,
    pub(crate) order: OrderId,
    pub(crate) amount: Money,
    pub(crate) charge: bool,
    /// Its idempotency key; none for a question.
    pub(crate) key: Option<String>,
}

struct KeyKept {
    at: i64,
    operation: OperationId,
    what: &'static str,
    refused: Option<String>,
    name: String,
}

/// What the provider has to tell.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) id: String,
    pub(crate) digest: u128,
    pub(crate) name: String,
    pub(crate) claimed: Option<OrderId>,
    /// Whether the provider never gives up. Of what changes after its end nobody learns otherwise: a failed attempt is
    /// not asked about any more.
    pub(crate) lasting: bool,
}

#[derive(Default)]
pub(crate) struct Provider {
    pub(crate) intents: BTreeMap<String, Intent>,
    keys: BTreeMap<String, KeyKept>,
    /// Definite noes, by operation and code.
    pub(crate) refused: BTreeSet<(OperationId, String)>,
    /// Messages that are yet to be sent.
    pub(crate) outbox: Vec<Message>,
    pub(crate) sent: Vec<Message>,
    count: u64,
    /// Refusals without a reason in its own books, in percent.
    pub(crate) refuses: usize,
    /// Whether cards are declined, amounts are odd and states change by themselves.
    pub(crate) moody: bool,
}

impl Provider {
    pub(crate) fn new(refuses: usize) -> Provider {
        Provider { refuses, moody: true, ..Provider::default() }
    }

    pub(crate) fn observe(&self, name: &str) -> Option<Observation> {
        let intent = self.intents.get(name)?;
        Some(Observation {
            reference: name.to_owned(),
            state: intent.state.clone(),
            amount: intent.amount,
            refunded_minor: intent.refunded_minor,
            order: Some(intent.order),
            operation: Some(intent.operation),
        })
    }

    /// The object of an attempt.
    pub(crate) fn of(&self, attempt: OperationId) -> impl Iterator<Item = (&String, &Intent)> {
        self.intents.iter().filter(move |(_, intent)| intent.operation == attempt)
    }

    /// Does what is asked, once for each key, where the object's state allows it.
    pub(crate) fn execute(
        &mut self,
        sent: &Sent,
        now: i64,
        world: &World,
        chance: &mut Chance,
        coverage: &mut Coverage,
    ) -> Result<Reply, Broken> {
        let what = word(&sent.call);
        let Some(key) = &sent.key else {
            return Ok(self.read(reference(&sent.call)));
        };
        if let Some(kept) = self.keys.get(key).filter(|kept| now - kept.at < KEY_LIFE_MS) {
            coverage.saw(Sometimes::KeyKnown);
            return Ok(match &kept.refused {
                Some(code) => Reply::Refused(code.clone()),
                // The answer that was kept tells of then: the adapter looks again.
                None => self.read(&kept.name.clone()),
            });
        }
        // What is older than its key is asked about, and never sent. An hour is left for clocks and slow wires.
        let age = world.operations.get(&sent.operation).map_or(0, |row| now - row.created_at.millis());
        if age >= KEY_LIFE_MS && sent.call != Call::Create {
            let text = format!("{key} is sent {} hours after its operation was made", age / 3_600_000);
            return Err(Broken::new("provider: no key past its life", text));
        }
        let same = |kept: &&KeyKept| kept.operation == sent.operation && kept.what == what;
        if self
            .keys
            .values()
            .find(same)
            .is_some_and(|kept| self.keys.get(key).is_none_or(|k| k.at != kept.at))
        {
            let text = format!("{} is asked to {what} under another key: {key}", sent.operation);
            return Err(Broken::new("provider: one key for each operation", text));
        }
        let (name, refused) = self.act(sent, now, world, chance)?;
        let kept = KeyKept {
            at: now,
            operation: sent.operation,
            what,
            refused: refused.clone(),
            name: name.clone(),
        };
        self.keys.insert(key.clone(), kept);
        Ok(match refused {
            Some(code) => {
                self.refused.insert((sent.operation, code.clone()));
                Reply::Refused(code)
            }
            None => self.read(&name),
        })
    }

    fn read(&self, name: &str) -> Reply {
        self.observe(name).map_or_else(|| Reply::Refused("no_such_object".to_owned()), Reply::Observed)
    }

    fn act(
        &mut self,
        sent: &Sent,
        now: i64,
        world: &World,
        chance: &mut Chance,
    ) -> Result<(String, Option<String>), Broken> {
        if sent.call == Call::Create {
            self.count += 1;
            let name = format!("obj_{}", self.count);
            let intent = Intent {
                state: IntentState::Unconfirmed,
                amount: sent.amount,
                refunded_minor: 0,
                order: sent.order,
                operation: sent.operation,
                declined: BTreeSet::new(),
                was_voided: false,
                was_captured: false,
                since: now,
            };
            self.intents.insert(name.clone(), intent);
            return Ok((name, None));
        }
        let name = reference(&sent.call).to_owned();
        let no = |code: &str| Ok((name.clone(), Some(code.to_owned())));
        if self.refuses > 0 && chance.percent(self.refuses) {
            return no("refused_by_provider");
        }
        let (moody, paid) = (self.moody, paid(sent.charge));
        let Some(intent) = self.intents.get_mut(&name) else {
            return no("no_such_object");
        };
        match (&sent.call, &intent.state) {
            (Call::Confirm { .. }, IntentState::Unconfirmed) => {
                if world.attempt_named(&name).is_none() {
                    let text = format!("{name} of {}", sent.operation);
                    return Err(Broken::new("provider: confirmed only what the books can name", text));
                }
                intent.state = match chance.below(20) {
                    0..=2 => IntentState::Declined("card_declined".to_owned()),
                    3..=5 => IntentState::RequiresAction(None),
                    6..=8 => IntentState::Processing,
                    _ => paid,
                };
                if moody && chance.percent(3) {
                    intent.amount.amount_minor -= 100;
                }
            }
            (Call::Capture { .. }, IntentState::Authorized) => {
                let is_sold =
                    |order: &_| world.orders.get(order).is_some_and(|o| o.status == OrderStatus::Confirmed);
                if !is_sold(&sent.order) {
                    let text = format!("{name} of {}", sent.order);
                    return Err(Broken::new("provider: captured only what was sold", text));
                }
                intent.state = IntentState::Captured;
            }
            (Call::Refund { .. }, IntentState::Captured) => {
                // In parts too, and never more than was taken.
                let sum_minor = intent.refunded_minor + sent.amount.amount_minor;
                if sum_minor > intent.amount.amount_minor {
                    return no("more_than_is_left");
                }
                intent.refunded_minor = sum_minor;
            }
            (
                Call::Cancel { .. },
                IntentState::Unconfirmed
                | IntentState::RequiresAction(_)
                | IntentState::Declined(_)
                | IntentState::Authorized,
            ) => intent.state = IntentState::Voided,
            _ => return no("unexpected_state"),
        }
        self.changed(&name, now, chance);
        Ok((name, None))
    }

    /// Keeps the history of an object, and has a message to send about it.
    fn changed(&mut self, name: &str, now: i64, chance: &mut Chance) {
        self.changed_again(name, now, false, chance);
    }

    fn changed_again(&mut self, name: &str, now: i64, lasting: bool, chance: &mut Chance) {
        let intent = self.intents.get_mut(name).expect("what changed is there");
        intent.since = now;
        match &intent.state {
            IntentState::Declined(code) => {
                intent.declined.insert(code.clone());
            }
            IntentState::Voided => intent.was_voided = true,
            IntentState::Captured => intent.was_captured = true,
            _ => {}
        }
        self.count += 1;
        let message = Message {
            id: format!("msg_{}", self.count),
            digest: self.count.into(),
            name: name.to_owned(),
            claimed: None,
            lasting,
        };
        if self.moody {
            match chance.below(60) {
                0 => self.outbox.push(Message { digest: message.digest + (1 << 64), ..message.clone() }),
                1 => self.outbox.push(Message {
                    id: format!("{}_other", message.id),
                    claimed: Some(OrderId(1)),
                    ..message.clone()
                }),
                2 => self.outbox.push(Message {
                    id: format!("{}_stranger", message.id),
                    name: "obj_stranger".to_owned(),
                    ..message.clone()
                }),
                _ => {}
            }
        }
        self.sent.push(message.clone());
        self.outbox.push(message);
    }

    /// The buyer has acted, or has given up.
    pub(crate) fn acted(&mut self, name: &str, paid: IntentState, now: i64, chance: &mut Chance) -> bool {
        let Some(intent) = self.intents.get_mut(name) else {
            return false;
        };
        if !matches!(intent.state, IntentState::RequiresAction(_)) {
            return false;
        }
        intent.state = match chance.percent(75) {
            true => paid,
            false => IntentState::Declined("authentication_failed".to_owned()),
        };
        self.changed(name, now, chance);
        true
    }

    /// Something happens at the provider by itself.
    pub(crate) fn stir(&mut self, charge: bool, now: i64, chance: &mut Chance, coverage: &mut Coverage) {
        let names: Vec<String> = self.intents.keys().cloned().collect();
        let Some(name) = chance.pick(&names).cloned() else {
            return;
        };
        let moody = self.moody;
        let intent = self.intents.get_mut(&name).expect("it was picked from there");
        intent.state = match intent.state {
            IntentState::Processing => match chance.below(3) {
                0 => IntentState::Declined("bank_declined".to_owned()),
                _ => paid(charge),
            },
            IntentState::Authorized if moody && chance.percent(6) => {
                coverage.saw(Sometimes::Lapsed);
                IntentState::Voided
            }
            // A failure that wasn't one.
            IntentState::Declined(_) if moody && chance.percent(10) => {
                coverage.saw(Sometimes::FailureThenPaid);
                paid(charge)
            }
            _ => return,
        };
        let lasting = !intent.declined.is_empty();
        self.changed_again(&name, now, lasting, chance);
    }

    /// Nothing stays in work for ever: what has stood for long comes to an end.
    pub(crate) fn finish(&mut self, charge: bool, now: i64, chance: &mut Chance) {
        let old = |intent: &Intent| now - intent.since > seconds(120);
        let open = |intent: &Intent| {
            matches!(intent.state, IntentState::Processing | IntentState::RequiresAction(_))
        };
        let names: Vec<String> = self
            .intents
            .iter()
            .filter(|(_, intent)| old(intent) && open(intent))
            .map(|(name, _)| name.clone())
            .collect();
        for name in names {
            let intent = self.intents.get_mut(&name).expect("it was found there");
            intent.state = match intent.state {
                IntentState::Processing => paid(charge),
                _ => IntentState::Declined("authentication_expired".to_owned()),
            };
            self.changed(&name, now, chance);
        }
    }

    /// A person sees to it at the provider itself: money set aside is let go or taken, so much of money taken is given back.
    pub(crate) fn by_hand(&mut self, name: &str, take: bool, back_minor: i64, now: i64, chance: &mut Chance) {
        let Some(intent) = self.intents.get_mut(name) else {
            return;
        };
        match intent.state {
            IntentState::Captured if !take && back_minor > 0 => {
                let left_minor = intent.amount.amount_minor - intent.refunded_minor;
                intent.refunded_minor += back_minor.min(left_minor);
            }
            IntentState::Authorized if take => intent.state = IntentState::Captured,
            IntentState::Captured | IntentState::Processing => return,
            _ if take => return,
            _ => intent.state = IntentState::Voided,
        }
        self.changed(name, now, chance);
    }
}

fn paid(charge: bool) -> IntentState {
    if charge { IntentState::Captured } else { IntentState::Authorized }
}

/// What a success is in this world.
pub(crate) fn success(charge: bool) -> IntentState {
    paid(charge)
}

/// The word of a call in its key.
pub(crate) fn word(call: &Call) -> &'static str {
    match call {
        Call::Create => "create",
        Call::Query { .. } => "query",
        Call::Confirm { .. } => "confirm",
        Call::Capture { .. } => "capture",
        Call::Cancel { .. } => "cancel",
        Call::Refund { .. } => "refund",
    }
}

/// The object that a call is about.
pub(crate) fn reference(call: &Call) -> &str {
    match call {
        Call::Create => "",
        Call::Query { reference }
        | Call::Confirm { reference, .. }
        | Call::Capture { reference }
        | Call::Cancel { reference }
        | Call::Refund { reference } => reference,
    }
}

/// How a request goes out: a question without a key, everything else under its operation's own.
pub(crate) fn send(call: Call, operation: &Operation, charge: bool, again: u64) -> Sent {
    let key = match call {
        Call::Query { .. } => None,
        _ if onsale_core::planted!(NewKeyEachTime) => {
            Some(format!("{}:{}:{again}", operation.id, word(&call)))
        }
        _ => Some(format!("{}:{}", operation.id, word(&call))),
    };
    let (operation, order, amount) = (operation.id, operation.order, operation.amount);
    Sent { call, operation, order, amount, charge, key }
}
