//! Every invariant as a query for its violations, over one state of the database. `docs/invariants.md` says of each
//! what it promises and where else it is enforced.

mod kept;
mod outbox;
mod places;
mod sale;
mod tickets;

use std::borrow::Cow;
use std::collections::BTreeSet;

use onsale_core::id::{CaseId, EventId, EventNo, HoldId, OperationId, OrderId, TicketId};
use onsale_core::time::Timestamp;
use rusqlite::ErrorCode;

use crate::error::{StoreError, chain};
use crate::limits::AUDIT_ROWS_MAX;
use crate::look::{Any, Look, Row, Value};

/// The result of an audit.
#[derive(Clone, Debug)]
pub struct Audit {
    /// Each check with what it found.
    pub checks: Vec<Check>,
}

impl Audit {
    /// Violations in all.
    pub fn violations(&self) -> u64 {
        self.checks.iter().map(|check| check.violations).sum()
    }
}

/// One check.
#[derive(Clone, Debug)]
pub struct Check {
    /// The invariant's number.
    pub id: &'static str,
    /// What must hold.
    pub title: &'static str,
    /// How many rows break it.
    pub violations: u64,
    /// The first of them, one line each.
    pub rows: Vec<String>,
}

/// What an audit is about.
#[derive(Clone, Copy)]
pub(crate) enum Scope {
    /// All that is at home here. What is left of an event whose home is elsewhere is nobody's any more, or not yet.
    AtHome,
    /// One event, whether or not it is at home here, and what belongs to no event.
    Event(EventNo),
    /// Everything, wherever it is at home.
    Everything,
}

/// Whose violations don't count.
enum Passed {
    None,
    Events(BTreeSet<EventNo>),
    AllBut(EventNo),
}

impl Passed {
    fn over(&self, row: &Row<'_>) -> Result<bool, StoreError> {
        Ok(match self {
            Passed::None => false,
            Passed::Events(passed) if passed.is_empty() => false,
            Passed::Events(passed) => {
                let events = events_of(row)?;
                !events.is_empty() && events.iter().all(|no| passed.contains(no))
            }
            Passed::AllBut(event) => {
                let events = events_of(row)?;
                !events.is_empty() && !events.contains(event)
            }
        })
    }
}

/// Runs all checks on one state of the database.
pub(crate) fn run(db: Look<'_>, now: Timestamp, scope: Scope) -> Result<Audit, StoreError> {
    let whole = match db {
        Look::Sqlite(_) => &PAGES_OF_SQLITE,
        Look::Postgres(_) => &PAGES_OF_POSTGRES,
    };
    let checks = all().into_iter().chain([whole]);
    db.still(|| {
        let passed = match scope {
            Scope::AtHome => Passed::Events(gone(db)?),
            Scope::Event(event) => Passed::AllBut(event),
            Scope::Everything => Passed::None,
        };
        let checks = checks.map(|(id, title, text)| {
            let text = match scope {
                Scope::AtHome => Cow::Borrowed(*text),
                Scope::Event(_) | Scope::Everything => Cow::Owned(text.replace(AT_HOME, "1 = 1")),
            };
            let text = match db {
                Look::Sqlite(_) => Cow::Owned(words_for_sqlite(&text)),
                Look::Postgres(_) => text,
            };
            check(db, id, title, &text, now, &passed)
        });
        Ok(Audit { checks: checks.collect::<Result<_, _>>()? })
    })
}

/// The checks that both kinds of database know, in the order of their numbers.
pub(crate) fn all() -> Vec<&'static Query> {
    let mut checks: Vec<&Query> =
        [sale::CHECKS, places::CHECKS, tickets::CHECKS, outbox::CHECKS, kept::CHECKS]
            .into_iter()
            .flatten()
            .collect();
    checks.sort_by_key(|(id, ..)| id.trim_start_matches("I-").parse::<u32>().unwrap_or(u32::MAX));
    checks
}

/// Number, promise, query for what breaks it, in words that both databases know (`look.rs`) but for `json_objects`. `?1` is the
/// time of the audit.
type Query = (&'static str, &'static str, &'static str);

/// In SQLite a list of objects is taken apart by what takes any list apart; a server's functions say what they give.
pub(crate) fn words_for_sqlite(text: &str) -> String {
    text.replace("json_objects(", "json_each(")
}

/// The events whose home is elsewhere. Where that can't be read, the checks say so.
fn gone(db: Look<'_>) -> Result<BTreeSet<EventNo>, StoreError> {
    let text = "SELECT event_no FROM events WHERE elsewhere IS NOT NULL";
    match db.all(text, &[], |row| Ok(EventNo(row.number(0)?))) {
        Err(error) if is_damage(&error) => Ok(BTreeSet::new()),
        found => Ok(found?.into_iter().collect()),
    }
}

/// How a check says that it is about events at home here.
const AT_HOME: &str = "e.elsewhere IS NULL";

/// The events that a row is about: ids carry theirs. None where it belongs to none.
fn events_of(row: &Row<'_>) -> Result<Vec<EventNo>, StoreError> {
    let mut events = Vec::new();
    for (index, name) in row.names().into_iter().enumerate() {
        match name {
            "event_no" => events.extend(row.number_or_none(index)?.map(EventNo)),
            "hold_id" | "order_id" | "operation_id" | "paid_by" | "target" => {
                if let Any::Bytes(bytes) = row.any(index)?
                    && let Ok(bits) = bytes.try_into().map(u128::from_be_bytes)
                {
                    events.push(EventId(bits).event());
                }
            }
            _ => {}
        }
    }
    Ok(events)
}

fn check(
    db: Look<'_>,
    id: &'static str,
    title: &'static str,
    text: &str,
    now: Timestamp,
    passed: &Passed,
) -> Result<Check, StoreError> {
    let mut check = Check { id, title, violations: 0, rows: Vec::new() };
    // Each query may use the time; binding it to one that doesn't would be an error.
    let values = if text.contains("?1") { &[now.millis().into()][..] } else { &[] as &[Value<'_>] };
    let told = db.all(text, values, |row| {
        if passed.over(row)? {
            return Ok(());
        }
        check.violations += 1;
        if check.rows.len() < AUDIT_ROWS_MAX {
            check.rows.push(line(row)?);
        }
        Ok(())
    });
    match told {
        Ok(_) => Ok(check),
        // What is damaged can't be looked through: that is a finding, and the other checks go on.
        Err(error) if is_damage(&error) => {
            check.violations += 1;
            check.rows.push(chain(&error));
            Ok(check)
        }
        Err(error) => Err(error),
    }
}

/// A page or a JSON text that isn't one. On PostgreSQL an error ends the whole look, and the audit with it.
fn is_damage(error: &StoreError) -> bool {
    let StoreError::Sqlite(error) = error else { return false };
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::Unknown))
}

fn line(row: &Row<'_>) -> Result<String, StoreError> {
    let mut parts = Vec::new();
    for (index, name) in row.names().into_iter().enumerate() {
        let value = match row.any(index)? {
            Any::None => "none".to_owned(),
            Any::Text(text) => text,
            Any::Bytes(bytes) => id_text(name, &bytes),
        };
        parts.push(format!("{name} {value}"));
    }
    Ok(parts.join(", "))
}

/// An id as the API writes it, by the name of its column.
fn id_text(column: &str, bytes: &[u8]) -> String {
    let Ok(bits) = bytes.try_into().map(u128::from_be_bytes) else {
        return bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    };
    match column {
        "hold_id" => HoldId(bits).to_string(),
        "order_id" => OrderId(bits).to_string(),
        "operation_id" | "paid_by" | "target" => OperationId(bits).to_string(),
        "case_id" => CaseId(bits).to_string(),
        "ticket_id" => TicketId(bits).to_string(),
        _ => format!("{bits:032x}"),
    }
}

/// Number, promise and query of the last check, which each kind of database answers for itself.
const PAGES: (&str, &str) = ("I-32", "the pages of the database are whole");
const PAGES_OF_SQLITE: (&str, &str, &str) =
    (PAGES.0, PAGES.1, "SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'");
/// A server checks each page as it reads it, when its cluster has checksums.
const PAGES_OF_POSTGRES: (&str, &str, &str) = (
    PAGES.0,
    PAGES.1,
    "SELECT 'checksums failed' AS what, datname AS place, checksum_failures AS times FROM pg_stat_database
     WHERE datname = current_database() AND checksum_failures > 0
     UNION ALL
     SELECT 'index not valid', i.indexrelid::regclass::text, 1 FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
     WHERE NOT i.indisvalid AND c.relnamespace = current_schema()::regnamespace",
);
