//! Asking over HTTP, with an end to each wait, and no opinion about what an answer means.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::wait::until;

/// What a buyer's browser would wait.
const PATIENCE: Duration = Duration::from_secs(10);

/// What came back.
#[derive(Clone, Debug)]
pub(crate) enum Said {
    Answer {
        status: u16,
        /// `Idempotency-Replayed: true`
        replayed: bool,
        retry_after: bool,
        body: Value,
    },
    /// No connection, no answer, or half an answer.
    Nothing { why: String },
}

impl Said {
    /// The body of an answer with this status.
    pub(crate) fn ok(self, wanted: u16) -> anyhow::Result<Value> {
        match self {
            Said::Answer { status, body, .. } if status == wanted => Ok(body),
            other => anyhow::bail!("not {wanted}, but {other:?}"),
        }
    }

    pub(crate) fn status(&self) -> u16 {
        match self {
            Said::Answer { status, .. } => *status,
            Said::Nothing { .. } => 0,
        }
    }

    pub(crate) fn code(&self) -> &str {
        match self {
            Said::Answer { body, .. } => body["code"].as_str().unwrap_or_default(),
            Said::Nothing { .. } => "",
        }
    }

    /// Whether it says what came of the request: neither "perhaps" nor "not now".
    pub(crate) fn is_decision(&self) -> bool {
        !matches!(self.status(), 0 | 429 | 500..)
    }

    /// Whether it leaves open what came of the request.
    pub(crate) fn is_unknown(&self) -> bool {
        match self {
            Said::Answer { status, .. } => {
                *status >= 500
                    && !matches!(self.code(), "overloaded" | "authority-unavailable" | "event-paused")
            }
            Said::Nothing { .. } => true,
        }
    }

    pub(crate) fn replayed(&self) -> bool {
        matches!(self, Said::Answer { replayed: true, .. })
    }

    pub(crate) fn body(&self) -> &Value {
        match self {
            Said::Answer { body, .. } => body,
            Said::Nothing { .. } => &Value::Null,
        }
    }

    pub(crate) fn json(&self) -> Value {
        match self {
            Said::Answer { status, replayed, retry_after, body } => {
                json!({ "status": status, "replayed": replayed, "retry_after": retry_after, "body": body })
            }
            Said::Nothing { why } => json!({ "nothing": why }),
        }
    }
}

/// A way to one listener, with or without a token. Clones share their connections.
#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    base: String,
    token: Option<String>,
}

impl Client {
    pub(crate) fn new(base: String) -> anyhow::Result<Client> {
        let http = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build()?;
        Ok(Client { http, base, token: None })
    }

    pub(crate) fn with_token(&self, token: &str) -> Client {
        Client { token: Some(token.to_owned()), ..self.clone() }
    }

    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// Address and port.
    pub(crate) fn address(&self) -> &str {
        self.base.trim_start_matches("http://")
    }

    pub(crate) async fn get(&self, path: &str) -> Said {
        self.ask(Method::GET, path, None, None).await
    }

    /// Puts a body of some type, until it is taken.
    pub(crate) async fn put(&self, path: &str, content_type: &str, body: String) -> anyhow::Result<Value> {
        let put = async || {
            let request = self.request(Method::PUT, path).header("Content-Type", content_type);
            said(request.body(body.clone())).await.ok(200)
        };
        until(&format!("PUT {path} is done"), 6 * PATIENCE, put).await
    }

    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        key: Option<&str>,
        body: Option<&Value>,
    ) -> Said {
        let mut request = self.request(method, path);
        if let Some(key) = key {
            request = request.header("Idempotency-Key", key);
        }
        if let Some(body) = body {
            request = request.header("Content-Type", "application/json").body(body.to_string());
        }
        said(request).await
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }
}

async fn said(request: reqwest::RequestBuilder) -> Said {
    let exchange = async {
        let answer = request.send().await?;
        let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
        let replayed = header("idempotency-replayed") == Some("true");
        let (status, retry_after) = (answer.status().as_u16(), header("retry-after").is_some());
        let body = serde_json::from_str(&answer.text().await?).unwrap_or_default();
        Ok::<Said, reqwest::Error>(Said::Answer { status, replayed, retry_after, body })
    };
    exchange.await.unwrap_or_else(|error| Said::Nothing { why: chain(&error) })
}

fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
