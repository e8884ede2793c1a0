//! Reading for an event's organiser: what was sold, what the provider has settled, who comes.

use std::collections::{BTreeMap, HashMap};

use onsale_core::ga::GaLine;
use onsale_core::id::{AccountId, AreaNo, EventNo, OrderId, SeatOrdinal, TicketId};
use onsale_core::order::OrderStatus;
use onsale_core::payment::PaymentStatus;
use onsale_core::ticket::{Place, TicketStatus};
use onsale_core::time::Timestamp;

use crate::error::StoreError;
use crate::look::{Parsed, Row, Value};
use crate::names::{ga_of, seats_of};
use crate::rows::{time, time_or_none};

use super::Reader;

/// Orders whose seats were sold: those that stand, and those of which everything has been given back since. One whose money
/// could not be taken was undone before any ticket, and was no sale.
const SOLD: &str =
    "o.paid_by IS NOT NULL AND o.confirmed_at IS NOT NULL AND (o.status = 'CONFIRMED' OR o.ticket_count = 0)";

/// Tickets and money of some sales.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs, reason = "figures by their names; amounts in minor units, at the prices sold for")]
pub struct Sales {
    pub tickets: u64,
    pub gross_minor: i64,
    pub returned_tickets: u64,
    pub returned_minor: i64,
}

/// Entries of the provider's account for some payments, added up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs, reason = "figures by their names; amounts in minor units")]
pub struct Settled {
    pub lines: u64,
    pub gross_minor: i64,
    pub refunds_minor: i64,
    pub other_minor: i64,
    pub fees_minor: i64,
}

/// One who comes: a ticket, or a seat or place whose ticket is yet to be issued.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "members by their names")]
pub struct Attendee {
    pub order: OrderId,
    pub account: AccountId,
    pub email: Option<String>,
    pub order_status: OrderStatus,
    pub payment_status: PaymentStatus,
    pub confirmed_at: Option<Timestamp>,
    pub place: Place,
    pub ticket: Option<AttendeeTicket>,
}

/// A ticket as the list of attendees shows it.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "members by their names")]
pub struct AttendeeTicket {
    pub id: TicketId,
    pub generation: u16,
    pub status: TicketStatus,
    pub inside: bool,
    pub admitted_at: Option<Timestamp>,
    pub admitted_gate: Option<String>,
}

/// A sold order with what its hold claimed.
struct SoldOrder {
    order: Attendee,
    price_version: u32,
    seats: Vec<SeatOrdinal>,
    ga: Vec<GaLine>,
    returned_seats: Vec<SeatOrdinal>,
    returned_ga: Vec<GaLine>,
}

fn sold_order(row: &Row<'_>) -> Parsed<SoldOrder> {
    Ok(SoldOrder {
        order: Attendee {
            order: row.id(0)?,
            account: row.account(1)?,
            email: row.string_or_none(2)?,
            order_status: row.word(3)?,
            payment_status: row.word(4)?,
            confirmed_at: time_or_none(row, 5)?,
            place: Place::Area(AreaNo(0)),
            ticket: None,
        },
        price_version: row.number(6)?,
        seats: seats_of(row.text(7)?)?,
        ga: ga_of(row.text(8)?)?,
        returned_seats: seats_of(row.text(9)?)?,
        returned_ga: ga_of(row.text(10)?)?,
    })
}

const SOLD_ORDER: &str = "o.order_id, o.account_id, o.email, o.status, o.payment_status, o.confirmed_at, h.price_version, h.seats, \
     h.ga, o.returned_seats, o.returned_ga";

/// Prices and price levels of everything an event sells.
struct PriceList {
    of_seats: Vec<u16>,
    of_areas: Vec<u16>,
    amounts: HashMap<(u32, u16), i64>,
}

impl Reader<'_> {
    /// Sales by price level and by a key made of the time of each, such as its day at the venue.
    pub fn sales<K: Ord>(
        &self,
        no: EventNo,
        key: impl Fn(Timestamp) -> K,
    ) -> Parsed<BTreeMap<(K, u16), Sales>> {
        self.0.still(|| {
            let prices = self.price_list(no)?;
            let text = format!(
                "SELECT {SOLD_ORDER} FROM orders o JOIN holds h ON h.hold_id = o.hold_id WHERE o.event_no = ?1 AND {SOLD}"
            );
            let mut sums = BTreeMap::new();
            self.0.all(&text, &[no.0.into()], |row| {
                let sold = sold_order(row)?;
                let at = sold.order.confirmed_at.unwrap_or(Timestamp::ZERO);
                let mut add = |level: u16, count: u64, is_return: bool| -> Parsed<()> {
                    let amount = prices.amount(sold.price_version, level)? * count as i64;
                    let sum: &mut Sales = sums.entry((key(at), level)).or_default();
                    match is_return {
                        false => (sum.tickets, sum.gross_minor) = (sum.tickets + count, sum.gross_minor + amount),
                        true => {
                            sum.returned_tickets += count;
                            sum.returned_minor += amount;
                        }
                    }
                    Ok(())
                };
                for (seats, is_return) in [(&sold.seats, false), (&sold.returned_seats, true)] {
                    for seat in seats {
                        add(prices.of_seat(*seat)?, 1, is_return)?;
                    }
                }
                for (lines, is_return) in [(&sold.ga, false), (&sold.returned_ga, true)] {
                    for line in lines {
                        add(prices.of_area(line.area)?, line.quantity.into(), is_return)?;
                    }
                }
                Ok(())
            })?;
            Ok(sums)
        })
    }

    fn price_list(&self, no: EventNo) -> Parsed<PriceList> {
        let of_event = [Value::from(no.0)];
        let level = |row: &Row<'_>| row.number(0);
        let text = "SELECT price_level FROM seats WHERE event_no = ?1 ORDER BY ordinal";
        let of_seats = self.0.all(text, &of_event, level)?;
        let text = "SELECT price_level FROM ga_areas WHERE event_no = ?1 ORDER BY position";
        let of_areas = self.0.all(text, &of_event, level)?;
        let text = "SELECT price_version, level, amount_minor FROM prices WHERE event_no = ?1 AND amount_minor IS NOT NULL";
        let amounts =
            self.0.all(text, &of_event, |row| Ok(((row.number(0)?, row.number(1)?), row.number(2)?)))?;
        Ok(PriceList { of_seats, of_areas, amounts: amounts.into_iter().collect() })
    }

    /// What the provider has settled of an event's payments, by currency and by a key made of the time of each entry.
    pub fn settled<K: Ord>(
        &self,
        no: EventNo,
        key: impl Fn(Timestamp) -> K,
    ) -> Parsed<BTreeMap<(K, String), Settled>> {
        let text = "SELECT created_at, currency, category, amount_minor, fee_minor FROM settlement_lines WHERE event_no = ?1";
        let mut sums = BTreeMap::new();
        self.0.all(text, &[no.0.into()], |row| {
            let sum: &mut Settled = sums.entry((key(time(row, 0)?), row.string(1)?)).or_default();
            let (amount, fee): (i64, i64) = (row.number(3)?, row.number(4)?);
            match row.text(2)? {
                "charge" => sum.gross_minor += amount,
                "refund" => sum.refunds_minor -= amount,
                _ => sum.other_minor += amount,
            }
            sum.fees_minor += fee;
            sum.lines += 1;
            Ok(())
        })?;
        Ok(sums)
    }

    /// Those who come to an event, by order, after one of the orders; of at most so many orders. Also the order to go on after,
    /// when there may be more.
    pub fn attendees(
        &self,
        no: EventNo,
        after: Option<OrderId>,
        orders_max: u32,
    ) -> Parsed<(Vec<Attendee>, Option<OrderId>)> {
        self.0.still(|| {
            let text = format!(
                "SELECT {SOLD_ORDER} FROM orders o JOIN holds h ON h.hold_id = o.hold_id
                 WHERE o.event_no = ?1 AND o.order_id > ?2 AND {SOLD} ORDER BY o.order_id LIMIT ?3"
            );
            let after = after.map_or(0, |order| order.0);
            let orders = self.0.all(&text, &[no.0.into(), after.into(), orders_max.into()], sold_order)?;
            let next =
                orders.last().filter(|_| orders.len() == orders_max as usize).map(|sold| sold.order.order);
            let mut found = Vec::new();
            for sold in orders {
                let tickets = self.tickets_of(sold.order.order)?;
                match tickets.is_empty() {
                    false => found.extend(tickets.into_iter().map(|(place, ticket)| Attendee {
                        place,
                        ticket: Some(ticket),
                        ..sold.order.clone()
                    })),
                    true => found.extend(sold.places().map(|place| Attendee { place, ..sold.order.clone() })),
                }
            }
            Ok((found, next))
        })
    }

    fn tickets_of(&self, order: OrderId) -> Parsed<Vec<(Place, AttendeeTicket)>> {
        let text = "SELECT ticket_id, ordinal, area, generation, status, inside, admitted_at, admitted_gate FROM tickets
             WHERE order_id = ?1 ORDER BY ordinal IS NULL, ordinal, area, ticket_id";
        self.0.all(text, &[order.0.into()], |row| {
            let place = match row.number_or_none(1)? {
                Some(ordinal) => Place::Seat(SeatOrdinal(ordinal)),
                None => Place::Area(AreaNo(row.number(2)?)),
            };
            let ticket = AttendeeTicket {
                id: row.id(0)?,
                generation: row.number(3)?,
                status: row.word(4)?,
                inside: row.truth(5)?,
                admitted_at: time_or_none(row, 6)?,
                admitted_gate: row.string_or_none(7)?,
            };
            Ok((place, ticket))
        })
    }
}

impl SoldOrder {
    /// The seats and places it still has.
    fn places(&self) -> impl Iterator<Item = Place> + use<> {
        let seats = self.seats.iter().filter(|seat| !self.returned_seats.contains(seat));
        let mut left: BTreeMap<AreaNo, u32> = BTreeMap::new();
        self.ga.iter().for_each(|line| *left.entry(line.area).or_default() += line.quantity);
        for line in &self.returned_ga {
            let places = left.entry(line.area).or_default();
            *places = places.saturating_sub(line.quantity);
        }
        let places = left.into_iter().flat_map(|(area, count)| (0..count).map(move |_| Place::Area(area)));
        seats.copied().map(Place::Seat).chain(places).collect::<Vec<_>>().into_iter()
    }
}

impl PriceList {
    fn of_seat(&self, seat: SeatOrdinal) -> Parsed<u16> {
        self.of_seats.get(seat.0 as usize).copied().ok_or_else(|| lost("a sold seat"))
    }

    fn of_area(&self, area: AreaNo) -> Parsed<u16> {
        self.of_areas.get(usize::from(area.0)).copied().ok_or_else(|| lost("a sold area"))
    }

    fn amount(&self, version: u32, level: u16) -> Parsed<i64> {
        self.amounts.get(&(version, level)).copied().ok_or_else(|| lost("the price of a sold seat"))
    }
}

fn lost(wanted: &'static str) -> StoreError {
    StoreError::Corrupt { wanted, found: "nothing".to_owned() }
}
