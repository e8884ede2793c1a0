//! The payment simulator: the part of Stripe's API that the Stripe adapter uses, with signed webhooks, and under
//! `/_sim` the means to make it fail in every way a provider can.
//!
//! The rules are pure and stand at the bottom: [`intent`] (states), [`operations`] (calls on the books), [`books`]
//! (all that is known; keys, script, log). Around them: [`form`] and [`calls`] read requests, [`objects`] writes
//! answers, [`api`] routes, [`control`] is the test's side, [`deliveries`] tells the world.
//!
//! It is a provider, so it has a clock of its own: webhooks are signed at the real time, whatever the time of the
//! sale that is tested.

mod answer;
mod api;
mod balance;
mod books;
mod calls;
mod control;
mod deliveries;
mod error;
mod events;
mod form;
mod idempotency;
mod ids;
mod intent;
mod limits;
mod lists;
mod objects;
mod operations;
mod record;
mod script;
mod server;
#[cfg(test)]
mod tests;
mod webhooks;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use deliveries::Deliveries;
use limits::CONNECTIONS_MAX;
use server::Shared;

/// How to start a simulator.
pub(crate) struct SimulatorConfig {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The secret that webhooks are signed with, `whsec_…`.
    pub webhook_secret: String,
    /// Where events go; they are kept and not delivered while nothing is set.
    pub webhook_url: Option<String>,
    /// What its ids follow from. A seed used again gives the same ids again, so whoever keeps ids from one run to
    /// the next wants another seed each time.
    pub seed: u64,
}

/// A running simulator. It ends when it is stopped or dropped.
pub(crate) struct Simulator {
    /// Where it listens.
    pub addr: SocketAddr,
    shared: Arc<Shared>,
    listening: JoinHandle<()>,
    delivering: JoinHandle<()>,
}

impl Simulator {
    /// Binds and serves.
    pub(crate) async fn start(config: SimulatorConfig) -> std::io::Result<Simulator> {
        let listener = TcpListener::bind(config.listen).await?;
        let addr = listener.local_addr()?;
        let base = format!("http://{addr}");
        let deliveries = Arc::new(Deliveries::new(&config.webhook_secret, config.webhook_url, base.clone())?);
        let shared = Arc::new(Shared::new(config.seed, deliveries.clone(), base));
        let listening = tokio::spawn(accept(listener, shared.clone()));
        let delivering = tokio::spawn(deliveries.run());
        Ok(Simulator { addr, shared, listening, delivering })
    }

    /// Where events go from now on.
    pub(crate) fn set_webhook_url(&self, url: String) {
        self.shared.deliveries.set_url(url);
    }

    /// Closes every connection and ends every delivery; what it knew is gone.
    pub(crate) async fn stop(mut self) {
        self.end();
        (&mut self.listening).await.ok();
        (&mut self.delivering).await.ok();
    }

    fn end(&self) {
        self.listening.abort();
        self.delivering.abort();
        self.shared.shut_down();
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        self.end();
    }
}

/// Takes connections for ever. Dropped, it drops them.
async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        if connections.len() >= CONNECTIONS_MAX {
            connections.join_next().await;
        }
        match listener.accept().await {
            Ok((stream, _)) => drop(connections.spawn(serve(stream, shared.clone()))),
            // Out of file descriptors, most likely: at once is too soon to try again.
            Err(error) => {
                tracing::warn!(%error, "The payment simulator failed to accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    stream.set_nodelay(true).ok(); // Slower without, but as right.
    let service = service_fn(move |request| api::answer(shared.clone(), request));
    // It fails when the client hangs up and when an answer is lost on purpose: neither is news.
    http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
}

/// The provider's clock.
fn unix_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
