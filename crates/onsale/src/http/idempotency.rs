//! What makes a request repeatable: its key, and the mark on an answer given again.

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use onsale_core::id::{AccountId, EventNo, KeyId};
use onsale_core::idempotency::RequestKey;
use sha2::{Digest, Sha256};
use uuid::{Uuid, Version};

const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// First 128 bits of a SHA-256 over parts, each with its length so that no two lists of parts look alike.
fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u128 {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let digest: [u8; 32] = hash.finalize().into();
    let (head, _) = digest.split_at(16);
    u128::from_be_bytes(head.try_into().expect("sixteen bytes are sixteen bytes"))
}

/// A key's scope is (account, route); its content is the rest of the request. Keys that begin with the time (UUID version 7,
/// RFC 9562) keep it in front: then those of one hour lie together on the disk, and a batch writes a few pages of them
/// instead of one for each.
pub(super) fn request_key<'a>(
    account: &AccountId,
    route: &str,
    key: &str,
    content: impl IntoIterator<Item = &'a [u8]>,
) -> RequestKey {
    let whole = digest([account.as_str().as_bytes(), route.as_bytes(), key.as_bytes()]);
    let id = begin_of(key).map_or(whole, |begin| begin << 80 | whole >> 48);
    RequestKey { id, digest: digest(content) }
}

/// The 48 bits of time that a UUID of version 7 begins with.
fn begin_of(key: &str) -> Option<u128> {
    let uuid = Uuid::try_parse(key).ok().filter(|uuid| uuid.get_version() == Some(Version::SortRand))?;
    Some(uuid.as_u128() >> 80)
}

/// Marks the answer to a repeated request.
pub(super) fn mark(mut response: Response, replayed: bool) -> Response {
    if replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

/// The number and the chance an event's id is made of when its maker gave a key: the same key draws the same ones, so a
/// repeated request finds the event it made. `turn` counts on when a number turns out to be taken by another.
pub(super) fn event_draw(by: KeyId, key: &str, turn: usize) -> (EventNo, u64) {
    let by = by.0.to_be_bytes();
    let bits = digest([&by[..], b"POST /v1/events", key.as_bytes(), &turn.to_be_bytes()]);
    let no = 1 + (bits >> 64) as u32 % EventNo::MAX.0;
    (EventNo(no), bits as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tell_accounts_routes_and_contents_apart() {
        let (ada, ben) = (AccountId::parse("ada").unwrap(), AccountId::parse("ben").unwrap());
        let key =
            |account: &AccountId, route, key, content: &[u8]| request_key(account, route, key, [content]);
        let first = key(&ada, "r", "k", b"x");
        assert_eq!(first, key(&ada, "r", "k", b"x"));
        assert_ne!(first.id, key(&ben, "r", "k", b"x").id);
        assert_ne!(first.id, key(&ada, "rk", "", b"x").id, "parts don't run into each other");
        assert_eq!(first.id, key(&ada, "r", "k", b"y").id);
        assert_ne!(first.digest, key(&ada, "r", "k", b"y").digest);
    }

    #[test]
    fn keys_that_begin_with_the_time_stay_in_its_order_and_are_told_apart_all_the_same() {
        let id =
            |account: &str, key| request_key(&AccountId::parse(account).unwrap(), "r", key, [&b""[..]]).id;
        let early = "01932c07-2000-7abc-8def-0123456789ab";
        let late = "01932c07-2001-7000-8000-000000000000";
        for account in ["ada", "ben", "cem"] {
            assert_eq!(id(account, early) >> 80, 0x0193_2c07_2000);
            assert!(id(account, early) < id(account, late));
        }
        assert_ne!(id("ada", early), id("ben", early));
        assert_ne!(id("ada", early), id("ada", "01932c07-2000-7abc-8def-0123456789ac"));
        let random = "01932c07-2000-4abc-8def-0123456789ab";
        assert_ne!(id("ada", random) >> 80, 0x0193_2c07_2000, "version 4 is all chance");
    }

    #[test]
    fn a_key_draws_the_same_event_again_and_another_key_another() {
        let draw = |by, key, turn| event_draw(KeyId(by), key, turn);
        assert_eq!(draw(1, "k", 0), draw(1, "k", 0));
        for other in [draw(2, "k", 0), draw(1, "l", 0), draw(1, "k", 1)] {
            assert_ne!(draw(1, "k", 0), other);
        }
        assert!((1..=EventNo::MAX.0).contains(&draw(1, "k", 0).0.0));
    }
}
