//! Requests that nobody answered. Asked again with the same key they get the truth, and it is what the database has.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::ensure;

use super::{Verdict, database};
use crate::sale::{Asking, Ledger, Request, Shop};
use crate::wait::until;

/// The service is healed: an answer comes soon.
const LIMIT: Duration = Duration::from_secs(60);

pub(super) async fn resolve(shop: &Shop, ledger: &Ledger, verdict: &mut Verdict) -> anyhow::Result<()> {
    // What was sent may still be under way: it is decided or dropped within this, and the database looked at after it.
    crate::wait::let_last(Duration::from_secs(6)).await;
    let rows = if shop.has_database() { Some(database::by_account().await?) } else { None };
    let requests = ledger.requests();
    // A row tells of this request and of no other: a second attempt to pay has the first one's order.
    let has_order = |request: &&Request| request.decision().is_some_and(|said| said.status() == 202);
    let with_order: HashSet<String> =
        requests.iter().filter(has_order).map(|request| request.account.clone()).collect();
    let row_tells = |request: &Request| match request.asking {
        Asking::Hold => true,
        Asking::Checkout => !with_order.contains(&request.account),
        Asking::Release => false,
    };
    for (number, request) in requests.iter().enumerate() {
        let before = rows.as_ref().map(|rows| rows.count(request.asking, &request.account));
        if request.is_refused() && !request.answers.is_empty() {
            // "Nothing was done" is a promise too; of an order it says nothing, since another attempt may have made it.
            if request.asking == Asking::Hold && before.is_some_and(|count| count > 0) {
                verdict.wrong.push(format!(
                    "{} key {} was refused and done: {:?}",
                    request.path, request.key, request.answers
                ));
            }
            continue;
        }
        if !request.is_unknown() {
            continue;
        }
        let process = number % shop.processes.len();
        let decision = async || {
            let said = request.send(&shop.processes[process].buyers).await;
            ledger.answer(number, process, &said);
            ensure!(said.is_decision(), "{said:?}");
            Ok(said)
        };
        let said = until(&format!("{} has an answer", request.path), LIMIT, decision).await?;
        let done = said.replayed() && said.status() < 300;
        match done {
            true => verdict.done += 1,
            false => verdict.not_done += 1,
        }
        if let Some(before) = before.filter(|_| row_tells(request))
            && done != (before > 0)
        {
            let there = if before > 0 { "was in the database" } else { "was not in the database" };
            verdict
                .wrong
                .push(format!("{} key {} {there}, and the answer is {said:?}", request.path, request.key));
        }
    }
    Ok(())
}
