//! Reads: in this thread where they are a moment's work, in one that may wait where a server is asked. While a home is away, what
//! was read of it last is shown.

use std::sync::Arc;
use std::time::Instant;

use onsale_core::event::Event;
use onsale_core::id::{EventId, EventNo};
use onsale_store::{Reader, Store, StoreError, chain};
use tokio::sync::Semaphore;

use crate::catalog::Sale;
use crate::desk::HomeNo;
use crate::seat_map::SeatMap;

use super::{App, AppError};

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

    /// Reads at every home that isn't away; what each of them has.
    pub(crate) async fn read_all<R: Send + 'static>(
        self: &Arc<Self>,
        work: impl Fn(&Reader<'_>) -> Result<R, StoreError> + Clone + Send + 'static,
    ) -> Result<Vec<(HomeNo, R)>, AppError> {
        let mut found = Vec::new();
        for home in self.all() {
            match self.read_at(home, work.clone()).await {
                Ok(read) => found.push((home, read)),
                Err(error) if error.is_outage() => {
                    let (home, error) = (&**self.name(home), chain(&error));
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

    /// An event as it stands; as it was last seen here while its home is away, or while it is on its way to another. `None` when
    /// there is no such event.
    pub(crate) async fn event(self: &Arc<Self>, id: EventId) -> Result<Option<Event>, AppError> {
        let event = match self.event_of(id.event()).await {
            Err(error) if error.is_outage() => {
                Some(self.followers.catalog.last_seen(id.event()).ok_or(error)?)
            }
            read => read?.or_else(|| self.followers.catalog.last_seen(id.event())),
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

    /// The same by its number. Read from its home when need be; while that is away, or the event on its way to another, what was
    /// read last is shown.
    pub(crate) async fn sale_of(self: &Arc<Self>, no: EventNo) -> Result<Option<Arc<Sale>>, AppError> {
        if let Some(sale) = self.followers.catalog.fresh(no) {
            return Ok(Some(sale));
        }
        match self.load(no).await {
            Err(error) if error.is_outage() => self.followers.catalog.last_read(no).map(Some).ok_or(error),
            Ok(None) => Ok(self.followers.catalog.last_read(no)),
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
        let wanted = match catalog.map_now(no, None, &look) {
            Ok(seen) => return Ok(Some(seen)),
            Err(wanted) => wanted,
        };
        let reading = catalog.map_reading(no);
        let _turn = reading.lock().await;
        if let Ok(seen) = catalog.map_now(no, Some(wanted), &look) {
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
