//! Moving: an event from one home to another, and a whole installation from its file to a home on a server.
//!
//! That nothing is decided in two places is told by the event's own row in each database: where its `elsewhere` is set, no batch
//! does anything, and both are read and written under the row's lock. Every step is durable before the next, may be repeated, and
//! is undone by none that comes later from someone who was overtaken: the epoch tells who froze last. `docs/decisions/0015` says
//! why in full.

mod clear;
mod event;
mod file;
mod rows;
mod tables;

use std::fmt;

use onsale_core::id::EventId;
use onsale_core::time::Timestamp;
use tokio_postgres::error::SqlState;

use crate::audit::{self, Scope};
use crate::error::{InspectError, OpenError, StoreError};
use crate::limits::{FIRST_PATIENCE, MOVE_PATIENCE};
use crate::look::{Look, Value};
use crate::migrate;
use crate::postgres::{Address, HomeOptions, Link};

use tables::{Part, Table, joined};

pub use event::{cancel_move, move_event};
pub use file::{cancel_to_postgres, to_postgres};

/// What has been done of a move, for whoever watches it. Each is durable when it is told, but what is copied: that is when it
/// has arrived.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// A database has been audited.
    Audited {
        /// Which.
        place: String,
    },
    /// It is recorded what goes where.
    Recorded {
        /// From where.
        from: String,
        /// Whereto.
        to: String,
    },
    /// Nothing is decided any more where it was.
    Frozen {
        /// Where.
        place: String,
    },
    /// The rows of a table are on their way.
    Copied {
        /// Which.
        table: String,
        /// How many.
        rows: u64,
    },
    /// All rows are there.
    Arrived {
        /// Where.
        place: String,
    },
    /// What has arrived is the same, to the bit.
    Compared {
        /// How many tables.
        tables: usize,
        /// How many rows.
        rows: u64,
    },
    /// From here on it can't be undone.
    Switched {
        /// Where it is at home now.
        to: String,
    },
    /// It is decided again.
    Opened {
        /// Where.
        place: String,
    },
    /// Rows that are nobody's any more are gone.
    Cleared {
        /// From where.
        place: String,
        /// How many.
        rows: u64,
    },
    /// Rows that are nobody's any more could not be removed. They do no harm, and the next move removes them.
    Left {
        /// Where.
        place: String,
    },
    /// Nobody can switch any more: what is under way is being undone.
    Revoked {
        /// To where it was under way.
        to: String,
    },
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Audited { place } => write!(f, "{place}: every invariant holds"),
            Step::Recorded { from, to } => write!(f, "on the way from {from} to {to}"),
            Step::Frozen { place } => write!(f, "{place}: frozen"),
            Step::Copied { table, rows } => write!(f, "copied {table}: {rows} rows"),
            Step::Arrived { place } => write!(f, "{place}: everything is there"),
            Step::Compared { tables, rows } => {
                write!(f, "compared {tables} tables, {rows} rows: all the same")
            }
            Step::Switched { to } => write!(f, "at home at {to} from now on"),
            Step::Opened { place } => write!(f, "{place}: open"),
            Step::Cleared { place, rows } => {
                write!(f, "{place}: {rows} rows removed that are no longer needed")
            }
            Step::Left { place } => {
                write!(f, "{place}: what is left there could not be removed; the next move does it")
            }
            Step::Revoked { to } => write!(f, "the move to {to} is called off"),
        }
    }
}

/// Why something does not move.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// A database can't be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A step failed. It is done or not done; the next try finds out.
    #[error("failed to {0}")]
    Step(&'static str, #[source] StoreError),
    /// Rows of a table could not be copied; none of them is there.
    #[error("failed to copy {table}")]
    Copy {
        /// Which.
        table: String,
        /// Why.
        #[source]
        source: StoreError,
    },
    /// The settings know no such home.
    #[error("no home is called {0}")]
    NoHome(String),
    /// There is no such event.
    #[error("there is no event {event} at {home}, where the directory says it is")]
    NoEvent {
        /// Which.
        event: EventId,
        /// Where it should be.
        home: String,
    },
    /// Somebody else is moving it right now.
    #[error("another command is moving it right now")]
    Busy,
    /// It is on its way to another home than the one that was asked for.
    #[error("it is on its way to {to}: finish that with --to {to}, or undo it with --cancel")]
    UnderWay {
        /// Whereto.
        to: String,
    },
    /// Everybody is sent to its new home already.
    #[error("it has switched to {0} already: finish that with --to {0}")]
    Switched(String),
    /// It is not on its way.
    #[error("nothing is under way that could be undone")]
    NotUnderWay,
    /// It is frozen, and the directory doesn't say why.
    #[error("it is frozen on its way to {to}, which the directory does not know of: undo that with --cancel")]
    Stray {
        /// Whereto.
        to: String,
    },
    /// It serves at another place than the directory says.
    #[error("it is at home at {0}, but the directory says otherwise: nothing was changed")]
    AtHomeThere(String),
    /// Another move, or an undoing, came in between.
    #[error("another command has overtaken this one: look at where it is, and run it again")]
    Overtaken,
    /// What has arrived isn't the same.
    #[error(
        "{table} has {there} rows in the copy and {here} in the original, or others: nothing was switched"
    )]
    Differs {
        /// Which table.
        table: String,
        /// Rows where it comes from.
        here: u64,
        /// Rows where it has arrived.
        there: u64,
    },
    /// An invariant doesn't hold.
    #[error("{violations} violations of invariants at {place}, such as {first}: nothing was switched")]
    Broken {
        /// Where.
        place: String,
        /// How many.
        violations: u64,
        /// The first.
        first: String,
    },
    /// The database is in use.
    #[error("the database of {home} is not empty: {table} has rows")]
    NotEmpty {
        /// Which home.
        home: String,
        /// Where something is.
        table: String,
    },
    /// The file has gone to another database.
    #[error("the file has gone to another database than this one")]
    OtherDatabase,
    /// It is being undone.
    #[error("it is being called off: finish that with --cancel")]
    CalledOff,
    /// It serves there already.
    #[error("{0} serves already: it can't be undone")]
    Serves(String),
}

type Moved<T> = Result<T, MoveError>;

/// Names what failed.
trait Named<T> {
    fn while_to(self, what: &'static str) -> Moved<T>;
}

impl<T> Named<T> for Result<T, StoreError> {
    fn while_to(self, what: &'static str) -> Moved<T> {
        self.map_err(|error| MoveError::Step(what, error))
    }
}

/// What a mover's connection is set to. A step may last, and a transaction may wait for the other database meanwhile. Locks are
/// waited for as long as a writer whose program stands still can keep one.
const SETTINGS: &str =
    "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET lock_timeout = '20s';
     SET client_connection_check_interval = '2s'; SET default_transaction_isolation = 'read committed';
     SET jit = off; SET work_mem = '64MB'";

/// A number that only movers lock.
const LOCK: i32 = 0x6f6e_7361;

/// A connection to a home.
fn open(home: &HomeOptions) -> Moved<Link> {
    let link =
        Link::open(&Address::parse(&home.name, &home.url, home.needs_standby)?, SETTINGS, FIRST_PATIENCE)?;
    link.be_patient(MOVE_PATIENCE);
    link.take_warning();
    Ok(link)
}

/// The same, where the schema must be this program's.
fn open_current(home: &HomeOptions) -> Moved<Link> {
    let link = open(home)?;
    migrate::require_current(Look::Postgres(&link))?;
    Ok(link)
}

/// Keeps other movers of the same out, for as long as the connection lasts. It spares them from being overtaken; what is right
/// doesn't rest on it. One that has just ended is waited for.
fn lock(link: &Link, what: u32) -> Moved<()> {
    link.batch("SET lock_timeout = '1s'").while_to("keep other movers out")?;
    match link.batch(&format!("SELECT pg_advisory_lock({LOCK}, {what})")) {
        Ok(()) => {}
        Err(StoreError::Postgres(error)) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
            return Err(MoveError::Busy);
        }
        Err(error) => return Err(MoveError::Step("keep other movers out", error)),
    }
    link.batch(SETTINGS).while_to("keep other movers out")
}

/// A transaction that is durable when this returns, on the standby too.
fn durably<T>(link: &Link, what: &'static str, work: impl FnOnce() -> Moved<T>) -> Moved<T> {
    link.batch("BEGIN").while_to(what)?;
    let done = work();
    if done.is_err() {
        // Where that isn't answered either, the server undoes it when the connection is gone.
        let _ = link.batch("ROLLBACK");
        link.take_warning();
        return done;
    }
    link.batch("COMMIT").while_to(what)?;
    if link.take_warning() { Err(MoveError::Step(what, StoreError::NotReplicated)) } else { done }
}

/// One statement that changes exactly one row, durably; or somebody has overtaken us.
fn change_one(link: &Link, what: &'static str, text: &str, values: &[Value<'_>]) -> Moved<()> {
    durably(link, what, || match link.execute(text, values).while_to(what)? {
        1 => Ok(()),
        _ => Err(MoveError::Overtaken),
    })
}

/// Looks for violations.
fn audited(db: Look<'_>, now: Timestamp, scope: Scope, place: &str) -> Moved<()> {
    let audit = audit::run(db, now, scope).while_to("audit")?;
    let first = audit.checks.iter().find_map(|check| Some(format!("{}: {}", check.id, check.rows.first()?)));
    match first {
        None => Ok(()),
        Some(first) => {
            let (place, violations) = (place.to_owned(), audit.violations());
            Err(MoveError::Broken { place, violations, first })
        }
    }
}

/// Copies the rows of all tables.
fn copy_all(
    from: Look<'_>,
    to: &Link,
    tables: &[&Table],
    part: Part,
    told: &mut dyn FnMut(Step),
) -> Moved<()> {
    for table in tables {
        let rows = rows::copy(from, to, table, part)
            .map_err(|source| MoveError::Copy { table: table.name.clone(), source })?;
        told(Step::Copied { table: table.name.clone(), rows });
    }
    Ok(())
}

/// Has the server look at how large tables are by now. It would do so by itself, but later; until then an audit could take time
/// with the square of a sale. It is not told of all tables: of those that aren't ours it warns, and a warning means a lost wait.
fn analyze(link: &Link, tables: &[&Table]) -> Moved<()> {
    let names = joined(tables.iter().map(|table| table.name.clone()));
    link.batch(&format!("ANALYZE {names}")).while_to("analyze the copy")
}

/// Compares the rows of all tables.
fn compare_all(
    from: Look<'_>,
    to: Look<'_>,
    tables: &[&Table],
    part: Part,
    told: &mut dyn FnMut(Step),
) -> Moved<()> {
    let mut all = 0;
    for table in tables {
        let here = rows::sum(from, table, part).while_to("read the original anew")?;
        let there = rows::sum(to, table, part).while_to("read the copy")?;
        if here != there {
            let table = table.name.clone();
            return Err(MoveError::Differs { table, here: here.rows, there: there.rows });
        }
        all += here.rows;
    }
    told(Step::Compared { tables: tables.len(), rows: all });
    Ok(())
}

impl From<InspectError> for MoveError {
    fn from(error: InspectError) -> MoveError {
        match error {
            InspectError::Open(error) => MoveError::Open(error),
            InspectError::Read(error) => MoveError::Step("read the database", error),
        }
    }
}
