//! Carries messages to other systems: takes note of what the log has to tell, sends what is due, and records how that ended.
//! Only for promptness does one process do it for a home: two that do it at once read the same log and find each other's
//! deliveries; a message that both send has one id.

mod carry;
mod feed;

use std::sync::Arc;
use std::time::Duration;

use onsale_core::id::EndpointId;
use onsale_store::{EndpointStatus, WebhookEndpoint, chain};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{MissedTickBehavior, interval};

use crate::app::{App, AppError};
use crate::desk::HomeNo;
use crate::webhooks::{DELETED_KEPT_MS, DELIVERED_KEPT_MS};

/// Looks between two of which the second also forgets what is old.
const FORGET_EVERY: u32 = 120;
/// Transactions of forgetting, or of making due again, in one look: the rest is for the next.
const ROUNDS_MAX: usize = 50;
/// How long a stopping server waits for answers that it can do without: what is not recorded is sent again.
const STOPPING_PATIENCE: Duration = Duration::from_secs(2);

/// One pass: whatever is due at its beginning, and what follows from its delivery.
pub(crate) async fn pass(app: Arc<App>, home: HomeNo) -> anyhow::Result<()> {
    let endpoints = prepare(&app, home).await?;
    let mut carrying = JoinSet::new();
    for endpoint in enabled(&endpoints) {
        let (app, endpoint) = (Arc::clone(&app), endpoint.clone());
        carrying.spawn(async move { carry::carry(&app, home, &endpoint).await });
    }
    while let Some(done) = carrying.join_next().await {
        done??;
    }
    disable_failed(&app, home).await?;
    forget(&app, home, &endpoints).await?;
    Ok(())
}

/// Works for a home until the server stops, while its duty is here. Each endpoint is served by itself, so that one that is slow
/// keeps no other waiting.
pub(crate) async fn run(app: &Arc<App>, home: HomeNo, period: Duration) {
    let (mut ticks, mut stopping) = (interval(period), app.stopping.clone());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut carrying = JoinSet::new();
    let mut busy: Vec<(EndpointId, AbortHandle)> = Vec::new();
    let mut looks = 0;
    loop {
        tokio::select! {
            _ = stopping.wait_for(|stopping| *stopping) => break,
            _ = ticks.tick() => {}
        }
        while let Some(done) = carrying.try_join_next() {
            match done {
                Ok(Ok(())) => {}
                Ok(Err(error)) => report(&error),
                Err(error) => {
                    tracing::error!(%error, "A webhook's work ended in a panic; it is taken up again")
                }
            }
        }
        if !app.desk(home).is_on_duty() {
            continue;
        }
        let looked = look(app, home, looks % FORGET_EVERY == 0).await;
        looks = looks.wrapping_add(1);
        let endpoints = match looked {
            Ok(endpoints) => endpoints,
            Err(error) => {
                report(&error);
                continue;
            }
        };
        busy.retain(|(_, work)| !work.is_finished());
        for endpoint in enabled(&endpoints) {
            if busy.iter().any(|(id, _)| *id == endpoint.id) {
                continue;
            }
            let (app, endpoint) = (Arc::clone(app), endpoint.clone());
            let id = endpoint.id;
            busy.push((id, carrying.spawn(async move { carry::carry(&app, home, &endpoint).await })));
        }
    }
    let rest = async { while carrying.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(STOPPING_PATIENCE, rest).await;
}

async fn look(app: &Arc<App>, home: HomeNo, forgets: bool) -> Result<Arc<[WebhookEndpoint]>, AppError> {
    let endpoints = prepare(app, home).await?;
    if !endpoints.is_empty() {
        disable_failed(app, home).await?;
        if forgets {
            forget(app, home, &endpoints).await?;
        }
    }
    Ok(endpoints)
}

/// That a home is away is said where it is found out.
fn report(error: &AppError) {
    let is_outage = error.is_outage();
    let error = chain(error);
    match is_outage {
        true => tracing::debug!(error, "Could not work on webhooks since a home is away"),
        false => tracing::warn!(error, "Could not work on webhooks; it is tried again"),
    }
}

fn enabled(endpoints: &[WebhookEndpoint]) -> impl Iterator<Item = &WebhookEndpoint> {
    endpoints.iter().filter(|endpoint| endpoint.status == EndpointStatus::Enabled)
}

/// Reads which endpoints there are; while the main home is away, those that were there last.
async fn endpoints(app: &Arc<App>) -> Result<Arc<[WebhookEndpoint]>, AppError> {
    match app.read_at(HomeNo::MAIN, |reader| reader.webhook_endpoints()).await {
        Ok(read) => Ok(app.webhooks.learn(read)),
        Err(error) if error.is_outage() => app.webhooks.known().ok_or(error),
        Err(error) => Err(error),
    }
}

/// Makes due what an endpoint that was enabled anew has missed, and takes note of what there is to tell.
async fn prepare(app: &Arc<App>, home: HomeNo) -> Result<Arc<[WebhookEndpoint]>, AppError> {
    let endpoints = endpoints(app).await?;
    if enabled(&endpoints).next().is_none() {
        return Ok(endpoints);
    }
    for endpoint in enabled(&endpoints).filter(|endpoint| endpoint.enabled_at > endpoint.created_at) {
        for _ in 0..ROUNDS_MAX {
            if app.store(home).rearm_webhooks(endpoint, app.now()).await? == 0 {
                break;
            }
            app.webhooks.pauses.end(home, endpoint.id);
        }
    }
    let open = app.read_at(home, |reader| reader.open_webhooks()).await?;
    for endpoint in enabled(&endpoints) {
        let open = open.iter().find(|open| open.endpoint == endpoint.id).map_or(0, |open| open.count);
        feed::feed(app, home, endpoint, open).await?;
    }
    Ok(endpoints)
}

/// Disables the endpoints to which a message could not be delivered, and says so.
async fn disable_failed(app: &Arc<App>, home: HomeNo) -> Result<(), AppError> {
    let open = app.read_at(home, |reader| reader.open_webhooks()).await?;
    let failed = open.into_iter().filter_map(|open| Some((open.endpoint, open.failed?)));
    let failed: Vec<_> = failed.collect();
    if failed.is_empty() {
        return Ok(());
    }
    let endpoints = endpoints(app).await?;
    for (id, (at, answer, error)) in failed {
        // What failed before it was enabled is made due again, and is no reason any more.
        let Some(endpoint) =
            enabled(&endpoints).find(|endpoint| endpoint.id == id && at >= endpoint.enabled_at)
        else {
            continue;
        };
        let reason = match answer {
            410 => "the receiver says that it is gone (HTTP 410)".to_owned(),
            0 => format!("a message was tried as often as it may be; last: {error}"),
            _ => format!("a message was tried as often as it may be; last: HTTP {answer}"),
        };
        if app.homes.main().disable_webhook_endpoint(endpoint, reason.clone(), app.now()).await? {
            tracing::warn!(endpoint.id = %id, reason, "Disabled webhook endpoint {id}: it is told nothing until it is enabled");
        }
    }
    // The list that is shown has it at once.
    self::endpoints(app).await.map(drop)
}

async fn forget(app: &Arc<App>, home: HomeNo, endpoints: &[WebhookEndpoint]) -> Result<(), AppError> {
    if endpoints.is_empty() {
        return Ok(());
    }
    let now = app.now();
    let deleted = endpoints.iter().filter(|endpoint| endpoint.status == EndpointStatus::Deleted);
    let deleted: Vec<EndpointId> = deleted.map(|endpoint| endpoint.id).collect();
    for _ in 0..ROUNDS_MAX {
        let before = now.plus_ms(-DELIVERED_KEPT_MS);
        if app.store(home).forget_webhooks(before, deleted.clone()).await? == 0 {
            break;
        }
    }
    if home == HomeNo::MAIN && !deleted.is_empty() {
        app.homes.main().forget_webhook_endpoints(now.plus_ms(-DELETED_KEPT_MS)).await?;
    }
    Ok(())
}
