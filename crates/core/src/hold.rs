//! A timed claim on seats, all or none.
//!
//! `ACTIVE → PAYMENT_PENDING → CONVERTED`, or `RELEASED`, or `EXPIRED`. PAYMENT_PENDING is entered at most once in a
//! hold's life, and with it comes the one extension; a decline leads back to ACTIVE with the first deadline.

use std::sync::Arc;

use crate::event::{InDoubt, Policy};
use crate::ga::{GaLine, places};
use crate::id::{AccountId, EventNo, HoldId, OrderId, SeatOrdinal};
use crate::time::Timestamp;

/// A claim of one account on 1 to 50 seats and places of one event. Its id is never used again.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Hold {
    /// Its id.
    pub id: HoldId,
    /// Whose it is.
    pub account: AccountId,
    /// Where it stands.
    pub status: HoldStatus,
    /// The deadline now; at the instant itself it is over.
    pub expires_at: Timestamp,
    /// The deadline it was born with, to which a decline returns.
    pub first_expires_at: Timestamp,
    /// When it was placed.
    pub created_at: Timestamp,
    /// Its seats, ascending.
    pub seats: Vec<SeatOrdinal>,
    /// Its places in standing areas, by area and bucket.
    pub ga: Vec<GaLine>,
    /// The access code it was placed with.
    pub code: Option<Arc<str>>,
    /// Prices it was promised.
    pub price_version: u32,
    /// Sum of them, in minor units.
    pub total_minor: i64,
    /// Its one order, once there is one.
    pub order: Option<OrderId>,
    /// Whether PAYMENT_PENDING has been used up.
    pub grace_used: bool,
    /// Whether its deadline has passed without an answer to its payment, so that only proof can end it.
    pub in_doubt: bool,
}

/// Where a hold stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum HoldStatus {
    /// The seats are the buyer's until the deadline.
    Active,
    /// A payment has begun; the deadline alone doesn't end it unless the event's policy says so.
    PaymentPending,
    /// The seats were sold through it.
    Converted,
    /// Given back by the buyer or an operator.
    Released,
    /// Over by the clock.
    Expired,
}

impl HoldStatus {
    /// Whether it still binds seats.
    pub fn is_live(self) -> bool {
        match self {
            HoldStatus::Active | HoldStatus::PaymentPending => true,
            HoldStatus::Converted | HoldStatus::Released | HoldStatus::Expired => false,
        }
    }
}

impl Hold {
    /// The event it belongs to.
    pub fn event(&self) -> EventNo {
        self.id.event()
    }

    /// How many people it is for: its seats and its places.
    pub fn tickets(&self) -> u32 {
        self.seats.len() as u32 + places(&self.ga)
    }

    /// Whether its time has come: `expires_at <= now`.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.expires_at <= now && !(planted!(ExpiryAfterDeadline) && self.expires_at == now)
    }

    /// Whether its seats are still bound to it, so that a success may complete it and nobody else may have them.
    pub fn binds(&self, policy: &Policy, now: Timestamp) -> bool {
        match self.status {
            HoldStatus::Active => !self.is_due(now),
            HoldStatus::PaymentPending => match policy.in_doubt {
                InDoubt::Keep => true,
                InDoubt::Release => !self.is_due(now),
            },
            HoldStatus::Converted | HoldStatus::Released | HoldStatus::Expired => false,
        }
    }
}
