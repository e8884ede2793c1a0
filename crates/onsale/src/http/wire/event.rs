//! Events, prices, opening, reports.

use onsale_core::event::Event;
use onsale_store::Named;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::rfc3339;

/// The rules of a sale. Members left out take their default.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyJson {
    /// Seconds a hold lives, 1–3600. Default 300.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hold_ttl_s: Option<u32>,
    /// Seconds that beginning to pay may add, once, 0–1800. Default 120.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) payment_grace_s: Option<u32>,
    /// Most seats in a hold, 1–50. Default 6.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seats_per_hold_max: Option<u32>,
    /// Most tickets for an account, 1–10000. Default 6.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tickets_per_account_max: Option<u32>,
    /// Most holds of an account with a payment open. Default: as many as it may have tickets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) payment_pending_per_account_max: Option<u32>,
    /// Most holds of the event with a payment open. Default 10000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) payment_pending_max: Option<u32>,
    /// `open` or `queue`. Default `open`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) admission: Option<String>,
    /// `fifo` or `lottery`. Default `fifo`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) queue_order: Option<String>,
    /// Most people choosing seats at once. Default 10000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) shoppers_max: Option<u32>,
    /// `keep` or `release`. Default `keep`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) in_doubt: Option<String>,
    /// `allow` or `avoid`. Default `allow`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) orphan_seats: Option<String>,
    /// `authorize_then_capture` or `charge`. Default `authorize_then_capture`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) payment: Option<String>,
    /// Most places held and sold in all standing areas together. Default: as many as the areas take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ga_max: Option<u32>,
    /// Whether who has left may come in again. Default false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reentry: Option<bool>,
}

/// A new event.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewEventJson {
    /// 1–200 characters.
    pub(crate) name: String,
    /// ISO 4217.
    #[schema(example = "EUR")]
    pub(crate) currency: String,
    /// RFC 3339.
    #[schema(example = "2027-05-01T19:30:00Z")]
    pub(crate) starts_at: String,
    /// RFC 3339; before it nobody buys.
    pub(crate) on_sale_at: Option<String>,
    /// RFC 3339; from it on nobody buys.
    pub(crate) off_sale_at: Option<String>,
    /// IANA time zone of the venue. Default `UTC`.
    pub(crate) timezone: Option<String>,
    /// The rules of its sale.
    pub(crate) policy: Option<PolicyJson>,
    /// The database it is made in, by its name in the settings. Default: the main one.
    pub(crate) home: Option<String>,
}

/// An event.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventJson {
    event_id: String,
    name: String,
    currency: String,
    starts_at: String,
    on_sale_at: Option<String>,
    off_sale_at: Option<String>,
    timezone: String,
    created_at: String,
    /// `DRAFT`, `OPEN`, `PAUSED` or `CLOSED`.
    status: &'static str,
    policy: PolicyJson,
    version: u64,
    manifest_version: u32,
    price_version: u32,
    seats: u32,
    /// The database that it is at home in.
    home: String,
    /// False while that database can't be reached: nothing can be held or paid, and what is shown is what was known last.
    bookable: bool,
}

impl EventJson {
    pub(crate) fn of(event: &Event, home: &str, bookable: bool) -> EventJson {
        let policy = &event.policy;
        let whole_s = |millis: i64| Some((millis / 1_000) as u32);
        EventJson {
            event_id: event.id.to_string(),
            name: event.name.clone(),
            currency: event.currency.to_string(),
            starts_at: rfc3339(event.starts_at),
            on_sale_at: event.on_sale_at.map(rfc3339),
            off_sale_at: event.off_sale_at.map(rfc3339),
            timezone: event.timezone.clone(),
            created_at: rfc3339(event.created_at),
            status: event.status.word(),
            policy: PolicyJson {
                hold_ttl_s: whole_s(policy.hold_ttl_ms),
                payment_grace_s: whole_s(policy.payment_grace_ms),
                seats_per_hold_max: Some(policy.seats_per_hold_max),
                tickets_per_account_max: Some(policy.tickets_per_account_max),
                payment_pending_per_account_max: Some(policy.payment_pending_per_account_max),
                payment_pending_max: Some(policy.payment_pending_max),
                admission: Some(policy.admission.word().to_owned()),
                queue_order: Some(policy.queue_order.word().to_owned()),
                shoppers_max: Some(policy.shoppers_max),
                in_doubt: Some(policy.in_doubt.word().to_owned()),
                orphan_seats: Some(policy.orphan_seats.word().to_owned()),
                payment: Some(policy.payment.word().to_owned()),
                ga_max: policy.ga_max,
                reentry: Some(policy.reentry),
            },
            version: event.version,
            manifest_version: event.manifest_version,
            price_version: event.price_version,
            seats: event.seat_count,
            home: home.to_owned(),
            bookable,
        }
    }
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PricesJson {
    pub(crate) price_levels: Vec<PriceJson>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PriceJson {
    pub(crate) price_level: String,
    /// Minor units, 1 or more.
    pub(crate) amount_minor: i64,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PriceVersionJson {
    pub(crate) price_version: u32,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OnSaleJson {
    /// `open`, `paused` or `closed`.
    pub(crate) state: String,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SeatsStatusJson {
    pub(crate) seats: Vec<String>,
    /// `NOT_FOR_SALE` or `AVAILABLE`.
    pub(crate) status: String,
}

/// Counts and money of an event.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReportJson {
    pub(crate) available: u64,
    pub(crate) held: u64,
    pub(crate) sold: u64,
    pub(crate) not_for_sale: u64,
    /// Confirmed orders.
    pub(crate) orders: u64,
    pub(crate) orders_awaiting_payment: u64,
    pub(crate) orders_cancelled: u64,
    pub(crate) orders_expired: u64,
    /// Totals of confirmed orders.
    pub(crate) gross_minor: i64,
    /// Of these, what has been captured.
    pub(crate) captured_minor: i64,
    /// On its way back to buyers.
    pub(crate) returning_minor: i64,
    /// Given back, by the provider's proof.
    pub(crate) refunded_minor: i64,
    pub(crate) currency: String,
    /// Places in standing areas; what is in flight between buckets is not among them.
    pub(crate) ga_capacity: u64,
    pub(crate) ga_held: u64,
    pub(crate) ga_sold: u64,
    /// Tickets issued that are good or suspended, and how many of them were let in.
    pub(crate) tickets_issued: u64,
    pub(crate) tickets_admitted: u64,
    pub(crate) cases_open: u64,
}
