//! Reading for those who show, work through and check: each method is one consistent look.

mod books;
mod outbox;
mod places;
mod reports;
mod tickets;
mod views;

use onsale_core::event::Event;
use onsale_core::ga::by_area;
use onsale_core::hold::Hold;
use onsale_core::id::{AccountId, AreaNo, CaseId, EventNo, HoldId, KeyId, OperationId, OrderId, SeatOrdinal};
use onsale_core::log::{LogEntry, LogKind};
use onsale_core::manifest::{GaArea, Manifest, ManifestSeat, PriceLevel};
use onsale_core::order::OrderStatus;
use onsale_core::reconcile::{CaseStatus, Verdict};
use onsale_core::time::Timestamp;

use crate::error::StoreError;
use crate::keys::ApiKey;
use crate::look::{Look, Parsed, Row, Value};
use crate::names::Named;
use crate::rows::{self, BUCKET, CALLBACK, CASE, EVENT, HOLD, LOG, OPERATION, ORDER, time, time_or_none};

pub use books::AttemptView;
pub use places::RefundView;
pub use reports::{Attendee, AttendeeTicket, Sales, Settled};
pub use views::{
    CallbackDue, CaseView, DirectoryLine, EventReport, GateConflict, HoldView, ManifestView, OperationView,
    OrderView, RevokedTickets, SeatChanges, SeatDigits,
};

/// A look at the database.
pub struct Reader<'a>(pub(crate) Look<'a>);

impl Reader<'_> {
    /// All events of this database but the house, newest first.
    pub fn events(&self) -> Parsed<Vec<Event>> {
        let text = format!(
            "SELECT {EVENT} FROM events WHERE event_no <> 0 AND elsewhere IS NULL ORDER BY created_at DESC, event_no"
        );
        self.0.all(&text, &[], rows::event)
    }

    /// An event, if its home is here.
    pub fn event(&self, no: EventNo) -> Parsed<Option<Event>> {
        let text = format!("SELECT {EVENT} FROM events WHERE event_no = ?1 AND elsewhere IS NULL");
        self.0.one(&text, &[no.0.into()], rows::event)
    }

    /// Number and version of each event whose home is here, to see which have moved on.
    pub fn event_versions(&self) -> Parsed<Vec<(EventNo, u64)>> {
        let text = "SELECT event_no, version FROM events WHERE event_no <> 0 AND elsewhere IS NULL ORDER BY event_no";
        self.0.all(text, &[], |row| Ok((EventNo(row.number(0)?), row.number(1)?)))
    }

    /// Where each event is at home that isn't at the main home, or has ever been moved; kept in the main home alone.
    pub fn directory(&self) -> Parsed<Vec<DirectoryLine>> {
        let text = "SELECT event_no, home, moving_to FROM directory";
        self.0.all(text, &[], |row| {
            let (event, home) = (EventNo(row.number(0)?), row.string(1)?);
            Ok(DirectoryLine { event, home, is_moving: row.text_or_none(2)?.is_some() })
        })
    }

    /// An event's manifest and prices; `None` while it has none.
    pub fn manifest(&self, no: EventNo) -> Parsed<Option<ManifestView>> {
        self.0.still(|| self.manifest_now(no))
    }

    fn manifest_now(&self, no: EventNo) -> Parsed<Option<ManifestView>> {
        let of_event = [Value::from(no.0)];
        let head = self.0.one(
            "SELECT manifest_version, price_version FROM events WHERE event_no = ?1",
            &of_event,
            |row| Ok((row.number::<u32>(0)?, row.number::<u32>(1)?)),
        )?;
        let Some((version, price_version)) = head.filter(|(version, _)| *version > 0) else {
            return Ok(None);
        };
        let text = "SELECT name FROM sections WHERE event_no = ?1 ORDER BY section";
        let sections = self.0.all(text, &of_event, |row| row.string(0))?;
        let text = "SELECT name, color FROM price_levels WHERE event_no = ?1 ORDER BY level";
        let price_levels = self.0.all(text, &of_event, |row| {
            Ok(PriceLevel { name: row.string(0)?, color: row.string_or_none(1)? })
        })?;
        // The two tables are read side by side: a server that doesn't know yet how large they have become would join them row by
        // row.
        let text = "SELECT price_level, status FROM seats WHERE event_no = ?1 ORDER BY ordinal";
        let states = self.0.all(text, &of_event, |row| Ok((row.number::<u16>(0)?, row.number::<u8>(1)?)))?;
        let mut states = states.into_iter();
        let text =
            "SELECT seat_id, section, row_label, seat_label, x, y, accessible, companion_of, restricted_view, rank
             FROM manifest_seats WHERE event_no = ?1 ORDER BY ordinal";
        let seats = self.0.all(text, &of_event, |row| {
            let missing = || StoreError::Corrupt { wanted: "a seat's state", found: "nothing".to_owned() };
            let (price_level, status) = states.next().ok_or_else(missing)?;
            Ok(ManifestSeat {
                seat_id: row.string(0)?,
                section: row.number(1)?,
                row: row.string(2)?,
                seat: row.string(3)?,
                price_level,
                x: row.real(4)?,
                y: row.real(5)?,
                accessible: row.truth(6)?,
                companion_of: row.string_or_none(7)?,
                restricted_view: row.truth(8)?,
                rank: row.number(9)?,
                not_for_sale: status == 3,
            })
        })?;
        let text =
            "SELECT ga_area, capacity, price_level,
               (SELECT count(*) FROM ga_buckets b WHERE b.event_no = ga_areas.event_no AND b.area = ga_areas.position)
             FROM ga_areas WHERE event_no = ?1 ORDER BY position";
        let ga_areas = self.0.all(text, &of_event, |row| {
            Ok(GaArea {
                ga_area: row.string(0)?,
                capacity: row.number(1)?,
                price_level: row.number(2)?,
                buckets: row.number(3)?,
            })
        })?;
        let text =
            "SELECT amount_minor FROM prices WHERE event_no = ?1 AND price_version = ?2 ORDER BY level";
        let prices = self.0.all(text, &[no.0.into(), price_version.into()], |row| row.number_or_none(0))?;
        let manifest = Manifest { price_levels, sections, seats, ga_areas };
        Ok(Some(ManifestView { version, manifest, price_version, prices }))
    }

    /// The state of each seat of an event.
    pub fn seat_digits(&self, no: EventNo) -> Parsed<Option<SeatDigits>> {
        self.0.still(|| {
            let text = "SELECT version, epoch, manifest_version FROM events WHERE event_no = ?1";
            let head = self
                .0
                .one(text, &[no.0.into()], |row| Ok((row.number(0)?, row.number(1)?, row.number(2)?)))?;
            let Some((version, epoch, manifest_version)) = head else {
                return Ok(None);
            };
            // What is set aside for a party is not for sale to all.
            let text = "SELECT CASE WHEN status = 0 AND allocation IS NOT NULL THEN 3 ELSE status END
                 FROM seats WHERE event_no = ?1 ORDER BY ordinal";
            let digits = self.0.all(text, &[no.0.into()], |row| Ok(b'0' + row.number::<u8>(0)?))?;
            let text = format!("SELECT {BUCKET} FROM ga_buckets WHERE event_no = ?1 ORDER BY area, bucket");
            let buckets = self.0.all(&text, &[no.0.into()], rows::bucket)?;
            Ok(Some(SeatDigits { version, epoch, manifest_version, digits, buckets }))
        })
    }

    /// An event's log after a version, at most `limit` entries.
    pub fn log_after(&self, no: EventNo, after: u64, limit: u32) -> Parsed<Vec<LogEntry>> {
        let text =
            format!("SELECT {LOG} FROM log WHERE event_no = ?1 AND version > ?2 ORDER BY version LIMIT ?3");
        self.0.all(&text, &[no.0.into(), (after as i64).into(), limit.into()], rows::log)
    }

    /// What the log says happened to the seats after a version, at most `limit` entries; `None` when the log doesn't
    /// reach back that far.
    pub fn seat_changes(&self, no: EventNo, after: u64, limit: u32) -> Parsed<Option<SeatChanges>> {
        let mut found =
            SeatChanges { version: after, changes: Vec::new(), places: Vec::new(), replaced: false };
        for entry in self.log_after(no, after, limit)? {
            if entry.version != found.version + 1 {
                return Ok(None);
            }
            found.version = entry.version;
            found.replaced |= matches!(entry.kind, LogKind::ManifestReplaced { .. });
            let digits = entry.kind.seat_digits();
            found.changes.extend(digits.map(|(seat, digit)| (entry.version, seat, digit)));
            if entry.kind.changes_places() {
                found.places.push((entry.version, entry.kind));
            }
        }
        Ok(Some(found))
    }

    fn priced(&self, hold: &Hold) -> Parsed<Vec<(SeatOrdinal, u16, i64)>> {
        let text = "SELECT s.ordinal, s.price_level, p.amount_minor FROM seats s
             JOIN prices p ON p.event_no = s.event_no AND p.price_version = ?3 AND p.level = s.price_level
             WHERE s.event_no = ?1 AND s.ordinal = ?2";
        let price = |ordinal: &SeatOrdinal| {
            let key = [hold.event().0.into(), ordinal.0.into(), hold.price_version.into()];
            let priced = self
                .0
                .one(text, &key, |row| Ok((SeatOrdinal(row.number(0)?), row.number(1)?, row.number(2)?)))?;
            priced.ok_or_else(|| StoreError::Corrupt {
                wanted: "a seat with its price",
                found: format!("nothing for seat {} of hold {}", ordinal.0, hold.id),
            })
        };
        hold.seats.iter().map(price).collect()
    }

    fn bare_hold(&self, id: HoldId) -> Parsed<Option<Hold>> {
        let text = format!("SELECT {HOLD} FROM holds WHERE hold_id = ?1");
        self.0.one(&text, &[id.0.into()], rows::hold)
    }

    /// What the areas of some places cost: for each area how many, index of the price level, price of each.
    fn priced_places(&self, hold: &Hold) -> Parsed<Vec<(AreaNo, u32, u16, i64)>> {
        let text = "SELECT a.price_level, p.amount_minor FROM ga_areas a
             JOIN prices p ON p.event_no = a.event_no AND p.price_version = ?3 AND p.level = a.price_level
             WHERE a.event_no = ?1 AND a.position = ?2";
        let price = |(area, quantity): (AreaNo, u32)| {
            let key = [hold.event().0.into(), area.0.into(), hold.price_version.into()];
            let priced =
                self.0.one(text, &key, |row| Ok((area, quantity, row.number(0)?, row.number(1)?)))?;
            priced.ok_or_else(|| StoreError::Corrupt {
                wanted: "an area with its price",
                found: format!("nothing for area {} of hold {}", area.0, hold.id),
            })
        };
        by_area(&hold.ga).into_iter().map(price).collect()
    }

    /// A hold, as it stays.
    pub fn hold(&self, id: HoldId) -> Parsed<Option<HoldView>> {
        let hold = self.0.still(|| {
            let hold = self.bare_hold(id)?;
            hold.map(|hold| Ok(HoldView { seats: self.priced(&hold)?, ga: self.priced_places(&hold)?, hold }))
                .transpose()
        })?;
        self.0.prove()?;
        Ok(hold)
    }

    /// An order.
    pub fn order(&self, id: OrderId) -> Parsed<Option<OrderView>> {
        let order = self.0.still(|| {
            let text = format!("SELECT {ORDER} FROM orders WHERE order_id = ?1");
            let Some(order) = self.0.one(&text, &[id.0.into()], rows::order)? else {
                return Ok(None);
            };
            let hold = self.bare_hold(order.hold)?;
            let (seats, ga) = match &hold {
                Some(hold) => (self.priced(hold)?, self.priced_places(hold)?),
                None => Default::default(),
            };
            let text = "SELECT CAST(coalesce(sum(amount_minor), 0) AS BIGINT) FROM operations
                 WHERE order_id = ?1 AND kind = 'REFUND' AND status = 'SUCCEEDED'";
            let refunded_minor = self.0.one(text, &[id.0.into()], |row| row.number(0))?.unwrap_or(0);
            let text = "SELECT next_action_url FROM operations
                 WHERE order_id = ?1 AND kind = 'AUTHORIZE' AND status = 'REQUIRES_ACTION'";
            let next_action_url = self.0.one(text, &[id.0.into()], |row| row.string_or_none(0))?.flatten();
            Ok(Some(OrderView { order, seats, ga, refunded_minor, next_action_url }))
        })?;
        self.0.prove()?;
        Ok(order)
    }

    /// Who may see an order.
    pub fn order_account(&self, id: OrderId) -> Parsed<Option<AccountId>> {
        let text = "SELECT account_id FROM orders WHERE order_id = ?1";
        self.0.one(text, &[id.0.into()], |row| row.account(0))
    }

    /// Live operations whose time has come, the longest due first.
    pub fn due_operations(&self, now: Timestamp, limit: u32) -> Parsed<Vec<OperationView>> {
        let columns =
            OPERATION.split(", ").map(|column| format!("o.{}", column.trim())).collect::<Vec<_>>().join(", ");
        let text = format!(
            "SELECT {columns}, r.status, r.return_url, e.payment FROM operations o
             JOIN orders r ON r.order_id = o.order_id JOIN events e ON e.event_no = o.event_no
             WHERE o.status IN ('PENDING', 'REQUIRES_ACTION', 'UNKNOWN') AND o.due_at <= ?1 AND e.elsewhere IS NULL
             ORDER BY o.due_at LIMIT ?2"
        );
        let due = self.0.all(&text, &[now.millis().into(), limit.into()], |row| {
            Ok(OperationView {
                operation: rows::operation(row)?,
                order_status: row.word(17)?,
                return_url: row.string_or_none(18)?,
                charge: row.text(19)? == "charge",
            })
        })?;
        // Money is moved on account of them.
        self.0.prove()?;
        Ok(due)
    }

    /// Live holds whose time has come and that aren't in doubt already, the longest due first.
    pub fn due_holds(&self, now: Timestamp, limit: u32) -> Parsed<Vec<HoldId>> {
        self.0.all(
            "SELECT h.hold_id FROM holds h JOIN events e ON e.event_no = h.event_no
             WHERE h.status IN ('ACTIVE', 'PAYMENT_PENDING') AND h.in_doubt = 0 AND h.expires_at <= ?1 AND e.elsewhere IS NULL
             ORDER BY h.expires_at LIMIT ?2",
            &[now.millis().into(), limit.into()],
            |row| row.id(0),
        )
    }

    /// Parked callbacks whose time has come.
    pub fn due_callbacks(&self, now: Timestamp, limit: u32) -> Parsed<Vec<CallbackDue>> {
        let text = format!(
            "SELECT {CALLBACK} FROM callbacks WHERE verdict = 'parked' AND due_at <= ?1
               AND EXISTS (SELECT 1 FROM events e WHERE e.event_no = callbacks.event_no AND e.elsewhere IS NULL)
             ORDER BY due_at LIMIT ?2"
        );
        self.0.all(&text, &[now.millis().into(), limit.into()], rows::callback)
    }

    /// Digest and verdict of a callback that came before.
    pub fn callback(&self, provider_event_id: &str) -> Parsed<Option<(u128, Verdict)>> {
        let text = format!("SELECT {CALLBACK} FROM callbacks WHERE provider_event_id = ?1");
        let found = self.0.one(&text, &[provider_event_id.into()], rows::callback)?;
        self.0.prove()?;
        Ok(found.map(|callback| (callback.digest, callback.verdict)))
    }

    /// The attempt with this name at the provider.
    pub fn attempt(&self, reference: &str) -> Parsed<Option<OperationId>> {
        let text = "SELECT operation_id FROM operations
             WHERE reference = ?1 AND kind = 'AUTHORIZE' AND reference IS NOT NULL";
        self.0.one(text, &[reference.into()], |row| row.id(0))
    }

    /// Whether there is such an operation.
    pub fn has_operation(&self, id: OperationId) -> Parsed<bool> {
        let text = "SELECT 1 FROM operations WHERE operation_id = ?1";
        Ok(self.0.one(text, &[id.0.into()], |_| Ok(()))?.is_some())
    }

    /// A case.
    pub fn case(&self, id: CaseId) -> Parsed<Option<CaseView>> {
        let text = format!("SELECT {CASE} FROM cases WHERE case_id = ?1");
        self.0.one(&text, &[id.0.into()], rows::case)
    }

    /// Cases, the oldest first, at most `limit`.
    pub fn cases(&self, status: Option<CaseStatus>, limit: u32) -> Parsed<Vec<CaseView>> {
        let limit = Value::from(limit);
        match status {
            Some(status) => {
                let text = format!(
                    "SELECT {CASE} FROM cases WHERE status = ?1 ORDER BY opened_at, case_id LIMIT ?2"
                );
                self.0.all(&text, &[status.word().into(), limit], rows::case)
            }
            // Open ones come first: the index runs from the last word to the first.
            None => {
                let text =
                    format!("SELECT {CASE} FROM cases ORDER BY status DESC, opened_at, case_id LIMIT ?1");
                self.0.all(&text, &[limit], rows::case)
            }
        }
    }

    /// Counts and money of an event.
    pub fn report(&self, no: EventNo) -> Parsed<EventReport> {
        self.0.still(|| self.report_now(no))
    }

    fn report_now(&self, no: EventNo) -> Parsed<EventReport> {
        let of_event = [Value::from(no.0)];
        let mut report = EventReport::default();
        let text = "SELECT status, count(*) FROM seats WHERE event_no = ?1 GROUP BY status";
        for (status, count) in
            self.0.all(text, &of_event, |row| Ok((row.number::<u8>(0)?, row.number(1)?)))?
        {
            match status {
                0 => report.available = count,
                1 => report.held = count,
                2 => report.sold = count,
                _ => report.not_for_sale = count,
            }
        }
        // A sum of 64-bit numbers is a wider number on PostgreSQL.
        let orders = self.0.all(
            "SELECT status, count(*), CAST(sum(amount_minor) AS BIGINT) FROM orders WHERE event_no = ?1 GROUP BY status",
            &of_event,
            |row| Ok((row.word::<OrderStatus>(0)?, row.number(1)?, row.number(2)?)),
        )?;
        for (status, count, sum) in orders {
            match status {
                OrderStatus::AwaitingPayment => report.orders_awaiting_payment = count,
                OrderStatus::Confirmed => (report.orders_confirmed, report.gross_minor) = (count, sum),
                OrderStatus::Cancelled => report.orders_cancelled = count,
                OrderStatus::Expired => report.orders_expired = count,
            }
        }
        let one = |text: &str| -> Parsed<i64> {
            Ok(self.0.one(text, &of_event, |row| row.number(0))?.unwrap_or(0))
        };
        report.captured_minor = one("SELECT CAST(coalesce(sum(amount_minor), 0) AS BIGINT) FROM orders
             WHERE event_no = ?1 AND status = 'CONFIRMED' AND payment_status = 'CAPTURED'")?;
        report.returning_minor = one("SELECT CAST(coalesce(sum(amount_minor), 0) AS BIGINT) FROM operations
             WHERE event_no = ?1 AND kind IN ('VOID', 'REFUND') AND status IN ('PENDING', 'REQUIRES_ACTION', 'UNKNOWN')")?;
        report.refunded_minor = one("SELECT CAST(coalesce(sum(amount_minor), 0) AS BIGINT) FROM operations
             WHERE event_no = ?1 AND kind = 'REFUND' AND status = 'SUCCEEDED'")?;
        let text =
            "SELECT CAST(coalesce(sum(capacity), 0) AS BIGINT), CAST(coalesce(sum(held), 0) AS BIGINT),
               CAST(coalesce(sum(sold), 0) AS BIGINT) FROM ga_buckets WHERE event_no = ?1";
        let places =
            self.0.one(text, &of_event, |row| Ok((row.number(0)?, row.number(1)?, row.number(2)?)))?;
        (report.ga_capacity, report.ga_held, report.ga_sold) = places.unwrap_or_default();
        let text =
            "SELECT count(*), count(admitted_at) FROM tickets WHERE event_no = ?1 AND status <> 'REVOKED'";
        let tickets = self.0.one(text, &of_event, |row| Ok((row.number(0)?, row.number(1)?)))?;
        (report.tickets_issued, report.tickets_admitted) = tickets.unwrap_or_default();
        report.cases_open = one("SELECT count(*) FROM cases WHERE event_no = ?1 AND status = 'OPEN'")? as u64;
        Ok(report)
    }

    /// All keys that are in force.
    pub fn api_keys(&self) -> Parsed<Vec<ApiKey>> {
        let text =
            "SELECT key_id, secret_sha256, role, name, created_at FROM api_keys WHERE revoked_at IS NULL";
        self.0.all(text, &[], |row| {
            let secret = row.bytes(1)?;
            let corrupt =
                |_| StoreError::Corrupt { wanted: "a digest", found: format!("{} bytes", secret.len()) };
            Ok(ApiKey {
                key_id: KeyId(row.bits(0)?),
                secret_sha256: secret.as_slice().try_into().map_err(corrupt)?,
                role: row.word(2)?,
                name: row.string(3)?,
                created_at: time(row, 4)?,
            })
        })
    }

    /// What waits: holds past their time, operations without an answer, parked callbacks, open cases, orders without their
    /// tickets, undelivered webhooks; each with the instant of the oldest.
    pub fn backlog(&self, now: Timestamp) -> Parsed<[(&'static str, u64, Option<Timestamp>); 6]> {
        let told = |row: &Row<'_>| Ok((row.number(0)?, time_or_none(row, 1)?));
        let ask = |text: &str, values: &[Value<'_>]| -> Parsed<(u64, Option<Timestamp>)> {
            Ok(self.0.one(text, values, told)?.unwrap_or_default())
        };
        self.0.still(|| {
            let holds = ask(
                "SELECT count(*), min(expires_at) FROM holds
                 WHERE status IN ('ACTIVE', 'PAYMENT_PENDING') AND in_doubt = 0 AND expires_at <= ?1",
                &[now.millis().into()],
            )?;
            let unknown = ask(
                "SELECT count(*), min(created_at) FROM operations
                 WHERE status IN ('PENDING', 'REQUIRES_ACTION', 'UNKNOWN') AND status = 'UNKNOWN'",
                &[],
            )?;
            let parked =
                ask("SELECT count(*), min(received_at) FROM callbacks WHERE verdict = 'parked'", &[])?;
            let webhooks =
                ask("SELECT count(*), min(at) FROM webhook_deliveries WHERE status <> 'DELIVERED'", &[])?;
            let cases = ask("SELECT count(*), min(opened_at) FROM cases WHERE status = 'OPEN'", &[])?;
            let tickets = ask(
                "SELECT count(*), min(confirmed_at) FROM orders
                 WHERE status = 'CONFIRMED' AND payment_status = 'CAPTURED' AND ticketed = 0",
                &[],
            )?;
            Ok([
                ("expired_holds", holds.0, holds.1),
                ("payment_unknown", unknown.0, unknown.1),
                ("callbacks_parked", parked.0, parked.1),
                ("cases_open", cases.0, cases.1),
                ("tickets_due", tickets.0, tickets.1),
                ("webhooks_undelivered", webhooks.0, webhooks.1),
            ])
        })
    }
}
