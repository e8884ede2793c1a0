//! What a comparison needs of an installation: a running server has it, and so has the command line.

use std::sync::Arc;

use onsale_core::command::{Command, Outcome};
use onsale_core::id::EventNo;
use onsale_core::time::Timestamp;
use onsale_store::{Clock, Reader, SettlementLine, Store, StoreError};

use crate::app::{App, AppError};
use crate::desk::HomeNo;

/// The books of an installation, in all of its homes.
pub(crate) trait Installation: Clone + Send + Sync + 'static {
    /// The time here.
    fn now(&self) -> Timestamp;

    /// How many homes there are.
    fn homes(&self) -> usize;

    /// Reads at every home that can be asked.
    fn read_all<R: Send + 'static>(
        &self,
        work: impl Fn(&Reader<'_>) -> Result<R, StoreError> + Clone + Send + 'static,
    ) -> impl Future<Output = Result<Vec<(HomeNo, R)>, AppError>> + Send;

    /// Reads at the home of an event.
    fn read<R: Send + 'static>(
        &self,
        event: EventNo,
        work: impl Fn(&Reader<'_>) -> Result<R, StoreError> + Send + 'static,
    ) -> impl Future<Output = Result<R, AppError>> + Send;

    /// Has a command decided.
    fn record(&self, command: Command) -> impl Future<Output = Result<Outcome, AppError>> + Send;

    /// Keeps entries of the provider's at the home of their event.
    fn keep_lines(
        &self,
        event: EventNo,
        lines: Vec<SettlementLine>,
    ) -> impl Future<Output = Result<u64, AppError>> + Send;
}

impl Installation for Arc<App> {
    fn now(&self) -> Timestamp {
        App::now(self)
    }

    fn homes(&self) -> usize {
        self.all().count()
    }

    async fn read_all<R: Send + 'static>(
        &self,
        work: impl Fn(&Reader<'_>) -> Result<R, StoreError> + Clone + Send + 'static,
    ) -> Result<Vec<(HomeNo, R)>, AppError> {
        App::read_all(self, work).await
    }

    async fn read<R: Send + 'static>(
        &self,
        event: EventNo,
        work: impl Fn(&Reader<'_>) -> Result<R, StoreError> + Send + 'static,
    ) -> Result<R, AppError> {
        App::read(self, event, work).await
    }

    async fn record(&self, command: Command) -> Result<Outcome, AppError> {
        Ok(App::record(self, command).await?.outcome)
    }

    async fn keep_lines(&self, event: EventNo, lines: Vec<SettlementLine>) -> Result<u64, AppError> {
        let home = self.home_of(event)?;
        Ok(self.store(home).keep_settlement_lines(lines).await?)
    }
}

/// The databases themselves, whether or not a server runs on them.
#[derive(Clone)]
pub(crate) struct Databases {
    pub(crate) homes: Arc<onsale_store::Homes>,
    pub(crate) clock: Arc<crate::clock::ServerClock>,
}

impl Databases {
    fn store_of(&self, event: EventNo) -> Result<&Store, AppError> {
        Ok(&self.homes.of(event).ok_or(AppError::Homeless(event))?.store)
    }
}

impl Installation for Databases {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn homes(&self) -> usize {
        self.homes.all().len()
    }

    async fn read_all<R: Send + 'static>(
        &self,
        work: impl Fn(&Reader<'_>) -> Result<R, StoreError> + Clone + Send + 'static,
    ) -> Result<Vec<(HomeNo, R)>, AppError> {
        let read = |(place, home): (usize, &onsale_store::Home)| {
            let found = tokio::task::block_in_place(|| home.store.read(&work))?;
            Ok((HomeNo(place), found))
        };
        self.homes.all().iter().enumerate().map(read).collect()
    }

    async fn read<R: Send + 'static>(
        &self,
        event: EventNo,
        work: impl Fn(&Reader<'_>) -> Result<R, StoreError> + Send + 'static,
    ) -> Result<R, AppError> {
        let store = self.store_of(event)?;
        Ok(tokio::task::block_in_place(|| store.read(work))?)
    }

    async fn record(&self, command: Command) -> Result<Outcome, AppError> {
        let event = command.event();
        let seed = onsale_core::id::Seed::new(event, self.now(), rand::random());
        let request = onsale_core::command::Request { command, key: None, seed };
        Ok(self.store_of(event)?.submit(request, None).await?.outcome)
    }

    async fn keep_lines(&self, event: EventNo, lines: Vec<SettlementLine>) -> Result<u64, AppError> {
        Ok(self.store_of(event)?.keep_settlement_lines(lines).await?)
    }
}
