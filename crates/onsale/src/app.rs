//! The running installation: what handlers and workers share, and the way from a wish to a decision.

mod homes;
mod reads;

use std::sync::Arc;
use std::time::{Duration, Instant};

use onsale_core::command::{Command, Decision, Outcome, Request};
use onsale_core::id::{EventNo, Seed};
use onsale_core::idempotency::RequestKey;
use onsale_core::refusal::Refusal;
use onsale_core::time::Timestamp;
use onsale_store::{Clock, Homes, StoreError, SubmitError};
use tokio::sync::{Mutex, Semaphore, watch};

use crate::auth::Auth;
use crate::clock::ServerClock;
use crate::desk::{Desk, HEAVY_READS_MAX, HomeNo};
use crate::follow::Followers;
use crate::gateway::stripe::Stripe;
use crate::http::listener::ConnectionStats;
use crate::metrics::Metrics;
use crate::reconcile::schedule::Plan;
use crate::tickets::barcode::Signer;
use crate::webhooks::Webhooks;

/// How long a caller's command may wait for the writer: longer than any healthy queue, shorter than a client's
/// patience.
const QUEUE_PATIENCE: Duration = Duration::from_secs(5);

/// What handlers and workers share.
pub(crate) struct App {
    pub(crate) homes: Homes,
    /// One for each home, in their order.
    pub(crate) desks: Vec<Desk>,
    /// When the last reading of the directory began that has succeeded.
    directory: Mutex<Instant>,
    pub(crate) clock: Arc<ServerClock>,
    pub(crate) auth: Auth,
    /// Writes the tickets' barcodes.
    pub(crate) signer: Signer,
    pub(crate) followers: Arc<Followers>,
    /// The payment provider; `None` when none is configured.
    pub(crate) gateway: Option<Gateways>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) webhooks: Webhooks,
    /// Of the buyers' and of the operators' listener.
    pub(crate) connections: [Arc<ConnectionStats>; 2],
    /// Work that keeps a core busy, such as reading a large manifest.
    heavy: Semaphore,
    /// Operations of one home worked on at once; each is one open call to the provider.
    pub(crate) payments_at_once: usize,
    /// Operations being worked on in this process.
    pub(crate) in_flight: crate::worker::payments::InFlight,
    /// When book is compared with book.
    pub(crate) reconcile: Plan,
    /// True once the server is stopping.
    pub(crate) stopping: watch::Receiver<bool>,
    pub(crate) test_mode: bool,
}

/// What an [`App`] is made of.
pub(crate) struct Parts {
    pub(crate) homes: Homes,
    pub(crate) clock: Arc<ServerClock>,
    pub(crate) auth: Auth,
    pub(crate) signer: Signer,
    pub(crate) followers: Arc<Followers>,
    pub(crate) gateway: Option<Gateways>,
    pub(crate) webhooks: Webhooks,
    pub(crate) connections: [Arc<ConnectionStats>; 2],
    pub(crate) payments_at_once: usize,
    pub(crate) reconcile: Plan,
    pub(crate) stopping: watch::Receiver<bool>,
    pub(crate) test_mode: bool,
}

/// The same provider twice: a worker that waits for answers must not use up the connections that callbacks, on which
/// those answers may wait, are read back with.
pub(crate) struct Gateways {
    pub(crate) for_workers: Stripe,
    pub(crate) for_callbacks: Stripe,
}

/// A wish that wasn't decided, or a read that failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AppError {
    #[error(transparent)]
    Submit(#[from] SubmitError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A command whose home is away, which is known: not done.
    #[error("the home {0} is away")]
    Away(String),
    /// The directory names a home that isn't in this process's settings.
    #[error("event {} is at a home that this process was not told of", .0.0)]
    Homeless(EventNo),
}

impl AppError {
    /// Whether it is the database that can't be reached, and nothing else is wrong.
    pub(crate) fn is_outage(&self) -> bool {
        match self {
            AppError::Store(error) => is_outage(error),
            AppError::Homeless(_) | AppError::Away(_) => true,
            AppError::Submit(_) => false,
        }
    }
}

/// Whether a home can't be reached, or can't be used, and nothing else is wrong.
pub(crate) fn is_outage(error: &StoreError) -> bool {
    match error {
        // Without a code it is the connection; with one of these the server is ending, full, or not one to write to.
        StoreError::Postgres(error) => {
            error.code().is_none_or(|code| matches!(&code.code()[..2], "08" | "25" | "53" | "57"))
        }
        StoreError::NoAnswer | StoreError::Away(_) | StoreError::Unusable(_) => true,
        _ => false,
    }
}

impl App {
    pub(crate) fn new(parts: Parts) -> App {
        let desks: Vec<Desk> = parts.homes.all().iter().map(|home| Desk::new(&home.store)).collect();
        App {
            // What is at work for a home that is away must not keep another's payments waiting.
            payments_at_once: (parts.payments_at_once / desks.len()).max(1),
            desks,
            homes: parts.homes,
            directory: Mutex::new(Instant::now()),
            clock: parts.clock,
            auth: parts.auth,
            signer: parts.signer,
            followers: parts.followers,
            gateway: parts.gateway,
            metrics: Arc::new(Metrics::new()),
            webhooks: parts.webhooks,
            connections: parts.connections,
            heavy: Semaphore::new(HEAVY_READS_MAX),
            in_flight: Default::default(),
            reconcile: parts.reconcile,
            stopping: parts.stopping,
            test_mode: parts.test_mode,
        }
    }

    /// The time now.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A seed for ids of an event.
    pub(crate) fn seed(&self, event: EventNo) -> Seed {
        Seed::new(event, self.now(), rand::random())
    }
}

/// Commands.
impl App {
    /// Has a command decided.
    pub(crate) async fn decide(
        self: &Arc<Self>,
        command: Command,
        key: Option<RequestKey>,
    ) -> Result<Decision, AppError> {
        let seed = self.seed(command.event());
        let deadline = Instant::now() + QUEUE_PATIENCE;
        self.submit(Request { command, key, seed }, Some(deadline)).await
    }

    /// Has a worker's command decided, however long it queues: what a provider said must not be dropped.
    pub(crate) async fn record(self: &Arc<Self>, command: Command) -> Result<Decision, AppError> {
        let seed = self.seed(command.event());
        self.submit(Request { command, key: None, seed }, None).await
    }

    /// Sends a request to the home of its event; once more where that turns out to be another.
    async fn submit(
        self: &Arc<Self>,
        request: Request,
        deadline: Option<Instant>,
    ) -> Result<Decision, AppError> {
        let (asked, event) = (Instant::now(), request.command.event());
        let home = self.home_of(event)?;
        let again = self.has_homes().then(|| request.clone());
        let done = self.submit_at(home, request, deadline).await;
        let is_unknown_here = match &done {
            Err(error) => matches!(error, AppError::Submit(SubmitError::Elsewhere)),
            // Or made at another home, of which this process hasn't heard yet.
            Ok(decision) => decision.outcome == Outcome::Refused(Refusal::NotFound),
        };
        if is_unknown_here
            && let Some(request) = again
            && let Some(there) = self.elsewhere(event, home, asked).await?
        {
            return self.submit_at(there, request, deadline).await;
        }
        done
    }

    async fn submit_at(
        &self,
        home: HomeNo,
        request: Request,
        deadline: Option<Instant>,
    ) -> Result<Decision, AppError> {
        let away = || AppError::Away(self.name(home).to_string());
        if self.desk(home).is_silent() {
            return Err(away());
        }
        match self.store(home).submit(request, deadline).await {
            // Why is said once in the log, where it is found out, and not with every command of a crowd.
            Err(SubmitError::Unavailable(_)) if self.store(home).is_away() => Err(away()),
            done => Ok(done?),
        }
    }
}
