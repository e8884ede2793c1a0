//! A party in several rows behind each other, when no row has a run for all of it.
//!
//! As few rows as possible, all of one section and each the next in the manifest; parts as even as possible; nobody alone
//! in a party of four or more. In each row, the run nearest to the one in the row before. Of all such choices first those
//! that leave no single seat behind, where the event avoids that.

use crate::id::SeatOrdinal;
use crate::layout::Row;

use super::{Levels, Run, Search};

/// Rows a party is split over. In more it isn't together any more.
const ROWS_MAX: u32 = 4;
/// From this size on nobody of a party sits alone.
const PARTY: u32 = 4;

/// The best split of the wish.
pub(super) fn parts(search: &Search<'_>, levels: Levels) -> Option<Vec<SeatOrdinal>> {
    // How long a part can be in each row, so that a division nobody has room for costs a glance.
    let longest: Vec<u32> = search.layout.rows().iter().map(|row| search.longest(row, levels)).collect();
    let strict = [Some(true).filter(|_| search.avoids_orphans), Some(false)];
    strict.into_iter().flatten().find_map(|no_orphans| {
        divisions(search.best.quantity).into_iter().find_map(|equally_even| {
            let mut splitting =
                Splitting { search, longest: &longest, no_orphans, runs: Vec::new(), found: None };
            equally_even.iter().for_each(|sizes| splitting.look(sizes, levels));
            splitting.found.map(|choice| choice.seats)
        })
    })
}

/// How a party can be divided, the best way first; ways that are equally good come together.
fn divisions(quantity: u32) -> Vec<Vec<Vec<u32>>> {
    let least = if quantity >= PARTY { 2 } else { 1 };
    let mut divisions = Vec::new();
    for larger in quantity.div_ceil(2)..=quantity.saturating_sub(least) {
        let sizes = vec![larger, quantity - larger];
        let reversed = vec![quantity - larger, larger];
        divisions.push(if sizes == reversed { vec![sizes] } else { vec![sizes, reversed] });
    }
    for rows in 3..=ROWS_MAX.min(quantity / least) {
        // Each set of rows that have one more than the others.
        let sets = (0u32..1 << rows).filter(|set| set.count_ones() == quantity % rows);
        let sizes = |set: u32| (0..rows).map(|row| quantity / rows + (set >> row & 1)).collect();
        divisions.push(sets.map(sizes).collect());
    }
    divisions
}

/// A choice, and how good it is: the lower the better.
struct Choice {
    score: (u32, u32, u32, u64, u64, u32),
    seats: Vec<SeatOrdinal>,
}

struct Splitting<'a> {
    search: &'a Search<'a>,
    /// For each row, its longest stretch without a wheelchair.
    longest: &'a [u32],
    no_orphans: bool,
    /// The runs of each row looked at, kept for their memory.
    runs: Vec<Vec<Run>>,
    found: Option<Choice>,
}

impl Splitting<'_> {
    /// Looks for parts of these sizes in every place.
    fn look(&mut self, sizes: &[u32], levels: Levels) {
        let layout = self.search.layout;
        let windows = layout.rows().windows(sizes.len()).zip(self.longest.windows(sizes.len()));
        for (rows, longest) in windows {
            if !rows.windows(2).all(|pair| pair[0].is_beside(&pair[1])) {
                continue;
            }
            // One part has the wheelchair, and the others are like any party's.
            let wheelchairs = match self.search.best.accessible {
                true => 0..sizes.len(),
                false => sizes.len()..sizes.len() + 1,
            };
            let has_room = |wheelchair: &usize| {
                let mut others = sizes.iter().zip(longest).enumerate().filter(|(part, _)| part != wheelchair);
                others.all(|(_, (size, longest))| size <= longest)
            };
            for wheelchair in wheelchairs.filter(has_room) {
                match levels {
                    Levels::Only(_) | Levels::Any => self.look_in(rows, sizes, levels, wheelchair),
                    Levels::Each => {
                        for level in levels_of(self.search, &rows[0]) {
                            self.look_in(rows, sizes, Levels::Only(level), wheelchair);
                        }
                    }
                }
            }
        }
    }

    fn look_in(&mut self, rows: &[Row], sizes: &[u32], levels: Levels, wheelchair: usize) {
        let search = self.search;
        let parts = || rows.iter().zip(sizes).enumerate();
        let hopes =
            parts().all(|(part, (row, size))| search.may_have(row, *size, levels, part == wheelchair));
        let best: u64 = parts().map(|(_, (row, size))| u64::from(row.best_rank) * u64::from(*size)).sum();
        let is_beaten = |found: &Choice| found.score < (u32::from(search.best.accessible), 0, 0, 0, best, 0);
        if !hopes || self.found.as_ref().is_some_and(is_beaten) {
            return;
        }
        self.runs.resize_with(rows.len().max(self.runs.len()), Vec::new);
        for (part, (row, size)) in parts() {
            let runs = &mut self.runs[part];
            runs.clear();
            search.runs(row, *size, levels, part == wheelchair, |run| {
                if !self.no_orphans || search.orphans(row, run.first, *size) == 0 {
                    runs.push(run);
                }
            });
            if runs.is_empty() {
                return;
            }
        }
        let reach = self.reach(&rows[0]);
        let mut nearest = [0; ROWS_MAX as usize];
        for at in 0..self.runs[0].len() {
            nearest[0] = at;
            let mut apart = 0;
            for part in 1..rows.len() {
                let from = self.middle(part - 1, nearest[part - 1], sizes);
                let (run, distance) = self.nearest(part, nearest[part], sizes, from);
                nearest[part] = run;
                // Within the party's own length all are equally near.
                apart += if reach > 0.0 { (distance / reach) as u64 } else { 0 };
            }
            self.consider(rows, sizes, wheelchair, &nearest[..rows.len()], apart);
        }
    }

    /// The length of the whole party in a row.
    fn reach(&self, row: &Row) -> f32 {
        let layout = self.search.layout;
        let second = (row.first + 1).min(row.end - 1);
        let step = layout.distance(layout.middle(row.first, row.first), layout.middle(second, second));
        step * self.search.best.quantity as f32
    }

    fn middle(&self, part: usize, run: usize, sizes: &[u32]) -> (f32, f32) {
        let first = self.runs[part][run].first;
        self.search.layout.middle(first, first + sizes[part] - 1)
    }

    /// The run of a part that is nearest to a place, and how far it is. From one call to the next the place moves along
    /// its row, so the nearest run is near the one before, forwards or backwards.
    fn nearest(&self, part: usize, before: usize, sizes: &[u32], from: (f32, f32)) -> (usize, f32) {
        let away = |run: usize| self.search.layout.distance(from, self.middle(part, run, sizes));
        let last = self.runs[part].len() - 1;
        let mut run = before.min(last);
        let mut distance = away(run);
        loop {
            let next = [run.saturating_sub(1), (run + 1).min(last)];
            let [back, forth] = next.map(|run| (run, away(run)));
            let better = if forth.1 < back.1 { forth } else { back };
            if better.1 >= distance {
                return (run, distance);
            }
            (run, distance) = better;
        }
    }

    fn consider(&mut self, rows: &[Row], sizes: &[u32], wheelchair: usize, runs: &[usize], apart: u64) {
        let mut score = (0, 0, 0, apart, 0, self.runs[0][runs[0]].first);
        for (part, (row, size)) in rows.iter().zip(sizes).enumerate() {
            let run = self.runs[part][runs[part]];
            let of_part = self.search.score(row, run, *size, part == wheelchair);
            score.0 += of_part.accessible;
            score.1 += of_part.stranded;
            score.2 += of_part.orphans;
            score.4 += of_part.rank;
        }
        if self.found.as_ref().is_some_and(|found| found.score <= score) {
            return;
        }
        let firsts = runs.iter().enumerate().map(|(part, run)| self.runs[part][*run].first);
        let seats = firsts.zip(sizes).flat_map(|(first, size)| first..first + size).map(SeatOrdinal);
        self.found = Some(Choice { score, seats: seats.collect() });
    }
}

impl Search<'_> {
    /// The longest stretch of a row without a wheelchair.
    fn longest(&self, row: &Row, levels: Levels) -> u32 {
        let mut longest = 0;
        if self.may_have(row, 1, levels, false) {
            self.stretches(row, levels, false, |start, end| longest = longest.max(end - start));
        }
        longest
    }
}

/// The price levels that a row's seats have.
fn levels_of(search: &Search<'_>, row: &Row) -> Vec<u16> {
    if let Some(level) = row.price_level {
        return vec![level];
    }
    let open = (row.first..row.end).filter(|seat| search.board.is_open(*seat, search.allocation));
    let mut levels: Vec<u16> = open.map(|seat| search.layout.at(seat).price_level).collect();
    levels.sort_unstable();
    levels.dedup();
    levels
}
