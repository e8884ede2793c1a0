//! Following the log. What this process commits is handed to the followers at once, by the writer; what others commit on the
//! same database is read from the log a moment later, and handed to the same. So there is one way to learn what happened.

use std::collections::HashMap;
use std::sync::Mutex;

use onsale_core::id::EventNo;
use onsale_core::log::LogKind;
use onsale_store::{Committed, Store, StoreError};
use tokio::sync::Notify;

use crate::catalog::Catalog;
use crate::desk::HomeNo;
use crate::order_watch::OrderWatch;

/// Log entries read in one go: a few hundred KiB.
const TOGETHER_MAX: u32 = 2_000;
/// Log entries of an event that are followed one by one. Who has missed more looks at the whole anew, which is then less work.
const BEHIND_MAX: u64 = 20_000;

/// Those who follow commits.
pub(crate) struct Followers {
    pub(crate) catalog: Catalog,
    pub(crate) orders: OrderWatch,
    /// One for each home; rung when there may be something to pay there.
    pub(crate) payments: Vec<Notify>,
    /// One for each home; rung when the provider's word on some money there has changed: tickets may be due.
    pub(crate) moved_money: Vec<Notify>,
    /// How far each event's log has been handed over without a gap.
    positions: Mutex<HashMap<EventNo, u64>>,
}

impl Followers {
    /// For so many homes.
    pub(crate) fn new(homes: usize) -> Followers {
        Followers {
            catalog: Catalog::default(),
            orders: OrderWatch::default(),
            payments: (0..homes).map(|_| Notify::new()).collect(),
            moved_money: (0..homes).map(|_| Notify::new()).collect(),
            positions: Mutex::default(),
        }
    }

    /// Called by a home's writer after each commit, before anyone is answered.
    pub(crate) fn follow(&self, home: HomeNo, committed: &Committed) {
        self.hand_over(home, committed);
        let mut positions = self.positions.lock().expect("nothing panics under the positions' lock");
        for run in committed.log.chunk_by(|one, next| one.event == next.event) {
            let position = positions.entry(run[0].event).or_default();
            for entry in run {
                // Behind a gap is what another process wrote: this one's entry comes with it once more, which does no harm.
                if entry.version == *position + 1 {
                    *position = entry.version;
                }
            }
        }
    }

    fn hand_over(&self, home: HomeNo, committed: &Committed) {
        self.catalog.follow(committed);
        self.orders.follow(committed);
        if committed.log.iter().any(|entry| entry.kind.order().is_some()) {
            self.payments[home.0].notify_one();
        }
        if committed.log.iter().any(|entry| matches!(entry.kind, LogKind::OperationMoved { .. })) {
            self.moved_money[home.0].notify_one();
        }
    }

    /// Begins to follow a home where it is now. Before anything else is read of it: what is in memory is then never older.
    pub(crate) fn begin(&self, store: &Store) -> Result<(), StoreError> {
        let versions = store.read(|reader| reader.event_versions())?;
        self.positions.lock().expect("nothing panics under the positions' lock").extend(versions);
        Ok(())
    }

    /// Reads what others have committed since the last time. Blocks.
    pub(crate) fn catch_up(&self, home: HomeNo, store: &Store) -> Result<(), StoreError> {
        let versions = store.read(|reader| reader.event_versions())?;
        for (event, position, version) in self.behind(versions) {
            self.catch_up_with(home, store, event, position, version)?;
        }
        Ok(())
    }

    /// Events that have moved on: how far they were followed, and how far they are.
    fn behind(&self, versions: Vec<(EventNo, u64)>) -> Vec<(EventNo, u64, u64)> {
        let positions = self.positions.lock().expect("nothing panics under the positions' lock");
        let known = |(event, version)| (event, positions.get(&event).copied().unwrap_or(0), version);
        versions.into_iter().map(known).filter(|(_, position, version)| position < version).collect()
    }

    fn catch_up_with(
        &self,
        home: HomeNo,
        store: &Store,
        event: EventNo,
        mut position: u64,
        version: u64,
    ) -> Result<(), StoreError> {
        while position < version && version - position <= BEHIND_MAX {
            let log = store.read(|reader| reader.log_after(event, position, TOGETHER_MAX))?;
            // A log that begins later has been shortened.
            let whole = log.first().is_some_and(|entry| entry.version == position + 1);
            let Some(last) = log.last().map(|entry| entry.version).filter(|_| whole) else {
                break;
            };
            self.hand_over(home, &Committed { log });
            position = last;
            self.advance(event, position);
        }
        if position < version {
            self.catalog.jump(event, version);
            self.orders.wake_event(event);
            self.payments[home.0].notify_one();
            self.moved_money[home.0].notify_one();
            self.advance(event, version);
        }
        Ok(())
    }

    fn advance(&self, event: EventNo, to: u64) {
        let mut positions = self.positions.lock().expect("nothing panics under the positions' lock");
        let position = positions.entry(event).or_default();
        *position = (*position).max(to);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use onsale_core::id::{HoldId, OrderId, SeatOrdinal, Seed};
    use onsale_core::log::LogEntry;
    use onsale_core::time::Timestamp;
    use onsale_store::Options;

    use crate::clock::ServerClock;

    use super::*;

    const EVENT: EventNo = EventNo(7);

    fn committed(versions: &[u64]) -> Committed {
        let kind = LogKind::HoldPlaced { hold: HoldId(1), seats: vec![SeatOrdinal(0)], ga: vec![] };
        let entry = |version: &u64| LogEntry {
            event: EVENT,
            version: *version,
            at: Timestamp::ZERO,
            kind: kind.clone(),
        };
        Committed { log: versions.iter().map(entry).collect() }
    }

    fn position(followers: &Followers) -> Option<u64> {
        followers.positions.lock().unwrap().get(&EVENT).copied()
    }

    #[test]
    fn own_commits_move_on_up_to_the_first_gap() {
        let followers = Followers::new(1);
        followers.follow(HomeNo::MAIN, &committed(&[1, 2]));
        assert_eq!(position(&followers), Some(2));
        followers.follow(HomeNo::MAIN, &committed(&[4, 5]));
        assert_eq!(position(&followers), Some(2), "3 is another process's");
        assert_eq!(followers.behind(vec![(EVENT, 5), (EventNo(8), 1)]), [(EVENT, 2, 5), (EventNo(8), 0, 1)]);
        followers.advance(EVENT, 5);
        followers.follow(HomeNo::MAIN, &committed(&[5, 6]));
        assert_eq!((position(&followers), followers.behind(vec![(EVENT, 6)])), (Some(6), Vec::new()));
    }

    /// What can't be followed entry by entry, since it is too much or no longer there, is looked at anew by whoever cares.
    #[test]
    fn who_has_missed_too_much_jumps() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::new(folder.path().to_owned(), Arc::new(ServerClock::system()));
        let store = Store::open(options, |_| {}).unwrap();
        let order: OrderId = Seed::new(EVENT, Timestamp::ZERO, 1).mint();
        for version in [BEHIND_MAX + 10, 3] {
            let followers = Followers::new(1);
            let mut change = followers.orders.next_change(order).unwrap();
            let other: OrderId = Seed::new(EventNo(8), Timestamp::ZERO, 1).mint();
            let mut other = followers.orders.next_change(other).unwrap();
            followers.catch_up_with(HomeNo::MAIN, &store, EVENT, 0, version).unwrap();
            assert_eq!(position(&followers), Some(version));
            assert!(change.try_recv().is_ok(), "whoever waits for an order of the event looks again");
            assert!(other.try_recv().is_err());
        }
    }
}
