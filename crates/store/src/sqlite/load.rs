//! Reading what a batch names, and what those rows name in turn.

use std::collections::BTreeSet;

use onsale_core::event::PriceTable;
use onsale_core::id::EventNo;
use onsale_core::limits::DUE_HOLDS_MAX;
use onsale_core::planted;
use onsale_core::snapshot::{Need, Snapshot};

use crate::boards::Boards;
use crate::error::StoreError;
use crate::limits::PRICE_TABLES_MAX;
use crate::look::Look;
use crate::names::due_with;
use crate::rows::{
    self, ALLOCATION, AREA, BUCKET, CALLBACK, CASE, CODE, EVENT, HOLD, KEY, OPERATION, ORDER, REFUND, SCAN,
    SEAT, TICKET, TRANSFER,
};

use super::backend::PriceCache;

/// Reads until the snapshot wants no more. Every statement is a look-up by key or by a partial index over live rows, so
/// the cost of a decision doesn't grow with the sale. Events whose home is elsewhere are not loaded but told.
pub(super) fn fill(
    db: Look<'_>,
    prices: &mut PriceCache,
    boards: &mut Boards,
    snapshot: &mut Snapshot,
    elsewhere: &mut BTreeSet<EventNo>,
) -> Result<(), StoreError> {
    loop {
        let wanted = snapshot.take_wanted();
        if wanted.is_empty() {
            return Ok(());
        }
        for need in wanted {
            match need {
                Need::Board(no) => boards.load(db, snapshot, no)?,
                need => load(db, prices, snapshot, elsewhere, need)?,
            }
        }
    }
}

macro_rules! select {
    ($columns:expr, $rest:literal) => {{
        // The text is the same at each call, so the connection finds its prepared statement by it.
        static TEXT: std::sync::LazyLock<String> =
            std::sync::LazyLock::new(|| format!(concat!("SELECT {} ", $rest), $columns));
        TEXT.as_str()
    }};
}

fn load(
    db: Look<'_>,
    prices: &mut PriceCache,
    snapshot: &mut Snapshot,
    elsewhere: &mut BTreeSet<EventNo>,
    need: Need,
) -> Result<(), StoreError> {
    match need {
        Need::Event(no) => {
            let text = select!(EVENT, ", elsewhere FROM events WHERE event_no = ?1");
            let row = db.one(text, &[no.0.into()], |row| {
                Ok((rows::event(row)?, row.text_or_none(rows::ELSEWHERE)?.is_some()))
            })?;
            match row {
                Some((event, false)) => snapshot.load_event(event),
                Some((_, true)) => {
                    elsewhere.insert(no);
                }
                None => {}
            }
        }
        Need::Prices(no, version) => {
            let table = price_table(db, prices, no, version)?;
            snapshot.load_prices(no, version, table);
        }
        Need::Key(no, key) => {
            let text = select!(KEY, "FROM idempotency_keys WHERE key = ?1");
            if let Some(record) = db.one(text, &[key.into()], rows::key)? {
                snapshot.load_key(no, record);
            }
        }
        Need::Callback(id) => {
            let text = select!(CALLBACK, "FROM callbacks WHERE provider_event_id = ?1");
            if let Some(callback) = db.one(text, &[(&*id).into()], rows::callback)? {
                snapshot.load_callback(callback);
            }
        }
        Need::Case(id) => {
            let text = select!(CASE, "FROM cases WHERE case_id = ?1");
            if let Some(case) = db.one(text, &[id.0.into()], rows::case)? {
                snapshot.load_case(case);
            }
        }
        Need::Reference(reference) => {
            let text = select!(
                OPERATION,
                "FROM operations WHERE reference = ?1 AND kind = 'AUTHORIZE' AND reference IS NOT NULL"
            );
            if let Some(operation) = db.one(text, &[(&*reference).into()], rows::operation)? {
                snapshot.load_operation(operation);
            }
        }
        Need::Operation(id) => {
            let text = select!(OPERATION, "FROM operations WHERE operation_id = ?1");
            if let Some(operation) = db.one(text, &[id.0.into()], rows::operation)? {
                snapshot.load_operation(operation);
            }
        }
        Need::Order(id) => {
            let key = [id.0.into()];
            let text = select!(ORDER, "FROM orders WHERE order_id = ?1");
            if let Some(order) = db.one(text, &key, rows::order)? {
                let text = select!(OPERATION, "FROM operations WHERE order_id = ?1 ORDER BY seq");
                let operations = db.all(text, &key, rows::operation)?;
                let text = select!(
                    CASE,
                    "FROM cases WHERE order_id = ?1 AND status = 'OPEN' AND order_id IS NOT NULL ORDER BY case_id"
                );
                let cases = db.all(text, &key, rows::case)?;
                snapshot.load_order(order, operations, cases);
            }
        }
        Need::Hold(id) => {
            let text = select!(HOLD, "FROM holds WHERE hold_id = ?1");
            if let Some(hold) = db.one(text, &[id.0.into()], rows::hold)? {
                snapshot.load_hold(hold);
            }
        }
        Need::Account(no, account) => {
            let key = [no.0.into(), account.as_str().into()];
            let text = select!(
                HOLD,
                "FROM holds WHERE event_no = ?1 AND account_id = ?2 AND status IN ('ACTIVE', 'PAYMENT_PENDING')"
            );
            let live = db.all(text, &key, rows::hold)?;
            let text = "SELECT coalesce(sum(ticket_count), 0) FROM orders
                 WHERE event_no = ?1 AND account_id = ?2 AND status = 'CONFIRMED'";
            let sold = db.one(text, &key, |row| row.number(0))?.unwrap_or(0);
            let sold = if planted!(SoldNotRead) { 0 } else { sold };
            snapshot.load_account(no, account, live, sold);
        }
        Need::Seat(no, ordinal) => {
            let text = select!(SEAT, "FROM seats WHERE event_no = ?1 AND ordinal = ?2");
            if let Some(seat) = db.one(text, &[no.0.into(), ordinal.0.into()], rows::seat)? {
                snapshot.load_seat(no, seat);
            }
        }
        Need::Area(no, area) => {
            let key = [no.0.into(), area.0.into()];
            let text = select!(AREA, "FROM ga_areas WHERE event_no = ?1 AND position = ?2");
            if let Some(row) = db.one(text, &key, rows::area)? {
                let text =
                    select!(BUCKET, "FROM ga_buckets WHERE event_no = ?1 AND area = ?2 ORDER BY bucket");
                let buckets = db.all(text, &key, rows::bucket)?;
                snapshot.load_area(no, row, buckets);
            }
        }
        Need::Due(no, with) => {
            let text =
                "SELECT hold_id FROM holds WHERE status IN ('ACTIVE', 'PAYMENT_PENDING') AND in_doubt = 0
                 AND expires_at <= ?1 AND event_no = ?2 AND seats LIKE ?3 AND ga LIKE ?4 AND (?5 = '' OR code = ?5)
                 ORDER BY status, expires_at LIMIT ?6";
            let (seats, places, code) = due_with(&with);
            let values = [
                snapshot.now_of(no).millis().into(),
                no.0.into(),
                seats.into(),
                places.as_str().into(),
                code.into(),
                DUE_HOLDS_MAX.into(),
            ];
            let due = db.all(text, &values, |row| row.id(0))?;
            snapshot.load_due(no, due);
        }
        need => load_more(db, snapshot, need)?,
    }
    Ok(())
}

/// Rows that a sale at its height needs none of.
fn load_more(db: Look<'_>, snapshot: &mut Snapshot, need: Need) -> Result<(), StoreError> {
    match need {
        Need::Transfer(id) => {
            let text = select!(TRANSFER, "FROM quota_transfers WHERE transfer_id = ?1");
            if let Some(transfer) = db.one(text, &[id.0.into()], rows::transfer)? {
                snapshot.load_transfer(transfer);
            }
        }
        Need::Code(no, code) => {
            let text = select!(CODE, "FROM access_codes WHERE event_no = ?1 AND code = ?2");
            if let Some(code) = db.one(text, &[no.0.into(), (&*code).into()], rows::code)? {
                snapshot.load_code(no, code);
            }
        }
        Need::Allocations(no) => {
            let text = select!(ALLOCATION, "FROM allocations WHERE event_no = ?1");
            for allocation in db.all(text, &[no.0.into()], rows::allocation)? {
                snapshot.load_allocation(no, allocation);
            }
        }
        Need::Refunds(order) => {
            let text = select!(REFUND, "FROM refunds WHERE order_id = ?1");
            for refund in db.all(text, &[order.0.into()], rows::refund)? {
                snapshot.load_refund(refund);
            }
        }
        Need::Tickets(order) => {
            let text = select!(TICKET, "FROM tickets WHERE order_id = ?1");
            for ticket in db.all(text, &[order.0.into()], rows::ticket)? {
                snapshot.load_ticket(ticket);
            }
        }
        Need::Ticket(id) => {
            let text = select!(TICKET, "FROM tickets WHERE ticket_id = ?1");
            if let Some(ticket) = db.one(text, &[id.0.into()], rows::ticket)? {
                snapshot.load_ticket(ticket);
            }
        }
        Need::Scan(no, id) => {
            let text = select!(SCAN, "FROM scans WHERE event_no = ?1 AND scan_id = ?2");
            if let Some(scan) = db.one(text, &[no.0.into(), (&*id).into()], rows::scan)? {
                snapshot.load_scan(scan);
            }
        }
        other => unreachable!("a need without a query: {other:?}"),
    }
    Ok(())
}

fn price_table(
    db: Look<'_>,
    prices: &mut PriceCache,
    no: EventNo,
    version: u32,
) -> Result<PriceTable, StoreError> {
    if let Some(table) = prices.get(&(no, version)) {
        return Ok(table.clone());
    }
    let text = "SELECT amount_minor FROM prices WHERE event_no = ?1 AND price_version = ?2 ORDER BY level";
    let amounts = db.all(text, &[no.0.into(), version.into()], |row| row.number_or_none(0))?;
    let table = PriceTable(amounts.into());
    if prices.len() >= PRICE_TABLES_MAX {
        prices.clear();
    }
    // A version that isn't written yet must not be remembered as empty.
    if !table.0.is_empty() {
        prices.insert((no, version), table.clone());
    }
    Ok(table)
}
