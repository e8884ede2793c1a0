//! Boards that are kept between batches, so that a wish for the best seats doesn't read a hall.
//!
//! A board is used at the very version that is stored, and at no other. One that is behind takes in the log, when that is less
//! than reading all seats again. What a batch has changed is kept once it is committed: until then the snapshot has the board,
//! and a batch that fails loses it.

use std::collections::BTreeMap;
use std::sync::Arc;

use onsale_core::board::Board;
use onsale_core::id::{AllocationNo, EventNo};
use onsale_core::layout::{Drawing, Layout, Printed};
use onsale_core::log::LogEntry;
use onsale_core::snapshot::Snapshot;

use crate::error::StoreError;
use crate::limits::{BOARD_ENTRIES_MAX, BOARD_SEATS_MAX, BULK_ROWS_MAX};
use crate::look::{Look, Parsed};
use crate::rows::{self, LOG};

/// The boards of some events.
#[derive(Default)]
pub(crate) struct Boards {
    kept: BTreeMap<EventNo, Kept>,
    uses: u64,
}

struct Kept {
    board: Board,
    manifest_version: u32,
    /// Counts up: the smallest was used the longest ago.
    used: u64,
}

impl Boards {
    /// Gives the snapshot the board of an event that it has loaded; nothing when the event has no manifest, or is elsewhere.
    pub(crate) fn load(&mut self, look: Look<'_>, snapshot: &mut Snapshot, no: EventNo) -> Parsed<()> {
        let (Some(event), Some(version)) = (snapshot.events.get(&no), snapshot.stored_version(no)) else {
            return Ok(());
        };
        if event.manifest_version == 0 {
            return Ok(());
        }
        let (manifest_version, seat_count) = (event.manifest_version, event.seat_count);
        let mut layout = None;
        let mut current = None;
        if let Some(kept) = self.kept.remove(&no).filter(|kept| kept.manifest_version == manifest_version) {
            layout = Some(Arc::clone(kept.board.layout()));
            current = caught_up(look, no, kept.board, version)?;
        }
        let board = match current {
            Some(board) => board,
            None => read(look, no, version, seat_count, layout)?,
        };
        let found = board.version();
        let corrupt = |_| StoreError::Corrupt {
            wanted: "the seats of an event at its version",
            found: format!("event {} at {version}, its seats at {found}", no.0),
        };
        snapshot.load_board(no, board).map_err(corrupt)
    }

    /// Keeps the boards of a batch that is committed, and lets the others follow what it changed.
    pub(crate) fn keep(&mut self, snapshot: &mut Snapshot, log: &[LogEntry]) {
        for entry in log {
            if let Some(kept) = self.kept.get_mut(&entry.event) {
                // One that can't follow stays behind, and is looked after when it is wanted.
                let _ = kept.board.follow(entry);
            }
        }
        for (no, board) in snapshot.take_boards() {
            let manifest_version = snapshot.events.get(&no).map_or(0, |event| event.manifest_version);
            self.uses += 1;
            self.kept.insert(no, Kept { board, manifest_version, used: self.uses });
        }
        while self.seats() > BOARD_SEATS_MAX && self.kept.len() > 1 {
            let oldest = self.kept.iter().min_by_key(|(_, kept)| kept.used).map(|(no, _)| *no);
            oldest.map(|no| self.kept.remove(&no));
        }
    }

    /// Forgets all of them: what they show may never have come to be.
    pub(crate) fn clear(&mut self) {
        self.kept.clear();
    }

    fn seats(&self) -> usize {
        self.kept.values().map(|kept| kept.board.layout().seat_count()).sum()
    }
}

/// A board at a version, if the log leads there in not too many steps.
fn caught_up(look: Look<'_>, no: EventNo, mut board: Board, version: u64) -> Parsed<Option<Board>> {
    match version.checked_sub(board.version()) {
        // It shows what the database doesn't have (any more).
        None => return Ok(None),
        Some(0) => return Ok(Some(board)),
        Some(behind) if behind > BOARD_ENTRIES_MAX => return Ok(None),
        Some(_) => {}
    }
    let text = format!("SELECT {LOG} FROM log WHERE event_no = ?1 AND version > ?2 ORDER BY version");
    let entries = look.all(&text, &[no.0.into(), (board.version() as i64).into()], rows::log)?;
    let follows = entries.iter().all(|entry| board.follow(entry).is_ok());
    Ok((follows && board.version() == version).then_some(board))
}

/// Reads the state of all seats, and where they are when that isn't known.
fn read(
    look: Look<'_>,
    no: EventNo,
    version: u64,
    seat_count: u32,
    layout: Option<Arc<Layout>>,
) -> Parsed<Board> {
    let mut drawing = Drawing::default();
    let mut seats = Vec::with_capacity(seat_count as usize);
    for first in (0..seat_count).step_by(BULK_ROWS_MAX) {
        let page = [no.0.into(), first.into(), (first + BULK_ROWS_MAX as u32).into()];
        let text = "SELECT price_level, status, allocation, version FROM seats
             WHERE event_no = ?1 AND ordinal >= ?2 AND ordinal < ?3 ORDER BY ordinal";
        let mut levels = Vec::new();
        look.all(text, &page, |row| {
            levels.push(row.number::<u16>(0)?);
            let allocation = row.number_or_none(2)?.map(AllocationNo);
            seats.push((row.number::<u8>(1)?, allocation, row.number::<u64>(3)?));
            Ok(())
        })?;
        if layout.is_none() {
            draw(look, &page, &mut drawing, &levels)?;
        }
    }
    let layout = layout.unwrap_or_else(|| Arc::new(drawing.finish()));
    let found = seats.len();
    Board::new(layout, version, seats).ok_or_else(|| StoreError::Corrupt {
        wanted: "a row for each seat of an event",
        found: format!("{found} rows for event {}", no.0),
    })
}

fn draw(
    look: Look<'_>,
    page: &[crate::look::Value<'_>],
    drawing: &mut Drawing,
    levels: &[u16],
) -> Parsed<()> {
    let mut levels = levels.iter().copied();
    let text = "SELECT seat_id, section, row_label, x, y, rank, accessible, companion_of FROM manifest_seats
         WHERE event_no = ?1 AND ordinal >= ?2 AND ordinal < ?3 ORDER BY ordinal";
    look.all(text, page, |row| {
        let missing = || StoreError::Corrupt { wanted: "a seat's state", found: "nothing".to_owned() };
        drawing.add(Printed {
            seat_id: row.text(0)?,
            section: row.number(1)?,
            row: row.text(2)?,
            price_level: levels.next().ok_or_else(missing)?,
            x: row.real(3)?,
            y: row.real(4)?,
            rank: row.number(5)?,
            accessible: row.truth(6)?,
            companion_of: row.text_or_none(7)?,
        });
        Ok(())
    })?;
    Ok(())
}
