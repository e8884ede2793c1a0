//! The state of each seat.

use crate::id::{AllocationNo, HoldId, OrderId, SeatOrdinal};
use crate::time::Timestamp;

/// One seat of one event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Seat {
    /// Its place in the manifest.
    pub ordinal: SeatOrdinal,
    /// Whose it is.
    pub status: SeatStatus,
    /// The party it is set aside for: only who names a code that opens the allocation may hold it.
    pub allocation: Option<AllocationNo>,
    /// Index of its price level; never changes after the sale has begun.
    pub price_level: u16,
    /// Version of the log entry that last changed it.
    pub version: u64,
}

/// Whose a seat is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SeatStatus {
    /// Anyone's.
    Available,
    /// Claimed until the deadline, and no longer than its hold lives.
    Held {
        /// By which hold.
        hold: HoldId,
        /// The hold's own deadline.
        expires_at: Timestamp,
    },
    /// Someone's for good.
    Sold {
        /// Through which hold.
        hold: HoldId,
        /// By which order.
        order: OrderId,
    },
    /// Kept from sale by the organiser.
    NotForSale,
}

impl SeatStatus {
    /// The digit that stands for it on the wire: 0 available, 1 held, 2 sold, 3 not for sale.
    pub fn digit(self) -> u8 {
        match self {
            SeatStatus::Available => 0,
            SeatStatus::Held { .. } => 1,
            SeatStatus::Sold { .. } => 2,
            SeatStatus::NotForSale => 3,
        }
    }
}
