//! The show people attend, and the rules of its sale.

use std::sync::Arc;

use crate::id::{EventId, EventNo};
use crate::money::Currency;
use crate::time::Timestamp;

/// An event's row: also the point of order. `epoch` fences old writers, `clock` never runs backwards and `version`
/// numbers every change without gaps.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Event {
    /// Its public id.
    pub id: EventId,
    /// What it is called.
    pub name: String,
    /// What it is paid in.
    pub currency: Currency,
    /// When the doors open.
    pub starts_at: Timestamp,
    /// Before this nobody buys, whatever the status.
    pub on_sale_at: Option<Timestamp>,
    /// From this on nobody buys, whatever the status.
    pub off_sale_at: Option<Timestamp>,
    /// IANA name of the venue's time zone.
    pub timezone: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// Whether it sells.
    pub status: EventStatus,
    /// The rules of its sale, fixed when it was made.
    pub policy: Policy,
    /// Raised when the event changes its writer.
    pub epoch: u64,
    /// High-water mark of the time decisions were made at.
    pub clock: Timestamp,
    /// Version of the last log entry.
    pub version: u64,
    /// Version of the manifest; 0 is none yet.
    pub manifest_version: u32,
    /// Seats in the manifest.
    pub seat_count: u32,
    /// Price levels in the manifest.
    pub price_level_count: u16,
    /// Version of the prices; 0 is none yet.
    pub price_version: u32,
    /// Holds in PAYMENT_PENDING now.
    pub payment_pending: u32,
    /// Standing areas in the manifest.
    pub area_count: u16,
    /// Places of all standing areas that are held or sold now.
    pub ga_in_use: u32,
    /// Allocations made so far.
    pub allocation_count: u16,
}

impl Event {
    /// The event's number.
    pub fn no(&self) -> EventNo {
        self.id.event()
    }
}

/// Whether an event sells.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EventStatus {
    /// Being prepared; the manifest may still change.
    Draft,
    /// Selling, within `on_sale_at` and `off_sale_at`.
    Open,
    /// Halted by the organiser; holds in hand may still be paid.
    Paused,
    /// Over; holds in hand may still be paid.
    Closed,
}

/// The rules of an event's sale.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Policy {
    /// How long a hold lives.
    pub hold_ttl_ms: i64,
    /// The one extension that beginning to pay may give.
    pub payment_grace_ms: i64,
    /// Most seats in one hold.
    pub seats_per_hold_max: u32,
    /// Most tickets, held and sold together, for one account.
    pub tickets_per_account_max: u32,
    /// Most holds of one account in PAYMENT_PENDING.
    pub payment_pending_per_account_max: u32,
    /// Most holds of the event in PAYMENT_PENDING.
    pub payment_pending_max: u32,
    /// Whether a hold needs an admission from the waiting room.
    pub admission: Admission,
    /// How the line is ordered.
    pub queue_order: QueueOrder,
    /// Most people choosing seats at once.
    pub shoppers_max: u32,
    /// What becomes of a hold whose grace ends without an answer.
    pub in_doubt: InDoubt,
    /// Whether a choice may leave single seats behind.
    pub orphan_seats: OrphanSeats,
    /// How money is taken.
    pub payment: PaymentMode,
    /// Most places held and sold in all standing areas together; their own capacities count besides.
    pub ga_max: Option<u32>,
    /// Whether who has left may come in again.
    pub reentry: bool,
}

/// Who may place holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Admission {
    /// Anyone.
    Open,
    /// Whoever the waiting room let in.
    Queue,
}

/// How the line is ordered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum QueueOrder {
    /// By arrival, at a published granularity.
    Fifo,
    /// By a draw anyone can verify.
    Lottery,
}

/// What becomes of a hold whose grace ends without an answer from the provider.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum InDoubt {
    /// Its seats stay bound until there is proof.
    Keep,
    /// Its seats go free at the deadline; a late success is given back.
    Release,
}

/// Whether a choice may leave single seats behind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OrphanSeats {
    /// It may.
    Allow,
    /// Best-available search avoids it.
    Avoid,
}

/// How money is taken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PaymentMode {
    /// Set money aside, confirm the seats, then take it.
    AuthorizeThenCapture,
    /// The provider can only take money at once; a failed confirmation is refunded.
    Charge,
}

/// The prices of one version, by index of the price level; `None` is a level without a price.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct PriceTable(pub Arc<[Option<i64>]>);

impl PriceTable {
    /// The price of a level in minor units.
    pub fn price(&self, level: u16) -> Option<i64> {
        self.0.get(level as usize).copied().flatten()
    }
}
