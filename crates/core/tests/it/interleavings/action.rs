//! What is searched, and what may happen in it: buyers, workers, an operator, the provider and the clock.

use onsale_core::id::{CaseId, HoldId, OperationId};
use onsale_core::reconcile::CaseAction;

use super::provider::{Done, Heard, Standing};

/// The two buyers, by their number.
pub(super) const BUYERS: [&str; 2] = ["ada", "ben"];

/// What is sold, to whom, and how much may happen.
pub(super) struct Sale {
    /// The hall, in the words of a page.
    pub(super) hall: &'static str,
    /// What each buyer may choose: sets of seats.
    pub(super) choices: [&'static [&'static [u32]]; 2],
    /// How many standing places go with each of them.
    pub(super) places: [&'static [u32]; 2],
    /// What an attempt may come to when it is sent, beside the success that all may have.
    pub(super) outcomes: &'static [Standing],
    /// How much may happen.
    pub(super) limits: Left,
}

/// Something that goes wrong, or that is seldom.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Fault {
    /// What was read of an object is kept only later.
    Delayed,
    /// A request or its answer never arrives.
    Lost,
    /// A callback comes twice.
    Repeated,
    /// The provider refuses for good what it could do.
    Refused,
    /// A decline succeeds after all; an authorization lapses, or is taken by someone at the provider.
    Surprise,
    /// An operator acts on a case.
    Act,
}

/// How many kinds of faults there are.
pub(super) const FAULTS: usize = 6;

/// How much may still happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Left {
    /// Holds that may be placed.
    pub(super) holds: u8,
    /// Attempts to pay that may be begun.
    pub(super) attempts: u8,
    /// Refunds that may be asked for.
    pub(super) refunds: u8,
    /// Faults of all kinds together.
    pub(super) faults: u8,
    /// Faults of each kind.
    pub(super) of: [u8; FAULTS],
}

/// What is under way and may arrive at any later time, or never.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Message {
    /// A request to the provider that may be sent: the core has said so.
    Call(OperationId),
    /// The name of an attempt's object, which has just been made.
    Name(OperationId),
    /// What came of asking about an operation.
    Answer(OperationId, Heard),
    /// A callback, by its number, with what was read back about an attempt.
    Callback(u64, OperationId, Standing),
    /// A callback that has been judged and comes again.
    Again(u64, OperationId),
}

/// What of an order is refunded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    /// All that is left.
    Rest,
    /// Its seats, and not its places.
    Seats,
}

/// How what the provider has to say reaches us.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reply {
    /// At once.
    Kept,
    /// Later than other things.
    Delayed,
    /// Never; for a callback: twice.
    Odd,
}

/// Something that somebody does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Action {
    /// The clock moves on to the next instant.
    Tick,
    /// A buyer claims the seats of a choice.
    Hold(usize, usize),
    /// A buyer gives them back.
    Release(HoldId),
    /// A buyer pays.
    Pay(HoldId),
    /// An operator acts on a case.
    Act(CaseId, CaseAction),
    /// An operator refunds what was sold through a hold.
    Refund(HoldId, Part),
    /// A worker ends a hold whose time has come.
    Expire(HoldId),
    /// A worker makes an attempt's object and keeps its name.
    Begin(OperationId, Reply),
    /// A worker takes up a request, which is then under way.
    Take(OperationId),
    /// A request reaches the provider, and its reply us.
    Reach(OperationId, Done, Reply),
    /// A request never reaches the provider.
    Lose(OperationId),
    /// A worker asks about an operation.
    Ask(OperationId, Reply),
    /// A callback about an attempt comes, and what it is about is read back.
    Notify(OperationId, Reply),
    /// Something happens to an attempt's object by itself.
    Stir(OperationId, Standing),
    /// What is under way arrives.
    Deliver(Message),
}
