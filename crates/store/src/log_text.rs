//! Log entries as they are kept: the particulars of each kind as JSON, and back.

use std::str::FromStr;

use onsale_core::ga::GaLine;
use onsale_core::id::{AllocationNo, AreaNo, BucketNo, OrderId, SeatOrdinal};
use onsale_core::log::LogKind;
use serde_json::{Value, json};

use crate::error::StoreError;
use crate::names::{Named, ga_json, lines_of, seats_json};

/// A log entry's particulars as JSON.
pub(crate) fn log_payload(kind: &LogKind) -> String {
    let ordinals = |seats: &[SeatOrdinal]| seats.iter().map(|seat| seat.0).collect::<Vec<_>>();
    let id = |id: &dyn std::fmt::Display| Value::String(id.to_string());
    let optional =
        |order: &Option<OrderId>| order.map_or(Value::Null, |order| Value::String(order.to_string()));
    let payload = match kind {
        // The one entry on the hottest path is written by hand.
        LogKind::HoldPlaced { hold, seats, ga } => {
            let places = if ga.is_empty() { String::new() } else { format!(",\"ga\":{}", ga_json(ga)) };
            return format!("{{\"hold\":\"{hold}\",\"seats\":{}{places}}}", seats_json(seats));
        }
        LogKind::EventCreated => json!({}),
        LogKind::ManifestReplaced { manifest_version } => json!({ "manifest_version": manifest_version }),
        LogKind::PricesSet { price_version } => json!({ "price_version": price_version }),
        LogKind::OnSaleSet { status, actor } => json!({ "status": status.word(), "actor": actor }),
        LogKind::SeatsStatusSet { seats, not_for_sale, actor } => {
            json!({ "seats": ordinals(seats), "not_for_sale": not_for_sale, "actor": actor })
        }
        LogKind::AllocationMade { allocation, actor } => {
            json!({ "allocation": allocation.0, "actor": actor })
        }
        LogKind::SeatsSetAside { seats, allocation, actor } => {
            json!({ "seats": ordinals(seats), "allocation": allocation.map(|no| no.0), "actor": actor })
        }
        LogKind::AccessCodeSet { code, actor } => json!({ "code": code, "actor": actor }),
        LogKind::BucketAdded { area, bucket, allocation, actor } => {
            let allocation = allocation.map(|no| no.0);
            json!({ "area": area.0, "bucket": bucket.0, "allocation": allocation, "actor": actor })
        }
        LogKind::CapacitySet { area, capacity, changes, actor } => {
            let changes: Vec<Value> =
                changes.iter().map(|(bucket, by)| json!({ "b": bucket.0, "by": by })).collect();
            json!({ "area": area.0, "capacity": capacity, "changes": changes, "actor": actor })
        }
        LogKind::QuotaMoved { transfer, area, from, to, quantity, status } => json!({
            "transfer": id(transfer), "area": area.0, "from": from.0, "to": to.0, "quantity": quantity,
            "status": status.word()
        }),
        LogKind::HoldReleased { hold, order, seats, set_aside, ga }
        | LogKind::HoldExpired { hold, order, seats, set_aside, ga } => with_places(
            json!({ "hold": id(hold), "order": optional(order), "seats": ordinals(seats) }),
            set_aside,
            ga,
        ),
        LogKind::CheckoutBegun { hold, order, operation } => {
            json!({ "hold": id(hold), "order": id(order), "operation": id(operation) })
        }
        LogKind::OperationMoved { order, operation, kind, status } => {
            json!({ "order": id(order), "operation": id(operation), "kind": kind.word(), "status": status.word() })
        }
        LogKind::OrderConfirmed { order, hold, seats, ga } => {
            with_places(json!({ "order": id(order), "hold": id(hold), "seats": ordinals(seats) }), &[], ga)
        }
        LogKind::OrderCancelled { order, hold, seats, set_aside, ga } => {
            let told = json!({ "order": id(order), "hold": id(hold), "seats": ordinals(seats) });
            with_places(told, set_aside, ga)
        }
        LogKind::RefundBegun { order, operation, actor } => {
            json!({ "order": id(order), "operation": id(operation), "actor": actor })
        }
        LogKind::OrderReturned { order, operation, seats, set_aside, ga, resell } => {
            let told = json!({
                "order": id(order), "operation": id(operation), "seats": ordinals(seats), "resell": resell
            });
            with_places(told, set_aside, ga)
        }
        LogKind::TicketsIssued { order, tickets } => {
            json!({ "order": id(order), "tickets": tickets.iter().map(|ticket| id(ticket)).collect::<Vec<_>>() })
        }
        LogKind::TicketsMoved { order, tickets, status, actor } => {
            let tickets = tickets.iter().map(|ticket| id(ticket)).collect::<Vec<_>>();
            json!({ "order": id(order), "tickets": tickets, "status": status.word(), "actor": actor })
        }
        LogKind::TicketScanned { order, ticket, gate, result } => {
            json!({ "order": id(order), "ticket": id(ticket), "gate": gate, "result": result.word() })
        }
        LogKind::CaseOpened { case, kind, order } => {
            json!({ "case": id(case), "kind": kind.as_str(), "order": optional(order) })
        }
        LogKind::CaseActed { case, action, actor } => {
            json!({ "case": id(case), "action": action, "actor": actor })
        }
        LogKind::CaseClosed { case } => json!({ "case": id(case) }),
    };
    payload.to_string()
}

/// Adds to particulars what few entries have: seats that went back to an allocation, and places.
fn with_places(mut told: Value, set_aside: &[SeatOrdinal], ga: &[GaLine]) -> Value {
    if !set_aside.is_empty() {
        told["set_aside"] = set_aside.iter().map(|seat| seat.0).collect();
    }
    if !ga.is_empty() {
        let line = |l: &GaLine| json!({ "a": l.area.0, "b": l.bucket.0, "q": l.quantity });
        told["ga"] = ga.iter().map(line).collect();
    }
    told
}

/// A log entry's kind and particulars, read back.
pub(crate) fn log_kind(kind: &str, payload: &str) -> Result<LogKind, StoreError> {
    let corrupt = || StoreError::Corrupt { wanted: "a log entry", found: format!("{kind} {payload}") };
    let value: Value = serde_json::from_str(payload).map_err(|_| corrupt())?;
    let told = Told { value: &value, corrupt: &corrupt };
    Ok(match kind {
        "event.created" => LogKind::EventCreated,
        "manifest.replaced" => {
            LogKind::ManifestReplaced { manifest_version: told.number("manifest_version")? }
        }
        "prices.set" => LogKind::PricesSet { price_version: told.number("price_version")? },
        "on_sale.set" => LogKind::OnSaleSet { status: told.word("status")?, actor: told.text("actor")? },
        "seats.status_set" => LogKind::SeatsStatusSet {
            seats: told.seats()?,
            not_for_sale: value["not_for_sale"].as_bool().ok_or_else(corrupt)?,
            actor: told.text("actor")?,
        },
        "allocation.made" => LogKind::AllocationMade {
            allocation: AllocationNo(told.number("allocation")?),
            actor: told.text("actor")?,
        },
        "seats.set_aside" => LogKind::SeatsSetAside {
            seats: told.seats()?,
            allocation: told.number_or_none("allocation")?.map(AllocationNo),
            actor: told.text("actor")?,
        },
        "access_code.set" => LogKind::AccessCodeSet { code: told.text("code")?, actor: told.text("actor")? },
        "ga.bucket_added" => LogKind::BucketAdded {
            area: AreaNo(told.number("area")?),
            bucket: BucketNo(told.number("bucket")?),
            allocation: told.number_or_none("allocation")?.map(AllocationNo),
            actor: told.text("actor")?,
        },
        "ga.capacity_set" => LogKind::CapacitySet {
            area: AreaNo(told.number("area")?),
            capacity: told.number("capacity")?,
            changes: told.changes()?,
            actor: told.text("actor")?,
        },
        "quota.moved" => LogKind::QuotaMoved {
            transfer: told.id("transfer")?,
            area: AreaNo(told.number("area")?),
            from: BucketNo(told.number("from")?),
            to: BucketNo(told.number("to")?),
            quantity: told.number("quantity")?,
            status: told.word("status")?,
        },
        "hold.placed" => LogKind::HoldPlaced { hold: told.id("hold")?, seats: told.seats()?, ga: told.ga()? },
        "hold.released" => LogKind::HoldReleased {
            hold: told.id("hold")?,
            order: told.id_or_none("order")?,
            seats: told.seats()?,
            set_aside: told.seats_or_none("set_aside")?,
            ga: told.ga()?,
        },
        "hold.expired" => LogKind::HoldExpired {
            hold: told.id("hold")?,
            order: told.id_or_none("order")?,
            seats: told.seats()?,
            set_aside: told.seats_or_none("set_aside")?,
            ga: told.ga()?,
        },
        "checkout.begun" => LogKind::CheckoutBegun {
            hold: told.id("hold")?,
            order: told.id("order")?,
            operation: told.id("operation")?,
        },
        "operation.moved" => LogKind::OperationMoved {
            order: told.id("order")?,
            operation: told.id("operation")?,
            kind: told.word("kind")?,
            status: told.word("status")?,
        },
        "order.confirmed" => LogKind::OrderConfirmed {
            order: told.id("order")?,
            hold: told.id("hold")?,
            seats: told.seats()?,
            ga: told.ga()?,
        },
        "order.cancelled" => LogKind::OrderCancelled {
            order: told.id("order")?,
            hold: told.id("hold")?,
            seats: told.seats()?,
            set_aside: told.seats_or_none("set_aside")?,
            ga: told.ga()?,
        },
        "refund.begun" => LogKind::RefundBegun {
            order: told.id("order")?,
            operation: told.id("operation")?,
            actor: told.text("actor")?,
        },
        "order.returned" => LogKind::OrderReturned {
            order: told.id("order")?,
            operation: told.id("operation")?,
            seats: told.seats()?,
            set_aside: told.seats_or_none("set_aside")?,
            ga: told.ga()?,
            resell: value["resell"].as_bool().ok_or_else(corrupt)?,
        },
        "tickets.issued" => {
            LogKind::TicketsIssued { order: told.id("order")?, tickets: told.ids("tickets")? }
        }
        "tickets.moved" => LogKind::TicketsMoved {
            order: told.id("order")?,
            tickets: told.ids("tickets")?,
            status: told.word("status")?,
            actor: told.text("actor")?,
        },
        "ticket.scanned" => LogKind::TicketScanned {
            order: told.id("order")?,
            ticket: told.id("ticket")?,
            gate: told.text("gate")?,
            result: told.word("result")?,
        },
        "case.opened" => LogKind::CaseOpened {
            case: told.id("case")?,
            kind: told.word("kind")?,
            order: told.id_or_none("order")?,
        },
        "case.acted" => LogKind::CaseActed {
            case: told.id("case")?,
            action: told.text("action")?,
            actor: told.text("actor")?,
        },
        "case.closed" => LogKind::CaseClosed { case: told.id("case")? },
        _ => return Err(corrupt()),
    })
}

/// The particulars of a log entry.
struct Told<'a> {
    value: &'a Value,
    corrupt: &'a dyn Fn() -> StoreError,
}

impl Told<'_> {
    fn number<N: TryFrom<u64>>(&self, name: &str) -> Result<N, StoreError> {
        self.number_or_none(name)?.ok_or_else(self.corrupt)
    }

    fn number_or_none<N: TryFrom<u64>>(&self, name: &str) -> Result<Option<N>, StoreError> {
        let number = |number: &Value| number.as_u64().and_then(|number| number.try_into().ok());
        match &self.value[name] {
            Value::Null => Ok(None),
            told => number(told).map(Some).ok_or_else(self.corrupt),
        }
    }

    fn ga(&self) -> Result<Vec<GaLine>, StoreError> {
        match &self.value["ga"] {
            Value::Null => Ok(Vec::new()),
            list => lines_of(list).ok_or_else(self.corrupt),
        }
    }

    fn changes(&self) -> Result<Vec<(BucketNo, i64)>, StoreError> {
        let change = |change: &Value| {
            let bucket = change["b"].as_u64().and_then(|bucket| u16::try_from(bucket).ok());
            Some((BucketNo(bucket?), change["by"].as_i64()?))
        };
        let list = self.value["changes"].as_array().ok_or_else(self.corrupt)?;
        list.iter().map(|item| change(item).ok_or_else(self.corrupt)).collect()
    }

    fn ids<I: FromStr>(&self, name: &str) -> Result<Vec<I>, StoreError> {
        let list = self.value[name].as_array().ok_or_else(self.corrupt)?;
        let id = |id: &Value| id.as_str().and_then(|id| id.parse().ok()).ok_or_else(self.corrupt);
        list.iter().map(id).collect()
    }

    fn text(&self, name: &str) -> Result<String, StoreError> {
        self.value[name].as_str().map(str::to_owned).ok_or_else(self.corrupt)
    }

    fn word<N: Named>(&self, name: &str) -> Result<N, StoreError> {
        N::of(self.value[name].as_str().ok_or_else(self.corrupt)?)
    }

    fn id<I: FromStr>(&self, name: &str) -> Result<I, StoreError> {
        self.id_or_none(name)?.ok_or_else(self.corrupt)
    }

    fn id_or_none<I: FromStr>(&self, name: &str) -> Result<Option<I>, StoreError> {
        let text = self.value[name].as_str();
        text.map(|text| text.parse().map_err(|_| (self.corrupt)())).transpose()
    }

    fn seats(&self) -> Result<Vec<SeatOrdinal>, StoreError> {
        self.seat_list("seats")
    }

    fn seats_or_none(&self, name: &str) -> Result<Vec<SeatOrdinal>, StoreError> {
        if self.value[name].is_null() { Ok(Vec::new()) } else { self.seat_list(name) }
    }

    fn seat_list(&self, name: &str) -> Result<Vec<SeatOrdinal>, StoreError> {
        let ordinal = |seat: &Value| {
            let number = seat.as_u64().and_then(|seat| u32::try_from(seat).ok());
            number.map(SeatOrdinal).ok_or_else(self.corrupt)
        };
        self.value[name].as_array().ok_or_else(self.corrupt)?.iter().map(ordinal).collect()
    }
}

#[cfg(test)]
mod tests {
    use onsale_core::event::EventStatus;
    use onsale_core::ga::TransferStatus;
    use onsale_core::id::{CaseId, HoldId, OperationId, TicketId, TransferId};
    use onsale_core::payment::{OperationKind, OperationStatus};
    use onsale_core::reconcile::CaseKind;
    use onsale_core::ticket::{ScanResult, TicketStatus};

    use super::*;

    /// Whoever follows the log reads exactly what was written.
    #[test]
    fn every_kind_of_log_entry_comes_back_as_it_was() {
        let (hold, order, operation, case) = (HoldId(1 << 70), OrderId(2), OperationId(3), CaseId(4));
        let seats = || vec![SeatOrdinal(0), SeatOrdinal(4_000_000)];
        let actor = || "key_\"1\"".to_owned();
        let ga = || vec![GaLine { area: AreaNo(1), bucket: BucketNo(15), quantity: 6 }];
        let kinds = [
            LogKind::EventCreated,
            LogKind::ManifestReplaced { manifest_version: 7 },
            LogKind::PricesSet { price_version: 8 },
            LogKind::OnSaleSet { status: EventStatus::Paused, actor: actor() },
            LogKind::SeatsStatusSet { seats: seats(), not_for_sale: true, actor: actor() },
            LogKind::AllocationMade { allocation: AllocationNo(3), actor: actor() },
            LogKind::SeatsSetAside { seats: seats(), allocation: Some(AllocationNo(3)), actor: actor() },
            LogKind::SeatsSetAside { seats: seats(), allocation: None, actor: actor() },
            LogKind::AccessCodeSet { code: "FAN-1".to_owned(), actor: actor() },
            LogKind::BucketAdded {
                area: AreaNo(1),
                bucket: BucketNo(2),
                allocation: Some(AllocationNo(3)),
                actor: actor(),
            },
            LogKind::CapacitySet {
                area: AreaNo(1),
                capacity: 90,
                changes: vec![(BucketNo(0), -10), (BucketNo(1), 5)],
                actor: actor(),
            },
            LogKind::QuotaMoved {
                transfer: TransferId(5),
                area: AreaNo(1),
                from: BucketNo(0),
                to: BucketNo(1),
                quantity: 40,
                status: TransferStatus::Arrived,
            },
            LogKind::HoldPlaced { hold, seats: seats(), ga: vec![] },
            LogKind::HoldPlaced { hold, seats: vec![], ga: ga() },
            LogKind::HoldReleased { hold, order: None, seats: seats(), set_aside: seats(), ga: vec![] },
            LogKind::HoldExpired { hold, order: Some(order), seats: vec![], set_aside: vec![], ga: ga() },
            LogKind::CheckoutBegun { hold, order, operation },
            LogKind::OperationMoved {
                order,
                operation,
                kind: OperationKind::Void,
                status: OperationStatus::Unknown,
            },
            LogKind::OrderConfirmed { order, hold, seats: seats(), ga: ga() },
            LogKind::OrderCancelled { order, hold, seats: seats(), set_aside: vec![], ga: ga() },
            LogKind::RefundBegun { order, operation, actor: actor() },
            LogKind::OrderReturned {
                order,
                operation,
                seats: seats(),
                set_aside: vec![],
                ga: ga(),
                resell: true,
            },
            LogKind::TicketsIssued { order, tickets: vec![TicketId(6), TicketId(7)] },
            LogKind::TicketsMoved {
                order,
                tickets: vec![TicketId(6)],
                status: TicketStatus::Suspended,
                actor: actor(),
            },
            LogKind::TicketScanned {
                order,
                ticket: TicketId(6),
                gate: "north".to_owned(),
                result: ScanResult::AlreadyUsed,
            },
            LogKind::CaseOpened { case, kind: CaseKind::InDoubt, order: None },
            LogKind::CaseActed { case, action: "void".to_owned(), actor: actor() },
            LogKind::CaseClosed { case },
        ];
        for kind in kinds {
            assert_eq!(log_kind(kind.as_str(), &log_payload(&kind)).unwrap(), kind);
        }
        for (kind, payload) in [
            ("hold.placed", "{}"),
            ("hold.placed", "{"),
            ("hold.placed", r#"{"hold":"ord_00000000000000000000000001","seats":[]}"#),
            ("hold.placed", r#"{"hold":"hld_00000000000000000000000001","seats":[-1]}"#),
            ("hold.sold", "{}"),
        ] {
            assert!(matches!(log_kind(kind, payload), Err(StoreError::Corrupt { .. })), "{kind} {payload}");
        }
    }
}
