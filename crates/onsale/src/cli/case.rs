//! `onsale case`: the questions about money, on the database itself.

use anyhow::{Context, ensure};
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{ContentArrangement, Table};
use onsale_core::command::Command;
use onsale_core::id::CaseId;
use onsale_core::limits::{NOTE_BYTES_MAX, is_note};
use onsale_core::reconcile::CaseStatus;
use onsale_store::{Clock, Named, StoreError};

use crate::http::cases::{ACTIONS, action_of, case_json, event_id};

use super::offline::Offline;
use super::{DataArgs, say};

/// Cases shown in a list: the open ones first, the oldest first.
const SHOWN_MAX: u32 = 1_000;
/// Who acts, where there is no key to name.
const ACTOR: &str = "command line";

#[derive(clap::Args)]
pub(crate) struct CaseArgs {
    #[command(flatten)]
    data: DataArgs,
    #[command(subcommand)]
    command: CaseCommand,
}

#[derive(clap::Subcommand)]
enum CaseCommand {
    /// List cases, the oldest first
    List {
        /// Closed ones too
        #[arg(long)]
        all: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show a case as JSON
    Show {
        /// Its id
        case: CaseId,
    },
    /// Act on a case; money that is asked back closes it only by the provider's proof
    Resolve {
        /// Its id
        case: CaseId,
        /// What to do
        #[arg(long, value_parser = ACTIONS)]
        action: String,
        /// Why; it is kept
        #[arg(long)]
        note: String,
    },
}

pub(crate) fn run(args: CaseArgs) -> anyhow::Result<()> {
    let offline = Offline::open(args.data)?;
    match args.command {
        CaseCommand::List { all, json } => list(&offline, all, json),
        CaseCommand::Show { case } => show(&offline, case),
        CaseCommand::Resolve { case, action, note } => {
            let action = action_of(&action).context("the action is one of those listed")?;
            ensure!(is_note(&note), "--note must say why, in at most {NOTE_BYTES_MAX} bytes");
            offline.decide(Command::ResolveCase { case, action, note, actor: ACTOR.to_owned() })?;
            show(&offline, case)
        }
    }
}

fn list(offline: &Offline, all: bool, json: bool) -> anyhow::Result<()> {
    let status = (!all).then_some(CaseStatus::Open);
    let mut cases = Vec::new();
    for home in offline.homes.all() {
        let read = home.store.read(|reader| {
            let cases = reader.cases(status, SHOWN_MAX)?.into_iter();
            cases.map(|case| Ok((event_id(reader, &case)?, case))).collect::<Result<Vec<_>, StoreError>>()
        });
        cases.extend(read?);
    }
    cases.sort_by_key(|(_, case)| (case.status != CaseStatus::Open, case.opened_at, case.id));
    cases.truncate(SHOWN_MAX as usize);
    let now = offline.clock.now();
    if json {
        let cases: Vec<_> = cases.into_iter().map(|(event, case)| case_json(case, event, now)).collect();
        say(serde_json::to_string(&cases)?)?;
        return Ok(());
    }
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["case", "kind", "status", "age", "about", "evidence"]);
    for (_, case) in &cases {
        let about = case.order.map(|order| order.to_string()).or(case.subject.clone()).unwrap_or_default();
        let age = format!("{} s", now.since_ms(case.opened_at).max(0) / 1_000);
        let (id, status) = (case.id.to_string(), case.status.word());
        table.add_row([id.as_str(), case.kind.as_str(), status, &age, &about, &case.evidence]);
    }
    say(format_args!("{table}\n{} cases", cases.len()))?;
    Ok(())
}

fn show(offline: &Offline, id: CaseId) -> anyhow::Result<()> {
    let read = offline
        .home(id.event())?
        .store
        .read(|reader| reader.case(id)?.map(|case| Ok((event_id(reader, &case)?, case))).transpose());
    let (event, case) = read?.with_context(|| format!("there is no case {id}"))?;
    say(serde_json::to_string(&case_json(case, event, offline.clock.now()))?)?;
    Ok(())
}
