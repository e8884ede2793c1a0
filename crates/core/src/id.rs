//! Typed identifiers.
//!
//! Every id is 128 bits: 48 bits of milliseconds, 24 bits of the event it belongs to, 56 bits of chance. The time in
//! front keeps inserts in order; the event in the middle says where a row lives without a look-up. An id is no secret.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::time::Timestamp;

/// The number of an event within one installation: 1 to 2²⁴−1. Zero is the [house](EventNo::HOUSE).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EventNo(pub u32);

impl EventNo {
    /// The pseudo-event that orders what belongs to no event, such as a callback nobody can place.
    pub const HOUSE: EventNo = EventNo(0);
    /// The largest number that fits into an id.
    pub const MAX: EventNo = EventNo((1 << 24) - 1);
}

/// The ordinal of a seat in its event's manifest, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SeatOrdinal(pub u32);

/// The position of a standing area in its event's manifest, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AreaNo(pub u16);

/// A bucket of a standing area, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BucketNo(pub u16);

/// An allocation of an event, from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AllocationNo(pub u16);

/// The buyer's account: a guest's `acc_…` or a partner's own string, 1–128 visible ASCII characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AccountId(Arc<str>);

impl AccountId {
    /// Longest account id taken from outside.
    pub const LENGTH_MAX: usize = 128;

    /// Checks shape and length; `None` when it isn't an account id.
    pub fn parse(text: &str) -> Option<AccountId> {
        let fits = !text.is_empty() && text.len() <= Self::LENGTH_MAX;
        (fits && text.bytes().all(|b| b.is_ascii_graphic())).then(|| AccountId(text.into()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AccountId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A source of ids for one command: the first is drawn by the shell, the others follow from it, so that a decision
/// can be replayed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Seed(u128);

impl Seed {
    /// A seed for an event at a time, from 56 bits of chance.
    pub fn new(event: EventNo, at: Timestamp, chance: u64) -> Seed {
        let millis = (at.millis() as u128) & ((1 << 48) - 1);
        Seed((millis << 80) | ((event.0 as u128) << 56) | (chance as u128 & ((1 << 56) - 1)))
    }

    /// The event its ids belong to.
    pub fn event(self) -> EventNo {
        EventNo(((self.0 >> 56) & 0xff_ffff) as u32)
    }

    /// The next id of this seed.
    pub fn mint<I: From<u128>>(&mut self) -> I {
        let minted = self.0;
        // Chance is the low 56 bits: count inside them, never into the event's number.
        let low = (minted.wrapping_add(1)) & ((1 << 56) - 1);
        self.0 = (minted & !((1u128 << 56) - 1)) | low;
        I::from(minted)
    }
}

/// Text that isn't an id of the wanted kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotAnId;

impl fmt::Display for NotAnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not an id of this kind")
    }
}

impl std::error::Error for NotAnId {}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u128);

        impl $name {
            /// What stands before the digits in its text.
            pub const PREFIX: &'static str = $prefix;

            /// The event this id belongs to.
            pub fn event(self) -> EventNo {
                EventNo(((self.0 >> 56) & 0xff_ffff) as u32)
            }
        }

        impl From<u128> for $name {
            fn from(bits: u128) -> Self {
                $name(bits)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut digits = [0; DIGITS];
                f.write_str($prefix)?;
                f.write_str(encode(self.0, &mut digits))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = NotAnId;
            fn from_str(text: &str) -> Result<Self, NotAnId> {
                text.strip_prefix($prefix).and_then(decode).map($name).ok_or(NotAnId)
            }
        }
    )*};
}

ids! {
    /// An event: the show people attend.
    EventId "evt_";
    /// A timed claim on seats.
    HoldId "hld_";
    /// A purchase.
    OrderId "ord_";
    /// One movement of money asked of the provider.
    OperationId "op_";
    /// A question about money that needs proof or a person.
    CaseId "cas_";
    /// An API key.
    KeyId "key_";
    /// Capacity on its way from one bucket to another.
    TransferId "qtr_";
    /// The right of one person to one seat or place.
    TicketId "tkt_";
    /// Another system that is told what happens.
    EndpointId "whe_";
    /// One message to one of them: the same for each try.
    MessageId "msg_";
}

impl CaseId {
    /// The id of the question about an object that is no attempt of ours. It follows from the object's name, so that whoever
    /// finds the object, and however often, finds the same question.
    pub fn about(event: EventNo, subject: &str) -> CaseId {
        // FNV-1a: not a secret, only the same each time.
        let hashed = subject.bytes().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |hash, byte| {
            (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
        });
        let of_event = 0xff_ffff_u128 << 56;
        CaseId((hashed & !of_event) | (u128::from(event.0) << 56 & of_event))
    }
}

const DIGITS: usize = 26;
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz"; // Crockford's base 32

fn encode(mut bits: u128, digits: &mut [u8; DIGITS]) -> &str {
    for digit in digits.iter_mut().rev() {
        *digit = ALPHABET[(bits & 31) as usize];
        bits >>= 5;
    }
    std::str::from_utf8(digits).expect("the alphabet is ASCII")
}

fn decode(text: &str) -> Option<u128> {
    let bytes = text.as_bytes();
    // 26 digits hold 130 bits: a first digit over 7 would not fit.
    if bytes.len() != DIGITS || bytes[0] > b'7' {
        return None;
    }
    let mut bits = 0u128;
    for byte in bytes {
        let digit = ALPHABET.iter().position(|letter| letter == byte)?;
        bits = (bits << 5) | digit as u128;
    }
    Some(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bits_round_trip_and_strangers_are_refused() {
        let mut seed = Seed::new(EventNo(77), Timestamp::from_millis(1_796_000_000_123), u64::MAX);
        let (first, second): (HoldId, HoldId) = (seed.mint(), seed.mint());
        assert_ne!(first, second);
        assert_eq!((first.event(), second.event()), (EventNo(77), EventNo(77)));
        assert_eq!(first.to_string().parse(), Ok(first));
        assert!(first.to_string().parse::<OrderId>().is_err());
        for stranger in ["hld_", "hld_8zzzzzzzzzzzzzzzzzzzzzzzzz", "hld_il000000000000000000000000", "HLD_0"]
        {
            assert_eq!(stranger.parse::<HoldId>(), Err(NotAnId), "{stranger}");
        }
        assert_eq!(HoldId(u128::MAX).to_string().parse(), Ok(HoldId(u128::MAX)));
        // The command line shows it to whoever has mistyped an id.
        assert!(NotAnId.to_string().contains("not an id"), "{NotAnId}");
    }

    #[test]
    fn the_question_about_an_object_has_one_id_in_each_event() {
        let about = CaseId::about(EventNo(7), "pi_1");
        assert_eq!((about, about.event()), (CaseId::about(EventNo(7), "pi_1"), EventNo(7)));
        for other in [CaseId::about(EventNo::HOUSE, "pi_1"), CaseId::about(EventNo(7), "pi_2")] {
            assert_ne!(about, other);
        }
        assert_eq!(about.to_string().parse(), Ok(about));
    }

    /// An id says which event's rows it is about, so the largest number must come back whole.
    #[test]
    fn the_largest_event_number_fits_into_an_id() {
        let event_of = |no| Seed::new(no, Timestamp::ZERO, 0).event();
        assert_eq!(event_of(EventNo::MAX), EventNo::MAX);
        assert_eq!(event_of(EventNo(EventNo::MAX.0 + 1)), EventNo(0), "one more doesn't fit");
    }

    #[test]
    fn an_account_is_visible_ascii_of_some_length() {
        let longest = "a".repeat(AccountId::LENGTH_MAX);
        for text in ["a", "acc_01", "shop:4711/~", &longest] {
            let account =
                AccountId::parse(text).map(|account| (account.as_str().to_owned(), account.to_string()));
            assert_eq!(account, Some((text.to_owned(), text.to_owned())));
        }
        for stranger in ["", "two words", "müller", "a\n", &format!("{longest}a")] {
            assert_eq!(AccountId::parse(stranger), None, "{stranger:?}");
        }
    }
}
