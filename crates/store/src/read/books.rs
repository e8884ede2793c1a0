//! Reading for who compares the books with the provider's.

use onsale_core::comparison::Books;
use onsale_core::id::{EventNo, OperationId, OrderId, Seed};
use onsale_core::order::Order;
use onsale_core::payment::Operation;
use onsale_core::reconcile::{CaseKind, CaseStatus};
use onsale_core::time::Timestamp;

use crate::look::{Parsed, Value};
use crate::names::Named;
use crate::rows::{self, CASE, OPERATION, ORDER};

use super::{CaseView, Reader};

/// An attempt as the books have it.
#[derive(Clone, Debug)]
pub struct AttemptView {
    /// The attempt's id.
    pub id: OperationId,
    /// Its order.
    pub order: Order,
    /// All operations of the order, the attempt among them.
    pub operations: Vec<Operation>,
    /// Whether a success takes the money at once.
    pub charge: bool,
}

impl AttemptView {
    /// What is compared; `None` when the attempt isn't among the order's operations.
    pub fn look<R>(&self, look: impl FnOnce(Books<'_>) -> R) -> Option<R> {
        let operations: Vec<&Operation> = self.operations.iter().collect();
        let attempt = operations.iter().find(|operation| operation.id == self.id)?;
        Some(look(Books { attempt, order: &self.order, operations: &operations, charge: self.charge }))
    }
}

impl Reader<'_> {
    /// How far some upkeep has come, and when that was kept.
    pub fn progress(&self, name: &str) -> Parsed<Option<(String, Timestamp)>> {
        let text = "SELECT value, updated_at FROM progress WHERE name = ?1";
        self.0.one(text, &[name.into()], |row| Ok((row.string(0)?, rows::time(row, 1)?)))
    }

    /// An attempt with all that belongs to its payment, as it stays.
    pub fn books_of(&self, id: OperationId) -> Parsed<Option<AttemptView>> {
        let found = self.0.still(|| {
            let text = format!("SELECT {OPERATION} FROM operations WHERE operation_id = ?1");
            let attempt = self.0.one(&text, &[id.0.into()], rows::operation)?;
            let Some(attempt) = attempt.filter(|operation| operation.target.is_none()) else {
                return Ok(None);
            };
            let of_order = [Value::from(attempt.order.0)];
            let text = format!("SELECT {OPERATION} FROM operations WHERE order_id = ?1 ORDER BY seq");
            let operations = self.0.all(&text, &of_order, rows::operation)?;
            let text = format!("SELECT {ORDER} FROM orders WHERE order_id = ?1");
            let order = self.0.one(&text, &of_order, rows::order)?;
            let text = "SELECT payment FROM events WHERE event_no = ?1 AND elsewhere IS NULL";
            let charge = self.0.one(text, &[id.event().0.into()], |row| Ok(row.text(0)? == "charge"))?;
            Ok(order.zip(charge).map(|(order, charge)| AttemptView { id, order, operations, charge }))
        })?;
        self.0.prove()?;
        Ok(found)
    }

    /// Attempts with money that were made in a time, in the order of their ids, after one of them; at most `limit`.
    pub fn paid_attempts(
        &self,
        from: Timestamp,
        to: Timestamp,
        after: Option<OperationId>,
        limit: u32,
    ) -> Parsed<Vec<(OperationId, String)>> {
        // An id begins with its time, so that a time is a stretch of the key.
        let first = |at| Seed::new(EventNo::HOUSE, at, 0).mint::<OperationId>().0;
        let after = after.map_or(first(from), |id| id.0 + 1);
        let text = "SELECT operation_id, reference FROM operations
             WHERE operation_id >= ?1 AND operation_id < ?2 AND kind = 'AUTHORIZE' AND status = 'SUCCEEDED'
               AND reference IS NOT NULL AND EXISTS
               (SELECT 1 FROM events e WHERE e.event_no = operations.event_no AND e.elsewhere IS NULL)
             ORDER BY operation_id LIMIT ?3";
        self.0.all(text, &[after.into(), first(to).into(), limit.into()], |row| {
            Ok((row.id(0)?, row.string(1)?))
        })
    }

    /// Orders that are paid and taken since before a time and have no tickets, with the attempt that paid; at most `limit`. A
    /// home that has never issued a ticket has nobody who would.
    pub fn unticketed(&self, before: Timestamp, limit: u32) -> Parsed<Vec<(OperationId, OrderId)>> {
        let text = "SELECT paid_by, order_id FROM orders
             WHERE status = 'CONFIRMED' AND payment_status = 'CAPTURED' AND ticketed = 0 AND confirmed_at < ?1
               AND EXISTS (SELECT 1 FROM tickets)
               AND EXISTS (SELECT 1 FROM events e WHERE e.event_no = orders.event_no AND e.elsewhere IS NULL)
             ORDER BY order_id LIMIT ?2";
        self.0.all(text, &[before.millis().into(), limit.into()], |row| Ok((row.id(0)?, row.id(1)?)))
    }

    /// Whether an order is still to have its tickets.
    pub fn wants_tickets(&self, id: OrderId) -> Parsed<bool> {
        let text = "SELECT 1 FROM orders WHERE order_id = ?1 AND status = 'CONFIRMED' AND ticketed = 0";
        Ok(self.0.one(text, &[id.0.into()], |_| Ok(()))?.is_some())
    }

    /// Whether an entry of the provider's account is kept here.
    pub fn has_settlement_line(&self, id: &str) -> Parsed<bool> {
        let text = "SELECT 1 FROM settlement_lines WHERE line_id = ?1";
        Ok(self.0.one(text, &[id.into()], |_| Ok(()))?.is_some())
    }

    /// Open cases of a kind, the oldest first, at most `limit`.
    pub fn open_cases(&self, kind: CaseKind, limit: u32) -> Parsed<Vec<CaseView>> {
        let text = format!(
            "SELECT {CASE} FROM cases WHERE status = ?1 AND kind = ?2 ORDER BY opened_at, case_id LIMIT ?3"
        );
        self.0.all(&text, &[CaseStatus::Open.word().into(), kind.as_str().into(), limit.into()], rows::case)
    }

    /// Whether a person has dismissed a difference of this kind about an attempt, seen as it is now.
    pub fn is_dismissed(&self, attempt: OperationId, kind: CaseKind, evidence: &str) -> Parsed<bool> {
        let text =
            "SELECT 1 FROM cases WHERE status = ?1 AND action = 'dismiss' AND operation_id = ?2 AND kind = ?3
             AND evidence = ?4";
        let values =
            [CaseStatus::Closed.word().into(), attempt.0.into(), kind.as_str().into(), evidence.into()];
        Ok(self.0.one(text, &values, |_| Ok(()))?.is_some())
    }

    /// How many cases of each kind are open, and since when the oldest.
    pub fn open_case_kinds(&self) -> Parsed<Vec<(String, u64, Timestamp)>> {
        let text = "SELECT kind, count(*), min(opened_at) FROM cases WHERE status = ?1 GROUP BY kind";
        self.0.all(text, &[CaseStatus::Open.word().into()], |row| {
            Ok((row.string(0)?, row.number(1)?, rows::time(row, 2)?))
        })
    }
}
