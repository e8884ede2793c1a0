//! The same choice by trying every run there is, written as the rule is said and not as it is searched.

use onsale_core::best_available::Best;

use super::hall::Hall;

/// How good a run is: the lower the better.
type Score = (bool, usize, usize, usize, bool, u64, usize);

/// The best single run.
pub(super) fn best(hall: &Hall, best: &Best, avoids_orphans: bool) -> Option<Vec<usize>> {
    let size = best.quantity as usize;
    let mut scores: Vec<Score> = Vec::new();
    for first in 0..hall.seats.len() {
        let run: Vec<usize> = (first..first + size).collect();
        if is_allowed(hall, best, &run) {
            scores.push(score(hall, best, &run, avoids_orphans));
        }
    }
    let (.., first) = scores.into_iter().min()?;
    Some((first..first + size).collect())
}

/// Whether a seat could be sold by a wish of this kind, beside others of it.
fn is_open(hall: &Hall, seat: usize) -> bool {
    hall.seats[seat].open && hall.seats[seat].allocation == hall.party
}

fn is_for_anyone(hall: &Hall, seat: usize) -> bool {
    !hall.seats[seat].accessible && hall.seats[seat].companion_of.is_none()
}

pub(super) fn is_allowed(hall: &Hall, best: &Best, run: &[usize]) -> bool {
    let seats = || run.iter().map(|seat| &hall.seats[*seat]);
    run.iter().all(|seat| *seat < hall.seats.len())
        && run.iter().all(|seat| is_open(hall, *seat))
        && seats().all(|seat| seat.row == hall.seats[run[0]].row)
        && seats().all(|seat| best.section.is_none_or(|section| seat.section == section))
        && seats().all(|seat| best.price_level.is_none_or(|level| seat.level == level))
        && match best.accessible {
            false => run.iter().all(|seat| is_for_anyone(hall, *seat)),
            true => {
                let strangers = |seat: &usize| {
                    !hall.seats[*seat].accessible
                        && hall.seats[*seat].companion_of.is_some_and(|other| !run.contains(&other))
                };
                seats().any(|seat| seat.accessible) && !run.iter().any(strangers)
            }
        }
}

/// Single seats that a run leaves behind.
pub(super) fn orphans(hall: &Hall, run: &[usize]) -> usize {
    let sold_to_anyone = |seat: usize, taken: &[usize]| {
        is_open(hall, seat) && is_for_anyone(hall, seat) && !taken.contains(&seat)
    };
    let is_alone = |seat: usize, taken: &[usize]| {
        let joins = |other: usize| {
            other < hall.seats.len()
                && hall.seats[other].row == hall.seats[seat].row
                && sold_to_anyone(other, taken)
        };
        sold_to_anyone(seat, taken) && !joins(seat + 1) && !(seat > 0 && joins(seat - 1))
    };
    (0..hall.seats.len()).filter(|seat| is_alone(*seat, run) && !is_alone(*seat, &[])).count()
}

fn score(hall: &Hall, best: &Best, run: &[usize], avoids_orphans: bool) -> Score {
    let level = hall.seats[run[0]].level;
    let is_mixed = run.iter().any(|seat| hall.seats[*seat].level != level);
    let accessible: Vec<usize> = match best.accessible {
        true => run.iter().copied().filter(|seat| hall.seats[*seat].accessible).collect(),
        false => Vec::new(),
    };
    let is_stranded = |seat: &usize| {
        !run.contains(seat)
            && is_open(hall, *seat)
            && !hall.seats[*seat].accessible
            && hall.seats[*seat].companion_of.is_some_and(|other| accessible.contains(&other))
    };
    let stranded = (0..hall.seats.len()).filter(is_stranded).count();
    // The free seats to both sides that this wish might have had as well.
    let joins = |seat: usize| {
        seat < hall.seats.len()
            && hall.seats[seat].row == hall.seats[run[0]].row
            && is_open(hall, seat)
            && (best.accessible || is_for_anyone(hall, seat))
            && (is_mixed || hall.seats[seat].level == level)
    };
    let before = (0..run[0]).rev().take_while(|seat| joins(*seat)).count();
    let after = (run[run.len() - 1] + 1..).take_while(|seat| joins(*seat)).count();
    let size = run.len();
    let lost = before / size + after / size + 1 < (before + size + after) / size;
    let rank = run.iter().map(|seat| u64::from(hall.seats[*seat].rank)).sum();
    let orphans = if avoids_orphans { orphans(hall, run) } else { 0 };
    (is_mixed, accessible.len(), stranded, orphans, lost && avoids_orphans, rank, run[0])
}
