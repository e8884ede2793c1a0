//! Other systems are told what happened: all of it, about each thing in order, whoever does it and however often.

use std::sync::Barrier;

use onsale_core::command::Command;
use onsale_core::gateway::IntentState;
use onsale_core::id::{EndpointId, EventNo, MessageId, OrderId};
use onsale_core::payment::OperationKind;
use onsale_core::time::Timestamp;
use onsale_store::{
    Attempt, DeliveryStatus, DueDelivery, EndpointStatus, Next, WEBHOOK_ENDPOINTS_MAX, WebhookEndpoint,
};

use crate::world::{HALL, TYPES, World, account, ada, ben, done, endpoint, feed, hall, news, policy};

fn attempt(due: &DueDelivery, next: Next) -> Attempt {
    let answer = if next == Next::Delivered { 204 } else { 500 };
    Attempt { key: due.key, tries: due.tries, answer, error: String::new(), next }
}

fn record(world: &World, attempts: Vec<Attempt>) {
    done(world.store.record_webhook_attempts(attempts, world.now())).expect("it is recorded");
}

/// What is told of an order, up to its captured money.
fn sold(world: &World, name: &str, seats: &[u32]) -> OrderId {
    let reference = format!("pi_{name}");
    let (order, paid_by) = world.sell(&account(name), seats, &reference);
    let capture = world.live(order, OperationKind::Capture).expect("it is sold").id;
    world.observe(capture, world.observed(order, paid_by, &reference, IntentState::Captured));
    order
}

/// The kinds of entries that are due for an endpoint, with their orders' ends.
fn due_kinds(world: &World, endpoint: &WebhookEndpoint) -> Vec<&'static str> {
    world.due(endpoint).iter().map(|due| due.entry.kind.as_str()).collect()
}

fn statuses(world: &World, endpoint: &WebhookEndpoint) -> Vec<(u64, DeliveryStatus, u32)> {
    let id = endpoint.id;
    let mut views = world.store.read(|db| db.webhook_deliveries(id, None, 1_000)).expect("they can be read");
    views.sort_by_key(|view| view.key.version);
    views.iter().map(|view| (view.key.version, view.status, view.tries)).collect()
}

/// Delivers whatever is due, until nothing is.
fn deliver_all(world: &World, endpoint: &WebhookEndpoint) -> Vec<MessageId> {
    let mut delivered = Vec::new();
    loop {
        let due = world.due(endpoint);
        if due.is_empty() {
            return delivered;
        }
        delivered.extend(due.iter().map(|due| due.message));
        record(world, due.iter().map(|due| attempt(due, Next::Delivered)).collect());
    }
}

#[test]
fn what_there_is_to_tell_is_taken_note_of_once_by_whoever_is_first() {
    let world = hall(6, policy());
    let endpoint = world.add_endpoint(1);
    let other = world.another_store();
    assert_eq!(feed(&world.store, &endpoint), 0, "a sale that has just been opened");
    sold(&world, "ada", &[0, 1]);
    // Both have read the same piece of the log.
    let from =
        done(other.begin_webhook_progress(HALL, &endpoint)).expect("it can be read").expect("it is here");
    let to = world.event().version;
    let read = news(&other, &endpoint, HALL, from, to);
    assert_eq!((read.len(), feed(&world.store, &endpoint)), (3, 3));
    let again = other.advance_webhook_progress(HALL, endpoint.id, from, to, read);
    assert!(!done(again).expect("it is answered"), "another was quicker");
    assert_eq!((feed(&world.store, &endpoint), feed(&other, &endpoint)), (0, 0));
    assert_eq!(statuses(&world, &endpoint).len(), 3);
    // Both find the same to send, under the same names.
    let due = world.due(&endpoint);
    let (id, now) = (endpoint.id, world.now());
    let theirs = other.read(|db| db.due_webhooks(id, now, 100)).expect("it can be read");
    let names = |due: &[DueDelivery]| due.iter().map(|due| due.message).collect::<Vec<_>>();
    assert_eq!(names(&due), names(&theirs));
    assert!(due.iter().all(|due| due.event_id == world.event().id && due.message.event() == HALL));
    world.finish();
}

#[test]
fn messages_about_an_order_wait_for_each_other_and_others_go_on() {
    let world = hall(6, policy());
    let endpoint = world.add_endpoint(1);
    let (first, second) = (sold(&world, "ada", &[0]), sold(&world, "ben", &[1]));
    assert_eq!(feed(&world.store, &endpoint), 6);
    let due = world.due(&endpoint);
    assert_eq!(
        due_kinds(&world, &endpoint),
        ["hold.placed", "order.confirmed", "hold.placed", "order.confirmed"],
        "no capture before its confirmation"
    );
    let confirmation =
        |order| due.iter().find(|due| due.entry.kind.order() == Some(order)).expect("it is due");
    let later = world.now().plus_ms(5_000);
    record(
        &world,
        vec![
            attempt(confirmation(first), Next::Again(later)),
            attempt(confirmation(second), Next::Delivered),
        ],
    );
    let orders = |world: &World| {
        let due = world.due(&endpoint);
        due.iter()
            .filter_map(|due| Some((due.entry.kind.as_str(), due.entry.kind.order()?)))
            .collect::<Vec<_>>()
    };
    assert_eq!(orders(&world), [("operation.moved", second)], "the second's goes on, the first's waits");
    deliver_all(&world, &endpoint);
    world.pass_ms(4_999);
    assert_eq!(orders(&world), []);
    world.pass_ms(1);
    assert_eq!(orders(&world), [("order.confirmed", first)]);
    // One that has failed for good holds back what comes after it.
    record(&world, vec![attempt(&world.due(&endpoint)[0], Next::Failed)]);
    assert_eq!(orders(&world), []);
    let open = world.store.read(|db| db.open_webhooks()).expect("it can be read");
    let [open] = &open[..] else { panic!("one endpoint: {open:?}") };
    assert_eq!((open.count, open.failed.clone()), (2, Some((world.now(), 500, String::new()))));
    world.finish();
}

/// A try that another process made meanwhile counts once, and what has arrived has arrived.
#[test]
fn of_two_words_about_a_try_the_better_stays() {
    let world = hall(4, policy());
    let endpoint = world.add_endpoint(1);
    world.hold(&ada(), &[0]);
    feed(&world.store, &endpoint);
    let due = world.due(&endpoint).remove(0);
    let (now, version) = (world.now(), due.key.version);
    let expect = |status, tries| assert_eq!(statuses(&world, &endpoint), [(version, status, tries)]);
    for at in [now, now.plus_ms(1_000)] {
        record(&world, vec![attempt(&due, Next::Again(at))]);
        expect(DeliveryStatus::Pending, 1);
        assert_eq!(world.due(&endpoint).len(), 1, "as the first has said");
    }
    record(&world, vec![attempt(&due, Next::Failed)]);
    expect(DeliveryStatus::Pending, 1);
    record(&world, vec![attempt(&due, Next::Delivered)]);
    expect(DeliveryStatus::Delivered, 1);
    let late = DueDelivery { tries: 1, ..due };
    record(
        &world,
        vec![attempt(&late, Next::Failed), attempt(&late, Next::Again(now)), attempt(&late, Next::Delivered)],
    );
    expect(DeliveryStatus::Delivered, 1);
    world.finish();
}

#[test]
fn an_endpoint_is_told_from_when_it_was_made_and_of_what_it_wants() {
    let world = hall(6, policy());
    sold(&world, "ada", &[0]);
    world.pass_ms(1);
    let late = WebhookEndpoint {
        created_at: world.now(),
        types: vec!["order.confirmed".to_owned(), TYPES[3].to_owned()],
        ..endpoint(2)
    };
    done(world.store.add_webhook_endpoint(late.clone())).expect("it is stored");
    let nothing = world.store.read(|db| db.webhooks_behind(&late, None, 10)).expect("it can be read");
    assert_eq!(nothing, [], "an event in which nothing was decided since needs no row");
    let order = sold(&world, "ben", &[1]);
    let started =
        done(world.store.begin_webhook_progress(HALL, &late)).expect("it begins").expect("it is here");
    let told = news(&world.store, &late, HALL, started, world.event().version);
    let wanted: Vec<_> = told.into_iter().filter(|news| news.subject == order.0).collect();
    assert_eq!(wanted.len(), 2);
    let version = world.event().version;
    let advance = world.store.advance_webhook_progress(HALL, late.id, started, version, wanted);
    assert!(done(advance).expect("it is taken note of"));
    world.finish();
}

#[test]
fn an_endpoint_is_disabled_enabled_rotated_and_deleted() {
    let world = hall(6, policy());
    let endpoint = world.add_endpoint(1);
    let read = || world.store.read(|db| db.webhook_endpoints()).expect("they can be read").remove(0);
    assert!(read() == endpoint);
    world.hold(&ada(), &[0]);
    world.hold(&ben(), &[1]);
    feed(&world.store, &endpoint);
    let due = world.due(&endpoint);
    let far = world.now().plus_ms(1_000_000);
    record(&world, vec![attempt(&due[0], Next::Failed), attempt(&due[1], Next::Again(far))]);
    let disable = |seen: &WebhookEndpoint| {
        done(world.store.disable_webhook_endpoint(seen, "it is gone".to_owned(), world.now()))
            .expect("it is answered")
    };
    assert_eq!((disable(&endpoint), disable(&endpoint)), (true, false));
    let disabled = read();
    assert_eq!(
        (disabled.status, disabled.disabled_reason.as_deref()),
        (EndpointStatus::Disabled, Some("it is gone"))
    );

    // The clock stands, and yet it is enabled later than what failed.
    let enable = |id| done(world.store.enable_webhook_endpoint(id, world.now())).expect("it is answered");
    assert_eq!((enable(endpoint.id), enable(endpoint.id), enable(EndpointId(9))), (true, true, false));
    let enabled = read();
    assert_eq!(
        (enabled.status, enabled.disabled_at, enabled.enabled_at),
        (EndpointStatus::Enabled, None, world.now().plus_ms(1))
    );
    assert!(!disable(&endpoint), "whoever has seen it before disables it no more");
    let rearm = || done(world.store.rearm_webhooks(&enabled, world.now())).expect("it is done");
    assert_eq!((rearm(), rearm()), (2, 0));
    assert_eq!(deliver_all(&world, &endpoint).len(), 2);

    let until = world.now().plus_ms(1_000);
    assert!(
        done(world.store.rotate_webhook_secret(endpoint.id, vec![7; 32], until)).expect("it is answered")
    );
    let rotated = read();
    assert!((rotated.secret, rotated.secret_before) == (vec![7; 32], Some((endpoint.secret.clone(), until))));

    let delete =
        || done(world.store.delete_webhook_endpoint(endpoint.id, world.now())).expect("it is answered");
    assert_eq!((delete(), delete(), enable(endpoint.id)), (true, false, false));
    let deleted = read();
    assert!(deleted.status == EndpointStatus::Deleted && deleted.url.is_empty() && deleted.secret.is_empty());
    let forget =
        || done(world.store.forget_webhooks(Timestamp::ZERO, vec![endpoint.id])).expect("it is done");
    assert_eq!((forget(), forget(), forget()), (2, 1, 0));
    world.pass_ms(1);
    assert_eq!(done(world.store.forget_webhook_endpoints(world.now())).expect("it is done"), 1);
    world.finish();
}

#[test]
fn there_are_not_more_endpoints_than_there_may_be() {
    let world = World::empty();
    for number in 1..=u128::from(WEBHOOK_ENDPOINTS_MAX) {
        world.add_endpoint(number);
    }
    let add = |number| done(world.store.add_webhook_endpoint(endpoint(number))).expect("it is answered");
    assert!(!add(99));
    done(world.store.delete_webhook_endpoint(EndpointId(3), world.now())).expect("it is deleted");
    assert!(add(99));
    world.finish();
}

#[test]
fn what_was_delivered_is_sent_again_when_asked_and_forgotten_in_time() {
    let world = hall(9, policy());
    world.add_event(EventNo(2), 4, policy());
    let endpoint = world.add_endpoint(1);
    world.hold(&ada(), &[0]);
    world.pass_ms(1_000);
    let since = world.now();
    sold(&world, "ben", &[1]);
    feed(&world.store, &endpoint);
    let delivered = deliver_all(&world, &endpoint);
    assert_eq!(delivered.len(), 4);

    let replay = |message| {
        done(world.store.replay_webhook(endpoint.id, message, world.now())).expect("it is answered")
    };
    let stranger = MessageId(delivered[0].0 + 1);
    assert_eq!((replay(delivered[0]), replay(stranger)), (true, false));
    assert_eq!(deliver_all(&world, &endpoint), [delivered[0]], "under its old name");
    let replayed = done(world.store.replay_webhooks(endpoint.id, since, world.now())).expect("it is done");
    assert_eq!(replayed, 3);
    assert_eq!(deliver_all(&world, &endpoint).len(), 3);
    let nobody = done(world.store.replay_webhooks(EndpointId(9), since, world.now())).expect("it is done");
    assert_eq!(nobody, 0);

    // One is open: it stays, however old it is.
    world.hold(&account("cyd"), &[5]);
    feed(&world.store, &endpoint);
    world.pass_ms(1_000);
    let forget = |before| done(world.store.forget_webhooks(before, Vec::new())).expect("it is done");
    assert_eq!(forget(since), 0);
    assert_eq!((forget(world.now()), forget(world.now())), (4, 0));
    assert_eq!(statuses(&world, &endpoint).len(), 1);
    world.finish();
}

/// What is on its way to another home is copied, and stays as it is until it has arrived.
#[test]
fn of_an_event_that_is_on_its_way_nothing_changes() {
    let world = hall(6, policy());
    let endpoint = world.add_endpoint(1);
    world.hold(&ada(), &[0]);
    feed(&world.store, &endpoint);
    let due = world.due(&endpoint).remove(0);
    world.hold(&ben(), &[1]);
    let (from, to) = (world.event().version - 1, world.event().version);
    world.raw().execute("UPDATE events SET elsewhere = 'west' WHERE event_no = 1");
    let before = statuses(&world, &endpoint);
    assert!(world.due(&endpoint).is_empty());
    assert!(
        world.store.read(|db| db.webhooks_behind(&endpoint, None, 10)).expect("it can be read").is_empty()
    );
    record(&world, vec![attempt(&due, Next::Delivered)]);
    let news = news(&world.store, &endpoint, HALL, from, to);
    assert!(
        !done(world.store.advance_webhook_progress(HALL, endpoint.id, from, to, news))
            .expect("it is answered")
    );
    assert_eq!(done(world.store.begin_webhook_progress(HALL, &endpoint)).expect("it is answered"), None);
    assert!(
        !done(world.store.replay_webhook(endpoint.id, due.message, world.now())).expect("it is answered")
    );
    let replayed =
        done(world.store.replay_webhooks(endpoint.id, Timestamp::ZERO, world.now())).expect("it is done");
    let forgotten = done(world.store.forget_webhooks(world.now(), vec![endpoint.id])).expect("it is done");
    assert_eq!((replayed, forgotten, statuses(&world, &endpoint)), (0, 0, before));
    world.raw().execute("UPDATE events SET elsewhere = NULL WHERE event_no = 1");
    record(&world, vec![attempt(&due, Next::Delivered)]);
    assert_eq!(feed(&world.store, &endpoint), 1);
    world.submit(Command::ExpireHold { hold: world.hold(&account("cyd"), &[2]) });
    world.finish();
}

/// Two processes whose answers came in opposite orders: each has its transaction, and neither is undone for the other's sake.
#[test]
fn two_that_record_at_once_do_not_hinder_each_other() {
    const MESSAGES: u32 = 40;
    let world = hall(MESSAGES, policy());
    let endpoint = world.add_endpoint(1);
    for seat in 0..MESSAGES {
        world.hold(&account(&format!("acc_{seat}")), &[seat]);
    }
    feed(&world.store, &endpoint);
    let due = world.due(&endpoint);
    let backwards: Vec<DueDelivery> = due.iter().rev().cloned().collect();
    let (other, now, round) = (world.another_store(), world.now(), Barrier::new(2));
    let failed = std::thread::scope(|scope| {
        let recording = [(&*world.store, &due), (&other, &backwards)].map(|(store, due)| {
            let round = &round;
            scope.spawn(move || {
                let mut failed = None;
                for tries in 0..20 {
                    let attempts = due.iter().map(|due| DueDelivery { tries, ..due.clone() });
                    let attempts = attempts.map(|due| attempt(&due, Next::Again(now))).collect();
                    round.wait();
                    failed = failed.or(done(store.record_webhook_attempts(attempts, now)).err());
                    round.wait();
                }
                failed
            })
        });
        recording.map(|one| one.join().expect("it doesn't panic"))
    });
    assert!(matches!(failed, [None, None]), "{failed:?}");
    assert!(
        statuses(&world, &endpoint)
            .iter()
            .all(|(_, status, tries)| (*status, *tries) == (DeliveryStatus::Pending, 20))
    );
    world.finish();
}
