//! Three nodes of PostgreSQL under Patroni and etcd, and a proxy that leads to whichever is the primary.

mod net;
mod node;
mod settings;
mod sql;
mod statements;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::Value;

pub(crate) use net::{BRIDGE, heal, rules, set_link};
pub(crate) use node::Node;
pub(crate) use settings::{POSTGRES_PORT, PROXY_PORT};
pub(crate) use sql::{ask_proxy, on_socket};
pub(crate) use statements::{
    APPLICATION_WAITS, CANCEL_WAITS, CONTROL_FORGET, CONTROL_READ, CONTROL_WAITS, CONTROL_WRITE, NEED_ROOM,
};

use crate::enclosure::{FOLDER, run};
use crate::process::{Held, Output, said};
use crate::wait::until;

/// Which way the application takes.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum Route {
    /// Through haproxy, which asks Patroni who the primary is
    Proxy,
    /// To the first node that takes writes; while two do, that may be the old one
    Nodes,
}

/// How fast Patroni looks and gives up.
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) ttl_s: u64,
    pub(crate) loop_wait_s: u64,
    pub(crate) retry_timeout_s: u64,
}

/// As one would run it.
pub(crate) const HONEST: Pace = Pace { ttl_s: 20, loop_wait_s: 5, retry_timeout_s: 5 };
/// As fast as Patroni 4 goes.
pub(crate) const FAST: Pace = Pace { ttl_s: 20, loop_wait_s: 1, retry_timeout_s: 3 };

/// A cluster takes some ten seconds to come up, and up to ttl and two loops to find its way back.
const PATIENCE: Duration = Duration::from_secs(90);

pub(crate) struct Cluster {
    pub(crate) nodes: Vec<Node>,
    proxy: Option<Held>,
    logs: PathBuf,
}

impl Cluster {
    /// Brings it up, with an empty database for the application.
    pub(crate) async fn start(pace: Pace, environment: &Path, logs: &Path) -> anyhow::Result<Cluster> {
        // Seen from inside under a path that PostgreSQL's user may walk, wherever the repository is.
        let inside = Path::new(FOLDER).join("venv");
        std::fs::create_dir(&inside)?;
        run("mount", &["--bind", &environment.display().to_string(), &inside.display().to_string()])?;
        net::make_bridge().await?;
        let mut nodes = Vec::new();
        for number in 1..=settings::NODES {
            nodes.push(Node::make(number, pace, &inside, logs).await?);
        }
        let mut cluster = Cluster { nodes, proxy: None, logs: logs.to_owned() };
        for node in &mut cluster.nodes {
            node.start_etcd()?;
        }
        until("etcd has a leader", PATIENCE, async || cluster.etcd_health().await).await?;
        for node in &mut cluster.nodes {
            node.start_agent()?;
        }
        cluster.start_proxy()?;
        let primary = until("there is a primary", PATIENCE, async || cluster.primary().await).await?;
        until("a standby is synchronous", PATIENCE, async || cluster.members_in_order().await).await?;
        for node in &cluster.nodes {
            let data = node.ask(statements::DATA_DIRECTORY).await?;
            ensure!(Path::new(&data) == node.data, "{} answers from {data}: it is another's", node.name);
        }
        let primary = &cluster.nodes[primary];
        for statement in [statements::MAKE_ROLE, statements::MAKE_DATABASE] {
            primary.ask(statement).await?;
        }
        until("the proxy leads to the primary", PATIENCE, async || ask_proxy("select 1").await).await?;
        ask_proxy(statements::MAKE_PROBE).await?;
        Ok(cluster)
    }

    /// How the application reaches it.
    pub(crate) fn url(&self, route: Route) -> String {
        let hosts = match route {
            Route::Proxy => format!("{BRIDGE}:{PROXY_PORT}"),
            Route::Nodes => {
                let hosts = self.nodes.iter().map(|node| format!("{}:{POSTGRES_PORT}", node.address));
                hosts.collect::<Vec<_>>().join(",")
            }
        };
        format!("postgres://{}:{}@{hosts}/{}", settings::ROLE, settings::PASSWORD, settings::ROLE)
    }

    pub(crate) fn start_proxy(&mut self) -> anyhow::Result<()> {
        let file = Path::new(FOLDER).join("haproxy.cfg");
        std::fs::write(&file, settings::haproxy_cfg())?;
        let mut haproxy = net::as_postgres(None);
        haproxy.args(["haproxy", "-db", "-f"]).arg(file);
        self.proxy = Some(Held::start("haproxy", &mut haproxy, Output::Log(&self.logs.join("haproxy.log")))?);
        Ok(())
    }

    pub(crate) async fn kill_proxy(&mut self) -> anyhow::Result<()> {
        self.proxy.take().context("the proxy runs")?.kill().await
    }

    pub(crate) async fn etcd_health(&self) -> anyhow::Result<()> {
        let all = self.nodes.iter().map(|node| format!("http://{}:{}", node.address, settings::ETCD_PORT));
        let all = all.collect::<Vec<_>>().join(",");
        let call =
            ["ETCDCTL_API=3", "etcdctl", "--endpoints", &all, "--command-timeout=2s", "endpoint", "health"];
        said("env", call, Duration::from_secs(5)).await.map(drop)
    }

    /// The node whose agent says that it is the primary. While two say so there is no answer.
    pub(crate) async fn primary(&self) -> anyhow::Result<usize> {
        let mut primaries = Vec::new();
        for (index, node) in self.nodes.iter().enumerate() {
            if node.is("primary").await {
                primaries.push(index);
            }
        }
        ensure!(primaries.len() == 1, "{} nodes say that they are the primary", primaries.len());
        Ok(primaries[0])
    }

    /// Another node than this says that it is the primary.
    pub(crate) async fn primary_but(&self, old: usize) -> anyhow::Result<usize> {
        for (index, node) in self.nodes.iter().enumerate() {
            if index != old && node.is("primary").await {
                return Ok(index);
            }
        }
        anyhow::bail!("no other node says that it is the primary")
    }

    /// The standby without which nothing is acknowledged.
    pub(crate) async fn synchronous(&self) -> anyhow::Result<usize> {
        for (index, node) in self.nodes.iter().enumerate() {
            if node.is("sync").await {
                return Ok(index);
            }
        }
        anyhow::bail!("no standby is synchronous")
    }

    /// All members are where they should be: one leader, the others streaming on its timeline, one of them synchronous.
    /// That a replica answers is not enough: it does so before it is wound back.
    pub(crate) async fn members_in_order(&self) -> anyhow::Result<()> {
        for node in &self.nodes {
            let (_, view) = node.rest("/cluster").await?;
            in_order(&view).with_context(|| format!("as {} sees it", node.name))?;
        }
        Ok(())
    }

    /// All is well again: members, etcd, and a commit through the proxy that a standby has confirmed.
    pub(crate) async fn healthy(&self) -> anyhow::Result<()> {
        let look = async || {
            self.members_in_order().await?;
            self.primary().await?;
            self.etcd_health().await?;
            ask_proxy(statements::PROBE).await.map(drop)
        };
        until("the cluster is in order", PATIENCE, look).await
    }

    /// Ends everything, in the order in which it was built.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        let patience = Duration::from_secs(15);
        if let Some(proxy) = &mut self.proxy {
            proxy.stop(patience).await?;
        }
        // All at once: one that stops alone would have another take over.
        for node in &self.nodes {
            node.agent.as_ref().map(|agent| agent.signal(rustix::process::Signal::TERM));
        }
        for node in &mut self.nodes {
            if let Some(agent) = &mut node.agent {
                agent.stop(patience).await?;
            }
        }
        for node in &mut self.nodes {
            // The last ones have no quorum to leave in order.
            node.kill_all().await?;
        }
        Ok(())
    }
}

fn in_order(view: &Value) -> anyhow::Result<()> {
    let members = view["members"].as_array().context("no members")?;
    let shown = || {
        let member = |member: &Value| {
            format!("{} {} {} {}", member["name"], member["role"], member["state"], member["timeline"])
        };
        members.iter().map(member).collect::<Vec<_>>().join(", ")
    };
    let count = |role: &str| members.iter().filter(|member| member["role"] == role).count();
    ensure!(
        members.len() == settings::NODES && count("leader") == 1 && count("sync_standby") == 1,
        "{}",
        shown()
    );
    let timeline = members.iter().find(|member| member["role"] == "leader").map(|leader| &leader["timeline"]);
    for member in members {
        let wanted = if member["role"] == "leader" { "running" } else { "streaming" };
        ensure!(member["state"] == wanted && Some(&member["timeline"]) == timeline, "{}", shown());
    }
    Ok(())
}
