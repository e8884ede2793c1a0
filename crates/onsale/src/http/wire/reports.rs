//! Reports and exports.

use serde::Serialize;
use utoipa::ToSchema;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SalesReportJson {
    /// `price_level`, `day` or `hour`.
    pub(crate) by: &'static str,
    /// The venue's zone, in which days and hours are counted.
    pub(crate) timezone: String,
    pub(crate) currency: String,
    pub(crate) rows: Vec<SalesRowJson>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SalesRowJson {
    /// The price level, day or hour.
    pub(crate) key: String,
    pub(crate) tickets: u64,
    pub(crate) gross_minor: i64,
    /// Of these, what has been given back since, whenever that was.
    pub(crate) returned_tickets: u64,
    pub(crate) returned_minor: i64,
    pub(crate) net_minor: i64,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SettlementReportJson {
    pub(crate) by: &'static str,
    pub(crate) timezone: String,
    pub(crate) rows: Vec<SettlementRowJson>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SettlementRowJson {
    pub(crate) day: String,
    /// That of the seller's account, which may be another than the event's.
    pub(crate) currency: String,
    pub(crate) gross_minor: i64,
    pub(crate) refunds_minor: i64,
    /// Disputes and corrections; less than zero where they cost.
    pub(crate) other_minor: i64,
    pub(crate) fees_minor: i64,
    /// What is left: gross - refunds + other - fees.
    pub(crate) net_minor: i64,
    /// Entries of the provider's account.
    pub(crate) lines: u64,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AttendeesJson {
    pub(crate) attendees: Vec<AttendeeJson>,
    /// What to give as `after` for the next page; null when this is the last.
    pub(crate) next: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AttendeeJson {
    pub(crate) order_id: String,
    /// Null while the ticket is yet to be issued.
    pub(crate) ticket_id: Option<String>,
    pub(crate) seat_id: Option<String>,
    pub(crate) ga_area: Option<String>,
    pub(crate) email: Option<String>,
    pub(crate) account_id: String,
    pub(crate) order_status: &'static str,
    pub(crate) payment_status: &'static str,
    pub(crate) confirmed_at: Option<String>,
    /// `VALID`, `SUSPENDED` or `REVOKED`.
    pub(crate) ticket_status: Option<&'static str>,
    pub(crate) generation: Option<u16>,
    pub(crate) inside: bool,
    pub(crate) admitted_at: Option<String>,
    pub(crate) admitted_gate: Option<String>,
}
