//! Other systems that are told what happens: made, watched and brought back by operators.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use onsale_core::id::{EndpointId, EventNo, MessageId};
use onsale_core::time::Timestamp;
use onsale_store::{
    DeliveryStatus, DeliveryView, EndpointStatus, Named, OpenDeliveries, WEBHOOK_ENDPOINTS_MAX,
    WebhookEndpoint,
};
use serde::Deserialize;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::App;
use crate::desk::HomeNo;
use crate::webhooks::message::{TYPES, type_of};
use crate::webhooks::sign::{new_secret, secret_text};
use crate::webhooks::{BOTH_SECRETS_MS, DELIVERED_KEPT_MS};

use super::caller::{Operator, PathId, ReportReader};
use super::extract::{ApiJson, ApiQuery};
use super::problem::{Code, FieldError, Problem};
use super::reasons::{not_found, not_one_of};
use super::wire::webhooks::{
    DeliveriesJson, DeliveryJson, EndpointJson, EndpointsJson, NewEndpointJson, ReplayJson, ReplayedJson,
};
use super::wire::{parse_time, rfc3339};

/// Deliveries in one answer, the latest first.
const DELIVERIES_SHOWN_MAX: u32 = 1_000;
const DELIVERIES_SHOWN: u32 = 100;

pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(create_endpoint, list_endpoints))
        .routes(routes!(show_endpoint, delete_endpoint))
        .routes(routes!(enable_endpoint))
        .routes(routes!(rotate_secret))
        .routes(routes!(replay))
        .routes(routes!(list_deliveries))
}

/// Makes an endpoint. It is told what happens from now on. Its secret is shown this once.
#[utoipa::path(post, path = "/v1/webhook-endpoints", tag = "Operator", request_body = NewEndpointJson,
    responses((status = 201, body = EndpointJson)))]
async fn create_endpoint(
    State(app): State<Arc<App>>,
    Operator(by): Operator,
    ApiJson(body): ApiJson<NewEndpointJson>,
) -> Result<(StatusCode, Json<EndpointJson>), Problem> {
    let mut faults = faulty_types(&body.types);
    if let Err(error) = app.webhooks.sender.check(&body.url).await {
        faults.push(FieldError::new("/url", error.to_string()));
    }
    if !faults.is_empty() {
        return Err(Problem::validation(faults));
    }
    let now = app.now();
    let id: EndpointId = app.seed(EventNo::HOUSE).mint();
    let endpoint = WebhookEndpoint {
        id,
        url: body.url,
        types: body.types,
        secret: new_secret(),
        secret_before: None,
        status: EndpointStatus::Enabled,
        created_at: now,
        enabled_at: now,
        disabled_at: None,
        disabled_reason: None,
    };
    if !app.homes.main().add_webhook_endpoint(endpoint.clone()).await? {
        let detail = format!("There are {WEBHOOK_ENDPOINTS_MAX} endpoints already; delete one first.");
        return Err(Problem::new(Code::ActionNotPossible, detail));
    }
    tracing::info!(endpoint.id = %id, actor = %by, "Made webhook endpoint {id}");
    let secret = Some(secret_text(&endpoint.secret));
    Ok((StatusCode::CREATED, Json(EndpointJson { secret, ..endpoint_json(endpoint, &[], now) })))
}

/// Every type that is none, or is named twice.
fn faulty_types(types: &[String]) -> Vec<FieldError> {
    let names: BTreeSet<&str> = TYPES.iter().map(|(name, _)| *name).collect();
    // More than there are can only be wrong, and must not make the answer longer than need be.
    if types.is_empty() || types.len() > names.len() {
        let detail = format!("must name 1 to {} types", names.len());
        return vec![FieldError::new("/types", detail)];
    }
    let (mut seen, mut faults) = (BTreeSet::new(), Vec::new());
    for (at, name) in types.iter().enumerate() {
        let pointer = format!("/types/{at}");
        if !names.contains(name.as_str()) {
            faults.push(not_one_of(&pointer, &names.iter().copied().collect::<Vec<_>>()));
        } else if !seen.insert(name) {
            faults.push(FieldError::new(pointer, "is named twice"));
        }
    }
    faults
}

/// All endpoints, the oldest first.
#[utoipa::path(get, path = "/v1/webhook-endpoints", tag = "Operator", responses((status = 200, body = EndpointsJson)))]
async fn list_endpoints(
    State(app): State<Arc<App>>,
    _: ReportReader,
) -> Result<Json<EndpointsJson>, Problem> {
    let (now, open) = (app.now(), open_everywhere(&app).await?);
    let endpoints = read_endpoints(&app).await?.into_iter();
    let endpoints = endpoints.map(|endpoint| endpoint_json(endpoint, &open, now)).collect();
    Ok(Json(EndpointsJson { endpoints }))
}

/// An endpoint, with what waits for it.
#[utoipa::path(get, path = "/v1/webhook-endpoints/{endpoint_id}", tag = "Operator", params(("endpoint_id" = String, Path)),
    responses((status = 200, body = EndpointJson), (status = 404)))]
async fn show_endpoint(
    State(app): State<Arc<App>>,
    PathId(id): PathId<EndpointId>,
    _: ReportReader,
) -> Result<Json<EndpointJson>, Problem> {
    shown(&app, id).await.map(Json)
}

/// Deletes an endpoint with all that is there for it. What is on its way at this moment may still arrive.
#[utoipa::path(delete, path = "/v1/webhook-endpoints/{endpoint_id}", tag = "Operator", params(("endpoint_id" = String, Path)),
    responses((status = 204), (status = 404)))]
async fn delete_endpoint(
    State(app): State<Arc<App>>,
    PathId(id): PathId<EndpointId>,
    Operator(by): Operator,
) -> Result<StatusCode, Problem> {
    if !app.homes.main().delete_webhook_endpoint(id, app.now()).await? {
        return Err(not_found());
    }
    tracing::info!(endpoint.id = %id, actor = %by, "Deleted webhook endpoint {id}");
    Ok(StatusCode::NO_CONTENT)
}

/// Enables an endpoint that was disabled. It is told what it has missed, from where it stopped.
#[utoipa::path(post, path = "/v1/webhook-endpoints/{endpoint_id}/enable", tag = "Operator",
    params(("endpoint_id" = String, Path)), responses((status = 200, body = EndpointJson), (status = 404)))]
async fn enable_endpoint(
    State(app): State<Arc<App>>,
    PathId(id): PathId<EndpointId>,
    Operator(by): Operator,
) -> Result<Json<EndpointJson>, Problem> {
    if !app.homes.main().enable_webhook_endpoint(id, app.now()).await? {
        return Err(not_found());
    }
    tracing::info!(endpoint.id = %id, actor = %by, "Enabled webhook endpoint {id}");
    shown(&app, id).await.map(Json)
}

/// Gives an endpoint a new secret, shown this once. For a day messages are signed with the one before, too.
#[utoipa::path(post, path = "/v1/webhook-endpoints/{endpoint_id}/secret", tag = "Operator",
    params(("endpoint_id" = String, Path)), responses((status = 200, body = EndpointJson), (status = 404)))]
async fn rotate_secret(
    State(app): State<Arc<App>>,
    PathId(id): PathId<EndpointId>,
    Operator(by): Operator,
) -> Result<Json<EndpointJson>, Problem> {
    let fresh = new_secret();
    let until = app.now().plus_ms(BOTH_SECRETS_MS);
    if !app.homes.main().rotate_webhook_secret(id, fresh.clone(), until).await? {
        return Err(not_found());
    }
    tracing::info!(endpoint.id = %id, actor = %by, "Changed the secret of webhook endpoint {id}");
    Ok(Json(EndpointJson { secret: Some(secret_text(&fresh)), ..shown(&app, id).await? }))
}

/// Sends again what was delivered: one message, or everything since a time. The ids stay, so that a receiver that has them knows.
#[utoipa::path(post, path = "/v1/webhook-endpoints/{endpoint_id}/replay", tag = "Operator", request_body = ReplayJson,
    params(("endpoint_id" = String, Path)), responses((status = 202, body = ReplayedJson), (status = 404)))]
async fn replay(
    State(app): State<Arc<App>>,
    PathId(id): PathId<EndpointId>,
    Operator(by): Operator,
    ApiJson(body): ApiJson<ReplayJson>,
) -> Result<(StatusCode, Json<ReplayedJson>), Problem> {
    let endpoint = find(&app, id).await?;
    let replayed = match (body.since, body.webhook_id) {
        (Some(since), None) => {
            let since =
                parse_time(&since).ok_or_else(|| Problem::invalid("/since", "must be a time in RFC 3339"))?;
            replay_since(&app, &endpoint, since).await?
        }
        (None, Some(message)) => {
            let message: MessageId = message
                .parse()
                .map_err(|_| Problem::invalid("/webhook_id", "must be the webhook-id of a message, msg_…"))?;
            replay_one(&app, id, message).await?;
            1
        }
        _ => return Err(Problem::invalid("", "give either since or webhook_id")),
    };
    tracing::info!(endpoint.id = %id, actor = %by, replayed, "Replays messages to webhook endpoint {id}");
    Ok((StatusCode::ACCEPTED, Json(ReplayedJson { replayed })))
}

async fn replay_since(app: &Arc<App>, endpoint: &WebhookEndpoint, since: Timestamp) -> Result<u64, Problem> {
    let now = app.now();
    let kept_since = now.plus_ms(-DELIVERED_KEPT_MS);
    if since < kept_since && endpoint.created_at < kept_since {
        let detail =
            format!("must not be before {}: what was delivered is kept for 3 days", rfc3339(kept_since));
        return Err(Problem::invalid("/since", detail));
    }
    let mut replayed = 0;
    // Where one is away the caller hears it, and asks again; what was made due until then only comes sooner.
    for home in app.all() {
        replayed += app.store(home).replay_webhooks(endpoint.id, since, now).await?;
    }
    Ok(replayed)
}

async fn replay_one(app: &Arc<App>, id: EndpointId, message: MessageId) -> Result<(), Problem> {
    let now = app.now();
    for home in app.all() {
        // Homes at which the event isn't don't have it.
        if app.store(home).replay_webhook(id, message, now).await? {
            return Ok(());
        }
    }
    Err(Problem::invalid("/webhook_id", "no such message of this endpoint is kept"))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Filter {
    status: Option<String>,
    limit: Option<u32>,
}

/// Deliveries to an endpoint, the latest first. Those that have arrived are shown for three days.
#[utoipa::path(get, path = "/v1/webhook-endpoints/{endpoint_id}/deliveries", tag = "Operator",
    params(("endpoint_id" = String, Path), ("status" = Option<String>, Query, description = "PENDING, DELIVERED or FAILED"),
        ("limit" = Option<u32>, Query, description = "1 to 1000; 100 unless given")),
    responses((status = 200, body = DeliveriesJson), (status = 404)))]
async fn list_deliveries(
    State(app): State<Arc<App>>,
    PathId(id): PathId<EndpointId>,
    _: ReportReader,
    ApiQuery(filter): ApiQuery<Filter>,
) -> Result<Json<DeliveriesJson>, Problem> {
    let status = match filter.status.as_deref().map(DeliveryStatus::of).transpose() {
        Ok(status) => status,
        Err(_) => {
            let words = ["PENDING", "DELIVERED", "FAILED"];
            return Err(Problem::validation(vec![not_one_of("/query/status", &words)]));
        }
    };
    let limit = filter.limit.unwrap_or(DELIVERIES_SHOWN);
    if !(1..=DELIVERIES_SHOWN_MAX).contains(&limit) {
        return Err(Problem::invalid("/query/limit", format!("must be 1 to {DELIVERIES_SHOWN_MAX}")));
    }
    find(&app, id).await?;
    let read = app.read_all(move |reader| reader.webhook_deliveries(id, status, limit)).await?;
    let mut views: Vec<DeliveryView> = read.into_iter().flat_map(|(_, views)| views).collect();
    // Each home's are in this order already.
    views.sort_by_key(|view| Reverse((view.entry.at, view.key.event, view.key.version)));
    views.truncate(limit as usize);
    Ok(Json(DeliveriesJson { deliveries: views.into_iter().map(delivery_json).collect() }))
}

fn delivery_json(view: DeliveryView) -> DeliveryJson {
    DeliveryJson {
        webhook_id: view.message.to_string(),
        kind: type_of(&view.entry.kind).unwrap_or(view.entry.kind.as_str()),
        timestamp: rfc3339(view.entry.at),
        order_id: view.entry.kind.order().map(|order| order.to_string()),
        status: view.status.word(),
        tries: view.tries,
        next_try_at: (view.status == DeliveryStatus::Pending).then(|| rfc3339(view.due_at)),
        updated_at: rfc3339(view.updated_at),
        last_status: (view.last_status > 0).then_some(view.last_status),
        last_error: (!view.last_error.is_empty()).then_some(view.last_error),
    }
}

/// The endpoints that are not deleted.
async fn read_endpoints(app: &Arc<App>) -> Result<Vec<WebhookEndpoint>, Problem> {
    let mut endpoints = app.read_at(HomeNo::MAIN, |reader| reader.webhook_endpoints()).await?;
    app.webhooks.learn(endpoints.clone());
    endpoints.retain(|endpoint| endpoint.status != EndpointStatus::Deleted);
    Ok(endpoints)
}

async fn find(app: &Arc<App>, id: EndpointId) -> Result<WebhookEndpoint, Problem> {
    read_endpoints(app).await?.into_iter().find(|endpoint| endpoint.id == id).ok_or_else(not_found)
}

async fn shown(app: &Arc<App>, id: EndpointId) -> Result<EndpointJson, Problem> {
    let endpoint = find(app, id).await?;
    Ok(endpoint_json(endpoint, &open_everywhere(app).await?, app.now()))
}

/// What is left to deliver, at every home that can be read.
async fn open_everywhere(app: &Arc<App>) -> Result<Vec<OpenDeliveries>, Problem> {
    let read = app.read_all(|reader| reader.open_webhooks()).await?;
    Ok(read.into_iter().flat_map(|(_, open)| open).collect())
}

fn endpoint_json(endpoint: WebhookEndpoint, open: &[OpenDeliveries], now: Timestamp) -> EndpointJson {
    let its = || open.iter().filter(|open| open.endpoint == endpoint.id);
    EndpointJson {
        endpoint_id: endpoint.id.to_string(),
        undelivered: its().map(|open| open.count).sum(),
        oldest_undelivered_at: its().map(|open| open.oldest).min().map(rfc3339),
        url: endpoint.url,
        types: endpoint.types,
        status: endpoint.status.word(),
        created_at: rfc3339(endpoint.created_at),
        enabled_at: rfc3339(endpoint.enabled_at),
        disabled_at: endpoint.disabled_at.map(rfc3339),
        disabled_reason: endpoint.disabled_reason,
        secret: None,
        both_secrets_until: endpoint
            .secret_before
            .map(|(_, until)| until)
            .filter(|until| now < *until)
            .map(rfc3339),
    }
}
