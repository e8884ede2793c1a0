//! The statements that change the outbox.

use onsale_core::id::{EndpointId, EventNo, MessageId};
use onsale_core::time::Timestamp;

use crate::limits::{WEBHOOK_ENDPOINTS_MAX, WEBHOOK_ROWS_MAX};
use crate::look::{Look, Parsed, Value};

use super::{Attempt, NewDelivery, Next, WebhookEndpoint};

/// Rows written by one statement.
const ROWS_AT_ONCE: usize = 50;

pub(super) fn types_json(types: &[String]) -> String {
    serde_json::Value::from(types).to_string()
}

/// Locks an event against being moved, if it is at home here.
fn lock(db: Look<'_>, event: EventNo) -> Parsed<bool> {
    let text = "SELECT 1 FROM events WHERE event_no = ?1 AND elsewhere IS NULL";
    match db {
        Look::Sqlite(_) => Ok(db.one(text, &[event.0.into()], |_| Ok(()))?.is_some()),
        Look::Postgres(_) => {
            let text = format!("{text} FOR SHARE");
            Ok(db.one(&text, &[event.0.into()], |_| Ok(()))?.is_some())
        }
    }
}

/// The same, and locks what is to be told of it to an endpoint against other processes. Whoever changes several deliveries begins
/// with this, so that two never wait for each other.
fn lock_for(db: Look<'_>, event: EventNo, endpoint: EndpointId) -> Parsed<bool> {
    if !lock(db, event)? {
        return Ok(false);
    }
    if let Look::Postgres(_) = db {
        let text = "SELECT 1 FROM webhook_progress WHERE event_no = ?1 AND endpoint_id = ?2 FOR UPDATE";
        db.one(text, &[event.0.into(), endpoint.0.into()], |_| Ok(()))?;
    }
    Ok(true)
}

pub(super) fn add_endpoint(db: Look<'_>, endpoint: &WebhookEndpoint) -> Parsed<bool> {
    let text = "SELECT count(*) FROM webhook_endpoints WHERE status <> 'DELETED'";
    let count: u64 = db.one(text, &[], |row| row.number(0))?.unwrap_or(0);
    if count >= WEBHOOK_ENDPOINTS_MAX {
        return Ok(false);
    }
    let types = types_json(&endpoint.types);
    let text =
        "INSERT INTO webhook_endpoints (endpoint_id, url, types, secret, status, created_at, enabled_at)
         VALUES (?1, ?2, ?3, ?4, 'ENABLED', ?5, ?6)";
    let values = [
        endpoint.id.0.into(),
        endpoint.url.as_str().into(),
        types.as_str().into(),
        Value::Bytes(&endpoint.secret),
        endpoint.created_at.millis().into(),
        endpoint.enabled_at.millis().into(),
    ];
    Ok(db.execute(text, &values)? == 1)
}

pub(super) fn rotate_secret(
    db: Look<'_>,
    id: EndpointId,
    fresh: &[u8],
    both_until: Timestamp,
) -> Parsed<bool> {
    let text = "UPDATE webhook_endpoints SET secret_before = secret, signed_until = ?1, secret = ?2
         WHERE endpoint_id = ?3 AND status <> 'DELETED'";
    Ok(db.execute(text, &[both_until.millis().into(), Value::Bytes(fresh), id.0.into()])? == 1)
}

pub(super) fn enable_endpoint(db: Look<'_>, id: EndpointId, now: Timestamp) -> Parsed<bool> {
    // Later than whatever disabled it, even where a clock stands: else what has failed would disable it again at once.
    let text = "UPDATE webhook_endpoints SET status = 'ENABLED', disabled_reason = NULL,
           enabled_at = CASE WHEN disabled_at >= ?1 THEN disabled_at + 1 ELSE ?1 END, disabled_at = NULL
         WHERE endpoint_id = ?2 AND status = 'DISABLED'";
    if db.execute(text, &[now.millis().into(), id.0.into()])? == 1 {
        return Ok(true);
    }
    let text = "SELECT 1 FROM webhook_endpoints WHERE endpoint_id = ?1 AND status = 'ENABLED'";
    Ok(db.one(text, &[id.0.into()], |_| Ok(()))?.is_some())
}

pub(super) fn disable_endpoint(
    db: Look<'_>,
    id: EndpointId,
    enabled_at: Timestamp,
    reason: &str,
    now: Timestamp,
) -> Parsed<bool> {
    let text = "UPDATE webhook_endpoints SET status = 'DISABLED', disabled_at = ?1, disabled_reason = ?2
         WHERE endpoint_id = ?3 AND status = 'ENABLED' AND enabled_at = ?4";
    let values = [now.millis().into(), reason.into(), id.0.into(), enabled_at.millis().into()];
    Ok(db.execute(text, &values)? == 1)
}

pub(super) fn delete_endpoint(db: Look<'_>, id: EndpointId, now: Timestamp) -> Parsed<bool> {
    let text =
        "UPDATE webhook_endpoints SET status = 'DELETED', disabled_at = ?1, disabled_reason = NULL, url = '',
           secret = ?2, secret_before = NULL, signed_until = NULL
         WHERE endpoint_id = ?3 AND status <> 'DELETED'";
    Ok(db.execute(text, &[now.millis().into(), Value::Bytes(b""), id.0.into()])? == 1)
}

pub(super) fn forget_endpoints(db: Look<'_>, before: Timestamp) -> Parsed<u64> {
    let text = "DELETE FROM webhook_endpoints WHERE status = 'DELETED' AND disabled_at < ?1";
    db.execute(text, &[before.millis().into()])
}

pub(super) fn begin_progress(
    db: Look<'_>,
    event: EventNo,
    endpoint: EndpointId,
    types: &str,
    since: Timestamp,
) -> Parsed<Option<u64>> {
    if !lock(db, event)? {
        return Ok(None);
    }
    // The log's times never run back. From the end, since little has happened since.
    let text = "SELECT version FROM log WHERE event_no = ?1 AND at < ?2 ORDER BY version DESC LIMIT 1";
    let before = db.one(text, &[event.0.into(), since.millis().into()], |row| row.number::<i64>(0))?;
    let text = "INSERT INTO webhook_progress (event_no, endpoint_id, types, started, version, forgotten)
         VALUES (?1, ?2, ?3, ?4, ?4, 0) ON CONFLICT DO NOTHING";
    let values = [event.0.into(), endpoint.0.into(), types.into(), before.unwrap_or(0).into()];
    db.execute(text, &values)?;
    let text = "SELECT version FROM webhook_progress WHERE event_no = ?1 AND endpoint_id = ?2";
    db.one(text, &[event.0.into(), endpoint.0.into()], |row| row.number(0))
}

pub(super) fn advance_progress(
    db: Look<'_>,
    event: EventNo,
    endpoint: EndpointId,
    from: u64,
    to: u64,
    deliveries: &[NewDelivery],
) -> Parsed<bool> {
    if !lock_for(db, event, endpoint)? {
        return Ok(false);
    }
    // Of two that have read the same piece of the log only one finds the progress where it was.
    let text =
        "UPDATE webhook_progress SET version = ?1 WHERE event_no = ?2 AND endpoint_id = ?3 AND version = ?4";
    let values = [(to as i64).into(), event.0.into(), endpoint.0.into(), (from as i64).into()];
    if db.execute(text, &values)? == 0 {
        return Ok(false);
    }
    for some in deliveries.chunks(ROWS_AT_ONCE) {
        let mut text = String::from(
            "INSERT INTO webhook_deliveries (event_no, endpoint_id, version, message_id, subject, at, status, tries, due_at, \
             updated_at, last_status, last_error) VALUES ",
        );
        let mut values: Vec<Value<'_>> = vec![event.0.into(), endpoint.0.into()];
        for (place, delivery) in some.iter().enumerate() {
            let [version, message, subject, at] = [3, 4, 5, 6].map(|first| first + place * 4);
            text.push_str(if place == 0 { "" } else { ", " });
            text.push_str(&format!(
                "(?1, ?2, ?{version}, ?{message}, ?{subject}, ?{at}, 'PENDING', 0, ?{at}, ?{at}, 0, '')"
            ));
            values.extend([
                Value::Int(delivery.version as i64),
                Value::Bits(delivery.message.0),
                Value::Bits(delivery.subject),
                Value::Int(delivery.at.millis()),
            ]);
        }
        db.execute(&text, &values)?;
    }
    Ok(true)
}

pub(super) fn record_attempts(db: Look<'_>, attempts: &[Attempt], now: Timestamp) -> Parsed<()> {
    let are_together = |one: &Attempt, next: &Attempt| {
        (one.key.event, one.key.endpoint) == (next.key.event, next.key.endpoint)
    };
    for together in attempts.chunk_by(are_together) {
        if !lock_for(db, together[0].key.event, together[0].key.endpoint)? {
            continue;
        }
        for attempt in together {
            record_attempt(db, attempt, now)?;
        }
    }
    Ok(())
}

fn record_attempt(db: Look<'_>, attempt: &Attempt, now: Timestamp) -> Parsed<()> {
    let key = attempt.key;
    let (due_at, text) = match attempt.next {
        // Whatever another process has heard meanwhile: it has arrived.
        Next::Delivered => (
            now,
            "UPDATE webhook_deliveries SET status = 'DELIVERED', tries = ?1, due_at = ?2, updated_at = ?3, last_status = ?4,
               last_error = ?5 WHERE event_no = ?6 AND endpoint_id = ?7 AND version = ?8 AND status <> 'DELIVERED'",
        ),
        Next::Again(at) => (
            at,
            "UPDATE webhook_deliveries SET tries = ?1, due_at = ?2, updated_at = ?3, last_status = ?4, last_error = ?5
             WHERE event_no = ?6 AND endpoint_id = ?7 AND version = ?8 AND status = 'PENDING' AND tries = ?1 - 1",
        ),
        Next::Failed => (
            now,
            "UPDATE webhook_deliveries SET status = 'FAILED', tries = ?1, due_at = ?2, updated_at = ?3, last_status = ?4,
               last_error = ?5
             WHERE event_no = ?6 AND endpoint_id = ?7 AND version = ?8 AND status = 'PENDING' AND tries = ?1 - 1",
        ),
    };
    let values = [
        (i64::from(attempt.tries) + 1).into(),
        due_at.millis().into(),
        now.millis().into(),
        attempt.answer.into(),
        attempt.error.as_str().into(),
        key.event.0.into(),
        key.endpoint.0.into(),
        (key.version as i64).into(),
    ];
    db.execute(text, &values).map(drop)
}

pub(super) fn rearm(
    db: Look<'_>,
    endpoint: EndpointId,
    enabled_at: Timestamp,
    now: Timestamp,
) -> Parsed<u64> {
    let text = "SELECT d.event_no FROM webhook_deliveries d JOIN events e ON e.event_no = d.event_no
         WHERE d.endpoint_id = ?1 AND d.status <> 'DELIVERED' AND d.tries > 0 AND d.updated_at < ?2 AND e.elsewhere IS NULL
         LIMIT 1";
    let values = [endpoint.0.into(), enabled_at.millis().into()];
    let Some(event) = db.one(text, &values, |row| Ok(EventNo(row.number(0)?)))? else {
        return Ok(0);
    };
    if !lock_for(db, event, endpoint)? {
        return Ok(0);
    }
    let text = "UPDATE webhook_deliveries SET status = 'PENDING', tries = 0, due_at = ?1, updated_at = ?2
         WHERE event_no = ?3 AND endpoint_id = ?4 AND status <> 'DELIVERED' AND tries > 0 AND updated_at < ?5";
    let values = [
        now.millis().into(),
        now.max(enabled_at).millis().into(),
        event.0.into(),
        endpoint.0.into(),
        enabled_at.millis().into(),
    ];
    db.execute(text, &values)
}

pub(super) fn replay_one(
    db: Look<'_>,
    endpoint: EndpointId,
    message: MessageId,
    now: Timestamp,
) -> Parsed<bool> {
    if !lock_for(db, message.event(), endpoint)? {
        return Ok(false);
    }
    let text = "UPDATE webhook_deliveries SET status = 'PENDING', tries = 0, due_at = ?1, updated_at = ?1
         WHERE event_no = ?2 AND endpoint_id = ?3 AND message_id = ?4";
    let values = [now.millis().into(), message.event().0.into(), endpoint.0.into(), message.0.into()];
    Ok(db.execute(text, &values)? == 1)
}

/// Where a replay goes on: behind this version of this event.
type Place = (EventNo, i64);

pub(super) fn replay_some(
    db: Look<'_>,
    endpoint: EndpointId,
    since: Timestamp,
    (event, after): Place,
    now: Timestamp,
) -> Parsed<(u64, Option<Place>)> {
    let text = "SELECT version FROM webhook_deliveries
         WHERE event_no = ?1 AND endpoint_id = ?2 AND status = 'DELIVERED' AND at >= ?3 AND version > ?4
         ORDER BY version LIMIT ?5";
    let limit = Value::Int(WEBHOOK_ROWS_MAX as i64);
    let values = [event.0.into(), endpoint.0.into(), since.millis().into(), after.into(), limit];
    let some = if lock_for(db, event, endpoint)? {
        db.all(text, &values, |row| row.number::<i64>(0))?
    } else {
        Vec::new()
    };
    let Some(last) = some.last().copied() else {
        let text = "SELECT min(event_no) FROM webhook_progress WHERE event_no > ?1 AND endpoint_id = ?2";
        let next = db.one(text, &[event.0.into(), endpoint.0.into()], |row| row.number_or_none(0))?.flatten();
        return Ok((0, next.map(|no| (EventNo(no), 0))));
    };
    let text = "UPDATE webhook_deliveries SET status = 'PENDING', tries = 0, due_at = ?1, updated_at = ?1
         WHERE event_no = ?2 AND endpoint_id = ?3 AND status = 'DELIVERED' AND at >= ?4 AND version > ?5 AND version <= ?6";
    let values = [
        now.millis().into(),
        event.0.into(),
        endpoint.0.into(),
        since.millis().into(),
        after.into(),
        last.into(),
    ];
    Ok((db.execute(text, &values)?, Some((event, last))))
}

pub(super) fn forget(db: Look<'_>, before: Timestamp, deleted: &[EndpointId]) -> Parsed<u64> {
    let text =
        "SELECT d.event_no, d.endpoint_id FROM webhook_deliveries d JOIN events e ON e.event_no = d.event_no
         WHERE d.status = 'DELIVERED' AND d.updated_at < ?1 AND e.elsewhere IS NULL LIMIT 1";
    let old = db.one(text, &[before.millis().into()], |row| {
        Ok((EventNo(row.number(0)?), EndpointId(row.bits(1)?)))
    })?;
    if let Some((event, endpoint)) = old {
        let text = "DELETE FROM webhook_deliveries WHERE event_no = ?1 AND endpoint_id = ?2 AND version IN
             (SELECT version FROM webhook_deliveries WHERE event_no = ?1 AND endpoint_id = ?2 AND status = 'DELIVERED'
                AND updated_at < ?3 LIMIT ?4)";
        let limit = Value::Int(WEBHOOK_ROWS_MAX as i64);
        let values = [event.0.into(), endpoint.0.into(), before.millis().into(), limit];
        return remove(db, event, endpoint, text, &values);
    }
    for endpoint in deleted {
        let text = "SELECT p.event_no FROM webhook_progress p JOIN events e ON e.event_no = p.event_no
             WHERE p.endpoint_id = ?1 AND e.elsewhere IS NULL LIMIT 1";
        let left = db.one(text, &[endpoint.0.into()], |row| Ok(EventNo(row.number(0)?)))?;
        let Some(event) = left else { continue };
        let text = "DELETE FROM webhook_deliveries WHERE event_no = ?1 AND endpoint_id = ?2 AND version IN
             (SELECT version FROM webhook_deliveries WHERE event_no = ?1 AND endpoint_id = ?2 LIMIT ?3)";
        let limit = Value::Int(WEBHOOK_ROWS_MAX as i64);
        let removed = remove(db, event, *endpoint, text, &[event.0.into(), endpoint.0.into(), limit])?;
        if removed > 0 {
            return Ok(removed);
        }
        let text = "DELETE FROM webhook_progress WHERE event_no = ?1 AND endpoint_id = ?2";
        return db.execute(text, &[event.0.into(), endpoint.0.into()]);
    }
    Ok(0)
}

/// Removes deliveries of an event to an endpoint, and counts them: so that it can be seen that no others are missing.
fn remove(
    db: Look<'_>,
    event: EventNo,
    endpoint: EndpointId,
    text: &str,
    values: &[Value<'_>],
) -> Parsed<u64> {
    if !lock_for(db, event, endpoint)? {
        return Ok(0);
    }
    let removed = db.execute(text, values)?;
    let text =
        "UPDATE webhook_progress SET forgotten = forgotten + ?1 WHERE event_no = ?2 AND endpoint_id = ?3";
    db.execute(text, &[(removed as i64).into(), event.0.into(), endpoint.0.into()])?;
    Ok(removed)
}
