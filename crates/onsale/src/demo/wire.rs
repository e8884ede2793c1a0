//! The answers a buyer and an operator read: only the members the demo looks at.

use serde::Deserialize;

#[derive(Deserialize)]
pub(super) struct SessionSeen {
    pub(super) session_token: String,
}

#[derive(Deserialize)]
pub(super) struct SeatSeen {
    pub(super) seat_id: String,
    pub(super) amount_minor: i64,
}

#[derive(Deserialize)]
pub(super) struct PlacesSeen {
    pub(super) quantity: u32,
}

#[derive(Deserialize)]
pub(super) struct HoldSeen {
    pub(super) hold_id: String,
    pub(super) status: String,
    pub(super) expires_at: String,
    pub(super) seats: Vec<SeatSeen>,
    pub(super) ga: Vec<PlacesSeen>,
    pub(super) total_minor: i64,
}

#[derive(Deserialize)]
pub(super) struct BegunSeen {
    pub(super) order_id: String,
}

#[derive(Deserialize)]
pub(super) struct OrderSeen {
    pub(super) order_id: String,
    pub(super) hold_id: String,
    pub(super) order_status: String,
    pub(super) payment_status: String,
    pub(super) seats: Vec<SeatSeen>,
    pub(super) ga: Vec<PlacesSeen>,
    pub(super) total_minor: i64,
    pub(super) refunded_minor: i64,
    pub(super) next_action: Option<NextActionSeen>,
}

#[derive(Deserialize)]
pub(super) struct NextActionSeen {
    pub(super) url: String,
}

/// A refusal.
#[derive(Deserialize)]
pub(super) struct ProblemSeen {
    pub(super) code: String,
    #[serde(default)]
    pub(super) retryable: bool,
    /// Of `seat-unavailable`: the seats that are in the way.
    #[serde(default)]
    pub(super) seats: Vec<String>,
}

#[derive(Deserialize)]
pub(super) struct ManifestSeen {
    pub(super) seats: Vec<ManifestSeatSeen>,
}

#[derive(Deserialize)]
pub(super) struct ManifestSeatSeen {
    pub(super) seat_id: String,
    pub(super) section: String,
    pub(super) row: String,
}

#[derive(Deserialize)]
pub(super) struct SeatsSeen {
    pub(super) version: u64,
    pub(super) states: String,
}

#[derive(Deserialize)]
pub(super) struct ChangesSeen {
    pub(super) version: u64,
    pub(super) changes: Vec<(u32, u8)>,
}

/// The standing areas as operators see them.
#[derive(Deserialize)]
pub(super) struct AreasSeen {
    pub(super) areas: Vec<AreaSeen>,
    pub(super) in_flight: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
pub(super) struct AreaSeen {
    pub(super) capacity: u64,
    pub(super) buckets: Vec<BucketSeen>,
}

#[derive(Deserialize)]
pub(super) struct BucketSeen {
    pub(super) capacity: u64,
    pub(super) held: u64,
    pub(super) sold: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) struct ReportSeen {
    pub(super) available: u64,
    pub(super) held: u64,
    pub(super) sold: u64,
    pub(super) orders: u64,
    pub(super) orders_awaiting_payment: u64,
    pub(super) gross_minor: i64,
    pub(super) captured_minor: i64,
    pub(super) returning_minor: i64,
    pub(super) cases_open: u64,
    pub(super) tickets_issued: u64,
}

/// The provider's money by order.
#[derive(Deserialize)]
pub(super) struct ProviderLedgerSeen {
    pub(super) orders: Vec<ProviderOrderSeen>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct ProviderOrderSeen {
    pub(super) order_id: Option<String>,
    pub(super) authorised: i64,
    pub(super) captured: i64,
    pub(super) voided: i64,
    pub(super) refunded: i64,
}

#[derive(Deserialize)]
pub(super) struct ProviderLogSeen {
    pub(super) entries: Vec<ProviderCallSeen>,
}

#[derive(Deserialize)]
pub(super) struct ProviderCallSeen {
    pub(super) order_id: Option<String>,
    pub(super) outcome: String,
}

#[derive(Deserialize)]
pub(super) struct TicketsSeen {
    pub(super) tickets: Vec<TicketSeen>,
}

#[derive(Deserialize)]
pub(super) struct TicketSeen {
    pub(super) barcode: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct ScanSeen {
    pub(super) result: String,
}

/// A comparison with the provider's books.
#[derive(Deserialize)]
pub(super) struct RunSeen {
    pub(super) differences_remain: bool,
}

#[derive(Deserialize)]
pub(super) struct KeySeen {
    pub(super) secret: String,
}
