//! Refunds, tickets and scans, as rows to be written.

use onsale_core::snapshot::Snapshot;
use onsale_core::ticket::Place;

use crate::names::{Named, ga_json, seats_json};
use crate::postgres::columns::{Rows, cells};

use super::tables::*;

pub(super) fn refunds(snapshot: &Snapshot) -> Rows<'_> {
    let mut new = Rows::new(&REFUNDS_NEW);
    for change in snapshot.refunds.changes() {
        let row = change.after;
        new.push(cells![
            row.operation.0,
            row.order.event().0,
            row.order.0,
            &row.reason,
            row.resell,
            seats_json(&row.seats),
            ga_json(&row.ga),
            &row.actor,
            row.created_at.millis(),
        ]);
    }
    new
}

pub(super) fn tickets(snapshot: &Snapshot) -> [Rows<'_>; 2] {
    let (mut changed, mut new) = (Rows::new(&TICKETS_CHANGED), Rows::new(&TICKETS_NEW));
    for change in snapshot.tickets.changes() {
        let after = change.after;
        let admitted_at = after.admitted_at.map(|at| at.millis());
        let Some(before) = change.before else {
            let (ordinal, area) = match after.place {
                Place::Seat(ordinal) => (Some(ordinal.0), None),
                Place::Area(area) => (None, Some(area.0)),
            };
            new.push(cells![
                after.id.0,
                after.id.event().0,
                after.order.0,
                ordinal,
                area,
                after.generation,
                after.status.word(),
                after.inside,
                after.admissions,
                admitted_at,
                after.admitted_gate.as_deref(),
                after.issued_at.millis(),
                after.version,
            ]);
            continue;
        };
        changed.push(cells![
            after.generation,
            after.status.word(),
            after.inside,
            after.admissions,
            admitted_at,
            after.admitted_gate.as_deref(),
            after.version,
            after.id.0,
            before.generation,
            before.status.word(),
            before.inside,
            before.admissions,
            before.version,
        ]);
    }
    [changed, new]
}

pub(super) fn scans(snapshot: &Snapshot) -> [Rows<'_>; 2] {
    let (mut changed, mut new) = (Rows::new(&SCANS_CHANGED), Rows::new(&SCANS_NEW));
    for change in snapshot.scans.changes() {
        let row = change.after;
        // Of a scan that is known, one thing may still be heard: that its holder was let in all the same.
        if let Some(before) = change.before {
            changed.push(cells![row.let_in_offline, row.ticket.event().0, &*row.id, before.let_in_offline]);
            continue;
        }
        new.push(cells![
            row.ticket.event().0,
            &*row.id,
            row.ticket.0,
            row.generation,
            row.direction.word(),
            &row.gate,
            row.scanned_at.millis(),
            row.received_at.millis(),
            row.result.word(),
            row.let_in_offline,
        ]);
    }
    [changed, new]
}
