//! What a test reads afterwards: the operations as received, and the money of each order.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::intent::Intent;
use super::limits::LOG_KEPT_MAX;
use super::script::Operation;

/// One operation as received.
#[derive(Clone, Debug, Serialize)]
pub(super) struct LogEntry {
    #[serde(rename = "at", serialize_with = "as_rfc3339")]
    pub(super) at_ms: i64,
    #[serde(serialize_with = "as_word")]
    pub(super) operation: Operation,
    pub(super) idempotency_key: Option<Arc<str>>,
    pub(super) order_id: Option<Arc<str>>,
    #[serde(rename = "amount_minor")]
    pub(super) amount: Option<i64>,
    /// Upper case, as everywhere outside the provider's own API.
    pub(super) currency: Option<Box<str>>,
    pub(super) outcome: Cow<'static, str>,
}

fn as_rfc3339<S: Serializer>(millis: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    let at = jiff::Timestamp::from_millisecond(*millis).map_err(serde::ser::Error::custom)?;
    serializer.collect_str(&format_args!("{at:.3}"))
}

fn as_word<S: Serializer>(operation: &Operation, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(operation.as_str())
}

/// The operations kept, oldest first.
#[derive(Default)]
pub(super) struct Log(VecDeque<LogEntry>);

impl Log {
    /// Keeps one more, now that its outcome is known.
    pub(super) fn push(&mut self, entry: Option<LogEntry>, outcome: impl Into<Cow<'static, str>>) {
        let Some(entry) = entry else { return };
        if self.0.len() == LOG_KEPT_MAX {
            self.0.pop_front();
        }
        self.0.push_back(LogEntry { outcome: outcome.into(), ..entry });
    }

    /// All of them, in the order received.
    pub(super) fn entries(&self) -> impl Iterator<Item = &LogEntry> {
        self.0.iter()
    }
}

/// The money of one order, in minor units. What was authorised is captured, voided, or still set aside.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct OrderMoney {
    order_id: Option<Arc<str>>,
    currency: String,
    authorised: i64,
    captured: i64,
    voided: i64,
    refunded: i64,
}

/// Adds the intents up by order and currency; those of no order come first, together.
pub(super) fn ledger(intents: &[Arc<Intent>]) -> Vec<OrderMoney> {
    let mut orders = BTreeMap::new();
    for intent in intents {
        let origin = &intent.origin;
        let order = orders.entry((&origin.order_id, &origin.currency)).or_insert_with(|| OrderMoney {
            order_id: origin.order_id.clone(),
            currency: origin.currency.to_ascii_uppercase(),
            ..OrderMoney::default()
        });
        order.authorised += intent.authorised;
        order.captured += intent.amount_received;
        order.voided += intent.voided;
        order.refunded += intent.amount_refunded;
    }
    orders.into_values().collect()
}
