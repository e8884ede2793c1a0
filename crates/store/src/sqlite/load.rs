//! Reading what a batch names, and what those rows name in turn.

use onsale_core::event::PriceTable;
use onsale_core::id::EventNo;
use onsale_core::idempotency::{KeyRecord, RequestKey};
use onsale_core::planted;
use onsale_core::snapshot::{Need, Snapshot};
use rusqlite::Connection;

use crate::error::StoreError;
use crate::limits::PRICE_TABLES_MAX;
use crate::names::answer_of;

use super::backend::PriceCache;
use super::rows::{self, CALLBACK, CASE, EVENT, HOLD, OPERATION, ORDER, SEAT};

/// Reads until the snapshot wants no more. Every statement is a look-up by key or by a partial index over live rows, so
/// the cost of a decision doesn't grow with the sale.
pub(super) fn fill(
    db: &Connection,
    prices: &mut PriceCache,
    snapshot: &mut Snapshot,
) -> Result<(), StoreError> {
    loop {
        let wanted = snapshot.take_wanted();
        if wanted.is_empty() {
            return Ok(());
        }
        for need in wanted {
            load(db, prices, snapshot, need)?;
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
    db: &Connection,
    prices: &mut PriceCache,
    snapshot: &mut Snapshot,
    need: Need,
) -> Result<(), StoreError> {
    match need {
        Need::Event(no) => {
            let mut statement = db.prepare_cached(select!(EVENT, "FROM events WHERE event_no = ?1"))?;
            if let Some(event) = rows::one(statement.query([no.0])?, rows::event)? {
                snapshot.load_event(event);
            }
        }
        Need::Prices(no, version) => {
            let table = price_table(db, prices, no, version)?;
            snapshot.load_prices(no, version, table);
        }
        Need::Key(no, key) => {
            let mut statement =
                db.prepare_cached("SELECT digest, answer, created_at FROM idempotency_keys WHERE key = ?1")?;
            let record = rows::one(statement.query([key.to_be_bytes()])?, |row| {
                let answer = answer_of(row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?)?;
                let key = RequestKey { id: key, digest: rows::bits(row, 0)? };
                Ok(KeyRecord { key, answer, created_at: rows::time(row, 2)? })
            })?;
            if let Some(record) = record {
                snapshot.load_key(no, record);
            }
        }
        Need::Callback(id) => {
            let mut statement =
                db.prepare_cached(select!(CALLBACK, "FROM callbacks WHERE provider_event_id = ?1"))?;
            if let Some(callback) = rows::one(statement.query([&*id])?, rows::callback)? {
                snapshot.load_callback(callback);
            }
        }
        Need::Case(id) => {
            let mut statement = db.prepare_cached(select!(CASE, "FROM cases WHERE case_id = ?1"))?;
            if let Some(case) = rows::one(statement.query([id.0.to_be_bytes()])?, rows::case)? {
                snapshot.load_case(case);
            }
        }
        Need::Reference(reference) => {
            let mut statement = db.prepare_cached(select!(
                OPERATION,
                "FROM operations WHERE reference = ?1 AND kind = 'AUTHORIZE' AND reference IS NOT NULL"
            ))?;
            if let Some(operation) = rows::one(statement.query([&*reference])?, rows::operation)? {
                snapshot.load_operation(operation);
            }
        }
        Need::Operation(id) => {
            let mut statement =
                db.prepare_cached(select!(OPERATION, "FROM operations WHERE operation_id = ?1"))?;
            if let Some(operation) = rows::one(statement.query([id.0.to_be_bytes()])?, rows::operation)? {
                snapshot.load_operation(operation);
            }
        }
        Need::Order(id) => {
            let key = id.0.to_be_bytes();
            let mut statement = db.prepare_cached(select!(ORDER, "FROM orders WHERE order_id = ?1"))?;
            if let Some(order) = rows::one(statement.query([key])?, rows::order)? {
                let mut statement = db
                    .prepare_cached(select!(OPERATION, "FROM operations WHERE order_id = ?1 ORDER BY seq"))?;
                let operations = rows::all(statement.query([key])?, rows::operation)?;
                let mut statement = db.prepare_cached(select!(
                    CASE,
                    "FROM cases WHERE order_id = ?1 AND status = 'OPEN' AND order_id IS NOT NULL ORDER BY case_id"
                ))?;
                let cases = rows::all(statement.query([key])?, rows::case)?;
                snapshot.load_order(order, operations, cases);
            }
        }
        Need::Hold(id) => {
            let mut statement = db.prepare_cached(select!(HOLD, "FROM holds WHERE hold_id = ?1"))?;
            if let Some(hold) = rows::one(statement.query([id.0.to_be_bytes()])?, rows::hold)? {
                snapshot.load_hold(hold);
            }
        }
        Need::Account(no, account) => {
            let mut statement = db.prepare_cached(select!(
                HOLD,
                "FROM holds WHERE event_no = ?1 AND account_id = ?2 AND status IN ('ACTIVE', 'PAYMENT_PENDING')"
            ))?;
            let live = rows::all(statement.query((no.0, account.as_str()))?, rows::hold)?;
            let mut statement = db.prepare_cached(
                "SELECT ifnull(sum(seat_count), 0) FROM orders
                 WHERE event_no = ?1 AND account_id = ?2 AND status = 'CONFIRMED'",
            )?;
            let sold = statement.query_row((no.0, account.as_str()), |row| row.get(0))?;
            let sold = if planted!(SoldNotRead) { 0 } else { sold };
            snapshot.load_account(no, account, live, sold);
        }
        Need::Seat(no, ordinal) => {
            let mut statement =
                db.prepare_cached(select!(SEAT, "FROM seats WHERE event_no = ?1 AND ordinal = ?2"))?;
            if let Some(seat) = rows::one(statement.query((no.0, ordinal.0))?, rows::seat)? {
                snapshot.load_seat(no, seat);
            }
        }
    }
    Ok(())
}

fn price_table(
    db: &Connection,
    prices: &mut PriceCache,
    no: EventNo,
    version: u32,
) -> Result<PriceTable, StoreError> {
    if let Some(table) = prices.get(&(no, version)) {
        return Ok(table.clone());
    }
    let mut statement = db.prepare_cached(
        "SELECT amount_minor FROM prices WHERE event_no = ?1 AND price_version = ?2 ORDER BY level",
    )?;
    let amounts = rows::all(statement.query((no.0, version))?, |row| Ok(row.get::<_, Option<i64>>(0)?))?;
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
