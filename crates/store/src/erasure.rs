//! Erasing a person from the books: what was bought and paid stays, under a pseudonym; who it was goes. What has been erased is
//! remembered by a keyed digest alone, so that a copy of before can be erased again.

use onsale_core::id::AccountId;
use onsale_core::time::Timestamp;

use crate::error::StoreError;
use crate::look::{Look, Value};
use crate::names::Named;
use crate::rows::time;

use crate::read::Reader;

/// By what a person was named.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ErasedBy {
    /// An account's id.
    Account,
    /// An e-mail address.
    Email,
}

impl Named for ErasedBy {
    const KIND: &'static str = "what a person was named by";
    const WORDS: &'static [(Self, &'static str)] =
        &[(ErasedBy::Account, "account"), (ErasedBy::Email, "email")];
}

/// That somebody was erased; not who.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Erasure {
    /// Keyed digest of the account's id or the address.
    pub digest: u128,
    /// Which of them it is of.
    pub by: ErasedBy,
    /// Why, in the operator's words.
    pub note: String,
    /// Who erased: a key's id.
    pub actor: String,
    /// When first.
    pub created_at: Timestamp,
}

/// What an erasing has changed in a home.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Erased {
    /// Orders without a name now.
    pub orders: u64,
    /// Holds.
    pub holds: u64,
    /// Holds and payments under way: while there are any, nothing is erased.
    pub under_way: u64,
}

/// Remembers an erasure, unless it is remembered already; whether it is new.
pub(crate) fn remember(db: Look<'_>, erasure: &Erasure) -> Result<bool, StoreError> {
    let text = "INSERT INTO erasures (digest, subject, note, actor, created_at) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT DO NOTHING";
    let values = [
        Value::Bits(erasure.digest),
        erasure.by.word().into(),
        erasure.note.as_str().into(),
        erasure.actor.as_str().into(),
        erasure.created_at.millis().into(),
    ];
    Ok(db.execute(text, &values)? == 1)
}

/// Takes an account's name and addresses out of the events at home here, unless it has something under way. Within a transaction.
pub(crate) fn erase(db: Look<'_>, account: &AccountId, pseudonym: &AccountId) -> Result<Erased, StoreError> {
    let named = [Value::from(account.as_str())];
    if let Look::Postgres(link) = db {
        // A batch that has read an order writes its address back: none may be under way in these events.
        let text = "SELECT 1 FROM events WHERE event_no IN (SELECT event_no FROM holds WHERE account_id = $1)
             ORDER BY event_no FOR UPDATE";
        link.query(text, &named)?;
    }
    let under_way = under_way(db, account)?;
    if under_way > 0 {
        return Ok(Erased { under_way, ..Erased::default() });
    }
    let both = [account.as_str().into(), pseudonym.as_str().into()];
    let at_home = "EXISTS (SELECT 1 FROM events e WHERE e.event_no = t.event_no AND e.elsewhere IS NULL)";
    let text = format!(
        "UPDATE orders AS t SET account_id = ?2, email = NULL, return_url = NULL WHERE account_id = ?1 AND {at_home}"
    );
    let orders = db.execute(&text, &both)?;
    let text = format!("UPDATE holds AS t SET account_id = ?2 WHERE account_id = ?1 AND {at_home}");
    let holds = db.execute(&text, &both)?;
    Ok(Erased { orders, holds, under_way: 0 })
}

fn under_way(db: Look<'_>, account: &AccountId) -> Result<u64, StoreError> {
    let text = "SELECT
           (SELECT count(*) FROM holds WHERE account_id = ?1 AND status IN ('ACTIVE', 'PAYMENT_PENDING')) +
           (SELECT count(*) FROM orders o JOIN operations p ON p.order_id = o.order_id
             WHERE o.account_id = ?1 AND p.status IN ('PENDING', 'REQUIRES_ACTION', 'UNKNOWN'))";
    Ok(db.one(text, &[account.as_str().into()], |row| row.number(0))?.unwrap_or(0))
}

impl Reader<'_> {
    /// Holds and payments of an account that are under way here.
    pub fn under_way(&self, account: &AccountId) -> Result<u64, StoreError> {
        under_way(self.0, account)
    }

    /// Accounts that have given an address, in whatever case it was written. What is a capital letter is said here: the databases
    /// know those of ASCII alone, or those of their locale.
    pub fn accounts_of_email(&self, email: &str) -> Result<Vec<AccountId>, StoreError> {
        let wanted = email.to_lowercase();
        let text = "SELECT DISTINCT account_id, email FROM orders WHERE email IS NOT NULL ORDER BY account_id, email";
        let found = self.0.all(text, &[], |row| {
            let is_wanted = row.string(1)?.to_lowercase() == wanted;
            is_wanted.then(|| row.account(0)).transpose()
        })?;
        let mut accounts: Vec<AccountId> = found.into_iter().flatten().collect();
        accounts.dedup();
        Ok(accounts)
    }

    /// Every account here, each with the addresses it has given.
    pub fn accounts_with_emails(&self) -> Result<Vec<(AccountId, Option<String>)>, StoreError> {
        let text = "SELECT DISTINCT h.account_id, o.email FROM holds h LEFT JOIN orders o ON o.order_id = h.order_id";
        self.0.all(text, &[], |row| Ok((row.account(0)?, row.string_or_none(1)?)))
    }

    /// What has been erased, the latest first.
    pub fn erasures(&self) -> Result<Vec<Erasure>, StoreError> {
        let text =
            "SELECT digest, subject, note, actor, created_at FROM erasures ORDER BY created_at DESC, digest";
        self.0.all(text, &[], |row| {
            Ok(Erasure {
                digest: row.bits(0)?,
                by: row.word(1)?,
                note: row.string(2)?,
                actor: row.string(3)?,
                created_at: time(row, 4)?,
            })
        })
    }
}
