//! Removing what is nobody's any more. The event's own row stays, as the fence for whoever still writes here.

use onsale_core::id::EventNo;
use onsale_core::time::Timestamp;

use crate::limits::BULK_ROWS_MAX;
use crate::look::{Look, Parsed, Value};
use crate::postgres::Link;

use super::tables::{Kind, Part, Table};
use super::{MoveError, Moved, Named, durably};

/// What is left of an event in a home that it isn't at.
pub(super) struct Leftover<'a> {
    pub(super) event: EventNo,
    /// Where the row here says that it is at home.
    pub(super) elsewhere: &'a str,
    /// The epoch of the row here.
    pub(super) epoch: i64,
}

/// Removes all rows of an event but its own, some in each transaction; how many. Each looks under the row's lock whether they
/// still are nobody's: the event may be on its way back.
pub(super) fn clear(link: &Link, tables: &[Table], left: &Leftover<'_>) -> Moved<u64> {
    let what = "remove what is no longer needed";
    let mut all = 0;
    for table in tables.iter().filter(|table| table.name != "events") {
        let mut after = None;
        loop {
            let (rows, last) = durably(link, what, || {
                let text =
                    "SELECT 1 FROM events WHERE event_no = $1 AND elsewhere = $2 AND epoch = $3 FOR UPDATE";
                let values = [left.event.0.into(), left.elsewhere.into(), left.epoch.into()];
                let is_so = link.query(text, &values).while_to(what)?;
                if is_so.is_empty() {
                    return Err(MoveError::Overtaken);
                }
                some(link, table, left.event, after.as_deref()).while_to(what)
            })?;
            all += rows;
            after = last;
            if rows < BULK_ROWS_MAX as u64 {
                break;
            }
        }
    }
    Ok(all)
}

/// Removes some rows; how many, and the key of the last where the next look goes on from it. Rows of an event that lie together
/// are found at once; others are passed through in the order of their key, once in all.
fn some(link: &Link, table: &Table, event: EventNo, after: Option<&str>) -> Parsed<(u64, Option<String>)> {
    let name = &table.name;
    let limit = Value::Int(BULK_ROWS_MAX as i64);
    let key = match &table.key[..] {
        [only] if !table.is_keyed_by_event() => &table.columns[*only],
        _ => {
            let text = format!(
                "DELETE FROM {name} WHERE ctid = ANY(ARRAY(SELECT ctid FROM {name} WHERE event_no = $1 LIMIT $2))"
            );
            return Ok((link.execute(&text, &[event.0.into(), limit])?, None));
        }
    };
    let (column, cast, order) = match key.kind {
        Kind::Id => (&key.name, "uuid", ""),
        Kind::Number => (&key.name, "bigint", ""),
        _ => (&key.name, "text", "COLLATE \"C\""),
    };
    let from =
        if after.is_some() { format!("AND {column} {order} > $3::text::{cast}") } else { String::new() };
    let text = format!(
        "WITH gone AS (DELETE FROM {name} WHERE ctid = ANY(ARRAY(
           SELECT ctid FROM {name} WHERE event_no = $1 {from} ORDER BY {column} {order} LIMIT $2)) RETURNING {column})
         SELECT count(*) OVER (), {column}::text FROM gone ORDER BY {column} {order} DESC LIMIT 1"
    );
    let mut values = vec![Value::from(event.0), limit];
    values.extend(after.map(Value::from));
    let last = Look::Postgres(link).all(&text, &values, |row| Ok((row.number::<u64>(0)?, row.string(1)?)))?;
    Ok(match last.into_iter().next() {
        Some((rows, last)) => (rows, Some(last)),
        None => (0, None),
    })
}

/// Removes, within a transaction, whatever a part has in all tables.
pub(super) fn remove_all(link: &Link, tables: &[&Table], part: Part) -> Moved<()> {
    let forever = Part { keys_since: Timestamp::ZERO, ..part };
    for table in tables {
        let text = format!("DELETE FROM {} WHERE {}", table.name, table.wanted(forever));
        link.batch(&text).while_to("remove an earlier copy")?;
    }
    Ok(())
}
