//! What must hold of tickets and of the gate.

use onsale_core::ga::places;
use onsale_core::id::OrderId;
use onsale_core::order::OrderStatus;
use onsale_core::payment::{OperationKind, OperationStatus};
use onsale_core::seat_map::SeatStatus;
use onsale_core::ticket::{Direction, Place, Scan, ScanResult, Ticket, TicketStatus};

use crate::World;

/// An order has its tickets once its money has been taken; none is good for what is given back; one is let in with each.
pub(super) fn check(world: &World) {
    for order in world.orders.values() {
        let tickets: Vec<&Ticket> = of(world, order.id).collect();
        assert!(order.ticketed || tickets.is_empty(), "{order:?} has tickets too early: {tickets:?}");
        if !order.ticketed {
            continue;
        }
        let paid = world.operations_of(order.id).into_iter().any(|o| {
            o.status == OperationStatus::Succeeded
                && matches!(o.kind, OperationKind::Capture | OperationKind::Authorize)
        });
        assert!(paid, "{order:?} has tickets, and no money");
        let left = tickets.iter().filter(|ticket| ticket.status != TicketStatus::Revoked);
        assert_eq!(left.count() as u32, order.ticket_count, "the tickets of {order:?}: {tickets:?}");
        let hold = &world.holds[&order.hold];
        let sold = hold.seats.len() as u32 + places(&hold.ga);
        assert_eq!(sold - order.returned_seats.len() as u32 - places(&order.returned_ga), order.ticket_count);
    }
    world.tickets.values().for_each(|ticket| one_ticket(world, ticket));
    world.scans.values().for_each(|scan| one_scan(world, scan));
}

fn of(world: &World, order: OrderId) -> impl Iterator<Item = &Ticket> {
    world.tickets.values().filter(move |ticket| ticket.order == order)
}

fn one_ticket(world: &World, ticket: &Ticket) {
    let order = &world.orders[&ticket.order];
    let event = &world.events[&ticket.id.event()];
    let returning = world
        .refunds
        .values()
        .any(|refund| refund.order == order.id && world.operations[&refund.operation].status.is_live());
    match ticket.status {
        TicketStatus::Revoked => {}
        TicketStatus::Valid | TicketStatus::Suspended => {
            assert_eq!(order.status, OrderStatus::Confirmed, "{ticket:?} is of {order:?}");
            if let Place::Seat(ordinal) = ticket.place {
                let owner = SeatStatus::Sold { hold: order.hold, order: order.id };
                assert_eq!(
                    world.seats[&(ticket.id.event(), ordinal)].status,
                    owner,
                    "the seat of {ticket:?}"
                );
                let same =
                    |other: &&Ticket| other.place == ticket.place && other.status != TicketStatus::Revoked;
                assert_eq!(of(world, order.id).filter(same).count(), 1, "{ticket:?} is alone");
            }
            assert!(ticket.status == TicketStatus::Valid || returning, "{ticket:?} waits for nothing");
        }
    }
    let told = |result: ScanResult| {
        let scans = world.scans.values().filter(|scan| scan.ticket == ticket.id);
        scans.filter(|scan| scan.result == result).count() as u32
    };
    let (admitted, gone) = (told(ScanResult::Admit), told(ScanResult::Exited));
    assert_eq!(ticket.admissions, admitted, "{ticket:?} and its scans");
    assert_eq!(u32::from(ticket.inside), admitted - gone, "{ticket:?} and its scans");
    assert!(admitted <= 1 || event.policy.reentry, "{ticket:?} let in more than once");
}

fn one_scan(world: &World, scan: &Scan) {
    assert!(scan.received_at <= world.events[&scan.ticket.event()].clock, "{scan:?} is of a time to come");
    let ticket = world.tickets.get(&scan.ticket);
    assert_eq!(ticket.is_none(), scan.result == ScanResult::Invalid, "{scan:?}");
    match scan.result {
        ScanResult::Admit | ScanResult::AlreadyUsed | ScanResult::Revoked => {
            assert_eq!(scan.direction, Direction::In, "{scan:?}");
        }
        ScanResult::Exited | ScanResult::NotInside => assert_eq!(scan.direction, Direction::Out, "{scan:?}"),
        ScanResult::WrongEvent | ScanResult::Invalid => {}
    }
}
