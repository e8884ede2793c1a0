//! What reaches the seller's account: an entry for each charge that was taken and for each refund, with the provider's fee.

use std::sync::Arc;

use serde::Serialize;

use super::intent::{Intent, Refund};
use super::objects::{ChargeObject, RefundObject, charge, charge_id, refund};

/// The fee on a charge: 1.5 % and 25 of the smallest unit. What is given back costs nothing, and its fee stays.
const FEE_PER_MILLE: i64 = 15;
const FEE_FIXED: i64 = 25;
/// How long it takes until the money can be paid out.
const AVAILABLE_AFTER_S: i64 = 2 * 24 * 3_600;

/// One entry.
pub(super) struct Entry {
    pub(super) id: String,
    /// Unix seconds.
    pub(super) created: i64,
    source: Source,
}

enum Source {
    /// As it was when it was taken.
    Charge(Arc<Intent>),
    Refund(Arc<Refund>),
}

impl Entry {
    /// A charge that was taken now.
    pub(super) fn charge(intent: &Arc<Intent>, created: i64) -> Arc<Entry> {
        let id = intent.origin.id.replacen("pi_", "txn_", 1);
        Arc::new(Entry { id, created, source: Source::Charge(intent.clone()) })
    }

    /// A refund that was made.
    pub(super) fn refund(refund: &Arc<Refund>) -> Arc<Entry> {
        let id = refund.id.replacen("re_", "txn_", 1);
        Arc::new(Entry { id, created: refund.created, source: Source::Refund(refund.clone()) })
    }

    /// What it adds to the account, and what of it the provider keeps.
    fn amount_and_fee(&self) -> (i64, i64) {
        match &self.source {
            Source::Charge(intent) => (intent.amount_received, fee(intent.amount_received)),
            Source::Refund(refund) => (-refund.amount, 0),
        }
    }
}

/// Rounded to the nearest, a half upwards.
fn fee(amount: i64) -> i64 {
    (amount * FEE_PER_MILLE + 500) / 1_000 + FEE_FIXED
}

/// An entry as the provider writes it, its source as an id or whole.
pub(super) fn object(entry: &Entry, expand_source: bool) -> impl Serialize + '_ {
    let (amount, fee) = entry.amount_and_fee();
    let (intent, kind) = match &entry.source {
        Source::Charge(intent) => (intent, "charge"),
        Source::Refund(refund) => (&refund.intent, "refund"),
    };
    let currency = &*intent.origin.currency;
    let source = match (&entry.source, expand_source) {
        (Source::Charge(intent), true) => SourceObject::Charge(Box::new(charge(intent))),
        (Source::Refund(of), true) => SourceObject::Refund(Box::new(refund(of))),
        (Source::Charge(intent), false) => SourceObject::Id(charge_id(intent).unwrap_or_default()),
        (Source::Refund(of), false) => SourceObject::Id(of.id.to_string()),
    };
    EntryObject {
        id: &entry.id,
        object: "balance_transaction",
        amount,
        available_on: entry.created + AVAILABLE_AFTER_S,
        created: entry.created,
        currency,
        description: None,
        exchange_rate: None,
        fee,
        fee_details: (fee > 0)
            .then_some(Fee { amount: fee, currency, kind: "stripe_fee" })
            .into_iter()
            .collect(),
        net: amount - fee,
        reporting_category: kind,
        source,
        status: "pending",
        kind,
    }
}

#[derive(Serialize)]
struct EntryObject<'a> {
    id: &'a str,
    object: &'static str,
    amount: i64,
    available_on: i64,
    created: i64,
    currency: &'a str,
    description: Option<&'a str>,
    exchange_rate: Option<f64>,
    fee: i64,
    fee_details: Vec<Fee<'a>>,
    net: i64,
    reporting_category: &'static str,
    source: SourceObject<'a>,
    status: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
struct Fee<'a> {
    amount: i64,
    currency: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum SourceObject<'a> {
    Id(String),
    Charge(Box<ChargeObject<'a>>),
    Refund(Box<RefundObject<'a>>),
}

#[cfg(test)]
mod tests {
    use super::fee;

    #[test]
    fn the_fee_is_rounded_to_the_nearest() {
        for (amount, kept) in [(0, 25), (33, 25), (34, 26), (100, 27), (4_250, 89), (99_999_999, 1_500_025)] {
            assert_eq!(fee(amount), kept, "{amount}");
        }
    }
}
