//! Every bound of the store, each with its reason.

use std::time::Duration;

/// Commands waiting for the writer. At 10,000 commands a second this is under a second of work: a longer queue would
/// only make late answers.
pub const QUEUE_MAX: usize = 8_192;
/// How long the first in the queue may have waited when another still joins it. Past this a caller hears at once that it
/// should come later, rather than late.
pub const QUEUE_WAIT_MAX: Duration = Duration::from_secs(2);
/// Commands in one transaction. More would not spread the cost of a commit any further, only hold answers back.
pub const BATCH_COMMANDS_MAX: usize = 512;
/// Time a transaction may spend on deciding before it commits what it has.
pub const BATCH_TIME_MAX: Duration = Duration::from_millis(50);
/// How long a statement waits for another process's transaction. Longer than any batch, shorter than a client's
/// patience.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Connections for reading. Reads are short; more connections than this would only compete for two cores.
pub const READERS_MAX: usize = 8;
/// WAL pages after which the checkpointer copies them into the database (64 MiB): pages that change often are copied once, and
/// the waits that come with it are few.
/// With fail points a small sale must come to its checkpoints.
pub const CHECKPOINT_PAGES: u32 = if cfg!(feature = "fail-points") { 12 } else { 16_384 };
/// WAL pages left to copy that the writer may copy itself, standing still: some milliseconds of work.
pub const CHECKPOINT_REST_PAGES: i64 = 512;
/// Rounds of copying after which the writer takes over whatever is left: each is shorter than the one before, or never.
pub const CHECKPOINT_ROUNDS_MAX: usize = 4;
/// WAL pages after which the writer itself waits for a checkpoint (256 MiB), so that the file is bounded under load.
pub const CHECKPOINT_PAGES_FORCED: u32 = if cfg!(feature = "fail-points") { 20 } else { 65_536 };
/// How long the writer waits for readers to let the WAL begin anew. Everyone waits with it, so hardly at all.
pub const RESTART_TIMEOUT: Duration = Duration::from_millis(10);
/// The same when the WAL is as long as it should ever be.
pub const RESTART_TIMEOUT_FORCED: Duration = Duration::from_millis(200);
/// Page cache of the writing connection, in KiB: a large event's seats and the hot ends of the tables.
pub const WRITER_CACHE_KIB: i64 = 64 * 1_024;
/// Price tables kept in memory; one is a few numbers.
pub const PRICE_TABLES_MAX: usize = 4_096;
/// Seats on the boards that a writer keeps, of all its events: some 30 bytes each. Enough for the largest hall and some
/// others.
pub const BOARD_SEATS_MAX: usize = 1_500_000;
/// Entries of the log that a board which is behind takes in. Past this it costs as much to read the seats anew.
pub const BOARD_ENTRIES_MAX: u64 = 2_000;
/// Rows that a check of the audit names; it counts the rest.
pub const AUDIT_ROWS_MAX: usize = 20;
/// Oldest SQLite that is trusted: 3.51.3 mended a race in which a WAL reset could corrupt the database.
pub const SQLITE_VERSION_MIN: i32 = 3_051_003;
/// Other systems that are told what happens. Each has a row for each event, and work of its own.
pub const WEBHOOK_ENDPOINTS_MAX: u64 = 16;
/// Deliveries that are forgotten, or made due again, in one transaction.
pub(crate) const WEBHOOK_ROWS_MAX: usize = 1_000;

/// Oldest PostgreSQL that is taken: 14 was the first whose server notices a client that has gone while it waits.
pub(crate) const SERVER_VERSION_MIN: i32 = 140_000;
/// Writers of one home in one process. Each has a connection and a queue of its own, and each event has one of them: so an event
/// that is slow keeps only its neighbours waiting, and several commits are under way at once.
pub const LANES_MAX: usize = 4;
/// Connections for reading, and for upkeep, from one home.
pub const HOME_READERS_MAX: usize = 8;
/// How long the first connection may take to come about. Longer than a proxy needs to try its servers in turn.
pub(crate) const FIRST_PATIENCE: Duration = Duration::from_secs(7);
/// The same while buyers wait: whoever can't be reached in this time is away, and they are told.
pub(crate) const CONNECT_PATIENCE: Duration = Duration::from_millis(2_500);
/// How long what was sent may stay unacknowledged by the other machine before a connection is taken for dead.
pub(crate) const DEAD_PATIENCE: Duration = Duration::from_secs(3);
/// How long an answer to a look is waited for.
pub(crate) const READ_PATIENCE: Duration = Duration::from_secs(10);
/// The same for an audit, which looks through everything.
pub(crate) const AUDIT_PATIENCE: Duration = Duration::from_secs(1_800);
/// How long the answer to a step of a batch is waited for. Longer than the server itself waits for a lock.
pub(crate) const STEP_PATIENCE: Duration = Duration::from_secs(6);
/// How long a commit may take. A server whose standby is gone keeps it waiting until another takes its place; past this it is
/// asked about instead.
pub(crate) const COMMIT_PATIENCE: Duration = Duration::from_secs(4);
/// How long a commit without an answer is asked about before its callers are told that it is unknown.
pub(crate) const DOUBT_PATIENCE: Duration = Duration::from_secs(6);
/// How long an answer about a duty is waited for. It is asked every second, and whoever else could have it waits too.
pub(crate) const DUTY_PATIENCE: Duration = Duration::from_secs(2);
/// How often a batch is tried in vain for reasons that pass: a deadlock, a connection that was cut.
pub(crate) const TRIES_MAX: u32 = 4;
/// How long a home that could not be reached is left alone, so that those who come meanwhile hear it at once.
pub(crate) const AWAY_PAUSE: Duration = Duration::from_millis(250);
/// How far the clocks of the program and of a database may be apart. Past this one of them must be wrong, and a decision made by
/// a wrong clock can't be taken back.
pub const CLOCKS_APART_MAX: Duration = Duration::from_secs(5);
/// How long it is remembered which batches are done. Longer than any that is in doubt is asked about.
pub(crate) const BATCHES_KEPT_MS: i64 = 3_600_000;
/// Rows written by one statement of a bulk change.
pub(crate) const BULK_ROWS_MAX: usize = 10_000;
/// Bytes of rows that are on their way from one database into another at a time.
pub(crate) const COPY_CHUNK: usize = 256 * 1_024;
/// How long an answer is waited for while an event moves: a step may go through all its rows. A server that is gone is noticed
/// by its connection.
pub(crate) const MOVE_PATIENCE: Duration = Duration::from_secs(1_800);
