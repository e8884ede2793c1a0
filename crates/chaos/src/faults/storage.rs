//! A disk without room.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};

use super::Damage;
use crate::cluster::{Cluster, NEED_ROOM, Node, ask_proxy};
use crate::wait::until;

const SAID: &str = "No space left on device";

/// Fills the primary's disk to the last byte, and goes on doing so while PostgreSQL frees some, until it has noticed.
pub(super) async fn fill(cluster: &Cluster) -> anyhow::Result<Damage> {
    let victim = cluster.primary().await?;
    let node = &cluster.nodes[victim];
    let before = complaints(node)?;
    let file = ballast(node);
    let mut file = File::create(&file).with_context(|| format!("failed to make {}", file.display()))?;
    let noticed = async || {
        // Large pieces first, then what is left.
        for piece in [1 << 20, 4096] {
            let zeros = vec![0; piece];
            while file.write_all(&zeros).is_ok() {}
        }
        // The application's own writes may fit into what is there for a while.
        let asked = ask_proxy(NEED_ROOM).await;
        ensure!(complaints(node)? > before, "it has not complained: {asked:?}");
        Ok(())
    };
    until("PostgreSQL has no room", Duration::from_secs(60), noticed).await?;
    Ok(Damage::to(victim))
}

pub(super) fn free(cluster: &Cluster, victim: usize) -> anyhow::Result<()> {
    let file = ballast(&cluster.nodes[victim]);
    std::fs::remove_file(&file).with_context(|| format!("failed to remove {}", file.display()))
}

fn ballast(node: &Node) -> PathBuf {
    node.disk.join("ballast")
}

fn complaints(node: &Node) -> anyhow::Result<usize> {
    let log = std::fs::read_to_string(node.log()).context("failed to read a node's log")?;
    Ok(log.matches(SAID).count())
}
