//! `onsale event move` and `onsale to-postgres`: an event goes to another home, an installation from its file to a server.

use std::sync::Arc;

use anyhow::{Context, ensure};
use onsale_core::id::EventId;
use onsale_store::{Clock, HomeOptions, MoveError, Options, Step};

use crate::clock::ServerClock;
use crate::config::{Settings, Standby};

use super::{DataArgs, say};

#[derive(clap::Args)]
pub(crate) struct ToPostgresArgs {
    #[command(flatten)]
    data: DataArgs,
    /// Call it off, if the database does not serve yet: the file may be served again
    #[arg(long)]
    cancel: bool,
}

/// Moves an event to a home, or calls that off.
pub(super) fn move_event(data: DataArgs, event: EventId, to: Option<&str>) -> anyhow::Result<()> {
    let settings = data.settings()?;
    ensure!(
        !settings.database.url.is_empty(),
        "events move between homes on PostgreSQL servers, and this installation is a file: see `onsale to-postgres`"
    );
    let (clock, homes) = homes(&settings);
    let what = "the event is frozen, until this is run again, or with --cancel";
    match to {
        Some(to) => {
            watched(what, |told| onsale_store::move_event(&homes, event, to, clock.now(), told))?;
            say(format_args!("{event} is at home at {to}"))?;
        }
        None => {
            watched(what, |told| onsale_store::cancel_move(&homes, event, told))?;
            say(format_args!("{event} is where it was"))?;
        }
    }
    Ok(())
}

/// Moves everything from the file to a server, or calls that off.
pub(crate) fn to_postgres(args: ToPostgresArgs) -> anyhow::Result<()> {
    let settings = args.data.settings()?;
    ensure!(!settings.database.url.is_empty(), "say where to, with --database-url");
    let (clock, homes) = homes(&settings);
    let main = homes.first().context("there is a main home")?;
    let file = Options::new(settings.data.clone(), Arc::clone(&clock) as Arc<dyn Clock>);
    let what = "nothing is decided, until this is run again, or with --cancel";
    if args.cancel {
        watched(what, |told| onsale_store::cancel_to_postgres(&file, main, clock.now(), told))?;
        say("the file may be served again; drop the database before you use it for anything else")?;
    } else {
        watched(what, |told| onsale_store::to_postgres(&file, main, clock.now(), told))?;
        say("from now on serve the database; the file stays as it was, and is not served any more")?;
    }
    Ok(())
}

/// The homes of the settings that are on servers.
fn homes(settings: &Settings) -> (Arc<ServerClock>, Vec<HomeOptions>) {
    let clock = Arc::new(ServerClock::system());
    let options = |(name, url): (&str, Option<&str>)| {
        let mut options = HomeOptions::new(name, url?, Arc::clone(&clock) as Arc<dyn Clock>);
        options.needs_standby = settings.database.standby == Standby::Required;
        Some(options)
    };
    let homes = settings.database.homes().filter_map(options).collect();
    (clock, homes)
}

/// Says each step as it is done. A failure says how things are left.
fn watched(
    frozen: &'static str,
    work: impl FnOnce(&mut dyn FnMut(Step)) -> Result<(), MoveError>,
) -> anyhow::Result<()> {
    let mut is_frozen = false;
    let done = work(&mut |step| {
        match step {
            Step::Frozen { .. } => is_frozen = true,
            Step::Opened { .. } => is_frozen = false,
            _ => {}
        }
        // Whoever has stopped reading doesn't stop the move.
        let _ = say(step);
    });
    if is_frozen { done.context(frozen) } else { Ok(done?) }
}
