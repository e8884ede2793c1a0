//! Boards that follow the log, and the rows they stand for.

use std::sync::Arc;

use onsale_core::board::{Board, Gap};
use onsale_core::id::{EventNo, HoldId, SeatOrdinal};
use onsale_core::layout::{Kept, Layout};
use onsale_core::log::{LogEntry, LogKind};
use onsale_core::seat_map::{Seat, SeatStatus};
use onsale_core::time::Timestamp;

use super::hall::{Chance, Hall};

fn entry(version: u64, kind: LogKind) -> LogEntry {
    LogEntry { event: EventNo(1), version, at: Timestamp::ZERO, kind }
}

fn status_set(seats: &[u32], not_for_sale: bool) -> LogKind {
    let seats = seats.iter().map(|seat| SeatOrdinal(*seat)).collect();
    LogKind::SeatsStatusSet { seats, not_for_sale, actor: String::new() }
}

#[test]
fn rows_are_what_the_manifest_puts_together() {
    let hall = Hall::drawn(&["..,", "wcc", "--", "x"]);
    let layout = Layout::of(&hall.manifest());
    let rows: Vec<_> =
        layout.rows().iter().map(|row| (row.first, row.end, row.section, row.price_level)).collect();
    assert_eq!(rows, [(0, 3, 0, None), (3, 6, 0, Some(0)), (6, 7, 1, Some(0))]);
    assert!(layout.rows().iter().map(|row| row.best_rank).eq([0, 100, 200]));
    assert_eq!(layout.place(SeatOrdinal(4)).map(|place| (place.row, place.kept)), Some((1, Kept::Companion)));
    assert_eq!(layout.place(SeatOrdinal(7)), None);
    assert_eq!(layout.accessible_of(SeatOrdinal(5)), Some(SeatOrdinal(3)));
    assert_eq!(layout.accessible_of(SeatOrdinal(3)), None);
    assert_eq!(layout.companions_of(SeatOrdinal(3)).collect::<Vec<_>>(), [SeatOrdinal(4), SeatOrdinal(5)]);
    assert_eq!(layout.seat_count(), 7);
}

#[test]
fn a_board_takes_in_the_entry_that_follows_and_no_other() {
    let hall = Hall::drawn(&["....x"]);
    let board = hall.board();
    let mut followed = board.clone();
    assert_eq!(followed.follow(&entry(1, status_set(&[0], true))), Ok(()));
    assert_eq!(followed, board, "an entry it has already");
    assert_eq!(followed.follow(&entry(3, status_set(&[0], true))), Err(Gap));
    assert_eq!(followed.follow(&entry(2, LogKind::ManifestReplaced { manifest_version: 2 })), Err(Gap));
    assert_eq!(followed.follow(&entry(2, status_set(&[5], true))), Err(Gap), "a seat it doesn't have");
    assert_eq!(followed, board);

    let hold = HoldId(1);
    let seats = vec![SeatOrdinal(1), SeatOrdinal(2)];
    followed.follow(&entry(2, LogKind::HoldPlaced { hold, seats: seats.clone() })).unwrap();
    followed.follow(&entry(3, LogKind::PricesSet { price_version: 1 })).unwrap();
    assert_eq!((followed.version(), followed.seat(SeatOrdinal(1))), (3, None));
    assert!(!followed.is_open(1, None) && followed.is_open(0, None));
    followed.follow(&entry(4, LogKind::HoldReleased { hold, order: None, seats })).unwrap();
    let row = |ordinal, version| {
        Some(Seat { ordinal: SeatOrdinal(ordinal), status: SeatStatus::Available, price_level: 0, version })
    };
    assert_eq!(followed.seat(SeatOrdinal(1)), row(1, 4));
    assert_eq!(followed.seat(SeatOrdinal(0)), row(0, 1));
    assert_eq!(followed.seat(SeatOrdinal(4)), None, "sold");
    assert_eq!(followed.seat(SeatOrdinal(5)), None, "beyond the last");
}

#[test]
fn seats_of_another_layout_make_no_board() {
    let hall = Hall::drawn(&["...."]);
    let layout = Arc::new(Layout::of(&hall.manifest()));
    for count in [0, 3, 5] {
        assert!(Board::new(Arc::clone(&layout), 1, (0..count).map(|_| (0, None, 0))).is_none(), "{count}");
    }
}

/// A board that followed is the board that would be read.
#[test]
fn following_is_as_good_as_reading_anew() {
    let mut chance = Chance(7);
    for _ in 0..300 {
        let mut hall = chance.hall();
        let mut board = hall.board();
        let mut versions = vec![1; hall.seats.len()];
        for version in 2..40 {
            let shut = chance.percent(60);
            let count = hall.seats.len();
            let mut seats: Vec<u32> = (0..chance.below(4)).map(|_| chance.below(count) as u32).collect();
            seats.dedup();
            board.follow(&entry(version, status_set(&seats, shut))).unwrap();
            for seat in seats {
                hall.seats[seat as usize].open = !shut;
                versions[seat as usize] = version;
            }
            let layout = Arc::clone(board.layout());
            let digit = |seat: u32| if board.seat(SeatOrdinal(seat)).is_some() { 0 } else { 3 };
            for (seat, state) in (0u32..).zip(&hall.seats) {
                assert_eq!(digit(seat) == 0, state.open);
            }
            let read = |seat: u32| {
                let state = &hall.seats[seat as usize];
                let digit = if state.open { 0 } else { 3 };
                (digit, state.allocation, versions[seat as usize])
            };
            let anew = Board::new(layout, version, (0..count as u32).map(read)).unwrap();
            // Seats that were taken from the beginning show another digit.
            let is_same = |seat: u32| board.seat(SeatOrdinal(seat)) == anew.seat(SeatOrdinal(seat));
            assert!((0..count as u32).all(is_same));
            for best in [super::wish(1), super::wish(2), super::wish(3)] {
                let choose = |board| onsale_core::best_available::choose(board, &best, super::Avoid);
                assert_eq!(choose(&board), choose(&anew));
            }
        }
    }
}
