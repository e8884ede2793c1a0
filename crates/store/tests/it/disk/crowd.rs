//! Buyers who keep a receipt for all that they are told.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use onsale_core::command::{Answer, Command, Outcome, Request};
use onsale_core::event::EventStatus;
use onsale_core::gateway::{IntentState, Observation};
use onsale_core::hold::HoldStatus;
use onsale_core::id::{AccountId, HoldId, OperationId, OrderId};
use onsale_core::idempotency::RequestKey;
use onsale_core::order::OrderStatus;
use onsale_core::payment::{OperationKind, PaymentStatus};
use onsale_core::time::Timestamp;
use onsale_faulty_disk::{Chance, Disk};
use onsale_store::{Store, StoreError, SubmitError};

use crate::world::{HALL, START, World, account, ask, checkout, place_hold, request};

/// Something that was acknowledged, and must be so for ever after.
#[derive(Clone, Debug)]
pub(super) enum Receipt {
    OnSale,
    /// A request with a key: repeated, it has the same outcome.
    Told(Request, Outcome),
    Released(HoldId),
    Referred(OperationId, String),
    Sold(OrderId),
    Captured(OrderId),
}

/// The buyers of a hall, and their receipts in the order in which they came.
pub(super) struct Crowd<'a> {
    pub(super) world: &'a World,
    disk: Disk,
    seats: u32,
    receipts: Mutex<Vec<Receipt>>,
    /// Requests whose outcome was said to be unknown.
    pub(super) unknown: AtomicU64,
    /// Requests that were said not to be done.
    pub(super) unavailable: AtomicU64,
}

impl<'a> Crowd<'a> {
    pub(super) fn new(world: &'a World, disk: Disk, seats: u32, receipts: Vec<Receipt>) -> Crowd<'a> {
        let (unknown, unavailable) = (AtomicU64::new(0), AtomicU64::new(0));
        disk.note(receipts.len());
        Crowd { world, disk, seats, receipts: Mutex::new(receipts), unknown, unavailable }
    }

    pub(super) fn keep(&self, receipt: Receipt) {
        let mut receipts = self.receipts.lock().expect("nobody panics while writing a receipt");
        receipts.push(receipt);
        self.disk.note(receipts.len());
    }

    pub(super) fn into_receipts(self) -> Vec<Receipt> {
        self.receipts.into_inner().expect("nobody has panicked while writing a receipt")
    }

    /// So many buyers at a time, so that commits are groups, and so many one after the other.
    pub(super) fn shop(&self, seed: u64, at_a_time: u64, each: u64) {
        std::thread::scope(|scope| {
            for queue in 0..at_a_time {
                scope.spawn(move || {
                    let mut chance = Chance::new(seed ^ ((queue + 1) << 32));
                    for _ in 0..each {
                        let name = format!("acc_{:x}", chance.draw());
                        self.buy(&account(&name), &mut chance);
                    }
                });
            }
        });
    }

    /// From a hold to captured money, unless the buyer or chance ends it before. An answer that doesn't come ends it too.
    fn buy(&self, buyer: &AccountId, chance: &mut Chance) -> Option<()> {
        let mut seats: Vec<u32> =
            (0..=chance.below(3)).map(|_| chance.below(self.seats.into()) as u32).collect();
        seats.sort_unstable();
        seats.dedup();
        let Outcome::HoldPlaced(placed) = self.told(place_hold(buyer, &seats), chance)? else { return None };
        let hold = placed.hold.id;
        if chance.once_in(4) {
            return None;
        }
        if chance.once_in(3) {
            let released = self.ask(Command::ReleaseHold { hold, account: Some(buyer.clone()) }, None)?;
            if released == Outcome::HoldReleased {
                self.keep(Receipt::Released(hold));
            }
            return None;
        }
        let Outcome::CheckoutBegun(order) = self.told(checkout(hold, buyer), chance)? else { return None };
        let attempt = self.live(order, OperationKind::Authorize)?;
        let reference = format!("pi_{attempt}");
        let refer = Command::RecordReference { operation: attempt, reference: reference.clone() };
        if self.ask(refer, None)? != Outcome::MayConfirm {
            return None;
        }
        self.keep(Receipt::Referred(attempt, reference));
        if chance.once_in(6) {
            return None;
        }
        let order_total = self.world.store.read(|db| db.order(order)).ok()??.order.total;
        let observed = |state| Observation {
            reference: format!("pi_{attempt}"),
            state,
            amount: order_total,
            refunded_minor: 0,
            order: Some(order),
            operation: Some(attempt),
        };
        self.record(attempt, observed(IntentState::Authorized))?;
        self.keep(Receipt::Sold(order));
        let capture = self.live(order, OperationKind::Capture)?;
        self.record(capture, observed(IntentState::Captured))?;
        self.keep(Receipt::Captured(order));
        Some(())
    }

    fn record(&self, operation: OperationId, observation: Observation) -> Option<()> {
        let answer = Answer::Observed(observation);
        let recorded = self.ask(Command::RecordAnswer { operation, answer }, None)?;
        matches!(recorded, Outcome::Recorded { .. }).then_some(())
    }

    fn live(&self, order: OrderId, kind: OperationKind) -> Option<OperationId> {
        let far = Timestamp::from_millis(i64::MAX);
        let live = self.world.store.read(|db| db.due_operations(far, 10_000)).ok()?;
        let of_order =
            |operation: &onsale_core::payment::Operation| (operation.order, operation.kind) == (order, kind);
        live.into_iter().map(|view| view.operation).find(of_order).map(|operation| operation.id)
    }

    /// Asks under a key, and keeps the receipt.
    pub(super) fn told(&self, command: Command, chance: &mut Chance) -> Option<Outcome> {
        let id = u128::from(chance.draw()) << 64 | u128::from(chance.draw());
        let key = Some(RequestKey { id, digest: 1 });
        let outcome = self.ask(command.clone(), key)?;
        let is_kept = !matches!(&outcome, Outcome::Refused(refusal) if !refusal.is_kept());
        if is_kept {
            self.keep(Receipt::Told(Request { key, ..request(command, START) }, outcome.clone()));
        }
        Some(outcome)
    }

    /// Asks, and asks again when the answer is that there is none.
    fn ask(&self, command: Command, key: Option<RequestKey>) -> Option<Outcome> {
        const TRIES: u32 = 3;
        for _ in 0..TRIES {
            let request = Request { key, ..request(command.clone(), START) };
            match self.world.store.submit_blocking(request) {
                Ok(decision) => return Some(decision.outcome),
                Err(SubmitError::Unknown(_)) => self.unknown.fetch_add(1, Ordering::SeqCst),
                Err(SubmitError::Unavailable(_)) => self.unavailable.fetch_add(1, Ordering::SeqCst),
                Err(error) => panic!("{error}"),
            };
        }
        None
    }
}

/// The receipts for which a store has nothing to show. The requests are repeated as they were made.
pub(super) fn missing<'a>(store: &Store, receipts: &'a [Receipt]) -> Vec<&'a Receipt> {
    let again = |receipt: &Receipt| match receipt {
        Receipt::Told(request, _) => Some(ask(store, request.clone(), None)),
        _ => None,
    };
    let asked: Vec<_> = receipts.iter().map(again).collect();
    let mut missing = Vec::new();
    for (receipt, asked) in receipts.iter().zip(asked) {
        let stands = match asked {
            Some(asked) => {
                let decision = asked.answer().expect("a sound disk serves");
                decision.replayed
                    && matches!(receipt, Receipt::Told(_, outcome) if *outcome == decision.outcome)
            }
            None => stands(store, receipt).expect("a sound disk can be read"),
        };
        if !stands {
            missing.push(receipt);
        }
    }
    missing
}

fn stands(store: &Store, receipt: &Receipt) -> Result<bool, StoreError> {
    let order = |id: &OrderId| store.read(|db| db.order(*id)).map(|view| view.map(|view| view.order));
    Ok(match receipt {
        Receipt::OnSale => {
            let event = store.read(|db| db.event(HALL))?;
            event.is_some_and(|event| event.status == EventStatus::Open && event.price_version == 1)
        }
        Receipt::Told(..) => unreachable!("it is asked again"),
        Receipt::Released(hold) => {
            store.read(|db| db.hold(*hold))?.is_some_and(|view| view.hold.status == HoldStatus::Released)
        }
        Receipt::Referred(attempt, reference) => store.read(|db| db.attempt(reference))? == Some(*attempt),
        Receipt::Sold(id) => order(id)?.is_some_and(|order| order.status == OrderStatus::Confirmed),
        Receipt::Captured(id) => {
            order(id)?.is_some_and(|order| order.payment_status == PaymentStatus::Captured)
        }
    })
}
