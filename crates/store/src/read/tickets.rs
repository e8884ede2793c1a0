//! Tickets and the gate, read.

use std::collections::BTreeSet;

use onsale_core::id::{EventNo, OrderId, TicketId};
use onsale_core::log::LogKind;
use onsale_core::ticket::{Ticket, TicketStatus};

use crate::look::Parsed;
use crate::rows::{self, LOG, SCAN, TICKET, time_or_none};

use super::Reader;
use super::views::{GateConflict, RevokedTickets};

/// Log entries that a list of changes is made from. Whoever is further behind takes the whole list.
const BEHIND_MAX: u64 = 20_000;
/// Tickets that a list of changes looks up one by one. More of them are sooner read as a whole.
const CHANGED_MAX: usize = 500;

impl Reader<'_> {
    /// Orders whose money has been taken and that have no tickets yet, the longest confirmed first.
    pub fn orders_to_ticket(&self, limit: u32) -> Parsed<Vec<OrderId>> {
        let text = "SELECT o.order_id FROM orders o JOIN events e ON e.event_no = o.event_no
             WHERE o.status = 'CONFIRMED' AND o.payment_status = 'CAPTURED' AND o.ticketed = 0 AND e.elsewhere IS NULL
             ORDER BY o.confirmed_at LIMIT ?1";
        self.0.all(text, &[limit.into()], |row| row.id(0))
    }

    /// The tickets of an order, in the order in which they were made.
    pub fn tickets(&self, order: OrderId) -> Parsed<Vec<Ticket>> {
        let text = format!("SELECT {TICKET} FROM tickets WHERE order_id = ?1 ORDER BY ticket_id");
        let tickets = self.0.all(&text, &[order.0.into()], rows::ticket)?;
        // They open the gate.
        self.0.prove()?;
        Ok(tickets)
    }

    /// A ticket.
    pub fn ticket(&self, id: TicketId) -> Parsed<Option<Ticket>> {
        let text = format!("SELECT {TICKET} FROM tickets WHERE ticket_id = ?1");
        let ticket = self.0.one(&text, &[id.0.into()], rows::ticket)?;
        self.0.prove()?;
        Ok(ticket)
    }

    /// Scans by which somebody was let in against the books, the newest first.
    pub fn gate_conflicts(&self, no: EventNo, limit: u32) -> Parsed<Vec<GateConflict>> {
        let columns = SCAN.split(", ").map(|column| format!("s.{column}")).collect::<Vec<_>>().join(", ");
        let text = format!(
            "SELECT {columns}, t.ordinal, t.area, t.admitted_at, t.admitted_gate
             FROM scans s LEFT JOIN tickets t ON t.ticket_id = s.ticket_id
             WHERE s.event_no = ?1 AND s.let_in_offline = 1 AND s.result <> 'ADMIT'
             ORDER BY s.received_at DESC, s.scan_id DESC LIMIT ?2"
        );
        self.0.all(&text, &[no.0.into(), limit.into()], |row| {
            Ok(GateConflict {
                scan: rows::scan(row)?,
                place: rows::place_or_none(row, 9)?,
                admitted_at: time_or_none(row, 11)?,
                admitted_gate: row.string_or_none(12)?,
            })
        })
    }

    /// The tickets of an event that a scanner must not trust blindly: those that have moved since a version, or all that are not
    /// as they were issued. `None` when the event isn't at home here.
    pub fn revoked_tickets(&self, no: EventNo, since: Option<u64>) -> Parsed<Option<RevokedTickets>> {
        self.0.still(|| {
            let text = "SELECT version FROM events WHERE event_no = ?1 AND elsewhere IS NULL";
            let Some(version) = self.0.one(text, &[no.0.into()], |row| row.number::<u64>(0))? else {
                return Ok(None);
            };
            let changed = match since.filter(|since| *since <= version && version - since <= BEHIND_MAX) {
                Some(since) => self.tickets_moved(no, since, version)?,
                None => None,
            };
            if let Some(ids) = changed {
                let tickets = ids.into_iter().map(|id| self.ticket_state(id)).collect::<Parsed<Vec<_>>>()?;
                let tickets = tickets.into_iter().flatten().collect();
                return Ok(Some(RevokedTickets { version, since, tickets }));
            }
            let text = "SELECT ticket_id, generation, status FROM tickets
                 WHERE event_no = ?1 AND (status <> 'VALID' OR generation > 1) ORDER BY ticket_id";
            let tickets =
                self.0.all(text, &[no.0.into()], |row| Ok((row.id(0)?, row.number(1)?, row.word(2)?)))?;
            Ok(Some(RevokedTickets { version, since: None, tickets }))
        })
    }

    /// The tickets that the log says have moved after a version; `None` when they are many, or the log doesn't reach back so far.
    fn tickets_moved(&self, no: EventNo, since: u64, version: u64) -> Parsed<Option<BTreeSet<TicketId>>> {
        let key = [no.0.into(), (since as i64).into()];
        let text = "SELECT 1 FROM log WHERE event_no = ?1 AND version = ?2";
        let next = [no.0.into(), (since as i64 + 1).into()];
        if since < version && self.0.one(text, &next, |_| Ok(()))?.is_none() {
            return Ok(None);
        }
        let text = format!(
            "SELECT {LOG} FROM log WHERE event_no = ?1 AND version > ?2 AND kind = 'tickets.moved' ORDER BY version"
        );
        let mut moved = BTreeSet::new();
        for entry in self.0.all(&text, &key, rows::log)? {
            if let LogKind::TicketsMoved { tickets, .. } = entry.kind {
                moved.extend(tickets);
            }
        }
        Ok((moved.len() <= CHANGED_MAX).then_some(moved))
    }

    fn ticket_state(&self, id: TicketId) -> Parsed<Option<(TicketId, u16, TicketStatus)>> {
        let text = "SELECT ticket_id, generation, status FROM tickets WHERE ticket_id = ?1";
        self.0.one(text, &[id.0.into()], |row| Ok((row.id(0)?, row.number(1)?, row.word(2)?)))
    }
}
