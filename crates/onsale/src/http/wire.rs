//! The shapes on the wire (API.md), and the words and times in them.

use jiff::fmt::temporal::DateTimePrinter;
use onsale_core::event::Event;
use onsale_core::manifest::Manifest;
use onsale_core::time::Timestamp;
use onsale_store::Named;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// RFC 3339 in UTC with milliseconds.
pub(crate) fn rfc3339(at: Timestamp) -> String {
    // Every instant the database can hold is clamped into the years that can be written.
    let millis = at.millis().clamp(-62_135_596_800_000, 253_402_300_799_000);
    let at = jiff::Timestamp::from_millisecond(millis).unwrap_or_default();
    DateTimePrinter::new().precision(Some(3)).timestamp_to_string(&at)
}

/// An instant, from RFC 3339 with any offset.
pub(crate) fn parse_time(text: &str) -> Option<Timestamp> {
    text.parse::<jiff::Timestamp>().ok().map(|at| Timestamp::from_millis(at.as_millisecond()))
}

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
}

impl EventJson {
    pub(crate) fn of(event: &Event) -> EventJson {
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
            },
            version: event.version,
            manifest_version: event.manifest_version,
            price_version: event.price_version,
            seats: event.seat_count,
        }
    }
}

/// A seat with its price.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PricedSeatJson {
    pub(crate) seat_id: String,
    pub(crate) price_level: String,
    pub(crate) amount_minor: i64,
}

/// Seats or places to be held.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewHoldJson {
    /// Seat ids.
    pub(crate) seats: Option<Vec<String>>,
    /// Standing places; not sold by this version.
    #[schema(value_type = Option<Object>)]
    pub(crate) ga: Option<serde_json::Value>,
    /// Seats chosen for the buyer; not offered by this version.
    #[schema(value_type = Option<Object>)]
    pub(crate) best_available: Option<serde_json::Value>,
}

/// A hold.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HoldJson {
    pub(crate) hold_id: String,
    pub(crate) event_id: String,
    pub(crate) account_id: String,
    /// `ACTIVE`, `PAYMENT_PENDING`, `CONVERTED`, `RELEASED` or `EXPIRED`.
    pub(crate) status: &'static str,
    pub(crate) expires_at: String,
    pub(crate) seats: Vec<PricedSeatJson>,
    #[schema(value_type = Vec<Object>)]
    pub(crate) ga: Vec<serde_json::Value>,
    pub(crate) total_minor: i64,
    pub(crate) currency: String,
    pub(crate) price_version: u32,
}

/// What to pay with.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckoutJson {
    /// The provider's token of the card.
    #[schema(example = "pm_card_visa")]
    pub(crate) payment_method_token: String,
    /// Where to send the confirmation.
    pub(crate) email: Option<String>,
    /// Where the buyer's browser goes after extra authentication; https, or http on loopback.
    pub(crate) return_url: Option<String>,
}

/// What the buyer must do next.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NextActionJson {
    /// `redirect`.
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) url: String,
}

/// A payment that has begun.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CheckoutBegunJson {
    pub(crate) order_id: String,
    pub(crate) order_status: &'static str,
    pub(crate) payment_status: &'static str,
}

/// An order.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OrderJson {
    pub(crate) order_id: String,
    pub(crate) hold_id: String,
    pub(crate) event_id: String,
    /// `AWAITING_PAYMENT`, `CONFIRMED`, `CANCELLED` or `EXPIRED`.
    pub(crate) order_status: &'static str,
    /// A state named `…_PENDING` is not done.
    pub(crate) payment_status: &'static str,
    pub(crate) seats: Vec<PricedSeatJson>,
    #[schema(value_type = Vec<Object>)]
    pub(crate) ga: Vec<serde_json::Value>,
    pub(crate) total_minor: i64,
    pub(crate) currency: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_action: Option<NextActionJson>,
    pub(crate) tickets_ready: bool,
}

/// A manifest as read back.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ManifestJson<'a> {
    pub(crate) event_id: String,
    pub(crate) version: u32,
    pub(crate) price_version: u32,
    pub(crate) currency: &'a str,
    pub(crate) price_levels: Vec<PriceLevelJson<'a>>,
    pub(crate) sections: Vec<SectionJson<'a>>,
    /// In ordinal order.
    pub(crate) seats: Vec<ManifestSeatJson<'a>>,
    pub(crate) ga_areas: Vec<GaAreaJson<'a>>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PriceLevelJson<'a> {
    pub(crate) price_level: &'a str,
    pub(crate) color: Option<&'a str>,
    pub(crate) amount_minor: Option<i64>,
}

/// A section with its rows, in order.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SectionJson<'a> {
    pub(crate) section: &'a str,
    pub(crate) rows: Vec<&'a str>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ManifestSeatJson<'a> {
    seat_id: &'a str,
    section: &'a str,
    row: &'a str,
    seat: &'a str,
    x: f64,
    y: f64,
    price_level: &'a str,
    #[serde(skip_serializing_if = "is_false")]
    accessible: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    companion_of: Option<&'a str>,
    #[serde(skip_serializing_if = "is_false")]
    restricted_view: bool,
}

fn is_false(value: &bool) -> bool {
    !*value
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GaAreaJson<'a> {
    ga_area: &'a str,
    capacity: u32,
    price_level: &'a str,
}

impl<'a> ManifestJson<'a> {
    pub(crate) fn of(
        event_id: String,
        currency: &'a str,
        version: u32,
        price_version: u32,
        manifest: &'a Manifest,
        prices: &[Option<i64>],
    ) -> Self {
        let level =
            |level: u16| manifest.price_levels.get(level as usize).map_or("", |level| level.name.as_str());
        let mut sections: Vec<SectionJson<'a>> =
            manifest.sections.iter().map(|section| SectionJson { section, rows: Vec::new() }).collect();
        for seat in &manifest.seats {
            if let Some(section) = sections.get_mut(seat.section as usize)
                && section.rows.last().is_none_or(|row| *row != seat.row)
            {
                section.rows.push(&seat.row);
            }
        }
        let seats = manifest.seats.iter().map(|seat| ManifestSeatJson {
            seat_id: &seat.seat_id,
            section: manifest.sections.get(seat.section as usize).map_or("", String::as_str),
            row: &seat.row,
            seat: &seat.seat,
            x: seat.x,
            y: seat.y,
            price_level: level(seat.price_level),
            accessible: seat.accessible,
            companion_of: seat.companion_of.as_deref(),
            restricted_view: seat.restricted_view,
        });
        let price_levels = manifest.price_levels.iter().enumerate().map(|(index, level)| PriceLevelJson {
            price_level: &level.name,
            color: level.color.as_deref(),
            amount_minor: prices.get(index).copied().flatten(),
        });
        let ga_areas = manifest.ga_areas.iter().map(|area| GaAreaJson {
            ga_area: &area.ga_area,
            capacity: area.capacity,
            price_level: level(area.price_level),
        });
        ManifestJson {
            event_id,
            version,
            price_version,
            currency,
            price_levels: price_levels.collect(),
            sections,
            seats: seats.collect(),
            ga_areas: ga_areas.collect(),
        }
    }
}

/// A manifest that was taken.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ManifestTakenJson {
    pub(crate) seats: usize,
    pub(crate) ga_areas: usize,
    pub(crate) price_levels: Vec<String>,
    pub(crate) warnings: Vec<String>,
    pub(crate) version: u32,
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
    pub(crate) currency: String,
    pub(crate) cases_open: u64,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SeatsJson {
    pub(crate) version: u64,
    pub(crate) epoch: u64,
    /// One digit for each seat by ordinal: 0 available, 1 held, 2 sold, 3 not for sale.
    pub(crate) states: String,
    #[schema(value_type = Vec<Object>)]
    pub(crate) ga: Vec<serde_json::Value>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SeatChangesJson {
    pub(crate) from: u64,
    pub(crate) version: u64,
    /// Ordinal and digit.
    pub(crate) changes: Vec<(u32, u8)>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionJson {
    pub(crate) session_token: String,
    pub(crate) account_id: String,
    pub(crate) expires_at: String,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewKeyJson {
    /// `operator`, `partner`, `gate` or `reader`.
    pub(crate) role: String,
    /// What you call it, up to 200 characters.
    pub(crate) name: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KeyJson {
    pub(crate) key_id: String,
    pub(crate) role: &'static str,
    pub(crate) name: String,
    /// Shown this once.
    pub(crate) secret: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CaseJson {
    pub(crate) case_id: String,
    pub(crate) event_id: Option<String>,
    pub(crate) kind: &'static str,
    pub(crate) order_id: Option<String>,
    pub(crate) operation_id: Option<String>,
    pub(crate) opened_at: String,
    pub(crate) age_s: i64,
    pub(crate) evidence: String,
    /// `OPEN` or `CLOSED`.
    pub(crate) status: &'static str,
    pub(crate) owner: String,
    pub(crate) next_check_at: String,
    pub(crate) resolution: Option<ResolutionJson>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ResolutionJson {
    pub(crate) action: String,
    pub(crate) note: String,
    pub(crate) actor: String,
    pub(crate) at: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CasesJson {
    pub(crate) cases: Vec<CaseJson>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CaseActionJson {
    /// `void`, `refund`, `confirm_if_bound`, `release` or `dismiss`.
    pub(crate) action: String,
    /// Why; kept with the acting key.
    pub(crate) note: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CallbackVerdictJson {
    /// `applied`, `duplicate`, `stale`, `conflict`, `already_paid_reconcile`, `refund_pending` or `parked`.
    pub(crate) outcome: &'static str,
}
