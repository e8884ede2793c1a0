//! Tickets: made once the money is there by proof, issued anew, and shown at the gate.

use std::sync::Arc;

use crate::command::{Outcome, Scanned, Showing};
use crate::event::Policy;
use crate::ga::by_area;
use crate::id::{OrderId, Seed, TicketId};
use crate::log::LogKind;
use crate::order::OrderStatus;
use crate::payment::PaymentStatus;
use crate::refusal::Refusal;
use crate::snapshot::Snapshot;
use crate::ticket::{Direction, Place, Scan, ScanResult, Ticket, TicketStatus};
use crate::time::Timestamp;

use super::refund::{move_tickets, places_left};

/// Makes an order's tickets, one for each seat and place that is still its own.
pub(super) fn issue(state: &mut Snapshot, id: OrderId, now: Timestamp, seed: &mut Seed) -> Outcome {
    let Some(order) = state.orders.get(&id) else {
        return Outcome::Refused(Refusal::NotFound);
    };
    if order.ticketed {
        return Outcome::TicketsIssued;
    }
    // Proof alone: a capture that is only under way may still fail, and then the sale is undone.
    let is_paid = order.status == OrderStatus::Confirmed && order.payment_status == PaymentStatus::Captured;
    if !is_paid {
        return Outcome::TicketsNotDue;
    }
    let (seats, ga) = places_left(state, order);
    let areas = by_area(&ga).into_iter();
    let standing = areas.flat_map(|(area, quantity)| (0..quantity).map(move |_| Place::Area(area)));
    let places: Vec<Place> = seats.into_iter().map(Place::Seat).chain(standing).collect();

    // Past this line there are tickets: all of them.
    let tickets: Vec<TicketId> = places.iter().map(|_| seed.mint()).collect();
    let version = state.append(id.event(), LogKind::TicketsIssued { order: id, tickets: tickets.clone() });
    for (ticket, place) in tickets.iter().zip(places) {
        let row = Ticket {
            id: *ticket,
            order: id,
            place,
            generation: 1,
            status: TicketStatus::Valid,
            inside: false,
            admissions: 0,
            admitted_at: None,
            admitted_gate: None,
            issued_at: now,
            version,
        };
        state.tickets.insert(*ticket, row);
    }
    state.tickets_of.entry(id).or_default().extend(tickets);
    state.orders.change(&id).ticketed = true;
    Outcome::TicketsIssued
}

/// Makes the barcodes of a generation worthless. Asked again about the same generation, it has been done.
pub(super) fn reissue(state: &mut Snapshot, id: TicketId, generation: u16, actor: &str) -> Outcome {
    let no = |why| Outcome::Refused(Refusal::ActionNotPossible(why));
    let Some(ticket) = state.tickets.get(&id) else {
        return Outcome::Refused(Refusal::NotFound);
    };
    let order = ticket.order;
    if generation < ticket.generation {
        return Outcome::TicketReissued;
    }
    if generation > ticket.generation {
        return no("the ticket has no such generation");
    }
    match ticket.status {
        TicketStatus::Valid => {}
        TicketStatus::Suspended => return no("the ticket's money is on its way back"),
        TicketStatus::Revoked => return no("the ticket's money is back"),
    }
    let Some(next) = generation.checked_add(1) else {
        return no("the ticket has been issued anew too often");
    };

    // Past this line the barcode before is worthless.
    move_tickets(state, order, vec![id], TicketStatus::Valid, actor);
    state.tickets.change(&id).generation = next;
    Outcome::TicketReissued
}

/// Judges a ticket that is shown at a gate, or was while the gate could not ask. The books decide in the order in which they
/// hear of it; whom a gate let in by itself stays on record beside what the books say.
pub(super) fn scan(state: &mut Snapshot, showing: &Showing, now: Timestamp) -> Outcome {
    let no = showing.ticket.event();
    let key = (no, Arc::clone(&showing.scan));
    let Some(event) = state.events.get(&no) else {
        return Outcome::Refused(Refusal::NotFound);
    };
    if let Some(known) = state.scans.get(&key) {
        if !is_of(known, showing) {
            return Outcome::Refused(Refusal::KeyReused);
        }
        let result = known.result;
        // The answer was lost, and the gate has let them in by itself.
        if showing.let_in_offline && !known.let_in_offline {
            state.scans.change(&key).let_in_offline = true;
            state.touch_clock(no);
        }
        return scanned(state, showing, result);
    }
    let ticket = state.tickets.get(&showing.ticket);
    let result = ticket.map_or(ScanResult::Invalid, |ticket| judge(ticket, &event.policy, showing));
    let order = ticket.map(|ticket| ticket.order);

    // Past this line it is told, and stays so.
    let version = match order {
        Some(order) => {
            let gate = showing.gate.clone();
            state.append(no, LogKind::TicketScanned { order, ticket: showing.ticket, gate, result })
        }
        // A genuine barcode of a ticket that isn't in the books: they were restored from an older copy.
        None => {
            state.touch_clock(no);
            0
        }
    };
    let row = Scan {
        id: Arc::clone(&showing.scan),
        ticket: showing.ticket,
        generation: showing.generation,
        direction: showing.direction,
        gate: showing.gate.clone(),
        scanned_at: showing.scanned_at.unwrap_or(now),
        received_at: now,
        result,
        let_in_offline: showing.let_in_offline,
    };
    state.scans.insert(key, row);
    match result {
        ScanResult::Admit => {
            let ticket = state.tickets.change(&showing.ticket);
            ticket.inside = true;
            ticket.admissions += 1;
            if ticket.admissions == 1 {
                ticket.admitted_at = Some(now);
                ticket.admitted_gate = Some(showing.gate.clone());
            }
            ticket.version = version;
        }
        ScanResult::Exited => {
            let ticket = state.tickets.change(&showing.ticket);
            ticket.inside = false;
            ticket.version = version;
        }
        ScanResult::AlreadyUsed
        | ScanResult::Revoked
        | ScanResult::WrongEvent
        | ScanResult::Invalid
        | ScanResult::NotInside => {}
    }
    scanned(state, showing, result)
}

fn judge(ticket: &Ticket, policy: &Policy, showing: &Showing) -> ScanResult {
    if showing.at.is_some_and(|at| at != ticket.id.event()) {
        return ScanResult::WrongEvent;
    }
    match (showing.direction, ticket.status) {
        // Whoever is inside may leave, whatever has become of their ticket meanwhile.
        (Direction::Out, _) if ticket.inside => ScanResult::Exited,
        (Direction::Out, _) => ScanResult::NotInside,
        (Direction::In, TicketStatus::Suspended | TicketStatus::Revoked) => ScanResult::Revoked,
        (Direction::In, TicketStatus::Valid) if showing.generation != ticket.generation => {
            ScanResult::Revoked
        }
        (Direction::In, TicketStatus::Valid) => {
            let has_left = ticket.admissions > 0 && !ticket.inside;
            if ticket.admissions == 0 || (has_left && policy.reentry) {
                ScanResult::Admit
            } else {
                ScanResult::AlreadyUsed
            }
        }
    }
}

/// Whether a scan that is known is this one.
fn is_of(known: &Scan, showing: &Showing) -> bool {
    (known.ticket, known.generation) == (showing.ticket, showing.generation)
        && (known.direction, &known.gate) == (showing.direction, &showing.gate)
        // A gate that names no time means now, and that is another one each time.
        && showing.scanned_at.is_none_or(|at| at == known.scanned_at)
}

/// What the gate is told. Nothing of it changes any more, so that a repetition is told the same.
fn scanned(state: &Snapshot, showing: &Showing, result: ScanResult) -> Outcome {
    let ticket = state.tickets.get(&showing.ticket);
    let admitted = match result {
        ScanResult::Admit | ScanResult::AlreadyUsed => ticket.and_then(first_admission),
        ScanResult::Revoked
        | ScanResult::WrongEvent
        | ScanResult::Invalid
        | ScanResult::Exited
        | ScanResult::NotInside => None,
    };
    Outcome::TicketScanned(Scanned { result, place: ticket.map(|ticket| ticket.place), admitted })
}

fn first_admission(ticket: &Ticket) -> Option<(Timestamp, String)> {
    Some((ticket.admitted_at?, ticket.admitted_gate.clone()?))
}
