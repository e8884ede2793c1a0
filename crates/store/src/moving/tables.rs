//! Which rows move, and how they are asked for. The tables and their columns are read from the schema itself, so that one that
//! is added later moves too.

use onsale_core::id::EventNo;
use onsale_core::time::Timestamp;

use crate::error::StoreError;
use crate::look::{Look, Parsed, Row};
use crate::postgres::Link;

/// What the secret is called that says which move is under way; it is each database's own.
pub(super) const TOKEN: &str = "moving";

/// Tables that stay: they are about the database itself.
const STAY: &[&str] = &["batches", "directory", "schema_migrations"];

/// What a column holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Number,
    Real,
    Text,
    /// Sixteen bytes: an id or a digest.
    Id,
    Bytes,
}

impl Kind {
    fn of(name: &str) -> Parsed<Kind> {
        Ok(match name {
            "int2" | "int4" | "int8" => Kind::Number,
            "float8" => Kind::Real,
            "text" => Kind::Text,
            "uuid" => Kind::Id,
            "bytea" => Kind::Bytes,
            _ => {
                return Err(StoreError::Corrupt {
                    wanted: "a type that can be moved",
                    found: name.to_owned(),
                });
            }
        })
    }
}

/// A column.
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: Kind,
}

/// A table whose rows move.
pub(super) struct Table {
    pub(super) name: String,
    pub(super) columns: Vec<Column>,
    /// The columns of its key, in their order.
    pub(super) key: Vec<usize>,
}

/// For which purpose rows are asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To be written elsewhere, as the same values.
    Copy,
    /// To be compared, by the very bits.
    Compare,
}

/// Which rows.
#[derive(Clone, Copy)]
pub(super) struct Part {
    /// Those of an event, or all.
    pub(super) event: Option<EventNo>,
    /// Finished requests that are older may be forgotten at any time, and stay.
    pub(super) keys_since: Timestamp,
}

/// All tables that rows are moved from, those that tell of events last.
pub(super) fn all(link: &Link) -> Parsed<Vec<Table>> {
    let text = "SELECT c.relname::text, a.attname::text, t.typname::text,
           coalesce(array_position(i.indkey::int2[], a.attnum), -1)
         FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
         JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
         WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace
         ORDER BY c.relname = 'events', c.relname, a.attnum";
    let told = Look::Postgres(link).all(text, &[], |row: &Row<'_>| {
        Ok((row.string(0)?, row.string(1)?, row.string(2)?, row.number::<i64>(3)?))
    })?;
    let mut tables: Vec<Table> = Vec::new();
    let mut keys: Vec<(i64, usize)> = Vec::new();
    for (name, column, kind, place) in told {
        if STAY.contains(&name.as_str()) {
            continue;
        }
        if tables.last().is_none_or(|table| table.name != name) {
            tables.push(Table { name, columns: Vec::new(), key: Vec::new() });
            keys.clear();
        }
        let Some(table) = tables.last_mut() else { continue };
        table.columns.push(Column { name: column, kind: Kind::of(&kind)? });
        if place >= 0 {
            keys.push((place, table.columns.len() - 1));
            keys.sort_unstable();
            table.key = keys.iter().map(|(_, column)| *column).collect();
        }
    }
    Ok(tables)
}

/// The tables that have rows of events.
pub(super) fn of_events(link: &Link) -> Parsed<Vec<Table>> {
    Ok(all(link)?.into_iter().filter(Table::is_of_events).collect())
}

impl Table {
    fn is_of_events(&self) -> bool {
        self.columns.iter().any(|column| column.name == "event_no")
    }

    /// Whether its key begins with the event, so that an event's rows lie together.
    pub(super) fn is_keyed_by_event(&self) -> bool {
        self.key.first().is_some_and(|column| self.columns[*column].name == "event_no")
    }

    /// The columns that are copied and compared: all but what says where the event is at home.
    pub(super) fn moved(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| column.name != "elsewhere")
    }

    /// The rows of a part in the order of their keys, in SQLite's words.
    pub(super) fn select_from_file(&self, part: Part) -> String {
        let columns = joined(self.moved().map(|column| column.name.clone()));
        self.select(part, &columns, |column| column.name.clone())
    }

    /// The same in PostgreSQL's words. Texts are in the order of their bytes.
    pub(super) fn select_from_home(&self, part: Part, purpose: Purpose) -> String {
        let columns = joined(self.moved().map(|column| match (column.kind, purpose) {
            (Kind::Real, Purpose::Compare) => format!("float8send({})", column.name),
            _ => column.name.clone(),
        }));
        self.select(part, &columns, |column| match column.kind {
            Kind::Text => format!("{} COLLATE \"C\"", column.name),
            _ => column.name.clone(),
        })
    }

    fn select(&self, part: Part, columns: &str, ordered: impl Fn(&Column) -> String) -> String {
        let key = joined(self.key.iter().map(|column| ordered(&self.columns[*column])));
        let (name, wanted) = (&self.name, self.wanted(part));
        format!("SELECT {columns} FROM {name} WHERE {wanted} ORDER BY {key}")
    }

    /// The condition for the rows of a part.
    pub(super) fn wanted(&self, part: Part) -> String {
        let of_event = part.event.map(|no| format!("event_no = {}", no.0));
        let own = match self.name.as_str() {
            "idempotency_keys" => Some(format!("created_at >= {}", part.keys_since.millis())),
            "secrets" => Some(format!("name <> '{TOKEN}'")),
            _ => None,
        };
        let conditions: Vec<String> = of_event.into_iter().chain(own).collect();
        if conditions.is_empty() { "1 = 1".to_owned() } else { conditions.join(" AND ") }
    }
}

pub(super) fn joined(names: impl Iterator<Item = String>) -> String {
    names.collect::<Vec<_>>().join(", ")
}
