//! Reads what the log of each event has to tell an endpoint, and takes note of it.

use std::sync::Arc;

use onsale_core::id::EventNo;
use onsale_store::{Behind, NewDelivery, WebhookEndpoint};

use crate::app::{App, AppError};
use crate::desk::HomeNo;
use crate::webhooks::OPEN_MAX;
use crate::webhooks::message;

/// Events looked at together.
const EVENTS_MAX: u32 = 200;
/// Entries of the log taken up in one transaction, which keeps the event's writer waiting.
const ENTRIES_MAX: u32 = 250;
/// How far the progress may lie behind when there is nothing to tell: so that a crowd of holds costs no transactions here.
const NOTHING_TO_TELL_MAX: u64 = 1_000;

/// Brings an endpoint up to date with all events at a home, as far as there is room for open deliveries.
pub(super) async fn feed(
    app: &Arc<App>,
    home: HomeNo,
    endpoint: &WebhookEndpoint,
    open: u64,
) -> Result<(), AppError> {
    let mut room = OPEN_MAX.saturating_sub(open);
    let mut after: Option<EventNo> = None;
    while room > 0 {
        let wants = endpoint.clone();
        let behind =
            app.read_at(home, move |reader| reader.webhooks_behind(&wants, after, EVENTS_MAX)).await?;
        let is_last = behind.len() < EVENTS_MAX as usize;
        after = behind.last().map(|behind| behind.event);
        for event in behind {
            room = room.saturating_sub(catch_up(app, home, endpoint, event, room).await?);
        }
        if is_last {
            break;
        }
    }
    Ok(())
}

/// Takes note of what an event has to tell up to the version that was seen; how many messages.
async fn catch_up(
    app: &Arc<App>,
    home: HomeNo,
    endpoint: &WebhookEndpoint,
    behind: Behind,
    room: u64,
) -> Result<u64, AppError> {
    let begun = match behind.progress {
        Some(version) => Some(version),
        None => app.store(home).begin_webhook_progress(behind.event, endpoint).await?,
    };
    let Some(mut from) = begun else { return Ok(0) };
    let (event, up_to) = (behind.event, behind.version);
    let mut taken = 0;
    while from < up_to && taken < room {
        let kinds = message::kinds_for(endpoint);
        let read =
            app.read_at(home, move |reader| reader.log_of_kinds(event, from, up_to, &kinds, ENTRIES_MAX));
        let entries = read.await?;
        let is_last = entries.len() < ENTRIES_MAX as usize;
        let to = entries.last().map(|entry| entry.version).filter(|_| !is_last).unwrap_or(up_to);
        let wanted = entries.iter().filter_map(|entry| message::delivery_of(endpoint, entry));
        let deliveries: Vec<NewDelivery> = wanted.collect();
        let has_nothing = deliveries.is_empty() && is_last && to - from < NOTHING_TO_TELL_MAX;
        if has_nothing && !app.webhooks.is_quiet(home, endpoint.id, event, up_to) {
            break;
        }
        let count = deliveries.len() as u64;
        // Where another has been quicker, it has the rest as well.
        if !app.store(home).advance_webhook_progress(event, endpoint.id, from, to, deliveries).await? {
            break;
        }
        (from, taken) = (to, taken + count);
    }
    Ok(taken)
}
