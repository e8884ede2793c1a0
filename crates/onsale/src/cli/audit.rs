//! `onsale audit` and `onsale backup`, on a live or a stopped database.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::ensure;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{ContentArrangement, Table};
use onsale_store::{Audit, Clock};
use serde_json::json;

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
    let audit = onsale_store::audit_folder(&args.data.data, ServerClock::system().now())?;
    if args.json {
        let checks: Vec<_> = audit
            .checks
            .iter()
            .map(|check| json!({ "id": check.id, "title": check.title, "violations": check.violations, "rows": check.rows }))
            .collect();
        say(json!({ "checks": checks, "violations": audit.violations() }))?;
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
    ensure!(!args.to.exists(), "{} exists already", args.to.display());
    onsale_store::backup_folder(&args.data.data, &args.to)?;
    say(format_args!("copied to {}", args.to.display()))?;
    Ok(())
}
