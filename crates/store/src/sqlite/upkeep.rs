//! What the database needs beside decisions: keys, secrets, forgetting, copying.

use std::path::Path;

use onsale_core::id::KeyId;
use onsale_core::time::Timestamp;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, params};

use crate::error::StoreError;
use crate::keys::ApiKey;
use crate::names::Named;

/// Rows forgotten in one go: a short transaction between batches.
const FORGET_MAX: i64 = 2_000;

pub(super) fn add_key(db: &mut Connection, key: &ApiKey) -> Result<(), StoreError> {
    db.execute(
        "INSERT INTO api_keys VALUES (?1, ?2, ?3, ?4, ?5, NULL)",
        params![
            key.key_id.0.to_be_bytes(),
            key.secret_sha256,
            key.role.word(),
            key.name,
            key.created_at.millis()
        ],
    )?;
    Ok(())
}

pub(super) fn revoke_key(db: &mut Connection, key: KeyId, now: Timestamp) -> Result<bool, StoreError> {
    let revoked = db.execute(
        "UPDATE api_keys SET revoked_at = ifnull(revoked_at, ?1) WHERE key_id = ?2",
        params![now.millis(), key.0.to_be_bytes()],
    )?;
    Ok(revoked == 1)
}

pub(super) fn secret(
    db: &mut Connection,
    name: &str,
    fresh: &[u8],
    now: Timestamp,
) -> Result<Vec<u8>, StoreError> {
    db.execute("INSERT OR IGNORE INTO secrets VALUES (?1, ?2, ?3)", params![name, fresh, now.millis()])?;
    Ok(db.query_row("SELECT value FROM secrets WHERE name = ?1", [name], |row| row.get(0))?)
}

pub(super) fn forget_keys(db: &mut Connection, before: Timestamp) -> Result<usize, StoreError> {
    Ok(db.execute(
        "DELETE FROM idempotency_keys WHERE key IN
           (SELECT key FROM idempotency_keys WHERE created_at < ?1 LIMIT ?2)",
        params![before.millis(), FORGET_MAX],
    )?)
}

pub(super) fn backup(db: &Connection, to: &Path) -> Result<(), StoreError> {
    let mut copy = Connection::open(to)?;
    let backup = Backup::new(db, &mut copy)?;
    // All pages in one look: it keeps no writer waiting, and a copy in steps begins anew whenever the database changes.
    if backup.step(-1)? != StepResult::Done {
        return Err(StoreError::Busy);
    }
    drop(backup);
    // The copy is one file that needs nothing beside it.
    copy.execute_batch("PRAGMA journal_mode = DELETE")?;
    Ok(())
}
