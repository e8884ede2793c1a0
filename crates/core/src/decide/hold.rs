//! Placing, giving back and ending holds.

use std::sync::Arc;

use crate::best_available::{self, Best};
use crate::command::{Expiry, Outcome, PlacedHold, Wish};
use crate::event::{Event, EventStatus, InDoubt};
use crate::ga::by_area;
use crate::hold::{Hold, HoldStatus};
use crate::id::{AccountId, AllocationNo, AreaNo, EventNo, HoldId, SeatOrdinal, Seed};
use crate::log::LogKind;
use crate::order::OrderStatus;
use crate::reconcile::CaseKind;
use crate::refusal::Refusal;
use crate::seat_map::{Seat, SeatStatus};
use crate::snapshot::Snapshot;
use crate::time::Timestamp;

use super::places::{self, Due};
use super::{access, books};

/// What is wished for, by whom, and with which code.
pub(super) struct Wished<'a> {
    pub(super) account: &'a AccountId,
    pub(super) wish: &'a Wish,
    pub(super) code: Option<&'a Arc<str>>,
}

pub(super) fn place_hold(
    state: &mut Snapshot,
    no: EventNo,
    manifest_version: u32,
    Wished { account, wish, code }: Wished<'_>,
    now: Timestamp,
    seed: &mut Seed,
) -> Outcome {
    let Some(event) = state.events.get(&no) else {
        return Outcome::Refused(Refusal::NotFound);
    };
    let tickets = wish.tickets();
    let due = Due::of(state, event, now);
    let access = match code.map(|code| access::usable(state, no, code, tickets, &due, now)).transpose() {
        Ok(access) => access,
        Err(refusal) => return Outcome::Refused(refusal),
    };
    if let Err(refusal) = is_selling(event, access.is_some_and(|code| code.presale), now) {
        return Outcome::Refused(refusal);
    }
    if event.manifest_version != manifest_version {
        return Outcome::Refused(Refusal::ManifestChanged);
    }
    let limit = event.policy.seats_per_hold_max;
    if tickets == 0 || tickets > limit {
        return Outcome::Refused(Refusal::TooManySeats { limit });
    }
    let limit = event.policy.tickets_per_account_max;
    let in_use = tickets_in_use(state, event, account, now);
    if in_use + tickets > limit {
        return Outcome::Refused(Refusal::AccountLimit { limit, in_use });
    }
    let allocation = access.and_then(|code| code.allocation);
    let chosen = match &wish.best {
        None => None,
        Some(best) => match choose(state, no, best, allocation, now) {
            Some(seats) => Some(seats),
            None => return Outcome::Refused(Refusal::NotEnoughAvailable { area: None }),
        },
    };
    let seats = chosen.as_deref().unwrap_or(&wish.seats);
    let Some(event) = state.events.get(&no) else {
        return Outcome::Refused(Refusal::NotFound);
    };
    let due = Due::of(state, event, now);
    let overdue = match takeable(state, event, seats, allocation, now) {
        Ok(overdue) => overdue,
        Err(refusal) => return Outcome::Refused(refusal),
    };
    if let Err(refusal) = places::has_room(state, event, &wish.ga, allocation, &due) {
        return Outcome::Refused(refusal);
    }
    let price_version = event.price_version;
    let Some(total_minor) = total(state, no, price_version, seats, &wish.ga) else {
        return Outcome::Refused(Refusal::NotReady("a price level has no price"));
    };
    let expires_at = now.plus_ms(event.policy.hold_ttl_ms);
    let overdue = overdue.into_iter().chain(due.ended_by(&wish.ga, code));
    let overdue: Vec<HoldId> = overdue.filter(|_| !planted!(TakeoverLeavesHold)).collect();

    // Past this line the hold must succeed: all seats and places, or none.
    for hold in overdue {
        if state.holds.get(&hold).is_some_and(|hold| hold.status.is_live()) {
            books::end_hold(state, hold, HoldStatus::Expired, now, seed);
        }
    }
    let id: HoldId = seed.mint();
    let ga = places::choose(state, no, &wish.ga, allocation, id);
    let hold = Hold {
        id,
        account: account.clone(),
        status: HoldStatus::Active,
        expires_at,
        first_expires_at: expires_at,
        created_at: now,
        seats: seats.to_vec(),
        ga: ga.clone(),
        code: code.cloned(),
        price_version,
        total_minor,
        order: None,
        grace_used: false,
        in_doubt: false,
    };
    let version = state.append(no, LogKind::HoldPlaced { hold: id, seats: seats.to_vec(), ga: ga.clone() });
    for ordinal in seats {
        let seat = state.seats.change(&(no, *ordinal));
        seat.status = SeatStatus::Held { hold: id, expires_at };
        seat.version = version;
    }
    places::hold(state, no, &ga, version);
    places::count_code(state, no, &hold.code, tickets);
    state.holds.insert(id, hold);
    state.accounts.entry((no, account.clone())).or_default().live.insert(id);
    placed(state, id)
}

/// The best seats for a wish, with their rows: of the allocation that is open to it first, then of anyone's. Seats of holds
/// that are over count as free; they are ended when the seats are taken.
fn choose(
    state: &mut Snapshot,
    no: EventNo,
    best: &Best,
    allocation: Option<AllocationNo>,
    now: Timestamp,
) -> Option<Vec<SeatOrdinal>> {
    let event = state.events.get(&no)?;
    let orphan_seats = event.policy.orphan_seats;
    let over = match planted!(ChoiceForgetsDue) {
        true => Vec::new(),
        false => Due::of(state, event, now).seats(),
    };
    let board = state.boards.get_mut(&no)?;
    let seats = board.as_if_free(over, |board| {
        let own = allocation.and_then(|own| best_available::choose(board, best, Some(own), orphan_seats));
        own.or_else(|| best_available::choose(board, best, None, orphan_seats))
    })?;
    let rows: Vec<Seat> = seats.iter().filter_map(|seat| board.seat(*seat)).collect();
    // A row that is here already stays: the board has followed whatever was decided about it.
    rows.into_iter().for_each(|row| state.seats.load((no, row.ordinal), row));
    Some(seats)
}

/// Whether seats may be had by someone for whom this allocation is open: the holds that are over and end with it, or why
/// not.
fn takeable(
    state: &Snapshot,
    event: &Event,
    seats: &[SeatOrdinal],
    allocation: Option<AllocationNo>,
    now: Timestamp,
) -> Result<Vec<HoldId>, Refusal> {
    let mut blockers = Vec::new();
    let mut overdue = Vec::new();
    for ordinal in seats {
        let Some(seat) = state.seats.get(&(event.no(), *ordinal)) else {
            return Err(Refusal::NotFound);
        };
        if seat.allocation.is_some() && seat.allocation != allocation && !planted!(AllocationNotAsked) {
            blockers.push(*ordinal);
            continue;
        }
        match seat.status {
            SeatStatus::Available => {}
            SeatStatus::Held { hold, expires_at } => {
                // At the deadline itself the seat is anyone's, unless a payment in doubt still binds it.
                let bound =
                    expires_at > now || state.holds.get(&hold).is_none_or(|h| h.binds(&event.policy, now));
                match bound {
                    true => blockers.push(*ordinal),
                    false => overdue.push(hold),
                }
            }
            SeatStatus::Sold { .. } | SeatStatus::NotForSale => blockers.push(*ordinal),
        }
    }
    if blockers.is_empty() { Ok(overdue) } else { Err(Refusal::SeatUnavailable(blockers)) }
}

/// What seats and places cost by a version of the prices; `None` when one of them has no price.
pub(super) fn total(
    state: &Snapshot,
    no: EventNo,
    price_version: u32,
    seats: &[SeatOrdinal],
    ga: &[(AreaNo, u32)],
) -> Option<i64> {
    let prices = state.prices.get(&(no, price_version))?;
    let seat = |ordinal: &SeatOrdinal| prices.price(state.seats.get(&(no, *ordinal))?.price_level);
    let area = |(area, quantity): &(AreaNo, u32)| {
        prices.price(state.areas.get(&(no, *area))?.price_level)?.checked_mul(i64::from(*quantity))
    };
    seats.iter().map(seat).chain(ga.iter().map(area)).try_fold(0i64, |sum, cost| sum.checked_add(cost?))
}

/// What the buyer was told when the hold was placed, whatever became of it since.
pub(crate) fn placed(state: &Snapshot, id: HoldId) -> Outcome {
    let Some(hold) = state.holds.get(&id) else {
        return Outcome::Refused(Refusal::NotFound);
    };
    let no = hold.event();
    let prices = state.prices.get(&(no, hold.price_version)).cloned().unwrap_or_default();
    let seats = hold.seats.iter().filter_map(|ordinal| {
        let level = state.seats.get(&(no, *ordinal))?.price_level;
        Some((*ordinal, level, prices.price(level)?))
    });
    let ga = by_area(&hold.ga).into_iter().filter_map(|(area, quantity)| {
        let level = state.areas.get(&(no, area))?.price_level;
        Some((area, quantity, level, prices.price(level)?))
    });
    let (seats, ga) = (seats.collect(), ga.collect());
    let hold = Hold {
        status: HoldStatus::Active,
        expires_at: hold.first_expires_at,
        order: None,
        grace_used: false,
        in_doubt: false,
        ..hold.clone()
    };
    Outcome::HoldPlaced(PlacedHold { hold, seats, ga })
}

/// Whether an event sells now. Who has a code for the presale may buy before the sale begins.
fn is_selling(event: &Event, presale: bool, now: Timestamp) -> Result<(), Refusal> {
    match event.status {
        EventStatus::Draft | EventStatus::Closed => Err(Refusal::NotOnSale),
        EventStatus::Paused => Err(Refusal::EventPaused),
        EventStatus::Open if event.on_sale_at.is_some_and(|at| now < at) && !presale => {
            Err(Refusal::NotOnSale)
        }
        EventStatus::Open if event.off_sale_at.is_some_and(|at| at <= now) => Err(Refusal::NotOnSale),
        EventStatus::Open => Ok(()),
    }
}

/// Tickets an account has: sold, and held by holds that bind. Grace counts; a hold past its time doesn't, swept
/// or not.
pub(super) fn tickets_in_use(state: &Snapshot, event: &Event, account: &AccountId, now: Timestamp) -> u32 {
    let Some(usage) = state.accounts.get(&(event.no(), account.clone())) else {
        return 0;
    };
    if planted!(LimitForgetsHolds) {
        return usage.sold;
    }
    let binding =
        usage.live.iter().filter_map(|id| state.holds.get(id)).filter(|h| h.binds(&event.policy, now));
    usage.sold + binding.map(Hold::tickets).sum::<u32>()
}

pub(super) fn release_hold(
    state: &mut Snapshot,
    id: HoldId,
    account: Option<&AccountId>,
    now: Timestamp,
    seed: &mut Seed,
) -> Outcome {
    let Some(hold) = state.holds.get(&id) else {
        return Outcome::Refused(Refusal::NotFound);
    };
    if account.is_some_and(|account| *account != hold.account) {
        return Outcome::Refused(Refusal::NotFound);
    }
    match hold.status {
        HoldStatus::Released | HoldStatus::Expired => return Outcome::HoldReleased,
        HoldStatus::Converted => return Outcome::Refused(Refusal::HoldNotActive),
        HoldStatus::PaymentPending if !planted!(ReleasedWhilePaid) => {
            return Outcome::Refused(Refusal::PaymentPending);
        }
        HoldStatus::Active | HoldStatus::PaymentPending => {}
    }
    if books::open_attempt(state, hold.order).is_some() && !planted!(ReleasedWhilePaid) {
        return Outcome::Refused(Refusal::PaymentPending);
    }
    let ended = if hold.is_due(now) { HoldStatus::Expired } else { HoldStatus::Released };

    // Past this line the hold ends.
    books::end_hold(state, id, ended, now, seed);
    Outcome::HoldReleased
}

pub(super) fn expire_hold(state: &mut Snapshot, id: HoldId, now: Timestamp, seed: &mut Seed) -> Outcome {
    let Some(hold) = state.holds.get(&id) else {
        return Outcome::Refused(Refusal::NotFound);
    };
    if !hold.status.is_live() || !hold.is_due(now) {
        return Outcome::Expiry(Expiry::NotDue);
    }
    let Some(event) = state.events.get(&hold.event()) else {
        return Outcome::Refused(Refusal::NotFound);
    };
    let keeps = hold.status == HoldStatus::PaymentPending && event.policy.in_doubt == InDoubt::Keep;
    let attempt = if keeps { books::open_attempt(state, hold.order) } else { None };
    if let Some(attempt) = attempt
        && attempt.reference.is_some()
        && !planted!(DoubtReleasesSeats)
    {
        // The provider knows of this attempt, so only the provider can end the doubt: ask it now, do nothing
        // new.
        let (attempt, order) = (attempt.id, attempt.order);
        if !hold.in_doubt {
            state.holds.change(&id).in_doubt = true;
            books::look_now(state, attempt, now);
            let evidence =
                "the grace has run out and the provider has not said how the payment ended".to_owned();
            books::open_case(state, CaseKind::InDoubt, order, attempt, evidence, now, seed);
        }
        return Outcome::Expiry(Expiry::InDoubt);
    }
    books::end_hold(state, id, HoldStatus::Expired, now, seed);
    Outcome::Expiry(Expiry::Expired)
}

/// The order status that follows when a hold ends without a sale.
pub(super) fn order_after(ended: HoldStatus) -> OrderStatus {
    match ended {
        HoldStatus::Expired => OrderStatus::Expired,
        HoldStatus::Released | HoldStatus::Active | HoldStatus::PaymentPending | HoldStatus::Converted => {
            OrderStatus::Cancelled
        }
    }
}
