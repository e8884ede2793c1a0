//! What happened, in order: one entry for each change of an event, numbered without gaps. Everything that follows a
//! decision (the seat map, messages, tickets, the audit) learns of it from here and nowhere else.

use crate::event::EventStatus;
use crate::id::{CaseId, EventNo, HoldId, OperationId, OrderId, SeatOrdinal};
use crate::payment::{OperationKind, OperationStatus};
use crate::reconcile::CaseKind;
use crate::time::Timestamp;

/// One change of an event.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LogEntry {
    /// Of which event.
    pub event: EventNo,
    /// Its number, one more than the entry before.
    pub version: u64,
    /// When it was decided.
    pub at: Timestamp,
    /// What happened.
    pub kind: LogKind,
}

/// What happened.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[allow(
    missing_docs,
    reason = "the members say what they are: the things concerned, and the seats that changed"
)]
pub enum LogKind {
    /// The event was made.
    EventCreated,
    /// Its seats were laid out anew: every seat changed.
    ManifestReplaced { manifest_version: u32 },
    /// New prices hold for new holds.
    PricesSet { price_version: u32 },
    /// The sale was opened, halted or closed; by whom.
    OnSaleSet { status: EventStatus, actor: String },
    /// Seats were kept from sale or put on sale.
    SeatsStatusSet { seats: Vec<SeatOrdinal>, not_for_sale: bool, actor: String },
    /// Seats are claimed.
    HoldPlaced { hold: HoldId, seats: Vec<SeatOrdinal> },
    /// Seats were given back.
    HoldReleased { hold: HoldId, order: Option<OrderId>, seats: Vec<SeatOrdinal> },
    /// Seats went free by the clock.
    HoldExpired { hold: HoldId, order: Option<OrderId>, seats: Vec<SeatOrdinal> },
    /// A payment was begun.
    CheckoutBegun { hold: HoldId, order: OrderId, operation: OperationId },
    /// The provider's word on an operation changed its status.
    OperationMoved { order: OrderId, operation: OperationId, kind: OperationKind, status: OperationStatus },
    /// Seats are sold.
    OrderConfirmed { order: OrderId, hold: HoldId, seats: Vec<SeatOrdinal> },
    /// A sold order was undone before tickets: its seats are free.
    OrderCancelled { order: OrderId, hold: HoldId, seats: Vec<SeatOrdinal> },
    /// A question about money arose.
    CaseOpened { case: CaseId, kind: CaseKind, order: Option<OrderId> },
    /// It was acted upon.
    CaseActed { case: CaseId, action: String, actor: String },
    /// It was settled.
    CaseClosed { case: CaseId },
}

impl LogKind {
    /// Its name in the database and on the wire.
    pub fn as_str(&self) -> &'static str {
        match self {
            LogKind::EventCreated => "event.created",
            LogKind::ManifestReplaced { .. } => "manifest.replaced",
            LogKind::PricesSet { .. } => "prices.set",
            LogKind::OnSaleSet { .. } => "on_sale.set",
            LogKind::SeatsStatusSet { .. } => "seats.status_set",
            LogKind::HoldPlaced { .. } => "hold.placed",
            LogKind::HoldReleased { .. } => "hold.released",
            LogKind::HoldExpired { .. } => "hold.expired",
            LogKind::CheckoutBegun { .. } => "checkout.begun",
            LogKind::OperationMoved { .. } => "operation.moved",
            LogKind::OrderConfirmed { .. } => "order.confirmed",
            LogKind::OrderCancelled { .. } => "order.cancelled",
            LogKind::CaseOpened { .. } => "case.opened",
            LogKind::CaseActed { .. } => "case.acted",
            LogKind::CaseClosed { .. } => "case.closed",
        }
    }

    /// The seats that changed, and the digit they now show; none for entries that change no seat.
    pub fn seats(&self) -> Option<(&[SeatOrdinal], u8)> {
        match self {
            LogKind::HoldPlaced { seats, .. } => Some((seats, 1)),
            LogKind::HoldReleased { seats, .. }
            | LogKind::HoldExpired { seats, .. }
            | LogKind::OrderCancelled { seats, .. } => Some((seats, 0)),
            LogKind::OrderConfirmed { seats, .. } => Some((seats, 2)),
            LogKind::SeatsStatusSet { seats, not_for_sale, .. } => {
                Some((seats, if *not_for_sale { 3 } else { 0 }))
            }
            LogKind::EventCreated
            | LogKind::ManifestReplaced { .. }
            | LogKind::PricesSet { .. }
            | LogKind::OnSaleSet { .. }
            | LogKind::CheckoutBegun { .. }
            | LogKind::OperationMoved { .. }
            | LogKind::CaseOpened { .. }
            | LogKind::CaseActed { .. }
            | LogKind::CaseClosed { .. } => None,
        }
    }

    /// The order concerned, for those who wait on it.
    pub fn order(&self) -> Option<OrderId> {
        match self {
            LogKind::HoldReleased { order, .. } | LogKind::HoldExpired { order, .. } => *order,
            LogKind::CaseOpened { order, .. } => *order,
            LogKind::CheckoutBegun { order, .. }
            | LogKind::OperationMoved { order, .. }
            | LogKind::OrderConfirmed { order, .. }
            | LogKind::OrderCancelled { order, .. } => Some(*order),
            LogKind::EventCreated
            | LogKind::ManifestReplaced { .. }
            | LogKind::PricesSet { .. }
            | LogKind::OnSaleSet { .. }
            | LogKind::SeatsStatusSet { .. }
            | LogKind::HoldPlaced { .. }
            | LogKind::CaseActed { .. }
            | LogKind::CaseClosed { .. } => None,
        }
    }
}
