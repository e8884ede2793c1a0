//! Tickets, and what gates send and see.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The tickets of an order.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TicketsJson {
    pub(crate) tickets: Vec<TicketJson>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TicketJson {
    pub(crate) ticket_id: String,
    #[serde(flatten)]
    pub(crate) place: PlaceJson,
    /// What the QR code says; not of a ticket that is good no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) barcode: Option<String>,
    /// `VALID`, `SUSPENDED` or `REVOKED`.
    pub(crate) status: &'static str,
    /// Counts up when the ticket is issued anew.
    pub(crate) generation: u16,
}

/// Where a ticket's holder goes: a seat or a standing area.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct PlaceJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seat_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) section: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) row: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seat: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ga_area: Option<String>,
}

/// Which barcodes are to be worthless.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReissueJson {
    /// The ticket's generation as it is known to whoever asks.
    pub(crate) generation: u16,
}

/// The keys that tickets are verified with.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TicketKeysJson {
    pub(crate) keys: Vec<TicketKeyJson>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TicketKeyJson {
    /// As it stands in barcodes, in hexadecimal.
    #[schema(example = "1f0c3a55")]
    pub(crate) key_id: String,
    /// `Ed25519`.
    pub(crate) algorithm: &'static str,
    /// 32 bytes in base 64.
    pub(crate) public_key: String,
}

/// A barcode in front of a scanner.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewScanJson {
    /// The scanner's own id of it: 1 to 128 visible ASCII characters, another for each look.
    pub(crate) scan_id: String,
    /// What was read, whatever it is.
    pub(crate) barcode: String,
    /// What the gate is called, up to 64 characters.
    pub(crate) gate: String,
    /// When, if it was not just now.
    pub(crate) scanned_at: Option<String>,
    /// `in`, unless it is `out`.
    pub(crate) direction: Option<String>,
    /// The event that the gate is for; tickets of others are then told apart.
    pub(crate) event_id: Option<String>,
}

/// What the gate is to do.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ScanJson {
    pub(crate) scan_id: String,
    /// `ADMIT`, `ALREADY_USED`, `REVOKED`, `WRONG_EVENT` or `INVALID`; of those who leave `EXITED` or `NOT_INSIDE`.
    pub(crate) result: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ticket_id: Option<String>,
    #[serde(flatten)]
    pub(crate) place: PlaceJson,
    /// When somebody was first let in with this ticket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) admitted_at: Option<String>,
    /// Where.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) admitted_gate: Option<String>,
}

/// What a scanner did while it could not ask.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UploadJson {
    /// In the order in which they were made, at most 100.
    pub(crate) scans: Vec<OfflineScanJson>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfflineScanJson {
    pub(crate) scan_id: String,
    pub(crate) barcode: String,
    pub(crate) gate: String,
    pub(crate) scanned_at: String,
    /// What the scanner did by itself: `ADMIT` or `EXITED`; whom it turned away need not be told.
    pub(crate) verdict: String,
    pub(crate) event_id: Option<String>,
}

/// What the books say to each, in the same order.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UploadedJson {
    pub(crate) scans: Vec<UploadedScanJson>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UploadedScanJson {
    #[serde(flatten)]
    pub(crate) scan: ScanJson,
    /// Whether somebody was let in whom the books would not have let in.
    pub(crate) conflict: bool,
}

/// Whom gates let in that the books would not have let in.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConflictsJson {
    /// The newest first, at most 1,000.
    pub(crate) conflicts: Vec<ConflictJson>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConflictJson {
    pub(crate) scan_id: String,
    pub(crate) ticket_id: String,
    #[serde(flatten)]
    pub(crate) place: PlaceJson,
    pub(crate) gate: String,
    /// By the scanner's clock.
    pub(crate) scanned_at: String,
    /// When it was uploaded.
    pub(crate) received_at: String,
    /// What the books said to it.
    pub(crate) result: &'static str,
    /// When and where somebody was first let in with this ticket, as the books have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) admitted_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) admitted_gate: Option<String>,
}

/// Which tickets a scanner that can't ask must not trust.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RevokedJson {
    /// To be given as `since` the next time.
    pub(crate) version: u64,
    /// The version after which these have changed; absent when these are all there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<u64>,
    pub(crate) tickets: Vec<RevokedTicketJson>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RevokedTicketJson {
    pub(crate) ticket_id: String,
    /// `SUSPENDED` and `REVOKED` are good for nobody; `VALID` from this generation on.
    pub(crate) status: &'static str,
    /// The least generation that is good.
    pub(crate) generation: u16,
}
