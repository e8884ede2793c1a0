//! Writing what is too large for a snapshot's rows: the seats of a manifest, the prices of a version.

use onsale_core::event::PriceTable;
use onsale_core::id::EventNo;
use onsale_core::manifest::Manifest;
use onsale_core::seat_map::SeatStatus;
use rusqlite::{Connection, params};

use crate::error::StoreError;

pub(super) fn prices(
    db: &Connection,
    no: EventNo,
    version: u32,
    table: &PriceTable,
) -> Result<(), StoreError> {
    let mut statement = db.prepare_cached("INSERT INTO prices VALUES (?1, ?2, ?3, ?4)")?;
    for (level, amount) in table.0.iter().enumerate() {
        statement.execute(params![no.0, version, level as i64, amount])?;
    }
    Ok(())
}

/// Lays out an event's seats anew. The event is a draft, so none of them has an owner.
pub(super) fn manifest(db: &Connection, no: EventNo, manifest: &Manifest) -> Result<(), StoreError> {
    for table in ["seats", "manifest_seats", "sections", "price_levels", "ga_areas", "ga_buckets"] {
        db.execute(&format!("DELETE FROM {table} WHERE event_no = ?1"), [no.0])?;
    }
    let mut statement = db.prepare_cached("INSERT INTO price_levels VALUES (?1, ?2, ?3, ?4)")?;
    for (level, row) in manifest.price_levels.iter().enumerate() {
        statement.execute(params![no.0, level as i64, row.name, row.color])?;
    }
    let mut statement = db.prepare_cached("INSERT INTO sections VALUES (?1, ?2, ?3)")?;
    for (section, name) in manifest.sections.iter().enumerate() {
        statement.execute(params![no.0, section as i64, name])?;
    }
    let mut statement = db.prepare_cached("INSERT INTO ga_areas VALUES (?1, ?2, ?3, ?4, ?5)")?;
    for (position, area) in manifest.ga_areas.iter().enumerate() {
        statement.execute(params![no.0, position as i64, area.ga_area, area.capacity, area.price_level])?;
    }
    let mut statement = db.prepare_cached("INSERT INTO ga_buckets VALUES (?1, ?2, ?3, ?4, 0, 0, NULL, 0)")?;
    for (position, area) in manifest.ga_areas.iter().enumerate() {
        for (bucket, capacity) in area.bucket_capacities().enumerate() {
            statement.execute(params![no.0, position as i64, bucket as i64, capacity])?;
        }
    }
    let mut printed = db.prepare_cached(
        "INSERT INTO manifest_seats VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )?;
    let mut state =
        db.prepare_cached("INSERT INTO seats VALUES (?1, ?2, ?3, NULL, NULL, NULL, ?4, 0, NULL)")?;
    for (ordinal, seat) in manifest.seats.iter().enumerate() {
        printed.execute(params![
            no.0,
            ordinal as i64,
            seat.seat_id,
            seat.section,
            seat.row,
            seat.seat,
            seat.x,
            seat.y,
            seat.accessible,
            seat.companion_of,
            seat.restricted_view,
            seat.rank,
        ])?;
        let status = if seat.not_for_sale { SeatStatus::NotForSale } else { SeatStatus::Available };
        state.execute(params![no.0, ordinal as i64, status.digit(), seat.price_level])?;
    }
    Ok(())
}
