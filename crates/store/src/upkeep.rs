//! What a database needs beside decisions: keys, secrets, forgetting.

use onsale_core::id::{EventNo, KeyId};
use onsale_core::limits::IDEMPOTENCY_TTL_MS;
use onsale_core::time::Timestamp;

use crate::error::StoreError;
use crate::keys::ApiKey;
use crate::limits::BATCHES_KEPT_MS;
use crate::look::{Look, Value};
use crate::names::Named;

/// Rows forgotten in one go: a short transaction between batches.
const FORGET_MAX: i64 = 2_000;

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

/// Forgets finished requests, and marks of batches, of before a time; how many requests.
pub(crate) fn forget_keys(db: Look<'_>, before: Timestamp) -> Result<usize, StoreError> {
    let text = "DELETE FROM idempotency_keys WHERE key IN
           (SELECT key FROM idempotency_keys WHERE created_at < ?1 LIMIT ?2)";
    let forgotten = db.execute(text, &[before.millis().into(), FORGET_MAX.into()])? as usize;
    if let Look::Postgres(_) = db {
        let text =
            "DELETE FROM batches WHERE batch_id IN (SELECT batch_id FROM batches WHERE at < ?1 LIMIT ?2)";
        let before = before.plus_ms(IDEMPOTENCY_TTL_MS - BATCHES_KEPT_MS);
        db.execute(text, &[before.millis().into(), FORGET_MAX.into()])?;
    }
    Ok(forgotten)
}

/// Enters the home of an event in the directory, unless it is there already.
pub(crate) fn enter_home(db: Look<'_>, event: EventNo, home: &str) -> Result<(), StoreError> {
    let text = "INSERT INTO directory (event_no, home, epoch) VALUES (?1, ?2, 1) ON CONFLICT DO NOTHING";
    db.execute(text, &[event.0.into(), home.into()])?;
    Ok(())
}
