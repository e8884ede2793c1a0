//! Looks again at callbacks that could not be placed or proven when they came.

use std::sync::Arc;

use onsale_store::{CallbackDue, fail_point};

use crate::app::App;
use crate::callbacks;
use crate::desk::HomeNo;

/// Callbacks looked at in a pass.
const TOGETHER_MAX: u32 = 200;

pub(crate) async fn pass(app: Arc<App>, home: HomeNo) -> anyhow::Result<()> {
    let now = app.now();
    let due: Vec<CallbackDue> =
        app.read_at(home, move |reader| reader.due_callbacks(now, TOGETHER_MAX)).await?;
    for callback in due {
        fail_point!(async "reconciler.due", anyhow::bail!("a fail point"));
        callbacks::judge(&app, callback, true).await?;
    }
    Ok(())
}
