//! A buyer's HTTP client: one connection that is kept, one request at a time, nothing that a browser wouldn't do.

use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::net::TcpStream;
use uuid::Uuid;

/// Longer than the server holds any answer back.
const PATIENCE: Duration = Duration::from_secs(30);
/// Connections tried for one request: a server may close one that was idle just as it is used.
const CONNECTIONS_MAX: usize = 4;

/// A request that may be sent any number of times: what changes something carries a key.
#[derive(Clone)]
pub(super) struct Ask {
    method: Method,
    path: String,
    token: Option<Arc<str>>,
    key: Option<String>,
    body: Bytes,
    content_type: &'static str,
}

impl Ask {
    pub(super) fn new(method: Method, path: impl Into<String>) -> Ask {
        let (path, content_type) = (path.into(), "application/json");
        Ask { method, path, token: None, key: None, body: Bytes::new(), content_type }
    }

    pub(super) fn get(path: impl Into<String>) -> Ask {
        Ask::new(Method::GET, path)
    }

    pub(super) fn post(path: impl Into<String>) -> Ask {
        Ask::new(Method::POST, path)
    }

    pub(super) fn token(self, token: &Arc<str>) -> Ask {
        Ask { token: Some(Arc::clone(token)), ..self }
    }

    /// With a key that begins with the time, as the documents recommend.
    pub(super) fn new_key(self) -> Ask {
        Ask { key: Some(Uuid::now_v7().to_string()), ..self }
    }

    pub(super) fn json(self, body: &Value) -> Ask {
        self.body(body.to_string())
    }

    pub(super) fn body(self, body: String) -> Ask {
        Ask { body: body.into(), ..self }
    }

    fn request(&self, server: SocketAddr) -> anyhow::Result<Request<Full<Bytes>>> {
        let mut request =
            Request::builder().method(&self.method).uri(&self.path).header(HOST, server.to_string());
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        if let Some(key) = &self.key {
            request = request.header("idempotency-key", key);
        }
        if !self.body.is_empty() {
            request = request.header(CONTENT_TYPE, self.content_type);
        }
        Ok(request.body(Full::new(self.body.clone()))?)
    }
}

impl std::fmt::Display for Ask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

/// What the server said.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) replayed: bool,
    pub(super) body: Bytes,
    pub(super) took: Duration,
}

impl Answer {
    pub(super) fn json<T: DeserializeOwned>(&self) -> anyhow::Result<T> {
        serde_json::from_slice(&self.body).with_context(|| format!("an answer can't be read: {self}"))
    }

    /// The answer, if it has the status that was hoped for.
    pub(super) fn expect(self, status: StatusCode) -> anyhow::Result<Answer> {
        match self.status == status {
            true => Ok(self),
            false => Err(anyhow!("expected {status}, not {self}")),
        }
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = String::from_utf8_lossy(&self.body);
        write!(f, "{} {}", self.status.as_u16(), text.chars().take(300).collect::<String>())
    }
}

type Driver = Pin<Box<http1::Connection<TokioIo<TcpStream>, Full<Bytes>>>>;

/// A client of one server. Dropped, its connection breaks off, whatever is under way.
pub(super) struct Client {
    server: SocketAddr,
    /// The driver is polled by the request itself: a task of its own would cost two switches for each request.
    connection: Option<(http1::SendRequest<Full<Bytes>>, Driver)>,
}

impl Client {
    pub(super) fn new(server: SocketAddr) -> Client {
        Client { server, connection: None }
    }

    pub(super) async fn connect(&mut self) -> anyhow::Result<()> {
        let stream = TcpStream::connect(self.server)
            .await
            .with_context(|| format!("failed to connect to {}", self.server))?;
        stream.set_nodelay(true)?;
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await?;
        self.connection = Some((sender, Box::pin(driver)));
        Ok(())
    }

    /// Sends a request and reads the whole answer, again on a new connection if the old one breaks.
    pub(super) async fn call(&mut self, ask: &Ask) -> anyhow::Result<Answer> {
        let mut last = None;
        for _ in 0..CONNECTIONS_MAX {
            if self.connection.is_none() {
                self.connect().await?;
            }
            match tokio::time::timeout(PATIENCE, self.exchange(ask)).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) => last = Some(error),
                Err(_) => bail!("no answer to {ask} within {PATIENCE:?}"),
            }
        }
        let why = last.unwrap_or_else(|| anyhow!("nothing was tried"));
        Err(why.context(format!("failed to send {ask}")))
    }

    async fn exchange(&mut self, ask: &Ask) -> anyhow::Result<Answer> {
        // Taken out, so that a request that fails or is given up leaves no half-used connection behind.
        let (mut sender, mut driver) = self.connection.take().context("not connected")?;
        let request = ask.request(self.server)?;
        let begun = Instant::now();
        let (answer, driver) = {
            let mut exchange = pin!(async {
                sender.ready().await?;
                let response = sender.send_request(request).await?;
                let (head, body) = response.into_parts();
                Ok::<_, hyper::Error>((head, body.collect().await?.to_bytes()))
            });
            tokio::select! {
                biased;
                answer = &mut exchange => (answer, Some(driver)),
                _ = &mut driver => {
                    // What it had read is still there to be taken; what it hadn't fails only once it is gone.
                    drop(driver);
                    (exchange.await, None)
                }
            }
        };
        let (head, body) = answer?;
        self.connection = driver.map(|driver| (sender, driver));
        let replayed = head.headers.get("idempotency-replayed").is_some_and(|value| value == "true");
        Ok(Answer { status: head.status, replayed, body, took: begun.elapsed() })
    }
}
