//! What a command is refused for. A refusal is a value, not an error; where several apply, the first in this order is
//! given.

use crate::id::{AreaNo, SeatOrdinal};

/// Why a command was decided against.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Refusal {
    /// The same key described another request before.
    KeyReused,
    /// No such thing, or not yours.
    NotFound,
    /// The organiser has halted the sale.
    EventPaused,
    /// The event isn't selling now.
    NotOnSale,
    /// The manifest was replaced since the request was read: read it again.
    ManifestChanged,
    /// The manifest can't be changed any more.
    ManifestFrozen,
    /// The event can't be opened; why.
    NotReady(&'static str),
    /// More seats than a hold may have, or none.
    TooManySeats {
        /// The event's maximum.
        limit: u32,
    },
    /// The account would have more tickets than it may.
    AccountLimit {
        /// The event's maximum.
        limit: u32,
        /// What it has.
        in_use: u32,
    },
    /// Seats that someone else has, or that aren't for sale.
    SeatUnavailable(Vec<SeatOrdinal>),
    /// Not so many places or seats that fit are left.
    NotEnoughAvailable {
        /// The area that has too few; `None` when it is the whole event, or seats that nobody named.
        area: Option<AreaNo>,
    },
    /// The access code can't be used; why.
    AccessCodeInvalid(&'static str),
    /// The access code has too few tickets left.
    AccessCodeExhausted {
        /// How many it has in all.
        limit: u32,
        /// How many of them are held or bought.
        in_use: u32,
    },
    /// The hold is over by the clock.
    HoldExpired,
    /// The hold has been released or used.
    HoldNotActive,
    /// A payment of this hold is still open.
    PaymentPending,
    /// Prices of the hold's seats have changed since it was placed.
    PriceChanged,
    /// Not enough time before the deadline to begin a payment.
    TooLittleTime,
    /// The order has been tried too often.
    AttemptsExhausted,
    /// Too many payments of the event are open at once.
    PaymentsSaturated,
    /// The order can't be refunded so; why.
    NotRefundable(&'static str),
    /// A refund of the order is under way.
    RefundPending,
    /// More than is left of what was taken.
    RefundTooLarge {
        /// What is left, in minor units.
        left_minor: i64,
    },
    /// The case has been closed.
    CaseClosed,
    /// The action doesn't fit the case; why.
    ActionNotPossible(&'static str),
}

impl Refusal {
    /// Whether the refusal is the request's answer for good, to be given again for the same key. What may pass by
    /// itself, or was never a decision about the seats, is not kept.
    pub fn is_kept(&self) -> bool {
        match self {
            Refusal::AccountLimit { .. }
            | Refusal::SeatUnavailable(_)
            | Refusal::NotEnoughAvailable { .. }
            | Refusal::AccessCodeExhausted { .. }
            | Refusal::HoldExpired
            | Refusal::HoldNotActive
            | Refusal::PaymentPending
            | Refusal::PriceChanged
            | Refusal::TooLittleTime
            | Refusal::AttemptsExhausted => true,
            Refusal::KeyReused
            | Refusal::NotFound
            | Refusal::EventPaused
            | Refusal::NotOnSale
            | Refusal::ManifestChanged
            | Refusal::ManifestFrozen
            | Refusal::NotReady(_)
            | Refusal::TooManySeats { .. }
            | Refusal::PaymentsSaturated
            | Refusal::AccessCodeInvalid(_)
            | Refusal::NotRefundable(_)
            | Refusal::RefundPending
            | Refusal::RefundTooLarge { .. }
            | Refusal::CaseClosed
            | Refusal::ActionNotPossible(_) => false,
        }
    }
}
