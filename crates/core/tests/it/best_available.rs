//! Seats chosen for the buyer, in halls drawn as text and in halls that chance makes.

use onsale_core::best_available::Best;
use onsale_core::event::OrphanSeats::{self, Allow, Avoid};
use onsale_core::id::AllocationNo;

use hall::{Chance, Hall};

mod board;
mod brute;
mod hall;
mod split;

fn wish(quantity: u32) -> Best {
    Best { quantity, price_level: None, section: None, accessible: false, split_rows: false }
}

/// Compares a choice, marked `O`, with what is expected, whether orphans are avoided or not.
#[track_caller]
fn check(best: &Best, rows: &[&str], expected: &[&str]) {
    check_where(Avoid, best, rows, expected);
    check_where(Allow, best, rows, expected);
}

#[track_caller]
fn check_where(orphan_seats: OrphanSeats, best: &Best, rows: &[&str], expected: &[&str]) {
    let chosen = Hall::drawn(rows).choose(best, orphan_seats);
    assert!(chosen.as_ref().is_none_or(|chosen| chosen.is_sorted()), "{chosen:?}");
    let mut shown: Vec<String> = rows.iter().map(|row| row.to_string()).collect();
    let mut seat = 0;
    for row in shown.iter_mut().filter(|row| *row != "--") {
        let first = seat;
        seat += row.len();
        for taken in chosen.iter().flatten().filter(|taken| (first..seat).contains(taken)) {
            row.replace_range(taken - first..taken - first + 1, "O");
        }
    }
    assert_eq!(shown, expected, "{orphan_seats:?} {best:?}");
}

#[test]
fn the_run_with_the_lowest_ranks_is_chosen() {
    check(&wish(2), &["......", "......"], &["..OO..", "......"]);
    check(&wish(3), &["..x...", "......"], &["..xOOO", "......"]);
    check(&wish(1), &["x.x.x", "....."], &["xOx.x", "....."]);
    check(&wish(50), &["......", "......"], &["......", "......"]);
    for quantity in [0, 51, u32::MAX] {
        assert_eq!(Hall::drawn(&[&".".repeat(60)]).choose(&wish(quantity), Allow), None, "{quantity}");
    }
}

#[test]
fn a_run_stays_in_its_row_and_its_section() {
    check(&wish(2), &["xx.", ".xx"], &["xx.", ".xx"]);
    check(&wish(3), &["..", "..", "..."], &["..", "..", "OOO"]);
    check(&Best { section: Some(1), ..wish(2) }, &["....", "--", "......"], &["....", "--", "..OO.."]);
    check(&Best { section: Some(7), ..wish(2) }, &["....", "--", "...."], &["....", "--", "...."]);
}

#[test]
fn a_single_seat_is_left_only_where_there_is_no_other_run() {
    check_where(Allow, &wish(4), &["..x..x", "......"], &["..x..x", ".OOOO."]);
    check_where(Avoid, &wish(4), &["..x..x", "......"], &["..x..x", "OOOO.."]);
    // The front row would keep one seat, so a row behind is better.
    check_where(Avoid, &wish(2), &["...x", "x..x"], &["...x", "xOOx"]);
    check_where(Allow, &wish(2), &["...x", "x..x"], &[".OOx", "x..x"]);
    // One is better than two, and any is better than none.
    check_where(Avoid, &wish(3), &["...."], &["OOO."]);
    check_where(Avoid, &wish(2), &["x...x"], &["xOO.x"]);
    // A seat that was alone before isn't made so.
    check(&wish(2), &[".x..x."], &[".xOOx."]);
}

#[test]
fn a_run_leaves_room_for_as_many_like_it() {
    let (row, whole) = (".".repeat(12), "....OOOO....");
    check(&wish(4), &[&row], &[whole]);
    check_where(Allow, &wish(4), &["............x"], &["....OOOO....x"]);
    check_where(Avoid, &wish(3), &["............x"], &["......OOO...x"]);
    check_where(Allow, &wish(3), &["............x"], &[".....OOO....x"]);
}

#[test]
fn one_price_level_comes_before_several() {
    let rows = [".,.,.,", "x..x,,"];
    check(&wish(2), &rows, &[".,.,.,", "xOOx,,"]);
    check(&Best { price_level: Some(1), ..wish(2) }, &rows, &[".,.,.,", "x..xOO"]);
    check(&Best { price_level: Some(0), ..wish(3) }, &rows, &rows);
    check(&Best { price_level: Some(9), ..wish(1) }, &rows, &rows);
    check_where(Avoid, &wish(3), &rows, &["OOO,.,", "x..x,,"]);
    check_where(Allow, &wish(3), &rows, &[".OOO.,", "x..x,,"]);
}

#[test]
fn seats_for_wheelchairs_and_companions_are_for_them() {
    check(&wish(3), &["wc..", "...."], &["wc..", "OOO."]);
    check(&wish(3), &["wc..", "xx.."], &["wc..", "xx.."]);
    check(&wish(1), &["wWc"], &["wWc"]);
    let accessible = |quantity| Best { accessible: true, ..wish(quantity) };
    check_where(Avoid, &accessible(2), &["....", "wc..w."], &["....", "OO..w."]);
    check_where(Allow, &accessible(2), &["....", "wc..w."], &["....", "wc.OO."]);
    check(&accessible(4), &["....", "wc...."], &["....", "OOOO.."]);
    check(&accessible(2), &["....", "...."], &["....", "...."]);
    // A companion's seat isn't left behind where there is another way, and a second wheelchair's place isn't taken.
    check(&accessible(1), &["wc.", "..w"], &["wc.", "..O"]);
    check(&accessible(2), &["ww", "xx", "xxw."], &["ww", "xx", "xxOO"]);
    check(&accessible(2), &["ww", "xx"], &["OO", "xx"]);
    // Another's companion's seat is in the way.
    check(&accessible(3), &["Wc.w"], &["Wc.w"]);
    check(&accessible(2), &["Wc.w"], &["WcOO"]);
}

#[test]
fn what_is_set_aside_is_for_those_who_may_have_it() {
    check(&wish(2), &["a..a", "...."], &["aOOa", "...."]);
    let chosen = |rows: &[&str], party| {
        let hall = Hall { party: Some(AllocationNo(party)), ..Hall::drawn(rows) };
        hall.choose(&wish(2), Avoid)
    };
    assert_eq!(chosen(&["..aa..", "......"], 1), Some(vec![2, 3]));
    assert_eq!(chosen(&["..aa..", "......"], 2), None);
    assert_eq!(chosen(&["a.a."], 1), None);
}

/// A hundred parties of four in ten rows of forty: nothing is left over, so none of them was badly placed.
#[test]
fn a_section_fills_completely() {
    let row = ".".repeat(40);
    let mut hall = Hall::drawn(&[row.as_str(); 10]);
    for party in 0..100 {
        let chosen = hall.choose(&wish(4), Avoid).unwrap_or_else(|| panic!("party {party} has seats"));
        assert_eq!(brute::orphans(&hall, &chosen), 0, "party {party}");
        hall.take(&chosen);
    }
    assert!(hall.seats.iter().all(|seat| !seat.open));
    assert_eq!(hall.choose(&wish(4), Avoid), None);
}

/// What is searched with shortcuts is what trying every run gives.
#[test]
fn a_choice_is_the_best_of_all_runs() {
    let mut chance = Chance(5);
    let (mut found, mut none, mut unavoidable) = (0, 0, 0);
    for _ in 0..30_000 {
        let hall = chance.hall();
        let best = chance.wish();
        for orphan_seats in [Avoid, Allow] {
            let chosen = hall.choose(&best, orphan_seats);
            let expected = brute::best(&hall, &best, orphan_seats == Avoid);
            assert_eq!(chosen, expected, "{orphan_seats:?} {best:?} {hall:?}");
            match chosen {
                Some(chosen) => {
                    found += 1;
                    assert!(brute::is_allowed(&hall, &best, &chosen));
                    unavoidable += usize::from(brute::orphans(&hall, &chosen) > 0);
                }
                None => none += 1,
            }
        }
    }
    assert!(found > 10_000 && none > 10_000 && unavoidable > 1_000, "{found} {none} {unavoidable}");
}

impl Chance {
    fn wish(&mut self) -> Best {
        Best {
            quantity: 1 + self.below(5) as u32,
            price_level: self.percent(30).then(|| self.below(3) as u16),
            section: self.percent(20).then(|| self.below(2) as u16),
            accessible: self.percent(25),
            split_rows: false,
        }
    }
}
