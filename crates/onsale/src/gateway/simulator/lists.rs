//! The provider's lists: newest first, a page at a time; and single events, which are looked up like one.

use std::sync::Arc;

use super::balance::{self, Entry};
use super::books::Books;
use super::calls::{Paging, expand_one, paging};
use super::error::ApiError;
use super::events::{Event, Wanted};
use super::form::Form;
use super::intent::{Intent, Refund};
use super::objects::{self, Page};
use super::server::Shared;

/// `GET /v1/payment_intents`.
pub(super) fn intents(shared: &Shared, query: Form, url: &str) -> Result<Vec<u8>, ApiError> {
    let query = query.only("created expand limit starting_after")?;
    let (paging, expand) = (paging(&query)?, expand_one(&query, "data.latest_charge")?);
    let (found, has_more) = shared.transact(|books, _| page_of_intents(books, &paging)).0?;
    let base = &*shared.authentication_base;
    let data = found.iter().map(|intent| objects::intent(intent, expand, base)).collect();
    Ok(objects::render(&Page { object: "list", url, has_more, data }))
}

/// Intents are kept in order of `created`, so both ends of the page are found by halving.
fn page_of_intents(books: &Books, paging: &Paging<'_>) -> Result<(Vec<Arc<Intent>>, bool), ApiError> {
    let created_before = |second| books.intents.partition_point(|intent| intent.origin.created < second);
    let mut end = created_before(paging.created.end);
    if let Some(id) = paging.starting_after {
        let place = books.find(id).map(|(place, _)| place);
        end = end.min(place.ok_or_else(|| ApiError::no_such(400, "payment_intent", id, "starting_after"))?);
    }
    let start = created_before(paging.created.start).min(end);
    let first = end.saturating_sub(paging.limit).max(start);
    Ok((books.intents[first..end].iter().rev().cloned().collect(), first > start))
}

/// `GET /v1/refunds`.
pub(super) fn refunds(shared: &Shared, query: Form, url: &str) -> Result<Vec<u8>, ApiError> {
    let query = query.only("created limit payment_intent starting_after")?;
    let paging = paging(&query)?;
    let found = shared.transact(|books, _| match query.get("payment_intent") {
        Some(id) => {
            let place = books.find(id).map(|(place, _)| place);
            let place =
                place.ok_or_else(|| ApiError::no_such(404, "payment_intent", id, "payment_intent"))?;
            let of_intent = books.refunds_of_intent.get(&place).map_or(&[][..], Vec::as_slice);
            page(of_intent.iter().rev().map(|place| &books.refunds[*place]), &paging)
        }
        None => page(books.refunds.iter().rev(), &paging),
    });
    let (found, has_more) = found.0?;
    let data = found.iter().map(|refund| objects::refund(refund)).collect();
    Ok(objects::render(&Page { object: "list", url, has_more, data }))
}

/// `GET /v1/balance_transactions`.
pub(super) fn balance(shared: &Shared, query: Form, url: &str) -> Result<Vec<u8>, ApiError> {
    let query = query.only("created expand limit starting_after")?;
    let (paging, expand) = (paging(&query)?, expand_one(&query, "data.source")?);
    let (found, has_more) = shared.transact(|books, _| page(books.balance.iter().rev(), &paging)).0?;
    let data = found.iter().map(|entry| balance::object(entry, expand)).collect();
    Ok(objects::render(&Page { object: "list", url, has_more, data }))
}

/// `GET /v1/events`.
pub(super) fn events(shared: &Shared, query: Form, url: &str) -> Result<Vec<u8>, ApiError> {
    let query = query.only("created limit starting_after type types")?;
    let paging = paging(&query)?;
    let types: Vec<&str> = query.get("type").into_iter().chain(query.list("types")).collect();
    let wanted = |event: &&Arc<Event>| types.is_empty() || types.contains(&event.transition.event_type());
    let found = shared.transact(|books, _| page(books.events.newest_first().filter(wanted), &paging));
    let (found, has_more) = found.0?;
    let base = &*shared.authentication_base;
    let data = found.iter().map(|event| objects::event(event, base)).collect();
    Ok(objects::render(&Page { object: "list", url, has_more, data }))
}

/// `GET /v1/events/{id}`.
pub(super) fn event(shared: &Shared, id: &str) -> Result<Vec<u8>, ApiError> {
    let wanted = Wanted { event_id: Some(id), ..Wanted::default() };
    let event = shared.transact(|books, _| books.events.latest(&wanted)).0;
    let event = event.ok_or_else(|| ApiError::no_such(404, "event", id, "id"))?;
    Ok(objects::render(&objects::event(&event, &shared.authentication_base)))
}

/// What a list can hold.
trait Listed {
    fn id(&self) -> &str;
    fn created(&self) -> i64;
}

impl Listed for Refund {
    fn id(&self) -> &str {
        &self.id
    }
    fn created(&self) -> i64 {
        self.created
    }
}

impl Listed for Entry {
    fn id(&self) -> &str {
        &self.id
    }
    fn created(&self) -> i64 {
        self.created
    }
}

impl Listed for Event {
    fn id(&self) -> &str {
        &self.id
    }
    fn created(&self) -> i64 {
        self.created
    }
}

/// A page by scanning, for lists that nothing reads while a sale runs.
fn page<'a, T: Listed + 'a>(
    newest_first: impl Iterator<Item = &'a Arc<T>>,
    paging: &Paging<'_>,
) -> Result<(Vec<Arc<T>>, bool), ApiError> {
    let mut items = newest_first;
    if let Some(id) = paging.starting_after
        && !items.any(|item| item.id() == id)
    {
        return Err(ApiError::no_such(400, "object", id, "starting_after"));
    }
    let mut found: Vec<_> = items
        .filter(|item| paging.created.contains(&item.created()))
        .take(paging.limit + 1)
        .cloned()
        .collect();
    let has_more = found.len() > paging.limit;
    found.truncate(paging.limit);
    Ok((found, has_more))
}
