//! `onsale event`: make, list, show, price, open, pause, close and fence events; how one moves is in `moving.rs`.

use std::cmp::Reverse;

use anyhow::{Context, bail, ensure};
use comfy_table::Table;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use onsale_core::command::{Command, Outcome};
use onsale_core::event::EventStatus;
use onsale_core::id::{EventId, EventNo, Seed};
use onsale_store::{Clock, Named};

use crate::http::problem::FieldError;
use crate::http::wire::event::{EventJson, NewEventJson, PolicyJson};
use crate::http::wire::rfc3339;
use crate::new_event;

use super::offline::Offline;
use super::{DataArgs, moving, say};

#[derive(clap::Args)]
pub(crate) struct EventArgs {
    #[command(flatten)]
    data: DataArgs,
    #[command(subcommand)]
    command: EventCommand,
}

#[derive(clap::Subcommand)]
enum EventCommand {
    /// Make an event, as a draft; prints its id
    Create {
        /// What it is called
        #[arg(long)]
        name: String,
        /// ISO 4217 code
        #[arg(long)]
        currency: String,
        /// When it starts, in RFC 3339
        #[arg(long)]
        starts_at: String,
        /// Before this nobody buys
        #[arg(long)]
        on_sale_at: Option<String>,
        /// From this on nobody buys
        #[arg(long)]
        off_sale_at: Option<String>,
        /// IANA time zone of the venue
        #[arg(long)]
        timezone: Option<String>,
        /// The rules of its sale, as the JSON object of the API's `policy`
        #[arg(long)]
        policy: Option<String>,
        /// The home it is made in, one of the settings [default: the main one]
        #[arg(long)]
        home: Option<String>,
    },
    /// List events
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show an event as JSON
    Show {
        /// Its id
        event: EventId,
    },
    /// Set prices: LEVEL=MINOR_UNITS, as many as you like
    Prices {
        /// The event's id
        event: EventId,
        /// For example "Stalls=4500"
        #[arg(required = true)]
        prices: Vec<String>,
    },
    /// Open the sale
    Open {
        /// The event's id
        event: EventId,
    },
    /// Halt the sale; holds in hand may still be paid
    Pause {
        /// The event's id
        event: EventId,
    },
    /// Close the sale
    Close {
        /// The event's id
        event: EventId,
    },
    /// Move it to another home, or finish a move that stopped half way
    Move {
        /// The event's id
        event: EventId,
        /// The home it goes to, one of the settings
        #[arg(long, required_unless_present = "cancel")]
        to: Option<String>,
        /// Call a move off that has not switched yet: it is open again where it was
        #[arg(long, conflicts_with = "to")]
        cancel: bool,
    },
    /// Raise its epoch, after a failover or a restore: whatever was remembered of before is visibly older
    Fence {
        /// The event's id
        event: EventId,
    },
}

pub(crate) fn run(args: EventArgs) -> anyhow::Result<()> {
    // A move opens the homes that it is about and no other: one of them may be away.
    if let EventCommand::Move { event, to, .. } = args.command {
        return moving::move_event(args.data, event, to.as_deref());
    }
    let offline = Offline::open(args.data)?;
    match args.command {
        EventCommand::Create {
            name,
            currency,
            starts_at,
            on_sale_at,
            off_sale_at,
            timezone,
            policy,
            home,
        } => {
            let policy: Option<PolicyJson> = match policy {
                Some(text) => Some(serde_json::from_str(&text).context("--policy is not valid")?),
                None => None,
            };
            let body =
                NewEventJson { name, currency, starts_at, on_sale_at, off_sale_at, timezone, policy, home };
            create(&offline, &body)?;
        }
        EventCommand::List { json } => {
            list(&offline, json)?;
        }
        EventCommand::Show { event } => {
            let (home, event) = (offline.home(event.event())?, offline.event(event)?);
            say(serde_json::to_string_pretty(&EventJson::of(&event, &home.name, true))?)?;
        }
        EventCommand::Prices { event, prices } => set_prices(&offline, event, &prices)?,
        EventCommand::Open { event } => set_on_sale(&offline, event, EventStatus::Open)?,
        EventCommand::Pause { event } => set_on_sale(&offline, event, EventStatus::Paused)?,
        EventCommand::Close { event } => set_on_sale(&offline, event, EventStatus::Closed)?,
        EventCommand::Fence { event } => fence(&offline, event)?,
        EventCommand::Move { .. } => unreachable!("it is done above"),
    }
    Ok(())
}

fn create(offline: &Offline, body: &NewEventJson) -> anyhow::Result<()> {
    let home = match &body.home {
        Some(name) => offline.homes.named(name).with_context(|| format!("there is no home {name:?}"))?,
        None => &offline.homes.all()[0],
    };
    let now = offline.clock.now();
    let no = EventNo(rand::random_range(1..=EventNo::MAX.0));
    let id = Seed::new(no, now, rand::random()).mint();
    let event = new_event::from_json(body, id, now).map_err(faults)?;
    // A number that is taken anywhere is nobody's to enter; whoever sees this draws another by trying again.
    for other in offline.homes.all() {
        ensure!(
            other.store.read(|reader| reader.event(no))?.is_none(),
            "a number was drawn that is taken: try again"
        );
    }
    offline.homes.enter(no, home)?;
    let entered = offline.home(no)?;
    ensure!(entered.name == home.name, "a number was drawn that is taken: try again");
    offline.decide(Command::CreateEvent(Box::new(event)))?;
    say(id)?;
    Ok(())
}

/// All events of all homes, the newest first.
fn list(offline: &Offline, json: bool) -> anyhow::Result<()> {
    let mut events = Vec::new();
    for home in offline.homes.all() {
        let read = home.store.read(|reader| reader.events())?;
        events.extend(read.into_iter().map(|event| (event, home)));
    }
    events.sort_by_key(|(event, _)| (Reverse(event.created_at), event.no()));
    if json {
        let events: Vec<_> =
            events.iter().map(|(event, home)| EventJson::of(event, &home.name, true)).collect();
        say(serde_json::to_string_pretty(&events)?)?;
        return Ok(());
    }
    let mut table = Table::new();
    let has_homes = offline.homes.all().len() > 1;
    let header = ["event", "name", "starts", "status", "seats", "home"];
    let columns = if has_homes { header.len() } else { header.len() - 1 };
    table.load_style(UTF8_HORIZONTAL_ONLY).set_header(&header[..columns]);
    for (event, home) in events {
        let (id, starts, seats) =
            (event.id.to_string(), rfc3339(event.starts_at), event.seat_count.to_string());
        let row = [id.as_str(), &event.name, &starts, event.status.word(), &seats, &home.name];
        table.add_row(&row[..columns]);
    }
    say(&table)?;
    Ok(())
}

fn set_prices(offline: &Offline, id: EventId, prices: &[String]) -> anyhow::Result<()> {
    let event = offline.event(id)?;
    let view = offline.home(id.event())?.store.read(|reader| reader.manifest(id.event()))?;
    let view = view.context("the event has no seats: import a manifest first")?;
    let mut parsed = Vec::new();
    for text in prices {
        let (level, amount) =
            text.rsplit_once('=').with_context(|| format!("{text:?} is not LEVEL=MINOR_UNITS"))?;
        let amount =
            amount.parse().with_context(|| format!("{amount:?} is not a whole number of minor units"))?;
        parsed.push((level, amount));
    }
    let levels =
        new_event::price_levels(&view.manifest, event.currency, parsed.into_iter()).map_err(faults)?;
    let command = Command::SetPrices { event: id.event(), manifest_version: view.version, levels };
    match offline.decide(command)? {
        Outcome::PricesSet { price_version } => say(format_args!("prices version {price_version}"))?,
        other => bail!("unexpected: {other:?}"),
    }
    Ok(())
}

fn set_on_sale(offline: &Offline, id: EventId, status: EventStatus) -> anyhow::Result<()> {
    offline.event(id)?;
    offline.decide(Command::SetOnSale { event: id.event(), status, actor: "command line".to_owned() })?;
    say(format_args!("{id} is {}", status.word()))?;
    Ok(())
}

fn fence(offline: &Offline, id: EventId) -> anyhow::Result<()> {
    offline.event(id)?;
    let home = offline.home(id.event())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build()?;
    let epoch = runtime.block_on(home.store.fence(id.event()))?;
    say(format_args!("{id} is in epoch {}", epoch.context("the event is moving to another home")?))?;
    Ok(())
}

/// Faults of a description, one a line.
fn faults(faults: Vec<FieldError>) -> anyhow::Error {
    let lines: Vec<String> =
        faults.iter().map(|fault| format!("  {}: {}", fault.pointer, fault.detail)).collect();
    anyhow::anyhow!("not valid:\n{}", lines.join("\n"))
}
