//! What buyers and the provider were told. It is kept apart from the books, and the books must agree with it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use onsale_core::command::{Decision, Outcome, PlacedHold};
use onsale_core::id::{OperationId, OrderId, TransferId};
use onsale_core::order::OrderStatus;
use onsale_core::reconcile::{CaseKind, Verdict};
use onsale_core::ticket::ScanResult;
use onsale_world::World;

use crate::Broken;
use crate::provider::Message;

#[derive(Default)]
pub(crate) struct Ledger {
    /// Keys that were decided for good, whether or not anybody heard of it.
    decided: BTreeMap<u128, Outcome>,
    /// The answer to each key.
    answers: BTreeMap<u128, Outcome>,
    holds: Vec<PlacedHold>,
    orders: BTreeSet<OrderId>,
    /// Refunds and transfers that the operator was told of.
    refunds: Vec<OperationId>,
    transfers: Vec<TransferId>,
    /// What the gate was told of each scan.
    scans: BTreeMap<Arc<str>, ScanResult>,
    /// Orders that a buyer has seen confirmed.
    confirmed: BTreeSet<OrderId>,
    /// The lasting verdict on each message, with its content.
    verdicts: BTreeMap<(String, u128), Verdict>,
}

impl Ledger {
    /// A request was decided and committed. What was decided for good isn't decided again under its key.
    pub(crate) fn decided(&mut self, key: u128, decision: &Decision) -> Result<(), Broken> {
        if !lasts(&decision.outcome) || decision.replayed {
            return Ok(());
        }
        match self.decided.insert(key, decision.outcome.clone()) {
            None => Ok(()),
            Some(before) => {
                let what = format!("first {before:?}\nthen {:?}", decision.outcome);
                Err(Broken::new("client: a key is decided once", what))
            }
        }
    }

    /// A client was answered. What was answered to its key before is answered again.
    pub(crate) fn answered(&mut self, key: u128, outcome: &Outcome) -> Result<(), Broken> {
        if let Some(before) = self.answers.get(&key)
            && before != outcome
        {
            let what = format!("first {before:?}\nthen {outcome:?}");
            return Err(Broken::new("client: the same key has the same answer", what));
        }
        if lasts(outcome) && self.answers.insert(key, outcome.clone()).is_none() {
            match outcome {
                Outcome::HoldPlaced(placed) => self.holds.push(placed.clone()),
                Outcome::CheckoutBegun(order) => {
                    self.orders.insert(*order);
                }
                Outcome::RefundBegun(operation) => self.refunds.push(*operation),
                Outcome::TransferBegun(transfer) => self.transfers.push(*transfer),
                _ => {}
            }
        }
        Ok(())
    }

    /// A ticket was shown. The same scan has the same answer, whatever has become of the ticket since; whether it is new.
    pub(crate) fn scanned(&mut self, scan: &Arc<str>, result: ScanResult) -> Result<bool, Broken> {
        match self.scans.insert(Arc::clone(scan), result) {
            None => Ok(true),
            Some(before) if before == result => Ok(false),
            Some(before) => {
                let what = format!("{scan}: first {before:?}, then {result:?}");
                Err(Broken::new("gate: the same scan has the same answer", what))
            }
        }
    }

    pub(crate) fn saw_confirmed(&mut self, order: OrderId) {
        self.confirmed.insert(order);
    }

    /// The provider was told what its message did.
    pub(crate) fn judged(&mut self, message: &Message, verdict: Verdict) -> Result<(), Broken> {
        if matches!(verdict, Verdict::Parked | Verdict::Conflict) {
            return Ok(());
        }
        let before = self.verdicts.insert((message.id.clone(), message.digest), verdict);
        match before {
            Some(before) if verdict != Verdict::Duplicate => {
                let what = format!("{}: first {before:?}, then {verdict:?}", message.id);
                Err(Broken::new("provider: a message has its say once", what))
            }
            _ => Ok(()),
        }
    }

    /// Nothing that was acknowledged is lost.
    pub(crate) fn compare(&self, world: &World) -> Result<(), Broken> {
        let lost = |what: String| Err(Broken::new("client: nothing acknowledged is lost", what));
        for placed in &self.holds {
            let told = &placed.hold;
            let Some(row) = world.holds.get(&told.id) else {
                return lost(format!("{told:?} is nowhere"));
            };
            let same = row.seats == told.seats
                && (&row.ga, &row.code) == (&told.ga, &told.code)
                && row.total_minor == told.total_minor
                && row.account == told.account
                && row.first_expires_at == told.first_expires_at;
            let seats = placed.seats.iter().map(|(_, _, price)| *price);
            let places = placed.ga.iter().map(|(_, count, _, price)| i64::from(*count) * price);
            let sum: i64 = seats.chain(places).sum();
            if !same || sum != told.total_minor {
                return lost(format!("told {placed:?}, kept {row:?}"));
            }
        }
        for order in &self.orders {
            if !world.orders.contains_key(order) {
                return lost(format!("{order} is nowhere"));
            }
        }
        for order in &self.confirmed {
            let confirmed = world.orders.get(order).is_some_and(|row| row.status == OrderStatus::Confirmed);
            let undone = |case: &onsale_core::reconcile::Case| {
                case.order == Some(*order) && case.kind == CaseKind::CaptureFailed
            };
            // Or the money for all of it was given back.
            let returned = world.orders.get(order).is_some_and(|row| row.ticket_count == 0);
            if !confirmed && !returned && !world.cases.values().any(undone) {
                return lost(format!("{order} was shown as confirmed and isn't"));
            }
        }
        for refund in &self.refunds {
            if !world.refunds.contains_key(refund) || !world.operations.contains_key(refund) {
                return lost(format!("the refund {refund} is nowhere"));
            }
        }
        for transfer in &self.transfers {
            if !world.transfers.contains_key(transfer) {
                return lost(format!("the transfer {transfer} is nowhere"));
            }
        }
        Ok(())
    }
}

/// Whether an outcome is a request's answer for good.
fn lasts(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::HoldPlaced(_)
        | Outcome::CheckoutBegun(_)
        | Outcome::RefundBegun(_)
        | Outcome::TransferBegun(_) => true,
        Outcome::Refused(refusal) => refusal.is_kept(),
        _ => false,
    }
}
