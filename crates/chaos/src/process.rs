//! Processes: those started here, whose handle is kept, and those of a node, whose identity is looked at before each signal.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use crate::wait::until;

/// A process started here. Dropped, it is killed.
pub(crate) struct Held {
    name: String,
    child: Child,
    handle: OwnedFd,
    output: Option<ChildStdout>,
}

/// Where what a process prints goes.
pub(crate) enum Output<'a> {
    /// All of it to the end of this file.
    Log(&'a Path),
    /// Standard output to whoever started it, the rest to the end of this file.
    Read(&'a Path),
}

impl Held {
    /// Starts a program, in a process group of its own.
    pub(crate) fn start(name: &str, command: &mut Command, output: Output) -> anyhow::Result<Held> {
        let (Output::Log(log) | Output::Read(log)) = output;
        let log = File::options().create(true).append(true).open(log);
        let log = log.with_context(|| format!("failed to open the log of {name}"))?;
        command.stdin(Stdio::null()).process_group(0).kill_on_drop(true);
        match output {
            Output::Log(_) => command.stdout(log.try_clone()?),
            Output::Read(_) => command.stdout(Stdio::piped()),
        };
        let mut child = command.stderr(log).spawn().with_context(|| format!("failed to start {name}"))?;
        let id = child.id().and_then(|id| Pid::from_raw(id as i32)).context("a child has an id")?;
        let handle = pidfd_open(id, PidfdFlags::empty())?;
        let output = child.stdout.take();
        Ok(Held { name: name.to_owned(), child, handle, output })
    }

    /// What it prints, once.
    pub(crate) fn output(&mut self) -> Option<ChildStdout> {
        self.output.take()
    }

    pub(crate) fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        pidfd_send_signal(&self.handle, signal).with_context(|| format!("failed to signal {}", self.name))
    }

    /// Ends it at once.
    pub(crate) async fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill().await.with_context(|| format!("failed to kill {}", self.name))
    }

    /// Asks it to end, and kills it when it doesn't.
    pub(crate) async fn stop(&mut self, patience: Duration) -> anyhow::Result<()> {
        // It may have ended already.
        self.signal(Signal::TERM).ok();
        match timeout(patience, self.child.wait()).await {
            Ok(ended) => ended.map(drop).with_context(|| format!("failed to wait for {}", self.name)),
            Err(_) => self.kill().await,
        }
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        self.child.try_wait().with_context(|| format!("failed to look at {}", self.name))
    }
}

/// A process not started here. The handle stays that of the same process even when its number is given to another.
pub(crate) struct Found {
    handle: OwnedFd,
    id: i32,
}

impl Found {
    /// The process with this number, if its working folder is this one. The look comes after the handle is there, so
    /// what was looked at is what will be signalled.
    pub(crate) fn working_in(id: i32, folder: &Path) -> anyhow::Result<Found> {
        let found = Found::open(id)?;
        let seen = std::fs::read_link(format!("/proc/{id}/cwd"));
        let seen = seen.with_context(|| format!("process {id} has no working folder"))?;
        ensure!(seen == folder, "process {id} works in {}, not in {}", seen.display(), folder.display());
        Ok(found)
    }

    /// The process with this number, if it is in this network namespace.
    fn inside(id: i32, namespace: &str) -> anyhow::Result<Found> {
        use std::os::unix::fs::MetadataExt as _;
        let found = Found::open(id)?;
        let place = |path: PathBuf| std::fs::metadata(path).map(|file| (file.dev(), file.ino()));
        let seen = place(format!("/proc/{id}/ns/net").into())?;
        ensure!(
            seen == place(Path::new("/run/netns").join(namespace))?,
            "process {id} is not in {namespace}"
        );
        Ok(found)
    }

    fn open(id: i32) -> anyhow::Result<Found> {
        let pid = Pid::from_raw(id).context("no process has the number 0")?;
        let handle =
            pidfd_open(pid, PidfdFlags::empty()).with_context(|| format!("there is no process {id}"))?;
        Ok(Found { handle, id })
    }

    pub(crate) fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        pidfd_send_signal(&self.handle, signal)
            .with_context(|| format!("failed to signal process {}", self.id))
    }

    /// Whether it has ended, reaped or not.
    pub(crate) fn has_ended(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id)).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
    }
}

/// All processes that work in a folder: a postmaster and those it has started.
pub(crate) fn all_working_in(folder: &Path) -> Vec<Found> {
    numbers().filter_map(|id| Found::working_in(id, folder).ok()).collect()
}

/// All processes of a node.
pub(crate) fn all_inside(namespace: &str) -> Vec<Found> {
    numbers().filter_map(|id| Found::inside(id, namespace).ok()).collect()
}

fn numbers() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Runs a short program that must succeed within a time; what it prints.
pub(crate) async fn said(
    program: &str,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    limit: Duration,
) -> anyhow::Result<String> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    let shown = format!("{:?}", command.as_std());
    let output =
        timeout(limit, command.output()).await.with_context(|| format!("{shown} took too long"))??;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{shown} ended with {}: {}", output.status, error.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Waits until a process has ended.
pub(crate) async fn gone(found: &Found) -> anyhow::Result<()> {
    let look = async || {
        ensure!(found.has_ended(), "it is there");
        Ok(())
    };
    until(&format!("process {} has ended", found.id), Duration::from_secs(10), look).await
}
