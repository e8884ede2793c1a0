//! What does not move, and that nothing was switched then.

use onsale_core::id::EventId;
use onsale_postgres_server::Server;
use onsale_store::{MoveError, OpenError, Step, Store, move_event};

use crate::world::{HALL, KEY, account, done, picture, wait_until};

use super::Installation;

fn refused(all: &Installation, event: EventId, to: &str, at: impl Fn(&Step)) -> MoveError {
    all.try_move(event, to, &mut |step| at(&step)).expect_err("it doesn't move")
}

/// Whatever differs is found, nothing is switched, and the sale goes on where it was once that is said.
#[test]
fn a_copy_that_differs_is_not_switched_to() {
    let all = Installation::new();
    all.world.sell_everything();
    let (event, before) = (all.event(), picture(&all.world.store, HALL));
    let raw = all.raw("east");
    for (damage, table) in [
        (
            "UPDATE holds SET account_id = account_id || ' ' WHERE ctid = (SELECT min(ctid) FROM holds)",
            "holds",
        ),
        ("DELETE FROM orders WHERE ctid = (SELECT min(ctid) FROM orders)", "orders"),
        ("UPDATE manifest_seats SET x = 0 WHERE x = 0", "manifest_seats"),
        ("UPDATE events SET clock = clock + 1 WHERE event_no = 1", "events"),
        ("UPDATE price_levels SET color = '' WHERE color IS NULL", "price_levels"),
        ("UPDATE log SET payload = replace(payload, ':', ': ') WHERE version = 7", "log"),
    ] {
        let error = refused(&all, event, "east", |step| {
            if matches!(step, Step::Arrived { .. }) {
                raw.execute(damage);
            }
        });
        assert!(
            matches!(&error, MoveError::Differs { table: told, .. } if told == table),
            "{damage}: {error}"
        );
        assert_eq!((all.at_home(), all.directed().as_str()), (vec![], "main"));
    }
    all.cancel(event).expect("it is undone");
    assert_eq!(picture(&all.world.store, HALL), before);
    all.finish("main");
}

#[test]
fn an_event_that_breaks_an_invariant_stays_where_it_is_and_goes_on() {
    let all = Installation::new();
    all.world.sell_everything();
    let event = all.event();
    let raw = all.world.raw();
    raw.execute("UPDATE events SET payment_pending = payment_pending + 1 WHERE event_no = 1");
    let error = refused(&all, event, "east", |_| ());
    let told = "violations of invariants at main, such as I-13: event_no 1, payment_pending 2, counted 1";
    assert!(error.to_string().contains(told), "{error}");
    assert_eq!(all.at_home(), ["main"]);
    raw.execute("UPDATE events SET payment_pending = payment_pending - 1 WHERE event_no = 1");
    all.finish("main");
}

#[test]
fn two_movers_do_not_get_into_each_others_way() {
    let mut all = Installation::new();
    all.world.sell_everything();
    let (event, before) = (all.event(), picture(&all.world.store, HALL));
    let mut met = 0;
    all.try_move(event, "east", &mut |step| {
        if matches!(step, Step::Frozen { .. } | Step::Compared { .. } | Step::Switched { .. }) {
            let other = all.try_move(event, "west", &mut |_| ());
            assert!(matches!(other, Err(MoveError::Busy)), "{other:?}");
            assert!(matches!(all.cancel(event), Err(MoveError::Busy)));
            met += 1;
        }
    })
    .expect("it moves");
    assert_eq!(met, 3);
    all.go_to("east");
    assert_eq!(picture(&all.world.store, HALL), before);
    all.finish("east");
}

/// A mover whose connection was cut keeps nobody out. When it wakes up, what others did meanwhile stands.
#[test]
fn a_mover_that_was_overtaken_changes_nothing() {
    let mut all = Installation::new();
    all.world.sell_everything();
    let (event, before) = (all.event(), picture(&all.world.store, HALL));
    let raw = all.raw("main");
    let others = |step: &Step, at: fn(&Step) -> bool, work: &dyn Fn()| {
        if at(step) {
            // The lock of a mover is given up when its session has ended; here it is the others who don't see it.
            raw.number("SELECT count(pg_terminate_backend(pid)) FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()
                 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())");
            wait_until("the lock is free", || {
                raw.number(
                    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'
                     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
                ) == 0
            });
            work();
        }
    };
    let undo = || all.cancel(event).expect("it is undone");
    let there = || drop(all.move_to(event, "east"));
    for (at, work) in [
        ((|step| matches!(step, Step::Recorded { .. })) as fn(&Step) -> bool, &undo as &dyn Fn()),
        (|step| matches!(step, Step::Frozen { .. }), &undo),
        (|step| matches!(step, Step::Copied { table, .. } if table == "log"), &undo),
        (|step| matches!(step, Step::Arrived { .. }), &undo),
        (|step| matches!(step, Step::Compared { .. }), &undo),
        (|step| matches!(step, Step::Recorded { .. }), &there),
        (|step| matches!(step, Step::Frozen { .. }), &there),
        (|step| matches!(step, Step::Arrived { .. }), &there),
        (|step| matches!(step, Step::Compared { .. }), &there),
    ] {
        let error = refused(&all, event, "east", |step| others(step, at, work));
        // Where it had frozen once more, that is undone.
        let home = all.directed();
        if all.at_home().is_empty() {
            all.cancel(event).unwrap_or_else(|undoing| panic!("{error}: {undoing}"));
        }
        assert_eq!(all.at_home(), [home.as_str()], "{error}");
        assert_eq!(picture(&all.store(&home), HALL), before, "{error}");
        if home == "east" {
            all.move_to(event, "main");
        }
    }
    all.go_to("main");
    all.finish("main");
}

#[test]
fn what_is_not_there_does_not_move() {
    let all = Installation::new();
    all.world.sell_everything();
    let event = all.event();
    let told = |error: MoveError| error.to_string();
    assert_eq!(told(refused(&all, event, "north", |_| ())), "no home is called north");
    let other = EventId(event.0 + 1);
    assert!(
        matches!(refused(&all, other, "east", |_| ()), MoveError::NoEvent { .. }),
        "another event of that number"
    );
    assert!(matches!(refused(&all, EventId(0), "east", |_| ()), MoveError::NoEvent { .. }), "the house");
    assert!(matches!(all.cancel(event), Err(MoveError::NotUnderWay)));

    let mut options = all.options();
    options[1].url = "postgresql://nobody@127.0.0.1:1/nothing".to_owned();
    let away = move_event(&options, event, "east", all.world.now(), &mut |_| ());
    assert!(matches!(away, Err(MoveError::Open(OpenError::Home { .. }))), "{away:?}");
    options[1].url = Server::shared().and_then(Server::create_database).expect("a database can be made");
    let empty = move_event(&options, event, "east", all.world.now(), &mut |_| ());
    assert!(matches!(empty, Err(MoveError::Open(OpenError::Older { .. }))), "{empty:?}");
    assert_eq!(all.at_home(), ["main"]);

    // On its way to one home, it doesn't go to another.
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        all.try_move(event, "east", &mut |step| {
            if matches!(step, Step::Frozen { .. }) {
                std::panic::resume_unwind(Box::new(()));
            }
        })
    }));
    let error = refused(&all, event, "west", |_| ());
    assert_eq!(told(error), "it is on its way to east: finish that with --to east, or undo it with --cancel");
    all.cancel(event).expect("it is undone");
    all.finish("main");
}

/// A key that was used for another event at the target is in the way, and says so.
#[test]
fn a_key_that_the_target_knows_already_is_in_the_way() {
    let all = Installation::new();
    all.world.sell_everything();
    let (event, before) = (all.event(), picture(&all.world.store, HALL));
    all.raw("east").execute(&format!(
        "INSERT INTO idempotency_keys VALUES (lpad(to_hex({}), 32, '0')::uuid, 7, lpad('1', 32, '0')::uuid, 'ord_x', 0)",
        KEY.0
    ));
    let error = refused(&all, event, "east", |_| ());
    assert!(matches!(&error, MoveError::Copy { table, .. } if table == "idempotency_keys"), "{error}");
    assert_eq!(all.rows("east"), 0);
    all.cancel(event).expect("it is undone");
    assert_eq!(picture(&all.world.store, HALL), before);
    all.raw("east").execute("DELETE FROM idempotency_keys");
    all.finish("main");
}

#[test]
fn an_event_is_fenced() {
    let all = Installation::new();
    all.world.sell_everything();
    let epoch = all.world.event().epoch;
    let fence = |store: &Store| done(store.fence(HALL)).expect("it is asked");
    assert_eq!(fence(&all.world.store), Some(epoch + 1));
    all.world.hold(&account("gus"), &[10]);
    assert_eq!(all.world.event().epoch, epoch + 1);
    all.move_to(all.event(), "east");
    assert_eq!(fence(&all.world.store), None, "it isn't at home there");
    let mut all = all;
    all.go_to("east");
    all.finish("east");
}
