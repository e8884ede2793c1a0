//! What seats and places go through together: being claimed, sold, and given back. The counts of buckets, of the event and
//! of access codes move here and nowhere else.

use std::sync::Arc;

use crate::event::Event;
use crate::ga::{Bucket, GaLine, places};
use crate::hold::Hold;
use crate::id::{AllocationNo, AreaNo, BucketNo, EventNo, HoldId, SeatOrdinal};
use crate::refusal::Refusal;
use crate::snapshot::Snapshot;
use crate::time::Timestamp;

/// Whose places are, before they are given back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Were {
    Held,
    Sold,
}

/// Holds of an event that are over and still counted: whoever is served in their place ends them.
pub(super) struct Due<'a>(Vec<&'a Hold>);

impl<'a> Due<'a> {
    pub(super) fn of(state: &'a Snapshot, event: &Event, now: Timestamp) -> Due<'a> {
        let ids = state.due_of.get(&event.no()).into_iter().flatten();
        let is_over = |hold: &&Hold| hold.status.is_live() && !hold.binds(&event.policy, now);
        let mut due: Vec<&Hold> = ids.filter_map(|id| state.holds.get(id)).filter(is_over).collect();
        // They give ids away as they end: in one order, whatever order a store has read them in.
        due.sort_by_key(|hold| (hold.expires_at, hold.id));
        Due(due)
    }

    /// Tickets that an access code gets back when they end.
    pub(super) fn tickets_with(&self, code: &Arc<str>) -> u32 {
        self.0.iter().filter(|hold| hold.code.as_ref() == Some(code)).map(|hold| hold.tickets()).sum()
    }

    /// The seats that are free when they end.
    pub(super) fn seats(&self) -> Vec<SeatOrdinal> {
        self.0.iter().flat_map(|hold| &hold.seats).copied().collect()
    }

    fn places_in(&self, area: AreaNo, bucket: BucketNo) -> u32 {
        if planted!(OverduePlacesCounted) {
            return 0;
        }
        let lines = self.0.iter().flat_map(|hold| &hold.ga);
        lines.filter(|line| (line.area, line.bucket) == (area, bucket)).map(|line| line.quantity).sum()
    }

    /// Those that end when such a wish is granted.
    pub(super) fn ended_by(&self, wish: &[(AreaNo, u32)], code: Option<&Arc<str>>) -> Vec<HoldId> {
        let is_in_the_way = |hold: &&&Hold| {
            // The cap over all areas counts the places of each.
            (!wish.is_empty() && !hold.ga.is_empty()) || (code.is_some() && hold.code.as_ref() == code)
        };
        self.0.iter().filter(is_in_the_way).map(|hold| hold.id).collect()
    }
}

/// Whether so many places can be had: in each area, and in the event.
pub(super) fn has_room(
    state: &Snapshot,
    event: &Event,
    wish: &[(AreaNo, u32)],
    allocation: Option<AllocationNo>,
    due: &Due<'_>,
) -> Result<(), Refusal> {
    for (area, quantity) in wish {
        if state.areas.get(&(event.no(), *area)).is_none() {
            return Err(Refusal::NotFound);
        }
        let open = open_buckets(state, event.no(), *area, allocation);
        let free: u64 = open.map(|b| u64::from(b.free()) + u64::from(due.places_in(*area, b.no))).sum();
        if free < u64::from(*quantity) && !planted!(AreaOversold) {
            return Err(Refusal::NotEnoughAvailable { area: Some(*area) });
        }
    }
    let wanted: u32 = wish.iter().map(|(_, quantity)| quantity).sum();
    let over: u32 = due.0.iter().map(|hold| places(&hold.ga)).sum();
    let in_use = event.ga_in_use.saturating_sub(over);
    let is_over = |max: u32| u64::from(in_use) + u64::from(wanted) > u64::from(max);
    if wanted > 0 && event.policy.ga_max.is_some_and(is_over) && !planted!(EventCapForgotten) {
        return Err(Refusal::NotEnoughAvailable { area: None });
    }
    Ok(())
}

/// The buckets that may be taken from: those of the allocation first.
fn open_buckets(
    state: &Snapshot,
    no: EventNo,
    area: AreaNo,
    allocation: Option<AllocationNo>,
) -> impl Iterator<Item = &Bucket> {
    let own = state.buckets_of(no, area).filter(move |b| allocation.is_some() && b.allocation == allocation);
    own.chain(state.buckets_of(no, area).filter(|bucket| bucket.allocation.is_none()))
}

/// From which buckets places are taken; there is room. Different holds begin at different buckets, so that these empty
/// alike.
pub(super) fn choose(
    state: &Snapshot,
    no: EventNo,
    wish: &[(AreaNo, u32)],
    allocation: Option<AllocationNo>,
    hold: HoldId,
) -> Vec<GaLine> {
    let mut lines = Vec::new();
    for (area, quantity) in wish {
        let buckets: Vec<&Bucket> = open_buckets(state, no, *area, allocation).collect();
        let own = buckets.iter().take_while(|bucket| bucket.allocation.is_some()).count();
        let (own, open) = buckets.split_at(own);
        // Ids of one instant differ in their low bits: mixed, they spread evenly.
        let mixed = (hold.0 as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let start = if open.is_empty() { 0 } else { mixed as usize % open.len() };
        let (before, after) = open.split_at(start);
        let mut left = *quantity;
        for bucket in own.iter().chain(after).chain(before) {
            let mut taken = bucket.free().min(left);
            if planted!(AreaOversold) {
                taken = left;
            }
            if taken > 0 {
                lines.push(GaLine { area: *area, bucket: bucket.no, quantity: taken });
                left -= taken;
            }
        }
    }
    lines.sort_unstable();
    lines
}

/// Counts places as held.
pub(super) fn hold(state: &mut Snapshot, no: EventNo, lines: &[GaLine], version: u64) {
    for line in lines {
        let bucket = state.buckets.change(&(no, line.area, line.bucket));
        bucket.held += line.quantity;
        bucket.version = version;
    }
    if !lines.is_empty() {
        state.events.change(&no).ga_in_use += places(lines);
    }
}

/// Counts places as sold that were held.
pub(super) fn sell(state: &mut Snapshot, no: EventNo, lines: &[GaLine], version: u64) {
    for line in lines {
        let bucket = state.buckets.change(&(no, line.area, line.bucket));
        if !planted!(SoldPlacesStayHeld) {
            bucket.held -= line.quantity;
        }
        bucket.sold += line.quantity;
        bucket.version = version;
    }
}

/// Counts places as nobody's. When they are not to be sold again, bucket and area take so many fewer people.
pub(super) fn free(
    state: &mut Snapshot,
    no: EventNo,
    lines: &[GaLine],
    were: Were,
    resell: bool,
    version: u64,
) {
    for line in lines {
        let bucket = state.buckets.change(&(no, line.area, line.bucket));
        match were {
            Were::Held if planted!(PlacesNotGivenBack) => {}
            Were::Held => bucket.held -= line.quantity,
            Were::Sold => bucket.sold -= line.quantity,
        }
        bucket.version = version;
        if !resell {
            bucket.capacity -= line.quantity;
            state.areas.change(&(no, line.area)).capacity -= line.quantity;
        }
    }
    if !lines.is_empty() {
        state.events.change(&no).ga_in_use -= places(lines);
    }
}

/// Which of some seats go back to an allocation when they are nobody's.
pub(super) fn set_aside(state: &Snapshot, no: EventNo, seats: &[SeatOrdinal]) -> Vec<SeatOrdinal> {
    let is_aside = |ordinal: &&SeatOrdinal| {
        state.seats.get(&(no, **ordinal)).is_some_and(|seat| seat.allocation.is_some())
    };
    seats.iter().filter(is_aside).copied().collect()
}

/// Counts tickets with an access code.
pub(super) fn count_code(state: &mut Snapshot, no: EventNo, code: &Option<Arc<str>>, tickets: u32) {
    if let Some(code) = code {
        state.codes.change(&(no, Arc::clone(code))).tickets_in_use += tickets;
    }
}

/// Gives tickets back to an access code.
pub(super) fn uncount_code(state: &mut Snapshot, no: EventNo, code: &Option<Arc<str>>, tickets: u32) {
    if let Some(code) = code
        && !planted!(CodeNotGivenBack)
    {
        let row = state.codes.change(&(no, Arc::clone(code)));
        row.tickets_in_use = row.tickets_in_use.saturating_sub(tickets);
    }
}
