//! Makes tickets for orders whose money has been taken. What is due is due in the database, by the provider's proof alone (R-79,
//! R-80); the core looks again before it makes any.

use std::sync::Arc;

use onsale_core::command::{Command, Outcome};
use onsale_store::fail_point;
use tokio::task::JoinSet;

use crate::app::App;
use crate::desk::HomeNo;

/// Orders ticketed together; they share a few transactions.
const TOGETHER_MAX: u32 = 256;
/// Rounds in a pass, so that one pass always ends.
const ROUNDS_MAX: usize = 400;

pub(crate) async fn pass(app: Arc<App>, home: HomeNo) -> anyhow::Result<()> {
    for _ in 0..ROUNDS_MAX {
        let due = app.read_at(home, |reader| reader.orders_to_ticket(TOGETHER_MAX)).await?;
        if due.is_empty() {
            break;
        }
        fail_point!(async "issuer.due", anyhow::bail!("a fail point"));
        let mut work = JoinSet::new();
        for order in due {
            let app = Arc::clone(&app);
            work.spawn(async move { (order, app.record(Command::IssueTickets { order }).await) });
        }
        let mut issued = 0;
        while let Some(done) = work.join_next().await {
            let (order, decision) = done?;
            match decision?.outcome {
                Outcome::TicketsIssued => issued += 1,
                // Its money has begun to go back since it was looked up.
                Outcome::TicketsNotDue => {}
                other => {
                    tracing::error!(order.id = %order, "Order {order} can't have its tickets: {other:?}")
                }
            }
        }
        fail_point!(async "issuer.issued", anyhow::bail!("a fail point"));
        if issued == 0 {
            break;
        }
    }
    Ok(())
}
