//! The rows a batch of commands touches. A store fills a snapshot from what the commands name and from what those rows
//! name in turn; decisions move it on; what changed is written back with its former state as the condition.

mod need;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::access::{AccessCode, Allocation};
use crate::board::{Board, Gap};
use crate::command::{Answer, Command, Request};
use crate::event::{Event, PriceTable};
use crate::ga::{Area, Bucket, Transfer};
use crate::hold::Hold;
use crate::id::{
    AccountId, AllocationNo, AreaNo, BucketNo, CaseId, EventNo, HoldId, OperationId, OrderId, SeatOrdinal,
    TicketId, TransferId,
};
use crate::idempotency::{KeyRecord, StoredAnswer};
use crate::log::{LogEntry, LogKind};
use crate::manifest::Manifest;
use crate::order::Order;
use crate::payment::{Operation, OperationKind};
use crate::reconcile::{About, Callback, Case, CaseStatus};
use crate::refund::Refund;
use crate::seat_map::{Seat, SeatStatus};
use crate::ticket::{Scan, Ticket};
use crate::time::Timestamp;

pub use need::{DueWith, Need};
pub use table::{Change, Table};

/// What an account has in one event.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct AccountUse {
    /// Its holds that still bind seats, or did until the clock passed them.
    pub live: BTreeSet<HoldId>,
    /// Tickets of its confirmed orders.
    pub sold: u32,
}

/// A change too large to be written row by row.
#[derive(Clone, Debug)]
pub enum Bulk {
    /// The event's seats are these, and no others.
    Manifest(EventNo, u32, Arc<Manifest>),
    /// A new version of the prices.
    Prices(EventNo, u32, PriceTable),
}

/// The rows of a batch. See the module's text.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "tables by the names of their rows")]
pub struct Snapshot {
    pub events: Table<EventNo, Event>,
    pub seats: Table<(EventNo, SeatOrdinal), Seat>,
    pub holds: Table<HoldId, Hold>,
    pub orders: Table<OrderId, Order>,
    pub operations: Table<OperationId, Operation>,
    pub cases: Table<CaseId, Case>,
    pub callbacks: Table<Arc<str>, Callback>,
    pub keys: Table<(EventNo, u128), KeyRecord>,
    pub areas: Table<(EventNo, AreaNo), Area>,
    pub buckets: Table<(EventNo, AreaNo, BucketNo), Bucket>,
    pub transfers: Table<TransferId, Transfer>,
    pub codes: Table<(EventNo, Arc<str>), AccessCode>,
    pub allocations: Table<(EventNo, AllocationNo), Allocation>,
    pub refunds: Table<OperationId, Refund>,
    pub tickets: Table<TicketId, Ticket>,
    pub scans: Table<(EventNo, Arc<str>), Scan>,
    pub(crate) accounts: BTreeMap<(EventNo, AccountId), AccountUse>,
    pub(crate) prices: BTreeMap<(EventNo, u32), PriceTable>,
    pub(crate) references: BTreeMap<Arc<str>, OperationId>,
    pub(crate) operations_of: BTreeMap<OrderId, Vec<OperationId>>,
    pub(crate) cases_of: BTreeMap<OrderId, Vec<CaseId>>,
    pub(crate) due_of: BTreeMap<EventNo, BTreeSet<HoldId>>,
    pub(crate) tickets_of: BTreeMap<OrderId, BTreeSet<TicketId>>,
    pub(crate) boards: BTreeMap<EventNo, Board>,
    /// Entries appended by this batch, in order.
    pub log: Vec<LogEntry>,
    /// Bulk changes of this batch, in order.
    pub bulk: Vec<Bulk>,
    /// The shell's clock for this batch.
    now: Timestamp,
    known: BTreeSet<Need>,
    wanted: BTreeSet<Need>,
}

impl Snapshot {
    /// An empty snapshot for commands decided at `now`, wanting what they name.
    pub fn new<'a>(requests: impl IntoIterator<Item = &'a Request>, now: Timestamp) -> Snapshot {
        let mut snapshot = Snapshot { now, ..Snapshot::default() };
        for request in requests {
            snapshot.want_request(request);
        }
        snapshot
    }

    /// Adds what one more command names.
    pub fn want_request(&mut self, request: &Request) {
        let event = request.command.event();
        self.want(Need::Event(event));
        if let Some(key) = request.key {
            self.want(Need::Key(event, key.id));
        }
        match &request.command {
            Command::CreateEvent(_)
            | Command::ReplaceManifest { .. }
            | Command::SetPrices { .. }
            | Command::SetOnSale { .. } => {}
            Command::SetSeatsStatus { seats, .. } => {
                seats.iter().for_each(|seat| self.want(Need::Seat(event, *seat)));
            }
            Command::MakeAllocation { .. } => self.want(Need::Allocations(event)),
            Command::SetSeatsAside { seats, .. } => {
                seats.iter().for_each(|seat| self.want(Need::Seat(event, *seat)));
            }
            Command::SetAccessCode { code, .. } => self.want(Need::Code(event, Arc::clone(&code.code))),
            Command::AddBucket { area, .. }
            | Command::SetCapacity { area, .. }
            | Command::BeginTransfer { area, .. } => self.want(Need::Area(event, *area)),
            Command::EndTransfer { transfer, .. } => self.want(Need::Transfer(*transfer)),
            Command::PlaceHold { account, wish, code, .. } => {
                self.want(Need::Account(event, account.clone()));
                wish.seats.iter().for_each(|seat| self.want(Need::Seat(event, *seat)));
                wish.ga.iter().for_each(|(area, _)| self.want(Need::Area(event, *area)));
                // What is counted or chosen, and not named, may be bound by holds that are over.
                if let Some(code) = code {
                    self.want(Need::Code(event, Arc::clone(code)));
                    self.want(Need::Due(event, DueWith::Code(Arc::clone(code))));
                }
                if wish.best.is_some() {
                    self.want(Need::Board(event));
                    self.want(Need::Due(event, DueWith::Seats));
                }
                if !wish.ga.is_empty() {
                    self.want(Need::Due(event, DueWith::Places));
                    wish.ga.iter().for_each(|(area, _)| self.want(Need::Due(event, DueWith::Area(*area))));
                }
            }
            Command::BeginRefund { order, .. } | Command::IssueTickets { order } => {
                self.want(Need::Order(*order));
            }
            Command::ReissueTicket { ticket, .. } => self.want(Need::Ticket(*ticket)),
            Command::ScanTicket(showing) => {
                self.want(Need::Ticket(showing.ticket));
                self.want(Need::Scan(event, Arc::clone(&showing.scan)));
            }
            Command::ReleaseHold { hold, .. }
            | Command::ExpireHold { hold }
            | Command::Checkout { hold, .. } => {
                self.want(Need::Hold(*hold));
            }
            Command::RecordReference { operation, reference } => {
                self.want(Need::Operation(*operation));
                self.want(Need::Reference(reference.as_str().into()));
            }
            Command::RecordAnswer { operation, answer } => {
                self.want(Need::Operation(*operation));
                if let Answer::Observed(observation) = answer {
                    self.want(Need::Reference(observation.reference.as_str().into()));
                }
            }
            Command::JudgeCallback { callback, observation, .. } => {
                self.want(Need::Callback(callback.provider_event_id.as_str().into()));
                if let Some(reference) = &callback.reference {
                    self.want(Need::Reference(reference.as_str().into()));
                    if event == EventNo::HOUSE {
                        self.want(Need::Case(CaseId::about(event, reference)));
                    }
                }
                if let Some(observation) = observation {
                    self.want(Need::Reference(observation.reference.as_str().into()));
                    if let Some(operation) = observation.operation {
                        self.want(Need::Operation(operation));
                    }
                }
            }
            Command::Reconcile { attempt, observation, .. } => {
                self.want(Need::Operation(*attempt));
                if let Some(observation) = observation {
                    self.want(Need::Reference(observation.reference.as_str().into()));
                }
            }
            Command::OpenCase { about: About::Attempt(attempt), .. } => self.want(Need::Operation(*attempt)),
            Command::OpenCase { about: About::Object(event, name), .. } => {
                self.want(Need::Case(CaseId::about(*event, name)));
            }
            Command::ResolveCase { case, .. } | Command::SettleCase { case, .. } => {
                self.want(Need::Case(*case))
            }
        }
    }

    fn want(&mut self, need: Need) {
        if !self.known.contains(&need) {
            self.wanted.insert(need);
        }
    }

    /// What is still to be read, in the order to read it; empty when the decisions can begin. A store loops on this:
    /// rows name other rows.
    pub fn take_wanted(&mut self) -> Vec<Need> {
        let wanted: Vec<Need> = std::mem::take(&mut self.wanted).into_iter().collect();
        self.known.extend(wanted.iter().cloned());
        wanted
    }

    /// Adds an event's row.
    pub fn load_event(&mut self, event: Event) {
        self.want(Need::Prices(event.no(), event.price_version));
        self.events.load(event.no(), event);
    }

    /// Adds a price version.
    pub fn load_prices(&mut self, event: EventNo, version: u32, prices: PriceTable) {
        self.prices.entry((event, version)).or_insert(prices);
    }

    /// Adds a seat. A hold that may have run out is wanted too: whoever takes the seat over ends that hold.
    pub fn load_seat(&mut self, event: EventNo, seat: Seat) {
        if let SeatStatus::Held { hold, expires_at } = seat.status
            && expires_at <= self.now_of(event)
        {
            self.want(Need::Hold(hold));
        }
        self.seats.load((event, seat.ordinal), seat);
    }

    /// Adds a hold; when it was wanted whole, all that hangs on it is wanted too.
    pub fn load_hold(&mut self, hold: Hold) {
        if self.known.contains(&Need::Hold(hold.id)) {
            let event = hold.event();
            self.want(Need::Event(event));
            self.want(Need::Account(event, hold.account.clone()));
            if let Some(order) = hold.order {
                self.want(Need::Order(order));
            }
            hold.seats.iter().for_each(|seat| self.want(Need::Seat(event, *seat)));
            hold.ga.iter().for_each(|line| self.want(Need::Area(event, line.area)));
            if let Some(code) = &hold.code {
                self.want(Need::Code(event, Arc::clone(code)));
            }
        }
        self.want(Need::Prices(hold.event(), hold.price_version));
        self.holds.load(hold.id, hold);
    }

    /// Adds an account's use of an event. Its live holds are given with it.
    pub fn load_account(&mut self, event: EventNo, account: AccountId, live: Vec<Hold>, sold: u32) {
        let live_ids = live.iter().map(|hold| hold.id).collect();
        live.into_iter().for_each(|hold| self.load_hold(hold));
        self.accounts.entry((event, account)).or_insert(AccountUse { live: live_ids, sold });
    }

    /// Adds an order with its operations and its open cases.
    pub fn load_order(&mut self, order: Order, operations: Vec<Operation>, cases: Vec<Case>) {
        self.want(Need::Hold(order.hold));
        if operations.iter().any(|operation| operation.kind == OperationKind::Refund) {
            self.want(Need::Refunds(order.id));
        }
        if order.ticketed {
            self.want(Need::Tickets(order.id));
        }
        let ids = operations.iter().map(|operation| operation.id).collect();
        self.operations_of.entry(order.id).or_insert(ids);
        self.cases_of.entry(order.id).or_insert_with(|| cases.iter().map(|case| case.id).collect());
        operations.into_iter().for_each(|operation| self.load_operation(operation));
        cases.into_iter().for_each(|case| self.load_case(case));
        self.orders.load(order.id, order);
    }

    /// Adds an operation; its order is wanted too.
    pub fn load_operation(&mut self, operation: Operation) {
        self.want(Need::Order(operation.order));
        if let (None, Some(reference)) = (operation.target, &operation.reference) {
            self.references.entry(reference.as_str().into()).or_insert(operation.id);
        }
        self.operations.load(operation.id, operation);
    }

    /// Adds a case; its order is wanted too.
    pub fn load_case(&mut self, case: Case) {
        if let Some(order) = case.order {
            self.want(Need::Order(order));
        }
        self.cases.load(case.id, case);
    }

    /// Adds a callback; the case it has become is wanted too.
    pub fn load_callback(&mut self, callback: Callback) {
        if let Some(case) = callback.case {
            self.want(Need::Case(case));
        }
        self.callbacks.load(callback.provider_event_id.as_str().into(), callback);
    }

    /// Adds a finished request; what its answer speaks of is wanted too.
    pub fn load_key(&mut self, event: EventNo, record: KeyRecord) {
        if let StoredAnswer::HoldPlaced(hold) = record.answer {
            self.want(Need::Hold(hold));
        }
        self.keys.load((event, record.key.id), record);
    }

    /// Adds a standing area with its buckets.
    pub fn load_area(&mut self, event: EventNo, area: Area, buckets: Vec<Bucket>) {
        buckets.into_iter().for_each(|bucket| self.buckets.load((event, area.no, bucket.no), bucket));
        self.areas.load((event, area.no), area);
    }

    /// Adds holds of an event that are due; each is wanted whole.
    pub fn load_due(&mut self, event: EventNo, holds: Vec<HoldId>) {
        holds.iter().for_each(|hold| self.want(Need::Hold(*hold)));
        self.due_of.entry(event).or_default().extend(holds);
    }

    /// The version of an event as it is stored: that of its row, but for the entries of this batch.
    pub fn stored_version(&self, event: EventNo) -> Option<u64> {
        let own = self.log.iter().filter(|entry| entry.event == event).count() as u64;
        self.events.get(&event).map(|row| row.version - own)
    }

    /// Adds the board of an event as it is stored; what this batch has changed already is taken in. One that then shows
    /// another version than the event's row has is refused: a choice on it would be a guess.
    pub fn load_board(&mut self, event: EventNo, mut board: Board) -> Result<(), Gap> {
        for entry in self.log.iter().filter(|entry| entry.event == event) {
            board.follow(entry)?;
        }
        if self.events.get(&event).is_none_or(|row| row.version != board.version()) {
            return Err(Gap);
        }
        self.boards.entry(event).or_insert(board);
        Ok(())
    }

    /// The boards, with all that this batch has changed: for a store to keep once that is committed.
    pub fn take_boards(&mut self) -> BTreeMap<EventNo, Board> {
        std::mem::take(&mut self.boards)
    }

    /// Adds capacity on its way; the area it is of is wanted too.
    pub fn load_transfer(&mut self, transfer: Transfer) {
        self.want(Need::Area(transfer.id.event(), transfer.area));
        self.transfers.load(transfer.id, transfer);
    }

    /// Adds an access code.
    pub fn load_code(&mut self, event: EventNo, code: AccessCode) {
        self.codes.load((event, Arc::clone(&code.code)), code);
    }

    /// Adds an allocation.
    pub fn load_allocation(&mut self, event: EventNo, allocation: Allocation) {
        self.allocations.load((event, allocation.no), allocation);
    }

    /// Adds what a refund gives back.
    pub fn load_refund(&mut self, refund: Refund) {
        self.refunds.load(refund.operation, refund);
    }

    /// Adds a ticket.
    pub fn load_ticket(&mut self, ticket: Ticket) {
        self.tickets_of.entry(ticket.order).or_default().insert(ticket.id);
        self.tickets.load(ticket.id, ticket);
    }

    /// Adds a scan; the ticket that was shown is wanted too.
    pub fn load_scan(&mut self, scan: Scan) {
        self.want(Need::Ticket(scan.ticket));
        self.scans.load((scan.ticket.event(), Arc::clone(&scan.id)), scan);
    }

    /// The shell's clock for this batch.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Sets the shell's clock, before anything is loaded: where the database has a clock of its own it is read with the locks.
    pub fn set_now(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// The time at which commands of an event are decided: the shell's clock, but never before the event's own.
    pub fn now_of(&self, event: EventNo) -> Timestamp {
        if planted!(ClockRunsBack) {
            return self.now;
        }
        self.events.get(&event).map_or(self.now, |row| self.now.max(row.clock))
    }

    /// Appends to the event's log and returns the entry's version.
    pub(crate) fn append(&mut self, event: EventNo, kind: LogKind) -> u64 {
        let at = self.now_of(event);
        let row = self.events.change(&event);
        row.version += 1;
        row.clock = at;
        let version = row.version;
        let entry = LogEntry { event, version, at, kind };
        if !planted!(BoardNotFollowed)
            && self.boards.get_mut(&event).is_some_and(|board| board.follow(&entry).is_err())
        {
            self.boards.remove(&event);
        }
        self.log.push(entry);
        version
    }

    /// Moves the event's clock to the time of a decision that left no log entry but was remembered.
    pub(crate) fn touch_clock(&mut self, event: EventNo) {
        let now = self.now_of(event);
        if self.events.get(&event).is_some() {
            self.events.change(&event).clock = now;
        }
    }

    /// Gives an attempt its name at the provider; later commands of the batch find it by that name.
    pub(crate) fn name_attempt(&mut self, attempt: OperationId, reference: &str) {
        self.operations.change(&attempt).reference = Some(reference.to_owned());
        self.references.entry(reference.into()).or_insert(attempt);
    }

    /// The operations of an order.
    pub(crate) fn operations_of(&self, order: OrderId) -> Vec<&Operation> {
        let ids = self.operations_of.get(&order).map(Vec::as_slice).unwrap_or_default();
        ids.iter().filter_map(|id| self.operations.get(id)).collect()
    }

    /// The buckets of a standing area, by number.
    pub(crate) fn buckets_of(&self, event: EventNo, area: AreaNo) -> impl Iterator<Item = &Bucket> {
        let first = (event, area, BucketNo(0));
        self.buckets.range(first..=(event, area, BucketNo(u16::MAX)))
    }

    /// The tickets of an order.
    pub(crate) fn tickets_of(&self, order: OrderId) -> impl Iterator<Item = &Ticket> {
        let ids = self.tickets_of.get(&order).into_iter().flatten();
        ids.filter_map(|id| self.tickets.get(id))
    }

    /// The open cases of an order.
    pub(crate) fn open_cases_of(&self, order: OrderId) -> Vec<CaseId> {
        let ids = self.cases_of.get(&order).map(Vec::as_slice).unwrap_or_default();
        let is_open = |id: &&CaseId| self.cases.get(*id).is_some_and(|case| case.status == CaseStatus::Open);
        ids.iter().filter(is_open).copied().collect()
    }

    /// Whether nothing is to be written.
    pub fn is_unchanged(&self) -> bool {
        self.log.is_empty()
            && self.bulk.is_empty()
            && self.events.changes().next().is_none()
            && self.keys.changes().next().is_none()
            && self.callbacks.changes().next().is_none()
            && self.scans.changes().next().is_none()
            && self.operations.changes().next().is_none()
            && self.cases.changes().next().is_none()
    }
}
