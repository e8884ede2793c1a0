//! A new event and its prices, checked member by member.

use onsale_core::event::{
    Admission, Event, EventStatus, InDoubt, OrphanSeats, PaymentMode, Policy, QueueOrder,
};
use onsale_core::id::EventId;
use onsale_core::limits::{
    HOLD_TTL_MS_MAX, PAYMENT_GRACE_MS_MAX, SEATS_PER_HOLD_MAX, TICKETS_PER_ACCOUNT_MAX,
};
use onsale_core::manifest::Manifest;
use onsale_core::money::{Currency, Money};
use onsale_core::time::{Timestamp, seconds};
use onsale_store::Named;

use crate::gateway::stripe;
use crate::http::problem::FieldError;
use crate::http::wire::event::{NewEventJson, PolicyJson};
use crate::http::wire::parse_time;

/// Longest name of an event, in characters.
const NAME_CHARS_MAX: usize = 200;
/// Most shoppers at once, and most payments open at once: more than any event has seats.
const CROWD_MAX: u32 = 1_000_000;
/// Highest price: what the provider takes at most is far below, and sums of it stay far from overflow.
pub(crate) const PRICE_MINOR_MAX: i64 = 99_999_999_999;

/// An event as it is to be made, or every fault of its description.
pub(crate) fn from_json(body: &NewEventJson, id: EventId, now: Timestamp) -> Result<Event, Vec<FieldError>> {
    let mut faults = Vec::new();
    let name = body.name.trim();
    if name.is_empty() || name.chars().count() > NAME_CHARS_MAX || name.chars().any(char::is_control) {
        faults.push(FieldError::new("/name", format!("must be 1 to {NAME_CHARS_MAX} printable characters")));
    }
    // Gold and the code for tests have no minor unit: nothing can be priced in them.
    let minor_unit = iso_currency::Currency::from_code(&body.currency).and_then(|known| known.exponent());
    let currency = Currency::parse(&body.currency).filter(|_| minor_unit.is_some());
    if currency.is_none() {
        faults.push(FieldError::new(
            "/currency",
            "must be an ISO 4217 code in capital letters, of money to pay with",
        ));
    }
    let mut time = |pointer: &str, text: Option<&String>| {
        let parsed = text.map(|text| parse_time(text));
        if parsed == Some(None) {
            faults.push(FieldError::new(pointer, "must be a time in RFC 3339"));
        }
        parsed.flatten()
    };
    let starts_at = time("/starts_at", Some(&body.starts_at));
    let on_sale_at = time("/on_sale_at", body.on_sale_at.as_ref());
    let off_sale_at = time("/off_sale_at", body.off_sale_at.as_ref());
    if let (Some(on), Some(off)) = (on_sale_at, off_sale_at)
        && off <= on
    {
        faults.push(FieldError::new("/off_sale_at", "must be after on_sale_at"));
    }
    let timezone = body.timezone.as_deref().unwrap_or("UTC");
    if jiff::tz::TimeZone::get(timezone).is_err() {
        faults.push(FieldError::new("/timezone", "must be an IANA time zone such as Europe/Berlin"));
    }
    let policy = policy(&body.policy.clone().unwrap_or_default(), &mut faults);
    let (Some(currency), Some(starts_at), true) = (currency, starts_at, faults.is_empty()) else {
        return Err(faults);
    };
    Ok(Event {
        id,
        name: name.to_owned(),
        currency,
        starts_at,
        on_sale_at,
        off_sale_at,
        timezone: timezone.to_owned(),
        created_at: now,
        status: EventStatus::Draft,
        policy,
        epoch: 1,
        clock: now,
        version: 0,
        manifest_version: 0,
        seat_count: 0,
        price_level_count: 0,
        price_version: 0,
        payment_pending: 0,
        area_count: 0,
        ga_in_use: 0,
        allocation_count: 0,
    })
}

fn policy(given: &PolicyJson, faults: &mut Vec<FieldError>) -> Policy {
    let mut number = |name: &str, given: Option<u32>, default: u32, from: u32, to: u32| {
        let value = given.unwrap_or(default);
        if !(from..=to).contains(&value) {
            faults.push(FieldError::new(format!("/policy/{name}"), format!("must be {from} to {to}")));
        }
        value
    };
    let whole_s = |millis: i64| (millis / 1_000) as u32;
    let hold_ttl_s = number("hold_ttl_s", given.hold_ttl_s, 300, 1, whole_s(HOLD_TTL_MS_MAX));
    let grace_s = number("payment_grace_s", given.payment_grace_s, 120, 0, whole_s(PAYMENT_GRACE_MS_MAX));
    let seats_per_hold_max = number("seats_per_hold_max", given.seats_per_hold_max, 6, 1, SEATS_PER_HOLD_MAX);
    let tickets_per_account_max =
        number("tickets_per_account_max", given.tickets_per_account_max, 6, 1, TICKETS_PER_ACCOUNT_MAX);
    let payment_pending_per_account_max = number(
        "payment_pending_per_account_max",
        given.payment_pending_per_account_max,
        tickets_per_account_max.clamp(1, TICKETS_PER_ACCOUNT_MAX),
        1,
        TICKETS_PER_ACCOUNT_MAX,
    );
    let payment_pending_max = number("payment_pending_max", given.payment_pending_max, 10_000, 1, CROWD_MAX);
    let shoppers_max = number("shoppers_max", given.shoppers_max, 10_000, 1, CROWD_MAX);
    Policy {
        hold_ttl_ms: seconds(hold_ttl_s.into()),
        payment_grace_ms: seconds(grace_s.into()),
        seats_per_hold_max,
        tickets_per_account_max,
        payment_pending_per_account_max,
        payment_pending_max,
        admission: word("admission", given.admission.as_deref(), Admission::Open, faults),
        queue_order: word("queue_order", given.queue_order.as_deref(), QueueOrder::Fifo, faults),
        shoppers_max,
        in_doubt: word("in_doubt", given.in_doubt.as_deref(), InDoubt::Keep, faults),
        orphan_seats: word("orphan_seats", given.orphan_seats.as_deref(), OrphanSeats::Allow, faults),
        payment: word("payment", given.payment.as_deref(), PaymentMode::AuthorizeThenCapture, faults),
        ga_max: given.ga_max.map(|max| max.min(i32::MAX as u32)),
        reentry: given.reentry.unwrap_or(false),
    }
}

fn word<N: Named>(name: &str, given: Option<&str>, default: N, faults: &mut Vec<FieldError>) -> N {
    match given.map(N::of) {
        None => default,
        Some(Ok(value)) => value,
        Some(Err(_)) => {
            let words = N::WORDS.iter().map(|(_, word)| *word).collect::<Vec<_>>().join(", ");
            faults.push(FieldError::new(format!("/policy/{name}"), format!("must be one of: {words}")));
            default
        }
    }
}

/// Prices by the names of their levels, as indexes; or every fault.
pub(crate) fn price_levels<'a>(
    manifest: &Manifest,
    currency: Currency,
    prices: impl Iterator<Item = (&'a str, i64)>,
) -> Result<Vec<(u16, i64)>, Vec<FieldError>> {
    let mut faults = Vec::new();
    let mut levels: Vec<(u16, i64)> = Vec::new();
    for (index, (name, amount_minor)) in prices.enumerate() {
        let pointer = |member: &str| format!("/price_levels/{index}/{member}");
        match manifest.price_levels.iter().position(|level| level.name == name) {
            None => {
                faults.push(FieldError::new(pointer("price_level"), "the manifest has no such price level"))
            }
            Some(level) if levels.iter().any(|(known, _)| *known as usize == level) => {
                faults.push(FieldError::new(pointer("price_level"), "this price level is named twice"));
            }
            Some(level) => levels.push((level as u16, amount_minor)),
        }
        if !(1..=PRICE_MINOR_MAX).contains(&amount_minor) {
            faults.push(FieldError::new(
                pointer("amount_minor"),
                format!("must be 1 to {PRICE_MINOR_MAX}: free tickets would have no payment to account for"),
            ));
        } else if !stripe::takes(Money { amount_minor, currency }) {
            let why = "the provider can't take this amount exactly";
            faults.push(FieldError::new(pointer("amount_minor"), format!("{why} in {currency}")));
        }
    }
    if levels.is_empty() && faults.is_empty() {
        faults.push(FieldError::new("/price_levels", "name at least one price level"));
    }
    if faults.is_empty() { Ok(levels) } else { Err(faults) }
}
