//! Beginning to pay: the order, the attempt, the one grace.

use crate::command::Outcome;
use crate::ga::by_area;
use crate::hold::HoldStatus;
use crate::id::{AccountId, HoldId, OperationId, OrderId, Seed};
use crate::limits::{ATTEMPTS_PER_ORDER_MAX, AUTHORIZE_WINDOW_MS_MIN, PROVIDER_TIMEOUT_MS};
use crate::log::LogKind;
use crate::money::Money;
use crate::order::{Order, OrderStatus};
use crate::payment::{OperationKind, PaymentStatus};
use crate::refusal::Refusal;
use crate::seat_map::SeatStatus;
use crate::snapshot::Snapshot;
use crate::time::Timestamp;

use super::{books, hold};

/// What the buyer gives to pay with.
pub(super) struct Card<'a> {
    pub(super) payment_method_token: &'a str,
    pub(super) email: Option<&'a str>,
    pub(super) return_url: Option<&'a str>,
}

pub(super) fn checkout(
    state: &mut Snapshot,
    id: HoldId,
    account: &AccountId,
    card: Card<'_>,
    now: Timestamp,
    seed: &mut Seed,
) -> Outcome {
    let no = id.event();
    let (Some(held), Some(event)) = (state.holds.get(&id), state.events.get(&no)) else {
        return Outcome::Refused(Refusal::NotFound);
    };
    if held.account != *account {
        return Outcome::Refused(Refusal::NotFound);
    }
    match held.status {
        HoldStatus::Active if held.is_due(now) => return Outcome::Refused(Refusal::HoldExpired),
        HoldStatus::Active => {}
        HoldStatus::PaymentPending => return Outcome::Refused(Refusal::PaymentPending),
        HoldStatus::Expired => return Outcome::Refused(Refusal::HoldExpired),
        HoldStatus::Converted | HoldStatus::Released => return Outcome::Refused(Refusal::HoldNotActive),
    }
    if books::open_attempt(state, held.order).is_some() && !planted!(SecondAttemptWhileOpen) {
        return Outcome::Refused(Refusal::PaymentPending);
    }
    if total_now(state, id, event.price_version) != Some(held.total_minor) && !planted!(PriceOfNow) {
        return Outcome::Refused(Refusal::PriceChanged);
    }
    // The hold itself is among the tickets in use: the account must still be within its limit.
    let limit = event.policy.tickets_per_account_max;
    let in_use = hold::tickets_in_use(state, event, account, now);
    if in_use > limit {
        return Outcome::Refused(Refusal::AccountLimit { limit, in_use });
    }
    let attempts = held.order.map_or(0, |order| {
        state.operations_of(order).iter().filter(|o| o.kind == OperationKind::Authorize).count()
    });
    if attempts >= ATTEMPTS_PER_ORDER_MAX {
        return Outcome::Refused(Refusal::AttemptsExhausted);
    }
    // The one grace comes with the first attempt; later ones live within the first deadline.
    let takes_grace = !held.grace_used || planted!(GraceTwice);
    let grace_ms = if takes_grace { event.policy.payment_grace_ms } else { 0 };
    let deadline = held.expires_at.plus_ms(grace_ms);
    if deadline.since_ms(now) < AUTHORIZE_WINDOW_MS_MIN {
        return Outcome::Refused(Refusal::TooLittleTime);
    }
    if takes_grace {
        let usage = state.accounts.get(&(no, account.clone()));
        let pending = usage.map_or(0, |usage| {
            let rows = usage.live.iter().filter_map(|hold| state.holds.get(hold));
            let pending = rows.filter(|hold| hold.status == HoldStatus::PaymentPending);
            pending.filter(|hold| hold.binds(&event.policy, now)).count()
        });
        if pending >= event.policy.payment_pending_per_account_max as usize {
            return Outcome::Refused(Refusal::PaymentPending);
        }
        if event.payment_pending >= event.policy.payment_pending_max {
            return Outcome::Refused(Refusal::PaymentsSaturated);
        }
    }
    let promised = match planted!(PriceOfNow) {
        true => total_now(state, id, event.price_version).unwrap_or(held.total_minor),
        false => held.total_minor,
    };
    let total = Money { amount_minor: promised, currency: event.currency };
    let (price_version, seats, order, ticket_count) =
        (held.price_version, held.seats.clone(), held.order, held.tickets());

    // Past this line the payment begins.
    let order = match order {
        Some(order) => order,
        None => {
            let order: OrderId = seed.mint();
            let row = Order {
                id: order,
                hold: id,
                account: account.clone(),
                total,
                price_version,
                ticket_count,
                returned_seats: Vec::new(),
                returned_ga: Vec::new(),
                ticketed: false,
                status: OrderStatus::AwaitingPayment,
                payment_status: PaymentStatus::Pending,
                paid_by: None,
                created_at: now,
                confirmed_at: None,
                email: None,
                return_url: None,
            };
            state.orders.insert(order, row);
            order
        }
    };
    let operation =
        books::add_operation(state, OperationKind::Authorize, order, None, None, total, now, seed);
    state.operations.change(&operation).payment_method_token = Some(card.payment_method_token.to_owned());
    let row = state.orders.change(&order);
    row.email = card.email.map(str::to_owned).or(row.email.take());
    row.return_url = card.return_url.map(str::to_owned);
    let row = state.holds.change(&id);
    row.order = Some(order);
    if takes_grace {
        row.status = HoldStatus::PaymentPending;
        row.grace_used = true;
        row.expires_at = deadline;
        state.events.change(&no).payment_pending += 1;
        for ordinal in seats {
            state.seats.change(&(no, ordinal)).status = SeatStatus::Held { hold: id, expires_at: deadline };
        }
    }
    state.append(no, LogKind::CheckoutBegun { hold: id, order, operation });
    books::refresh(state, order);
    Outcome::CheckoutBegun(order)
}

/// What a hold's seats and places cost by a version of the prices.
pub(super) fn total_now(state: &Snapshot, hold: HoldId, price_version: u32) -> Option<i64> {
    let row = state.holds.get(&hold)?;
    hold::total(state, hold.event(), price_version, &row.seats, &by_area(&row.ga))
}

/// Keeps the provider's name of an attempt before it is confirmed there, and says whether it still may be. From here on
/// only the provider's proof ends the attempt.
pub(super) fn record_reference(
    state: &mut Snapshot,
    id: OperationId,
    reference: &str,
    now: Timestamp,
) -> Outcome {
    let Some(operation) = state.operations.get(&id) else {
        return Outcome::Refused(Refusal::NotFound);
    };
    match &operation.reference {
        Some(known) if known == reference => {}
        Some(_) => return Outcome::MustNotConfirm,
        // An answer lost on the way doesn't matter: without a name, nothing can have been confirmed.
        None if !operation.status.is_live() => return Outcome::MustNotConfirm,
        None => {
            let is_anothers = state.references.get(reference).is_some_and(|named| *named != id);
            let row = state.operations.change(&id);
            row.updated_at = now;
            // While it is in flight, nobody else asks about it.
            row.due_at = now.plus_ms(PROVIDER_TIMEOUT_MS);
            state.touch_clock(id.event());
            if is_anothers {
                return Outcome::MustNotConfirm;
            }
            state.name_attempt(id, reference);
        }
    }
    if may_send_authorization(state, id, now) {
        return Outcome::MayConfirm;
    }
    books::look_now(state, id, now);
    Outcome::MustNotConfirm
}

/// Whether an attempt may (still) be confirmed at the provider: its order awaits it, nobody has called it off, and its
/// hold binds the seats, with time left. Past the deadline nothing new is begun.
pub(super) fn may_send_authorization(state: &Snapshot, id: OperationId, now: Timestamp) -> bool {
    let Some(operation) = state.operations.get(&id) else {
        return false;
    };
    let Some(order) = state.orders.get(&operation.order) else {
        return false;
    };
    let hold = state.holds.get(&order.hold);
    let in_time = hold.is_some_and(|hold| hold.status.is_live() && !hold.is_due(now));
    let awaited = operation.status.is_live() && order.status == OrderStatus::AwaitingPayment;
    awaited && in_time && !books::is_returning(state, id)
}
