//! Rows of the database as the core's values, and back to parameters.

use onsale_core::event::{Event, Policy};
use onsale_core::hold::Hold;
use onsale_core::id::{AccountId, EventId, SeatOrdinal};
use onsale_core::money::{Currency, Money};
use onsale_core::order::Order;
use onsale_core::payment::Operation;
use onsale_core::reconcile::{Callback, Case, CaseStatus, Resolution};
use onsale_core::seat_map::{Seat, SeatStatus};
use onsale_core::time::Timestamp;
use rusqlite::Row;

use crate::error::StoreError;
use crate::names::{Named, seats_of};

type Parsed<T> = Result<T, StoreError>;

pub(super) const EVENT: &str = "event_id, name, currency, starts_at, on_sale_at, off_sale_at, timezone, created_at, status, \
     hold_ttl_ms, payment_grace_ms, seats_per_hold_max, tickets_per_account_max, payment_pending_per_account_max, \
     payment_pending_max, admission, queue_order, shoppers_max, in_doubt, orphan_seats, payment, epoch, clock, version, \
     manifest_version, seat_count, price_level_count, price_version, payment_pending";
pub(super) const SEAT: &str = "ordinal, status, hold_id, hold_expires_at, order_id, price_level, version";
pub(super) const HOLD: &str = "hold_id, account_id, status, expires_at, first_expires_at, created_at, seats, price_version, \
     total_minor, order_id, grace_used, in_doubt";
pub(super) const ORDER: &str = "order_id, hold_id, account_id, amount_minor, currency, price_version, seat_count, status, \
     payment_status, paid_by, created_at, confirmed_at, email, return_url";
pub(super) const OPERATION: &str = "operation_id, order_id, seq, kind, status, target, reference, amount_minor, currency, \
     payment_method_token, next_action_url, failure_code, created_at, updated_at, due_at, tries";
pub(super) const CASE: &str = "case_id, kind, order_id, operation_id, opened_at, evidence, status, owner, next_check_at, \
     action, note, actor, acted_at";
pub(super) const CALLBACK: &str =
    "provider_event_id, digest, kind, reference, claimed_order, verdict, received_at, due_at, case_id";

pub(super) fn time(row: &Row<'_>, index: usize) -> Parsed<Timestamp> {
    Ok(Timestamp::from_millis(row.get(index)?))
}

fn time_or_none(row: &Row<'_>, index: usize) -> Parsed<Option<Timestamp>> {
    Ok(row.get::<_, Option<i64>>(index)?.map(Timestamp::from_millis))
}

/// An id or a digest: sixteen bytes.
pub(super) fn bits(row: &Row<'_>, index: usize) -> Parsed<u128> {
    Ok(u128::from_be_bytes(row.get(index)?))
}

fn id<I: From<u128>>(row: &Row<'_>, index: usize) -> Parsed<I> {
    bits(row, index).map(I::from)
}

fn id_or_none<I: From<u128>>(row: &Row<'_>, index: usize) -> Parsed<Option<I>> {
    Ok(row.get::<_, Option<[u8; 16]>>(index)?.map(|bytes| I::from(u128::from_be_bytes(bytes))))
}

fn word<N: Named>(row: &Row<'_>, index: usize) -> Parsed<N> {
    N::of(row.get_ref(index)?.as_str().map_err(rusqlite::Error::from)?)
}

pub(super) fn currency(row: &Row<'_>, index: usize) -> Parsed<Currency> {
    let code: String = row.get(index)?;
    Currency::parse(&code).ok_or(StoreError::Corrupt { wanted: "a currency", found: code })
}

pub(super) fn account(row: &Row<'_>, index: usize) -> Parsed<AccountId> {
    let text: String = row.get(index)?;
    AccountId::parse(&text).ok_or(StoreError::Corrupt { wanted: "an account id", found: text })
}

pub(super) fn event(row: &Row<'_>) -> Parsed<Event> {
    let policy = Policy {
        hold_ttl_ms: row.get(9)?,
        payment_grace_ms: row.get(10)?,
        seats_per_hold_max: row.get(11)?,
        tickets_per_account_max: row.get(12)?,
        payment_pending_per_account_max: row.get(13)?,
        payment_pending_max: row.get(14)?,
        admission: word(row, 15)?,
        queue_order: word(row, 16)?,
        shoppers_max: row.get(17)?,
        in_doubt: word(row, 18)?,
        orphan_seats: word(row, 19)?,
        payment: word(row, 20)?,
    };
    Ok(Event {
        id: EventId(bits(row, 0)?),
        name: row.get(1)?,
        currency: currency(row, 2)?,
        starts_at: time(row, 3)?,
        on_sale_at: time_or_none(row, 4)?,
        off_sale_at: time_or_none(row, 5)?,
        timezone: row.get(6)?,
        created_at: time(row, 7)?,
        status: word(row, 8)?,
        policy,
        epoch: row.get::<_, i64>(21)? as u64,
        clock: time(row, 22)?,
        version: row.get::<_, i64>(23)? as u64,
        manifest_version: row.get(24)?,
        seat_count: row.get(25)?,
        price_level_count: row.get(26)?,
        price_version: row.get(27)?,
        payment_pending: row.get(28)?,
    })
}

pub(super) fn seat(row: &Row<'_>) -> Parsed<Seat> {
    let status = match row.get::<_, u8>(1)? {
        0 => SeatStatus::Available,
        1 => SeatStatus::Held { hold: id(row, 2)?, expires_at: time(row, 3)? },
        2 => SeatStatus::Sold { hold: id(row, 2)?, order: id(row, 4)? },
        3 => SeatStatus::NotForSale,
        other => return Err(StoreError::Corrupt { wanted: "a seat's status", found: other.to_string() }),
    };
    let version = row.get::<_, i64>(6)? as u64;
    Ok(Seat { ordinal: SeatOrdinal(row.get(0)?), status, price_level: row.get(5)?, version })
}

pub(super) fn hold(row: &Row<'_>) -> Parsed<Hold> {
    Ok(Hold {
        id: id(row, 0)?,
        account: account(row, 1)?,
        status: word(row, 2)?,
        expires_at: time(row, 3)?,
        first_expires_at: time(row, 4)?,
        created_at: time(row, 5)?,
        seats: seats_of(row.get_ref(6)?.as_str().map_err(rusqlite::Error::from)?)?,
        price_version: row.get(7)?,
        total_minor: row.get(8)?,
        order: id_or_none(row, 9)?,
        grace_used: row.get(10)?,
        in_doubt: row.get(11)?,
    })
}

pub(super) fn order(row: &Row<'_>) -> Parsed<Order> {
    Ok(Order {
        id: id(row, 0)?,
        hold: id(row, 1)?,
        account: account(row, 2)?,
        total: Money { amount_minor: row.get(3)?, currency: currency(row, 4)? },
        price_version: row.get(5)?,
        seat_count: row.get(6)?,
        status: word(row, 7)?,
        payment_status: word(row, 8)?,
        paid_by: id_or_none(row, 9)?,
        created_at: time(row, 10)?,
        confirmed_at: time_or_none(row, 11)?,
        email: row.get(12)?,
        return_url: row.get(13)?,
    })
}

pub(super) fn operation(row: &Row<'_>) -> Parsed<Operation> {
    Ok(Operation {
        id: id(row, 0)?,
        order: id(row, 1)?,
        seq: row.get(2)?,
        kind: word(row, 3)?,
        status: word(row, 4)?,
        target: id_or_none(row, 5)?,
        reference: row.get(6)?,
        amount: Money { amount_minor: row.get(7)?, currency: currency(row, 8)? },
        payment_method_token: row.get(9)?,
        next_action_url: row.get(10)?,
        failure_code: row.get(11)?,
        created_at: time(row, 12)?,
        updated_at: time(row, 13)?,
        due_at: time(row, 14)?,
        tries: row.get(15)?,
    })
}

pub(super) fn case(row: &Row<'_>) -> Parsed<Case> {
    let action: Option<String> = row.get(9)?;
    let resolution = match action {
        None => None,
        Some(action) => {
            Some(Resolution { action, note: row.get(10)?, actor: row.get(11)?, at: time(row, 12)? })
        }
    };
    Ok(Case {
        id: id(row, 0)?,
        kind: word(row, 1)?,
        order: id_or_none(row, 2)?,
        operation: id_or_none(row, 3)?,
        opened_at: time(row, 4)?,
        evidence: row.get(5)?,
        status: word::<CaseStatus>(row, 6)?,
        owner: row.get(7)?,
        next_check_at: time(row, 8)?,
        resolution,
    })
}

pub(super) fn callback(row: &Row<'_>) -> Parsed<Callback> {
    Ok(Callback {
        provider_event_id: row.get(0)?,
        digest: bits(row, 1)?,
        kind: row.get(2)?,
        reference: row.get(3)?,
        claimed_order: id_or_none(row, 4)?,
        verdict: word(row, 5)?,
        received_at: time(row, 6)?,
        due_at: time(row, 7)?,
        case: id_or_none(row, 8)?,
    })
}

/// All rows of a statement, parsed.
pub(super) fn all<T>(mut rows: rusqlite::Rows<'_>, parse: impl Fn(&Row<'_>) -> Parsed<T>) -> Parsed<Vec<T>> {
    let mut parsed = Vec::new();
    while let Some(row) = rows.next()? {
        parsed.push(parse(row)?);
    }
    Ok(parsed)
}

/// The one row of a statement, parsed, or none.
pub(super) fn one<T>(
    mut rows: rusqlite::Rows<'_>,
    parse: impl Fn(&Row<'_>) -> Parsed<T>,
) -> Parsed<Option<T>> {
    rows.next()?.map(parse).transpose()
}
