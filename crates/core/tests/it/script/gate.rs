//! Tickets and the gate on a page.
//!
//! ```text
//! 5s worker tickets o1 -> issued
//! 6s gate north scans o1 A1 as s1 -> ADMIT 6s north                  [generation 2] [out] [offline] [elsewhere]
//! 7s operator reissues o1 A1 generation 1 -> reissued
//! tickets o1 A1 VALID 2 inside, A2 VALID 1                           how the tickets of an order stand
//! ```

use std::sync::Arc;

use onsale_core::command::{Command, Scanned, Showing};
use onsale_core::id::{EventNo, OrderId};
use onsale_core::ticket::{Direction, Place, ScanResult, Ticket, TicketStatus};

use super::Page;
use super::words::{Words, time_text};

impl Page {
    /// `tickets o1`.
    pub(super) fn worker(&self, words: &mut Words<'_>) -> Command {
        words.expect("tickets");
        Command::IssueTickets { order: self.order(words.next()) }
    }

    /// `o1 A1 generation 1`.
    pub(super) fn reissue(&self, words: &mut Words<'_>) -> Command {
        let order = words.next();
        let ticket = self.ticket(order, words.next()).id;
        words.expect("generation");
        Command::ReissueTicket { ticket, generation: words.number() as u16, actor: "olga".to_owned() }
    }

    /// `north scans o1 A1 as s1`, and how.
    pub(super) fn gate(&self, words: &mut Words<'_>) -> Command {
        let gate = words.next().to_owned();
        words.expect("scans");
        let order = words.next();
        let ticket = self.ticket(order, words.next());
        let mut showing = Showing {
            scan: Arc::from(""),
            ticket: ticket.id,
            generation: ticket.generation,
            at: None,
            direction: Direction::In,
            gate,
            scanned_at: None,
            let_in_offline: false,
        };
        words.expect("as");
        showing.scan = words.next().into();
        while let Some(word) = words.next_if_any() {
            match word {
                "generation" => showing.generation = words.number() as u16,
                "out" => showing.direction = Direction::Out,
                "offline" => showing.let_in_offline = true,
                "elsewhere" => showing.at = Some(EventNo(99)),
                "at" => showing.scanned_at = Some(words.time()),
                other => panic!("scanned how? {other}"),
            }
        }
        Command::ScanTicket(showing)
    }

    /// The ticket of an order for a seat.
    fn ticket(&self, order: &str, seat: &str) -> &Ticket {
        let (order, place) = (self.order(order), Place::Seat(self.ordinal(seat)));
        let found = self.world.tickets.values().find(|ticket| ticket.order == order && ticket.place == place);
        found.unwrap_or_else(|| panic!("there is no ticket for {seat}"))
    }

    pub(super) fn scanned_text(&self, scanned: &Scanned) -> String {
        let admitted = scanned.admitted.as_ref();
        let since = admitted.map(|(at, gate)| format!(" {} {gate}", time_text(*at))).unwrap_or_default();
        let result = match scanned.result {
            ScanResult::Admit => "ADMIT",
            ScanResult::AlreadyUsed => "ALREADY_USED",
            ScanResult::Revoked => "REVOKED",
            ScanResult::WrongEvent => "WRONG_EVENT",
            ScanResult::Invalid => "INVALID",
            ScanResult::Exited => "EXITED",
            ScanResult::NotInside => "NOT_INSIDE",
        };
        format!("{result}{since}")
    }

    pub(super) fn tickets_text(&self, order: OrderId) -> String {
        let text = |ticket: &Ticket| {
            let place = match ticket.place {
                Place::Seat(ordinal) => self.label(ordinal).to_owned(),
                Place::Area(area) => format!("area {}", area.0),
            };
            let status = match ticket.status {
                TicketStatus::Valid => "VALID",
                TicketStatus::Suspended => "SUSPENDED",
                TicketStatus::Revoked => "REVOKED",
            };
            let inside = if ticket.inside { " inside" } else { "" };
            format!("{place} {status} {}{inside}", ticket.generation)
        };
        let tickets = self.world.tickets.values().filter(|ticket| ticket.order == order);
        let texts: Vec<String> = tickets.map(text).collect();
        if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
    }

    /// Scans by which somebody was let in against the books.
    pub(super) fn conflicts_text(&self) -> String {
        let scans = self.world.scans.values().filter(|scan| scan.is_conflict());
        let ids: Vec<&str> = scans.map(|scan| &*scan.id).collect();
        if ids.is_empty() { "none".to_owned() } else { ids.join(", ") }
    }
}
