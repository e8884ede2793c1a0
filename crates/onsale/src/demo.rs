//! `onsale demo`: an arena, a crowd that sells it out over HTTP, a provider that misbehaves, and at the end the books of all
//! three held against each other.

mod after;
mod arena;
mod books;
mod buyer;
mod character;
mod claims;
mod client;
mod crowd;
mod follow;
mod house;
mod manner;
mod measures;
mod mischief;
mod progress;
mod settle;
mod summary;
mod wire;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::any_port;
use crate::config::Settings;
use crate::desk::HomeNo;
use crate::server::{Mode, Server};
use crate::telemetry;

use arena::{Folder, Operator};
use claims::Claim;
use client::{Ask, Client};
use crowd::Crowd;
use house::House;
use summary::Summary;
use wire::{AreasSeen, ProviderLedgerSeen, ProviderLogSeen};

#[derive(clap::Args)]
pub(crate) struct DemoArgs {
    /// Seats of the arena
    #[arg(long, default_value_t = 50_000, value_parser = clap::value_parser!(u32).range(1..=200_000))]
    seats: u32,
    /// Buyers at once
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    buyers: u32,
    /// What the arena and the crowd follow from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Seconds after which an arena that isn't sold out is a failure
    #[arg(long, default_value_t = 600)]
    time_limit_s: u64,
    /// Keep the data in this folder, which must not have a database yet [default: a temporary folder]
    #[arg(long)]
    data: Option<PathBuf>,
    /// Where buyers connect [default: a free port]
    #[arg(long)]
    listen: Option<SocketAddr>,
    /// Where operators connect [default: a free port]
    #[arg(long)]
    operator_listen: Option<SocketAddr>,
    /// Leave the server up afterwards, until it is interrupted
    #[arg(long)]
    keep_running: bool,
}

pub(crate) fn run(args: DemoArgs) -> anyhow::Result<ExitCode> {
    let mut settings = Settings::load(None)?;
    // A real installation's database is not the demo's to play with.
    settings.keep_in_file();
    let folder = Folder::make(args.data.clone())?;
    settings.data.clone_from(&folder.path);
    settings.listen = args.listen.unwrap_or_else(any_port);
    settings.operator_listen = args.operator_listen.unwrap_or_else(any_port);
    // There is no load balancer that would have to notice.
    settings.http.drain_ms = 0;
    // Provider faults are expected here, and would bury the demo under their warnings.
    let level = std::env::var("ONSALE_LOG").unwrap_or_else(|_| "error".to_owned());
    telemetry::start(&level)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut interrupted = std::pin::pin!(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        });
        let mode = Mode { simulator: Some(any_port()), ..Mode::default() };
        let server = Server::start(&settings, mode).await?;
        let verdict = tokio::select! {
            verdict = perform(&server, &folder, &args) => Some(verdict),
            () = &mut interrupted => None,
        };
        let is_clean = match verdict {
            Some(verdict) => {
                let is_clean = verdict.unwrap_or_else(|error| {
                    println!("demo: failed: {error:#}");
                    false
                });
                if args.keep_running {
                    println!("Still serving buyers on http://{}", server.listen);
                    println!("Still serving operators on http://{}", server.operator_listen);
                    println!("The operator's key is in {}", arena::where_key_is(&folder.path));
                    interrupted.await;
                }
                is_clean
            }
            None => {
                println!("demo: interrupted");
                false
            }
        };
        server.stop().await;
        Ok(if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

/// Builds, sells, settles and compares; whether everything was as promised.
async fn perform(server: &Server, folder: &Folder, args: &DemoArgs) -> anyhow::Result<bool> {
    let provider = server.simulator.as_ref().context("the demo has no provider")?.addr;
    let (shop, seats) = (server.listen, args.seats as usize);
    let places = arena::pitch_capacity(seats);
    println!(
        "An arena of {seats} seats and {places} places to stand, {} buyers at once, a provider that misbehaves",
        args.buyers
    );
    let mut operator = Operator::new(server.operator_listen, arena::operator_key(&folder.path)?);
    let building = Instant::now();
    let event = operator.build(seats, args.seed).await?;
    let house = House::new(arena::seats(shop, &event).await?);
    println!("Built in {:.1} s; the sale opens", building.elapsed().as_secs_f64());
    let crowd = Crowd::new(shop, provider, event.clone(), house);
    operator.open(&event).await?;

    let limit = Duration::from_secs(args.time_limit_s);
    let sale = crowd::sell_out(&crowd, args.buyers as usize, args.seed, limit);
    let chance = StdRng::seed_from_u64(args.seed.wrapping_mul(31));
    let sold_out_after = tokio::select! {
        sold_out_after = sale => sold_out_after,
        () = progress::show(&crowd, seats) => None,
        trouble = mischief::misbehave(&crowd, chance) => {
            trouble.context("the provider could not be made to misbehave")?;
            None
        }
    };
    let Some(sold_out_after) = sold_out_after else {
        let counts = crowd.with_house(|house| house.counts());
        crowd.measures.find(format!("not sold out within {limit:?}: {counts:?}"));
        return Ok(conclude(&crowd, Vec::new(), "failed"));
    };
    let settling = Instant::now();
    mischief::behave(provider).await?;
    let claims: Arc<[Claim]> = crowd.claims.all().into();
    settle::settle(&mut operator, &event).await?;
    let found = settle::find(&crowd, &claims).await?;
    // Read once more: the last orders may have been closed while buyers looked at theirs.
    let report = settle::settle(&mut operator, &event).await?;
    let settled_after = settling.elapsed();

    let mut wrong = books::compare_claims(&claims, &found);
    wrong.extend(books::compare_seats(&found, seats));
    let areas: AreasSeen = operator.get(&format!("{event}/ga")).await?;
    wrong.extend(books::compare_places(&found, &areas, arena::pitch_capacity(seats)));
    let mut bank = Client::new(provider);
    let ledger: ProviderLedgerSeen = bank.call(&Ask::get("/_sim/ledger")).await?.json()?;
    wrong.extend(books::compare_money(&found, &ledger.orders, &report, seats));
    follow::check_map(&crowd).await?;
    let after = after::happen(&crowd, &mut operator, &claims, &found).await?;
    wrong.extend(after.wrong.iter().cloned());
    let app = Arc::clone(&server.app);
    let audit = server.app.heavy_at(HomeNo::MAIN, move |store| store.audit(app.now())).await?;
    for check in audit.checks.iter().filter(|check| check.violations > 0) {
        wrong.push(format!("{} is broken, {}: {}", check.id, check.title, check.rows.join("; ")));
    }
    let log: ProviderLogSeen = bank.call(&Ask::get("/_sim/log")).await?.json()?;
    let (measures, report, found) = (&crowd.measures, &report, &found);
    let provider_log = &log.entries;
    let after = &after;
    summary::print(&Summary {
        after,
        seats,
        sold_out_after,
        settled_after,
        measures,
        report,
        found,
        provider_log,
    });
    println!("audit: {} invariants looked at, {} violations", audit.checks.len(), audit.violations());
    println!("books: {} claims, {} payments at the provider", claims.len(), ledger.orders.len());
    let seconds = sold_out_after.as_secs_f64();
    let well =
        format!("{seats} seats sold once each in {seconds:.1} s, every payment closed, all books agree");
    Ok(conclude(&crowd, wrong, &well))
}

/// Prints what was not as promised, and the last line; whether there was nothing.
fn conclude(crowd: &Crowd, wrong: Vec<String>, well: &str) -> bool {
    let findings = crowd.measures.findings();
    for finding in findings.told.iter().chain(&wrong) {
        println!("wrong: {finding}");
    }
    let count = findings.told.len() + findings.more + wrong.len();
    match count {
        0 => println!("demo: {well}"),
        count => println!("demo: failed: {count} things were not as promised"),
    }
    count == 0
}
