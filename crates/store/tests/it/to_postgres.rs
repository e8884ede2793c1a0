//! Moving a whole installation from its file to a home on a server.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use onsale_core::command::Outcome;
use onsale_core::gateway::IntentState;
use onsale_core::id::{EventNo, KeyId, OperationId, OrderId};
use onsale_core::order::OrderStatus;
use onsale_postgres_server::Server;
use onsale_store::{
    ApiKey, Clock, HomeOptions, MoveError, OpenError, Options, Role, Step, Store, StoreError, SubmitError,
    audit_folder, backup_folder, cancel_to_postgres, to_postgres,
};
use tempfile::TempDir;

use crate::world::{HALL, KEY, Raw, START, World, account, ada, done, message, picture, place_hold, policy};

fn fresh() -> String {
    Server::shared().and_then(Server::create_database).expect("a database can be made")
}

fn home(world: &World, url: &str) -> HomeOptions {
    HomeOptions::new("main", url, Arc::clone(&world.clock) as Arc<dyn Clock>)
}

/// A file and a database that it is to move to.
struct Way<'a> {
    world: &'a World,
    options: Options,
    url: String,
    _copy: Option<TempDir>,
}

impl<'a> Way<'a> {
    fn of(world: &'a World) -> Way<'a> {
        Way { world, options: world.options(), url: fresh(), _copy: None }
    }

    /// The same with a copy of the file.
    fn of_copy(world: &'a World) -> Way<'a> {
        let copy = tempfile::tempdir().expect("a folder can be made");
        backup_folder(world.folder.path(), &copy.path().join("onsale.db")).expect("a copy can be made");
        let options = Options { folder: copy.path().to_owned(), ..world.options() };
        Way { world, options, url: fresh(), _copy: Some(copy) }
    }

    /// From the same file to another database.
    fn to(&self, url: String) -> Way<'a> {
        Way { world: self.world, options: self.options.clone(), url, _copy: None }
    }

    fn go(&self, told: &mut dyn FnMut(Step)) -> Result<(), MoveError> {
        to_postgres(&self.options, &home(self.world, &self.url), self.world.now(), told)
    }

    fn cancel(&self) -> Result<(), MoveError> {
        cancel_to_postgres(&self.options, &home(self.world, &self.url), self.world.now(), &mut |_| ())
    }

    /// Stops after so many steps, as when the program ends; the last step, if it came to that.
    fn stop_after(&self, steps: usize) -> Option<Step> {
        let (mut told, mut last) = (0, None);
        let moving = || {
            self.go(&mut |step| {
                told += 1;
                last = Some(step);
                if told == steps {
                    resume_unwind(Box::new(()));
                }
            })
            .expect("it moves as far as it goes");
        };
        if catch_unwind(AssertUnwindSafe(moving)).is_err() { last } else { None }
    }

    fn file(&self) -> Result<Store, OpenError> {
        Store::open(self.options.clone(), |_| ())
    }

    fn database(&self) -> Result<Store, OpenError> {
        Store::connect(home(self.world, &self.url), |_| ())
    }

    /// Which of the two are served: the file, the database.
    fn serve(&self) -> (bool, bool) {
        (self.file().is_ok(), self.database().is_ok())
    }
}

fn key(number: u128) -> ApiKey {
    let (key_id, secret_sha256) = (KeyId(number), [number as u8; 32]);
    ApiKey { key_id, secret_sha256, role: Role::Operator, name: format!("key\t{number}"), created_at: START }
}

/// A file with everything in it; an order that is being paid, and its attempt.
fn installation() -> (World, (OrderId, OperationId)) {
    let world = World::empty();
    let things = world.sell_everything();
    world.add_event(EventNo(2), 30, policy());
    done(world.store.add_key(key(1))).expect("a key is stored");
    done(world.store.add_key(key(2))).expect("a key is stored");
    done(world.store.revoke_key(KeyId(2), world.now())).expect("it is revoked");
    done(world.store.secret("sessions", vec![0, 255, 7, b'\\'], world.now())).expect("a secret is made");
    (world, (things.pending, things.attempt))
}

#[test]
fn a_file_moves_with_everything_and_is_not_served_any_more() {
    let (world, (pending, attempt)) = installation();
    let before = [HALL, EventNo(2)].map(|no| picture(&world.store, no));
    let replayed = world.submit_keyed(KEY.0, KEY.1, place_hold(&account("cyd"), &[4])).outcome;
    let way = Way::of(&world);
    let url = way.url.clone();
    let mut steps = Vec::new();
    way.go(&mut |step| steps.push(step)).expect("it moves");
    assert!(matches!(steps.last(), Some(Step::Opened { .. })), "{steps:?}");

    // Who still has the file open decides nothing, and changes nothing else.
    assert_eq!(world.try_submit(place_hold(&ada(), &[8])), Err(SubmitError::Elsewhere));
    for upkeep in [
        done(world.store.add_key(key(3))).err(),
        done(world.store.revoke_key(KeyId(1), world.now())).err(),
        done(world.store.forget_keys(world.now())).err(),
        done(world.store.secret("other", vec![1], world.now())).err(),
        done(world.store.fence(HALL)).err(),
    ] {
        assert!(matches!(&upkeep, Some(StoreError::Elsewhere(home)) if home == "main"), "{upkeep:?}");
    }
    let refused = way.file().err();
    assert!(matches!(&refused, Some(OpenError::Moved { home, .. }) if home == "main"), "{refused:?}");
    let left = audit_folder(world.folder.path(), world.now()).expect("it can be looked into");
    assert_eq!(left.violations(), 0, "{left:?}");

    let store = way.database().expect("it is served");
    for (no, before) in [HALL, EventNo(2)].into_iter().zip(&before) {
        assert_eq!(&picture(&store, no), before);
    }
    let keys = store.read(|db| db.api_keys()).expect("keys can be read");
    assert_eq!(keys.iter().map(|key| (key.key_id, &*key.name)).collect::<Vec<_>>(), [(KeyId(1), "key\t1")]);
    let secret = blocking(|| done(store.secret("sessions", vec![9], world.now()))).expect("a secret is kept");
    assert_eq!(secret, [0, 255, 7, b'\\']);
    assert!(store.read(|db| db.callback("evt_house")).expect("it can be read").is_some());

    let options = way.options.clone();
    let mut world = world;
    let old = std::mem::replace(&mut world.store, Arc::new(store));
    old.close();
    let again = world.submit_keyed(KEY.0, KEY.1, place_hold(&account("cyd"), &[4])).outcome;
    assert_eq!(again, replayed, "the same key gives the same answer");
    let seen = world.observed(pending, attempt, "pi_cyd", IntentState::Authorized);
    world.observe(attempt, seen);
    assert_eq!(world.order(pending).order.status, OrderStatus::Confirmed);
    world.add_event(EventNo(3), 5, policy());
    world.judge(EventNo::HOUSE, message("evt_house", "pi_nobody", None));

    // Once more changes nothing, and it can't be undone any more.
    let now = picture(&world.store, HALL);
    let way = Way { world: &world, options, url, _copy: None };
    way.go(&mut |_| ()).expect("it is done");
    assert_eq!(picture(&world.store, HALL), now);
    assert!(matches!(way.cancel(), Err(MoveError::Serves(home)) if home == "main"));
    assert!(matches!(way.to(fresh()).go(&mut |_| ()), Err(MoveError::OtherDatabase)));
    drop(way);
    world.finish();
}

/// Upkeep on a server blocks in its thread, which a runtime must know.
fn blocking<R>(work: impl FnOnce() -> R) -> R {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build();
    let runtime = runtime.expect("a runtime starts");
    let _inside = runtime.enter();
    work()
}

/// Each step that a whole move tells, and a way that stopped there.
fn each_stop<'a>(world: &'a World, mut work: impl FnMut(Way<'a>, Step)) {
    for steps in 1.. {
        let way = Way::of_copy(world);
        let Some(last) = way.stop_after(steps) else {
            assert!(steps > 20, "{steps}");
            return;
        };
        let expected = match last {
            Step::Audited { .. } if steps == 1 => (true, true),
            // The database is taken, and nothing is in it.
            Step::Recorded { .. } => (true, false),
            Step::Opened { .. } => (false, true),
            _ => (false, false),
        };
        assert_eq!(way.serve(), expected, "after {last:?}");
        work(way, last);
    }
}

#[test]
fn a_move_that_stopped_after_any_step_is_finished() {
    let (world, _) = installation();
    let before = picture(&world.store, HALL);
    each_stop(&world, |way, last| {
        // The database may be another by now: an operator makes a new one and begins anew. Not once it may have served.
        let anew = way.to(fresh());
        let way = match last {
            Step::Switched { .. } | Step::Opened { .. } => {
                let refused = anew.go(&mut |_| ());
                assert!(matches!(refused, Err(MoveError::OtherDatabase)), "after {last:?}: {refused:?}");
                way
            }
            Step::Copied { .. } | Step::Arrived { .. } => anew,
            _ => way,
        };
        way.go(&mut |_| ()).expect("it is finished");
        assert_eq!(way.serve(), (false, true), "finished after {last:?}");
        assert_eq!(picture(&way.database().expect("it is served"), HALL), before, "finished after {last:?}");
    });
    world.finish();
}

#[test]
fn a_move_that_stopped_after_any_step_is_undone_if_the_database_can_not_serve() {
    let (world, _) = installation();
    let before = picture(&world.store, HALL);
    each_stop(&world, |way, last| {
        // As long as the database can't serve without the file's word, it need not even be there.
        let lost = way.to("postgresql://nobody@127.0.0.1:1/lost".to_owned());
        match (&last, lost.cancel()) {
            (Step::Opened { .. } | Step::Switched { .. }, Err(MoveError::Open(OpenError::Home { .. }))) => {}
            (Step::Audited { .. } | Step::Recorded { .. }, Err(MoveError::NotUnderWay)) => return,
            (_, Ok(())) => {}
            (last, other) => panic!("after {last:?}: {other:?}"),
        }
        match (&last, way.cancel()) {
            (Step::Opened { .. }, Err(MoveError::Serves(_))) => return,
            (Step::Switched { .. }, Ok(())) => {}
            (_, Err(MoveError::NotUnderWay)) => {}
            (last, other) => panic!("after {last:?}: {other:?}"),
        }
        assert!(way.database().is_err(), "undone after {last:?}");
        assert_eq!(picture(&way.file().expect("it is served"), HALL), before, "undone after {last:?}");
        // What is left in the database is in nobody's way but its own.
        match (&last, way.go(&mut |_| ())) {
            (Step::Frozen { .. } | Step::Copied { .. }, Ok(())) => {}
            (_, Err(MoveError::NotEmpty { .. })) => way.to(fresh()).go(&mut |_| ()).expect("it moves"),
            (last, other) => panic!("after {last:?}: {other:?}"),
        }
    });
    world.finish();
}

/// An undoing that stopped between its two databases leaves neither serving, and is done again.
#[test]
fn an_undoing_that_stopped_is_done_again() {
    let (world, _) = installation();
    let way = Way::of_copy(&world);
    let mut switched = false;
    for steps in 1.. {
        switched |= matches!(way.stop_after(steps), Some(Step::Switched { .. }));
        if switched {
            break;
        }
        way.cancel()
            .or_else(|error| if let MoveError::NotUnderWay = error { Ok(()) } else { Err(error) })
            .expect("undone");
        Raw::server(&way.url).execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public");
    }
    let options = home(&world, &way.url);
    let undoing = || {
        cancel_to_postgres(&way.options, &options, world.now(), &mut |step| {
            assert!(matches!(step, Step::Revoked { .. }), "{step:?}");
            resume_unwind(Box::new(()));
        })
    };
    catch_unwind(AssertUnwindSafe(undoing)).expect_err("it stopped");
    assert_eq!(way.serve(), (false, false));
    let refused = way.go(&mut |_| ());
    assert!(matches!(refused, Err(MoveError::CalledOff)), "{refused:?}");
    way.cancel().expect("it is undone");
    assert_eq!(way.serve(), (true, false));
    world.finish();
}

#[test]
fn a_copy_that_differs_does_not_serve() {
    let (world, _) = installation();
    for (damage, table) in [
        ("UPDATE api_keys SET role = 'reader' WHERE name LIKE 'key%1'", "api_keys"),
        ("UPDATE secrets SET value = value || '\\x00' WHERE name = 'sessions'", "secrets"),
        ("UPDATE manifest_seats SET y = 1e-7 WHERE event_no = 1 AND ordinal = 2", "manifest_seats"),
        ("DELETE FROM idempotency_keys WHERE event_no = 1", "idempotency_keys"),
        ("UPDATE events SET epoch = epoch + 1 WHERE event_no = 0", "events"),
    ] {
        let way = Way::of_copy(&world);
        let refused = way.go(&mut |step| {
            if matches!(step, Step::Arrived { .. }) {
                Raw::server(&way.url).execute(damage);
            }
        });
        assert!(
            matches!(&refused, Err(MoveError::Differs { table: told, .. }) if told == table),
            "{damage}: {refused:?}"
        );
        assert_eq!(way.serve(), (false, false));
        way.cancel().expect("it is undone");
        assert_eq!(way.serve(), (true, false));
    }
    world.finish();
}

#[test]
fn only_a_sound_file_moves_and_only_to_a_new_database() {
    let (world, _) = installation();
    let way = Way::of(&world);
    let lost = way.to("postgresql://nobody@127.0.0.1:1/lost".to_owned()).go(&mut |_| ());
    assert!(matches!(&lost, Err(MoveError::Open(OpenError::Home { .. }))), "{lost:?}");
    let wrong = way.to("mysql://root@localhost/x".to_owned()).go(&mut |_| ());
    assert!(matches!(&wrong, Err(MoveError::Open(OpenError::Url { .. }))), "{wrong:?}");
    let nothing = Way {
        options: Options { folder: world.folder.path().join("no"), ..world.options() },
        ..Way::of(&world)
    };
    assert!(matches!(nothing.go(&mut |_| ()), Err(MoveError::Open(OpenError::Open { .. }))));
    assert!(!world.folder.path().join("no").exists(), "a look makes no database");
    assert!(matches!(way.cancel(), Err(MoveError::NotUnderWay)));

    // One that a server has been started on has a secret.
    for statement in [
        "INSERT INTO secrets VALUES ('sessions', '\\x00', 0)",
        "INSERT INTO directory VALUES (7, 'east', NULL, 1)",
        "UPDATE events SET version = 1",
    ] {
        let used = way.to(fresh());
        used.database().expect("it is served").close();
        Raw::server(&used.url).execute(statement);
        let refused = used.go(&mut |_| ());
        assert!(matches!(&refused, Err(MoveError::NotEmpty { .. })), "{statement}: {refused:?}");
    }

    let raw = world.raw();
    raw.execute("UPDATE events SET payment_pending = 7 WHERE event_no = 1");
    let broken = way.go(&mut |_| ());
    assert!(
        matches!(&broken, Err(MoveError::Broken { first, .. }) if first.starts_with("I-13")),
        "{broken:?}"
    );
    raw.execute("UPDATE events SET payment_pending = 1 WHERE event_no = 1");
    assert!(matches!(world.place(&account("gus"), &[10]), Outcome::HoldPlaced(_)), "it has gone on");
    world.finish();
}

/// Both kinds of database have the same tables with the same columns, so that whatever is in one can be in the other.
#[test]
fn both_kinds_have_the_same_tables() {
    let world = World::empty();
    let url = fresh();
    Way::of(&world).to(url.clone()).database().expect("it is made").close();
    let mut server = postgres::Client::connect(&url, postgres::NoTls).expect("the server answers");
    let text = "SELECT table_name::text, column_name::text FROM information_schema.columns WHERE table_schema = 'public'";
    let rows = server.query(text, &[]).expect("it can be asked");
    let mut on_server: BTreeSet<(String, String)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    // What is about a server alone.
    on_server.retain(|(table, _)| table != "batches" && table != "directory");
    let db = world.db();
    let text =
        "SELECT m.name, c.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'";
    let mut statement = db.prepare(text).expect("it can be asked");
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("it can be asked");
    let in_file: BTreeSet<(String, String)> = rows.map(|row| row.expect("it can be read")).collect();
    assert_eq!(on_server, in_file);
    world.finish();
}
