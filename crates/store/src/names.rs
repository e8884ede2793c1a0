//! The words and bytes that stand for the core's values in both databases.

use onsale_core::event::{Admission, EventStatus, InDoubt, OrphanSeats, PaymentMode, QueueOrder};
use onsale_core::ga::{GaLine, TransferStatus};
use onsale_core::hold::HoldStatus;
use onsale_core::id::{AreaNo, BucketNo, HoldId, OperationId, OrderId, SeatOrdinal, TransferId};
use onsale_core::idempotency::StoredAnswer;
use onsale_core::order::OrderStatus;
use onsale_core::payment::{OperationKind, OperationStatus, PaymentStatus};
use onsale_core::reconcile::{CaseKind, CaseStatus, Verdict};
use onsale_core::refusal::Refusal;
use onsale_core::snapshot::DueWith;
use onsale_core::ticket::{Direction, ScanResult, TicketStatus};
use serde_json::Value;

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
    TransferStatus "a transfer's status" { InFlight "IN_FLIGHT", Arrived "ARRIVED", Returned "RETURNED" }
    TicketStatus "a ticket's status" { Valid "VALID", Suspended "SUSPENDED", Revoked "REVOKED" }
    Direction "a way through the gate" { In "IN", Out "OUT" }
    ScanResult "what came of a scan" {
        Admit "ADMIT", AlreadyUsed "ALREADY_USED", Revoked "REVOKED", WrongEvent "WRONG_EVENT", Invalid "INVALID",
        Exited "EXITED", NotInside "NOT_INSIDE",
    }
    CaseStatus "a case's status" { Open "OPEN", Closed "CLOSED" }
    CaseKind "a case's kind" {
        LateSuccess "late_success", SurplusAuthorization "surplus_authorization", AmountMismatch "amount_mismatch",
        CallbackConflict "callback_conflict", OrphanPayment "orphan_payment", InDoubt "in_doubt",
        PaymentUnknown "payment_unknown", CaptureFailed "capture_failed", VoidFailed "void_failed",
        RefundFailed "refund_failed", MissingAtProvider "missing_at_provider", RefundMismatch "refund_mismatch",
        StateMismatch "state_mismatch", TicketsMissing "tickets_missing",
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

/// Places as a JSON list.
pub(crate) fn ga_json(lines: &[GaLine]) -> String {
    let line = |l: &GaLine| format!(r#"{{"a":{},"b":{},"q":{}}}"#, l.area.0, l.bucket.0, l.quantity);
    format!("[{}]", lines.iter().map(line).collect::<Vec<_>>().join(","))
}

/// Which holds a question about those that are due means: patterns for their seats and places as [`seats_json`] and
/// [`ga_json`] write them, and a code or nothing.
pub(crate) fn due_with(with: &DueWith) -> (&str, String, &str) {
    match with {
        DueWith::Seats => ("[_%]", "%".to_owned(), ""),
        DueWith::Places => ("%", r#"%"a":%"#.to_owned(), ""),
        DueWith::Area(area) => ("%", format!(r#"%"a":{},%"#, area.0), ""),
        DueWith::Code(code) => ("%", "%".to_owned(), code),
    }
}

/// A JSON list of places, read back.
pub(crate) fn ga_of(text: &str) -> Result<Vec<GaLine>, StoreError> {
    if text == "[]" {
        return Ok(Vec::new());
    }
    let corrupt = || StoreError::Corrupt { wanted: "a list of places", found: text.to_owned() };
    let list: Value = serde_json::from_str(text).map_err(|_| corrupt())?;
    lines_of(&list).ok_or_else(corrupt)
}

pub(crate) fn lines_of(list: &Value) -> Option<Vec<GaLine>> {
    let line = |line: &Value| {
        let number = |name: &str| line[name].as_u64();
        Some(GaLine {
            area: AreaNo(number("a")?.try_into().ok()?),
            bucket: BucketNo(number("b")?.try_into().ok()?),
            quantity: number("q")?.try_into().ok()?,
        })
    };
    list.as_array()?.iter().map(line).collect()
}

/// A finished request's answer as text: what it was, then its particulars.
pub(crate) fn answer_text(answer: &StoredAnswer) -> String {
    let list = |seats: &[SeatOrdinal]| seats.iter().map(|s| s.0.to_string()).collect::<Vec<_>>().join(",");
    match answer {
        StoredAnswer::HoldPlaced(hold) => hold.to_string(),
        StoredAnswer::CheckoutBegun(order) => order.to_string(),
        StoredAnswer::RefundBegun(operation) => operation.to_string(),
        StoredAnswer::TransferBegun(transfer) => transfer.to_string(),
        StoredAnswer::Refused(refusal) => match refusal {
            Refusal::AccountLimit { limit, in_use } => format!("account-limit {limit} {in_use}"),
            Refusal::SeatUnavailable(seats) => format!("seat-unavailable {}", list(seats)),
            Refusal::NotEnoughAvailable { area: Some(area) } => format!("not-enough-available {}", area.0),
            Refusal::NotEnoughAvailable { area: None } => "not-enough-available".to_owned(),
            Refusal::AccessCodeExhausted { limit, in_use } => {
                format!("access-code-exhausted {limit} {in_use}")
            }
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
            | Refusal::AccessCodeInvalid(_)
            | Refusal::NotRefundable(_)
            | Refusal::RefundPending
            | Refusal::RefundTooLarge { .. }
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
    if let Ok(operation) = text.parse::<OperationId>() {
        return Ok(StoredAnswer::RefundBegun(operation));
    }
    if let Ok(transfer) = text.parse::<TransferId>() {
        return Ok(StoredAnswer::TransferBegun(transfer));
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
        Some("not-enough-available") => {
            let area = parts.next().map(|area| area.parse().map(AreaNo).map_err(|_| corrupt()));
            Refusal::NotEnoughAvailable { area: area.transpose()? }
        }
        Some("access-code-exhausted") => {
            let mut number = || parts.next().and_then(|part| part.parse().ok()).ok_or_else(corrupt);
            Refusal::AccessCodeExhausted { limit: number()?, in_use: number()? }
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
