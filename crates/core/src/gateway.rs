//! What the payment provider says, in words of our own. The adapter translates; the core judges.

use crate::id::{OperationId, OrderId};
use crate::money::Money;

/// The provider's object for one attempt to pay, as just read from the provider.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Observation {
    /// The provider's own name of the object (`pi_…`).
    pub reference: String,
    /// Where it stands.
    pub state: IntentState,
    /// What was asked for.
    pub amount: Money,
    /// How much has been given back, in minor units.
    pub refunded_minor: i64,
    /// Whose it is, from what we attached when we made it.
    pub order: Option<OrderId>,
    /// Which attempt it is, from what we attached when we made it.
    pub operation: Option<OperationId>,
}

/// States of a payment at the provider.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum IntentState {
    /// Made, not confirmed: no money can have moved.
    Unconfirmed,
    /// The buyer must prove who they are; the address to do it, when there is one.
    RequiresAction(Option<String>),
    /// The provider is working on it.
    Processing,
    /// Refused, with the provider's code. Final for this attempt.
    Declined(String),
    /// Money is set aside and waits for a capture.
    Authorized,
    /// Money was taken.
    Captured,
    /// Called off; money set aside has been let go.
    Voided,
}
