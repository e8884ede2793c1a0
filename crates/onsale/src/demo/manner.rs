//! Sends a request the way a buyer would on a bad day, and holds the server to its word: the same request with the same key
//! is done once, and answered alike.

use std::time::Duration;

use hyper::StatusCode;
use rand::RngExt;
use rand::rngs::StdRng;

use super::character::Manner;
use super::client::{Answer, Ask, Client};
use super::crowd::Crowd;
use super::measures::Counted;
use super::wire::ProblemSeen;

/// Refusals that are decisions: the same key gets them again.
const DECIDED: [&str; 5] =
    ["seat-unavailable", "hold-expired", "hold-not-active", "payment-pending", "too-little-time"];
/// Longest wait before a connection is broken off: by then most requests have been answered.
const BREAK_AFTER_US_MAX: u64 = 5_000;
/// Tries of a request that the server said to send again, and the pause before each.
const RETRIES_MAX: usize = 40;
const RETRY_PAUSE: Duration = Duration::from_millis(250);

/// Sends a request with a key; the answer that counts.
pub(super) async fn send(
    crowd: &Crowd,
    client: &mut Client,
    manner: Manner,
    ask: &Ask,
    chance: &mut StdRng,
) -> anyhow::Result<Answer> {
    match manner {
        Manner::Once => call(crowd, client, ask).await,
        Manner::Again => {
            let first = call(crowd, client, ask).await?;
            expect_replay(crowd, &first, client, ask).await?;
            Ok(first)
        }
        Manner::Doubled => {
            let mut other = Client::new(crowd.shop);
            other.connect().await?;
            let (first, second) = tokio::join!(call(crowd, client, ask), call(crowd, &mut other, ask));
            let (first, second) = (first?, second?);
            if is_decided(&first) || is_decided(&second) {
                compare(crowd, &first, &second, ask);
                crowd.measures.count(Counted::Replays);
                if first.replayed == second.replayed {
                    let both = if first.replayed { "both" } else { "neither" };
                    crowd.measures.find(format!("{ask}: of two at once, {both} came as a replay"));
                }
            }
            Ok(first)
        }
        Manner::Broken => {
            let mut doomed = Client::new(crowd.shop);
            doomed.connect().await?;
            let patience = Duration::from_micros(chance.random_range(0..BREAK_AFTER_US_MAX));
            let _ = tokio::time::timeout(patience, doomed.call(ask)).await;
            drop(doomed);
            crowd.measures.count(Counted::Broken);
            let first = call(crowd, client, ask).await?;
            expect_replay(crowd, &first, client, ask).await?;
            Ok(first)
        }
    }
}

/// Sends a request until it has been decided.
async fn call(crowd: &Crowd, client: &mut Client, ask: &Ask) -> anyhow::Result<Answer> {
    let mut answer = client.call(ask).await?;
    for _ in 0..RETRIES_MAX {
        if answer.status.is_success() {
            break;
        }
        let problem: ProblemSeen = answer.json()?;
        if !problem.retryable {
            break;
        }
        crowd.measures.refused(&problem.code);
        tokio::time::sleep(RETRY_PAUSE).await;
        answer = client.call(ask).await?;
    }
    Ok(answer)
}

async fn expect_replay(crowd: &Crowd, first: &Answer, client: &mut Client, ask: &Ask) -> anyhow::Result<()> {
    if !is_decided(first) {
        return Ok(());
    }
    let again = call(crowd, client, ask).await?;
    compare(crowd, first, &again, ask);
    crowd.measures.count(Counted::Replays);
    if !again.replayed {
        crowd.measures.find(format!("{ask}: sent again, the answer does not say that it is a replay"));
    }
    Ok(())
}

fn is_decided(answer: &Answer) -> bool {
    let decided =
        || answer.json::<ProblemSeen>().is_ok_and(|problem| DECIDED.contains(&problem.code.as_str()));
    matches!(answer.status, StatusCode::CREATED | StatusCode::ACCEPTED) || decided()
}

fn compare(crowd: &Crowd, first: &Answer, second: &Answer, ask: &Ask) {
    if (first.status, &first.body) != (second.status, &second.body) {
        crowd.measures.find(format!("{ask}: the same request was answered with {first} and with {second}"));
    }
}
