//! A store in memory for tests, built on nothing but the core's public face. It reads what a snapshot wants and no more,
//! so that a need nobody named shows up as a failing test, and after every batch it checks what must always hold.
//!
//! What is broken ends in a panic that says what was found.

pub mod invariants;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::rc::Rc;
use std::sync::Arc;

use onsale_core::access::{AccessCode, Allocation};
use onsale_core::board::Board;
use onsale_core::command::{Decision, Request, decide};
use onsale_core::event::{
    Admission, Event, EventStatus, InDoubt, OrphanSeats, PaymentMode, Policy, PriceTable, QueueOrder,
};
use onsale_core::ga::{Area, Bucket, Transfer};
use onsale_core::hold::{Hold, HoldStatus};
use onsale_core::id::{
    AccountId, AllocationNo, AreaNo, BucketNo, CaseId, EventId, EventNo, HoldId, OperationId, OrderId,
    SeatOrdinal, Seed, TicketId, TransferId,
};
use onsale_core::idempotency::KeyRecord;
use onsale_core::layout::Layout;
use onsale_core::limits::DUE_HOLDS_MAX;
use onsale_core::log::LogEntry;
use onsale_core::manifest::Manifest;
use onsale_core::money::Currency;
use onsale_core::order::{Order, OrderStatus};
use onsale_core::payment::{Operation, OperationKind};
use onsale_core::reconcile::{Callback, Case, CaseStatus};
use onsale_core::refund::Refund;
use onsale_core::seat_map::{Seat, SeatStatus};
use onsale_core::snapshot::{Bulk, Need, Snapshot, Table};
use onsale_core::ticket::{Scan, Ticket};
use onsale_core::time::Timestamp;

/// The event of all tests.
pub const HALL: EventNo = EventNo(1);

/// Rows of one kind. They are shared by the copies of a world until one of these changes them.
pub type Rows<K, R> = Rc<BTreeMap<K, R>>;

/// All rows of an installation.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "tables by the names of their rows")]
pub struct World {
    pub events: Rows<EventNo, Event>,
    pub prices: Rows<(EventNo, u32), PriceTable>,
    pub seats: Rows<(EventNo, SeatOrdinal), Seat>,
    pub holds: Rows<HoldId, Hold>,
    pub orders: Rows<OrderId, Order>,
    pub operations: Rows<OperationId, Operation>,
    pub cases: Rows<CaseId, Case>,
    pub callbacks: Rows<Arc<str>, Callback>,
    pub keys: Rows<(EventNo, u128), KeyRecord>,
    pub areas: Rows<(EventNo, AreaNo), Area>,
    pub buckets: Rows<(EventNo, AreaNo, BucketNo), Bucket>,
    pub transfers: Rows<TransferId, Transfer>,
    pub codes: Rows<(EventNo, Arc<str>), AccessCode>,
    pub allocations: Rows<(EventNo, AllocationNo), Allocation>,
    pub refunds: Rows<OperationId, Refund>,
    pub tickets: Rows<TicketId, Ticket>,
    pub scans: Rows<(EventNo, Arc<str>), Scan>,
    pub layouts: Rows<EventNo, Arc<Layout>>,
    pub log: Vec<LogEntry>,
    /// Tickets an account has from elsewhere, counted among those sold to it.
    pub elsewhere: Rows<AccountId, u32>,
    /// What the seats show to one who knows the log alone.
    pub digits: Rows<(EventNo, SeatOrdinal), u8>,
}

impl Default for World {
    fn default() -> World {
        World::new()
    }
}

impl World {
    /// An installation with nothing but its house.
    pub fn new() -> World {
        let house = Event { status: EventStatus::Closed, ..event(EventNo::HOUSE) };
        World {
            events: Rc::new(BTreeMap::from([(EventNo::HOUSE, house)])),
            prices: Rows::default(),
            seats: Rows::default(),
            holds: Rows::default(),
            orders: Rows::default(),
            operations: Rows::default(),
            cases: Rows::default(),
            callbacks: Rows::default(),
            keys: Rows::default(),
            areas: Rows::default(),
            buckets: Rows::default(),
            transfers: Rows::default(),
            codes: Rows::default(),
            allocations: Rows::default(),
            refunds: Rows::default(),
            tickets: Rows::default(),
            scans: Rows::default(),
            layouts: Rows::default(),
            log: Vec::new(),
            elsewhere: Rows::default(),
            digits: Rows::default(),
        }
    }

    /// Decides requests over one snapshot, as a store does with a batch, and writes what changed.
    pub fn run(&mut self, requests: &[Request], now: Timestamp) -> Vec<Decision> {
        let mut snapshot = Snapshot::new(requests, now);
        self.fill(&mut snapshot);
        let decisions = requests.iter().map(|request| decide(&mut snapshot, request)).collect();
        self.write(&snapshot, true);
        for (no, board) in snapshot.take_boards() {
            assert_eq!(Some(board), self.board(no), "a board that followed a batch shows what is stored");
        }
        if !snapshot.is_unchanged() {
            invariants::check(self);
        }
        decisions
    }

    /// Decides requests over other rows, and writes what came of it over these, unconditionally: what a store does that
    /// reads outside its lock. For a bug to be planted; no invariant is looked at.
    pub fn run_over(&mut self, rows: &World, requests: &[Request], now: Timestamp) -> Vec<Decision> {
        let mut snapshot = Snapshot::new(requests, now);
        rows.fill(&mut snapshot);
        let decisions = requests.iter().map(|request| decide(&mut snapshot, request)).collect();
        self.write(&snapshot, false);
        decisions
    }

    /// Reads until a snapshot wants no more.
    pub fn fill(&self, snapshot: &mut Snapshot) {
        loop {
            let wanted = snapshot.take_wanted();
            if wanted.is_empty() {
                return;
            }
            wanted.into_iter().for_each(|need| self.load(snapshot, need));
        }
    }

    fn load(&self, snapshot: &mut Snapshot, need: Need) {
        match need {
            Need::Event(no) => row(&self.events, &no, |event| snapshot.load_event(event)),
            Need::Prices(no, version) => {
                let table = self.prices.get(&(no, version)).cloned().unwrap_or_default();
                snapshot.load_prices(no, version, table);
            }
            Need::Key(no, id) => row(&self.keys, &(no, id), |record| snapshot.load_key(no, record)),
            Need::Callback(id) => row(&self.callbacks, &id, |callback| snapshot.load_callback(callback)),
            Need::Case(id) => row(&self.cases, &id, |case| snapshot.load_case(case)),
            Need::Reference(name) => {
                if let Some(attempt) = self.attempt_named(&name) {
                    snapshot.load_operation(attempt.clone());
                }
            }
            Need::Operation(id) => row(&self.operations, &id, |row| snapshot.load_operation(row)),
            Need::Order(id) => {
                if let Some(order) = self.orders.get(&id) {
                    let operations = self.operations_of(id).into_iter().cloned().collect();
                    let is_open = |case: &&Case| case.order == Some(id) && case.status == CaseStatus::Open;
                    let cases = self.cases.values().filter(is_open).cloned().collect();
                    snapshot.load_order(order.clone(), operations, cases);
                }
            }
            Need::Hold(id) => row(&self.holds, &id, |hold| snapshot.load_hold(hold)),
            Need::Account(no, account) => {
                let is_theirs =
                    |hold: &&Hold| hold.event() == no && hold.account == account && hold.status.is_live();
                let live = self.holds.values().filter(is_theirs).cloned().collect();
                let sold = self.sold_to(no, &account);
                snapshot.load_account(no, account, live, sold);
            }
            Need::Seat(no, ordinal) => {
                row(&self.seats, &(no, ordinal), |seat| snapshot.load_seat(no, seat));
            }
            Need::Area(no, area) => {
                let of_area = (no, area, BucketNo(0))..=(no, area, BucketNo(u16::MAX));
                let buckets = self.buckets.range(of_area).map(|(_, bucket)| bucket.clone()).collect();
                row(&self.areas, &(no, area), |area| snapshot.load_area(no, area, buckets));
            }
            Need::Due(no, with) => {
                let now = snapshot.now_of(no);
                let is_due = |hold: &&Hold| {
                    let is_over = hold.status.is_live() && !hold.in_doubt && hold.expires_at <= now;
                    hold.event() == no && is_over && with.has(hold)
                };
                let mut due: Vec<&Hold> = self.holds.values().filter(is_due).collect();
                due.sort_by_key(|hold| (hold.status != HoldStatus::Active, hold.expires_at, hold.id));
                let due = due.into_iter().take(DUE_HOLDS_MAX as usize).map(|hold| hold.id).collect();
                snapshot.load_due(no, due);
            }
            Need::Board(no) => {
                if let Some(board) = self.board(no) {
                    snapshot.load_board(no, board).expect("the rows are as they are");
                }
            }
            Need::Transfer(id) => row(&self.transfers, &id, |transfer| snapshot.load_transfer(transfer)),
            Need::Code(no, code) => row(&self.codes, &(no, code), |code| snapshot.load_code(no, code)),
            Need::Allocations(no) => {
                let of_event = (no, AllocationNo(0))..=(no, AllocationNo(u16::MAX));
                let rows = self.allocations.range(of_event);
                rows.for_each(|(_, allocation)| snapshot.load_allocation(no, allocation.clone()));
            }
            Need::Refunds(order) => {
                let rows = self.refunds.values().filter(|refund| refund.order == order);
                rows.for_each(|refund| snapshot.load_refund(refund.clone()));
            }
            Need::Tickets(order) => {
                let rows = self.tickets.values().filter(|ticket| ticket.order == order);
                rows.for_each(|ticket| snapshot.load_ticket(ticket.clone()));
            }
            Need::Ticket(id) => row(&self.tickets, &id, |ticket| snapshot.load_ticket(ticket)),
            Need::Scan(no, id) => row(&self.scans, &(no, id), |scan| snapshot.load_scan(scan)),
        }
    }

    /// The board that an event's rows make.
    pub fn board(&self, no: EventNo) -> Option<Board> {
        let layout = Arc::clone(self.layouts.get(&no)?);
        let seats = self.seats.range((no, SeatOrdinal(0))..=(no, SeatOrdinal(u32::MAX)));
        let seats = seats.map(|(_, seat)| (seat.status.digit(), seat.allocation, seat.version));
        let board = Board::new(layout, self.events.get(&no)?.version, seats);
        Some(board.expect("a row for each seat of the layout"))
    }

    fn write(&mut self, snapshot: &Snapshot, conditional: bool) {
        for bulk in &snapshot.bulk {
            match bulk {
                Bulk::Manifest(no, _, manifest) => {
                    let seats = Rc::make_mut(&mut self.seats);
                    let digits = Rc::make_mut(&mut self.digits);
                    seats.retain(|(event, _), _| event != no);
                    digits.retain(|(event, _), _| event != no);
                    for (ordinal, seat) in (0..).map(SeatOrdinal).zip(&manifest.seats) {
                        let status = match seat.not_for_sale {
                            true => SeatStatus::NotForSale,
                            false => SeatStatus::Available,
                        };
                        let price_level = seat.price_level;
                        let row = Seat { ordinal, status, allocation: None, price_level, version: 0 };
                        seats.insert((*no, ordinal), row);
                        digits.insert((*no, ordinal), status.digit());
                    }
                    self.lay_out_areas(*no, manifest);
                    Rc::make_mut(&mut self.layouts).insert(*no, Arc::new(Layout::of(manifest)));
                }
                Bulk::Prices(no, version, table) => {
                    let prices = Rc::make_mut(&mut self.prices);
                    let before = prices.insert((*no, *version), table.clone());
                    assert_eq!(before, None, "version {version} of the prices is written once");
                }
            }
        }
        let moved = [
            write(&mut self.events, &snapshot.events, conditional),
            write(&mut self.seats, &snapshot.seats, conditional),
            write(&mut self.holds, &snapshot.holds, conditional),
            write(&mut self.orders, &snapshot.orders, conditional),
            write(&mut self.operations, &snapshot.operations, conditional),
            write(&mut self.cases, &snapshot.cases, conditional),
            write(&mut self.callbacks, &snapshot.callbacks, conditional),
            write(&mut self.keys, &snapshot.keys, conditional),
            write(&mut self.areas, &snapshot.areas, conditional),
            write(&mut self.buckets, &snapshot.buckets, conditional),
            write(&mut self.transfers, &snapshot.transfers, conditional),
            write(&mut self.codes, &snapshot.codes, conditional),
            write(&mut self.allocations, &snapshot.allocations, conditional),
            write(&mut self.refunds, &snapshot.refunds, conditional),
            write(&mut self.tickets, &snapshot.tickets, conditional),
            write(&mut self.scans, &snapshot.scans, conditional),
        ];
        // A batch that decides nothing costs no write: a crowd that is refused asks nothing of the disk.
        let nothing = moved == [0; 16] && snapshot.log.is_empty() && snapshot.bulk.is_empty();
        assert_eq!(snapshot.is_unchanged(), nothing, "{moved:?} rows of each kind are to be written");
        for entry in &snapshot.log {
            let digits = entry.kind.seat_digits().map(|(seat, digit)| ((entry.event, seat), digit));
            Rc::make_mut(&mut self.digits).extend(digits);
        }
        self.log.extend(snapshot.log.iter().cloned());
    }

    fn lay_out_areas(&mut self, no: EventNo, manifest: &Manifest) {
        let (areas, buckets) = (Rc::make_mut(&mut self.areas), Rc::make_mut(&mut self.buckets));
        areas.retain(|(event, _), _| *event != no);
        buckets.retain(|(event, ..), _| *event != no);
        for (area, row) in (0..).map(AreaNo).zip(&manifest.ga_areas) {
            let price_level = row.price_level;
            areas.insert((no, area), Area { no: area, capacity: row.capacity, price_level });
            for (bucket, capacity) in (0..).map(BucketNo).zip(row.bucket_capacities()) {
                let (held, sold, allocation, version) = (0, 0, None, 0);
                let row = Bucket { area, no: bucket, capacity, held, sold, allocation, version };
                buckets.insert((no, area, bucket), row);
            }
        }
    }

    /// The event of all tests.
    pub fn hall(&self) -> &Event {
        &self.events[&HALL]
    }

    /// An order's operations by their place.
    pub fn operations_of(&self, order: OrderId) -> Vec<&Operation> {
        let mut found: Vec<&Operation> = self.operations.values().filter(|o| o.order == order).collect();
        found.sort_by_key(|operation| operation.seq);
        found
    }

    /// The attempt with this name at the provider.
    pub fn attempt_named(&self, name: &str) -> Option<&Operation> {
        let mut attempts = self.operations.values().filter(|o| o.kind == OperationKind::Authorize);
        attempts.find(|attempt| attempt.reference.as_deref() == Some(name))
    }

    /// Tickets of an account's confirmed orders.
    pub fn sold_to(&self, no: EventNo, account: &AccountId) -> u32 {
        let is_sold = |order: &&Order| {
            order.id.event() == no && order.account == *account && order.status == OrderStatus::Confirmed
        };
        let sold: u32 = self.orders.values().filter(is_sold).map(|order| order.ticket_count).sum();
        sold + self.elsewhere.get(account).copied().unwrap_or_default()
    }
}

fn row<K: Ord, R: Clone>(stored: &BTreeMap<K, R>, key: &K, load: impl FnOnce(R)) {
    if let Some(row) = stored.get(key) {
        load(row.clone());
    }
}

/// Writes the changes of one table, each on the condition that the row still is as it was read; how many there are.
fn write<K, R>(stored: &mut Rows<K, R>, table: &Table<K, R>, conditional: bool) -> usize
where
    K: Ord + Clone + Debug,
    R: Clone + PartialEq + Debug,
{
    let mut moved = 0;
    for change in table.changes() {
        let as_read = stored.get(change.key) == change.before;
        assert!(as_read || !conditional, "the row of {:?} is as it was read", change.key);
        moved += 1;
        Rc::make_mut(stored).insert(change.key.clone(), change.after.clone());
    }
    moved
}

/// An event in DRAFT with the product's usual policy.
pub fn event(no: EventNo) -> Event {
    let id: EventId = Seed::new(no, Timestamp::ZERO, 0).mint();
    Event {
        id,
        name: "hall".to_owned(),
        currency: euro(),
        starts_at: Timestamp::from_millis(1_000_000_000),
        on_sale_at: None,
        off_sale_at: None,
        timezone: "UTC".to_owned(),
        created_at: Timestamp::ZERO,
        status: EventStatus::Draft,
        policy: Policy {
            hold_ttl_ms: 300_000,
            payment_grace_ms: 120_000,
            seats_per_hold_max: 6,
            tickets_per_account_max: 6,
            payment_pending_per_account_max: 2,
            payment_pending_max: 100,
            admission: Admission::Open,
            queue_order: QueueOrder::Fifo,
            shoppers_max: 10_000,
            in_doubt: InDoubt::Keep,
            orphan_seats: OrphanSeats::Allow,
            payment: PaymentMode::AuthorizeThenCapture,
            ga_max: None,
            reentry: false,
        },
        epoch: 1,
        clock: Timestamp::ZERO,
        version: 0,
        manifest_version: 0,
        seat_count: 0,
        price_level_count: 0,
        price_version: 0,
        payment_pending: 0,
        area_count: 0,
        ga_in_use: 0,
        allocation_count: 0,
    }
}

/// What all tests are paid in.
pub fn euro() -> Currency {
    Currency::parse("EUR").expect("three capital letters")
}
