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

/// What the rows say of the seats of a PostgreSQL database with one event: its version, and a digit for each seat.
pub(crate) fn seats_in_rows(url: &str) -> String {
    let text = "SELECT (SELECT version FROM events WHERE event_no <> 0) || ' '
           || (SELECT string_agg(status::text, '' ORDER BY ordinal) FROM seats)";
    ask(url, text)
}

/// How many have the duty of a PostgreSQL database.
pub(crate) fn duties(url: &str) -> usize {
    let text = "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
         WHERE l.locktype = 'advisory' AND l.granted AND d.datname = current_database()";
    ask(url, text).parse().expect("a number")
}

/// Changes a setting for whoever connects to a PostgreSQL database from now on, or takes the change back.
pub(crate) fn set_for(url: &str, setting: &str, value: Option<&str>) {
    let change = value.map_or(format!("RESET {setting}"), |value| format!("SET {setting} = {value}"));
    ask(url, &format!("ALTER DATABASE {} {change}", database_name(url)));
}

/// Ends all connections to a PostgreSQL database.
pub(crate) fn cut_off(url: &str) {
    let text = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()";
    ask(url, text);
}

/// Makes a PostgreSQL database look like one that a newer program has migrated.
pub(crate) fn make_newer_at(url: &str) {
    let migration =
        "INSERT INTO schema_migrations VALUES (999, 'from the future', '\\x00', '2100-01-01T00:00:00Z')";
    ask(url, migration);
}

fn ask(url: &str, text: &str) -> String {
    postgres().psql(database_name(url), text).expect("it is asked")
}

fn open(folder: &Path) -> Connection {
    Connection::open(database(folder)).expect("the database opens")
}

/// By how many places the books of the standing areas in a folder's database don't close, all areas together: one
/// consistent read.
pub(crate) fn off_balance(folder: &Path) -> i64 {
    let text = "SELECT CAST(COALESCE(SUM(ABS(a.capacity
          - (SELECT COALESCE(SUM(b.capacity), 0) FROM ga_buckets b WHERE b.event_no = a.event_no AND b.area = a.position)
          - (SELECT COALESCE(SUM(t.quantity), 0) FROM quota_transfers t
              WHERE t.event_no = a.event_no AND t.area = a.position AND t.status = 'IN_FLIGHT'))), 0) AS BIGINT)
        FROM ga_areas a";
    ask_number(folder, text)
}

/// How many places anyone can have, by the rows of a folder's database, without the cap.
pub(crate) fn free_in_rows(folder: &Path) -> i64 {
    let text = "SELECT CAST(COALESCE(SUM(capacity - held - sold), 0) AS BIGINT) FROM ga_buckets WHERE allocation IS NULL";
    ask_number(folder, text)
}

/// What a question is answered by the database in a folder, in one read.
fn ask_number(folder: &Path, text: &str) -> i64 {
    match url_of(folder) {
        Some(url) => ask(&url, text).trim().parse().expect("a number"),
        None => open(folder).query_row(text, [], |row| row.get(0)).expect("a number"),
    }
}

/// Leaves every event of a database on a server as a mover does that stopped half way, on its way to the home `east`; or undoes
/// that.
pub(crate) fn put_on_its_way(url: &str, is_on_its_way: bool) {
    let statements = match is_on_its_way {
        true => {
            "UPDATE events SET elsewhere = 'east' WHERE event_no <> 0;
             INSERT INTO directory SELECT event_no, 'main', 'east', 0 FROM events WHERE event_no <> 0"
        }
        false => "UPDATE events SET elsewhere = NULL; DELETE FROM directory",
    };
    postgres().psql(database_name(url), statements).expect("the statements run");
}
