//! Waiting: always for a state, always with an end, and saying what was waited for and what was seen last.

use std::time::Duration;

use anyhow::bail;
use tokio::time::{Instant, sleep, timeout};

const BETWEEN_LOOKS: Duration = Duration::from_millis(100);
/// What one look may take: a whole manifest is put in one.
const LOOK: Duration = Duration::from_secs(15);

/// Looks until it sees something. A look that fails says what is there instead.
pub(crate) async fn until<T>(
    what: &str,
    limit: Duration,
    mut look: impl AsyncFnMut() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let end = Instant::now() + limit;
    loop {
        let last = match timeout(LOOK, look()).await {
            Ok(Ok(seen)) => return Ok(seen),
            Ok(Err(error)) => format!("{error:#}"),
            Err(_) => format!("no answer within {} s", LOOK.as_secs()),
        };
        if Instant::now() >= end {
            bail!("waited {} s in vain until {what}; the last look: {last}", limit.as_secs());
        }
        sleep(BETWEEN_LOOKS).await;
    }
}

/// Lets something last. It is a fault's length and not a guess at when something has happened.
pub(crate) async fn let_last(time: Duration) {
    sleep(time).await;
}
