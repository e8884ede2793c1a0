//! Events: making them, pricing them, opening and closing their sale, and what they add up to.

use std::cmp::Reverse;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use onsale_core::command::{Command, Outcome};
use onsale_core::event::{Event, EventStatus};
use onsale_core::id::{EventId, EventNo, SeatOrdinal, Seed};
use onsale_core::refusal::Refusal;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::App;
use crate::catalog::{ManifestIndex, Sale};
use crate::desk::HomeNo;
use crate::new_event;

use super::caller::{Operator, PathId, ReportReader};
use super::extract::{ApiJson, LIST_BYTES_MAX, OptionalIdempotencyKey};
use super::idempotency::{event_draw, mark};
use super::problem::{Code, FieldError, Problem};
use super::reasons::{nobody_answers, not_found, not_one_of, refused, refused_seats};
use super::wire::event::{
    EventJson, NewEventJson, OnSaleJson, PriceVersionJson, PricesJson, ReportJson, SeatsStatusJson,
};

/// Tries to draw an event number that isn't taken; with a thousand events one draw in 16,000 is.
const DRAWS_MAX: usize = 8;
/// Seats whose status is set in one request.
const SEATS_SET_MAX: usize = 10_000;

/// For everyone.
pub(crate) fn public_routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list_events)).routes(routes!(get_event))
}

/// For operators.
pub(crate) fn operator_routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(create_event))
        .routes(routes!(set_prices))
        .routes(routes!(set_on_sale))
        .routes(routes!(set_seats_status))
        .routes(routes!(get_report))
}

#[derive(Serialize, ToSchema)]
struct EventsJson {
    events: Vec<EventJson>,
}

/// All events, newest first. Drafts are shown to operators and readers alone.
#[utoipa::path(get, path = "/v1/events", tag = "Buyer", security(()), responses((status = 200, body = EventsJson)))]
async fn list_events(
    State(app): State<Arc<App>>,
    insider: Result<ReportReader, Problem>,
) -> Result<Json<EventsJson>, Problem> {
    let read = app.read_all(|reader| reader.events()).await?;
    let answered = |no| app.home_of(no).is_ok_and(|home| read.iter().any(|(read, _)| *read == home));
    // Of homes that are away there is what was seen of them before, and so there is of events on their way between two.
    let is_on_its_way = |no| app.homes.is_moving(no);
    let seen = app.followers.catalog.all_seen(|no| !answered(no) || is_on_its_way(no));
    if read.is_empty() && seen.is_empty() {
        return Err(nobody_answers());
    }
    let is_sorted = seen.is_empty() && read.len() == 1;
    let mut events = Vec::new();
    for (_, read) in read {
        app.followers.catalog.saw(&read);
        events.extend(read);
    }
    events.extend(seen);
    if !is_sorted {
        events.sort_by_key(|event| (Reverse(event.created_at), event.no()));
        // One that has just moved may have been seen at both, or read after all.
        events.dedup_by_key(|event| event.no());
    }
    let shown = events.iter().filter(|event| insider.is_ok() || event.status != EventStatus::Draft);
    Ok(Json(EventsJson { events: shown.map(|event| shown_as(&app, event)).collect() }))
}

/// An event with what this process knows of its home.
fn shown_as(app: &App, event: &Event) -> EventJson {
    let name = app.home_of(event.no()).map_or("", |home| &**app.name(home));
    EventJson::of(event, name, app.is_bookable(event.no()))
}

/// An event. While its database can't be reached, what was known last, with `bookable` false.
#[utoipa::path(get, path = "/v1/events/{event_id}", tag = "Buyer", security(()), params(("event_id" = String, Path)),
    responses((status = 200, body = EventJson), (status = 404)))]
async fn get_event(
    State(app): State<Arc<App>>,
    PathId(id): PathId<EventId>,
) -> Result<Json<EventJson>, Problem> {
    let event = app.event(id).await?.ok_or_else(not_found)?;
    Ok(Json(shown_as(&app, &event)))
}

/// Makes an event, as a draft. With an `Idempotency-Key`, once.
#[utoipa::path(post, path = "/v1/events", tag = "Operator", request_body = NewEventJson,
    params(("Idempotency-Key" = Option<String>, Header)), responses((status = 201, body = EventJson), (status = 422)))]
async fn create_event(
    State(app): State<Arc<App>>,
    Operator(by): Operator,
    OptionalIdempotencyKey(key): OptionalIdempotencyKey,
    ApiJson(body): ApiJson<NewEventJson>,
) -> Result<Response, Problem> {
    let home = match &body.home {
        Some(name) => app.named(name).ok_or_else(|| unknown_home(&app))?,
        None => HomeNo::MAIN,
    };
    for turn in 0..DRAWS_MAX {
        let (no, chance) = match &key {
            Some(key) => event_draw(by, key, turn),
            None => (EventNo(rand::random_range(1..=EventNo::MAX.0)), rand::random()),
        };
        let now = app.now();
        let id = Seed::new(no, now, chance).mint();
        let event = new_event::from_json(&body, id, now).map_err(Problem::validation)?;
        let answer =
            |event: Event| (StatusCode::CREATED, Json(shown_as(&app, &as_made(event)))).into_response();
        if enter(&app, no, home).await? {
            match app.decide(Command::CreateEvent(Box::new(event.clone())), None).await?.outcome {
                Outcome::EventCreated => return Ok(answer(event)),
                Outcome::Refused(Refusal::NotReady(_)) => {}
                other => unreachable!("an event is made or its number is taken: {other:?}"),
            }
        }
        let Some(made) = app.event_of(no).await? else {
            continue;
        };
        // All of an id but its time is drawn from the key: the number was taken by this very request.
        if key.is_some() && (made.id.0 ^ id.0) << 48 == 0 {
            let is_here = body.home.is_none() || app.home_of(no)? == home;
            let is_same =
                as_made(Event { id: made.id, created_at: made.created_at, ..event }) == as_made(made.clone());
            return if is_here && is_same {
                Ok(mark(answer(made), true))
            } else {
                Err(refused(&Refusal::KeyReused))
            };
        }
    }
    Err(Problem::new(Code::Internal, "No free event number was drawn."))
}

fn unknown_home(app: &App) -> Problem {
    let names: Vec<&str> = app.all().map(|home| &**app.name(home)).collect();
    Problem::invalid("/home", format!("must be the name of a home: {}", names.join(", ")))
}

/// Enters a number in the directory for an event that is yet to be made; false when it is another home's already.
async fn enter(app: &Arc<App>, no: EventNo, home: HomeNo) -> Result<bool, Problem> {
    if !app.has_homes() {
        return Ok(true);
    }
    // Another process may have entered it a moment ago.
    app.refresh_directory().await?;
    let there = app.home_of(no)?;
    if there == home {
        return Ok(true);
    }
    // What isn't in the directory is at the main home, if it is anywhere.
    if there != HomeNo::MAIN || app.event_of(no).await?.is_some() {
        return Ok(false);
    }
    let shared = Arc::clone(app);
    app.look_at(HomeNo::MAIN, move |_| shared.homes.enter(no, &shared.homes.all()[home.0])).await?;
    Ok(app.home_of(no)? == home)
}

/// An event as it was when it was made, whatever has become of it since.
fn as_made(event: Event) -> Event {
    Event {
        status: EventStatus::Draft,
        clock: event.created_at,
        version: 1,
        manifest_version: 0,
        seat_count: 0,
        price_level_count: 0,
        price_version: 0,
        payment_pending: 0,
        area_count: 0,
        ga_in_use: 0,
        allocation_count: 0,
        ..event
    }
}

pub(super) async fn sale_with_seats(
    app: &Arc<App>,
    id: EventId,
) -> Result<(Arc<Sale>, Arc<ManifestIndex>), Problem> {
    let sale = app.sale(id).await?.ok_or_else(not_found)?;
    let missing = || Problem::new(Code::ActionNotPossible, "The event has no seats: put a manifest first.");
    let manifest = sale.manifest.clone().ok_or_else(missing)?;
    Ok((sale, manifest))
}

/// Sets prices, as a new version. Holds in hand keep the prices they were promised, or are told.
#[utoipa::path(put, path = "/v1/events/{event_id}/prices", tag = "Operator", request_body = PricesJson,
    params(("event_id" = String, Path)), responses((status = 200, body = PriceVersionJson), (status = 422)))]
async fn set_prices(
    State(app): State<Arc<App>>,
    PathId(id): PathId<EventId>,
    _: Operator,
    ApiJson(body): ApiJson<PricesJson>,
) -> Result<Json<PriceVersionJson>, Problem> {
    let (sale, manifest) = sale_with_seats(&app, id).await?;
    let levels = new_event::price_levels(
        &manifest.view.manifest,
        sale.event.currency,
        body.price_levels.iter().map(|price| (price.price_level.as_str(), price.amount_minor)),
    );
    let levels = levels.map_err(Problem::validation)?;
    let command = Command::SetPrices { event: id.event(), manifest_version: manifest.view.version, levels };
    match app.decide(command, None).await?.outcome {
        Outcome::PricesSet { price_version } => Ok(Json(PriceVersionJson { price_version })),
        Outcome::Refused(refusal) => Err(refused(&refusal)),
        other => unreachable!("prices are set or refused: {other:?}"),
    }
}

/// Opens, halts or closes the sale.
#[utoipa::path(put, path = "/v1/events/{event_id}/on-sale", tag = "Operator", request_body = OnSaleJson,
    params(("event_id" = String, Path)), responses((status = 200, body = EventJson), (status = 409)))]
async fn set_on_sale(
    State(app): State<Arc<App>>,
    PathId(id): PathId<EventId>,
    Operator(key): Operator,
    ApiJson(body): ApiJson<OnSaleJson>,
) -> Result<Json<EventJson>, Problem> {
    let status = match body.state.as_str() {
        "open" => EventStatus::Open,
        "paused" => EventStatus::Paused,
        "closed" => EventStatus::Closed,
        _ => return Err(Problem::validation(vec![not_one_of("/state", &["open", "paused", "closed"])])),
    };
    app.sale(id).await?.ok_or_else(not_found)?;
    let command = Command::SetOnSale { event: id.event(), status, actor: key.to_string() };
    match app.decide(command, None).await?.outcome {
        Outcome::OnSaleSet => {
            let event = app.event(id).await?.ok_or_else(not_found)?;
            Ok(Json(shown_as(&app, &event)))
        }
        Outcome::Refused(refusal) => Err(refused(&refusal)),
        other => unreachable!("a sale's state is set or refused: {other:?}"),
    }
}

#[derive(Serialize, ToSchema)]
pub(super) struct SeatsSetJson {
    pub(super) seats: usize,
}

/// Keeps seats from sale, or puts them on sale; all or none.
#[utoipa::path(put, path = "/v1/events/{event_id}/seats/status", tag = "Operator", request_body = SeatsStatusJson,
    params(("event_id" = String, Path)), responses((status = 200, body = SeatsSetJson), (status = 409, description = "seat-unavailable")))]
async fn set_seats_status(
    State(app): State<Arc<App>>,
    PathId(id): PathId<EventId>,
    Operator(key): Operator,
    ApiJson(body): ApiJson<SeatsStatusJson, LIST_BYTES_MAX>,
) -> Result<Json<SeatsSetJson>, Problem> {
    let mut errors = Vec::new();
    let not_for_sale = match body.status.as_str() {
        "NOT_FOR_SALE" => true,
        "AVAILABLE" => false,
        _ => {
            errors.push(not_one_of("/status", &["NOT_FOR_SALE", "AVAILABLE"]));
            false
        }
    };
    let (_, manifest) = sale_with_seats(&app, id).await?;
    let seats = named_seats(&manifest, &body.seats, errors)?;
    let count = seats.len();
    let command = Command::SetSeatsStatus {
        event: id.event(),
        manifest_version: manifest.view.version,
        seats,
        not_for_sale,
        actor: key.to_string(),
    };
    match app.decide(command, None).await?.outcome {
        Outcome::SeatsStatusSet => Ok(Json(SeatsSetJson { seats: count })),
        Outcome::Refused(refusal) => Err(refused_seats(&refusal, &manifest)),
        other => unreachable!("seats are set or refused: {other:?}"),
    }
}

/// The ordinals of seats that an operator names, ascending, beside faults that were found before.
pub(super) fn named_seats(
    manifest: &ManifestIndex,
    names: &[String],
    mut errors: Vec<FieldError>,
) -> Result<Vec<SeatOrdinal>, Problem> {
    if names.is_empty() || names.len() > SEATS_SET_MAX {
        errors.push(FieldError::new("/seats", format!("name 1 to {SEATS_SET_MAX} seats")));
    }
    let mut seats: Vec<SeatOrdinal> = Vec::with_capacity(names.len());
    for (index, name) in names.iter().enumerate() {
        match manifest.ordinal(name) {
            Some(ordinal) => seats.push(ordinal),
            None => errors.push(FieldError::new(format!("/seats/{index}"), "the event has no such seat")),
        }
    }
    if !errors.is_empty() {
        return Err(Problem::validation(errors));
    }
    seats.sort_unstable();
    seats.dedup();
    Ok(seats)
}

/// Counts and money.
#[utoipa::path(get, path = "/v1/events/{event_id}/report", tag = "Operator", params(("event_id" = String, Path)),
    responses((status = 200, body = ReportJson), (status = 404)))]
async fn get_report(
    State(app): State<Arc<App>>,
    PathId(id): PathId<EventId>,
    _: ReportReader,
) -> Result<Json<ReportJson>, Problem> {
    let sale = app.sale(id).await?.ok_or_else(not_found)?;
    let home = app.home_of(id.event())?;
    let report = app.heavy_at(home, move |store| store.read(|reader| reader.report(id.event()))).await?;
    Ok(Json(ReportJson {
        available: report.available,
        held: report.held,
        sold: report.sold,
        not_for_sale: report.not_for_sale,
        orders: report.orders_confirmed,
        orders_awaiting_payment: report.orders_awaiting_payment,
        orders_cancelled: report.orders_cancelled,
        orders_expired: report.orders_expired,
        gross_minor: report.gross_minor,
        captured_minor: report.captured_minor,
        returning_minor: report.returning_minor,
        refunded_minor: report.refunded_minor,
        currency: sale.event.currency.to_string(),
        ga_capacity: report.ga_capacity,
        ga_held: report.ga_held,
        ga_sold: report.ga_sold,
        tickets_issued: report.tickets_issued,
        tickets_admitted: report.tickets_admitted,
        cases_open: report.cases_open,
    }))
}
