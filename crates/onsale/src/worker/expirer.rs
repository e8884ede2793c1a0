//! Ends holds whose time has come, and forgets what need not be remembered. Only for promptness: whoever wants the
//! seats of an expired hold takes them without it.

use std::sync::Arc;

use onsale_core::command::Command;
use onsale_core::limits::IDEMPOTENCY_TTL_MS;
use onsale_store::fail_point;
use tokio::task::JoinSet;

use crate::app::{App, AppError};
use crate::desk::HomeNo;

/// Holds ended together; they share a few transactions.
const TOGETHER_MAX: u32 = 256;
/// Rounds in a pass, so that one pass always ends.
const ROUNDS_MAX: usize = 400;

pub(crate) async fn pass(app: Arc<App>, home: HomeNo) -> anyhow::Result<()> {
    for _ in 0..ROUNDS_MAX {
        let now = app.now();
        let due = app.read_at(home, move |reader| reader.due_holds(now, TOGETHER_MAX)).await?;
        if due.is_empty() {
            break;
        }
        fail_point!(async "expirer.due", anyhow::bail!("a fail point"));
        let mut endings = JoinSet::new();
        for hold in due {
            let app = Arc::clone(&app);
            endings.spawn(async move { app.record(Command::ExpireHold { hold }).await });
        }
        while let Some(ended) = endings.join_next().await {
            ended??;
        }
        fail_point!(async "expirer.ended", anyhow::bail!("a fail point"));
    }
    let before = app.now().plus_ms(-IDEMPOTENCY_TTL_MS);
    app.store(home).forget_keys(before).await.map_err(AppError::from)?;
    Ok(())
}
