//! Writing what was decided. Each row is written once, in its final state, on the condition that it still is as it was
//! read; the affected rows are counted. Under the lock a mismatch can only be a bug, and it undoes the batch.

mod bulk;
mod places;
mod questions;
mod tickets;

use onsale_core::event::Event;
use onsale_core::hold::Hold;
use onsale_core::id::EventNo;
use onsale_core::log::LogKind;
use onsale_core::order::Order;
use onsale_core::payment::Operation;
use onsale_core::planted;
use onsale_core::seat_map::{Seat, SeatStatus};
use onsale_core::snapshot::{Bulk, Snapshot};
use rusqlite::{Connection, params};

use crate::error::StoreError;
use crate::fail_point;
use crate::log_text::log_payload;
use crate::names::{Named, answer_text, ga_json, seats_json};

/// Writes all changes of a snapshot.
pub(super) fn write(db: &Connection, snapshot: &Snapshot) -> Result<(), StoreError> {
    for change in snapshot.events.changes() {
        event(db, change.before, change.after)?;
    }
    for change in &snapshot.bulk {
        match change {
            Bulk::Manifest(no, _, layout) => bulk::manifest(db, *no, layout)?,
            Bulk::Prices(no, version, table) => bulk::prices(db, *no, *version, table)?,
        }
    }
    for change in snapshot.holds.changes() {
        hold(db, change.before, change.after)?;
    }
    for change in snapshot.orders.changes() {
        order(db, change.before, change.after)?;
    }
    fail_point!("rows.half_written", return Err(StoreError::Busy));
    // An order's operations live one at a time: what ended is written before what began.
    let operations = || snapshot.operations.changes();
    for change in operations().filter(|change| change.before.is_some()) {
        operation(db, change.before, change.after)?;
    }
    for change in operations().filter(|change| change.before.is_none()) {
        operation(db, None, change.after)?;
    }
    for change in snapshot.seats.changes() {
        seat(db, change.key.0, change.before, change.after)?;
    }
    places::write(db, snapshot)?;
    tickets::write(db, snapshot)?;
    for change in snapshot.cases.changes() {
        questions::case(db, change.before, change.after)?;
    }
    for change in snapshot.callbacks.changes() {
        questions::callback(db, change.before, change.after)?;
    }
    let mut statement =
        db.prepare_cached("INSERT INTO idempotency_keys (event_no, key, digest, answer, created_at) VALUES (?1, ?2, ?3, ?4, ?5)")?;
    for change in snapshot.keys.changes() {
        let ((no, _), record) = (change.key, change.after);
        let key = (record.key.id.to_be_bytes(), record.key.digest.to_be_bytes());
        statement.execute(params![
            no.0,
            key.0,
            key.1,
            answer_text(&record.answer),
            record.created_at.millis()
        ])?;
    }
    let mut statement = db.prepare_cached(
        "INSERT INTO log (event_no, version, at, kind, payload) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for entry in &snapshot.log {
        if planted!(ExpiryNotLogged) && matches!(entry.kind, LogKind::HoldExpired { .. }) {
            continue;
        }
        let kind = entry.kind.as_str();
        statement.execute(params![
            entry.event.0,
            entry.version as i64,
            entry.at.millis(),
            kind,
            log_payload(&entry.kind)
        ])?;
    }
    Ok(())
}

/// Exactly one row must have matched.
fn one(table: &'static str, count: usize) -> Result<(), StoreError> {
    if count == 1 { Ok(()) } else { Err(StoreError::Mismatch { table, count }) }
}

fn event(db: &Connection, before: Option<&Event>, after: &Event) -> Result<(), StoreError> {
    let Some(before) = before else {
        let policy = &after.policy;
        let mut statement = db.prepare_cached(
            "INSERT INTO events VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20,
               ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, NULL)",
        )?;
        let count = statement.execute(params![
            after.no().0,
            after.id.0.to_be_bytes(),
            after.name,
            after.currency.as_str(),
            after.starts_at.millis(),
            after.on_sale_at.map(|at| at.millis()),
            after.off_sale_at.map(|at| at.millis()),
            after.timezone,
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
            after.epoch as i64,
            after.clock.millis(),
            after.version as i64,
            after.manifest_version,
            after.seat_count,
            after.price_level_count,
            after.price_version,
            after.payment_pending,
            after.area_count,
            after.ga_in_use,
            after.allocation_count,
        ])?;
        return one("events", count);
    };
    let mut statement = db.prepare_cached(
        "UPDATE events SET status = ?1, clock = ?2, version = ?3, manifest_version = ?4, seat_count = ?5,
           price_level_count = ?6, price_version = ?7, payment_pending = ?8, area_count = ?9, ga_in_use = ?10,
           allocation_count = ?11
         WHERE event_no = ?12 AND version = ?13 AND epoch = ?14 AND elsewhere IS NULL",
    )?;
    let count = statement.execute(params![
        after.status.word(),
        after.clock.millis(),
        after.version as i64,
        after.manifest_version,
        after.seat_count,
        after.price_level_count,
        after.price_version,
        after.payment_pending,
        after.area_count,
        after.ga_in_use,
        after.allocation_count,
        after.no().0,
        before.version as i64,
        before.epoch as i64,
    ])?;
    one("events", count)
}

/// A seat's status as its columns: digit, hold, deadline, order.
type SeatColumns = (u8, Option<[u8; 16]>, Option<i64>, Option<[u8; 16]>);

fn seat_columns(status: SeatStatus) -> SeatColumns {
    match status {
        SeatStatus::Available | SeatStatus::NotForSale => (status.digit(), None, None, None),
        SeatStatus::Held { hold, expires_at } => {
            (status.digit(), Some(hold.0.to_be_bytes()), Some(expires_at.millis()), None)
        }
        SeatStatus::Sold { hold, order } => {
            (status.digit(), Some(hold.0.to_be_bytes()), None, Some(order.0.to_be_bytes()))
        }
    }
}

fn seat(db: &Connection, no: EventNo, before: Option<&Seat>, after: &Seat) -> Result<(), StoreError> {
    let Some(before) = before else {
        return Err(StoreError::Mismatch { table: "seats", count: 0 });
    };
    let (status, hold, expires_at, order) = seat_columns(after.status);
    let was = seat_columns(before.status);
    let mut statement = db.prepare_cached(
        "UPDATE seats SET status = ?1, hold_id = ?2, hold_expires_at = ?3, order_id = ?4, version = ?5, allocation = ?13
         WHERE event_no = ?6 AND ordinal = ?7 AND status = ?8 AND version = ?9 AND hold_id IS ?10 AND hold_expires_at IS ?11
           AND order_id IS ?12 AND allocation IS ?14",
    )?;
    let count = statement.execute(params![
        status,
        hold,
        expires_at,
        order,
        after.version as i64,
        no.0,
        after.ordinal.0,
        was.0,
        before.version as i64,
        was.1,
        was.2,
        was.3,
        after.allocation.map(|allocation| allocation.0),
        before.allocation.map(|allocation| allocation.0),
    ])?;
    one("seats", count)
}

fn hold(db: &Connection, before: Option<&Hold>, after: &Hold) -> Result<(), StoreError> {
    let order = after.order.map(|order| order.0.to_be_bytes());
    let Some(before) = before else {
        let mut statement = db.prepare_cached(
            "INSERT INTO holds (hold_id, event_no, account_id, status, expires_at, first_expires_at, created_at, seats,
               price_version, total_minor, order_id, grace_used, in_doubt, ga, code)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
        )?;
        let count = statement.execute(params![
            after.id.0.to_be_bytes(),
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
            after.code,
        ])?;
        return one("holds", count);
    };
    let mut statement = db.prepare_cached(
        "UPDATE holds SET status = ?1, expires_at = ?2, order_id = ?3, grace_used = ?4, in_doubt = ?5
         WHERE hold_id = ?6 AND status = ?7 AND expires_at = ?8 AND order_id IS ?9",
    )?;
    let deadline = if planted!(DeadlineNotWritten) { before.expires_at } else { after.expires_at };
    let count = statement.execute(params![
        after.status.word(),
        deadline.millis(),
        order,
        after.grace_used,
        after.in_doubt,
        after.id.0.to_be_bytes(),
        before.status.word(),
        before.expires_at.millis(),
        before.order.map(|order| order.0.to_be_bytes()),
    ])?;
    one("holds", count)
}

fn order(db: &Connection, before: Option<&Order>, after: &Order) -> Result<(), StoreError> {
    let paid_by = after.paid_by.map(|operation| operation.0.to_be_bytes());
    let confirmed_at = after.confirmed_at.map(|at| at.millis());
    let Some(before) = before else {
        let mut statement = db.prepare_cached(
            "INSERT INTO orders (order_id, event_no, hold_id, account_id, amount_minor, currency, price_version, ticket_count,
               status, payment_status, paid_by, created_at, confirmed_at, email, return_url, returned_seats, returned_ga,
               ticketed)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)",
        )?;
        let count = statement.execute(params![
            after.id.0.to_be_bytes(),
            after.id.event().0,
            after.hold.0.to_be_bytes(),
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
            after.email,
            after.return_url,
            seats_json(&after.returned_seats),
            ga_json(&after.returned_ga),
            after.ticketed,
        ])?;
        return one("orders", count);
    };
    let returned = if planted!(ReturnedPlacesNotWritten) { before } else { after };
    let mut statement = db.prepare_cached(
        "UPDATE orders SET status = ?1, payment_status = ?2, paid_by = ?3, confirmed_at = ?4, email = ?5, return_url = ?6,
           ticket_count = ?11, returned_seats = ?12, returned_ga = ?13, ticketed = ?14
         WHERE order_id = ?7 AND status = ?8 AND payment_status = ?9 AND paid_by IS ?10 AND ticketed = ?15",
    )?;
    let count = statement.execute(params![
        after.status.word(),
        after.payment_status.word(),
        paid_by,
        confirmed_at,
        after.email,
        after.return_url,
        after.id.0.to_be_bytes(),
        before.status.word(),
        before.payment_status.word(),
        before.paid_by.map(|operation| operation.0.to_be_bytes()),
        after.ticket_count,
        seats_json(&after.returned_seats),
        ga_json(&returned.returned_ga),
        after.ticketed,
        before.ticketed,
    ])?;
    one("orders", count)
}

fn operation(db: &Connection, before: Option<&Operation>, after: &Operation) -> Result<(), StoreError> {
    let Some(before) = before else {
        let mut statement = db.prepare_cached(
            "INSERT INTO operations (operation_id, event_no, order_id, seq, kind, status, target, reference, amount_minor,
               currency, payment_method_token, next_action_url, failure_code, created_at, updated_at, due_at, tries,
               base_minor)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)",
        )?;
        let count = statement.execute(params![
            after.id.0.to_be_bytes(),
            after.id.event().0,
            after.order.0.to_be_bytes(),
            after.seq,
            after.kind.word(),
            after.status.word(),
            after.target.map(|target| target.0.to_be_bytes()),
            after.reference,
            after.amount.amount_minor,
            after.amount.currency.as_str(),
            after.payment_method_token,
            after.next_action_url,
            after.failure_code,
            after.created_at.millis(),
            after.updated_at.millis(),
            after.due_at.millis(),
            after.tries,
            after.base_minor,
        ])?;
        return one("operations", count);
    };
    let mut statement = db.prepare_cached(
        "UPDATE operations SET status = ?1, reference = ?2, amount_minor = ?3, currency = ?4, payment_method_token = ?5,
           next_action_url = ?6, failure_code = ?7, updated_at = ?8, due_at = ?9, tries = ?10
         WHERE operation_id = ?11 AND status = ?12 AND reference IS ?13 AND updated_at = ?14",
    )?;
    let count = statement.execute(params![
        after.status.word(),
        after.reference,
        after.amount.amount_minor,
        after.amount.currency.as_str(),
        after.payment_method_token,
        after.next_action_url,
        after.failure_code,
        after.updated_at.millis(),
        after.due_at.millis(),
        after.tries,
        after.id.0.to_be_bytes(),
        before.status.word(),
        before.reference,
        before.updated_at.millis(),
    ])?;
    one("operations", count)
}
