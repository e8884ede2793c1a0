//! Holds: place, look, give back, begin to pay.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use onsale_core::command::{Command, Outcome, PlacedHold};
use onsale_core::event::Admission;
use onsale_core::hold::{Hold, HoldStatus};
use onsale_core::id::{AccountId, AreaNo, EventId, HoldId, SeatOrdinal};
use onsale_core::limits::TEXT_BYTES_MAX;
use onsale_core::order::OrderStatus;
use onsale_core::payment::PaymentStatus;
use onsale_core::refusal::Refusal;
use onsale_store::{Named, fail_point};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::App;
use crate::auth::Caller;
use crate::catalog::{ManifestIndex, Sale};

use wished::Wished;

use super::caller::{AnyCaller, Buyer, PathId};
use super::extract::{ApiJson, IdempotencyKey};
use super::idempotency::{mark, request_key};
use super::problem::{Code, FieldError, Problem};
use super::reasons::{not_found, refused, refused_seats};
use super::wire::rfc3339;
use super::wire::sale::{
    CheckoutBegunJson, CheckoutJson, HoldJson, NewHoldJson, PricedPlacesJson, PricedSeatJson,
};

mod wished;

const ADMISSION_TOKEN: &str = "admission-token";

pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(place_hold))
        .routes(routes!(get_hold, release_hold))
        .routes(routes!(checkout))
}

/// Claims 1 to 6 seats (or as many as the event allows) until a deadline, all or none: named seats, or the best there are.
#[utoipa::path(post, path = "/v1/events/{event_id}/holds", tag = "Buyer", request_body = NewHoldJson,
    params(("event_id" = String, Path), ("Idempotency-Key" = String, Header), ("Admission-Token" = Option<String>, Header)),
    responses((status = 201, body = HoldJson), (status = 409, description = "seat-unavailable, not-enough-available, account-limit, event-not-on-sale")))]
async fn place_hold(
    State(app): State<Arc<App>>,
    PathId(event_id): PathId<EventId>,
    Buyer(account): Buyer,
    headers: HeaderMap,
    IdempotencyKey(key): IdempotencyKey,
    ApiJson(body): ApiJson<NewHoldJson>,
) -> Result<Response, Problem> {
    let mut sale = app.sale(event_id).await?.ok_or_else(not_found)?;
    let wished = Wished::of(body, sale.event.policy.seats_per_hold_max)?;
    admit(&sale, &headers)?;
    let mut again = true;
    loop {
        let Some(manifest) = sale.manifest.clone() else {
            return Err(Problem::new(Code::EventNotOnSale, "The event has no seats yet."));
        };
        let wish = wished.found_in(&manifest)?;
        let content = wished.content(event_id, &wish);
        let content = content.iter().map(Vec::as_slice);
        let key = request_key(&account, "POST /v1/events/{event_id}/holds", &key, content);
        let command = Command::PlaceHold {
            event: event_id.event(),
            manifest_version: manifest.view.version,
            account: account.clone(),
            wish,
            code: wished.code.clone(),
        };
        let decision = app.decide(command, Some(key)).await?;
        match decision.outcome {
            Outcome::HoldPlaced(placed) => {
                app.metrics.hold(if decision.replayed { "replayed" } else { "placed" });
                let hold = placed_json(&sale, &manifest, placed);
                fail_point!(async "hold.answer", panic!("a fail point"));
                return Ok(mark((StatusCode::CREATED, Json(hold)).into_response(), decision.replayed));
            }
            // The cache was behind the database: read again, once.
            Outcome::Refused(Refusal::ManifestChanged) if again => {
                again = false;
                app.followers.catalog.doubt(event_id.event());
                sale = app.sale(event_id).await?.ok_or_else(not_found)?;
            }
            Outcome::Refused(refusal) => {
                let problem = refused_seats(&refusal, &manifest);
                app.metrics.hold(problem.code.slug());
                return Ok(mark(problem.into_response(), decision.replayed));
            }
            other => unreachable!("a hold is placed or refused: {other:?}"),
        }
    }
}

/// Whether the caller may shop at all. This version has no waiting room, so no admission can be genuine.
fn admit(sale: &Sale, headers: &HeaderMap) -> Result<(), Problem> {
    match (sale.event.policy.admission, headers.get(ADMISSION_TOKEN)) {
        (Admission::Open, _) => Ok(()),
        (Admission::Queue, None) => {
            Err(Problem::new(Code::AdmissionRequired, "This event is sold through its waiting room."))
        }
        (Admission::Queue, Some(_)) => Err(Problem::new(
            Code::AdmissionInvalid,
            "This admission was not given by this event's waiting room.",
        )),
    }
}

/// Seats with their prices, by the organiser's names.
pub(super) fn priced(manifest: &ManifestIndex, seats: &[(SeatOrdinal, u16, i64)]) -> Vec<PricedSeatJson> {
    let seat = |(ordinal, level, amount_minor): &(SeatOrdinal, u16, i64)| PricedSeatJson {
        seat_id: manifest.seat_id(*ordinal).to_owned(),
        price_level: manifest.price_level(*level).to_owned(),
        amount_minor: *amount_minor,
    };
    seats.iter().map(seat).collect()
}

/// Standing places with the price of each, by the organiser's names.
pub(super) fn priced_places(
    manifest: &ManifestIndex,
    ga: &[(AreaNo, u32, u16, i64)],
) -> Vec<PricedPlacesJson> {
    let places = |(area, quantity, level, amount_minor): &(AreaNo, u32, u16, i64)| PricedPlacesJson {
        ga_area: manifest.ga_area(*area).to_owned(),
        quantity: *quantity,
        price_level: manifest.price_level(*level).to_owned(),
        amount_minor: *amount_minor,
    };
    ga.iter().map(places).collect()
}

fn hold_json(
    sale: &Sale,
    hold: &Hold,
    status: HoldStatus,
    seats: Vec<PricedSeatJson>,
    ga: Vec<PricedPlacesJson>,
) -> HoldJson {
    HoldJson {
        hold_id: hold.id.to_string(),
        event_id: sale.event.id.to_string(),
        account_id: hold.account.to_string(),
        status: status.word(),
        expires_at: rfc3339(hold.expires_at),
        seats,
        ga,
        total_minor: hold.total_minor,
        currency: sale.event.currency.to_string(),
        price_version: hold.price_version,
    }
}

fn placed_json(sale: &Sale, manifest: &ManifestIndex, placed: PlacedHold) -> HoldJson {
    let (seats, ga) = (priced(manifest, &placed.seats), priced_places(manifest, &placed.ga));
    hold_json(sale, &placed.hold, placed.hold.status, seats, ga)
}

/// A hold as it stands. One whose time has passed is shown as expired, swept or not.
#[utoipa::path(get, path = "/v1/holds/{hold_id}", tag = "Buyer", params(("hold_id" = String, Path)),
    responses((status = 200, body = HoldJson), (status = 404)))]
async fn get_hold(
    State(app): State<Arc<App>>,
    PathId(id): PathId<HoldId>,
    AnyCaller(caller): AnyCaller,
) -> Result<Json<HoldJson>, Problem> {
    let view = app.read(id.event(), move |reader| reader.hold(id)).await?.ok_or_else(not_found)?;
    may_see(&caller, &view.hold.account)?;
    let sale = app.sale_of(id.event()).await?.ok_or_else(not_found)?;
    let manifest = sale.manifest.clone().ok_or_else(not_found)?;
    let over = view.hold.status.is_live() && !view.hold.binds(&sale.event.policy, app.now());
    let status = if over { HoldStatus::Expired } else { view.hold.status };
    let (seats, ga) = (priced(&manifest, &view.seats), priced_places(&manifest, &view.ga));
    Ok(Json(hold_json(&sale, &view.hold, status, seats, ga)))
}

/// A buyer sees its own; operators and readers see all.
pub(super) fn may_see(caller: &Caller, account: &AccountId) -> Result<(), Problem> {
    match caller {
        Caller::Buyer(buyer) if buyer == account => Ok(()),
        Caller::Buyer(_) => Err(not_found()),
        Caller::Key(_, onsale_store::Role::Operator | onsale_store::Role::Reader) => Ok(()),
        Caller::Key(_, onsale_store::Role::Partner | onsale_store::Role::Gate) => {
            Err(Problem::new(Code::Forbidden, "Name the account this is for in Onsale-Account."))
        }
    }
}

/// Gives a hold back; again, if need be.
#[utoipa::path(delete, path = "/v1/holds/{hold_id}", tag = "Buyer", params(("hold_id" = String, Path)),
    responses((status = 204), (status = 404), (status = 409, description = "hold-not-active, payment-pending")))]
async fn release_hold(
    State(app): State<Arc<App>>,
    PathId(hold): PathId<HoldId>,
    AnyCaller(caller): AnyCaller,
) -> Result<StatusCode, Problem> {
    let account = match caller {
        Caller::Buyer(account) => Some(account),
        Caller::Key(_, onsale_store::Role::Operator) => None,
        Caller::Key(..) => {
            return Err(Problem::new(Code::Forbidden, "Name the account this is for in Onsale-Account."));
        }
    };
    let decision = app.decide(Command::ReleaseHold { hold, account }, None).await?;
    fail_point!(async "release.answer", panic!("a fail point"));
    match decision.outcome {
        Outcome::HoldReleased => Ok(StatusCode::NO_CONTENT),
        Outcome::Refused(refusal) => Err(refused(&refusal)),
        other => unreachable!("a hold is released or refused: {other:?}"),
    }
}

/// Begins to pay for a hold. The answer says that it has begun; the order says how it goes.
#[utoipa::path(post, path = "/v1/holds/{hold_id}/checkout", tag = "Buyer", request_body = CheckoutJson,
    params(("hold_id" = String, Path), ("Idempotency-Key" = String, Header)),
    responses((status = 202, body = CheckoutBegunJson),
        (status = 409, description = "hold-expired, hold-not-active, payment-pending, price-changed, too-little-time, account-limit")))]
async fn checkout(
    State(app): State<Arc<App>>,
    PathId(hold): PathId<HoldId>,
    Buyer(account): Buyer,
    IdempotencyKey(key): IdempotencyKey,
    ApiJson(body): ApiJson<CheckoutJson>,
) -> Result<Response, Problem> {
    check_card(&body)?;
    if app.gateway.is_none() {
        return Err(Problem::new(
            Code::AuthorityUnavailable,
            "No payment provider is configured; nothing was done.",
        ));
    }
    let hold_bytes = hold.0.to_be_bytes();
    let optional = |text: &Option<String>| {
        text.as_deref().map_or_else(Vec::new, |text| [b"=", text.as_bytes()].concat())
    };
    let (email, return_url) = (optional(&body.email), optional(&body.return_url));
    let content = [&hold_bytes[..], body.payment_method_token.as_bytes(), &email, &return_url];
    let key = request_key(&account, "POST /v1/holds/{hold_id}/checkout", &key, content);
    let command = Command::Checkout {
        hold,
        account,
        payment_method_token: body.payment_method_token,
        email: body.email,
        return_url: body.return_url,
    };
    let decision = app.decide(command, Some(key)).await?;
    fail_point!(async "checkout.answer", panic!("a fail point"));
    let response = match decision.outcome {
        Outcome::CheckoutBegun(order) => {
            let begun = CheckoutBegunJson {
                order_id: order.to_string(),
                order_status: OrderStatus::AwaitingPayment.word(),
                payment_status: PaymentStatus::Pending.word(),
            };
            (StatusCode::ACCEPTED, Json(begun)).into_response()
        }
        Outcome::Refused(refusal) => refused(&refusal).into_response(),
        other => unreachable!("a payment is begun or refused: {other:?}"),
    };
    Ok(mark(response, decision.replayed))
}

fn check_card(body: &CheckoutJson) -> Result<(), Problem> {
    let mut errors = Vec::new();
    let token = &body.payment_method_token;
    if token.is_empty() || token.len() > 255 || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        errors.push(FieldError::new("/payment_method_token", "must be 1 to 255 visible ASCII characters"));
    }
    if let Some(email) = &body.email {
        let fits = email.len() <= 320
            && email.split_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty());
        if !fits || email.chars().any(|c| c.is_control() || c.is_whitespace()) {
            errors.push(FieldError::new("/email", "must be an e-mail address"));
        }
    }
    if let Some(url) = &body.return_url
        && !is_safe_return(url)
    {
        errors.push(FieldError::new("/return_url", "must be an https address, or http on loopback"));
    }
    if errors.is_empty() { Ok(()) } else { Err(Problem::validation(errors)) }
}

/// Where a browser may be sent back to: nothing that runs as script, nothing that leaks over plain HTTP.
fn is_safe_return(text: &str) -> bool {
    // What is kept is the text, of which a URL forgives much.
    if text.len() > TEXT_BYTES_MAX || text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return false;
    }
    let Ok(url) = reqwest::Url::parse(text) else {
        return false;
    };
    let loopback = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    url.username().is_empty()
        && url.password().is_none()
        && (url.scheme() == "https" && url.has_host() || url.scheme() == "http" && loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_is_sent_back_to_safe_places_only() {
        for good in ["https://shop.example/done?order=1", "http://127.0.0.1:8080/x", "http://localhost/"] {
            assert!(is_safe_return(good), "{good}");
        }
        for bad in [
            "javascript:alert(1)",
            "http://shop.example/",
            "//evil.example",
            "https://a:b@evil.example",
            "data:text/html,x",
            "https://shop.example/\0",
            "https://shop.example/\n",
            " https://shop.example/",
            "",
        ] {
            assert!(!is_safe_return(bad), "{bad}");
        }
    }
}
