//! A place on the plan for seats whose file gives none: sections one below the other, rows in order of appearance,
//! seats in order. Nothing but the order decides, so the same file always gives the same plan.

use std::collections::HashMap;

use super::DraftSeat;

const SEAT_SPACING: f64 = 25.0;
const ROW_SPACING: f64 = 30.0;
const SECTION_GAP: f64 = 60.0;

/// Gives the seats without a place one, below those that have one, and warns if there are both.
pub(super) fn place(seats: &mut [DraftSeat]) -> Option<String> {
    let unplaced = seats.iter().filter(|seat| !seat.placed).count();
    if unplaced == 0 {
        return None;
    }
    let lowest = seats.iter().filter(|seat| seat.placed).map(|seat| seat.seat.y).reduce(f64::max);
    let top = lowest.map_or(0.0, |lowest| lowest + SECTION_GAP);

    let mut rows_in_section: Vec<u32> = Vec::new();
    let mut rows: HashMap<(u16, u32), Row> = HashMap::new();
    for seat in seats.iter() {
        let section = usize::from(seat.seat.section);
        if rows_in_section.len() <= section {
            rows_in_section.resize(section + 1, 0);
        }
        rows.entry((seat.seat.section, seat.origin.row)).or_insert_with(|| {
            rows_in_section[section] += 1;
            Row { rank: rows_in_section[section] - 1, seats: 0 }
        });
    }

    let mut section_top = top;
    let tops: Vec<f64> = rows_in_section
        .iter()
        .map(|&rows| {
            let top = section_top;
            if rows > 0 {
                section_top += f64::from(rows - 1) * ROW_SPACING + SECTION_GAP;
            }
            top
        })
        .collect();

    for seat in seats.iter_mut() {
        let row = rows.get_mut(&(seat.seat.section, seat.origin.row)).expect("every row was counted");
        if !seat.placed {
            seat.seat.x = f64::from(row.seats) * SEAT_SPACING;
            seat.seat.y = tops[usize::from(seat.seat.section)] + f64::from(row.rank) * ROW_SPACING;
        }
        row.seats += 1;
    }
    lowest.map(|_| format!("seats without x and y, put below the others: {unplaced}"))
}

struct Row {
    /// Among the rows of its section.
    rank: u32,
    /// How many of its seats have had their turn.
    seats: u32,
}
