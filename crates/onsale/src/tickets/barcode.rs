//! Barcodes: which ticket, of which generation, signed so that the public key alone tells a real one.
//!
//! 87 bytes: the version, the key's id, the ticket's id, its generation, and the Ed25519 signature of what stands before it. The
//! text is `ONSALE:` and those bytes in base 45. Why: docs/decisions/0017-barcodes.md.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{
    PUBLIC_KEY_LENGTH, SECRET_KEY_LENGTH, SIGNATURE_LENGTH, Signature, Signer as _, SigningKey, VerifyingKey,
};
use onsale_core::id::TicketId;
use sha2::{Digest, Sha256};

use super::base45;

/// The first byte of what this program writes.
const VERSION: u8 = 1;
/// What the signature covers beside the bytes themselves: the key signs nothing else that could be read as a ticket.
const DOMAIN: &[u8] = b"onsale ticket\0";
/// Tells our codes from whatever else is held in front of a scanner. It also keeps the text from beginning with a space, which
/// base 45 has and which scanners and people drop. It never ends with one: the last byte stands alone.
const PREFIX: &str = "ONSALE:";

const KEY_ID_BYTES: usize = 4;
const SAID_BYTES: usize = 1 + KEY_ID_BYTES + 16 + 2;
const BYTES: usize = SAID_BYTES + SIGNATURE_LENGTH;
/// Every barcode is this long. What is longer is not looked at.
pub(crate) const TEXT_LENGTH: usize = PREFIX.len() + BYTES / 2 * 3 + BYTES % 2 * 2;

/// What a genuine barcode says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Barcode {
    pub(crate) ticket: TicketId,
    /// A ticket that is issued anew counts one up, and its older barcodes are good no more.
    pub(crate) generation: u16,
}

/// Why a text is no barcode of ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum NotGenuine {
    #[error("this is no barcode of a ticket")]
    Malformed,
    #[error("the barcode was signed with another key, {0}")]
    OtherKey(SigningKeyId),
    #[error("the barcode was altered or forged: its signature is wrong")]
    Forged,
}

/// The short name of a signing key: the first bytes of its public key's digest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SigningKeyId([u8; KEY_ID_BYTES]);

impl fmt::Display for SigningKeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", u32::from_be_bytes(self.0))
    }
}

/// Writes barcodes.
pub(crate) struct Signer {
    key: SigningKey,
    public: PublicKey,
}

impl Signer {
    /// The signer with a secret of 32 bytes; `None` when it has another length.
    pub(crate) fn new(secret: &[u8]) -> Option<Signer> {
        let secret: &[u8; SECRET_KEY_LENGTH] = secret.try_into().ok()?;
        let key = SigningKey::from_bytes(secret);
        let public = PublicKey::of(key.verifying_key());
        Some(Signer { key, public })
    }

    /// What scanners need.
    pub(crate) fn public(&self) -> &PublicKey {
        &self.public
    }

    /// The barcode's text.
    pub(crate) fn write(&self, barcode: Barcode) -> String {
        let said = Said { key_id: self.public.id, barcode };
        let signature = self.key.sign(&said.message()).to_bytes();
        format!("{PREFIX}{}", base45::encode(&[&said.bytes()[..], &signature].concat()))
    }
}

/// Reads barcodes, anywhere and offline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PublicKey {
    key: VerifyingKey,
    id: SigningKeyId,
}

impl PublicKey {
    fn of(key: VerifyingKey) -> PublicKey {
        let digest = Sha256::digest(key.as_bytes());
        let mut id = [0; KEY_ID_BYTES];
        id.copy_from_slice(&digest[..KEY_ID_BYTES]);
        PublicKey { key, id: SigningKeyId(id) }
    }

    /// The key from its text; `None` when that isn't one, or one for which anybody could sign.
    pub(crate) fn parse(text: &str) -> Option<PublicKey> {
        let bytes: [u8; PUBLIC_KEY_LENGTH] = STANDARD.decode(text).ok()?.try_into().ok()?;
        let key = VerifyingKey::from_bytes(&bytes).ok()?;
        (!key.is_weak()).then(|| PublicKey::of(key))
    }

    pub(crate) fn id(&self) -> SigningKeyId {
        self.id
    }

    /// What a barcode's text says, if it is genuine to the last bit.
    pub(crate) fn read(&self, text: &str) -> Result<Barcode, NotGenuine> {
        let (said, signature) = parts(text).ok_or(NotGenuine::Malformed)?;
        if said.key_id != self.id {
            return Err(NotGenuine::OtherKey(said.key_id));
        }
        // Strictly: a signature has one form, and none is good for a key that anybody could have signed for.
        self.key.verify_strict(&said.message(), &signature).map_err(|_| NotGenuine::Forged)?;
        Ok(said.barcode)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(self.key.as_bytes()))
    }
}

/// What is signed.
struct Said {
    key_id: SigningKeyId,
    barcode: Barcode,
}

impl Said {
    fn bytes(&self) -> [u8; SAID_BYTES] {
        let mut bytes = [VERSION; SAID_BYTES];
        bytes[1..5].copy_from_slice(&self.key_id.0);
        bytes[5..21].copy_from_slice(&self.barcode.ticket.0.to_be_bytes());
        bytes[21..].copy_from_slice(&self.barcode.generation.to_be_bytes());
        bytes
    }

    fn message(&self) -> [u8; DOMAIN.len() + SAID_BYTES] {
        let mut message = [0; DOMAIN.len() + SAID_BYTES];
        message[..DOMAIN.len()].copy_from_slice(DOMAIN);
        message[DOMAIN.len()..].copy_from_slice(&self.bytes());
        message
    }
}

/// Takes a text apart; `None` when it has not the one form that barcodes have.
fn parts(text: &str) -> Option<(Said, Signature)> {
    if text.len() != TEXT_LENGTH {
        return None;
    }
    let bytes = base45::decode(text.strip_prefix(PREFIX)?)?;
    let (said, signature) = bytes.split_last_chunk()?;
    let (&[VERSION], said) = said.split_first_chunk()? else { return None };
    let (&key_id, said) = said.split_first_chunk()?;
    let (&ticket, generation) = said.split_first_chunk()?;
    let barcode = Barcode {
        ticket: TicketId(u128::from_be_bytes(ticket)),
        generation: u16::from_be_bytes(generation.try_into().ok()?),
    };
    Some((Said { key_id: SigningKeyId(key_id), barcode }, Signature::from_bytes(signature)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BARCODE: Barcode =
        Barcode { ticket: TicketId(0x0192_a3b4_c5d6_0000_4d01_2345_6789_abcd), generation: 3 };
    /// Made by another implementation, from the secret of 32 times 7.
    const PUBLIC: &str = "6kpsY+KcUgq+9VB7Ey7F+ZVHdq6+vnuSQh7qaRRG0iw=";
    const TEXT: &str = "ONSALE:FB0%EGJC29OIH%MJ2RW10L60$Y88IHA-PHK0K-BMANAWEKCE41NNUB94P%6P+XU/K29V6VSOCMCETF5SPQLQKMM/YFLN3PHS7E4 33$J9 +E1*5FD35-3 FJ.1R0NB.BMF0";

    fn signer() -> Signer {
        Signer::new(&[7; 32]).expect("32 bytes")
    }

    #[test]
    fn a_barcode_is_as_another_implementation_writes_it() {
        let signer = signer();
        assert_eq!(
            (signer.public().to_string(), signer.public().id().to_string()),
            (PUBLIC.into(), "fe812c12".into())
        );
        assert_eq!(signer.write(BARCODE), TEXT);
        assert_eq!(TEXT.len(), TEXT_LENGTH);
        let public = PublicKey::parse(PUBLIC).expect("a key");
        assert_eq!(public.read(TEXT), Ok(BARCODE), "the public key alone is enough");
        assert_eq!(BARCODE.ticket.event().0, 77);
    }

    #[test]
    fn no_bit_may_change() {
        let public = signer().public().clone();
        let bytes = base45::decode(&TEXT[PREFIX.len()..]).expect("base 45");
        for bit in 0..bytes.len() * 8 {
            let mut altered = bytes.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            let altered = format!("{PREFIX}{}", base45::encode(&altered));
            let why = public.read(&altered).expect_err("altered");
            let expected = match bit / 8 {
                0 => why == NotGenuine::Malformed,
                1..5 => matches!(why, NotGenuine::OtherKey(_)),
                _ => why == NotGenuine::Forged,
            };
            assert!(expected, "bit {bit}: {why:?}");
        }
        // Of the text itself, too; what isn't UTF-8 any more never comes this far.
        for bit in 0..TEXT.len() * 8 {
            let mut altered = TEXT.as_bytes().to_vec();
            altered[bit / 8] ^= 1 << (bit % 8);
            if let Ok(altered) = String::from_utf8(altered) {
                assert!(public.read(&altered).is_err(), "bit {bit}");
            }
        }
    }

    #[test]
    fn what_only_looks_like_one_is_refused() {
        let public = signer().public().clone();
        let body = &TEXT[PREFIX.len()..];
        let strangers = [
            String::new(),
            PREFIX.to_owned(),
            body.to_owned(),
            TEXT.to_lowercase(),
            format!("{TEXT} "),
            format!(" {TEXT}"),
            format!("{TEXT}\n"),
            format!("{TEXT}0"),
            format!("{TEXT}000"),
            TEXT[..TEXT.len() - 1].to_owned(),
            TEXT[..TEXT.len() - 2].to_owned(),
            format!("{PREFIX}{}", base64::engine::general_purpose::STANDARD.encode([1; BYTES])),
            format!("{PREFIX}{}", ":".repeat(body.len())),
            "9".repeat(1_000_000),
        ];
        for stranger in strangers {
            assert_eq!(public.read(&stranger), Err(NotGenuine::Malformed), "{stranger:.200}");
        }
    }

    #[test]
    fn another_key_reads_nothing() {
        let other = Signer::new(&[8; 32]).expect("32 bytes");
        assert_eq!(other.public().read(TEXT), Err(NotGenuine::OtherKey(signer().public().id())));
        // Even one with the same short name.
        let namesake = PublicKey { id: signer().public().id(), ..other.public().clone() };
        assert_eq!(namesake.read(TEXT), Err(NotGenuine::Forged));
        // A signature of the same key over the same bytes, made for another purpose.
        let said = Said { key_id: signer().public().id(), barcode: BARCODE };
        let other_purpose = signer().key.sign(&said.bytes());
        let bytes = [&said.bytes()[..], &other_purpose.to_bytes()].concat();
        let text = format!("{PREFIX}{}", base45::encode(&bytes));
        assert_eq!(signer().public().read(&text), Err(NotGenuine::Forged));
    }

    #[test]
    fn only_a_key_is_a_key() {
        assert_eq!(PublicKey::parse(PUBLIC).as_ref(), Some(signer().public()));
        // The neutral element verifies signatures that anybody can make; the other is on no curve.
        let [mut neutral, mut nowhere] = [[0; 32]; 2];
        (neutral[0], nowhere[0]) = (1, 2);
        for stranger in ["", "AAAA", &PUBLIC[1..], &STANDARD.encode(neutral), &STANDARD.encode(nowhere), TEXT]
        {
            assert_eq!(PublicKey::parse(stranger), None, "{stranger}");
        }
        assert!(Signer::new(&[7; 31]).is_none() && Signer::new(&[7; 64]).is_none());
    }
}
