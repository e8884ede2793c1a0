//! The verdict: when a fault has healed and all work is done, everything that was acknowledged is looked for again.

mod answers;
mod database;
mod holds;
mod money;
mod orders;
mod unknown;

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::sale::{Event, Ledger, Request, Shop, is_settled};
use crate::wait::until;

/// Longer than the application leaves alone what a process had begun that is gone, and its longest pause between questions.
const DRAIN: Duration = Duration::from_secs(120);

/// What was found.
#[derive(Default)]
pub(crate) struct Verdict {
    /// Requests that ended without an answer: those that had been done, and those that had not.
    pub(crate) done: usize,
    pub(crate) not_done: usize,
    /// Answers that were none: 503, and nothing at all.
    pub(crate) unavailable: usize,
    pub(crate) unanswered: usize,
    /// Acknowledged and not there.
    pub(crate) lost: Vec<String>,
    /// Seats in two confirmed orders.
    pub(crate) twice: Vec<String>,
    /// Whatever else is not as it must be.
    pub(crate) wrong: Vec<String>,
}

impl Verdict {
    pub(crate) fn is_good(&self) -> bool {
        self.lost.is_empty() && self.twice.is_empty() && self.wrong.is_empty()
    }
}

/// Judges event after event, and remembers what it has judged.
#[derive(Default)]
pub(crate) struct Judge {
    /// Orders of events that were judged.
    known: HashSet<String>,
    judged: Vec<(Event, BTreeMap<String, Value>)>,
}

impl Judge {
    /// Judges an event's sale. Everything must be healed, and nobody may be shopping.
    pub(crate) async fn judge(
        &mut self,
        shop: &mut Shop,
        event: &Event,
        ledger: &Ledger,
    ) -> anyhow::Result<Verdict> {
        let mut verdict = Verdict::default();
        shop.all_run()?;
        unknown::resolve(shop, ledger, &mut verdict).await?;
        answers::check(ledger, &mut verdict);
        let accounts = by_account(ledger.requests());
        drain(shop, &accounts).await?;
        holds::check(shop, &accounts, &mut verdict).await?;
        let orders = orders::check(shop, ledger, &accounts, &mut verdict).await?;
        orders::check_sums(shop, event, &orders, &mut verdict).await?;
        self.known.extend(orders.keys().cloned());
        money::check(shop, &orders, &self.known, &mut verdict).await?;
        self.judged.push((event.clone(), orders));
        if shop.has_database() {
            let all = self.judged.iter().flat_map(|(_, orders)| orders.values());
            let confirmed = all.filter(|order| order["order_status"] == "CONFIRMED").count();
            database::check(confirmed, &mut verdict).await?;
        }
        if let Err(error) = shop.audit().await {
            verdict.wrong.push(format!("{error:#}"));
        }
        Ok(verdict)
    }

    /// At the end, everything once more: what a later fault has done to an earlier sale.
    pub(crate) async fn judge_all_again(&self, shop: &Shop) -> anyhow::Result<Vec<String>> {
        let mut verdict = Verdict::default();
        for (event, orders) in &self.judged {
            orders::check_kept(shop, orders, &mut verdict).await?;
            orders::check_sums(shop, event, orders, &mut verdict).await?;
        }
        Ok([verdict.lost, verdict.twice, verdict.wrong].concat())
    }
}

/// All that an account has asked for: one hold, and what was done with it.
type Accounts = BTreeMap<String, Vec<Request>>;

fn by_account(requests: Vec<Request>) -> Accounts {
    let mut accounts = Accounts::new();
    for request in requests {
        accounts.entry(request.account.clone()).or_default().push(request);
    }
    accounts
}

/// Waits until no payment is under way and no case is open.
async fn drain(shop: &Shop, accounts: &Accounts) -> anyhow::Result<()> {
    let operator = &shop.processes[0].operator;
    let mut open: Vec<String> = orders::named(accounts).into_keys().collect();
    let look = async || {
        let mut still = Vec::new();
        for order_id in &open {
            let order = operator.get(&format!("/v1/orders/{order_id}")).await;
            // One that isn't there is not waited for; it is missed later.
            if order.status() == 503
                || order.status() == 0
                || order.status() == 200 && !is_settled(order.body())
            {
                still.push(order_id.clone());
            }
        }
        open = still;
        ensure!(open.is_empty(), "{} orders are open, such as {}", open.len(), open[0]);
        let cases = operator.get("/v1/reconciliation/cases?status=OPEN").await.ok(200)?;
        let cases = cases["cases"].as_array().context("cases")?;
        ensure!(cases.is_empty(), "{} cases are open, such as {}", cases.len(), cases[0]);
        Ok(())
    };
    until("all payments have ended", DRAIN, look).await
}
