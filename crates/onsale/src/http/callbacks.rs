//! The provider's callbacks.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use onsale_store::{Named, fail_point};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::App;
use crate::callbacks;
use crate::clock::wall_seconds;
use crate::gateway::stripe::CallbackError;

use super::extract::LimitedBytes;
use super::problem::{Code, Problem};
use super::reasons::not_found;
use super::wire::books::CallbackVerdictJson;

/// Largest message taken; the provider's are a few KiB.
const CALLBACK_BYTES_MAX: usize = 256 * 1024;

pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(receive_callback))
}

/// Takes a signed message of the provider, once, and says what was made of it.
#[utoipa::path(post, path = "/v1/payment-callbacks/{provider}", tag = "Provider", security(()),
    params(("provider" = String, Path, description = "stripe"), ("Stripe-Signature" = String, Header)),
    request_body(content = String, content_type = "application/json"),
    responses((status = 200, body = CallbackVerdictJson), (status = 400, description = "signature-invalid")))]
async fn receive_callback(
    State(app): State<Arc<App>>,
    Path(provider): Path<String>,
    headers: HeaderMap,
    LimitedBytes(body): LimitedBytes<CALLBACK_BYTES_MAX>,
) -> Result<Json<CallbackVerdictJson>, Problem> {
    if provider != "stripe" {
        return Err(not_found());
    }
    let gateway = &app.gateway.as_ref().ok_or_else(not_found)?.for_callbacks;
    let signature = headers.get("stripe-signature").and_then(|value| value.to_str().ok());
    // Signatures carry the provider's real time, whatever clock decisions use.
    let event = match gateway.verify_callback(signature, &body, wall_seconds()) {
        Ok(event) => event,
        Err(CallbackError::Signature) => {
            app.metrics.callback("bad_signature");
            return Err(Problem::new(
                Code::SignatureInvalid,
                "The signature is missing, wrong or too old; nothing was kept.",
            ));
        }
        Err(CallbackError::Malformed(why)) => {
            app.metrics.callback("malformed");
            return Err(Problem::invalid(
                "",
                format!("The message is signed but can't be understood: {why}."),
            ));
        }
    };
    fail_point!(async "callback.received", panic!("a fail point"));
    let callback = callbacks::unjudged(&event, &body, app.now());
    // In a task of its own: the provider's impatience must not cut short what its message set off.
    let shared = Arc::clone(&app);
    let judging = tokio::spawn(async move { callbacks::judge(&shared, callback, event.relevant).await });
    let judged =
        judging.await.map_err(|_| Problem::new(Code::Internal, "The callback could not be judged."))?;
    let verdict = judged?;
    app.metrics.callback(verdict.word());
    fail_point!(async "callback.answer", panic!("a fail point"));
    Ok(Json(CallbackVerdictJson { outcome: verdict.word() }))
}
