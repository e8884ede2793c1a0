//! What goes wrong. Each fault begins, has taken effect, lasts, is healed, and has healed; each of these is waited for.

mod application;
mod commits;
mod network;
mod processes;
mod storage;

use std::time::Duration;

use crate::cluster::Cluster;
use crate::sale::Shop;

/// What a fault is done to.
pub(crate) struct Scene {
    pub(crate) cluster: Cluster,
    pub(crate) shop: Shop,
}

/// What a fault did, for whoever heals it.
#[derive(Default)]
pub(crate) struct Damage {
    /// The node, or the process of the application.
    pub(crate) victim: usize,
    /// What is worth a line in the result.
    pub(crate) note: Option<String>,
}

impl Damage {
    fn to(victim: usize) -> Damage {
        Damage { victim, note: None }
    }
}

/// How long a fault lasts after it has taken effect.
#[derive(Clone, Copy)]
pub(crate) enum Lasts {
    /// Until the sale goes on in spite of it.
    UntilServed,
    /// Nobody can be served, or all are served anyway: some time.
    For(Duration),
    /// It is over when it has taken effect.
    NoTime,
}

#[derive(Clone, Copy)]
enum Kind {
    PrimaryKilled,
    NodeKilled,
    AgentFrozen,
    PrimaryFrozen,
    Partition,
    PartitionOneWay,
    ApplicationCut,
    StandbyLost,
    ReplicationCut,
    CommitCancelled,
    SiteLost,
    Switchover,
    EtcdDown,
    DiskFull,
    ProxyRestarted,
    ProcessKilled,
    ProcessFrozen,
}

pub(crate) struct Fault {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    /// Whether it is tried at every change.
    pub(crate) short: bool,
    pub(crate) lasts: Lasts,
    kind: Kind,
}

const fn seconds(count: u64) -> Lasts {
    Lasts::For(Duration::from_secs(count))
}

/// All faults. A clock that is wrong is not among them: no namespace shifts the time of day.
pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        name: "primary-killed",
        what: "kill -9 of the primary's postmaster; the synchronous standby is promoted",
        short: true,
        lasts: Lasts::UntilServed,
        kind: Kind::PrimaryKilled,
    },
    Fault {
        name: "node-killed",
        what: "PostgreSQL, Patroni and etcd of the primary's node end at once",
        short: false,
        lasts: Lasts::UntilServed,
        kind: Kind::NodeKilled,
    },
    Fault {
        name: "agent-frozen",
        what: "the primary's Patroni stops in its tracks: another is promoted while the old primary runs on",
        short: false,
        lasts: Lasts::UntilServed,
        kind: Kind::AgentFrozen,
    },
    Fault {
        name: "primary-frozen",
        what: "all processes of the primary's PostgreSQL stop for 8 seconds and go on",
        short: false,
        lasts: seconds(8),
        kind: Kind::PrimaryFrozen,
    },
    Fault {
        name: "partition",
        what: "the primary is cut from the other nodes, not from the application",
        short: false,
        lasts: Lasts::UntilServed,
        kind: Kind::Partition,
    },
    Fault {
        name: "partition-one-way",
        what: "the primary hears no other node, and is still heard",
        short: false,
        lasts: Lasts::UntilServed,
        kind: Kind::PartitionOneWay,
    },
    Fault {
        name: "application-cut",
        what: "what the application and its database send each other is dropped for 12 seconds",
        short: false,
        lasts: seconds(12),
        kind: Kind::ApplicationCut,
    },
    Fault {
        name: "standby-lost",
        what: "the synchronous standby dies; the other takes its part",
        short: true,
        lasts: Lasts::UntilServed,
        kind: Kind::StandbyLost,
    },
    Fault {
        name: "replication-cut",
        what: "no standby gets anything for 15 seconds: commits wait",
        short: false,
        lasts: seconds(15),
        kind: Kind::ReplicationCut,
    },
    Fault {
        name: "commit-cancelled",
        what: "commits that wait for a standby are cancelled, and then the primary dies: they are lost, with a warning",
        short: true,
        lasts: Lasts::UntilServed,
        kind: Kind::CommitCancelled,
    },
    Fault {
        name: "site-lost",
        what: "as commit-cancelled, and every process of the application dies with the primary",
        short: false,
        lasts: Lasts::NoTime,
        kind: Kind::SiteLost,
    },
    Fault {
        name: "switchover",
        what: "the synchronous standby takes over in good order",
        short: true,
        lasts: Lasts::UntilServed,
        kind: Kind::Switchover,
    },
    Fault {
        name: "etcd-down",
        what: "etcd is gone on all nodes for 25 seconds; a primary that reaches all members goes on",
        short: false,
        lasts: seconds(25),
        kind: Kind::EtcdDown,
    },
    Fault {
        name: "disk-full",
        what: "the primary's disk has no byte left, and then it has again",
        short: false,
        lasts: seconds(10),
        kind: Kind::DiskFull,
    },
    Fault {
        name: "proxy-restarted",
        what: "haproxy is killed and started again",
        short: false,
        lasts: Lasts::NoTime,
        kind: Kind::ProxyRestarted,
    },
    Fault {
        name: "process-killed",
        what: "kill -9 of one of the application's processes in the middle of its work; it is started again after 3 seconds",
        short: false,
        lasts: seconds(3),
        kind: Kind::ProcessKilled,
    },
    Fault {
        name: "process-frozen",
        what: "one of the application's processes stops for 8 seconds in the middle of its work, and wakes up",
        short: false,
        lasts: seconds(8),
        kind: Kind::ProcessFrozen,
    },
];

impl Fault {
    /// Begins it; it has taken effect when this returns.
    pub(crate) async fn begin(&self, scene: &mut Scene) -> anyhow::Result<Damage> {
        match self.kind {
            Kind::PrimaryKilled => processes::kill_primary(&scene.cluster).await,
            Kind::NodeKilled => processes::kill_node(&mut scene.cluster).await,
            Kind::AgentFrozen => processes::freeze_agent(&scene.cluster).await,
            Kind::PrimaryFrozen => processes::freeze_primary(&scene.cluster).await,
            Kind::Partition => network::partition(&scene.cluster).await,
            Kind::PartitionOneWay => network::partition_one_way(&scene.cluster).await,
            Kind::ApplicationCut => network::cut_application().await,
            Kind::StandbyLost => processes::lose_standby(&scene.cluster).await,
            Kind::ReplicationCut => commits::cut_replication(scene).await,
            Kind::CommitCancelled => commits::cancel_waits(scene, false).await,
            Kind::SiteLost => commits::cancel_waits(scene, true).await,
            Kind::Switchover => processes::switch_over(&scene.cluster).await,
            Kind::EtcdDown => processes::kill_etcd(&mut scene.cluster).await,
            Kind::DiskFull => storage::fill(&scene.cluster).await,
            Kind::ProxyRestarted => network::kill_proxy(&mut scene.cluster).await,
            Kind::ProcessKilled => application::kill(&mut scene.shop).await,
            Kind::ProcessFrozen => application::freeze(&scene.shop).await,
        }
    }

    /// Heals it; it has healed when this returns, and the cluster is in order.
    pub(crate) async fn heal(&self, scene: &mut Scene, damage: &Damage) -> anyhow::Result<()> {
        let victim = damage.victim;
        match self.kind {
            // Patroni heals these.
            Kind::PrimaryKilled | Kind::Switchover => {}
            Kind::NodeKilled => processes::start_node(&mut scene.cluster, victim)?,
            Kind::AgentFrozen | Kind::StandbyLost => processes::wake_agent(&scene.cluster, victim)?,
            Kind::PrimaryFrozen => processes::wake_primary(&scene.cluster, victim)?,
            Kind::Partition | Kind::PartitionOneWay | Kind::ReplicationCut | Kind::CommitCancelled => {
                network::mend(&scene.cluster, victim).await?;
            }
            Kind::SiteLost => {
                network::mend(&scene.cluster, victim).await?;
                application::start_all(&mut scene.shop).await?;
            }
            Kind::ApplicationCut => network::mend_application().await?,
            Kind::EtcdDown => processes::start_etcd(&mut scene.cluster)?,
            Kind::DiskFull => storage::free(&scene.cluster, victim)?,
            Kind::ProxyRestarted => scene.cluster.start_proxy()?,
            Kind::ProcessKilled => application::start(&mut scene.shop, victim).await?,
            Kind::ProcessFrozen => application::wake(&scene.shop, victim)?,
        }
        scene.cluster.healthy().await
    }
}
