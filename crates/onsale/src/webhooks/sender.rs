//! Sends one message, and says how that ended. No more of an answer is read than its head and a few bytes; none is kept.

use std::time::Duration;

use anyhow::Context;
use onsale_store::chain;
use reqwest::{Client, Response, header, redirect, retry};
use tokio::time::timeout;

use super::TIMEOUT_MS;
use super::reach::{Checked, Names, Reach, System, Unreachable};
use super::schedule::retry_after_ms;

/// How long a connection may take to come about: less than all of it, so that it is seen what failed.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long it may take to learn where a name leads while an operator waits.
const LOOK_UP_TIMEOUT: Duration = Duration::from_secs(2);
/// Connections kept open to one receiver.
const IDLE_MAX: usize = 4;
/// Bytes of an answer that are read, so that its connection can be used again. What says more loses it.
const ANSWER_BYTES_MAX: usize = 4 * 1024;
/// Letters kept of what went wrong.
const ERROR_CHARS_MAX: usize = 300;

/// A message, ready to be sent.
pub(crate) struct Signed {
    pub(crate) url: String,
    pub(crate) id: String,
    /// Seconds since 1970 by the calendar of the world: the receiver compares them with its own.
    pub(crate) timestamp_s: i64,
    pub(crate) signatures: String,
    pub(crate) body: String,
}

/// An answer to a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) retry_after_ms: Option<i64>,
}

/// A client that goes only where messages may.
pub(crate) struct Sender<N = System> {
    http: Client,
    checked: Checked<N>,
}

impl Sender {
    pub(crate) fn new(reach: Reach) -> anyhow::Result<Sender> {
        Sender::with_names(reach, System)
    }
}

impl<N: Names + Clone> Sender<N> {
    fn with_names(reach: Reach, names: N) -> anyhow::Result<Sender<N>> {
        let checked = Checked { reach, names };
        let http = Client::builder()
            .user_agent(concat!("onsale/", env!("CARGO_PKG_VERSION")))
            // A proxy would look names up by itself, and an answer that leads elsewhere was not looked at.
            .no_proxy()
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .dns_resolver(checked.clone())
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(Duration::from_millis(TIMEOUT_MS as u64))
            .pool_max_idle_per_host(IDLE_MAX)
            .build()
            .context("failed to set up the client for webhooks")?;
        Ok(Sender { http, checked })
    }

    /// Checks a target before it is taken: its form, and where its name leads now. A name that leads nowhere yet is taken.
    pub(crate) async fn check(&self, url: &str) -> Result<(), Unreachable> {
        let url = self.checked.reach.check(url)?;
        let host = url.host_str().unwrap_or_default();
        match timeout(LOOK_UP_TIMEOUT, self.checked.addresses(host)).await {
            Ok(Err(error @ Unreachable::Address(_))) => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Sends a message.
    pub(crate) async fn send(&self, message: Signed) -> Result<Answered, String> {
        // An address that is written out is resolved by nobody.
        let url = self.checked.reach.check(&message.url).map_err(|error| error.to_string())?;
        let request = self
            .http
            .post(url)
            .header(header::CONTENT_TYPE, "application/json")
            .header("webhook-id", message.id)
            .header("webhook-timestamp", message.timestamp_s.to_string())
            .header("webhook-signature", message.signatures)
            .body(message.body);
        let response = request.send().await.map_err(|error| said(error.without_url()))?;
        let retry_after = response.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after_ms = retry_after.and_then(|value| retry_after_ms(value, message.timestamp_s));
        let status = response.status().as_u16();
        drain(response).await;
        Ok(Answered { status, retry_after_ms })
    }
}

/// Reads the rest of a short answer.
async fn drain(mut response: Response) {
    let mut read = 0;
    while read <= ANSWER_BYTES_MAX
        && let Ok(Some(chunk)) = response.chunk().await
    {
        read += chunk.len();
    }
}

fn said(error: reqwest::Error) -> String {
    chain(&error).chars().take(ERROR_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests;
