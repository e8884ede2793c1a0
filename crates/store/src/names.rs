//! The words and bytes that stand for the core's values in both databases.

use std::str::FromStr;

use onsale_core::event::{Admission, EventStatus, InDoubt, OrphanSeats, PaymentMode, QueueOrder};
use onsale_core::hold::HoldStatus;
use onsale_core::id::{HoldId, OrderId, SeatOrdinal};
use onsale_core::idempotency::StoredAnswer;
use onsale_core::log::LogKind;
use onsale_core::order::OrderStatus;
use onsale_core::payment::{OperationKind, OperationStatus, PaymentStatus};
use onsale_core::reconcile::{CaseKind, CaseStatus, Verdict};
use onsale_core::refusal::Refusal;
use serde_json::{Value, json};

use crate::error::StoreError;

/// A value with a word for it, both ways.
pub trait Named: Sized + Copy + PartialEq + 'static {
    /// Every value with its word.
    const WORDS: &'static [(Self, &'static str)];
    /// What kind of value, for errors.
    const KIND: &'static str;

    /// The word.
    fn word(self) -> &'static str {
        let found = Self::WORDS.iter().find(|(value, _)| *value == self);
        found.map(|(_, word)| *word).expect("every value has a word")
    }

    /// The value of a word.
    fn of(word: &str) -> Result<Self, StoreError> {
        let found = Self::WORDS.iter().find(|(_, known)| *known == word);
        let corrupt = || StoreError::Corrupt { wanted: Self::KIND, found: word.to_owned() };
        found.map(|(value, _)| *value).ok_or_else(corrupt)
    }
}

macro_rules! named {
    ($($type:ident $kind:literal { $($value:ident $word:literal),* $(,)? })*) => {$(
        impl Named for $type {
            const KIND: &'static str = $kind;
            const WORDS: &'static [(Self, &'static str)] = &[$(($type::$value, $word)),*];
        }
    )*};
}

named! {
    EventStatus "an event's status" { Draft "DRAFT", Open "OPEN", Paused "PAUSED", Closed "CLOSED" }
    Admission "an admission rule" { Open "open", Queue "queue" }
    QueueOrder "an order of the line" { Fifo "fifo", Lottery "lottery" }
    InDoubt "a rule for doubt" { Keep "keep", Release "release" }
    OrphanSeats "a rule for orphans" { Allow "allow", Avoid "avoid" }
    PaymentMode "a payment mode" { AuthorizeThenCapture "authorize_then_capture", Charge "charge" }
    HoldStatus "a hold's status" {
        Active "ACTIVE", PaymentPending "PAYMENT_PENDING", Converted "CONVERTED", Released "RELEASED", Expired "EXPIRED",
    }
    OrderStatus "an order's status" {
        AwaitingPayment "AWAITING_PAYMENT", Confirmed "CONFIRMED", Cancelled "CANCELLED", Expired "EXPIRED",
    }
    OperationKind "an operation's kind" { Authorize "AUTHORIZE", Capture "CAPTURE", Void "VOID", Refund "REFUND" }
    OperationStatus "an operation's status" {
        Pending "PENDING", RequiresAction "REQUIRES_ACTION", Unknown "UNKNOWN", Succeeded "SUCCEEDED", Failed "FAILED",
    }
    PaymentStatus "a payment status" {
        Pending "PENDING", RequiresAction "REQUIRES_ACTION", Unknown "UNKNOWN", Authorized "AUTHORIZED",
        Declined "DECLINED", Captured "CAPTURED", VoidPending "VOID_PENDING", Voided "VOIDED",
        RefundPending "REFUND_PENDING", Refunded "REFUNDED",
    }
    CaseStatus "a case's status" { Open "OPEN", Closed "CLOSED" }
    CaseKind "a case's kind" {
        LateSuccess "late_success", SurplusAuthorization "surplus_authorization", AmountMismatch "amount_mismatch",
        CallbackConflict "callback_conflict", OrphanPayment "orphan_payment", InDoubt "in_doubt",
        PaymentUnknown "payment_unknown", CaptureFailed "capture_failed", VoidFailed "void_failed",
        RefundFailed "refund_failed",
    }
    Verdict "a verdict" {
        Applied "applied", Duplicate "duplicate", Stale "stale", Conflict "conflict",
        AlreadyPaidReconcile "already_paid_reconcile", RefundPending "refund_pending", Parked "parked",
    }
}

/// A hold's seats as a JSON list.
pub(crate) fn seats_json(seats: &[SeatOrdinal]) -> String {
    let mut text = String::with_capacity(2 + seats.len() * 7);
    text.push('[');
    for (i, seat) in seats.iter().enumerate() {
        if i > 0 {
            text.push(',');
        }
        text.push_str(&seat.0.to_string());
    }
    text.push(']');
    text
}

/// A JSON list of seats, read back.
pub(crate) fn seats_of(text: &str) -> Result<Vec<SeatOrdinal>, StoreError> {
    let corrupt = || StoreError::Corrupt { wanted: "a list of seats", found: text.to_owned() };
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).ok_or_else(corrupt)?;
    let numbers = inner.split(',').filter(|part| !part.is_empty()).map(|part| part.parse().map(SeatOrdinal));
    numbers.collect::<Result<_, _>>().map_err(|_| corrupt())
}

/// A finished request's answer as text: what it was, then its particulars.
pub(crate) fn answer_text(answer: &StoredAnswer) -> String {
    let list = |seats: &[SeatOrdinal]| seats.iter().map(|s| s.0.to_string()).collect::<Vec<_>>().join(",");
    match answer {
        StoredAnswer::HoldPlaced(hold) => hold.to_string(),
        StoredAnswer::CheckoutBegun(order) => order.to_string(),
        StoredAnswer::Refused(refusal) => match refusal {
            Refusal::AccountLimit { limit, in_use } => format!("account-limit {limit} {in_use}"),
            Refusal::SeatUnavailable(seats) => format!("seat-unavailable {}", list(seats)),
            Refusal::HoldExpired => "hold-expired".to_owned(),
            Refusal::HoldNotActive => "hold-not-active".to_owned(),
            Refusal::PaymentPending => "payment-pending".to_owned(),
            Refusal::PriceChanged => "price-changed".to_owned(),
            Refusal::TooLittleTime => "too-little-time".to_owned(),
            Refusal::AttemptsExhausted => "attempts-exhausted".to_owned(),
            Refusal::KeyReused
            | Refusal::NotFound
            | Refusal::EventPaused
            | Refusal::NotOnSale
            | Refusal::ManifestChanged
            | Refusal::ManifestFrozen
            | Refusal::NotReady(_)
            | Refusal::TooManySeats { .. }
            | Refusal::PaymentsSaturated
            | Refusal::CaseClosed
            | Refusal::ActionNotPossible(_) => unreachable!("the core keeps none of these: Refusal::is_kept"),
        },
    }
}

/// An answer's text, read back.
pub(crate) fn answer_of(text: &str) -> Result<StoredAnswer, StoreError> {
    let corrupt = || StoreError::Corrupt { wanted: "a finished request's answer", found: text.to_owned() };
    if let Ok(hold) = text.parse::<HoldId>() {
        return Ok(StoredAnswer::HoldPlaced(hold));
    }
    if let Ok(order) = text.parse::<OrderId>() {
        return Ok(StoredAnswer::CheckoutBegun(order));
    }
    let mut parts = text.split(' ');
    let refusal = match parts.next() {
        Some("account-limit") => {
            let mut number = || parts.next().and_then(|part| part.parse().ok()).ok_or_else(corrupt);
            Refusal::AccountLimit { limit: number()?, in_use: number()? }
        }
        Some("seat-unavailable") => {
            Refusal::SeatUnavailable(seats_of(&format!("[{}]", parts.next().ok_or_else(corrupt)?))?)
        }
        Some("hold-expired") => Refusal::HoldExpired,
        Some("hold-not-active") => Refusal::HoldNotActive,
        Some("payment-pending") => Refusal::PaymentPending,
        Some("price-changed") => Refusal::PriceChanged,
        Some("too-little-time") => Refusal::TooLittleTime,
        Some("attempts-exhausted") => Refusal::AttemptsExhausted,
        _ => return Err(corrupt()),
    };
    Ok(StoredAnswer::Refused(refusal))
}

/// A log entry's particulars as JSON.
pub(crate) fn log_payload(kind: &LogKind) -> String {
    let ordinals = |seats: &[SeatOrdinal]| seats.iter().map(|seat| seat.0).collect::<Vec<_>>();
    let id = |id: &dyn std::fmt::Display| Value::String(id.to_string());
    let optional =
        |order: &Option<OrderId>| order.map_or(Value::Null, |order| Value::String(order.to_string()));
    let payload = match kind {
        // The one entry on the hottest path is written by hand.
        LogKind::HoldPlaced { hold, seats } => {
            return format!("{{\"hold\":\"{hold}\",\"seats\":{}}}", seats_json(seats));
        }
        LogKind::EventCreated => json!({}),
        LogKind::ManifestReplaced { manifest_version } => json!({ "manifest_version": manifest_version }),
        LogKind::PricesSet { price_version } => json!({ "price_version": price_version }),
        LogKind::OnSaleSet { status, actor } => json!({ "status": status.word(), "actor": actor }),
        LogKind::SeatsStatusSet { seats, not_for_sale, actor } => {
            json!({ "seats": ordinals(seats), "not_for_sale": not_for_sale, "actor": actor })
        }
        LogKind::HoldReleased { hold, order, seats } | LogKind::HoldExpired { hold, order, seats } => {
            json!({ "hold": id(hold), "order": optional(order), "seats": ordinals(seats) })
        }
        LogKind::CheckoutBegun { hold, order, operation } => {
            json!({ "hold": id(hold), "order": id(order), "operation": id(operation) })
        }
        LogKind::OperationMoved { order, operation, kind, status } => {
            json!({ "order": id(order), "operation": id(operation), "kind": kind.word(), "status": status.word() })
        }
        LogKind::OrderConfirmed { order, hold, seats } | LogKind::OrderCancelled { order, hold, seats } => {
            json!({ "order": id(order), "hold": id(hold), "seats": ordinals(seats) })
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
        "hold.placed" => LogKind::HoldPlaced { hold: told.id("hold")?, seats: told.seats()? },
        "hold.released" => LogKind::HoldReleased {
            hold: told.id("hold")?,
            order: told.id_or_none("order")?,
            seats: told.seats()?,
        },
        "hold.expired" => LogKind::HoldExpired {
            hold: told.id("hold")?,
            order: told.id_or_none("order")?,
            seats: told.seats()?,
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
        "order.confirmed" => {
            LogKind::OrderConfirmed { order: told.id("order")?, hold: told.id("hold")?, seats: told.seats()? }
        }
        "order.cancelled" => {
            LogKind::OrderCancelled { order: told.id("order")?, hold: told.id("hold")?, seats: told.seats()? }
        }
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
    fn number(&self, name: &str) -> Result<u32, StoreError> {
        let number = self.value[name].as_u64().and_then(|number| number.try_into().ok());
        number.ok_or_else(self.corrupt)
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
        let ordinal = |seat: &Value| {
            let number = seat.as_u64().and_then(|seat| u32::try_from(seat).ok());
            number.map(SeatOrdinal).ok_or_else(self.corrupt)
        };
        self.value["seats"].as_array().ok_or_else(self.corrupt)?.iter().map(ordinal).collect()
    }
}

#[cfg(test)]
mod tests {
    use onsale_core::id::{CaseId, OperationId};

    use super::*;

    /// Whoever follows the log reads exactly what was written.
    #[test]
    fn every_kind_of_log_entry_comes_back_as_it_was() {
        let (hold, order, operation, case) = (HoldId(1 << 70), OrderId(2), OperationId(3), CaseId(4));
        let seats = || vec![SeatOrdinal(0), SeatOrdinal(4_000_000)];
        let actor = || "key_\"1\"".to_owned();
        let kinds = [
            LogKind::EventCreated,
            LogKind::ManifestReplaced { manifest_version: 7 },
            LogKind::PricesSet { price_version: 8 },
            LogKind::OnSaleSet { status: EventStatus::Paused, actor: actor() },
            LogKind::SeatsStatusSet { seats: seats(), not_for_sale: true, actor: actor() },
            LogKind::HoldPlaced { hold, seats: seats() },
            LogKind::HoldReleased { hold, order: None, seats: seats() },
            LogKind::HoldExpired { hold, order: Some(order), seats: vec![] },
            LogKind::CheckoutBegun { hold, order, operation },
            LogKind::OperationMoved {
                order,
                operation,
                kind: OperationKind::Void,
                status: OperationStatus::Unknown,
            },
            LogKind::OrderConfirmed { order, hold, seats: seats() },
            LogKind::OrderCancelled { order, hold, seats: seats() },
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
