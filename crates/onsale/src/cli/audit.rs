//! `onsale audit` and `onsale backup`, on a live or a stopped database.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{ContentArrangement, Table};
use onsale_store::{Audit, Clock};

use crate::audits;
use crate::clock::ServerClock;

use super::{DataArgs, say};

#[derive(clap::Args)]
pub(crate) struct AuditArgs {
    #[command(flatten)]
    data: DataArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn audit(args: AuditArgs) -> anyhow::Result<ExitCode> {
    let (settings, now) = (args.data.settings()?, ServerClock::system().now());
    let mut audits = Vec::new();
    for (name, url) in settings.database.homes() {
        let audit = match url {
            Some(url) => onsale_store::audit_url(name, url, now),
            None => onsale_store::audit_folder(&settings.data, now),
        };
        audits.push((name.into(), audit.with_context(|| format!("failed to audit the home {name}"))?));
    }
    let audit = audits::together(audits);
    if args.json {
        say(audits::to_json(&audit))?;
    } else {
        print(&audit)?;
    }
    Ok(if audit.violations() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints an audit: a line when all is well, else a table of what is wrong.
pub(crate) fn print(audit: &Audit) -> std::io::Result<()> {
    if audit.violations() == 0 {
        return say(format_args!("audit: {} invariants hold", audit.checks.len()));
    }
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["invariant", "broken", "what must hold", "where"]);
    for check in audit.checks.iter().filter(|check| check.violations > 0) {
        let (broken, rows) = (check.violations.to_string(), check.rows.join("\n"));
        table.add_row([check.id, broken.as_str(), check.title, rows.as_str()]);
    }
    say(format_args!("{table}\naudit: {} violations", audit.violations()))
}

#[derive(clap::Args)]
pub(crate) struct BackupArgs {
    #[command(flatten)]
    data: DataArgs,
    /// The file to make; it must not exist
    to: PathBuf,
}

pub(crate) fn backup(args: BackupArgs) -> anyhow::Result<()> {
    let settings = args.data.settings()?;
    ensure!(
        settings.database.url.is_empty(),
        "this installation's database is on a PostgreSQL server, which is backed up with its own tools (pg_basebackup and \
         archived WAL, or pg_dump): `onsale backup` copies the embedded file"
    );
    ensure!(!args.to.exists(), "{} exists already", args.to.display());
    onsale_store::backup_folder(&settings.data, &args.to)?;
    say(format_args!("copied to {}", args.to.display()))?;
    Ok(())
}
