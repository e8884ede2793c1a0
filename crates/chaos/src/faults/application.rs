//! Processes of the application that die, stop and wake up. The others go on.

use anyhow::Context;
use rustix::process::Signal;

use super::Damage;
use crate::sale::Shop;

/// The last one: the provider's callbacks go to the first.
fn victim(shop: &Shop) -> usize {
    shop.processes.len() - 1
}

pub(super) async fn kill(shop: &mut Shop) -> anyhow::Result<Damage> {
    let victim = victim(shop);
    shop.kill(victim).await?;
    Ok(Damage::to(victim))
}

pub(super) async fn start(shop: &mut Shop, victim: usize) -> anyhow::Result<()> {
    shop.start(victim).await
}

pub(super) async fn start_all(shop: &mut Shop) -> anyhow::Result<()> {
    for number in 0..shop.processes.len() {
        shop.start(number).await?;
    }
    Ok(())
}

/// A stopped process keeps its connections, its locks, and what it believes of the time.
pub(super) async fn freeze(shop: &Shop) -> anyhow::Result<Damage> {
    let victim = victim(shop);
    signal(shop, victim, Signal::STOP)?;
    Ok(Damage::to(victim))
}

pub(super) fn wake(shop: &Shop, victim: usize) -> anyhow::Result<()> {
    signal(shop, victim, Signal::CONT)
}

fn signal(shop: &Shop, victim: usize, signal: Signal) -> anyhow::Result<()> {
    shop.processes[victim].held.as_ref().context("the process runs")?.signal(signal)
}
