//! The state of every seat of an event at one version, to choose from.
//!
//! A store keeps boards between batches and lets them follow the log. A choice is made on a board only when its version
//! is that of the event's row, and the rows that are then written still say what they were: a wrong board can cost a
//! batch, never a seat.

use std::sync::Arc;

use crate::id::{AllocationNo, SeatOrdinal};
use crate::layout::{Kept, Layout, Place, Row};
use crate::log::{LogEntry, LogKind};
use crate::seat_map::{Seat, SeatStatus};

/// Stands for no allocation, since they are numbered from 1.
const ANYONES: u16 = 0;

/// Digits as in [`SeatStatus::digit`].
const AVAILABLE: u8 = 0;
const HELD: u8 = 1;
const SOLD: u8 = 2;
const NOT_FOR_SALE: u8 = 3;

/// The state of every seat. See the module's text.
#[derive(Clone, PartialEq, Debug)]
pub struct Board {
    version: u64,
    layout: Arc<Layout>,
    digits: Vec<u8>,
    allocations: Vec<u16>,
    versions: Vec<u64>,
    /// For each row, its seats that anyone may have: full rows are passed over.
    open_in_row: Vec<u32>,
    /// For each price level, its seats that anyone may have.
    open_at_level: Vec<u32>,
}

/// What becomes of the allocation of a seat that changes.
#[derive(Clone, Copy)]
enum Party {
    Stays,
    Is(u16),
}

/// The log goes on where the board can't follow: it must be read anew.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gap;

impl Board {
    /// The board of an event at `version`, from the digit, the allocation and the version of each seat by ordinal.
    /// `None` when they are not the layout's seats.
    pub fn new(
        layout: Arc<Layout>,
        version: u64,
        seats: impl IntoIterator<Item = (u8, Option<AllocationNo>, u64)>,
    ) -> Option<Board> {
        let seat_count = layout.seat_count();
        let mut board = Board {
            version,
            digits: Vec::with_capacity(seat_count),
            allocations: Vec::with_capacity(seat_count),
            versions: Vec::with_capacity(seat_count),
            open_in_row: vec![0; layout.rows().len()],
            open_at_level: vec![0; layout.price_level_count()],
            layout,
        };
        for (digit, allocation, changed_at) in seats {
            board.digits.push(digit);
            board.allocations.push(allocation.map_or(ANYONES, |allocation| allocation.0));
            board.versions.push(changed_at);
        }
        if board.digits.len() != seat_count {
            return None;
        }
        (0..seat_count as u32).for_each(|seat| board.count(seat, |open| open + 1));
        Some(board)
    }

    /// The version of the event that it shows.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Its seats in rows.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// Takes in the entry that follows. One that it has already is passed over.
    pub fn follow(&mut self, entry: &LogEntry) -> Result<(), Gap> {
        if entry.version <= self.version {
            return Ok(());
        }
        if entry.version != self.version + 1 {
            return Err(Gap);
        }
        let (seats, digit, allocation) = match &entry.kind {
            LogKind::ManifestReplaced { .. } => return Err(Gap),
            LogKind::HoldPlaced { seats, .. } => (seats, HELD, Party::Stays),
            LogKind::HoldReleased { seats, .. }
            | LogKind::HoldExpired { seats, .. }
            | LogKind::OrderCancelled { seats, .. }
            | LogKind::OrderReturned { seats, resell: true, .. } => (seats, AVAILABLE, Party::Stays),
            LogKind::OrderConfirmed { seats, .. } => (seats, SOLD, Party::Stays),
            // What is kept from sale is kept from everyone, and comes back as everyone's.
            LogKind::OrderReturned { seats, resell: false, .. }
            | LogKind::SeatsStatusSet { seats, not_for_sale: true, .. } => {
                (seats, NOT_FOR_SALE, Party::Is(ANYONES))
            }
            LogKind::SeatsStatusSet { seats, not_for_sale: false, .. } => {
                (seats, AVAILABLE, Party::Is(ANYONES))
            }
            LogKind::SeatsSetAside { seats, allocation, .. } => {
                (seats, AVAILABLE, Party::Is(allocation.map_or(ANYONES, |allocation| allocation.0)))
            }
            LogKind::EventCreated
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
            | LogKind::CaseClosed { .. } => (&Vec::new(), AVAILABLE, Party::Stays),
        };
        if seats.iter().any(|seat| seat.0 as usize >= self.digits.len()) {
            return Err(Gap);
        }
        for seat in seats {
            self.set(seat.0, digit, allocation, entry.version);
        }
        self.version = entry.version;
        Ok(())
    }

    fn set(&mut self, seat: u32, digit: u8, party: Party, version: u64) {
        self.count(seat, |open| open - 1);
        self.digits[seat as usize] = digit;
        if let Party::Is(allocation) = party {
            self.allocations[seat as usize] = allocation;
        }
        self.versions[seat as usize] = version;
        self.count(seat, |open| open + 1);
    }

    /// Looks at the board as if some seats were available. What is seen is what will be once the holds that have them are
    /// ended.
    pub(crate) fn as_if_free<R>(
        &mut self,
        seats: impl IntoIterator<Item = SeatOrdinal>,
        look: impl FnOnce(&Board) -> R,
    ) -> R {
        let mut were = Vec::new();
        for SeatOrdinal(seat) in seats {
            let (digit, version) = (self.digits[seat as usize], self.versions[seat as usize]);
            were.push((seat, digit, version));
            self.set(seat, AVAILABLE, Party::Stays, version);
        }
        let seen = look(self);
        for (seat, digit, version) in were.into_iter().rev() {
            self.set(seat, digit, Party::Stays, version);
        }
        seen
    }

    /// Changes the counts that a seat is in.
    fn count(&mut self, seat: u32, change: fn(u32) -> u32) {
        let Place { row, price_level, kept, .. } = *self.layout.at(seat);
        if self.is_open(seat, None) && kept == Kept::ForAnyone {
            let in_row = &mut self.open_in_row[row as usize];
            *in_row = change(*in_row);
            let at_level = &mut self.open_at_level[usize::from(price_level)];
            *at_level = change(*at_level);
        }
    }

    /// The row of a seat that is available, as it is stored; `None` for any other seat, whose row says more than a board.
    pub fn seat(&self, ordinal: SeatOrdinal) -> Option<Seat> {
        let at = ordinal.0 as usize;
        let place = self.layout.place(ordinal)?;
        (self.digits[at] == AVAILABLE).then_some(Seat {
            ordinal,
            status: SeatStatus::Available,
            allocation: Some(AllocationNo(self.allocations[at])).filter(|allocation| allocation.0 != ANYONES),
            price_level: place.price_level,
            version: self.versions[at],
        })
    }

    /// Whether a seat is available to those whom an allocation is for; without one, to anyone.
    pub fn is_open(&self, seat: u32, allocation: Option<AllocationNo>) -> bool {
        let at = seat as usize;
        self.digits[at] == AVAILABLE
            && self.allocations[at] == allocation.map_or(ANYONES, |allocation| allocation.0)
    }

    /// How many seats of a row anyone may have; those kept for wheelchairs and companions are not among them.
    pub(crate) fn open_in(&self, row: &Row) -> u32 {
        self.open_in_row[self.layout.at(row.first).row as usize]
    }

    /// How many seats of a price level anyone may have; without a level, of all levels.
    pub(crate) fn open_at(&self, level: Option<u16>) -> u32 {
        match level {
            Some(level) => self.open_at_level.get(usize::from(level)).copied().unwrap_or(0),
            None => self.open_at_level.iter().sum(),
        }
    }
}
