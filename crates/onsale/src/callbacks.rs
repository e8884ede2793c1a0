//! The way of a callback: read back what it is about, find whom it concerns, have it judged. A callback is a trigger,
//! never evidence.

use std::sync::Arc;

use onsale_core::command::{Command, Outcome};
use onsale_core::gateway::Observation;
use onsale_core::id::{EventNo, OperationId};
use onsale_core::reconcile::{Callback, Verdict};
use onsale_core::time::Timestamp;
use onsale_store::{StoreError, fail_point};
use sha2::{Digest, Sha256};

use crate::app::{App, AppError};
use crate::desk::HomeNo;
use crate::gateway::stripe::CallbackEvent;

/// A verified message as the core knows it, not yet judged.
pub(crate) fn unjudged(event: &CallbackEvent, body: &[u8], now: Timestamp) -> Callback {
    let digest: [u8; 32] = Sha256::digest(body).into();
    let (head, _) = digest.split_at(16);
    Callback {
        provider_event_id: event.provider_event_id.clone(),
        event: EventNo::HOUSE,
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
    let known = known_of(app, &callback).await?;
    // One that has had its say needs no look at the provider; the core still compares its content.
    let observation = match &callback.reference {
        Some(reference) if relevant && !known.is_settled => read_back(app, reference).await,
        _ => None,
    };
    fail_point!(async "callback.read_back", return Err(interrupted()));
    let event = event_of(app, &known, observation.as_ref()).await?;
    // The house of the main home may have kept it while nobody could place it: that question is then closed.
    let leaves_house = known.is_parked_at_main && app.home_of(event)? != HomeNo::MAIN;
    let parked = leaves_house.then(|| callback.clone());
    let command = Command::JudgeCallback { event, callback: Box::new(callback), observation, relevant };
    let judged = app.record(command).await?;
    fail_point!(async "callback.judged", return Err(interrupted()));
    let verdict = match judged.outcome {
        Outcome::Judged(verdict) => verdict,
        other => unreachable!("a callback is judged and nothing else: {other:?}"),
    };
    if let Some(parked) = parked.filter(|_| verdict != Verdict::Parked) {
        let (event, callback) = (EventNo::HOUSE, Box::new(parked));
        app.record(Command::JudgeCallback { event, callback, observation: None, relevant: false }).await?;
    }
    Ok(verdict)
}

/// What the homes know of a callback.
#[derive(Default)]
struct Known {
    /// It has had its say.
    is_settled: bool,
    /// The main home keeps it, and doesn't know what to make of it.
    is_parked_at_main: bool,
    /// The attempt that it names.
    attempt: Option<OperationId>,
    /// Some home could not be asked.
    is_partial: bool,
}

async fn known_of(app: &Arc<App>, callback: &Callback) -> Result<Known, AppError> {
    let (id, reference) = (callback.provider_event_id.clone(), callback.reference.clone());
    let found = app
        .read_all(move |reader| {
            let attempt = reference.as_deref().map(|reference| reader.attempt(reference)).transpose()?;
            Ok((reader.callback(&id)?.map(|(_, verdict)| verdict), attempt.flatten()))
        })
        .await?;
    let mut known = Known { is_partial: found.len() < app.all().count(), ..Known::default() };
    for (home, (verdict, attempt)) in found {
        known.is_settled |= verdict.is_some_and(|verdict| verdict != Verdict::Parked);
        known.is_parked_at_main |= home == HomeNo::MAIN && verdict == Some(Verdict::Parked);
        known.attempt = known.attempt.or(attempt);
    }
    Ok(known)
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

/// The event a callback belongs to: that of the attempt it is about. The house keeps what nobody can place. As long as a home
/// can't be asked whether it knows the attempt, nobody can say that: the provider sends it again.
async fn event_of(
    app: &Arc<App>,
    known: &Known,
    observation: Option<&Observation>,
) -> Result<EventNo, AppError> {
    if let Some(attempt) = known.attempt {
        return Ok(attempt.event());
    }
    if let Some(operation) = observation.and_then(|observation| observation.operation) {
        match app.read(operation.event(), move |reader| reader.has_operation(operation)).await {
            Ok(true) => return Ok(operation.event()),
            // What the object claims may be of an installation that has other events.
            Ok(false) | Err(AppError::Homeless(_)) => {}
            Err(error) => return Err(error),
        }
    }
    match known.is_partial {
        true => Err(StoreError::Away("that may know a callback".to_owned()).into()),
        false => Ok(EventNo::HOUSE),
    }
}
