//! Extractors that bound what they read and refuse with problem details.

#[cfg(test)]
mod tests;

use std::error::Error;
use std::fmt::Write;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use serde_path_to_error::{Path, Segment};
use tokio::time::timeout;

use super::problem::{Code, Problem};

/// Far more than the largest hold or policy needs; what is larger by nature takes `LimitedBytes`.
pub(crate) const JSON_BYTES_MAX: usize = 64 * 1024;
/// Of calls that take ten thousand of something: seats by their ids, or what was erased with its notes.
pub(crate) const LIST_BYTES_MAX: usize = 4 * 1024 * 1024;
/// A body that takes longer keeps a connection for nothing.
pub(crate) const BODY_READ_TIMEOUT: Duration = Duration::from_secs(10);
/// A fault may quote what the client sent, which must not make the answer as large as the request.
const FAULT_CHARS_MAX: usize = 300;
/// As the contract has it; also what the store's column takes.
const IDEMPOTENCY_KEY_BYTES_MAX: usize = 255;

/// A JSON body. Whether unknown members are refused is up to `T` (`deny_unknown_fields`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct ApiJson<T, const BYTES_MAX: usize = JSON_BYTES_MAX>(pub(crate) T);

impl<T: DeserializeOwned, S: Sync, const BYTES_MAX: usize> FromRequest<S> for ApiJson<T, BYTES_MAX> {
    type Rejection = Problem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        if !is_json(request.headers()) {
            let detail = "The Content-Type must be application/json.";
            return Err(Problem::new(Code::UnsupportedMediaType, detail));
        }
        let body = read_body(request.into_body(), BYTES_MAX, BODY_READ_TIMEOUT).await?;
        parse_json(&body).map(ApiJson)
    }
}

/// A raw body of at most `MAX` bytes, for what is signed or is not JSON.
#[derive(Clone, Debug)]
pub(crate) struct LimitedBytes<const MAX: usize>(pub(crate) Bytes);

impl<const MAX: usize, S: Sync> FromRequest<S> for LimitedBytes<MAX> {
    type Rejection = Problem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        read_body(request.into_body(), MAX, BODY_READ_TIMEOUT).await.map(LimitedBytes)
    }
}

/// The required `Idempotency-Key`, without its quotes: `"k1"` and `k1` are the same key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IdempotencyKey(pub(crate) String);

impl<S: Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let invalid = |detail| Problem::invalid("/headers/Idempotency-Key", detail);
        let mut values = parts.headers.get_all("idempotency-key").iter();
        let Some(value) = values.next() else {
            let detail = "This call needs an Idempotency-Key header.";
            return Err(Problem::new(Code::IdempotencyKeyMissing, detail));
        };
        if values.next().is_some() {
            return Err(invalid("There must be one Idempotency-Key, not several."));
        }
        match parse_idempotency_key(value.as_bytes()) {
            Some(key) => Ok(IdempotencyKey(key)),
            None => Err(invalid("An Idempotency-Key is 1 to 255 visible ASCII characters, bare or quoted.")),
        }
    }
}

/// The `Idempotency-Key` of a call that can be repeated without one, too.
#[derive(Clone, Debug)]
pub(crate) struct OptionalIdempotencyKey(pub(crate) Option<String>);

impl<S: Sync> FromRequestParts<S> for OptionalIdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match IdempotencyKey::from_request_parts(parts, state).await {
            Ok(IdempotencyKey(key)) => Ok(OptionalIdempotencyKey(Some(key))),
            Err(problem) if problem.code == Code::IdempotencyKeyMissing => Ok(OptionalIdempotencyKey(None)),
            Err(problem) => Err(problem),
        }
    }
}

/// Query parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ApiQuery<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for ApiQuery<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        match Query::try_from_uri(&parts.uri) {
            Ok(Query(query)) => Ok(ApiQuery(query)),
            Err(rejection) => Err(query_problem(&rejection)),
        }
    }
}

/// Reads a body of at most `bytes_max` within `time_max`. A declared length that is too large is refused
/// before anything is read, and one that was not declared as soon as it is reached.
pub(crate) async fn read_body(body: Body, bytes_max: usize, time_max: Duration) -> Result<Bytes, Problem> {
    let too_large =
        || Problem::new(Code::PayloadTooLarge, format!("The body must not exceed {bytes_max} bytes."));
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(too_large());
    }
    match timeout(time_max, Limited::new(body, bytes_max).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        // The client broke off or broke the chunked coding; whoever may still be there gets an answer.
        Ok(Err(_)) => Err(Problem::invalid("", "The body is incomplete.")),
        Err(_) => {
            let detail = format!("The body did not arrive within {time_max:?}.");
            Err(Problem::new(Code::RequestTimeout, detail))
        }
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return false };
    let Ok(value) = value.to_str() else { return false };
    let (essence, parameter) = value.split_once(';').unwrap_or((value, ""));
    let is_utf8 = |parameter: &str| {
        let (name, charset) = parameter.split_once('=').unwrap_or_default();
        name.eq_ignore_ascii_case("charset") && charset.trim_matches('"').eq_ignore_ascii_case("utf-8")
    };
    essence.trim().eq_ignore_ascii_case("application/json")
        && (parameter.trim().is_empty() || is_utf8(parameter.trim()))
}

fn parse_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    if body.is_empty() {
        return Err(Problem::invalid("", "The body is empty; JSON is needed."));
    }
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let (message, position) = split_position(error.inner());
        match error.inner().classify() {
            Category::Data => fault("", error.path(), &message),
            // A broken document has no places to point at, only lines.
            Category::Syntax | Category::Eof | Category::Io => malformed(&message, &position),
        }
    })?;
    deserializer.end().map_err(|error| {
        let (message, position) = split_position(&error);
        malformed(&message, &position)
    })?;
    Ok(value)
}

/// serde_json ends its messages with the position, which a pointer says better.
fn split_position(error: &serde_json::Error) -> (String, String) {
    let message = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    match message.strip_suffix(&position) {
        Some(message) => (message.to_owned(), position),
        None => (message, position),
    }
}

fn malformed(message: &str, position: &str) -> Problem {
    Problem::invalid("", format!("The body is not JSON: {message}{position}."))
}

fn query_problem(rejection: &QueryRejection) -> Problem {
    // axum keeps the place only in the cause; should its type ever change, the place is lost, not the fault.
    let mut cause: Option<&dyn Error> = Some(rejection);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<serde_path_to_error::Error<serde::de::value::Error>>() {
            return fault("/query", error.path(), &error.inner().to_string());
        }
        cause = error.source();
    }
    Problem::invalid("/query", rejection.body_text())
}

/// 422 for serde's `message` about `path`, which ends at the object when a member is missing or double.
fn fault(prefix: &str, path: &Path, message: &str) -> Problem {
    let mut pointer = prefix.to_owned();
    for segment in path {
        match segment {
            Segment::Seq { index } => {
                let _ = write!(pointer, "/{index}");
            }
            Segment::Map { key } | Segment::Enum { variant: key } => push_member(&mut pointer, key),
            Segment::Unknown => {}
        }
    }
    let of_object =
        ["missing field `", "duplicate field `"].iter().find_map(|kind| message.strip_prefix(kind));
    if let Some(member) = of_object.and_then(|rest| rest.strip_suffix('`')) {
        push_member(&mut pointer, member);
    }
    let mut chars = message.chars();
    let mut detail: String = chars.by_ref().take(FAULT_CHARS_MAX).collect();
    if chars.next().is_some() {
        detail.push('…');
    }
    Problem::invalid(pointer, detail)
}

/// RFC 6901: `~` and `/` inside a member's name are escaped.
fn push_member(pointer: &mut String, member: &str) {
    pointer.push('/');
    pointer.push_str(&member.replace('~', "~0").replace('/', "~1"));
}

/// The key itself from a bare token or from a quoted structured-field string without parameters.
fn parse_idempotency_key(value: &[u8]) -> Option<String> {
    let key = match value {
        [b'"', quoted @ .., b'"'] => unescape(quoted)?,
        [b'"', ..] => return None,
        bare => bare.to_vec(),
    };
    let fits = (1..=IDEMPOTENCY_KEY_BYTES_MAX).contains(&key.len());
    let visible = key.iter().all(u8::is_ascii_graphic);
    if fits && visible { String::from_utf8(key).ok() } else { None }
}

/// RFC 9651: inside the quotes only `\"` and `\\` are escapes, and neither character stands alone.
fn unescape(quoted: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::with_capacity(quoted.len());
    let mut bytes = quoted.iter();
    while let Some(&byte) = bytes.next() {
        plain.push(match byte {
            b'\\' => *bytes.next().filter(|&&escaped| matches!(escaped, b'"' | b'\\'))?,
            b'"' => return None,
            byte => byte,
        });
    }
    Some(plain)
}
