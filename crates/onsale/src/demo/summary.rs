//! What is printed at the end.

use std::collections::BTreeMap;
use std::time::Duration;

use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;

use super::after::After;
use super::books::{Found, OrderFound};
use super::measures::{Counted, Measures, Timed};
use super::mischief::is_fault;
use super::wire::{ProviderCallSeen, ReportSeen};

/// What there is to tell.
pub(super) struct Summary<'a> {
    pub(super) after: &'a After,
    pub(super) seats: usize,
    pub(super) sold_out_after: Duration,
    pub(super) settled_after: Duration,
    pub(super) measures: &'a Measures,
    pub(super) report: &'a ReportSeen,
    pub(super) found: &'a Found,
    pub(super) provider_log: &'a [ProviderCallSeen],
}

pub(super) fn print(summary: &Summary<'_>) {
    let Summary { after, seats, sold_out_after, settled_after, measures, report, found, provider_log } =
        summary;
    let seconds = sold_out_after.as_secs_f64();
    let rate = |what| format!("{:.0}", measures.counted(what) as f64 / seconds);
    let expired = found.holds.values().filter(|hold| hold.status == "EXPIRED").count()
        + found.orders.values().filter(|order| order.order_status == "EXPIRED").count();
    let mut rows = vec![
        ("sold out after".to_owned(), format!("{seconds:.2} s")),
        ("every payment closed after another".to_owned(), format!("{:.2} s", settled_after.as_secs_f64())),
        (
            "every ticket made after another".to_owned(),
            format!("{:.2} s", after.ticketed_after.as_secs_f64()),
        ),
        ("seats sold per second".to_owned(), format!("{:.0}", *seats as f64 / seconds)),
        ("holds per second".to_owned(), rate(Counted::Holds)),
        ("checkouts per second".to_owned(), rate(Counted::Checkouts)),
        ("confirmed orders".to_owned(), report.orders.to_string()),
        ("gross".to_owned(), format!("EUR {}.{:02}", report.gross_minor / 100, report.gross_minor % 100)),
    ];
    rows.extend(Counted::ALL.map(|(what, name)| (name.to_owned(), measures.counted(what).to_string())));
    rows.extend([
        ("tickets made".to_owned(), after.tickets.to_string()),
        ("orders refunded, whole or in part".to_owned(), after.refunds.to_string()),
        ("seats sold again".to_owned(), after.resold.to_string()),
        ("let in at the gate".to_owned(), after.admitted.to_string()),
        ("turned away at the gate".to_owned(), after.turned_away.to_string()),
    ]);
    rows.push(("holds expired".to_owned(), expired.to_string()));
    for (code, count) in measures.refusals() {
        rows.push((format!("refused: {code}"), count.to_string()));
    }
    rows.extend(faults(provider_log, found));
    if let Some(peak_mib) = peak_rss_mib() {
        rows.push(("peak memory, buyers and all".to_owned(), format!("{peak_mib} MiB")));
    }
    let mut figures = Table::new();
    figures.load_style(UTF8_FULL_CONDENSED).set_header(["", "figure"]);
    for (name, figure) in rows {
        figures.add_row([name, figure]);
    }
    println!("{figures}\n{}", latencies(measures));
}

fn latencies(measures: &Measures) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_header(["latency, ms", "answers", "p50", "p99", "max"]);
    for (what, name) in Timed::ALL {
        let latency = measures.latency(what);
        let ms = |micros: u64| format!("{:.2}", micros as f64 / 1_000.0);
        let quantile = |quantile| ms(latency.value_at_quantile(quantile));
        table.add_row([
            name.to_owned(),
            latency.len().to_string(),
            quantile(0.5),
            quantile(0.99),
            ms(latency.max()),
        ]);
    }
    table
}

/// The provider's faults by kind, and how many of their orders are closed all the same.
fn faults(log: &[ProviderCallSeen], found: &Found) -> Vec<(String, String)> {
    let mut kinds: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for call in log.iter().filter(|call| is_fault(&call.outcome)) {
        let order = call.order_id.as_ref().and_then(|order| found.orders.get(order));
        let (met, closed) = kinds.entry(call.outcome.as_str()).or_default();
        *met += 1;
        *closed += usize::from(order.is_some_and(OrderFound::is_closed));
    }
    let row =
        |(kind, (met, closed))| (format!("provider: {kind}"), format!("{met}, of which resolved {closed}"));
    kinds.into_iter().map(row).collect()
}

/// The most memory this process has had, where the system tells.
fn peak_rss_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1_024)
}
