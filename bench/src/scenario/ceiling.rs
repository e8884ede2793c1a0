//! What the machine does at best: an answer with nothing in it, and a hold's rows written by hand.

use std::time::Instant;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use crate::client::{Answer, write_request};
use crate::hall::{self, shuffled_groups};
use crate::load;
use crate::report::Report;
use crate::server::Server;

use super::Setup;

/// Answers to a request about nothing.
pub(super) const EMPTY: &str = "empty answer over HTTP";
/// Holds by bare SQL.
pub(super) const ROWS: &str = "rows of a hold of 3, 128 a transaction, bare SQLite";
/// Rows of the hall.
const HALL_ROWS: usize = 10_000;
/// Holds in one transaction: as many as there are connections, and the most that the server takes.
const BATCHES: [usize; 2] = [128, 512];

pub(super) async fn run(setup: &Setup, report: &mut Report) -> anyhow::Result<()> {
    let server = Server::start(&setup.onsale).await?;
    let asker = |_: usize, _: Option<Answer<'_>>, request: &mut Vec<u8>| {
        write_request(request, format_args!("GET /livez"), "", "");
        true
    };
    let empty = load::closed(server.buyers, setup.connections, setup.lasts, asker).await?;
    let note = format!("p99 {:.1} ms; GET /livez", empty.ms(None, 0.99));
    report.add(EMPTY, empty.per_second(empty.answers()), "/s", note, None);

    let event = server.event(HALL_ROWS).await?;
    drop(event);
    let folder = server.stop()?;
    let mut database = Connection::open(folder.path().join("onsale.db"))?;
    // As the server opens it: plans that don't depend on bound values, too.
    database.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    database.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -65536; PRAGMA temp_store = MEMORY;
         PRAGMA wal_autocheckpoint = 16384;",
    )?;
    // Written into the statements as a number: a bound parameter would be the same work.
    let event_no: i64 = database.query_row("SELECT max(event_no) FROM events", [], |row| row.get(0))?;
    let mut groups = shuffled_groups(HALL_ROWS, setup.seed).into_iter();
    for batch in BATCHES {
        let begun = Instant::now();
        let mut held = 0;
        while begun.elapsed() < setup.lasts / 2 {
            let mut groups: Vec<u32> = groups.by_ref().take(batch).collect();
            // The server writes a batch in the order of its keys.
            groups.sort_unstable();
            if groups.len() < batch {
                break;
            }
            held += hold(&mut database, event_no, &groups)?;
        }
        let rate = held as f64 / begun.elapsed().as_secs_f64();
        let name = match batch {
            128 => ROWS.to_owned(),
            _ => format!("rows of a hold of 3, {batch} a transaction, bare SQLite"),
        };
        report.add(name, rate, "/s", "one thread, nothing else", None);
    }
    Ok(())
}

/// Everything that a hold reads and writes, and nothing that decides.
fn hold(database: &mut Connection, no: i64, groups: &[u32]) -> anyhow::Result<usize> {
    let transaction = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let number = |name: &str| -> anyhow::Result<i64> {
        let text = format!("SELECT {name} FROM events WHERE event_no = {no}");
        Ok(transaction.prepare_cached(&text)?.query_row([], |row| row.get(0))?)
    };
    let (first_version, clock) = (number("version")? + 1, number("clock")?);
    let mut find_key = transaction.prepare_cached("SELECT digest FROM idempotency_keys WHERE key = ?1")?;
    let mut find_holds = transaction.prepare_cached(&format!("SELECT hold_id FROM holds WHERE event_no = {no} AND account_id = ?1 AND status IN ('ACTIVE', 'PAYMENT_PENDING')"))?;
    let mut find_sold = transaction.prepare_cached(&format!("SELECT ifnull(sum(seat_count), 0) FROM orders WHERE event_no = {no} AND account_id = ?1 AND status = 'CONFIRMED'"))?;
    let mut find_seat = transaction.prepare_cached(&format!(
        "SELECT status, version FROM seats WHERE event_no = {no} AND ordinal = ?1"
    ))?;
    let mut take_seat = transaction.prepare_cached(&format!(
        "UPDATE seats SET status = 1, hold_id = ?1, hold_expires_at = ?2, version = version + 1
         WHERE event_no = {no} AND ordinal = ?3 AND status = 0 AND version = ?4"
    ))?;
    let mut add_hold = transaction.prepare_cached(&format!(
        "INSERT INTO holds (hold_id, event_no, account_id, status, expires_at, first_expires_at, created_at, seats,
           price_version, total_minor, order_id, grace_used, in_doubt)
         VALUES (?1, {no}, ?2, 'ACTIVE', ?3, ?3, ?4, ?5, 1, 7500, NULL, 0, 0)"
    ))?;
    let mut add_key = transaction.prepare_cached(&format!(
        "INSERT INTO idempotency_keys (event_no, key, digest, answer, created_at) VALUES ({no}, ?1, ?2, '{{}}', ?3)"
    ))?;
    let mut add_log = transaction.prepare_cached(&format!(
        "INSERT INTO log (event_no, version, at, kind, payload) VALUES ({no}, ?1, ?2, 'hold_placed', ?3)"
    ))?;
    for (index, group) in groups.iter().enumerate() {
        let version = first_version + index as i64;
        // Time first, then chance, as the server keeps ids and keys.
        let id = (u128::from(clock as u64) << 80 | u128::from(*group) << 24 | 1).to_be_bytes();
        let key = (u128::from(clock as u64 + version as u64 / 16) << 80 | rand::random::<u128>() >> 48)
            .to_be_bytes();
        let account = format!("a{group}");
        let expires_at = clock + 300_000;
        find_key.query_row([key], |_| Ok(())).optional()?;
        find_holds.query_row([&account], |_| Ok(())).optional()?;
        find_sold.query_row([&account], |row| row.get::<_, i64>(0))?;
        let first = *group as i64 * hall::GROUP as i64;
        for seat in first..first + hall::GROUP as i64 {
            let version: i64 = find_seat.query_row([seat], |row| row.get(1))?;
            anyhow::ensure!(take_seat.execute((id, expires_at, seat, version))? == 1, "seat {seat} is taken");
        }
        let seats = format!("[{first},{},{}]", first + 1, first + 2);
        add_hold.execute((id, &account, expires_at, clock, &seats))?;
        add_key.execute((key, key, clock))?;
        add_log.execute((version, clock, &seats))?;
    }
    transaction
        .prepare_cached(&format!("UPDATE events SET version = ?1 WHERE event_no = {no}"))?
        .execute([first_version + groups.len() as i64 - 1])?;
    drop((find_key, find_holds, find_sold, find_seat, take_seat, add_hold, add_key, add_log));
    transaction.commit()?;
    Ok(groups.len())
}
