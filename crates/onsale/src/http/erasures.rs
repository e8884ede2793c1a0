//! Erasing persons on request, and again after a restore.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use onsale_core::id::AccountId;
use onsale_core::limits::TEXT_BYTES_MAX;
use onsale_store::{ErasedBy, Named};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::App;
use crate::desk::HomeNo;
use crate::erasure::{self, EraseError, Outcome, Person};

use super::caller::Operator;
use super::extract::{ApiJson, LIST_BYTES_MAX};
use super::problem::{Code, Problem};
use super::reasons::note_fault;
use super::wire::erasures::{ErasureDoneJson, ErasureJson, ErasuresJson, NewErasureJson, ReplayJson};
use super::wire::rfc3339;

/// Digests in one request.
const DIGESTS_MAX: usize = 10_000;

pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(erase, list)).routes(routes!(replay))
}

/// Erases a person from holds and orders of all events. The books keep what was bought and paid, under a pseudonym.
#[utoipa::path(post, path = "/v1/erasures", tag = "Operator", request_body = NewErasureJson,
    responses((status = 200, body = ErasureDoneJson), (status = 409, description = "action-not-possible: something is under way")))]
async fn erase(
    State(app): State<Arc<App>>,
    Operator(key): Operator,
    ApiJson(body): ApiJson<NewErasureJson>,
) -> Result<Json<ErasureDoneJson>, Problem> {
    let person = match (body.account_id.as_deref(), body.email.as_deref()) {
        (Some(account), None) => {
            let account = AccountId::parse(account).filter(|account| !erasure::is_pseudonym(account));
            Person::Account(account.ok_or_else(|| {
                Problem::invalid("/account_id", "must be an account's id, and not one that is erased already")
            })?)
        }
        (None, Some(email)) => {
            let is_text = !email.chars().any(char::is_control);
            let fits = is_text && email.trim().contains('@') && email.len() <= TEXT_BYTES_MAX;
            match fits {
                true => Person::Email(email.to_owned()),
                false => return Err(Problem::invalid("/email", "must be an e-mail address")),
            }
        }
        _ => return Err(Problem::invalid("", "give either account_id or email")),
    };
    check_note(&body.note)?;
    let done = erasure::erase(&app, &person, &body.note, &key.to_string()).await.map_err(not_done)?;
    Ok(Json(done_json(&done)))
}

/// What was erased, without who it was: to be kept apart from backups, and given back after a restore.
#[utoipa::path(get, path = "/v1/erasures", tag = "Operator", responses((status = 200, body = ErasuresJson)))]
async fn list(State(app): State<Arc<App>>, _: Operator) -> Result<Json<ErasuresJson>, Problem> {
    let read = app.heavy_at(HomeNo::MAIN, |store| store.read(|reader| reader.erasures())).await?;
    let erasures = read.into_iter().map(|erasure| ErasureJson {
        digest: format!("{:032x}", erasure.digest),
        subject: erasure.by.word().to_owned(),
        note: Some(erasure.note),
        actor: Some(erasure.actor),
        created_at: Some(rfc3339(erasure.created_at)),
    });
    Ok(Json(ErasuresJson { erasures: erasures.collect() }))
}

/// Erases whoever was erased before and is here again, as after a restore of an older backup.
#[utoipa::path(post, path = "/v1/erasures/replay", tag = "Operator", request_body = ReplayJson,
    responses((status = 200, body = ErasureDoneJson)))]
async fn replay(
    State(app): State<Arc<App>>,
    Operator(key): Operator,
    ApiJson(body): ApiJson<ReplayJson, LIST_BYTES_MAX>,
) -> Result<Json<ErasureDoneJson>, Problem> {
    check_note(&body.note)?;
    let given = body.erasures.unwrap_or_default();
    if given.len() > DIGESTS_MAX {
        return Err(Problem::invalid("/erasures", format!("give at most {DIGESTS_MAX} at a time")));
    }
    let mut known = Vec::with_capacity(given.len());
    for (index, erasure) in given.iter().enumerate() {
        let is_hex =
            erasure.digest.len() == 32 && erasure.digest.bytes().all(|byte| byte.is_ascii_hexdigit());
        let digest = u128::from_str_radix(&erasure.digest, 16).ok().filter(|_| is_hex);
        let (Some(digest), Ok(by)) = (digest, ErasedBy::of(&erasure.subject)) else {
            return Err(Problem::invalid(
                format!("/erasures/{index}"),
                "must be one that GET /v1/erasures gave",
            ));
        };
        known.push((by, digest));
    }
    let done = erasure::erase_again(&app, known, &body.note, &key.to_string()).await.map_err(not_done)?;
    Ok(Json(done_json(&done)))
}

fn check_note(note: &str) -> Result<(), Problem> {
    note_fault("/note", note).map_or(Ok(()), |fault| Err(Problem::validation(vec![fault])))
}

fn done_json(done: &Outcome) -> ErasureDoneJson {
    ErasureDoneJson {
        accounts: done.accounts,
        orders: done.erased.orders,
        holds: done.erased.holds,
        under_way: done.erased.under_way,
        repeated: done.is_repeated,
    }
}

fn not_done(error: EraseError) -> Problem {
    match error {
        EraseError::App(error) => error.into(),
        EraseError::UnderWay(count) => Problem::new(
            Code::ActionNotPossible,
            format!(
                "Not done: {count} holds and payments of this person are under way. Release or finish them first."
            ),
        ),
        EraseError::Moving => Problem::new(
            Code::ActionNotPossible,
            "Not done: an event is moving to another home. Ask again when it has arrived.",
        ),
        EraseError::Partial => Problem::new(
            Code::AuthorityUnavailable,
            "Not all databases can be used now; ask again to finish.",
        ),
    }
}
