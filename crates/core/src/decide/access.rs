//! Allocations and access codes: setting seats aside, and who may open what.

use std::sync::Arc;

use crate::access::{AccessCode, Allocation};
use crate::command::Outcome;
use crate::id::{AllocationNo, EventNo, SeatOrdinal};
use crate::limits::ALLOCATIONS_MAX;
use crate::log::LogKind;
use crate::refusal::Refusal;
use crate::seat_map::SeatStatus;
use crate::snapshot::Snapshot;
use crate::time::Timestamp;

use super::places::Due;

pub(super) fn make_allocation(
    state: &mut Snapshot,
    no: EventNo,
    name: &str,
    actor: &str,
    now: Timestamp,
) -> Outcome {
    let Some(event) = state.events.get(&no) else {
        return Outcome::Refused(Refusal::NotFound);
    };
    let of_event = (no, AllocationNo(0))..=(no, AllocationNo(u16::MAX));
    if let Some(same) = state.allocations.range(of_event).find(|known| known.name == name) {
        return Outcome::AllocationMade(same.no);
    }
    if event.allocation_count >= ALLOCATIONS_MAX {
        return Outcome::Refused(Refusal::NotReady("the event has as many allocations as it may"));
    }
    let allocation = AllocationNo(event.allocation_count + 1);
    state.events.change(&no).allocation_count = allocation.0;
    let row = Allocation { no: allocation, name: name.to_owned(), created_at: now };
    state.allocations.insert((no, allocation), row);
    state.append(no, LogKind::AllocationMade { allocation, actor: actor.to_owned() });
    Outcome::AllocationMade(allocation)
}

pub(super) fn set_seats_aside(
    state: &mut Snapshot,
    no: EventNo,
    manifest_version: u32,
    seats: &[SeatOrdinal],
    allocation: Option<AllocationNo>,
    actor: &str,
) -> Outcome {
    let Some(event) = state.events.get(&no) else {
        return Outcome::Refused(Refusal::NotFound);
    };
    if event.manifest_version != manifest_version {
        return Outcome::Refused(Refusal::ManifestChanged);
    }
    if allocation.is_some_and(|allocation| allocation.0 == 0 || allocation.0 > event.allocation_count) {
        return Outcome::Refused(Refusal::NotFound);
    }
    let mut taken = Vec::new();
    let mut to_change = Vec::new();
    for ordinal in seats {
        let Some(seat) = state.seats.get(&(no, *ordinal)) else {
            return Outcome::Refused(Refusal::NotFound);
        };
        match seat.status {
            SeatStatus::Available if seat.allocation != allocation => to_change.push(*ordinal),
            SeatStatus::Available => {}
            SeatStatus::Held { .. } | SeatStatus::Sold { .. } | SeatStatus::NotForSale => {
                taken.push(*ordinal)
            }
        }
    }
    if !taken.is_empty() {
        return Outcome::Refused(Refusal::SeatUnavailable(taken));
    }
    if to_change.is_empty() {
        return Outcome::SeatsSetAside;
    }

    // Past this line all seats change.
    let log = LogKind::SeatsSetAside { seats: to_change.clone(), allocation, actor: actor.to_owned() };
    let version = state.append(no, log);
    for ordinal in to_change {
        let seat = state.seats.change(&(no, ordinal));
        seat.allocation = allocation;
        seat.version = version;
    }
    Outcome::SeatsSetAside
}

pub(super) fn set_access_code(state: &mut Snapshot, no: EventNo, code: &AccessCode, actor: &str) -> Outcome {
    let Some(event) = state.events.get(&no) else {
        return Outcome::Refused(Refusal::NotFound);
    };
    if code.allocation.is_some_and(|allocation| allocation.0 == 0 || allocation.0 > event.allocation_count) {
        return Outcome::Refused(Refusal::NotFound);
    }
    let key = (no, Arc::clone(&code.code));
    match state.codes.get(&key) {
        Some(known) => {
            // What was bought with it stays bought: a seat of the allocation it opened must not become nobody's.
            if known.allocation != code.allocation && known.tickets_in_use > 0 {
                return Outcome::Refused(Refusal::NotReady(
                    "tickets are held or bought with this code: it can't open another allocation",
                ));
            }
            let (in_use, created_at) = (known.tickets_in_use, known.created_at);
            let row = AccessCode { tickets_in_use: in_use, created_at, ..code.clone() };
            if *known == row {
                return Outcome::AccessCodeSet;
            }
            *state.codes.change(&key) = row;
        }
        None => state.codes.insert(key, AccessCode { tickets_in_use: 0, ..code.clone() }),
    }
    let log = LogKind::AccessCodeSet { code: code.code.to_string(), actor: actor.to_owned() };
    state.append(no, log);
    Outcome::AccessCodeSet
}

/// The code that a request names, when it may be used for so many tickets more.
pub(super) fn usable<'a>(
    state: &'a Snapshot,
    no: EventNo,
    code: &Arc<str>,
    tickets: u32,
    due: &Due<'_>,
    now: Timestamp,
) -> Result<&'a AccessCode, Refusal> {
    let given_back = due.tickets_with(code);
    let code = state.codes.get(&(no, Arc::clone(code)));
    let code = code.ok_or(Refusal::AccessCodeInvalid("there is no such code"))?;
    if !code.is_good(now) {
        return Err(Refusal::AccessCodeInvalid("the code is not in force"));
    }
    let (limit, in_use) = (code.tickets_max, code.tickets_in_use.saturating_sub(given_back));
    if in_use.saturating_add(tickets) > limit && !planted!(CodeNotCounted) {
        return Err(Refusal::AccessCodeExhausted { limit, in_use });
    }
    Ok(code)
}
