//! Carries operations to the provider and its answers to the core. An operation whose answer was lost is asked about,
//! and sent again only when the provider says that it wasn't done, under the same key, and never past the key's
//! horizon.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use onsale_core::command::{Answer, Command, Outcome};
use onsale_core::gateway::{IntentState, Observation};
use onsale_core::id::OperationId;
use onsale_core::limits::KEY_HORIZON_MS;
use onsale_core::payment::{OperationKind, OperationStatus, query_backoff_ms};
use onsale_store::{OperationView, fail_point};
use tokio::task::JoinSet;

use crate::app::App;
use crate::gateway::stripe::{CaptureMode, GatewayError, NewIntent, Stripe};

/// Operations taken up in one pass of test mode.
const IN_A_PASS_MAX: usize = 10_000;
/// How long an operation that could not be sent waits at first.
const RESEND_MS: i64 = 1_000;
/// How often an attempt that waits for its buyer is looked at again when the provider didn't answer.
const ACTION_RETRY_MS: i64 = 10_000;

/// Operations being worked on in this process: none is taken up twice.
#[derive(Default)]
pub(crate) struct InFlight(Mutex<HashSet<OperationId>>);

impl InFlight {
    fn len(&self) -> usize {
        self.0.lock().expect("nothing panics under the lock").len()
    }

    fn has(&self, id: OperationId) -> bool {
        self.0.lock().expect("nothing panics under the lock").contains(&id)
    }

    fn take(&self, id: OperationId) -> bool {
        self.0.lock().expect("nothing panics under the lock").insert(id)
    }

    fn done(&self, id: OperationId) {
        self.0.lock().expect("nothing panics under the lock").remove(&id);
    }
}

/// Gives an operation back when its work ends, however it ends.
struct Taken {
    app: Arc<App>,
    id: OperationId,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.app.in_flight.done(self.id);
    }
}

/// One pass: everything that is due at its beginning, to its next answer. What becomes due meanwhile is the next pass's.
pub(crate) async fn pass(app: &Arc<App>) -> anyhow::Result<()> {
    let Some(gateways) = &app.gateway else {
        return Ok(());
    };
    let mut work = JoinSet::new();
    for view in due(app, IN_A_PASS_MAX)?.0 {
        if work.len() >= app.payments_at_once
            && let Some(done) = work.join_next().await
        {
            done?;
        }
        take_up(app, &gateways.for_workers, view, &mut work);
    }
    while let Some(done) = work.join_next().await {
        done?;
    }
    Ok(())
}

/// Works until the server stops. New work is taken up as soon as there is room, without waiting for the slowest.
pub(crate) async fn run(app: &Arc<App>, period: Duration) {
    let Some(gateways) = &app.gateway else {
        return;
    };
    let mut work = JoinSet::new();
    let mut waiting: VecDeque<OperationView> = VecDeque::new();
    let mut stopping = app.stopping.clone();
    // Whether there may be more in the database than is waiting here.
    let mut more = true;
    loop {
        if waiting.is_empty() && more && work.len() < app.payments_at_once {
            match due(app, app.payments_at_once) {
                Ok((views, rest)) => (waiting, more) = (views.into(), rest),
                Err(error) => {
                    more = false;
                    tracing::warn!(
                        error = format!("{error:#}"),
                        "Could not read the operations that are due"
                    );
                }
            }
        }
        while work.len() < app.payments_at_once
            && let Some(view) = waiting.pop_front()
        {
            take_up(app, &gateways.for_workers, view, &mut work);
        }
        let idle = work.len() < app.payments_at_once;
        tokio::select! {
            _ = stopping.wait_for(|stopping| *stopping) => break,
            Some(done) = work.join_next(), if !work.is_empty() => {
                if done.is_err() {
                    tracing::error!("A payment's work ended in a panic; it is taken up again");
                }
            }
            () = app.followers.payments.notified(), if idle => more = true,
            () = tokio::time::sleep(period), if idle => more = true,
        }
    }
    // What was sent is waited for: its answer is worth more than a quick end. Calls end within the provider's timeout.
    while work.join_next().await.is_some() {}
}

/// Operations that are due and not in work yet, and whether there may be more than these.
fn due(app: &Arc<App>, room: usize) -> anyhow::Result<(Vec<OperationView>, bool)> {
    // Those in work may still be due: look past them.
    let look = room + app.in_flight.len();
    let now = app.now();
    let mut views = app.store.read(|reader| reader.due_operations(now, look as u32))?;
    let more = views.len() == look;
    views.retain(|view| !app.in_flight.has(view.operation.id));
    Ok((views, more))
}

/// Begins to work on an operation, unless that is under way already.
fn take_up(app: &Arc<App>, gateway: &Stripe, view: OperationView, work: &mut JoinSet<()>) {
    let id = view.operation.id;
    if !app.in_flight.take(id) {
        return;
    }
    let (taken, gateway) = (Taken { app: Arc::clone(app), id }, gateway.clone());
    work.spawn(async move {
        fail_point!(async "payment.taken_up", return);
        if let Err(error) = advance(&taken.app, &gateway, &view).await {
            let error = format!("{error:#}");
            tracing::warn!(operation.id = %id, error, "Could not record what the provider said; it is asked again");
        }
    });
}

/// Brings one operation to its next answer.
async fn advance(app: &Arc<App>, gateway: &Stripe, view: &OperationView) -> anyhow::Result<()> {
    let operation = &view.operation;
    let Some(reference) = operation.reference.as_deref() else {
        return match operation.kind {
            OperationKind::Authorize => begin(app, gateway, view).await,
            // Nothing was ever made at the provider for the attempt: there is nothing to act on.
            OperationKind::Capture | OperationKind::Void | OperationKind::Refund => {
                record(app, operation.id, Answer::Refused("no_payment".to_owned())).await.map(drop)
            }
        };
    };
    // What is still to be done is sent; should it have been done, the provider knows its key and says so.
    let young = app.now().since_ms(operation.created_at) < KEY_HORIZON_MS;
    if operation.kind != OperationKind::Authorize && operation.status == OperationStatus::Pending && young {
        return send(app, gateway, view, reference).await;
    }
    match ask(app, gateway, reference).await {
        Ok(observation) => {
            let to_send = record(app, operation.id, Answer::Observed(observation)).await?;
            if to_send {
                send(app, gateway, view, reference).await?;
            }
            Ok(())
        }
        Err(error) => {
            let answer = match operation.status {
                // Waiting for the buyer isn't doubt.
                OperationStatus::RequiresAction => Answer::Busy(ACTION_RETRY_MS),
                _ => no_answer(app, operation.id, &error),
            };
            record(app, operation.id, answer).await.map(drop)
        }
    }
}

/// Makes an attempt's object, keeps its name, and only then confirms it: whatever is lost after this can be asked
/// about.
async fn begin(app: &Arc<App>, gateway: &Stripe, view: &OperationView) -> anyhow::Result<()> {
    let operation = &view.operation;
    let capture = if view.charge { CaptureMode::Automatic } else { CaptureMode::Manual };
    let intent =
        NewIntent { operation: operation.id, order: operation.order, amount: operation.amount, capture };
    match count(app, gateway.create(&intent).await) {
        Ok(observation) => {
            let reference = observation.reference;
            let command = Command::RecordReference { operation: operation.id, reference: reference.clone() };
            match app.record(command).await?.outcome {
                Outcome::MayConfirm => send(app, gateway, view, &reference).await,
                _ => Ok(()),
            }
        }
        Err(GatewayError::Refused { code, .. }) => {
            record(app, operation.id, Answer::Refused(code)).await.map(drop)
        }
        // No money moves by making the object: whether it was made or not, the same key makes it once.
        Err(error) => {
            tracing::warn!(operation.id = %operation.id, error = %error, "Could not make a payment at the provider");
            record(app, operation.id, Answer::Busy(wait_ms(&error, operation.tries))).await.map(drop)
        }
    }
}

/// Sends the operation itself, under its own key.
async fn send(app: &Arc<App>, gateway: &Stripe, view: &OperationView, reference: &str) -> anyhow::Result<()> {
    let operation = &view.operation;
    let sent = match operation.kind {
        OperationKind::Authorize => {
            let Some(card) = operation.payment_method_token.as_deref() else {
                return record(app, operation.id, Answer::Refused("card_forgotten".to_owned()))
                    .await
                    .map(drop);
            };
            gateway.confirm(reference, operation.id, card, view.return_url.as_deref()).await
        }
        OperationKind::Capture => gateway.capture(reference, operation.id, operation.amount).await,
        OperationKind::Void => gateway.cancel(reference, operation.id).await,
        OperationKind::Refund => gateway.refund(reference, operation.id, operation.amount).await,
    };
    let answer = match count(app, sent) {
        Ok(observation) => Answer::Observed(observation),
        Err(GatewayError::NotSent) => Answer::Busy(wait_ms(&GatewayError::NotSent, operation.tries)),
        Err(error @ GatewayError::Busy { .. }) => Answer::Busy(wait_ms(&error, operation.tries)),
        Err(GatewayError::Refused { code, .. }) => refusal(app, gateway, view, reference, code).await,
        Err(error @ (GatewayError::NoAnswer(_) | GatewayError::Misconfigured(_))) => {
            no_answer(app, operation.id, &error)
        }
    };
    record(app, operation.id, answer).await.map(drop)
}

/// A refusal may only say that the object has moved on: what it has become is the answer. Only when it stands where it
/// stood is the refusal one.
async fn refusal(
    app: &Arc<App>,
    gateway: &Stripe,
    view: &OperationView,
    reference: &str,
    code: String,
) -> Answer {
    let operation = &view.operation;
    if operation.kind == OperationKind::Authorize {
        return Answer::Refused(code);
    }
    match ask(app, gateway, reference).await {
        Ok(observation) if has_moved(operation.kind, &observation, operation.amount.amount_minor) => {
            Answer::Observed(observation)
        }
        Ok(_) => Answer::Refused(code),
        Err(error) => no_answer(app, operation.id, &error),
    }
}

fn has_moved(kind: OperationKind, observation: &Observation, amount_minor: i64) -> bool {
    match kind {
        OperationKind::Authorize => true,
        OperationKind::Capture => observation.state != IntentState::Authorized,
        OperationKind::Void => matches!(observation.state, IntentState::Voided | IntentState::Captured),
        OperationKind::Refund => observation.refunded_minor >= amount_minor,
    }
}

async fn ask(app: &Arc<App>, gateway: &Stripe, reference: &str) -> Result<Observation, GatewayError> {
    count(app, gateway.query(reference).await)
}

/// Keeps an answer; whether the operation is to be sent (again).
async fn record(app: &Arc<App>, operation: OperationId, answer: Answer) -> anyhow::Result<bool> {
    let decision = app.record(Command::RecordAnswer { operation, answer }).await?;
    fail_point!(async "payment.recorded", anyhow::bail!("a fail point"));
    Ok(matches!(decision.outcome, Outcome::Recorded { send: true, .. }))
}

fn no_answer(app: &Arc<App>, operation: OperationId, error: &GatewayError) -> Answer {
    if matches!(error, GatewayError::Misconfigured(_)) {
        tracing::error!(operation.id = %operation, error = %error, "The provider's answer can't be used");
    } else {
        tracing::info!(operation.id = %operation, error = %error, "The provider has not answered");
    }
    app.metrics.payment_call("no_answer");
    Answer::NoAnswer
}

fn wait_ms(error: &GatewayError, tries: u32) -> i64 {
    match error {
        GatewayError::Busy { retry_after_s: Some(seconds) } => (*seconds).clamp(1, 300) as i64 * 1_000,
        _ => query_backoff_ms(tries).max(RESEND_MS),
    }
}

fn count<T>(app: &Arc<App>, result: Result<T, GatewayError>) -> Result<T, GatewayError> {
    app.metrics.payment_call(match &result {
        Ok(_) => "answered",
        Err(GatewayError::NotSent) => "not_sent",
        Err(GatewayError::NoAnswer(_)) => "lost",
        Err(GatewayError::Busy { .. }) => "busy",
        Err(GatewayError::Refused { .. }) => "refused",
        Err(GatewayError::Misconfigured(_)) => "misunderstood",
    });
    result
}
