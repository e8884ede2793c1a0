//! Standing areas and their buckets, transfers between them, allocations and access codes, as rows to be written.

use onsale_core::snapshot::Snapshot;

use crate::error::StoreError;
use crate::look::Parsed;
use crate::names::Named;
use crate::postgres::columns::{Rows, cells};

use super::tables::*;

pub(super) fn areas(snapshot: &Snapshot) -> Parsed<Rows<'_>> {
    let mut changed = Rows::new(&AREAS_CHANGED);
    for change in snapshot.areas.changes() {
        let ((no, area), Some(before)) = (change.key, change.before) else {
            return Err(StoreError::Mismatch { table: "ga_areas", count: 0 });
        };
        changed.push(cells![change.after.capacity, no.0, area.0, before.capacity]);
    }
    Ok(changed)
}

pub(super) fn buckets(snapshot: &Snapshot) -> [Rows<'_>; 2] {
    let (mut changed, mut new) = (Rows::new(&BUCKETS_CHANGED), Rows::new(&GA_BUCKETS_NEW));
    for change in snapshot.buckets.changes() {
        let ((no, area, bucket), after) = (change.key, change.after);
        let Some(before) = change.before else {
            let allocation = after.allocation.map(|allocation| allocation.0);
            new.push(cells![
                no.0,
                area.0,
                bucket.0,
                after.capacity,
                after.held,
                after.sold,
                allocation,
                after.version
            ]);
            continue;
        };
        changed.push(cells![
            after.capacity,
            after.held,
            after.sold,
            after.version,
            no.0,
            area.0,
            bucket.0,
            before.capacity,
            before.held,
            before.sold,
            before.version,
        ]);
    }
    [changed, new]
}

pub(super) fn transfers(snapshot: &Snapshot) -> [Rows<'_>; 2] {
    let (mut changed, mut new) = (Rows::new(&TRANSFERS_CHANGED), Rows::new(&TRANSFERS_NEW));
    for change in snapshot.transfers.changes() {
        let after = change.after;
        let ended_at = after.ended_at.map(|at| at.millis());
        match change.before {
            Some(before) => {
                changed.push(cells![after.status.word(), ended_at, after.id.0, before.status.word()]);
            }
            None => new.push(cells![
                after.id.0,
                after.id.event().0,
                after.area.0,
                after.from.0,
                after.to.0,
                after.quantity,
                after.status.word(),
                &after.actor,
                after.created_at.millis(),
                ended_at,
            ]),
        }
    }
    [changed, new]
}

pub(super) fn allocations(snapshot: &Snapshot) -> Rows<'_> {
    let mut new = Rows::new(&ALLOCATIONS_NEW);
    for change in snapshot.allocations.changes() {
        let ((no, allocation), row) = (change.key, change.after);
        new.push(cells![no.0, allocation.0, &row.name, row.created_at.millis()]);
    }
    new
}

pub(super) fn codes(snapshot: &Snapshot) -> [Rows<'_>; 2] {
    let (mut changed, mut new) = (Rows::new(&CODES_CHANGED), Rows::new(&CODES_NEW));
    for change in snapshot.codes.changes() {
        let ((no, code), after) = (change.key, change.after);
        let allocation = after.allocation.map(|allocation| allocation.0);
        let (from, until) = (after.valid_from.map(|at| at.millis()), after.valid_until.map(|at| at.millis()));
        let revoked_at = after.revoked_at.map(|at| at.millis());
        match change.before {
            Some(before) => changed.push(cells![
                allocation,
                after.presale,
                after.tickets_max,
                after.tickets_in_use,
                from,
                until,
                revoked_at,
                no.0,
                &**code,
                before.tickets_in_use,
            ]),
            None => new.push(cells![
                no.0,
                &**code,
                allocation,
                after.presale,
                after.tickets_max,
                after.tickets_in_use,
                from,
                until,
                revoked_at,
                after.created_at.millis(),
            ]),
        }
    }
    [changed, new]
}
