//! `onsale reconcile`: the provider's books beside these, now, whether or not a server runs.

use std::process::ExitCode;

use anyhow::{Context, bail};
use serde_json::json;

use crate::clock::wall_seconds;
use crate::config::{PaymentSettings, Settings};
use crate::gateway::stripe::{Stripe, StripeConfig};
use crate::http::wire::parse_time;
use crate::reconcile::{Databases, Summary, schedule};
use crate::telemetry;

use super::offline::Offline;
use super::{DataArgs, say, serve};

#[derive(clap::Args)]
pub(crate) struct ReconcileArgs {
    #[command(flatten)]
    data: DataArgs,
    /// Payments made from here on: a time in RFC 3339, or 90m, 36h, 7d ago [default: the settings' reconcile.overlap_s]
    #[arg(long, value_parser = seconds_ago)]
    since: Option<i64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Exit status 1 says that differences remain: each is an open case.
pub(crate) fn reconcile(args: ReconcileArgs) -> anyhow::Result<ExitCode> {
    let settings = args.data.settings()?;
    telemetry::start(&settings.log.level)?;
    let provider = provider(&settings)?;
    let offline = Offline::with(&settings)?;
    let books = Databases { homes: offline.homes, clock: offline.clock };
    let to_s = schedule::provider_now_s();
    let from_s = to_s - args.since.unwrap_or(settings.reconcile.overlap_s).max(1);
    let compare = async {
        // In a task of its own: it blocks where a database is read.
        tokio::spawn(async move { schedule::now(&books, &provider, from_s, to_s).await }).await
    };
    let found = serve::runtime()?.block_on(compare)?.context("the comparison has not come to its end")?;
    match args.json {
        true => say(json!({ "found": found, "differences_remain": !found.is_clean() }))?,
        false => say(text(&found))?,
    }
    Ok(if found.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn text(found: &Summary) -> String {
    let Summary { looked_at, agreed, behind, differs, dismissed, cases_opened, cases_closed, .. } = found;
    let mut text = format!(
        "{looked_at} payments: {agreed} agree, {behind} were brought in, {differs} differ ({cases_opened} cases are new, \
         {cases_closed} are settled)"
    );
    for (count, what) in [
        (*dismissed, "differ as somebody has already dismissed"),
        (found.strangers, "are none of ours, without money"),
        (found.overtaken, "moved while they were looked at"),
        (found.unreadable, "can't be understood: see the log"),
    ] {
        if count > 0 {
            text += &format!("\n{count} {what}");
        }
    }
    if *differs > 0 {
        text += "\n`onsale case list` has the differences";
    }
    text
}

fn provider(settings: &Settings) -> anyhow::Result<Stripe> {
    let PaymentSettings { base_url, secret_key, webhook_secrets, request_timeout_ms, .. } =
        settings.payment.clone();
    if secret_key.is_empty() {
        bail!(
            "no payment provider is configured: give the server's settings with --config, or ONSALE_PAYMENT_SECRET_KEY"
        );
    }
    Stripe::new(StripeConfig {
        base_url,
        secret_key,
        webhook_secrets,
        request_timeout_ms,
        connections_max: 1,
    })
}

/// `90m`, `36h`, `7d`, or a time in RFC 3339, as seconds before now.
fn seconds_ago(text: &str) -> Result<i64, String> {
    let unit = |unit: char, seconds: i64| {
        let count: i64 = text.strip_suffix(unit)?.parse().ok()?;
        count.checked_mul(seconds).filter(|seconds| *seconds > 0)
    };
    let span = unit('m', 60).or_else(|| unit('h', 3_600)).or_else(|| unit('d', 86_400));
    let since = parse_time(text).map(|at| wall_seconds() - at.millis().div_euclid(1_000));
    span.or(since.filter(|seconds| *seconds > 0))
        .ok_or_else(|| "must be a time of the past in RFC 3339, or a span such as 90m, 36h or 7d".to_owned())
}
