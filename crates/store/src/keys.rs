//! API keys. Only a digest of the secret is stored.

use onsale_core::id::KeyId;
use onsale_core::time::Timestamp;

use crate::names::Named;

/// What a key may do (API.md).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// Everything.
    Operator,
    /// Act for buyers.
    Partner,
    /// Scan tickets.
    Gate,
    /// Read reports.
    Reader,
}

impl Named for Role {
    const KIND: &'static str = "a role";
    const WORDS: &'static [(Self, &'static str)] = &[
        (Role::Operator, "operator"),
        (Role::Partner, "partner"),
        (Role::Gate, "gate"),
        (Role::Reader, "reader"),
    ];
}

impl Role {
    /// Its name in the API.
    pub fn as_str(self) -> &'static str {
        self.word()
    }

    /// The role of a name.
    pub fn parse(name: &str) -> Option<Role> {
        Role::of(name).ok()
    }
}

/// An API key as stored.
#[derive(Clone, Debug)]
pub struct ApiKey {
    /// Its public id.
    pub key_id: KeyId,
    /// SHA-256 of its secret.
    pub secret_sha256: [u8; 32],
    /// What it may do.
    pub role: Role,
    /// What its owner calls it.
    pub name: String,
    /// When it was made.
    pub created_at: Timestamp,
}
