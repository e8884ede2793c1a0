//! The steps of standing places, access codes and refunds.

use std::sync::Arc;

use onsale_core::command::{Command, Decision, Outcome, Request};
use onsale_core::event::InDoubt;
use onsale_core::ga::{Bucket, TransferStatus, places};
use onsale_core::hold::{Hold, HoldStatus};
use onsale_core::id::{AllocationNo, OperationId};
use onsale_core::log::{LogEntry, LogKind};
use onsale_core::order::OrderStatus;
use onsale_core::payment::{OperationKind, OperationStatus};
use onsale_core::refusal::Refusal;
use onsale_core::ticket::{ScanResult, TicketStatus};
use onsale_core::time::Timestamp;
use onsale_world::{HALL, World};

use crate::Broken;
use crate::coverage::{Coverage, Sometimes};
use crate::provider::Provider;

/// The allocation that a code opens.
pub(super) fn opened(world: &World, code: &Option<Arc<str>>) -> Option<AllocationNo> {
    let code = world.codes.get(&(HALL, Arc::clone(code.as_ref()?)))?;
    code.allocation
}

/// What the answers to requests show to have happened.
pub(super) fn answered(request: &Request, decision: &Decision, after: &World, coverage: &mut Coverage) {
    let saw = match (&request.command, &decision.outcome) {
        (Command::PlaceHold { code: None, wish, .. }, Outcome::Refused(Refusal::SeatUnavailable(_))) => {
            let seats = &after.seats;
            let aside = |seat| seats.get(&(HALL, seat)).is_some_and(|seat| seat.allocation.is_some());
            wish.seats.iter().any(|seat| aside(*seat)).then_some(Sometimes::SetAsideRefused)
        }
        (Command::SetCapacity { .. }, Outcome::Refused(Refusal::NotEnoughAvailable { .. })) => {
            Some(Sometimes::CapacityInUse)
        }
        (_, Outcome::TicketReissued) => Some(Sometimes::TicketReissued),
        (Command::ScanTicket(showing), Outcome::TicketScanned(told)) => match told.result {
            ScanResult::Admit => Some(Sometimes::Admitted),
            _ if showing.let_in_offline => Some(Sometimes::LetInOffline),
            ScanResult::AlreadyUsed => Some(Sometimes::TicketUsed),
            ScanResult::Revoked => Some(Sometimes::TicketRevoked),
            ScanResult::Exited => Some(Sometimes::Left),
            ScanResult::WrongEvent | ScanResult::Invalid | ScanResult::NotInside => None,
        },
        (_, Outcome::Refused(Refusal::RefundPending)) => Some(Sometimes::RefundPending),
        (_, Outcome::Refused(Refusal::RefundTooLarge { .. })) => Some(Sometimes::RefundTooLarge),
        _ => None,
    };
    if let Some(saw) = saw {
        coverage.saw(saw);
    }
}

/// One change was a legal one.
pub(super) fn step(
    entry: &LogEntry,
    before: &World,
    after: &World,
    entries: &[LogEntry],
    coverage: &mut Coverage,
    provider: &Provider,
) -> Result<(), Broken> {
    match &entry.kind {
        LogKind::HoldPlaced { hold, .. } => {
            let row = &after.holds[hold];
            let changed = |other: &LogEntry| matches!(other.kind, LogKind::AccessCodeSet { .. });
            if !entries.iter().any(changed) {
                may_be_held(row, entry.at, after, coverage)?;
            }
            let ended = |other: &LogEntry| match &other.kind {
                LogKind::HoldExpired { seats, .. } => !seats.iter().any(|seat| row.seats.contains(seat)),
                _ => false,
            };
            let version = entry.version.checked_sub(1);
            if entries.iter().any(|other| Some(other.version) == version && ended(other)) {
                coverage.saw(Sometimes::CountTakenOver);
            }
        }
        LogKind::OrderConfirmed { hold, seats, ga, .. } => {
            let row = &after.holds[hold];
            if !seats.is_empty() && !ga.is_empty() {
                coverage.saw(Sometimes::SoldMixed);
            }
            if ga.windows(2).any(|pair| pair[0].area == pair[1].area) {
                coverage.saw(Sometimes::SeveralBuckets);
            }
            if seats.iter().any(|seat| after.seats[&(HALL, *seat)].allocation.is_some()) {
                coverage.saw(Sometimes::SetAsideSold);
            }
            let gave = |seat| after.orders.values().any(|order| order.returned_seats.contains(seat));
            if row.seats.iter().any(gave) {
                coverage.saw(Sometimes::SoldAgain);
            }
        }
        LogKind::TicketsIssued { .. } => coverage.saw(Sometimes::TicketsIssued),
        LogKind::TicketsMoved { status: TicketStatus::Suspended, .. } => {
            coverage.saw(Sometimes::TicketsSuspended);
        }
        LogKind::QuotaMoved { status: TransferStatus::Arrived, .. } => {
            coverage.saw(Sometimes::TransferArrived);
        }
        LogKind::QuotaMoved { status: TransferStatus::Returned, .. } => {
            coverage.saw(Sometimes::TransferReturned);
        }
        LogKind::CapacitySet { area, capacity, .. } => {
            let more = before.areas.get(&(HALL, *area)).is_some_and(|row| row.capacity < *capacity);
            coverage.saw(if more { Sometimes::CapacityRaised } else { Sometimes::CapacityLowered });
        }
        LogKind::OrderReturned { order, operation, ga, resell, .. } => {
            proven(*operation, after, provider)?;
            let whole = after.orders[order].ticket_count == 0;
            coverage.saw(if whole { Sometimes::RefundedWhole } else { Sometimes::RefundedPart });
            if !resell && !ga.is_empty() {
                coverage.saw(Sometimes::KeptFromResale);
            }
        }
        LogKind::RefundBegun { order, .. } => {
            if let Some(row) = before.orders.get(order)
                && row.status != OrderStatus::Confirmed
            {
                return Err(Broken::new("step: only what was sold is refunded", format!("{row:?}")));
            }
        }
        LogKind::OperationMoved { operation, kind: OperationKind::Refund, status, .. } => {
            refund_moved(*operation, *status, after, coverage, provider)?;
        }
        _ => {}
    }
    Ok(())
}

/// A hold with a code keeps to what the code allows.
fn may_be_held(hold: &Hold, now: Timestamp, after: &World, coverage: &mut Coverage) -> Result<(), Broken> {
    let code = hold.code.as_ref().map(|code| &after.codes[&(HALL, Arc::clone(code))]);
    let early = after.hall().on_sale_at.is_some_and(|at| now < at);
    if early && !code.is_some_and(|code| code.presale) {
        return Err(Broken::new("step: nobody buys before the sale begins", format!("{hold:?} at {now:?}")));
    }
    if early {
        coverage.saw(Sometimes::Presale);
    }
    match code {
        // Within a batch it may have become fewer since, and never more.
        Some(code) if !code.is_good(now) || code.tickets_in_use > code.tickets_max => {
            Err(Broken::new("step: an access code allows so many tickets", format!("{hold:?}: {code:?}")))
        }
        _ => Ok(()),
    }
}

/// Nothing is given back before the provider has the money on its way back.
fn proven(refund: OperationId, after: &World, provider: &Provider) -> Result<(), Broken> {
    let row = &after.operations[&refund];
    let asked_minor = row.base_minor + row.amount.amount_minor;
    let back_minor = provider.of(row.attempt()).map(|(_, intent)| intent.refunded_minor).max();
    if back_minor.is_some_and(|minor| minor >= asked_minor) {
        return Ok(());
    }
    let what = format!("{row:?}\nat the provider: {:?}", provider.of(row.attempt()).collect::<Vec<_>>());
    Err(Broken::new("step: the money comes back before the seats do", what))
}

fn refund_moved(
    id: OperationId,
    status: OperationStatus,
    after: &World,
    coverage: &mut Coverage,
    provider: &Provider,
) -> Result<(), Broken> {
    let Some(refund) = after.refunds.get(&id) else {
        return Ok(());
    };
    match status {
        OperationStatus::Succeeded => {
            proven(id, after, provider)?;
            if refund.seats.is_empty() && refund.ga.is_empty() {
                coverage.saw(Sometimes::RefundedMoneyAlone);
            }
            if after.operations[&id].base_minor > 0 {
                coverage.saw(Sometimes::RefundedAgain);
            }
        }
        OperationStatus::Failed => coverage.saw(Sometimes::RefundDenied),
        OperationStatus::Pending | OperationStatus::RequiresAction | OperationStatus::Unknown => {}
    }
    Ok(())
}

/// What was refused for want of places or tickets had to be refused; counted anew, from holds and orders.
pub(super) fn refused(
    request: &Request,
    decision: &Decision,
    world: &World,
    now: Timestamp,
) -> Result<(), Broken> {
    let Command::PlaceHold { wish, code, .. } = &request.command else {
        return Ok(());
    };
    if decision.replayed {
        return Ok(());
    }
    let event = world.hall();
    let keeps = event.policy.in_doubt == InDoubt::Keep;
    let binds = |hold: &&Hold| {
        let pending = hold.status == HoldStatus::PaymentPending && keeps;
        hold.status.is_live() && (hold.expires_at > now || pending)
    };
    let tickets = wish.tickets();
    let had = match &decision.outcome {
        Outcome::Refused(Refusal::NotEnoughAvailable { area: Some(area) }) => {
            let allocation = opened(world, code);
            let open = |bucket: &&Bucket| {
                bucket.area == *area && (bucket.allocation.is_none() || bucket.allocation == allocation)
            };
            let buckets: Vec<_> = world.buckets.values().filter(open).collect();
            let room: u32 = buckets.iter().map(|bucket| bucket.capacity - bucket.sold).sum();
            let lines = world.holds.values().filter(binds).flat_map(|hold| &hold.ga);
            let ours = lines.filter(|line| line.area == *area && buckets.iter().any(|b| b.no == line.bucket));
            let wanted =
                wish.ga.iter().find(|(wanted, _)| wanted == area).map_or(0, |(_, quantity)| *quantity);
            room >= ours.map(|line| line.quantity).sum::<u32>() + wanted
        }
        Outcome::Refused(Refusal::NotEnoughAvailable { area: None }) if wish.best.is_none() => {
            let sold: u32 = world.buckets.values().map(|bucket| bucket.sold).sum();
            let held: u32 = world.holds.values().filter(binds).map(|hold| places(&hold.ga)).sum();
            let wanted: u32 = wish.ga.iter().map(|(_, quantity)| quantity).sum();
            event.policy.ga_max.is_none_or(|most| sold + held + wanted <= most)
        }
        Outcome::Refused(Refusal::AccessCodeExhausted { limit, .. }) => {
            let with_it = world.holds.values().filter(|hold| hold.code == *code);
            let used: u32 = with_it
                .map(|hold| match hold.order.map(|order| &world.orders[&order]) {
                    Some(order) if order.status == OrderStatus::Confirmed => order.ticket_count,
                    _ if binds(&hold) => hold.tickets(),
                    _ => 0,
                })
                .sum();
            used + tickets <= *limit
        }
        _ => false,
    };
    if had {
        let what = format!("{:?} at {now:?}: {:?}\n{:?}", request.command, decision.outcome, world.buckets);
        return Err(Broken::new("step: what is free is anyone's", what));
    }
    Ok(())
}
