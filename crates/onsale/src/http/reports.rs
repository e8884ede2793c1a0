//! What an organiser counts afterwards: sales, settlements, and who comes. As JSON, and as CSV for spreadsheets.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use jiff::tz::TimeZone;
use onsale_core::id::{EventId, OrderId};
use onsale_core::ticket::Place;
use onsale_core::time::Timestamp;
use onsale_store::{Attendee, Named, Sales};
use serde::Deserialize;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::{App, AppError};
use crate::catalog::{ManifestIndex, Sale};

use super::caller::{Operator, PathId, ReportReader};
use super::csv::{self, Cell, head};
use super::extract::ApiQuery;
use super::problem::Problem;
use super::reasons::{not_found, not_one_of};
use super::wire::reports::{
    AttendeeJson, AttendeesJson, SalesReportJson, SalesRowJson, SettlementReportJson, SettlementRowJson,
};
use super::wire::rfc3339;

/// Orders in one page of attendees; an order may have many of them.
const ORDERS_IN_A_PAGE: u32 = 500;

pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(sales)).routes(routes!(settlement)).routes(routes!(attendees))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    by: Option<String>,
    format: Option<String>,
}

/// By what sales are added up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    PriceLevel,
    Day,
    Hour,
}

/// An instant as the day or the hour that it falls in at the venue. Hours carry their offset: one of them comes twice a year.
fn period(by: By, zone: &TimeZone, at: Timestamp) -> String {
    let at = jiff::Timestamp::from_millisecond(at.millis()).unwrap_or_default();
    let at = at.to_zoned_datetime(zone.clone());
    match by {
        By::PriceLevel => String::new(),
        By::Day => at.strftime("%Y-%m-%d").to_string(),
        By::Hour => at.strftime("%Y-%m-%dT%H:00%:z").to_string(),
    }
}

/// The venue's zone; its name was checked when the event was made, but another machine may not know it.
fn zone_of(sale: &Sale) -> TimeZone {
    TimeZone::get(&sale.event.timezone).unwrap_or(TimeZone::UTC)
}

/// Sales of confirmed orders, by price level, day or hour at the venue. What was given back since is told beside what was sold,
/// with the day it was sold on.
#[utoipa::path(get, path = "/v1/events/{event_id}/reports/sales", tag = "Operator",
    params(("event_id" = String, Path), ("by" = Option<String>, Query, description = "price_level, day or hour"),
        ("format" = Option<String>, Query, description = "json or csv; or Accept: text/csv")),
    responses((status = 200, body = SalesReportJson), (status = 404)))]
async fn sales(
    State(app): State<Arc<App>>,
    PathId(id): PathId<EventId>,
    _: ReportReader,
    ApiQuery(wanted): ApiQuery<Wanted>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (by, word) = match wanted.by.as_deref() {
        None | Some("price_level") => (By::PriceLevel, "price_level"),
        Some("day") => (By::Day, "day"),
        Some("hour") => (By::Hour, "hour"),
        Some(_) => {
            return Err(Problem::validation(vec![not_one_of("/query/by", &["price_level", "day", "hour"])]));
        }
    };
    let is_csv = csv::is_wanted(wanted.format.as_deref(), &headers)?;
    let sale = app.sale(id).await?.ok_or_else(not_found)?;
    let (home, zone) = (app.home_of(id.event())?, zone_of(&sale));
    let read = move |store: &onsale_store::Store| {
        store.read(|reader| reader.sales(id.event(), |at| period(by, &zone, at)))
    };
    let mut sums: BTreeMap<String, Sales> = BTreeMap::new();
    for ((period, level), sold) in app.heavy_at(home, read).await? {
        let name = match (by, &sale.manifest) {
            (By::PriceLevel, Some(manifest)) => manifest.price_level(level).to_owned(),
            (By::PriceLevel, None) => continue,
            (By::Day | By::Hour, _) => period,
        };
        let sum = sums.entry(name).or_default();
        sum.tickets += sold.tickets;
        sum.gross_minor += sold.gross_minor;
        sum.returned_tickets += sold.returned_tickets;
        sum.returned_minor += sold.returned_minor;
    }
    let currency = sale.event.currency.to_string();
    let rows = sums.into_iter().map(|(key, sum)| SalesRowJson {
        key,
        tickets: sum.tickets,
        gross_minor: sum.gross_minor,
        returned_tickets: sum.returned_tickets,
        returned_minor: sum.returned_minor,
        net_minor: sum.gross_minor - sum.returned_minor,
    });
    if !is_csv {
        let timezone = sale.event.timezone.clone();
        return Ok(
            Json(SalesReportJson { by: word, timezone, currency, rows: rows.collect() }).into_response()
        );
    }
    let columns =
        [word, "tickets", "gross_minor", "returned_tickets", "returned_minor", "net_minor", "currency"];
    let lines = rows.map(|row| {
        vec![
            Cell::text(row.key),
            Cell::Number(row.tickets as i64),
            Cell::Number(row.gross_minor),
            Cell::Number(row.returned_tickets as i64),
            Cell::Number(row.returned_minor),
            Cell::Number(row.net_minor),
            Cell::text(currency.clone()),
        ]
    });
    Ok(csv::answer(&format!("sales-{id}"), csv::lines(std::iter::once(head(&columns)).chain(lines))))
}

/// What the provider has settled of an event's payments, with its fees, by day at the venue. It is as new as the last comparison
/// of books.
#[utoipa::path(get, path = "/v1/events/{event_id}/reports/settlement", tag = "Operator",
    params(("event_id" = String, Path), ("by" = Option<String>, Query, description = "day"),
        ("format" = Option<String>, Query, description = "json or csv; or Accept: text/csv")),
    responses((status = 200, body = SettlementReportJson), (status = 404)))]
async fn settlement(
    State(app): State<Arc<App>>,
    PathId(id): PathId<EventId>,
    _: ReportReader,
    ApiQuery(wanted): ApiQuery<Wanted>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if wanted.by.as_deref().is_some_and(|by| by != "day") {
        return Err(Problem::validation(vec![not_one_of("/query/by", &["day"])]));
    }
    let is_csv = csv::is_wanted(wanted.format.as_deref(), &headers)?;
    let sale = app.sale(id).await?.ok_or_else(not_found)?;
    let (home, zone) = (app.home_of(id.event())?, zone_of(&sale));
    let read = move |store: &onsale_store::Store| {
        store.read(|reader| reader.settled(id.event(), |at| period(By::Day, &zone, at)))
    };
    let rows = app.heavy_at(home, read).await?.into_iter().map(|((day, currency), sum)| SettlementRowJson {
        day,
        currency,
        gross_minor: sum.gross_minor,
        refunds_minor: sum.refunds_minor,
        other_minor: sum.other_minor,
        fees_minor: sum.fees_minor,
        net_minor: sum.gross_minor - sum.refunds_minor + sum.other_minor - sum.fees_minor,
        lines: sum.lines,
    });
    if !is_csv {
        let timezone = sale.event.timezone.clone();
        return Ok(Json(SettlementReportJson { by: "day", timezone, rows: rows.collect() }).into_response());
    }
    let columns = [
        "day",
        "currency",
        "gross_minor",
        "refunds_minor",
        "other_minor",
        "fees_minor",
        "net_minor",
        "lines",
    ];
    let lines = rows.map(|row| {
        vec![
            Cell::text(row.day),
            Cell::text(row.currency),
            Cell::Number(row.gross_minor),
            Cell::Number(row.refunds_minor),
            Cell::Number(row.other_minor),
            Cell::Number(row.fees_minor),
            Cell::Number(row.net_minor),
            Cell::Number(row.lines as i64),
        ]
    });
    Ok(csv::answer(&format!("settlement-{id}"), csv::lines(std::iter::once(head(&columns)).chain(lines))))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    after: Option<String>,
    format: Option<String>,
}

const ATTENDEE_COLUMNS: [&str; 14] = [
    "order_id",
    "ticket_id",
    "seat_id",
    "ga_area",
    "email",
    "account_id",
    "order_status",
    "payment_status",
    "confirmed_at",
    "ticket_status",
    "generation",
    "inside",
    "admitted_at",
    "admitted_gate",
];

/// Who comes: each ticket, and each seat or place whose ticket is yet to be issued. JSON comes in pages, to be gone on with by
/// `after`; CSV comes whole. It has personal data, so it is for operators alone.
#[utoipa::path(get, path = "/v1/events/{event_id}/exports/attendees", tag = "Operator",
    params(("event_id" = String, Path), ("after" = Option<String>, Query, description = "next of the page before"),
        ("format" = Option<String>, Query, description = "json or csv; or Accept: text/csv")),
    responses((status = 200, body = AttendeesJson), (status = 404)))]
async fn attendees(
    State(app): State<Arc<App>>,
    PathId(id): PathId<EventId>,
    _: Operator,
    ApiQuery(page): ApiQuery<Page>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let is_csv = csv::is_wanted(page.format.as_deref(), &headers)?;
    let after = page.after.as_deref().map(|text| {
        let order = text.parse::<OrderId>().ok().filter(|order| order.event() == id.event());
        order.ok_or_else(|| Problem::invalid("/query/after", "must be the `next` of an earlier page"))
    });
    let after = after.transpose()?;
    let sale = app.sale(id).await?.ok_or_else(not_found)?;
    let Some(manifest) = sale.manifest.clone() else {
        // Nothing is laid out, so nothing can have been sold.
        let none = Json(AttendeesJson { attendees: Vec::new(), next: None });
        let only_head = || csv::answer(&format!("attendees-{id}"), csv::lines([head(&ATTENDEE_COLUMNS)]));
        return Ok(if is_csv { only_head() } else { none.into_response() });
    };
    if is_csv {
        let (pages, response) = csv::stream(&format!("attendees-{id}"));
        tokio::spawn(send(app, id, after, manifest, pages));
        return Ok(response);
    }
    let (found, next) = read_page(&app, id, after).await?;
    let attendees = found.into_iter().map(|attendee| attendee_json(attendee, &manifest)).collect();
    let mut response =
        Json(AttendeesJson { attendees, next: next.map(|order| order.to_string()) }).into_response();
    let no_store = axum::http::HeaderValue::from_static("no-store");
    response.headers_mut().insert(axum::http::header::CACHE_CONTROL, no_store);
    Ok(response)
}

async fn read_page(
    app: &Arc<App>,
    id: EventId,
    after: Option<OrderId>,
) -> Result<(Vec<Attendee>, Option<OrderId>), AppError> {
    let home = app.home_of(id.event())?;
    let read = move |store: &onsale_store::Store| {
        store.read(|reader| reader.attendees(id.event(), after, ORDERS_IN_A_PAGE))
    };
    app.heavy_at(home, read).await
}

/// Sends all pages, as fast as they are taken; ends when the client has gone.
async fn send(
    app: Arc<App>,
    id: EventId,
    mut after: Option<OrderId>,
    manifest: Arc<ManifestIndex>,
    pages: tokio::sync::mpsc::Sender<Result<Bytes, onsale_store::StoreError>>,
) {
    let mut first = true;
    loop {
        let (found, next) = match read_page(&app, id, after).await {
            Ok(page) => page,
            Err(error) => {
                let error = match error {
                    AppError::Store(error) => error,
                    other => onsale_store::StoreError::Away(other.to_string()),
                };
                let _ = pages.send(Err(error)).await;
                return;
            }
        };
        let rows = found.into_iter().map(|attendee| cells(attendee_json(attendee, &manifest)));
        let heading = first.then(|| head(&ATTENDEE_COLUMNS));
        first = false;
        let lines = csv::lines(heading.into_iter().chain(rows));
        if pages.send(Ok(lines.into())).await.is_err() {
            return;
        }
        match next {
            Some(next) => after = Some(next),
            None => return,
        }
    }
}

fn attendee_json(attendee: Attendee, manifest: &ManifestIndex) -> AttendeeJson {
    let (seat_id, ga_area) = match attendee.place {
        Place::Seat(ordinal) => (Some(manifest.seat_id(ordinal).to_owned()), None),
        Place::Area(area) => (None, Some(manifest.ga_area(area).to_owned())),
    };
    let ticket = attendee.ticket;
    AttendeeJson {
        order_id: attendee.order.to_string(),
        seat_id,
        ga_area,
        email: attendee.email,
        account_id: attendee.account.to_string(),
        order_status: attendee.order_status.word(),
        payment_status: attendee.payment_status.word(),
        confirmed_at: attendee.confirmed_at.map(rfc3339),
        ticket_id: ticket.as_ref().map(|ticket| ticket.id.to_string()),
        ticket_status: ticket.as_ref().map(|ticket| ticket.status.word()),
        generation: ticket.as_ref().map(|ticket| ticket.generation),
        inside: ticket.as_ref().is_some_and(|ticket| ticket.inside),
        admitted_at: ticket.as_ref().and_then(|ticket| ticket.admitted_at).map(rfc3339),
        admitted_gate: ticket.and_then(|ticket| ticket.admitted_gate),
    }
}

fn cells(row: AttendeeJson) -> Vec<Cell> {
    vec![
        Cell::text(row.order_id),
        Cell::or_empty(row.ticket_id),
        Cell::or_empty(row.seat_id),
        Cell::or_empty(row.ga_area),
        Cell::or_empty(row.email),
        Cell::text(row.account_id),
        Cell::text(row.order_status),
        Cell::text(row.payment_status),
        Cell::or_empty(row.confirmed_at),
        Cell::or_empty(row.ticket_status),
        row.generation.map_or(Cell::Empty, |generation| Cell::Number(generation.into())),
        Cell::text(if row.inside { "true" } else { "false" }),
        Cell::or_empty(row.admitted_at),
        Cell::or_empty(row.admitted_gate),
    ]
}
