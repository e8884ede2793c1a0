//! The way of a callback: read back what it is about, find whom it concerns, have it judged. A callback is a trigger,
//! never evidence.

use std::sync::Arc;

use onsale_core::command::{Command, Outcome};
use onsale_core::gateway::Observation;
use onsale_core::id::EventNo;
use onsale_core::reconcile::{Callback, Verdict};
use onsale_core::time::Timestamp;
use onsale_store::fail_point;
use sha2::{Digest, Sha256};

use crate::app::{App, AppError};
use crate::gateway::stripe::CallbackEvent;

/// A verified message as the core knows it, not yet judged.
pub(crate) fn unjudged(event: &CallbackEvent, body: &[u8], now: Timestamp) -> Callback {
    let digest: [u8; 32] = Sha256::digest(body).into();
    let (head, _) = digest.split_at(16);
    Callback {
        provider_event_id: event.provider_event_id.clone(),
        digest: u128::from_be_bytes(head.try_into().expect("sixteen bytes are sixteen bytes")),
        kind: event.kind.clone(),
        reference: event.reference.clone(),
        claimed_order: event.order,
        verdict: Verdict::Parked,
        received_at: now,
        due_at: now,
        case: None,
    }
}

/// Has a callback judged, for the first time or again.
pub(crate) async fn judge(app: &Arc<App>, callback: Callback, relevant: bool) -> Result<Verdict, AppError> {
    let known = app.store.read(|reader| reader.callback(&callback.provider_event_id))?;
    // One that has had its say needs no look at the provider; the core still compares its content.
    let settled = known.is_some_and(|(_, verdict)| verdict != Verdict::Parked);
    let observation = match &callback.reference {
        Some(reference) if relevant && !settled => read_back(app, reference).await,
        _ => None,
    };
    fail_point!(async "callback.read_back", return Err(interrupted()));
    let event = event_of(app, &callback, observation.as_ref())?;
    let command = Command::JudgeCallback { event, callback: Box::new(callback), observation, relevant };
    let judged = app.record(command).await?;
    fail_point!(async "callback.judged", return Err(interrupted()));
    match judged.outcome {
        Outcome::Judged(verdict) => Ok(verdict),
        other => unreachable!("a callback is judged and nothing else: {other:?}"),
    }
}

/// What a fail point makes of a judgement: it may have been kept or not.
#[cfg(feature = "fail-points")]
fn interrupted() -> AppError {
    onsale_store::SubmitError::Unknown("a fail point".to_owned()).into()
}

async fn read_back(app: &Arc<App>, reference: &str) -> Option<Observation> {
    let gateway = &app.gateway.as_ref()?.for_callbacks;
    match gateway.query(reference).await {
        Ok(observation) => Some(observation),
        Err(error) => {
            tracing::warn!(payment.reference = reference, error = %error, "Could not read back what a callback is about");
            None
        }
    }
}

/// The event a callback belongs to: that of the attempt it is about. The house keeps what nobody can place.
fn event_of(app: &App, callback: &Callback, observation: Option<&Observation>) -> Result<EventNo, AppError> {
    app.store
        .read(|reader| {
            if let Some(reference) = &callback.reference
                && let Some(attempt) = reader.attempt(reference)?
            {
                return Ok(attempt.event());
            }
            match observation.and_then(|observation| observation.operation) {
                Some(operation) if reader.has_operation(operation)? => Ok(operation.event()),
                _ => Ok(EventNo::HOUSE),
            }
        })
        .map_err(AppError::from)
}
