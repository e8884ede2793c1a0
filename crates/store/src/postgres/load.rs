//! Reading what a batch names, and what those rows name in turn: all that is wanted in one round trip, a statement for each kind
//! of row. The first round takes the lock of each event before anything of it is read.

mod rare;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use onsale_core::event::PriceTable;
use onsale_core::ga::Bucket;
use onsale_core::hold::Hold;
use onsale_core::id::{AccountId, AreaNo, EventNo, OrderId};
use onsale_core::payment::Operation;
use onsale_core::planted;
use onsale_core::reconcile::Case;
use onsale_core::snapshot::{DueWith, Need, Snapshot};
use onsale_core::time::Timestamp;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row as PgRow, Statement};
use uuid::Uuid;

use crate::boards::Boards;
use crate::error::StoreError;
use crate::limits::PRICE_TABLES_MAX;
use crate::look::{Look, Parsed, Row};
use crate::rows::{self, AREA, BUCKET, CALLBACK, CASE, EVENT, HOLD, KEY, OPERATION, ORDER, SEAT};

use super::Link;
use super::backend::PriceCache;

/// Why a batch could not be loaded.
pub(super) enum Unloaded {
    /// Rows name an event whose lock wasn't taken first: to be begun anew, with it.
    Late(EventNo),
    Failed(StoreError),
}

impl<E: Into<StoreError>> From<E> for Unloaded {
    fn from(error: E) -> Unloaded {
        Unloaded::Failed(error.into())
    }
}

/// What is wanted, by kind.
#[derive(Default)]
struct Wanted {
    events: Vec<i32>,
    prices: (Vec<i32>, Vec<i64>),
    keys: Vec<(EventNo, u128)>,
    callbacks: Vec<String>,
    cases: Vec<Uuid>,
    references: Vec<String>,
    operations: Vec<Uuid>,
    orders: Vec<Uuid>,
    holds: Vec<Uuid>,
    accounts: (Vec<i32>, Vec<String>),
    seats: (Vec<i32>, Vec<i32>),
    areas: (Vec<i32>, Vec<i32>),
    due: Vec<(EventNo, DueWith)>,
    boards: Vec<EventNo>,
    rare: Vec<Need>,
}

impl Wanted {
    /// Sorts what is wanted; prices that are known are loaded at once.
    fn sort(needs: Vec<Need>, known: &PriceCache, snapshot: &mut Snapshot) -> Wanted {
        let mut wanted = Wanted::default();
        let bits = Uuid::from_u128;
        for need in needs {
            match need {
                Need::Event(no) => wanted.events.push(no.0 as i32),
                Need::Prices(no, version) => match known.get(&(no, version)) {
                    Some(table) => snapshot.load_prices(no, version, table.clone()),
                    None => {
                        wanted.prices.0.push(no.0 as i32);
                        wanted.prices.1.push(i64::from(version));
                    }
                },
                Need::Key(no, key) => wanted.keys.push((no, key)),
                Need::Callback(id) => wanted.callbacks.push(id.to_string()),
                Need::Case(id) => wanted.cases.push(bits(id.0)),
                Need::Reference(reference) => wanted.references.push(reference.to_string()),
                Need::Operation(id) => wanted.operations.push(bits(id.0)),
                Need::Order(id) => wanted.orders.push(bits(id.0)),
                Need::Hold(id) => wanted.holds.push(bits(id.0)),
                Need::Account(no, account) => {
                    wanted.accounts.0.push(no.0 as i32);
                    wanted.accounts.1.push(account.as_str().to_owned());
                }
                Need::Seat(no, ordinal) => {
                    wanted.seats.0.push(no.0 as i32);
                    wanted.seats.1.push(ordinal.0 as i32);
                }
                Need::Area(no, area) => {
                    wanted.areas.0.push(no.0 as i32);
                    wanted.areas.1.push(i32::from(area.0));
                }
                Need::Due(no, with) => wanted.due.push((no, with)),
                Need::Board(no) => wanted.boards.push(no),
                rare => wanted.rare.push(rare),
            }
        }
        wanted
    }
}

/// Takes the locks of the events, in their order, and reads until the snapshot wants no more. `at` makes of the database's time,
/// read when the locks are held, that of the decisions. Returns the events whose home is elsewhere; nothing of them is loaded.
pub(super) fn begin(
    link: &Link,
    prices: &mut PriceCache,
    boards: &mut Boards,
    snapshot: &mut Snapshot,
    late: &BTreeSet<EventNo>,
    at: impl FnOnce(Timestamp) -> Parsed<Timestamp>,
) -> Result<BTreeSet<EventNo>, Unloaded> {
    let mut wanted = Wanted::sort(snapshot.take_wanted(), prices, snapshot);
    wanted.events.extend(late.iter().map(|no| no.0 as i32));
    wanted.events.sort_unstable();
    wanted.events.dedup();
    let locked: BTreeSet<i32> = wanted.events.iter().copied().collect();
    let found = ask(link, &wanted, true)?;
    snapshot.set_now(at(clock_of(&found)?)?);
    let mut elsewhere = BTreeSet::new();
    take_in(snapshot, prices, &wanted, found, &mut elsewhere)?;
    rare::load(link, snapshot, &wanted.due, wanted.rare)?;
    for no in wanted.boards {
        boards.load(Look::Postgres(link), snapshot, no)?;
    }
    loop {
        let wanted = snapshot.take_wanted();
        if wanted.is_empty() {
            return Ok(elsewhere);
        }
        let mut wanted = Wanted::sort(wanted, prices, snapshot);
        // One that was locked for being late is loaded already.
        wanted.events.retain(|no| !locked.contains(no));
        if let Some(no) = wanted.events.first() {
            return Err(Unloaded::Late(EventNo(*no as u32)));
        }
        let found = ask(link, &wanted, false)?;
        take_in(snapshot, prices, &wanted, found, &mut elsewhere)?;
        rare::load(link, snapshot, &wanted.due, wanted.rare)?;
        for no in wanted.boards {
            boards.load(Look::Postgres(link), snapshot, no)?;
        }
    }
}

/// Rows by kind, in the order in which they are loaded.
struct Found {
    events: Vec<PgRow>,
    clock: Vec<PgRow>,
    prices: Vec<PgRow>,
    keys: Vec<PgRow>,
    callbacks: Vec<PgRow>,
    cases: Vec<PgRow>,
    references: Vec<PgRow>,
    operations: Vec<PgRow>,
    orders: Vec<PgRow>,
    operations_of: Vec<PgRow>,
    cases_of: Vec<PgRow>,
    holds: Vec<PgRow>,
    live: Vec<PgRow>,
    sold: Vec<PgRow>,
    seats: Vec<PgRow>,
    areas: Vec<PgRow>,
    buckets: Vec<PgRow>,
}

macro_rules! texts {
    ($($name:ident = $columns:ident $rest:literal;)*) => {$(
        static $name: LazyLock<String> = LazyLock::new(|| format!(concat!("SELECT {} ", $rest), $columns));
    )*};
}

// Plans are made once, when tables may be empty yet. A look-up for each row asked for, and OFFSET 0, leave no other way than by
// the key, however few rows the server believes there are.
texts! {
    EVENTS = EVENT ", elsewhere FROM events WHERE event_no = ANY($1::int[]) ORDER BY event_no FOR UPDATE";
    KEYS = KEY "FROM idempotency_keys WHERE key = ANY($1::uuid[])";
    CALLBACKS = CALLBACK "FROM callbacks WHERE provider_event_id = ANY($1::text[])";
    CASES = CASE "FROM cases WHERE case_id = ANY($1::uuid[])";
    REFERENCES = OPERATION "FROM operations WHERE reference = ANY($1::text[]) AND kind = 'AUTHORIZE' AND reference IS NOT NULL";
    OPERATIONS = OPERATION "FROM operations WHERE operation_id = ANY($1::uuid[])";
    ORDERS = ORDER "FROM orders WHERE order_id = ANY($1::uuid[])";
    OPERATIONS_OF = OPERATION "FROM operations WHERE order_id = ANY($1::uuid[]) ORDER BY order_id, seq";
    CASES_OF = CASE "FROM cases WHERE order_id = ANY($1::uuid[]) AND status = 'OPEN' AND order_id IS NOT NULL ORDER BY case_id";
    HOLDS = HOLD "FROM holds WHERE hold_id = ANY($1::uuid[])";
    LIVE = HOLD "FROM unnest($1::int[], $2::text[]) AS w (no, account) CROSS JOIN LATERAL (
            SELECT * FROM holds WHERE event_no = w.no AND account_id = w.account AND status IN ('ACTIVE', 'PAYMENT_PENDING') OFFSET 0
        ) AS h";
    SEATS = SEAT ", event_no FROM unnest($1::int[], $2::int[]) AS w (no, seat) CROSS JOIN LATERAL (
            SELECT * FROM seats WHERE event_no = w.no AND ordinal = w.seat OFFSET 0
        ) AS s";
    AREAS = AREA ", event_no FROM unnest($1::int[], $2::int[]) AS w (no, wanted) CROSS JOIN LATERAL (
            SELECT * FROM ga_areas WHERE event_no = w.no AND position = w.wanted OFFSET 0
        ) AS a";
    BUCKETS = BUCKET ", event_no FROM unnest($1::int[], $2::int[]) AS w (no, wanted) CROSS JOIN LATERAL (
            SELECT * FROM ga_buckets WHERE event_no = w.no AND area = w.wanted OFFSET 0
        ) AS b ORDER BY event_no, area, bucket";
}

const CLOCK: &str = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
const PRICES: &str =
    "SELECT event_no, price_version, amount_minor FROM unnest($1::int[], $2::bigint[]) AS w (no, price)
     JOIN prices ON event_no = w.no AND price_version = w.price ORDER BY event_no, price_version, level";
const SOLD: &str = "SELECT w.no, w.account, s.sold FROM unnest($1::int[], $2::text[]) AS w (no, account) CROSS JOIN LATERAL (
         SELECT coalesce(sum(ticket_count), 0)::bigint AS sold FROM orders
         WHERE event_no = w.no AND account_id = w.account AND status = 'CONFIRMED'
     ) AS s";

/// Asks for all that is wanted in one round trip. Statements run in the order in which they are sent: the locks come first, then
/// the time, then rows.
fn ask(link: &Link, wanted: &Wanted, begins: bool) -> Parsed<Found> {
    let keys: Vec<Uuid> = wanted.keys.iter().map(|(_, key)| Uuid::from_u128(*key)).collect();
    let prepare = |is_wanted: bool, text: &str| is_wanted.then(|| link.prepared(text)).transpose();
    let of_orders = !wanted.orders.is_empty();
    let of_accounts = !wanted.accounts.0.is_empty();
    let events = prepare(begins, &EVENTS)?;
    let clock = prepare(begins, CLOCK)?;
    let prices = prepare(!wanted.prices.0.is_empty(), PRICES)?;
    let by_key = prepare(!keys.is_empty(), &KEYS)?;
    let callbacks = prepare(!wanted.callbacks.is_empty(), &CALLBACKS)?;
    let cases = prepare(!wanted.cases.is_empty(), &CASES)?;
    let references = prepare(!wanted.references.is_empty(), &REFERENCES)?;
    let operations = prepare(!wanted.operations.is_empty(), &OPERATIONS)?;
    let (orders, operations_of, cases_of) =
        (prepare(of_orders, &ORDERS)?, prepare(of_orders, &OPERATIONS_OF)?, prepare(of_orders, &CASES_OF)?);
    let holds = prepare(!wanted.holds.is_empty(), &HOLDS)?;
    let (live, sold) = (prepare(of_accounts, &LIVE)?, prepare(of_accounts, SOLD)?);
    let seats = prepare(!wanted.seats.0.is_empty(), &SEATS)?;
    let of_areas = !wanted.areas.0.is_empty();
    let (areas, buckets) = (prepare(of_areas, &AREAS)?, prepare(of_areas, &BUCKETS)?);

    let client = link.client();
    let begin = async { if begins { client.batch_execute("BEGIN").await } else { Ok(()) } };
    link.wait(async {
        let (
            begun,
            events,
            clock,
            prices,
            keys,
            callbacks,
            cases,
            references,
            operations,
            orders,
            operations_of,
            cases_of,
            holds,
            live,
            sold,
            seats,
            areas,
            buckets,
        ) = tokio::join!(
            biased;
            begin,
            rows_of(client, events, [&wanted.events]),
            rows_of(client, clock, []),
            rows_of(client, prices, [&wanted.prices.0, &wanted.prices.1]),
            rows_of(client, by_key, [&keys]),
            rows_of(client, callbacks, [&wanted.callbacks]),
            rows_of(client, cases, [&wanted.cases]),
            rows_of(client, references, [&wanted.references]),
            rows_of(client, operations, [&wanted.operations]),
            rows_of(client, orders, [&wanted.orders]),
            rows_of(client, operations_of, [&wanted.orders]),
            rows_of(client, cases_of, [&wanted.orders]),
            rows_of(client, holds, [&wanted.holds]),
            rows_of(client, live, [&wanted.accounts.0, &wanted.accounts.1]),
            rows_of(client, sold, [&wanted.accounts.0, &wanted.accounts.1]),
            rows_of(client, seats, [&wanted.seats.0, &wanted.seats.1]),
            rows_of(client, areas, [&wanted.areas.0, &wanted.areas.1]),
            rows_of(client, buckets, [&wanted.areas.0, &wanted.areas.1]),
        );
        // The first that failed is the cause of all that failed after it.
        begun?;
        Ok(Found {
            events: events?,
            clock: clock?,
            prices: prices?,
            keys: keys?,
            callbacks: callbacks?,
            cases: cases?,
            references: references?,
            operations: operations?,
            orders: orders?,
            operations_of: operations_of?,
            cases_of: cases_of?,
            holds: holds?,
            live: live?,
            sold: sold?,
            seats: seats?,
            areas: areas?,
            buckets: buckets?,
        })
    })
}

async fn rows_of<const N: usize>(
    client: &tokio_postgres::Client,
    statement: Option<Statement>,
    values: [&(dyn ToSql + Sync); N],
) -> Result<Vec<PgRow>, tokio_postgres::Error> {
    match statement {
        Some(statement) => client.query(&statement, &values).await,
        None => Ok(Vec::new()),
    }
}

fn clock_of(found: &Found) -> Parsed<Timestamp> {
    let row = found.clock.first().ok_or(StoreError::NoAnswer)?;
    rows::time(&Row::Postgres(row), 0)
}

/// Gives the snapshot what was found.
fn take_in(
    snapshot: &mut Snapshot,
    known: &mut PriceCache,
    wanted: &Wanted,
    found: Found,
    elsewhere: &mut BTreeSet<EventNo>,
) -> Parsed<()> {
    for row in &found.events {
        let row = Row::Postgres(row);
        let event = rows::event(&row)?;
        match row.text_or_none(rows::ELSEWHERE)? {
            None => snapshot.load_event(event),
            Some(_) => {
                elsewhere.insert(event.no());
            }
        }
    }
    price_tables(snapshot, known, wanted, &found.prices)?;
    let mut records = BTreeMap::new();
    for row in &found.keys {
        let record = rows::key(&Row::Postgres(row))?;
        records.insert(record.key.id, record);
    }
    for (no, key) in &wanted.keys {
        if let Some(record) = records.get(key) {
            snapshot.load_key(*no, record.clone());
        }
    }
    for row in &found.callbacks {
        snapshot.load_callback(rows::callback(&Row::Postgres(row))?);
    }
    for row in &found.cases {
        snapshot.load_case(rows::case(&Row::Postgres(row))?);
    }
    for row in found.references.iter().chain(&found.operations) {
        snapshot.load_operation(rows::operation(&Row::Postgres(row))?);
    }
    let mut operations_of: BTreeMap<OrderId, Vec<Operation>> = BTreeMap::new();
    for row in &found.operations_of {
        let operation = rows::operation(&Row::Postgres(row))?;
        operations_of.entry(operation.order).or_default().push(operation);
    }
    let mut cases_of: BTreeMap<OrderId, Vec<Case>> = BTreeMap::new();
    for row in &found.cases_of {
        let case = rows::case(&Row::Postgres(row))?;
        cases_of.entry(case.order.unwrap_or(OrderId(0))).or_default().push(case);
    }
    for row in &found.orders {
        let order = rows::order(&Row::Postgres(row))?;
        let (operations, cases) = (operations_of.remove(&order.id), cases_of.remove(&order.id));
        snapshot.load_order(order, operations.unwrap_or_default(), cases.unwrap_or_default());
    }
    for row in &found.holds {
        snapshot.load_hold(rows::hold(&Row::Postgres(row))?);
    }
    accounts(snapshot, &found)?;
    for row in &found.seats {
        let row = Row::Postgres(row);
        snapshot.load_seat(EventNo(row.number(8)?), rows::seat(&row)?);
    }
    areas(snapshot, &found)
}

fn areas(snapshot: &mut Snapshot, found: &Found) -> Parsed<()> {
    let mut buckets: BTreeMap<(EventNo, AreaNo), Vec<Bucket>> = BTreeMap::new();
    for row in &found.buckets {
        let row = Row::Postgres(row);
        let bucket = rows::bucket(&row)?;
        buckets.entry((EventNo(row.number(7)?), bucket.area)).or_default().push(bucket);
    }
    for row in &found.areas {
        let row = Row::Postgres(row);
        let (no, area) = (EventNo(row.number(3)?), rows::area(&row)?);
        let of_area = buckets.remove(&(no, area.no)).unwrap_or_default();
        snapshot.load_area(no, area, of_area);
    }
    Ok(())
}

fn accounts(snapshot: &mut Snapshot, found: &Found) -> Parsed<()> {
    let mut live: BTreeMap<(EventNo, AccountId), Vec<Hold>> = BTreeMap::new();
    for row in &found.live {
        let hold = rows::hold(&Row::Postgres(row))?;
        live.entry((hold.event(), hold.account.clone())).or_default().push(hold);
    }
    for row in &found.sold {
        let row = Row::Postgres(row);
        let (no, account) = (EventNo(row.number(0)?), row.account(1)?);
        let holds = live.remove(&(no, account.clone())).unwrap_or_default();
        let sold = if planted!(SoldNotRead) { 0 } else { row.number(2)? };
        snapshot.load_account(no, account, holds, sold);
    }
    Ok(())
}

fn price_tables(
    snapshot: &mut Snapshot,
    known: &mut PriceCache,
    wanted: &Wanted,
    found: &[PgRow],
) -> Parsed<()> {
    let mut tables: BTreeMap<(EventNo, u32), Vec<Option<i64>>> = BTreeMap::new();
    for row in found {
        let row = Row::Postgres(row);
        tables.entry((EventNo(row.number(0)?), row.number(1)?)).or_default().push(row.number_or_none(2)?);
    }
    for (no, version) in wanted.prices.0.iter().zip(&wanted.prices.1) {
        let key = (EventNo(*no as u32), *version as u32);
        let table = PriceTable(tables.remove(&key).unwrap_or_default().into());
        snapshot.load_prices(key.0, key.1, table.clone());
        // A version that isn't written yet must not be remembered as empty.
        if !table.0.is_empty() {
            if known.len() >= PRICE_TABLES_MAX {
                known.clear();
            }
            known.insert(key, table);
        }
    }
    Ok(())
}
