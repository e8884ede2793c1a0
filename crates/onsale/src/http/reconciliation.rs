//! Comparing the provider's books with these on demand, and how that stands.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use onsale_core::time::Timestamp;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::App;
use crate::reconcile::{RunError, schedule};

use super::caller::{Operator, ReportReader};
use super::extract::ApiJson;
use super::problem::{Code, Problem};
use super::wire::books::{NewRunJson, ReconciliationJson, RunJson};
use super::wire::{parse_time, rfc3339};

/// How far back a comparison may go that somebody waits for; the command line goes further.
const BACK_S_MAX: i64 = 31 * 24 * 3_600;

pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(reconciliation)).routes(routes!(run))
}

/// Compares the provider's books with these, from a time on, and says what was found. Each difference is a case; several
/// comparisons at once come to the same cases.
#[utoipa::path(post, path = "/v1/reconciliation/runs", tag = "Operator", request_body = NewRunJson,
    responses((status = 200, body = RunJson), (status = 503, description = "The provider or a home can't be asked")))]
async fn run(
    State(app): State<Arc<App>>,
    _: Operator,
    ApiJson(body): ApiJson<NewRunJson>,
) -> Result<Json<RunJson>, Problem> {
    let to_s = schedule::provider_now_s();
    let since = match body.since.as_deref() {
        None => to_s - app.reconcile.overlap_s,
        Some(text) => {
            let at = parse_time(text).map(|at| at.millis().div_euclid(1_000));
            at.filter(|at| (to_s - BACK_S_MAX..to_s).contains(at)).ok_or_else(|| {
                let days = BACK_S_MAX / 86_400;
                Problem::invalid("/since", format!("must be a time in RFC 3339 within the last {days} days"))
            })?
        }
    };
    let Some(gateways) = &app.gateway else {
        return Err(Problem::new(Code::ActionNotPossible, "Not done: no payment provider is configured."));
    };
    let found = schedule::now(&app, &gateways.for_workers, since, to_s).await.map_err(not_done)?;
    app.metrics.reconciled(&found);
    let at = |second: i64| rfc3339(Timestamp::from_millis(second * 1_000));
    Ok(Json(RunJson { from: at(since), to: at(to_s), differences_remain: !found.is_clean(), found }))
}

/// How far the comparisons have come that are made by themselves.
#[utoipa::path(get, path = "/v1/reconciliation", tag = "Operator", responses((status = 200, body = ReconciliationJson)))]
async fn reconciliation(
    State(app): State<Arc<App>>,
    _: ReportReader,
) -> Result<Json<ReconciliationJson>, Problem> {
    let progress = schedule::progress(&app).await.map_err(not_done)?.1;
    let at = |millis: i64| rfc3339(Timestamp::from_millis(millis));
    let last = progress.as_ref().and_then(|progress| progress.last.as_ref());
    Ok(Json(ReconciliationJson {
        every_s: app.reconcile.every_s,
        overlap_s: app.reconcile.overlap_s,
        compared_to: progress.as_ref().map(|progress| at(progress.compared_to_s * 1_000)),
        next_due_at: progress.as_ref().map(|progress| at(progress.due_ms)),
        under_way: progress.as_ref().is_some_and(|progress| progress.round.is_some()),
        last_completed_at: last.map(|last| at(last.at_ms)),
        last_found: last.map(|last| last.found),
    }))
}

fn not_done(error: RunError) -> Problem {
    match error {
        RunError::Books(error) => error.into(),
        RunError::Partial => Problem::new(Code::AuthorityUnavailable, "Not all databases can be read now."),
        RunError::Provider(error) => {
            tracing::warn!(error = %error, "The provider's books can't be read");
            Problem::new(Code::ProviderUnavailable, "The payment provider's lists can't be read now.")
        }
        RunError::TooMuch(pages) => {
            tracing::error!(pages, "More payments in a second than are read in one go");
            Problem::new(Code::ProviderUnavailable, "The payment provider lists more than can be read.")
        }
    }
}
