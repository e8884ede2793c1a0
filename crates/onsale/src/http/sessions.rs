//! Guests' sessions.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use onsale_core::id::{AccountId, EventNo};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::App;
use crate::auth::SESSION_TTL_MS;

use super::problem::{Code, Problem};
use super::wire::rfc3339;
use super::wire::sale::SessionJson;

pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(create_session))
}

/// Begins a guest's session. Nothing is stored: the token is the session.
#[utoipa::path(post, path = "/v1/sessions", tag = "Buyer", security(()),
    responses((status = 201, body = SessionJson)))]
async fn create_session(State(app): State<Arc<App>>) -> Result<(StatusCode, Json<SessionJson>), Problem> {
    let id =
        app.seed(EventNo::HOUSE).mint::<onsale_core::id::HoldId>().to_string().replacen("hld_", "acc_", 1);
    let account = AccountId::parse(&id)
        .ok_or_else(|| Problem::new(Code::Internal, "An account could not be named."))?;
    let expires_at = app.now().plus_ms(SESSION_TTL_MS);
    let session_token = app.auth.session_token(&account, expires_at);
    let session =
        SessionJson { session_token, account_id: account.to_string(), expires_at: rfc3339(expires_at) };
    Ok((StatusCode::CREATED, Json(session)))
}
