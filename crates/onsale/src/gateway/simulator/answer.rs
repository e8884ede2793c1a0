//! What goes back to the client. A reply holds the moment it speaks of, and always renders to the same bytes, so a
//! kept reply needs no kept body.

use std::sync::Arc;

use super::error::ApiError;
use super::intent::{Intent, Refund};
use super::objects;

/// One answer of the provider.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    Intent { intent: Arc<Intent>, expand_charge: bool },
    Refund(Arc<Refund>),
    Error(Arc<ApiError>),
}

impl Reply {
    /// HTTP status.
    pub(super) fn status(&self) -> u16 {
        match self {
            Reply::Intent { .. } | Reply::Refund(_) => 200,
            Reply::Error(error) => error.status,
        }
    }

    /// The body; `authentication_base` is where a buyer would be sent to prove who they are.
    pub(super) fn body(&self, authentication_base: &str) -> Vec<u8> {
        match self {
            Reply::Intent { intent, expand_charge } => {
                objects::render(&objects::intent(intent, *expand_charge, authentication_base))
            }
            Reply::Refund(refund) => objects::render(&objects::refund(refund)),
            Reply::Error(error) => objects::render(&objects::error(error, authentication_base)),
        }
    }
}

impl From<Result<Reply, ApiError>> for Reply {
    fn from(result: Result<Reply, ApiError>) -> Reply {
        result.unwrap_or_else(|error| Reply::Error(Arc::new(error)))
    }
}

/// How a call ends.
#[derive(Debug)]
pub(super) enum Answer {
    Reply(Reply),
    /// The first reply again.
    Replayed(Reply),
    /// The connection is closed and nothing is said.
    Lost,
}
