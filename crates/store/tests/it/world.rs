//! A hall on sale over a real database. Every test ends with [`World::finish`], which audits the database and compares
//! what the log tells with what the seats show; a test that forgets it fails.

mod asked;
mod everything;
mod printed;
mod raw;
mod told;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use onsale_core::command::{Answer, Command, Decision, Outcome, PlacedHold, Request, Wish};
use onsale_core::event::{Event, EventStatus, Policy};
use onsale_core::gateway::{IntentState, Observation};
use onsale_core::id::{AccountId, EventNo, HoldId, OperationId, OrderId, SeatOrdinal, Seed};
use onsale_core::idempotency::RequestKey;
use onsale_core::payment::{Operation, OperationKind};
use onsale_core::time::Timestamp;
use onsale_postgres_server::Server;
use onsale_store::{Clock, Ground, HoldView, HomeOptions, Options, OrderView, Store, SubmitError};
use tempfile::TempDir;

use crate::ON_POSTGRES;

pub(crate) use asked::{ask, done};
pub(crate) use everything::{KEY, message, picture};
pub(crate) use printed::{draft, manifest, policy};
pub(crate) use raw::Raw;
pub(crate) use told::{TYPES, endpoint, feed, news};

/// The event of most tests.
pub(crate) const HALL: EventNo = EventNo(1);
/// When every test begins.
pub(crate) const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);
/// Prices of the hall's two levels; seats stand in them by turns.
pub(crate) const PRICES: [i64; 2] = [5_000, 3_000];

/// A clock that stands still until it is set.
pub(crate) struct TestClock(AtomicI64);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }

    fn agreed(&self, _: Timestamp) -> Option<Timestamp> {
        Some(self.now())
    }
}

impl TestClock {
    pub(crate) fn new() -> Arc<TestClock> {
        Arc::new(TestClock(AtomicI64::new(START.millis())))
    }

    pub(crate) fn set(&self, at: Timestamp) {
        self.0.store(at.millis(), Ordering::SeqCst);
    }
}

pub(crate) fn account(name: &str) -> AccountId {
    AccountId::parse(name).expect("a test's account is an account")
}

pub(crate) fn ada() -> AccountId {
    account("ada")
}

pub(crate) fn ben() -> AccountId {
    account("ben")
}

pub(crate) fn ordinals(seats: &[u32]) -> Vec<SeatOrdinal> {
    seats.iter().copied().map(SeatOrdinal).collect()
}

/// A request with ids that no other test request has, in this process or another.
pub(crate) fn request(command: Command, now: Timestamp) -> Request {
    static DRAWN: AtomicU64 = AtomicU64::new(0);
    let chance = (u64::from(std::process::id()) << 32) | DRAWN.fetch_add(1 << 6, Ordering::SeqCst);
    let seed = Seed::new(command.event(), now, chance);
    Request { command, key: None, seed }
}

/// Waits for a state that other threads bring about.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "waited in vain until {what}");
        std::thread::yield_now();
    }
}

/// A database, its store, and a clock.
pub(crate) struct World {
    pub(crate) store: Arc<Store>,
    pub(crate) clock: Arc<TestClock>,
    /// Where the database is, when it is a file.
    pub(crate) folder: TempDir,
    pub(crate) ground: Ground,
    /// Where it is on a server.
    pub(crate) url: String,
    finished: bool,
}

/// A hall with so many seats, priced and open.
pub(crate) fn hall(seats: u32, policy: Policy) -> World {
    hall_on(seats, policy, Ground::default())
}

/// The same on a ground of one's own.
pub(crate) fn hall_on(seats: u32, policy: Policy, ground: Ground) -> World {
    let world = World::on(tempfile::tempdir().expect("a folder can be made"), ground);
    world.add_event(HALL, seats, policy);
    world
}

/// What opens an event with so many seats.
pub(crate) fn opening(no: EventNo, seats: u32, policy: Policy) -> [Command; 4] {
    [
        Command::CreateEvent(Box::new(draft(no, policy))),
        Command::ReplaceManifest { event: no, manifest: Arc::new(manifest(seats)) },
        priced(no),
        Command::SetOnSale { event: no, status: EventStatus::Open, actor: "test".to_owned() },
    ]
}

/// Prices for the levels of [`manifest`].
pub(crate) fn priced(no: EventNo) -> Command {
    Command::SetPrices { event: no, manifest_version: 1, levels: (0..).zip(PRICES).collect() }
}

impl World {
    /// A new database without an event.
    pub(crate) fn empty() -> World {
        World::on(tempfile::tempdir().expect("a folder can be made"), Ground::default())
    }

    /// The database in a folder, or a new one, on a ground of one's own.
    pub(crate) fn on(folder: TempDir, ground: Ground) -> World {
        let (clock, url) = (TestClock::new(), fresh_database());
        let store = Arc::new(open_at(folder.path(), &url, ground, &clock));
        World { store, clock, folder, ground, url, finished: false }
    }

    pub(crate) fn add_event(&self, no: EventNo, seats: u32, policy: Policy) {
        for command in opening(no, seats, policy) {
            let outcome = self.submit(command);
            assert!(!matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
        }
    }

    /// Closes the database and opens it again, as it was.
    pub(crate) fn reopen_as_it_was(&mut self) {
        self.store.close();
        self.store = Arc::new(open_at(self.folder.path(), &self.url, self.ground, &self.clock));
    }

    /// Another store on the same database, with its own connections and its own writers, like another process.
    pub(crate) fn another_store(&self) -> Store {
        open_at(self.folder.path(), &self.url, self.ground, &self.clock)
    }

    /// A plain connection to the same database.
    pub(crate) fn raw(&self) -> Raw {
        if ON_POSTGRES { Raw::server(&self.url) } else { Raw::file(self.path()) }
    }

    pub(crate) fn path(&self) -> &Path {
        self.store.path().expect("the database is a file")
    }

    /// Keeps every writer out until it is dropped.
    pub(crate) fn lock(&self) -> Raw {
        let raw = self.raw();
        raw.execute(if ON_POSTGRES { "BEGIN; SELECT 1 FROM events FOR UPDATE" } else { "BEGIN IMMEDIATE" });
        raw
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn pass_ms(&self, millis: i64) {
        self.clock.set(self.now().plus_ms(millis));
    }

    pub(crate) fn request(&self, command: Command) -> Request {
        request(command, self.now())
    }

    pub(crate) fn submit(&self, command: Command) -> Outcome {
        self.try_submit(command).expect("the store decides")
    }

    pub(crate) fn try_submit(&self, command: Command) -> Result<Outcome, SubmitError> {
        self.store.submit_blocking(self.request(command)).map(|decision| decision.outcome)
    }

    pub(crate) fn submit_keyed(&self, id: u128, digest: u128, command: Command) -> Decision {
        let request = Request { key: Some(RequestKey { id, digest }), ..self.request(command) };
        self.store.submit_blocking(request).expect("the store decides")
    }

    pub(crate) fn place(&self, account: &AccountId, seats: &[u32]) -> Outcome {
        self.submit(place_hold(account, seats))
    }

    pub(crate) fn placed(&self, account: &AccountId, seats: &[u32]) -> PlacedHold {
        match self.place(account, seats) {
            Outcome::HoldPlaced(placed) => placed,
            other => panic!("{account} wants {seats:?}: {other:?}"),
        }
    }

    pub(crate) fn hold(&self, account: &AccountId, seats: &[u32]) -> HoldId {
        self.placed(account, seats).hold.id
    }

    /// Begins to pay for a hold: its order and the attempt.
    pub(crate) fn checkout(&self, hold: HoldId, account: &AccountId) -> (OrderId, OperationId) {
        match self.submit(checkout(hold, account)) {
            Outcome::CheckoutBegun(order) => {
                let attempt = self.live(order, OperationKind::Authorize);
                (order, attempt.expect("a checkout begins an attempt").id)
            }
            other => panic!("{account} pays for {hold}: {other:?}"),
        }
    }

    /// Begins to pay and tells the provider's name for it.
    pub(crate) fn checkout_as(
        &self,
        hold: HoldId,
        account: &AccountId,
        reference: &str,
    ) -> (OrderId, OperationId) {
        let (order, attempt) = self.checkout(hold, account);
        let outcome =
            self.submit(Command::RecordReference { operation: attempt, reference: reference.to_owned() });
        assert_eq!(outcome, Outcome::MayConfirm);
        (order, attempt)
    }

    /// A sale up to its authorization.
    pub(crate) fn sell(&self, account: &AccountId, seats: &[u32], reference: &str) -> (OrderId, OperationId) {
        let (order, attempt) = self.checkout_as(self.hold(account, seats), account, reference);
        self.observe(attempt, self.observed(order, attempt, reference, IntentState::Authorized));
        (order, attempt)
    }

    /// What the provider says of an attempt, in the order's amount.
    pub(crate) fn observed(
        &self,
        order: OrderId,
        operation: OperationId,
        reference: &str,
        state: IntentState,
    ) -> Observation {
        let amount = self.order(order).order.total;
        let (order, operation) = (Some(order), Some(operation));
        Observation { reference: reference.to_owned(), state, amount, refunded_minor: 0, order, operation }
    }

    pub(crate) fn observe(&self, operation: OperationId, observation: Observation) -> Outcome {
        self.answer(operation, Answer::Observed(observation))
    }

    pub(crate) fn answer(&self, operation: OperationId, answer: Answer) -> Outcome {
        self.submit(Command::RecordAnswer { operation, answer })
    }

    /// The live operation of a kind of an order.
    pub(crate) fn live(&self, order: OrderId, kind: OperationKind) -> Option<Operation> {
        let far = Timestamp::from_millis(i64::MAX);
        let live = self.store.read(|db| db.due_operations(far, 10_000)).expect("operations can be read");
        live.into_iter().map(|view| view.operation).find(|o| o.order == order && o.kind == kind)
    }

    pub(crate) fn hold_view(&self, hold: HoldId) -> HoldView {
        self.store.read(|db| db.hold(hold)).expect("a hold can be read").expect("the hold exists")
    }

    pub(crate) fn order(&self, order: OrderId) -> OrderView {
        self.store.read(|db| db.order(order)).expect("an order can be read").expect("the order exists")
    }

    pub(crate) fn event(&self) -> Event {
        self.store.read(|db| db.event(HALL)).expect("an event can be read").expect("the event exists")
    }

    /// The hall's seats as digits.
    pub(crate) fn digits(&self) -> String {
        let seats = self.store.read(|db| db.seat_digits(HALL)).expect("seats can be read");
        String::from_utf8(seats.expect("the event exists").digits).expect("digits are ASCII")
    }

    /// Ends the test: every invariant holds, and whoever has followed the log sees the seats as they are.
    pub(crate) fn finish(mut self) {
        self.finished = true;
        let audit = self.store.audit(self.now()).expect("the database can be audited");
        for check in &audit.checks {
            assert_eq!(check.violations, 0, "{}: {}: {:?}", check.id, check.title, check.rows);
        }
        let events = self.store.read(|db| db.events()).expect("events can be read");
        events.into_iter().for_each(|event| replay(&self.store, event.no()));
    }
}

/// Follows the log from the beginning and compares.
fn replay(store: &Store, no: EventNo) {
    let seats = store.read(|db| db.seat_digits(no)).expect("seats can be read").expect("the event exists");
    let view = store.read(|db| db.manifest(no)).expect("a manifest can be read");
    let mut shown: BTreeMap<u32, u8> = BTreeMap::new();
    let mut version = 0;
    loop {
        let changes = store.read(|db| db.seat_changes(no, version, 7)).expect("the log can be read");
        let changes = changes.expect("the log reaches back to the beginning");
        if changes.version == version {
            break;
        }
        version = changes.version;
        if changes.replaced {
            shown.clear();
        }
        shown.extend(changes.changes.iter().map(|(_, seat, digit)| (seat.0, b'0' + digit)));
    }
    assert_eq!(version, seats.version, "the log ends where the event stands");
    let printed = view.map(|view| view.manifest.seats).unwrap_or_default();
    assert_eq!(printed.len(), seats.digits.len());
    for (ordinal, digit) in (0..).zip(&seats.digits) {
        // A seat the log never spoke of is as the manifest left it.
        let is_free = matches!(digit, b'0' | b'3');
        let told = shown.get(&ordinal);
        assert!(told.map_or(is_free, |told| told == digit), "seat {ordinal}: {told:?} told, {digit} stored");
    }
}

impl Drop for World {
    fn drop(&mut self) {
        assert!(self.finished || std::thread::panicking(), "a test ends with finish()");
    }
}

/// An empty database on the server, where that is what is tested.
fn fresh_database() -> String {
    if !ON_POSTGRES {
        return String::new();
    }
    let server = Server::shared().expect("a server runs");
    server.create_database().expect("a database can be made")
}

fn open_at(folder: &Path, url: &str, ground: Ground, clock: &Arc<TestClock>) -> Store {
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    let opened = if ON_POSTGRES {
        Store::connect(HomeOptions::new("main", url, clock), |_| ())
    } else {
        Store::open(Options { ground, ..Options::new(folder.to_owned(), clock) }, |_| ())
    };
    opened.expect("the database opens")
}

pub(crate) fn place_hold(account: &AccountId, seats: &[u32]) -> Command {
    Command::PlaceHold {
        event: HALL,
        manifest_version: 1,
        account: account.clone(),
        wish: Wish::of_seats(ordinals(seats)),
        code: None,
    }
}

pub(crate) fn checkout(hold: HoldId, account: &AccountId) -> Command {
    Command::Checkout {
        hold,
        account: account.clone(),
        payment_method_token: "pm_card".to_owned(),
        email: Some(format!("{account}@example.org")),
        return_url: Some("https://hall.example/back".to_owned()),
    }
}
