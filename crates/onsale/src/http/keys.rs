//! API keys: made and revoked by operators.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use onsale_core::id::{EventNo, KeyId};
use onsale_store::{ApiKey, Role};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::App;
use crate::auth;

use super::caller::{Operator, PathId};
use super::extract::ApiJson;
use super::problem::Problem;
use super::reasons::{not_found, not_one_of};
use super::wire::books::{KeyJson, NewKeyJson};

pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(create_key)).routes(routes!(revoke_key))
}

/// Makes a key. Its secret is shown this once; only a digest is stored.
#[utoipa::path(post, path = "/v1/keys", tag = "Operator", request_body = NewKeyJson, responses((status = 201, body = KeyJson)))]
async fn create_key(
    State(app): State<Arc<App>>,
    Operator(by): Operator,
    ApiJson(body): ApiJson<NewKeyJson>,
) -> Result<(StatusCode, Json<KeyJson>), Problem> {
    let Some(role) = Role::parse(&body.role) else {
        return Err(Problem::validation(vec![not_one_of(
            "/role",
            &["operator", "partner", "gate", "reader"],
        )]));
    };
    let name = body.name.unwrap_or_default();
    if name.chars().count() > 200 || name.chars().any(char::is_control) {
        return Err(Problem::invalid("/name", "must be at most 200 printable characters"));
    }
    let secret = auth::new_api_secret();
    let key_id: KeyId = app.seed(EventNo::HOUSE).mint();
    let key = ApiKey {
        key_id,
        secret_sha256: auth::digest(&secret),
        role,
        name: name.clone(),
        created_at: app.now(),
    };
    app.homes.main().add_key(key).await?;
    app.reload_keys().await?;
    tracing::info!(key.id = %key_id, key.role = role.as_str(), actor = %by, "Made key {key_id}");
    Ok((StatusCode::CREATED, Json(KeyJson { key_id: key_id.to_string(), role: role.as_str(), name, secret })))
}

/// Revokes a key, at once here and within a second in other processes.
#[utoipa::path(delete, path = "/v1/keys/{key_id}", tag = "Operator", params(("key_id" = String, Path)),
    responses((status = 204), (status = 404)))]
async fn revoke_key(
    State(app): State<Arc<App>>,
    PathId(key): PathId<KeyId>,
    Operator(by): Operator,
) -> Result<StatusCode, Problem> {
    let known = app.homes.main().revoke_key(key, app.now()).await?;
    app.reload_keys().await?;
    tracing::info!(key.id = %key, actor = %by, "Revoked key {key}");
    if known { Ok(StatusCode::NO_CONTENT) } else { Err(not_found()) }
}
