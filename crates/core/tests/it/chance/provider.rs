//! A provider that does what a provider may do.

use std::collections::BTreeMap;

use onsale_core::gateway::{IntentState, Observation};
use onsale_core::id::{OperationId, OrderId};
use onsale_core::money::Money;
use onsale_core::payment::OperationKind;

use super::Chance;

#[derive(Clone, Debug)]
pub(super) struct Intent {
    pub(super) state: IntentState,
    pub(super) amount: Money,
    pub(super) refunded_minor: i64,
    order: OrderId,
    operation: OperationId,
}

/// What came of a call.
pub(super) enum Reply {
    Done,
    Refused,
}

#[derive(Debug)]
pub(super) struct Provider {
    pub(super) intents: BTreeMap<String, Intent>,
    /// Whether it takes money at once.
    charge: bool,
}

impl Provider {
    pub(super) fn new(charge: bool) -> Provider {
        Provider { intents: BTreeMap::new(), charge }
    }

    /// Makes the attempt's object; asked again, it is the same.
    pub(super) fn create(&mut self, operation: OperationId, order: OrderId, amount: Money) -> String {
        let name = format!("pi_{operation}");
        let state = IntentState::Unconfirmed;
        let made = Intent { state, amount, refunded_minor: 0, order, operation };
        self.intents.entry(name.clone()).or_insert(made);
        name
    }

    pub(super) fn read(&self, name: &str) -> Observation {
        let intent = &self.intents[name];
        Observation {
            reference: name.to_owned(),
            state: intent.state.clone(),
            amount: intent.amount,
            refunded_minor: intent.refunded_minor,
            order: Some(intent.order),
            operation: Some(intent.operation),
        }
    }

    fn paid(&self) -> IntentState {
        if self.charge { IntentState::Captured } else { IntentState::Authorized }
    }

    /// Does what is asked where the object's state allows it, and now and then refuses.
    pub(super) fn act(&mut self, name: &str, kind: OperationKind, chance: &mut Chance) -> Reply {
        let (paid, odd) = (self.paid(), chance.percent(3));
        let intent = self.intents.get_mut(name).expect("what is acted upon was made");
        if chance.percent(5) {
            return Reply::Refused;
        }
        match (kind, &intent.state) {
            (OperationKind::Authorize, IntentState::Unconfirmed) => {
                intent.state = match chance.below(10) {
                    0 | 1 => IntentState::Declined("card_declined".to_owned()),
                    2 | 3 => IntentState::RequiresAction(None),
                    4 | 5 => IntentState::Processing,
                    _ => paid,
                };
                intent.amount.amount_minor -= if odd { 100 } else { 0 };
            }
            (OperationKind::Capture, IntentState::Authorized) => intent.state = IntentState::Captured,
            (OperationKind::Refund, IntentState::Captured) => {
                intent.refunded_minor = intent.amount.amount_minor
            }
            (
                OperationKind::Void,
                IntentState::Unconfirmed
                | IntentState::RequiresAction(_)
                | IntentState::Declined(_)
                | IntentState::Authorized,
            ) => intent.state = IntentState::Voided,
            _ => {}
        }
        Reply::Done
    }

    /// Something happens at the provider by itself; to which object.
    pub(super) fn stir(&mut self, chance: &mut Chance) -> Option<String> {
        let names: Vec<String> = self.intents.keys().cloned().collect();
        let (name, paid) = (chance.pick(&names)?.clone(), self.paid());
        let intent = self.intents.get_mut(&name)?;
        intent.state = match intent.state {
            IntentState::RequiresAction(_) | IntentState::Processing => match chance.below(3) {
                0 => IntentState::Declined("authentication_failed".to_owned()),
                _ => paid,
            },
            IntentState::Authorized if chance.percent(5) => IntentState::Voided,
            // A failure that wasn't one.
            IntentState::Declined(_) if chance.percent(10) => paid,
            _ => return None,
        };
        Some(name)
    }

    /// Nothing stays in work for ever.
    pub(super) fn finish(&mut self) {
        let paid = self.paid();
        for intent in self.intents.values_mut() {
            match intent.state {
                IntentState::Processing => intent.state = paid.clone(),
                IntentState::RequiresAction(_) => {
                    intent.state = IntentState::Declined("abandoned".to_owned())
                }
                _ => {}
            }
        }
    }
}
