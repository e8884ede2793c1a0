//! What may happen next in a state, and what the workers do when they are left to it.

use onsale_core::id::OperationId;
use onsale_core::payment::{Operation, OperationKind};
use onsale_core::reconcile::{CaseAction, CaseStatus};

use super::action::{Action, Fault, Message, Part, Reply, Sale};
use super::model::{State, is_to_send};
use super::provider::{Done, Standing};

/// Everything that anybody may do.
pub(super) fn all(state: &State, sale: &Sale) -> Vec<Action> {
    let mut moves = Vec::new();
    if !state.is_late() {
        moves.push(Action::Tick);
    }
    if state.left.holds > 0 {
        // Where nothing is held by either, the buyers are the same to the sale.
        let buyers = if state.world.holds.is_empty() { 0..1 } else { 0..2 };
        for buyer in buyers {
            moves.extend((0..sale.choices[buyer].len()).map(|choice| Action::Hold(buyer, choice)));
        }
    }
    for hold in state.live() {
        moves.extend([Action::Release(hold.id), Action::Expire(hold.id)]);
        if state.left.attempts > 0 {
            moves.push(Action::Pay(hold.id));
        }
    }
    if state.left.refunds > 0 {
        for (hold, order) in state.sold() {
            moves.push(Action::Refund(hold.id, Part::Rest));
            if !hold.ga.is_empty() && order.returned_seats.is_empty() {
                moves.push(Action::Refund(hold.id, Part::Seats));
            }
        }
    }
    for message in &state.under_way {
        match message {
            Message::Call(operation) => request(state, sale, &state.world.operations[operation], &mut moves),
            Message::Name(_) | Message::Answer(..) | Message::Callback(..) | Message::Again(..) => {
                moves.push(Action::Deliver(*message));
            }
        }
    }
    for operation in state.world.operations.values().filter(|operation| operation.status.is_live()) {
        worker(state, sale, operation, &mut moves);
    }
    for (attempt, standing) in state.attempts() {
        moves.extend(replies(state, Fault::Repeated).map(|reply| Action::Notify(attempt.id, reply)));
        stir(state, attempt.id, standing, &mut moves);
    }
    if state.may(Fault::Act) {
        let actions = [CaseAction::ConfirmIfBound, CaseAction::Void, CaseAction::Refund, CaseAction::Release];
        for case in state.world.cases.values().filter(|case| case.status == CaseStatus::Open) {
            moves.extend(actions.map(|action| Action::Act(case.id, action)));
        }
    }
    moves
}

fn replies(state: &State, odd: Fault) -> impl Iterator<Item = Reply> {
    let delayed = state.may(Fault::Delayed).then_some(Reply::Delayed);
    let odd = state.may(odd).then_some(Reply::Odd);
    [Some(Reply::Kept), delayed, odd].into_iter().flatten()
}

/// A request reaches the provider, or doesn't.
fn request(state: &State, sale: &Sale, operation: &Operation, moves: &mut Vec<Action>) {
    let standing = state.objects[&operation.attempt()];
    let mut done = vec![Done::Asked];
    if operation.kind == OperationKind::Authorize && standing == Standing::Unconfirmed {
        done.extend(sale.outcomes.iter().copied().map(Done::Becomes));
    }
    // What has been done under a key is not refused under it.
    let known = state.refused.contains(&operation.id) || state.refunded.contains(&operation.id);
    if state.may(Fault::Refused) && !known && standing.moves(operation.kind) {
        done.push(Done::Refused);
    }
    for done in done {
        moves.extend(replies(state, Fault::Lost).map(|reply| Action::Reach(operation.id, done, reply)));
    }
    if state.may(Fault::Lost) {
        moves.push(Action::Lose(operation.id));
    }
}

/// A worker takes up an operation.
fn worker(state: &State, sale: &Sale, operation: &Operation, moves: &mut Vec<Action>) {
    if operation.reference.is_none() {
        moves.extend(replies(state, Fault::Lost).map(|reply| Action::Begin(operation.id, reply)));
    } else if is_to_send(operation) {
        if state.may(Fault::Delayed) {
            moves.push(Action::Take(operation.id));
        }
        request(state, sale, operation, moves);
    } else {
        // Whether a question or its answer is lost is all the same; it is lost once, with a request.
        moves.push(Action::Ask(operation.id, Reply::Kept));
        if state.may(Fault::Delayed) {
            moves.push(Action::Ask(operation.id, Reply::Delayed));
        }
    }
}

/// What may come of an object by itself.
fn stir(state: &State, attempt: OperationId, standing: Standing, moves: &mut Vec<Action>) {
    let mut to = |standing| moves.push(Action::Stir(attempt, standing));
    match standing {
        Standing::RequiresAction | Standing::Processing => {
            to(state.paid());
            to(Standing::Declined);
        }
        Standing::Declined if state.may(Fault::Surprise) => to(state.paid()),
        Standing::Authorized if state.may(Fault::Surprise) => {
            to(Standing::Voided);
            to(Standing::Captured);
        }
        Standing::Unconfirmed
        | Standing::Declined
        | Standing::Authorized
        | Standing::Captured
        | Standing::Voided
        | Standing::Refunded
        | Standing::HalfRefunded => {}
    }
}

/// What workers do that are fair, in this order: the first of these that changes anything comes next.
pub(super) fn chores(state: &State) -> Vec<Action> {
    let mut chores = Vec::new();
    chores.extend(state.under_way.iter().map(|message| Action::Deliver(*message)));
    let due = state.live().filter(|hold| hold.is_due(state.now()));
    chores.extend(due.map(|hold| Action::Expire(hold.id)));
    for operation in state.world.operations.values().filter(|operation| operation.status.is_live()) {
        chores.push(match operation.reference {
            None => Action::Begin(operation.id, Reply::Kept),
            Some(_) if is_to_send(operation) => Action::Reach(operation.id, Done::Asked, Reply::Kept),
            Some(_) => Action::Ask(operation.id, Reply::Kept),
        });
    }
    if state.is_late() {
        // Nothing stays in work for ever.
        let in_work = state.attempts().filter(|(_, standing)| *standing == Standing::Processing);
        chores.extend(in_work.map(|(attempt, _)| Action::Stir(attempt.id, state.paid())));
    }
    chores.push(Action::Tick);
    chores
}
