//! Health and metrics.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::App;

use super::problem::Problem;

pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(livez)).routes(routes!(readyz))
}

pub(crate) fn operator_routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(metrics))
}

/// The process runs.
#[utoipa::path(get, path = "/livez", tag = "Health", security(()), responses((status = 200)))]
async fn livez() -> StatusCode {
    StatusCode::OK
}

/// The process can serve: a database answers, one of several at least, and the server isn't stopping.
#[utoipa::path(get, path = "/readyz", tag = "Health", security(()), responses((status = 200), (status = 503)))]
async fn readyz(State(app): State<Arc<App>>) -> Response {
    let stopping = *app.stopping.borrow();
    let mut homes = Vec::new();
    for home in app.all() {
        // A file is asked; a server is asked all the time, and what it last said is known.
        let away = match app.store(home).looks_block() {
            true => app.is_away(home),
            false => app.read_at(home, |reader| reader.event_versions()).await.is_err(),
        };
        homes.push(json!({ "name": app.name(home), "away": away }));
    }
    let database = homes.iter().any(|home| home["away"] == false);
    let ready = database && !stopping;
    let body = json!({
        "ready": ready, "stopping": stopping, "database": database, "homes": homes, "test_mode": app.test_mode,
        "payment_provider": app.gateway.is_some(),
    });
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let mut response = (status, Json(body)).into_response();
    if !ready {
        response.headers_mut().insert("retry-after", axum::http::HeaderValue::from_static("2"));
    }
    response
}

/// OpenMetrics.
#[utoipa::path(get, path = "/metrics", tag = "Health", security(()), responses((status = 200, content_type = "application/openmetrics-text")))]
async fn metrics(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let text = app.metrics.render(&app).await?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(CONTENT_TYPE, kind)], text).into_response())
}
