//! The provider on a bad day: a few of its answers get lost, come late, or say that something broke.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::json;

use super::client::{Ask, Client};
use super::crowd::Crowd;
use super::measures::Counted;

/// How often faults are sown. The next calls meet them: a few after each sowing, none until the next.
const EVERY: Duration = Duration::from_millis(100);

/// Faults of one kind of operation, and how many of them for each thousand payments begun.
///
/// None of them says how an authorization ends: that is left to the card, but for an approval in the wrong amount, which is
/// taken back whatever the card was.
struct Faults {
    operation: &'static str,
    per_thousand: usize,
    outcomes: &'static [&'static str],
}

const FAULTS: [Faults; 4] = [
    Faults {
        operation: "authorize",
        per_thousand: 20,
        outcomes: &[
            "lost_reply",
            "lost_request",
            "error_500_done",
            "delay:400",
            "error_500_not_done",
            "lost_reply",
            "delay:1500",
            "amount_mismatch",
        ],
    },
    Faults {
        operation: "capture",
        per_thousand: 20,
        outcomes: &["lost_reply", "lost_request", "error_500_done", "delay:400", "error_500_not_done"],
    },
    Faults { operation: "void", per_thousand: 1, outcomes: &["lost_reply", "error_500_done"] },
    Faults {
        operation: "query",
        per_thousand: 5,
        outcomes: &["lost_reply", "delay:300", "error_500_not_done"],
    },
];

/// How events are delivered, in turns of a second: mostly as they should be.
const DELIVERIES: [&str; 8] =
    ["normal", "normal", "duplicate", "normal", "reverse", "normal", "early", "delay:200"];
const TICKS_PER_DELIVERY: usize = 10;

/// Whether an outcome in the provider's log is a fault.
pub(super) fn is_fault(outcome: &str) -> bool {
    outcome.starts_with("delay:") || FAULTS.iter().any(|faults| faults.outcomes.contains(&outcome))
}

/// Sows faults for as long as it is polled.
pub(super) async fn misbehave(crowd: &Arc<Crowd>, mut chance: StdRng) -> anyhow::Result<()> {
    let mut client = Client::new(crowd.provider);
    let mut sown = [0; FAULTS.len()];
    for tick in 0.. {
        tokio::time::sleep(EVERY).await;
        let begun = crowd.measures.counted(Counted::Checkouts) as usize;
        for (faults, sown) in FAULTS.iter().zip(&mut sown) {
            let due = begun * faults.per_thousand / 1_000 - *sown;
            *sown += due;
            let outcome = |_| faults.outcomes[chance.random_range(0..faults.outcomes.len())];
            let outcomes: Vec<&str> = (0..due).map(outcome).collect();
            if !outcomes.is_empty() {
                let ask = json!({ "operation": faults.operation, "outcomes": outcomes });
                client.call(&Ask::post("/_sim/script").json(&ask)).await?.expect(StatusCode::OK)?;
            }
        }
        if tick % TICKS_PER_DELIVERY == 0 {
            let mode = DELIVERIES[tick / TICKS_PER_DELIVERY % DELIVERIES.len()];
            deliver(&mut client, mode).await?;
        }
    }
    Ok(())
}

/// Ends the bad day: what is still to be settled meets an honest provider.
pub(super) async fn behave(provider: SocketAddr) -> anyhow::Result<()> {
    deliver(&mut Client::new(provider), "normal").await
}

async fn deliver(client: &mut Client, mode: &str) -> anyhow::Result<()> {
    let ask = Ask::post("/_sim/webhooks").json(&json!({ "mode": mode }));
    client.call(&ask).await?.expect(StatusCode::OK).map(drop)
}
