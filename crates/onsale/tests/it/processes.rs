//! Several servers on one PostgreSQL database: they sell as one, each shows what all have done, and one that ends is replaced by
//! those that are left.

mod start;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use onsale_postgres_server::Server;
use serde_json::json;

use crate::util::{
    App, Buyer, Hall, ProviderProcess, SEAT_PRICE, counts, crowd, cut_off, duties, eventually, postgres,
    seats_in_rows, set_for, tally, text, together,
};

/// Whoever waits for an order would be answered after thirty seconds in any case.
const LONG_BEFORE_THE_WAIT_ENDS: Duration = Duration::from_secs(20);
/// Longer than an operation that was under way is left alone.
const LONGER_THAN_A_CALL_MS: i64 = 21_000;

/// Servers on one new database, with one provider.
struct Processes {
    url: String,
    provider: ProviderProcess,
    apps: Vec<App>,
}

impl Processes {
    async fn start(count: usize) -> Processes {
        let url = postgres().create_database().expect("a database");
        let mut processes = Processes { url, provider: ProviderProcess::start(), apps: Vec::new() };
        for _ in 0..count {
            processes.add().await;
        }
        processes
    }

    async fn add(&mut self) {
        let options = App::options().workers().provider(&self.provider).database(&self.url);
        self.apps.push(options.start().await);
    }

    fn first(&self) -> &App {
        &self.apps[0]
    }

    /// Buyers with a session each, who go to one process each, in turn.
    async fn buyers(&self, count: usize) -> Vec<Buyer> {
        let mut buyers = Vec::new();
        for app in self.apps.iter().cycle().take(count) {
            buyers.push(app.buyer().await);
        }
        buyers
    }

    /// Waits until every process shows of an event's seats what is in the rows, version and all; the digits.
    async fn agree(&self, hall: &Hall) -> String {
        let rows = || seats_in_rows(&self.url);
        let path = format!("/v1/events/{}/seats", hall.event_id);
        for app in &self.apps {
            let same = || async {
                let (before, seats) = (rows(), app.buyers.get(&path).await.ok(200));
                let shown = format!("{} {}", seats["version"], text(&seats, "states"));
                (shown == before && before == rows()).then_some(())
            };
            eventually("a process shows what is in the rows", same).await;
        }
        rows().split_once(' ').expect("version and digits").1.to_owned()
    }

    async fn finish(self) {
        for app in self.apps {
            app.finish().await;
        }
    }
}

fn names(count: usize) -> Vec<String> {
    (1..=count).map(|seat| format!("A-{seat}")).collect()
}

fn refs(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_thousand_requests_over_three_processes_one_has_the_seat() {
    let processes = Processes::start(3).await;
    let hall = processes.first().hall(json!({}), &["A-1", "A-2"]).await;
    let wanted = hall.clone();
    let buyers = processes.buyers(64).await;
    let replies = crowd(buyers, 32, move |buyer, _| buyer.hold(&wanted, &["A-1"])).await;
    assert_eq!(tally(&replies), counts([("201 ok", 1), ("409 seat-unavailable", 64 * 32 - 1)]));
    assert_eq!(processes.agree(&hall).await, "10");
    processes.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overlapping_wishes_over_two_processes_are_met_whole_or_not_at_all() {
    const RING: usize = 24;
    let processes = Processes::start(2).await;
    let ring = names(RING);
    let hall = processes.first().hall(json!({ "tickets_per_account_max": 100 }), &refs(&ring)).await;
    let (wanted, wishes) = (hall.clone(), ring.clone());
    let replies = crowd(processes.buyers(48).await, 8, move |buyer, turn| {
        let mut wish = [0, 1, 2].map(|step| wishes[(turn * 7 + step * (1 + turn % 5)) % RING].as_str());
        wish.rotate_left(turn % 3);
        buyer.hold(&wanted, &wish)
    })
    .await;
    let told = tally(&replies);
    assert_eq!(told.keys().collect::<Vec<_>>(), ["201 ok", "409 seat-unavailable"], "{told:?}");
    let mut taken = HashSet::new();
    for hold in replies.iter().filter(|reply| reply.status == 201).map(|reply| &reply.body) {
        let seats = hold["seats"].as_array().expect("seats");
        assert_eq!((seats.len(), &hold["total_minor"]), (3, &json!(3 * SEAT_PRICE)));
        for seat in seats {
            assert!(taken.insert(text(seat, "seat_id").to_owned()), "{seat} has two holders");
        }
    }
    let states = processes.agree(&hall).await;
    for (name, state) in ring.iter().zip(states.chars()) {
        assert_eq!(state == '1', taken.contains(name), "{name} in {states}");
    }
    processes.finish().await;
}

/// What is done through one process is seen through the other: seats, changes since a version, an order that is waited for, a
/// sale that is halted, a key that is revoked, the answer to a request that is sent again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_process_shows_what_the_other_has_done() {
    let processes = Processes::start(2).await;
    let [here, there] = &processes.apps[..] else { panic!("two processes") };
    let hall = here.hall(json!({}), &refs(&names(6))).await;
    let path = format!("/v1/events/{}", hall.event_id);
    // An event that was made through the other is there at once.
    there.buyers.get(&path).await.ok(200);
    let before = there.buyers.get(&format!("{path}/seats")).await.ok(200);
    let ada = here.buyer().await;
    let same_ada = Buyer { client: ada.client.at(&there.buyers.base), ..ada.clone() };
    let hold = ada.hold_as("k-1", &hall, &["A-1", "A-2"]).await.ok(201);
    let again = same_ada.hold_as("k-1", &hall, &["A-1", "A-2"]).await;
    assert!(again.replayed() && again.body == hold, "{}", again.text);
    // The other has its map already, and writes nothing.
    assert_eq!(processes.agree(&hall).await, "110000");
    // Now both write in turn, so that each has the other's changes between its own.
    same_ada.hold(&hall, &["A-3"]).await.ok(201);
    ada.hold(&hall, &["A-5"]).await.ok(201);
    assert_eq!(processes.agree(&hall).await, "111010");
    let since = format!("{path}/seats?since={}", before["version"]);
    let changes = there.buyers.get(&since).await.ok(200);
    assert_eq!(changes["changes"], json!([[0, 1], [1, 1], [2, 1], [4, 1]]), "{changes}");

    // Whoever waits for an order wakes when it changes, wherever the payment is worked on. Callbacks come to the first.
    here.provider.webhook_url(&format!("{}/v1/payment-callbacks/stripe", here.buyers.base)).await;
    here.provider.script("authorize", &["requires_action"]).await;
    let order_id = ada.pay(&hold).await;
    same_ada.await_order(&order_id, "AWAITING_PAYMENT REQUIRES_ACTION").await;
    let wait = format!("/v1/orders/{order_id}?wait_s=30");
    let begun = Instant::now();
    let wakes = async |buyer: &Buyer| {
        let order = buyer.client.get(&wait).await.ok(200);
        assert_eq!(order["order_status"], "CONFIRMED", "{order}");
        assert!(begun.elapsed() < LONG_BEFORE_THE_WAIT_ENDS, "nobody was woken");
    };
    let intent = here.provider.intent_of(&order_id).await;
    tokio::join!(wakes(&ada), wakes(&same_ada), here.provider.complete(&intent, "success"));
    ada.await_order(&order_id, "CONFIRMED CAPTURED").await;

    here.operator.put(&format!("{path}/on-sale"), &json!({ "state": "paused" })).await.ok(200);
    same_ada.hold(&hall, &["A-6"]).await.problem(503, "event-paused");
    let key = here.operator.post("/v1/keys", &json!({ "role": "operator" })).await.ok(201);
    let other = there.operator.with_token(text(&key, "secret"));
    let works = async |wanted: u16| {
        let look = || async {
            let status = other.get("/v1/reconciliation/cases").await.status;
            (status == wanted).then_some(())
        };
        eventually(&format!("a key's answer is {wanted}"), look).await;
    };
    works(200).await;
    here.operator.delete(&format!("/v1/keys/{}", text(&key, "key_id"))).await.ok(204);
    works(401).await;
    processes.finish().await;
}

/// One of two is killed in the middle of a sale, with payments under way. The other goes on, and takes up what was left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_process_left_behind_the_other_takes_up() {
    const SEATS: usize = 40;
    let mut processes = Processes::start(1).await;
    let on_duty = || async { (duties(&processes.url) == 1).then_some(()) };
    // The first has the duty, and with it every payment.
    eventually("somebody has the duty", on_duty).await;
    processes.add().await;
    let [doomed, heir] = &processes.apps[..] else { panic!("two processes") };
    let names = names(SEATS);
    let hall = doomed.hall(json!({ "tickets_per_account_max": SEATS }), &refs(&names)).await;
    // The doomed one hangs on some of its calls.
    doomed.provider.script("authorize", &["ok", "ok", "ok", "delay:4000", "delay:4000", "lost_reply"]).await;
    let ada = heir.buyer().await;
    let mut orders = Vec::new();
    for seat in &names[..SEATS / 2] {
        orders.push(ada.pay(&ada.hold(&hall, &[seat]).await.ok(201)).await);
    }
    let some_paid = || async {
        let report = heir.report(&hall).await;
        (report["orders"].as_i64() >= Some(3)).then_some(())
    };
    eventually("some are paid", some_paid).await;
    processes.apps.remove(0).kill();
    let heir = processes.first();
    for seat in &names[SEATS / 2..] {
        orders.push(ada.pay(&ada.hold(&hall, &[seat]).await.ok(201)).await);
    }
    heir.advance(LONGER_THAN_A_CALL_MS).await;
    for order_id in &orders {
        ada.await_order(order_id, "CONFIRMED CAPTURED").await;
    }
    assert_eq!(processes.agree(&hall).await, "2".repeat(SEATS));
    assert_eq!(heir.open_kinds().await, "");
    for order_id in &orders {
        let money = heir.provider.money(order_id).await;
        assert_eq!(money, [SEAT_PRICE, SEAT_PRICE, 0, 0], "{order_id} is paid once");
    }
    processes.finish().await;
}

/// Someone else's server settings are looked at again with each connection: what weakens a commit is noticed before anything is
/// committed so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_weakened_while_it_is_used_is_used_no_more() {
    let processes = Processes::start(1).await;
    let app = processes.first();
    let hall = app.hall(json!({}), &["A-1", "A-2"]).await;
    let ada = app.buyer().await;
    ada.hold(&hall, &["A-1"]).await.ok(201);
    set_for(&processes.url, "synchronous_commit", Some("off"));
    cut_off(&processes.url);
    for _ in 0..5 {
        ada.hold(&hall, &["A-2"]).await.problem(503, "authority-unavailable");
    }
    let log = app.log_text();
    assert!(log.contains("synchronous_commit = off, but on or remote_apply is needed"), "{log}");
    set_for(&processes.url, "synchronous_commit", None);
    cut_off(&processes.url);
    let held = || async { (ada.hold(&hall, &["A-2"]).await.status == 201).then_some(()) };
    eventually("it is used again", held).await;
    processes.finish().await;
}

/// Servers that start at the same moment on an empty database: the schema is made once, and all serve.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn processes_that_start_together_on_an_empty_database_all_serve() {
    let url: &'static str = postgres().create_database().expect("a database").leak();
    let starting: Vec<_> =
        (0..4).map(|_| tokio::spawn(async move { App::options().database(url).start().await })).collect();
    for app in starting {
        let app = app.await.expect("it serves");
        // Each has been given the same operator's key, and one of them has entered it.
        app.operator.get("/v1/reconciliation/cases").await.ok(200);
        app.finish().await;
    }
}

/// A server of one's own, which a test may change.
fn own_server() -> Server {
    Server::start().expect("PostgreSQL runs")
}

/// Scanners ask whichever process they reach; one of them lets in. Tickets are made once, wherever the duty is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gates_at_several_processes_let_one_in_with_a_ticket() {
    const SEATS: usize = 4;
    let processes = Processes::start(3).await;
    let names = names(SEATS);
    let hall = processes.first().hall(json!({}), &refs(&names)).await;
    let ada = processes.buyers(1).await.remove(0);
    let order_id = ada.pay(&ada.hold(&hall, &refs(&names)).await.ok(201)).await;
    ada.await_tickets(&order_id).await;
    let path = format!("/v1/orders/{order_id}/tickets");
    let tickets = ada.client.get(&path).await.ok(200);
    let tickets = tickets["tickets"].as_array().expect("tickets");
    assert_eq!(tickets.len(), SEATS);
    for app in &processes.apps {
        // Each signs with the installation's key.
        assert_eq!(app.operator.get(&path).await.ok(200)["tickets"], json!(tickets));
    }
    for (number, ticket) in tickets.iter().enumerate() {
        let show = |turn: usize| {
            let app = &processes.apps[turn % processes.apps.len()];
            let scan_id = format!("scan-{number}-{turn}");
            let body = json!({ "scan_id": scan_id, "barcode": ticket["barcode"], "gate": "north" });
            app.operator.post("/v1/gate/scans", &body)
        };
        let replies = together((0..24).map(show).collect()).await;
        let told = |wanted: &str| replies.iter().filter(|reply| reply.body["result"] == wanted).count();
        assert_eq!((told("ADMIT"), told("ALREADY_USED")), (1, 23));
    }
    processes.finish().await;
}
