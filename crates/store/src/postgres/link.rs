//! A connection to a PostgreSQL server: opened with the settings that durability rests on, checked each time, used by one thread
//! at a time, and given up, never waited for, when the server doesn't answer.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::BytesMut;
use tokio::runtime::Runtime;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{AsyncMessage, Client, Config, Row, Statement};
use uuid::Uuid;

use crate::error::{OpenError, StoreError};
use crate::look::{Any, Parsed, Value};

use crate::limits::{COMMIT_PATIENCE, DEAD_PATIENCE, FIRST_PATIENCE, READ_PATIENCE, SERVER_VERSION_MIN};

use super::tls;

/// Writes a word into the WAL that nobody reads, if a standby is waited for at all.
pub(super) const PROOF: &str = "SELECT CASE WHEN current_setting('synchronous_standby_names') <> ''
     THEN pg_logical_emit_message(true, 'onsale', '') END";

/// Where a home is, and what is asked of it.
#[derive(Clone)]
pub(crate) struct Address {
    /// What the home is called.
    pub(crate) home: Arc<str>,
    pub(crate) config: Config,
    /// Whether the server must keep every commit on a standby too.
    pub(crate) needs_standby: bool,
}

impl Address {
    pub(crate) fn parse(home: &str, url: &str, needs_standby: bool) -> Result<Address, OpenError> {
        let wrong = |source| OpenError::Url { home: home.to_owned(), source };
        let mut config: Config = url.parse().map_err(wrong)?;
        config
            .application_name("onsale")
            .connect_timeout(FIRST_PATIENCE)
            .tcp_user_timeout(DEAD_PATIENCE)
            .keepalives_idle(Duration::from_secs(2))
            .keepalives_interval(Duration::from_secs(1))
            .keepalives_retries(3)
            // A server of several may be a standby, or a primary that was.
            .target_session_attrs(tokio_postgres::config::TargetSessionAttrs::ReadWrite);
        Ok(Address { home: home.into(), config, needs_standby })
    }

    /// A failure to open this home.
    fn unusable(&self, source: StoreError) -> OpenError {
        OpenError::Home { home: self.home.to_string(), source: Box::new(source) }
    }
}

/// A connection with the runtime that drives it. The runtime runs only while someone waits for an answer, in the thread that
/// waits; dropping the link closes the socket at once, whatever the server is doing.
pub(crate) struct Link {
    runtime: Option<Runtime>,
    client: Client,
    statements: RefCell<HashMap<String, Statement>>,
    /// Set when the server has said that a commit may be on this machine alone.
    warned: Arc<AtomicBool>,
    /// How long an answer is waited for.
    patience: Cell<Duration>,
    /// Whether nothing more is to be expected of this connection.
    is_broken: Cell<bool>,
}

impl Link {
    /// Connects, sets and checks.
    pub(crate) fn open(address: &Address, settings: &str, patience: Duration) -> Result<Link, OpenError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| address.unusable(StoreError::Io(error)))?;
        let warned = Arc::new(AtomicBool::new(false));
        let noting = Arc::clone(&warned);
        let connected = runtime.block_on(async {
            let heard = move |message| {
                if let AsyncMessage::Notice(notice) = message
                    && is_lost_wait(notice.code())
                {
                    noting.store(true, Ordering::Release);
                }
            };
            let connecting = tokio::time::timeout(patience, tls::connect(&address.config, heard));
            connecting.await.map_err(|_| StoreError::NoAnswer)?
        });
        let client = connected.map_err(|error| address.unusable(error))?;
        let (statements, is_broken) = (RefCell::new(HashMap::new()), Cell::new(false));
        let link = Link {
            runtime: Some(runtime),
            client,
            statements,
            warned,
            patience: Cell::new(patience),
            is_broken,
        };
        link.batch("SET client_min_messages = warning; SET DateStyle = 'ISO'; SET statement_timeout = '30s'")
            .and_then(|()| link.batch(settings))
            .map_err(|error| address.unusable(error))?;
        link.require(address)?;
        link.patience.set(READ_PATIENCE);
        Ok(link)
    }

    /// Asks for each setting that a promise rests on. A server's administrator may change any of them, so each connection asks.
    fn require(&self, address: &Address) -> Result<(), OpenError> {
        let wrong = |name: &'static str, found: String, wanted: &'static str| {
            Err(OpenError::Setting { name, found, wanted })
        };
        let text = "SELECT current_setting('server_version_num')::integer, pg_is_in_recovery()::integer,
             current_setting('transaction_read_only'), current_setting('synchronous_commit'), current_setting('fsync'),
             current_setting('full_page_writes'), current_setting('server_encoding'),
             current_setting('synchronous_standby_names'), current_setting('server_version')";
        let row = self.query(text, &[]).map_err(|error| address.unusable(error))?;
        let Some(row) = row.first() else {
            return Err(address.unusable(StoreError::NoAnswer));
        };
        let (version, is_standby): (i32, i32) = (row.get(0), row.get(1));
        let text = |index: usize| -> String { row.get(index) };
        if version < SERVER_VERSION_MIN {
            return wrong("PostgreSQL version", text(8), "14 or newer");
        }
        if is_standby != 0 {
            return wrong("pg_is_in_recovery", "true".to_owned(), "a primary");
        }
        if text(2) != "off" {
            return wrong("transaction_read_only", text(2), "off");
        }
        if !matches!(text(3).as_str(), "on" | "remote_apply") {
            return wrong("synchronous_commit", text(3), "on or remote_apply");
        }
        for (index, name) in [(4, "fsync"), (5, "full_page_writes")] {
            if text(index) != "on" {
                return wrong(name, text(index), "on");
            }
        }
        if text(6) != "UTF8" {
            return wrong("server_encoding", text(6), "UTF8");
        }
        if address.needs_standby && text(7).trim().is_empty() {
            return wrong(
                "synchronous_standby_names",
                "nothing".to_owned(),
                "a standby that keeps each commit",
            );
        }
        Ok(())
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("a link has its runtime until it is dropped")
    }

    /// How long answers are waited for from now on.
    pub(crate) fn be_patient(&self, patience: Duration) {
        self.patience.set(patience);
    }

    /// Waits for an answer, in this thread, for as long as it has patience. Without an answer the connection is given up: to
    /// cancel what runs would have the server report a commit that may be lost as done.
    pub(crate) fn wait<T>(
        &self,
        work: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, StoreError> {
        if self.is_broken.get() {
            return Err(StoreError::NoAnswer);
        }
        let patience = self.patience.get();
        let waited = self.runtime().block_on(async { tokio::time::timeout(patience, work).await });
        match waited {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) => {
                // What is read-only or shutting down is of no more use, though it answers.
                let ends = |code: &SqlState| {
                    *code == SqlState::READ_ONLY_SQL_TRANSACTION || code.code().starts_with("57P")
                };
                if error.code().is_none_or(ends) || self.client.is_closed() {
                    self.is_broken.set(true);
                }
                Err(StoreError::Postgres(error))
            }
            Err(_) => {
                self.is_broken.set(true);
                Err(StoreError::NoAnswer)
            }
        }
    }

    /// Whether it can still be used, as far as can be seen without asking the server.
    pub(crate) fn is_sound(&self) -> bool {
        if !self.is_broken.get() {
            // What the server has said since, such as that it ends, is read.
            self.runtime().block_on(tokio::task::yield_now());
            self.is_broken.set(self.client.is_closed());
        }
        !self.is_broken.get()
    }

    /// Whether the server has warned, since this was last asked, that it did not wait for its standby.
    pub(crate) fn take_warning(&self) -> bool {
        self.warned.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Runs statements that have no values.
    pub(crate) fn batch(&self, text: &str) -> Parsed<()> {
        self.wait(self.client.batch_execute(text))
    }

    /// A statement, prepared once.
    pub(crate) fn prepared(&self, text: &str) -> Parsed<Statement> {
        if let Some(known) = self.statements.borrow().get(text) {
            return Ok(known.clone());
        }
        let statement = self.wait(self.client.prepare(text))?;
        self.statements.borrow_mut().insert(text.to_owned(), statement.clone());
        Ok(statement)
    }

    pub(crate) fn query(&self, text: &str, values: &[Value<'_>]) -> Parsed<Vec<Row>> {
        let statement = self.prepared(text)?;
        self.wait(self.client.query(&statement, &references(values)))
    }

    pub(crate) fn execute(&self, text: &str, values: &[Value<'_>]) -> Parsed<u64> {
        let statement = self.prepared(text)?;
        let done = self.wait(self.client.execute(&statement, &references(values)))?;
        // A statement alone is its own transaction: it is done, but maybe here alone.
        if self.take_warning() { Err(StoreError::NotReplicated) } else { Ok(done) }
    }

    /// Several statements that are done together, and durable when this returns.
    pub(crate) fn transaction<R>(&self, work: impl FnOnce() -> Parsed<R>) -> Parsed<R> {
        self.batch("BEGIN")?;
        let done = work();
        if done.is_err() {
            // Where that isn't answered either, the server undoes it when the connection is gone.
            let _ = self.batch("ROLLBACK");
            self.take_warning();
            return done;
        }
        self.batch("COMMIT")?;
        if self.take_warning() { Err(StoreError::NotReplicated) } else { done }
    }

    /// Commits something that changes nothing and waits for the standby with it: what was visible before is there as well then.
    /// Where there is no standby, what is visible is on the disk, and that is all there is.
    pub(crate) fn prove(&self) -> Parsed<()> {
        let patience = self.patience.replace(COMMIT_PATIENCE);
        self.take_warning();
        let done = self.query(PROOF, &[]);
        self.patience.set(patience);
        done?;
        if self.take_warning() { Err(StoreError::NotReplicated) } else { Ok(()) }
    }

    /// Several statements over one state of the database.
    pub(crate) fn still<R>(&self, work: impl FnOnce() -> Parsed<R>) -> Parsed<R> {
        self.batch("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
        let done = work();
        self.batch("ROLLBACK")?;
        done
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // The socket is closed here and now, also where a thread must not wait.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn references<'a>(values: &'a [Value<'_>]) -> Vec<&'a (dyn ToSql + Sync)> {
    values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

/// Whether a notice says that a commit was not waited for on the standby. It comes beside a commit that reports success, in the
/// server's own language: so any plain warning is taken for it, and only loses the time of a look.
fn is_lost_wait(code: &SqlState) -> bool {
    *code == SqlState::WARNING
}

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Value::Int(number) => match *ty {
                Type::INT2 => i16::try_from(*number)?.to_sql(ty, out),
                Type::INT4 => i32::try_from(*number)?.to_sql(ty, out),
                Type::BOOL => (*number != 0).to_sql(ty, out),
                _ => number.to_sql(ty, out),
            },
            Value::Text(text) => text.to_sql(ty, out),
            Value::Bits(bits) => Uuid::from_u128(*bits).to_sql(ty, out),
            Value::Bytes(bytes) => bytes.to_sql(ty, out),
        }
    }

    fn accepts(ty: &Type) -> bool {
        matches!(
            *ty,
            Type::INT2
                | Type::INT4
                | Type::INT8
                | Type::BOOL
                | Type::TEXT
                | Type::VARCHAR
                | Type::UUID
                | Type::BYTEA
        )
    }

    to_sql_checked!();
}

/// Whatever is in a column.
pub(crate) fn any(row: &Row, index: usize) -> Parsed<Any> {
    fn text<T: ToString>(value: Option<T>) -> Any {
        value.map_or(Any::None, |value| Any::Text(value.to_string()))
    }
    Ok(match *row.columns()[index].type_() {
        Type::INT2 => text(row.try_get::<_, Option<i16>>(index)?),
        Type::INT4 => text(row.try_get::<_, Option<i32>>(index)?),
        Type::INT8 => text(row.try_get::<_, Option<i64>>(index)?),
        Type::BOOL => text(row.try_get::<_, Option<bool>>(index)?),
        Type::FLOAT8 => text(row.try_get::<_, Option<f64>>(index)?),
        Type::UUID => {
            let bits: Option<Uuid> = row.try_get(index)?;
            bits.map_or(Any::None, |bits| Any::Bytes(bits.as_bytes().to_vec()))
        }
        Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(index)?.map_or(Any::None, Any::Bytes),
        _ => text(row.try_get::<_, Option<&str>>(index)?),
    })
}
