//! Reading for those who show, work through and check: each method is one consistent look.

mod views;

use onsale_core::event::Event;
use onsale_core::hold::Hold;
use onsale_core::id::{AccountId, CaseId, EventNo, HoldId, KeyId, OperationId, OrderId, SeatOrdinal};
use onsale_core::manifest::{GaArea, Manifest, ManifestSeat, PriceLevel};
use onsale_core::order::OrderStatus;
use onsale_core::reconcile::{CaseStatus, Verdict};
use onsale_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row};

use crate::error::StoreError;
use crate::keys::ApiKey;
use crate::names::Named;

pub use views::{
    CallbackDue, CaseView, EventReport, HoldView, ManifestView, OperationView, OrderView, SeatChanges,
    SeatDigits,
};

use super::rows::{self, CALLBACK, CASE, EVENT, HOLD, OPERATION, ORDER, bits, time};

type Parsed<T> = Result<T, StoreError>;

/// A look at the database.
pub struct Reader<'a>(pub(super) &'a Connection);

fn count(row: &Row<'_>, index: usize) -> Parsed<u64> {
    Ok(row.get::<_, i64>(index)? as u64)
}

impl Reader<'_> {
    /// All events but the house, newest first.
    pub fn events(&self) -> Parsed<Vec<Event>> {
        let text =
            format!("SELECT {EVENT} FROM events WHERE event_no <> 0 ORDER BY created_at DESC, event_no");
        rows::all(self.0.prepare_cached(&text)?.query([])?, rows::event)
    }

    /// An event.
    pub fn event(&self, no: EventNo) -> Parsed<Option<Event>> {
        let text = format!("SELECT {EVENT} FROM events WHERE event_no = ?1");
        rows::one(self.0.prepare_cached(&text)?.query([no.0])?, rows::event)
    }

    /// Number and version of each event, to see which have moved.
    pub fn event_versions(&self) -> Parsed<Vec<(EventNo, u64)>> {
        let mut statement =
            self.0.prepare_cached("SELECT event_no, version FROM events WHERE event_no <> 0")?;
        rows::all(statement.query([])?, |row| Ok((EventNo(row.get(0)?), row.get::<_, i64>(1)? as u64)))
    }

    /// An event's manifest and prices; `None` while it has none.
    pub fn manifest(&self, no: EventNo) -> Parsed<Option<ManifestView>> {
        let look = self.0.unchecked_transaction()?;
        let head = look
            .query_row(
                "SELECT manifest_version, price_version FROM events WHERE event_no = ?1",
                [no.0],
                |row| Ok((row.get::<_, u32>(0)?, row.get::<_, u32>(1)?)),
            )
            .optional()?;
        let Some((version, price_version)) = head.filter(|(version, _)| *version > 0) else {
            return Ok(None);
        };
        let list = |text: &str, parse: &dyn Fn(&Row<'_>) -> Parsed<String>| {
            rows::all(look.prepare_cached(text)?.query([no.0])?, parse)
        };
        let sections =
            list("SELECT name FROM sections WHERE event_no = ?1 ORDER BY section", &|row| Ok(row.get(0)?))?;
        let mut statement =
            look.prepare_cached("SELECT name, color FROM price_levels WHERE event_no = ?1 ORDER BY level")?;
        let price_levels = rows::all(statement.query([no.0])?, |row| {
            Ok(PriceLevel { name: row.get(0)?, color: row.get(1)? })
        })?;
        let mut statement = look.prepare_cached(
            "SELECT m.seat_id, m.section, m.row_label, m.seat_label, s.price_level, m.x, m.y, m.accessible, m.companion_of,
               m.restricted_view, s.status
             FROM manifest_seats m JOIN seats s USING (event_no, ordinal) WHERE m.event_no = ?1 ORDER BY m.ordinal",
        )?;
        let seats = rows::all(statement.query([no.0])?, |row| {
            Ok(ManifestSeat {
                seat_id: row.get(0)?,
                section: row.get(1)?,
                row: row.get(2)?,
                seat: row.get(3)?,
                price_level: row.get(4)?,
                x: row.get(5)?,
                y: row.get(6)?,
                accessible: row.get(7)?,
                companion_of: row.get(8)?,
                restricted_view: row.get(9)?,
                not_for_sale: row.get::<_, u8>(10)? == 3,
            })
        })?;
        let mut statement = look.prepare_cached(
            "SELECT ga_area, capacity, price_level FROM ga_areas WHERE event_no = ?1 ORDER BY position",
        )?;
        let ga_areas = rows::all(statement.query([no.0])?, |row| {
            Ok(GaArea { ga_area: row.get(0)?, capacity: row.get(1)?, price_level: row.get(2)? })
        })?;
        let mut statement = look.prepare_cached(
            "SELECT amount_minor FROM prices WHERE event_no = ?1 AND price_version = ?2 ORDER BY level",
        )?;
        let prices = rows::all(statement.query((no.0, price_version))?, |row| Ok(row.get(0)?))?;
        let manifest = Manifest { price_levels, sections, seats, ga_areas };
        Ok(Some(ManifestView { version, manifest, price_version, prices }))
    }

    /// The state of each seat of an event.
    pub fn seat_digits(&self, no: EventNo) -> Parsed<Option<SeatDigits>> {
        let look = self.0.unchecked_transaction()?;
        let head = look
            .query_row(
                "SELECT version, epoch, manifest_version FROM events WHERE event_no = ?1",
                [no.0],
                |row| Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64, row.get(2)?)),
            )
            .optional()?;
        let Some((version, epoch, manifest_version)) = head else {
            return Ok(None);
        };
        let mut statement =
            look.prepare_cached("SELECT status FROM seats WHERE event_no = ?1 ORDER BY ordinal")?;
        let digits = rows::all(statement.query([no.0])?, |row| Ok(b'0' + row.get::<_, u8>(0)?))?;
        Ok(Some(SeatDigits { version, epoch, manifest_version, digits }))
    }

    /// What the log says happened to the seats after a version, at most `limit` entries; `None` when the log doesn't
    /// reach back that far.
    pub fn seat_changes(&self, no: EventNo, after: u64, limit: u32) -> Parsed<Option<SeatChanges>> {
        let mut statement = self.0.prepare_cached(
            "SELECT version, kind, payload FROM log WHERE event_no = ?1 AND version > ?2 ORDER BY version LIMIT ?3",
        )?;
        let mut found =
            SeatChanges { version: after, changes: Vec::new(), replaced: false, orders: Vec::new() };
        let mut entries = statement.query((no.0, after as i64, limit))?;
        while let Some(row) = entries.next()? {
            let version = row.get::<_, i64>(0)? as u64;
            if version != found.version + 1 {
                return Ok(None);
            }
            found.version = version;
            let text: String = row.get(2)?;
            let corrupt = || StoreError::Corrupt { wanted: "a log entry", found: text.clone() };
            let payload: serde_json::Value = serde_json::from_str(&text).map_err(|_| corrupt())?;
            if let Some(order) = payload["order"].as_str() {
                found.orders.push(order.parse().map_err(|_| corrupt())?);
            }
            let digit = match row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)? {
                "manifest.replaced" => {
                    found.replaced = true;
                    continue;
                }
                "hold.placed" => 1,
                "hold.released" | "hold.expired" | "order.cancelled" => 0,
                "order.confirmed" => 2,
                "seats.status_set" if payload["not_for_sale"].as_bool() == Some(true) => 3,
                "seats.status_set" => 0,
                _ => continue,
            };
            for seat in payload["seats"].as_array().ok_or_else(corrupt)? {
                let ordinal = seat.as_u64().and_then(|seat| u32::try_from(seat).ok()).ok_or_else(corrupt)?;
                found.changes.push((version, SeatOrdinal(ordinal), digit));
            }
        }
        Ok(Some(found))
    }

    fn priced(&self, hold: &Hold) -> Parsed<Vec<(SeatOrdinal, u16, i64)>> {
        let mut statement = self.0.prepare_cached(
            "SELECT s.price_level, p.amount_minor FROM seats s
             JOIN prices p ON p.event_no = s.event_no AND p.price_version = ?3 AND p.level = s.price_level
             WHERE s.event_no = ?1 AND s.ordinal = ?2",
        )?;
        let price = |ordinal: &SeatOrdinal| {
            let key = (hold.event().0, ordinal.0, hold.price_version);
            Ok(statement.query_row(key, |row| Ok((*ordinal, row.get(0)?, row.get(1)?)))?)
        };
        hold.seats.iter().map(price).collect()
    }

    /// A hold.
    pub fn hold(&self, id: HoldId) -> Parsed<Option<HoldView>> {
        let look = self.0.unchecked_transaction()?;
        let text = format!("SELECT {HOLD} FROM holds WHERE hold_id = ?1");
        let hold = rows::one(look.prepare_cached(&text)?.query([id.0.to_be_bytes()])?, rows::hold)?;
        hold.map(|hold| Ok(HoldView { seats: self.priced(&hold)?, hold })).transpose()
    }

    /// An order.
    pub fn order(&self, id: OrderId) -> Parsed<Option<OrderView>> {
        let look = self.0.unchecked_transaction()?;
        let text = format!("SELECT {ORDER} FROM orders WHERE order_id = ?1");
        let order = rows::one(look.prepare_cached(&text)?.query([id.0.to_be_bytes()])?, rows::order)?;
        let Some(order) = order else {
            return Ok(None);
        };
        let text = format!("SELECT {HOLD} FROM holds WHERE hold_id = ?1");
        let hold = rows::one(look.prepare_cached(&text)?.query([order.hold.0.to_be_bytes()])?, rows::hold)?;
        let seats = hold.map_or(Ok(Vec::new()), |hold| self.priced(&hold))?;
        let next_action_url = look
            .prepare_cached(
                "SELECT next_action_url FROM operations
                 WHERE order_id = ?1 AND kind = 'AUTHORIZE' AND status = 'REQUIRES_ACTION'",
            )?
            .query_row([id.0.to_be_bytes()], |row| row.get(0))
            .optional()?
            .flatten();
        Ok(Some(OrderView { order, seats, next_action_url }))
    }

    /// Who may see an order.
    pub fn order_account(&self, id: OrderId) -> Parsed<Option<AccountId>> {
        let mut statement = self.0.prepare_cached("SELECT account_id FROM orders WHERE order_id = ?1")?;
        rows::one(statement.query([id.0.to_be_bytes()])?, |row| rows::account(row, 0))
    }

    /// Live operations whose time has come, the longest due first.
    pub fn due_operations(&self, now: Timestamp, limit: u32) -> Parsed<Vec<OperationView>> {
        let columns =
            OPERATION.split(", ").map(|column| format!("o.{}", column.trim())).collect::<Vec<_>>().join(", ");
        let text = format!(
            "SELECT {columns}, r.status, r.return_url, e.payment FROM operations o
             JOIN orders r ON r.order_id = o.order_id JOIN events e ON e.event_no = o.event_no
             WHERE o.status IN ('PENDING', 'REQUIRES_ACTION', 'UNKNOWN') AND o.due_at <= ?1
             ORDER BY o.due_at LIMIT ?2"
        );
        rows::all(self.0.prepare_cached(&text)?.query((now.millis(), limit))?, |row| {
            Ok(OperationView {
                operation: rows::operation(row)?,
                order_status: OrderStatus::of(row.get_ref(16)?.as_str().map_err(rusqlite::Error::from)?)?,
                return_url: row.get(17)?,
                charge: row.get_ref(18)?.as_str().map_err(rusqlite::Error::from)? == "charge",
            })
        })
    }

    /// Live holds whose time has come and that aren't in doubt already, the longest due first.
    pub fn due_holds(&self, now: Timestamp, limit: u32) -> Parsed<Vec<HoldId>> {
        let mut statement = self.0.prepare_cached(
            "SELECT hold_id FROM holds
             WHERE status IN ('ACTIVE', 'PAYMENT_PENDING') AND in_doubt = 0 AND expires_at <= ?1
             ORDER BY expires_at LIMIT ?2",
        )?;
        rows::all(statement.query((now.millis(), limit))?, |row| bits(row, 0).map(HoldId))
    }

    /// Parked callbacks whose time has come.
    pub fn due_callbacks(&self, now: Timestamp, limit: u32) -> Parsed<Vec<CallbackDue>> {
        let text = format!(
            "SELECT {CALLBACK} FROM callbacks WHERE verdict = 'parked' AND due_at <= ?1 ORDER BY due_at LIMIT ?2"
        );
        rows::all(self.0.prepare_cached(&text)?.query((now.millis(), limit))?, rows::callback)
    }

    /// Digest and verdict of a callback that came before.
    pub fn callback(&self, provider_event_id: &str) -> Parsed<Option<(u128, Verdict)>> {
        let text = format!("SELECT {CALLBACK} FROM callbacks WHERE provider_event_id = ?1");
        let found = rows::one(self.0.prepare_cached(&text)?.query([provider_event_id])?, rows::callback)?;
        Ok(found.map(|callback| (callback.digest, callback.verdict)))
    }

    /// The attempt with this name at the provider.
    pub fn attempt(&self, reference: &str) -> Parsed<Option<OperationId>> {
        let mut statement = self.0.prepare_cached(
            "SELECT operation_id FROM operations WHERE reference = ?1 AND kind = 'AUTHORIZE' AND reference IS NOT NULL",
        )?;
        rows::one(statement.query([reference])?, |row| bits(row, 0).map(OperationId))
    }

    /// Whether there is such an operation.
    pub fn has_operation(&self, id: OperationId) -> Parsed<bool> {
        let mut statement = self.0.prepare_cached("SELECT 1 FROM operations WHERE operation_id = ?1")?;
        Ok(statement.exists([id.0.to_be_bytes()])?)
    }

    /// A case.
    pub fn case(&self, id: CaseId) -> Parsed<Option<CaseView>> {
        let text = format!("SELECT {CASE} FROM cases WHERE case_id = ?1");
        rows::one(self.0.prepare_cached(&text)?.query([id.0.to_be_bytes()])?, rows::case)
    }

    /// Cases, the oldest first, at most `limit`.
    pub fn cases(&self, status: Option<CaseStatus>, limit: u32) -> Parsed<Vec<CaseView>> {
        // Open ones come first: the index runs from the last word to the first.
        let (narrowed, limit) = (status.map(Named::word), i64::from(limit));
        let text = match narrowed {
            Some(_) => {
                format!("SELECT {CASE} FROM cases WHERE status = ?1 ORDER BY opened_at, case_id LIMIT ?2")
            }
            None => {
                format!(
                    "SELECT {CASE} FROM cases WHERE ?1 IS NULL ORDER BY status DESC, opened_at, case_id LIMIT ?2"
                )
            }
        };
        rows::all(self.0.prepare_cached(&text)?.query((narrowed, limit))?, rows::case)
    }

    /// Counts and money of an event.
    pub fn report(&self, no: EventNo) -> Parsed<EventReport> {
        let look = self.0.unchecked_transaction()?;
        let mut report = EventReport::default();
        let mut statement =
            look.prepare("SELECT status, count(*) FROM seats WHERE event_no = ?1 GROUP BY status")?;
        for (status, count) in
            rows::all(statement.query([no.0])?, |row| Ok((row.get::<_, u8>(0)?, count(row, 1)?)))?
        {
            match status {
                0 => report.available = count,
                1 => report.held = count,
                2 => report.sold = count,
                _ => report.not_for_sale = count,
            }
        }
        let mut statement = look.prepare(
            "SELECT status, count(*), sum(amount_minor) FROM orders WHERE event_no = ?1 GROUP BY status",
        )?;
        let orders = rows::all(statement.query([no.0])?, |row| {
            Ok((OrderStatus::of(&row.get::<_, String>(0)?)?, count(row, 1)?, row.get(2)?))
        })?;
        for (status, count, sum) in orders {
            match status {
                OrderStatus::AwaitingPayment => report.orders_awaiting_payment = count,
                OrderStatus::Confirmed => (report.orders_confirmed, report.gross_minor) = (count, sum),
                OrderStatus::Cancelled => report.orders_cancelled = count,
                OrderStatus::Expired => report.orders_expired = count,
            }
        }
        let sum = |text: &str| look.query_row(text, [no.0], |row| row.get::<_, i64>(0));
        report.captured_minor = sum("SELECT ifnull(sum(amount_minor), 0) FROM orders
             WHERE event_no = ?1 AND status = 'CONFIRMED' AND payment_status = 'CAPTURED'")?;
        report.returning_minor = sum(
            "SELECT ifnull(sum(amount_minor), 0) FROM operations WHERE event_no = ?1 AND kind IN ('VOID', 'REFUND')
               AND status IN ('PENDING', 'REQUIRES_ACTION', 'UNKNOWN')",
        )?;
        report.cases_open = sum("SELECT count(*) FROM cases WHERE event_no = ?1 AND status = 'OPEN'")? as u64;
        Ok(report)
    }

    /// All keys that are in force.
    pub fn api_keys(&self) -> Parsed<Vec<ApiKey>> {
        let mut statement = self.0.prepare_cached(
            "SELECT key_id, secret_sha256, role, name, created_at FROM api_keys WHERE revoked_at IS NULL",
        )?;
        rows::all(statement.query([])?, |row| {
            Ok(ApiKey {
                key_id: KeyId(bits(row, 0)?),
                secret_sha256: row.get(1)?,
                role: Named::of(row.get_ref(2)?.as_str().map_err(rusqlite::Error::from)?)?,
                name: row.get(3)?,
                created_at: time(row, 4)?,
            })
        })
    }

    /// What waits: holds past their time, operations without an answer, parked callbacks, open cases; each with the
    /// instant of the oldest.
    pub fn backlog(&self, now: Timestamp) -> Parsed<[(&'static str, u64, Option<Timestamp>); 4]> {
        let look = self.0.unchecked_transaction()?;
        let ask = |text: &str| {
            look.prepare_cached(text)?.query_row([now.millis()], |row| {
                Ok((row.get::<_, i64>(0)? as u64, row.get::<_, Option<i64>>(1)?.map(Timestamp::from_millis)))
            })
        };
        let holds = ask("SELECT count(*), min(expires_at) FROM holds
             WHERE status IN ('ACTIVE', 'PAYMENT_PENDING') AND in_doubt = 0 AND expires_at <= ?1")?;
        let unknown = ask("SELECT count(*), min(created_at) FROM operations
             WHERE status IN ('PENDING', 'REQUIRES_ACTION', 'UNKNOWN') AND status = 'UNKNOWN' AND ?1 = ?1")?;
        let parked =
            ask("SELECT count(*), min(received_at) FROM callbacks WHERE verdict = 'parked' AND ?1 = ?1")?;
        let cases = ask("SELECT count(*), min(opened_at) FROM cases WHERE status = 'OPEN' AND ?1 = ?1")?;
        Ok([
            ("expired_holds", holds.0, holds.1),
            ("payment_unknown", unknown.0, unknown.1),
            ("callbacks_parked", parked.0, parked.1),
            ("cases_open", cases.0, cases.1),
        ])
    }
}
