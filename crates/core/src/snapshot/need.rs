//! What a decision needs to see.

use std::sync::Arc;

use crate::hold::Hold;
use crate::id::{
    AccountId, AreaNo, CaseId, EventNo, HoldId, OperationId, OrderId, SeatOrdinal, TicketId, TransferId,
};

/// A row or a set of rows that a decision needs. The order is the order in which a store locks and reads.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Need {
    /// An event's row.
    Event(EventNo),
    /// The prices of one version.
    Prices(EventNo, u32),
    /// A finished request, by its key's id.
    Key(EventNo, u128),
    /// A callback, by the provider's event id.
    Callback(Arc<str>),
    /// A case.
    Case(CaseId),
    /// The attempt with this name at the provider.
    Reference(Arc<str>),
    /// An operation.
    Operation(OperationId),
    /// An order with its operations and its open cases.
    Order(OrderId),
    /// A hold, and all that hangs on it.
    Hold(HoldId),
    /// An account's live holds and its count of tickets sold, in one event.
    Account(EventNo, AccountId),
    /// One seat.
    Seat(EventNo, SeatOrdinal),
    /// A standing area with its buckets.
    Area(EventNo, AreaNo),
    /// Live holds of an event whose time has come, the longest due first, those in payment last; at most
    /// [`DUE_HOLDS_MAX`](crate::limits::DUE_HOLDS_MAX) of each kind, so that none is hidden behind those of another kind.
    Due(EventNo, DueWith),
    /// The state of every seat of an event, where it has any.
    Board(EventNo),
    /// Capacity on its way.
    Transfer(TransferId),
    /// An access code.
    Code(EventNo, Arc<str>),
    /// All allocations of an event.
    Allocations(EventNo),
    /// What the refunds of an order give back.
    Refunds(OrderId),
    /// The tickets of an order.
    Tickets(OrderId),
    /// A ticket.
    Ticket(TicketId),
    /// A scan, by its id.
    Scan(EventNo, Arc<str>),
}

/// What a hold that is due has, to be in somebody's way.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DueWith {
    /// Seats.
    Seats,
    /// Places of any standing area: they count under the event's cap.
    Places,
    /// Places of this area.
    Area(AreaNo),
    /// Tickets counted with this access code.
    Code(Arc<str>),
}

impl DueWith {
    /// Whether a hold is of this kind.
    pub fn has(&self, hold: &Hold) -> bool {
        match self {
            DueWith::Seats => !hold.seats.is_empty(),
            DueWith::Places => !hold.ga.is_empty(),
            DueWith::Area(area) => hold.ga.iter().any(|line| line.area == *area),
            DueWith::Code(code) => hold.code.as_ref() == Some(code),
        }
    }
}
