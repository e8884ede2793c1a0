//! The database as only another program would touch it: locked, damaged, or of another version.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};

use rusqlite::Connection;

use super::store::url_of;
use super::{database, database_name, postgres};

/// Keeps every writer out until it is dropped.
pub(crate) enum Lock {
    File(Connection),
    /// A session with the lock; it ends with its input.
    Server(Child),
}

impl Lock {
    /// Of the database in a folder.
    pub(crate) fn take(folder: &Path) -> Lock {
        let Some(url) = url_of(folder) else {
            let connection = open(folder);
            connection.execute_batch("BEGIN IMMEDIATE").expect("the lock is free");
            return Lock::File(connection);
        };
        let mut psql = postgres().client("psql");
        psql.args(["-X", "-q", "-A", "-t", "-d", &url]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut session = psql.spawn().expect("psql starts");
        let input = session.stdin.as_mut().expect("it is piped");
        // Whoever decides takes an event's lock; whoever only reads doesn't.
        input.write_all(b"BEGIN; LOCK TABLE events IN EXCLUSIVE MODE; SELECT 'locked';\n").expect("it reads");
        let mut line = String::new();
        let output = session.stdout.take().expect("it is piped");
        BufReader::new(output).read_line(&mut line).expect("a line");
        assert_eq!(line, "locked\n");
        Lock::Server(session)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        match self {
            Lock::File(connection) => drop(connection.execute_batch("ROLLBACK")),
            Lock::Server(session) => {
                drop(session.stdin.take());
                session.wait().ok();
            }
        }
    }
}

/// Ways to break an invariant of a database with a paid order and a hold, each with the number of what it breaks.
pub(crate) const DAMAGES: &[(&str, &str)] = &[
    ("I-1", "UPDATE orders SET status = 'CANCELLED'"),
    ("I-2", "UPDATE seats SET status = 0, hold_id = NULL, order_id = NULL WHERE status = 2"),
    ("I-4", "UPDATE seats SET status = 0, hold_id = NULL, hold_expires_at = NULL WHERE status = 1"),
    ("I-8", "UPDATE holds SET total_minor = total_minor + 1"),
    ("I-9", "UPDATE operations SET amount_minor = amount_minor - 1 WHERE kind = 'AUTHORIZE'"),
    ("I-12", "DELETE FROM operations WHERE kind = 'CAPTURE'"),
    ("I-13", "UPDATE events SET payment_pending = 7 WHERE event_no > 0"),
    ("I-15", "DELETE FROM log WHERE version = 2"),
    ("I-30", "UPDATE orders SET payment_status = 'AUTHORIZED'"),
    ("I-31", "DELETE FROM manifest_seats WHERE ordinal = 0"),
];

/// Runs statements on the database in a folder.
pub(crate) fn damage(folder: &Path, statements: &str) {
    if let Some(url) = url_of(folder) {
        postgres().psql(database_name(&url), statements).expect("the statements run");
        return;
    }
    open(folder).execute_batch(statements).expect("the statements run");
}

/// Makes a database look like one that a newer program has migrated.
pub(crate) fn make_newer(folder: &Path) {
    let migration =
        "INSERT INTO schema_migrations VALUES (999, 'from the future', x'00', '2100-01-01T00:00:00Z')";
    damage(folder, migration);
}

/// Makes a database look as if its migrations had been changed after they were applied.
pub(crate) fn make_changed(folder: &Path) {
    damage(folder, "UPDATE schema_migrations SET sha256 = x'00'");
}

/// Makes an event's prices unreadable, or readable again.
pub(crate) fn hide_prices(folder: &Path, hide: bool) {
    let (from, to) = if hide { ("price_levels", "hidden") } else { ("hidden", "price_levels") };
    damage(folder, &format!("ALTER TABLE {from} RENAME TO {to}"));
}

fn open(folder: &Path) -> Connection {
    Connection::open(database(folder)).expect("the database opens")
}
