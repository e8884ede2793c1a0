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
/// Rows that a check of the audit names; it counts the rest.
pub const AUDIT_ROWS_MAX: usize = 20;
/// Oldest SQLite that is trusted: 3.51.3 mended a race in which a WAL reset could corrupt the database.
pub const SQLITE_VERSION_MIN: i32 = 3_051_003;
