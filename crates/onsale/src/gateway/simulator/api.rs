//! HTTP: the provider's paths under `/v1`, the control surface under `/_sim`.

use std::sync::Arc;

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Response};

use super::answer::{Answer, Reply};
use super::calls::{self, expand_charge};
use super::error::ApiError;
use super::events::Wanted;
use super::form::Form;
use super::limits::{BODY_BYTES_MAX, KEY_CHARS_MAX};
use super::operations::{Call, Request};
use super::server::Shared;
use super::{control, lists, objects};

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
        Err(error) if error.is::<LengthLimitError>() => Ok(Err(ApiError::too_large())),
        Err(_) => return Err(HangUp), // The client did first.
    };
    let said = said?.unwrap_or_else(|error| Said {
        status: error.status,
        body: objects::render(&objects::error(&error, &shared.authentication_base)),
        replayed: false,
    });
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
    head: &hyper::http::request::Parts,
    body: &[u8],
) -> Result<Result<Said, ApiError>, HangUp> {
    let path = head.uri.path();
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    let refused = |error| Ok(Err(error));
    if segments[0] == "v1"
        && let Err(error) = authenticate(&head.headers)
    {
        return refused(error);
    }
    let post = head.method == Method::POST;
    if !post && head.method != Method::GET {
        return refused(ApiError::unknown_url(head.method.as_str(), path));
    }
    // What has an answer without being an operation leaves the match by itself.
    let operation = match (post, segments.as_slice()) {
        (true, ["v1", "payment_intents"]) => Form::parse(body).and_then(calls::create),
        (true, ["v1", "payment_intents", id, "confirm"]) => {
            Form::parse(body).and_then(|form| calls::confirm(form, id))
        }
        (true, ["v1", "payment_intents", id, "capture"]) => {
            Form::parse(body).and_then(|form| calls::capture(form, id))
        }
        (true, ["v1", "payment_intents", id, "cancel"]) => {
            Form::parse(body).and_then(|form| calls::cancel(form, id))
        }
        (true, ["v1", "refunds"]) => Form::parse(body).and_then(calls::refund),
        (false, ["v1", "payment_intents", id]) => query(head)
            .and_then(|form| form.only("client_secret expand"))
            .map(|form| (form, Call::Query { intent_id: (*id).to_owned() })),
        (false, ["v1", "payment_intents"]) => {
            return Ok(query(head).and_then(|query| lists::intents(shared, query, path)).map(Said::ok));
        }
        (false, ["v1", "refunds"]) => {
            return Ok(query(head).and_then(|query| lists::refunds(shared, query, path)).map(Said::ok));
        }
        (false, ["v1", "events"]) => {
            return Ok(query(head).and_then(|query| lists::events(shared, query, path)).map(Said::ok));
        }
        (false, ["v1", "events", id]) => return Ok(event(shared, id).map(Said::ok)),
        (true, ["_sim", "script"]) => return Ok(control::script(shared, body).map(json)),
        (true, ["_sim", "webhooks"]) => return Ok(control::webhooks(shared, body).map(json)),
        (true, ["_sim", "deliver"]) => return Ok(control::deliver(shared, body).await.map(json)),
        (true, ["_sim", "intents", id, "complete"]) => {
            return Ok(control::complete(shared, id, body).map(Said::ok));
        }
        (false, ["_sim", "log"]) => return Ok(Ok(Said::ok(control::log(shared)))),
        (false, ["_sim", "ledger"]) => return Ok(Ok(Said::ok(control::ledger(shared)))),
        _ => return refused(ApiError::unknown_url(head.method.as_str(), path)),
    };
    let idempotency_key = match post {
        true => idempotency_key(&head.headers),
        false => Ok(None), // A read needs none, and the provider ignores it.
    };
    let request = operation.and_then(|(form, call)| {
        Ok(Request {
            id: request_id.clone(),
            call,
            idempotency_key: idempotency_key?,
            fingerprint: form.fingerprint(path),
            expand_charge: expand_charge(&form, "latest_charge")?,
        })
    });
    let request = match request {
        Ok(request) => request,
        Err(error) => return refused(error),
    };
    let said = |reply: &Reply, replayed| Said {
        status: reply.status(),
        body: reply.body(&shared.authentication_base),
        replayed,
    };
    match shared.operate(request).await {
        Answer::Reply(reply) => Ok(Ok(said(&reply, false))),
        Answer::Replayed(reply) => Ok(Ok(said(&reply, true))),
        Answer::Lost => Err(HangUp),
    }
}

fn json(value: serde_json::Value) -> Said {
    Said::ok(objects::render(&value))
}

fn query(head: &hyper::http::request::Parts) -> Result<Form, ApiError> {
    Form::parse(head.uri.query().unwrap_or_default().as_bytes())
}

fn event(shared: &Shared, id: &str) -> Result<Vec<u8>, ApiError> {
    let wanted = Wanted { event_id: Some(id), ..Wanted::default() };
    let event = shared.transact(|books, _| books.events.latest(&wanted)).0;
    let event = event.ok_or_else(|| ApiError::no_such(404, "event", id, "id"))?;
    Ok(objects::render(&objects::event(&event, &shared.authentication_base)))
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
