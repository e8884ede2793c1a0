//! How events are told: the modes a test chooses from, and the signature.

use std::fmt;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::script::parse_delay;

/// What becomes of an event once it has happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    Normal,
    /// Kept, not delivered.
    Off,
    /// Each delivered twice.
    Duplicate,
    /// Each held back for the next one, which goes first.
    Reverse,
    /// An authorization's event is delivered before its reply goes out.
    Early,
    /// Signed with another secret.
    BadSignature,
    Delay(Duration),
}

impl Mode {
    /// The mode of that name.
    pub(super) fn parse(text: &str) -> Option<Mode> {
        Some(match text {
            "normal" => Mode::Normal,
            "off" => Mode::Off,
            "duplicate" => Mode::Duplicate,
            "reverse" => Mode::Reverse,
            "early" => Mode::Early,
            "bad_signature" => Mode::BadSignature,
            other => Mode::Delay(parse_delay(other)?),
        })
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mode::Normal => f.write_str("normal"),
            Mode::Off => f.write_str("off"),
            Mode::Duplicate => f.write_str("duplicate"),
            Mode::Reverse => f.write_str("reverse"),
            Mode::Early => f.write_str("early"),
            Mode::BadSignature => f.write_str("bad_signature"),
            Mode::Delay(delay) => write!(f, "delay:{}", delay.as_millis()),
        }
    }
}

/// Signs deliveries. The key is the whole secret as text, its `whsec_` included, as the provider does it.
pub(super) struct Signer(Hmac<Sha256>);

impl Signer {
    /// A signer for a secret.
    pub(super) fn new(secret: &str) -> Signer {
        Signer(Hmac::new_from_slice(secret.as_bytes()).expect("HMAC takes a key of any length"))
    }

    /// The `Stripe-Signature` header of a body sent at a time in Unix seconds.
    pub(super) fn header(&self, second: i64, body: &[u8]) -> String {
        let mut mac = self.0.clone();
        mac.update(format!("{second}.").as_bytes());
        mac.update(body);
        let mut header = format!("t={second},v1=");
        for byte in mac.finalize().into_bytes() {
            for nibble in [byte >> 4, byte & 15] {
                header.push(char::from_digit(nibble.into(), 16).expect("a nibble is a hex digit"));
            }
        }
        header
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vector was computed by the provider's own client library.
    #[test]
    fn signatures_are_the_providers() {
        let signer = Signer::new("whsec_test_secret");
        assert_eq!(
            signer.header(1_700_000_000, br#"{"id":"evt_1","object":"event"}"#),
            "t=1700000000,v1=0c8670ed117751cc551a20e35839447075c42800ea3cf3e8a2fbda99cd1e6edd"
        );
    }

    #[test]
    fn every_mode_reads_back_as_written() {
        for word in "normal off duplicate reverse early bad_signature delay:30".split(' ') {
            assert_eq!(Mode::parse(word).map(|mode| mode.to_string()).as_deref(), Some(word));
        }
        assert_eq!(Mode::parse("late"), None);
    }
}
