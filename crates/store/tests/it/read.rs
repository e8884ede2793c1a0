//! What is shown agrees with what was decided.

use std::sync::Arc;

use onsale_core::command::{Command, Outcome};
use onsale_core::gateway::IntentState;
use onsale_core::id::{EventNo, KeyId, OrderId, SeatOrdinal};
use onsale_core::manifest::{GaArea, Manifest};
use onsale_core::payment::OperationKind;
use onsale_core::reconcile::CaseStatus;
use onsale_core::time::Timestamp;
use onsale_store::{ApiKey, EventReport, Role, StoreError};

use crate::world::{HALL, PRICES, World, account, ada, ben, done, draft, hall, manifest, place_hold, policy};

#[test]
fn a_manifest_reads_back_as_it_was_put() {
    let world = World::empty();
    world.submit(Command::CreateEvent(Box::new(draft(HALL, policy()))));
    assert!(world.store.read(|db| db.manifest(HALL)).unwrap().is_none());
    assert!(world.store.read(|db| db.manifest(EventNo(9))).unwrap().is_none());
    let mut put: Manifest = manifest(4);
    put.price_levels[0].color = Some("#a03030".to_owned());
    put.sections.push("balcony – “high”".to_owned());
    put.ga_areas = vec![GaArea { ga_area: "floor".to_owned(), capacity: 900, price_level: 1, buckets: 2 }];
    (put.seats[1].accessible, put.seats[2].companion_of) = (true, Some("S-1".to_owned()));
    (put.seats[2].section, put.seats[2].x, put.seats[2].y) = (1, -12.25, 0.1);
    (put.seats[3].restricted_view, put.seats[3].not_for_sale) = (true, true);
    world.submit(Command::ReplaceManifest { event: HALL, manifest: Arc::new(put.clone()) });
    let view = world.store.read(|db| db.manifest(HALL)).unwrap().expect("there is one");
    assert_eq!((view.version, view.manifest, view.price_version), (1, put, 0));
    assert!(view.prices.is_empty(), "nobody has set any");
    assert_eq!(world.digits(), "0003");
    // A replaced manifest leaves nothing of itself behind.
    world.submit(Command::ReplaceManifest { event: HALL, manifest: Arc::new(manifest(2)) });
    let view = world.store.read(|db| db.manifest(HALL)).unwrap().expect("there is one");
    assert_eq!((view.version, view.manifest), (2, manifest(2)));
    let changes = world.store.read(|db| db.seat_changes(HALL, 1, 10)).unwrap().expect("the log reaches back");
    assert!(changes.replaced && changes.version == 3);
    world.finish();
}

#[test]
fn events_are_listed_newest_first_and_without_the_house() {
    let world = World::empty();
    for (number, age_ms) in [(3, 30), (1, 10), (2, 20)] {
        let mut event = draft(EventNo(number), policy());
        event.created_at = event.created_at.plus_ms(-age_ms);
        world.submit(Command::CreateEvent(Box::new(event)));
    }
    let events = world.store.read(|db| db.events()).unwrap();
    assert_eq!(events.iter().map(|event| event.no().0).collect::<Vec<_>>(), [1, 2, 3]);
    let versions = world.store.read(|db| db.event_versions()).unwrap();
    assert_eq!(versions, [(EventNo(1), 1), (EventNo(2), 1), (EventNo(3), 1)]);
    assert!(world.store.read(|db| db.event(EventNo(4))).unwrap().is_none());
    assert!(world.store.read(|db| db.seat_digits(EventNo(4))).unwrap().is_none());
    world.finish();
}

#[test]
fn the_log_is_read_in_pieces_and_says_where_it_no_longer_reaches() {
    let world = hall(4, policy());
    let before = world.event().version;
    let (order, _) = world.sell(&ada(), &[1, 2], "pi_1");
    let mut version = before;
    let (mut pieces, mut seats, mut orders) = (0, Vec::new(), Vec::<OrderId>::new());
    while version < world.event().version {
        let piece =
            world.store.read(|db| db.seat_changes(HALL, version, 1)).unwrap().expect("it reaches back");
        assert_eq!(piece.version, version + 1);
        (version, pieces) = (piece.version, pieces + 1);
        seats.extend(piece.changes.into_iter().map(|(_, SeatOrdinal(seat), digit)| (seat, digit)));
        let entries = world.store.read(|db| db.log_after(HALL, version - 1, 1)).unwrap();
        orders.extend(entries.iter().filter_map(|entry| entry.kind.order()));
    }
    assert_eq!(seats, [(1, 1), (2, 1), (1, 2), (2, 2)]);
    assert!(pieces >= 3 && !orders.is_empty() && orders.iter().all(|found| *found == order));
    let nothing =
        world.store.read(|db| db.seat_changes(HALL, version, 10)).unwrap().expect("it reaches back");
    assert_eq!((nothing.version, nothing.changes.len()), (version, 0));

    let db = world.raw();
    db.execute("CREATE TEMP TABLE kept AS SELECT * FROM log WHERE event_no = 1 AND version < 4");
    db.execute("DELETE FROM log WHERE event_no = 1 AND version < 4");
    assert!(world.store.read(|db| db.seat_changes(HALL, 1, 10)).unwrap().is_none());
    assert!(world.store.read(|db| db.seat_changes(HALL, 3, 10)).unwrap().is_some());
    db.execute("INSERT INTO log SELECT * FROM kept");
    world.finish();
}

#[test]
fn a_report_counts_seats_orders_and_money() {
    let world = hall(9, policy());
    world.hold(&account("gus"), &[8]);
    let (sold, paid_by) = world.sell(&ada(), &[0, 1], "pi_1");
    let capture = world.live(sold, OperationKind::Capture).expect("it is sold").id;
    world.observe(capture, world.observed(sold, paid_by, "pi_1", IntentState::Captured));
    let (undone, _) = world.sell(&ben(), &[2], "pi_2");
    let capture = world.live(undone, OperationKind::Capture).expect("it is sold").id;
    world.answer(capture, onsale_core::command::Answer::Refused("expired_card".to_owned()));
    world.sell(&account("cyd"), &[3], "pi_3");
    world.checkout(world.hold(&account("dan"), &[4]), &account("dan"));
    let report = world.store.read(|db| db.report(HALL)).unwrap();
    let expected = EventReport {
        available: 4,
        held: 2,
        sold: 3,
        not_for_sale: 0,
        orders_awaiting_payment: 1,
        orders_confirmed: 2,
        orders_cancelled: 1,
        orders_expired: 0,
        gross_minor: PRICES[0] + 2 * PRICES[1],
        captured_minor: PRICES[0] + PRICES[1],
        returning_minor: PRICES[0],
        refunded_minor: 0,
        ga_capacity: 0,
        ga_held: 0,
        ga_sold: 0,
        tickets_issued: 0,
        tickets_admitted: 0,
        cases_open: 1,
    };
    assert_eq!(format!("{report:?}"), format!("{expected:?}"));

    world.pass_ms(policy().hold_ttl_ms);
    let backlog = world.store.read(|db| db.backlog(world.now())).unwrap();
    let waiting: Vec<_> = backlog.iter().map(|(what, count, _)| (*what, *count)).collect();
    let expected = [
        ("expired_holds", 1),
        ("payment_unknown", 0),
        ("callbacks_parked", 0),
        ("cases_open", 1),
        ("tickets_due", 1),
        ("webhooks_undelivered", 0),
    ];
    assert_eq!(waiting, expected);
    assert_eq!(backlog[0].2, Some(world.now()), "the oldest is over just now");
    assert_eq!(world.store.read(|db| db.order_account(sold)).unwrap(), Some(ada()));
    assert_eq!(world.store.read(|db| db.order_account(OrderId(7))).unwrap(), None);
    assert!(world.store.read(|db| db.has_operation(paid_by)).unwrap());
    world.finish();
}

#[test]
fn what_waits_longest_comes_first_and_no_more_than_asked_for() {
    let world = hall(6, policy());
    let holds = [0, 1, 2].map(|seat| {
        world.pass_ms(1_000);
        world.hold(&account(&format!("acc_{seat}")), &[seat])
    });
    let orders = [3, 4, 5].map(|seat| {
        world.pass_ms(1_000);
        let buyer = account(&format!("acc_{seat}"));
        world.checkout(world.hold(&buyer, &[seat]), &buyer)
    });
    let due = world.store.read(|db| db.due_operations(world.now(), 2)).unwrap();
    let due: Vec<_> = due.iter().map(|view| view.operation.id).collect();
    assert_eq!(due, [orders[0].1, orders[1].1]);
    world.pass_ms(policy().hold_ttl_ms);
    assert_eq!(world.store.read(|db| db.due_holds(world.now(), 2)).unwrap(), holds[..2]);
    world.finish();
}

#[test]
fn cases_come_open_ones_first_and_oldest_first() {
    let world = hall(6, policy());
    for seat in 0..4 {
        let buyer = account(&format!("acc_{seat}"));
        let name = format!("pi_{seat}");
        world.sell(&buyer, &[seat], &name);
        let order = world.store.read(|db| db.due_operations(world.now(), 10)).unwrap();
        let capture = order.iter().find(|view| view.operation.reference.as_deref() == Some(&name));
        let capture = capture.expect("it is sold").operation.id;
        world.answer(capture, onsale_core::command::Answer::Refused("expired_card".to_owned()));
        world.pass_ms(1_000);
    }
    let list = |status, limit| {
        let cases = world.store.read(|db| db.cases(status, limit)).unwrap();
        cases.into_iter().map(|case| (case.id, case.status)).collect::<Vec<_>>()
    };
    let open = list(Some(CaseStatus::Open), 10);
    assert_eq!((open.len(), list(Some(CaseStatus::Closed), 10).len()), (4, 0));
    let ids: Vec<_> = open.iter().map(|(id, _)| *id).collect();
    world.submit(Command::ResolveCase {
        case: ids[0],
        action: onsale_core::reconcile::CaseAction::Dismiss,
        note: "by hand".to_owned(),
        actor: "key_1".to_owned(),
    });
    let all: Vec<_> = list(None, 10).into_iter().map(|(id, _)| id).collect();
    assert_eq!(all, [ids[1], ids[2], ids[3], ids[0]]);
    assert_eq!(list(Some(CaseStatus::Closed), 10), [(ids[0], CaseStatus::Closed)]);
    assert_eq!(list(Some(CaseStatus::Open), 2).len(), 2);
    world.finish();
}

#[test]
fn keys_and_secrets_outlive_a_restart_and_a_revoked_key_is_gone() {
    let mut world = hall(1, policy());
    let key = |number: u128, role| ApiKey {
        key_id: KeyId(number),
        secret_sha256: [number as u8; 32],
        role,
        name: format!("key {number}"),
        created_at: world.now(),
    };
    for (number, role) in [(1, Role::Operator), (2, Role::Partner), (3, Role::Gate), (4, Role::Reader)] {
        done(world.store.add_key(key(number, role))).unwrap();
        assert_eq!(Role::parse(role.as_str()), Some(role));
    }
    let again = done(world.store.add_key(key(1, Role::Gate)));
    assert!(matches!(again, Err(StoreError::Sqlite(_) | StoreError::Postgres(_))), "{again:?}");
    assert!(done(world.store.revoke_key(KeyId(2), world.now())).unwrap());
    assert!(done(world.store.revoke_key(KeyId(2), world.now())).unwrap(), "again is no error");
    assert!(!done(world.store.revoke_key(KeyId(9), world.now())).unwrap());
    let made = done(world.store.secret("cookie", vec![7; 32], world.now())).unwrap();
    assert_eq!(made, [7; 32]);
    world.reopen_as_it_was();
    assert_eq!(done(world.store.secret("cookie", vec![8; 32], world.now())).unwrap(), [7; 32]);
    let keys = world.store.read(|db| db.api_keys()).unwrap();
    let kept: Vec<_> = keys.iter().map(|key| (key.key_id.0, key.role, key.name.as_str())).collect();
    assert_eq!(kept, [(1, Role::Operator, "key 1"), (3, Role::Gate, "key 3"), (4, Role::Reader, "key 4")]);
    assert_eq!((keys[1].secret_sha256, keys[1].created_at), ([3; 32], world.now()));
    world.store.close();
    assert!(matches!(done(world.store.revoke_key(KeyId(1), world.now())), Err(StoreError::Closed)));
    world.finish();
}

/// a key that is forgotten is a new contest.
#[test]
fn a_finished_request_is_forgotten_after_its_time() {
    let world = hall(3, policy());
    let first = world.submit_keyed(1, 1, place_hold(&ada(), &[0]));
    world.pass_ms(10);
    world.submit_keyed(2, 1, place_hold(&ada(), &[1]));
    assert_eq!(done(world.store.forget_keys(world.now())).unwrap(), 1);
    assert_eq!(done(world.store.forget_keys(world.now())).unwrap(), 0);
    let again = world.submit_keyed(1, 1, place_hold(&ada(), &[0]));
    assert!(matches!(again.outcome, Outcome::Refused(_)) && !again.replayed, "{again:?} after {first:?}");
    assert!(world.submit_keyed(2, 1, place_hold(&ada(), &[1])).replayed);
    world.finish();
}

/// A failed look leaves the pool whole.
#[test]
fn a_look_that_fails_harms_no_other() {
    let world = hall(1, policy());
    for _ in 0..20 {
        let failed = world.store.read(|db| {
            db.event(HALL)?;
            Err::<(), _>(StoreError::Closed)
        });
        assert!(failed.is_err());
        assert!(world.store.read(|db| db.event(HALL)).unwrap().is_some());
    }
    let inner = world.store.read(|_| world.store.read(|db| db.events()));
    assert_eq!(inner.unwrap().len(), 1, "one look within another");
    let far = Timestamp::from_millis(i64::MAX);
    assert_eq!(world.store.read(|db| db.due_holds(far, 10)).unwrap(), []);
    world.finish();
}
