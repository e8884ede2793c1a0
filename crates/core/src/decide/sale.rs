//! The frame of a sale: the event, its seats, its prices, and whether it sells.

use std::sync::Arc;

use crate::command::Outcome;
use crate::event::{Event, EventStatus, PriceTable};
use crate::id::{EventNo, SeatOrdinal};
use crate::log::LogKind;
use crate::manifest::Manifest;
use crate::refusal::Refusal;
use crate::seat_map::SeatStatus;
use crate::snapshot::{Bulk, Snapshot};

pub(super) fn create_event(state: &mut Snapshot, event: &Event) -> Outcome {
    let no = event.no();
    if state.events.get(&no).is_some() {
        return Outcome::Refused(Refusal::NotReady("the event's number is taken: draw another"));
    }
    state.events.insert(no, event.clone());
    state.append(no, LogKind::EventCreated);
    Outcome::EventCreated
}

pub(super) fn replace_manifest(state: &mut Snapshot, no: EventNo, manifest: &Arc<Manifest>) -> Outcome {
    let Some(event) = state.events.get(&no) else {
        return Outcome::Refused(Refusal::NotFound);
    };
    if event.status != EventStatus::Draft {
        return Outcome::Refused(Refusal::ManifestFrozen);
    }
    let version = event.manifest_version + 1;
    // Prices belong to the levels of a manifest: with a new one they are to be set anew.
    let had_prices = event.price_version > 0;
    let price_version = event.price_version + u32::from(had_prices);
    let event = state.events.change(&no);
    event.manifest_version = version;
    event.seat_count = manifest.seats.len() as u32;
    event.price_level_count = manifest.price_levels.len() as u16;
    event.area_count = manifest.ga_areas.len() as u16;
    event.price_version = price_version;
    state.bulk.push(Bulk::Manifest(no, version, Arc::clone(manifest)));
    if had_prices {
        let unpriced = PriceTable(vec![None; manifest.price_levels.len()].into());
        state.prices.insert((no, price_version), unpriced.clone());
        state.bulk.push(Bulk::Prices(no, price_version, unpriced));
    }
    state.append(no, LogKind::ManifestReplaced { manifest_version: version });
    Outcome::ManifestReplaced { version }
}

pub(super) fn set_prices(
    state: &mut Snapshot,
    no: EventNo,
    manifest_version: u32,
    levels: &[(u16, i64)],
) -> Outcome {
    let Some(event) = state.events.get(&no) else {
        return Outcome::Refused(Refusal::NotFound);
    };
    if event.manifest_version != manifest_version {
        return Outcome::Refused(Refusal::ManifestChanged);
    }
    let mut prices: Vec<Option<i64>> = match state.prices.get(&(no, event.price_version)) {
        Some(table) if event.price_version > 0 => table.0.to_vec(),
        _ => vec![None; event.price_level_count as usize],
    };
    for (level, amount_minor) in levels {
        match prices.get_mut(*level as usize) {
            Some(price) => *price = Some(*amount_minor),
            None => return Outcome::Refused(Refusal::NotFound),
        }
    }
    let price_version = event.price_version + 1;
    let prices = PriceTable(prices.into());
    state.events.change(&no).price_version = price_version;
    state.prices.insert((no, price_version), prices.clone());
    state.bulk.push(Bulk::Prices(no, price_version, prices));
    state.append(no, LogKind::PricesSet { price_version });
    Outcome::PricesSet { price_version }
}

pub(super) fn set_on_sale(state: &mut Snapshot, no: EventNo, status: EventStatus, actor: &str) -> Outcome {
    let Some(event) = state.events.get(&no) else {
        return Outcome::Refused(Refusal::NotFound);
    };
    match status {
        EventStatus::Draft => {
            return Outcome::Refused(Refusal::NotReady("an event can't become a draft again"));
        }
        EventStatus::Open => {
            if event.seat_count == 0 && event.area_count == 0 {
                return Outcome::Refused(Refusal::NotReady(
                    "the event has nothing to sell: put a manifest first",
                ));
            }
            let prices = state.prices.get(&(no, event.price_version));
            let is_whole = |prices: &PriceTable| {
                prices.0.len() == event.price_level_count as usize && prices.0.iter().all(Option::is_some)
            };
            if !prices.is_some_and(is_whole) {
                return Outcome::Refused(Refusal::NotReady("not every price level has a price"));
            }
        }
        EventStatus::Paused | EventStatus::Closed if event.status == EventStatus::Draft => {
            return Outcome::Refused(Refusal::NotReady("the event has never been opened"));
        }
        EventStatus::Paused | EventStatus::Closed => {}
    }
    if event.status != status {
        state.events.change(&no).status = status;
        state.append(no, LogKind::OnSaleSet { status, actor: actor.to_owned() });
    }
    Outcome::OnSaleSet
}

pub(super) fn set_seats_status(
    state: &mut Snapshot,
    no: EventNo,
    manifest_version: u32,
    seats: &[SeatOrdinal],
    not_for_sale: bool,
    actor: &str,
) -> Outcome {
    let Some(event) = state.events.get(&no) else {
        return Outcome::Refused(Refusal::NotFound);
    };
    if event.manifest_version != manifest_version {
        return Outcome::Refused(Refusal::ManifestChanged);
    }
    let mut taken = Vec::new();
    let mut to_change = Vec::new();
    for ordinal in seats {
        match state.seats.get(&(no, *ordinal)).map(|seat| seat.status) {
            None => return Outcome::Refused(Refusal::NotFound),
            // A held seat is refused even when its hold has run out: the expirer comes first.
            Some(SeatStatus::Held { .. } | SeatStatus::Sold { .. }) => taken.push(*ordinal),
            Some(SeatStatus::Available) if not_for_sale => to_change.push(*ordinal),
            Some(SeatStatus::NotForSale) if !not_for_sale => to_change.push(*ordinal),
            Some(SeatStatus::Available | SeatStatus::NotForSale) => {}
        }
    }
    if !taken.is_empty() {
        return Outcome::Refused(Refusal::SeatUnavailable(taken));
    }
    if to_change.is_empty() {
        return Outcome::SeatsStatusSet;
    }

    // Past this line all seats change.
    let log = LogKind::SeatsStatusSet { seats: to_change.clone(), not_for_sale, actor: actor.to_owned() };
    let version = state.append(no, log);
    for ordinal in to_change {
        let seat = state.seats.change(&(no, ordinal));
        seat.status = if not_for_sale { SeatStatus::NotForSale } else { SeatStatus::Available };
        // What is kept from sale is kept from everyone: it comes back as everyone's.
        seat.allocation = None;
        seat.version = version;
    }
    Outcome::SeatsStatusSet
}
