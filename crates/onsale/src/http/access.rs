//! Allocations, seats set aside for them, and the access codes that open them or a presale.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use onsale_core::access::{AccessCode, Allocation};
use onsale_core::command::{Command, Outcome};
use onsale_core::id::{AllocationNo, EventId, EventNo};
use onsale_core::limits::TICKETS_PER_ACCOUNT_MAX;
use onsale_core::time::Timestamp;
use onsale_store::Reader;
use serde::Deserialize;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::App;

use super::caller::{Operator, PathId, ReportReader};
use super::events::{SeatsSetJson, named_seats, sale_with_seats};
use super::extract::{ApiJson, ApiQuery, LIST_BYTES_MAX};
use super::problem::{FieldError, Problem};
use super::reasons::{not_found, refused, refused_seats};
use super::wire::places::{
    AccessCodeJson, AccessCodesJson, AllocationJson, AllocationsJson, NewAccessCodeJson, NewAllocationJson,
    SeatsAsideJson,
};
use super::wire::{parse_time, rfc3339};

/// Longest name of an allocation.
const NAME_CHARS_MAX: usize = 200;
/// Access codes in one answer.
const CODES_SHOWN_MAX: u32 = 1_000;
/// Most tickets for one code: as many as all accounts of a large sale together would make no sense of counting.
const TICKETS_PER_CODE_MAX: u32 = 100 * TICKETS_PER_ACCOUNT_MAX;

pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list_allocations, make_allocation))
        .routes(routes!(set_aside))
        .routes(routes!(list_codes, set_code))
}

/// An event's allocations, by number and by name.
pub(super) struct Allocations(Vec<Allocation>);

pub(super) async fn allocations(app: &Arc<App>, no: EventNo) -> Result<Allocations, Problem> {
    Ok(Allocations(app.read(no, move |reader| reader.allocations(no)).await?))
}

impl Allocations {
    /// The number of a name, if one is given.
    pub(super) fn number(&self, name: Option<&str>) -> Result<Option<AllocationNo>, Problem> {
        let Some(name) = name else {
            return Ok(None);
        };
        let found = self.0.iter().find(|allocation| allocation.name == name);
        let unknown = || Problem::invalid("/allocation", "the event has no such allocation");
        found.map(|allocation| Some(allocation.no)).ok_or_else(unknown)
    }

    /// The name of a number.
    pub(super) fn of(&self, no: AllocationNo) -> Option<&str> {
        self.0.iter().find(|allocation| allocation.no == no).map(|allocation| allocation.name.as_str())
    }
}

/// The parties that seats and places may be set aside for.
#[utoipa::path(get, path = "/v1/events/{event_id}/allocations", tag = "Operator", params(("event_id" = String, Path)),
    responses((status = 200, body = AllocationsJson), (status = 404)))]
async fn list_allocations(
    State(app): State<Arc<App>>,
    PathId(id): PathId<EventId>,
    _: ReportReader,
) -> Result<Json<AllocationsJson>, Problem> {
    app.event(id).await?.ok_or_else(not_found)?;
    let Allocations(allocations) = allocations(&app, id.event()).await?;
    Ok(Json(AllocationsJson { allocations: allocations.into_iter().map(allocation_json).collect() }))
}

fn allocation_json(allocation: Allocation) -> AllocationJson {
    AllocationJson { name: allocation.name, created_at: rfc3339(allocation.created_at) }
}

/// Makes an allocation; again, if need be.
#[utoipa::path(post, path = "/v1/events/{event_id}/allocations", tag = "Operator", request_body = NewAllocationJson,
    params(("event_id" = String, Path)), responses((status = 201, body = AllocationJson), (status = 422)))]
async fn make_allocation(
    State(app): State<Arc<App>>,
    PathId(id): PathId<EventId>,
    Operator(key): Operator,
    ApiJson(body): ApiJson<NewAllocationJson>,
) -> Result<Response, Problem> {
    app.event(id).await?.ok_or_else(not_found)?;
    let name = body.name.trim();
    if name.is_empty() || name.chars().count() > NAME_CHARS_MAX || name.chars().any(char::is_control) {
        return Err(Problem::invalid("/name", format!("must be 1 to {NAME_CHARS_MAX} characters")));
    }
    let no = id.event();
    let command = Command::MakeAllocation { event: no, name: name.to_owned(), actor: key.to_string() };
    match app.decide(command, None).await?.outcome {
        Outcome::AllocationMade(made) => {
            let Allocations(allocations) = allocations(&app, no).await?;
            let made = allocations.into_iter().find(|allocation| allocation.no == made);
            let made = made.ok_or_else(not_found)?;
            Ok((StatusCode::CREATED, Json(allocation_json(made))).into_response())
        }
        Outcome::Refused(refusal) => Err(refused(&refusal)),
        other => unreachable!("an allocation is made or refused: {other:?}"),
    }
}

/// Sets seats aside for an allocation, or puts them on sale to all; all or none.
#[utoipa::path(put, path = "/v1/events/{event_id}/seats/allocation", tag = "Operator", request_body = SeatsAsideJson,
    params(("event_id" = String, Path)),
    responses((status = 200, body = SeatsSetJson), (status = 409, description = "seat-unavailable"), (status = 422)))]
async fn set_aside(
    State(app): State<Arc<App>>,
    PathId(id): PathId<EventId>,
    Operator(key): Operator,
    ApiJson(body): ApiJson<SeatsAsideJson, LIST_BYTES_MAX>,
) -> Result<Json<SeatsSetJson>, Problem> {
    let (_, manifest) = sale_with_seats(&app, id).await?;
    let seats = named_seats(&manifest, &body.seats, Vec::new())?;
    let allocation = allocations(&app, id.event()).await?.number(body.allocation.as_deref())?;
    let count = seats.len();
    let command = Command::SetSeatsAside {
        event: id.event(),
        manifest_version: manifest.view.version,
        seats,
        allocation,
        actor: key.to_string(),
    };
    match app.decide(command, None).await?.outcome {
        Outcome::SeatsSetAside => Ok(Json(SeatsSetJson { seats: count })),
        Outcome::Refused(refusal) => Err(refused_seats(&refusal, &manifest)),
        other => unreachable!("seats are set aside or refused: {other:?}"),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct After {
    after: Option<String>,
}

/// The access codes, with how much of each is used.
#[utoipa::path(get, path = "/v1/events/{event_id}/access-codes", tag = "Operator",
    params(("event_id" = String, Path), ("after" = Option<String>, Query, description = "those after this one")),
    responses((status = 200, body = AccessCodesJson), (status = 404)))]
async fn list_codes(
    State(app): State<Arc<App>>,
    PathId(id): PathId<EventId>,
    _: Operator,
    ApiQuery(query): ApiQuery<After>,
) -> Result<Json<AccessCodesJson>, Problem> {
    app.event(id).await?.ok_or_else(not_found)?;
    let no = id.event();
    let no_code = || Problem::invalid("/query/after", "must be a code");
    let after = query.after.map(|after| AccessCode::parse(&after).ok_or_else(no_code)).transpose()?;
    let look = move |reader: &Reader<'_>| {
        reader.access_codes(no, after.as_deref().unwrap_or_default(), CODES_SHOWN_MAX)
    };
    let codes = app.read(no, look).await?;
    let names = allocations(&app, no).await?;
    let next = codes.last().filter(|_| codes.len() == CODES_SHOWN_MAX as usize);
    let next = next.map(|code| code.code.to_string());
    let access_codes = codes.iter().map(|code| code_json(code, &names)).collect();
    Ok(Json(AccessCodesJson { access_codes, next }))
}

fn code_json(code: &AccessCode, names: &Allocations) -> AccessCodeJson {
    AccessCodeJson {
        code: code.code.to_string(),
        allocation: code.allocation.and_then(|no| names.of(no)).map(str::to_owned),
        presale: code.presale,
        tickets_max: code.tickets_max,
        tickets_in_use: code.tickets_in_use,
        valid_from: code.valid_from.map(rfc3339),
        valid_until: code.valid_until.map(rfc3339),
        revoked_at: code.revoked_at.map(rfc3339),
    }
}

/// Makes an access code, or changes it.
#[utoipa::path(put, path = "/v1/events/{event_id}/access-codes", tag = "Operator", request_body = NewAccessCodeJson,
    params(("event_id" = String, Path)), responses((status = 200, body = AccessCodeJson), (status = 409), (status = 422)))]
async fn set_code(
    State(app): State<Arc<App>>,
    PathId(id): PathId<EventId>,
    Operator(key): Operator,
    ApiJson(body): ApiJson<NewAccessCodeJson>,
) -> Result<Json<AccessCodeJson>, Problem> {
    app.event(id).await?.ok_or_else(not_found)?;
    let names = allocations(&app, id.event()).await?;
    let code = wanted(body, &names, app.now())?;
    let name = Arc::clone(&code.code);
    let command = Command::SetAccessCode { event: id.event(), code, actor: key.to_string() };
    match app.decide(command, None).await?.outcome {
        Outcome::AccessCodeSet => {}
        Outcome::Refused(refusal) => return Err(refused(&refusal)),
        other => unreachable!("a code is set or refused: {other:?}"),
    }
    let no = id.event();
    let code = app.read(no, move |reader| reader.access_code(no, &name)).await?.ok_or_else(not_found)?;
    Ok(Json(code_json(&code, &names)))
}

fn wanted(body: NewAccessCodeJson, names: &Allocations, now: Timestamp) -> Result<AccessCode, Problem> {
    let mut errors = Vec::new();
    let code = AccessCode::parse(&body.code);
    if code.is_none() {
        errors.push(FieldError::new("/code", "must be 4 to 64 letters, digits and hyphens"));
    }
    if !(1..=TICKETS_PER_CODE_MAX).contains(&body.tickets_max) {
        errors.push(FieldError::new("/tickets_max", format!("must be 1 to {TICKETS_PER_CODE_MAX}")));
    }
    let mut time = |pointer: &str, text: Option<String>| {
        let parsed = text.map(|text| parse_time(&text));
        if parsed == Some(None) {
            errors.push(FieldError::new(pointer, "must be a time in RFC 3339"));
        }
        parsed.flatten()
    };
    let valid_from = time("/valid_from", body.valid_from);
    let valid_until = time("/valid_until", body.valid_until);
    if valid_from.zip(valid_until).is_some_and(|(from, until)| until <= from) {
        errors.push(FieldError::new("/valid_until", "must be after valid_from"));
    }
    let presale = body.presale.unwrap_or(false);
    if body.allocation.is_none() && !presale {
        errors.push(FieldError::new("/allocation", "a code opens an allocation or a presale, or both"));
    }
    let (Some(code), true) = (code, errors.is_empty()) else {
        return Err(Problem::validation(errors));
    };
    Ok(AccessCode {
        code,
        allocation: names.number(body.allocation.as_deref())?,
        presale,
        tickets_max: body.tickets_max,
        tickets_in_use: 0,
        valid_from,
        valid_until,
        revoked_at: body.revoked.unwrap_or(false).then_some(now),
        created_at: now,
    })
}
