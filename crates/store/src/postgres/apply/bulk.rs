//! Writing what is too large for a snapshot's rows: the seats of a manifest, the prices of a version.

use onsale_core::event::PriceTable;
use onsale_core::id::EventNo;
use onsale_core::manifest::Manifest;
use onsale_core::seat_map::SeatStatus;

use crate::limits::BULK_ROWS_MAX;
use crate::look::Parsed;
use crate::postgres::Link;
use crate::postgres::columns::{Rows, cells};

use super::tables::*;
use super::write_rows;

pub(super) fn prices(link: &Link, no: EventNo, version: u32, table: &PriceTable) -> Parsed<()> {
    let mut new = Rows::new(&PRICES_NEW);
    for (level, amount) in (0u32..).zip(table.0.iter()) {
        new.push(cells![no.0, version, level, *amount]);
    }
    write_rows(link, [new])
}

/// Lays out an event's seats anew. The event is a draft, so none of them has an owner.
pub(super) fn manifest(link: &Link, no: EventNo, manifest: &Manifest) -> Parsed<()> {
    for table in ["seats", "manifest_seats", "sections", "price_levels", "ga_areas", "ga_buckets"] {
        link.batch(&format!("DELETE FROM {table} WHERE event_no = {}", no.0))?;
    }
    let mut levels = Rows::new(&PRICE_LEVELS_NEW);
    for (level, row) in (0u32..).zip(&manifest.price_levels) {
        levels.push(cells![no.0, level, &row.name, row.color.as_deref()]);
    }
    let mut sections = Rows::new(&SECTIONS_NEW);
    for (section, name) in (0u32..).zip(&manifest.sections) {
        sections.push(cells![no.0, section, name]);
    }
    let mut areas = Rows::new(&GA_AREAS_NEW);
    for (position, area) in (0u32..).zip(&manifest.ga_areas) {
        areas.push(cells![no.0, position, &area.ga_area, area.capacity, area.price_level]);
    }
    let mut buckets = Rows::new(&GA_BUCKETS_NEW);
    for (position, area) in (0u32..).zip(&manifest.ga_areas) {
        for (bucket, capacity) in (0u32..).zip(area.bucket_capacities()) {
            buckets.push(cells![no.0, position, bucket, capacity, 0u32, 0u32, None::<u32>, 0u64]);
        }
    }
    write_rows(link, [levels, sections, areas, buckets])?;
    for (chunk, first) in manifest.seats.chunks(BULK_ROWS_MAX).zip((0u32..).step_by(BULK_ROWS_MAX)) {
        let (mut printed, mut state) = (Rows::new(&MANIFEST_SEATS_NEW), Rows::new(&SEATS_NEW));
        for (ordinal, seat) in (first..).zip(chunk) {
            printed.push(cells![
                no.0,
                ordinal,
                &seat.seat_id,
                seat.section,
                &seat.row,
                &seat.seat,
                seat.x,
                seat.y,
                seat.accessible,
                seat.companion_of.as_deref(),
                seat.restricted_view,
                seat.rank,
            ]);
            let status = if seat.not_for_sale { SeatStatus::NotForSale } else { SeatStatus::Available };
            state.push(cells![no.0, ordinal, status.digit(), seat.price_level, 0u64]);
        }
        write_rows(link, [printed, state])?;
    }
    Ok(())
}
