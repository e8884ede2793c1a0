//! After the sale: waits until every payment is closed, and reads what the server and the provider have of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::anyhow;
use hyper::StatusCode;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::arena::Operator;
use super::books::{Found, HoldFound, OrderFound};
use super::claims::Claim;
use super::client::{Ask, Client};
use super::crowd::Crowd;
use super::measures::Timed;
use super::wire::{HoldSeen, OrderSeen, PlacesSeen, ReportSeen, SeatSeen};

/// How long payments may take to close once everything is sold.
const SETTLING: Duration = Duration::from_secs(120);
/// How often the report is looked at meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long the server holds an answer back about an order that isn't closed.
const ORDER_WAIT_S: u64 = 2;
/// Buyers who look at their orders at once.
const READERS: usize = 16;

/// Waits until nothing is under way; the report as it stands then, or when patience has run out.
pub(super) async fn settle(operator: &mut Operator, event: &str) -> anyhow::Result<ReportSeen> {
    let end = Instant::now() + SETTLING;
    loop {
        let report: ReportSeen = operator.get(&format!("{event}/report")).await?;
        let is_settled = report.orders_awaiting_payment == 0
            && report.captured_minor == report.gross_minor
            && report.returning_minor == 0
            && report.cases_open == 0;
        if is_settled || Instant::now() > end {
            return Ok(report);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Reads what the server shows to each buyer of its claim. Orders that are still open are waited for.
pub(super) async fn find(crowd: &Arc<Crowd>, claims: &Arc<[Claim]>) -> anyhow::Result<Found> {
    let next = Arc::new(AtomicUsize::new(0));
    let end = Instant::now() + SETTLING;
    let mut readers = JoinSet::new();
    for _ in 0..READERS {
        let (crowd, claims, next) = (Arc::clone(crowd), Arc::clone(claims), Arc::clone(&next));
        readers.spawn(async move {
            let mut client = Client::new(crowd.shop);
            let mut found = Found::default();
            while let Some(claim) = claims.get(next.fetch_add(1, Ordering::Relaxed)) {
                find_one(&crowd, &mut client, claim, end, &mut found).await?;
            }
            anyhow::Ok(found)
        });
    }
    let mut found = Found::default();
    while let Some(read) = readers.join_next().await {
        let read = read??;
        found.orders.extend(read.orders);
        found.holds.extend(read.holds);
    }
    Ok(found)
}

async fn find_one(
    crowd: &Crowd,
    client: &mut Client,
    claim: &Claim,
    end: Instant,
    found: &mut Found,
) -> anyhow::Result<()> {
    let Some(order_id) = &claim.order_id else {
        let ask = Ask::get(format!("/v1/holds/{}", claim.hold_id)).token(&claim.token);
        let answer = client.call(&ask).await?;
        // One that is missing is missed when the books are compared.
        if answer.status == StatusCode::OK {
            let HoldSeen { hold_id, status, seats, ga, total_minor, .. } = answer.json()?;
            let (seats, places) = (ordinals(crowd, &seats)?, places(&ga));
            let hold = HoldFound { hold_id: hold_id.clone(), seats, places, total_minor, status };
            found.holds.insert(hold_id, hold);
        }
        return Ok(());
    };
    let path = format!("/v1/orders/{order_id}");
    let mut answer = client.call(&Ask::get(path.clone()).token(&claim.token)).await?;
    crowd.measures.time(Timed::Order, answer.took);
    while answer.status == StatusCode::OK {
        let order = order_found(crowd, answer.json()?)?;
        let is_done = order.is_closed() || Instant::now() > end;
        found.orders.insert(order.order_id.clone(), order);
        if is_done {
            break;
        }
        let wait = Ask::get(format!("{path}?wait_s={ORDER_WAIT_S}")).token(&claim.token);
        answer = client.call(&wait).await?;
    }
    Ok(())
}

fn order_found(crowd: &Crowd, order: OrderSeen) -> anyhow::Result<OrderFound> {
    let OrderSeen { order_id, hold_id, order_status, payment_status, seats, ga, total_minor, .. } = order;
    let prices_minor = seats.iter().map(|seat| seat.amount_minor).collect();
    let (seats, places) = (ordinals(crowd, &seats)?, places(&ga));
    Ok(OrderFound {
        order_id,
        hold_id,
        seats,
        prices_minor,
        places,
        total_minor,
        order_status,
        payment_status,
    })
}

fn ordinals(crowd: &Crowd, seats: &[SeatSeen]) -> anyhow::Result<Vec<u32>> {
    crowd.with_house(|house| {
        let ordinal = |seat: &SeatSeen| {
            house.ordinal(&seat.seat_id).ok_or_else(|| anyhow!("the house has no seat {}", seat.seat_id))
        };
        seats.iter().map(ordinal).collect()
    })
}

/// How many places some lines have together.
pub(super) fn places(ga: &[PlacesSeen]) -> u32 {
    ga.iter().map(|line| line.quantity).sum()
}
