//! From a hold to a paid order. The provider is the simulator, in the server's process: its work is in the figures too.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use crate::client::{Answer, write_request};
use crate::hall::{shuffled_groups, wish};
use crate::load::{self, Measured};
use crate::report::Report;
use crate::server::Server;

use super::Setup;

/// Rows of the hall.
const ROWS: usize = 2_000;
/// Holds that are paid for.
const HOLDS: usize = 10_000;
/// An account with its hold or order.
type Owned = Vec<(u64, String)>;
/// Payments that take longer than this have come to a halt.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two looks at how far the payments are.
const LOOK: Duration = Duration::from_millis(50);

pub(super) async fn run(setup: &Setup, report: &mut Report) -> anyhow::Result<()> {
    let server = Server::start(&setup.onsale).await?;
    let event = server.event(ROWS).await?;
    let placed = place(setup, &server, &event, HOLDS).await?;
    let begun = Instant::now();
    let (orders, measured) = accepted_orders(setup, &server, placed).await?;
    let accepted = orders.len() as f64 / begun.elapsed().as_secs_f64();
    let note = format!("{}; p99 {:.1} ms", measured.statuses(), measured.ms(Some(202), 0.99));
    report.add("checkouts accepted", accepted, "/s", note, None);
    let paid = loop {
        let line = format!("GET /v1/events/{event}/report");
        let seen = server.operator(&line, "application/json", "", 200).await?;
        let captured = seen["captured_minor"].as_i64().context("a report has captured_minor")?;
        if captured == 7_500 * orders.len() as i64 {
            break begun.elapsed();
        }
        ensure!(begun.elapsed() < PATIENCE, "only {captured} were captured of {} orders", orders.len());
        tokio::time::sleep(LOOK).await;
    };
    let note = "accepted, authorized, sold, captured; callbacks beside them";
    report.add("orders paid", orders.len() as f64 / paid.as_secs_f64(), "/s", note, None);
    report.add("memory, 10,000 orders", server.memory_mib()?, "MiB", "simulator in it", None);
    server.audit(&setup.onsale)
}

/// Places holds, one for each account.
pub(super) async fn place(
    setup: &Setup,
    server: &Server,
    event: &str,
    count: usize,
) -> anyhow::Result<Owned> {
    let mut groups = shuffled_groups(ROWS.min(count), setup.seed).into_iter().take(count);
    let line = format!("POST /v1/events/{event}/holds");
    let next = move || {
        let group = groups.next()?;
        Some((u64::from(group), line.clone(), wish(group)))
    };
    ask_all(setup, server, next, 201, "hold_id").await.map(|(owned, _)| owned)
}

/// Begins to pay for holds: the orders.
pub(super) async fn accepted_orders(
    setup: &Setup,
    server: &Server,
    holds: Owned,
) -> anyhow::Result<(Owned, Measured)> {
    let mut holds = holds.into_iter();
    let next = move || {
        let (account, hold) = holds.next()?;
        let line = format!("POST /v1/holds/{hold}/checkout");
        Some((account, line, r#"{"payment_method_token":"pm_card_visa"}"#.to_owned()))
    };
    ask_all(setup, server, next, 202, "order_id").await
}

/// Asks everything that `next` names, once; what each was answered, by account.
async fn ask_all(
    setup: &Setup,
    server: &Server,
    mut next: impl FnMut() -> Option<(u64, String, String)> + 'static,
    status: u16,
    member: &'static str,
) -> anyhow::Result<(Owned, Measured)> {
    let owned = Rc::new(RefCell::new(Owned::new()));
    let kept = Rc::clone(&owned);
    let mut asking = vec![0; setup.connections];
    let asker = move |index: usize, last: Option<Answer<'_>>, request: &mut Vec<u8>| {
        if let Some(id) =
            last.as_ref().filter(|last| last.status == status).and_then(|last| last.text(member))
        {
            kept.borrow_mut().push((asking[index], id.to_owned()));
        }
        let Some((account, line, body)) = next() else { return false };
        asking[index] = account;
        write_request(request, format_args!("{line}"), &Server::buyer_headers(account), &body);
        true
    };
    let measured = load::all(server.buyers, setup.connections, asker).await?;
    Ok((std::mem::take(&mut *owned.borrow_mut()), measured))
}
