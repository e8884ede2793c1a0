//! Writing standing areas and their buckets, transfers between them, allocations and access codes.

use onsale_core::access::AccessCode;
use onsale_core::ga::{Bucket, Transfer};
use onsale_core::id::EventNo;
use onsale_core::snapshot::Snapshot;
use rusqlite::{Connection, params};

use crate::error::StoreError;
use crate::names::Named;

use super::one;

pub(super) fn write(db: &Connection, snapshot: &Snapshot) -> Result<(), StoreError> {
    for change in snapshot.areas.changes() {
        let ((no, area), Some(before)) = (change.key, change.before) else {
            return Err(StoreError::Mismatch { table: "ga_areas", count: 0 });
        };
        let text =
            "UPDATE ga_areas SET capacity = ?1 WHERE event_no = ?2 AND position = ?3 AND capacity = ?4";
        let mut statement = db.prepare_cached(text)?;
        let values = params![change.after.capacity, no.0, area.0, before.capacity];
        one("ga_areas", statement.execute(values)?)?;
    }
    for change in snapshot.buckets.changes() {
        bucket(db, change.key.0, change.before, change.after)?;
    }
    for change in snapshot.transfers.changes() {
        transfer(db, change.before, change.after)?;
    }
    for change in snapshot.allocations.changes() {
        let ((no, _), row) = (change.key, change.after);
        let text = "INSERT INTO allocations (event_no, allocation, name, created_at) VALUES (?1, ?2, ?3, ?4)";
        let mut statement = db.prepare_cached(text)?;
        one("allocations", statement.execute(params![no.0, row.no.0, row.name, row.created_at.millis()])?)?;
    }
    for change in snapshot.codes.changes() {
        code(db, change.key.0, change.before, change.after)?;
    }
    Ok(())
}

fn bucket(db: &Connection, no: EventNo, before: Option<&Bucket>, after: &Bucket) -> Result<(), StoreError> {
    let Some(before) = before else {
        let mut statement = db.prepare_cached(
            "INSERT INTO ga_buckets (event_no, area, bucket, capacity, held, sold, allocation, version)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?;
        let count = statement.execute(params![
            no.0,
            after.area.0,
            after.no.0,
            after.capacity,
            after.held,
            after.sold,
            after.allocation.map(|allocation| allocation.0),
            after.version as i64,
        ])?;
        return one("ga_buckets", count);
    };
    let mut statement = db.prepare_cached(
        "UPDATE ga_buckets SET capacity = ?1, held = ?2, sold = ?3, version = ?4
         WHERE event_no = ?5 AND area = ?6 AND bucket = ?7 AND capacity = ?8 AND held = ?9 AND sold = ?10 AND version = ?11",
    )?;
    let count = statement.execute(params![
        after.capacity,
        after.held,
        after.sold,
        after.version as i64,
        no.0,
        after.area.0,
        after.no.0,
        before.capacity,
        before.held,
        before.sold,
        before.version as i64,
    ])?;
    one("ga_buckets", count)
}

fn transfer(db: &Connection, before: Option<&Transfer>, after: &Transfer) -> Result<(), StoreError> {
    let Some(before) = before else {
        let mut statement = db.prepare_cached(
            "INSERT INTO quota_transfers (transfer_id, event_no, area, from_bucket, to_bucket, quantity, status, actor,
               created_at, ended_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?;
        let count = statement.execute(params![
            after.id.0.to_be_bytes(),
            after.id.event().0,
            after.area.0,
            after.from.0,
            after.to.0,
            after.quantity,
            after.status.word(),
            after.actor,
            after.created_at.millis(),
            after.ended_at.map(|at| at.millis()),
        ])?;
        return one("quota_transfers", count);
    };
    let text = "UPDATE quota_transfers SET status = ?1, ended_at = ?2 WHERE transfer_id = ?3 AND status = ?4";
    let mut statement = db.prepare_cached(text)?;
    let ended_at = after.ended_at.map(|at| at.millis());
    let values = params![after.status.word(), ended_at, after.id.0.to_be_bytes(), before.status.word()];
    one("quota_transfers", statement.execute(values)?)
}

fn code(
    db: &Connection,
    no: EventNo,
    before: Option<&AccessCode>,
    after: &AccessCode,
) -> Result<(), StoreError> {
    let (from, until) = (after.valid_from.map(|at| at.millis()), after.valid_until.map(|at| at.millis()));
    let (allocation, revoked_at) = (after.allocation.map(|no| no.0), after.revoked_at.map(|at| at.millis()));
    let Some(before) = before else {
        let mut statement = db.prepare_cached(
            "INSERT INTO access_codes (event_no, code, allocation, presale, tickets_max, tickets_in_use, valid_from, valid_until,
               revoked_at, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?;
        let count = statement.execute(params![
            no.0,
            after.code,
            allocation,
            after.presale,
            after.tickets_max,
            after.tickets_in_use,
            from,
            until,
            revoked_at,
            after.created_at.millis(),
        ])?;
        return one("access_codes", count);
    };
    let mut statement = db.prepare_cached(
        "UPDATE access_codes SET allocation = ?1, presale = ?2, tickets_max = ?3, tickets_in_use = ?4, valid_from = ?5,
           valid_until = ?6, revoked_at = ?7
         WHERE event_no = ?8 AND code = ?9 AND tickets_in_use = ?10",
    )?;
    let count = statement.execute(params![
        allocation,
        after.presale,
        after.tickets_max,
        after.tickets_in_use,
        from,
        until,
        revoked_at,
        no.0,
        after.code,
        before.tickets_in_use,
    ])?;
    one("access_codes", count)
}
