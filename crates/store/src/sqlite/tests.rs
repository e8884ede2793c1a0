//! Every statement of the hot paths is a look-up; and the WAL under a long look.

use std::collections::BTreeSet;
use std::time::Instant;

use onsale_core::command::{Answer, Command, Outcome, Request, Showing, Wish};
use onsale_core::event::{
    Admission, Event, EventStatus, InDoubt, OrphanSeats, PaymentMode, Policy, QueueOrder,
};
use onsale_core::gateway::{IntentState, Observation};
use onsale_core::id::{AccountId, EndpointId, EventNo, OperationId, OrderId, SeatOrdinal, Seed, TicketId};
use onsale_core::idempotency::RequestKey;
use onsale_core::manifest::{Manifest, ManifestSeat, PriceLevel};
use onsale_core::money::{Currency, Money};
use onsale_core::reconcile::{Callback, CaseAction, CaseStatus, Verdict};
use rusqlite::trace::{TraceEvent, TraceEventCodes};

use super::*;
use crate::read::Reader;
use crate::upkeep;
use crate::writer::{Backend, BatchError, Waiting, WriterStats};

const NO: EventNo = EventNo(1);

struct At(Timestamp);

impl Clock for At {
    fn now(&self) -> Timestamp {
        self.0
    }
}

/// The writer's side of a database, without its thread.
struct Bench {
    backend: SqliteBackend,
    now: Timestamp,
    drawn: u64,
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let options = Options::new(folder.path().to_owned(), Arc::new(At(Timestamp::ZERO)));
        let path = folder.path().join("onsale.db");
        let connection = open::for_writing(&options, &path).expect("the database opens");
        let checkpoints = open::for_checkpoints(options.ground, &path).expect("the database opens");
        let backend = SqliteBackend::new(connection, checkpoints, options.busy_timeout, options.ground);
        let backend = backend.expect("the engine takes a hook");
        Bench { backend, now: Timestamp::from_millis(1), drawn: 0, folder }
    }

    /// A connection to read with.
    fn reader(&self) -> Connection {
        open::for_reading(Ground::default(), &self.folder.path().join("onsale.db"))
            .expect("the database opens")
    }

    /// Tends the WAL, as if it had grown, until the writer has tried to begin it anew; when it would try next.
    fn tried_to_restart(&mut self) -> u32 {
        self.backend.restart_at = 1;
        let begun = Instant::now();
        while self.backend.restart_at == 1 {
            assert!(begun.elapsed() < Duration::from_secs(20), "the checkpointer never caught up");
            self.backend.tend();
            std::thread::yield_now();
        }
        self.backend.restart_at
    }

    fn request(&mut self, command: Command) -> Request {
        self.drawn += 64;
        let seed = Seed::new(command.event(), self.now, self.drawn);
        Request { command, key: Some(RequestKey { id: u128::from(self.drawn), digest: 1 }), seed }
    }

    fn run(&mut self, command: Command) -> Outcome {
        let (request, clock, stats) = (self.request(command), At(self.now), WriterStats::default());
        match self.backend.commit_batch(&mut Waiting::alone(request, &stats, &clock)) {
            Ok((mut decisions, _)) => decisions.remove(0).expect("the event is here").outcome,
            Err(BatchError::NotBegun(error) | BatchError::NotDone(error) | BatchError::Unknown(error)) => {
                panic!("{error}")
            }
        }
    }

    fn place(&mut self, who: &str, seat: u32) -> onsale_core::id::HoldId {
        let (account, seats) = (account(who), vec![SeatOrdinal(seat)]);
        match self.run(Command::PlaceHold {
            event: NO,
            manifest_version: 1,
            account,
            wish: Wish::of_seats(seats),
            code: None,
        }) {
            Outcome::HoldPlaced(placed) => placed.hold.id,
            other => panic!("{other:?}"),
        }
    }
}

fn account(who: &str) -> AccountId {
    AccountId::parse(who).expect("it is an account")
}

fn policy() -> Policy {
    Policy {
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
    }
}

/// Makes an event with so many seats and opens it.
fn open_event(bench: &mut Bench, seats: u32) {
    let event = Event {
        id: Seed::new(NO, bench.now, 0).mint(),
        name: "hall".to_owned(),
        currency: Currency::parse("EUR").expect("three capital letters"),
        starts_at: Timestamp::ZERO,
        on_sale_at: None,
        off_sale_at: None,
        timezone: "UTC".to_owned(),
        created_at: Timestamp::ZERO,
        status: EventStatus::Draft,
        policy: policy(),
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
    };
    let seat = |number: u32| ManifestSeat {
        seat_id: number.to_string(),
        section: 0,
        row: "1".to_owned(),
        seat: number.to_string(),
        price_level: 0,
        x: 0.0,
        y: 0.0,
        rank: number,
        accessible: false,
        companion_of: None,
        restricted_view: false,
        not_for_sale: false,
    };
    let manifest = Manifest {
        price_levels: vec![PriceLevel { name: "all".to_owned(), color: None }],
        sections: vec!["house".to_owned()],
        seats: (0..seats).map(seat).collect(),
        ga_areas: Vec::new(),
    };
    bench.run(Command::CreateEvent(Box::new(event)));
    bench.run(Command::ReplaceManifest { event: NO, manifest: Arc::new(manifest) });
    bench.run(Command::SetPrices { event: NO, manifest_version: 1, levels: vec![(0, 100)] });
    bench.run(Command::SetOnSale { event: NO, status: EventStatus::Open, actor: "test".to_owned() });
}

/// Notes every statement that a connection runs.
fn note(connection: &mut Connection) -> Arc<Mutex<BTreeSet<String>>> {
    let noted = Arc::new(Mutex::new(BTreeSet::new()));
    let notes = Arc::clone(&noted);
    let note = move |event: TraceEvent<'_>| {
        if let TraceEvent::Stmt(_, text) = event {
            notes.lock().expect("nothing panics under it").insert(text.to_owned());
        }
    };
    connection.trace_v2(TraceEventCodes::SQLITE_TRACE_STMT, Some(note)).expect("it can be traced");
    noted
}

/// The steps of a statement that walk through a table or sort.
fn walks(db: &Connection, text: &str) -> Vec<String> {
    let mut statement = db.prepare(&format!("EXPLAIN QUERY PLAN {text}")).expect(text);
    let mut rows = statement.raw_query();
    let mut steps = Vec::new();
    while let Some(row) = rows.next().expect(text) {
        steps.push(row.get::<_, String>(3).expect("a step is text"));
    }
    steps.retain(|step| step.starts_with("SCAN") || step.contains("B-TREE"));
    steps
}

/// Everything that is asked for while a sale goes on.
fn sale(bench: &mut Bench) -> (onsale_core::id::HoldId, OrderId, OperationId) {
    let (first, gone, over) = (bench.place("ada", 0), bench.place("ben", 1), bench.place("cyd", 2));
    bench.run(Command::ReleaseHold { hold: gone, account: None });
    let checkout = Command::Checkout {
        hold: first,
        account: account("ada"),
        payment_method_token: "pm".to_owned(),
        email: None,
        return_url: None,
    };
    let Outcome::CheckoutBegun(order) = bench.run(checkout) else { panic!("the hold is live") };
    // An order's first attempt is minted right after the order.
    let attempt = OperationId(order.0 + 1);
    bench.run(Command::RecordReference { operation: attempt, reference: "pi_1".to_owned() });
    bench.now = bench.now.plus_ms(policy().hold_ttl_ms + policy().payment_grace_ms);
    bench.run(Command::ExpireHold { hold: over });
    bench.run(Command::ExpireHold { hold: first });
    bench.place("dan", 2);
    let amount = Money { amount_minor: 100, currency: Currency::parse("EUR").expect("a currency") };
    let observation = Observation {
        reference: "pi_1".to_owned(),
        state: IntentState::Authorized,
        amount,
        refunded_minor: 0,
        order: Some(order),
        operation: Some(attempt),
    };
    let callback = Callback {
        provider_event_id: "evt_1".to_owned(),
        event: EventNo::HOUSE,
        digest: 1,
        kind: "payment_intent.succeeded".to_owned(),
        reference: Some("pi_1".to_owned()),
        claimed_order: Some(order),
        verdict: Verdict::Parked,
        received_at: Timestamp::ZERO,
        due_at: Timestamp::ZERO,
        case: None,
    };
    let cases =
        Reader(Look::Sqlite(&bench.reader())).cases(Some(CaseStatus::Open), 1).expect("cases can be read");
    let (note, actor) = (String::new(), "key_1".to_owned());
    bench.run(Command::ResolveCase { case: cases[0].id, action: CaseAction::ConfirmIfBound, note, actor });
    bench.run(Command::JudgeCallback {
        event: NO,
        callback: Box::new(callback),
        observation: Some(observation.clone()),
        relevant: true,
    });
    bench.run(Command::RecordAnswer { operation: attempt, answer: Answer::Observed(observation) });
    bench.run(Command::IssueTickets { order });
    let ticket: TicketId = Seed::new(NO, bench.now, 1).mint();
    bench.run(Command::ReissueTicket { ticket, generation: 1, actor: "key_1".to_owned() });
    bench.run(Command::ScanTicket(Showing {
        scan: "scan-1".into(),
        ticket,
        generation: 1,
        at: None,
        direction: onsale_core::ticket::Direction::In,
        gate: "north".to_owned(),
        scanned_at: None,
        let_in_offline: false,
    }));
    (first, order, attempt)
}

#[test]
fn every_statement_of_a_decision_is_a_look_up() {
    let mut bench = Bench::new();
    open_event(&mut bench, 5);
    let noted = note(&mut bench.backend.connection);
    sale(&mut bench);
    upkeep::forget_keys(Look::Sqlite(&bench.backend.connection), Timestamp::ZERO)
        .expect("keys can be forgotten");
    let db = bench.reader();
    let noted = noted.lock().expect("nothing panics under it");
    let tables = [
        "events",
        "seats",
        "holds",
        "orders",
        "operations",
        "cases",
        "callbacks",
        "idempotency_keys",
        "tickets",
        "scans",
    ];
    for table in tables {
        let reads = |text: &&String| text.contains(&format!("FROM {table} "));
        assert!(noted.iter().any(|text| reads(&text)), "{table} is read: {noted:#?}");
    }
    for text in noted.iter().filter(|text| !text.starts_with("BEGIN") && !text.starts_with("COMMIT")) {
        assert_eq!(walks(&db, text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn every_look_that_workers_and_buyers_take_is_a_look_up() {
    let mut bench = Bench::new();
    open_event(&mut bench, 5);
    let (hold, order, attempt) = sale(&mut bench);
    let mut db = bench.reader();
    let noted = note(&mut db);
    let look = Reader(Look::Sqlite(&db));
    let now = bench.now;
    let looked = || -> Result<(), StoreError> {
        look.event(NO)?;
        look.manifest(NO)?;
        look.seat_digits(NO)?;
        look.seat_changes(NO, 3, 10)?;
        look.hold(hold)?;
        look.order(order)?;
        look.order_account(order)?;
        look.due_operations(now, 10)?;
        look.due_holds(now, 10)?;
        look.due_callbacks(now, 10)?;
        look.callback("evt_1")?;
        look.attempt("pi_1")?;
        look.has_operation(attempt)?;
        look.cases(Some(CaseStatus::Open), 10)?;
        look.cases(Some(CaseStatus::Closed), 10)?;
        look.tickets(order)?;
        look.ticket(TicketId(1))?;
        look.gate_conflicts(NO, 10)?;
        look.revoked_tickets(NO, None)?;
        look.revoked_tickets(NO, Some(3))?;
        Ok(())
    };
    looked().expect("the database can be read");
    let plain = bench.reader();
    for text in noted.lock().expect("nothing panics under it").iter() {
        if !text.starts_with("BEGIN") && !text.starts_with("ROLLBACK") {
            assert_eq!(walks(&plain, text), Vec::<String>::new(), "{text}");
        }
    }
}

/// Looks over all there is walk along an index or through a table that stays small, and sort nothing.
#[test]
fn lists_walk_along_an_index() {
    let mut bench = Bench::new();
    open_event(&mut bench, 5);
    sale(&mut bench);
    let mut db = bench.reader();
    let noted = note(&mut db);
    let look = Reader(Look::Sqlite(&db));
    look.cases(None, 10).expect("cases can be read");
    look.backlog(bench.now).expect("the backlog can be read");
    look.event_versions().expect("events can be read");
    look.api_keys().expect("keys can be read");
    look.due_webhooks(EndpointId(1), bench.now, 10).expect("deliveries can be read");
    look.webhook_deliveries(EndpointId(1), None, 10).expect("deliveries can be read");
    look.open_webhooks().expect("deliveries can be read");
    look.orders_to_ticket(10).expect("orders can be read");
    let plain = bench.reader();
    for text in noted.lock().expect("nothing panics under it").iter() {
        if !text.starts_with("BEGIN") && !text.starts_with("ROLLBACK") {
            let mut walks = walks(&plain, text);
            walks.retain(|step| !step.contains("INDEX") && step != "SCAN events" && step != "SCAN api_keys");
            assert_eq!(walks, Vec::<String>::new(), "{text}");
        }
    }
}

/// The audit reads a large sale in a second: for each list of seats it looks up those seats, and never walks through
/// all.
#[test]
fn no_check_of_the_audit_walks_through_an_event_for_each_row() {
    let bench = Bench::new();
    let db = bench.reader();
    for (id, _, text) in audit::all() {
        let text = audit::words_for_sqlite(text);
        let mut statement = db.prepare(&format!("EXPLAIN QUERY PLAN {text}")).expect(id);
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next().expect(id) {
            let step: String = row.get(3).expect("a step is text");
            let walks_an_event = ["seats", "s ", "p "].iter().any(|table| {
                step.starts_with(&format!("SEARCH {table}")) && step.ends_with("PRIMARY KEY (event_no=?)")
            });
            // A whole event is counted once for each event.
            assert!(!walks_an_event || *id == "I-31", "{id}: {step}");
            // What is joined is looked up, or the check takes the square of the sale.
            assert!(!(step.starts_with("SCAN") && step.ends_with("LEFT-JOIN")), "{id}: {step}");
        }
    }
}

/// Someone reads for long: the WAL can't begin anew, and the writer doesn't wait for it batch after batch.
#[test]
fn a_long_look_does_not_hold_the_writer_up_again_and_again() {
    let mut bench = Bench::new();
    open_event(&mut bench, 50);
    let db = bench.reader();
    let look = db.unchecked_transaction().expect("it can be looked at");
    let seen = Reader(Look::Sqlite(&look)).event(NO).expect("it can be looked at");
    bench.place("ada", 0);
    let raised = bench.tried_to_restart();
    assert!(raised > crate::limits::CHECKPOINT_PAGES, "the next try is when the WAL has grown: {raised}");
    bench.place("ben", 1);
    let begun = Instant::now();
    bench.backend.tend();
    assert!(begun.elapsed() < crate::limits::RESTART_TIMEOUT, "it isn't waited for again");
    assert_eq!(
        Reader(Look::Sqlite(&look)).event(NO).expect("it can be looked at"),
        seen,
        "the look sees what it saw"
    );
    drop(look);

    bench.place("cyd", 2);
    assert_eq!(bench.tried_to_restart(), crate::limits::CHECKPOINT_PAGES);
    bench.place("dan", 3);
    let pages: i64 =
        db.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| row.get(1)).expect("the WAL is told");
    assert!(pages < 20, "the WAL began anew: {pages} pages");
}
