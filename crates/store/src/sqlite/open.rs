//! Opening connections with the settings that durability rests on, and checking that they are in force.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::{OpenError, StoreError};
use crate::limits::{BUSY_TIMEOUT, SQLITE_VERSION_MIN, WRITER_CACHE_KIB};
use crate::migrate;

use super::Options;

/// The writer's connection: migrated, WAL, every commit synced.
pub(super) fn for_writing(options: &Options, path: &Path) -> Result<Connection, OpenError> {
    std::fs::create_dir_all(&options.folder)
        .map_err(|source| OpenError::Folder { path: options.folder.clone(), source })?;
    let failed = |source| OpenError::Open { path: path.to_owned(), source };
    // Made by us before the engine makes it: it keeps e-mail addresses and secrets, so it is its owner's alone. What
    // the engine puts beside it takes the same mode.
    let made = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path);
    made.map_err(|source| OpenError::Folder { path: path.to_owned(), source })?;
    let mut connection = Connection::open(path).map_err(failed)?;
    connection.busy_timeout(options.busy_timeout).map_err(failed)?;
    require_engine()?;
    enter_wal(&connection, options.busy_timeout).map_err(failed)??;
    connection.execute_batch("PRAGMA synchronous = FULL").map_err(failed)?;
    require(&connection, "synchronous", "PRAGMA synchronous", "2").map_err(failed)??;
    connection
        .execute_batch(&format!(
            "PRAGMA cache_size = -{WRITER_CACHE_KIB}; PRAGMA temp_store = MEMORY; PRAGMA wal_autocheckpoint = 0;
             PRAGMA trusted_schema = OFF;"
        ))
        .map_err(failed)?;
    connection.set_prepared_statement_cache_capacity(128);
    migrate::migrate(&mut connection, options.upgrades)?;
    if let Some(pages) = options.pages_max {
        connection.execute_batch(&format!("PRAGMA max_page_count = {pages}")).map_err(failed)?;
    }
    Ok(connection)
}

/// Turns the WAL on. The engine doesn't wait for whoever else is doing so at the same time, so the wait is here.
fn enter_wal(connection: &Connection, patience: Duration) -> rusqlite::Result<Result<(), OpenError>> {
    let begun = Instant::now();
    loop {
        let entered = require(connection, "journal_mode", "PRAGMA journal_mode = WAL", "wal");
        let is_busy = matches!(&entered, Err(e) if e.sqlite_error_code() == Some(ErrorCode::DatabaseBusy));
        if !is_busy || begun.elapsed() >= patience {
            return entered;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The checkpointer's connection.
pub(super) fn for_checkpoints(path: &Path) -> Result<Connection, OpenError> {
    let failed = |source| OpenError::Open { path: path.to_owned(), source };
    let connection = Connection::open(path).map_err(failed)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
    // A checkpoint must reach the disk before the WAL is reused.
    connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;").map_err(failed)?;
    Ok(connection)
}

/// A connection that can only read.
pub(super) fn for_reading(path: &Path) -> Result<Connection, StoreError> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    // Read-write at the file's level, so that a WAL left by a crash can be recovered; read-only at the statement's.
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.execute_batch(
        "PRAGMA query_only = ON; PRAGMA wal_autocheckpoint = 0; PRAGMA temp_store = MEMORY;",
    )?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// A connection that can only read, to a database that must exist and be at this program's version.
pub(super) fn existing_for_reading(path: &Path) -> Result<Connection, OpenError> {
    require_engine()?;
    let connection = for_reading(path).map_err(|error| match error {
        StoreError::Sqlite(source) => OpenError::Open { path: path.to_owned(), source },
        other => unreachable!("opening fails in the engine or not at all: {other}"),
    })?;
    migrate::require_current(&connection)?;
    Ok(connection)
}

fn require_engine() -> Result<(), OpenError> {
    if rusqlite::version_number() >= SQLITE_VERSION_MIN {
        return Ok(());
    }
    Err(OpenError::Setting {
        name: "SQLite version",
        found: rusqlite::version().to_owned(),
        wanted: "3.51.3 or newer",
    })
}

/// Runs a statement that tells a setting, and checks it.
fn require(
    connection: &Connection,
    name: &'static str,
    statement: &str,
    wanted: &'static str,
) -> rusqlite::Result<Result<(), OpenError>> {
    let found = connection.query_row(statement, [], |row| {
        row.get::<_, String>(0).or_else(|_| row.get::<_, i64>(0).map(|number| number.to_string()))
    })?;
    Ok(if found == wanted { Ok(()) } else { Err(OpenError::Setting { name, found, wanted }) })
}
