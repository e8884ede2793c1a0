//! Instants and durations in whole milliseconds. Only the shell reads a clock.

use std::fmt;

/// Milliseconds since 1970 in UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Default for Timestamp {
    fn default() -> Self {
        Timestamp::ZERO
    }
}

impl Timestamp {
    /// The beginning of the count.
    pub const ZERO: Timestamp = Timestamp(0);

    /// From milliseconds since 1970.
    pub const fn from_millis(millis: i64) -> Timestamp {
        Timestamp(millis)
    }

    /// Milliseconds since 1970.
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// This instant and so many milliseconds, at most the end of time.
    pub const fn plus_ms(self, millis: i64) -> Timestamp {
        Timestamp(self.0.saturating_add(millis))
    }

    /// Milliseconds from an earlier instant to this one; negative when it is later.
    pub const fn since_ms(self, earlier: Timestamp) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.0)
    }
}

/// `seconds` in milliseconds.
pub const fn seconds(seconds: i64) -> i64 {
    seconds * 1_000
}
