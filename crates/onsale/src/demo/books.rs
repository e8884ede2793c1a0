//! Three books held against each other: what buyers were told, what the server says now, what the provider has. Pure.

use std::collections::HashMap;

use super::claims::{Claim, Told};
use super::wire::{AreasSeen, ProviderOrderSeen, ReportSeen};

#[cfg(test)]
mod tests;

/// An order as the server shows it at the end.
#[derive(Clone, Debug)]
pub(super) struct OrderFound {
    pub(super) order_id: String,
    pub(super) hold_id: String,
    /// By ordinal, ascending.
    pub(super) seats: Vec<u32>,
    /// What each of them costs.
    pub(super) prices_minor: Vec<i64>,
    /// On the pitch.
    pub(super) places: u32,
    pub(super) total_minor: i64,
    pub(super) order_status: String,
    pub(super) payment_status: String,
}

impl OrderFound {
    pub(super) fn is_confirmed(&self) -> bool {
        self.order_status == "CONFIRMED"
    }

    /// Whether nothing is to be expected of it any more: its money was taken, or is all with its buyer.
    pub(super) fn is_closed(&self) -> bool {
        match self.order_status.as_str() {
            "CONFIRMED" => self.payment_status == "CAPTURED",
            "EXPIRED" | "CANCELLED" => {
                matches!(self.payment_status.as_str(), "DECLINED" | "VOIDED" | "REFUNDED")
            }
            _ => false,
        }
    }
}

/// A hold without an order, as the server shows it at the end.
#[derive(Clone, Debug)]
pub(super) struct HoldFound {
    pub(super) hold_id: String,
    pub(super) seats: Vec<u32>,
    pub(super) places: u32,
    pub(super) total_minor: i64,
    pub(super) status: String,
}

/// What the server shows for every claim.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    pub(super) orders: HashMap<String, OrderFound>,
    /// Of the claims that never came to an order.
    pub(super) holds: HashMap<String, HoldFound>,
}

/// Holds what buyers were told against what the server shows.
pub(super) fn compare_claims(claims: &[Claim], found: &Found) -> Vec<String> {
    let mut wrong = Vec::new();
    for claim in claims {
        let hold = &claim.hold_id;
        let (seats, places, total_minor, of_hold, status) = match &claim.order_id {
            Some(order) => match found.orders.get(order) {
                Some(order) => {
                    (&order.seats, order.places, order.total_minor, &order.hold_id, &order.order_status)
                }
                None => {
                    wrong.push(format!("{order}: it was acknowledged, and is missing"));
                    continue;
                }
            },
            None => match found.holds.get(hold) {
                Some(hold) => (&hold.seats, hold.places, hold.total_minor, &hold.hold_id, &hold.status),
                None => {
                    wrong.push(format!("{hold}: it was acknowledged, and is missing"));
                    continue;
                }
            },
        };
        let id = claim.order_id.as_ref().unwrap_or(hold);
        if of_hold != hold {
            wrong.push(format!("{id}: it belongs to {of_hold}, not to {hold}"));
        }
        if *seats != claim.seats {
            wrong.push(format!("{id}: its seats are {seats:?}, not {:?}", claim.seats));
        }
        if places != claim.places {
            wrong.push(format!("{id}: its places are {places}, not {}", claim.places));
        }
        if total_minor != claim.total_minor {
            wrong.push(format!("{id}: its total is {total_minor}, not {}", claim.total_minor));
        }
        match (claim.told, status.as_str()) {
            (Told::Confirmed, "CONFIRMED") | (Told::Over, "EXPIRED" | "CANCELLED" | "RELEASED") => {}
            (Told::Open, "CONFIRMED" | "EXPIRED" | "CANCELLED" | "RELEASED") => {}
            (told, status) => wrong.push(format!("{id}: its buyer was told {told:?}, and it is {status}")),
        }
    }
    wrong
}

/// Whether each seat was sold, and to one order only.
pub(super) fn compare_seats(found: &Found, seats: usize) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut owners: Vec<Option<&str>> = vec![None; seats];
    for order in found.orders.values().filter(|order| order.is_confirmed()) {
        for seat in &order.seats {
            match owners.get_mut(*seat as usize) {
                Some(owner) => {
                    if let Some(other) = owner.replace(&order.order_id) {
                        wrong.push(format!(
                            "seat {seat}: it was sold twice, to {other} and to {}",
                            order.order_id
                        ));
                    }
                }
                None => wrong.push(format!("{}: there is no seat {seat}", order.order_id)),
            }
        }
    }
    let nobodys: Vec<usize> =
        owners.iter().enumerate().filter(|(_, owner)| owner.is_none()).map(|(seat, _)| seat).collect();
    if let Some(first) = nobodys.first() {
        wrong.push(format!("{} seats were sold to nobody that is known, seat {first} first", nobodys.len()));
    }
    wrong
}

/// Whether the pitch counts as sold what orders have of it, holds nothing back, and takes as many people as it was built for.
pub(super) fn compare_places(found: &Found, areas: &AreasSeen, capacity: u32) -> Vec<String> {
    let confirmed = found.orders.values().filter(|order| order.is_confirmed());
    let sold: u64 = confirmed.map(|order| u64::from(order.places)).sum();
    let buckets = || areas.areas.iter().flat_map(|area| &area.buckets);
    let counted = (
        buckets().map(|bucket| bucket.sold).sum::<u64>(),
        buckets().map(|bucket| bucket.held).sum::<u64>(),
        buckets().map(|bucket| bucket.capacity).sum::<u64>(),
        areas.areas.iter().map(|area| area.capacity).sum::<u64>(),
        areas.in_flight.len(),
    );
    let expected = (sold, 0, u64::from(capacity), u64::from(capacity), 0);
    match counted == expected {
        true => Vec::new(),
        false => vec![format!("the pitch counts {counted:?}, not {expected:?}")],
    }
}

/// Holds the provider's money against orders and the report.
pub(super) fn compare_money(
    found: &Found,
    provider: &[ProviderOrderSeen],
    report: &ReportSeen,
    seats: usize,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut paid: HashMap<&str, &ProviderOrderSeen> = HashMap::new();
    for money in provider {
        let Some(order_id) = money.order_id.as_deref() else {
            wrong.push(format!("the provider has money of no order: {money:?}"));
            continue;
        };
        if paid.insert(order_id, money).is_some() {
            wrong.push(format!("{order_id}: the provider has it in two currencies"));
        }
        if money.authorised != money.captured + money.voided {
            wrong.push(format!("{order_id}: what was set aside is neither taken nor let go: {money:?}"));
        }
        let kept = money.captured - money.refunded;
        match found.orders.get(order_id) {
            None => wrong.push(format!("{order_id}: the provider knows it, and no buyer does: {money:?}")),
            Some(order) if order.is_confirmed() && kept != order.total_minor => {
                wrong.push(format!("{order_id}: {kept} was taken for a total of {}", order.total_minor));
            }
            Some(order) if !order.is_confirmed() && kept != 0 => {
                wrong.push(format!("{order_id}: {kept} was taken, and it is {}", order.order_status));
            }
            Some(_) => {}
        }
    }
    let confirmed = || found.orders.values().filter(|order| order.is_confirmed());
    for order in confirmed().filter(|order| !paid.contains_key(order.order_id.as_str())) {
        wrong.push(format!("{}: it is confirmed, and the provider doesn't know it", order.order_id));
    }
    for order in found.orders.values().filter(|order| !order.is_closed()) {
        let OrderFound { order_id, order_status, payment_status, .. } = order;
        wrong.push(format!("{order_id}: its payment is not closed: {order_status}, {payment_status}"));
    }
    let taken: i64 = provider.iter().map(|money| money.captured - money.refunded).sum();
    let gross = confirmed().map(|order| order.total_minor).sum();
    let orders = confirmed().count() as u64;
    let expected = ReportSeen {
        sold: seats as u64,
        orders,
        gross_minor: gross,
        captured_minor: gross,
        // Made meanwhile, and counted when they are all there.
        tickets_issued: report.tickets_issued,
        ..ReportSeen::default()
    };
    if *report != expected {
        wrong.push(format!("the report is {report:?}, not {expected:?}"));
    }
    if taken != report.gross_minor {
        wrong.push(format!("the provider took {taken}, the report says {}", report.gross_minor));
    }
    wrong
}
