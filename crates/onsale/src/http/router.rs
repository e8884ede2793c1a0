//! Every route on one screen: which listener has which, and what surrounds them all.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use onsale_core::id::{EventId, HoldId};
use onsale_store::SubmitError;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_swagger_ui::SwaggerUi;

use crate::app::{App, AppError};

use super::problem::{Problem, page, unknown_method, unknown_route};
use super::{
    access, callbacks, cases, docs, erasures, events, ga, gate, health, holds, keys, manifest, orders,
    reconciliation, refunds, reports, seats, sessions, test_mode, tickets, webhooks,
};

/// How long a refusal at the door is held back. A client that comes again at once, whatever it was told, would otherwise
/// take the time that those in the queue need; nobody else notices a fifth of a second.
const TURNED_AWAY_AFTER: Duration = Duration::from_millis(200);

/// What buyers may call. An operator's or a partner's key works here too.
fn buyer_routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .merge(sessions::routes())
        .merge(events::public_routes())
        .merge(manifest::public_routes())
        .merge(seats::routes())
        .merge(holds::routes())
        .merge(orders::routes())
        .merge(tickets::routes())
        .merge(callbacks::routes())
        .merge(health::routes())
}

/// What only the operators' listener has.
fn operator_only_routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .merge(events::operator_routes())
        .merge(manifest::operator_routes())
        .merge(ga::routes())
        .merge(access::routes())
        .merge(refunds::routes())
        .merge(cases::routes())
        .merge(tickets::operator_routes())
        .merge(gate::routes())
        .merge(reconciliation::routes())
        .merge(reports::routes())
        .merge(erasures::routes())
        .merge(keys::routes())
        .merge(webhooks::routes())
        .merge(health::operator_routes())
}

/// The document of all routes.
pub(crate) fn openapi() -> utoipa::openapi::OpenApi {
    let routes = OpenApiRouter::with_openapi(docs::Document::openapi());
    let (_, document) = routes.merge(buyer_routes()).merge(operator_only_routes()).split_for_parts();
    document
}

/// The buyers' listener.
pub(crate) fn buyers(app: &Arc<App>) -> Router {
    let (router, _) = OpenApiRouter::<Arc<App>>::new().merge(buyer_routes()).split_for_parts();
    surround(router, app)
}

/// The operators' listener: everything, and test mode's own.
pub(crate) fn operators(app: &Arc<App>) -> Router {
    let routes = OpenApiRouter::<Arc<App>>::new().merge(buyer_routes()).merge(operator_only_routes());
    let (router, _) = routes.split_for_parts();
    let router = if app.test_mode { router.merge(test_mode::routes()) } else { router };
    surround(router, app)
}

fn surround(router: Router<Arc<App>>, app: &Arc<App>) -> Router {
    router
        .route("/problems", get(page::problem_list))
        .route("/problems/{code}", get(page::problem_page))
        .merge(SwaggerUi::new("/docs").url("/openapi.json", openapi()).config(docs::page_settings()))
        .fallback(unknown_route)
        .method_not_allowed_fallback(unknown_method)
        .layer(from_fn_with_state(Arc::clone(app), measure))
        .with_state(Arc::clone(app))
}

/// Measures each request by its route's template, never by its path: labels don't grow with the crowd.
async fn measure(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let method = method_name(request.method());
    let route: Arc<str> = request
        .extensions()
        .get::<MatchedPath>()
        .map_or_else(|| "unknown".into(), |path| path.as_str().into());
    let response = match is_for_the_writer(method, &route) && turns_away(&app, request.uri().path()) {
        // Before anything is read or looked up: under a storm most requests end here.
        true => {
            tokio::time::sleep(TURNED_AWAY_AFTER).await;
            Problem::from(AppError::from(SubmitError::Overloaded)).into_response()
        }
        false => next.run(request).await,
    };
    app.metrics.request(method, route, response.status().as_u16(), begun.elapsed());
    response
}

/// Whether the writer that a path leads to turns callers away. Where there are several, the event's number says which, and it is
/// in the path's id; a path without one is for whoever reads it in full.
fn turns_away(app: &App, path: &str) -> bool {
    let mut stores = app.homes.all().iter().map(|home| &home.store);
    // With one writer this is the whole answer, and it costs nothing.
    if stores.len() == 1 && !app.homes.main().looks_block() {
        return app.homes.main().turns_away(None);
    }
    let id = path.split('/').nth(3).unwrap_or_default();
    let event = match id.parse::<EventId>() {
        Ok(event) => Some(event.event()),
        Err(_) => id.parse::<HoldId>().ok().map(|hold| hold.event()),
    };
    match event.and_then(|event| Some((event, app.homes.of(event)?))) {
        Some((event, home)) => home.store.turns_away(Some(event)),
        None => stores.all(|store| store.turns_away(None)),
    }
}

/// What buyers ask of the writer. An operator's wish waits its turn in the queue.
fn is_for_the_writer(method: &str, route: &str) -> bool {
    matches!(
        (method, route),
        ("POST", "/v1/events/{event_id}/holds" | "/v1/holds/{hold_id}/checkout")
            | ("DELETE", "/v1/holds/{hold_id}")
    )
}

fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        _ => "_OTHER",
    }
}
