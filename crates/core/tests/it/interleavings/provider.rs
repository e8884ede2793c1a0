//! What the provider has of an attempt, and what a request does to it.

use onsale_core::gateway::IntentState;
use onsale_core::payment::OperationKind;

/// Where an object stands at the provider.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Standing {
    Unconfirmed,
    RequiresAction,
    Processing,
    Declined,
    Authorized,
    Captured,
    Voided,
    Refunded,
    /// Half of what was taken.
    HalfRefunded,
}

impl Standing {
    /// In the core's words.
    pub(super) fn state(self) -> IntentState {
        match self {
            Standing::Unconfirmed => IntentState::Unconfirmed,
            Standing::RequiresAction => IntentState::RequiresAction(None),
            Standing::Processing => IntentState::Processing,
            Standing::Declined => IntentState::Declined("card_declined".to_owned()),
            Standing::Authorized => IntentState::Authorized,
            Standing::Captured | Standing::Refunded | Standing::HalfRefunded => IntentState::Captured,
            Standing::Voided => IntentState::Voided,
        }
    }

    /// How much of what was taken has been given back.
    pub(super) fn back_minor(self, taken_minor: i64) -> i64 {
        match self {
            Standing::Refunded => taken_minor,
            Standing::HalfRefunded => taken_minor / 2,
            _ => 0,
        }
    }

    /// Whether the buyer's money, or some of it, is set aside or taken.
    pub(super) fn has_money(self) -> bool {
        matches!(self, Standing::Authorized | Standing::Captured | Standing::HalfRefunded)
    }

    /// Whether a request of a kind would do something to it.
    pub(super) fn moves(self, kind: OperationKind) -> bool {
        let mut object = self;
        reach(&mut object, kind, Done::Asked, Standing::Authorized);
        object != self
    }

    /// In the words of a page.
    pub(super) fn word(self) -> &'static str {
        match self {
            Standing::Unconfirmed => "unconfirmed",
            Standing::RequiresAction => "requires_action",
            Standing::Processing => "processing",
            Standing::Declined => "declined",
            Standing::Authorized => "authorized",
            Standing::Captured => "captured",
            Standing::Voided => "voided",
            Standing::Refunded => "captured refunded 2000",
            Standing::HalfRefunded => "captured refunded 1000",
        }
    }
}

/// What was heard of an operation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Heard {
    /// Where its attempt's object stood.
    Seen(Standing),
    /// A definite no.
    Refused,
    /// Nothing.
    Silence,
}

/// What the provider makes of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Done {
    /// What it was asked to do.
    Asked,
    /// An object that is confirmed comes to this instead.
    Becomes(Standing),
    /// Nothing, for good.
    Refused,
}

/// A request reaches an object; what the provider says. A request repeated under its key changes nothing, and
/// one that comes too late is answered with what the object has become, as the worker reads it back (`paid`
/// is what a confirmed object comes to).
pub(super) fn reach(object: &mut Standing, kind: OperationKind, done: Done, paid: Standing) -> Heard {
    let next = match (kind, *object) {
        (OperationKind::Authorize, Standing::Unconfirmed) => match done {
            Done::Becomes(standing) => standing,
            Done::Asked | Done::Refused => paid,
        },
        // It has been called off: it can't be confirmed any more.
        (OperationKind::Authorize, Standing::Voided) => return Heard::Refused,
        (OperationKind::Capture, Standing::Authorized) => Standing::Captured,
        (OperationKind::Refund, Standing::Captured | Standing::HalfRefunded) => Standing::Refunded,
        // What it works on can't be called off.
        (OperationKind::Void, Standing::Processing) => return Heard::Refused,
        (
            OperationKind::Void,
            Standing::Unconfirmed | Standing::RequiresAction | Standing::Declined | Standing::Authorized,
        ) => Standing::Voided,
        (_, standing) => standing,
    };
    *object = next;
    Heard::Seen(next)
}
