//! The seat map: a snapshot, and what changed since one. Both are hints; only a hold tells whether a seat is free.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, ETAG};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use onsale_core::id::{AreaNo, EventId};
use serde::Deserialize;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::App;
use crate::catalog::Sale;
use crate::seat_map::SeatMap;

use super::caller::PathId;
use super::extract::ApiQuery;
use super::manifest::matches_etag;
use super::problem::{Code, Problem};
use super::reasons::not_found;
use super::wire::sale::{AreaAvailableJson, SeatChangesJson, SeatsJson};

const CACHING: &str = "public, max-age=1, s-maxage=1, stale-while-revalidate=2, stale-if-error=30";

pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(get_seats))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Since {
    since: Option<u64>,
}

/// One digit for each seat, or what changed since a version.
#[utoipa::path(get, path = "/v1/events/{event_id}/seats", tag = "Buyer", security(()),
    params(("event_id" = String, Path), ("since" = Option<u64>, Query, description = "answer with the changes after this version")),
    responses((status = 200, description = "SeatsJson, or SeatChangesJson with `since`", body = SeatsJson),
        (status = 304), (status = 410, description = "gone: take a new snapshot")))]
async fn get_seats(
    State(app): State<Arc<App>>,
    PathId(id): PathId<EventId>,
    ApiQuery(query): ApiQuery<Since>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let sale = app.sale(id).await?.ok_or_else(not_found)?;
    if let Some(from) = query.since {
        let found =
            app.seat_map(id.event(), move |map| (map.version, map.since(from), free(&sale, map))).await?;
        let (version, changes, ga) = found.ok_or_else(not_found)?;
        let too_old =
            || Problem::new(Code::Gone, "That version is too old, or not known here: take a new snapshot.");
        let changes = changes.ok_or_else(too_old)?;
        let changes = changes.into_iter().map(|(seat, digit)| (seat.0, digit)).collect();
        let bookable = app.is_bookable(id.event());
        return Ok(Json(SeatChangesJson { from, version, changes, ga, bookable }).into_response());
    }
    let look = move |map: &mut SeatMap| (map.version, map.epoch, map.states(), free(&sale, map));
    let (version, epoch, states, ga) = app.seat_map(id.event(), look).await?.ok_or_else(not_found)?;
    let bookable = app.is_bookable(id.event());
    let etag = format!("W/\"{epoch}-{version}{}\"", if bookable { "" } else { "-away" });
    let caching = [(ETAG, etag.clone()), (CACHE_CONTROL, CACHING.to_owned())];
    if matches_etag(&headers, &etag) {
        return Ok((StatusCode::NOT_MODIFIED, caching).into_response());
    }
    let seats = SeatsJson { version, epoch, states: states.to_string(), ga, bookable };
    Ok((caching, Json(seats)).into_response())
}

/// How many places of each standing area anyone can have.
fn free(sale: &Sale, map: &SeatMap) -> Vec<AreaAvailableJson> {
    let areas = sale.manifest.iter().flat_map(|manifest| &manifest.view.manifest.ga_areas);
    let available = |position| map.places.available(AreaNo(position), sale.event.policy.ga_max);
    let areas = (0..).zip(areas);
    areas
        .map(|(position, area)| AreaAvailableJson {
            ga_area: area.ga_area.clone(),
            available: available(position),
        })
        .collect()
}
