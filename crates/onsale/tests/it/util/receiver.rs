//! Another system that is told what happens: it answers as a test wants, and keeps what it was told.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::{App, text, wall_seconds};

/// What a receiver answers to a message; the first is the status, the second `Retry-After`.
pub(crate) type Answer = (u16, Option<&'static str>);
type Answering = Box<dyn FnMut(&Told) -> Answer + Send>;

/// A message as it came.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) id: String,
    pub(crate) body: Value,
    raw: String,
    timestamp: String,
    signature: String,
    pub(crate) answered: u16,
}

impl Told {
    pub(crate) fn kind(&self) -> &str {
        text(&self.body, "type")
    }

    pub(crate) fn order(&self) -> &str {
        self.body["data"]["order_id"].as_str().unwrap_or_default()
    }

    /// Whether it is signed with a secret, by the rules of the standard, and just now.
    pub(crate) fn is_signed_with(&self, secret: &str) -> bool {
        let key = STANDARD.decode(secret.strip_prefix("whsec_").expect("a secret")).expect("base64");
        let mac = Hmac::<Sha256>::new_from_slice(&key).expect("HMAC takes keys of any length");
        let mac = mac.chain_update(format!("{}.{}.{}", self.id, self.timestamp, self.raw));
        let wanted = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
        let at: i64 = self.timestamp.parse().expect("seconds");
        (at - wall_seconds()).abs() < 300 && self.signature.split(' ').any(|one| one == wanted)
    }
}

struct Shared {
    told: Mutex<Vec<Told>>,
    answering: Mutex<Answering>,
}

/// A receiver on a port of its own, until it is dropped.
pub(crate) struct Receiver {
    pub(crate) url: String,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

impl Receiver {
    /// One that takes everything.
    pub(crate) async fn start() -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
        let shared =
            Arc::new(Shared { told: Mutex::default(), answering: Mutex::new(Box::new(|_| (204, None))) });
        let router = Router::new().route("/hook", post(take)).with_state(Arc::clone(&shared));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.expect("it serves") });
        Receiver { url, shared, serving }
    }

    /// How it answers from now on.
    pub(crate) fn answer(&self, answering: impl FnMut(&Told) -> Answer + Send + 'static) {
        *self.shared.answering.lock().expect("the answer") = Box::new(answering);
    }

    /// Everything it was told so far, in the order in which it came.
    pub(crate) fn told(&self) -> Vec<Told> {
        self.shared.told.lock().expect("what was told").clone()
    }

    /// What it was told and took since it was asked last, and what it refused, in a line: `type` or `type!status`.
    pub(crate) fn news(&self) -> String {
        let told = std::mem::take(&mut *self.shared.told.lock().expect("what was told"));
        let said = told.iter().map(|told| match told.answered {
            200..=299 => told.kind().to_owned(),
            status => format!("{}!{status}", told.kind()),
        });
        said.collect::<Vec<_>>().join(" ")
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn take(State(shared): State<Arc<Shared>>, headers: HeaderMap, raw: Bytes) -> Response {
    let header = |name: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_else(|| panic!("no {name} in {headers:?}")).to_owned()
    };
    assert_eq!(header("content-type"), "application/json");
    let raw = String::from_utf8(raw.to_vec()).expect("UTF-8");
    let (timestamp, signature) = (header("webhook-timestamp"), header("webhook-signature"));
    let body = serde_json::from_str(&raw).expect("JSON");
    let mut told = Told { id: header("webhook-id"), body, raw, timestamp, signature, answered: 0 };
    let (status, retry_after) = shared.answering.lock().expect("the answer")(&told);
    told.answered = status;
    shared.told.lock().expect("what was told").push(told);
    let mut answer = StatusCode::from_u16(status).expect("a status").into_response();
    if let Some(after) = retry_after {
        answer.headers_mut().insert("retry-after", after.parse().expect("a header"));
    }
    answer
}

impl App {
    /// Makes an endpoint of a receiver that wants these types; its JSON, with the secret.
    pub(crate) async fn tell(&self, receiver: &Receiver, types: &[&str]) -> Value {
        let new = json!({ "url": receiver.url, "types": types });
        self.operator.post("/v1/webhook-endpoints", &new).await.ok(201)
    }

    /// An endpoint as it stands.
    pub(crate) async fn endpoint(&self, endpoint: &Value) -> Value {
        self.operator.get(&path_of(endpoint, "")).await.ok(200)
    }
}

/// The path of an endpoint and what is below it.
pub(crate) fn path_of(endpoint: &Value, below: &str) -> String {
    format!("/v1/webhook-endpoints/{}{below}", text(endpoint, "endpoint_id"))
}
