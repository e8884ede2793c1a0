//! `onsale import` and `onsale bowl`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use onsale_core::command::{Command, Outcome};
use onsale_core::id::EventId;

use crate::bowl;
use crate::manifest_import::{self, At, Format};

use super::offline::Offline;
use super::{DataArgs, say};

#[derive(clap::Args)]
pub(crate) struct ImportArgs {
    #[command(flatten)]
    data: DataArgs,
    /// Only check the file; no event and no database are needed
    #[arg(long, conflicts_with = "event")]
    check: bool,
    /// Make seat ids unique by their zone
    #[arg(long)]
    prefix_zones: bool,
    /// Which event
    #[arg(long, required_unless_present = "check")]
    event: Option<EventId>,
    /// A pretix seating plan or our own JSON (.json), or our CSV (.csv)
    file: PathBuf,
}

/// Imports all or nothing. Every fault is printed, and the exit status is 1.
pub(crate) fn run(args: ImportArgs) -> anyhow::Result<ExitCode> {
    let format = match args.file.extension().and_then(|extension| extension.to_str()) {
        Some("json") => Format::Json,
        Some("csv") => Format::Csv,
        _ => bail!("{} must end in .json or .csv", args.file.display()),
    };
    let bytes =
        std::fs::read(&args.file).with_context(|| format!("failed to read {}", args.file.display()))?;
    let imported = match manifest_import::import(format, &bytes, args.prefix_zones) {
        Ok(imported) => imported,
        Err(faults) => {
            for fault in &faults {
                match &fault.at {
                    At::Pointer(pointer) => eprintln!("{pointer}: {}", fault.detail),
                    At::Line(line) => eprintln!("line {line}: {}", fault.detail),
                }
            }
            eprintln!("onsale: {} has {} faults; nothing was changed", args.file.display(), faults.len());
            return Ok(ExitCode::FAILURE);
        }
    };
    imported.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
    let (seats, areas) = (imported.manifest.seats.len(), imported.manifest.ga_areas.len());
    let Some(id) = args.event else {
        say(format_args!("{} is good: {seats} seats, {areas} standing areas", args.file.display()))?;
        return Ok(ExitCode::SUCCESS);
    };
    let offline = Offline::open(args.data)?;
    offline.event(id)?;
    let manifest = Arc::new(imported.manifest);
    match offline.decide(Command::ReplaceManifest { event: id.event(), manifest })? {
        Outcome::ManifestReplaced { version } => {
            say(format_args!("{id}: {seats} seats, {areas} standing areas, manifest version {version}"))?;
            Ok(ExitCode::SUCCESS)
        }
        other => bail!("unexpected: {other:?}"),
    }
}

#[derive(clap::Args)]
pub(crate) struct BowlArgs {
    /// How many seats
    #[arg(long, default_value_t = 50_000, value_parser = clap::value_parser!(u32).range(1..=1_200_000))]
    seats: u32,
    /// What it looks like; the same seed makes the same stadium
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(crate) fn bowl(args: BowlArgs) -> anyhow::Result<()> {
    let manifest = bowl::generate(args.seats as usize, args.seed);
    say(bowl::to_pretix_json(&manifest))?;
    Ok(())
}
