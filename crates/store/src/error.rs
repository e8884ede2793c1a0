//! What can break around a decision. A refusal is none of these.

use std::path::PathBuf;

/// A database that can't be opened for service.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file or its folder can't be used.
    #[error("failed to open the database {path}")]
    Open {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: rusqlite::Error,
    },
    /// The file can't be made, or isn't a file to write to.
    #[error("failed to open the database {path}")]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The folder can't be made.
    #[error("failed to make the data folder {path}")]
    Folder {
        /// Which folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The database was written by a newer program, or by another one.
    #[error(
        "the database has migration {number} ({name}), which this program doesn't know: use the newer program"
    )]
    Newer {
        /// The unknown migration.
        number: i64,
        /// Its name.
        name: String,
    },
    /// A migration in the database isn't the one this program has.
    #[error(
        "migration {number} in the database differs from this program's: it was changed after it was applied"
    )]
    Changed {
        /// Which migration.
        number: i64,
    },
    /// The database needs a migration, and this opening may not write.
    #[error(
        "the database is at migration {found}, this program needs {wanted}: start `onsale serve` once to migrate it"
    )]
    Older {
        /// What it has.
        found: i64,
        /// What it needs.
        wanted: i64,
    },
    /// A setting that durability rests on isn't in force.
    #[error("the database engine runs with {name} = {found}, but {wanted} is needed")]
    Setting {
        /// Which setting.
        name: &'static str,
        /// What is in force.
        found: String,
        /// What is needed.
        wanted: &'static str,
    },
    /// A step of a migration failed; nothing of it remains.
    #[error("failed to migrate the database")]
    Migrate(#[source] Box<StoreError>),
    /// What is given as the address of a home isn't one.
    #[error("the address of the home {home} is not a PostgreSQL URL")]
    Url {
        /// Which home.
        home: String,
        /// Why.
        #[source]
        source: tokio_postgres::Error,
    },
    /// A home can't be used.
    #[error("failed to open the home {home}")]
    Home {
        /// Which home.
        home: String,
        /// Why.
        #[source]
        source: Box<StoreError>,
    },
    /// The database has moved: nothing is to be decided here any more.
    #[error(
        "the database {path} has moved to the home {home}, or is on its way there: serve that one, or run \
         `onsale to-postgres` again until it is done"
    )]
    Moved {
        /// Which file.
        path: PathBuf,
        /// Where it went.
        home: String,
    },
    /// The database is being made of a file.
    #[error("the home {home} is still being made of a file: run `onsale to-postgres` again until it is done")]
    Arriving {
        /// Which home.
        home: String,
    },
}

impl From<StoreError> for OpenError {
    fn from(error: StoreError) -> OpenError {
        OpenError::Migrate(Box::new(error))
    }
}

/// A read or a piece of upkeep that failed; nothing of it remains.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The engine failed.
    #[error("failed to use the database")]
    Sqlite(#[from] rusqlite::Error),
    /// The server refused, or the connection to it broke.
    #[error("failed to use the database")]
    Postgres(#[from] tokio_postgres::Error),
    /// The server didn't answer in time.
    #[error("the database does not answer")]
    NoAnswer,
    /// The server could not be reached a moment ago.
    #[error("the home {0} is away")]
    Away(String),
    /// The server can't be reached, or isn't one to use.
    #[error("the database is away")]
    Unusable(#[source] Box<OpenError>),
    /// A change is done where it was asked for, but the server didn't wait for its standby: it may be lost.
    #[error("the database did not wait for its standby")]
    NotReplicated,
    /// The clocks of this machine and of the database are too far apart.
    #[error("the clocks of this machine and of the database are {apart_ms} ms apart")]
    Clocks {
        /// By how much the database's is ahead.
        apart_ms: i64,
    },
    /// The system failed.
    #[error("the system failed")]
    Io(#[source] std::io::Error),
    /// The database as a whole has moved: nothing is changed in it any more.
    #[error("the database has moved to {0}")]
    Elsewhere(String),
    /// A stored value is not one this program writes.
    #[error("the database holds {found:?} where {wanted} is expected")]
    Corrupt {
        /// What kind of value.
        wanted: &'static str,
        /// What was found.
        found: String,
    },
    /// Another process changed a row between its reading and its writing, which the lock forbids: a bug.
    #[error("{count} rows of {table} changed instead of 1: the batch was undone")]
    Mismatch {
        /// Which table.
        table: &'static str,
        /// How many rows matched.
        count: usize,
    },
    /// The rules or the store have a bug that shows with some row or request.
    #[error("a decision ended in a panic: {0}")]
    Panicked(String),
    /// Another program keeps the file to itself.
    #[error("another program is using the file")]
    Busy,
    /// The store is shutting down.
    #[error("the store is shutting down")]
    Closed,
}

/// A database that can't be looked into.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// It can't be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It can't be read.
    #[error(transparent)]
    Read(#[from] StoreError),
}

/// A command that was not answered with a decision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The queue is full: not done.
    #[error("the writer's queue is full")]
    Overloaded,
    /// The caller's deadline passed before it was decided: not done.
    #[error("the command waited in the queue past its deadline")]
    Expired,
    /// The database failed before the commit: not done.
    #[error("the database is not available: {0}")]
    Unavailable(String),
    /// The event is at home elsewhere: not done.
    #[error("the event has moved to another home")]
    Elsewhere,
    /// The commit itself failed: done or not done, and only asking again tells.
    #[error("the outcome is unknown: {0}")]
    Unknown(String),
}

/// An error with all its causes, for logs and for whoever asks at a terminal.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        source = inner.source();
    }
    text
}
