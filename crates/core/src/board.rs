//! The state of every seat of an event at one version, to choose from.
//!
//! A store keeps boards between batches and lets them follow the log. A choice is made on a board only when its version
//! is that of the event's row, and the rows that are then written still say what they were: a wrong board can cost a
//! batch, never a seat.

use std::sync::Arc;

use crate::id::SeatOrdinal;
use crate::layout::{Kept, Layout, Place, Row};
use crate::log::{LogEntry, LogKind};
use crate::seat_map::{Seat, SeatStatus};

/// Stands for no allocation: half the memory of an `Option`.
const PUBLIC: u16 = u16::MAX;

/// The digit of an available seat.
const AVAILABLE: u8 = 0;

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

/// The log goes on where the board can't follow: it must be read anew.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gap;

impl Board {
    /// The board of an event at `version`, from the digit, the allocation and the version of each seat by ordinal.
    /// `None` when they are not the layout's seats.
    pub fn new(
        layout: Arc<Layout>,
        version: u64,
        seats: impl IntoIterator<Item = (u8, Option<u16>, u64)>,
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
            board.allocations.push(allocation.unwrap_or(PUBLIC));
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
        if entry.version != self.version + 1 || matches!(entry.kind, LogKind::ManifestReplaced { .. }) {
            return Err(Gap);
        }
        if let Some((seats, digit)) = entry.kind.seats() {
            if seats.iter().any(|seat| seat.0 as usize >= self.digits.len()) {
                return Err(Gap);
            }
            for seat in seats {
                self.set(seat.0, digit, entry.version);
            }
        }
        self.version = entry.version;
        Ok(())
    }

    fn set(&mut self, seat: u32, digit: u8, version: u64) {
        self.count(seat, |open| open - 1);
        self.digits[seat as usize] = digit;
        self.versions[seat as usize] = version;
        self.count(seat, |open| open + 1);
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
            price_level: place.price_level,
            version: self.versions[at],
        })
    }

    /// Whether a seat is available to those whom an allocation is for; without one, to anyone.
    pub fn is_open(&self, seat: u32, allocation: Option<u16>) -> bool {
        let at = seat as usize;
        self.digits[at] == AVAILABLE && self.allocations[at] == allocation.unwrap_or(PUBLIC)
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
