//! Standing areas: how many they take, their buckets, and capacity that moves between these.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use onsale_core::command::{Command, Outcome};
use onsale_core::ga::TransferStatus;
use onsale_core::id::{AccountId, AreaNo, BucketNo, EventId, EventNo, KeyId};
use onsale_core::limits::GA_CAPACITY_MAX;
use onsale_store::Named;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::App;
use crate::catalog::ManifestIndex;

use super::access::{Allocations, allocations};
use super::caller::{Operator, PathId, ReportReader};
use super::events::sale_with_seats;
use super::extract::{ApiJson, IdempotencyKey};
use super::idempotency::{mark, request_key};
use super::problem::{FieldError, Problem};
use super::reasons::{not_found, refused, refused_seats};
use super::wire::places::{
    AreaJson, AreasJson, BucketJson, CapacityJson, NewBucketJson, NewTransferJson, TransferBegunJson,
    TransferJson,
};
use super::wire::rfc3339;

pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(get_areas))
        .routes(routes!(set_capacity))
        .routes(routes!(add_bucket))
        .routes(routes!(begin_transfer))
}

/// The standing areas with their buckets, and what is in flight between these.
#[utoipa::path(get, path = "/v1/events/{event_id}/ga", tag = "Operator", params(("event_id" = String, Path)),
    responses((status = 200, body = AreasJson), (status = 404)))]
async fn get_areas(
    State(app): State<Arc<App>>,
    PathId(id): PathId<EventId>,
    _: ReportReader,
) -> Result<Json<AreasJson>, Problem> {
    areas(&app, id).await.map(Json)
}

async fn areas(app: &Arc<App>, id: EventId) -> Result<AreasJson, Problem> {
    let (_, manifest) = sale_with_seats(app, id).await?;
    let event = app.event(id).await?.ok_or_else(not_found)?;
    let no = id.event();
    let (buckets, in_flight) = app.read(no, move |reader| reader.buckets(no)).await?;
    let names = allocations(app, no).await?;
    let on_its_way = |area: AreaNo| -> u64 {
        in_flight.iter().filter(|t| t.area == area).map(|t| u64::from(t.quantity)).sum()
    };
    let area = |(position, area): (u16, &onsale_core::manifest::GaArea)| {
        let of_area: Vec<_> = buckets.iter().filter(|bucket| bucket.area.0 == position).collect();
        let in_buckets: u64 = of_area.iter().map(|bucket| u64::from(bucket.capacity)).sum();
        let bucket = |bucket: &&onsale_core::ga::Bucket| BucketJson {
            bucket: bucket.no.0,
            capacity: bucket.capacity,
            held: bucket.held,
            sold: bucket.sold,
            allocation: bucket.allocation.map(|no| names.name(no)),
        };
        AreaJson {
            ga_area: area.ga_area.clone(),
            capacity: in_buckets + on_its_way(AreaNo(position)),
            buckets: of_area.iter().map(bucket).collect(),
        }
    };
    let transfer = |transfer: &onsale_core::ga::Transfer| TransferJson {
        transfer_id: transfer.id.to_string(),
        ga_area: manifest.ga_area(transfer.area).to_owned(),
        from_bucket: transfer.from.0,
        to_bucket: transfer.to.0,
        quantity: transfer.quantity,
        status: transfer.status.word(),
        created_at: rfc3339(transfer.created_at),
    };
    Ok(AreasJson {
        areas: (0..).zip(&manifest.view.manifest.ga_areas).map(area).collect(),
        in_flight: in_flight.iter().map(transfer).collect(),
        in_use: event.ga_in_use,
        ga_max: event.policy.ga_max,
    })
}

fn area_of(manifest: &ManifestIndex, name: &str) -> Result<AreaNo, Problem> {
    let unknown = || Problem::invalid("/ga_area", "the event has no such standing area");
    manifest.area(name).ok_or_else(unknown)
}

/// Lets more people into an area, or fewer: what is held and sold stays.
#[utoipa::path(put, path = "/v1/events/{event_id}/ga/capacity", tag = "Operator", request_body = CapacityJson,
    params(("event_id" = String, Path)),
    responses((status = 200, body = AreasJson), (status = 409, description = "not-enough-available"), (status = 422)))]
async fn set_capacity(
    State(app): State<Arc<App>>,
    PathId(id): PathId<EventId>,
    Operator(key): Operator,
    ApiJson(body): ApiJson<CapacityJson>,
) -> Result<Json<AreasJson>, Problem> {
    let (_, manifest) = sale_with_seats(&app, id).await?;
    if !(1..=GA_CAPACITY_MAX).contains(&body.capacity) {
        return Err(Problem::invalid("/capacity", format!("must be 1 to {GA_CAPACITY_MAX}")));
    }
    let command = Command::SetCapacity {
        event: id.event(),
        area: area_of(&manifest, &body.ga_area)?,
        capacity: body.capacity,
        actor: key.to_string(),
    };
    match app.decide(command, None).await?.outcome {
        Outcome::CapacitySet => areas(&app, id).await.map(Json),
        Outcome::Refused(refusal) => Err(refused_seats(&refusal, &manifest)),
        other => unreachable!("a capacity is set or refused: {other:?}"),
    }
}

/// Adds an empty bucket to an area, for everyone or for an allocation. A transfer fills it.
#[utoipa::path(post, path = "/v1/events/{event_id}/ga/buckets", tag = "Operator", request_body = NewBucketJson,
    params(("event_id" = String, Path)), responses((status = 201, body = BucketJson), (status = 409), (status = 422)))]
async fn add_bucket(
    State(app): State<Arc<App>>,
    PathId(id): PathId<EventId>,
    Operator(key): Operator,
    ApiJson(body): ApiJson<NewBucketJson>,
) -> Result<Response, Problem> {
    let (_, manifest) = sale_with_seats(&app, id).await?;
    let area = area_of(&manifest, &body.ga_area)?;
    let allocation = allocations(&app, id.event()).await?.number(body.allocation.as_deref())?;
    let command = Command::AddBucket { event: id.event(), area, allocation, actor: key.to_string() };
    match app.decide(command, None).await?.outcome {
        Outcome::BucketAdded(bucket) => {
            let (capacity, held, sold) = (0, 0, 0);
            let bucket = BucketJson { bucket: bucket.0, capacity, held, sold, allocation: body.allocation };
            Ok((StatusCode::CREATED, Json(bucket)).into_response())
        }
        Outcome::Refused(refusal) => Err(refused(&refusal)),
        other => unreachable!("a bucket is added or refused: {other:?}"),
    }
}

/// Moves capacity from one bucket of an area to another: it leaves at once, and arrives a moment later.
#[utoipa::path(post, path = "/v1/events/{event_id}/ga/transfers", tag = "Operator", request_body = NewTransferJson,
    params(("event_id" = String, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 202, body = TransferBegunJson), (status = 409, description = "not-enough-available"), (status = 422)))]
async fn begin_transfer(
    State(app): State<Arc<App>>,
    PathId(id): PathId<EventId>,
    Operator(actor): Operator,
    IdempotencyKey(key): IdempotencyKey,
    ApiJson(body): ApiJson<NewTransferJson>,
) -> Result<Response, Problem> {
    let (_, manifest) = sale_with_seats(&app, id).await?;
    let area = area_of(&manifest, &body.ga_area)?;
    if body.quantity == 0 {
        return Err(Problem::invalid("/quantity", "must be 1 or more"));
    }
    if body.from_bucket == body.to_bucket {
        return Err(Problem::invalid("/to_bucket", "must be another bucket"));
    }
    check_buckets(&app, id.event(), area, &body).await?;
    let content = [
        &id.0.to_be_bytes()[..],
        &area.0.to_be_bytes(),
        &body.from_bucket.to_be_bytes(),
        &body.to_bucket.to_be_bytes(),
        &body.quantity.to_be_bytes(),
    ];
    let key = request_key(&as_account(actor), "POST /v1/events/{event_id}/ga/transfers", &key, content);
    let command = Command::BeginTransfer {
        event: id.event(),
        area,
        from: BucketNo(body.from_bucket),
        to: BucketNo(body.to_bucket),
        quantity: body.quantity,
        actor: actor.to_string(),
    };
    let decision = app.decide(command, Some(key)).await?;
    let response = match decision.outcome {
        Outcome::TransferBegun(transfer) => {
            let status = TransferStatus::InFlight.word();
            let begun = TransferBegunJson { transfer_id: transfer.to_string(), status };
            (StatusCode::ACCEPTED, Json(begun)).into_response()
        }
        Outcome::Refused(refusal) => refused_seats(&refusal, &manifest).into_response(),
        other => unreachable!("a transfer is begun or refused: {other:?}"),
    };
    Ok(mark(response, decision.replayed))
}

/// Says which of the two buckets there isn't.
async fn check_buckets(
    app: &Arc<App>,
    no: EventNo,
    area: AreaNo,
    body: &NewTransferJson,
) -> Result<(), Problem> {
    let (buckets, _) = app.read(no, move |reader| reader.buckets(no)).await?;
    let is_there = |wanted: u16| buckets.iter().any(|b| b.area == area && b.no == BucketNo(wanted));
    let wanted = [("/from_bucket", body.from_bucket), ("/to_bucket", body.to_bucket)];
    let missing = wanted.into_iter().filter(|(_, bucket)| !is_there(*bucket));
    let errors: Vec<FieldError> =
        missing.map(|(pointer, _)| FieldError::new(pointer, "the area has no such bucket")).collect();
    if errors.is_empty() { Ok(()) } else { Err(Problem::validation(errors)) }
}

/// An operator's key as the account whose keys for repeating are its own.
pub(super) fn as_account(key: KeyId) -> AccountId {
    AccountId::parse(&key.to_string()).expect("a key's id is visible ASCII")
}

impl Allocations {
    fn name(&self, no: onsale_core::id::AllocationNo) -> String {
        self.of(no).unwrap_or_default().to_owned()
    }
}
