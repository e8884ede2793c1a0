//! Processes of the cluster that die, stop and wake up.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use rustix::process::Signal;

use super::Damage;
use crate::cluster::{Cluster, Node, set_link};
use crate::wait::until;

/// A failover takes up to ttl, an election, and what the new primary needs to find a standby of its own.
const FAILOVER: Duration = Duration::from_secs(60);

/// Waits until another node than this is the primary.
pub(super) async fn promoted(cluster: &Cluster, old: usize) -> anyhow::Result<usize> {
    until("another node is the primary", FAILOVER, async || cluster.primary_but(old).await).await
}

pub(super) async fn kill_primary(cluster: &Cluster) -> anyhow::Result<Damage> {
    let old = cluster.primary().await?;
    cluster.nodes[old].kill_postgres().await?;
    promoted(cluster, old).await?;
    Ok(Damage::to(old))
}

/// Without power there is nobody to say that nobody is there.
pub(super) async fn kill_node(cluster: &mut Cluster) -> anyhow::Result<Damage> {
    let old = cluster.primary().await?;
    set_link(&cluster.nodes[old].name, "down")?;
    cluster.nodes[old].kill_all().await?;
    promoted(cluster, old).await?;
    Ok(Damage::to(old))
}

pub(super) fn start_node(cluster: &mut Cluster, victim: usize) -> anyhow::Result<()> {
    let node = &mut cluster.nodes[victim];
    set_link(&node.name, "up")?;
    node.start_etcd()?;
    node.start_agent()
}

pub(super) async fn freeze_agent(cluster: &Cluster) -> anyhow::Result<Damage> {
    let old = cluster.primary().await?;
    signal_agent(&cluster.nodes[old], Signal::STOP)?;
    promoted(cluster, old).await?;
    Ok(Damage::to(old))
}

pub(super) fn wake_agent(cluster: &Cluster, victim: usize) -> anyhow::Result<()> {
    signal_agent(&cluster.nodes[victim], Signal::CONT)
}

fn signal_agent(node: &Node, signal: Signal) -> anyhow::Result<()> {
    node.agent.as_ref().context("the agent runs")?.signal(signal)
}

pub(super) async fn freeze_primary(cluster: &Cluster) -> anyhow::Result<Damage> {
    let victim = cluster.primary().await?;
    let node = &cluster.nodes[victim];
    node.signal_postgres(Signal::STOP)?;
    let frozen = async || match node.ask("select 1").await {
        Ok(_) => bail!("it answers"),
        Err(_) => Ok(()),
    };
    until("the primary is frozen", Duration::from_secs(10), frozen).await?;
    Ok(Damage::to(victim))
}

pub(super) fn wake_primary(cluster: &Cluster, victim: usize) -> anyhow::Result<()> {
    cluster.nodes[victim].signal_postgres(Signal::CONT)
}

/// The synchronous standby's PostgreSQL dies. Its agent is frozen, or it would start it again at once.
pub(super) async fn lose_standby(cluster: &Cluster) -> anyhow::Result<Damage> {
    let victim = cluster.synchronous().await?;
    let node = &cluster.nodes[victim];
    signal_agent(node, Signal::STOP)?;
    node.kill_postgres().await?;
    let replaced = async || {
        let now = cluster.synchronous().await?;
        ensure!(now != victim, "{} is still the synchronous one", node.name);
        Ok(())
    };
    until("the other standby is synchronous", FAILOVER, replaced).await?;
    Ok(Damage::to(victim))
}

pub(super) async fn switch_over(cluster: &Cluster) -> anyhow::Result<Damage> {
    let (old, new) = (cluster.primary().await?, cluster.synchronous().await?);
    let candidate = &cluster.nodes[new].name;
    cluster.nodes[old].switch_over(candidate).await?;
    ensure!(promoted(cluster, old).await? == new, "another node than {candidate} took over");
    Ok(Damage::to(old))
}

pub(super) async fn kill_etcd(cluster: &mut Cluster) -> anyhow::Result<Damage> {
    for node in &mut cluster.nodes {
        node.etcd.take().context("etcd runs")?.kill().await?;
    }
    ensure!(cluster.etcd_health().await.is_err(), "etcd answers without a process");
    Ok(Damage::default())
}

pub(super) fn start_etcd(cluster: &mut Cluster) -> anyhow::Result<()> {
    cluster.nodes.iter_mut().try_for_each(Node::start_etcd)
}
