//! One look at the seat map for the whole crowd: a snapshot, then what changed.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use hyper::StatusCode;

use super::client::{Ask, Client};
use super::crowd::Crowd;
use super::measures::Timed;
use super::wire::{ChangesSeen, SeatsSeen};

/// How often the map is looked at, as a page would.
const EVERY: Duration = Duration::from_millis(200);
/// How often when hardly anything is left, and all wait for what comes back.
const EVERY_AT_THE_END: Duration = Duration::from_millis(50);
/// When that is: a hundredth of the seats isn't sold.
const END_ONE_IN: usize = 100;

/// Follows the map until everything is sold, or for ever.
pub(super) async fn follow(crowd: &Arc<Crowd>) -> anyhow::Result<()> {
    let mut client = Client::new(crowd.shop);
    snapshot(crowd, &mut client).await?;
    loop {
        let counts = crowd.with_house(|house| house.counts());
        let unsold = counts.available + counts.held + counts.other;
        crowd.map.send_modify(|seen| {
            seen.counts = counts;
            seen.is_over |= unsold == 0;
        });
        if unsold == 0 {
            return Ok(());
        }
        let near_end = unsold * END_ONE_IN < counts.sold;
        tokio::time::sleep(if near_end { EVERY_AT_THE_END } else { EVERY }).await;
        changes(crowd, &mut client).await?;
    }
}

/// Takes a whole map, as one that has just come.
pub(super) async fn snapshot(crowd: &Arc<Crowd>, client: &mut Client) -> anyhow::Result<()> {
    let answer = client.call(&Ask::get(format!("{}/seats", crowd.event))).await?.expect(StatusCode::OK)?;
    crowd.measures.time(Timed::SeatMap, answer.took);
    let seats: SeatsSeen = answer.json()?;
    crowd.with_house(|house| house.take_states(seats.version, &seats.states))
}

async fn changes(crowd: &Arc<Crowd>, client: &mut Client) -> anyhow::Result<()> {
    let since = crowd.with_house(|house| house.version());
    let answer = client.call(&Ask::get(format!("{}/seats?since={since}", crowd.event))).await?;
    if answer.status == StatusCode::GONE {
        return snapshot(crowd, client).await;
    }
    crowd.measures.time(Timed::SeatMap, answer.took);
    let seen: ChangesSeen = answer.expect(StatusCode::OK)?.json()?;
    crowd.with_house(|house| house.take_changes(seen.version, &seen.changes))
}

/// Whether what changed adds up to the map as it is. For when nothing changes any more.
pub(super) async fn check_map(crowd: &Arc<Crowd>) -> anyhow::Result<()> {
    let mut client = Client::new(crowd.shop);
    changes(crowd, &mut client).await.context("failed to read the last changes")?;
    let (version, by_changes) = crowd.with_house(|house| (house.version(), house.digits().to_vec()));
    snapshot(crowd, &mut client).await?;
    let different =
        crowd.with_house(|house| house.version() == version && house.digits() != by_changes.as_slice());
    if different {
        crowd.measures.find(format!("the changes up to version {version} don't add up to the seat map"));
    }
    Ok(())
}
