//! The SQL that a cluster's owner says, all of it.

/// What the application needs: a role that may do as it likes in a database of its own.
pub(crate) const MAKE_ROLE: &str = "CREATE ROLE onsale LOGIN PASSWORD 'of-the-application'";
pub(crate) const MAKE_DATABASE: &str = "CREATE DATABASE onsale OWNER onsale";
/// A table of the runner's own, apart from the application's.
pub(crate) const MAKE_PROBE: &str =
    "CREATE SCHEMA chaos; CREATE TABLE chaos.probe (id bigint PRIMARY KEY, at timestamptz)";

/// A commit that a standby must have before it returns.
pub(crate) const PROBE: &str =
    "INSERT INTO chaos.probe VALUES (0, now()) ON CONFLICT (id) DO UPDATE SET at = excluded.at";

pub(crate) const DATA_DIRECTORY: &str = "SHOW data_directory";

/// A row whose commit is waited for, acknowledged with a warning, and lost: see the fault `commit-cancelled`.
pub(crate) const CONTROL_WRITE: &str = "INSERT INTO chaos.probe VALUES (1, now())";
pub(crate) const CONTROL_READ: &str = "SELECT count(*) FROM chaos.probe WHERE id = 1";
pub(crate) const CONTROL_FORGET: &str = "DELETE FROM chaos.probe WHERE id = 1";

/// Commits that wait for a standby.
pub(crate) const CONTROL_WAITS: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND usename = 'postgres'";
pub(crate) const APPLICATION_WAITS: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND usename = 'onsale'";
pub(crate) const CANCEL_WAITS: &str =
    "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";

/// Needs room on the disk, for the table and for the log of what is written. Longer rows would be compressed.
pub(crate) const NEED_ROOM: &str = "CREATE TABLE IF NOT EXISTS chaos.ballast (text text); \
     INSERT INTO chaos.ballast SELECT repeat('x', 1900) FROM generate_series(1, 400)";
