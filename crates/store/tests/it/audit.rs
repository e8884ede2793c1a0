//! The audit bites: each check reports the damage it is there for, and names the thing.

use std::collections::BTreeSet;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use onsale_core::command::Command;
use onsale_core::gateway::IntentState;
use onsale_core::id::{HoldId, OperationId, OrderId};
use onsale_core::reconcile::{Callback, Verdict};
use onsale_core::time::{Timestamp, seconds};
use onsale_store::{Audit, audit_folder, backup_folder};
use rusqlite::Connection;

use crate::world::{HALL, World, account, ada, ben, checkout, hall, ordinals, place_hold, policy};

/// What the things of the sale are called.
struct Things {
    /// Of ada, who has paid for seats 0 and 1.
    sold: OrderId,
    sold_hold: HoldId,
    paid_by: OperationId,
    capture: OperationId,
    /// Of ben, who holds seats 2 and 3.
    held: HoldId,
    /// Of cyd, who is paying for seat 4.
    pending: OrderId,
    pending_hold: HoldId,
    attempt: OperationId,
    /// Of dan, whose payment came when his hold was over.
    late: OperationId,
}

/// A sale with something of everything in it. Seat 9 is kept from sale; nobody ever wanted 6 and 7.
fn sale() -> (World, Things) {
    let mut policy = policy();
    policy.hold_ttl_ms = 600_000;
    let world = hall(10, policy.clone());
    let dan = account("dan");
    let (late_order, late) = world.checkout(world.hold(&dan, &[5]), &dan);
    world.pass_ms(policy.hold_ttl_ms + policy.payment_grace_ms);
    world.submit(Command::ExpireHold { hold: world.order(late_order).order.hold });
    world.observe(late, world.observed(late_order, late, "pi_late", IntentState::Authorized));

    let (sold, paid_by) = world.sell(&ada(), &[0, 1], "pi_sold");
    let capture = world.live(sold, onsale_core::payment::OperationKind::Capture).expect("it is sold").id;
    world.observe(capture, world.observed(sold, paid_by, "pi_sold", IntentState::Captured));
    let held = world.hold(&ben(), &[2, 3]);
    let cyd = account("cyd");
    let placed = world.submit_keyed(11, 1, place_hold(&cyd, &[4]));
    let onsale_core::command::Outcome::HoldPlaced(placed) = placed.outcome else { panic!("seat 4 is free") };
    let pending_hold = placed.hold.id;
    world.submit_keyed(12, 1, checkout(pending_hold, &cyd));
    let pending = world.hold_view(pending_hold).hold.order.expect("the checkout has begun");
    let attempt = world.live(pending, onsale_core::payment::OperationKind::Authorize).expect("it is open").id;
    world.submit(Command::SetSeatsStatus {
        event: HALL,
        manifest_version: 1,
        seats: ordinals(&[9]),
        not_for_sale: true,
        actor: "key_1".to_owned(),
    });
    judge(&world, "evt_parked", "pi_stray", None);
    judge(&world, "evt_conflict", "pi_sold", Some(pending));
    let sold_hold = world.order(sold).order.hold;
    (world, Things { sold, sold_hold, paid_by, capture, held, pending, pending_hold, attempt, late })
}

fn judge(world: &World, id: &str, reference: &str, claimed_order: Option<OrderId>) {
    let callback = Box::new(Callback {
        provider_event_id: id.to_owned(),
        digest: 1,
        kind: "payment_intent.succeeded".to_owned(),
        reference: Some(reference.to_owned()),
        claimed_order,
        verdict: Verdict::Parked,
        received_at: Timestamp::ZERO,
        due_at: Timestamp::ZERO,
        case: None,
    });
    world.submit(Command::JudgeCallback { event: HALL, callback, observation: None, relevant: true });
}

/// Damages a copy of a sale and audits it.
fn damaged(world: &World, damage: impl FnOnce(&Path, Connection)) -> Audit {
    let copy = tempfile::tempdir().expect("a folder can be made");
    let file = copy.path().join("onsale.db");
    backup_folder(world.folder.path(), &file).expect("a copy can be made");
    let db = Connection::open(&file).expect("the copy opens");
    db.execute_batch("PRAGMA ignore_check_constraints = ON").expect("it can be set");
    damage(&file, db);
    audit_folder(copy.path(), world.now()).expect("a damaged database is audited")
}

fn reports(audit: &Audit, id: &str, thing: &str) {
    let check = audit.checks.iter().find(|check| check.id == id).expect("there is such a check");
    let named = check.rows.iter().any(|row| row.contains(thing));
    let found: Vec<_> = audit.checks.iter().filter(|check| check.violations > 0).collect();
    assert!(named, "{id} doesn't report {thing:?}: {found:?}");
}

/// A literal of an id.
fn blob(bits: u128) -> String {
    format!("x'{bits:032x}'")
}

#[test]
fn each_check_reports_the_damage_it_is_there_for() {
    let (world, things) = sale();
    let (sold, sold_hold) = (blob(things.sold.0), blob(things.sold_hold.0));
    let (held, pending) = (blob(things.held.0), blob(things.pending.0));
    let (pending_hold, late) = (blob(things.pending_hold.0), blob(things.late.0));
    let (attempt, paid_by, capture) =
        (blob(things.attempt.0), blob(things.paid_by.0), blob(things.capture.0));
    let free = "status = 0, hold_id = NULL, hold_expires_at = NULL, order_id = NULL";
    let old = world.now().millis() - seconds(4 * 86_400);
    let table = [
        ("I-1", "UPDATE seats SET order_id = zeroblob(16) WHERE ordinal = 0".to_owned(), "ordinal 0".to_owned()),
        ("I-1", format!("UPDATE holds SET seats = '[1]' WHERE hold_id = {sold_hold}"), "ordinal 0".to_owned()),
        ("I-2", format!("UPDATE seats SET {free} WHERE ordinal = 1"), things.sold.to_string()),
        ("I-2", format!("UPDATE orders SET seat_count = 3 WHERE order_id = {sold}"), things.sold.to_string()),
        ("I-3", "UPDATE seats SET hold_expires_at = 1 WHERE ordinal = 2".to_owned(), "ordinal 2".to_owned()),
        ("I-3", format!("DELETE FROM holds WHERE hold_id = {held}"), things.held.to_string()),
        ("I-4", format!("UPDATE seats SET {free} WHERE ordinal = 3"), things.held.to_string()),
        ("I-5", format!("UPDATE holds SET status = 'CONVERTED' WHERE hold_id = {held}"), things.held.to_string()),
        ("I-5", format!("UPDATE holds SET status = 'RELEASED' WHERE hold_id = {sold_hold}"), things.sold_hold.to_string()),
        ("I-6", format!("UPDATE orders SET account_id = 'eve' WHERE order_id = {sold}"), things.sold.to_string()),
        ("I-6", format!("UPDATE holds SET order_id = zeroblob(16) WHERE hold_id = {held}"), things.held.to_string()),
        ("I-7", format!("UPDATE orders SET status = 'EXPIRED' WHERE order_id = {pending}"), things.pending.to_string()),
        ("I-8", format!("UPDATE holds SET total_minor = 1 WHERE hold_id = {held}"), things.held.to_string()),
        ("I-8", format!("UPDATE orders SET amount_minor = 1 WHERE order_id = {sold}"), things.sold_hold.to_string()),
        ("I-9", format!("UPDATE operations SET status = 'FAILED' WHERE operation_id = {paid_by}"), things.paid_by.to_string()),
        ("I-9", format!("UPDATE operations SET amount_minor = 1 WHERE operation_id = {paid_by}"), things.sold.to_string()),
        (
            "I-10",
            format!(
                "DROP INDEX operations_live; INSERT INTO operations SELECT randomblob(16), event_no, order_id, 9, kind, status,
                   target, NULL, amount_minor, currency, NULL, NULL, NULL, 0, 0, 0, 0 FROM operations WHERE operation_id = {attempt}"
            ),
            things.pending.to_string(),
        ),
        ("I-10", format!("UPDATE operations SET target = {late} WHERE operation_id = {capture}"), things.late.to_string()),
        (
            "I-11",
            format!("DELETE FROM operations WHERE target = {late}; DELETE FROM cases WHERE operation_id = {late}"),
            things.late.to_string(),
        ),
        ("I-12", format!("UPDATE orders SET status = 'CANCELLED' WHERE order_id = {sold}"), things.capture.to_string()),
        ("I-12", format!("DELETE FROM operations WHERE operation_id = {capture}"), things.paid_by.to_string()),
        ("I-13", "UPDATE events SET payment_pending = 7 WHERE event_no = 1".to_owned(), "payment_pending 7, counted 1".to_owned()),
        ("I-13", format!("UPDATE holds SET order_id = NULL WHERE hold_id = {pending_hold}"), "event_no 1, payment_pending 0".to_owned()),
        ("I-14", "UPDATE events SET tickets_per_account_max = 1 WHERE event_no = 1".to_owned(), "account_id ada, tickets 2".to_owned()),
        ("I-15", "DELETE FROM log WHERE event_no = 1 AND version = 2".to_owned(), "what log".to_owned()),
        ("I-15", "UPDATE events SET version = version + 1 WHERE event_no = 1".to_owned(), "what log".to_owned()),
        ("I-15", "UPDATE seats SET version = version + 1 WHERE ordinal = 2".to_owned(), "what seat 2".to_owned()),
        ("I-15", format!("UPDATE seats SET {free}, version = 0 WHERE ordinal = 2"), "what seat 2".to_owned()),
        ("I-15", "UPDATE seats SET status = 0 WHERE ordinal = 9".to_owned(), "what seat 9".to_owned()),
        ("I-16", format!("UPDATE idempotency_keys SET created_at = {old}"), things.pending_hold.to_string()),
        ("I-16", format!("UPDATE idempotency_keys SET answer = '{}'", HoldId(7)), HoldId(7).to_string()),
        ("I-16", format!("UPDATE idempotency_keys SET answer = '{}'", OrderId(7)), OrderId(7).to_string()),
        ("I-17", format!("UPDATE callbacks SET received_at = {old}, due_at = {old} WHERE verdict = 'parked'"), "evt_parked".to_owned()),
        ("I-17", "DELETE FROM cases WHERE kind = 'callback_conflict'".to_owned(), "evt_conflict".to_owned()),
        (
            "I-17",
            "DELETE FROM cases WHERE kind = 'callback_conflict'; UPDATE callbacks SET case_id = NULL".to_owned(),
            "evt_conflict".to_owned(),
        ),
        ("I-30", format!("UPDATE orders SET payment_status = 'AUTHORIZED' WHERE order_id = {sold}"), things.sold.to_string()),
        ("I-30", format!("UPDATE orders SET payment_status = 'VOIDED' WHERE order_id = {pending}"), things.pending.to_string()),
        ("I-31", "DELETE FROM manifest_seats WHERE ordinal = 7".to_owned(), "printed 9".to_owned()),
        ("I-31", "UPDATE seats SET price_level = 5 WHERE ordinal = 7".to_owned(), "seat_count 7".to_owned()),
        ("I-32", "UPDATE seats SET status = 9 WHERE ordinal = 7".to_owned(), "CHECK constraint failed in seats".to_owned()),
    ];
    let clean = damaged(&world, |_, _| ());
    assert_eq!(clean.violations(), 0, "{clean:?}");
    for (id, damage, thing) in &table {
        let audit = damaged(&world, |_, db| db.execute_batch(damage).expect(damage));
        reports(&audit, id, thing);
    }
    let damaged_by: BTreeSet<&str> = table.iter().map(|(id, ..)| *id).collect();
    let all: BTreeSet<&str> = clean.checks.iter().map(|check| check.id).collect();
    assert_eq!(damaged_by, all, "every check is shown to bite");
    world.finish();
}

/// Pages that can't be read are a finding, and the checks that can be made are made.
#[test]
fn damaged_pages_are_reported_beside_all_else() {
    let (world, things) = sale();
    let audit = damaged(&world, |file, db| {
        let text =
            "SELECT (SELECT rootpage FROM sqlite_schema WHERE name = 'log'), page_size FROM pragma_page_size";
        let (page, size): (u32, u32) =
            db.query_row(text, [], |row| Ok((row.get(0)?, row.get(1)?))).expect("the log has a page");
        db.execute_batch("UPDATE orders SET account_id = 'eve' WHERE status = 'CONFIRMED'")
            .expect("it is damaged");
        drop(db);
        let mut file = std::fs::OpenOptions::new().write(true).open(file).expect("the copy is a file");
        file.seek(SeekFrom::Start(u64::from(page - 1) * u64::from(size))).expect("the page is in it");
        file.write_all(&vec![0xff; size as usize]).expect("it is damaged");
    });
    reports(&audit, "I-15", "malformed");
    reports(&audit, "I-32", "btreeInitPage");
    reports(&audit, "I-6", &things.sold.to_string());
    world.finish();
}

/// The passing of time alone breaks nothing: a copy may be looked into years later.
#[test]
fn a_database_that_stands_still_stays_whole() {
    let (world, _) = sale();
    let years_later = world.now().plus_ms(seconds(3 * 366 * 86_400));
    let audit = audit_folder(world.folder.path(), years_later).expect("it can be audited");
    assert_eq!(audit.violations(), 0, "{audit:?}");
    world.finish();
}

/// The first rows are named and all are counted.
#[test]
fn many_violations_are_counted_and_some_are_named() {
    let world = hall(100, policy());
    let audit = damaged(&world, |_, db| {
        db.execute_batch("UPDATE seats SET price_level = 5").expect("it is damaged");
    });
    let check = audit.checks.iter().find(|check| check.id == "I-31").expect("there is such a check");
    assert_eq!((check.violations, check.rows.len()), (100, onsale_store::AUDIT_ROWS_MAX));
    assert!(audit.violations() >= 100);
    world.finish();
}
