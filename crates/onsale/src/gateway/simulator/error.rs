//! The provider's errors, as it shapes them.

use std::borrow::Cow;
use std::sync::Arc;

use super::intent::{Decline, Intent};

/// One refusal or failure on its way to the client.
#[derive(Clone, Debug)]
pub(super) struct ApiError {
    /// HTTP status.
    pub(super) status: u16,
    /// `card_error`, `invalid_request_error`, `idempotency_error`, `api_error`.
    pub(super) kind: &'static str,
    pub(super) code: Option<&'static str>,
    pub(super) decline_code: Option<&'static str>,
    pub(super) message: Cow<'static, str>,
    pub(super) param: Option<Cow<'static, str>>,
    pub(super) intent: Option<Arc<Intent>>,
    /// Whether the operation began: only then is the answer kept under the idempotency key.
    pub(super) executed: bool,
}

impl ApiError {
    fn new(status: u16, kind: &'static str, message: impl Into<Cow<'static, str>>) -> ApiError {
        ApiError {
            status,
            kind,
            code: None,
            decline_code: None,
            message: message.into(),
            param: None,
            intent: None,
            executed: false,
        }
    }

    /// A parameter that can't be taken as it is.
    pub(super) fn invalid(
        code: &'static str,
        param: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'static, str>>,
    ) -> ApiError {
        let mut error = ApiError::new(400, "invalid_request_error", message);
        error.code = Some(code);
        error.param = Some(param.into());
        error
    }

    /// A request that isn't well-formed in a way that no parameter names.
    pub(super) fn malformed(message: impl Into<Cow<'static, str>>) -> ApiError {
        ApiError::new(400, "invalid_request_error", message)
    }

    /// A parameter that must be there.
    pub(super) fn missing(param: &'static str) -> ApiError {
        ApiError::invalid("parameter_missing", param, format!("Missing required param: {param}."))
    }

    /// An object that doesn't exist. 404 when the request was for it, 400 when it only names it.
    pub(super) fn no_such(status: u16, what: &str, id: &str, param: &'static str) -> ApiError {
        let mut error = ApiError::invalid("resource_missing", param, format!("No such {what}: '{id}'"));
        error.status = status;
        error
    }

    /// An operation that the intent's state doesn't allow.
    pub(super) fn unexpected_state(intent: &Arc<Intent>, verb: &str) -> ApiError {
        ApiError::refused(
            intent,
            "payment_intent_unexpected_state",
            format!(
                "This PaymentIntent could not be {verb} because it has a status of {}.",
                intent.status.as_str()
            ),
        )
    }

    /// An operation that was begun and refused.
    pub(super) fn refused(
        intent: &Arc<Intent>,
        code: &'static str,
        message: impl Into<Cow<'static, str>>,
    ) -> ApiError {
        let mut error = ApiError::new(400, "invalid_request_error", message);
        error.code = Some(code);
        error.intent = Some(intent.clone());
        error.executed = true;
        error
    }

    /// A card that said no.
    pub(super) fn declined(intent: &Arc<Intent>, decline: &'static Decline) -> ApiError {
        let mut error = ApiError::new(402, decline.kind, decline.message);
        error.code = Some(decline.code);
        error.decline_code = decline.decline_code;
        error.intent = Some(intent.clone());
        error.executed = true;
        error
    }

    /// An idempotency key that comes again with other parameters.
    pub(super) fn key_reused() -> ApiError {
        ApiError::new(
            400,
            "idempotency_error",
            "Keys for idempotent requests can only be used with the same parameters they were first used with.",
        )
    }

    /// An idempotency key whose first request still runs.
    pub(super) fn key_in_use() -> ApiError {
        let mut error = ApiError::new(
            409,
            "invalid_request_error",
            "There is currently another in-progress request using this idempotent key.",
        );
        error.code = Some("idempotency_key_in_use");
        error
    }

    /// The provider's own failure.
    pub(super) fn internal() -> ApiError {
        ApiError::new(500, "api_error", "An unexpected error occurred while processing the request.")
    }

    /// No API key, or not one.
    pub(super) fn unauthenticated(message: &'static str) -> ApiError {
        ApiError::new(401, "invalid_request_error", message)
    }

    /// A path that the simulator doesn't speak.
    pub(super) fn unknown_url(method: &str, path: &str) -> ApiError {
        ApiError::new(404, "invalid_request_error", format!("Unrecognized request URL ({method}: {path})."))
    }

    /// A body past its limit.
    pub(super) fn too_large() -> ApiError {
        ApiError::new(413, "invalid_request_error", "The request body is too large.")
    }

    /// A store that is full.
    pub(super) fn full(what: &str) -> ApiError {
        let mut error = ApiError::new(
            429,
            "invalid_request_error",
            format!("The simulator keeps no more {what} than it has; start it afresh."),
        );
        error.code = Some("rate_limit");
        error
    }
}
