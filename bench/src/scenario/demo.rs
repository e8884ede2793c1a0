//! The demo: an arena from open to sold out and paid, with its crowd and a provider that fails.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, ensure};

use crate::report::{Must, Report};

use super::Setup;

pub(super) async fn run(setup: &Setup, report: &mut Report) -> anyhow::Result<()> {
    let begun = Instant::now();
    let demo = Command::new(&setup.onsale).arg("demo").output()?;
    ensure!(demo.status.success(), "the demo failed: {}", String::from_utf8_lossy(&demo.stderr));
    let text = String::from_utf8(demo.stdout)?;
    let figure = |name: &str| -> anyhow::Result<f64> {
        let line = text.lines().find(|line| line.contains(name)).with_context(|| format!("no `{name}`"))?;
        let cell = line.rsplit('┆').next().context("no cell")?;
        cell.trim_matches(['│', ' '])
            .split(' ')
            .next()
            .and_then(|figure| figure.parse().ok())
            .with_context(|| format!("no figure in {line}"))
    };
    let sold_out = figure("sold out after")?;
    report.add(
        "50,000 seats sold out",
        sold_out,
        "s",
        "paid, provider's faults injected",
        Some(Must::AtMost(120.0)),
    );
    report.add("and every payment closed, another", figure("every payment closed after")?, "s", "", None);
    report.add("demo, memory", figure("peak memory")?, "MiB", "server, provider and crowd", None);
    report.add("demo, all of it", begun.elapsed().as_secs_f64(), "s", "books compared, audit", None);
    Ok(())
}
