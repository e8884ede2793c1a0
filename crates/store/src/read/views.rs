//! What a look brings.

use onsale_core::ga::Bucket;
use onsale_core::hold::Hold;
use onsale_core::id::{AreaNo, EventNo, SeatOrdinal, TicketId};
use onsale_core::log::LogKind;
use onsale_core::manifest::Manifest;
use onsale_core::order::{Order, OrderStatus};
use onsale_core::payment::Operation;
use onsale_core::reconcile::{Callback, Case};
use onsale_core::ticket::{Place, Scan, TicketStatus};
use onsale_core::time::Timestamp;

/// Where an event is at home.
#[derive(Clone, Debug)]
pub struct DirectoryLine {
    /// Which.
    pub event: EventNo,
    /// The name of its home.
    pub home: String,
    /// Whether it is on its way to another.
    pub is_moving: bool,
}

/// A manifest with its version and the prices of now, by level.
#[derive(Clone, Debug)]
pub struct ManifestView {
    /// The event's number of it.
    pub version: u32,
    /// The seats as printed.
    pub manifest: Manifest,
    /// Version of the prices.
    pub price_version: u32,
    /// Price of each level in minor units.
    pub prices: Vec<Option<i64>>,
}

/// A digit for each seat, by ordinal.
#[derive(Clone, Debug)]
pub struct SeatDigits {
    /// The event's version they show.
    pub version: u64,
    /// The event's epoch.
    pub epoch: u64,
    /// The manifest they belong to.
    pub manifest_version: u32,
    /// `b'0'` available, `b'1'` held, `b'2'` sold, `b'3'` not for sale.
    pub digits: Vec<u8>,
    /// The buckets of the standing areas.
    pub buckets: Vec<Bucket>,
}

/// What changed on the seat map after some version.
#[derive(Clone, Debug)]
pub struct SeatChanges {
    /// The event's version up to which they go.
    pub version: u64,
    /// Version, ordinal and new digit (as a number) of each change, in order.
    pub changes: Vec<(u64, SeatOrdinal, u8)>,
    /// What happened to standing places, in order.
    pub places: Vec<(u64, LogKind)>,
    /// Whether the seats were laid out anew in between, so that nothing before counts.
    pub replaced: bool,
}

/// A hold with what its seats cost.
#[derive(Clone, Debug)]
pub struct HoldView {
    /// The hold.
    pub hold: Hold,
    /// Ordinal, index of the price level, price in minor units.
    pub seats: Vec<(SeatOrdinal, u16, i64)>,
    /// Area, how many places, index of the price level, price of each in minor units.
    pub ga: Vec<(AreaNo, u32, u16, i64)>,
}

/// An order as its buyer sees it.
#[derive(Clone, Debug)]
pub struct OrderView {
    /// The order.
    pub order: Order,
    /// Ordinal, index of the price level, price in minor units.
    pub seats: Vec<(SeatOrdinal, u16, i64)>,
    /// Area, how many places, index of the price level, price of each in minor units.
    pub ga: Vec<(AreaNo, u32, u16, i64)>,
    /// How much has been given back, by proof, in minor units.
    pub refunded_minor: i64,
    /// Where the buyer proves who they are, when that is what is missing.
    pub next_action_url: Option<String>,
}

/// An operation that a worker should look at.
#[derive(Clone, Debug)]
pub struct OperationView {
    /// The operation.
    pub operation: Operation,
    /// Where its order stands.
    pub order_status: OrderStatus,
    /// Where the buyer's browser goes after extra authentication.
    pub return_url: Option<String>,
    /// Whether the provider takes the money at once.
    pub charge: bool,
}

/// A scan by which somebody was let in against the books, and what the books have of its ticket.
#[derive(Clone, Debug)]
pub struct GateConflict {
    /// The scan.
    pub scan: Scan,
    /// What the ticket is for, if it is in the books.
    pub place: Option<Place>,
    /// When its holder was first let in.
    pub admitted_at: Option<Timestamp>,
    /// Where.
    pub admitted_gate: Option<String>,
}

/// Tickets that a scanner must not trust blindly.
#[derive(Clone, Debug)]
pub struct RevokedTickets {
    /// The event's version they show.
    pub version: u64,
    /// The version after which these have changed; `None` when these are all.
    pub since: Option<u64>,
    /// Each with its generation and status.
    pub tickets: Vec<(TicketId, u16, TicketStatus)>,
}

/// A parked callback whose time has come.
pub type CallbackDue = Callback;

/// A case as stored.
pub type CaseView = Case;

/// Counts and money of an event.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "counts by the names of their states; amounts in minor units")]
pub struct EventReport {
    pub available: u64,
    pub held: u64,
    pub sold: u64,
    pub not_for_sale: u64,
    pub orders_awaiting_payment: u64,
    pub orders_confirmed: u64,
    pub orders_cancelled: u64,
    pub orders_expired: u64,
    pub gross_minor: i64,
    pub captured_minor: i64,
    pub returning_minor: i64,
    pub refunded_minor: i64,
    pub ga_capacity: u64,
    pub ga_held: u64,
    pub ga_sold: u64,
    pub tickets_issued: u64,
    pub tickets_admitted: u64,
    pub cases_open: u64,
}
