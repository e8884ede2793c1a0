//! Erasing persons on request. What was bought and paid stays in the books under a pseudonym that follows from the account's id
//! under a key of this installation: the same person stays the same, and nobody else can say who it was.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hmac::{Hmac, KeyInit, Mac};
use onsale_core::id::AccountId;
use onsale_store::{Erased, ErasedBy, Erasure, StoreError};
use sha2::Sha256;

use crate::app::{App, AppError};
use crate::desk::HomeNo;

/// What every pseudonym begins with; no account from outside may.
pub(crate) const PSEUDONYM: &str = "anon_";
/// The name of the key that pseudonyms and digests are made with.
const KEY_NAME: &str = "erasure";
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz"; // Crockford's base 32, as in ids

/// Who is to be erased.
#[derive(Clone, Debug)]
pub(crate) enum Person {
    Account(AccountId),
    /// Every account that has given this address.
    Email(String),
}

/// What an erasing has come to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) accounts: u64,
    pub(crate) erased: Erased,
    /// Whether all of it was asked for before.
    pub(crate) is_repeated: bool,
}

/// Why nothing, or not everything, was erased.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EraseError {
    #[error(transparent)]
    App(#[from] AppError),
    #[error("{0} holds and payments are under way")]
    UnderWay(u64),
    #[error("an event is moving to another home")]
    Moving,
    #[error("not all homes can be asked")]
    Partial,
}

impl From<StoreError> for EraseError {
    fn from(error: StoreError) -> EraseError {
        EraseError::App(error.into())
    }
}

/// Makes digests and pseudonyms.
struct Key(Hmac<Sha256>);

impl Key {
    async fn of(app: &Arc<App>) -> Result<Key, EraseError> {
        let secret = make_key(app).await?;
        Ok(Key(Hmac::new_from_slice(&secret).expect("HMAC takes keys of any length")))
    }

    fn digest(&self, by: ErasedBy, text: &str) -> u128 {
        let what: &[u8] = match by {
            ErasedBy::Account => b"account:",
            ErasedBy::Email => b"email:",
        };
        let mac = self.0.clone().chain_update(what).chain_update(text.as_bytes()).finalize().into_bytes();
        u128::from_be_bytes(mac[..16].try_into().expect("sixteen bytes are sixteen bytes"))
    }

    /// Under a name of its own, so that a list of digests says nothing of the pseudonyms in the books.
    fn pseudonym(&self, account: &AccountId) -> AccountId {
        let mac = self.0.clone().chain_update(b"pseudonym:").chain_update(account.as_str().as_bytes());
        let mac = mac.finalize().into_bytes();
        let digits: String = mac[..26].iter().map(|byte| DIGITS[usize::from(byte % 32)] as char).collect();
        AccountId::parse(&format!("{PSEUDONYM}{digits}")).expect("letters and digits are an account's id")
    }
}

/// The key, made when there is none: at the first start, so that every backup has it.
pub(crate) async fn make_key(app: &Arc<App>) -> Result<Vec<u8>, AppError> {
    let fresh = rand::random::<[u8; 32]>().to_vec();
    Ok(app.store(HomeNo::MAIN).secret(KEY_NAME, fresh, app.now()).await?)
}

/// An address as it is compared.
fn plain(email: &str) -> String {
    email.trim().to_lowercase()
}

/// Erases a person from all homes. It may be repeated, and has to be when it was cut short.
pub(crate) async fn erase(
    app: &Arc<App>,
    person: &Person,
    note: &str,
    actor: &str,
) -> Result<Outcome, EraseError> {
    everything_is_here(app)?;
    let key = Key::of(app).await?;
    let accounts: BTreeSet<AccountId> = match person {
        Person::Account(account) => BTreeSet::from([account.clone()]),
        Person::Email(email) => {
            let email = plain(email);
            let found = all_homes(app, move |reader| reader.accounts_of_email(&email)).await?;
            found.into_iter().flatten().filter(|account| !is_pseudonym(account)).collect()
        }
    };
    let asked = accounts.clone();
    let under_way = all_homes(app, move |reader| {
        asked.iter().map(|account| reader.under_way(account)).sum::<Result<u64, _>>()
    });
    match under_way.await?.into_iter().sum() {
        0 => {}
        count => return Err(EraseError::UnderWay(count)),
    }
    // Remembered before it is done: what is cut short is finished by a replay, and not forgotten.
    let mut named: Vec<(ErasedBy, u128)> = accounts
        .iter()
        .map(|account| (ErasedBy::Account, key.digest(ErasedBy::Account, account.as_str())))
        .collect();
    if let Person::Email(email) = person {
        named.push((ErasedBy::Email, key.digest(ErasedBy::Email, &plain(email))));
    }
    let mut outcome = Outcome { is_repeated: true, ..Outcome::default() };
    for (by, digest) in named {
        let (note, actor) = (note.to_owned(), actor.to_owned());
        let erasure = Erasure { digest, by, note, actor, created_at: app.now() };
        outcome.is_repeated &= !app.store(HomeNo::MAIN).remember_erasure(erasure).await?;
    }
    for account in &accounts {
        add(&mut outcome, erase_account(app, &key, account).await?)?;
    }
    Ok(outcome)
}

/// Erases whoever was erased before and is in the books again, as after a restore; also those of a list of digests that was kept
/// elsewhere. Who has something under way is left, and counted.
pub(crate) async fn erase_again(
    app: &Arc<App>,
    known: Vec<(ErasedBy, u128)>,
    note: &str,
    actor: &str,
) -> Result<Outcome, EraseError> {
    everything_is_here(app)?;
    let key = Key::of(app).await?;
    for (by, digest) in known {
        let (note, actor) = (note.to_owned(), actor.to_owned());
        let erasure = Erasure { digest, by, note, actor, created_at: app.now() };
        app.store(HomeNo::MAIN).remember_erasure(erasure).await?;
    }
    let erasures = app.heavy_at(HomeNo::MAIN, |store| store.read(|reader| reader.erasures())).await?;
    let erased: BTreeSet<u128> = erasures.into_iter().map(|erasure| erasure.digest).collect();
    let mut accounts: BTreeMap<AccountId, bool> = BTreeMap::new();
    for (account, email) in
        all_homes(app, |reader| reader.accounts_with_emails()).await?.into_iter().flatten()
    {
        if is_pseudonym(&account) {
            continue;
        }
        let by_email =
            email.is_some_and(|email| erased.contains(&key.digest(ErasedBy::Email, &plain(&email))));
        let by_account = erased.contains(&key.digest(ErasedBy::Account, account.as_str()));
        *accounts.entry(account).or_default() |= by_account || by_email;
    }
    let mut outcome = Outcome { is_repeated: true, ..Outcome::default() };
    for (account, _) in accounts.into_iter().filter(|(_, is_erased)| *is_erased) {
        let found = erase_account(app, &key, &account).await?;
        outcome.erased.under_way += found.under_way;
        add(&mut outcome, Erased { under_way: 0, ..found })?;
    }
    Ok(outcome)
}

async fn erase_account(app: &Arc<App>, key: &Key, account: &AccountId) -> Result<Erased, EraseError> {
    let pseudonym = key.pseudonym(account);
    let mut sum = Erased::default();
    for home in app.all() {
        let found = app.store(home).erase(account.clone(), pseudonym.clone()).await?;
        sum.orders += found.orders;
        sum.holds += found.holds;
        sum.under_way += found.under_way;
    }
    Ok(sum)
}

fn add(outcome: &mut Outcome, found: Erased) -> Result<(), EraseError> {
    if found.under_way > 0 {
        return Err(EraseError::UnderWay(found.under_way));
    }
    outcome.accounts += u64::from(found.orders + found.holds > 0);
    outcome.erased.orders += found.orders;
    outcome.erased.holds += found.holds;
    Ok(())
}

/// Whether an account is a pseudonym already.
pub(crate) fn is_pseudonym(account: &AccountId) -> bool {
    account.as_str().starts_with(PSEUDONYM)
}

/// What is on its way between two homes can't be erased in either.
fn everything_is_here(app: &Arc<App>) -> Result<(), EraseError> {
    let moving = app.followers.catalog.numbers().into_iter().any(|no| app.homes.is_moving(no));
    if moving { Err(EraseError::Moving) } else { Ok(()) }
}

async fn all_homes<R: Send + 'static>(
    app: &Arc<App>,
    work: impl Fn(&onsale_store::Reader<'_>) -> Result<R, StoreError> + Clone + Send + 'static,
) -> Result<Vec<R>, EraseError> {
    let mut found = Vec::new();
    for home in app.all() {
        let work = work.clone();
        match app.heavy_at(home, move |store| store.read(&work)).await {
            Ok(read) => found.push(read),
            Err(error) if error.is_outage() => return Err(EraseError::Partial),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}
