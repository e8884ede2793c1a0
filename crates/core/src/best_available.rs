//! Seats chosen for the buyer: neighbours in a row, the best there are.
//!
//! A choice is made inside the transaction that holds it, on a board that shows the event as that transaction sees it.
//! So however many ask at once, each is given other seats. The same board and the same wish give the same choice.
//!
//! What is looked for, in this order:
//!
//! 1. one run of seats in one row, of one price level: buyers expect one price;
//! 2. only when there is none, and no level was asked for, a run across price levels;
//! 3. only when there is none either, and the buyer said so, parts in rows behind each other (`split`), of one level
//!    before several.
//!
//! Among the runs of one kind, a wish for an accessible seat takes as few of those as it can, and leaves no companion's
//! seat without its wheelchair. Then, where the event avoids orphans, a run that leaves no single seat behind, and one
//! that doesn't cost its stretch of free seats a further run of the same length. Then the lowest sum of ranks; then the
//! manifest's order.

use crate::board::Board;
use crate::event::OrphanSeats;
use crate::id::{AllocationNo, SeatOrdinal};
use crate::layout::{Kept, Layout, Row};
use crate::limits::SEATS_PER_HOLD_MAX;

mod split;

/// What a buyer wants without naming seats.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Best {
    /// How many seats.
    pub quantity: u32,
    /// Index of the only price level they may have.
    pub price_level: Option<u16>,
    /// Index of the only section they may be in.
    pub section: Option<u16>,
    /// Whether one of them must be for a wheelchair. Without this, none is, and none is a companion's.
    pub accessible: bool,
    /// Whether the party may be split over rows behind each other.
    pub split_rows: bool,
}

/// Chooses seats, ascending, among those set aside for an allocation, or without one among anyone's; `None` when the wish
/// can't be fulfilled.
pub fn choose(
    board: &Board,
    best: &Best,
    allocation: Option<AllocationNo>,
    orphan_seats: OrphanSeats,
) -> Option<Vec<SeatOrdinal>> {
    let search = Search {
        board,
        layout: board.layout(),
        best,
        allocation,
        avoids_orphans: match orphan_seats {
            OrphanSeats::Allow => false,
            OrphanSeats::Avoid => true,
        },
    };
    if !(1..=SEATS_PER_HOLD_MAX).contains(&best.quantity) || !search.has_enough() {
        return None;
    }
    let one_level = best.price_level.map_or(Levels::Each, Levels::Only);
    let across = best.price_level.is_none().then_some(Levels::Any);
    let kinds = || [Some(one_level), across].into_iter().flatten();
    kinds()
        .find_map(|levels| search.run(levels))
        .or_else(|| kinds().filter(|_| best.split_rows).find_map(|levels| split::parts(&search, levels)))
}

/// Which price levels the seats of one run may have.
#[derive(Clone, Copy)]
enum Levels {
    /// This one.
    Only(u16),
    /// Any, but all seats the same.
    Each,
    /// Any.
    Any,
}

/// How good a run is: the lower the better.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Score {
    accessible: u32,
    /// Companions' seats left behind by taking their wheelchair's.
    stranded: u32,
    /// Single seats left behind.
    orphans: u32,
    /// Further runs of the same length that don't fit any more, beyond this one.
    lost: bool,
    rank: u64,
    first: u32,
}

impl Score {
    /// Whether only a lower rank could be better.
    fn is_flawless(&self) -> bool {
        self.accessible <= 1 && self.stranded == 0 && self.orphans == 0 && !self.lost
    }
}

/// Neighbours that a wish may have.
#[derive(Clone, Copy)]
struct Run {
    first: u32,
    rank: u64,
    /// See [`Score`].
    lost: bool,
}

struct Search<'a> {
    board: &'a Board,
    layout: &'a Layout,
    best: &'a Best,
    allocation: Option<AllocationNo>,
    avoids_orphans: bool,
}

impl Search<'_> {
    /// Whether the counts leave hope. They are of seats that anyone may have.
    fn has_enough(&self) -> bool {
        let counted = self.allocation.is_none() && !self.best.accessible;
        !counted || self.board.open_at(self.best.price_level) >= self.best.quantity
    }

    /// The best single run.
    fn run(&self, levels: Levels) -> Option<Vec<SeatOrdinal>> {
        let size = self.best.quantity;
        let mut found: Option<Score> = None;
        for row in self.layout.rows_by_rank() {
            let limit = found.filter(Score::is_flawless).map(|score| score.rank);
            // Rows come by their best seat: none that follows can do better.
            if limit.is_some_and(|limit| limit < u64::from(size) * u64::from(row.best_rank)) {
                break;
            }
            // Across levels there is nothing new in a row that has one.
            let is_known = matches!(levels, Levels::Any) && row.price_level.is_some();
            if is_known || !self.may_have(row, size, levels, self.best.accessible) {
                continue;
            }
            self.runs(row, size, levels, self.best.accessible, |run| {
                let limit = found.filter(Score::is_flawless).map(|score| score.rank);
                if limit.is_none_or(|limit| run.rank <= limit) {
                    let score = self.score(row, run, size, self.best.accessible);
                    if found.is_none_or(|found| score < found) {
                        found = Some(score);
                    }
                }
            });
        }
        let first = found?.first;
        Some((first..first + size).map(SeatOrdinal).collect())
    }

    /// Whether it is worth looking for a run in a row.
    fn may_have(&self, row: &Row, size: u32, levels: Levels, accessible: bool) -> bool {
        let wanted = self.best.section.is_none_or(|section| section == row.section)
            && match (levels, row.price_level) {
                (Levels::Only(level), Some(only)) => level == only,
                (Levels::Only(_) | Levels::Each | Levels::Any, _) => true,
            };
        let room = match (accessible, self.allocation) {
            (true, _) => row.has_accessible && row.end - row.first >= size,
            (false, Some(_)) => row.end - row.first >= size,
            (false, None) => self.board.open_in(row) >= size,
        };
        wanted && room
    }

    /// Visits every run of a size in a row.
    fn runs(&self, row: &Row, size: u32, levels: Levels, accessible: bool, mut visit: impl FnMut(Run)) {
        self.stretches(row, levels, accessible, |start, end| {
            self.runs_between(start, end, size, accessible, &mut visit);
        });
    }

    /// Visits each stretch of a row, from its first seat to one past its last: what may be had together.
    fn stretches(&self, row: &Row, levels: Levels, accessible: bool, mut visit: impl FnMut(u32, u32)) {
        let may_take = |seat: u32| {
            let place = self.layout.at(seat);
            self.board.is_open(seat, self.allocation)
                && (accessible || place.kept == Kept::ForAnyone)
                && match levels {
                    Levels::Only(level) => place.price_level == level,
                    Levels::Each | Levels::Any => true,
                }
        };
        let goes_with = |start: u32, seat: u32| match levels {
            Levels::Only(_) | Levels::Any => true,
            Levels::Each => self.layout.at(start).price_level == self.layout.at(seat).price_level,
        };
        let mut start = row.first;
        for seat in row.first..=row.end {
            let takes = seat < row.end && may_take(seat);
            if takes && goes_with(start, seat) {
                continue;
            }
            if start < seat {
                visit(start, seat);
            }
            start = if takes { seat } else { seat + 1 };
        }
    }

    fn runs_between(&self, start: u32, end: u32, size: u32, accessible: bool, visit: &mut impl FnMut(Run)) {
        if end - start < size {
            return;
        }
        let rank = |seat: u32| u64::from(self.layout.at(seat).rank);
        let spare = (end - start) % size;
        // Seats before the run that make no full run of their own.
        let mut before = 0;
        let mut sum: u64 = (start..start + size).map(rank).sum();
        for first in start..=end - size {
            if !accessible || self.suits_wheelchair(first, size) {
                // Unless these are among the spare ones, the stretch holds one run fewer.
                visit(Run { first, rank: sum, lost: before > spare });
            }
            if first + size < end {
                sum = sum + rank(first + size) - rank(first);
            }
            before = if before + 1 == size { 0 } else { before + 1 };
        }
    }

    /// Whether a run has an accessible seat, and no companion's without the seat it belongs to.
    fn suits_wheelchair(&self, first: u32, size: u32) -> bool {
        let run = first..first + size;
        let kept = |seat: u32| self.layout.at(seat).kept;
        let belongs = |seat: u32| {
            self.layout.accessible_of(SeatOrdinal(seat)).is_some_and(|other| run.contains(&other.0))
        };
        run.clone().any(|seat| kept(seat) == Kept::Accessible)
            && run.clone().filter(|seat| kept(*seat) == Kept::Companion).all(belongs)
    }

    fn score(&self, row: &Row, run: Run, size: u32, accessible: bool) -> Score {
        let mut score = Score { rank: run.rank, first: run.first, ..Score::default() };
        let seats = run.first..run.first + size;
        if accessible {
            for seat in seats.clone().filter(|seat| self.layout.at(*seat).kept == Kept::Accessible) {
                let stays = |other: &SeatOrdinal| {
                    !seats.contains(&other.0) && self.board.is_open(other.0, self.allocation)
                };
                score.accessible += 1;
                score.stranded += self.layout.companions_of(SeatOrdinal(seat)).filter(stays).count() as u32;
            }
        }
        if self.avoids_orphans {
            score.orphans = self.orphans(row, run.first, size);
            score.lost = run.lost;
        }
        score
    }

    /// How many single seats a run would leave behind: ones that lose a neighbour to it and have no other. Seats kept for
    /// wheelchairs and companions are no orphans, and no neighbours.
    fn orphans(&self, row: &Row, first: u32, size: u32) -> u32 {
        let is_for_anyone = |seat: u32| self.layout.at(seat).kept == Kept::ForAnyone;
        let open = |seat: Option<u32>| {
            seat.filter(|seat| (row.first..row.end).contains(seat))
                .is_some_and(|seat| is_for_anyone(seat) && self.board.is_open(seat, self.allocation))
        };
        let last = first + size - 1;
        let before = is_for_anyone(first) && open(first.checked_sub(1)) && !open(first.checked_sub(2));
        let after = is_for_anyone(last) && open(Some(last + 1)) && !open(Some(last + 2));
        u32::from(before) + u32::from(after)
    }
}
