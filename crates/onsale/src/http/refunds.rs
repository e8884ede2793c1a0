//! Giving money back for sold orders.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use onsale_core::command::{Command, Outcome};
use onsale_core::ga::{GaLine, by_area};
use onsale_core::id::OrderId;
use onsale_core::payment::OperationStatus;
use onsale_core::refund::RefundPart;
use onsale_store::{Named, RefundView};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::App;
use crate::catalog::ManifestIndex;

use super::caller::{Operator, PathId, ReportReader};
use super::extract::{ApiJson, IdempotencyKey};
use super::ga::as_account;
use super::idempotency::{mark, request_key};
use super::problem::{FieldError, Problem};
use super::reasons::{not_found, note_fault, refused};
use super::wire::places::{NewRefundJson, RefundBegunJson, RefundJson, RefundsJson, ReturnedPlacesJson};
use super::wire::rfc3339;

/// Most seats or areas in one refund: no hold has more.
const NAMED_MAX: usize = onsale_core::limits::SEATS_PER_HOLD_MAX as usize;

pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list_refunds, begin_refund))
}

async fn manifest_of(app: &Arc<App>, order: OrderId) -> Result<(Arc<ManifestIndex>, String), Problem> {
    let sale = app.sale_of(order.event()).await?.ok_or_else(not_found)?;
    Ok((sale.manifest.clone().ok_or_else(not_found)?, sale.event.currency.to_string()))
}

/// Asks for money to be given back: for the whole of an order, for some of its seats and places, or an amount.
#[utoipa::path(post, path = "/v1/orders/{order_id}/refunds", tag = "Operator", request_body = NewRefundJson,
    params(("order_id" = String, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 202, body = RefundBegunJson), (status = 404), (status = 422),
        (status = 409, description = "not-refundable, refund-pending, refund-too-large")))]
async fn begin_refund(
    State(app): State<Arc<App>>,
    PathId(order): PathId<OrderId>,
    Operator(actor): Operator,
    IdempotencyKey(key): IdempotencyKey,
    ApiJson(body): ApiJson<NewRefundJson>,
) -> Result<Response, Problem> {
    let (manifest, _) = manifest_of(&app, order).await?;
    let part = part(&body, &manifest)?;
    let told = format!("{part:?}");
    let content =
        [&order.0.to_be_bytes()[..], told.as_bytes(), &[body.resell.into()], body.reason.as_bytes()];
    let key = request_key(&as_account(actor), "POST /v1/orders/{order_id}/refunds", &key, content);
    let (reason, resell, actor) = (body.reason, body.resell, actor.to_string());
    let command = Command::BeginRefund { order, part, resell, reason, actor };
    let decision = app.decide(command, Some(key)).await?;
    let response = match decision.outcome {
        Outcome::RefundBegun(operation) => {
            let status = OperationStatus::Pending.word();
            let begun = RefundBegunJson { operation_id: operation.to_string(), status };
            (StatusCode::ACCEPTED, Json(begun)).into_response()
        }
        Outcome::Refused(refusal) => refused(&refusal).into_response(),
        other => unreachable!("a refund is begun or refused: {other:?}"),
    };
    Ok(mark(response, decision.replayed))
}

/// Which part of the order a body is about; exactly one kind.
fn part(body: &NewRefundJson, manifest: &ManifestIndex) -> Result<RefundPart, Problem> {
    let mut errors = Vec::from_iter(note_fault("/reason", &body.reason));
    let names_places = body.seats.is_some() || body.ga.is_some();
    if names_places && body.amount_minor.is_some() {
        errors.push(FieldError::new("/amount_minor", "give either seats and places or an amount"));
    }
    if body.amount_minor.is_some_and(|amount| amount < 1) {
        errors.push(FieldError::new("/amount_minor", "must be 1 or more"));
    }
    let (names, areas) = (body.seats.as_deref().unwrap_or_default(), body.ga.as_deref().unwrap_or_default());
    if names_places && names.is_empty() && areas.is_empty() {
        errors.push(FieldError::new("/seats", "name at least one seat or standing place"));
    }
    if names.len() > NAMED_MAX || areas.len() > NAMED_MAX {
        errors.push(FieldError::new("/seats", format!("name at most {NAMED_MAX}")));
    }
    let mut seats = Vec::new();
    for (index, name) in names.iter().enumerate().take(NAMED_MAX) {
        match manifest.ordinal(name) {
            Some(seat) if seats.contains(&seat) => {
                errors.push(FieldError::new(format!("/seats/{index}"), "this seat is named twice"));
            }
            Some(seat) => seats.push(seat),
            None => errors.push(FieldError::new(format!("/seats/{index}"), "the event has no such seat")),
        }
    }
    let mut ga = Vec::new();
    for (index, wish) in areas.iter().enumerate().take(NAMED_MAX) {
        let fault = |member: &str, why: &str| FieldError::new(format!("/ga/{index}/{member}"), why);
        match manifest.area(&wish.ga_area) {
            _ if wish.quantity == 0 => errors.push(fault("quantity", "must be 1 or more")),
            Some(area) if ga.iter().any(|(known, _)| *known == area) => {
                errors.push(fault("ga_area", "this area is named twice"));
            }
            Some(area) => ga.push((area, wish.quantity)),
            None => errors.push(fault("ga_area", "the event has no such standing area")),
        }
    }
    if !errors.is_empty() {
        return Err(Problem::validation(errors));
    }
    seats.sort_unstable();
    ga.sort_unstable();
    Ok(match body.amount_minor {
        Some(amount) => RefundPart::Amount(amount),
        None if names_places => RefundPart::Places { seats, ga },
        None => RefundPart::Rest,
    })
}

/// The refunds of an order, each with where its money is.
#[utoipa::path(get, path = "/v1/orders/{order_id}/refunds", tag = "Operator", params(("order_id" = String, Path)),
    responses((status = 200, body = RefundsJson), (status = 404)))]
async fn list_refunds(
    State(app): State<Arc<App>>,
    PathId(order): PathId<OrderId>,
    _: ReportReader,
) -> Result<Json<RefundsJson>, Problem> {
    let (manifest, currency) = manifest_of(&app, order).await?;
    app.read(order.event(), move |reader| reader.order_account(order)).await?.ok_or_else(not_found)?;
    let refunds = app.read(order.event(), move |reader| reader.refunds(order)).await?;
    let refund = |view: RefundView| RefundJson {
        operation_id: view.refund.operation.to_string(),
        status: view.status.word(),
        amount_minor: view.amount_minor,
        currency: currency.clone(),
        reason: view.refund.reason,
        resell: view.refund.resell,
        seats: view.refund.seats.iter().map(|seat| manifest.seat_id(*seat).to_owned()).collect(),
        ga: returned_places(&manifest, &view.refund.ga),
        actor: view.refund.actor,
        created_at: rfc3339(view.refund.created_at),
    };
    Ok(Json(RefundsJson { refunds: refunds.into_iter().map(refund).collect() }))
}

/// Places that went back, by area.
pub(super) fn returned_places(manifest: &ManifestIndex, lines: &[GaLine]) -> Vec<ReturnedPlacesJson> {
    let place =
        |(area, quantity)| ReturnedPlacesJson { ga_area: manifest.ga_area(area).to_owned(), quantity };
    by_area(lines).into_iter().map(place).collect()
}
