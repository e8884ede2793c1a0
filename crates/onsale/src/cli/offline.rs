//! Commands decided from the command line, on the database itself: a server on the same database may run or not.

use std::sync::Arc;

use anyhow::{Context, bail};
use onsale_core::command::{Command, Decision, Outcome, Request};
use onsale_core::event::Event;
use onsale_core::id::{EventId, EventNo, Seed};
use onsale_store::{Clock, Home, HomeOptions, Homes, Options, Store};

use crate::clock::ServerClock;
use crate::config::{Settings, Standby};
use crate::http::reasons;

use super::DataArgs;

/// The databases of an installation, opened for a command.
pub(super) struct Offline {
    pub(super) homes: Arc<Homes>,
    pub(super) clock: Arc<ServerClock>,
}

impl Offline {
    pub(super) fn open(args: DataArgs) -> anyhow::Result<Offline> {
        Offline::with(&args.settings()?)
    }

    pub(super) fn with(settings: &Settings) -> anyhow::Result<Offline> {
        let clock = Arc::new(ServerClock::system());
        let open = |(name, url): (&str, Option<&str>)| {
            let store = open_home(settings, name, url, Arc::clone(&clock) as Arc<dyn Clock>)?;
            anyhow::Ok(Home { name: name.into(), store })
        };
        let homes = Homes::new(settings.database.homes().map(open).collect::<Result<_, _>>()?);
        homes.refresh()?;
        Ok(Offline { homes: Arc::new(homes), clock })
    }

    /// The home of an event.
    pub(super) fn home(&self, event: EventNo) -> anyhow::Result<&Home> {
        self.homes.of(event).context("the event is at a home that the settings don't have: give --config")
    }

    /// Has a command decided; a refusal is an error here.
    pub(super) fn decide(&self, command: Command) -> anyhow::Result<Outcome> {
        let seed = Seed::new(command.event(), self.clock.now(), rand::random());
        let home = self.home(command.event())?;
        let Decision { outcome, .. } = home.store.submit_blocking(Request { command, key: None, seed })?;
        match outcome {
            Outcome::Refused(refusal) => bail!("refused: {}", reasons::refused(&refusal).detail),
            outcome => Ok(outcome),
        }
    }

    /// An event by its id.
    pub(super) fn event(&self, id: EventId) -> anyhow::Result<Event> {
        let event = self.home(id.event())?.store.read(|reader| reader.event(id.event()))?;
        let event = event.filter(|event| event.id == id && id.event() != EventNo::HOUSE);
        event.with_context(|| format!("there is no event {id}"))
    }
}

/// Opens one of them. An upgrade is the server's to do, not a by-product of looking at a list.
fn open_home(
    settings: &Settings,
    name: &str,
    url: Option<&str>,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<Store> {
    Ok(match url {
        Some(url) => {
            let mut options = HomeOptions::new(name, url, clock);
            options.upgrades = false;
            options.needs_standby = settings.database.standby == Standby::Required;
            options.lanes = 1;
            Store::connect(options, |_| {})?
        }
        None => {
            let mut options = Options::new(settings.data.clone(), clock);
            options.upgrades = false;
            Store::open(options, |_| {})?
        }
    })
}
