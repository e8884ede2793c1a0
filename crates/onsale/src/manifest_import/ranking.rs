//! How good each seat is: what the organiser says first, then how near it is to the focal point. Seats without the
//! organiser's word come after those with one.

use super::DraftSeat;

/// Distances closer than a step are the same.
const STEPS_PER_UNIT: f64 = 1e4;

/// Ranks the seats from 0, the best; seats that are equally good share a rank.
///
/// Without a focal point it lies in the middle of the house's width, at its upper edge, where most plans have the stage.
pub(super) fn rank(seats: &mut [DraftSeat], focal_point: Option<(f64, f64)>) {
    let (x, y) = focal_point.unwrap_or_else(|| stage(seats));
    // Seats left and right of the middle are to be equally good, whatever the last digits say.
    let distance =
        |seat: &DraftSeat| ((seat.seat.x - x).hypot(seat.seat.y - y) * STEPS_PER_UNIT).round() as u64;
    let key = |seat: &DraftSeat| (seat.rank.map_or(u64::MAX, u64::from), distance(seat));
    let mut order: Vec<_> = seats.iter().zip(0usize..).map(|(seat, at)| (key(seat), at)).collect();
    order.sort_unstable();
    let mut rank = 0;
    for at in 0..order.len() {
        rank += u32::from(at > 0 && order[at].0 != order[at - 1].0);
        seats[order[at].1].seat.rank = rank;
    }
}

fn stage(seats: &[DraftSeat]) -> (f64, f64) {
    let xs = || seats.iter().map(|seat| seat.seat.x);
    let left = xs().fold(f64::INFINITY, f64::min);
    let right = xs().fold(f64::NEG_INFINITY, f64::max);
    let top = seats.iter().map(|seat| seat.seat.y).fold(f64::INFINITY, f64::min);
    ((left + right) / 2.0, top)
}
