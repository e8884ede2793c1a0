//! Every bound of the store, each with its reason.

use std::time::Duration;

/// Commands waiting for the writer. At 10,000 commands a second this is under a second of work: a longer queue would
/// only make late answers.
pub const QUEUE_MAX: usize = 8_192;
/// Commands in one transaction. More would not spread the cost of a commit any further, only hold answers back.
pub const BATCH_COMMANDS_MAX: usize = 512;
/// Time a transaction may spend on deciding before it commits what it has.
pub const BATCH_TIME_MAX: Duration = Duration::from_millis(50);
/// How long a statement waits for another process's transaction. Longer than any batch, shorter than a client's
/// patience.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Connections for reading. Reads are short; more connections than this would only compete for two cores.
pub const READERS_MAX: usize = 8;
/// WAL pages after which the checkpointer copies them into the database (16 MiB).
pub const CHECKPOINT_PAGES: u32 = 4_096;
/// WAL pages after which the writer itself waits for a checkpoint (256 MiB), so that the file is bounded under load.
pub const CHECKPOINT_PAGES_FORCED: u32 = 65_536;
/// How long the writer waits for readers to let the WAL begin anew. Everyone waits with it.
pub const TRUNCATE_TIMEOUT: Duration = Duration::from_millis(200);
/// Page cache of the writing connection, in KiB: a large event's seats and the hot ends of the tables.
pub const WRITER_CACHE_KIB: i64 = 64 * 1_024;
/// Price tables kept in memory; one is a few numbers.
pub const PRICE_TABLES_MAX: usize = 4_096;
/// Rows that a check of the audit names; it counts the rest.
pub const AUDIT_ROWS_MAX: usize = 20;
/// Oldest SQLite that is trusted: 3.51.3 mended a race in which a WAL reset could corrupt the database.
pub const SQLITE_VERSION_MIN: i32 = 3_051_003;
