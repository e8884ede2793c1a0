//! Everything that happens by itself. Workers are thin pumps: they find what is due, ask the provider, and hand what
//! they hear to the core. Nothing is promised on their account: when they are late, things are late, not wrong.

pub(crate) mod dispatcher;
pub(crate) mod expirer;
pub(crate) mod issuer;
pub(crate) mod payments;
pub(crate) mod quota;
pub(crate) mod reconciler;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::app::{App, AppError};
use crate::desk::HomeNo;

/// How often each worker looks, all in one place.
const EXPIRER_EVERY: Duration = Duration::from_millis(500);
const PAYMENTS_EVERY: Duration = Duration::from_millis(500);
const QUOTA_EVERY: Duration = Duration::from_millis(500);
/// When a capture rings, too.
const ISSUER_EVERY: Duration = Duration::from_millis(500);
const DISPATCHER_EVERY: Duration = Duration::from_millis(500);
const RECONCILER_EVERY: Duration = Duration::from_secs(5);
/// How often the server reads what other processes have committed, from each home.
const FOLLOW_EVERY: Duration = Duration::from_millis(100);
/// How often it reads what the main home alone has: keys that were revoked, events that have moved.
const MAIN_EVERY: Duration = Duration::from_millis(250);
/// How often it asks for the duty of each home: when a process dies, its work lies for so long.
const DUTY_EVERY: Duration = Duration::from_secs(1);

/// Starts all workers, those of each home by themselves, so that one that is away keeps no other waiting. They end when the
/// server stops.
pub(crate) fn start(app: &Arc<App>) -> JoinSet<()> {
    let mut workers = JoinSet::new();
    for home in app.all() {
        if app.store(home).looks_block() {
            let shared = Arc::clone(app);
            workers.spawn(async move { keep_duty(&shared, home).await });
        }
        let shared = Arc::clone(app);
        workers.spawn(async move { on_duty(&shared, home, EXPIRER_EVERY, expirer::pass).await });
        let shared = Arc::clone(app);
        workers.spawn(async move { payments::run(&shared, home, PAYMENTS_EVERY).await });
        let shared = Arc::clone(app);
        workers.spawn(async move { on_duty(&shared, home, QUOTA_EVERY, quota::pass).await });
        let shared = Arc::clone(app);
        workers.spawn(async move {
            let bell = &shared.followers.moved_money[home.0];
            on_duty_or_rung(&shared, home, ISSUER_EVERY, bell, issuer::pass).await;
        });
        let shared = Arc::clone(app);
        workers.spawn(async move { dispatcher::run(&shared, home, DISPATCHER_EVERY).await });
        let shared = Arc::clone(app);
        workers.spawn(async move { on_duty(&shared, home, RECONCILER_EVERY, reconciler::pass).await });
    }
    workers
}

/// Starts what keeps this process in step with others on the same databases.
pub(crate) fn start_following(app: &Arc<App>) -> JoinSet<()> {
    let mut following = JoinSet::new();
    for home in app.all() {
        let shared = Arc::clone(app);
        following.spawn(async move { every(&shared, FOLLOW_EVERY, || follow(&shared, home)).await });
    }
    let shared = Arc::clone(app);
    following.spawn(async move { every(&shared, MAIN_EVERY, || read_main(&shared)).await });
    following
}

/// Reads what others have committed at a home, which also tells whether it still answers.
async fn follow(app: &Arc<App>, home: HomeNo) -> anyhow::Result<()> {
    let followers = Arc::clone(&app.followers);
    if !app.store(home).looks_block() {
        return Ok(followers.catch_up(home, app.store(home))?);
    }
    // Not in turn with other looks, and also when it is silent: else nobody would ever hear that it is back.
    let shared = Arc::clone(app);
    let work = move || followers.catch_up(home, shared.store(home)).inspect(|()| shared.desk(home).heard());
    tokio::task::spawn_blocking(work).await?.map_err(AppError::from)?;
    Ok(())
}

async fn read_main(app: &Arc<App>) -> anyhow::Result<()> {
    app.reload_keys().await?;
    app.refresh_directory().await?;
    Ok(())
}

/// Asks for the duty of a home again and again. It is for promptness alone: what is due is due in the database, and two
/// processes that both do it come to the same end.
async fn keep_duty(app: &Arc<App>, home: HomeNo) {
    let mut duty = app.store(home).duty();
    let (mut ticks, mut stopping) = (interval(DUTY_EVERY), app.stopping.clone());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = stopping.wait_for(|stopping| *stopping) => break,
            _ = ticks.tick() => {}
        }
        let asked = tokio::task::spawn_blocking(move || {
            let is_ours = duty.is_ours();
            (duty, is_ours)
        });
        let Ok((kept, is_ours)) = asked.await else {
            break;
        };
        duty = kept;
        app.desk(home).set_on_duty(is_ours);
    }
    app.desk(home).set_on_duty(false);
}

/// Runs passes of a worker for a home while its duty is here.
async fn on_duty<F>(app: &Arc<App>, home: HomeNo, period: Duration, pass: impl Fn(Arc<App>, HomeNo) -> F)
where
    F: Future<Output = anyhow::Result<()>>,
{
    on_duty_or_rung(app, home, period, &Notify::new(), pass).await;
}

/// The same, and whenever a bell rings.
async fn on_duty_or_rung<F>(
    app: &Arc<App>,
    home: HomeNo,
    period: Duration,
    bell: &Notify,
    pass: impl Fn(Arc<App>, HomeNo) -> F,
) where
    F: Future<Output = anyhow::Result<()>>,
{
    let on_duty = || async {
        match app.desk(home).is_on_duty() {
            true => pass(Arc::clone(app), home).await,
            false => Ok(()),
        }
    };
    every_or_rung(app, period, bell, on_duty).await;
}

/// Runs passes until the server stops. A failed pass is logged, and the next one tries again.
async fn every<F>(app: &Arc<App>, period: Duration, pass: impl Fn() -> F)
where
    F: Future<Output = anyhow::Result<()>>,
{
    every_or_rung(app, period, &Notify::new(), pass).await;
}

/// The same, and whenever a bell rings.
async fn every_or_rung<F>(app: &Arc<App>, period: Duration, bell: &Notify, pass: impl Fn() -> F)
where
    F: Future<Output = anyhow::Result<()>>,
{
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut stopping = app.stopping.clone();
    loop {
        tokio::select! {
            _ = stopping.wait_for(|stopping| *stopping) => return,
            _ = ticks.tick() => {}
            () = bell.notified() => {}
        }
        let Err(error) = pass().await else {
            continue;
        };
        let is_outage = error.downcast_ref::<AppError>().is_some_and(AppError::is_outage);
        let error = format!("{error:#}");
        // That a home is away is said where it is found out, and not ten times a second.
        match is_outage {
            true => tracing::debug!(error, "A pass failed since a home is away; the next one tries again"),
            false => tracing::warn!(error, "A worker's pass failed; the next one tries again"),
        }
    }
}
