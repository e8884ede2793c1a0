//! Rows on their way: out of a database of either kind, into a home, and summed up to be compared.

use std::fmt::Write;

use bytes::{Bytes, BytesMut};
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::error::StoreError;
use crate::limits::COPY_CHUNK;
use crate::look::{Look, Parsed};
use crate::postgres::{CopyIn, CopyOut, Link};

use super::tables::{Kind, Part, Purpose, Table, joined};

/// Rows summed up: how many, and a digest over them in the order of their keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sum {
    pub(super) rows: u64,
    sha256: [u8; 32],
}

/// Copies the rows of a part into a home; how many.
pub(super) fn copy(from: Look<'_>, to: &Link, table: &Table, part: Part) -> Parsed<u64> {
    let columns = joined(table.moved().map(|column| column.name.clone()));
    let mut into = CopyIn::begin(to, &format!("COPY {} ({columns}) FROM STDIN", table.name))?;
    each(from, table, part, Purpose::Copy, |lines| into.send(lines))?;
    into.finish()
}

/// Sums up the rows of a part.
pub(super) fn sum(db: Look<'_>, table: &Table, part: Part) -> Parsed<Sum> {
    let (mut rows, mut digest) = (0, Sha256::new());
    each(db, table, part, Purpose::Compare, |lines| {
        // A line's end in a value is written in other letters.
        rows += lines.iter().filter(|byte| **byte == b'\n').count() as u64;
        digest.update(&lines);
        Ok(())
    })?;
    Ok(Sum { rows, sha256: digest.finalize().into() })
}

/// Gives the rows of a part in the order of their keys, as lines, some at a time.
fn each(
    db: Look<'_>,
    table: &Table,
    part: Part,
    purpose: Purpose,
    mut give: impl FnMut(Bytes) -> Parsed<()>,
) -> Parsed<()> {
    match db {
        Look::Postgres(link) => {
            let text = format!("COPY ({}) TO STDOUT", table.select_from_home(part, purpose));
            let mut out = CopyOut::begin(link, &text)?;
            while let Some(lines) = out.next()? {
                give(lines)?;
            }
            Ok(())
        }
        Look::Sqlite(db) => each_of_file(db, table, part, purpose, give),
    }
}

fn each_of_file(
    db: &Connection,
    table: &Table,
    part: Part,
    purpose: Purpose,
    mut give: impl FnMut(Bytes) -> Parsed<()>,
) -> Parsed<()> {
    let kinds: Vec<Kind> = table.moved().map(|column| column.kind).collect();
    let mut statement = db.prepare(&table.select_from_file(part))?;
    let mut rows = statement.query([])?;
    let mut lines = BytesMut::new();
    while let Some(row) = rows.next()? {
        for (index, kind) in kinds.iter().enumerate() {
            if index > 0 {
                lines.extend_from_slice(b"\t");
            }
            write(&mut lines, *kind, row.get_ref(index)?, purpose)?;
        }
        lines.extend_from_slice(b"\n");
        if lines.len() >= COPY_CHUNK {
            give(lines.split().freeze())?;
        }
    }
    if lines.is_empty() { Ok(()) } else { give(lines.freeze()) }
}

/// Writes a value as PostgreSQL's COPY does.
fn write(out: &mut BytesMut, kind: Kind, value: ValueRef<'_>, purpose: Purpose) -> Parsed<()> {
    let written = match (kind, value) {
        (_, ValueRef::Null) => write!(out, "\\N"),
        (Kind::Number, ValueRef::Integer(number)) => write!(out, "{number}"),
        (Kind::Real, ValueRef::Real(number)) => match purpose {
            // As many digits as tell it from all others.
            Purpose::Copy => write!(out, "{number}"),
            Purpose::Compare => write!(out, "\\\\x{:016x}", number.to_bits()),
        },
        (Kind::Text, ValueRef::Text(text)) => {
            escape(out, text);
            Ok(())
        }
        (Kind::Id, ValueRef::Blob(bytes)) => match Uuid::from_slice(bytes) {
            Ok(bits) => write!(out, "{bits}"),
            Err(_) => return Err(wrong("sixteen bytes", value)),
        },
        (Kind::Bytes, ValueRef::Blob(bytes)) => {
            out.extend_from_slice(b"\\\\x");
            bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
        }
        (Kind::Number, _) => return Err(wrong("a number", value)),
        (Kind::Real, _) => return Err(wrong("a fraction", value)),
        (Kind::Text, _) => return Err(wrong("a text", value)),
        (Kind::Id | Kind::Bytes, _) => return Err(wrong("bytes", value)),
    };
    written.map_err(|_| wrong("what can be written", value))
}

fn wrong(wanted: &'static str, found: ValueRef<'_>) -> StoreError {
    StoreError::Corrupt { wanted, found: format!("{found:?}") }
}

/// Writes a text so that it is one value of one line.
fn escape(out: &mut BytesMut, text: &[u8]) {
    for byte in text {
        let letter = match byte {
            b'\\' => b'\\',
            b'\t' => b't',
            b'\n' => b'n',
            b'\r' => b'r',
            0x08 => b'b',
            0x0b => b'v',
            0x0c => b'f',
            _ => {
                out.extend_from_slice(&[*byte]);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', letter]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(kind: Kind, value: ValueRef<'_>, copied: &str, compared: &str) {
        for (purpose, expected) in [(Purpose::Copy, copied), (Purpose::Compare, compared)] {
            let mut out = BytesMut::new();
            write(&mut out, kind, value, purpose).expect("it can be written");
            assert_eq!(std::str::from_utf8(&out).expect("it is text"), expected);
        }
    }

    #[test]
    fn values_are_written_as_the_server_writes_them() {
        check(Kind::Text, ValueRef::Null, "\\N", "\\N");
        check(Kind::Number, ValueRef::Integer(-7), "-7", "-7");
        check(Kind::Real, ValueRef::Real(0.1), "0.1", "\\\\x3fb999999999999a");
        check(Kind::Real, ValueRef::Real(-0.0), "-0", "\\\\x8000000000000000");
        check(Kind::Text, ValueRef::Text("a\tb\\N\né".as_bytes()), "a\\tb\\\\N\\né", "a\\tb\\\\N\\né");
        let id = "00010203-0405-0607-0809-0a0b0c0d0e0f";
        let bytes: Vec<u8> = (0..16).collect();
        check(Kind::Id, ValueRef::Blob(&bytes), id, id);
        check(Kind::Bytes, ValueRef::Blob(b"\x00\xff"), "\\\\x00ff", "\\\\x00ff");
    }

    #[test]
    fn what_is_not_of_its_kind_is_refused() {
        let mut out = BytesMut::new();
        assert!(write(&mut out, Kind::Number, ValueRef::Real(1.0), Purpose::Copy).is_err());
        assert!(write(&mut out, Kind::Id, ValueRef::Blob(b"short"), Purpose::Copy).is_err());
    }
}
