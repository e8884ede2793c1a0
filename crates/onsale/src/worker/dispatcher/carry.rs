//! Sends an endpoint what is due, some messages at a time, and records how each try has ended.

use std::sync::Arc;

use onsale_store::{Attempt, DueDelivery, Next, WebhookEndpoint};
use tokio::task::JoinSet;

use crate::app::{App, AppError};
use crate::clock::wall_seconds;
use crate::desk::HomeNo;
use crate::webhooks::message;
use crate::webhooks::schedule::next_try;
use crate::webhooks::sender::{Answered, Signed};
use crate::webhooks::sign::signatures;

/// Messages on their way to an endpoint at once. No two of them are about the same.
const AT_ONCE_MAX: usize = 8;
/// Messages read together.
const TOGETHER_MAX: u32 = 64;

/// Sends an endpoint all that is due and all that becomes due by that, until nothing is left, it is to be left alone, or the
/// server stops.
pub(super) async fn carry(app: &Arc<App>, home: HomeNo, endpoint: &WebhookEndpoint) -> Result<(), AppError> {
    let goes_on = || !app.webhooks.pauses.holds(home, endpoint.id, app.now()) && !*app.stopping.borrow();
    // It may be disabled, deleted or given another secret meanwhile.
    while goes_on()
        && let Some(endpoint) = app.webhooks.enabled(endpoint.id)
    {
        let (id, now) = (endpoint.id, app.now());
        let due = app.read_at(home, move |reader| reader.due_webhooks(id, now, TOGETHER_MAX)).await?;
        if due.is_empty() {
            break;
        }
        let mut waiting = due.into_iter();
        let mut sending = JoinSet::new();
        let mut is_over = false;
        loop {
            while sending.len() < AT_ONCE_MAX
                && !is_over
                && goes_on()
                && let Some(delivery) = waiting.next()
            {
                let (app, endpoint) = (Arc::clone(app), endpoint.clone());
                sending.spawn(async move { send(&app, home, &endpoint, &delivery).await });
            }
            let Some(first) = sending.join_next().await else { break };
            let mut attempts: Vec<Attempt> = first.into_iter().collect();
            // Whatever has ended meanwhile shares a transaction with it.
            while let Some(more) = sending.try_join_next() {
                attempts.extend(more);
            }
            is_over |= attempts.iter().any(|attempt| attempt.next == Next::Failed);
            app.store(home).record_webhook_attempts(attempts, app.now()).await?;
        }
        if is_over {
            break;
        }
    }
    Ok(())
}

/// Sends one message; how that has ended.
async fn send(app: &App, home: HomeNo, endpoint: &WebhookEndpoint, delivery: &DueDelivery) -> Attempt {
    let (id, body) = (delivery.message.to_string(), message::body(delivery.event_id, &delivery.entry));
    let timestamp_s = wall_seconds();
    let before = endpoint.secret_before.as_ref().filter(|(_, until)| app.now() < *until);
    let secrets = std::iter::once(&*endpoint.secret).chain(before.map(|(secret, _)| &**secret));
    let signatures = signatures(secrets, &id, timestamp_s, &body);
    let signed = Signed { url: endpoint.url.clone(), id, timestamp_s, signatures, body };
    let sent = app.webhooks.sender.send(signed).await;
    let now = app.now();
    let attempt =
        |answer, error, next| Attempt { key: delivery.key, tries: delivery.tries, answer, error, next };
    let (answer, error, asked_ms) = match sent {
        Ok(Answered { status: status @ 200..=299, .. }) => {
            app.metrics.webhook("delivered");
            app.webhooks.pauses.end(home, endpoint.id);
            return attempt(status, String::new(), Next::Delivered);
        }
        Ok(Answered { status: 410, .. }) => {
            app.metrics.webhook("gone");
            return attempt(410, "the receiver is gone".to_owned(), Next::Failed);
        }
        Ok(Answered { status, retry_after_ms }) => {
            // These say that it is too much, whether or not they say for how long.
            let asked_ms = retry_after_ms.or(matches!(status, 429 | 502 | 504).then_some(0));
            (status, format!("HTTP {status}"), asked_ms)
        }
        Err(error) => (0, error, None),
    };
    app.webhooks.pauses.failed(home, endpoint.id, now, asked_ms);
    match next_try(now, delivery.tries + 1, asked_ms, rand::random()) {
        Some(at) => {
            app.metrics.webhook("failed");
            tracing::debug!(endpoint.id = %endpoint.id, message.id = %delivery.message, error, "A webhook was not taken");
            attempt(answer, error, Next::Again(at))
        }
        None => {
            app.metrics.webhook("given_up");
            attempt(answer, error, Next::Failed)
        }
    }
}
