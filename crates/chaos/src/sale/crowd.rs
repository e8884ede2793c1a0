//! All buyers of an event, at work.

use std::time::Duration;

use anyhow::{Context, ensure};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::buyer::Buyer;
use super::event::Event;
use super::ledger::Ledger;
use super::shop::Shop;
use crate::wait::until;

const BUYERS: u64 = 12;

pub(crate) struct Crowd {
    ledger: Ledger,
    doors: watch::Sender<bool>,
    buyers: JoinSet<()>,
    processes: usize,
}

impl Crowd {
    /// Opens the doors. What the buyers do follows from a seed; when they do it doesn't.
    pub(crate) fn enter(shop: &Shop, event: &Event, ledger: &Ledger, seed: u64) -> Crowd {
        let doors = watch::Sender::new(false);
        let mut buyers = JoinSet::new();
        for number in 0..BUYERS {
            let buyer = Buyer {
                processes: shop.processes.iter().map(|process| process.buyers.clone()).collect(),
                event: event.clone(),
                ledger: ledger.clone(),
                closed: doors.subscribe(),
                orders: Vec::new(),
                random: Buyer::random(seed.wrapping_mul(1_000).wrapping_add(number)),
            };
            buyers.spawn(buyer.shop());
        }
        Crowd { ledger: ledger.clone(), doors, buyers, processes: shop.processes.len() }
    }

    /// Waits until some more holds have been acknowledged from a moment on: by each process, or by any of them.
    pub(crate) async fn served(
        &self,
        since: Instant,
        holds: usize,
        by_each: bool,
        limit: Duration,
    ) -> anyhow::Result<()> {
        let look = async || {
            let by: Vec<usize> =
                (0..self.processes).map(|process| self.ledger.holds_since(since, process)).collect();
            let enough = match by_each {
                true => by.iter().all(|count| *count >= holds),
                false => by.iter().sum::<usize>() >= holds,
            };
            ensure!(enough, "holds of each process: {by:?}");
            Ok(())
        };
        until(&format!("{holds} more holds are acknowledged"), limit, look).await
    }

    /// Closes the doors, and waits until everyone has finished or given up.
    pub(crate) async fn leave(self) -> anyhow::Result<()> {
        self.doors.send_replace(true);
        timeout(Duration::from_secs(60), self.buyers.join_all()).await.context("buyers who never leave")?;
        Ok(())
    }
}
