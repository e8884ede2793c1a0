//! One request to the provider, and how it ended: done, refused, turned away, never sent, or nobody knows.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use reqwest::header::{self, HeaderMap, HeaderValue};
use reqwest::{Client, RequestBuilder, Url, redirect, retry};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tracing::debug;

use super::objects::{Failure, FailureBody};
use super::{GatewayError, StripeConfig, clip};

/// The version of the provider's interface this adapter was written for.
const VERSION: &str = "2026-10-28.endive";

/// Largest answer read that is about one object.
pub(super) const ANSWER_BYTES_MAX: usize = 256 * 1024;

/// Largest answer read that is a page of a list: a hundred objects of some kilobytes each.
pub(super) const LIST_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Connections to the provider, and the right to use them. Clones share both.
#[derive(Clone)]
pub(super) struct Transport {
    http: Client,
    base_url: Arc<str>,
    request_timeout: Duration,
    connections: Arc<Semaphore>,
}

impl Transport {
    /// Checks the configuration and sets up connections; nothing is sent.
    pub(super) fn new(config: &StripeConfig) -> anyhow::Result<Transport> {
        let base = Url::parse(&config.base_url).context("the provider's address is no URL")?;
        let encrypted = base.scheme() == "https";
        ensure!(
            encrypted || base.scheme() == "http",
            "the provider's address must begin with https:// or http://"
        );
        let plain = base.username().is_empty() && base.password().is_none();
        ensure!(
            plain && base.query().is_none() && base.fragment().is_none(),
            "the provider's address has more than a host, a port and a path"
        );
        ensure!(!config.secret_key.is_empty(), "the provider's secret key is empty");
        ensure!(
            encrypted || !config.secret_key.contains("_live_"),
            "a live key must not be sent over http://; use https://, or a test key with a simulator"
        );
        ensure!(config.request_timeout_ms > 0, "the provider's request timeout is zero");
        ensure!(
            (1..=Semaphore::MAX_PERMITS).contains(&config.connections_max),
            "no connections to the provider"
        );

        let mut authorization = HeaderValue::from_str(&format!("Bearer {}", config.secret_key))
            .ok()
            .context("the provider's secret key has characters that can't be sent")?;
        authorization.set_sensitive(true);
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, authorization);
        headers.insert("stripe-version", HeaderValue::from_static(VERSION));

        let request_timeout = Duration::from_millis(config.request_timeout_ms);
        let mut builder = Client::builder()
            .user_agent(concat!("onsale/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            // Half, so that a connection that can't be made ends as that, and not as an answer that didn't come.
            .connect_timeout(request_timeout / 2)
            .timeout(request_timeout)
            .pool_max_idle_per_host(config.connections_max);
        if !encrypted {
            // A simulator is near; a proxy between would hide whether it was reached.
            builder = builder.no_proxy();
        }
        Ok(Transport {
            http: builder.build().context("failed to set up the provider's client")?,
            base_url: config.base_url.trim_end_matches('/').into(),
            request_timeout,
            connections: Arc::new(Semaphore::new(config.connections_max)),
        })
    }

    pub(super) fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Asks for something to be done, once for each key.
    pub(super) async fn post(
        &self,
        path: &str,
        key: String,
        form: &[(&str, String)],
    ) -> Result<Reply, GatewayError> {
        let request = self.http.post(format!("{}{path}", self.base_url));
        self.ask(request.header("idempotency-key", key).form(form), ANSWER_BYTES_MAX).await
    }

    /// Asks how things are.
    pub(super) async fn get(
        &self,
        path: &str,
        query: &[(&str, String)],
        bytes_max: usize,
    ) -> Result<Reply, GatewayError> {
        self.ask(self.http.get(format!("{}{path}", self.base_url)).query(query), bytes_max).await
    }

    /// Sends one request and sorts its ending.
    async fn ask(&self, request: RequestBuilder, bytes_max: usize) -> Result<Reply, GatewayError> {
        let free = timeout(self.request_timeout, self.connections.acquire()).await;
        let Ok(_permit) = free else { return Err(GatewayError::Busy { retry_after_s: None }) };
        let mut response = request.send().await.map_err(unanswered)?;

        let status = response.status().as_u16();
        let text = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        debug!(http.status = status, request.id = text("request-id"), "Provider answered");
        let replayed = text("idempotent-replayed") == Some("true");
        let retry_after_s = text("retry-after").and_then(|seconds| seconds.parse().ok());

        // Read first even where the status says it all, so that the connection can be used again.
        let body = read(&mut response, bytes_max).await;
        match status {
            200..=299 => Ok(Reply { status, replayed, outcome: Ok(body?) }),
            429 => Err(GatewayError::Busy { retry_after_s }),
            // Kept from an earlier request with this key, which has ended, nobody knows how.
            408 | 424 | 500.. if replayed => {
                Ok(Reply { status, replayed, outcome: Err(NotDone::Spent(status)) })
            }
            // Given up on in the middle, here or behind the provider.
            408 | 424 | 500.. => Err(GatewayError::NoAnswer(format!("HTTP {status}"))),
            _ => {
                let failure = serde_json::from_slice::<FailureBody>(&body?).map(|body| body.error);
                sort_failure(status, replayed, retry_after_s, failure.ok())
            }
        }
    }
}

/// An answer that came from the provider and settles the request: done with a body, or not done.
pub(super) struct Reply {
    pub(super) status: u16,
    /// Kept from an earlier request with the same key.
    pub(super) replayed: bool,
    pub(super) outcome: Result<Vec<u8>, NotDone>,
}

/// Why a request was not done.
pub(super) enum NotDone {
    /// The provider refused it.
    Refused(u16, Failure),
    /// Its key is spent: the provider keeps a failure of its own under it, and will never do anything for it again.
    Spent(u16),
}

/// The answer to a request that was done.
pub(super) struct Done {
    pub(super) replayed: bool,
    pub(super) body: Vec<u8>,
}

impl Reply {
    /// Takes anything but done as an error.
    pub(super) fn done(self) -> Result<Done, GatewayError> {
        match self.outcome {
            Ok(body) => Ok(Done { replayed: self.replayed, body }),
            Err(NotDone::Refused(status, failure)) => Err(failure.refused(status)),
            Err(NotDone::Spent(status)) => {
                Err(GatewayError::NoAnswer(format!("HTTP {status}, now as before")))
            }
        }
    }

    /// Whether the key it was sent under is spent.
    pub(super) fn is_spent(&self) -> bool {
        matches!(self.outcome, Err(NotDone::Spent(_)))
    }
}

fn sort_failure(
    status: u16,
    replayed: bool,
    retry_after_s: Option<u64>,
    failure: Option<Failure>,
) -> Result<Reply, GatewayError> {
    let message = failure.as_ref().map_or_else(|| "without a reason".into(), Failure::message);
    match (status, failure) {
        (_, Some(failure)) if failure.is_code("lock_timeout") => Err(GatewayError::Busy { retry_after_s }),
        // The first request with this key still runs.
        (409, _) => Err(GatewayError::NoAnswer(format!("HTTP 409: {message}"))),
        // This key came with other parameters before. This request was not done, but the operation may have been.
        (_, Some(failure)) if failure.is_kind("idempotency_error") => {
            Err(GatewayError::NoAnswer(format!("HTTP {status}: {message}")))
        }
        (401 | 403, _) => Err(GatewayError::Misconfigured(format!("HTTP {status}: {message}"))),
        (400..=499, Some(failure)) => {
            Ok(Reply { status, replayed, outcome: Err(NotDone::Refused(status, failure)) })
        }
        // Someone on the way answered, or there is no such thing at this address.
        _ => Err(GatewayError::Misconfigured(format!("HTTP {status} that isn't the provider's"))),
    }
}

async fn read(response: &mut reqwest::Response, bytes_max: usize) -> Result<Vec<u8>, GatewayError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unanswered)? {
        if body.len() + chunk.len() > bytes_max {
            return Err(GatewayError::Misconfigured(format!("an answer of more than {bytes_max} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn unanswered(error: reqwest::Error) -> GatewayError {
    if error.is_connect() {
        return GatewayError::NotSent;
    }
    // The address says nothing new, the causes do.
    let error = anyhow::Error::from(error.without_url());
    GatewayError::NoAnswer(clip(&format!("{error:#}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> StripeConfig {
        // The program does this when it starts. Another test may have been first.
        let _ = rustls::crypto::ring::default_provider().install_default();
        StripeConfig {
            base_url: "http://127.0.0.1:1/".into(),
            secret_key: "sk_test_hall".into(),
            webhook_secrets: vec!["whsec_hall".into()],
            request_timeout_ms: 20,
            connections_max: 1,
        }
    }

    #[test]
    fn configurations_that_would_leak_or_hang_are_refused() {
        let check = |change: fn(&mut StripeConfig)| {
            let mut config = config();
            change(&mut config);
            super::super::Stripe::new(config).map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(check(|_| ()), Ok(()));
        assert_eq!(check(|c| c.webhook_secrets.push("whsec_next".into())), Ok(()));
        assert_eq!(
            check(|c| (c.base_url, c.secret_key) = ("https://api.stripe.com".into(), "sk_live_1".into())),
            Ok(())
        );
        for change in [
            (|c| c.secret_key = "sk_live_1".into()) as fn(&mut StripeConfig),
            |c| c.secret_key = String::new(),
            |c| c.secret_key = "sk_test\n".into(),
            |c| c.webhook_secrets.push(String::new()),
            |c| c.base_url = "api.stripe.com".into(),
            |c| c.base_url = "ftp://api.stripe.com".into(),
            |c| c.base_url = "http://127.0.0.1:1/?key=1".into(),
            |c| c.base_url = "http://ada:secret@127.0.0.1:1".into(),
            |c| c.request_timeout_ms = 0,
            |c| c.connections_max = 0,
        ] {
            check(change).unwrap_err();
        }
    }

    #[tokio::test]
    async fn when_all_connections_are_taken_nothing_is_sent() {
        let transport = Transport::new(&config()).unwrap();
        let taken = transport.connections.acquire().await.unwrap();
        let ask = || transport.get("/", &[], ANSWER_BYTES_MAX);
        assert_eq!(ask().await.err(), Some(GatewayError::Busy { retry_after_s: None }));
        drop(taken);
        assert_ne!(ask().await.err(), Some(GatewayError::Busy { retry_after_s: None }));
    }
}
