//! The steps that several decisions share: ending a hold, selling it, undoing a sale, giving money back, and keeping
//! each order's payment status and cases in step with its operations. All of them follow after the line at which a
//! decision has been made; none of them refuses.

use crate::event::PaymentMode;
use crate::hold::HoldStatus;
use crate::id::{CaseId, EventNo, HoldId, OperationId, OrderId, Seed};
use crate::log::LogKind;
use crate::money::Money;
use crate::order::OrderStatus;
use crate::payment::{Operation, OperationKind, OperationStatus, payment_status};
use crate::reconcile::{Case, CaseKind, CaseStatus, Resolution};
use crate::seat_map::SeatStatus;
use crate::snapshot::Snapshot;
use crate::time::Timestamp;

use super::hold::order_after;
use super::places::{self, Were};

/// Who owns a case that no person has acted upon.
const WORKER: &str = "worker";

/// The order's attempt whose answer is still to come. There is at most one.
pub(super) fn open_attempt(state: &Snapshot, order: Option<OrderId>) -> Option<&Operation> {
    let is_open = |o: &&Operation| o.kind == OperationKind::Authorize && o.status.is_live();
    state.operations_of(order?).into_iter().find(is_open)
}

/// Ends a live hold without a sale: its seats are anyone's, its order is over, and what was asked of the
/// provider is called off.
pub(super) fn end_hold(state: &mut Snapshot, id: HoldId, ended: HoldStatus, now: Timestamp, seed: &mut Seed) {
    let hold = state.holds.change(&id);
    let was_pending = hold.status == HoldStatus::PaymentPending;
    hold.status = ended;
    hold.in_doubt = false;
    let (event, account, order, seats) = (hold.event(), hold.account.clone(), hold.order, hold.seats.clone());
    let (ga, code, tickets) = (hold.ga.clone(), hold.code.clone(), hold.tickets());
    if was_pending {
        state.events.change(&event).payment_pending -= 1;
    }
    if let Some(usage) = state.accounts.get_mut(&(event, account)) {
        usage.live.remove(&id);
    }
    let set_aside = places::set_aside(state, event, &seats);
    let (gone, lines) = (seats.clone(), ga.clone());
    let log = match ended {
        HoldStatus::Expired => LogKind::HoldExpired { hold: id, order, seats: gone, set_aside, ga: lines },
        _ => LogKind::HoldReleased { hold: id, order, seats: gone, set_aside, ga: lines },
    };
    let version = state.append(event, log);
    places::free(state, event, &ga, Were::Held, true, version);
    places::uncount_code(state, event, &code, tickets);
    for ordinal in seats {
        let seat = state.seats.change(&(event, ordinal));
        // Only the hold's own seats: a seat that has gone to another hold is none of ours.
        if matches!(seat.status, SeatStatus::Held { hold, .. } if hold == id) {
            seat.status = SeatStatus::Available;
            seat.version = version;
        }
    }
    if let Some(order) = order
        && state.orders.get(&order).is_some_and(|order| order.status == OrderStatus::AwaitingPayment)
    {
        state.orders.change(&order).status = order_after(ended);
        call_off(state, order, now, seed);
        refresh(state, order);
    }
}

/// Calls off an order's open attempt. One the provider never heard of has failed; any other needs the provider's proof.
fn call_off(state: &mut Snapshot, order: OrderId, now: Timestamp, seed: &mut Seed) {
    let Some(attempt) = open_attempt(state, Some(order)) else {
        return;
    };
    let id = attempt.id;
    match attempt.reference {
        None => {
            fail_operation(state, id, "abandoned", now);
            let doubt = |kind| matches!(kind, CaseKind::InDoubt | CaseKind::PaymentUnknown);
            close_cases(state, order, id, doubt, "it was never confirmed at the provider", now);
        }
        Some(_) => ensure_returned(state, id, OperationKind::Void, now, seed),
    }
}

/// The statuses of what was made to give an attempt's money back.
fn returns(state: &Snapshot, attempt: OperationId) -> impl Iterator<Item = OperationStatus> {
    let order = state.operations.get(&attempt).map(|attempt| attempt.order);
    let operations = order.map(|order| state.operations_of(order)).unwrap_or_default().into_iter();
    let back = |kind| matches!(kind, OperationKind::Void | OperationKind::Refund);
    operations.filter(move |o| back(o.kind) && o.target == Some(attempt)).map(|o| o.status)
}

/// Whether an attempt's money is on its way back, or there.
pub(super) fn is_returning(state: &Snapshot, attempt: OperationId) -> bool {
    returns(state, attempt).any(|status| status != OperationStatus::Failed)
}

/// Whether an attempt's money is back, by proof.
pub(super) fn is_returned(state: &Snapshot, attempt: OperationId) -> bool {
    returns(state, attempt).any(|status| status == OperationStatus::Succeeded)
}

/// Sees to it that an attempt's money goes back: makes a VOID or a REFUND unless one is on its way or done.
pub(super) fn ensure_returned(
    state: &mut Snapshot,
    attempt: OperationId,
    kind: OperationKind,
    now: Timestamp,
    seed: &mut Seed,
) {
    let Some(paid) = state.operations.get(&attempt) else {
        return;
    };
    let (order, reference, amount) = (paid.order, paid.reference.clone(), paid.amount);
    let same =
        |o: &&Operation| o.kind == kind && o.target == Some(attempt) && o.status != OperationStatus::Failed;
    if state.operations_of(order).iter().any(same) {
        return;
    }
    add_operation(state, kind, order, Some(attempt), reference, amount, now, seed);
    refresh(state, order);
}

/// What has been given back of an attempt, by proof, in minor units.
pub(super) fn refunded_minor(state: &Snapshot, order: OrderId, attempt: OperationId) -> i64 {
    let refunds = state.operations_of(order).into_iter().filter(|o| o.kind == OperationKind::Refund);
    let done = refunds.filter(|o| o.target == Some(attempt) && o.status == OperationStatus::Succeeded);
    done.map(|refund| refund.amount.amount_minor).sum()
}

/// Adds an operation, due at once.
#[allow(clippy::too_many_arguments, reason = "an operation is made here and nowhere else")]
pub(super) fn add_operation(
    state: &mut Snapshot,
    kind: OperationKind,
    order: OrderId,
    target: Option<OperationId>,
    reference: Option<String>,
    amount: Money,
    now: Timestamp,
    seed: &mut Seed,
) -> OperationId {
    let id: OperationId = seed.mint();
    let seq = state.operations_of.get(&order).map_or(0, |ids| ids.len() as u32);
    let refunded = target.map_or(0, |attempt| refunded_minor(state, order, attempt));
    let operation = Operation {
        id,
        order,
        seq,
        kind,
        status: OperationStatus::Pending,
        target,
        reference,
        amount,
        base_minor: if kind == OperationKind::Refund { refunded } else { 0 },
        payment_method_token: None,
        next_action_url: None,
        failure_code: None,
        created_at: now,
        updated_at: now,
        due_at: now,
        tries: 0,
    };
    state.operations.insert(id, operation);
    state.operations_of.entry(order).or_default().push(id);
    if target.is_some() {
        state.append(
            id.event(),
            LogKind::OperationMoved { order, operation: id, kind, status: OperationStatus::Pending },
        );
    }
    id
}

/// Moves an operation to a status and logs it. A final one keeps no card.
pub(super) fn move_operation(state: &mut Snapshot, id: OperationId, status: OperationStatus, now: Timestamp) {
    let operation = state.operations.change(&id);
    let moved = operation.status != status;
    operation.status = status;
    operation.updated_at = now;
    if !status.is_live() {
        operation.payment_method_token = None;
        operation.next_action_url = None;
    }
    let (order, kind) = (operation.order, operation.kind);
    if moved {
        state.append(id.event(), LogKind::OperationMoved { order, operation: id, kind, status });
        refresh(state, order);
    }
}

/// Moves an operation to FAILED with the provider's code.
pub(super) fn fail_operation(state: &mut Snapshot, id: OperationId, code: &str, now: Timestamp) {
    state.operations.change(&id).failure_code = Some(code.to_owned());
    move_operation(state, id, OperationStatus::Failed, now);
}

/// Makes an operation due at once, unless it is done.
pub(super) fn look_now(state: &mut Snapshot, id: OperationId, now: Timestamp) {
    if state.operations.get(&id).is_some_and(|operation| operation.status.is_live()) {
        let row = state.operations.change(&id);
        row.due_at = row.due_at.min(now);
        state.touch_clock(id.event());
    }
}

/// Brings an order's payment status in step with its operations.
pub(super) fn refresh(state: &mut Snapshot, order: OrderId) {
    let Some(row) = state.orders.get(&order) else {
        return;
    };
    let charge = state.events.get(&order.event()).is_some_and(|e| e.policy.payment == PaymentMode::Charge);
    let status = payment_status(&state.operations_of(order), row.paid_by, charge);
    if row.payment_status != status {
        state.orders.change(&order).payment_status = status;
    }
}

/// Sells a hold's seats to its order; the caller has checked that it may.
pub(super) fn sell(
    state: &mut Snapshot,
    order: OrderId,
    attempt: OperationId,
    now: Timestamp,
    seed: &mut Seed,
) {
    let row = state.orders.change(&order);
    row.status = OrderStatus::Confirmed;
    row.paid_by = Some(attempt);
    row.confirmed_at = Some(now);
    let (hold_id, account, total) = (row.hold, row.account.clone(), row.total);
    let hold = state.holds.change(&hold_id);
    let was_pending = hold.status == HoldStatus::PaymentPending;
    hold.status = HoldStatus::Converted;
    hold.in_doubt = false;
    let (seats, ga, tickets) = (hold.seats.clone(), hold.ga.clone(), hold.tickets());
    let event = hold_id.event();
    if was_pending {
        state.events.change(&event).payment_pending -= 1;
    }
    let usage = state.accounts.entry((event, account)).or_default();
    usage.live.remove(&hold_id);
    usage.sold += tickets;
    let log = LogKind::OrderConfirmed { order, hold: hold_id, seats: seats.clone(), ga: ga.clone() };
    let version = state.append(event, log);
    places::sell(state, event, &ga, version);
    for ordinal in seats {
        let seat = state.seats.change(&(event, ordinal));
        seat.status = SeatStatus::Sold { hold: hold_id, order };
        seat.version = version;
    }
    let charge = state.events.get(&event).is_some_and(|e| e.policy.payment == PaymentMode::Charge);
    if !charge {
        let reference = state.operations.get(&attempt).and_then(|attempt| attempt.reference.clone());
        add_operation(state, OperationKind::Capture, order, Some(attempt), reference, total, now, seed);
    }
    // Should another attempt be under way, nothing more is to come of it.
    call_off(state, order, now, seed);
    refresh(state, order);
    let done = |kind| matches!(kind, CaseKind::InDoubt | CaseKind::LateSuccess | CaseKind::VoidFailed);
    close_cases(state, order, attempt, done, "the payment succeeded and the seats are sold", now);
}

/// An attempt has brought its order nothing: the hold goes back to its first deadline, or is over.
pub(super) fn return_hold(state: &mut Snapshot, order: OrderId, now: Timestamp, seed: &mut Seed) {
    let Some(row) = state.orders.get(&order).filter(|order| order.status == OrderStatus::AwaitingPayment)
    else {
        return;
    };
    let id = row.hold;
    let Some(hold) = state.holds.get(&id).filter(|hold| hold.status == HoldStatus::PaymentPending) else {
        return;
    };
    let (event, first, seats) = (hold.event(), hold.first_expires_at, hold.seats.clone());
    if first <= now {
        end_hold(state, id, HoldStatus::Expired, now, seed);
        return;
    }
    let hold = state.holds.change(&id);
    hold.status = HoldStatus::Active;
    hold.expires_at = first;
    hold.in_doubt = false;
    if !planted!(PendingNeverCountedDown) {
        state.events.change(&event).payment_pending -= 1;
    }
    for ordinal in seats {
        state.seats.change(&(event, ordinal)).status = SeatStatus::Held { hold: id, expires_at: first };
    }
}

/// Undoes a sale before any ticket exists: the money could not be taken.
pub(super) fn compensate(
    state: &mut Snapshot,
    order: OrderId,
    attempt: OperationId,
    evidence: String,
    now: Timestamp,
    seed: &mut Seed,
) {
    let row = state.orders.change(&order);
    if row.status != OrderStatus::Confirmed {
        return;
    }
    row.status = OrderStatus::Cancelled;
    let (hold, account) = (row.hold, row.account.clone());
    let event = hold.event();
    let held = state.holds.get(&hold).map(|hold| (hold.seats.clone(), hold.ga.clone(), hold.code.clone()));
    let (seats, ga, code) = held.unwrap_or_default();
    let tickets = seats.len() as u32 + crate::ga::places(&ga);
    if let Some(usage) = state.accounts.get_mut(&(event, account)) {
        usage.sold = usage.sold.saturating_sub(tickets);
    }
    let set_aside = places::set_aside(state, event, &seats);
    let log = LogKind::OrderCancelled { order, hold, seats: seats.clone(), set_aside, ga: ga.clone() };
    let version = state.append(event, log);
    places::free(state, event, &ga, Were::Sold, true, version);
    places::uncount_code(state, event, &code, tickets);
    for ordinal in seats.into_iter().filter(|_| !planted!(CancelledKeepsSeats)) {
        let seat = state.seats.change(&(event, ordinal));
        if matches!(seat.status, SeatStatus::Sold { order: owner, .. } if owner == order) {
            seat.status = SeatStatus::Available;
            seat.version = version;
        }
    }
    open_case(state, CaseKind::CaptureFailed, order, attempt, evidence, now, seed);
    refresh(state, order);
}

/// Opens a case about an attempt of an order, unless the same one is open.
pub(super) fn open_case(
    state: &mut Snapshot,
    kind: CaseKind,
    order: OrderId,
    attempt: OperationId,
    evidence: String,
    now: Timestamp,
    seed: &mut Seed,
) -> CaseId {
    let same = |case: &Case| case.kind == kind && case.operation == Some(attempt);
    let open = state.open_cases_of(order);
    if let Some(id) = open.into_iter().find(|id| state.cases.get(id).is_some_and(same)) {
        return id;
    }
    let id: CaseId = seed.mint();
    add_case(state, id, kind, Some(order), Some(attempt), evidence, now);
    state.cases_of.entry(order).or_default().push(id);
    id
}

/// Adds a case to its event's books.
pub(super) fn add_case(
    state: &mut Snapshot,
    id: CaseId,
    kind: CaseKind,
    order: Option<OrderId>,
    operation: Option<OperationId>,
    evidence: String,
    now: Timestamp,
) {
    let case = Case {
        id,
        kind,
        order,
        operation,
        subject: None,
        opened_at: now,
        evidence,
        status: CaseStatus::Open,
        owner: WORKER.to_owned(),
        next_check_at: now,
        resolution: None,
    };
    state.cases.insert(id, case);
    state.append(id.event(), LogKind::CaseOpened { case: id, kind, order });
}

/// Keeps the question about a provider's object that is no attempt of ours; whether it is new. One that was answered comes back
/// only when it was answered by a proof that doesn't hold any more: what a person has dismissed stays so.
pub(super) fn ask_about(
    state: &mut Snapshot,
    event: EventNo,
    kind: CaseKind,
    subject: &str,
    evidence: String,
    now: Timestamp,
) -> (CaseId, bool) {
    let id = CaseId::about(event, subject);
    match state.cases.get(&id).map(|case| (case.status, case.owner == WORKER)) {
        None => {
            add_case(state, id, kind, None, None, evidence, now);
            state.cases.change(&id).subject = Some(subject.to_owned());
        }
        Some((CaseStatus::Closed, true)) => {
            let case = state.cases.change(&id);
            (case.status, case.resolution, case.next_check_at) = (CaseStatus::Open, None, now);
            state.append(event, LogKind::CaseOpened { case: id, kind, order: None });
        }
        Some(_) => return (id, false),
    }
    (id, true)
}

/// Closes the case of a payment that nobody could place and that has found its order; whether it was that.
pub(super) fn settle_orphan(state: &mut Snapshot, id: CaseId, event: EventNo, now: Timestamp) -> bool {
    let is_it = |case: &Case| case.kind == CaseKind::OrphanPayment && case.status == CaseStatus::Open;
    let settled = id.event() == event && state.cases.get(&id).is_some_and(is_it);
    if settled {
        close_case(state, id, proof("the payment has found its order", now));
    }
    settled
}

/// Closes the open cases about an attempt that a proof has settled.
pub(super) fn close_cases(
    state: &mut Snapshot,
    order: OrderId,
    attempt: OperationId,
    settled: impl Fn(CaseKind) -> bool,
    note: &str,
    now: Timestamp,
) {
    for id in state.open_cases_of(order) {
        let about = |case: &Case| case.operation == Some(attempt) && settled(case.kind);
        if state.cases.get(&id).is_some_and(about) {
            close_case(state, id, proof(note, now));
        }
    }
}

pub(super) fn proof(note: &str, at: Timestamp) -> Resolution {
    Resolution { action: "proof".to_owned(), note: note.to_owned(), actor: WORKER.to_owned(), at }
}

/// Closes one case.
pub(super) fn close_case(state: &mut Snapshot, id: CaseId, resolution: Resolution) {
    let case = state.cases.change(&id);
    case.status = CaseStatus::Closed;
    // An operator's own words outlive the proof that follows them.
    if case.resolution.is_none() {
        case.resolution = Some(resolution);
    }
    state.append(id.event(), LogKind::CaseClosed { case: id });
}
