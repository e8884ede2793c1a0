//! What the server remembers of its events: description, manifest, prices, and the seat map. All of it is read from the
//! database and follows its log; all of it may be behind, and none of it decides anything.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use onsale_core::event::Event;
use onsale_core::id::{EventNo, SeatOrdinal};
use onsale_core::log::LogKind;
use onsale_store::{Committed, ManifestView, Reader, Store, StoreError, fail_point};

use crate::seat_map::{SeatMap, Taken};

/// Log entries read in one go when a map has fallen behind; past that it is read anew.
const CATCH_UP_MAX: u32 = 10_000;

/// An event as last read.
pub(crate) struct Sale {
    pub(crate) event: Event,
    pub(crate) manifest: Option<Arc<ManifestIndex>>,
    /// Price of each level in minor units.
    pub(crate) prices: Vec<Option<i64>>,
}

/// A manifest, and the way from a seat's id to its ordinal.
pub(crate) struct ManifestIndex {
    pub(crate) view: ManifestView,
    ordinals: HashMap<Box<str>, SeatOrdinal>,
}

impl ManifestIndex {
    fn new(view: ManifestView) -> ManifestIndex {
        let seats = view.manifest.seats.iter().enumerate();
        let ordinals =
            seats.map(|(ordinal, seat)| (seat.seat_id.as_str().into(), SeatOrdinal(ordinal as u32)));
        ManifestIndex { ordinals: ordinals.collect(), view }
    }

    /// The ordinal of a seat.
    pub(crate) fn ordinal(&self, seat_id: &str) -> Option<SeatOrdinal> {
        self.ordinals.get(seat_id).copied()
    }

    /// The organiser's id of a seat.
    pub(crate) fn seat_id(&self, ordinal: SeatOrdinal) -> &str {
        self.view.manifest.seats.get(ordinal.0 as usize).map_or("", |seat| &seat.seat_id)
    }

    /// The name of a price level.
    pub(crate) fn price_level(&self, level: u16) -> &str {
        self.view.manifest.price_levels.get(level as usize).map_or("", |level| &level.name)
    }
}

/// One event's entry.
struct Entry {
    no: EventNo,
    sale: RwLock<Option<Arc<Sale>>>,
    /// The description, the prices or the seats have changed since they were read.
    stale: AtomicBool,
    map: Mutex<Option<SeatMap>>,
    /// The map has missed entries.
    behind: AtomicBool,
}

/// The events of a server.
#[derive(Default)]
pub(crate) struct Catalog {
    entries: RwLock<HashMap<EventNo, Arc<Entry>>>,
}

impl Catalog {
    fn entry(&self, no: EventNo) -> Option<Arc<Entry>> {
        self.entries.read().expect("nothing panics under the catalog's lock").get(&no).cloned()
    }

    /// Follows a commit. Called by the writer before anyone is answered.
    pub(crate) fn follow(&self, committed: &Committed) {
        let mut last: Option<Arc<Entry>> = None;
        for log in &committed.log {
            if last.as_ref().is_none_or(|entry| entry.no != log.event) {
                last = self.entry(log.event);
            }
            let Some(entry) = &last else {
                continue;
            };
            if matches!(
                log.kind,
                LogKind::ManifestReplaced { .. } | LogKind::PricesSet { .. } | LogKind::OnSaleSet { .. }
            ) {
                entry.stale.store(true, Ordering::Release);
            }
            let mut map = entry.map.lock().expect("nothing panics under a map's lock");
            if let Some(map) = map.as_mut()
                && map.take(log) == Taken::Gap
            {
                // Another process wrote in between: seats, or anything else.
                entry.behind.store(true, Ordering::Release);
                entry.stale.store(true, Ordering::Release);
            }
        }
    }

    /// Follows what other processes have committed: marks what the database has moved past.
    pub(crate) fn follow_others(&self, versions: &[(EventNo, u64)]) {
        for (no, version) in versions {
            let Some(entry) = self.entry(*no) else {
                continue;
            };
            let shown = {
                let map = entry.map.lock().expect("nothing panics under a map's lock");
                map.as_ref().map(|map| map.version)
            };
            if shown.is_some_and(|shown| shown < *version) {
                entry.behind.store(true, Ordering::Release);
            }
            let read = entry.sale.read().expect("nothing panics under a sale's lock").clone();
            if read.is_some_and(|sale| {
                sale.event.version < *version && shown.is_none_or(|shown| shown < *version)
            }) {
                entry.stale.store(true, Ordering::Release);
            }
        }
    }

    /// An event as last read, if that is still what the database says. Never blocks.
    pub(crate) fn fresh(&self, no: EventNo) -> Option<Arc<Sale>> {
        let entry = self.entry(no)?;
        if entry.stale.load(Ordering::Acquire) {
            return None;
        }
        entry.sale.read().expect("nothing panics under a sale's lock").clone()
    }

    /// Says that what was read of an event can't be right.
    pub(crate) fn doubt(&self, no: EventNo) {
        if let Some(entry) = self.entry(no) {
            entry.stale.store(true, Ordering::Release);
        }
    }

    /// An event, read from the database when need be. Blocks.
    pub(crate) fn load(&self, store: &Store, no: EventNo) -> Result<Option<Arc<Sale>>, StoreError> {
        if let Some(sale) = self.fresh(no) {
            return Ok(Some(sale));
        }
        let before = self.entry(no);
        if let Some(entry) = &before {
            // Cleared before the reading: what changes during it marks the entry again.
            entry.stale.store(false, Ordering::Release);
        }
        let known = before
            .as_ref()
            .and_then(|entry| entry.sale.read().expect("nothing panics under a sale's lock").clone());
        // What could not be read is still to be read.
        let read =
            store.read(|reader| read_sale(reader, no, known.as_deref())).inspect_err(|_| self.doubt(no));
        let Some(sale) = read? else {
            return Ok(None);
        };
        let sale = Arc::new(sale);
        let entry = match before {
            Some(entry) => entry,
            None => {
                let mut entries = self.entries.write().expect("nothing panics under the catalog's lock");
                let fresh = || {
                    Arc::new(Entry {
                        no,
                        sale: RwLock::new(None),
                        stale: AtomicBool::new(false),
                        map: Mutex::new(None),
                        behind: AtomicBool::new(false),
                    })
                };
                Arc::clone(entries.entry(no).or_insert_with(fresh))
            }
        };
        let mut kept = entry.sale.write().expect("nothing panics under a sale's lock");
        // Whoever read earlier may come later: what has been read since stays.
        let newest = match kept.take() {
            Some(since) if since.event.version > sale.event.version => since,
            _ => sale,
        };
        *kept = Some(Arc::clone(&newest));
        Ok(Some(newest))
    }

    /// Looks at an event's seat map, read from the database or caught up with its log when need be. Blocks.
    pub(crate) fn with_map<R>(
        &self,
        store: &Store,
        no: EventNo,
        look: impl FnOnce(&mut SeatMap) -> R,
    ) -> Result<Option<R>, StoreError> {
        if self.load(store, no)?.is_none() {
            return Ok(None);
        }
        let Some(entry) = self.entry(no) else {
            return Ok(None);
        };
        // Held while reading, so that the writer's next entry waits for the map it belongs to.
        let mut map = entry.map.lock().expect("nothing panics under a map's lock");
        if entry.behind.swap(false, Ordering::AcqRel)
            && let Some(stale) = map.as_mut()
        {
            let missed = store.read(|reader| reader.seat_changes(entry.no, stale.version, CATCH_UP_MAX));
            match missed.inspect_err(|_| entry.behind.store(true, Ordering::Release))? {
                Some(missed) if !missed.replaced => stale.catch_up(missed),
                _ => *map = None,
            }
        }
        if map.is_none() {
            let digits = store.read(|reader| {
                fail_point!("catalog.map", return Err(StoreError::Busy));
                reader.seat_digits(entry.no)
            })?;
            *map = digits.map(SeatMap::new);
            // The map may now be ahead of what was read of the event, and would hide that from `follow_others`.
            entry.stale.store(true, Ordering::Release);
        }
        Ok(map.as_mut().map(look))
    }
}

fn read_sale(reader: &Reader<'_>, no: EventNo, known: Option<&Sale>) -> Result<Option<Sale>, StoreError> {
    let Some(event) = reader.event(no)? else {
        return Ok(None);
    };
    // The seats are the large part: they are read only when they changed.
    let same = known.and_then(|known| known.manifest.clone()).filter(|manifest| {
        manifest.view.version == event.manifest_version && manifest.view.price_version == event.price_version
    });
    let manifest = match same {
        Some(manifest) => Some(manifest),
        None => reader.manifest(no)?.map(ManifestIndex::new).map(Arc::new),
    };
    let prices = manifest.as_ref().map(|manifest| manifest.view.prices.clone()).unwrap_or_default();
    fail_point!("catalog.sale", return Err(StoreError::Busy));
    Ok(Some(Sale { event, manifest, prices }))
}
