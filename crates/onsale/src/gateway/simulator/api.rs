//! HTTP: the provider's paths under `/v1`, the control surface under `/_sim`.

use std::sync::Arc;

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::Response;
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;

use super::answer::{Answer, Reply};
use super::error::ApiError;
use super::form::Form;
use super::limits::{BODY_BYTES_MAX, KEY_CHARS_MAX};
use super::operations::{Call, Request};
use super::server::Shared;
use super::{calls, control, lists, objects};

const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const STRIPE_VERSION: HeaderName = HeaderName::from_static("stripe-version");

/// The connection is to be closed with nothing said.
#[derive(Debug)]
pub(super) struct HangUp;

impl std::fmt::Display for HangUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("hung up on purpose")
    }
}

impl std::error::Error for HangUp {}

/// What is said: a status, a body, and whether it was said before.
struct Said {
    status: u16,
    body: Vec<u8>,
    replayed: bool,
}

impl Said {
    fn ok(body: Vec<u8>) -> Said {
        Said { status: 200, body, replayed: false }
    }

    fn reply(reply: &Reply, replayed: bool, shared: &Shared) -> Said {
        Said { status: reply.status(), body: reply.body(&shared.authentication_base), replayed }
    }
}

/// How a request ends when it isn't answered as it wishes.
enum Failure {
    Refused(ApiError),
    HangUp,
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Failure {
        Failure::Refused(error)
    }
}

/// Answers one HTTP request.
pub(super) async fn answer(
    shared: Arc<Shared>,
    request: hyper::Request<Incoming>,
) -> Result<Response<Full<Bytes>>, HangUp> {
    let request_id = shared.request_id();
    let (head, body) = request.into_parts();
    let said = match Limited::new(body, BODY_BYTES_MAX).collect().await {
        Ok(body) => route(&shared, &request_id, &head, &body.to_bytes()).await,
        Err(error) if error.is::<LengthLimitError>() => Err(ApiError::too_large().into()),
        Err(_) => return Err(HangUp), // The client did first.
    };
    let said = match said {
        Ok(said) => said,
        Err(Failure::Refused(error)) => Said::reply(&Reply::Error(error.into()), false, &shared),
        Err(Failure::HangUp) => return Err(HangUp),
    };
    let mut response = Response::new(Full::new(said.body.into()));
    *response.status_mut() = said.status.try_into().expect("every status here is a real one");
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(REQUEST_ID, HeaderValue::from_str(&request_id).expect("letters and digits"));
    headers.insert(STRIPE_VERSION, HeaderValue::from_static(objects::API_VERSION));
    if let Some(key) = head.headers.get(IDEMPOTENCY_KEY) {
        headers.insert(IDEMPOTENCY_KEY, key.clone());
    }
    if said.replayed {
        headers.insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}

async fn route(
    shared: &Arc<Shared>,
    request_id: &Arc<str>,
    head: &Parts,
    body: &[u8],
) -> Result<Said, Failure> {
    let path = head.uri.path();
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    if segments[0] == "v1" {
        authenticate(&head.headers)?;
    }
    let form = || Form::parse(body);
    let query = || Form::parse(head.uri.query().unwrap_or_default().as_bytes());
    let (form, call) = match (head.method.as_str(), segments.as_slice()) {
        ("POST", ["v1", "payment_intents"]) => calls::create(form()?)?,
        ("POST", ["v1", "payment_intents", id, "confirm"]) => calls::confirm(form()?, id)?,
        ("POST", ["v1", "payment_intents", id, "capture"]) => calls::capture(form()?, id)?,
        ("POST", ["v1", "payment_intents", id, "cancel"]) => calls::cancel(form()?, id)?,
        ("POST", ["v1", "refunds"]) => calls::refund(form()?)?,
        ("GET", ["v1", "payment_intents", id]) => calls::query(query()?, id)?,
        (method, segments) => {
            let said = match (method, segments) {
                ("GET", ["v1", "payment_intents"]) => lists::intents(shared, query()?, path)?,
                ("GET", ["v1", "refunds"]) => lists::refunds(shared, query()?, path)?,
                ("GET", ["v1", "balance_transactions"]) => lists::balance(shared, query()?, path)?,
                ("GET", ["v1", "events"]) => lists::events(shared, query()?, path)?,
                ("GET", ["v1", "events", id]) => lists::event(shared, id)?,
                ("POST", ["_sim", "script"]) => control::script(shared, body)?,
                ("POST", ["_sim", "webhooks"]) => control::webhooks(shared, body)?,
                ("POST", ["_sim", "deliver"]) => control::deliver(shared, body).await?,
                ("POST", ["_sim", "intents", id, "complete"]) => control::complete(shared, id, body)?,
                ("GET", ["_sim", "log"]) => control::log(shared),
                ("GET", ["_sim", "ledger"]) => control::ledger(shared),
                _ => return Err(ApiError::unknown_url(method, path).into()),
            };
            return Ok(Said::ok(said));
        }
    };
    let request = Request {
        id: request_id.clone(),
        idempotency_key: match call {
            Call::Query { .. } => None, // A read needs none, and the provider ignores it.
            _ => idempotency_key(&head.headers)?,
        },
        call,
        fingerprint: form.fingerprint(path),
        expand_charge: calls::expand_one(&form, "latest_charge")?,
    };
    match shared.operate(request).await {
        Answer::Reply(reply) => Ok(Said::reply(&reply, false, shared)),
        Answer::Replayed(reply) => Ok(Said::reply(&reply, true, shared)),
        Answer::Lost => Err(Failure::HangUp),
    }
}

/// Any secret key will do: the simulator has one account.
fn authenticate(headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(header) = headers.get(AUTHORIZATION) else {
        return Err(ApiError::unauthenticated(
            "You did not provide an API key: send it as Authorization: Bearer sk_...",
        ));
    };
    let key = header.to_str().ok().and_then(|text| text.strip_prefix("Bearer "));
    match key {
        Some(key) if key.starts_with("sk_") => Ok(()),
        _ => Err(ApiError::unauthenticated("Invalid API Key provided.")),
    }
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<Arc<str>>, ApiError> {
    let Some(header) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    match header.to_str() {
        Ok(key) if !key.is_empty() && key.len() <= KEY_CHARS_MAX => Ok(Some(key.into())),
        _ => Err(ApiError::malformed(format!("An idempotency key has 1 to {KEY_CHARS_MAX} characters."))),
    }
}
