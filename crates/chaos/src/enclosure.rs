//! Where it all happens: namespaces of its own for the network, processes, mounts and shared memory, made by `unshare` and
//! gone with its first process, whatever becomes of that. So a run needs no address, port or folder of the machine, and
//! leaves nothing: not even a run that is killed.
//!
//! Three processes stand behind each other. [`enter`] stays outside, hands signals on by ending it all, and keeps the logs.
//! [`init`] is the first process inside: it reaps whatever loses its parent. The runner is its child.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use anyhow::{Context, bail, ensure};
use rustix::process::{Signal, WaitOptions, getpid, set_parent_process_death_signal, wait};
use tokio::signal::unix::{SignalKind, signal};

/// The folder of a run, on a file system in memory that only the enclosure sees.
pub(crate) const FOLDER: &str = "/run/onsale-chaos";

/// Tells this program which of the three it is.
const PART: &str = "ONSALE_CHAOS_PART";

/// The processes of one program.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Part {
    Outside,
    Init,
    Runner,
}

impl Part {
    pub(crate) fn this() -> Part {
        match std::env::var(PART).as_deref() {
            Ok("init") => Part::Init,
            Ok("runner") => Part::Runner,
            _ => Part::Outside,
        }
    }
}

/// Runs this program once more, with the same arguments, inside; ends when that does. A signal that stops this process
/// stops everything inside, and so does its death.
pub(crate) async fn enter() -> anyhow::Result<ExitCode> {
    ensure!(
        rustix::process::geteuid().is_root(),
        "network namespaces and file systems in memory are made by root alone: run it as root"
    );
    // Listened to before anything is started.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut unshare = tokio::process::Command::new("setpriv");
    // Whoever kills this process kills `unshare` with it, and that kills the first process inside, and that all others.
    unshare.args(["--pdeathsig", "KILL", "unshare", "--mount", "--net", "--ipc", "--pid", "--fork"]);
    unshare.args(["--kill-child=KILL", "--mount-proc", "--"]);
    unshare.arg(std::env::current_exe()?).args(std::env::args_os().skip(1)).env(PART, "init");
    // In a group of its own: the keyboard's interrupt comes here alone.
    unshare.process_group(0).stdin(Stdio::null()).kill_on_drop(true);
    let mut inside = unshare.spawn().context("failed to start `unshare` (of util-linux)")?;
    tokio::select! {
        ended = inside.wait() => Ok(code(ended?)),
        _ = terminate.recv() => stop(&mut inside, SignalKind::terminate()).await,
        _ = interrupt.recv() => stop(&mut inside, SignalKind::interrupt()).await,
    }
}

async fn stop(inside: &mut tokio::process::Child, by: SignalKind) -> anyhow::Result<ExitCode> {
    inside.kill().await?;
    eprintln!("chaos: stopped; everything that was started has ended");
    Ok(ExitCode::from(128u8.saturating_add(by.as_raw_value() as u8)))
}

fn code(status: ExitStatus) -> ExitCode {
    status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// The first process inside: starts the runner, takes in whatever has lost its parent, and ends with the runner.
pub(crate) fn init() -> anyhow::Result<ExitCode> {
    ensure!(getpid().as_raw_nonzero().get() == 1, "{PART} is set outside of an enclosure");
    let runner = Command::new(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .env(PART, "runner")
        .process_group(0)
        .spawn()
        .context("failed to start the runner")?;
    loop {
        let Some((pid, status)) = wait(WaitOptions::empty())? else { continue };
        if pid.as_raw_nonzero().get() as u32 == runner.id() {
            let code = status.exit_status().and_then(|code| u8::try_from(code).ok());
            return Ok(code.map_or(ExitCode::FAILURE, ExitCode::from));
        }
    }
}

/// What the runner does first: the enclosure's own places for namespaces, shared memory, and the folder of the run. What
/// is mounted here is mounted for the enclosure alone.
pub(crate) fn furnish(kept: &Path) -> anyhow::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    std::fs::create_dir_all(kept).with_context(|| format!("failed to make {}", kept.display()))?;
    run("mount", &["-t", "tmpfs", "-o", "mode=0755", "onsale-chaos", "/run"])?;
    run("mount", &["-t", "tmpfs", "-o", "mode=1777", "onsale-chaos", "/dev/shm"])?;
    std::fs::create_dir(FOLDER).with_context(|| format!("failed to make {FOLDER}"))?;
    run("ip", &["link", "set", "lo", "up"])
}

/// Runs a short program that must succeed.
pub(crate) fn run(program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let shown = format!("{program} {}", arguments.join(" "));
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("failed to start `{shown}`"))?;
    if !output.status.success() {
        bail!("`{shown}` ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
