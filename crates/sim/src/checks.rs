//! What must hold: after each commit, beside the invariants of the store in memory, that the step was a legal one; at the
//! end, that everything has come to one and that all money is accounted for.

mod choice;
mod places;

use onsale_core::command::{Command, Decision, Outcome, Request};
use onsale_core::event::InDoubt;
use onsale_core::ga::TransferStatus;
use onsale_core::gateway::IntentState;
use onsale_core::hold::HoldStatus;
use onsale_core::id::{HoldId, OperationId};
use onsale_core::log::{LogEntry, LogKind};
use onsale_core::order::{Order, OrderStatus};
use onsale_core::payment::{Operation, OperationKind, OperationStatus};
use onsale_core::reconcile::{CaseKind, CaseStatus, Verdict};
use onsale_core::refusal::Refusal;
use onsale_core::seat_map::SeatStatus;
use onsale_core::time::Timestamp;
use onsale_world::{HALL, World, invariants};

use crate::Broken;
use crate::coverage::{Coverage, Sometimes};
use crate::provider::Provider;
use crate::sim::Sim;

/// After a commit.
pub(crate) fn committed(
    sim: &mut Sim,
    before: &World,
    requests: &[Request],
    decisions: &[Decision],
    locked_at: Timestamp,
) -> Result<(), Broken> {
    let after = &sim.database.world;
    if onsale_core::planted!(ReadOutsideLock) {
        invariants::check(after);
    }
    let entries = &after.log[before.log.len()..];
    let now = |no| after.events[&no].clock;
    for entry in entries {
        if entry.at < locked_at {
            let what = format!("{entry:?}, and the lock was had at {locked_at:?}");
            return Err(Broken::new("step: the time is read under the lock", what));
        }
        if entry.at > locked_at {
            sim.coverage.saw(Sometimes::ClockBehind);
        }
        step(entry, before, after, &mut sim.coverage, &sim.provider)?;
        places::step(entry, before, after, entries, &mut sim.coverage, &sim.provider)?;
    }
    // In between a batch only the invariants look.
    if let ([request], [decision]) = (requests, decisions) {
        let now = locked_at.max(before.events[&request.command.event()].clock);
        places::refused(request, decision, before, now)?;
        choice::chosen(request, decision, before, now, &mut sim.coverage)?;
        let is_back = |entry: &LogEntry| matches!(entry.kind, LogKind::OrderReturned { .. });
        if matches!(request.command, Command::JudgeCallback { .. }) && entries.iter().any(is_back) {
            sim.coverage.saw(Sometimes::RefundByCallback);
        }
    }
    for (request, decision) in requests.iter().zip(decisions) {
        if let Some(key) = request.key {
            sim.ledger.decided(key.id, decision)?;
        }
        if let (Command::ScanTicket(showing), Outcome::TicketScanned(told)) =
            (&request.command, &decision.outcome)
            && !sim.ledger.scanned(&showing.scan, told.result)?
        {
            sim.coverage.saw(Sometimes::ScanAgain);
        }
        places::answered(request, decision, after, &mut sim.coverage);
        refused(
            request,
            decision,
            before,
            after,
            locked_at.max(before.events[&request.command.event()].clock),
        )?;
        if let (Command::ResolveCase { action, .. }, Outcome::CaseActed) =
            (&request.command, &decision.outcome)
            && action.as_str() == "release"
        {
            sim.coverage.saw(Sometimes::ReleasedByPerson);
        }
    }
    let is_due = |hold: &onsale_core::hold::Hold| hold.expires_at == now(hold.event());
    if entries
        .iter()
        .any(|entry| hold_of(entry).is_some_and(|hold| before.holds.get(&hold).is_some_and(is_due)))
    {
        sim.coverage.saw(Sometimes::AtTheDeadline);
    }
    for entry in entries {
        match entry.kind {
            LogKind::OperationMoved { operation, status: OperationStatus::Unknown, .. } => {
                sim.once_unknown.insert(operation);
            }
            LogKind::OperationMoved { operation, status: OperationStatus::Succeeded, .. }
                if sim.once_unknown.contains(&operation) =>
            {
                sim.coverage.saw(Sometimes::UnknownThenDone);
            }
            _ => {}
        }
    }
    Ok(())
}

fn hold_of(entry: &LogEntry) -> Option<HoldId> {
    match entry.kind {
        LogKind::HoldExpired { hold, .. } | LogKind::OrderConfirmed { hold, .. } => Some(hold),
        _ => None,
    }
}

/// One change was a legal one.
fn step(
    entry: &LogEntry,
    before: &World,
    after: &World,
    coverage: &mut Coverage,
    provider: &Provider,
) -> Result<(), Broken> {
    let keeps = after.events[&entry.event].policy.in_doubt == InDoubt::Keep;
    match &entry.kind {
        LogKind::HoldExpired { hold, order, .. } => {
            let row = &after.holds[hold];
            if entry.at < row.first_expires_at {
                let what = format!("{row:?} at {:?}", entry.at);
                return Err(Broken::new("step: no hold expires before its deadline", what));
            }
            let doubted = order.is_some_and(|order| {
                let open = |o: &&Operation| o.kind == OperationKind::Authorize && o.status.is_live();
                after.operations_of(order).iter().any(|o| open(o) && o.reference.is_some())
            });
            let pending = before.holds.get(hold).is_some_and(|row| row.status == HoldStatus::PaymentPending);
            if keeps && pending && doubted {
                return Err(Broken::new("step: a doubt keeps the seats", format!("{row:?}")));
            }
            if after.log.iter().rev().take_while(|other| other.version > entry.version).any(|other| {
                matches!(other.kind, LogKind::HoldPlaced { .. }) && other.version == entry.version + 1
            }) {
                coverage.saw(Sometimes::Takeover);
            }
        }
        LogKind::HoldReleased { hold, order, .. } => {
            let allows = |other: &LogEntry| match &other.kind {
                LogKind::CaseActed { action, .. } => action == "release",
                // The payment came to its end a moment before, and brought nothing.
                LogKind::OperationMoved { order: of, kind: OperationKind::Authorize, status, .. } => {
                    Some(*of) == *order && !status.is_live()
                }
                _ => false,
            };
            let pending = before.holds.get(hold).is_some_and(|row| row.status == HoldStatus::PaymentPending);
            if pending && !after.log[before.log.len()..].iter().any(allows) {
                let what = format!("{:?}", before.holds[hold]);
                return Err(Broken::new("step: what is being paid is not given back", what));
            }
        }
        LogKind::CheckoutBegun { hold, .. } => {
            let row = &after.holds[hold];
            let again = before.holds.get(hold).is_some_and(|row| row.grace_used);
            if again && row.status != HoldStatus::Converted && row.expires_at > row.first_expires_at {
                return Err(Broken::new("step: one grace for each hold", format!("{row:?}")));
            }
        }
        LogKind::OrderConfirmed { order, hold, .. } => {
            let row = &after.holds[hold];
            let pending = before.holds.get(hold).is_none_or(|row| row.status == HoldStatus::PaymentPending);
            if entry.at >= row.expires_at && !(keeps && pending) {
                let what = format!("{row:?} at {:?}", entry.at);
                return Err(Broken::new("step: nothing is sold at the deadline or after it", what));
            }
            if let Some(was) = before.orders.get(order)
                && was.status != OrderStatus::AwaitingPayment
            {
                return Err(Broken::new("step: an ended order stays ended", format!("{was:?}")));
            }
            if entry.at >= row.expires_at {
                coverage.saw(Sometimes::DoubtProven);
            }
            let charge = after.operations_of(*order).iter().all(|o| o.kind == OperationKind::Authorize);
            coverage.saw(if charge { Sometimes::SoldByCharge } else { Sometimes::Sold });
        }
        LogKind::OrderCancelled { .. } => coverage.saw(Sometimes::Compensated),
        LogKind::OperationMoved { operation, status: OperationStatus::Failed, .. } => {
            failed(*operation, before, after, provider)?;
        }
        LogKind::CaseOpened { kind, case, .. } => {
            let evidence = after.cases.get(case).map_or("", |case| case.evidence.as_str());
            if evidence.contains("within the time in which") {
                coverage.saw(Sometimes::TooOldToSend);
            }
            match kind {
                CaseKind::LateSuccess => coverage.saw(Sometimes::LateSuccess),
                CaseKind::SurplusAuthorization => coverage.saw(Sometimes::Surplus),
                CaseKind::AmountMismatch => coverage.saw(Sometimes::AmountMismatch),
                CaseKind::OrphanPayment => coverage.saw(Sometimes::Orphan),
                CaseKind::InDoubt => coverage.saw(Sometimes::InDoubt),
                CaseKind::PaymentUnknown => coverage.saw(Sometimes::LongSilence),
                _ => {}
            }
        }
        _ => {}
    }
    Ok(())
}

/// An operation has failed: the provider has said so, or it could not have been done.
fn failed(id: OperationId, before: &World, after: &World, provider: &Provider) -> Result<(), Broken> {
    let row = &after.operations[&id];
    // Should it have moved on within the batch, there is nothing to compare with.
    if row.status != OperationStatus::Failed {
        return Ok(());
    }
    let code = row.failure_code.as_deref().unwrap_or_default();
    let any =
        |test: &dyn Fn(&crate::provider::Intent) -> bool| provider.of(row.attempt()).any(|(_, i)| test(i));
    let proven = match code {
        "abandoned" => row.reference.is_none(),
        "canceled" | "authorization_lapsed" => any(&|intent| intent.was_voided),
        "captured" => any(&|intent| intent.was_captured),
        "not_needed" => after.operations[&row.attempt()].status == OperationStatus::Failed,
        "no_payment" => after.operations[&row.attempt()].reference.is_none(),
        "card_forgotten" => before.operations.get(&id).is_none_or(|row| row.payment_method_token.is_none()),
        code => {
            any(&|intent| intent.declined.contains(code)) || provider.refused.contains(&(id, code.to_owned()))
        }
    };
    if proven {
        return Ok(());
    }
    let what = format!("{row:?}\nat the provider: {:?}", provider.of(row.attempt()).collect::<Vec<_>>());
    Err(Broken::new("step: only the provider's word fails an operation", what))
}

/// What was refused had to be refused, as far as the deadline goes.
fn refused(
    request: &Request,
    decision: &Decision,
    before: &World,
    after: &World,
    now: Timestamp,
) -> Result<(), Broken> {
    let (Outcome::Refused(Refusal::SeatUnavailable(seats)), Command::PlaceHold { code, .. }) =
        (&decision.outcome, &request.command)
    else {
        return Ok(());
    };
    if decision.replayed {
        return Ok(());
    }
    let is_free = |world: &World, ordinal| {
        let seat = world.seats[&(HALL, ordinal)];
        let opens = seat.allocation.is_none() || seat.allocation == places::opened(world, code);
        opens
            && match seat.status {
                SeatStatus::Held { hold, expires_at } => {
                    expires_at <= now && world.holds[&hold].status == HoldStatus::Active
                }
                SeatStatus::Available => true,
                SeatStatus::Sold { .. } | SeatStatus::NotForSale => false,
            }
    };
    match seats.iter().find(|seat| is_free(before, **seat) && is_free(after, **seat)) {
        None => Ok(()),
        Some(seat) => {
            let what = format!("{seat:?} was refused at {now:?}: {:?}", before.seats[&(HALL, *seat)]);
            Err(Broken::new("step: a seat is anyone's from its deadline on", what))
        }
    }
}

/// At the end of a world.
pub(crate) fn ended(sim: &mut Sim) -> Result<(), Broken> {
    if !sim.is_quiet() {
        return Err(Broken::new("liveness: everything comes to an end", open(sim)));
    }
    invariants::check(&sim.database.world);
    sim.ledger.compare(&sim.database.world)?;
    money(sim)?;
    let now = sim.clock(0);
    sim.database.compare(0)?;
    sim.database.real.iter_mut().try_for_each(|real| real.audit(0, now, &[]))
}

fn open(sim: &Sim) -> String {
    let world = &sim.database.world;
    let operations = world.operations.values().filter(|o| o.status.is_live()).map(|o| format!("{o:?}"));
    let holds = world.holds.values().filter(|h| h.status.is_live()).map(|h| format!("{h:?}"));
    let cases = world.cases.values().filter(|c| c.status == CaseStatus::Open).map(|c| format!("{c:?}"));
    let transfers = world.transfers.values().filter(|t| t.status == TransferStatus::InFlight);
    let transfers = transfers.map(|transfer| format!("{transfer:?}"));
    let parked = world.callbacks.values().filter(|c| c.verdict == Verdict::Parked && c.case.is_none());
    let parked = parked.map(|callback| format!("{callback:?}"));
    let lines: Vec<String> = operations.chain(holds).chain(cases).chain(transfers).chain(parked).collect();
    match lines.is_empty() {
        true => format!("buyers: {:?}\nunder way: {:?}", sim.waiting_buyers(), sim.under_way()),
        false => lines.join("\n"),
    }
}

/// Attempt by attempt: what the provider keeps is what seats were sold for, and it sets nothing aside.
fn money(sim: &Sim) -> Result<(), Broken> {
    let world = &sim.database.world;
    let back_minor = |order: &Order| -> i64 {
        let refunds = world.operations_of(order.id).into_iter().filter(|o| o.kind == OperationKind::Refund);
        let done = refunds.filter(|o| o.target == order.paid_by && o.status == OperationStatus::Succeeded);
        done.map(|refund| refund.amount.amount_minor).sum()
    };
    let mut kept_minor = 0;
    for (name, intent) in &sim.provider.intents {
        let attempt = world.attempt_named(name);
        let order = attempt.map(|attempt| &world.orders[&attempt.order]);
        let pays = order.filter(|order| {
            order.status == OrderStatus::Confirmed && order.paid_by == attempt.map(|attempt| attempt.id)
        });
        let kept = match intent.state {
            IntentState::Captured => intent.amount.amount_minor - intent.refunded_minor,
            _ => 0,
        };
        kept_minor += kept;
        let due = pays.map_or(0, |order| order.total.amount_minor - back_minor(order));
        if intent.state == IntentState::Authorized || kept != due {
            let what = format!("{name} {intent:?}\nin the books: {attempt:?}\n{order:?}");
            return Err(Broken::new("money: the provider keeps what was sold, and nothing else", what));
        }
    }
    let confirmed = world.orders.values().filter(|order| order.status == OrderStatus::Confirmed);
    let sold_minor: i64 = confirmed.map(|order| order.total.amount_minor - back_minor(order)).sum();
    if sold_minor != kept_minor {
        let what = format!("sold for {sold_minor}, the provider keeps {kept_minor}");
        return Err(Broken::new("money: the sums agree", what));
    }
    Ok(())
}
