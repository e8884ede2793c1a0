//! What tests may do to a server in test mode (API.md). On the operators' listener alone, and on loopback alone.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use onsale_core::time::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::App;
use crate::audits;
use crate::worker::{dispatcher, expirer, issuer, payments, quota, reconciler};

use super::extract::ApiJson;
use super::problem::{Code, Problem};
use super::reasons::not_found;
use super::wire::{parse_time, rfc3339};

pub(crate) fn routes() -> axum::Router<Arc<App>> {
    axum::Router::new()
        .route("/_test/clock", get(read_clock).post(move_clock))
        .route("/_test/workers/{name}", post(run_worker))
        .route("/_test/audit", get(audit))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Move {
    advance_ms: Option<i64>,
    set: Option<Value>,
}

fn clock_json(now: Timestamp) -> Json<Value> {
    Json(json!({ "now": rfc3339(now), "now_ms": now.millis() }))
}

async fn read_clock(State(app): State<Arc<App>>) -> Json<Value> {
    clock_json(app.now())
}

async fn move_clock(
    State(app): State<Arc<App>>,
    ApiJson(body): ApiJson<Move>,
) -> Result<Json<Value>, Problem> {
    let to = match (body.advance_ms, body.set) {
        (Some(advance_ms), None) => app.now().plus_ms(advance_ms),
        (None, Some(Value::String(text))) => parse_time(&text)
            .ok_or_else(|| Problem::invalid("/set", "must be a time in RFC 3339, or milliseconds"))?,
        (None, Some(Value::Number(millis))) => {
            let millis =
                millis.as_i64().ok_or_else(|| Problem::invalid("/set", "must be whole milliseconds"))?;
            Timestamp::from_millis(millis)
        }
        _ => return Err(Problem::invalid("", "give either advance_ms or set")),
    };
    let backwards = |_| Problem::new(Code::ActionNotPossible, "The clock never runs backwards.");
    app.clock.set(to).map_err(backwards)?;
    Ok(clock_json(app.now()))
}

async fn run_worker(State(app): State<Arc<App>>, Path(name): Path<String>) -> Result<Json<Value>, Problem> {
    let mut done = Ok(());
    for home in app.all() {
        // Whoever has the duty: a test says what is done, and where.
        let shared = Arc::clone(&app);
        done = done.and(match name.as_str() {
            "expirer" => expirer::pass(shared, home).await,
            "payments" => payments::pass(shared, home).await,
            "quota" => quota::pass(shared, home).await,
            "reconciler" => reconciler::pass(shared, home).await,
            "dispatcher" => dispatcher::pass(shared, home).await,
            "issuer" => issuer::pass(shared, home).await,
            _ => return Err(not_found()),
        });
    }
    done.map_err(|error| {
        tracing::error!(error = format!("{error:#}"), "A worker's pass failed");
        Problem::new(Code::AuthorityUnavailable, "The pass failed; what it had done so far stays.")
    })?;
    Ok(Json(json!({ "worker": name, "done": true })))
}

async fn audit(State(app): State<Arc<App>>) -> Result<(StatusCode, Json<Value>), Problem> {
    let mut found = Vec::new();
    for home in app.all() {
        let now = app.now();
        let audit = app.heavy_at(home, move |store| store.audit(now)).await?;
        found.push((Arc::clone(app.name(home)), audit));
    }
    Ok((StatusCode::OK, Json(audits::to_json(&audits::together(found)))))
}
