//! A home on a PostgreSQL server: some writers, each with its connection and its queue, and a bounded pool of connections to
//! read with.

mod apply;
mod backend;
mod columns;
mod copy;
mod duty;
mod link;
mod load;
mod pool;
mod tls;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use onsale_core::id::EventNo;

use crate::error::{OpenError, StoreError, chain};
use crate::limits::{AWAY_PAUSE, CONNECT_PATIENCE, FIRST_PATIENCE, HOME_READERS_MAX, LANES_MAX};
use crate::look::{Look, Parsed};
use crate::writer::{self, Clock, Committed, Queue};
use crate::{migrate, upkeep};

use backend::PostgresBackend;
use pool::Pool;

pub(crate) use copy::{CopyIn, CopyOut};
pub use duty::Duty;
pub(crate) use link::{Address, Link, any};

/// How a home is opened.
pub struct HomeOptions {
    /// What it is called.
    pub name: String,
    /// A `postgresql://` URL.
    pub url: String,
    /// Where the time of decisions comes from; the database's own clock is what counts, see [`Clock::agreed`].
    pub clock: Arc<dyn Clock>,
    /// Whether a database of an older program is brought up to date, or refused. A new one is always made.
    pub upgrades: bool,
    /// Whether the server must keep every commit on a standby too.
    pub needs_standby: bool,
    /// Writers, at most [`LANES_MAX`].
    pub lanes: usize,
}

impl HomeOptions {
    /// The usual: as many writers as there may be, and no standby asked for.
    pub fn new(name: &str, url: &str, clock: Arc<dyn Clock>) -> HomeOptions {
        let (name, url) = (name.to_owned(), url.to_owned());
        HomeOptions { name, url, clock, upgrades: true, needs_standby: false, lanes: LANES_MAX }
    }
}

/// Where connections come from.
pub(crate) struct Server {
    address: Address,
    /// When it could last not be reached.
    missed_at: Mutex<Option<Instant>>,
    is_away: AtomicBool,
}

impl Server {
    fn new(address: Address) -> Server {
        Server { address, missed_at: Mutex::new(None), is_away: AtomicBool::new(false) }
    }

    /// A new connection. A server that could not be reached a moment ago isn't asked again.
    fn connect(&self, settings: &str) -> Parsed<Link> {
        let missed_at = || self.missed_at.lock().expect("nothing panics under the lock");
        if missed_at().is_some_and(|at| at.elapsed() < AWAY_PAUSE) {
            return Err(StoreError::Away(self.address.home.to_string()));
        }
        match Link::open(&self.address, settings, CONNECT_PATIENCE) {
            Ok(link) => {
                *missed_at() = None;
                self.is_here();
                Ok(link)
            }
            Err(error) => {
                *missed_at() = Some(Instant::now());
                if !self.is_away.swap(true, Ordering::AcqRel) {
                    let error = chain(&error);
                    tracing::warn!(home = &*self.address.home, error, "A home is away");
                }
                Err(StoreError::Unusable(Box::new(error)))
            }
        }
    }

    /// Notes that the server has answered.
    fn is_here(&self) {
        if self.is_away.load(Ordering::Relaxed) && self.is_away.swap(false, Ordering::AcqRel) {
            tracing::info!(home = &*self.address.home, "A home is back");
        }
    }

    fn is_away(&self) -> bool {
        self.is_away.load(Ordering::Relaxed)
    }
}

/// The writers and readers of one home.
pub(crate) struct Home {
    pub(crate) queues: Vec<Arc<Queue<PostgresBackend>>>,
    server: Arc<Server>,
    pool: Pool,
}

impl Home {
    /// Opens a home: its schema is made or brought up to date, and its writers start.
    pub(crate) fn open(
        options: HomeOptions,
        publish: Arc<dyn Fn(&Committed) + Send + Sync>,
    ) -> Result<(Home, Vec<JoinHandle<()>>), OpenError> {
        let address = Address::parse(&options.name, &options.url, options.needs_standby)?;
        let first = Link::open(&address, "", FIRST_PATIENCE)?;
        first.be_patient(Duration::from_secs(60));
        migrate::migrate_postgres(&first, options.upgrades)?;
        if upkeep::moved_to(Look::Postgres(&first))?.is_some() {
            return Err(OpenError::Arriving { home: options.name });
        }
        drop(first);
        let server = Arc::new(Server::new(address));
        let mut threads = Vec::new();
        let lanes = options.lanes.clamp(1, LANES_MAX);
        let mut queues = Vec::new();
        for lane in 0..lanes {
            let queue = Queue::new();
            let (for_thread, clock) = (Arc::clone(&queue), Arc::clone(&options.clock));
            let (backend, publish) = (PostgresBackend::new(Arc::clone(&server)), Arc::clone(&publish));
            let thread = std::thread::Builder::new()
                .name(format!("writer-{lane}"))
                .spawn(move || writer::run(&for_thread, backend, &*clock, &*publish))
                .map_err(StoreError::Io)?;
            threads.push(thread);
            queues.push(queue);
        }
        let pool = Pool::new(Arc::clone(&server), HOME_READERS_MAX);
        Ok((Home { queues, server, pool }, threads))
    }

    /// The queue of an event: an event has one, so that its commands are decided together.
    pub(crate) fn queue(&self, no: EventNo) -> &Queue<PostgresBackend> {
        &self.queues[no.0 as usize % self.queues.len()]
    }

    /// Work that changes something by itself, on a connection of the pool.
    pub(crate) fn upkeep<R>(&self, work: impl Fn(&Link) -> Parsed<R>) -> Parsed<R> {
        if self.pool.is_closed() {
            return Err(StoreError::Closed);
        }
        self.with_link(work)
    }

    /// Work on a connection of the pool.
    pub(crate) fn with_link<R>(&self, work: impl Fn(&Link) -> Parsed<R>) -> Parsed<R> {
        self.pool.with_link(work)
    }

    /// Whether the server could not be reached when it was last tried.
    pub(crate) fn is_away(&self) -> bool {
        self.server.is_away()
    }

    /// What only one program at a time needs to do here.
    pub(crate) fn duty(&self) -> Duty {
        Duty::of(Arc::clone(&self.server))
    }

    /// A connection of one's own.
    pub(crate) fn connect(&self) -> Parsed<Link> {
        self.server.connect("")
    }

    /// Lets go of what isn't used.
    pub(crate) fn close(&self) {
        self.queues.iter().for_each(|queue| queue.close());
        self.pool.close();
    }
}

/// A connection to a home for a command, whose database must be at this program's version.
pub(crate) fn existing(name: &str, url: &str) -> Result<Link, OpenError> {
    let link = Link::open(&Address::parse(name, url, false)?, "", FIRST_PATIENCE)?;
    migrate::require_current(Look::Postgres(&link))?;
    Ok(link)
}
