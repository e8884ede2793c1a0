//! What a message says. It is thin: what happened, to what, and when. Whoever wants more asks for it with a key of its own, and
//! learns how it is now and not how it was. No message has anything of a buyer in it.

use onsale_core::event::EventStatus;
use onsale_core::id::{EventId, EventNo, MessageId, Seed};
use onsale_core::log::{LogEntry, LogKind};
use onsale_core::payment::{OperationKind, OperationStatus};
use onsale_store::{DeliveryKey, Named, NewDelivery, WebhookEndpoint};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::http::wire::rfc3339;

/// Each type of message, the kind of log entry it tells of, and when: the documents and the audit have the same table.
pub(crate) const TYPES: &[(&str, &str)] = &[
    ("event.created", "event.created"),
    ("sale.opened", "on_sale.set"),
    ("sale.paused", "on_sale.set"),
    ("sale.closed", "on_sale.set"),
    ("hold.placed", "hold.placed"),
    ("hold.released", "hold.released"),
    ("hold.expired", "hold.expired"),
    ("checkout.begun", "checkout.begun"),
    ("order.confirmed", "order.confirmed"),
    ("order.cancelled", "order.cancelled"),
    ("order.cancelled", "hold.released"),
    ("order.expired", "hold.expired"),
    ("payment.authorized", "operation.moved"),
    ("payment.declined", "operation.moved"),
    ("payment.captured", "operation.moved"),
    ("payment.capture_failed", "operation.moved"),
    ("payment.voided", "operation.moved"),
    ("payment.void_failed", "operation.moved"),
    ("payment.refunded", "operation.moved"),
    ("payment.refund_failed", "operation.moved"),
    ("refund.begun", "refund.begun"),
    ("order.returned", "order.returned"),
    ("tickets.issued", "tickets.issued"),
    ("tickets.moved", "tickets.moved"),
    ("ticket.scanned", "ticket.scanned"),
    ("case.opened", "case.opened"),
    ("case.closed", "case.closed"),
];

/// The type of the message that tells of an entry; none for what is nobody else's concern. A hold that has an order ends with its
/// order's message.
pub(crate) fn type_of(kind: &LogKind) -> Option<&'static str> {
    Some(match kind {
        LogKind::EventCreated => "event.created",
        LogKind::OnSaleSet { status, .. } => match status {
            EventStatus::Open => "sale.opened",
            EventStatus::Paused => "sale.paused",
            EventStatus::Closed => "sale.closed",
            EventStatus::Draft => return None,
        },
        LogKind::HoldPlaced { .. } => "hold.placed",
        LogKind::HoldReleased { order: None, .. } => "hold.released",
        LogKind::HoldReleased { order: Some(_), .. } => "order.cancelled",
        LogKind::HoldExpired { order: None, .. } => "hold.expired",
        LogKind::HoldExpired { order: Some(_), .. } => "order.expired",
        LogKind::CheckoutBegun { .. } => "checkout.begun",
        LogKind::OrderConfirmed { .. } => "order.confirmed",
        LogKind::OrderCancelled { .. } => "order.cancelled",
        LogKind::OperationMoved { kind, status, .. } => return moved(*kind, *status),
        LogKind::RefundBegun { .. } => "refund.begun",
        LogKind::OrderReturned { .. } => "order.returned",
        LogKind::TicketsIssued { .. } => "tickets.issued",
        LogKind::TicketsMoved { .. } => "tickets.moved",
        LogKind::TicketScanned { .. } => "ticket.scanned",
        LogKind::CaseOpened { .. } => "case.opened",
        LogKind::CaseClosed { .. } => "case.closed",
        // The house's own arrangements, and what will be told when it has come to something.
        LogKind::ManifestReplaced { .. }
        | LogKind::PricesSet { .. }
        | LogKind::SeatsStatusSet { .. }
        | LogKind::AllocationMade { .. }
        | LogKind::SeatsSetAside { .. }
        | LogKind::AccessCodeSet { .. }
        | LogKind::BucketAdded { .. }
        | LogKind::CapacitySet { .. }
        | LogKind::QuotaMoved { .. }
        | LogKind::CaseActed { .. } => return None,
    })
}

/// What the provider's last word on an operation is called. What is still open is told when it isn't any more.
fn moved(kind: OperationKind, status: OperationStatus) -> Option<&'static str> {
    let (done, failed) = match kind {
        OperationKind::Authorize => ("payment.authorized", "payment.declined"),
        OperationKind::Capture => ("payment.captured", "payment.capture_failed"),
        OperationKind::Void => ("payment.voided", "payment.void_failed"),
        OperationKind::Refund => ("payment.refunded", "payment.refund_failed"),
    };
    match status {
        OperationStatus::Succeeded => Some(done),
        OperationStatus::Failed => Some(failed),
        OperationStatus::Pending | OperationStatus::RequiresAction | OperationStatus::Unknown => None,
    }
}

/// The kinds of entries that an endpoint may want.
pub(crate) fn kinds_for(endpoint: &WebhookEndpoint) -> Vec<&'static str> {
    let wanted = TYPES.iter().filter(|(name, _)| endpoint.types.iter().any(|wanted| wanted == name));
    let mut kinds: Vec<&str> = wanted.map(|(_, kind)| *kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

/// The message of an entry to an endpoint, if it wants one.
pub(crate) fn delivery_of(endpoint: &WebhookEndpoint, entry: &LogEntry) -> Option<NewDelivery> {
    let name = type_of(&entry.kind)?;
    endpoint.types.iter().any(|wanted| wanted == name).then(|| NewDelivery {
        version: entry.version,
        message: name_of(
            DeliveryKey { event: entry.event, endpoint: endpoint.id, version: entry.version },
            entry,
        ),
        subject: subject(entry),
        at: entry.at,
    })
}

/// The id of a message: it says of which event it is, and whoever makes it makes the same.
fn name_of(key: DeliveryKey, entry: &LogEntry) -> MessageId {
    let digest = Sha256::new()
        .chain_update(key.endpoint.0.to_be_bytes())
        .chain_update(key.event.0.to_be_bytes())
        .chain_update(key.version.to_be_bytes())
        .finalize();
    let chance = digest.iter().take(8).fold(0, |bits, byte| bits << 8 | u64::from(*byte));
    Seed::new(entry.event, entry.at, chance).mint()
}

/// What a message is about. Those about the same arrive in their order: an order's, a case's, those of a hold without an order,
/// and those of the event as a whole.
fn subject(entry: &LogEntry) -> u128 {
    let of_event = u128::from(entry.event.0) << 56;
    match &entry.kind {
        LogKind::CheckoutBegun { order, .. }
        | LogKind::OperationMoved { order, .. }
        | LogKind::OrderConfirmed { order, .. }
        | LogKind::OrderCancelled { order, .. }
        | LogKind::RefundBegun { order, .. }
        | LogKind::OrderReturned { order, .. }
        | LogKind::TicketsIssued { order, .. }
        | LogKind::TicketsMoved { order, .. }
        | LogKind::TicketScanned { order, .. }
        | LogKind::HoldReleased { order: Some(order), .. }
        | LogKind::HoldExpired { order: Some(order), .. } => order.0,
        LogKind::HoldPlaced { hold, .. }
        | LogKind::HoldReleased { hold, order: None, .. }
        | LogKind::HoldExpired { hold, order: None, .. } => hold.0,
        LogKind::CaseOpened { case, .. } | LogKind::CaseActed { case, .. } | LogKind::CaseClosed { case } => {
            case.0
        }
        LogKind::EventCreated
        | LogKind::ManifestReplaced { .. }
        | LogKind::PricesSet { .. }
        | LogKind::OnSaleSet { .. }
        | LogKind::SeatsStatusSet { .. }
        | LogKind::AllocationMade { .. }
        | LogKind::SeatsSetAside { .. }
        | LogKind::AccessCodeSet { .. }
        | LogKind::BucketAdded { .. }
        | LogKind::CapacitySet { .. }
        | LogKind::QuotaMoved { .. } => of_event,
    }
}

/// The body of a message, the same for each try.
pub(crate) fn body(event_id: EventId, entry: &LogEntry) -> String {
    let mut data = Map::new();
    let mut say = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            data.insert(name.to_owned(), Value::String(value));
        }
    };
    say("event_id", (entry.event != EventNo::HOUSE).then(|| event_id.to_string()));
    match &entry.kind {
        LogKind::HoldPlaced { hold, .. } => say("hold_id", Some(hold.to_string())),
        LogKind::HoldReleased { hold, order, .. } | LogKind::HoldExpired { hold, order, .. } => {
            say("hold_id", Some(hold.to_string()));
            say("order_id", order.map(|order| order.to_string()));
        }
        LogKind::CheckoutBegun { hold, order, operation } => {
            say("hold_id", Some(hold.to_string()));
            say("order_id", Some(order.to_string()));
            say("operation_id", Some(operation.to_string()));
        }
        LogKind::OrderConfirmed { order, hold, .. } | LogKind::OrderCancelled { order, hold, .. } => {
            say("hold_id", Some(hold.to_string()));
            say("order_id", Some(order.to_string()));
        }
        LogKind::OperationMoved { order, operation, kind, status } => {
            say("order_id", Some(order.to_string()));
            say("operation_id", Some(operation.to_string()));
            say("operation", Some(kind.word().to_owned()));
            say("status", Some(status.word().to_owned()));
        }
        LogKind::RefundBegun { order, operation, .. } | LogKind::OrderReturned { order, operation, .. } => {
            say("order_id", Some(order.to_string()));
            say("operation_id", Some(operation.to_string()));
        }
        LogKind::TicketsIssued { order, .. } => say("order_id", Some(order.to_string())),
        LogKind::TicketsMoved { order, status, .. } => {
            say("order_id", Some(order.to_string()));
            say("status", Some(status.word().to_owned()));
        }
        LogKind::TicketScanned { order, ticket, result, .. } => {
            say("order_id", Some(order.to_string()));
            say("ticket_id", Some(ticket.to_string()));
            say("result", Some(result.word().to_owned()));
        }
        LogKind::CaseOpened { case, kind, order } => {
            say("case_id", Some(case.to_string()));
            say("kind", Some(kind.as_str().to_owned()));
            say("order_id", order.map(|order| order.to_string()));
        }
        LogKind::CaseActed { case, .. } | LogKind::CaseClosed { case } => {
            say("case_id", Some(case.to_string()));
        }
        LogKind::EventCreated
        | LogKind::ManifestReplaced { .. }
        | LogKind::PricesSet { .. }
        | LogKind::OnSaleSet { .. }
        | LogKind::SeatsStatusSet { .. }
        | LogKind::AllocationMade { .. }
        | LogKind::SeatsSetAside { .. }
        | LogKind::AccessCodeSet { .. }
        | LogKind::BucketAdded { .. }
        | LogKind::CapacitySet { .. }
        | LogKind::QuotaMoved { .. } => {}
    }
    data.insert("version".to_owned(), entry.version.into());
    let name = type_of(&entry.kind).unwrap_or(entry.kind.as_str());
    serde_json::json!({ "type": name, "timestamp": rfc3339(entry.at), "data": data }).to_string()
}

#[cfg(test)]
mod tests;
