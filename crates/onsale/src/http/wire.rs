//! The shapes on the wire (API.md), a file for each group, and how times stand in them.

pub(crate) mod books;
pub(crate) mod erasures;
pub(crate) mod event;
pub(crate) mod gate;
pub(crate) mod manifest;
pub(crate) mod places;
pub(crate) mod reports;
pub(crate) mod sale;
pub(crate) mod webhooks;

use jiff::fmt::temporal::DateTimePrinter;
use onsale_core::time::Timestamp;

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
