//! The provider's books: what it lists, a page at a time and newest first. An object that can't be read is told by its name, so
//! that one of them doesn't hide the others.

use std::ops::Range;

use onsale_core::gateway::Observation;
use onsale_core::money::Money;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::objects::{self, Expandable, Intent};
use super::transport::LIST_BYTES_MAX;
use super::{GatewayError, Stripe, amounts, clip};

/// Objects in a page: the provider's own maximum.
const PAGE_OBJECTS: usize = 100;

/// Some of a list.
#[derive(Debug)]
pub(crate) struct Page<T> {
    /// The objects, newest first.
    pub(crate) found: Vec<T>,
    /// The name after which the next page begins; `None` when this is the last.
    pub(crate) next: Option<String>,
}

/// A payment in the provider's list.
#[derive(Debug)]
pub(crate) struct Listed {
    /// The provider's name of it.
    pub(crate) reference: String,
    /// What it says, or why that can't be understood.
    pub(crate) seen: Result<Observation, GatewayError>,
}

/// Money given back, by whoever did it.
#[derive(Debug)]
pub(crate) struct ListedRefund {
    /// The payment it is of; `None` for one that was made otherwise than through an intent.
    pub(crate) reference: Option<String>,
}

/// An entry of the seller's account at the provider.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BalanceLine {
    /// The provider's name of the entry.
    pub(crate) id: String,
    /// Unix seconds.
    pub(crate) created_s: i64,
    /// Unix seconds from when on the money can be paid out.
    pub(crate) available_on_s: i64,
    /// What kind of entry, in the provider's words for bookkeepers: `charge`, `refund`, `dispute` …
    pub(crate) category: String,
    /// What came or, less than zero, went.
    pub(crate) amount: Money,
    /// What the provider keeps of it.
    pub(crate) fee_minor: i64,
    /// The payment it is of, if it is of one.
    pub(crate) reference: Option<String>,
}

#[derive(Deserialize)]
struct List {
    data: Vec<Value>,
    has_more: bool,
}

#[derive(Deserialize)]
struct Named {
    id: String,
}

#[derive(Deserialize)]
struct RefundObject {
    payment_intent: Option<Expandable<Named>>,
}

#[derive(Deserialize)]
struct BalanceObject {
    id: String,
    created: i64,
    available_on: i64,
    reporting_category: String,
    amount: i64,
    fee: i64,
    currency: String,
    source: Option<Expandable<Source>>,
}

/// A charge or a refund; other sources have no intent.
#[derive(Deserialize)]
struct Source {
    payment_intent: Option<Expandable<Named>>,
}

/// A refund as it stands.
#[derive(Deserialize)]
struct RefundOfPayment {
    id: String,
    amount: i64,
    status: Option<String>,
    failure_reason: Option<String>,
}

impl RefundOfPayment {
    fn is_promised(&self) -> bool {
        matches!(self.status.as_deref(), Some("pending" | "requires_action"))
    }
}

impl Expandable<Named> {
    fn name(self) -> String {
        match self {
            Expandable::Name(name) => name,
            Expandable::Object(named) => named.id,
        }
    }
}

impl Stripe {
    /// Payments made within some seconds, after one of them.
    pub(crate) async fn list_payments(
        &self,
        created: &Range<i64>,
        after: Option<&str>,
    ) -> Result<Page<Listed>, GatewayError> {
        let page = self.list("/v1/payment_intents", created, after, Some("data.latest_charge")).await?;
        let mut found = Vec::with_capacity(page.found.len());
        for (reference, object) in page.found {
            let seen = match read::<Intent>(object).and_then(|intent| objects::observe(&intent)) {
                Ok(seen) => self.proven(seen).await,
                Err(error) => Err(error),
            };
            found.push(Listed { reference, seen });
        }
        Ok(Page { found, next: page.next })
    }

    /// A payment with what has truly been given back. The provider counts a refund from the moment it is asked for, and takes it
    /// out again should it come to nothing: until then it is only promised.
    pub(super) async fn proven(&self, mut seen: Observation) -> Result<Observation, GatewayError> {
        if seen.refunded_minor > 0 {
            let refunds = self.refunds_of(&seen.reference).await?;
            let promised = refunds.iter().filter(|refund| refund.is_promised()).map(|refund| refund.amount);
            let promised = amounts::to_ledger(promised.sum(), seen.amount.currency.as_str())?;
            seen.refunded_minor = (seen.refunded_minor - promised.amount_minor).max(0);
        }
        Ok(seen)
    }

    /// Why a refund will never be done, if that is so.
    pub(super) async fn ended_in_vain(
        &self,
        reference: &str,
        refund: &str,
    ) -> Result<Option<String>, GatewayError> {
        let refunds = self.refunds_of(reference).await?;
        let own = refunds.into_iter().find(|known| known.id == refund);
        let ended = own.filter(|own| matches!(own.status.as_deref(), Some("failed" | "canceled")));
        Ok(ended.map(|own| clip(&own.failure_reason.or(own.status).unwrap_or_default())))
    }

    /// All refunds of a payment. There are few: an order has no more seats than a hold, and one is open at a time.
    async fn refunds_of(&self, reference: &str) -> Result<Vec<RefundOfPayment>, GatewayError> {
        let query = [("payment_intent", reference.to_owned()), ("limit", PAGE_OBJECTS.to_string())];
        let reply = self.transport.get("/v1/refunds", &query, LIST_BYTES_MAX).await?;
        let list: List = objects::parse(&reply.done()?.body)?;
        if list.has_more {
            return Err(GatewayError::Misconfigured(format!("{reference} has more refunds than are read")));
        }
        list.data.into_iter().map(read).collect()
    }

    /// Refunds made within some seconds, after one of them.
    pub(crate) async fn list_refunds(
        &self,
        created: &Range<i64>,
        after: Option<&str>,
    ) -> Result<Page<ListedRefund>, GatewayError> {
        let page = self.list("/v1/refunds", created, after, None).await?;
        page.map(|(_, object)| {
            let refund: RefundObject = read(object)?;
            Ok(ListedRefund { reference: refund.payment_intent.map(Expandable::name) })
        })
    }

    /// Entries made within some seconds, after one of them.
    pub(crate) async fn list_balance(
        &self,
        created: &Range<i64>,
        after: Option<&str>,
    ) -> Result<Page<BalanceLine>, GatewayError> {
        let page = self.list("/v1/balance_transactions", created, after, Some("data.source")).await?;
        page.map(|(_, object)| line(read(object)?))
    }

    async fn list(
        &self,
        path: &str,
        created: &Range<i64>,
        after: Option<&str>,
        expand: Option<&str>,
    ) -> Result<Page<(String, Value)>, GatewayError> {
        let mut query = vec![
            ("created[gte]", created.start.to_string()),
            ("created[lt]", created.end.to_string()),
            ("limit", PAGE_OBJECTS.to_string()),
        ];
        query.extend(after.map(|name| ("starting_after", name.to_owned())));
        query.extend(expand.map(|member| ("expand[]", member.to_owned())));
        let reply = self.transport.get(path, &query, LIST_BYTES_MAX).await?;
        let list: List = objects::parse(&reply.done()?.body)?;
        let named = |object: Value| {
            let id = object.get("id").and_then(Value::as_str).map(str::to_owned);
            let id = id
                .ok_or_else(|| GatewayError::Misconfigured(format!("{path} has an object without a name")))?;
            Ok((id, object))
        };
        let found: Vec<(String, Value)> =
            list.data.into_iter().map(named).collect::<Result<_, GatewayError>>()?;
        let last = found.last().map(|(id, _)| id.clone());
        if list.has_more && last.is_none() {
            return Err(GatewayError::Misconfigured(format!("{path} has more, and nothing to go on from")));
        }
        Ok(Page { found, next: last.filter(|_| list.has_more) })
    }
}

impl<T> Page<T> {
    fn map<U>(self, read: impl FnMut(T) -> Result<U, GatewayError>) -> Result<Page<U>, GatewayError> {
        Ok(Page { found: self.found.into_iter().map(read).collect::<Result<_, _>>()?, next: self.next })
    }
}

fn read<T: DeserializeOwned>(object: Value) -> Result<T, GatewayError> {
    serde_json::from_value(object).map_err(|error| {
        GatewayError::Misconfigured(format!("an object can't be understood: {}", clip(&error.to_string())))
    })
}

fn line(object: BalanceObject) -> Result<BalanceLine, GatewayError> {
    let source = match object.source {
        Some(Expandable::Object(source)) => source.payment_intent,
        Some(Expandable::Name(_)) | None => None,
    };
    Ok(BalanceLine {
        amount: signed(object.amount, &object.currency)?,
        fee_minor: signed(object.fee, &object.currency)?.amount_minor,
        id: object.id,
        created_s: object.created,
        available_on_s: object.available_on,
        category: clip(&object.reporting_category),
        reference: source.map(Expandable::name),
    })
}

/// An amount that may be less than zero.
fn signed(amount: i64, currency: &str) -> Result<Money, GatewayError> {
    let mut money = amounts::to_ledger(amount.saturating_abs(), currency)?;
    money.amount_minor *= amount.signum();
    Ok(money)
}
