//! What messages say, for every kind of entry.

use onsale_core::ga::TransferStatus;
use onsale_core::id::{
    AllocationNo, AreaNo, BucketNo, CaseId, EndpointId, HoldId, OperationId, OrderId, SeatOrdinal, TicketId,
    TransferId,
};
use onsale_core::reconcile::CaseKind;
use onsale_core::ticket::{ScanResult, TicketStatus};
use onsale_core::time::Timestamp;
use onsale_store::EndpointStatus;

use super::*;

const EVENT: EventNo = EventNo(7);
/// Far longer than anything here gets; the standard has 20 KB.
const BODY_BYTES_MAX: usize = 1_000;

/// An entry of each kind, and of each status where the type depends on it.
fn kinds() -> Vec<LogKind> {
    let (hold, order, operation, case) = (HoldId(u128::MAX), OrderId(2), OperationId(3), CaseId(4));
    let seats = || (0..6).map(SeatOrdinal).collect::<Vec<_>>();
    let actor = || "key_1".to_owned();
    let (ticket, area, bucket) = (TicketId(5), AreaNo(0), BucketNo(1));
    let (set_aside, ga) = (Vec::new, Vec::new);
    let ended = |order| {
        [
            LogKind::HoldReleased { hold, order, seats: seats(), set_aside: set_aside(), ga: ga() },
            LogKind::HoldExpired { hold, order, seats: seats(), set_aside: set_aside(), ga: ga() },
        ]
    };
    let mut kinds = vec![
        LogKind::EventCreated,
        LogKind::ManifestReplaced { manifest_version: 1 },
        LogKind::PricesSet { price_version: 1 },
        LogKind::SeatsStatusSet { seats: seats(), not_for_sale: true, actor: actor() },
        LogKind::AllocationMade { allocation: AllocationNo(1), actor: actor() },
        LogKind::SeatsSetAside { seats: seats(), allocation: None, actor: actor() },
        LogKind::AccessCodeSet { code: "FANS".to_owned(), actor: actor() },
        LogKind::BucketAdded { area, bucket, allocation: None, actor: actor() },
        LogKind::CapacitySet { area, capacity: 5, changes: vec![(bucket, -1)], actor: actor() },
        LogKind::QuotaMoved {
            transfer: TransferId(6),
            area,
            from: bucket,
            to: BucketNo(2),
            quantity: 1,
            status: TransferStatus::WORDS[0].0,
        },
        LogKind::HoldPlaced { hold, seats: seats(), ga: ga() },
        LogKind::CheckoutBegun { hold, order, operation },
        LogKind::OrderConfirmed { order, hold, seats: seats(), ga: ga() },
        LogKind::OrderCancelled { order, hold, seats: seats(), set_aside: set_aside(), ga: ga() },
        LogKind::RefundBegun { order, operation, actor: actor() },
        LogKind::OrderReturned {
            order,
            operation,
            seats: seats(),
            set_aside: set_aside(),
            ga: ga(),
            resell: true,
        },
        LogKind::TicketsIssued { order, tickets: vec![ticket; 500] },
        LogKind::TicketsMoved {
            order,
            tickets: vec![ticket],
            status: TicketStatus::WORDS[0].0,
            actor: actor(),
        },
        LogKind::TicketScanned { order, ticket, gate: "north".to_owned(), result: ScanResult::WORDS[0].0 },
        LogKind::CaseOpened { case, kind: CaseKind::InDoubt, order: Some(order) },
        LogKind::CaseActed { case, action: "void".to_owned(), actor: actor() },
        LogKind::CaseClosed { case },
    ];
    kinds.extend([None, Some(order)].into_iter().flat_map(ended));
    for (status, _) in EventStatus::WORDS {
        kinds.push(LogKind::OnSaleSet { status: *status, actor: actor() });
    }
    for (kind, _) in OperationKind::WORDS {
        for (status, _) in OperationStatus::WORDS {
            kinds.push(LogKind::OperationMoved { order, operation, kind: *kind, status: *status });
        }
    }
    kinds
}

fn entry(kind: LogKind) -> LogEntry {
    LogEntry { event: EVENT, version: 9, at: Timestamp::from_millis(1_800_000_000_000), kind }
}

fn endpoint(types: &[&str]) -> WebhookEndpoint {
    WebhookEndpoint {
        id: EndpointId(5),
        url: String::new(),
        types: types.iter().map(|name| (*name).to_owned()).collect(),
        secret: Vec::new(),
        secret_before: None,
        status: EndpointStatus::Enabled,
        created_at: Timestamp::ZERO,
        enabled_at: Timestamp::ZERO,
        disabled_at: None,
        disabled_reason: None,
    }
}

#[test]
fn the_table_has_exactly_the_types_that_entries_have() {
    let mut told: Vec<(&str, &str)> =
        kinds().iter().filter_map(|kind| Some((type_of(kind)?, kind.as_str()))).collect();
    let mut table = TYPES.to_vec();
    told.sort_unstable();
    table.sort_unstable();
    assert_eq!(told, table);
    for (name, _) in TYPES {
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_' || byte == b'.'), "{name}");
    }
}

#[test]
fn bodies_are_thin_and_say_what_they_are_about() {
    let event_id = EventId(u128::MAX);
    for kind in kinds().into_iter().filter(|kind| type_of(kind).is_some()) {
        let body = body(event_id, &entry(kind.clone()));
        assert!(body.len() < BODY_BYTES_MAX, "{body}");
        let said: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(said["data"]["event_id"], event_id.to_string(), "{body}");
        assert_eq!(said["timestamp"], "2027-01-15T08:00:00.000Z");
        let order = kind.order().map(|order| order.to_string());
        assert_eq!(said["data"].get("order_id").and_then(Value::as_str), order.as_deref(), "{kind:?}");
        assert!(!body.contains("key_1") && !body.contains("seats"), "{body}");
    }
    let confirmed = LogKind::OrderConfirmed { order: OrderId(2), hold: HoldId(1), seats: vec![], ga: vec![] };
    let wanted = concat!(
        r#"{"data":{"event_id":"evt_00000000000000000000000003","hold_id":"hld_00000000000000000000000001","#,
        r#""order_id":"ord_00000000000000000000000002","version":9},"#,
        r#""timestamp":"2027-01-15T08:00:00.000Z","type":"order.confirmed"}"#
    );
    assert_eq!(body(EventId(3), &entry(confirmed)), wanted);
    let of_house = LogEntry { event: EventNo::HOUSE, ..entry(LogKind::CaseClosed { case: CaseId(1) }) };
    assert!(!body(EventId(0), &of_house).contains("event_id"));
}

#[test]
fn an_endpoint_gets_what_it_wants_under_an_id_that_stays() {
    let wants = endpoint(&["order.cancelled", "payment.captured"]);
    assert_eq!(kinds_for(&wants), ["hold.released", "operation.moved", "order.cancelled"]);
    let told: Vec<String> = kinds()
        .into_iter()
        .filter_map(|kind| delivery_of(&wants, &entry(kind.clone())).map(|_| format!("{kind:?}")))
        .collect();
    assert_eq!(told.len(), 3, "{told:?}");
    let captured = entry(LogKind::OperationMoved {
        order: OrderId(2),
        operation: OperationId(3),
        kind: OperationKind::Capture,
        status: OperationStatus::Succeeded,
    });
    let (one, same) = (delivery_of(&wants, &captured).unwrap(), delivery_of(&wants, &captured).unwrap());
    assert_eq!((one, one.subject, one.message.event()), (same, 2, EVENT));
    let other = WebhookEndpoint { id: EndpointId(6), ..wants.clone() };
    let later = LogEntry { version: 10, ..captured.clone() };
    for others in [delivery_of(&other, &captured), delivery_of(&wants, &later)] {
        assert_ne!(others.unwrap().message, one.message);
    }
    assert!(!one.message.to_string().contains('.'));
}
