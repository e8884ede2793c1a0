//! An endpoint that is told of a sale, as the dispatcher does it.

use onsale_core::id::{EndpointId, EventNo, MessageId, Seed};
use onsale_core::log::{LogEntry, LogKind};
use onsale_core::payment::{OperationKind, OperationStatus};
use onsale_store::{DueDelivery, EndpointStatus, NewDelivery, Store, WebhookEndpoint};

use super::{START, World, done};

/// What endpoints of these tests want; and the kinds of entries that it is in.
pub(crate) const TYPES: [&str; 4] = ["hold.placed", "order.confirmed", "order.expired", "payment.captured"];
const KINDS: [&str; 4] = ["hold.placed", "order.confirmed", "hold.expired", "operation.moved"];

/// An endpoint that is there from the beginning.
pub(crate) fn endpoint(number: u128) -> WebhookEndpoint {
    WebhookEndpoint {
        id: EndpointId(number),
        url: format!("https://shop.example/{number}"),
        types: TYPES.map(str::to_owned).to_vec(),
        secret: vec![number as u8, 0, 255, b'\\'],
        secret_before: None,
        status: EndpointStatus::Enabled,
        created_at: START,
        enabled_at: START,
        disabled_at: None,
        disabled_reason: None,
    }
}

fn message(endpoint: &WebhookEndpoint, entry: &LogEntry) -> Option<NewDelivery> {
    let subject = match &entry.kind {
        LogKind::HoldPlaced { hold, .. } => hold.0,
        LogKind::OrderConfirmed { order, .. } | LogKind::HoldExpired { order: Some(order), .. } => order.0,
        LogKind::OperationMoved {
            order,
            kind: OperationKind::Capture,
            status: OperationStatus::Succeeded,
            ..
        } => order.0,
        _ => return None,
    };
    let chance = (endpoint.id.0 as u64) << 32 | entry.version;
    let message: MessageId = Seed::new(entry.event, entry.at, chance).mint();
    Some(NewDelivery { version: entry.version, message, subject, at: entry.at })
}

/// What an event's log has to tell an endpoint after a version.
pub(crate) fn news(
    store: &Store,
    endpoint: &WebhookEndpoint,
    event: EventNo,
    from: u64,
    to: u64,
) -> Vec<NewDelivery> {
    let entries =
        store.read(|db| db.log_of_kinds(event, from, to, &KINDS, 10_000)).expect("the log can be read");
    entries.iter().filter_map(|entry| message(endpoint, entry)).collect()
}

/// Brings an endpoint up to date; how many messages that made.
pub(crate) fn feed(store: &Store, endpoint: &WebhookEndpoint) -> usize {
    let mut made = 0;
    for behind in store.read(|db| db.webhooks_behind(endpoint, None, 100)).expect("it can be read") {
        let begun = done(store.begin_webhook_progress(behind.event, endpoint)).expect("it begins");
        let Some(from) = begun else { continue };
        let news = news(store, endpoint, behind.event, from, behind.version);
        let count = news.len();
        let advance = store.advance_webhook_progress(behind.event, endpoint.id, from, behind.version, news);
        made += if done(advance).expect("it is taken note of") { count } else { 0 };
    }
    made
}

impl World {
    /// Adds an endpoint that is there from the beginning.
    pub(crate) fn add_endpoint(&self, number: u128) -> WebhookEndpoint {
        let endpoint = endpoint(number);
        assert!(done(self.store.add_webhook_endpoint(endpoint.clone())).expect("it is stored"));
        endpoint
    }

    /// What is due to be sent to an endpoint.
    pub(crate) fn due(&self, endpoint: &WebhookEndpoint) -> Vec<DueDelivery> {
        let (id, now) = (endpoint.id, self.now());
        self.store.read(|db| db.due_webhooks(id, now, 100)).expect("it can be read")
    }
}
