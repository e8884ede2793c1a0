//! Tickets and the gate. A ticket is the right of one person to one seat or place; its barcode names it and its
//! generation, so that a ticket issued anew makes the barcode before worthless.

use std::sync::Arc;

use crate::id::{AreaNo, OrderId, SeatOrdinal, TicketId};
use crate::time::Timestamp;

/// A ticket.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Ticket {
    /// Its id, which also names its event.
    pub id: TicketId,
    /// The order it was bought with.
    pub order: OrderId,
    /// What it is for.
    pub place: Place,
    /// Raised when it is issued anew: only the barcode of this generation opens the gate.
    pub generation: u16,
    /// Whether it is good.
    pub status: TicketStatus,
    /// Whether its holder is inside.
    pub inside: bool,
    /// How often its holder was let in.
    pub admissions: u32,
    /// When its holder was first let in.
    pub admitted_at: Option<Timestamp>,
    /// Where.
    pub admitted_gate: Option<String>,
    /// When it was issued.
    pub issued_at: Timestamp,
    /// Version of the log entry that last changed it.
    pub version: u64,
}

/// What a ticket is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Place {
    /// A seat.
    Seat(SeatOrdinal),
    /// A place in a standing area.
    Area(AreaNo),
}

/// Whether a ticket is good.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TicketStatus {
    /// It is.
    Valid,
    /// Not now: its money is on its way back.
    Suspended,
    /// Never again: its money is back.
    Revoked,
}

/// A look at a barcode at the gate, as it was answered.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Scan {
    /// The scanner's own id of it, unique within the event.
    pub id: Arc<str>,
    /// The ticket.
    pub ticket: TicketId,
    /// The generation that the barcode had.
    pub generation: u16,
    /// Which way.
    pub direction: Direction,
    /// Where.
    pub gate: String,
    /// When, by the scanner's clock.
    pub scanned_at: Timestamp,
    /// When it was told to us.
    pub received_at: Timestamp,
    /// What came of it.
    pub result: ScanResult,
    /// Whether a scanner that could not ask had let its holder in by itself.
    pub let_in_offline: bool,
}

impl Scan {
    /// Whether somebody was let in whom the books would not have let in.
    pub fn is_conflict(&self) -> bool {
        self.let_in_offline && self.result != ScanResult::Admit
    }
}

/// Which way through the gate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// In.
    In,
    /// Out.
    Out,
}

/// What the gate is told.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ScanResult {
    /// Let them in.
    Admit,
    /// Somebody has come in with it, and hasn't left.
    AlreadyUsed,
    /// The ticket is good no more, or this barcode of it.
    Revoked,
    /// A ticket for another event.
    WrongEvent,
    /// No ticket of ours.
    Invalid,
    /// They have left.
    Exited,
    /// Who leaves had not come in.
    NotInside,
}
