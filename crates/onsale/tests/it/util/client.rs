//! Those who call the server, and what they are answered.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use reqwest::header::{HeaderMap, HeaderName};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::Hall;

/// A state that is waited for comes long before this, or never.
const PATIENCE: Duration = Duration::from_secs(20);

/// An idempotency key no other request of this process has.
pub(crate) fn fresh_key() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("key-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A member that must be a string.
#[track_caller]
pub(crate) fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or_else(|| panic!("no text {member:?} in {value}"))
}

/// Looks until it sees something; fails after a while with what was waited for.
pub(crate) async fn eventually<T, F: Future<Output = Option<T>>>(
    what: &str,
    mut look: impl FnMut() -> F,
) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(Instant::now() < end, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A way to one listener, with or without a token. Clones share their connections.
#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    pub(crate) base: String,
    token: Option<String>,
    account: Option<String>,
}

impl Client {
    /// For nobody in particular.
    pub(crate) fn new(base: String) -> Client {
        rustls::crypto::ring::default_provider().install_default().ok();
        let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(60)).build();
        Client { http: http.expect("a client can be built"), base, token: None, account: None }
    }

    /// The same with a token.
    pub(crate) fn with_token(&self, token: &str) -> Client {
        Client { token: Some(token.to_owned()), ..self.clone() }
    }

    /// The same for an account (`Onsale-Account`).
    pub(crate) fn for_account(&self, account: &str) -> Client {
        Client { account: Some(account.to_owned()), ..self.clone() }
    }

    /// The same at another listener.
    pub(crate) fn at(&self, base: &str) -> Client {
        Client { base: base.to_owned(), ..self.clone() }
    }

    pub(crate) fn get(&self, path: &str) -> Ask {
        self.ask(Method::GET, path)
    }

    pub(crate) fn delete(&self, path: &str) -> Ask {
        self.ask(Method::DELETE, path)
    }

    /// With a JSON body.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Ask {
        self.ask(Method::POST, path).json(body)
    }

    /// With a JSON body.
    pub(crate) fn put(&self, path: &str, body: &Value) -> Ask {
        self.ask(Method::PUT, path).json(body)
    }

    /// Any request, without a body yet.
    pub(crate) fn ask(&self, method: Method, path: &str) -> Ask {
        let what = format!("{method} {path}");
        let mut builder = self.http.request(method, format!("{}{path}", self.base));
        if let Some(token) = &self.token {
            builder = builder.bearer_auth(token);
        }
        if let Some(account) = &self.account {
            builder = builder.header("Onsale-Account", account);
        }
        Ask { what, builder }
    }
}

/// A request; awaiting it sends it.
#[must_use = "a request is sent by awaiting it"]
pub(crate) struct Ask {
    what: String,
    builder: RequestBuilder,
}

impl Ask {
    pub(crate) fn key(self, key: &str) -> Ask {
        self.header("Idempotency-Key", key)
    }

    pub(crate) fn header(self, name: &str, value: &str) -> Ask {
        Ask { builder: self.builder.header(name, value), ..self }
    }

    pub(crate) fn json(self, body: &Value) -> Ask {
        self.body("application/json", body.to_string())
    }

    pub(crate) fn body(self, content_type: &str, body: impl Into<reqwest::Body>) -> Ask {
        Ask { builder: self.builder.header("Content-Type", content_type).body(body), ..self }
    }

    /// Sends it; `None` when no answer came.
    pub(crate) async fn try_send(self) -> Option<Reply> {
        let Ask { what, builder } = self;
        // A set and not a bare task: whoever stops waiting hangs up.
        let mut sending = JoinSet::new();
        let exchange = async move {
            let answer = builder.send().await.ok()?;
            let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
            let text = answer.text().await.ok()?;
            let body = serde_json::from_str(&text).unwrap_or(Value::Null);
            Some(Reply { what, status, headers, text, body })
        };
        sending.spawn_on(exchange, network().handle());
        sending.join_next().await?.ok()?
    }
}

/// Where requests run, beside the tests: a connection notices its server's end even while its test waits for that.
fn network() -> &'static Runtime {
    static NETWORK: LazyLock<Runtime> = LazyLock::new(|| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).enable_all().build().expect("a runtime can be built")
    });
    &NETWORK
}

impl IntoFuture for Ask {
    type Output = Reply;
    type IntoFuture = Pin<Box<dyn Future<Output = Reply> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let what = self.what.clone();
            self.try_send().await.unwrap_or_else(|| panic!("{what}: no answer"))
        })
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) what: String,
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
    /// Null when it isn't JSON.
    pub(crate) body: Value,
}

impl Reply {
    /// The body of an answer that must have this status.
    #[track_caller]
    pub(crate) fn ok(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}: {}", self.what, self.text);
        self.body
    }

    /// The body of a refusal with this status and code, whose form is checked too.
    #[track_caller]
    pub(crate) fn problem(self, status: u16, code: &str) -> Value {
        assert_eq!(
            (self.status, self.body["code"].as_str()),
            (status, Some(code)),
            "{}: {}",
            self.what,
            self.text
        );
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{}", self.what);
        assert_eq!(self.body["status"], json!(status), "{}", self.text);
        assert_eq!(text(&self.body, "type"), format!("/problems/{code}"), "{}", self.text);
        assert!(
            !text(&self.body, "title").is_empty() && !text(&self.body, "detail").is_empty(),
            "{}",
            self.text
        );
        assert!(self.body["retryable"].is_boolean(), "{}", self.text);
        assert_eq!(self.header("retry-after").is_some(), status == 503 || status == 429, "{}", self.text);
        self.body
    }

    /// The body of a refusal that is no problem, such as a health check's.
    #[track_caller]
    pub(crate) fn problem_without_code(self, status: u16) -> Value {
        assert_eq!(self.header("retry-after").is_some(), status == 503, "{}", self.text);
        self.ok(status)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let name: HeaderName = name.parse().ok()?;
        self.headers.get(name)?.to_str().ok()
    }

    /// Whether it is the answer to an earlier request.
    pub(crate) fn replayed(&self) -> bool {
        self.header("idempotency-replayed") == Some("true")
    }
}

/// A buyer with a session (or a partner's customer).
#[derive(Clone)]
pub(crate) struct Buyer {
    pub(crate) client: Client,
    pub(crate) account_id: String,
}

impl Buyer {
    /// Asks for seats under a key of its own; `.key(…)` isn't needed.
    pub(crate) fn hold(&self, hall: &Hall, seats: &[&str]) -> Ask {
        self.hold_as(&fresh_key(), hall, seats)
    }

    /// Asks for seats under this key.
    pub(crate) fn hold_as(&self, key: &str, hall: &Hall, seats: &[&str]) -> Ask {
        let path = format!("/v1/events/{}/holds", hall.event_id);
        self.client.post(&path, &json!({ "seats": seats })).key(key)
    }

    /// Begins to pay for a hold (its JSON), under a key of its own.
    pub(crate) fn checkout(&self, hold: &Value, card: &str) -> Ask {
        self.checkout_as(&fresh_key(), hold, card)
    }

    /// Begins to pay for a hold (its JSON) under this key.
    pub(crate) fn checkout_as(&self, key: &str, hold: &Value, card: &str) -> Ask {
        let path = format!("/v1/holds/{}/checkout", text(hold, "hold_id"));
        self.client.post(&path, &json!({ "payment_method_token": card })).key(key)
    }

    /// Begins to pay for a hold with a good card; the order's id.
    pub(crate) async fn pay(&self, hold: &Value) -> String {
        text(&self.checkout(hold, "pm_card_visa").await.ok(202), "order_id").to_owned()
    }

    /// The hold as it stands.
    pub(crate) async fn hold_now(&self, hold: &Value) -> Value {
        self.client.get(&format!("/v1/holds/{}", text(hold, "hold_id"))).await.ok(200)
    }

    /// Gives a hold back.
    pub(crate) fn release(&self, hold: &Value) -> Ask {
        self.client.delete(&format!("/v1/holds/{}", text(hold, "hold_id")))
    }

    /// The order as it stands.
    pub(crate) async fn order(&self, order_id: &str) -> Value {
        self.client.get(&format!("/v1/orders/{order_id}")).await.ok(200)
    }

    /// Checks `"ORDER_STATUS PAYMENT_STATUS"` now; the order.
    pub(crate) async fn expect_order(&self, order_id: &str, want: &str) -> Value {
        let order = self.order(order_id).await;
        assert_eq!(statuses(&order), want, "{order}");
        order
    }

    /// Waits for `"ORDER_STATUS PAYMENT_STATUS"`, for servers whose workers run; the order.
    pub(crate) async fn await_order(&self, order_id: &str, want: &str) -> Value {
        let look = || async {
            let order = self.order(order_id).await;
            (statuses(&order) == want).then_some(order)
        };
        eventually(&format!("{order_id} is {want}"), look).await
    }

    /// Waits until an order has its tickets, for servers whose workers run: then nothing more happens to it by itself.
    pub(crate) async fn await_tickets(&self, order_id: &str) -> Value {
        let look = || async {
            let order = self.order(order_id).await;
            (order["tickets_ready"] == true).then_some(order)
        };
        eventually(&format!("{order_id} has its tickets"), look).await
    }
}

fn statuses(order: &Value) -> String {
    format!("{} {}", text(order, "order_status"), text(order, "payment_status"))
}
