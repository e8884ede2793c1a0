//! Boards that follow the log, and the rows they stand for.

use std::sync::Arc;

use onsale_core::best_available::choose;
use onsale_core::board::{Board, Gap};
use onsale_core::id::{AllocationNo, EventNo, HoldId, OperationId, OrderId, SeatOrdinal};
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
    followed.follow(&entry(2, LogKind::HoldPlaced { hold, seats: seats.clone(), ga: Vec::new() })).unwrap();
    followed.follow(&entry(3, LogKind::PricesSet { price_version: 1 })).unwrap();
    assert_eq!((followed.version(), followed.seat(SeatOrdinal(1))), (3, None));
    assert!(!followed.is_open(1, None) && followed.is_open(0, None));
    followed
        .follow(&entry(
            4,
            LogKind::HoldReleased { hold, order: None, seats, set_aside: Vec::new(), ga: Vec::new() },
        ))
        .unwrap();
    let row = |ordinal, version| {
        let (ordinal, status) = (SeatOrdinal(ordinal), SeatStatus::Available);
        Some(Seat { ordinal, status, allocation: None, price_level: 0, version })
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
        let mut rows: Vec<(u8, Option<AllocationNo>, u64)> =
            hall.seats.iter().map(|seat| (if seat.open { 0 } else { 2 }, seat.allocation, 1)).collect();
        for version in 2..40 {
            let mut seats: Vec<usize> =
                (0..chance.below(4)).map(|_| chance.below(hall.seats.len())).collect();
            seats.sort_unstable();
            seats.dedup();
            let (digit, allocation, kind) = chance.kind(&seats);
            for seat in seats {
                let row = &mut rows[seat];
                *row = (digit, allocation.unwrap_or(row.1), version);
                (hall.seats[seat].open, hall.seats[seat].allocation) = (digit == 0, row.1);
            }
            board.follow(&entry(version, kind)).unwrap();
            let anew = Board::new(Arc::clone(board.layout()), version, rows.iter().copied()).unwrap();
            assert_eq!(board, anew);
            for best in [super::wish(1), super::wish(2), super::wish(3)] {
                let chosen = choose(&board, &best, hall.party, super::Avoid);
                let chosen: Option<Vec<usize>> =
                    chosen.map(|seats| seats.into_iter().map(|seat| seat.0 as usize).collect());
                assert_eq!(chosen, super::brute::best(&hall, &best, true));
            }
        }
    }
}

impl Chance {
    /// An entry about seats: the digit they have then, and the allocation if it changes with it.
    fn kind(&mut self, seats: &[usize]) -> (u8, Option<Option<AllocationNo>>, LogKind) {
        let seats: Vec<SeatOrdinal> = seats.iter().map(|seat| SeatOrdinal(*seat as u32)).collect();
        let (hold, order, operation) = (HoldId(1), OrderId(1), OperationId(1));
        let (set_aside, ga, actor) = (seats.clone(), Vec::new(), String::new());
        match self.below(10) {
            0 | 1 => (1, None, LogKind::HoldPlaced { hold, seats, ga }),
            2 => (0, None, LogKind::HoldReleased { hold, order: None, seats, set_aside, ga }),
            3 => (0, None, LogKind::HoldExpired { hold, order: None, seats, set_aside, ga }),
            4 => (2, None, LogKind::OrderConfirmed { order, hold, seats, ga }),
            5 => (0, None, LogKind::OrderCancelled { order, hold, seats, set_aside, ga }),
            6 => {
                let resell = self.percent(50);
                let kind = LogKind::OrderReturned { order, operation, seats, set_aside, ga, resell };
                if resell { (0, None, kind) } else { (3, Some(None), kind) }
            }
            7 => {
                let not_for_sale = self.percent(50);
                let kind = LogKind::SeatsStatusSet { seats, not_for_sale, actor };
                (if not_for_sale { 3 } else { 0 }, Some(None), kind)
            }
            _ => {
                let allocation = self.percent(50).then_some(AllocationNo(1));
                (0, Some(allocation), LogKind::SeatsSetAside { seats, allocation, actor })
            }
        }
    }
}
