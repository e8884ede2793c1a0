//! Reconciliation cases: questions about money that wait for proof or a person.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use onsale_core::command::{Command, Outcome};
use onsale_core::id::{CaseId, EventNo};
use onsale_core::reconcile::{Case, CaseAction, CaseStatus};
use onsale_core::time::Timestamp;
use onsale_store::{Named, Reader, StoreError};
use serde::Deserialize;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::App;

use super::caller::{Operator, PathId, ReportReader};
use super::extract::{ApiJson, ApiQuery};
use super::problem::Problem;
use super::reasons::{nobody_answers, not_one_of, note_fault, refused};
use super::wire::books::{CaseActionJson, CaseJson, CasesJson, ResolutionJson};
use super::wire::rfc3339;

/// Cases in one answer; the open ones come first, the oldest first.
const CASES_SHOWN_MAX: u32 = 1_000;

pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list_cases)).routes(routes!(resolve_case))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Filter {
    status: Option<String>,
}

/// Cases, by status.
#[utoipa::path(get, path = "/v1/reconciliation/cases", tag = "Operator",
    params(("status" = Option<String>, Query, description = "OPEN or CLOSED")), responses((status = 200, body = CasesJson)))]
async fn list_cases(
    State(app): State<Arc<App>>,
    _: ReportReader,
    ApiQuery(filter): ApiQuery<Filter>,
) -> Result<Json<CasesJson>, Problem> {
    let status = match filter.status.as_deref().map(CaseStatus::of) {
        None => None,
        Some(Ok(status)) => Some(status),
        Some(Err(_)) => {
            return Err(Problem::validation(vec![not_one_of("/query/status", &["OPEN", "CLOSED"])]));
        }
    };
    let now = app.now();
    let read = app.read_all(move |reader| {
        let cases = reader.cases(status, CASES_SHOWN_MAX)?.into_iter();
        cases.map(|case| Ok((event_id(reader, &case)?, case))).collect::<Result<Vec<_>, StoreError>>()
    });
    let read = read.await?;
    if read.is_empty() {
        return Err(nobody_answers());
    }
    let mut cases: Vec<_> = read.into_iter().flat_map(|(_, cases)| cases).collect();
    // Each home's are in this order already.
    cases.sort_by_key(|(_, case)| (case.status != CaseStatus::Open, case.opened_at, case.id));
    cases.truncate(CASES_SHOWN_MAX as usize);
    let cases = cases.into_iter().map(|(event_id, case)| case_json(case, event_id, now)).collect();
    Ok(Json(CasesJson { cases }))
}

/// The id of a case's event, as it is written.
pub(crate) fn event_id(reader: &Reader<'_>, case: &Case) -> Result<Option<String>, StoreError> {
    Ok(reader.event(case.event())?.map(|event| event.id.to_string()))
}

pub(crate) fn case_json(case: Case, event_id: Option<String>, now: Timestamp) -> CaseJson {
    CaseJson {
        case_id: case.id.to_string(),
        event_id: event_id.filter(|_| case.event() != EventNo::HOUSE),
        kind: case.kind.as_str(),
        order_id: case.order.map(|order| order.to_string()),
        operation_id: case.operation.map(|operation| operation.to_string()),
        reference: case.subject,
        opened_at: rfc3339(case.opened_at),
        age_s: now.since_ms(case.opened_at).max(0) / 1_000,
        evidence: case.evidence,
        status: case.status.word(),
        owner: case.owner,
        next_check_at: rfc3339(case.next_check_at),
        resolution: case.resolution.map(|resolution| ResolutionJson {
            action: resolution.action,
            note: resolution.note,
            actor: resolution.actor,
            at: rfc3339(resolution.at),
        }),
    }
}

/// What may be done about a case, as it is written.
pub(crate) const ACTIONS: [&str; 5] = ["void", "refund", "confirm_if_bound", "release", "dismiss"];

pub(crate) fn action_of(word: &str) -> Option<CaseAction> {
    Some(match word {
        "void" => CaseAction::Void,
        "refund" => CaseAction::Refund,
        "confirm_if_bound" => CaseAction::ConfirmIfBound,
        "release" => CaseAction::Release,
        "dismiss" => CaseAction::Dismiss,
        _ => return None,
    })
}

/// Acts on a case. Money that is asked back closes the case only by the provider's proof.
#[utoipa::path(post, path = "/v1/reconciliation/cases/{case_id}/resolution", tag = "Operator", request_body = CaseActionJson,
    params(("case_id" = String, Path)), responses((status = 200, body = CaseJson), (status = 409, description = "case-closed, action-not-possible")))]
async fn resolve_case(
    State(app): State<Arc<App>>,
    PathId(id): PathId<CaseId>,
    Operator(key): Operator,
    ApiJson(body): ApiJson<CaseActionJson>,
) -> Result<Json<CaseJson>, Problem> {
    let Some(action) = action_of(&body.action) else {
        return Err(Problem::validation(vec![not_one_of("/action", &ACTIONS)]));
    };
    if let Some(fault) = note_fault("/note", &body.note) {
        return Err(Problem::validation(vec![fault]));
    }
    let command = Command::ResolveCase { case: id, action, note: body.note, actor: key.to_string() };
    match app.decide(command, None).await?.outcome {
        Outcome::CaseActed => {}
        Outcome::Refused(refusal) => return Err(refused(&refusal)),
        other => unreachable!("a case is acted upon or refused: {other:?}"),
    }
    let read = app.read(id.event(), move |reader| {
        reader.case(id)?.map(|case| Ok((event_id(reader, &case)?, case))).transpose()
    });
    let (event_id, case) = read.await?.ok_or_else(super::reasons::not_found)?;
    Ok(Json(case_json(case, event_id, app.now())))
}
