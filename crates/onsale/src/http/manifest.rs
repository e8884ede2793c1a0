//! The manifest: put by an operator, read by anyone.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use onsale_core::command::{Command, Outcome};
use onsale_core::id::EventId;
use serde::Deserialize;
use serde_json::json;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::App;
use crate::manifest_import::{self, At, Fault, Format};

use super::caller::{Operator, PathId};
use super::extract::{ApiQuery, LimitedBytes};
use super::problem::{Code, Problem};
use super::reasons::{not_found, refused};
use super::wire::manifest::{ManifestJson, ManifestTakenJson};

/// Largest manifest taken: 200,000 seats of a pretix plan are about 20 MiB.
const MANIFEST_BYTES_MAX: usize = 32 * 1024 * 1024;

pub(crate) fn public_routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(get_manifest))
}

pub(crate) fn operator_routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(put_manifest))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    prefix_zones: Option<bool>,
}

/// Lays out an event's seats, all or nothing. Possible until the event is first opened.
#[utoipa::path(put, path = "/v1/events/{event_id}/manifest", tag = "Operator",
    params(("event_id" = String, Path), ("prefix_zones" = Option<bool>, Query, description = "make seat ids unique by their zone")),
    request_body(content = String, description = "a pretix seating plan or {sections, ga_areas} as application/json, or text/csv"),
    responses((status = 200, body = ManifestTakenJson), (status = 409, description = "manifest-frozen"), (status = 422, description = "every fault with its pointer or line")))]
async fn put_manifest(
    State(app): State<Arc<App>>,
    PathId(id): PathId<EventId>,
    _: Operator,
    ApiQuery(options): ApiQuery<Options>,
    headers: HeaderMap,
    LimitedBytes(body): LimitedBytes<MANIFEST_BYTES_MAX>,
) -> Result<Json<ManifestTakenJson>, Problem> {
    let format = format_of(&headers)?;
    app.sale(id).await?.ok_or_else(not_found)?;
    let prefix_zones = options.prefix_zones.unwrap_or(false);
    // Parsing a large plan takes a second of a core: not on a thread that answers others, and not many at once.
    let imported = app.heavy(move || manifest_import::import(format, &body, prefix_zones)).await?;
    let imported = imported.map_err(|faults| faulty(&faults))?;
    let manifest = Arc::new(imported.manifest);
    let command = Command::ReplaceManifest { event: id.event(), manifest: Arc::clone(&manifest) };
    match app.decide(command, None).await?.outcome {
        Outcome::ManifestReplaced { version } => Ok(Json(ManifestTakenJson {
            seats: manifest.seats.len(),
            ga_areas: manifest.ga_areas.len(),
            price_levels: manifest.price_levels.iter().map(|level| level.name.clone()).collect(),
            warnings: imported.warnings,
            version,
        })),
        Outcome::Refused(refusal) => Err(refused(&refusal)),
        other => unreachable!("a manifest is replaced or refused: {other:?}"),
    }
}

fn format_of(headers: &HeaderMap) -> Result<Format, Problem> {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        Ok(Format::Json)
    } else if essence.eq_ignore_ascii_case("text/csv") {
        Ok(Format::Csv)
    } else {
        Err(Problem::new(Code::UnsupportedMediaType, "A manifest is application/json or text/csv."))
    }
}

fn faulty(faults: &[Fault]) -> Problem {
    let errors: Vec<serde_json::Value> = faults
        .iter()
        .map(|fault| match &fault.at {
            At::Pointer(pointer) => json!({ "pointer": pointer, "detail": fault.detail }),
            At::Line(line) => json!({ "line": line, "detail": fault.detail }),
        })
        .collect();
    let detail = format!("The manifest has {} faults; nothing was changed.", faults.len());
    Problem::new(Code::ValidationFailed, detail).with("errors", errors)
}

/// The manifest with its prices.
#[utoipa::path(get, path = "/v1/events/{event_id}/manifest", tag = "Buyer", security(()), params(("event_id" = String, Path)),
    responses((status = 200, body = ManifestJson<'static>), (status = 304), (status = 404)))]
async fn get_manifest(
    State(app): State<Arc<App>>,
    PathId(id): PathId<EventId>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let sale = app.sale(id).await?.ok_or_else(not_found)?;
    let manifest = sale.manifest.clone().ok_or_else(not_found)?;
    let etag = format!("\"{}-{}\"", manifest.view.version, sale.event.price_version);
    let caching =
        [(ETAG, etag.clone()), (CACHE_CONTROL, "public, max-age=5, stale-while-revalidate=60".to_owned())];
    if matches_etag(&headers, &etag) {
        return Ok((StatusCode::NOT_MODIFIED, caching).into_response());
    }
    let text = app
        .heavy(move || {
            let view = &manifest.view;
            let currency = sale.event.currency.to_string();
            let (version, prices) = (sale.event.price_version, &sale.prices);
            let json =
                ManifestJson::of(id.to_string(), &currency, view.version, version, &view.manifest, prices);
            serde_json::to_vec(&json).unwrap_or_default()
        })
        .await?;
    let kind = [(CONTENT_TYPE, "application/json")];
    Ok((caching, kind, Bytes::from(text)).into_response())
}

/// Whether the client has this already (weak comparison, RFC 9110 13.1.2).
pub(super) fn matches_etag(headers: &HeaderMap, etag: &str) -> bool {
    let strong = etag.trim_start_matches("W/");
    let given = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    given
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .any(|tag| tag == "*" || tag.trim_start_matches("W/") == strong)
}
