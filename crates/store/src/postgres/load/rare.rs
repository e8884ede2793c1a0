//! Reading what a sale at its height needs none of: each kind of row in a round trip of its own, and no round trip where there
//! is none.

use std::sync::LazyLock;

use onsale_core::id::EventNo;
use onsale_core::limits::DUE_HOLDS_MAX;
use onsale_core::snapshot::{DueWith, Need, Snapshot};
use tokio_postgres::Row as PgRow;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::look::{Parsed, Row};
use crate::names::due_with;
use crate::postgres::Link;
use crate::rows::{self, ALLOCATION, CODE, REFUND, SCAN, TICKET, TRANSFER};

macro_rules! texts {
    ($($name:ident = $columns:ident $rest:literal;)*) => {$(
        static $name: LazyLock<String> = LazyLock::new(|| format!(concat!("SELECT {} ", $rest), $columns));
    )*};
}

texts! {
    TRANSFERS = TRANSFER "FROM quota_transfers WHERE transfer_id = ANY($1::uuid[])";
    CODES = CODE ", event_no FROM unnest($1::int[], $2::text[]) AS w (no, wanted) CROSS JOIN LATERAL (
            SELECT * FROM access_codes WHERE event_no = w.no AND access_codes.code = w.wanted OFFSET 0
        ) AS c";
    ALLOCATIONS = ALLOCATION ", event_no FROM allocations WHERE event_no = ANY($1::int[])";
    REFUNDS = REFUND "FROM refunds WHERE order_id = ANY($1::uuid[])";
    TICKETS_OF = TICKET "FROM tickets WHERE order_id = ANY($1::uuid[])";
    TICKETS = TICKET "FROM tickets WHERE ticket_id = ANY($1::uuid[])";
    SCANS = SCAN "FROM unnest($1::int[], $2::text[]) AS w (no, wanted) CROSS JOIN LATERAL (
            SELECT * FROM scans WHERE event_no = w.no AND scans.scan_id = w.wanted OFFSET 0
        ) AS s";
}

const DUE: &str = "SELECT w.no, h.hold_id
     FROM unnest($1::int[], $2::text[], $3::text[], $4::text[], $5::bigint[])
       AS w (no, with_seats, with_places, with_code, now)
     CROSS JOIN LATERAL (
         SELECT hold_id FROM holds WHERE status IN ('ACTIVE', 'PAYMENT_PENDING') AND in_doubt = 0 AND expires_at <= w.now
           AND event_no = w.no AND seats LIKE w.with_seats AND ga LIKE w.with_places
           AND (w.with_code = '' OR code = w.with_code)
         ORDER BY status, expires_at LIMIT $6
     ) AS h";

fn ask(link: &Link, text: &str, values: &[&(dyn ToSql + Sync)]) -> Parsed<Vec<PgRow>> {
    let statement = link.prepared(text)?;
    link.wait(async { link.client().query(&statement, values).await })
}

/// Reads rows of the rare kinds, and the holds of some events that are due.
pub(super) fn load(
    link: &Link,
    snapshot: &mut Snapshot,
    due: &[(EventNo, DueWith)],
    needs: Vec<Need>,
) -> Parsed<()> {
    if !due.is_empty() {
        let limit = i64::from(DUE_HOLDS_MAX);
        // An event's clock may be ahead of this process's.
        let now: Vec<i64> = due.iter().map(|(no, _)| snapshot.now_of(*no).millis()).collect();
        let events: Vec<i32> = due.iter().map(|(no, _)| no.0 as i32).collect();
        let (mut seats, mut places, mut codes) = (Vec::new(), Vec::new(), Vec::new());
        for (_, with) in due {
            let (with_seats, with_places, with_code) = due_with(with);
            seats.push(with_seats);
            places.push(with_places);
            codes.push(with_code);
        }
        for row in ask(link, DUE, &[&events, &seats, &places, &codes, &now, &limit])? {
            let row = Row::Postgres(&row);
            snapshot.load_due(EventNo(row.number::<i32>(0)? as u32), vec![row.id(1)?]);
        }
    }
    if needs.is_empty() {
        return Ok(());
    }
    let Wanted { transfers, codes, allocations, refunds, tickets_of, tickets, scans } = Wanted::sort(needs);
    if !transfers.is_empty() {
        for row in ask(link, &TRANSFERS, &[&transfers])? {
            snapshot.load_transfer(rows::transfer(&Row::Postgres(&row))?);
        }
    }
    if !codes.0.is_empty() {
        for row in ask(link, &CODES, &[&codes.0, &codes.1])? {
            let row = Row::Postgres(&row);
            snapshot.load_code(EventNo(row.number(9)?), rows::code(&row)?);
        }
    }
    if !allocations.is_empty() {
        for row in ask(link, &ALLOCATIONS, &[&allocations])? {
            let row = Row::Postgres(&row);
            snapshot.load_allocation(EventNo(row.number(3)?), rows::allocation(&row)?);
        }
    }
    if !refunds.is_empty() {
        for row in ask(link, &REFUNDS, &[&refunds])? {
            snapshot.load_refund(rows::refund(&Row::Postgres(&row))?);
        }
    }
    for (text, ids) in [(&TICKETS_OF, &tickets_of), (&TICKETS, &tickets)] {
        if !ids.is_empty() {
            for row in ask(link, text, &[ids])? {
                snapshot.load_ticket(rows::ticket(&Row::Postgres(&row))?);
            }
        }
    }
    if !scans.0.is_empty() {
        for row in ask(link, &SCANS, &[&scans.0, &scans.1])? {
            snapshot.load_scan(rows::scan(&Row::Postgres(&row))?);
        }
    }
    Ok(())
}

/// What is wanted, by kind.
#[derive(Default)]
struct Wanted {
    transfers: Vec<Uuid>,
    codes: (Vec<i32>, Vec<String>),
    allocations: Vec<i32>,
    refunds: Vec<Uuid>,
    tickets_of: Vec<Uuid>,
    tickets: Vec<Uuid>,
    scans: (Vec<i32>, Vec<String>),
}

impl Wanted {
    fn sort(needs: Vec<Need>) -> Wanted {
        let mut wanted = Wanted::default();
        let bits = Uuid::from_u128;
        for need in needs {
            match need {
                Need::Transfer(id) => wanted.transfers.push(bits(id.0)),
                Need::Code(no, code) => {
                    wanted.codes.0.push(no.0 as i32);
                    wanted.codes.1.push(code.to_string());
                }
                Need::Allocations(no) => wanted.allocations.push(no.0 as i32),
                Need::Refunds(order) => wanted.refunds.push(bits(order.0)),
                Need::Tickets(order) => wanted.tickets_of.push(bits(order.0)),
                Need::Ticket(id) => wanted.tickets.push(bits(id.0)),
                Need::Scan(no, id) => {
                    wanted.scans.0.push(no.0 as i32);
                    wanted.scans.1.push(id.to_string());
                }
                other => unreachable!("a need that is not rare: {other:?}"),
            }
        }
        wanted
    }
}
