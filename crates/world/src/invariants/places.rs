//! Standing areas, allocations, access codes and refunds: what is counted is counted rightly.

use std::collections::BTreeMap;

use onsale_core::ga::{GaLine, TransferStatus};
use onsale_core::hold::Hold;
use onsale_core::id::{AllocationNo, AreaNo, BucketNo, EventNo, OperationId};
use onsale_core::order::{Order, OrderStatus};
use onsale_core::payment::{OperationKind, OperationStatus};
use onsale_core::refund::Refund;
use onsale_core::seat_map::SeatStatus;

use crate::World;

type Place = (EventNo, AreaNo, BucketNo);

/// Places of an order that are still its own.
fn places_left(world: &World, order: &Order) -> Vec<GaLine> {
    let mut left: BTreeMap<(AreaNo, BucketNo), u32> = BTreeMap::new();
    for line in &world.holds[&order.hold].ga {
        *left.entry((line.area, line.bucket)).or_default() += line.quantity;
    }
    for line in &order.returned_ga {
        let had = left.get_mut(&(line.area, line.bucket));
        let had = had.unwrap_or_else(|| panic!("{order:?} gave back what it never had: {line:?}"));
        assert!(*had >= line.quantity, "{order:?} gave back more than it had: {line:?}");
        *had -= line.quantity;
    }
    let lines = left.into_iter().filter(|(_, quantity)| *quantity > 0);
    lines.map(|((area, bucket), quantity)| GaLine { area, bucket, quantity }).collect()
}

fn is_sold(order: &&Order) -> bool {
    order.status == OrderStatus::Confirmed
}

/// A bucket counts what live holds and confirmed orders have of it, never more than it has; buckets and what is between
/// them are the area's capacity; and the event counts them all.
pub(super) fn buckets(world: &World) {
    if world.areas.is_empty() {
        return;
    }
    let mut counts: BTreeMap<Place, (u32, u32)> = BTreeMap::new();
    for hold in world.holds.values().filter(|hold| hold.status.is_live()) {
        for line in &hold.ga {
            counts.entry((hold.event(), line.area, line.bucket)).or_default().0 += line.quantity;
        }
    }
    for order in world.orders.values().filter(is_sold) {
        for line in places_left(world, order) {
            counts.entry((order.id.event(), line.area, line.bucket)).or_default().1 += line.quantity;
        }
    }
    let (mut capacities, mut in_use): (BTreeMap<_, u32>, BTreeMap<_, u32>) = Default::default();
    for (place, bucket) in world.buckets.iter() {
        let counted = counts.remove(place).unwrap_or_default();
        assert_eq!((bucket.held, bucket.sold), counted, "held and sold of {bucket:?}");
        assert!(bucket.held + bucket.sold <= bucket.capacity, "more people than places: {bucket:?}");
        *capacities.entry((place.0, place.1)).or_default() += bucket.capacity;
        *in_use.entry(place.0).or_default() += bucket.held + bucket.sold;
    }
    assert!(counts.is_empty(), "places of buckets that are none: {counts:?}");
    for transfer in world.transfers.values().filter(|row| row.status == TransferStatus::InFlight) {
        *capacities.entry((transfer.id.event(), transfer.area)).or_default() += transfer.quantity;
    }
    for (area, row) in world.areas.iter() {
        let capacity = capacities.get(area).copied().unwrap_or_default();
        assert_eq!(row.capacity, capacity, "buckets and transfers of {row:?}: {:?}", world.buckets);
    }
    for (no, event) in world.events.iter() {
        let counted = in_use.get(no).copied().unwrap_or_default();
        assert_eq!(event.ga_in_use, counted, "places of event {no:?} in use");
        let allowed = event.policy.ga_max.unwrap_or(u32::MAX);
        assert!(event.ga_in_use <= allowed, "event {no:?} lets {} in, not {allowed}", event.ga_in_use);
    }
}

/// An access code counts the tickets that are held and bought with it.
pub(super) fn codes(world: &World) {
    if world.codes.is_empty() {
        return;
    }
    let mut counts: BTreeMap<_, u32> = BTreeMap::new();
    for hold in world.holds.values() {
        let Some(code) = &hold.code else { continue };
        let order = hold.order.and_then(|order| world.orders.get(&order)).filter(is_sold);
        let live = if hold.status.is_live() { hold.tickets() } else { 0 };
        *counts.entry((hold.event(), code.clone())).or_default() +=
            order.map_or(live, |row| row.ticket_count);
    }
    for (key, code) in world.codes.iter() {
        let counted = counts.remove(key).unwrap_or_default();
        assert_eq!(code.tickets_in_use, counted, "tickets of {code:?}");
    }
    assert!(counts.is_empty(), "codes that nobody made: {counts:?}");
}

/// What is set aside for a party is held and sold through its codes alone.
pub(super) fn allocations(world: &World) {
    if world.allocations.is_empty() {
        return;
    }
    let opens = |hold: &Hold, allocation: AllocationNo| {
        let code = hold.code.as_ref().and_then(|code| world.codes.get(&(hold.event(), code.clone())));
        code.is_some_and(|code| code.allocation == Some(allocation))
    };
    for seat in world.seats.values() {
        let (SeatStatus::Held { hold, .. } | SeatStatus::Sold { hold, .. }) = seat.status else { continue };
        let hold = &world.holds[&hold];
        assert!(
            seat.allocation.is_none_or(|of| opens(hold, of)),
            "{seat:?} is set aside, and had by {hold:?}"
        );
    }
    let all = |hold: &Hold, lines: &[GaLine]| {
        for line in lines {
            let bucket = &world.buckets[&(hold.event(), line.area, line.bucket)];
            let may = bucket.allocation.is_none_or(|of| opens(hold, of));
            assert!(may, "{bucket:?} is set aside, and had by {hold:?}");
        }
    };
    world.holds.values().filter(|hold| hold.status.is_live()).for_each(|hold| all(hold, &hold.ga));
    let sold = world.orders.values().filter(is_sold);
    sold.for_each(|order| all(&world.holds[&order.hold], &places_left(world, order)));
}

/// What refunds gave back is what their orders have given back; no more money than was taken; one after the other.
pub(super) fn refunds(world: &World) {
    world.refunds.values().for_each(|refund| one_refund(world, refund));
    for order in world.orders.values() {
        let Some(paid) = order.paid_by else { continue };
        let mut back_minor = 0;
        for operation in world.operations_of(order.id) {
            let is_refund = operation.kind == OperationKind::Refund && operation.target == Some(paid);
            if !is_refund {
                continue;
            }
            assert_eq!(operation.base_minor, back_minor, "what was back before {operation:?}");
            let known = world.refunds.contains_key(&operation.id) || !is_sold(&order);
            assert!(known, "nobody knows what {operation:?} gives back");
            let kept = operation.status != OperationStatus::Failed;
            let sum_minor = back_minor + operation.amount.amount_minor;
            let taken_minor = world.operations[&paid].amount.amount_minor;
            assert!(!kept || sum_minor <= taken_minor, "more than was taken for {order:?}: {operation:?}");
            if operation.status == OperationStatus::Succeeded {
                back_minor = sum_minor;
            }
        }
        given_back(world, order, back_minor);
    }
}

fn one_refund(world: &World, refund: &Refund) {
    let (operation, order) = (&world.operations[&refund.operation], &world.orders[&refund.order]);
    assert_eq!(operation.kind, OperationKind::Refund, "{refund:?}");
    assert_eq!(
        (operation.order, operation.target),
        (order.id, order.paid_by),
        "{refund:?} is of {operation:?}"
    );
    let gone = |seat| order.returned_seats.contains(seat);
    match operation.status {
        OperationStatus::Succeeded => assert!(refund.seats.iter().all(gone), "{refund:?} of {order:?}"),
        // The buyer has them until the provider has proven it.
        OperationStatus::Pending | OperationStatus::RequiresAction | OperationStatus::Unknown => {
            assert!(!refund.seats.iter().any(gone), "given back too soon: {refund:?} of {order:?}");
        }
        OperationStatus::Failed => {}
    }
}

/// Seats, places and tickets of an order that was paid, against the refunds that the provider has proven.
fn given_back(world: &World, order: &Order, back_minor: i64) {
    let hold = &world.holds[&order.hold];
    let done = |id: OperationId| world.operations[&id].status == OperationStatus::Succeeded;
    let refunds = || world.refunds.values().filter(|row| row.order == order.id && done(row.operation));
    let mut seats: Vec<_> = refunds().flat_map(|refund| refund.seats.iter().copied()).collect();
    seats.sort();
    assert_eq!(order.returned_seats, seats, "seats given back of {order:?}");
    assert!(seats.iter().all(|seat| hold.seats.contains(seat)), "{order:?} gave back what it never had");
    let mut places: BTreeMap<_, u32> = BTreeMap::new();
    for line in refunds().flat_map(|refund| &refund.ga) {
        *places.entry((line.area, line.bucket)).or_default() += line.quantity;
    }
    let returned = order.returned_ga.iter().map(|line| ((line.area, line.bucket), line.quantity));
    assert_eq!(returned.collect::<BTreeMap<_, _>>(), places, "places given back of {order:?}");
    let left = hold.tickets() - seats.len() as u32 - places.values().sum::<u32>();
    match order.status {
        OrderStatus::Confirmed => {
            assert!(left > 0, "{order:?} is for nothing");
            assert_eq!(order.ticket_count, left, "tickets of {order:?}");
            assert!(
                back_minor < order.total.amount_minor,
                "{order:?} keeps seats and has all its money back"
            );
        }
        // All of it was given back, or the sale was undone.
        OrderStatus::Cancelled if left == 0 => {
            assert_eq!((order.ticket_count, back_minor), (0, order.total.amount_minor), "{order:?} is over");
        }
        OrderStatus::Cancelled | OrderStatus::AwaitingPayment | OrderStatus::Expired => {
            assert_eq!(order.ticket_count, hold.tickets(), "tickets of {order:?}");
            assert!(seats.is_empty() && places.is_empty(), "nothing was sold of {order:?}");
        }
    }
}
