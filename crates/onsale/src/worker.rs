//! Everything that happens by itself. Workers are thin pumps: they find what is due, ask the provider, and hand what
//! they hear to the core. Nothing is promised on their account: when they are late, things are late, not wrong.

pub(crate) mod expirer;
pub(crate) mod payments;
pub(crate) mod reconciler;

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::app::App;

/// How often each worker looks, all in one place.
const EXPIRER_EVERY: Duration = Duration::from_millis(500);
const PAYMENTS_EVERY: Duration = Duration::from_millis(500);
const RECONCILER_EVERY: Duration = Duration::from_secs(5);
/// How often the server looks for what other processes have committed or revoked.
const FOLLOW_EVERY: Duration = Duration::from_millis(250);

/// Starts all workers; they end when the server stops.
pub(crate) fn start(app: &Arc<App>) -> JoinSet<()> {
    let mut workers = JoinSet::new();
    let shared = Arc::clone(app);
    workers.spawn(async move { every(&shared, EXPIRER_EVERY, None, expirer::pass).await });
    let shared = Arc::clone(app);
    workers.spawn(async move { payments::run(&shared, PAYMENTS_EVERY).await });
    let shared = Arc::clone(app);
    workers.spawn(async move { every(&shared, RECONCILER_EVERY, None, reconciler::pass).await });
    workers
}

/// Starts what keeps this process in step with others on the same database.
pub(crate) fn start_following(app: &Arc<App>) -> JoinSet<()> {
    let mut following = JoinSet::new();
    let shared = Arc::clone(app);
    following.spawn(async move { every(&shared, FOLLOW_EVERY, None, follow).await });
    following
}

async fn follow(app: &Arc<App>) -> anyhow::Result<()> {
    let versions = app.store.read(|reader| reader.event_versions())?;
    app.followers.catalog.follow_others(&versions);
    app.reload_keys()?;
    Ok(())
}

/// Runs passes of a worker until the server stops. A failed pass is logged, and the next one tries again.
async fn every<'a, F>(
    app: &'a Arc<App>,
    period: Duration,
    wake: Option<&tokio::sync::Notify>,
    pass: impl Fn(&'a Arc<App>) -> F,
) where
    F: Future<Output = anyhow::Result<()>>,
{
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut stopping = app.stopping.clone();
    loop {
        let woken = async {
            match wake {
                Some(wake) => wake.notified().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = stopping.wait_for(|stopping| *stopping) => return,
            _ = ticks.tick() => {}
            () = woken => {}
        }
        if let Err(error) = pass(app).await {
            tracing::warn!(error = format!("{error:#}"), "A worker's pass failed; the next one tries again");
        }
    }
}
