//! Rows of either database as the core's values.

use onsale_core::access::{AccessCode, Allocation};
use onsale_core::event::{Event, Policy};
use onsale_core::ga::{Area, Bucket, Transfer};
use onsale_core::hold::Hold;
use onsale_core::id::{AllocationNo, AreaNo, BucketNo, EventId, EventNo, SeatOrdinal};
use onsale_core::idempotency::{KeyRecord, RequestKey};
use onsale_core::log::LogEntry;
use onsale_core::money::{Currency, Money};
use onsale_core::order::Order;
use onsale_core::payment::Operation;
use onsale_core::reconcile::{Callback, Case, CaseStatus, Resolution};
use onsale_core::refund::Refund;
use onsale_core::seat_map::{Seat, SeatStatus};
use onsale_core::ticket::{Place, Scan, Ticket};
use onsale_core::time::Timestamp;

use crate::error::StoreError;
use crate::log_text::log_kind;
use crate::look::{Parsed, Row};
use crate::names::{answer_of, ga_of, seats_of};

pub(crate) const EVENT: &str = "event_id, name, currency, starts_at, on_sale_at, off_sale_at, timezone, created_at, status, \
     hold_ttl_ms, payment_grace_ms, seats_per_hold_max, tickets_per_account_max, payment_pending_per_account_max, \
     payment_pending_max, admission, queue_order, shoppers_max, in_doubt, orphan_seats, payment, ga_max, reentry, epoch, clock, \
     version, manifest_version, seat_count, price_level_count, price_version, payment_pending, area_count, ga_in_use, \
     allocation_count";
/// Where the name of the event's home stands, when it is read after [`EVENT`].
pub(crate) const ELSEWHERE: usize = 34;
pub(crate) const SEAT: &str =
    "ordinal, status, hold_id, hold_expires_at, order_id, price_level, version, allocation";
pub(crate) const HOLD: &str = "hold_id, account_id, status, expires_at, first_expires_at, created_at, seats, price_version, \
     total_minor, order_id, grace_used, in_doubt, ga, code";
pub(crate) const ORDER: &str = "order_id, hold_id, account_id, amount_minor, currency, price_version, ticket_count, status, \
     payment_status, paid_by, created_at, confirmed_at, email, return_url, returned_seats, returned_ga, ticketed";
pub(crate) const OPERATION: &str = "operation_id, order_id, seq, kind, status, target, reference, amount_minor, currency, \
     payment_method_token, next_action_url, failure_code, created_at, updated_at, due_at, tries, base_minor";
pub(crate) const CASE: &str = "case_id, kind, order_id, operation_id, opened_at, evidence, status, owner, next_check_at, \
     action, note, actor, acted_at, subject";
pub(crate) const CALLBACK: &str = "provider_event_id, digest, kind, reference, claimed_order, verdict, received_at, due_at, case_id, event_no";
pub(crate) const KEY: &str = "key, digest, answer, created_at";
pub(crate) const AREA: &str = "position, capacity, price_level";
pub(crate) const BUCKET: &str = "area, bucket, capacity, held, sold, allocation, version";
pub(crate) const TRANSFER: &str =
    "transfer_id, area, from_bucket, to_bucket, quantity, status, actor, created_at, ended_at";
pub(crate) const CODE: &str =
    "code, allocation, presale, tickets_max, tickets_in_use, valid_from, valid_until, revoked_at, created_at";
pub(crate) const ALLOCATION: &str = "allocation, name, created_at";
pub(crate) const REFUND: &str = "operation_id, order_id, reason, resell, seats, ga, actor, created_at";
pub(crate) const TICKET: &str = "ticket_id, order_id, ordinal, area, generation, status, inside, admissions, admitted_at, \
     admitted_gate, issued_at, version";
pub(crate) const SCAN: &str =
    "scan_id, ticket_id, generation, direction, gate, scanned_at, received_at, result, let_in_offline";
pub(crate) const LOG: &str = "event_no, version, at, kind, payload";

pub(crate) fn time(row: &Row<'_>, index: usize) -> Parsed<Timestamp> {
    Ok(Timestamp::from_millis(row.number(index)?))
}

pub(crate) fn time_or_none(row: &Row<'_>, index: usize) -> Parsed<Option<Timestamp>> {
    Ok(row.number_or_none(index)?.map(Timestamp::from_millis))
}

fn currency(row: &Row<'_>, index: usize) -> Parsed<Currency> {
    let code = row.text(index)?;
    Currency::parse(code).ok_or_else(|| StoreError::Corrupt { wanted: "a currency", found: code.to_owned() })
}

pub(crate) fn event(row: &Row<'_>) -> Parsed<Event> {
    let policy = Policy {
        hold_ttl_ms: row.number(9)?,
        payment_grace_ms: row.number(10)?,
        seats_per_hold_max: row.number(11)?,
        tickets_per_account_max: row.number(12)?,
        payment_pending_per_account_max: row.number(13)?,
        payment_pending_max: row.number(14)?,
        admission: row.word(15)?,
        queue_order: row.word(16)?,
        shoppers_max: row.number(17)?,
        in_doubt: row.word(18)?,
        orphan_seats: row.word(19)?,
        payment: row.word(20)?,
        ga_max: row.number_or_none(21)?,
        reentry: row.truth(22)?,
    };
    Ok(Event {
        id: EventId(row.bits(0)?),
        name: row.string(1)?,
        currency: currency(row, 2)?,
        starts_at: time(row, 3)?,
        on_sale_at: time_or_none(row, 4)?,
        off_sale_at: time_or_none(row, 5)?,
        timezone: row.string(6)?,
        created_at: time(row, 7)?,
        status: row.word(8)?,
        policy,
        epoch: row.number(23)?,
        clock: time(row, 24)?,
        version: row.number(25)?,
        manifest_version: row.number(26)?,
        seat_count: row.number(27)?,
        price_level_count: row.number(28)?,
        price_version: row.number(29)?,
        payment_pending: row.number(30)?,
        area_count: row.number(31)?,
        ga_in_use: row.number(32)?,
        allocation_count: row.number(33)?,
    })
}

pub(crate) fn seat(row: &Row<'_>) -> Parsed<Seat> {
    let status = match row.number::<u8>(1)? {
        0 => SeatStatus::Available,
        1 => SeatStatus::Held { hold: row.id(2)?, expires_at: time(row, 3)? },
        2 => SeatStatus::Sold { hold: row.id(2)?, order: row.id(4)? },
        3 => SeatStatus::NotForSale,
        other => return Err(StoreError::Corrupt { wanted: "a seat's status", found: other.to_string() }),
    };
    Ok(Seat {
        ordinal: SeatOrdinal(row.number(0)?),
        status,
        price_level: row.number(5)?,
        version: row.number(6)?,
        allocation: row.number_or_none(7)?.map(AllocationNo),
    })
}

pub(crate) fn hold(row: &Row<'_>) -> Parsed<Hold> {
    Ok(Hold {
        id: row.id(0)?,
        account: row.account(1)?,
        status: row.word(2)?,
        expires_at: time(row, 3)?,
        first_expires_at: time(row, 4)?,
        created_at: time(row, 5)?,
        seats: seats_of(row.text(6)?)?,
        price_version: row.number(7)?,
        total_minor: row.number(8)?,
        order: row.id_or_none(9)?,
        grace_used: row.truth(10)?,
        in_doubt: row.truth(11)?,
        ga: ga_of(row.text(12)?)?,
        code: row.text_or_none(13)?.map(Into::into),
    })
}

pub(crate) fn order(row: &Row<'_>) -> Parsed<Order> {
    Ok(Order {
        id: row.id(0)?,
        hold: row.id(1)?,
        account: row.account(2)?,
        total: Money { amount_minor: row.number(3)?, currency: currency(row, 4)? },
        price_version: row.number(5)?,
        ticket_count: row.number(6)?,
        status: row.word(7)?,
        payment_status: row.word(8)?,
        paid_by: row.id_or_none(9)?,
        created_at: time(row, 10)?,
        confirmed_at: time_or_none(row, 11)?,
        email: row.string_or_none(12)?,
        return_url: row.string_or_none(13)?,
        returned_seats: seats_of(row.text(14)?)?,
        returned_ga: ga_of(row.text(15)?)?,
        ticketed: row.truth(16)?,
    })
}

pub(crate) fn operation(row: &Row<'_>) -> Parsed<Operation> {
    Ok(Operation {
        id: row.id(0)?,
        order: row.id(1)?,
        seq: row.number(2)?,
        kind: row.word(3)?,
        status: row.word(4)?,
        target: row.id_or_none(5)?,
        reference: row.string_or_none(6)?,
        amount: Money { amount_minor: row.number(7)?, currency: currency(row, 8)? },
        payment_method_token: row.string_or_none(9)?,
        next_action_url: row.string_or_none(10)?,
        failure_code: row.string_or_none(11)?,
        created_at: time(row, 12)?,
        updated_at: time(row, 13)?,
        due_at: time(row, 14)?,
        tries: row.number(15)?,
        base_minor: row.number(16)?,
    })
}

pub(crate) fn case(row: &Row<'_>) -> Parsed<Case> {
    let resolution = match row.string_or_none(9)? {
        None => None,
        Some(action) => {
            Some(Resolution { action, note: row.string(10)?, actor: row.string(11)?, at: time(row, 12)? })
        }
    };
    Ok(Case {
        id: row.id(0)?,
        kind: row.word(1)?,
        order: row.id_or_none(2)?,
        operation: row.id_or_none(3)?,
        subject: row.string_or_none(13)?,
        opened_at: time(row, 4)?,
        evidence: row.string(5)?,
        status: row.word::<CaseStatus>(6)?,
        owner: row.string(7)?,
        next_check_at: time(row, 8)?,
        resolution,
    })
}

pub(crate) fn callback(row: &Row<'_>) -> Parsed<Callback> {
    Ok(Callback {
        provider_event_id: row.string(0)?,
        digest: row.bits(1)?,
        kind: row.string(2)?,
        reference: row.string_or_none(3)?,
        claimed_order: row.id_or_none(4)?,
        verdict: row.word(5)?,
        received_at: time(row, 6)?,
        due_at: time(row, 7)?,
        case: row.id_or_none(8)?,
        event: EventNo(row.number(9)?),
    })
}

pub(crate) fn key(row: &Row<'_>) -> Parsed<KeyRecord> {
    let key = RequestKey { id: row.bits(0)?, digest: row.bits(1)? };
    Ok(KeyRecord { key, answer: answer_of(row.text(2)?)?, created_at: time(row, 3)? })
}

pub(crate) fn log(row: &Row<'_>) -> Parsed<LogEntry> {
    Ok(LogEntry {
        event: onsale_core::id::EventNo(row.number(0)?),
        version: row.number(1)?,
        at: time(row, 2)?,
        kind: log_kind(row.text(3)?, row.text(4)?)?,
    })
}

pub(crate) fn area(row: &Row<'_>) -> Parsed<Area> {
    Ok(Area { no: AreaNo(row.number(0)?), capacity: row.number(1)?, price_level: row.number(2)? })
}

pub(crate) fn bucket(row: &Row<'_>) -> Parsed<Bucket> {
    Ok(Bucket {
        area: AreaNo(row.number(0)?),
        no: BucketNo(row.number(1)?),
        capacity: row.number(2)?,
        held: row.number(3)?,
        sold: row.number(4)?,
        allocation: row.number_or_none(5)?.map(AllocationNo),
        version: row.number(6)?,
    })
}

pub(crate) fn transfer(row: &Row<'_>) -> Parsed<Transfer> {
    Ok(Transfer {
        id: row.id(0)?,
        area: AreaNo(row.number(1)?),
        from: BucketNo(row.number(2)?),
        to: BucketNo(row.number(3)?),
        quantity: row.number(4)?,
        status: row.word(5)?,
        actor: row.string(6)?,
        created_at: time(row, 7)?,
        ended_at: time_or_none(row, 8)?,
    })
}

pub(crate) fn code(row: &Row<'_>) -> Parsed<AccessCode> {
    Ok(AccessCode {
        code: row.text(0)?.into(),
        allocation: row.number_or_none(1)?.map(AllocationNo),
        presale: row.truth(2)?,
        tickets_max: row.number(3)?,
        tickets_in_use: row.number(4)?,
        valid_from: time_or_none(row, 5)?,
        valid_until: time_or_none(row, 6)?,
        revoked_at: time_or_none(row, 7)?,
        created_at: time(row, 8)?,
    })
}

pub(crate) fn allocation(row: &Row<'_>) -> Parsed<Allocation> {
    Ok(Allocation { no: AllocationNo(row.number(0)?), name: row.string(1)?, created_at: time(row, 2)? })
}

pub(crate) fn refund(row: &Row<'_>) -> Parsed<Refund> {
    Ok(Refund {
        operation: row.id(0)?,
        order: row.id(1)?,
        reason: row.string(2)?,
        resell: row.truth(3)?,
        seats: seats_of(row.text(4)?)?,
        ga: ga_of(row.text(5)?)?,
        actor: row.string(6)?,
        created_at: time(row, 7)?,
    })
}

/// What a ticket is for, from two columns: ordinal and area.
pub(crate) fn place_or_none(row: &Row<'_>, first: usize) -> Parsed<Option<Place>> {
    Ok(match (row.number_or_none(first)?, row.number_or_none(first + 1)?) {
        (Some(ordinal), None) => Some(Place::Seat(SeatOrdinal(ordinal))),
        (None, Some(area)) => Some(Place::Area(AreaNo(area))),
        (None, None) => None,
        both => return Err(StoreError::Corrupt { wanted: "a ticket's place", found: format!("{both:?}") }),
    })
}

pub(crate) fn ticket(row: &Row<'_>) -> Parsed<Ticket> {
    let missing = || StoreError::Corrupt { wanted: "a ticket's place", found: "nothing".to_owned() };
    let place = place_or_none(row, 2)?.ok_or_else(missing)?;
    Ok(Ticket {
        id: row.id(0)?,
        order: row.id(1)?,
        place,
        generation: row.number(4)?,
        status: row.word(5)?,
        inside: row.truth(6)?,
        admissions: row.number(7)?,
        admitted_at: time_or_none(row, 8)?,
        admitted_gate: row.string_or_none(9)?,
        issued_at: time(row, 10)?,
        version: row.number(11)?,
    })
}

pub(crate) fn scan(row: &Row<'_>) -> Parsed<Scan> {
    Ok(Scan {
        id: row.text(0)?.into(),
        ticket: row.id(1)?,
        generation: row.number(2)?,
        direction: row.word(3)?,
        gate: row.string(4)?,
        scanned_at: time(row, 5)?,
        received_at: time(row, 6)?,
        result: row.word(7)?,
        let_in_offline: row.truth(8)?,
    })
}
