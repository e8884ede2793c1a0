//! The gates: tickets are shown, some of them twice, some too late, some while the gate could not ask; and some are issued
//! anew.

use onsale_core::command::{Command, Showing};
use onsale_core::id::{EventNo, TicketId};
use onsale_core::ticket::Direction;
use onsale_core::time::Timestamp;

use crate::sim::Sim;

impl Sim {
    /// Somebody shows a ticket.
    pub(super) fn at_the_gate(&mut self) {
        let tickets: Vec<(TicketId, u16)> =
            self.database.world.tickets.values().map(|ticket| (ticket.id, ticket.generation)).collect();
        let Some((ticket, generation)) = self.chance.pick(&tickets).copied() else {
            return;
        };
        let stranger = TicketId(ticket.0 ^ 1 << 40);
        let is_older = generation > 1 && self.chance.percent(30);
        let is_late = self.chance.percent(25);
        let scanned_at = is_late.then(|| Timestamp::from_millis(self.now - 5_000));
        let showing = Showing {
            scan: format!("scan-{}", self.fresh()).into(),
            ticket: if self.chance.percent(4) { stranger } else { ticket },
            generation: if is_older { generation - 1 } else { generation },
            at: self.chance.percent(4).then_some(EventNo(77)),
            direction: if self.chance.percent(30) { Direction::Out } else { Direction::In },
            gate: self.chance.of(&["north", "south"]).to_owned(),
            scanned_at,
            let_in_offline: is_late,
        };
        // The answer is lost, and the gate lets its holder in by itself and says so later.
        if self.chance.percent(25) {
            let again = Showing { let_in_offline: true, ..showing.clone() };
            self.submit(Command::ScanTicket(again));
        }
        self.submit(Command::ScanTicket(showing));
    }

    /// A barcode was lost: the ticket gets a new one.
    pub(super) fn issue_anew(&mut self) {
        let tickets: Vec<(TicketId, u16)> =
            self.database.world.tickets.values().map(|ticket| (ticket.id, ticket.generation)).collect();
        if let Some((ticket, generation)) = self.chance.pick(&tickets).copied() {
            self.submit(Command::ReissueTicket { ticket, generation, actor: "olga".to_owned() });
        }
    }
}
