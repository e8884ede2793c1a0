//! Who calls: API keys, buyers' session tokens.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use onsale_core::id::{AccountId, KeyId};
use onsale_core::time::{Timestamp, seconds};
use onsale_store::{ApiKey, Role};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// How long a guest's session lasts: an evening's sale and the walk to the door.
pub(crate) const SESSION_TTL_MS: i64 = seconds(24 * 3_600);
/// Bytes of a session token's signature: 128 bits, as much as forging needs.
const MAC_BYTES: usize = 16;
/// Shortest API key taken from the environment.
pub(crate) const API_KEY_LENGTH_MIN: usize = 12;

/// Who calls.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Caller {
    /// A buyer, itself or through a partner.
    Buyer(AccountId),
    /// A key, for itself.
    Key(KeyId, Role),
}

/// Knows keys and signs sessions.
pub(crate) struct Auth {
    session_mac: Hmac<Sha256>,
    keys: ArcSwap<HashMap<[u8; 32], (KeyId, Role)>>,
}

impl Auth {
    pub(crate) fn new(session_secret: &[u8]) -> Auth {
        let session_mac = Hmac::new_from_slice(session_secret).expect("HMAC takes keys of any length");
        Auth { session_mac, keys: ArcSwap::from_pointee(HashMap::new()) }
    }

    /// Takes the keys in force, in place of those known before.
    pub(crate) fn set_keys(&self, keys: Vec<ApiKey>) {
        let keys = keys.into_iter().map(|key| (key.secret_sha256, (key.key_id, key.role)));
        self.keys.store(Arc::new(keys.collect()));
    }

    /// The key with this secret.
    pub(crate) fn key(&self, secret: &str) -> Option<(KeyId, Role)> {
        self.keys.load().get(&digest(secret)).copied()
    }

    /// A session token for an account: expiry, account and signature, nothing stored.
    pub(crate) fn session_token(&self, account: &AccountId, expires_at: Timestamp) -> String {
        let mut bytes = expires_at.millis().to_be_bytes().to_vec();
        bytes.extend_from_slice(account.as_str().as_bytes());
        let mac = self.session_mac.clone().chain_update(&bytes).finalize().into_bytes();
        bytes.extend_from_slice(&mac[..MAC_BYTES]);
        format!("ost_{}", URL_SAFE_NO_PAD.encode(bytes))
    }

    /// The account of a session token that is genuine and not over.
    pub(crate) fn session(&self, token: &str, now: Timestamp) -> Option<AccountId> {
        let mut bytes = [0u8; 8 + AccountId::LENGTH_MAX + MAC_BYTES];
        let length = URL_SAFE_NO_PAD.decode_slice(token.strip_prefix("ost_")?, &mut bytes).ok()?;
        let (signed, mac) = bytes[..length].split_at_checked(length.checked_sub(MAC_BYTES)?)?;
        let right = self.session_mac.clone().chain_update(signed).finalize().into_bytes();
        if !bool::from(right[..MAC_BYTES].ct_eq(mac)) {
            return None;
        }
        let (expires_at, account) = signed.split_at_checked(8)?;
        let expires_at = i64::from_be_bytes(expires_at.try_into().ok()?);
        if Timestamp::from_millis(expires_at) <= now {
            return None;
        }
        AccountId::parse(std::str::from_utf8(account).ok()?)
    }
}

/// What is stored of a secret.
pub(crate) fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// A new API key's secret: 256 bits of chance.
pub(crate) fn new_api_secret() -> String {
    format!("osk_{}", URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_token_holds_until_its_end_and_no_bit_of_it_may_change() {
        let auth = Auth::new(b"secret");
        let ada = AccountId::parse("acc_ada").unwrap();
        let end = Timestamp::from_millis(10_000);
        let token = auth.session_token(&ada, end);
        assert_eq!(auth.session(&token, end.plus_ms(-1)), Some(ada.clone()));
        assert_eq!(auth.session(&token, end), None, "at the end itself it is over");
        assert_eq!(Auth::new(b"other").session(&token, Timestamp::ZERO), None);
        let bytes = URL_SAFE_NO_PAD.decode(&token[4..]).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut forged = bytes.clone();
            forged[bit / 8] ^= 1 << (bit % 8);
            let forged = format!("ost_{}", URL_SAFE_NO_PAD.encode(forged));
            assert_eq!(auth.session(&forged, Timestamp::ZERO), None, "bit {bit}");
        }
        for odd in ["", "ost_", "ost_!!!!", "osk_x", &format!("ost_{}", "A".repeat(4_000))] {
            assert_eq!(auth.session(odd, Timestamp::ZERO), None, "{odd}");
        }
    }
}
