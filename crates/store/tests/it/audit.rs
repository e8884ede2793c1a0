//! The audit bites: each check reports the damage it is there for, and names the thing.

use std::collections::BTreeSet;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use onsale_core::command::{Command, Showing};
use onsale_core::gateway::IntentState;
use onsale_core::id::{EventNo, HoldId, OperationId, OrderId, TicketId};
use onsale_core::reconcile::{Callback, Verdict};
use onsale_core::ticket::Direction;
use onsale_core::time::{Timestamp, seconds};
use onsale_store::{Audit, audit_folder, backup_folder};
use rusqlite::Connection;

use crate::world::{HALL, World, account, ada, ben, checkout, feed, hall, ordinals, place_hold, policy};

/// What the things of the sale are called.
struct Things {
    /// Of ada, who has paid for seats 0 and 1.
    sold: OrderId,
    sold_hold: HoldId,
    paid_by: OperationId,
    capture: OperationId,
    /// For seat 0; its holder is inside.
    ticket: TicketId,
    /// Of ben, who holds seats 2 and 3.
    held: HoldId,
    /// Of cyd, who is paying for seat 4.
    pending: OrderId,
    pending_hold: HoldId,
    attempt: OperationId,
    /// Of dan, whose payment came when his hold was over.
    late: OperationId,
}

impl Things {
    /// Each by its name in [`DAMAGE`]: bits and text of its id.
    fn named(&self) -> [(&'static str, u128, String); 10] {
        [
            ("{sold}", self.sold.0, self.sold.to_string()),
            ("{sold_hold}", self.sold_hold.0, self.sold_hold.to_string()),
            ("{paid_by}", self.paid_by.0, self.paid_by.to_string()),
            ("{capture}", self.capture.0, self.capture.to_string()),
            ("{ticket}", self.ticket.0, self.ticket.to_string()),
            ("{held}", self.held.0, self.held.to_string()),
            ("{pending}", self.pending.0, self.pending.to_string()),
            ("{pending_hold}", self.pending_hold.0, self.pending_hold.to_string()),
            ("{attempt}", self.attempt.0, self.attempt.to_string()),
            ("{late}", self.late.0, self.late.to_string()),
        ]
    }
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
    world.submit(Command::IssueTickets { order: sold });
    let ticket = world.store.read(|db| db.tickets(sold)).expect("they can be read")[0].id;
    world.submit(Command::ScanTicket(showing("scan_in", ticket)));
    world.submit(Command::ScanTicket(showing("scan_again", ticket)));
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
    assert!(feed(&world.store, &world.add_endpoint(1)) > 4);
    (world, Things { sold, sold_hold, paid_by, capture, ticket, held, pending, pending_hold, attempt, late })
}

fn showing(scan: &str, ticket: TicketId) -> Showing {
    Showing {
        scan: scan.into(),
        ticket,
        generation: 1,
        at: None,
        direction: Direction::In,
        gate: "north".to_owned(),
        scanned_at: None,
        let_in_offline: false,
    }
}

fn judge(world: &World, id: &str, reference: &str, claimed_order: Option<OrderId>) {
    let callback = Box::new(Callback {
        provider_event_id: id.to_owned(),
        event: EventNo::HOUSE,
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

/// A check, damage that it must report, and what its report must name. `{sold}` in damage is that thing's id as stored,
/// and in a name it is the id as the API writes it.
const DAMAGE: &[(&str, &str, &str)] = &[
    ("I-1", "UPDATE seats SET order_id = zeroblob(16) WHERE ordinal = 0", "ordinal 0"),
    ("I-1", "UPDATE holds SET seats = '[1]' WHERE hold_id = {sold_hold}", "ordinal 0"),
    ("I-2", "UPDATE seats SET {free} WHERE ordinal = 1", "{sold}"),
    ("I-2", "UPDATE orders SET ticket_count = 3 WHERE order_id = {sold}", "{sold}"),
    ("I-3", "UPDATE seats SET hold_expires_at = 1 WHERE ordinal = 2", "ordinal 2"),
    ("I-3", "DELETE FROM holds WHERE hold_id = {held}", "{held}"),
    ("I-4", "UPDATE seats SET {free} WHERE ordinal = 3", "{held}"),
    ("I-5", "UPDATE holds SET status = 'CONVERTED' WHERE hold_id = {held}", "{held}"),
    ("I-5", "UPDATE holds SET status = 'RELEASED' WHERE hold_id = {sold_hold}", "{sold_hold}"),
    ("I-6", "UPDATE orders SET account_id = 'eve' WHERE order_id = {sold}", "{sold}"),
    ("I-6", "UPDATE holds SET order_id = zeroblob(16) WHERE hold_id = {held}", "{held}"),
    ("I-7", "UPDATE orders SET status = 'EXPIRED' WHERE order_id = {pending}", "{pending}"),
    ("I-8", "UPDATE holds SET total_minor = 1 WHERE hold_id = {held}", "{held}"),
    ("I-8", "UPDATE orders SET amount_minor = 1 WHERE order_id = {sold}", "{sold_hold}"),
    ("I-9", "UPDATE operations SET status = 'FAILED' WHERE operation_id = {paid_by}", "{paid_by}"),
    ("I-9", "UPDATE operations SET amount_minor = 1 WHERE operation_id = {paid_by}", "{sold}"),
    (
        "I-10",
        "DROP INDEX operations_live;
         INSERT INTO operations SELECT randomblob(16), event_no, order_id, 9, kind, status, target, NULL, amount_minor,
           currency, 0, NULL, NULL, NULL, 0, 0, 0, 0 FROM operations WHERE operation_id = {attempt}",
        "{pending}",
    ),
    ("I-10", "UPDATE operations SET target = {late} WHERE operation_id = {capture}", "{late}"),
    ("I-11", "DELETE FROM operations WHERE target = {late}; DELETE FROM cases WHERE operation_id = {late}", "{late}"),
    ("I-12", "UPDATE orders SET status = 'CANCELLED' WHERE order_id = {sold}", "{capture}"),
    ("I-12", "DELETE FROM operations WHERE operation_id = {capture}", "{paid_by}"),
    ("I-13", "UPDATE events SET payment_pending = 7 WHERE event_no = 1", "payment_pending 7, counted 1"),
    ("I-13", "UPDATE holds SET order_id = NULL WHERE hold_id = {pending_hold}", "event_no 1, payment_pending 0"),
    ("I-14", "UPDATE events SET tickets_per_account_max = 1 WHERE event_no = 1", "account_id ada, tickets 2"),
    ("I-15", "DELETE FROM log WHERE event_no = 1 AND version = 2", "what log"),
    ("I-15", "UPDATE events SET version = version + 1 WHERE event_no = 1", "what log"),
    ("I-15", "UPDATE seats SET version = version + 1 WHERE ordinal = 2", "what seat 2"),
    ("I-15", "UPDATE seats SET {free}, version = 0 WHERE ordinal = 2", "what seat 2"),
    ("I-15", "UPDATE seats SET status = 0 WHERE ordinal = 9", "what seat 9"),
    ("I-16", "UPDATE idempotency_keys SET created_at = {old}", "{pending_hold}"),
    ("I-16", "UPDATE idempotency_keys SET answer = 'hld_0'", "hld_0"),
    ("I-16", "UPDATE idempotency_keys SET answer = 'ord_0'", "ord_0"),
    ("I-17", "UPDATE callbacks SET received_at = {old}, due_at = {old} WHERE verdict = 'parked'", "evt_parked"),
    ("I-17", "DELETE FROM cases WHERE kind = 'callback_conflict'", "evt_conflict"),
    (
        "I-17",
        "DELETE FROM cases WHERE kind = 'callback_conflict'; UPDATE callbacks SET case_id = NULL",
        "evt_conflict",
    ),
    ("I-23", "UPDATE orders SET ticketed = 0 WHERE order_id = {sold}", "{sold}"),
    ("I-23", "DELETE FROM tickets WHERE ticket_id = {ticket}", "{sold}"),
    ("I-23", "UPDATE operations SET status = 'PENDING' WHERE operation_id = {capture}", "{sold}"),
    ("I-23", "DELETE FROM orders WHERE order_id = {sold}", "{sold}"),
    ("I-23", "UPDATE tickets SET ordinal = NULL, area = 3 WHERE ticket_id = {ticket}", "ticket_count 3, tickets 1"),
    ("I-23", "UPDATE holds SET ga = '[{\"a\":4,\"b\":0,\"q\":2}]' WHERE hold_id = {sold_hold}", "ticket_count 4, tickets -2"),
    ("I-24", "UPDATE orders SET status = 'CANCELLED' WHERE order_id = {sold}", "{sold}"),
    ("I-24", "UPDATE seats SET {free} WHERE ordinal = 0", "{sold}"),
    ("I-24", "UPDATE seats SET order_id = {pending} WHERE ordinal = 0", "{sold}"),
    ("I-24", "UPDATE tickets SET status = 'SUSPENDED' WHERE ticket_id = {ticket}", "{sold}, status SUSPENDED"),
    (
        "I-24",
        "INSERT INTO operations SELECT x'00000000000000000000000000000001', event_no, order_id, 9, 'REFUND', 'UNKNOWN', target, NULL,
           amount_minor, currency, 0, NULL, NULL, NULL, 0, 0, 0, 0 FROM operations WHERE operation_id = {capture};
         INSERT INTO refunds VALUES (x'00000000000000000000000000000001', 1, {sold}, '', 0, '[0]', '[]', '', 0)",
        "{sold}, status VALID",
    ),
    ("I-25", "UPDATE tickets SET inside = 0 WHERE ticket_id = {ticket}", "{ticket}"),
    ("I-25", "UPDATE tickets SET admitted_at = 1 WHERE ticket_id = {ticket}", "{ticket}"),
    ("I-25", "DELETE FROM scans WHERE scan_id = 'scan_in'", "{ticket}"),
    ("I-25", "UPDATE scans SET result = 'ADMIT' WHERE scan_id = 'scan_again'", "{ticket}"),
    (
        "I-25",
        "UPDATE scans SET result = 'ADMIT' WHERE scan_id = 'scan_again';
         UPDATE tickets SET admissions = 2 WHERE ticket_id = {ticket}",
        "{ticket}, inside 1, admissions 2",
    ),
    ("I-25", "UPDATE scans SET result = 'INVALID' WHERE scan_id = 'scan_again'", "{ticket}, inside -1"),
    ("I-25", "UPDATE scans SET direction = 'OUT' WHERE scan_id = 'scan_in'", "{ticket}, inside -1"),
    ("I-25", "UPDATE scans SET event_no = 2 WHERE scan_id = 'scan_again'", "event_no 2, ticket_id {ticket}"),
    (
        "I-28",
        "INSERT INTO settlement_lines VALUES ('txn_1', 1, {sold}, x'00', 'charge', 1, 1, 'EUR', 1, 1)",
        "line_id txn_1",
    ),
    (
        "I-28",
        "INSERT INTO settlement_lines SELECT 'txn_1', 2, order_id, operation_id, 'charge', 1, 1, 'EUR', 1, 1 FROM operations
           WHERE kind = 'AUTHORIZE' AND order_id = {sold}",
        "line_id txn_1",
    ),
    ("I-29", "UPDATE holds SET account_id = 'anon_1' WHERE order_id = {sold}", "{sold}"),
    (
        "I-29",
        "UPDATE holds SET account_id = 'anon_1' WHERE order_id = {sold};
         UPDATE orders SET account_id = 'anon_1', email = 'ada@example.com' WHERE order_id = {sold}",
        "{sold}",
    ),
    ("I-27", "UPDATE webhook_progress SET version = version + 100 WHERE event_no = 1", "what beyond the log"),
    ("I-27", "DELETE FROM webhook_deliveries WHERE version = (SELECT max(version) FROM webhook_deliveries)", "what missing"),
    ("I-27", "UPDATE webhook_progress SET forgotten = 1 WHERE event_no = 1", "what missing"),
    (
        "I-27",
        "UPDATE webhook_deliveries SET version = 1 WHERE version = (SELECT min(version) FROM webhook_deliveries)",
        "what made up",
    ),
    ("I-30", "UPDATE orders SET payment_status = 'AUTHORIZED' WHERE order_id = {sold}", "{sold}"),
    ("I-30", "UPDATE orders SET payment_status = 'VOIDED' WHERE order_id = {pending}", "{pending}"),
    ("I-31", "DELETE FROM manifest_seats WHERE ordinal = 7", "printed 9"),
    ("I-31", "UPDATE seats SET price_level = 5 WHERE ordinal = 7", "seat_count 7"),
    ("I-32", "UPDATE seats SET status = 9 WHERE ordinal = 7", "CHECK constraint failed in seats"),
];

/// The same for a festival: `{order}` is ada's.
const DAMAGE_TO_PLACES: &[(&str, &str, &str)] = &[
    ("I-2", "UPDATE orders SET returned_seats = '[]' WHERE order_id = {order}", "{order}"),
    ("I-2", "UPDATE orders SET returned_ga = '[]' WHERE order_id = {order}", "{order}"),
    ("I-8", "UPDATE holds SET ga = '[]' WHERE ga <> '[]'", "{hold}"),
    (
        "I-18",
        "UPDATE ga_buckets SET capacity = capacity + 1 WHERE area = 0 AND bucket = 3",
        "area 0, capacity 100",
    ),
    ("I-18", "DELETE FROM quota_transfers WHERE status = 'IN_FLIGHT'", "in_flight 0"),
    ("I-19", "UPDATE ga_buckets SET held = held + 1 WHERE area = 1", "area 1, bucket 0, held 1"),
    ("I-19", "UPDATE ga_buckets SET sold = 0, held = held + sold WHERE sold > 0", "sold -"),
    ("I-19", "UPDATE orders SET returned_ga = '[]' WHERE order_id = {order}", "sold -1"),
    ("I-20", "UPDATE events SET ga_in_use = 3 WHERE event_no = 1", "ga_in_use 3"),
    ("I-20", "UPDATE events SET ga_max = 1 WHERE event_no = 1", "ga_max 1"),
    ("I-21", "UPDATE access_codes SET tickets_in_use = 4", "code SPONSOR, counted 1"),
    ("I-21", "UPDATE holds SET code = 'NOBODY' WHERE code IS NOT NULL", "code NOBODY"),
    ("I-22", "UPDATE holds SET code = NULL WHERE code IS NOT NULL", "ordinal 0, allocation 1"),
    ("I-22", "UPDATE access_codes SET allocation = 2", "ordinal 0, allocation 1"),
    ("I-26", "UPDATE operations SET amount_minor = 1000000 WHERE kind = 'REFUND'", "refunded 1000000"),
    ("I-26", "UPDATE orders SET returned_seats = '[]' WHERE order_id = {order}", "{order}"),
    ("I-26", "DELETE FROM operations WHERE kind = 'REFUND'", "{order}"),
    ("I-30", "UPDATE orders SET payment_status = 'REFUNDED' WHERE order_id = {order}", "{order}"),
];

fn damaged_places() -> BTreeSet<&'static str> {
    let (world, order) = crate::places::busy();
    let hold = world.order(order).order.hold;
    assert_eq!(damaged(&world, |_, _| ()).violations(), 0);
    for (id, damage, thing) in DAMAGE_TO_PLACES {
        let damage = damage.replace("{order}", &format!("x'{:032x}'", order.0));
        let audit = damaged(&world, |_, db| db.execute_batch(&damage).expect(&damage));
        let thing = thing.replace("{order}", &order.to_string()).replace("{hold}", &hold.to_string());
        reports(&audit, id, &thing);
    }
    world.finish();
    DAMAGE_TO_PLACES.iter().map(|(id, ..)| *id).collect()
}

#[test]
fn each_check_reports_the_damage_it_is_there_for() {
    let (world, things) = sale();
    let old = world.now().millis() - seconds(4 * 86_400);
    let free = "status = 0, hold_id = NULL, hold_expires_at = NULL, order_id = NULL";
    let fill = |text: &str, id: &dyn Fn(u128, String) -> String| {
        let named = things.named().into_iter();
        let text = text.replace("{free}", free).replace("{old}", &old.to_string());
        named.fold(text, |text, (name, bits, written)| text.replace(name, &id(bits, written)))
    };
    let clean = damaged(&world, |_, _| ());
    assert_eq!(clean.violations(), 0, "{clean:?}");
    for (id, damage, thing) in DAMAGE {
        let damage = fill(damage, &|bits, _| format!("x'{bits:032x}'"));
        let audit = damaged(&world, |_, db| db.execute_batch(&damage).expect(&damage));
        reports(&audit, id, &fill(thing, &|_, written| written));
    }
    let mut damaged_by: BTreeSet<&str> = DAMAGE.iter().map(|(id, ..)| *id).collect();
    damaged_by.extend(damaged_places());
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
