//! `onsale demo`.

use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct DemoArgs {}

pub(crate) fn run(_: DemoArgs) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not yet")
}
