//! Reading the outbox.

use onsale_core::id::{EndpointId, EventId, EventNo, MessageId};
use onsale_core::log::LogEntry;
use onsale_core::time::Timestamp;

use crate::error::StoreError;
use crate::look::{Parsed, Row};
use crate::names::Named;
use crate::outbox::{
    Behind, DeliveryKey, DeliveryStatus, DeliveryView, DueDelivery, OpenDeliveries, WebhookEndpoint,
};
use crate::rows::{self, LOG, time, time_or_none};

use super::Reader;

fn endpoint(row: &Row<'_>) -> Parsed<WebhookEndpoint> {
    let types = row.text(2)?;
    let corrupt = |_| StoreError::Corrupt { wanted: "a list of types", found: types.to_owned() };
    let signed_until = time_or_none(row, 4)?;
    Ok(WebhookEndpoint {
        id: row.id(0)?,
        url: row.string(1)?,
        types: serde_json::from_str(types).map_err(corrupt)?,
        secret: row.bytes(3)?,
        secret_before: signed_until.map(|until| Ok::<_, StoreError>((row.bytes(5)?, until))).transpose()?,
        status: row.word(6)?,
        created_at: time(row, 7)?,
        enabled_at: time(row, 8)?,
        disabled_at: time_or_none(row, 9)?,
        disabled_reason: row.string_or_none(10)?,
    })
}

fn entry(row: &Row<'_>, event: EventNo, version: u64, first: usize) -> Parsed<LogEntry> {
    let kind = crate::log_text::log_kind(row.text(first + 1)?, row.text(first + 2)?)?;
    Ok(LogEntry { event, version, at: time(row, first)?, kind })
}

impl Reader<'_> {
    /// All endpoints, the oldest first; those too that are deleted and not forgotten yet. The main home's.
    pub fn webhook_endpoints(&self) -> Parsed<Vec<WebhookEndpoint>> {
        let text = "SELECT endpoint_id, url, types, secret, signed_until, secret_before, status, created_at, enabled_at,
               disabled_at, disabled_reason FROM webhook_endpoints ORDER BY created_at, endpoint_id";
        self.0.all(text, &[], endpoint)
    }

    /// Events at home here of which there may be something to tell an endpoint, behind an event in their order.
    pub fn webhooks_behind(
        &self,
        endpoint: &WebhookEndpoint,
        after: Option<EventNo>,
        limit: u32,
    ) -> Parsed<Vec<Behind>> {
        // An event in which nothing was decided since the endpoint was made needs no row.
        let text = "SELECT e.event_no, p.version, e.version FROM events e
             LEFT JOIN webhook_progress p ON p.event_no = e.event_no AND p.endpoint_id = ?1
             WHERE e.event_no > ?2 AND e.elsewhere IS NULL AND e.version > 0
               AND (p.version < e.version OR (p.version IS NULL AND e.clock >= ?3))
             ORDER BY e.event_no LIMIT ?4";
        let after = after.map_or(-1, |no| i64::from(no.0));
        let values = [endpoint.id.0.into(), after.into(), endpoint.created_at.millis().into(), limit.into()];
        self.0.all(text, &values, |row| {
            Ok(Behind {
                event: EventNo(row.number(0)?),
                progress: row.number_or_none(1)?,
                version: row.number(2)?,
            })
        })
    }

    /// Entries of some kinds of an event's log after a version, at most `limit`. Kinds are the names that entries have in the
    /// database.
    pub fn log_of_kinds(
        &self,
        no: EventNo,
        after: u64,
        up_to: u64,
        kinds: &[&str],
        limit: u32,
    ) -> Parsed<Vec<LogEntry>> {
        let named = (5..).take(kinds.len()).map(|place| format!("?{place}")).collect::<Vec<_>>().join(", ");
        let text = format!(
            "SELECT {LOG} FROM log WHERE event_no = ?1 AND version > ?2 AND version <= ?3 AND kind IN ({named})
             ORDER BY version LIMIT ?4"
        );
        let mut values =
            vec![no.0.into(), (after as i64).into(), (up_to as i64).into(), i64::from(limit).into()];
        values.extend(kinds.iter().map(|kind| crate::look::Value::from(*kind)));
        self.0.all(&text, &values, rows::log)
    }

    /// Deliveries to an endpoint whose time has come, the longest due first; of each subject only the first that is open.
    pub fn due_webhooks(&self, id: EndpointId, now: Timestamp, limit: u32) -> Parsed<Vec<DueDelivery>> {
        let text = "SELECT d.event_no, d.version, d.message_id, d.tries, e.event_id, l.at, l.kind, l.payload
             FROM webhook_deliveries d JOIN events e ON e.event_no = d.event_no
             JOIN log l ON l.event_no = d.event_no AND l.version = d.version
             WHERE d.endpoint_id = ?1 AND d.status = 'PENDING' AND d.due_at <= ?2 AND e.elsewhere IS NULL
               AND NOT EXISTS (SELECT 1 FROM webhook_deliveries b WHERE b.event_no = d.event_no
                 AND b.endpoint_id = d.endpoint_id AND b.subject = d.subject AND b.status <> 'DELIVERED'
                 AND b.version < d.version)
             ORDER BY d.due_at, d.event_no, d.version LIMIT ?3";
        let due = self.0.all(text, &[id.0.into(), now.millis().into(), limit.into()], |row| {
            let (event, version) = (EventNo(row.number(0)?), row.number(1)?);
            Ok(DueDelivery {
                key: DeliveryKey { event, endpoint: id, version },
                message: MessageId(row.bits(2)?),
                tries: row.number(3)?,
                event_id: EventId(row.bits(4)?),
                entry: entry(row, event, version, 5)?,
            })
        })?;
        // Others act on what they are told.
        if !due.is_empty() {
            self.0.prove()?;
        }
        Ok(due)
    }

    /// What is left to deliver here, by endpoint.
    pub fn open_webhooks(&self) -> Parsed<Vec<OpenDeliveries>> {
        self.0.still(|| {
            let text =
                "SELECT endpoint_id, count(*), min(at) FROM webhook_deliveries WHERE status <> 'DELIVERED'
                 GROUP BY endpoint_id ORDER BY endpoint_id";
            let mut open = self.0.all(text, &[], |row| {
                Ok(OpenDeliveries {
                    endpoint: row.id(0)?,
                    count: row.number(1)?,
                    oldest: time(row, 2)?,
                    failed: None,
                })
            })?;
            let text = "SELECT endpoint_id, updated_at, last_status, last_error FROM webhook_deliveries
                 WHERE status = 'FAILED' ORDER BY endpoint_id, updated_at";
            let failed = self.0.all(text, &[], |row| {
                Ok((row.id::<EndpointId>(0)?, (time(row, 1)?, row.number(2)?, row.string(3)?)))
            })?;
            // The last of them stays.
            for (endpoint, failed) in failed {
                if let Some(open) = open.iter_mut().find(|open| open.endpoint == endpoint) {
                    open.failed = Some(failed);
                }
            }
            Ok(open)
        })
    }

    /// Deliveries to an endpoint, the latest first, at most `limit`.
    pub fn webhook_deliveries(
        &self,
        id: EndpointId,
        status: Option<DeliveryStatus>,
        limit: u32,
    ) -> Parsed<Vec<DeliveryView>> {
        let of_status = status.map_or(String::new(), |status| format!("AND d.status = '{}'", status.word()));
        let text = format!(
            "SELECT d.event_no, d.version, d.message_id, d.status, d.tries, d.due_at, d.updated_at, d.last_status, d.last_error,
               l.at, l.kind, l.payload
             FROM webhook_deliveries d JOIN log l ON l.event_no = d.event_no AND l.version = d.version
             WHERE d.endpoint_id = ?1 {of_status} ORDER BY d.at DESC, d.event_no DESC, d.version DESC LIMIT ?2"
        );
        self.0.all(&text, &[id.0.into(), limit.into()], |row| {
            let (event, version) = (EventNo(row.number(0)?), row.number(1)?);
            Ok(DeliveryView {
                key: DeliveryKey { event, endpoint: id, version },
                message: MessageId(row.bits(2)?),
                status: row.word(3)?,
                tries: row.number(4)?,
                due_at: time(row, 5)?,
                updated_at: time(row, 6)?,
                last_status: row.number(7)?,
                last_error: row.string(8)?,
                entry: entry(row, event, version, 9)?,
            })
        })
    }
}
