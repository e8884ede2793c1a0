//! What of a state matters to its future. Two histories that leave the same of it are one state: rows that
//! can't move any more are forgotten, ids are numbered anew, and the two buyers may change places.

use std::rc::Rc;

use onsale_core::ga::places;
use onsale_core::hold::{Hold, HoldStatus};
use onsale_core::id::{HoldId, OperationId, SeatOrdinal};
use onsale_core::order::{Order, OrderStatus};
use onsale_core::payment::{Operation, OperationKind};
use onsale_core::reconcile::{Case, CaseStatus};

use super::action::{BUYERS, Fault, Message};
use super::model::State;
use super::provider::{Heard, Standing};

/// A state as bytes: equal where the futures are.
pub(super) type Key = Box<[u8]>;

impl State {
    /// Drops what can't influence the future: the log, numbers of changes, cases that are closed, callbacks
    /// that have had their say, and whatever belongs to a hold that is over and owes nobody anything.
    pub(super) fn forget(&mut self) {
        let world = &mut self.world;
        if !world.log.is_empty() {
            world.log.clear();
            Rc::make_mut(&mut world.events).values_mut().for_each(|event| event.version = 0);
        }
        if world.seats.values().any(|seat| seat.version > 0) {
            Rc::make_mut(&mut world.seats).values_mut().for_each(|seat| seat.version = 0);
        }
        let again = |id: &str| {
            let is_it = |m: &Message| matches!(m, Message::Again(number, _) if id == format!("ev{number}"));
            self.under_way.iter().any(is_it)
        };
        if !world.callbacks.is_empty() {
            Rc::make_mut(&mut world.callbacks).retain(|id, _| again(id));
        }
        let by_person = |case: &Case| case.resolution.as_ref().is_some_and(|how| how.actor != "worker");
        let matters = |case: &Case| case.status == CaseStatus::Open || by_person(case);
        if !world.cases.values().all(matters) {
            Rc::make_mut(&mut world.cases).retain(|_, case| matters(case));
        }
        let over: Vec<HoldId> = self.world.holds.values().filter(|h| self.is_over(h)).map(|h| h.id).collect();
        for hold in over {
            let world = &mut self.world;
            if let Some(order) = Rc::make_mut(&mut world.holds).remove(&hold).and_then(|hold| hold.order) {
                Rc::make_mut(&mut world.orders).remove(&order);
                Rc::make_mut(&mut world.cases).retain(|_, case| case.order != Some(order));
                for operation in world.operations_of(order).iter().map(|o| o.id).collect::<Vec<_>>() {
                    Rc::make_mut(&mut self.world.operations).remove(&operation);
                    self.objects.remove(&operation);
                    self.refused.remove(&operation);
                    self.refunded.remove(&operation);
                    if self.world.refunds.contains_key(&operation) {
                        Rc::make_mut(&mut self.world.refunds).remove(&operation);
                    }
                }
            }
        }
    }

    /// Whether a hold binds nothing, its order is over, its money is settled, and nothing about it is under
    /// way.
    fn is_over(&self, hold: &Hold) -> bool {
        let order = hold.order.map(|order| &self.world.orders[&order]);
        let unpaid = |order: &Order| matches!(order.status, OrderStatus::Cancelled | OrderStatus::Expired);
        let ended = match hold.status {
            HoldStatus::Active | HoldStatus::PaymentPending => false,
            HoldStatus::Converted | HoldStatus::Released | HoldStatus::Expired => order.is_none_or(unpaid),
        };
        ended && order.is_none_or(|order| self.is_closed(order))
    }

    fn is_closed(&self, order: &Order) -> bool {
        let operations = self.world.operations_of(order.id);
        let still = |id: OperationId| match self.objects.get(&id) {
            None | Some(Standing::Unconfirmed | Standing::Voided | Standing::Refunded) => true,
            Some(Standing::Declined) => !self.may(Fault::Surprise),
            Some(
                Standing::RequiresAction
                | Standing::Processing
                | Standing::Authorized
                | Standing::Captured
                | Standing::HalfRefunded,
            ) => false,
        };
        let asked = |message: &Message| match *message {
            Message::Call(id)
            | Message::Name(id)
            | Message::Answer(id, _)
            | Message::Callback(_, id, _)
            | Message::Again(_, id) => operations.iter().any(|o| o.id == id),
        };
        operations.iter().all(|o| !o.status.is_live() && (o.kind != OperationKind::Authorize || still(o.id)))
            && !self.world.cases.values().any(|c| c.order == Some(order.id) && c.status == CaseStatus::Open)
            && !self.under_way.iter().any(asked)
    }

    /// Whether nothing that matters has changed since a state before: then the keys needn't be compared.
    pub(super) fn shares_rows(&self, before: &State) -> bool {
        let (one, other) = (&self.world, &before.world);
        Rc::ptr_eq(&one.holds, &other.holds)
            && Rc::ptr_eq(&one.orders, &other.orders)
            && Rc::ptr_eq(&one.operations, &other.operations)
            && Rc::ptr_eq(&one.cases, &other.cases)
            && self.objects == before.objects
            && self.refused == before.refused
            && self.refunded == before.refunded
            && self.under_way == before.under_way
            && (self.at, self.left) == (before.at, before.left)
    }

    /// The state as bytes; the same for states that differ in the buyers' names alone.
    pub(super) fn key(&self) -> Key {
        let left = &self.left;
        let mut key = vec![left.holds, left.attempts, left.refunds, left.faults];
        key.extend(left.of);
        key.extend(self.rows());
        key.into()
    }

    /// The same for states that differ in what may still go wrong alone.
    pub(super) fn rows(&self) -> Key {
        self.written(false).min(self.written(true)).into()
    }

    /// The rows, the provider and what is under way; with the buyers changed for each other and the seats
    /// counted from the other end, or not.
    fn written(&self, mirrored: bool) -> Vec<u8> {
        let mut out = Vec::with_capacity(128);
        out.extend([self.at as u8, u8::from(self.surprised)]);
        let buyer = |hold: &Hold| {
            let at = usize::from(hold.account.as_str() == BUYERS[1]);
            (at != 0) != mirrored
        };
        let mut named: Vec<OperationId> = Vec::new();
        for second in [false, true] {
            for hold in self.world.holds.values().filter(|hold| buyer(hold) == second) {
                self.write_hold(hold, second, mirrored, &mut named, &mut out);
            }
        }
        let number = |id: OperationId| named.iter().position(|known| *known == id).map_or(255, |at| at as u8);
        let mut messages: Vec<[u8; 4]> = self.under_way.iter().map(|m| written_message(m, &number)).collect();
        messages.sort_unstable();
        messages.iter().for_each(|message| out.extend(message));
        out
    }

    fn write_hold(
        &self,
        hold: &Hold,
        second: bool,
        mirrored: bool,
        named: &mut Vec<OperationId>,
        out: &mut Vec<u8>,
    ) {
        let count = self.world.hall().seat_count;
        let place = |seat: u32| if mirrored { count - 1 - seat } else { seat };
        let mask = |seats: &[SeatOrdinal]| seats.iter().fold(0u8, |all, seat| all | 1 << place(seat.0));
        out.extend([b'h', u8::from(second), mask(&hold.seats), places(&hold.ga) as u8, hold.status as u8]);
        if hold.status.is_live() {
            out.extend((hold.expires_at.millis() as u32).to_le_bytes());
            out.extend((hold.first_expires_at.millis() as u32).to_le_bytes());
            out.push(u8::from(hold.grace_used) | u8::from(hold.in_doubt) << 1);
        }
        let Some(order) = hold.order.map(|order| &self.world.orders[&order]) else {
            return;
        };
        let operations = self.world.operations_of(order.id);
        let first = named.len();
        named.extend(operations.iter().map(|operation| operation.id));
        let number = |id: Option<OperationId>| {
            let at = id.and_then(|id| operations.iter().position(|operation| operation.id == id));
            at.map_or(255, |at| (first + at) as u8)
        };
        out.extend([b'o', order.status as u8, number(order.paid_by)]);
        out.extend([mask(&order.returned_seats), places(&order.returned_ga) as u8]);
        for operation in &operations {
            self.write_operation(operation, number(operation.target), out);
        }
    }

    fn write_operation(&self, operation: &Operation, target: u8, out: &mut Vec<u8>) {
        let standing = self.objects.get(&operation.id).map_or(255, |standing| *standing as u8);
        let refused = self.refused.contains(&operation.id);
        let refunded = self.refunded.contains(&operation.id);
        let named = u8::from(operation.reference.is_some()) | u8::from(refused) << 1;
        let named = named | u8::from(refunded) << 2;
        out.extend([b'p', operation.kind as u8, operation.status as u8, target, named, standing]);
        if let Some(refund) = self.world.refunds.get(&operation.id) {
            out.extend([b'r', refund.seats.len() as u8, places(&refund.ga) as u8]);
        }
        if operation.kind != OperationKind::Authorize {
            return;
        }
        let mut cases: Vec<[u8; 2]> = Vec::new();
        for case in self.world.cases.values().filter(|case| case.operation == Some(operation.id)) {
            let acted = u8::from(case.resolution.is_some());
            cases.push([case.kind as u8, (case.status as u8) << 1 | acted]);
        }
        cases.sort_unstable();
        cases.dedup();
        cases.iter().for_each(|case| out.extend(case));
    }
}

fn written_message(message: &Message, number: &impl Fn(OperationId) -> u8) -> [u8; 4] {
    match *message {
        Message::Call(id) => [b'c', number(id), 0, 0],
        Message::Name(id) => [b'n', number(id), 0, 0],
        Message::Answer(id, Heard::Seen(standing)) => [b'a', number(id), 0, standing as u8],
        Message::Answer(id, Heard::Refused) => [b'a', number(id), 1, 0],
        Message::Answer(id, Heard::Silence) => [b'a', number(id), 2, 0],
        Message::Callback(_, id, standing) => [b'b', number(id), 0, standing as u8],
        Message::Again(_, id) => [b'r', number(id), 0, 0],
    }
}
