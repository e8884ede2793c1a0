//! Refusals on the wire: RFC 9457 problem details, and one table of everything that can be refused.

pub(crate) mod page;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU32, Ordering};

use axum::body::Body;
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Members that every problem has; an extension must not shadow one.
const RESERVED_MEMBERS: [&str; 6] = ["type", "title", "status", "detail", "code", "retryable"];

struct Entry {
    code: Code,
    slug: &'static str,
    status: StatusCode,
    retryable: bool,
    title: &'static str,
    explanation: &'static str,
}

macro_rules! codes {
    ($($code:ident $slug:literal $status:ident $retryable:literal $title:literal $explanation:literal;)*) => {
        /// Every kind of refusal. A code never changes its meaning or its status.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Code {
            $(#[doc = $explanation] $code,)*
        }

        /// In the order of the enum, so that a code is its own index.
        const TABLE: &[Entry] = &[$(Entry {
            code: Code::$code,
            slug: $slug,
            status: StatusCode::$status,
            retryable: $retryable,
            title: $title,
            explanation: $explanation,
        },)*];
    };
}

// Retryable means: the same request, with the same Idempotency-Key, may be accepted later.
codes! {
    ValidationFailed "validation-failed" UNPROCESSABLE_ENTITY false "The request is not valid"
        "The request could not be understood as it stands; errors[] names each place.";
    Unauthenticated "unauthenticated" UNAUTHORIZED false "Not authenticated"
        "The bearer token is missing, unknown, revoked or no longer valid.";
    Forbidden "forbidden" FORBIDDEN false "Not allowed"
        "The token is valid, but its role does not allow this call.";
    NotFound "not-found" NOT_FOUND false "Not found"
        "There is nothing here, or nothing that this token may see.";
    MethodNotAllowed "method-not-allowed" METHOD_NOT_ALLOWED false "Method not allowed"
        "The path exists, but not with this method; the Allow header lists those it has.";
    Gone "gone" GONE false "No longer available"
        "What was asked for is too old to be kept; load the whole state again.";
    RequestTimeout "request-timeout" REQUEST_TIMEOUT true "The request took too long to arrive"
        "The body did not arrive in time, so nothing was done and the connection is closed.";
    PayloadTooLarge "payload-too-large" PAYLOAD_TOO_LARGE false "The body is too large"
        "The body is larger than this call accepts.";
    UnsupportedMediaType "unsupported-media-type" UNSUPPORTED_MEDIA_TYPE false "Unsupported media type"
        "The Content-Type is missing or is none that this call accepts.";
    SeatUnavailable "seat-unavailable" CONFLICT false "A seat is not available"
        "At least one wanted seat is held, sold or not for sale; nothing was held, and seats[] names them.";
    NotEnoughAvailable "not-enough-available" CONFLICT false "Not enough places"
        "There are not as many fitting places left as were asked for; nothing was held.";
    AccessCodeInvalid "access-code-invalid" FORBIDDEN false "The access code can't be used"
        "There is no such code for this event, or it is not in force now; nothing was held.";
    AccessCodeExhausted "access-code-exhausted" CONFLICT false "The access code is used up"
        "Fewer tickets are left on this code than were asked for (limit, in_use); nothing was held.";
    HoldExpired "hold-expired" CONFLICT false "The hold has expired"
        "The time of the hold ran out and its seats are for everyone again.";
    HoldNotActive "hold-not-active" CONFLICT false "The hold is not active"
        "The hold was already released or paid, so this cannot be done with it any more.";
    AccountLimit "account-limit" CONFLICT false "The account's limit is reached"
        "This would be more tickets than one account may have for the event (limit, in_use).";
    TooManySeats "too-many-seats" UNPROCESSABLE_ENTITY false "Too many seats in one hold"
        "One hold may not have so many seats.";
    EventNotOnSale "event-not-on-sale" CONFLICT false "The event is not on sale"
        "The sale has not begun, is over, or was closed by the organiser.";
    EventPaused "event-paused" SERVICE_UNAVAILABLE true "The sale is paused"
        "The organiser has paused the sale; what is held and ordered stays, and the sale goes on later.";
    AdmissionRequired "admission-required" FORBIDDEN false "Admission is required"
        "This event has a waiting room: wait there first, then send the Admission-Token.";
    AdmissionInvalid "admission-invalid" FORBIDDEN false "The admission is not valid"
        "The Admission-Token is forged, damaged, or was given for another event or account.";
    AdmissionExpired "admission-expired" FORBIDDEN false "The admission has expired"
        "The time to shop ran out; enter the waiting room again.";
    PriceChanged "price-changed" CONFLICT false "The price has changed"
        "The price is not the one that was shown; look at the new one and decide again.";
    TooLittleTime "too-little-time" CONFLICT false "Too little time is left"
        "The hold would end before a payment could be finished, so none was begun.";
    PaymentPending "payment-pending" CONFLICT false "A payment is in progress"
        "An earlier attempt to pay for this order is still open; its result comes first.";
    AttemptsExhausted "attempts-exhausted" CONFLICT false "Too many attempts to pay"
        "This order has been tried to be paid as often as it may; release the hold and begin anew.";
    SignatureInvalid "signature-invalid" BAD_REQUEST false "The signature is not valid"
        "The callback is not signed by the provider, or was signed too long ago; nothing was kept.";
    NotRefundable "not-refundable" CONFLICT false "The order can't be refunded so"
        "There is nothing to give back now, or not in this way; detail says why, and nothing was done.";
    RefundPending "refund-pending" CONFLICT false "A refund is in progress"
        "An earlier refund of this order is still open at the provider; its result comes first.";
    RefundTooLarge "refund-too-large" CONFLICT false "The refund is larger than what is left"
        "More was asked for than is left of the money that was taken (left_minor); nothing was done.";
    CaseClosed "case-closed" CONFLICT false "The case is closed"
        "The case has been settled, by proof or by someone else; nothing is left to do.";
    ActionNotPossible "action-not-possible" CONFLICT false "The action does not fit"
        "What was asked cannot be done here and now; detail says why.";
    ManifestFrozen "manifest-frozen" CONFLICT false "The manifest can no longer change"
        "The event has been opened for sale, so its manifest stays as it is.";
    IdempotencyKeyMissing "idempotency-key-missing" BAD_REQUEST false "The Idempotency-Key is missing"
        "This call changes business state and needs an Idempotency-Key, so that it can be repeated safely.";
    IdempotencyKeyReused "idempotency-key-reused" UNPROCESSABLE_ENTITY false "The Idempotency-Key was used before"
        "The same Idempotency-Key came before with another request; use a new key for a new request.";
    IdempotencyInProgress "idempotency-in-progress" CONFLICT true "The same request is still running"
        "A request with this Idempotency-Key is being worked on; ask again with the same key.";
    RateLimited "rate-limited" TOO_MANY_REQUESTS true "Too many requests"
        "This client asks more often than it may; wait as long as Retry-After says.";
    Overloaded "overloaded" SERVICE_UNAVAILABLE true "The server is overloaded"
        "There is more to do than can be done in time; nothing was done, try again after Retry-After.";
    AuthorityUnavailable "authority-unavailable" SERVICE_UNAVAILABLE true "The sale cannot be decided now"
        "The database that decides is not reachable; nothing was done, try again after Retry-After.";
    ProviderUnavailable "provider-unavailable" SERVICE_UNAVAILABLE true "The payment provider can't be asked"
        "The payment provider does not answer, or asks to come back later; what was done before that stays.";
    OutcomeUnknown "outcome-unknown" SERVICE_UNAVAILABLE true "The outcome is not known yet"
        "The request may or may not have taken effect; asked again with the same key, it gives the truth.";
    Internal "internal" INTERNAL_SERVER_ERROR true "Internal error"
        "The server made a mistake, which has been recorded; the same key makes another try safe.";
}

impl Code {
    /// Every code, in the order of the documentation.
    pub(crate) fn all() -> impl Iterator<Item = Code> {
        TABLE.iter().map(|entry| entry.code)
    }

    /// The code with this name on the wire.
    pub(crate) fn from_slug(slug: &str) -> Option<Code> {
        Code::all().find(|code| code.slug() == slug)
    }

    /// The name on the wire: the member `code` and the end of `type`.
    pub(crate) const fn slug(self) -> &'static str {
        self.entry().slug
    }

    pub(crate) const fn status(self) -> StatusCode {
        self.entry().status
    }

    /// May the same request, with the same key, be accepted later?
    pub(crate) const fn retryable(self) -> bool {
        self.entry().retryable
    }

    pub(crate) const fn title(self) -> &'static str {
        self.entry().title
    }

    /// One sentence for the code's page.
    pub(crate) const fn explanation(self) -> &'static str {
        self.entry().explanation
    }

    const fn entry(self) -> &'static Entry {
        &TABLE[self as usize]
    }

    /// Codes that tell the client to come back say when, even if nobody thought of a time.
    fn always_has_retry_after(self) -> bool {
        let status = self.status();
        status == StatusCode::SERVICE_UNAVAILABLE
            || status == StatusCode::TOO_MANY_REQUESTS
            || self == Code::IdempotencyInProgress
    }
}

/// One refusal, ready to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) code: Code,
    /// For humans, about this occurrence; clients go by the code.
    pub(crate) detail: String,
    pub(crate) extensions: Map<String, Value>,
    pub(crate) retry_after_s: Option<u32>,
}

/// One fault of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct FieldError {
    /// A JSON pointer into the body, or `/headers/<name>` or `/query/<name>`.
    pub(crate) pointer: String,
    pub(crate) detail: String,
}

impl FieldError {
    pub(crate) fn new(pointer: impl Into<String>, detail: impl Into<String>) -> FieldError {
        FieldError { pointer: pointer.into(), detail: detail.into() }
    }
}

impl Problem {
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Problem {
        Problem { code, detail: detail.into(), extensions: Map::new(), retry_after_s: None }
    }

    /// 422 with every fault that was found.
    pub(crate) fn validation(errors: Vec<FieldError>) -> Problem {
        let detail = match errors.as_slice() {
            [only] => only.detail.clone(),
            many => format!("The request has {} faults.", many.len()),
        };
        Problem::new(Code::ValidationFailed, detail).with("errors", json!(errors))
    }

    /// 422 with one fault.
    pub(crate) fn invalid(pointer: impl Into<String>, detail: impl Into<String>) -> Problem {
        Problem::validation(vec![FieldError::new(pointer, detail)])
    }

    /// Adds an extension member.
    #[must_use]
    pub(crate) fn with(mut self, member: &str, value: impl Into<Value>) -> Problem {
        debug_assert!(!RESERVED_MEMBERS.contains(&member), "{member} is not an extension");
        self.extensions.insert(member.to_owned(), value.into());
        self
    }

    /// Says when to come back; a 503, a 429 and a running request say so anyway.
    #[must_use]
    pub(crate) fn retry_after(mut self, seconds: u32) -> Problem {
        self.retry_after_s = Some(seconds);
        self
    }

    /// The body, the same whichever way it is sent.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        #[derive(Serialize)]
        struct Members<'a> {
            r#type: String,
            title: &'a str,
            status: u16,
            detail: &'a str,
            code: &'a str,
            retryable: bool,
            #[serde(flatten)]
            extensions: &'a Map<String, Value>,
        }
        let members = Members {
            r#type: format!("/problems/{}", self.code.slug()),
            title: self.code.title(),
            status: self.code.status().as_u16(),
            detail: &self.detail,
            code: self.code.slug(),
            retryable: self.code.retryable(),
            extensions: &self.extensions,
        };
        serde_json::to_vec(&members).expect("strings and JSON values always serialize")
    }
}

impl IntoResponse for Problem {
    /// The code stays in the response's extensions, where the log and the metrics find it.
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.to_json()));
        *response.status_mut() = self.code.status();
        response.extensions_mut().insert(self.code);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        // A cache in front may keep a 404 or a 410 unless told otherwise, and would serve it past its time.
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        let default_s = self.code.always_has_retry_after().then(spread_retry_after_s);
        if let Some(seconds) = self.retry_after_s.or(default_s) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.code == Code::Unauthenticated {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // What may still come of the body isn't waited for, so the next request could not be told from it.
        if matches!(self.code, Code::RequestTimeout | Code::PayloadTooLarge) {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// One to three seconds in turn, so that all who were refused at once do not come back at once.
fn spread_retry_after_s() -> u32 {
    static TURN: AtomicU32 = AtomicU32::new(0);
    1 + TURN.fetch_add(1, Ordering::Relaxed) % 3
}

/// The fallback for paths that do not exist.
pub(crate) async fn unknown_route(uri: Uri) -> Problem {
    Problem::new(Code::NotFound, format!("There is nothing at {}.", uri.path()))
}

/// The fallback for paths without this method; axum adds the `Allow` header to its answer.
pub(crate) async fn unknown_method(method: Method, uri: Uri) -> Problem {
    Problem::new(Code::MethodNotAllowed, format!("{} does not have the method {method}.", uri.path()))
}
