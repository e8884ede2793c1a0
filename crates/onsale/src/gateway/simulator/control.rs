//! `/_sim/*`: how a test bends the provider and reads what it did.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;

use super::error::ApiError;
use super::events::{Event, Wanted};
use super::objects;
use super::record;
use super::script::{Operation, Outcome};
use super::server::Shared;
use super::webhooks::Mode;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptBody {
    operation: String,
    outcomes: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WebhooksBody {
    mode: Option<String>,
    url: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct DeliverBody {
    event_id: Option<String>,
    order_id: Option<String>,
    #[serde(rename = "type")]
    event_type: Option<String>,
    new_event_id: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CompleteBody {
    result: String,
}

/// Queues what the next calls of one kind do.
pub(super) fn script(shared: &Shared, body: &[u8]) -> Result<Vec<u8>, ApiError> {
    let body: ScriptBody = parse(body)?;
    let operation = Operation::parse(&body.operation)
        .ok_or_else(|| invalid("operation", format!("No such operation: '{}'", body.operation)))?;
    let mut outcomes = Vec::with_capacity(body.outcomes.len());
    for text in &body.outcomes {
        let outcome = Outcome::parse(text).filter(|outcome| outcome.fits(operation));
        outcomes.push(outcome.ok_or_else(|| {
            invalid("outcomes", format!("Not an outcome of {}: '{text}'", operation.as_str()))
        })?);
    }
    let queued = shared.transact(|books, _| books.script.push(operation, &outcomes)).0;
    let queued = queued.ok_or_else(|| invalid("outcomes", "Too many outcomes wait already.".into()))?;
    Ok(objects::render(&json!({ "operation": operation.as_str(), "queued": queued })))
}

/// Says how events go, where they go, or both.
pub(super) fn webhooks(shared: &Shared, body: &[u8]) -> Result<Vec<u8>, ApiError> {
    let body: WebhooksBody = parse(body)?;
    let mode = match &body.mode {
        Some(text) => {
            Some(Mode::parse(text).ok_or_else(|| invalid("mode", format!("No such mode: '{text}'")))?)
        }
        None => None,
    };
    if let Some(url) = &body.url
        && !url.starts_with("http://")
    {
        return Err(invalid("url", "The simulator delivers over plain http:// only.".into()));
    }
    // Past this line both are taken.
    if let Some(mode) = mode {
        shared.deliveries.set_mode(mode);
    }
    if let Some(url) = body.url {
        shared.deliveries.set_url(url);
    }
    let (mode, url) = shared.deliveries.settings();
    Ok(objects::render(&json!({ "mode": mode.to_string(), "url": url.as_deref() })))
}

/// Delivers the latest event that fits once more, or as a new one, and says how it was received.
pub(super) async fn deliver(shared: &Shared, body: &[u8]) -> Result<Vec<u8>, ApiError> {
    let body: DeliverBody = if body.is_empty() { DeliverBody::default() } else { parse(body)? };
    if shared.deliveries.settings().1.is_none() {
        return Err(invalid("url", "There is nowhere to deliver to: set the webhook URL first.".into()));
    }
    let wanted = Wanted {
        event_id: body.event_id.as_deref(),
        order_id: body.order_id.as_deref(),
        event_type: body.event_type.as_deref(),
    };
    let found = shared.transact(|books, _| {
        let event = books.events.latest(&wanted)?;
        if !body.new_event_id {
            return Some(event);
        }
        let again = Arc::new(Event { id: books.ids.mint("evt_").into(), ..Event::clone(&event) });
        books.events.push(again.clone());
        Some(again)
    });
    let event = found.0.ok_or_else(|| {
        let wanted = body.event_id.as_deref().or(body.order_id.as_deref()).unwrap_or("latest");
        ApiError::no_such(404, "event", wanted, "event_id")
    })?;
    let receipt = shared.deliveries.deliver(&event).await;
    let delivery = json!({
        "event_id": &*event.id,
        "type": event.transition.event_type(),
        "status": receipt.status,
        "body": receipt.body,
    });
    Ok(objects::render(&json!({ "deliveries": [delivery] })))
}

/// The buyer finishes or abandons the extra authentication, or the bank ends its processing.
pub(super) fn complete(shared: &Shared, intent_id: &str, body: &[u8]) -> Result<Vec<u8>, ApiError> {
    let body: CompleteBody = parse(body)?;
    let success = match body.result.as_str() {
        "success" => true,
        "failure" => false,
        other => return Err(invalid("result", format!("Neither success nor failure: '{other}'"))),
    };
    let intent = shared.transact(|books, now_ms| books.complete(intent_id, success, now_ms)).0?;
    Ok(objects::render(&objects::intent(&intent, false, &shared.authentication_base)))
}

/// Every operation kept, as received.
pub(super) fn log(shared: &Shared) -> Vec<u8> {
    // Copied under the lock and rendered outside: calls go on meanwhile.
    let entries = shared.transact(|books, _| books.log.entries().cloned().collect::<Vec<_>>()).0;
    objects::render(&std::collections::BTreeMap::from([("entries", entries)]))
}

/// The money of each order.
pub(super) fn ledger(shared: &Shared) -> Vec<u8> {
    let intents = shared.transact(|books, _| books.intents.clone()).0;
    objects::render(&std::collections::BTreeMap::from([("orders", record::ledger(&intents))]))
}

fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, ApiError> {
    serde_json::from_slice(body).map_err(|error| ApiError::malformed(format!("Invalid JSON body: {error}")))
}

fn invalid(param: &'static str, message: String) -> ApiError {
    ApiError::invalid("parameter_invalid", param, message)
}
