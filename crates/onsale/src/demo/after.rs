//! After the sale: tickets come, some people want their money back, others come to the gate, and what was given back is sold
//! again. The provider misbehaves with refunds too.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use hyper::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

use super::arena::Operator;
use super::books::{Found, OrderFound};
use super::character::GOOD_CARD;
use super::claims::Claim;
use super::client::{Ask, Client};
use super::crowd::Crowd;
use super::wire::{
    BegunSeen, HoldSeen, OrderSeen, ProblemSeen, ProviderLedgerSeen, ReportSeen, RunSeen, ScanSeen,
    SessionSeen, TicketSeen, TicketsSeen,
};

/// Orders that are refunded whole, in part, and by an amount; a third of each is as many as a small demo can spare.
const REFUNDED_EACH: usize = 10;
/// Orders whose holders come to the gate.
const AT_THE_GATE: usize = 50;
/// What is given back for a broken promise, in minor units.
const GOODWILL: i64 = 500;
/// How long tickets and refunds may take.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// What the provider does with refunds, one after the other.
const REFUND_FAULTS: [&str; 6] = ["ok", "lost_reply", "ok", "error_500_done", "lost_request", "delay:300"];

/// What happened.
#[derive(Default)]
pub(super) struct After {
    pub(super) ticketed_after: Duration,
    pub(super) tickets: u64,
    pub(super) refunds: usize,
    pub(super) refunded_minor: i64,
    pub(super) admitted: usize,
    pub(super) turned_away: usize,
    pub(super) resold: usize,
    pub(super) wrong: Vec<String>,
}

/// A refund that was asked for, and what must come of it.
struct Refunded<'a> {
    order: &'a OrderFound,
    amount_minor: i64,
    seats_left: usize,
    statuses: [&'static str; 2],
}

/// All of it, one thing after the other.
pub(super) async fn happen(
    crowd: &Arc<Crowd>,
    operator: &mut Operator,
    claims: &[Claim],
    found: &Found,
) -> anyhow::Result<After> {
    let mut after = After::default();
    await_tickets(crowd, operator, found, &mut after).await?;
    let tokens: HashMap<&str, &Arc<str>> =
        claims.iter().filter_map(|claim| Some((claim.order_id.as_deref()?, &claim.token))).collect();
    let mut orders: Vec<&OrderFound> = found.orders.values().filter(|order| order.is_confirmed()).collect();
    orders.sort_by(|a, b| a.order_id.cmp(&b.order_id));
    // A small arena has few orders: each is used for one thing.
    let each = REFUNDED_EACH.min(orders.len() / 10);
    let (refunded, others) = orders.split_at(each * 3);

    let mut tickets = Vec::new();
    for order in refunded {
        tickets.push(tickets_of(crowd, &tokens, order).await?);
    }
    let expected = refund(crowd, operator, refunded, each, &mut after).await?;
    check_refunds(crowd, &tokens, &expected, &mut after).await?;
    let gate = operator.gate_key().await?;
    gate_opens(crowd, operator, &gate, &tokens, others, &mut after).await?;
    for (order, tickets) in expected.iter().zip(&tickets) {
        for (number, ticket) in tickets.iter().enumerate() {
            // What was given back first is the first seat.
            let is_good = number >= tickets.len() - order.tickets_left();
            let wanted = if is_good { "ADMIT" } else { "REVOKED" };
            show(operator, &gate, ticket, wanted, &mut after).await?;
        }
    }
    sell_again(crowd, &expected, &mut after).await?;
    let run: RunSeen = operator.post("/v1/reconciliation/runs", &json!({})).await?;
    if run.differences_remain {
        after.wrong.push("the provider's books and these differ".to_owned());
    }
    Ok(after)
}

impl Refunded<'_> {
    /// Tickets of the order that are still good.
    fn tickets_left(&self) -> usize {
        match self.statuses[0] {
            "CONFIRMED" => self.seats_left + self.order.places as usize,
            _ => 0,
        }
    }
}

/// Every seat and place that was sold gets its ticket.
async fn await_tickets(
    crowd: &Arc<Crowd>,
    operator: &mut Operator,
    found: &Found,
    after: &mut After,
) -> anyhow::Result<()> {
    let begun = Instant::now();
    let confirmed = found.orders.values().filter(|order| order.is_confirmed());
    let expected: u64 = confirmed.map(|order| order.seats.len() as u64 + u64::from(order.places)).sum();
    loop {
        let report: ReportSeen = operator.get(&format!("{}/report", crowd.event)).await?;
        (after.ticketed_after, after.tickets) = (begun.elapsed(), report.tickets_issued);
        if report.tickets_issued == expected {
            return Ok(());
        }
        let told = format!("{} tickets were made for {expected} places", report.tickets_issued);
        ensure!(report.tickets_issued < expected && begun.elapsed() < PATIENCE, told);
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn tickets_of(
    crowd: &Arc<Crowd>,
    tokens: &HashMap<&str, &Arc<str>>,
    order: &OrderFound,
) -> anyhow::Result<Vec<TicketSeen>> {
    let token = tokens.get(order.order_id.as_str()).context("an order is nobody's")?;
    let ask = Ask::get(format!("/v1/orders/{}/tickets", order.order_id)).token(token);
    let answer = Client::new(crowd.shop).call(&ask).await?.expect(StatusCode::OK)?;
    Ok(answer.json::<TicketsSeen>()?.tickets)
}

/// Refunds the first orders whole, the next by one seat, the others by an amount; each is asked for twice, which is as good as
/// once, and once more under another key, which is refused.
async fn refund<'a>(
    crowd: &Arc<Crowd>,
    operator: &mut Operator,
    orders: &[&'a OrderFound],
    each: usize,
    after: &mut After,
) -> anyhow::Result<Vec<Refunded<'a>>> {
    let script = json!({ "operation": "refund", "outcomes": REFUND_FAULTS });
    let ask = Ask::post("/_sim/script").json(&script);
    Client::new(crowd.provider).call(&ask).await?.expect(StatusCode::OK)?;
    let mut expected = Vec::new();
    for (number, order) in orders.iter().copied().enumerate() {
        let (body, refunded) = match number / each {
            0 => {
                let (amount_minor, statuses) = (order.total_minor, ["CANCELLED", "REFUNDED"]);
                let resell = number % 2 == 0;
                let body = json!({ "reason": "the buyer can't come", "resell": resell });
                (body, Refunded { order, amount_minor, seats_left: 0, statuses })
            }
            1 if order.seats.len() > 1 => {
                let seat = crowd.with_house(|house| house.seat_id(order.seats[0]).to_owned());
                let body = json!({ "reason": "one can't come", "resell": true, "seats": [seat] });
                let statuses = ["CONFIRMED", "CAPTURED"];
                let (amount_minor, seats_left) = (order.prices_minor[0], order.seats.len() - 1);
                (body, Refunded { order, amount_minor, seats_left, statuses })
            }
            _ => {
                let body =
                    json!({ "reason": "the beer was warm", "resell": false, "amount_minor": GOODWILL });
                let (amount_minor, seats_left) = (GOODWILL, order.seats.len());
                (body, Refunded { order, amount_minor, seats_left, statuses: ["CONFIRMED", "CAPTURED"] })
            }
        };
        let path = format!("/v1/orders/{}/refunds", order.order_id);
        let ask = operator.ask(&path).new_key().json(&body);
        operator.call(&ask).await?.expect(StatusCode::ACCEPTED)?;
        let again = operator.call(&ask).await?.expect(StatusCode::ACCEPTED)?;
        ensure!(again.replayed, "a refund was asked for twice and begun twice: {again}");
        // An amount may be given twice; a seat comes back once.
        if number / each < 2 && order.seats.len() > 1 {
            let other = operator.call(&operator.ask(&path).new_key().json(&body)).await?;
            let code = other.json::<ProblemSeen>().map(|problem| problem.code).unwrap_or_default();
            if !matches!(code.as_str(), "refund-pending" | "not-refundable") {
                after.wrong.push(format!("{}: a second refund was answered {other}", order.order_id));
            }
        }
        after.refunds += 1;
        after.refunded_minor += refunded.amount_minor;
        expected.push(refunded);
    }
    Ok(expected)
}

/// Waits until each refund is proven, and holds orders and the provider's money against what was asked for.
async fn check_refunds(
    crowd: &Arc<Crowd>,
    tokens: &HashMap<&str, &Arc<str>>,
    expected: &[Refunded<'_>],
    after: &mut After,
) -> anyhow::Result<()> {
    let end = Instant::now() + PATIENCE;
    let mut client = Client::new(crowd.shop);
    for Refunded { order, amount_minor, statuses, .. } in expected {
        let token = tokens.get(order.order_id.as_str()).context("an order is nobody's")?;
        let ask = Ask::get(format!("/v1/orders/{}?wait_s=1", order.order_id)).token(token);
        let seen = loop {
            let seen: OrderSeen = client.call(&ask).await?.expect(StatusCode::OK)?.json()?;
            // A refund that is pending is never shown as done.
            ensure!(
                seen.payment_status != "REFUND_PENDING" || seen.refunded_minor == 0,
                "{}: refunded and pending",
                seen.order_id
            );
            if seen.payment_status != "REFUND_PENDING" || Instant::now() > end {
                break seen;
            }
        };
        let is = (seen.order_status.as_str(), seen.payment_status.as_str(), seen.refunded_minor);
        if is != (statuses[0], statuses[1], *amount_minor) {
            after.wrong.push(format!("{}: after its refund it is {is:?}", order.order_id));
        }
    }
    let ask = Ask::get("/_sim/ledger");
    let ledger: ProviderLedgerSeen = Client::new(crowd.provider).call(&ask).await?.json()?;
    for Refunded { order, amount_minor, .. } in expected {
        let money = ledger.orders.iter().find(|money| money.order_id.as_deref() == Some(&order.order_id));
        let refunded = money.map(|money| (money.captured, money.refunded));
        // What was taken twice by a misbehaving provider was given back before.
        if refunded.is_none_or(|(captured, back)| captured - back != order.total_minor - amount_minor) {
            after.wrong.push(format!("{}: the provider has {money:?}", order.order_id));
        }
    }
    Ok(())
}

/// Some come with their tickets, and then once more; one comes with a barcode that was tampered with.
async fn gate_opens(
    crowd: &Arc<Crowd>,
    operator: &mut Operator,
    gate: &Arc<str>,
    tokens: &HashMap<&str, &Arc<str>>,
    orders: &[&OrderFound],
    after: &mut After,
) -> anyhow::Result<()> {
    for (number, order) in orders.iter().take(AT_THE_GATE).enumerate() {
        for ticket in tickets_of(crowd, tokens, order).await? {
            show(operator, gate, &ticket, "ADMIT", after).await?;
            if number % 5 == 0 {
                show(operator, gate, &ticket, "ALREADY_USED", after).await?;
                let barcode = ticket.barcode.as_deref().unwrap_or_default();
                // Another digit in the midst of the signature.
                let (head, tail) = barcode.split_at(barcode.len() - 20);
                let swapped = if tail.starts_with('A') { 'B' } else { 'A' };
                let forged = TicketSeen { barcode: Some(format!("{head}{swapped}{}", &tail[1..])) };
                show(operator, gate, &forged, "INVALID", after).await?;
            }
        }
    }
    Ok(())
}

/// Shows a ticket, and again under the same scan's id, as after a lost answer.
async fn show(
    operator: &mut Operator,
    gate: &Arc<str>,
    ticket: &TicketSeen,
    wanted: &str,
    after: &mut After,
) -> anyhow::Result<()> {
    let barcode = ticket.barcode.as_deref().context("a ticket has no barcode")?;
    let scan = json!({ "scan_id": Uuid::now_v7().to_string(), "barcode": barcode, "gate": "north" });
    for _ in 0..2 {
        let ask = Ask::post("/v1/gate/scans").token(gate).json(&scan);
        let seen: ScanSeen = operator.call(&ask).await?.expect(StatusCode::OK)?.json()?;
        if seen.result != wanted {
            after.wrong.push(format!("{barcode}: the gate said {}, not {wanted}", seen.result));
        }
    }
    match wanted {
        "ADMIT" => after.admitted += 1,
        _ => after.turned_away += 1,
    }
    Ok(())
}

/// Somebody else buys seats that were given back: a new sale with a new order, and tickets of its own.
async fn sell_again(crowd: &Arc<Crowd>, expected: &[Refunded<'_>], after: &mut After) -> anyhow::Result<()> {
    let given_back = expected
        .iter()
        .enumerate()
        .filter(|(number, refunded)| refunded.statuses[0] == "CANCELLED" && number % 2 == 0);
    let mut client = Client::new(crowd.shop);
    for (_, refunded) in given_back {
        let session = client.call(&Ask::post("/v1/sessions")).await?.expect(StatusCode::CREATED)?;
        let token: Arc<str> = session.json::<SessionSeen>()?.session_token.into();
        let names: Vec<String> = crowd.with_house(|house| {
            refunded.order.seats.iter().map(|seat| house.seat_id(*seat).to_owned()).collect()
        });
        let ask = Ask::post(format!("{}/holds", crowd.event)).token(&token).new_key();
        let held = client.call(&ask.json(&json!({ "seats": names }))).await?.expect(StatusCode::CREATED)?;
        let hold = held.json::<HoldSeen>()?.hold_id;
        let ask = Ask::post(format!("/v1/holds/{hold}/checkout")).token(&token).new_key();
        let begun = client.call(&ask.json(&json!({ "payment_method_token": GOOD_CARD }))).await?;
        let order = begun.expect(StatusCode::ACCEPTED)?.json::<BegunSeen>()?.order_id;
        ensure!(order != refunded.order.order_id, "{order} was sold again under its own id");
        let ask = Ask::get(format!("/v1/orders/{order}?wait_s=5")).token(&token);
        let end = Instant::now() + PATIENCE;
        loop {
            let seen: Value = client.call(&ask).await?.expect(StatusCode::OK)?.json()?;
            if seen["tickets_ready"] == true {
                break;
            }
            ensure!(Instant::now() < end, "{order} has no tickets: {seen}");
            tokio::time::sleep(LOOK_EVERY).await;
        }
        after.resold += names.len();
    }
    Ok(())
}
