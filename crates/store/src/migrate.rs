//! Numbered migrations, each applied once, in order, and refused when the database knows one we don't.

use rusqlite::{Connection, TransactionBehavior};
use sha2::{Digest, Sha256};

use crate::error::{OpenError, StoreError};
use crate::look::{Look, Value};
use crate::postgres::Link;

/// Number, name, statements.
type Migration = (i64, &'static str, &'static str);

/// The migrations of the embedded database.
const SQLITE: &[Migration] = &[(1, "initial", include_str!("../sql/sqlite/migrations/0001_initial.sql"))];

/// The migrations of a PostgreSQL database.
const POSTGRES: &[Migration] = &[(1, "initial", include_str!("../sql/postgres/migrations/0001_initial.sql"))];

/// A number that only this program's migrations lock.
const POSTGRES_LOCK: i64 = 0x6f6e_7361_6c65;

const APPLIED: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (
       number BIGINT PRIMARY KEY, name TEXT NOT NULL, sha256 BYTEA NOT NULL, applied_at TEXT NOT NULL
     )";

/// Brings the embedded database up to date, under the write lock, so that two programs starting at once do it once.
/// With `upgrades` false only an empty database is migrated, and one of an older program is refused.
pub(crate) fn migrate(connection: &mut Connection, upgrades: bool) -> Result<(), OpenError> {
    let behavior = TransactionBehavior::Immediate;
    let transaction = connection.transaction_with_behavior(behavior).map_err(StoreError::from)?;
    let table = APPLIED.replace("BIGINT", "INTEGER").replace("BYTEA", "BLOB") + " STRICT";
    let run = |text: &str| transaction.execute_batch(text).map_err(StoreError::from);
    run(&table)?;
    let now = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')";
    bring_up_to_date(Look::Sqlite(&transaction), SQLITE, upgrades, now, run)?;
    Ok(transaction.commit().map_err(StoreError::from)?)
}

/// Brings a PostgreSQL database up to date, under a lock of the whole database.
pub(crate) fn migrate_postgres(link: &Link, upgrades: bool) -> Result<(), OpenError> {
    link.batch("BEGIN")?;
    // The lock goes with the transaction, however that ends.
    link.query("SELECT 1 FROM (SELECT pg_advisory_xact_lock($1)) AS locked", &[Value::Int(POSTGRES_LOCK)])?;
    link.batch(APPLIED)?;
    let now = "to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')";
    bring_up_to_date(Look::Postgres(link), POSTGRES, upgrades, now, |text| link.batch(text))?;
    link.batch("COMMIT")?;
    // What isn't on the standby is found by the check of the next start.
    if link.take_warning() { Err(StoreError::NotReplicated.into()) } else { Ok(()) }
}

fn bring_up_to_date(
    db: Look<'_>,
    migrations: &[Migration],
    upgrades: bool,
    now: &str,
    run: impl Fn(&str) -> Result<(), StoreError>,
) -> Result<(), OpenError> {
    let applied = check(db, migrations)?;
    let newest = newest(migrations);
    if applied > 0 && applied < newest && !upgrades {
        return Err(OpenError::Older { found: applied, wanted: newest });
    }
    for (number, name, statements) in migrations.iter().filter(|(number, ..)| *number > applied) {
        run(statements)?;
        let text = format!("INSERT INTO schema_migrations VALUES (?1, ?2, ?3, {now})");
        db.execute(&text, &[(*number).into(), (*name).into(), Value::Bytes(&digest(statements))])?;
    }
    Ok(())
}

/// The last migration this program has.
fn newest(migrations: &[Migration]) -> i64 {
    migrations.last().map_or(0, |(number, ..)| *number)
}

/// Checks that a database opened for reading is exactly at this program's version.
pub(crate) fn require_current(db: Look<'_>) -> Result<(), OpenError> {
    let (migrations, table) = match db {
        Look::Sqlite(_) => (SQLITE, "SELECT 1 FROM sqlite_schema WHERE name = 'schema_migrations'"),
        Look::Postgres(_) => (POSTGRES, "SELECT 1 WHERE to_regclass('schema_migrations') IS NOT NULL"),
    };
    let wanted = newest(migrations);
    let is_there = db.one(table, &[], |_| Ok(()))?.is_some();
    let found = if is_there { check(db, migrations)? } else { 0 };
    if found == wanted { Ok(()) } else { Err(OpenError::Older { found, wanted }) }
}

/// The last migration applied; an error when the database's history isn't ours.
fn check(db: Look<'_>, migrations: &[Migration]) -> Result<i64, OpenError> {
    let text = "SELECT number, name, sha256 FROM schema_migrations ORDER BY number";
    let applied = db.all(text, &[], |row| Ok((row.number::<i64>(0)?, row.string(1)?, row.bytes(2)?)))?;
    let mut last = 0;
    for (number, name, sha256) in applied {
        let Some((_, _, statements)) = migrations.iter().find(|(known, ..)| *known == number) else {
            return Err(OpenError::Newer { number, name });
        };
        if digest(statements) != sha256 {
            return Err(OpenError::Changed { number });
        }
        last = number;
    }
    Ok(last)
}

fn digest(statements: &str) -> Vec<u8> {
    Sha256::digest(statements.as_bytes()).to_vec()
}
