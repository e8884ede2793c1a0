//! Opening connections with the settings that durability rests on, and checking that they are in force.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::{OpenError, StoreError};
use crate::limits::{BUSY_TIMEOUT, RESTART_TIMEOUT_FORCED, SQLITE_VERSION_MIN, WRITER_CACHE_KIB};
use crate::{migrate, upkeep};

use super::{Ground, Options};

/// The writer's connection: migrated, WAL, every commit synced.
pub(super) fn for_writing(options: &Options, path: &Path) -> Result<Connection, OpenError> {
    make_folder(&options.folder)
        .map_err(|source| OpenError::Folder { path: options.folder.clone(), source })?;
    let failed = |source| OpenError::Open { path: path.to_owned(), source };
    make_file(path).map_err(|source| OpenError::File { path: path.to_owned(), source })?;
    take_in_unsynced(options.ground, path)?;
    let mut connection = connect(options.ground, path, OpenFlags::default()).map_err(failed)?;
    connection.busy_timeout(options.busy_timeout).map_err(failed)?;
    require_engine()?;
    leave_wal_on_close(&connection).map_err(failed)?;
    patiently(options.busy_timeout, || {
        require(&connection, "journal_mode", "PRAGMA journal_mode = WAL", "wal").map_err(failed)??;
        let (word, number) = if options.ground.syncs_commits { ("FULL", "2") } else { ("NORMAL", "1") };
        connection.execute_batch(&format!("PRAGMA synchronous = {word}")).map_err(failed)?;
        require(&connection, "synchronous", "PRAGMA synchronous", number).map_err(failed)??;
        let settings = format!(
            "PRAGMA cache_size = -{WRITER_CACHE_KIB}; PRAGMA temp_store = MEMORY; PRAGMA wal_autocheckpoint = 0;
             PRAGMA trusted_schema = OFF;"
        );
        connection.execute_batch(&settings).map_err(failed)
    })?;
    plan_once(&connection).map_err(failed)?;
    connection.set_prepared_statement_cache_capacity(128);
    migrate::migrate(&mut connection, options.upgrades)?;
    if let Some(pages) = options.pages_max {
        connection.execute_batch(&format!("PRAGMA max_page_count = {pages}")).map_err(failed)?;
    }
    take_in_wal(&connection, options.busy_timeout).map_err(failed)?;
    Ok(connection)
}

/// Refuses a database that has moved: nothing is to be decided in it any more.
pub(super) fn require_home(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    match upkeep::moved_to(crate::look::Look::Sqlite(connection))? {
        None => Ok(()),
        Some(home) => Err(OpenError::Moved { path: path.to_owned(), home }),
    }
}

/// Copies what the WAL holds into the database, and syncs it, before anything is added. A WAL that a crash has left is read
/// from the system's memory: where a sync has failed, that isn't what is on the disk, and what is written after it would be
/// lost with the power although it was synced. When another program reads or writes meanwhile, there was no crash, or it is
/// that program which has taken in what was left; then the WAL stays as it is.
fn take_in_wal(connection: &Connection, busy_timeout: Duration) -> rusqlite::Result<()> {
    connection.busy_timeout(RESTART_TIMEOUT_FORCED)?;
    let done = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    connection.busy_timeout(busy_timeout)?;
    done.or_else(|error| match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Ok(()),
        _ => Err(error),
    })
}

/// The file that tells that a sync of the database has failed.
pub(super) fn unsynced_mark(path: &Path) -> PathBuf {
    path.with_extension("db-unsynced")
}

/// Copies the whole WAL into a database whose sync has failed. What was copied before counts for nothing, so that must not be
/// remembered by anyone: this connection is the only one, or there is no start. It keeps its memory to itself.
fn take_in_unsynced(ground: Ground, path: &Path) -> Result<(), OpenError> {
    let failed = |source| OpenError::Open { path: path.to_owned(), source };
    let mark = unsynced_mark(path);
    let is_marked = mark.try_exists().map_err(|source| OpenError::File { path: mark.clone(), source })?;
    if !is_marked {
        return Ok(());
    }
    let connection = connect(ground, path, OpenFlags::default()).map_err(failed)?;
    leave_wal_on_close(&connection).map_err(failed)?;
    let alone = "PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;
        PRAGMA wal_checkpoint(TRUNCATE);";
    connection.execute_batch(alone).map_err(failed)?;
    drop(connection);
    std::fs::remove_file(&mark).map_err(|source| OpenError::File { path: mark, source })
}

/// Whoever closes the database last would copy the WAL into it. Where a sync has failed, that must not be: see
/// `Soundness` in `checkpoints.rs`. The writer alone does it, when all is well.
fn leave_wal_on_close(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map(drop)
}

/// Makes a folder, and those it is in. The name of a new one is kept with the sync of the folder it is in; the names of the
/// files in the data folder are kept by the engine, which syncs it with the first sync of a new WAL.
fn make_folder(folder: &Path) -> std::io::Result<()> {
    if folder.try_exists()? {
        // What isn't a folder is an error of its own.
        return std::fs::create_dir_all(folder);
    }
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    make_folder(parent)?;
    std::fs::create_dir_all(folder)?;
    File::open(parent)?.sync_all()
}

fn connect(ground: Ground, path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    match ground.vfs {
        None => Connection::open_with_flags(path, flags),
        Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs),
    }
}

/// Makes the file before the engine does, so that it is its owner's alone: it keeps e-mail addresses and secrets. What the
/// engine puts beside it takes the same mode. It is made under another name and then given its own: to close a handle of
/// the database's file would let go of every lock that this process has on it.
fn make_file(path: &Path) -> std::io::Result<()> {
    static MADE: AtomicU32 = AtomicU32::new(0);
    if path.try_exists()? {
        return Ok(());
    }
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let draft = path.with_extension(format!("new-{}-{number}", std::process::id()));
    make_private(&draft)?;
    let named = std::fs::hard_link(&draft, path);
    std::fs::remove_file(&draft)?;
    // Another program may have been quicker: then the file is there, and that is all that is wanted.
    named.or_else(|error| if error.kind() == ErrorKind::AlreadyExists { Ok(()) } else { Err(error) })
}

/// Makes an empty file that is its owner's alone.
pub(super) fn make_private(path: &Path) -> std::io::Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map(drop)
}

/// Repeats work that finds the file locked. Where another program turns the WAL on or closes as the last at the same
/// instant, the engine reports that at once, without the wait it is set to.
fn patiently(patience: Duration, work: impl Fn() -> Result<(), OpenError>) -> Result<(), OpenError> {
    let begun = Instant::now();
    loop {
        let done = work();
        let is_busy = matches!(&done, Err(OpenError::Open { source, .. })
            if source.sqlite_error_code() == Some(ErrorCode::DatabaseBusy));
        if !is_busy || begun.elapsed() >= patience {
            return done;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Plans don't depend on the values bound to them. Without this the engine plans a statement anew at each run when a table
/// has a partial index that a bound value might imply, which costs several times the look-up itself.
fn plan_once(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

/// The checkpointer's connection.
pub(super) fn for_checkpoints(ground: Ground, path: &Path) -> Result<Connection, OpenError> {
    let failed = |source| OpenError::Open { path: path.to_owned(), source };
    let connection = connect(ground, path, OpenFlags::default()).map_err(failed)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
    leave_wal_on_close(&connection).map_err(failed)?;
    // A checkpoint must reach the disk before the WAL is reused.
    let settings = "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;";
    patiently(BUSY_TIMEOUT, || connection.execute_batch(settings).map_err(failed))?;
    Ok(connection)
}

/// A connection that can only read.
pub(super) fn for_reading(ground: Ground, path: &Path) -> Result<Connection, StoreError> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    // Read-write at the file's level, so that a WAL left by a crash can be recovered; read-only at the statement's.
    let connection = connect(ground, path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    leave_wal_on_close(&connection)?;
    connection.execute_batch(
        "PRAGMA query_only = ON; PRAGMA wal_autocheckpoint = 0; PRAGMA temp_store = MEMORY;",
    )?;
    plan_once(&connection)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// A connection that can only read, to a database that must exist and be at this program's version.
pub(super) fn existing_for_reading(path: &Path) -> Result<Connection, OpenError> {
    require_engine()?;
    let connection = for_reading(Ground::default(), path).map_err(|error| match error {
        StoreError::Sqlite(source) => OpenError::Open { path: path.to_owned(), source },
        other => unreachable!("opening fails in the engine or not at all: {other}"),
    })?;
    migrate::require_current(crate::look::Look::Sqlite(&connection))?;
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
