//! One node: etcd, Patroni and the PostgreSQL that Patroni runs, in a network namespace.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::net::{as_postgres, make_node};
use super::settings::{AGENT_PORT, ETCD_PEER_PORT, ETCD_PORT, NODES, address, patroni_yaml};
use super::{Pace, sql};
use crate::enclosure::{FOLDER, run};
use crate::process::{Found, Held, Output, all_inside, all_working_in, gone};

/// What a node's data may take. A disk that is full is a fault of its own, and must not fill the machine's memory.
const DATA_SIZE: &str = "size=640m,mode=0700,uid=postgres,gid=postgres";

pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) address: String,
    /// PostgreSQL's socket, Patroni's settings and the logs.
    pub(crate) folder: PathBuf,
    /// A file system of its own, of a bounded size.
    pub(crate) disk: PathBuf,
    /// PostgreSQL's files, on that.
    pub(crate) data: PathBuf,
    logs: PathBuf,
    environment: PathBuf,
    pub(crate) etcd: Option<Held>,
    pub(crate) agent: Option<Held>,
}

impl Node {
    /// Makes its namespace and folders, and starts nothing.
    pub(crate) async fn make(
        number: usize,
        pace: Pace,
        environment: &Path,
        logs: &Path,
    ) -> anyhow::Result<Node> {
        let (name, address) = (format!("n{number}"), address(number));
        make_node(&name, &address).await?;
        let folder = Path::new(FOLDER).join(&name);
        let disk = folder.join("disk");
        for made in [&folder, &disk, &folder.join("etcd")] {
            std::fs::create_dir(made).with_context(|| format!("failed to make {}", made.display()))?;
            run("chown", &["postgres:postgres", &made.display().to_string()])?;
            run("chmod", &["0700", &made.display().to_string()])?;
        }
        run("mount", &["-t", "tmpfs", "-o", DATA_SIZE, "onsale-chaos", &disk.display().to_string()])?;
        let data = disk.join("data");
        let settings = patroni_yaml(&name, &address, &folder, &data, pace);
        std::fs::write(folder.join("patroni.yml"), settings)?;
        run("chown", &["postgres:postgres", &folder.join("patroni.yml").display().to_string()])?;
        let (logs, environment) = (logs.to_owned(), environment.to_owned());
        Ok(Node { name, address, folder, disk, data, logs, environment, etcd: None, agent: None })
    }

    pub(crate) fn start_etcd(&mut self) -> anyhow::Result<()> {
        let client = format!("http://{}:{ETCD_PORT}", self.address);
        let peer = format!("http://{}:{ETCD_PEER_PORT}", self.address);
        let all = (1..=NODES).map(|node| format!("n{node}=http://{}:{ETCD_PEER_PORT}", address(node)));
        let all = all.collect::<Vec<_>>().join(",");
        let mut etcd = as_postgres(Some(&self.name));
        etcd.args(["etcd", "--name", &self.name, "--data-dir"]).arg(self.folder.join("etcd"));
        etcd.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        etcd.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        etcd.args(["--initial-cluster", &all, "--initial-cluster-state", "new"]);
        etcd.args(["--initial-cluster-token", "onsale-chaos"]);
        // A leader of etcd is missed within a second: it must not be what a failover waits for.
        etcd.args(["--heartbeat-interval", "100", "--election-timeout", "1000"]);
        etcd.args(["--logger", "zap", "--log-level", "warn"]);
        let log = self.logs.join(format!("{}-etcd.log", self.name));
        self.etcd = Some(Held::start(&format!("etcd of {}", self.name), &mut etcd, Output::Log(&log))?);
        Ok(())
    }

    pub(crate) fn start_agent(&mut self) -> anyhow::Result<()> {
        let mut patroni = as_postgres(Some(&self.name));
        patroni.arg(self.environment.join("bin/python3")).args(["-m", "patroni"]);
        patroni.arg(self.folder.join("patroni.yml"));
        // PostgreSQL writes here too.
        let log = self.log();
        self.agent =
            Some(Held::start(&format!("patroni of {}", self.name), &mut patroni, Output::Log(&log))?);
        Ok(())
    }

    /// What Patroni and PostgreSQL say.
    pub(crate) fn log(&self) -> PathBuf {
        self.logs.join(format!("{}.log", self.name))
    }

    /// The postmaster, looked at: its number is in a file that may be older than the process which has it now.
    pub(crate) fn postmaster(&self) -> anyhow::Result<Found> {
        let file = self.data.join("postmaster.pid");
        let text = std::fs::read_to_string(&file).with_context(|| format!("no {}", file.display()))?;
        let id = text.lines().next().and_then(|line| line.trim().parse().ok());
        Found::working_in(id.with_context(|| format!("{} names no process", file.display()))?, &self.data)
    }

    /// Kills the postmaster, as the kernel does when memory is short; its children notice and end.
    pub(crate) async fn kill_postgres(&self) -> anyhow::Result<()> {
        let postmaster = self.postmaster()?;
        postmaster.signal(Signal::KILL)?;
        gone(&postmaster).await
    }

    /// Stops (STOP) or continues (CONT) PostgreSQL as a whole. The postmaster is stopped first, so that it starts nobody
    /// who would be missed.
    pub(crate) fn signal_postgres(&self, signal: Signal) -> anyhow::Result<()> {
        self.postmaster()?.signal(signal)?;
        for process in all_working_in(&self.data) {
            process.signal(signal).ok(); // It may have just ended.
        }
        Ok(())
    }

    /// The node loses its power: everything in it ends at once.
    pub(crate) async fn kill_all(&mut self) -> anyhow::Result<()> {
        let all = all_inside(&self.name);
        for process in &all {
            process.signal(Signal::KILL).ok(); // Another's end may have ended it.
        }
        for held in [self.agent.take(), self.etcd.take()].iter_mut().flatten() {
            held.kill().await?;
        }
        for process in &all {
            gone(process).await?;
        }
        ensure!(all_inside(&self.name).is_empty(), "something was started in {} while it ended", self.name);
        Ok(())
    }

    /// Patroni's own view: its REST interface.
    pub(crate) async fn rest(&self, path: &str) -> anyhow::Result<(u16, Value)> {
        let address = format!("http://{}:{AGENT_PORT}{path}", self.address);
        // A frozen agent accepts and says nothing.
        let asked = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(2)).build()?;
        let answer = asked.get(&address).send().await.with_context(|| format!("no answer from {address}"))?;
        let status = answer.status().as_u16();
        Ok((status, serde_json::from_str(&answer.text().await?).unwrap_or_default()))
    }

    /// Whether its agent says that it is this: `primary`, `replica`, `sync`.
    pub(crate) async fn is(&self, role: &str) -> bool {
        self.rest(&format!("/{role}")).await.is_ok_and(|(status, _)| status == 200)
    }

    /// Asks this node's PostgreSQL through its socket, which no cut of the network reaches.
    pub(crate) async fn ask(&self, statement: &str) -> anyhow::Result<String> {
        sql::ask_socket(&self.folder, statement).await
    }

    /// Asks its agent to hand the primary's part over. It answers when that is done.
    pub(crate) async fn switch_over(&self, candidate: &str) -> anyhow::Result<()> {
        let body = json!({ "leader": self.name, "candidate": candidate });
        let address = format!("http://{}:{AGENT_PORT}/switchover", self.address);
        let asked = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(60)).build()?;
        let answer = asked.post(address).body(body.to_string()).send().await?;
        let (status, said) = (answer.status(), answer.text().await?);
        ensure!(status.is_success(), "{} does not hand over to {candidate}: {status} {said}", self.name);
        Ok(())
    }
}
