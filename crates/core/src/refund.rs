//! Giving money back for a sold order, and what the buyer gives back with it.
//!
//! The provider comes first: seats and places are the buyer's until the provider proves that the money is back. Then they
//! are for sale again, or for nobody. A seat that is resold is a new sale with its own hold, order and keys.

use crate::ga::GaLine;
use crate::id::{AreaNo, OperationId, OrderId, SeatOrdinal};
use crate::time::Timestamp;

/// What a REFUND operation gives back.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Refund {
    /// The operation.
    pub operation: OperationId,
    /// The order.
    pub order: OrderId,
    /// Why, in the operator's words.
    pub reason: String,
    /// Whether what is given back is for sale again.
    pub resell: bool,
    /// Seats given back, ascending.
    pub seats: Vec<SeatOrdinal>,
    /// Places given back.
    pub ga: Vec<GaLine>,
    /// By whom: a key's id.
    pub actor: String,
    /// When it was asked for.
    pub created_at: Timestamp,
}

/// Which part of an order is to be refunded.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum RefundPart {
    /// All that has not been refunded yet, money and seats.
    Rest,
    /// Some seats, and places by area, with what they cost.
    Places {
        /// Which seats, ascending, each once.
        seats: Vec<SeatOrdinal>,
        /// How many places of which areas.
        ga: Vec<(AreaNo, u32)>,
    },
    /// Money alone, in minor units; the buyer keeps seats and places.
    Amount(i64),
}
