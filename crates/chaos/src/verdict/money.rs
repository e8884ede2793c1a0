//! The provider's books against ours: what was taken is what was sold, and nothing is set aside any more.

use std::collections::{BTreeMap, HashSet};

use anyhow::Context;
use serde_json::Value;

use super::Verdict;
use crate::sale::Shop;

pub(super) async fn check(
    shop: &Shop,
    orders: &BTreeMap<String, Value>,
    known: &HashSet<String>,
    verdict: &mut Verdict,
) -> anyhow::Result<()> {
    let ledger = shop.books.get("/_sim/ledger").await.ok(200)?;
    let entries = ledger["orders"].as_array().context("orders")?;
    let mut paid = HashSet::new();
    for entry in entries {
        let order_id = entry["order_id"].as_str().unwrap_or("unnamed");
        paid.insert(order_id);
        let [authorised, captured, voided, refunded] = ["authorised", "captured", "voided", "refunded"]
            .map(|member| entry[member].as_i64().unwrap_or(-1));
        let Some(order) = orders.get(order_id) else {
            // An object without money may be left of an order that was begun, shown to a worker, and lost with its node. It is
            // never confirmed, since that comes after a commit of its own.
            let has_money = [authorised, captured, voided, refunded] != [0; 4];
            if !known.contains(order_id) && has_money {
                verdict.wrong.push(format!("the provider has an order that nobody was told of: {entry}"));
            }
            continue;
        };
        let (kept, aside) = (captured - refunded, authorised - captured - voided);
        let wanted = match order["order_status"] == "CONFIRMED" {
            true => order["total_minor"].as_i64().unwrap_or(-1),
            false => 0,
        };
        if (kept, aside) != (wanted, 0) {
            verdict.wrong.push(format!("the books differ: ours {order}, the provider's {entry}"));
        }
    }
    let unpaid = orders
        .iter()
        .filter(|(id, order)| order["order_status"] == "CONFIRMED" && !paid.contains(id.as_str()));
    verdict
        .wrong
        .extend(unpaid.map(|(id, _)| format!("{id} is confirmed, and the provider has never heard of it")));
    Ok(())
}
