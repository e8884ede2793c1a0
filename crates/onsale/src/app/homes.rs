//! Which home has what, and whether it can be used.

use std::sync::Arc;
use std::time::Instant;

use onsale_core::id::EventNo;
use onsale_store::Store;

use crate::desk::{Desk, HomeNo};

use super::{App, AppError};

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
        self.home_of(event).is_ok_and(|home| !self.is_away(home)) && !self.homes.is_moving(event)
    }

    /// Reads the directory.
    pub(crate) async fn refresh_directory(self: &Arc<Self>) -> Result<(), AppError> {
        self.refresh_directory_since(Instant::now()).await
    }

    /// Reads the directory, unless that has been done since `asked`. Those who want it at the same time share one reading.
    async fn refresh_directory_since(self: &Arc<Self>, asked: Instant) -> Result<(), AppError> {
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
    pub(super) async fn elsewhere(
        self: &Arc<Self>,
        event: EventNo,
        than: HomeNo,
        asked: Instant,
    ) -> Result<Option<HomeNo>, AppError> {
        if !self.has_homes() {
            return Ok(None);
        }
        self.refresh_directory_since(asked).await?;
        Ok(Some(self.home_of(event)?).filter(|home| *home != than))
    }
}
