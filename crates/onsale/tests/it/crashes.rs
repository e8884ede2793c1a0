//! A server that stops or is killed in the middle of a sale, and comes back: what it acknowledged is there, what was
//! left open is settled, and nobody pays twice. The provider is a process of its own that sees it all.

mod crowd;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::util::{App, Hall, Options, ProviderProcess, eventually, text};

use self::crowd::{Crowd, Receipts};

const SEATS: usize = 400;
const SHOPPERS: u64 = 24;
/// What the shoppers' choices and the moments of the crashes follow from.
const SEED: u64 = 20_261_130;
/// Longer than an operation that was under way is left alone.
const LONGER_THAN_A_CALL_MS: i64 = 21_000;

/// How a server ends.
#[derive(Clone, Copy)]
enum End {
    Stopped,
    Killed,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_stopped_in_the_middle_loses_nothing() {
    sell_out(End::Stopped, &[90, 200]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_in_the_middle_twice_loses_nothing() {
    sell_out(End::Killed, &[60, 180]).await;
}

fn server(provider: &ProviderProcess) -> Options {
    App::options().workers().provider(provider)
}

/// Sells out a hall, and ends the server each time when about so many requests have been acknowledged. After such an end a
/// payment was never taken up again in spree/spree#10744, and paid tickets stayed pending in alfio-event/alf.io#1421.
async fn sell_out(end: End, moments: &[u64]) {
    let provider = ProviderProcess::start();
    let mut app = server(&provider).start().await;
    let names: Vec<String> = (0..SEATS).map(|seat| format!("A-{seat}")).collect();
    let policy = json!({ "tickets_per_account_max": 10_000, "hold_ttl_s": 3_600, "payment_grace_s": 1_800 });
    let hall = app.hall(policy, &names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let mut crowd = Crowd::new(&app, &hall, SEED);
    for _ in 0..SHOPPERS {
        crowd.enter(&app).await;
    }
    for (count, moment) in (1..).zip(moments) {
        let moment = moment + crowd.chance() % 40;
        let reached = || async { (crowd.acknowledged() >= moment).then_some(()) };
        eventually(&format!("{moment} requests are acknowledged"), reached).await;
        let data = match end {
            End::Stopped => app.stop(),
            End::Killed => app.kill(),
        };
        app = server(&provider).data(data).start().await;
        // What was sent and not answered is looked at again now, and not in a while. The clock is this process's own.
        app.advance(count * LONGER_THAN_A_CALL_MS).await;
        crowd.move_to(&app);
    }
    let receipts = crowd.leave().await;
    check(&app, &hall, &receipts).await;
    app.finish().await;
}

/// Checks that all that was acknowledged is in the books, and that the provider was asked once for each attempt.
async fn check(app: &App, hall: &Hall, receipts: &[Receipts]) {
    assert_eq!(app.seat_states(hall).await, "2".repeat(SEATS));
    let mut seats = BTreeSet::new();
    let mut attempts = BTreeMap::new();
    let mut replays = 0;
    for receipts in receipts {
        replays += receipts.replays;
        for hold in &receipts.holds {
            let now = app.operator.get(&format!("/v1/holds/{}", text(hold, "hold_id"))).await.ok(200);
            assert_eq!((&now["status"], &now["seats"]), (&json!("CONVERTED"), &hold["seats"]), "{now}");
            for seat in hold["seats"].as_array().expect("seats") {
                assert!(seats.insert(text(seat, "seat_id").to_owned()), "{seat} was held twice to the end");
            }
        }
        for (order_id, tries) in &receipts.orders {
            let order = app.operator.get(&format!("/v1/orders/{order_id}")).await.ok(200);
            assert_eq!(text(&order, "order_status"), "CONFIRMED", "{order}");
            assert_eq!(text(&order, "payment_status"), "CAPTURED", "{order}");
            attempts.insert(order_id.clone(), *tries);
        }
    }
    assert_eq!(seats.len(), SEATS);
    assert!(replays > 0, "nobody has asked again");
    let report = app.report(hall).await;
    assert_eq!((&report["sold"], &report["orders"]), (&json!(SEATS), &json!(attempts.len())), "{report}");
    assert_eq!(app.open_kinds().await, "");

    let mut asked: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let log = app.provider.log().await;
    for call in log.iter().filter(|call| call["operation"] == "authorize") {
        let key = text(call, "idempotency_key").to_owned();
        asked.entry(text(call, "order_id").to_owned()).or_default().insert(key);
    }
    let asked: BTreeMap<String, usize> =
        asked.into_iter().map(|(order_id, keys)| (order_id, keys.len())).collect();
    assert_eq!(asked, attempts, "attempts to pay, by order");
    assert!(asked.values().any(|tries| *tries > 1), "no card was declined");
    captured_once(&log, &asked);
}

/// Each order's money was taken under one key, however often it was asked for.
fn captured_once(log: &[Value], orders: &BTreeMap<String, usize>) {
    for order_id in orders.keys() {
        let of_order =
            |call: &&Value| call["operation"] == "capture" && call["order_id"] == order_id.as_str();
        let keys: BTreeSet<&str> =
            log.iter().filter(of_order).map(|call| text(call, "idempotency_key")).collect();
        assert_eq!(keys.len(), 1, "captures of {order_id}");
    }
}
