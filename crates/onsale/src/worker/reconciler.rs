//! Looks again at callbacks that could not be placed or proven when they came, and compares the provider's books with these.

use std::sync::Arc;

use onsale_store::{CallbackDue, chain, fail_point};

use crate::app::App;
use crate::callbacks;
use crate::desk::HomeNo;
use crate::reconcile::{RunError, schedule};

/// Callbacks looked at in a pass.
const TOGETHER_MAX: u32 = 200;

pub(crate) async fn pass(app: Arc<App>, home: HomeNo) -> anyhow::Result<()> {
    let now = app.now();
    let due: Vec<CallbackDue> =
        app.read_at(home, move |reader| reader.due_callbacks(now, TOGETHER_MAX)).await?;
    for callback in due {
        fail_point!(async "reconciler.due", anyhow::bail!("a fail point"));
        let id = callback.provider_event_id.clone();
        // One that can't be judged now keeps none of the others waiting, nor the comparison.
        if let Err(error) = callbacks::judge(&app, callback, true).await {
            tracing::warn!(callback.id = id, error = chain(&error), "Could not judge a callback");
        }
    }
    // The provider's books span all homes: it is for whoever has the main one's duty.
    if home == HomeNo::MAIN {
        match schedule::pass(&app).await {
            // The pass goes on where it was, as soon as they answer.
            Err(RunError::Provider(error)) => {
                tracing::warn!(error = %error, "The provider's books can't be read for now")
            }
            Err(RunError::Partial) => {
                tracing::debug!("A home is away: the provider's books are compared when it is back")
            }
            done => done?,
        }
    }
    Ok(())
}
