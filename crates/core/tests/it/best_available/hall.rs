//! Small halls, drawn as text or made by chance, and the boards that show them.

use std::sync::Arc;

use onsale_core::best_available::{Best, choose};
use onsale_core::board::Board;
use onsale_core::event::OrphanSeats;
use onsale_core::id::{AllocationNo, SeatOrdinal};
use onsale_core::layout::Layout;
use onsale_core::manifest::{Manifest, ManifestSeat};

/// A seat, as a test means it.
#[derive(Clone, Debug)]
pub(super) struct Seat {
    /// Index of its row in the hall.
    pub row: usize,
    pub section: u16,
    pub level: u16,
    pub rank: u32,
    pub open: bool,
    pub allocation: Option<AllocationNo>,
    pub accessible: bool,
    /// The accessible seat whose companion sits here.
    pub companion_of: Option<usize>,
}

/// A hall by ordinal, and for whom seats are chosen in it.
#[derive(Clone, Debug, Default)]
pub(super) struct Hall {
    pub seats: Vec<Seat>,
    pub party: Option<AllocationNo>,
}

impl Hall {
    /// A hall of rows as drawn, all in one section but where a line is `--`:
    ///
    /// - `.` and `,` are open seats of the first and the second price level, `x` is taken;
    /// - `w` and `W` are for a wheelchair, open and taken; `c` is the seat of the last one's companion, or the next one's;
    /// - `a` is set aside.
    ///
    /// The first row's middle is the best place.
    pub(super) fn drawn(rows: &[&str]) -> Hall {
        let mut hall = Hall::default();
        let (mut section, mut row) = (0, 0);
        for line in rows {
            if *line == "--" {
                section += 1;
                continue;
            }
            let start = hall.seats.len();
            let wheelchairs: Vec<usize> =
                line.bytes().enumerate().filter(|(_, seat)| seat.is_ascii_w()).map(|(at, _)| at).collect();
            for (place, drawn) in line.bytes().enumerate() {
                let next = || wheelchairs.iter().find(|at| **at > place);
                let wheelchair = wheelchairs.iter().rev().find(|at| **at < place).or_else(next);
                hall.seats.push(Seat {
                    row,
                    section,
                    level: u16::from(drawn == b','),
                    rank: row as u32 * 100 + (2 * place + 1).abs_diff(line.len()) as u32,
                    open: !matches!(drawn, b'x' | b'W'),
                    allocation: (drawn == b'a').then_some(AllocationNo(1)),
                    accessible: drawn.is_ascii_w(),
                    companion_of: (drawn == b'c').then(|| start + wheelchair.expect("a wheelchair")),
                });
            }
            row += 1;
        }
        hall
    }

    pub(super) fn manifest(&self) -> Manifest {
        let mut place = 0;
        let mut seats = Vec::new();
        for (ordinal, seat) in self.seats.iter().enumerate() {
            let same_row = ordinal > 0 && self.seats[ordinal - 1].row == seat.row;
            place = if same_row { place + 1 } else { 0 };
            seats.push(ManifestSeat {
                seat_id: format!("S-{ordinal}"),
                section: seat.section,
                row: seat.row.to_string(),
                // Printed numbers say nothing about who sits beside whom.
                seat: (ordinal * 7 % 10).to_string(),
                price_level: seat.level,
                x: f64::from(place),
                y: seat.row as f64,
                rank: seat.rank,
                accessible: seat.accessible,
                companion_of: seat.companion_of.map(|other| format!("S-{other}")),
                restricted_view: false,
                not_for_sale: false,
            });
        }
        Manifest { seats, ..Manifest::default() }
    }

    pub(super) fn board(&self) -> Board {
        let layout = Arc::new(Layout::of(&self.manifest()));
        let rows = self.seats.iter().map(|seat| (if seat.open { 0 } else { 2 }, seat.allocation, 1));
        Board::new(layout, 1, rows).expect("as many rows as seats")
    }

    pub(super) fn choose(&self, best: &Best, orphan_seats: OrphanSeats) -> Option<Vec<usize>> {
        let chosen = choose(&self.board(), best, self.party, orphan_seats)?;
        Some(chosen.into_iter().map(|SeatOrdinal(seat)| seat as usize).collect())
    }

    pub(super) fn take(&mut self, seats: &[usize]) {
        for seat in seats {
            assert!(self.seats[*seat].open, "seat {seat} is taken");
            self.seats[*seat].open = false;
        }
    }
}

trait Wheelchair {
    fn is_ascii_w(&self) -> bool;
}

impl Wheelchair for u8 {
    fn is_ascii_w(&self) -> bool {
        matches!(self, b'w' | b'W')
    }
}

/// A sequence that follows from its seed (SplitMix64).
pub(super) struct Chance(pub u64);

impl Chance {
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }

    pub(super) fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn allocation(&mut self) -> AllocationNo {
        AllocationNo(1 + self.below(2) as u16)
    }

    /// A small hall with some of everything.
    pub(super) fn hall(&mut self) -> Hall {
        let mut hall = Hall::default();
        let (taken, levels, aside) = (self.below(90), 1 + self.below(3), self.below(2) * self.below(40));
        let wheelchairs = self.below(2) * 20;
        let ranked_at_random = self.percent(50);
        let mut section = 0;
        for row in 0..1 + self.below(4) {
            section += u16::from(row > 0 && self.percent(30));
            let places = 1 + self.below(11);
            let mut level = self.below(levels) as u16;
            for place in 0..places {
                if self.percent(15) {
                    level = self.below(levels) as u16;
                }
                hall.seats.push(Seat {
                    row,
                    section,
                    level,
                    rank: match ranked_at_random {
                        true => self.below(30) as u32,
                        false => row as u32 * 20 + (2 * place + 1).abs_diff(places) as u32,
                    },
                    open: !self.percent(taken),
                    allocation: self.percent(aside).then(|| self.allocation()),
                    accessible: self.percent(wheelchairs),
                    companion_of: None,
                });
            }
        }
        hall.party = self.percent(15).then(|| self.allocation());
        let accessible: Vec<usize> =
            (0..hall.seats.len()).filter(|seat| hall.seats[*seat].accessible).collect();
        for wheelchair in accessible {
            // Usually a neighbour, sometimes anywhere.
            let beside = if self.percent(90) { wheelchair + 1 } else { self.below(hall.seats.len()) };
            if let Some(seat) = hall.seats.get_mut(beside).filter(|seat| !seat.accessible) {
                seat.companion_of = Some(wheelchair);
            }
        }
        hall
    }
}
