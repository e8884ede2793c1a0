//! The running installation: what handlers and workers share, and the way from a wish to a decision.

use std::sync::Arc;
use std::time::{Duration, Instant};

use onsale_core::command::{Command, Decision, Outcome, Request};
use onsale_core::event::Event;
use onsale_core::id::{EventId, EventNo, Seed};
use onsale_core::idempotency::RequestKey;
use onsale_core::refusal::Refusal;
use onsale_core::time::Timestamp;
use onsale_store::{Clock, Homes, Reader, Store, StoreError, SubmitError};
use tokio::sync::{Mutex, Semaphore, watch};

use crate::auth::Auth;
use crate::catalog::Sale;
use crate::clock::ServerClock;
use crate::desk::{Desk, HEAVY_READS_MAX, HomeNo};
use crate::follow::Followers;
use crate::gateway::stripe::Stripe;
use crate::http::listener::ConnectionStats;
use crate::metrics::Metrics;
use crate::seat_map::SeatMap;

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
    pub(crate) followers: Arc<Followers>,
    /// The payment provider; `None` when none is configured.
    pub(crate) gateway: Option<Gateways>,
    pub(crate) metrics: Arc<Metrics>,
    /// Of the buyers' and of the operators' listener.
    pub(crate) connections: [Arc<ConnectionStats>; 2],
    /// Work that keeps a core busy, such as reading a large manifest.
    heavy: Semaphore,
    /// Operations of one home worked on at once; each is one open call to the provider.
    pub(crate) payments_at_once: usize,
    /// Operations being worked on in this process.
    pub(crate) in_flight: crate::worker::payments::InFlight,
    /// True once the server is stopping.
    pub(crate) stopping: watch::Receiver<bool>,
    pub(crate) test_mode: bool,
}

/// What an [`App`] is made of.
pub(crate) struct Parts {
    pub(crate) homes: Homes,
    pub(crate) clock: Arc<ServerClock>,
    pub(crate) auth: Auth,
    pub(crate) followers: Arc<Followers>,
    pub(crate) gateway: Option<Gateways>,
    pub(crate) connections: [Arc<ConnectionStats>; 2],
    pub(crate) payments_at_once: usize,
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
    /// The directory names a home that isn't in this process's settings.
    #[error("event {} is at a home that this process was not told of", .0.0)]
    Homeless(EventNo),
}

impl AppError {
    /// Whether it is the database that can't be reached, and nothing else is wrong.
    pub(crate) fn is_outage(&self) -> bool {
        match self {
            AppError::Store(error) => is_outage(error),
            AppError::Homeless(_) => true,
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
            followers: parts.followers,
            gateway: parts.gateway,
            metrics: Arc::new(Metrics::new()),
            connections: parts.connections,
            heavy: Semaphore::new(HEAVY_READS_MAX),
            in_flight: Default::default(),
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

/// Homes.
impl App {
    /// All homes.
    pub(crate) fn all(&self) -> impl Iterator<Item = HomeNo> + use<> {
        (0..self.desks.len()).map(HomeNo)
    }

    /// Whether there is more than one.
    pub(crate) fn has_homes(&self) -> bool {
        self.desks.len() > 1
    }

    pub(crate) fn store(&self, home: HomeNo) -> &Store {
        &self.homes.all()[home.0].store
    }

    pub(crate) fn desk(&self, home: HomeNo) -> &Desk {
        &self.desks[home.0]
    }

    /// What a home is called.
    pub(crate) fn name(&self, home: HomeNo) -> &Arc<str> {
        &self.homes.all()[home.0].name
    }

    /// The home of that name.
    pub(crate) fn named(&self, name: &str) -> Option<HomeNo> {
        self.all().find(|home| &**self.name(*home) == name)
    }

    /// The home of an event, as far as this process knows.
    pub(crate) fn home_of(&self, event: EventNo) -> Result<HomeNo, AppError> {
        let home = self.homes.of(event).ok_or(AppError::Homeless(event))?;
        let place = self.homes.all().iter().position(|other| std::ptr::eq(home, other));
        place.map(HomeNo).ok_or(AppError::Homeless(event))
    }

    /// Whether a home can't be used at present.
    pub(crate) fn is_away(&self, home: HomeNo) -> bool {
        self.store(home).is_away() || self.desk(home).is_silent()
    }

    /// Whether seats of an event can be held at present, as far as its home is concerned.
    pub(crate) fn is_bookable(&self, event: EventNo) -> bool {
        self.home_of(event).is_ok_and(|home| !self.is_away(home))
    }

    /// Reads the directory, unless that has been done since `asked`. Those who want it at the same time share one reading.
    pub(crate) async fn refresh_directory(self: &Arc<Self>, asked: Instant) -> Result<(), AppError> {
        let mut last = self.directory.lock().await;
        if *last >= asked {
            return Ok(());
        }
        let begun = Instant::now();
        let app = Arc::clone(self);
        self.look_at(HomeNo::MAIN, move |_| {
            let known = app.followers.catalog.numbers();
            let before: Vec<_> = known.iter().map(|no| app.home_of(*no).ok()).collect();
            app.homes.refresh()?;
            for (no, before) in known.into_iter().zip(before) {
                if app.home_of(no).ok() != before {
                    app.followers.catalog.moved(no);
                }
            }
            Ok(())
        })
        .await?;
        *last = begun;
        Ok(())
    }

    /// Where an event is that isn't where it was looked for; `None` when nobody knows of another place.
    async fn elsewhere(
        self: &Arc<Self>,
        event: EventNo,
        than: HomeNo,
        asked: Instant,
    ) -> Result<Option<HomeNo>, AppError> {
        if !self.has_homes() {
            return Ok(None);
        }
        self.refresh_directory(asked).await?;
        Ok(Some(self.home_of(event)?).filter(|home| *home != than))
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
            Err(error) => *error == SubmitError::Elsewhere,
            // Or made at another home, of which this process hasn't heard yet.
            Ok(decision) => decision.outcome == Outcome::Refused(Refusal::NotFound),
        };
        if is_unknown_here
            && let Some(request) = again
            && let Some(there) = self.elsewhere(event, home, asked).await?
        {
            return Ok(self.submit_at(there, request, deadline).await?);
        }
        Ok(done?)
    }

    async fn submit_at(
        &self,
        home: HomeNo,
        request: Request,
        deadline: Option<Instant>,
    ) -> Result<Decision, SubmitError> {
        if self.desk(home).is_silent() {
            return Err(SubmitError::Unavailable(format!("the home {} does not answer", self.name(home))));
        }
        self.store(home).submit(request, deadline).await
    }
}

/// Reads.
impl App {
    /// Reads of an event, wherever its home is. Look-ups by key: where they are a moment's work they are done here and now.
    pub(crate) async fn read<R: Send + 'static>(
        self: &Arc<Self>,
        event: EventNo,
        work: impl Fn(&Reader<'_>) -> Result<R, StoreError> + Send + 'static,
    ) -> Result<R, AppError> {
        self.read_at(self.home_of(event)?, work).await
    }

    /// Reads at a home.
    pub(crate) async fn read_at<R: Send + 'static>(
        self: &Arc<Self>,
        home: HomeNo,
        work: impl Fn(&Reader<'_>) -> Result<R, StoreError> + Send + 'static,
    ) -> Result<R, AppError> {
        self.look_at(home, move |store| store.read(&work)).await
    }

    /// Reads at every home that isn't away.
    pub(crate) async fn read_all<R: Send + 'static>(
        self: &Arc<Self>,
        work: impl Fn(&Reader<'_>) -> Result<R, StoreError> + Clone + Send + 'static,
    ) -> Result<Vec<(HomeNo, R)>, AppError> {
        let mut found = Vec::new();
        for home in self.all() {
            match self.read_at(home, work.clone()).await {
                Ok(read) => found.push((home, read)),
                Err(error) if error.is_outage() && self.has_homes() => {
                    let (home, error) = (&**self.name(home), &error as &dyn std::error::Error);
                    tracing::debug!(home, error, "A home is away: it is left out");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// A look at a home: in this thread where it is a moment's work, else in one that may wait for a server.
    pub(crate) async fn look_at<R: Send + 'static>(
        self: &Arc<Self>,
        home: HomeNo,
        work: impl FnOnce(&Store) -> Result<R, StoreError> + Send + 'static,
    ) -> Result<R, AppError> {
        if !self.store(home).looks_block() {
            return Ok(work(self.store(home))?);
        }
        self.look_in_turn(home, &self.desk(home).looks, work).await
    }

    /// A heavy look at a home, in a thread that may block; few at a time.
    pub(crate) async fn heavy_at<R: Send + 'static>(
        self: &Arc<Self>,
        home: HomeNo,
        work: impl FnOnce(&Store) -> Result<R, StoreError> + Send + 'static,
    ) -> Result<R, AppError> {
        self.look_in_turn(home, &self.desk(home).heavy, work).await
    }

    async fn look_in_turn<R: Send + 'static>(
        self: &Arc<Self>,
        home: HomeNo,
        turns: &Semaphore,
        work: impl FnOnce(&Store) -> Result<R, StoreError> + Send + 'static,
    ) -> Result<R, AppError> {
        let away = || StoreError::Away(self.name(home).to_string());
        if self.desk(home).is_silent() {
            return Err(away().into());
        }
        let _turn = turns.acquire().await.map_err(|_| StoreError::Closed)?;
        // It may have fallen silent while this waited.
        if self.desk(home).is_silent() {
            return Err(away().into());
        }
        let app = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || work(app.store(home))).await;
        Ok(done.map_err(|_| StoreError::Closed)??)
    }

    /// Work that keeps a core busy, in a thread that may block; few at a time.
    pub(crate) async fn heavy<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, AppError> {
        let _turn = self.heavy.acquire().await.map_err(|_| StoreError::Closed)?;
        Ok(tokio::task::spawn_blocking(work).await.map_err(|_| StoreError::Closed)?)
    }

    /// An event as it stands; as it was last seen here while its home is away. `None` when there is no such event.
    pub(crate) async fn event(self: &Arc<Self>, id: EventId) -> Result<Option<Event>, AppError> {
        let event = match self.event_of(id.event()).await {
            Err(error) if error.is_outage() => {
                Some(self.followers.catalog.last_seen(id.event()).ok_or(error)?)
            }
            read => read?,
        };
        Ok(event.filter(|event| event.id == id && id.event() != EventNo::HOUSE))
    }

    /// The event with a number, as it stands.
    pub(crate) async fn event_of(self: &Arc<Self>, no: EventNo) -> Result<Option<Event>, AppError> {
        let asked = Instant::now();
        let home = self.home_of(no)?;
        let mut event = self.read_at(home, move |reader| reader.event(no)).await?;
        if event.is_none()
            && let Some(there) = self.elsewhere(no, home, asked).await?
        {
            event = self.read_at(there, move |reader| reader.event(no)).await?;
        }
        self.followers.catalog.saw(&event);
        Ok(event)
    }

    /// An event with its seats and prices, as this process knows it; `None` when there is no such event.
    pub(crate) async fn sale(self: &Arc<Self>, id: EventId) -> Result<Option<Arc<Sale>>, AppError> {
        let sale = self.sale_of(id.event()).await?;
        Ok(sale.filter(|sale| sale.event.id == id && id.event() != EventNo::HOUSE))
    }

    /// The same by its number. Read from its home when need be; while that is away, what was read last is shown.
    pub(crate) async fn sale_of(self: &Arc<Self>, no: EventNo) -> Result<Option<Arc<Sale>>, AppError> {
        if let Some(sale) = self.followers.catalog.fresh(no) {
            return Ok(Some(sale));
        }
        match self.load(no).await {
            Err(error) if error.is_outage() => self.followers.catalog.last_read(no).map(Some).ok_or(error),
            loaded => loaded,
        }
    }

    async fn load(self: &Arc<Self>, no: EventNo) -> Result<Option<Arc<Sale>>, AppError> {
        let asked = Instant::now();
        let home = self.home_of(no)?;
        let load_at = |home| {
            let app = Arc::clone(self);
            self.heavy_at(home, move |store| app.followers.catalog.load(store, no))
        };
        let found = load_at(home).await?;
        if found.is_none()
            && let Some(there) = self.elsewhere(no, home, asked).await?
        {
            return load_at(there).await;
        }
        Ok(found)
    }

    /// Looks at an event's seat map; while its home is away, at what was read last. `None` when there is no such event.
    pub(crate) async fn seat_map<R>(
        self: &Arc<Self>,
        no: EventNo,
        look: impl Fn(&mut SeatMap) -> R,
    ) -> Result<Option<R>, AppError> {
        if self.sale_of(no).await?.is_none() {
            return Ok(None);
        }
        let catalog = &self.followers.catalog;
        if let Some(seen) = catalog.map_now(no, &look) {
            return Ok(Some(seen));
        }
        let app = Arc::clone(self);
        let read = match self.home_of(no) {
            Ok(home) => {
                self.look_at(home, move |store| app.followers.catalog.bring_up_to_date(store, no)).await
            }
            Err(error) => Err(error),
        };
        let seen = catalog.map_as_it_is(no, &look);
        match read {
            Err(error) if error.is_outage() => seen.map(Some).ok_or(error),
            read => read.map(|()| seen),
        }
    }

    /// Reads the keys in force into memory.
    pub(crate) async fn reload_keys(self: &Arc<Self>) -> Result<(), AppError> {
        let keys = self.read_at(HomeNo::MAIN, |reader| reader.api_keys()).await?;
        self.auth.set_keys(keys);
        Ok(())
    }
}
