//! Writing what was decided: a statement for each table and way of writing, all in one round trip. Each row is written once, in
//! its final state, on the condition that it still is as it was read; the affected rows are counted. Under the lock a mismatch
//! can only be a bug, and it undoes the batch.

mod bulk;
mod places;
mod tables;
mod tickets;

use onsale_core::log::LogKind;
use onsale_core::planted;
use onsale_core::seat_map::SeatStatus;
use onsale_core::snapshot::{Bulk, Snapshot};
use tokio_postgres::Statement;
use uuid::Uuid;

use crate::error::StoreError;
use crate::fail_point;
use crate::log_text::log_payload;
use crate::look::Parsed;
use crate::names::{Named, answer_text, ga_json, seats_json};

use super::Link;
use super::columns::{Cell, Rows, cells};
use tables::*;

/// Writes all changes of a snapshot, and the batch's mark.
pub(super) fn write(link: &Link, snapshot: &Snapshot, batch: Uuid) -> Parsed<()> {
    let [events_changed, events_new] = events(snapshot);
    let first = if snapshot.bulk.is_empty() {
        [events_changed, events_new]
    } else {
        write_rows(link, [events_changed, events_new])?;
        [Rows::new(&EVENTS_CHANGED), Rows::new(&EVENTS_NEW)]
    };
    for change in &snapshot.bulk {
        match change {
            Bulk::Manifest(no, _, layout) => bulk::manifest(link, *no, layout)?,
            Bulk::Prices(no, version, table) => bulk::prices(link, *no, *version, table)?,
        }
    }
    fail_point!("rows.half_written", return Err(StoreError::Busy));
    let [first_changed, first_new] = first;
    let ([holds_changed, holds_new], [orders_changed, orders_new]) = (holds(snapshot), orders(snapshot));
    // An order's operations live one at a time: what ended is written before what began.
    let [operations_changed, operations_new] = operations(snapshot);
    let [cases_changed, cases_new] = cases(snapshot);
    let [callbacks_changed, callbacks_new] = callbacks(snapshot);
    let [buckets_changed, buckets_new] = places::buckets(snapshot);
    let [transfers_changed, transfers_new] = places::transfers(snapshot);
    let [codes_changed, codes_new] = places::codes(snapshot);
    let [tickets_changed, tickets_new] = tickets::tickets(snapshot);
    let [scans_changed, scans_new] = tickets::scans(snapshot);
    let mut mark = Rows::new(&BATCHES_NEW);
    mark.push(cells![batch.as_u128(), true, snapshot.now().millis()]);
    write_rows(
        link,
        [
            first_changed,
            first_new,
            holds_changed,
            holds_new,
            orders_changed,
            orders_new,
            operations_changed,
            operations_new,
            seats(snapshot)?,
            places::areas(snapshot)?,
            buckets_changed,
            buckets_new,
            transfers_changed,
            transfers_new,
            places::allocations(snapshot),
            codes_changed,
            codes_new,
            tickets::refunds(snapshot),
            // A seat has one good ticket: what is revoked makes room for what is issued.
            tickets_changed,
            tickets_new,
            scans_changed,
            scans_new,
            cases_changed,
            cases_new,
            callbacks_changed,
            callbacks_new,
            keys(snapshot),
            log(snapshot),
            mark,
        ],
    )
}

/// Writes rows of several tables in one round trip, in their order.
fn write_rows<const N: usize>(link: &Link, all: [Rows<'_>; N]) -> Parsed<()> {
    let all: Vec<Rows<'_>> = all.into_iter().filter(|rows| rows.count > 0).collect();
    if all.is_empty() {
        return Ok(());
    }
    let prepare = |rows: &Rows<'_>| link.prepared(&rows.writing.text);
    let statements: Vec<Statement> = all.iter().map(prepare).collect::<Parsed<_>>()?;
    let client = link.client();
    let counts = link.wait(async {
        let writes = all
            .iter()
            .zip(&statements)
            .map(|(rows, statement)| async move { client.execute(statement, &rows.values()).await });
        let done = futures_util::future::join_all(writes).await;
        done.into_iter().collect::<Result<Vec<u64>, _>>()
    })?;
    for (rows, count) in all.iter().zip(counts) {
        if count != rows.count {
            return Err(StoreError::Mismatch { table: rows.writing.table, count: count as usize });
        }
    }
    Ok(())
}

fn events(snapshot: &Snapshot) -> [Rows<'_>; 2] {
    let (mut changed, mut new) = (Rows::new(&EVENTS_CHANGED), Rows::new(&EVENTS_NEW));
    for change in snapshot.events.changes() {
        let after = change.after;
        let Some(before) = change.before else {
            let policy = &after.policy;
            new.push(cells![
                after.no().0,
                after.id.0,
                &after.name,
                after.currency.as_str(),
                after.starts_at.millis(),
                after.on_sale_at.map(|at| at.millis()),
                after.off_sale_at.map(|at| at.millis()),
                &after.timezone,
                after.created_at.millis(),
                after.status.word(),
                policy.hold_ttl_ms,
                policy.payment_grace_ms,
                policy.seats_per_hold_max,
                policy.tickets_per_account_max,
                policy.payment_pending_per_account_max,
                policy.payment_pending_max,
                policy.admission.word(),
                policy.queue_order.word(),
                policy.shoppers_max,
                policy.in_doubt.word(),
                policy.orphan_seats.word(),
                policy.payment.word(),
                policy.ga_max,
                policy.reentry,
                after.epoch,
                after.clock.millis(),
                after.version,
                after.manifest_version,
                after.seat_count,
                after.price_level_count,
                after.price_version,
                after.payment_pending,
                after.area_count,
                after.ga_in_use,
                after.allocation_count,
            ]);
            continue;
        };
        changed.push(cells![
            after.status.word(),
            after.clock.millis(),
            after.version,
            after.manifest_version,
            after.seat_count,
            after.price_level_count,
            after.price_version,
            after.payment_pending,
            after.area_count,
            after.ga_in_use,
            after.allocation_count,
            after.no().0,
            before.version,
            before.epoch,
            None::<&str>,
        ]);
    }
    [changed, new]
}

/// A seat's status as its columns: digit, hold, deadline, order.
fn seat_cells(status: SeatStatus) -> [Cell<'static>; 4] {
    match status {
        SeatStatus::Available | SeatStatus::NotForSale => {
            [status.digit().into(), Cell::Null, Cell::Null, Cell::Null]
        }
        SeatStatus::Held { hold, expires_at } => {
            [status.digit().into(), hold.0.into(), expires_at.millis().into(), Cell::Null]
        }
        SeatStatus::Sold { hold, order } => {
            [status.digit().into(), hold.0.into(), Cell::Null, order.0.into()]
        }
    }
}

fn seats(snapshot: &Snapshot) -> Parsed<Rows<'_>> {
    let mut changed = Rows::new(&SEATS_CHANGED);
    for change in snapshot.seats.changes() {
        let Some(before) = change.before else {
            return Err(StoreError::Mismatch { table: "seats", count: 0 });
        };
        let [status, hold, expires_at, order] = seat_cells(change.after.status);
        let [was_status, was_hold, was_expires_at, was_order] = seat_cells(before.status);
        changed.push([
            status,
            hold,
            expires_at,
            order,
            change.after.version.into(),
            change.after.allocation.map(|allocation| allocation.0).into(),
            change.key.0.0.into(),
            change.after.ordinal.0.into(),
            was_status,
            before.version.into(),
            was_hold,
            was_expires_at,
            was_order,
            before.allocation.map(|allocation| allocation.0).into(),
        ]);
    }
    Ok(changed)
}

fn holds(snapshot: &Snapshot) -> [Rows<'_>; 2] {
    let (mut changed, mut new) = (Rows::new(&HOLDS_CHANGED), Rows::new(&HOLDS_NEW));
    for change in snapshot.holds.changes() {
        let after = change.after;
        let order = after.order.map(|order| order.0);
        let Some(before) = change.before else {
            new.push(cells![
                after.id.0,
                after.event().0,
                after.account.as_str(),
                after.status.word(),
                after.expires_at.millis(),
                after.first_expires_at.millis(),
                after.created_at.millis(),
                seats_json(&after.seats),
                after.price_version,
                after.total_minor,
                order,
                after.grace_used,
                after.in_doubt,
                ga_json(&after.ga),
                after.code.as_deref(),
            ]);
            continue;
        };
        let deadline = if planted!(DeadlineNotWritten) { before.expires_at } else { after.expires_at };
        changed.push(cells![
            after.status.word(),
            deadline.millis(),
            order,
            after.grace_used,
            after.in_doubt,
            after.id.0,
            before.status.word(),
            before.expires_at.millis(),
            before.order.map(|order| order.0),
        ]);
    }
    [changed, new]
}

fn orders(snapshot: &Snapshot) -> [Rows<'_>; 2] {
    let (mut changed, mut new) = (Rows::new(&ORDERS_CHANGED), Rows::new(&ORDERS_NEW));
    for change in snapshot.orders.changes() {
        let after = change.after;
        let paid_by = after.paid_by.map(|operation| operation.0);
        let confirmed_at = after.confirmed_at.map(|at| at.millis());
        let Some(before) = change.before else {
            new.push(cells![
                after.id.0,
                after.id.event().0,
                after.hold.0,
                after.account.as_str(),
                after.total.amount_minor,
                after.total.currency.as_str(),
                after.price_version,
                after.ticket_count,
                after.status.word(),
                after.payment_status.word(),
                paid_by,
                after.created_at.millis(),
                confirmed_at,
                after.email.as_deref(),
                after.return_url.as_deref(),
                seats_json(&after.returned_seats),
                ga_json(&after.returned_ga),
                after.ticketed,
            ]);
            continue;
        };
        let returned = if planted!(ReturnedPlacesNotWritten) { before } else { after };
        changed.push(cells![
            after.status.word(),
            after.payment_status.word(),
            paid_by,
            confirmed_at,
            after.email.as_deref(),
            after.return_url.as_deref(),
            after.ticket_count,
            seats_json(&after.returned_seats),
            ga_json(&returned.returned_ga),
            after.ticketed,
            after.id.0,
            before.status.word(),
            before.payment_status.word(),
            before.paid_by.map(|operation| operation.0),
            before.ticketed,
        ]);
    }
    [changed, new]
}

fn operations(snapshot: &Snapshot) -> [Rows<'_>; 2] {
    let (mut changed, mut new) = (Rows::new(&OPERATIONS_CHANGED), Rows::new(&OPERATIONS_NEW));
    for change in snapshot.operations.changes() {
        let after = change.after;
        let Some(before) = change.before else {
            new.push(cells![
                after.id.0,
                after.id.event().0,
                after.order.0,
                after.seq,
                after.kind.word(),
                after.status.word(),
                after.target.map(|target| target.0),
                after.reference.as_deref(),
                after.amount.amount_minor,
                after.amount.currency.as_str(),
                after.payment_method_token.as_deref(),
                after.next_action_url.as_deref(),
                after.failure_code.as_deref(),
                after.created_at.millis(),
                after.updated_at.millis(),
                after.due_at.millis(),
                after.tries,
                after.base_minor,
            ]);
            continue;
        };
        changed.push(cells![
            after.status.word(),
            after.reference.as_deref(),
            after.amount.amount_minor,
            after.amount.currency.as_str(),
            after.payment_method_token.as_deref(),
            after.next_action_url.as_deref(),
            after.failure_code.as_deref(),
            after.updated_at.millis(),
            after.due_at.millis(),
            after.tries,
            after.id.0,
            before.status.word(),
            before.reference.as_deref(),
            before.updated_at.millis(),
        ]);
    }
    [changed, new]
}

fn cases(snapshot: &Snapshot) -> [Rows<'_>; 2] {
    let (mut changed, mut new) = (Rows::new(&CASES_CHANGED), Rows::new(&CASES_NEW));
    for change in snapshot.cases.changes() {
        let after = change.after;
        let acted = after.resolution.as_ref();
        let action = acted.map(|acted| acted.action.as_str());
        let note = acted.map(|acted| acted.note.as_str());
        let actor = acted.map(|acted| acted.actor.as_str());
        let acted_at = acted.map(|acted| acted.at.millis());
        let Some(before) = change.before else {
            new.push(cells![
                after.id.0,
                after.event().0,
                after.kind.word(),
                after.order.map(|order| order.0),
                after.operation.map(|operation| operation.0),
                after.opened_at.millis(),
                &after.evidence,
                after.status.word(),
                &after.owner,
                after.next_check_at.millis(),
                action,
                note,
                actor,
                acted_at,
                after.subject.as_deref(),
            ]);
            continue;
        };
        changed.push(cells![
            after.status.word(),
            &after.owner,
            after.next_check_at.millis(),
            action,
            note,
            actor,
            acted_at,
            after.id.0,
            before.status.word(),
            &before.owner,
        ]);
    }
    [changed, new]
}

fn callbacks(snapshot: &Snapshot) -> [Rows<'_>; 2] {
    let (mut changed, mut new) = (Rows::new(&CALLBACKS_CHANGED), Rows::new(&CALLBACKS_NEW));
    for change in snapshot.callbacks.changes() {
        let after = change.after;
        let case = after.case.map(|case| case.0);
        let Some(before) = change.before else {
            new.push(cells![
                &after.provider_event_id,
                after.event.0,
                after.digest,
                &after.kind,
                after.reference.as_deref(),
                after.claimed_order.map(|order| order.0),
                after.verdict.word(),
                after.received_at.millis(),
                after.due_at.millis(),
                case,
            ]);
            continue;
        };
        changed.push(cells![
            after.verdict.word(),
            after.due_at.millis(),
            case,
            after.event.0,
            &after.provider_event_id,
            before.verdict.word(),
            before.due_at.millis(),
        ]);
    }
    [changed, new]
}

fn keys(snapshot: &Snapshot) -> Rows<'_> {
    let mut new = Rows::new(&KEYS_NEW);
    for change in snapshot.keys.changes() {
        let ((no, _), record) = (change.key, change.after);
        let answer = answer_text(&record.answer);
        new.push(cells![no.0, record.key.id, record.key.digest, answer, record.created_at.millis()]);
    }
    new
}

fn log(snapshot: &Snapshot) -> Rows<'_> {
    let mut new = Rows::new(&LOG_NEW);
    for entry in &snapshot.log {
        if planted!(ExpiryNotLogged) && matches!(entry.kind, LogKind::HoldExpired { .. }) {
            continue;
        }
        let (kind, payload) = (entry.kind.as_str(), log_payload(&entry.kind));
        new.push(cells![entry.event.0, entry.version, entry.at.millis(), kind, payload]);
    }
    new
}
