//! What only a server can have: settings that someone else may change, connections that break, commits without an answer.

mod cut;

use std::sync::Arc;
use std::time::{Duration, Instant};

use onsale_core::command::{Command, Decision, Outcome, Request, Wish};
use onsale_core::id::{EventNo, HoldId};
use onsale_core::idempotency::RequestKey;
use onsale_core::time::Timestamp;
use onsale_postgres_server::Server;
use onsale_store::{Clock, HomeOptions, OpenError, Store, SubmitError};

use crate::world::{
    HALL, Raw, START, TestClock, World, account, ada, ask, ben, hall, place_hold, policy, wait_until,
};

fn opened(url: &str) -> Result<Store, OpenError> {
    Store::connect(HomeOptions::new("main", url, TestClock::new()), |_| ())
}

/// What is said when a database is not taken.
fn refused(url: &str) -> String {
    let Err(error) = opened(url) else { panic!("it should not have been taken") };
    chain(&error)
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}

fn fresh() -> String {
    Server::shared().and_then(Server::create_database).expect("a server runs")
}

fn name_of(url: &str) -> &str {
    url.rsplit_once('/').expect("a URL names its database").1
}

/// Sessions of the store that are in some state.
fn sessions(raw: &Raw, condition: &str) -> i64 {
    raw.number(&format!(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'onsale' AND {condition}"
    ))
}

#[test]
fn a_database_whose_commits_may_be_lost_is_not_taken() {
    for (setting, value, told) in [
        ("synchronous_commit", "off", "synchronous_commit = off, but on or remote_apply is needed"),
        ("synchronous_commit", "local", "synchronous_commit = local"),
        ("synchronous_commit", "remote_write", "synchronous_commit = remote_write"),
        ("default_transaction_read_only", "on", "does not allow writes"),
    ] {
        let url = fresh();
        opened(&url).expect("as it comes it is good").close();
        let raw = Raw::server(&url);
        raw.execute(&format!("ALTER DATABASE {} SET {setting} = {value}", name_of(&url)));
        let why = refused(&url);
        assert!(why.contains(told), "{setting} = {value}: {why}");
        raw.execute(
            &format!("ALTER DATABASE {} RESET {setting}", name_of(&url))
                .replace("ALTER", "SET default_transaction_read_only = off; ALTER"),
        );
        opened(&url).expect("it is good again").close();
    }
}

#[test]
fn a_setting_that_is_weakened_while_it_is_served_stops_the_sale_until_it_is_mended() {
    let world = hall(3, policy());
    let raw = world.raw();
    let database = name_of(&world.url);
    world.hold(&ada(), &[0]);
    raw.execute(&format!("ALTER DATABASE {database} SET synchronous_commit = off"));
    end_sessions(&raw);
    let refused = world.try_submit(place_hold(&ada(), &[1]));
    assert!(
        matches!(&refused, Err(SubmitError::Unavailable(why)) if why.contains("synchronous_commit")),
        "{refused:?}"
    );
    raw.execute(&format!("ALTER DATABASE {database} RESET synchronous_commit"));
    wait_until("it is taken again", || world.try_submit(place_hold(&ada(), &[1])).is_ok());
    assert_eq!(world.digits(), "110");
    world.finish();
}

fn end_sessions(raw: &Raw) {
    raw.number(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'onsale'",
    );
    wait_until("all sessions have ended", || sessions(raw, "true") == 0);
}

#[test]
fn another_program_or_a_newer_one_has_made_it() {
    let url = fresh();
    opened(&url).expect("it is empty").close();
    let raw = Raw::server(&url);
    raw.execute("INSERT INTO schema_migrations VALUES (99, 'later', '\\x00', 'then')");
    assert!(refused(&url).contains("migration 99 (later)"), "{}", refused(&url));
    raw.execute(
        "DELETE FROM schema_migrations WHERE number = 99; UPDATE schema_migrations SET sha256 = '\\x00'",
    );
    assert!(refused(&url).contains("migration 1 in the database differs"), "{}", refused(&url));
}

#[test]
fn an_address_that_is_none_or_where_nobody_is() {
    assert!(refused("mysql://root@localhost/x").contains("not a PostgreSQL URL"));
    assert!(refused("postgresql://u:geheim@127.0.0.1:notaport/x").contains("not a PostgreSQL URL"));
    assert!(!refused("postgresql://u:geheim@127.0.0.1:notaport/x").contains("geheim"));
    // Nobody listens on a port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).unwrap().port();
    let why = refused(&format!("postgresql://u:geheim@127.0.0.1:{port}/x"));
    assert!(why.contains("failed to open the home main") && !why.contains("geheim"), "{why}");
    let url = fresh();
    let other = format!("{}_not_there", url);
    assert!(refused(&other).contains("does not exist"), "{}", refused(&other));
}

#[test]
fn programs_that_start_at_once_make_one_schema() {
    let url = fresh();
    let start = std::sync::Barrier::new(8);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                start.wait();
                opened(&url).expect("it opens").read(|db| db.events()).expect("it can be read")
            });
        }
    });
    assert_eq!(Raw::server(&url).number("SELECT count(*) FROM schema_migrations"), 1);
}

/// Sessions end all the time: a proxy restarts, an administrator tidies up, a primary changes. Nobody notices.
#[test]
fn sessions_that_end_between_batches_are_nobodys_concern() {
    let world = hall(40, policy());
    let raw = world.raw();
    for seat in 0..10 {
        world.hold(&account(&format!("acc_{seat}")), &[seat]);
        end_sessions(&raw);
    }
    assert_eq!(world.digits().matches('1').count(), 10);
    world.finish();
}

#[test]
fn a_session_that_ends_while_its_batch_waits_for_the_lock_is_replaced_and_the_batch_is_done() {
    let world = hall(1, policy());
    let lock = world.lock();
    let asked = ask(&world.store, world.request(place_hold(&ada(), &[0])), None);
    let raw = world.raw();
    wait_until("the writer waits for the lock", || sessions(&raw, "wait_event_type = 'Lock'") == 1);
    raw.number(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event_type = 'Lock'",
    );
    wait_until("another waits for it", || sessions(&raw, "wait_event_type = 'Lock'") == 1);
    drop(lock);
    assert!(matches!(asked.outcome(), Outcome::HoldPlaced(_)));
    world.finish();
}

/// A lock that doesn't come fails what waits for it, once and for all of it, and nothing else.
#[test]
fn a_lock_that_does_not_come_is_told_and_nothing_is_done() {
    let world = hall(2, policy());
    let lock = world.lock();
    let begun = Instant::now();
    let asked: Vec<_> =
        ["a", "b"].map(|who| ask(&world.store, world.request(place_hold(&account(who), &[0])), None)).into();
    for asked in asked {
        let answer = asked.answer();
        assert!(
            matches!(&answer, Err(SubmitError::Unavailable(why)) if why.contains("lock timeout")),
            "{answer:?}"
        );
    }
    assert!(begun.elapsed() < Duration::from_secs(60), "it was waited for again and again");
    drop(lock);
    assert_eq!(world.digits(), "00");
    world.hold(&ada(), &[0]);
    world.finish();
}

#[test]
fn a_deadlock_is_tried_again_and_nobody_notices() {
    let world = hall(1, policy());
    world.add_event(EventNo(5), 1, policy());
    let raw = world.raw();
    // The raw session would only notice after the store's does.
    raw.execute("SET deadlock_timeout = '60s'; BEGIN; SELECT 1 FROM events WHERE event_no = 5 FOR UPDATE");
    // One command finds a key of the other event, and so needs both locks.
    let request = world.request(place_hold(&ada(), &[0]));
    let other = Command::PlaceHold {
        event: EventNo(5),
        manifest_version: 1,
        account: ada(),
        wish: Wish::of_seats(vec![onsale_core::id::SeatOrdinal(0)]),
        code: None,
    };
    let queued = [ask(&world.store, request, None), ask(&world.store, world.request(other), None)];
    let look = world.raw();
    wait_until("the writer has one lock and waits for the other", || {
        sessions(&look, "wait_event_type = 'Lock'") >= 1
    });
    raw.execute("SELECT 1 FROM events WHERE event_no = 1 FOR UPDATE");
    raw.execute("COMMIT");
    for asked in queued {
        assert!(matches!(asked.outcome(), Outcome::HoldPlaced(_)));
    }
    world.finish();
}

/// An event that has moved is decided here no more, whatever its rows say.
#[test]
fn an_event_that_is_elsewhere_is_nobodys_to_change_here() {
    let world = hall(2, policy());
    world.add_event(EventNo(2), 2, policy());
    let hold = world.hold(&ada(), &[0]);
    let version = world.event().version;
    world.raw().execute("UPDATE events SET elsewhere = 'b', epoch = epoch + 1 WHERE event_no = 1");
    assert_eq!(world.try_submit(place_hold(&ben(), &[1])), Err(SubmitError::Elsewhere));
    assert_eq!(world.try_submit(Command::ExpireHold { hold }), Err(SubmitError::Elsewhere));
    assert!(world.store.read(|db| db.event(HALL)).unwrap().is_none());
    assert_eq!(world.store.read(|db| db.events()).unwrap().len(), 1);
    let far = Timestamp::from_millis(i64::MAX);
    assert!(world.store.read(|db| db.due_holds(far, 10)).unwrap().is_empty());
    world.raw().execute("UPDATE events SET elsewhere = NULL WHERE event_no = 1");
    assert_eq!((world.event().version, world.event().epoch), (version, 2));
    world.hold(&ben(), &[1]);
    world.finish();
}

struct Shifted(i64);

impl Clock for Shifted {
    fn now(&self) -> Timestamp {
        START.plus_ms(self.0)
    }
}

/// A clock that jumps: the database's and the program's are compared, and where they are apart nothing is decided.
#[test]
fn clocks_that_are_apart_decide_nothing() {
    let world = hall(1, policy());
    let raw = world.raw();
    let now = raw.number("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint");
    let store = |shift_ms: i64| {
        let clock = Arc::new(Shifted(now - START.millis() + shift_ms));
        Store::connect(HomeOptions::new("main", &world.url, clock), |_| ()).expect("it opens")
    };
    let release = || world.request(Command::ExpireHold { hold: onsale_core::id::HoldId(1 << 56) });
    for shift_ms in [-3_600_000, -60_000, 60_000, 86_400_000] {
        let answer = store(shift_ms).submit_blocking(release());
        assert!(
            matches!(&answer, Err(SubmitError::Unavailable(why)) if why.contains("ms apart")),
            "{answer:?}"
        );
    }
    assert!(store(1_000).submit_blocking(release()).is_ok());
    world.finish();
}

/// T-9: whoever cancels the wait for the standby has the server report success for what may be lost. That is no success.
#[test]
fn a_commit_that_was_not_waited_for_is_not_acknowledged_before_it_is_safe() {
    let mut server = Server::start().expect("a server starts");
    let url = server.create_database().expect("a database can be made");
    let store = Arc::new(opened(&url).expect("it opens"));
    let mut request = sale(&store);
    request.key = Some(RequestKey { id: 7, digest: 7 });
    want_a_standby(&mut server, &url);
    let asked = ask(&store, request.clone(), None);
    let raw = Raw::server(&url);
    wait_until("the commit waits for its standby", || sessions(&raw, "wait_event = 'SyncRep'") == 1);
    raw.number("SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
    // The row is there now for everyone to see, and the server has said that all is well.
    wait_until("the store asks about it", || sessions(&raw, "wait_event = 'SyncRep'") == 1);
    assert_eq!(raw.number("SELECT count(*) FROM holds"), 1);
    let mut asked = asked;
    assert!(asked.poll().is_none(), "it was acknowledged although it may be lost");
    // Another process, which knows nothing of the warning, finds the row, and doesn't tell of it either: not to who looks, and
    // not to who asks again with the same key.
    let other = opened(&url).expect("it opens");
    let hold = HoldId(the_one_id(&url, "SELECT hold_id FROM holds"));
    let shown = std::thread::scope(|scope| {
        let look = scope.spawn(|| other.read(|db| db.hold(hold)));
        let replay = ask(&other, request.clone(), Some(Instant::now() + Duration::from_secs(8))).answer();
        assert!(!matches!(&replay, Ok(decision) if decision.replayed), "{replay:?}");
        look.join().expect("a look ends well")
    });
    assert!(shown.is_err(), "it was shown although it may be lost: {shown:?}");
    server.reload("synchronous_standby_names", "").expect("it is set");
    // On a slow machine the store may have lost its patience: then the truth is there for who asks again.
    let mut decision = match asked.answer() {
        Ok(decision) => Some(decision),
        Err(SubmitError::Unknown(_)) => None,
        Err(other) => panic!("{other:?}"),
    };
    wait_until("it is safe", || {
        decision = decision.take().or_else(|| store.submit_blocking(request.clone()).ok());
        decision.is_some()
    });
    assert!(matches!(decision.expect("it is there").outcome, Outcome::HoldPlaced(_)));
    assert!(store.submit_blocking(request).expect("it is decided").replayed);
    assert_eq!(raw.number("SELECT count(*) FROM holds"), 1);
}

/// While no standby answers nothing is acknowledged, whoever asks hears that in time, and no more sessions are left behind
/// than one can afford.
#[test]
fn a_standby_that_is_away_leaves_few_sessions_behind_and_the_truth_comes_out() {
    let mut server = Server::start().expect("a server starts");
    let url = server.create_database().expect("a database can be made");
    let store = Arc::new(opened(&url).expect("it opens"));
    let mut request = sale(&store);
    request.key = Some(RequestKey { id: 7, digest: 7 });
    want_a_standby(&mut server, &url);
    let answer = ask(&store, request.clone(), Some(Instant::now() + Duration::from_secs(8))).answer();
    assert!(matches!(&answer, Err(SubmitError::Unknown(_))), "{answer:?}");
    for _ in 0..3 {
        let answer = ask(&store, request.clone(), Some(Instant::now() + Duration::from_secs(8))).answer();
        assert!(matches!(&answer, Err(SubmitError::Unavailable(_) | SubmitError::Expired)), "{answer:?}");
    }
    let raw = Raw::server(&url);
    assert!(sessions(&raw, "true") <= 6, "{} sessions", sessions(&raw, "true"));
    assert_eq!(raw.number("SELECT count(*) FROM holds"), 0, "nobody may see it yet");
    server.reload("synchronous_standby_names", "").expect("it is set");
    let mut decision: Option<Decision> = None;
    wait_until("the truth is known", || {
        decision = store.submit_blocking(request.clone()).ok();
        decision.is_some()
    });
    let decision = decision.expect("it is there");
    assert!(matches!(decision.outcome, Outcome::HoldPlaced(_)), "{decision:?}");
    assert_eq!(raw.number("SELECT count(*) FROM holds"), 1);
}

/// The one id that a statement tells.
fn the_one_id(url: &str, text: &str) -> u128 {
    let mut client = postgres::Client::connect(url, postgres::NoTls).expect("the server answers");
    let id: uuid::Uuid = client.query_one(text, &[]).expect(text).get(0);
    id.as_u128()
}

/// Has every commit wait for a standby that isn't there. The setting counts when the server's checkpointer has read it: a session
/// that commits again and again is the first to wait, and goes on when the setting is gone.
fn want_a_standby(server: &mut Server, url: &str) {
    server.reload("synchronous_standby_names", "nobody").expect("it is set");
    let raw = Raw::server(url);
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    let url = url.to_owned();
    std::thread::spawn(move || {
        let looks = Raw::server(&url);
        // A transaction that has written something is one that waits.
        let is_wanted = "SELECT (current_setting('synchronous_standby_names') = 'nobody')::int::bigint, pg_logical_emit_message(true, 'test', '')";
        while looks.number(is_wanted) != 0 {}
    });
    wait_until("commits wait for a standby", || raw.number(waits) == 1);
}

/// A sale on a store of its own, and a request for its one seat.
fn sale(store: &Store) -> Request {
    let no = HALL;
    for command in crate::world::opening(no, 1, policy()) {
        let request = crate::world::request(command, START);
        store.submit_blocking(request).expect("the store decides");
    }
    crate::world::request(place_hold(&ada(), &[0]), START)
}

/// The server dies under a sale and comes back: what was acknowledged is there, what was not is told.
#[test]
fn a_server_that_dies_and_comes_back_has_all_that_was_acknowledged() {
    let mut server = Server::start().expect("a server starts");
    let url = server.create_database().expect("a database can be made");
    let store = Arc::new(opened(&url).expect("it opens"));
    for command in crate::world::opening(HALL, 2_000, policy()) {
        store.submit_blocking(crate::world::request(command, START)).expect("the store decides");
    }
    let mut acknowledged = Vec::new();
    for round in 0..3 {
        let mut asked: Vec<_> = (0..400)
            .map(|number| {
                let seat = round * 400 + number;
                let request =
                    crate::world::request(place_hold(&account(&format!("acc_{seat}")), &[seat]), START);
                (seat, ask(&store, request, Some(Instant::now() + Duration::from_secs(10))))
            })
            .collect();
        wait_until("the first of them is answered", || asked[0].1.poll().is_some());
        server.stop_hard().expect("it stops");
        server.start_again().expect("it starts");
        for (seat, asked) in asked {
            match asked.answer() {
                Ok(decision) => {
                    assert!(matches!(decision.outcome, Outcome::HoldPlaced(_)), "{decision:?}");
                    acknowledged.push(seat);
                }
                Err(
                    SubmitError::Unavailable(_)
                    | SubmitError::Unknown(_)
                    | SubmitError::Overloaded
                    | SubmitError::Expired,
                ) => {}
                Err(other) => panic!("{other:?}"),
            }
        }
        wait_until("it serves again", || store.read(|db| db.events()).is_ok());
    }
    let digits = store.read(|db| db.seat_digits(HALL)).unwrap().expect("the event exists").digits;
    for seat in &acknowledged {
        assert_eq!(digits[*seat as usize], b'1', "the hold of seat {seat} is lost");
    }
    assert!(!acknowledged.is_empty());
    let audit = store.audit(START).expect("it can be audited");
    assert_eq!(audit.violations(), 0, "{audit:?}");
}

/// Connections are few, however much is asked at once.
#[test]
fn connections_are_bounded() {
    let world: World = hall(200, policy());
    std::thread::scope(|scope| {
        for number in 0..40_u32 {
            let world = &world;
            scope.spawn(move || {
                world.hold(&account(&format!("acc_{number}")), &[number]);
                world.store.read(|db| db.seat_digits(HALL)).expect("it can be read");
            });
        }
    });
    let open = sessions(&world.raw(), "true");
    assert!(open <= (onsale_store::LANES_MAX + onsale_store::HOME_READERS_MAX) as i64, "{open} connections");
    world.finish();
}
