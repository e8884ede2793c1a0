//! Numbered migrations, each applied once, in order, and refused when the database knows one we don't.

use rusqlite::{Connection, OptionalExtension, TransactionBehavior};
use sha2::{Digest, Sha256};

use crate::error::OpenError;

/// The migrations of the embedded database: number, name, statements.
const SQLITE: &[(i64, &str, &str)] =
    &[(1, "initial", include_str!("../sql/sqlite/migrations/0001_initial.sql"))];

/// Brings a database up to date, under the write lock, so that two programs starting at once do it once.
/// With `upgrades` false only an empty database is migrated, and one of an older program is refused.
pub(crate) fn migrate(connection: &mut Connection, upgrades: bool) -> Result<(), OpenError> {
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(OpenError::Migrate)?;
    transaction
        .execute_batch(
            "CREATE TABLE IF NOT EXISTS schema_migrations (
               number INTEGER PRIMARY KEY, name TEXT NOT NULL, sha256 BLOB NOT NULL, applied_at TEXT NOT NULL
             ) STRICT;",
        )
        .map_err(OpenError::Migrate)?;
    let applied = check(&transaction)?;
    if applied > 0 && applied < newest() && !upgrades {
        return Err(OpenError::Older { found: applied, wanted: newest() });
    }
    for (number, name, statements) in SQLITE.iter().filter(|(number, ..)| *number > applied) {
        transaction.execute_batch(statements).map_err(OpenError::Migrate)?;
        transaction
            .execute(
                "INSERT INTO schema_migrations VALUES (?1, ?2, ?3, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))",
                (number, name, digest(statements)),
            )
            .map_err(OpenError::Migrate)?;
    }
    transaction.commit().map_err(OpenError::Migrate)
}

/// The last migration this program has.
fn newest() -> i64 {
    SQLITE.last().map_or(0, |(number, ..)| *number)
}

/// Checks that a database opened for reading is exactly at this program's version.
pub(crate) fn require_current(connection: &Connection) -> Result<(), OpenError> {
    let wanted = newest();
    let table = connection
        .query_row("SELECT 1 FROM sqlite_schema WHERE name = 'schema_migrations'", [], |_| Ok(()))
        .optional()
        .map_err(OpenError::Migrate)?;
    let found = if table.is_some() { check(connection)? } else { 0 };
    if found == wanted { Ok(()) } else { Err(OpenError::Older { found, wanted }) }
}

/// The last migration applied; an error when the database's history isn't ours.
fn check(connection: &Connection) -> Result<i64, OpenError> {
    let mut statement = connection
        .prepare("SELECT number, name, sha256 FROM schema_migrations ORDER BY number")
        .map_err(OpenError::Migrate)?;
    let rows = statement
        .query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, Vec<u8>>(2)?)))
        .map_err(OpenError::Migrate)?;
    let mut last = 0;
    for row in rows {
        let (number, name, sha256) = row.map_err(OpenError::Migrate)?;
        let Some((_, _, statements)) = SQLITE.iter().find(|(known, ..)| *known == number) else {
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
