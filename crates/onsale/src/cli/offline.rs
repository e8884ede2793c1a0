//! Commands decided from the command line, on the database itself: a server on the same database may run or not.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use onsale_core::command::{Command, Decision, Outcome, Request};
use onsale_core::event::Event;
use onsale_core::id::{EventId, EventNo, Seed};
use onsale_store::{Clock, Options, Store};

use crate::clock::ServerClock;
use crate::http::reasons;

/// A database opened for a command.
pub(super) struct Offline {
    pub(super) store: Store,
    pub(super) clock: Arc<ServerClock>,
}

impl Offline {
    pub(super) fn open(folder: &Path) -> anyhow::Result<Offline> {
        let clock = Arc::new(ServerClock::system());
        let mut options = Options::new(folder.to_owned(), Arc::clone(&clock) as Arc<dyn Clock>);
        // An upgrade is the server's to do, not a by-product of looking at a list.
        options.upgrades = false;
        let store = Store::open(options, |_| {})?;
        Ok(Offline { store, clock })
    }

    /// Has a command decided; a refusal is an error here.
    pub(super) fn decide(&self, command: Command) -> anyhow::Result<Outcome> {
        let seed = Seed::new(command.event(), self.clock.now(), rand::random());
        let Decision { outcome, .. } = self.store.submit_blocking(Request { command, key: None, seed })?;
        match outcome {
            Outcome::Refused(refusal) => bail!("refused: {}", reasons::refused(&refusal).detail),
            outcome => Ok(outcome),
        }
    }

    /// An event by its id.
    pub(super) fn event(&self, id: EventId) -> anyhow::Result<Event> {
        let event = self.store.read(|reader| reader.event(id.event()))?;
        let event = event.filter(|event| event.id == id && id.event() != EventNo::HOUSE);
        event.with_context(|| format!("there is no event {id}"))
    }
}
