//! What the server remembers of its events: description, manifest, prices, and the seat map. All of it is read from the
//! database and follows its log; all of it may be behind, and none of it decides anything.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use onsale_core::event::Event;
use onsale_core::id::{AreaNo, EventNo, SeatOrdinal};
use onsale_core::log::LogKind;
use onsale_store::{Committed, ManifestView, Reader, Store, StoreError, fail_point};

use crate::seat_map::SeatMap;

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

    /// The position of a standing area.
    pub(crate) fn area(&self, ga_area: &str) -> Option<AreaNo> {
        let found = self.view.manifest.ga_areas.iter().position(|area| area.ga_area == ga_area);
        found.map(|position| AreaNo(position as u16))
    }

    /// The organiser's id of a standing area.
    pub(crate) fn ga_area(&self, area: AreaNo) -> &str {
        self.view.manifest.ga_areas.get(area.0 as usize).map_or("", |area| &area.ga_area)
    }

    /// The organiser's id of a seat.
    pub(crate) fn seat_id(&self, ordinal: SeatOrdinal) -> &str {
        self.view.manifest.seats.get(ordinal.0 as usize).map_or("", |seat| &seat.seat_id)
    }

    /// The index of a price level.
    pub(crate) fn level(&self, name: &str) -> Option<u16> {
        let found = self.view.manifest.price_levels.iter().position(|level| level.name == name);
        found.map(|index| index as u16)
    }

    /// The index of a section.
    pub(crate) fn section(&self, name: &str) -> Option<u16> {
        let found = self.view.manifest.sections.iter().position(|section| section == name);
        found.map(|index| index as u16)
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
    /// The newest version that this process has heard of; changed under the map's lock. A map that isn't there yet has missed
    /// entries.
    heard_of: AtomicU64,
    /// Held by whoever reads the map from the database, while others wait for what is read. Not the map's own lock: the writer
    /// needs that one, and must never wait for a reading.
    reading: Arc<tokio::sync::Mutex<()>>,
}

impl Entry {
    fn new(no: EventNo) -> Entry {
        Entry {
            no,
            sale: RwLock::new(None),
            stale: AtomicBool::new(false),
            map: Mutex::new(None),
            heard_of: AtomicU64::new(0),
            reading: Arc::default(),
        }
    }

    fn last_sale(&self) -> Option<Arc<Sale>> {
        self.sale.read().expect("nothing panics under a sale's lock").clone()
    }
}

/// The events of a server.
#[derive(Default)]
pub(crate) struct Catalog {
    entries: RwLock<HashMap<EventNo, Arc<Entry>>>,
    /// Each event as it was last seen by anyone here: what is shown while its home is away.
    seen: RwLock<HashMap<EventNo, Event>>,
}

impl Catalog {
    fn entry(&self, no: EventNo) -> Option<Arc<Entry>> {
        self.entries.read().expect("nothing panics under the catalog's lock").get(&no).cloned()
    }

    /// Called after each commit, before anyone is answered, and with what other processes committed.
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
            entry.heard_of.fetch_max(log.version, Ordering::Relaxed);
            if let Some(map) = map.as_mut() {
                // One that leaves a gap isn't taken, and whoever looks next reads what was missed.
                map.take(log);
            }
        }
    }

    /// An event has moved on to a version in ways that nobody followed.
    pub(crate) fn jump(&self, no: EventNo, version: u64) {
        if let Some(entry) = self.entry(no) {
            let _map = entry.map.lock().expect("nothing panics under a map's lock");
            entry.heard_of.fetch_max(version, Ordering::Relaxed);
            entry.stale.store(true, Ordering::Release);
        }
    }

    /// An event has moved to another home: its map is to be read anew, since it is of another epoch.
    pub(crate) fn moved(&self, no: EventNo) {
        if let Some(entry) = self.entry(no) {
            *entry.map.lock().expect("nothing panics under a map's lock") = None;
            entry.stale.store(true, Ordering::Release);
        }
    }

    /// The events that are kept here.
    pub(crate) fn numbers(&self) -> Vec<EventNo> {
        self.entries.read().expect("nothing panics under the catalog's lock").keys().copied().collect()
    }

    /// Keeps events as they were read.
    pub(crate) fn saw<'a>(&self, events: impl IntoIterator<Item = &'a Event>) {
        let mut seen = self.seen.write().expect("nothing panics under the catalog's lock");
        for event in events {
            if seen.get(&event.no()).is_none_or(|known| known.version < event.version) {
                seen.insert(event.no(), event.clone());
            }
        }
    }

    /// An event as it was last seen.
    pub(crate) fn last_seen(&self, no: EventNo) -> Option<Event> {
        self.seen.read().expect("nothing panics under the catalog's lock").get(&no).cloned()
    }

    /// All events that were ever seen and that fit.
    pub(crate) fn all_seen(&self, fits: impl Fn(EventNo) -> bool) -> Vec<Event> {
        let seen = self.seen.read().expect("nothing panics under the catalog's lock");
        seen.values().filter(|event| fits(event.no())).cloned().collect()
    }

    /// An event as last read, if that is still what the database says. Never blocks.
    pub(crate) fn fresh(&self, no: EventNo) -> Option<Arc<Sale>> {
        let entry = self.entry(no)?;
        if entry.stale.load(Ordering::Acquire) {
            return None;
        }
        entry.last_sale()
    }

    /// An event as last read, whatever has become of it since.
    pub(crate) fn last_read(&self, no: EventNo) -> Option<Arc<Sale>> {
        self.entry(no)?.last_sale()
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
        // There before the reading: what changes during it marks the entry.
        let entry = {
            let mut entries = self.entries.write().expect("nothing panics under the catalog's lock");
            Arc::clone(entries.entry(no).or_insert_with(|| Arc::new(Entry::new(no))))
        };
        entry.stale.store(false, Ordering::Release);
        let known = entry.last_sale();
        // What could not be read is still to be read.
        let read =
            store.read(|reader| read_sale(reader, no, known.as_deref())).inspect_err(|_| self.doubt(no));
        let sale = match read {
            Ok(Some(sale)) => Arc::new(sale),
            nothing => {
                self.forget_unread(no);
                return nothing.map(|_| None);
            }
        };
        self.saw([&sale.event]);
        let mut kept = entry.sale.write().expect("nothing panics under a sale's lock");
        // Whoever read earlier may come later: what has been read since stays.
        let newest = match kept.take() {
            Some(since) if since.event.version > sale.event.version => since,
            _ => sale,
        };
        *kept = Some(Arc::clone(&newest));
        Ok(Some(newest))
    }

    /// Forgets the entry of an event that could never be read: anyone may ask for any number.
    fn forget_unread(&self, no: EventNo) {
        let mut entries = self.entries.write().expect("nothing panics under the catalog's lock");
        if entries.get(&no).is_some_and(|entry| entry.last_sale().is_none()) {
            entries.remove(&no);
        }
    }

    /// Looks at an event's seat map if it shows all that this process has heard of, or at least what was `wanted`. Otherwise says
    /// which version is wanted.
    pub(crate) fn map_now<R>(
        &self,
        no: EventNo,
        wanted: Option<u64>,
        look: impl FnOnce(&mut SeatMap) -> R,
    ) -> Result<R, u64> {
        let Some(entry) = self.entry(no) else {
            return Err(0);
        };
        let mut map = entry.map.lock().expect("nothing panics under a map's lock");
        let wanted = wanted.unwrap_or_else(|| entry.heard_of.load(Ordering::Relaxed));
        map.as_mut().filter(|map| map.version >= wanted).map(look).ok_or(wanted)
    }

    /// Whose turn it is to read an event's map: one reading serves all who waited for it.
    pub(crate) fn map_reading(&self, no: EventNo) -> Arc<tokio::sync::Mutex<()>> {
        self.entry(no).map(|entry| Arc::clone(&entry.reading)).unwrap_or_default()
    }

    /// Looks at an event's seat map as it is, however old.
    pub(crate) fn map_as_it_is<R>(&self, no: EventNo, look: impl FnOnce(&mut SeatMap) -> R) -> Option<R> {
        let entry = self.entry(no)?;
        let mut map = entry.map.lock().expect("nothing panics under a map's lock");
        map.as_mut().map(look)
    }

    /// Reads an event's seat map from the database, or what it has missed of the log. Blocks. Two that do so at once do it
    /// twice, and come to the same.
    pub(crate) fn bring_up_to_date(&self, store: &Store, no: EventNo) -> Result<(), StoreError> {
        let Some(entry) = self.entry(no) else {
            return Ok(());
        };
        let (version, heard_of) = {
            let map = entry.map.lock().expect("nothing panics under a map's lock");
            (map.as_ref().map(|map| map.version), entry.heard_of.load(Ordering::Relaxed))
        };
        if let Some(version) = version {
            // It was followed meanwhile.
            if version >= heard_of {
                return Ok(());
            }
            let missed = store.read(|reader| reader.seat_changes(no, version, CATCH_UP_MAX))?;
            if let Some(missed) = missed.filter(|missed| !missed.replaced && missed.version >= heard_of) {
                let mut map = entry.map.lock().expect("nothing panics under a map's lock");
                if let Some(map) = map.as_mut() {
                    map.catch_up(missed);
                    return Ok(());
                }
            }
        }
        let digits = store.read(|reader| {
            fail_point!("catalog.map", return Err(StoreError::Busy));
            reader.seat_digits(no)
        })?;
        let mut map = entry.map.lock().expect("nothing panics under a map's lock");
        match digits.map(SeatMap::new) {
            // What was followed while this was read is newer.
            Some(read) if map.as_ref().is_some_and(|shown| shown.version > read.version) => {}
            read => *map = read,
        }
        Ok(())
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
