//! Writing refunds, tickets and scans.

use onsale_core::snapshot::Snapshot;
use onsale_core::ticket::{Place, Scan, Ticket};
use rusqlite::{Connection, params};

use crate::error::StoreError;
use crate::names::{Named, ga_json, seats_json};

use super::one;

pub(super) fn write(db: &Connection, snapshot: &Snapshot) -> Result<(), StoreError> {
    for change in snapshot.refunds.changes() {
        let row = change.after;
        let mut statement = db.prepare_cached(
            "INSERT INTO refunds (operation_id, event_no, order_id, reason, resell, seats, ga, actor, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?;
        let count = statement.execute(params![
            row.operation.0.to_be_bytes(),
            row.order.event().0,
            row.order.0.to_be_bytes(),
            row.reason,
            row.resell,
            seats_json(&row.seats),
            ga_json(&row.ga),
            row.actor,
            row.created_at.millis(),
        ])?;
        one("refunds", count)?;
    }
    // A seat has one good ticket: what is revoked makes room for what is issued.
    for change in snapshot.tickets.changes().filter(|change| change.before.is_some()) {
        ticket(db, change.before, change.after)?;
    }
    for change in snapshot.tickets.changes().filter(|change| change.before.is_none()) {
        ticket(db, None, change.after)?;
    }
    for change in snapshot.scans.changes() {
        match change.before {
            None => scan(db, change.after)?,
            Some(before) => told_later(db, before, change.after)?,
        }
    }
    Ok(())
}

fn ticket(db: &Connection, before: Option<&Ticket>, after: &Ticket) -> Result<(), StoreError> {
    let admitted_at = after.admitted_at.map(|at| at.millis());
    let Some(before) = before else {
        let (ordinal, area) = match after.place {
            Place::Seat(ordinal) => (Some(ordinal.0), None),
            Place::Area(area) => (None, Some(area.0)),
        };
        let mut statement = db.prepare_cached(
            "INSERT INTO tickets (ticket_id, event_no, order_id, ordinal, area, generation, status, inside, admissions, admitted_at,
               admitted_gate, issued_at, version)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        )?;
        let count = statement.execute(params![
            after.id.0.to_be_bytes(),
            after.id.event().0,
            after.order.0.to_be_bytes(),
            ordinal,
            area,
            after.generation,
            after.status.word(),
            after.inside,
            after.admissions,
            admitted_at,
            after.admitted_gate,
            after.issued_at.millis(),
            after.version as i64,
        ])?;
        return one("tickets", count);
    };
    let mut statement = db.prepare_cached(
        "UPDATE tickets SET generation = ?1, status = ?2, inside = ?3, admissions = ?4, admitted_at = ?5, admitted_gate = ?6,
           version = ?7
         WHERE ticket_id = ?8 AND generation = ?9 AND status = ?10 AND inside = ?11 AND admissions = ?12 AND version = ?13",
    )?;
    let count = statement.execute(params![
        after.generation,
        after.status.word(),
        after.inside,
        after.admissions,
        admitted_at,
        after.admitted_gate,
        after.version as i64,
        after.id.0.to_be_bytes(),
        before.generation,
        before.status.word(),
        before.inside,
        before.admissions,
        before.version as i64,
    ])?;
    one("tickets", count)
}

/// Of a scan that is known, one thing may still be heard: that its holder was let in all the same.
fn told_later(db: &Connection, before: &Scan, after: &Scan) -> Result<(), StoreError> {
    let text =
        "UPDATE scans SET let_in_offline = ?1 WHERE event_no = ?2 AND scan_id = ?3 AND let_in_offline = ?4";
    let key = params![after.let_in_offline, after.ticket.event().0, after.id, before.let_in_offline];
    one("scans", db.prepare_cached(text)?.execute(key)?)
}

fn scan(db: &Connection, after: &Scan) -> Result<(), StoreError> {
    let mut statement = db.prepare_cached(
        "INSERT INTO scans (event_no, scan_id, ticket_id, generation, direction, gate, scanned_at, received_at, result,
           let_in_offline)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?;
    let count = statement.execute(params![
        after.ticket.event().0,
        after.id,
        after.ticket.0.to_be_bytes(),
        after.generation,
        after.direction.word(),
        after.gate,
        after.scanned_at.millis(),
        after.received_at.millis(),
        after.result.word(),
        after.let_in_offline,
    ])?;
    one("scans", count)
}
