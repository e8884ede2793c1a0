//! The database itself, asked beside the application: as a bystander would read it.

use std::collections::HashMap;

use anyhow::Context;

use super::Verdict;
use crate::cluster::ask_proxy;
use crate::sale::Asking;

const HOLDS_BY_ACCOUNT: &str = "SELECT account_id, count(*) FROM holds GROUP BY account_id";
const ORDERS_BY_ACCOUNT: &str = "SELECT account_id, count(*) FROM orders GROUP BY account_id";
/// Seats that two confirmed orders claim, by the lists in their holds.
const SOLD_TWICE: &str = "SELECT h.event_no, seat, count(*) FROM orders o JOIN holds h ON h.hold_id = o.hold_id \
     CROSS JOIN LATERAL jsonb_array_elements_text(h.seats::jsonb) AS seat \
     WHERE o.status = 'CONFIRMED' GROUP BY 1, 2 HAVING count(*) > 1";
/// Seats that are sold to an order that isn't confirmed, or confirmed orders that have not all their seats.
const SOLD_TO_NOBODY: &str = "SELECT s.event_no, s.ordinal FROM seats s LEFT JOIN orders o ON o.order_id = s.order_id \
     WHERE s.status = 2 AND o.status IS DISTINCT FROM 'CONFIRMED'";
/// Nothing but seats is sold here, and none is given back: each ticket is a seat.
const SEATS_MISSING: &str = "SELECT o.event_no, o.account_id FROM orders o WHERE o.status = 'CONFIRMED' AND o.ticket_count <> \
     (SELECT count(*) FROM seats s WHERE s.event_no = o.event_no AND s.order_id = o.order_id)";
const CONFIRMED: &str = "SELECT count(*) FROM orders WHERE status = 'CONFIRMED'";

/// How many rows each account has.
pub(super) struct Rows {
    holds: HashMap<String, usize>,
    orders: HashMap<String, usize>,
}

impl Rows {
    pub(super) fn count(&self, asking: Asking, account: &str) -> usize {
        let rows = match asking {
            Asking::Hold | Asking::Release => &self.holds,
            Asking::Checkout => &self.orders,
        };
        rows.get(account).copied().unwrap_or_default()
    }
}

pub(super) async fn by_account() -> anyhow::Result<Rows> {
    Ok(Rows { holds: counts(HOLDS_BY_ACCOUNT).await?, orders: counts(ORDERS_BY_ACCOUNT).await? })
}

async fn counts(statement: &str) -> anyhow::Result<HashMap<String, usize>> {
    let text = ask_proxy(statement).await?;
    let row = |line: &str| {
        let (account, count) = line.rsplit_once('|').context("two columns")?;
        Ok((account.to_owned(), count.parse()?))
    };
    text.lines().map(row).collect()
}

/// Asks for what must not be there, and counts what must.
pub(super) async fn check(confirmed: usize, verdict: &mut Verdict) -> anyhow::Result<()> {
    let stored = ask_proxy(CONFIRMED).await?;
    if stored != confirmed.to_string() {
        verdict
            .wrong
            .push(format!("the database has {stored} confirmed orders, and {confirmed} were acknowledged"));
    }
    let twice = ask_proxy(SOLD_TWICE).await?;
    verdict.twice.extend(twice.lines().map(|row| format!("by the database: {row}")));
    for (statement, what) in
        [(SOLD_TO_NOBODY, "sold without an order"), (SEATS_MISSING, "confirmed without its seats")]
    {
        let rows = ask_proxy(statement).await?;
        verdict.wrong.extend(rows.lines().map(|row| format!("by the database, {what}: {row}")));
    }
    Ok(())
}
