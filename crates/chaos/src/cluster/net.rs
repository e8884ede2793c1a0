//! The network: a bridge where the application and the proxy are, and a namespace for each node. The enclosure's own
//! namespace is the bridge's, so the runner, the application and the payment provider are there without doing anything.

use std::process::Stdio;

use anyhow::ensure;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::enclosure::run;

/// Where the proxy listens, and the net's other addresses.
pub(crate) const BRIDGE: &str = "10.77.0.1";
pub(crate) const NET: &str = "10.77.0.0/24";

/// A table of two empty chains in each namespace. A cut is a rule in them; to heal is to empty them.
const TABLE: &str = "table inet chaos {
    chain input { type filter hook input priority 0; policy accept; }
    chain output { type filter hook output priority 0; policy accept; }
}";

/// Makes the bridge.
pub(crate) async fn make_bridge() -> anyhow::Result<()> {
    run("ip", &["link", "add", "bridge", "type", "bridge"])?;
    run("ip", &["link", "set", "bridge", "up"])?;
    run("ip", &["addr", "add", &format!("{BRIDGE}/24"), "dev", "bridge"])?;
    rules(None, TABLE).await
}

/// Plugs a node's cable in or out.
pub(crate) fn set_link(namespace: &str, state: &str) -> anyhow::Result<()> {
    run("ip", &["link", "set", &outer(namespace), state])
}

/// The bridge's end of a node's cable.
fn outer(namespace: &str) -> String {
    format!("to-{namespace}")
}

/// Makes a node's namespace, and ties it to the bridge.
pub(crate) async fn make_node(namespace: &str, address: &str) -> anyhow::Result<()> {
    let outer = outer(namespace);
    run("ip", &["netns", "add", namespace])?;
    run("ip", &["-n", namespace, "link", "set", "lo", "up"])?;
    run("ip", &["link", "add", &outer, "type", "veth", "peer", "name", "eth0", "netns", namespace])?;
    run("ip", &["link", "set", &outer, "master", "bridge"])?;
    run("ip", &["link", "set", &outer, "up"])?;
    run("ip", &["-n", namespace, "addr", "add", &format!("{address}/24"), "dev", "eth0"])?;
    run("ip", &["-n", namespace, "link", "set", "eth0", "up"])?;
    rules(Some(namespace), TABLE).await
}

/// Adds rules, in a node's namespace or in the bridge's.
pub(crate) async fn rules(namespace: Option<&str>, rules: &str) -> anyhow::Result<()> {
    let mut nft = match namespace {
        Some(namespace) => inside(namespace, "nft"),
        None => Command::new("nft"),
    };
    nft.args(["-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut nft = nft.spawn()?;
    if let Some(mut input) = nft.stdin.take() {
        input.write_all(rules.as_bytes()).await?;
    }
    let output = nft.wait_with_output().await?;
    ensure!(output.status.success(), "nft refused {rules:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// Takes every cut away.
pub(crate) async fn heal(namespace: Option<&str>) -> anyhow::Result<()> {
    rules(namespace, "flush chain inet chaos input\nflush chain inet chaos output").await
}

/// A program inside a node. `ip netns exec` becomes the program, so its process is the one that is started.
pub(crate) fn inside(namespace: &str, program: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace, program]);
    command
}

/// A program inside a node, as PostgreSQL's user: none of this software runs as root.
pub(crate) fn as_postgres(namespace: Option<&str>) -> Command {
    let mut command = match namespace {
        Some(namespace) => inside(namespace, "setpriv"),
        None => Command::new("setpriv"),
    };
    command.args(["--reuid", "postgres", "--regid", "postgres", "--init-groups"]);
    command
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("LC_ALL", "C.UTF-8")
        .env("HOME", "/run");
    command
}
