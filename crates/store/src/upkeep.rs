//! What a database needs beside decisions: keys, secrets, forgetting.

use onsale_core::id::{EventNo, KeyId};
use onsale_core::limits::IDEMPOTENCY_TTL_MS;
use onsale_core::time::Timestamp;
use rusqlite::{Transaction, TransactionBehavior};

use crate::error::StoreError;
use crate::keys::ApiKey;
use crate::limits::BATCHES_KEPT_MS;
use crate::look::{Look, Value};
use crate::names::Named;

/// Rows forgotten in one go: a short transaction between batches.
const FORGET_MAX: i64 = 2_000;

/// Where the database as a whole has moved, or comes from until everything is there: then nothing may be changed in it.
pub(crate) fn moved_to(db: Look<'_>) -> Result<Option<String>, StoreError> {
    let house =
        db.one("SELECT elsewhere FROM events WHERE event_no = 0", &[], |row| row.string_or_none(0))?;
    Ok(house.flatten())
}

/// Work in a transaction of its own, unless the database has moved: that is looked up under the house's lock.
pub(crate) fn at_home<R>(
    db: Look<'_>,
    work: impl FnOnce() -> Result<R, StoreError>,
) -> Result<R, StoreError> {
    let in_lock = || match moved_to(db)? {
        None => work(),
        Some(home) => Err(StoreError::Elsewhere(home)),
    };
    match db {
        Look::Sqlite(connection) => {
            let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
            let done = in_lock()?;
            transaction.commit()?;
            Ok(done)
        }
        Look::Postgres(link) => link.transaction(|| {
            link.query("SELECT 1 FROM events WHERE event_no = 0 FOR SHARE", &[])?;
            in_lock()
        }),
    }
}

pub(crate) fn add_key(db: Look<'_>, key: &ApiKey) -> Result<(), StoreError> {
    let values = [
        Value::Bits(key.key_id.0),
        Value::Bytes(&key.secret_sha256),
        key.role.word().into(),
        key.name.as_str().into(),
        key.created_at.millis().into(),
    ];
    db.execute(
        "INSERT INTO api_keys (key_id, secret_sha256, role, name, created_at) VALUES (?1, ?2, ?3, ?4, ?5)",
        &values,
    )?;
    Ok(())
}

pub(crate) fn revoke_key(db: Look<'_>, key: KeyId, now: Timestamp) -> Result<bool, StoreError> {
    let text = "UPDATE api_keys SET revoked_at = coalesce(revoked_at, ?1) WHERE key_id = ?2";
    Ok(db.execute(text, &[now.millis().into(), key.0.into()])? == 1)
}

pub(crate) fn secret(db: Look<'_>, name: &str, fresh: &[u8], now: Timestamp) -> Result<Vec<u8>, StoreError> {
    let text = "INSERT INTO secrets (name, value, created_at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    db.execute(text, &[name.into(), Value::Bytes(fresh), now.millis().into()])?;
    let kept = db.one("SELECT value FROM secrets WHERE name = ?1", &[name.into()], |row| row.bytes(0))?;
    kept.ok_or_else(|| StoreError::Corrupt { wanted: "a secret", found: "nothing".to_owned() })
}

/// Raises an event's epoch, so that whatever is remembered of before is visibly older; the new one, or `None` when the event
/// isn't at home here.
pub(crate) fn fence(db: Look<'_>, event: EventNo) -> Result<Option<u64>, StoreError> {
    let text =
        "UPDATE events SET epoch = epoch + 1 WHERE event_no = ?1 AND elsewhere IS NULL RETURNING epoch";
    db.one(text, &[event.0.into()], |row| row.number(0))
}

/// Forgets finished requests, and marks of batches, of before a time; how many requests. Those of an event that is on its way
/// stay: they are being copied.
pub(crate) fn forget_keys(db: Look<'_>, before: Timestamp) -> Result<usize, StoreError> {
    let text = "DELETE FROM idempotency_keys WHERE key IN
           (SELECT key FROM idempotency_keys k WHERE created_at < ?1
              AND NOT EXISTS (SELECT 1 FROM events e WHERE e.event_no = k.event_no AND e.elsewhere IS NOT NULL) LIMIT ?2)";
    let forgotten = db.execute(text, &[before.millis().into(), FORGET_MAX.into()])? as usize;
    if let Look::Postgres(_) = db {
        let text =
            "DELETE FROM batches WHERE batch_id IN (SELECT batch_id FROM batches WHERE at < ?1 LIMIT ?2)";
        let before = before.plus_ms(IDEMPOTENCY_TTL_MS - BATCHES_KEPT_MS);
        db.execute(text, &[before.millis().into(), FORGET_MAX.into()])?;
    }
    Ok(forgotten)
}

/// Keeps how far some upkeep has come, if that still stands where `was` says; whether it did. Two processes that do the same
/// work don't throw each other back.
pub(crate) fn keep_progress(
    db: Look<'_>,
    name: &str,
    was: Option<&str>,
    value: &str,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let kept = match was {
        None => {
            let text =
                "INSERT INTO progress (name, value, updated_at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
            db.execute(text, &[name.into(), value.into(), now.millis().into()])?
        }
        Some(was) => {
            let text = "UPDATE progress SET value = ?2, updated_at = ?3 WHERE name = ?1 AND value = ?4";
            db.execute(text, &[name.into(), value.into(), now.millis().into(), was.into()])?
        }
    };
    Ok(kept == 1)
}

/// Enters the home of an event in the directory, unless it is there already.
pub(crate) fn enter_home(db: Look<'_>, event: EventNo, home: &str) -> Result<(), StoreError> {
    let text = "INSERT INTO directory (event_no, home, epoch) VALUES (?1, ?2, 1) ON CONFLICT DO NOTHING";
    db.execute(text, &[event.0.into(), home.into()])?;
    Ok(())
}
