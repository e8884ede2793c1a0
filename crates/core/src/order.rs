//! A purchase: `AWAITING_PAYMENT → CONFIRMED`, or `CANCELLED`, or `EXPIRED`.

use crate::ga::GaLine;
use crate::id::{AccountId, HoldId, OperationId, OrderId, SeatOrdinal};
use crate::money::Money;
use crate::payment::PaymentStatus;
use crate::time::Timestamp;

/// The one order of a hold.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Order {
    /// Its id.
    pub id: OrderId,
    /// The hold it pays for.
    pub hold: HoldId,
    /// Who buys.
    pub account: AccountId,
    /// What it costs, recomputed from the locked price version and never taken from the client.
    pub total: Money,
    /// The price version it was computed from.
    pub price_version: u32,
    /// How many tickets it is for: seats and places, less what has been given back.
    pub ticket_count: u32,
    /// Seats of its hold that have been given back since they were sold, ascending.
    pub returned_seats: Vec<SeatOrdinal>,
    /// Places of its hold that have been given back since they were sold, by area and bucket.
    pub returned_ga: Vec<GaLine>,
    /// Whether its tickets have been issued.
    pub ticketed: bool,
    /// Where it stands.
    pub status: OrderStatus,
    /// What is known of its money; always what [`payment_status`](crate::payment::payment_status) says of its
    /// operations.
    pub payment_status: PaymentStatus,
    /// The attempt that paid it.
    pub paid_by: Option<OperationId>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When the seats became the buyer's.
    pub confirmed_at: Option<Timestamp>,
    /// Where to write to.
    pub email: Option<String>,
    /// Where the buyer's browser goes after extra authentication.
    pub return_url: Option<String>,
}

/// Where an order stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OrderStatus {
    /// Seats are held, money isn't there yet.
    AwaitingPayment,
    /// The seats are sold to it.
    Confirmed,
    /// Called off.
    Cancelled,
    /// The hold ran out before it was paid.
    Expired,
}
