//! The real stores: one handle for each process on the same database. What is asked together is queued together, and then waited
//! for, so that the writer's thread decides nothing about the order of things.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Poll, Waker};

use onsale_core::command::{Decision, Request};
use onsale_core::ga::{Transfer, TransferStatus};
use onsale_core::id::{HoldId, OrderId, TransferId};
use onsale_core::payment::Operation;
use onsale_core::reconcile::Callback;
use onsale_core::time::Timestamp;
use onsale_postgres_server::Server;
use onsale_store::{Check, Clock, HomeOptions, Options, Store, SubmitError};
use onsale_world::{HALL, World};

use crate::Broken;

/// Commits between two audits.
const AUDIT_EVERY: u64 = 40;
const ROWS_MAX: u32 = 10_000;

struct Hands(Arc<AtomicI64>);

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }

    /// Time is the world's, whatever a server's clock says.
    fn agreed(&self, _: Timestamp) -> Option<Timestamp> {
        Some(self.now())
    }
}

/// Which database.
enum Place {
    File(tempfile::TempDir),
    Server(String),
}

pub(crate) struct Real {
    place: Place,
    stores: Vec<Option<Store>>,
    clock: Arc<AtomicI64>,
    commits: u64,
}

impl Real {
    /// A new file for so many processes; in memory-backed files where the system has them.
    pub(crate) fn file(processes: usize) -> Real {
        let shm = PathBuf::from("/dev/shm");
        let builder = || tempfile::Builder::new().prefix("onsale-sim-").to_owned();
        let folder = match shm.is_dir() {
            true => builder().tempdir_in(&shm).or_else(|_| builder().tempdir()),
            false => builder().tempdir(),
        };
        Real::at(Place::File(folder.expect("a temporary folder can be made")), processes)
    }

    /// A new database on a server for so many processes.
    pub(crate) fn server(processes: usize) -> Real {
        let url = Server::shared().and_then(Server::create_database).expect("a database can be made");
        Real::at(Place::Server(url), processes)
    }

    fn at(place: Place, processes: usize) -> Real {
        let clock = Arc::new(AtomicI64::new(0));
        Real { place, stores: (0..processes).map(|_| None).collect(), clock, commits: 0 }
    }

    fn name(&self) -> &'static str {
        match self.place {
            Place::File(_) => "SQLite",
            Place::Server(_) => "PostgreSQL",
        }
    }

    /// The handle of a process; opened anew after a crash.
    fn store(&mut self, process: usize) -> &Store {
        let (place, clock) = (&self.place, Arc::clone(&self.clock));
        self.stores[process].get_or_insert_with(|| {
            let clock = Arc::new(Hands(clock));
            let opened = match place {
                Place::File(folder) => Store::open(Options::new(folder.path().to_owned(), clock), |_| ()),
                // One writer: what is asked together is then decided in one transaction, whatever the events.
                Place::Server(url) => {
                    Store::connect(HomeOptions { lanes: 1, ..HomeOptions::new("main", url, clock) }, |_| ())
                }
            };
            opened.expect("the database opens")
        })
    }

    /// The process has ended: its handle is gone.
    pub(crate) fn crash(&mut self, process: usize) {
        self.stores[process] = None;
    }

    pub(crate) fn commit(
        &mut self,
        process: usize,
        requests: &[Request],
        expected: &[Decision],
        now: Timestamp,
        world: &World,
    ) -> Result<(), Broken> {
        self.clock.store(now.millis(), Ordering::SeqCst);
        let name = self.name();
        let store = self.store(process);
        // Each is in the queue once it has been polled.
        let mut asked: Vec<Asked<'_>> = Vec::new();
        for request in requests {
            let mut waiting: Asked<'_> = Box::pin(store.submit(request.clone(), None));
            let answer = match waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(answer) => Box::pin(std::future::ready(answer)),
                Poll::Pending => waiting,
            };
            asked.push(answer);
        }
        for ((request, expected), asked) in requests.iter().zip(expected).zip(asked) {
            match blocking(asked) {
                Ok(decision) if decision == *expected => {}
                other => {
                    let what = format!("{request:?}\nin memory: {expected:?}\nin {name}: {other:?}");
                    return Err(Broken::new("the database decides as the store in memory", what));
                }
            }
        }
        self.commits += 1;
        // While processes are down or a day passes, nobody is in time.
        if self.commits.is_multiple_of(AUDIT_EVERY) {
            self.compare_rows(process, world)?;
            self.audit(process, now, &["I-17"])?;
        }
        Ok(())
    }

    /// Seats, places, codes, holds, orders and refunds, row by row.
    pub(crate) fn compare_rows(&mut self, process: usize, world: &World) -> Result<(), Broken> {
        let read = self.store(process).read(|reader| {
            let digits = reader.seat_digits(HALL)?.map(|shown| shown.digits).unwrap_or_default();
            let (buckets, transfers) = reader.buckets(HALL)?;
            let (allocations, codes) = (reader.allocations(HALL)?, reader.access_codes(HALL, "", ROWS_MAX)?);
            let mut holds = Vec::new();
            for id in world.holds.keys() {
                holds.extend(reader.hold(*id)?.map(|view| view.hold));
            }
            let (mut orders, mut refunds, mut tickets) = (Vec::new(), Vec::new(), Vec::new());
            for id in world.orders.keys() {
                orders.extend(reader.order(*id)?.map(|view| view.order));
                tickets.extend(reader.tickets(*id)?);
                refunds.extend(reader.refunds(*id)?.into_iter().map(|view| view.refund));
            }
            Ok((digits, buckets, transfers, allocations, codes, holds, orders, refunds, tickets))
        });
        let (digits, buckets, mut transfers, allocations, codes, holds, orders, mut refunds, mut tickets) =
            read.expect("rows are read");
        transfers.sort_by_key(|transfer| transfer.id);
        refunds.sort_by_key(|refund| refund.operation);
        let on_its_way = |transfer: &&Transfer| transfer.status == TransferStatus::InFlight;
        tickets.sort_by_key(|ticket| ticket.id);
        same("tickets", &tickets, &world.tickets.values().cloned().collect())?;
        same("seats", &digits, &world.digits.values().map(|digit| b'0' + digit).collect())?;
        same("buckets", &buckets, &world.buckets.values().cloned().collect())?;
        same("transfers", &transfers, &world.transfers.values().filter(on_its_way).cloned().collect())?;
        same("allocations", &allocations, &world.allocations.values().cloned().collect())?;
        same("access codes", &codes, &world.codes.values().cloned().collect())?;
        same("holds", &holds, &world.holds.values().cloned().collect())?;
        same("orders", &orders, &world.orders.values().cloned().collect())?;
        same("refunds", &refunds, &world.refunds.values().cloned().collect())
    }

    pub(crate) fn compare_orders_to_ticket(
        &mut self,
        process: usize,
        expected: &[OrderId],
    ) -> Result<(), Broken> {
        let read = self.store(process).read(|reader| reader.orders_to_ticket(ROWS_MAX));
        let mut found = read.expect("orders are read");
        found.sort();
        same("orders that want tickets", &found[..], expected)
    }

    pub(crate) fn compare_transfers(
        &mut self,
        process: usize,
        expected: &[TransferId],
    ) -> Result<(), Broken> {
        let read = self.store(process).read(|reader| reader.transfers_in_flight(ROWS_MAX));
        let mut found = read.expect("transfers are read");
        found.sort();
        same("transfers on their way", &found[..], expected)
    }

    /// Every invariant as a query, but for those that are excused.
    pub(crate) fn audit(&mut self, process: usize, now: Timestamp, excused: &[&str]) -> Result<(), Broken> {
        let audit = self.store(process).audit(now).expect("the audit reads");
        let counts = |check: &&Check| check.violations > 0 && !excused.contains(&check.id);
        let mut broken = audit.checks.iter().filter(counts);
        match broken.next() {
            None => Ok(()),
            Some(check) => {
                Err(Broken::new("audit", format!("{} {}: {:?}", check.id, check.title, check.rows)))
            }
        }
    }

    pub(crate) fn compare_due_operations(
        &mut self,
        process: usize,
        now: Timestamp,
        expected: &[Operation],
    ) -> Result<(), Broken> {
        let read = self.store(process).read(|reader| reader.due_operations(now, ROWS_MAX));
        let mut found: Vec<Operation> =
            read.expect("operations are read").into_iter().map(|view| view.operation).collect();
        found.sort_by_key(|operation| (operation.due_at, operation.id));
        same("operations that are due", &found[..], expected)
    }

    pub(crate) fn compare_due_holds(
        &mut self,
        process: usize,
        now: Timestamp,
        expected: &[HoldId],
    ) -> Result<(), Broken> {
        let read = self.store(process).read(|reader| reader.due_holds(now, ROWS_MAX));
        let mut found = read.expect("holds are read");
        found.sort();
        same("holds that are due", &found[..], expected)
    }

    pub(crate) fn compare_due_callbacks(
        &mut self,
        process: usize,
        now: Timestamp,
        expected: &[Callback],
    ) -> Result<(), Broken> {
        let read = self.store(process).read(|reader| reader.due_callbacks(now, ROWS_MAX));
        let mut found = read.expect("callbacks are read");
        found.sort_by(|one, other| one.provider_event_id.cmp(&other.provider_event_id));
        same("callbacks that are due", &found[..], expected)
    }
}

type Asked<'a> = Pin<Box<dyn Future<Output = Result<Decision, SubmitError>> + 'a>>;

/// Waits in this thread.
fn blocking<T>(mut future: Pin<Box<dyn Future<Output = T> + '_>>) -> T {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

fn same<T: PartialEq + std::fmt::Debug + ?Sized>(what: &str, found: &T, expected: &T) -> Result<(), Broken> {
    if found == expected {
        return Ok(());
    }
    let text = format!("{what}\nin memory: {expected:?}\nin the database: {found:?}");
    Err(Broken::new("the database shows what the store in memory shows", text))
}
