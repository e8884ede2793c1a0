//! Commits that wait for a standby: for long, and in vain.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, ensure};
use tokio::time::timeout;

use super::network::others;
use super::processes::promoted;
use super::{Damage, Scene};
use crate::cluster::{
    APPLICATION_WAITS, CANCEL_WAITS, CONTROL_FORGET, CONTROL_READ, CONTROL_WAITS, CONTROL_WRITE, Cluster,
    POSTGRES_PORT, ask_proxy, on_socket, rules,
};
use crate::wait::{let_last, until};

/// What a cancelled wait says. The command that says it has succeeded.
const WARNING: &str = "canceling wait for synchronous replication";

/// How long the primary outlives the cancellation. A few seconds more, and its standby would not be promoted.
const SHOWN: Duration = Duration::from_millis(1_500);

pub(super) async fn cut_replication(scene: &Scene) -> anyhow::Result<Damage> {
    let cluster = &scene.cluster;
    let victim = cluster.primary().await?;
    drop_replication(cluster, victim).await?;
    if scene.shop.has_database() {
        waits(cluster, victim, APPLICATION_WAITS).await?;
    }
    Ok(Damage::to(victim))
}

/// The way in which an acknowledged commit is lost. Replication stops without a word, so commits wait. Someone cancels the
/// wait: a person, a pool, a driver's own time limit. The commit then succeeds, with a warning that hardly anyone reads. The
/// primary dies, and the standby that takes its place has never heard of it.
///
/// A row of the runner's own goes the same way beside the application's, so that the fault is known to have bitten.
pub(super) async fn cancel_waits(scene: &mut Scene, with_processes: bool) -> anyhow::Result<Damage> {
    let cluster = &scene.cluster;
    let victim = cluster.primary().await?;
    let node = &cluster.nodes[victim];
    ask_proxy(CONTROL_FORGET).await?;
    drop_replication(cluster, victim).await?;
    let mut control = on_socket(&node.folder, "onsale");
    control.args(["-c", CONTROL_WRITE]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let control = control.spawn().context("failed to start psql")?;
    waits(cluster, victim, CONTROL_WAITS).await?;
    if scene.shop.has_database() {
        waits(cluster, victim, APPLICATION_WAITS).await?;
    }
    // Before anyone has noticed that the standby is gone: as long as it counts as synchronous, it may be promoted.
    node.ask(CANCEL_WAITS).await?;
    let control = timeout(Duration::from_secs(3), control.wait_with_output()).await;
    let control = control.context("the row's commit still waits after its cancellation")??;
    let said = String::from_utf8_lossy(&control.stderr);
    ensure!(
        control.status.success() && said.contains(WARNING),
        "the row's commit was not acknowledged with a warning: {said}"
    );
    // Those who came after them, too; and for a moment whoever asks this node is shown what only this node has.
    node.ask(CANCEL_WAITS).await?;
    let_last(SHOWN).await;
    if with_processes {
        // Else they do again what they know was lost.
        for number in 0..scene.shop.processes.len() {
            scene.shop.kill(number).await?;
        }
    }
    node.kill_postgres().await?;
    promoted(cluster, victim).await?;
    let found =
        until("the new primary answers", Duration::from_secs(20), async || ask_proxy(CONTROL_READ).await)
            .await?;
    ensure!(found == "0", "the row is there after all, so this was not the fault that it is meant to be");
    Ok(Damage {
        victim,
        note: Some("a row acknowledged with a warning was lost, as it should be".to_owned()),
    })
}

async fn drop_replication(cluster: &Cluster, primary: usize) -> anyhow::Result<()> {
    let others = others(cluster, primary);
    let cut = format!(
        "add rule inet chaos input ip saddr {others} tcp dport {POSTGRES_PORT} drop\n\
         add rule inet chaos output ip daddr {others} tcp sport {POSTGRES_PORT} drop"
    );
    rules(Some(&cluster.nodes[primary].name), &cut).await
}

/// Waits until a commit waits for a standby.
async fn waits(cluster: &Cluster, primary: usize, statement: &str) -> anyhow::Result<()> {
    let look = async || {
        let count = cluster.nodes[primary].ask(statement).await?;
        ensure!(count != "0", "none does");
        Ok(())
    };
    until("a commit waits for a standby", Duration::from_secs(10), look).await
}
