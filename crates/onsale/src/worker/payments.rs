//! Carries operations to the provider and its answers to the core. What is done about each, and in what order, is the
//! core's `errand`; here it is done: calls are made, and what came of them is recorded.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use onsale_core::command::{Answer, Command, Outcome};
use onsale_core::errand::{Call, Errand, Reply, Step};
use onsale_core::id::OperationId;
use onsale_store::{OperationView, chain, fail_point};
use tokio::task::JoinSet;

use crate::app::{App, AppError};
use crate::desk::HomeNo;
use crate::gateway::stripe::{CaptureMode, GatewayError, NewIntent, Stripe};

/// Operations taken up in one pass of test mode.
const IN_A_PASS_MAX: usize = 10_000;

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
pub(crate) async fn pass(app: Arc<App>, home: HomeNo) -> anyhow::Result<()> {
    let Some(gateways) = &app.gateway else {
        return Ok(());
    };
    let mut work = JoinSet::new();
    for view in due(&app, home, IN_A_PASS_MAX).await?.0 {
        if work.len() >= app.payments_at_once
            && let Some(done) = work.join_next().await
        {
            done?;
        }
        take_up(&app, &gateways.for_workers, view, &mut work);
    }
    while let Some(done) = work.join_next().await {
        done?;
    }
    Ok(())
}

/// Works for a home until the server stops, while its duty is here. New work is taken up as soon as there is room, without
/// waiting for the slowest.
pub(crate) async fn run(app: &Arc<App>, home: HomeNo, period: Duration) {
    let Some(gateways) = &app.gateway else {
        return;
    };
    let mut work = JoinSet::new();
    let mut waiting: VecDeque<OperationView> = VecDeque::new();
    let mut stopping = app.stopping.clone();
    // Whether there may be more in the database than is waiting here.
    let mut more = true;
    loop {
        if !app.desk(home).is_on_duty() {
            // Another process does it. What is under way here comes to its end all the same.
            (waiting, more) = (VecDeque::new(), false);
        }
        if waiting.is_empty() && more && work.len() < app.payments_at_once {
            match due(app, home, app.payments_at_once).await {
                Ok((views, rest)) => (waiting, more) = (views.into(), rest),
                Err(error) if error.is_outage() => more = false,
                Err(error) => {
                    more = false;
                    tracing::warn!(error = chain(&error), "Could not read the operations that are due");
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
            () = app.followers.payments[home.0].notified(), if idle => more = true,
            () = tokio::time::sleep(period), if idle => more = true,
        }
    }
    // What was sent is waited for: its answer is worth more than a quick end. Calls end within the provider's timeout.
    while work.join_next().await.is_some() {}
}

/// Operations that are due and not in work yet, and whether there may be more than these.
async fn due(app: &Arc<App>, home: HomeNo, room: usize) -> Result<(Vec<OperationView>, bool), AppError> {
    // Those in work may still be due: look past them.
    let look = room + app.in_flight.len();
    let now = app.now();
    let mut views = app.read_at(home, move |reader| reader.due_operations(now, look as u32)).await?;
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

/// Brings one operation to its next answer, step by step.
async fn advance(app: &Arc<App>, gateway: &Stripe, view: &OperationView) -> anyhow::Result<()> {
    let (mut errand, mut step) = Errand::begin(view.operation.clone(), app.now());
    loop {
        step = match step {
            Step::Ask(call) => {
                let reply = ask(app, gateway, view, call).await;
                errand.replied(reply, app.now())
            }
            Step::Keep(command) => {
                if matches!(&command, Command::RecordAnswer { answer: Answer::NoAnswer, .. }) {
                    app.metrics.payment_call("no_answer");
                }
                let decision = app.record(command).await?;
                // A name that is kept is no word of the provider about money.
                if !matches!(decision.outcome, Outcome::MayConfirm | Outcome::MustNotConfirm) {
                    fail_point!(async "payment.recorded", anyhow::bail!("a fail point"));
                }
                errand.kept(&decision.outcome, app.now())
            }
            Step::Done => return Ok(()),
        }
    }
}

/// Makes one call. Each that moves money goes under its operation's own key.
async fn ask(app: &Arc<App>, gateway: &Stripe, view: &OperationView, call: Call) -> Reply {
    let operation = &view.operation;
    let making = call == Call::Create;
    let result = match call {
        Call::Create => {
            let (order, amount) = (operation.order, operation.amount);
            let capture = if view.charge { CaptureMode::Automatic } else { CaptureMode::Manual };
            gateway.create(&NewIntent { operation: operation.id, order, amount, capture }).await
        }
        Call::Query { reference } => gateway.query(&reference).await,
        Call::Confirm { reference, card } => {
            gateway.confirm(&reference, operation.id, &card, view.return_url.as_deref()).await
        }
        Call::Capture { reference } => gateway.capture(&reference, operation.id, operation.amount).await,
        Call::Cancel { reference } => gateway.cancel(&reference, operation.id).await,
        Call::Refund { reference } => {
            gateway.refund(&reference, operation.id, operation.amount, operation.base_minor).await
        }
    };
    app.metrics.payment_call(match &result {
        Ok(_) => "answered",
        Err(GatewayError::NotSent) => "not_sent",
        Err(GatewayError::NoAnswer(_)) => "lost",
        Err(GatewayError::Busy { .. }) => "busy",
        Err(GatewayError::Refused { .. }) => "refused",
        Err(GatewayError::Misconfigured(_)) => "misunderstood",
    });
    result.map_or_else(|error| unanswered(operation.id, making, error), Reply::Observed)
}

/// What an error is to the errand. What can't be understood leaves it open whether anything was done.
fn unanswered(operation: OperationId, making: bool, error: GatewayError) -> Reply {
    match &error {
        GatewayError::Misconfigured(_) => {
            tracing::error!(operation.id = %operation, error = %error, "The provider's answer can't be used");
        }
        GatewayError::Refused { .. } => {
            tracing::info!(operation.id = %operation, error = %error, "The provider has refused");
        }
        GatewayError::NotSent | GatewayError::NoAnswer(_) | GatewayError::Busy { .. } if making => {
            tracing::warn!(operation.id = %operation, error = %error, "Could not make a payment at the provider");
        }
        GatewayError::NotSent | GatewayError::NoAnswer(_) | GatewayError::Busy { .. } => {
            tracing::info!(operation.id = %operation, error = %error, "The provider has not answered");
        }
    }
    match error {
        GatewayError::NotSent => Reply::NotSent,
        GatewayError::Busy { retry_after_s } => Reply::Busy { retry_after_s },
        GatewayError::Refused { code, .. } => Reply::Refused(code),
        GatewayError::NoAnswer(_) | GatewayError::Misconfigured(_) => Reply::NoAnswer,
    }
}
