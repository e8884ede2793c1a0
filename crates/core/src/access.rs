//! Allocations, which set seats and places aside for a party, and access codes, which open them or a presale.

use std::sync::Arc;

use crate::id::AllocationNo;
use crate::time::Timestamp;

/// Seats and places set aside for a party: sponsors, house seats, a school.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Allocation {
    /// Its number within the event.
    pub no: AllocationNo,
    /// What it is called, unique within the event.
    pub name: String,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A code that lets its holders buy what others can't, or before them. Counted for each ticket, not for each use.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct AccessCode {
    /// The code, in the one form in which it is compared.
    pub code: Arc<str>,
    /// The allocation it opens.
    pub allocation: Option<AllocationNo>,
    /// Whether it lets its holders buy before the sale begins.
    pub presale: bool,
    /// Most tickets that may be held and bought with it.
    pub tickets_max: u32,
    /// Tickets held and bought with it now.
    pub tickets_in_use: u32,
    /// From when on it is good.
    pub valid_from: Option<Timestamp>,
    /// From when on it is good no more.
    pub valid_until: Option<Timestamp>,
    /// Since when it has been withdrawn.
    pub revoked_at: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
}

impl AccessCode {
    /// Longest code.
    pub const LENGTH_MAX: usize = 64;
    /// Shortest code: a shorter one is guessed too soon.
    pub const LENGTH_MIN: usize = 4;

    /// The one form of a code as people type it: capital letters, digits, and `-`; `None` when it can't be one.
    pub fn parse(text: &str) -> Option<Arc<str>> {
        let code = text.trim().to_ascii_uppercase();
        let fits = (Self::LENGTH_MIN..=Self::LENGTH_MAX).contains(&code.len());
        (fits && code.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')).then(|| code.into())
    }

    /// Whether it may be used now.
    pub fn is_good(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none()
            && self.valid_from.is_none_or(|from| from <= now)
            && self.valid_until.is_none_or(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_the_same_however_it_is_typed() {
        assert_eq!(AccessCode::parse(" fan-2027 ").as_deref(), Some("FAN-2027"));
        for stranger in ["", "abc", "ab cd", "größe", "a_b_c", &"a".repeat(65)] {
            assert_eq!(AccessCode::parse(stranger), None, "{stranger:?}");
        }
    }
}
