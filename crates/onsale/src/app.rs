//! The running installation: what handlers and workers share, and the way from a wish to a decision.

use std::sync::Arc;
use std::time::{Duration, Instant};

use onsale_core::command::{Command, Decision, Request};
use onsale_core::id::{EventId, EventNo, Seed};
use onsale_core::idempotency::RequestKey;
use onsale_core::time::Timestamp;
use onsale_store::{Clock, Committed, Store, StoreError, SubmitError};
use tokio::sync::{Notify, Semaphore, watch};

use crate::auth::Auth;
use crate::catalog::{Catalog, Sale};
use crate::clock::ServerClock;
use crate::gateway::stripe::Stripe;
use crate::http::listener::ConnectionStats;
use crate::metrics::Metrics;
use crate::order_watch::OrderWatch;

/// How long a caller's command may wait for the writer: longer than any healthy queue, shorter than a client's
/// patience.
const QUEUE_PATIENCE: Duration = Duration::from_secs(5);
/// Heavy reads (manifests, reports, audits) at once; each keeps a core busy.
const HEAVY_READS_MAX: usize = 4;

/// What handlers and workers share.
pub(crate) struct App {
    pub(crate) store: Store,
    pub(crate) clock: Arc<ServerClock>,
    pub(crate) auth: Auth,
    pub(crate) followers: Arc<Followers>,
    /// The payment provider; `None` when none is configured.
    pub(crate) gateway: Option<Gateways>,
    pub(crate) metrics: Arc<Metrics>,
    /// Of the buyers' and of the operators' listener.
    pub(crate) connections: [Arc<ConnectionStats>; 2],
    pub(crate) heavy: Semaphore,
    /// Operations worked on at once; each is one open call to the provider.
    pub(crate) payments_at_once: usize,
    /// Operations being worked on in this process.
    pub(crate) in_flight: crate::worker::payments::InFlight,
    /// True once the server is stopping.
    pub(crate) stopping: watch::Receiver<bool>,
    pub(crate) test_mode: bool,
}

/// The same provider twice: a worker that waits for answers must not use up the connections that callbacks, on which
/// those answers may wait, are read back with.
pub(crate) struct Gateways {
    pub(crate) for_workers: Stripe,
    pub(crate) for_callbacks: Stripe,
}

/// Those who follow commits.
#[derive(Default)]
pub(crate) struct Followers {
    pub(crate) catalog: Catalog,
    pub(crate) orders: OrderWatch,
    /// Rung when there may be something to pay.
    pub(crate) payments: Notify,
}

impl Followers {
    /// Called by the writer after each commit, before anyone is answered.
    pub(crate) fn follow(&self, committed: &Committed) {
        self.catalog.follow(committed);
        self.orders.follow(committed);
        if committed.log.iter().any(|entry| entry.kind.order().is_some()) {
            self.payments.notify_one();
        }
    }
}

/// A wish that wasn't decided, or a read that failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AppError {
    #[error(transparent)]
    Submit(#[from] SubmitError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The heavy reads this app allows.
pub(crate) fn heavy_reads() -> Semaphore {
    Semaphore::new(HEAVY_READS_MAX)
}

impl App {
    /// The time now.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A seed for ids of an event.
    pub(crate) fn seed(&self, event: EventNo) -> Seed {
        Seed::new(event, self.now(), rand::random())
    }

    /// Has a command decided.
    pub(crate) async fn decide(
        &self,
        command: Command,
        key: Option<RequestKey>,
    ) -> Result<Decision, AppError> {
        let seed = self.seed(command.event());
        let deadline = Instant::now() + QUEUE_PATIENCE;
        Ok(self.store.submit(Request { command, key, seed }, Some(deadline)).await?)
    }

    /// Has a worker's command decided, however long it queues: what a provider said must not be dropped.
    pub(crate) async fn record(&self, command: Command) -> Result<Decision, AppError> {
        let seed = self.seed(command.event());
        Ok(self.store.submit(Request { command, key: None, seed }, None).await?)
    }

    /// An event; `None` when there is no such event.
    pub(crate) async fn sale(self: &Arc<Self>, id: EventId) -> Result<Option<Arc<Sale>>, AppError> {
        let sale = self.sale_of(id.event()).await?;
        Ok(sale.filter(|sale| sale.event.id == id && id.event() != EventNo::HOUSE))
    }

    /// The event with a number.
    pub(crate) async fn sale_of(self: &Arc<Self>, no: EventNo) -> Result<Option<Arc<Sale>>, AppError> {
        if let Some(sale) = self.followers.catalog.fresh(no) {
            return Ok(Some(sale));
        }
        let app = Arc::clone(self);
        self.heavy(move || app.followers.catalog.load(&app.store, no)).await
    }

    /// Runs a heavy read on a thread that may block; few at a time.
    pub(crate) async fn heavy<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<R, StoreError> + Send + 'static,
    ) -> Result<R, AppError> {
        let _turn = self.heavy.acquire().await.map_err(|_| StoreError::Closed)?;
        let done = tokio::task::spawn_blocking(work).await;
        Ok(done.map_err(|_| StoreError::Closed)??)
    }

    /// Reads the keys in force into memory.
    pub(crate) fn reload_keys(&self) -> Result<(), StoreError> {
        self.auth.set_keys(self.store.read(|reader| reader.api_keys())?);
        Ok(())
    }
}
