//! States that are easily missed. A search that must come to one and doesn't has proven less than it seems
//! to.

use onsale_core::command::{Effect, Outcome};
use onsale_core::event::InDoubt;
use onsale_core::hold::{Hold, HoldStatus};
use onsale_core::order::{Order, OrderStatus};
use onsale_core::payment::{Operation, OperationKind, OperationStatus};
use onsale_core::reconcile::{Case, CaseKind, CaseStatus, Verdict};

use super::action::{Action, Message};
use super::model::State;
use super::provider::{Heard, Standing};

/// A rare state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rare {
    /// A seat goes from one hold to the next at the very deadline.
    TakenOverAtTheInstant,
    /// A success comes when the hold is over, and its money goes back.
    LateSuccessRefused,
    /// A hold in doubt is completed by proof.
    DoubtCompleted,
    /// A hold in doubt goes free because its payment was called off.
    DoubtFreedByVoid,
    /// A second success of an order already paid.
    SurplusSuccess,
    /// A sale is undone for a refused capture, and its seat is sold to another.
    SoldAgainAfterRefusedCapture,
    /// A callback tells a success before the reply does.
    CallbackBeforeReply,
    /// A callback comes again when the order is complete.
    DuplicateAfterCompletion,
    /// What was to be let go has been taken, and is given back.
    VoidFoundItTaken,
    /// The clock ends a hold whose second attempt has not been answered.
    SecondAttemptExpiredUnknown,
    /// A payment completes in the last millisecond.
    SoldAtTheLastInstant,
    /// The same a millisecond later, where the clock decides.
    RefusedAtTheDeadline,
    /// A reading from before the money was let go, kept after.
    StaleSuccessAfterVoid,
    /// An authorization lapses before it is taken.
    LapsedBeforeCapture,
    /// An operator frees seats whose payment then succeeds.
    FreedByAPersonThenPaid,
    /// A payment is declined, and another attempt of the same order pays.
    SecondAttemptPays,
    /// A callback tells that a refund was done before its answer does.
    RefundToldByCallback,
    /// A refund whose answer was lost turns out to be done.
    RefundLostThenDone,
    /// The provider refuses a refund, and the buyer keeps the seat.
    RefundRefused,
    /// A seat that was given back is sold to another.
    SoldAgainAfterRefund,
    /// A word from before a refund arrives when the seat is another's.
    StaleWordAfterResale,
}

impl Rare {
    /// All of them.
    pub(super) const ALL: [Rare; 21] = [
        Rare::TakenOverAtTheInstant,
        Rare::LateSuccessRefused,
        Rare::DoubtCompleted,
        Rare::DoubtFreedByVoid,
        Rare::SurplusSuccess,
        Rare::SoldAgainAfterRefusedCapture,
        Rare::CallbackBeforeReply,
        Rare::DuplicateAfterCompletion,
        Rare::VoidFoundItTaken,
        Rare::SecondAttemptExpiredUnknown,
        Rare::SoldAtTheLastInstant,
        Rare::RefusedAtTheDeadline,
        Rare::StaleSuccessAfterVoid,
        Rare::LapsedBeforeCapture,
        Rare::FreedByAPersonThenPaid,
        Rare::SecondAttemptPays,
        Rare::RefundToldByCallback,
        Rare::RefundLostThenDone,
        Rare::RefundRefused,
        Rare::SoldAgainAfterRefund,
        Rare::StaleWordAfterResale,
    ];
}

/// Which of them a step has come to.
pub(super) fn reached<'a>(
    before: &'a State,
    action: Action,
    outcome: Option<&'a Outcome>,
    after: &'a State,
) -> impl Iterator<Item = Rare> + 'a {
    let decided = outcome.into_iter();
    decided.flat_map(move |outcome| {
        Rare::ALL.into_iter().filter(move |rare| is(*rare, before, action, outcome, after))
    })
}

fn is(rare: Rare, before: &State, action: Action, outcome: &Outcome, after: &State) -> bool {
    let now = before.now();
    let opened = |kind| open(after, kind) > open(before, kind);
    let confirmed = |state: &State| {
        state.world.orders.values().filter(|order| order.status == OrderStatus::Confirmed).count()
    };
    let sells = confirmed(after) > confirmed(before);
    let sold = || {
        let sold = |hold: &&Hold| sells && after.is_sold(&hold.id);
        before.live().find(sold)
    };
    match rare {
        Rare::TakenOverAtTheInstant => {
            let gone = |hold: &Hold| {
                let still = after.world.holds.get(&hold.id).is_some_and(|hold| hold.status.is_live());
                hold.expires_at == now && !still
            };
            matches!(outcome, Outcome::HoldPlaced(_)) && before.live().any(gone)
        }
        Rare::LateSuccessRefused => opened(CaseKind::LateSuccess),
        Rare::DoubtCompleted => sold().is_some_and(|hold| hold.in_doubt),
        Rare::DoubtFreedByVoid => before.live().filter(|hold| hold.in_doubt).any(|hold| {
            let is_free =
                after.world.holds.get(&hold.id).is_none_or(|hold| hold.status == HoldStatus::Expired);
            let void = |o: &&Operation| {
                o.kind == OperationKind::Void && Some(o.order) == hold.order && o.status.is_live()
            };
            let voided =
                |o: &Operation| after.operation(o.id).is_none_or(|o| o.status == OperationStatus::Succeeded);
            is_free && before.world.operations.values().filter(void).any(voided)
        }),
        Rare::SurplusSuccess => opened(CaseKind::SurplusAuthorization),
        Rare::SoldAgainAfterRefusedCapture => {
            let undone =
                |o: &Operation| o.kind == OperationKind::Capture && o.status == OperationStatus::Failed;
            sells && open(after, CaseKind::CaptureFailed) > 0 && after.world.operations.values().any(undone)
        }
        Rare::CallbackBeforeReply => {
            let Action::Notify(attempt, _) = action else {
                return false;
            };
            let reply = |message: &Message| match message {
                Message::Answer(id, Heard::Seen(seen)) => *id == attempt && seen.has_money(),
                _ => false,
            };
            *outcome == Outcome::Judged(Verdict::Applied) && sells && before.under_way.iter().any(reply)
        }
        Rare::DuplicateAfterCompletion => {
            *outcome == Outcome::Judged(Verdict::Duplicate) && confirmed(before) > 0
        }
        Rare::VoidFoundItTaken => before.world.operations.values().any(|o| {
            let failed = after.operation(o.id).is_some_and(|o| o.status == OperationStatus::Failed);
            let refund =
                |refund: &Operation| refund.kind == OperationKind::Refund && refund.target == o.target;
            o.kind == OperationKind::Void
                && o.status.is_live()
                && failed
                && after.world.operations.values().any(|o| refund(o) && o.status.is_live())
        }),
        Rare::SecondAttemptExpiredUnknown => before.live().filter(|hold| hold.is_due(now)).any(|hold| {
            let ended = after.world.holds.get(&hold.id).is_none_or(|hold| hold.status == HoldStatus::Expired);
            let second = |o: &Operation| {
                let attempt = o.kind == OperationKind::Authorize && Some(o.order) == hold.order;
                attempt && o.seq > 0 && o.status == OperationStatus::Unknown
            };
            let by_clock = matches!(action, Action::Expire(_) | Action::Hold(..));
            by_clock && ended && before.world.operations.values().any(second)
        }),
        Rare::SoldAtTheLastInstant => sold().is_some_and(|hold| hold.expires_at.since_ms(now) == 1),
        Rare::RefusedAtTheDeadline => {
            let released = before.world.hall().policy.in_doubt == InDoubt::Release;
            released && opened(CaseKind::LateSuccess) && before.live().any(|hold| hold.expires_at == now)
        }
        Rare::StaleSuccessAfterVoid => {
            let stale = match action {
                Action::Deliver(Message::Answer(id, Heard::Seen(Standing::Authorized))) => Some(id),
                Action::Deliver(Message::Callback(_, id, Standing::Authorized)) => Some(id),
                _ => None,
            };
            let attempt = stale.and_then(|id| before.operation(id)).map(Operation::attempt);
            let nothing = matches!(
                outcome,
                Outcome::Recorded { effect: Effect::Nothing, .. } | Outcome::Judged(Verdict::Stale)
            );
            nothing && attempt.is_some_and(|attempt| before.objects[&attempt] == Standing::Voided)
        }
        Rare::LapsedBeforeCapture => {
            confirmed(after) < confirmed(before) && before.objects.values().any(|s| *s == Standing::Voided)
        }
        // A buyer may give back what waits for no answer alone, and a failed attempt succeeds by surprise
        // alone.
        Rare::FreedByAPersonThenPaid => {
            let freed = |case: &Case| {
                let order = case.order.map(|order| &after.world.orders[&order]);
                case.kind == CaseKind::LateSuccess
                    && order.is_some_and(|o| after.world.holds[&o.hold].status == HoldStatus::Released)
            };
            !before.surprised && opened(CaseKind::LateSuccess) && after.world.cases.values().any(freed)
        }
        Rare::RefundToldByCallback => {
            let told = matches!(action, Action::Notify(..) | Action::Deliver(Message::Callback(..)));
            told && refund_ends(before, after, OperationStatus::Succeeded).next().is_some()
        }
        Rare::RefundLostThenDone => refund_ends(before, after, OperationStatus::Succeeded)
            .any(|refund| refund.status == OperationStatus::Unknown),
        Rare::RefundRefused => refund_ends(before, after, OperationStatus::Failed)
            .any(|refund| after.sold().any(|(_, order)| order.id == refund.order)),
        Rare::SoldAgainAfterRefund => sold().is_some_and(|hold| was_returned(after, hold)),
        Rare::StaleWordAfterResale => {
            let Action::Deliver(Message::Callback(_, id, Standing::Captured) | Message::Answer(id, _)) =
                action
            else {
                return false;
            };
            let of = before.operation(id).map(|operation| operation.order);
            let gone = before.sold().any(|(hold, order)| Some(order.id) != of && was_returned(before, hold));
            gone && before.sold().any(|(_, order)| Some(order.id) == of)
        }
        Rare::SecondAttemptPays => sold().is_some_and(|hold| {
            let order = hold.order.map(|order| &after.world.orders[&order]);
            order.and_then(|order| order.paid_by).is_some_and(|paid| after.world.operations[&paid].seq > 0)
        }),
    }
}

/// The refunds of what was sold that a step has ended so, as they were before.
fn refund_ends<'a>(
    before: &'a State,
    after: &'a State,
    status: OperationStatus,
) -> impl Iterator<Item = &'a Operation> {
    let rows = before.world.refunds.keys().map(|id| &before.world.operations[id]);
    // What is settled and over is forgotten: it was done.
    let ended = move |o: &Operation| {
        after.operation(o.id).map_or(OperationStatus::Succeeded, |row| row.status) == status
    };
    rows.filter(move |o| o.status.is_live() && ended(o))
}

/// Whether somebody else has given back a seat of this hold.
fn was_returned(state: &State, hold: &Hold) -> bool {
    let gave = |order: &Order| hold.seats.iter().any(|seat| order.returned_seats.contains(seat));
    state.world.orders.values().any(gave)
}

fn open(state: &State, kind: CaseKind) -> usize {
    state.world.cases.values().filter(|case| case.kind == kind && case.status == CaseStatus::Open).count()
}
