//! Links that swallow what is sent over them, and the proxy.

use std::time::Duration;

use anyhow::bail;

use super::Damage;
use super::processes::promoted;
use crate::cluster::{Cluster, POSTGRES_PORT, PROXY_PORT, ask_proxy, heal, rules};
use crate::wait::until;

/// The other nodes' addresses, as a set of nft.
pub(super) fn others(cluster: &Cluster, victim: usize) -> String {
    let others = cluster.nodes.iter().enumerate().filter(|(index, _)| *index != victim);
    let others = others.map(|(_, node)| node.address.as_str()).collect::<Vec<_>>().join(", ");
    format!("{{ {others} }}")
}

/// The primary is alone with its etcd and its clients. It must give up before another is promoted.
pub(super) async fn partition(cluster: &Cluster) -> anyhow::Result<Damage> {
    let victim = cluster.primary().await?;
    let others = others(cluster, victim);
    let cut = format!(
        "add rule inet chaos input ip saddr {others} drop\nadd rule inet chaos output ip daddr {others} drop"
    );
    rules(Some(&cluster.nodes[victim].name), &cut).await?;
    promoted(cluster, victim).await?;
    Ok(Damage::to(victim))
}

pub(super) async fn partition_one_way(cluster: &Cluster) -> anyhow::Result<Damage> {
    let victim = cluster.primary().await?;
    let cut = format!("add rule inet chaos input ip saddr {} drop", others(cluster, victim));
    rules(Some(&cluster.nodes[victim].name), &cut).await?;
    promoted(cluster, victim).await?;
    Ok(Damage::to(victim))
}

pub(super) async fn mend(cluster: &Cluster, victim: usize) -> anyhow::Result<()> {
    heal(Some(&cluster.nodes[victim].name)).await
}

/// Between the application and its database, whichever way it takes, in both directions. No connection is closed by it: nobody
/// is told anything.
pub(super) async fn cut_application() -> anyhow::Result<Damage> {
    let ports = format!("{{ {PROXY_PORT}, {POSTGRES_PORT} }}");
    let cut = format!(
        "add rule inet chaos input tcp sport {ports} drop\nadd rule inet chaos output tcp dport {ports} drop"
    );
    rules(None, &cut).await?;
    cannot_ask().await?;
    Ok(Damage::default())
}

pub(super) async fn mend_application() -> anyhow::Result<()> {
    heal(None).await
}

pub(super) async fn kill_proxy(cluster: &mut Cluster) -> anyhow::Result<Damage> {
    cluster.kill_proxy().await?;
    cannot_ask().await?;
    Ok(Damage::default())
}

async fn cannot_ask() -> anyhow::Result<()> {
    let look = async || match ask_proxy("select 1").await {
        Ok(_) => bail!("it answers"),
        Err(_) => Ok(()),
    };
    until("the database can't be reached", Duration::from_secs(10), look).await
}
