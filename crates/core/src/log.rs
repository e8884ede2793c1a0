//! What happened, in order: one entry for each change of an event, numbered without gaps. Everything that follows a
//! decision (the seat map, messages, tickets, the audit) learns of it from here and nowhere else.

use crate::event::EventStatus;
use crate::ga::{GaLine, TransferStatus};
use crate::id::{
    AllocationNo, AreaNo, BucketNo, CaseId, EventNo, HoldId, OperationId, OrderId, SeatOrdinal, TicketId,
    TransferId,
};
use crate::payment::{OperationKind, OperationStatus};
use crate::reconcile::CaseKind;
use crate::ticket::{ScanResult, TicketStatus};
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
    reason = "the members say what they are: the things concerned, the seats and places that changed, and which of the seats went \
              back to an allocation"
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
    /// An allocation was made.
    AllocationMade { allocation: AllocationNo, actor: String },
    /// Seats were set aside for a party, or put on sale to all.
    SeatsSetAside { seats: Vec<SeatOrdinal>, allocation: Option<AllocationNo>, actor: String },
    /// An access code was made or changed.
    AccessCodeSet { code: String, actor: String },
    /// A standing area has one bucket more.
    BucketAdded { area: AreaNo, bucket: BucketNo, allocation: Option<AllocationNo>, actor: String },
    /// A standing area takes more people, or fewer: by how many in which bucket.
    CapacitySet { area: AreaNo, capacity: u32, changes: Vec<(BucketNo, i64)>, actor: String },
    /// Capacity left its bucket, arrived, or came back.
    QuotaMoved {
        transfer: TransferId,
        area: AreaNo,
        from: BucketNo,
        to: BucketNo,
        quantity: u32,
        status: TransferStatus,
    },
    /// Seats and places are claimed.
    HoldPlaced { hold: HoldId, seats: Vec<SeatOrdinal>, ga: Vec<GaLine> },
    /// Seats and places were given back.
    HoldReleased {
        hold: HoldId,
        order: Option<OrderId>,
        seats: Vec<SeatOrdinal>,
        set_aside: Vec<SeatOrdinal>,
        ga: Vec<GaLine>,
    },
    /// Seats and places went free by the clock.
    HoldExpired {
        hold: HoldId,
        order: Option<OrderId>,
        seats: Vec<SeatOrdinal>,
        set_aside: Vec<SeatOrdinal>,
        ga: Vec<GaLine>,
    },
    /// A payment was begun.
    CheckoutBegun { hold: HoldId, order: OrderId, operation: OperationId },
    /// The provider's word on an operation changed its status.
    OperationMoved { order: OrderId, operation: OperationId, kind: OperationKind, status: OperationStatus },
    /// Seats and places are sold.
    OrderConfirmed { order: OrderId, hold: HoldId, seats: Vec<SeatOrdinal>, ga: Vec<GaLine> },
    /// A sold order was undone before tickets: its seats and places are free.
    OrderCancelled {
        order: OrderId,
        hold: HoldId,
        seats: Vec<SeatOrdinal>,
        set_aside: Vec<SeatOrdinal>,
        ga: Vec<GaLine>,
    },
    /// A refund was asked for; by whom.
    RefundBegun { order: OrderId, operation: OperationId, actor: String },
    /// The money for some of an order is back, and its seats and places with it.
    OrderReturned {
        order: OrderId,
        operation: OperationId,
        seats: Vec<SeatOrdinal>,
        set_aside: Vec<SeatOrdinal>,
        ga: Vec<GaLine>,
        resell: bool,
    },
    /// An order's tickets were made.
    TicketsIssued { order: OrderId, tickets: Vec<TicketId> },
    /// Tickets of an order were suspended, revoked, made good again, or one of them issued anew.
    TicketsMoved { order: OrderId, tickets: Vec<TicketId>, status: TicketStatus, actor: String },
    /// A ticket was shown at a gate.
    TicketScanned { order: OrderId, ticket: TicketId, gate: String, result: ScanResult },
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
            LogKind::AllocationMade { .. } => "allocation.made",
            LogKind::SeatsSetAside { .. } => "seats.set_aside",
            LogKind::AccessCodeSet { .. } => "access_code.set",
            LogKind::BucketAdded { .. } => "ga.bucket_added",
            LogKind::CapacitySet { .. } => "ga.capacity_set",
            LogKind::QuotaMoved { .. } => "quota.moved",
            LogKind::HoldPlaced { .. } => "hold.placed",
            LogKind::HoldReleased { .. } => "hold.released",
            LogKind::HoldExpired { .. } => "hold.expired",
            LogKind::CheckoutBegun { .. } => "checkout.begun",
            LogKind::OperationMoved { .. } => "operation.moved",
            LogKind::OrderConfirmed { .. } => "order.confirmed",
            LogKind::OrderCancelled { .. } => "order.cancelled",
            LogKind::RefundBegun { .. } => "refund.begun",
            LogKind::OrderReturned { .. } => "order.returned",
            LogKind::TicketsIssued { .. } => "tickets.issued",
            LogKind::TicketsMoved { .. } => "tickets.moved",
            LogKind::TicketScanned { .. } => "ticket.scanned",
            LogKind::CaseOpened { .. } => "case.opened",
            LogKind::CaseActed { .. } => "case.acted",
            LogKind::CaseClosed { .. } => "case.closed",
        }
    }

    /// The seats that changed, each with the digit the public map now shows. A seat set aside is not for sale to all.
    pub fn seat_digits(&self) -> impl Iterator<Item = (SeatOrdinal, u8)> + '_ {
        let (seats, set_aside, digit): (&[SeatOrdinal], &[SeatOrdinal], u8) = match self {
            LogKind::HoldPlaced { seats, .. } => (seats, &[], 1),
            LogKind::HoldReleased { seats, set_aside, .. }
            | LogKind::HoldExpired { seats, set_aside, .. }
            | LogKind::OrderCancelled { seats, set_aside, .. } => (seats, set_aside, 0),
            LogKind::OrderReturned { seats, set_aside, resell, .. } => {
                (seats, set_aside, if *resell { 0 } else { 3 })
            }
            LogKind::OrderConfirmed { seats, .. } => (seats, &[], 2),
            LogKind::SeatsStatusSet { seats, not_for_sale, .. } => {
                (seats, &[], if *not_for_sale { 3 } else { 0 })
            }
            LogKind::SeatsSetAside { seats, allocation, .. } => {
                (seats, &[], if allocation.is_some() { 3 } else { 0 })
            }
            LogKind::EventCreated
            | LogKind::ManifestReplaced { .. }
            | LogKind::PricesSet { .. }
            | LogKind::OnSaleSet { .. }
            | LogKind::AllocationMade { .. }
            | LogKind::AccessCodeSet { .. }
            | LogKind::BucketAdded { .. }
            | LogKind::CapacitySet { .. }
            | LogKind::QuotaMoved { .. }
            | LogKind::CheckoutBegun { .. }
            | LogKind::OperationMoved { .. }
            | LogKind::RefundBegun { .. }
            | LogKind::TicketsIssued { .. }
            | LogKind::TicketsMoved { .. }
            | LogKind::TicketScanned { .. }
            | LogKind::CaseOpened { .. }
            | LogKind::CaseActed { .. }
            | LogKind::CaseClosed { .. } => (&[], &[], 0),
        };
        seats.iter().map(move |seat| (*seat, if set_aside.contains(seat) { 3 } else { digit }))
    }

    /// Whether it changes how many standing places can be had.
    pub fn changes_places(&self) -> bool {
        match self {
            LogKind::HoldPlaced { ga, .. }
            | LogKind::HoldReleased { ga, .. }
            | LogKind::HoldExpired { ga, .. }
            | LogKind::OrderConfirmed { ga, .. }
            | LogKind::OrderCancelled { ga, .. }
            | LogKind::OrderReturned { ga, .. } => !ga.is_empty(),
            LogKind::BucketAdded { .. } | LogKind::CapacitySet { .. } | LogKind::QuotaMoved { .. } => true,
            _ => false,
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
            | LogKind::OrderCancelled { order, .. }
            | LogKind::RefundBegun { order, .. }
            | LogKind::OrderReturned { order, .. }
            | LogKind::TicketsIssued { order, .. }
            | LogKind::TicketsMoved { order, .. }
            | LogKind::TicketScanned { order, .. } => Some(*order),
            LogKind::EventCreated
            | LogKind::ManifestReplaced { .. }
            | LogKind::PricesSet { .. }
            | LogKind::OnSaleSet { .. }
            | LogKind::SeatsStatusSet { .. }
            | LogKind::AllocationMade { .. }
            | LogKind::SeatsSetAside { .. }
            | LogKind::AccessCodeSet { .. }
            | LogKind::BucketAdded { .. }
            | LogKind::CapacitySet { .. }
            | LogKind::QuotaMoved { .. }
            | LogKind::HoldPlaced { .. }
            | LogKind::CaseActed { .. }
            | LogKind::CaseClosed { .. } => None,
        }
    }
}
