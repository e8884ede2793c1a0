//! Standing areas: how many they take, and the plane that moves capacity between their buckets.

use crate::command::Outcome;
use crate::event::EventStatus;
use crate::ga::{Bucket, Transfer, TransferStatus};
use crate::id::{AllocationNo, AreaNo, BucketNo, EventNo, Seed, TransferId};
use crate::limits::{BUCKETS_PER_AREA_MAX, GA_CAPACITY_MAX};
use crate::log::LogKind;
use crate::refusal::Refusal;
use crate::snapshot::Snapshot;
use crate::time::Timestamp;

pub(super) fn add_bucket(
    state: &mut Snapshot,
    no: EventNo,
    area: AreaNo,
    allocation: Option<AllocationNo>,
    actor: &str,
) -> Outcome {
    let (Some(event), Some(_)) = (state.events.get(&no), state.areas.get(&(no, area))) else {
        return Outcome::Refused(Refusal::NotFound);
    };
    if allocation.is_some_and(|allocation| allocation.0 == 0 || allocation.0 > event.allocation_count) {
        return Outcome::Refused(Refusal::NotFound);
    }
    let count = state.buckets_of(no, area).count();
    if count >= BUCKETS_PER_AREA_MAX as usize {
        return Outcome::Refused(Refusal::NotReady("the area has as many buckets as it may"));
    }
    let bucket = BucketNo(count as u16);
    let kind = LogKind::BucketAdded { area, bucket, allocation, actor: actor.to_owned() };
    let version = state.append(no, kind);
    let row = Bucket { area, no: bucket, capacity: 0, held: 0, sold: 0, allocation, version };
    state.buckets.insert((no, area, bucket), row);
    Outcome::BucketAdded(bucket)
}

/// More goes into the first bucket that is everyone's; less is taken from what is free in those that are, the last first.
pub(super) fn set_capacity(
    state: &mut Snapshot,
    no: EventNo,
    area: AreaNo,
    capacity: u32,
    actor: &str,
) -> Outcome {
    let (Some(_), Some(row)) = (state.events.get(&no), state.areas.get(&(no, area))) else {
        return Outcome::Refused(Refusal::NotFound);
    };
    if capacity == 0 || capacity > GA_CAPACITY_MAX {
        return Outcome::Refused(Refusal::NotReady("an area takes 1 to 10,000,000 people"));
    }
    let was = row.capacity;
    if capacity == was {
        return Outcome::CapacitySet;
    }
    let open = state.buckets_of(no, area).filter(|bucket| bucket.allocation.is_none());
    let mut changes: Vec<(BucketNo, i64)> = Vec::new();
    if capacity > was {
        let first = open.map(|bucket| bucket.no).next();
        let Some(first) = first else {
            return Outcome::Refused(Refusal::NotReady("the area has no bucket that is everyone's"));
        };
        changes.push((first, i64::from(capacity - was)));
    } else {
        let mut left = was - capacity;
        let free: Vec<(BucketNo, u32)> = open.map(|bucket| (bucket.no, bucket.free())).collect();
        for (bucket, free) in free.into_iter().rev() {
            let taken = free.min(left);
            if taken > 0 {
                changes.push((bucket, -i64::from(taken)));
                left -= taken;
            }
        }
        if left > 0 {
            return Outcome::Refused(Refusal::NotEnoughAvailable { area: Some(area) });
        }
    }

    // Past this line area and buckets change together.
    let log = LogKind::CapacitySet { area, capacity, changes: changes.clone(), actor: actor.to_owned() };
    let version = state.append(no, log);
    state.areas.change(&(no, area)).capacity = capacity;
    for (bucket, change) in changes {
        let row = state.buckets.change(&(no, area, bucket));
        row.capacity = (i64::from(row.capacity) + change) as u32;
        row.version = version;
    }
    Outcome::CapacitySet
}

#[allow(clippy::too_many_arguments, reason = "they are the command's own")]
pub(super) fn begin_transfer(
    state: &mut Snapshot,
    no: EventNo,
    area: AreaNo,
    from: BucketNo,
    to: BucketNo,
    quantity: u32,
    actor: &str,
    now: Timestamp,
    seed: &mut Seed,
) -> Outcome {
    let Some(event) = state.events.get(&no) else {
        return Outcome::Refused(Refusal::NotFound);
    };
    // A draft's areas may still be laid out anew, and a transfer would then be of nothing.
    if event.status == EventStatus::Draft {
        return Outcome::Refused(Refusal::NotReady("the event has never been opened"));
    }
    let Some(source) = state.buckets.get(&(no, area, from)) else {
        return Outcome::Refused(Refusal::NotFound);
    };
    if from == to || state.buckets.get(&(no, area, to)).is_none() {
        return Outcome::Refused(Refusal::NotFound);
    }
    if source.free() < quantity || quantity == 0 {
        return Outcome::Refused(Refusal::NotEnoughAvailable { area: Some(area) });
    }

    // Past this line the capacity is on its way.
    let id: TransferId = seed.mint();
    let transfer = Transfer {
        id,
        area,
        from,
        to,
        quantity,
        status: TransferStatus::InFlight,
        actor: actor.to_owned(),
        created_at: now,
        ended_at: None,
    };
    let version = log(state, &transfer);
    let source = state.buckets.change(&(no, area, from));
    source.capacity -= quantity;
    source.version = version;
    state.transfers.insert(id, transfer);
    Outcome::TransferBegun(id)
}

fn log(state: &mut Snapshot, transfer: &Transfer) -> u64 {
    let &Transfer { id, area, from, to, quantity, status, .. } = transfer;
    state.append(id.event(), LogKind::QuotaMoved { transfer: id, area, from, to, quantity, status })
}

pub(super) fn end_transfer(state: &mut Snapshot, id: TransferId, arrives: bool, now: Timestamp) -> Outcome {
    let Some(transfer) = state.transfers.get(&id) else {
        return Outcome::Refused(Refusal::NotFound);
    };
    if transfer.status != TransferStatus::InFlight {
        return Outcome::TransferEnded;
    }
    let (status, bucket) = match arrives {
        true => (TransferStatus::Arrived, transfer.to),
        false => (TransferStatus::Returned, transfer.from),
    };
    let (area, quantity) = (transfer.area, transfer.quantity);
    if state.buckets.get(&(id.event(), area, bucket)).is_none() {
        return Outcome::Refused(Refusal::NotFound);
    }
    let row = state.transfers.change(&id);
    row.status = status;
    row.ended_at = Some(now);
    let ended = row.clone();
    let version = log(state, &ended);
    let target = state.buckets.change(&(id.event(), area, bucket));
    if !planted!(TransferLost) {
        target.capacity += quantity;
    }
    target.version = version;
    Outcome::TransferEnded
}
