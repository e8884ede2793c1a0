//! Who calls, from the headers.

use std::str::FromStr;
use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use onsale_core::id::{AccountId, KeyId};
use onsale_store::Role;

use crate::app::App;
use crate::auth::Caller;
use crate::erasure::is_pseudonym;

use super::problem::{Code, Problem};
use super::reasons::not_found;

const ACCOUNT_HEADER: &str = "onsale-account";

/// Anyone with a valid token.
pub(crate) struct AnyCaller(pub(crate) Caller);

/// A buyer, itself or through a partner's key.
pub(crate) struct Buyer(pub(crate) AccountId);

/// An operator's key.
pub(crate) struct Operator(pub(crate) KeyId);

/// A key that may read reports.
pub(crate) struct ReportReader;

/// A key that may let people in.
pub(crate) struct Gate;

/// A key that may read what a gate needs to know.
pub(crate) struct GateReader;

fn caller(app: &App, headers: &HeaderMap) -> Result<Caller, Problem> {
    let unauthenticated = |detail: &str| Problem::new(Code::Unauthenticated, detail);
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let token = match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok().and_then(|value| value.split_once(' ')),
        _ => return Err(unauthenticated("One Authorization header with a bearer token is needed.")),
    };
    let Some((scheme, token)) = token.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")) else {
        return Err(unauthenticated("The Authorization header must be `Bearer <token>`."));
    };
    debug_assert!(!scheme.is_empty());
    let token = token.trim();
    if token.starts_with("osk_") {
        let (id, role) =
            app.auth.key(token).ok_or_else(|| unauthenticated("This key is unknown or revoked."))?;
        return match (headers.get(ACCOUNT_HEADER), role) {
            (Some(account), Role::Partner | Role::Operator) => {
                let account = account.to_str().ok().and_then(AccountId::parse);
                // Nobody acts for a person who was erased.
                let account = account.filter(|account| !is_pseudonym(account));
                let malformed = || {
                    Problem::invalid("/headers/Onsale-Account", "must be 1 to 128 visible ASCII characters")
                };
                account.map(Caller::Buyer).ok_or_else(malformed)
            }
            (Some(_), Role::Gate | Role::Reader) => Err(Problem::new(
                Code::Forbidden,
                "Only a partner's or an operator's key acts for an account.",
            )),
            (None, _) => Ok(Caller::Key(id, role)),
        };
    }
    let account = app.auth.session(token, app.now());
    account.map(Caller::Buyer).ok_or_else(|| unauthenticated("This session is unknown or over."))
}

impl FromRequestParts<Arc<App>> for AnyCaller {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        caller(app, &parts.headers).map(AnyCaller)
    }
}

impl FromRequestParts<Arc<App>> for Buyer {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        match caller(app, &parts.headers)? {
            Caller::Buyer(account) => Ok(Buyer(account)),
            Caller::Key(_, Role::Partner | Role::Operator) => Err(Problem::invalid(
                "/headers/Onsale-Account",
                "this call is made for a buyer: name the account",
            )),
            Caller::Key(_, Role::Gate | Role::Reader) => {
                Err(Problem::new(Code::Forbidden, "This key may not act for a buyer."))
            }
        }
    }
}

impl FromRequestParts<Arc<App>> for Operator {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        match caller(app, &parts.headers)? {
            Caller::Key(key, Role::Operator) => Ok(Operator(key)),
            Caller::Key(..) | Caller::Buyer(_) => {
                Err(Problem::new(Code::Forbidden, "This call is for operators."))
            }
        }
    }
}

impl FromRequestParts<Arc<App>> for ReportReader {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        match caller(app, &parts.headers)? {
            Caller::Key(_, Role::Operator | Role::Reader) => Ok(ReportReader),
            Caller::Key(..) | Caller::Buyer(_) => {
                Err(Problem::new(Code::Forbidden, "This call is for operators and readers."))
            }
        }
    }
}

impl FromRequestParts<Arc<App>> for Gate {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        match caller(app, &parts.headers)? {
            Caller::Key(_, Role::Gate | Role::Operator) => Ok(Gate),
            Caller::Key(_, Role::Partner | Role::Reader) | Caller::Buyer(_) => {
                Err(Problem::new(Code::Forbidden, "This call is for gates and operators."))
            }
        }
    }
}

impl FromRequestParts<Arc<App>> for GateReader {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        match caller(app, &parts.headers)? {
            Caller::Key(_, Role::Gate | Role::Operator | Role::Reader) => Ok(GateReader),
            Caller::Key(_, Role::Partner) | Caller::Buyer(_) => {
                Err(Problem::new(Code::Forbidden, "This call is for gates, operators and readers."))
            }
        }
    }
}

/// The one id in a route's path. What isn't an id of the kind is not found, as is an id of nothing.
pub(crate) struct PathId<I>(pub(crate) I);

impl<I: FromStr> FromRequestParts<Arc<App>> for PathId<I> {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let params = RawPathParams::from_request_parts(parts, app).await.map_err(|_| not_found())?;
        let (_, text) = params.iter().next().ok_or_else(not_found)?;
        text.parse().map(PathId).map_err(|_| not_found())
    }
}
