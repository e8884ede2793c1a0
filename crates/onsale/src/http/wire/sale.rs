//! What buyers send and see: sessions, the seat map, holds, checkout, orders.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::places::ReturnedPlacesJson;

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
    /// Standing places.
    pub(crate) ga: Option<Vec<WishedPlacesJson>>,
    /// Seats chosen for the buyer, in place of all else.
    pub(crate) best_available: Option<BestAvailableJson>,
    /// Opens an allocation, or the sale before it begins.
    pub(crate) access_code: Option<String>,
}

/// Seats to be chosen for the buyer: beside each other in one row, the best there are.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BestAvailableJson {
    /// How many, 1 or more.
    pub(crate) quantity: u32,
    /// The price level they must have.
    pub(crate) price_level: Option<String>,
    /// The section they must be in.
    pub(crate) section: Option<String>,
    /// Whether one of them must be for a wheelchair. Otherwise none is.
    #[serde(default)]
    pub(crate) accessible: bool,
    /// Whether they may be in rows behind each other when no row has room for all.
    #[serde(default)]
    pub(crate) split_rows: bool,
}

/// Standing places to be held.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WishedPlacesJson {
    pub(crate) ga_area: String,
    /// How many, 1 or more.
    pub(crate) quantity: u32,
}

/// Standing places with the price of each.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PricedPlacesJson {
    pub(crate) ga_area: String,
    pub(crate) quantity: u32,
    pub(crate) price_level: String,
    /// Of each place.
    pub(crate) amount_minor: i64,
}

/// How many places of a standing area anyone can have.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AreaAvailableJson {
    pub(crate) ga_area: String,
    pub(crate) available: i64,
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
    pub(crate) ga: Vec<PricedPlacesJson>,
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
    pub(crate) ga: Vec<PricedPlacesJson>,
    pub(crate) total_minor: i64,
    /// Given back so far, by the provider's proof.
    pub(crate) refunded_minor: i64,
    /// Of its seats, those that went back with the money.
    pub(crate) returned_seats: Vec<String>,
    /// Of its places, those that went back with the money.
    pub(crate) returned_ga: Vec<ReturnedPlacesJson>,
    pub(crate) currency: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_action: Option<NextActionJson>,
    pub(crate) tickets_ready: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SeatsJson {
    pub(crate) version: u64,
    pub(crate) epoch: u64,
    /// One digit for each seat by ordinal: 0 available, 1 held, 2 sold, 3 not for sale.
    pub(crate) states: String,
    pub(crate) ga: Vec<AreaAvailableJson>,
    /// False while the event's database can't be reached: this is then the last map known, and no seat can be held.
    pub(crate) bookable: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SeatChangesJson {
    pub(crate) from: u64,
    pub(crate) version: u64,
    /// Ordinal and digit.
    pub(crate) changes: Vec<(u32, u8)>,
    /// The standing areas as they are now.
    pub(crate) ga: Vec<AreaAvailableJson>,
    /// False while the event's database can't be reached.
    pub(crate) bookable: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionJson {
    pub(crate) session_token: String,
    pub(crate) account_id: String,
    pub(crate) expires_at: String,
}
