//! Giving money back for what was sold: the whole of an order or a part, before its tickets or after. The provider comes
//! first, the books follow its proof.

use std::collections::BTreeSet;

use crate::command::Outcome;
use crate::ga::{GaLine, by_area, places as count};
use crate::id::{AreaNo, EventNo, OperationId, OrderId, SeatOrdinal, Seed, TicketId};
use crate::log::LogKind;
use crate::money::Money;
use crate::order::{Order, OrderStatus};
use crate::payment::{OperationKind, PaymentStatus};
use crate::refund::{Refund, RefundPart};
use crate::refusal::Refusal;
use crate::seat_map::SeatStatus;
use crate::snapshot::Snapshot;
use crate::ticket::{Place, Ticket, TicketStatus};
use crate::time::Timestamp;

use super::places::{self, Were};
use super::{books, hold};

#[allow(clippy::too_many_arguments, reason = "they are the command's own")]
pub(super) fn begin(
    state: &mut Snapshot,
    id: OrderId,
    part: &RefundPart,
    resell: bool,
    reason: &str,
    actor: &str,
    now: Timestamp,
    seed: &mut Seed,
) -> Outcome {
    let Some(order) = state.orders.get(&id) else {
        return Outcome::Refused(Refusal::NotFound);
    };
    let (attempt, left_minor) = match refundable(state, order) {
        Ok(left) => left,
        Err(refusal) => return Outcome::Refused(refusal),
    };
    let given = match given_back(state, order, part, left_minor) {
        Ok(given) => given,
        Err(refusal) => return Outcome::Refused(refusal),
    };
    if given.amount_minor > left_minor && !planted!(RefundNotBounded) {
        return Outcome::Refused(Refusal::RefundTooLarge { left_minor });
    }
    let Some(tickets) = tickets_for(state, order, &given.seats, &given.ga) else {
        return Outcome::Refused(Refusal::NotRefundable("the order has fewer tickets left than that"));
    };
    let is_used = |id: &TicketId| state.tickets.get(id).is_some_and(|ticket| ticket.admissions > 0);
    if resell && tickets.iter().any(is_used) {
        return Outcome::Refused(Refusal::NotRefundable(
            "a ticket has been used at the gate: its seat can't be sold again, refund without resale",
        ));
    }
    let amount = Money { amount_minor: given.amount_minor, currency: order.total.currency };
    let reference = state.operations.get(&attempt).and_then(|attempt| attempt.reference.clone());

    // Past this line the money is on its way back, and whoever gives a seat back doesn't come in with it.
    let operation =
        books::add_operation(state, OperationKind::Refund, id, Some(attempt), reference, amount, now, seed);
    let row = Refund {
        operation,
        order: id,
        reason: reason.to_owned(),
        resell,
        seats: given.seats,
        ga: given.ga,
        actor: actor.to_owned(),
        created_at: now,
    };
    state.refunds.insert(operation, row);
    state.append(id.event(), LogKind::RefundBegun { order: id, operation, actor: actor.to_owned() });
    move_tickets(state, id, tickets, TicketStatus::Suspended, actor);
    if planted!(SeatsFreedBeforeRefund) {
        complete(state, operation);
    }
    books::refresh(state, id);
    Outcome::RefundBegun(operation)
}

/// The attempt that paid an order and what is left of its money, if any of it can be given back now.
fn refundable(state: &Snapshot, order: &Order) -> Result<(OperationId, i64), Refusal> {
    let not = |why| Err(Refusal::NotRefundable(why));
    if order.payment_status == PaymentStatus::RefundPending {
        return Err(Refusal::RefundPending);
    }
    if order.payment_status == PaymentStatus::Refunded {
        return not("all of it has been refunded");
    }
    if order.status != OrderStatus::Confirmed {
        return not("only a confirmed order can be refunded");
    }
    let paid = order.paid_by.and_then(|attempt| state.operations.get(&attempt));
    let Some(paid) = paid.filter(|_| order.payment_status == PaymentStatus::Captured) else {
        return not("the money has not been taken yet: ask again when it has");
    };
    Ok((paid.id, paid.amount.amount_minor - books::refunded_minor(state, order.id, paid.id)))
}

/// What a refund gives back.
struct Given {
    seats: Vec<SeatOrdinal>,
    ga: Vec<GaLine>,
    amount_minor: i64,
}

fn given_back(state: &Snapshot, order: &Order, part: &RefundPart, left_minor: i64) -> Result<Given, Refusal> {
    let (seats_left, ga_left) = places_left(state, order);
    match part {
        RefundPart::Rest => Ok(Given { seats: seats_left, ga: ga_left, amount_minor: left_minor }),
        RefundPart::Amount(amount) if *amount == left_minor => Err(Refusal::NotRefundable(
            "that is all that is left of its money: refund the rest of the order, with its seats",
        )),
        RefundPart::Amount(amount) if *amount < 1 => {
            Err(Refusal::NotRefundable("a refund is at least one minor unit"))
        }
        RefundPart::Amount(amount) => Ok(Given { seats: Vec::new(), ga: Vec::new(), amount_minor: *amount }),
        RefundPart::Places { seats, ga } => {
            let not = |why| Err(Refusal::NotRefundable(why));
            if seats.is_empty() && ga.is_empty() {
                return not("name at least one seat or place");
            }
            if seats.iter().any(|seat| !seats_left.contains(seat)) {
                return not("a seat is not this order's, or not any more");
            }
            let Some(lines) = taken_from(&ga_left, ga) else {
                return not("the order has fewer places left than that");
            };
            let cost = hold::total(state, order.id.event(), order.price_version, seats, ga);
            let Some(amount_minor) = cost else {
                return not("a price level has no price");
            };
            let is_all = seats.len() == seats_left.len() && count(&lines) == count(&ga_left);
            if amount_minor == left_minor && !is_all {
                // Refunded, the order could give nothing back any more, and who holds it would have paid nothing for the rest.
                return not("that is all that is left of its money: refund the rest of the order");
            }
            Ok(Given { seats: seats.clone(), ga: lines, amount_minor })
        }
    }
}

/// The seats and places that are still an order's.
pub(super) fn places_left(state: &Snapshot, order: &Order) -> (Vec<SeatOrdinal>, Vec<GaLine>) {
    let Some(hold) = state.holds.get(&order.hold) else {
        return Default::default();
    };
    let seats = hold.seats.iter().filter(|seat| !order.returned_seats.contains(seat)).copied();
    let returned = |line: &GaLine| -> u32 {
        let same = |back: &&GaLine| (back.area, back.bucket) == (line.area, line.bucket);
        order.returned_ga.iter().filter(same).map(|back| back.quantity).sum()
    };
    let left = |line: &GaLine| GaLine { quantity: line.quantity.saturating_sub(returned(line)), ..*line };
    (seats.collect(), hold.ga.iter().map(left).filter(|line| line.quantity > 0).collect())
}

/// So many places of each area out of some lines; `None` when there are fewer.
fn taken_from(lines: &[GaLine], wanted: &[(AreaNo, u32)]) -> Option<Vec<GaLine>> {
    let mut taken = Vec::new();
    for (area, quantity) in wanted {
        let mut left = *quantity;
        for line in lines.iter().filter(|line| line.area == *area) {
            let part = line.quantity.min(left);
            if part > 0 {
                taken.push(GaLine { quantity: part, ..*line });
                left -= part;
            }
        }
        if left > 0 {
            return None;
        }
    }
    Some(taken)
}

/// The tickets of what is given back, unused ones first; none while an order has no tickets yet, `None` when it has too few.
fn tickets_for(
    state: &Snapshot,
    order: &Order,
    seats: &[SeatOrdinal],
    ga: &[GaLine],
) -> Option<Vec<TicketId>> {
    if !order.ticketed {
        return Some(Vec::new());
    }
    let mut good: Vec<&Ticket> =
        state.tickets_of(order.id).filter(|ticket| ticket.status == TicketStatus::Valid).collect();
    good.sort_by_key(|ticket| (ticket.admissions > 0, std::cmp::Reverse(ticket.id)));
    let of = |place: Place| good.iter().filter(move |ticket| ticket.place == place).map(|ticket| ticket.id);
    let mut wanted: Vec<(Place, usize)> = seats.iter().map(|seat| (Place::Seat(*seat), 1)).collect();
    wanted.extend(by_area(ga).into_iter().map(|(area, quantity)| (Place::Area(area), quantity as usize)));
    let mut tickets = Vec::new();
    for (place, quantity) in wanted {
        let before = tickets.len();
        tickets.extend(of(place).take(quantity));
        if tickets.len() - before < quantity {
            return None;
        }
    }
    Some(tickets)
}

/// Moves tickets of one order to a status.
pub(super) fn move_tickets(
    state: &mut Snapshot,
    order: OrderId,
    tickets: Vec<TicketId>,
    status: TicketStatus,
    actor: &str,
) {
    if tickets.is_empty() {
        return;
    }
    let log = LogKind::TicketsMoved { order, tickets: tickets.clone(), status, actor: actor.to_owned() };
    let version = state.append(order.event(), log);
    for id in tickets {
        let ticket = state.tickets.change(&id);
        ticket.status = status;
        ticket.version = version;
    }
}

fn suspended(state: &Snapshot, order: OrderId) -> Vec<TicketId> {
    let tickets = state.tickets_of(order).filter(|ticket| ticket.status == TicketStatus::Suspended);
    tickets.map(|ticket| ticket.id).collect()
}

/// The provider will never do a refund: the buyer keeps what was to be given back.
pub(super) fn abandon(state: &mut Snapshot, operation: OperationId) {
    if let Some(refund) = state.refunds.get(&operation) {
        let order = refund.order;
        let tickets = suspended(state, order);
        move_tickets(state, order, tickets, TicketStatus::Valid, "worker");
    }
}

/// The provider has proven a refund: what it is for is nobody's any more, or for nobody.
pub(super) fn complete(state: &mut Snapshot, operation: OperationId) {
    let Some(refund) = state.refunds.get(&operation).cloned() else {
        return;
    };
    let Refund { order, resell, seats, ga, .. } = refund;
    let event = order.event();
    let Some(row) = state.orders.get(&order) else {
        return;
    };
    let fresh = |seat: &SeatOrdinal| !row.returned_seats.contains(seat);
    let seats: Vec<SeatOrdinal> = seats.into_iter().filter(fresh).collect();
    if seats.is_empty() && ga.is_empty() {
        return;
    }
    let (account, held_by) = (row.account.clone(), row.hold);
    let tickets = seats.len() as u32 + count(&ga);
    let code = state.holds.get(&held_by).and_then(|hold| hold.code.clone());
    let set_aside = if resell { places::set_aside(state, event, &seats) } else { Vec::new() };
    let log =
        LogKind::OrderReturned { order, operation, seats: seats.clone(), set_aside, ga: ga.clone(), resell };
    let version = state.append(event, log);
    places::free(state, event, &ga, Were::Sold, resell, version);
    places::uncount_code(state, event, &code, tickets);
    free_seats(state, event, order, &seats, resell, version);
    if let Some(usage) = state.accounts.get_mut(&(event, account)) {
        usage.sold = usage.sold.saturating_sub(tickets);
    }
    let row = state.orders.change(&order);
    row.returned_seats =
        row.returned_seats.iter().chain(&seats).copied().collect::<BTreeSet<_>>().into_iter().collect();
    row.returned_ga = merged(&row.returned_ga, &ga);
    row.ticket_count = row.ticket_count.saturating_sub(tickets);
    if row.ticket_count == 0 {
        row.status = OrderStatus::Cancelled;
    }
    let gone = suspended(state, order);
    move_tickets(state, order, gone, TicketStatus::Revoked, "worker");
}

/// Gives back seats that are still the order's.
fn free_seats(
    state: &mut Snapshot,
    event: EventNo,
    order: OrderId,
    seats: &[SeatOrdinal],
    resell: bool,
    version: u64,
) {
    for ordinal in seats {
        let seat = state.seats.change(&(event, *ordinal));
        if matches!(seat.status, SeatStatus::Sold { order: owner, .. } if owner == order) {
            seat.status = if resell { SeatStatus::Available } else { SeatStatus::NotForSale };
            if !resell {
                seat.allocation = None;
            }
            seat.version = version;
        }
    }
}

fn merged(before: &[GaLine], back: &[GaLine]) -> Vec<GaLine> {
    let mut lines = before.to_vec();
    for line in back {
        let same = |known: &&mut GaLine| (known.area, known.bucket) == (line.area, line.bucket);
        match lines.iter_mut().find(same) {
            Some(known) => known.quantity += line.quantity,
            None => lines.push(*line),
        }
    }
    lines.sort_unstable();
    lines
}
