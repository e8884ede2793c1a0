//! Every order that was acknowledged is there, and where it was seen to be, or further. No seat is in two that are confirmed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};

use super::holds::{acknowledged, get_all};
use super::{Accounts, Verdict};
use crate::sale::{Asking, Event, Ledger, Shop};
use crate::wait::until;

/// Followers read the log within moments.
const FOLLOW: Duration = Duration::from_secs(20);

/// The orders that were named in answers, each with its hold.
pub(super) fn named(accounts: &Accounts) -> BTreeMap<String, Value> {
    let mut orders = BTreeMap::new();
    for requests in accounts.values() {
        let Some(hold) = acknowledged(requests) else { continue };
        for request in requests.iter().filter(|request| request.asking == Asking::Checkout) {
            if let Some(order_id) = request.decision().and_then(|said| said.body()["order_id"].as_str()) {
                orders.insert(order_id.to_owned(), hold.clone());
            }
        }
    }
    orders
}

/// The orders as they are now.
pub(super) async fn check(
    shop: &Shop,
    ledger: &Ledger,
    accounts: &Accounts,
    verdict: &mut Verdict,
) -> anyhow::Result<BTreeMap<String, Value>> {
    let orders = named(accounts);
    let paths: Vec<String> = orders.keys().map(|order_id| format!("/v1/orders/{order_id}")).collect();
    let mut now = BTreeMap::new();
    for (number, process) in shop.processes.iter().enumerate() {
        for (said, (order_id, hold)) in get_all(&process.operator, &paths).await?.into_iter().zip(&orders) {
            let order = said.body();
            match said.status() {
                200 if (&order["hold_id"], &order["seats"]) == (&hold["hold_id"], &hold["seats"]) => {
                    now.insert(order_id.clone(), order.clone());
                }
                200 => verdict.wrong.push(format!("process {number}: {order} is not of the hold {hold}")),
                404 => verdict.lost.push(format!("process {number} does not know the order {order_id}")),
                _ => bail!("process {number} says of {order_id}: {said:?}"),
            }
        }
    }
    let mut furthest: BTreeMap<String, Value> = BTreeMap::new();
    for seen in ledger.seen() {
        let before = furthest.entry(seen.order_id.clone()).or_insert_with(|| seen.order.clone());
        match step(before) > step(&seen.order) {
            true => verdict
                .lost
                .push(format!("{} was shown as {before}, and then as {}", seen.order_id, seen.order)),
            false => *before = seen.order,
        }
    }
    for (order_id, shown) in furthest {
        if let Some(order) = now.get(&order_id).filter(|order| step(order) < step(&shown)) {
            verdict.lost.push(format!("{order_id} was shown as {shown}, and is {order}"));
        }
    }
    let mut sold: BTreeMap<&str, &str> = BTreeMap::new();
    for (order_id, order) in now.iter().filter(|(_, order)| order["order_status"] == "CONFIRMED") {
        for seat in seats(order) {
            if let Some(other) = sold.insert(seat, order_id) {
                verdict.twice.push(format!("{seat} is in {other} and in {order_id}"));
            }
        }
    }
    Ok(now)
}

/// How far an order has come: whoever was shown a step is not shown an earlier one after it.
fn step(order: &Value) -> usize {
    match (order["order_status"].as_str(), order["payment_status"].as_str()) {
        (Some("AWAITING_PAYMENT"), _) => 0,
        (Some("CONFIRMED"), Some("CAPTURED")) => 2,
        (Some("CONFIRMED"), _) => 1,
        _ => 3,
    }
}

/// They are as they were when they were judged. An order that could still be paid may have run out since.
pub(super) async fn check_kept(
    shop: &Shop,
    orders: &BTreeMap<String, Value>,
    verdict: &mut Verdict,
) -> anyhow::Result<()> {
    let paths: Vec<String> = orders.keys().map(|order_id| format!("/v1/orders/{order_id}")).collect();
    for process in &shop.processes {
        for (said, (order_id, then)) in get_all(&process.operator, &paths).await?.into_iter().zip(orders) {
            let now = said.body();
            let same = (&now["order_status"], &now["payment_status"])
                == (&then["order_status"], &then["payment_status"]);
            if said.status() != 200
                || !(same || now["order_status"] == "EXPIRED" && then["order_status"] == "AWAITING_PAYMENT")
            {
                verdict.lost.push(format!("{order_id} was {then} and is {said:?}"));
            }
        }
    }
    Ok(())
}

/// Every process reports what these orders add up to, and its map shows their seats as sold.
pub(super) async fn check_sums(
    shop: &Shop,
    event: &Event,
    orders: &BTreeMap<String, Value>,
    verdict: &mut Verdict,
) -> anyhow::Result<()> {
    let confirmed: Vec<&Value> =
        orders.values().filter(|order| order["order_status"] == "CONFIRMED").collect();
    let total: i64 = confirmed.iter().filter_map(|order| order["total_minor"].as_i64()).sum();
    let sold: BTreeSet<&str> = confirmed.iter().flat_map(|order| seats(order)).collect();
    let wanted = json!([confirmed.len(), sold.len(), total, total]);
    for (number, process) in shop.processes.iter().enumerate() {
        let report = process.operator.get(&format!("/v1/events/{}/report", event.id)).await.ok(200)?;
        let reported =
            json!([report["orders"], report["sold"], report["gross_minor"], report["captured_minor"]]);
        if reported != wanted {
            verdict.wrong.push(format!("process {number} reports {report}; the orders make {wanted}"));
        }
        let map = async || {
            let map = process.buyers.get(&format!("/v1/events/{}/seats", event.id)).await.ok(200)?;
            let shown = map["states"].as_str().context("states")?.matches('2').count();
            ensure!(shown == sold.len(), "the map shows {shown} seats as sold, and it is {}", sold.len());
            Ok(())
        };
        if let Err(error) = until("the seat map has followed", FOLLOW, map).await {
            verdict.wrong.push(format!("process {number}: {error:#}"));
        }
    }
    Ok(())
}

fn seats(order: &Value) -> impl Iterator<Item = &str> {
    order["seats"].as_array().into_iter().flatten().filter_map(|seat| seat["seat_id"].as_str())
}
