//! The database of a world: the store in memory, and in some worlds the real ones beside it, which must come to the very
//! same decisions. In memory a shell's look may also see rows of a moment ago.

mod real;

use std::collections::VecDeque;
use std::slice;

use onsale_core::command::{Decision, Request};
use onsale_core::ga::{Transfer, TransferStatus};
use onsale_core::hold::Hold;
use onsale_core::id::{HoldId, OperationId, OrderId, TransferId};
use onsale_core::order::{Order, OrderStatus};
use onsale_core::payment::{Operation, PaymentStatus};
use onsale_core::reconcile::{Callback, Verdict};
use onsale_core::time::Timestamp;
use onsale_world::World;

use crate::Broken;

pub(crate) use real::Real;

/// States that a look may still see.
const PAST_MAX: usize = 6;

pub(crate) struct Database {
    pub(crate) world: World,
    past: VecDeque<World>,
    pub(crate) real: Vec<Real>,
}

/// Whether an order's money has been taken, and its tickets are yet to be made.
pub(crate) fn wants_tickets(order: &Order) -> bool {
    let is_paid = order.status == OrderStatus::Confirmed && order.payment_status == PaymentStatus::Captured;
    is_paid && !order.ticketed
}

impl Database {
    pub(crate) fn new(real: Vec<Real>) -> Database {
        Database { world: World::new(), past: VecDeque::new(), real }
    }

    /// Decides requests in one transaction.
    pub(crate) fn commit(
        &mut self,
        process: usize,
        requests: &[Request],
        now: Timestamp,
    ) -> Result<Vec<Decision>, Broken> {
        self.remember();
        let mut singly = (requests.len() > 1).then(|| self.world.clone());
        let decisions = self.world.run(requests, now);
        if let Some(singly) = &mut singly {
            let alone: Vec<Decision> =
                requests.iter().flat_map(|request| singly.run(slice::from_ref(request), now)).collect();
            if alone != decisions || *singly != self.world {
                let what = format!("{requests:?}\ntogether: {decisions:?}\none by one: {alone:?}");
                return Err(Broken::new("a batch comes to what its requests come to one by one", what));
            }
        }
        for real in &mut self.real {
            real.commit(process, requests, &decisions, now, &self.world)?;
        }
        Ok(decisions)
    }

    /// Decides requests over rows that were read before the lock was had, and writes what came of it over whatever is
    /// there now. No store may do this; it is planted to be found.
    pub(crate) fn commit_over(
        &mut self,
        rows: &World,
        requests: &[Request],
        now: Timestamp,
    ) -> Result<Vec<Decision>, Broken> {
        self.remember();
        Ok(self.world.run_over(rows, requests, now))
    }

    fn remember(&mut self) {
        self.past.push_back(self.world.clone());
        if self.past.len() > PAST_MAX {
            self.past.pop_front();
        }
    }

    /// Rows as a look sees them: those of now, or of so many commits ago.
    pub(crate) fn rows(&self, ago: usize) -> &World {
        match ago {
            0 => &self.world,
            _ => self.past.iter().rev().nth(ago - 1).unwrap_or(&self.world),
        }
    }

    /// The live operations whose time has come, the longest due first.
    pub(crate) fn due_operations(
        &mut self,
        process: usize,
        now: Timestamp,
        limit: usize,
        ago: usize,
    ) -> Result<Vec<Operation>, Broken> {
        let is_due = |operation: &&Operation| operation.status.is_live() && operation.due_at <= now;
        let mut due: Vec<Operation> = self.rows(ago).operations.values().filter(is_due).cloned().collect();
        due.sort_by_key(|operation| (operation.due_at, operation.id));
        for real in &mut self.real {
            real.compare_due_operations(process, now, &due)?;
        }
        due.truncate(limit);
        Ok(due)
    }

    /// The holds whose time has come and that aren't in doubt.
    pub(crate) fn due_holds(&mut self, process: usize, now: Timestamp) -> Result<Vec<HoldId>, Broken> {
        let is_due = |hold: &&Hold| hold.status.is_live() && !hold.in_doubt && hold.expires_at <= now;
        let mut due: Vec<HoldId> = self.world.holds.values().filter(is_due).map(|hold| hold.id).collect();
        due.sort();
        for real in &mut self.real {
            real.compare_due_holds(process, now, &due)?;
        }
        Ok(due)
    }

    /// Capacity on its way.
    pub(crate) fn transfers_in_flight(&mut self, process: usize) -> Result<Vec<TransferId>, Broken> {
        let on_its_way = |transfer: &&Transfer| transfer.status == TransferStatus::InFlight;
        let rows = self.world.transfers.values().filter(on_its_way);
        let ids: Vec<TransferId> = rows.map(|transfer| transfer.id).collect();
        for real in &mut self.real {
            real.compare_transfers(process, &ids)?;
        }
        Ok(ids)
    }

    /// Orders that are paid for and have no tickets yet.
    pub(crate) fn orders_to_ticket(&mut self, process: usize) -> Result<Vec<OrderId>, Broken> {
        let ids: Vec<OrderId> =
            self.world.orders.values().filter(|order| wants_tickets(order)).map(|order| order.id).collect();
        for real in &mut self.real {
            real.compare_orders_to_ticket(process, &ids)?;
        }
        Ok(ids)
    }

    /// Every row that the real databases show, against those in memory.
    pub(crate) fn compare(&mut self, process: usize) -> Result<(), Broken> {
        self.real.iter_mut().try_for_each(|real| real.compare_rows(process, &self.world))
    }

    /// The parked callbacks whose time has come.
    pub(crate) fn due_callbacks(&mut self, process: usize, now: Timestamp) -> Result<Vec<Callback>, Broken> {
        let is_due = |row: &&Callback| row.verdict == Verdict::Parked && row.due_at <= now;
        let due: Vec<Callback> = self.world.callbacks.values().filter(is_due).cloned().collect();
        for real in &mut self.real {
            real.compare_due_callbacks(process, now, &due)?;
        }
        Ok(due)
    }

    /// The attempt of that name, as a look sees it.
    pub(crate) fn attempt_named(&self, name: &str, ago: usize) -> Option<OperationId> {
        self.rows(ago).attempt_named(name).map(|operation| operation.id)
    }
}
