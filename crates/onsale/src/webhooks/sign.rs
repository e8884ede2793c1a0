//! Signing as Standard Webhooks has it: HMAC-SHA256 over id, time and body, under a secret that is shared as `whsec_…`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Bytes of a secret; the standard has 24 to 64.
const SECRET_BYTES: usize = 32;

/// A new secret.
pub(crate) fn new_secret() -> Vec<u8> {
    rand::random::<[u8; SECRET_BYTES]>().to_vec()
}

/// A secret as its owner gets it.
pub(crate) fn secret_text(secret: &[u8]) -> String {
    format!("whsec_{}", STANDARD.encode(secret))
}

/// The header `webhook-signature`: a signature under each secret.
pub(crate) fn signatures<'a>(
    secrets: impl IntoIterator<Item = &'a [u8]>,
    id: &str,
    timestamp_s: i64,
    body: &str,
) -> String {
    let sign = |secret: &[u8]| {
        let mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes keys of any length");
        let mac = mac.chain_update(format!("{id}.{timestamp_s}.")).chain_update(body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    };
    secrets.into_iter().map(sign).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = r#"{"email":"test@example.com","username":"test_user"}"#;

    /// The vector of the standard's own tests.
    #[test]
    fn a_known_message_is_signed_as_known() {
        let secret = STANDARD.decode("C2FVsBQIhrscChlQIMV+b5sSYspob7oD").unwrap();
        let signed = |secrets: &[&[u8]]| {
            signatures(secrets.iter().copied(), "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk", 1_649_367_553, BODY)
        };
        let wanted = "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=";
        assert_eq!(signed(&[&secret]), wanted);
        let both = signed(&[b"another secret", &secret]);
        assert!(both.starts_with("v1,") && both.ends_with(&format!(" {wanted}")), "{both}");
        assert_eq!(secret_text(&secret), "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD");
    }

    #[test]
    fn a_secret_is_as_long_as_the_standard_wants_and_never_the_same() {
        let (one, other) = (new_secret(), new_secret());
        assert!((24..=64).contains(&one.len()) && one != other);
        assert!(secret_text(&one).starts_with("whsec_"));
    }
}
