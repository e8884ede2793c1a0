//! The settings of Patroni and of the proxy. Each that differs from the defaults says why.

use std::path::Path;

use super::Pace;
use super::net::{BRIDGE, NET};

pub(crate) const NODES: usize = 3;
pub(crate) const PROXY_PORT: u16 = 5000;
pub(crate) const POSTGRES_PORT: u16 = 5432;
pub(crate) const AGENT_PORT: u16 = 8008;
pub(crate) const ETCD_PORT: u16 = 2379;
pub(crate) const ETCD_PEER_PORT: u16 = 2380;

/// The application's role and database.
pub(crate) const ROLE: &str = "onsale";
pub(crate) const PASSWORD: &str = "of-the-application";

/// A node's address.
pub(crate) fn address(node: usize) -> String {
    format!("10.77.0.1{node}")
}

/// Patroni's settings for a node.
pub(crate) fn patroni_yaml(name: &str, address: &str, folder: &Path, data: &Path, pace: Pace) -> String {
    let etcd = (1..=NODES).map(|node| format!("\"{}:{ETCD_PORT}\"", self::address(node)));
    let etcd = etcd.collect::<Vec<_>>().join(", ");
    let (folder, data) = (folder.display(), data.display());
    let Pace { ttl_s, loop_wait_s, retry_timeout_s } = pace;
    let bin = crate::tools::POSTGRES;
    format!(
        r#"scope: onsale
namespace: /service/
name: {name}
restapi: {{listen: "{address}:{AGENT_PORT}", connect_address: "{address}:{AGENT_PORT}"}}
# Section `etcd3` and not `etcd`: version 2 of its interface is off in Debian's etcd.
etcd3: {{hosts: [{etcd}]}}
bootstrap:
  # Read once, when the cluster is made. Later changes: `patronictl edit-config`.
  dcs:
    # A primary that was not heard of for this long is replaced; Patroni 4 takes no less than 20. A dead node costs this
    # and an election.
    ttl: {ttl_s}
    # loop_wait + 2 * retry_timeout must not be over ttl, or a primary may be replaced before it has stepped down.
    loop_wait: {loop_wait_s}
    retry_timeout: {retry_timeout_s}
    # How far behind a replica may be to be promoted. With synchronous_mode the synchronous one is asked for anyway.
    maximum_lag_on_failover: 1048576
    # When PostgreSQL alone dies, fail over at once. With the default of 300 it is started again in its place, which takes
    # longer the more it has to recover.
    primary_start_timeout: 0
    # A commit is acknowledged when a standby has it too, and only that standby is promoted. This is what makes an
    # acknowledged sale outlive its node.
    synchronous_mode: true
    # Without any standby, commits wait. Otherwise Patroni would turn synchronous commits off, and the next failover lose
    # what was acknowledged since.
    synchronous_mode_strict: true
    # When etcd is gone, a primary that still reaches all members goes on. Otherwise it would step down, and etcd's
    # trouble become everyone's.
    failsafe_mode: true
    postgresql:
      # An old primary that has diverged is taken back within seconds, without a new copy.
      use_pg_rewind: true
      use_slots: true
      parameters:
        wal_level: replica
        hot_standby: "on"
        max_connections: 100
        max_wal_senders: 10
        max_replication_slots: 10
        wal_log_hints: "on"
        # What a standby that was away may still find here.
        wal_keep_size: 128MB
        max_wal_size: 128MB
        # A slot whose standby is gone must not fill the disk.
        max_slot_wal_keep_size: 160MB
      pg_hba:
        - local all all trust
        - host all all {NET} scram-sha-256
        - host replication replicator {NET} scram-sha-256
  # With checksums, pg_rewind needs nothing else.
  initdb: [{{encoding: UTF8}}, {{locale: C.UTF-8}}, data-checksums]
postgresql:
  listen: "{address}:{POSTGRES_PORT}"
  connect_address: "{address}:{POSTGRES_PORT}"
  bin_dir: {bin}
  data_dir: {data}
  pgpass: {folder}/pgpass
  authentication:
    superuser: {{username: postgres, password: of-the-superuser}}
    replication: {{username: replicator, password: of-the-replicas}}
    rewind: {{username: rewinder, password: of-the-rewind}}
  parameters:
    unix_socket_directories: {folder}
    shared_buffers: 64MB
    synchronous_commit: "on"
    # The words of a warning are looked for by some clients, so they stay in one language.
    lc_messages: C
    log_line_prefix: "%m [%p] %q%u@%d "
    log_lock_waits: "on"
    # A link that swallows everything is noticed in seconds, on both sides of it.
    wal_receiver_timeout: 10s
    wal_sender_timeout: 10s
    tcp_user_timeout: 5s
    tcp_keepalives_idle: 5
    tcp_keepalives_interval: 1
    tcp_keepalives_count: 5
tags: {{}}
"#
    )
}

/// The proxy's settings: connections go to the node whose agent says that it is the primary, and to no other.
pub(crate) fn haproxy_cfg() -> String {
    let mut text = format!(
        "global
  maxconn 400
defaults
  mode tcp
  retries 2
  option redispatch
  # A connection whose other end is gone is noticed.
  option clitcpka
  option srvtcpka
  # A client's own limit for connecting must be over this, times (retries + 1).
  timeout connect 2s
  timeout client 1h
  timeout server 1h
  timeout check 1s
frontend primary
  bind {BRIDGE}:{PROXY_PORT}
  default_backend nodes
backend nodes
  option httpchk
  http-check send meth GET uri /primary ver HTTP/1.1 hdr Host patroni
  http-check expect status 200
  # `on-marked-down shutdown-sessions`: who is connected to a node that is no primary any more is cut off, and does not
  # go on writing to it.
  default-server inter 1s fastinter 500ms downinter 500ms fall 2 rise 1 on-marked-down shutdown-sessions
"
    );
    for node in 1..=NODES {
        let line = format!(
            "  server n{node} {}:{POSTGRES_PORT} maxconn 100 check port {AGENT_PORT}\n",
            address(node)
        );
        text.push_str(&line);
    }
    text
}
