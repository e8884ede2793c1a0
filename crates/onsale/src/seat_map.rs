//! The seat map in memory: a digit for each seat, fed by the log, shown to anyone, and never asked whether a seat may
//! be sold.

use std::collections::VecDeque;
use std::sync::Arc;

use onsale_core::id::SeatOrdinal;
use onsale_core::log::{LogEntry, LogKind};
use onsale_store::{SeatChanges, SeatDigits};

use crate::ga_map::GaMap;

/// Changes kept for clients that ask what they missed: about ten seconds of a very busy sale.
const CHANGES_KEPT_MAX: usize = 131_072;

/// The digits of one event at a version, and how they came about lately.
#[derive(Debug)]
pub(crate) struct SeatMap {
    pub(crate) version: u64,
    pub(crate) epoch: u64,
    digits: Vec<u8>,
    /// Version, ordinal, digit; in order.
    changes: VecDeque<(u64, SeatOrdinal, u8)>,
    /// Changes after this version are all in `changes`.
    known_since: u64,
    /// The digits as shown, until the next change.
    shown: Option<Arc<str>>,
    /// The standing areas.
    pub(crate) places: GaMap,
}

/// What became of an entry that was offered to the map.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// The map shows it, now or already.
    Shown,
    /// The map has missed entries before it and must read them.
    Gap,
}

impl SeatMap {
    pub(crate) fn new(read: SeatDigits) -> SeatMap {
        SeatMap {
            version: read.version,
            epoch: read.epoch,
            digits: read.digits,
            changes: VecDeque::new(),
            known_since: read.version,
            shown: None,
            places: GaMap::new(&read.buckets),
        }
    }

    /// Takes the next entry of the log.
    pub(crate) fn take(&mut self, entry: &LogEntry) -> Taken {
        if entry.version <= self.version {
            return Taken::Shown;
        }
        // A new layout has other seats: only the database knows them.
        if entry.version > self.version + 1 || matches!(entry.kind, LogKind::ManifestReplaced { .. }) {
            return Taken::Gap;
        }
        self.version = entry.version;
        entry.kind.seat_digits().for_each(|(seat, digit)| self.change(entry.version, seat, digit));
        self.places.take(&entry.kind);
        Taken::Shown
    }

    /// Takes what was read of the log after this map's version.
    pub(crate) fn catch_up(&mut self, read: SeatChanges) {
        for (version, seat, digit) in read.changes {
            if version > self.version {
                self.change(version, seat, digit);
            }
        }
        for (version, kind) in read.places {
            if version > self.version {
                self.places.take(&kind);
            }
        }
        self.version = self.version.max(read.version);
    }

    fn change(&mut self, version: u64, seat: SeatOrdinal, digit: u8) {
        let Some(shown) = self.digits.get_mut(seat.0 as usize) else {
            return;
        };
        *shown = b'0' + digit;
        self.shown = None;
        self.changes.push_back((version, seat, digit));
        while self.changes.len() > CHANGES_KEPT_MAX {
            // Whoever has less than this version can't be told all that happened since.
            if let Some((version, ..)) = self.changes.pop_front() {
                self.known_since = version;
            }
        }
    }

    /// The digits as text.
    pub(crate) fn states(&mut self) -> Arc<str> {
        let digits = &self.digits;
        Arc::clone(self.shown.get_or_insert_with(|| String::from_utf8_lossy(digits).into()))
    }

    /// The last word on each seat that changed after a version; `None` when that is too long ago, or never was.
    pub(crate) fn since(&self, version: u64) -> Option<Vec<(SeatOrdinal, u8)>> {
        if version < self.known_since || version > self.version {
            return None;
        }
        let begin = self.changes.partition_point(|(changed, ..)| *changed <= version);
        let mut last: std::collections::BTreeMap<SeatOrdinal, u8> = std::collections::BTreeMap::new();
        for (_, seat, digit) in self.changes.range(begin..) {
            last.insert(*seat, *digit);
        }
        Some(last.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use onsale_core::id::{EventNo, HoldId};
    use onsale_core::time::Timestamp;

    use super::*;

    fn entry(version: u64, kind: LogKind) -> LogEntry {
        LogEntry { event: EventNo(1), version, at: Timestamp::ZERO, kind }
    }

    fn held(seats: &[u32]) -> LogKind {
        let seats = seats.iter().copied().map(SeatOrdinal).collect();
        LogKind::HoldPlaced { hold: HoldId(1), seats, ga: Vec::new() }
    }

    fn read(version: u64, digits: &[u8]) -> SeatDigits {
        SeatDigits { version, epoch: 1, manifest_version: 1, digits: digits.to_vec(), buckets: Vec::new() }
    }

    #[test]
    fn entries_are_taken_in_order_and_gaps_are_noticed() {
        let mut map = SeatMap::new(read(4, b"0000"));
        assert_eq!(map.take(&entry(4, held(&[0]))), Taken::Shown);
        assert_eq!(&*map.states(), "0000", "an entry the map was read with changes nothing");
        assert_eq!(map.take(&entry(5, held(&[1, 2]))), Taken::Shown);
        assert_eq!(&*map.states(), "0110");
        assert_eq!(map.take(&entry(7, held(&[3]))), Taken::Gap);
        assert_eq!(&*map.states(), "0110", "a gap is read first");
        let changes = vec![(6, SeatOrdinal(1), 0), (7, SeatOrdinal(3), 1)];
        map.catch_up(SeatChanges { version: 7, changes, places: Vec::new(), replaced: false });
        assert_eq!((&*map.states(), map.version), ("0011", 7));
        assert_eq!(map.since(5), Some(vec![(SeatOrdinal(1), 0), (SeatOrdinal(3), 1)]));
        assert_eq!((map.since(3), map.since(8)), (None, None), "before the map's time, and after now");
        assert_eq!(map.take(&entry(8, LogKind::ManifestReplaced { manifest_version: 2 })), Taken::Gap);
    }

    #[test]
    fn only_so_many_changes_are_kept() {
        let mut map = SeatMap::new(read(0, b"00"));
        for version in 1..=(CHANGES_KEPT_MAX as u64 + 10) {
            map.take(&entry(version, held(&[(version % 2) as u32])));
        }
        assert_eq!(map.since(9), None);
        assert_eq!(map.since(10), Some(vec![(SeatOrdinal(0), 1), (SeatOrdinal(1), 1)]));
    }
}
