//! Erasing persons.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewErasureJson {
    /// The account, a guest's or a partner's own name for someone; or `email`.
    pub(crate) account_id: Option<String>,
    /// An address: every account that has given it is erased.
    pub(crate) email: Option<String>,
    /// Why; it is kept, so it must not say who.
    pub(crate) note: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErasureDoneJson {
    /// Accounts that were in the books.
    pub(crate) accounts: u64,
    pub(crate) orders: u64,
    pub(crate) holds: u64,
    /// After a replay: holds and payments for whose sake someone was left; ask again when they are over.
    pub(crate) under_way: u64,
    /// Whether it was asked for before.
    pub(crate) repeated: bool,
}

#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ErasureJson {
    /// Of the account's id or the address, under a key of this installation.
    pub(crate) digest: String,
    /// `account` or `email`.
    pub(crate) subject: String,
    pub(crate) note: Option<String>,
    pub(crate) actor: Option<String>,
    pub(crate) created_at: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErasuresJson {
    pub(crate) erasures: Vec<ErasureJson>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplayJson {
    /// A list that was kept elsewhere, as `GET /v1/erasures` gave it; needed when the backup is older than the erasures.
    pub(crate) erasures: Option<Vec<ErasureJson>>,
    /// Why.
    pub(crate) note: String,
}
