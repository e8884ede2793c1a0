//! More than the server can bear, or someone it waits for who doesn't come: what it can still do it does, at once.

use std::net::{SocketAddr, TcpStream};

use serde_json::json;
use tokio::task::JoinSet;

use crate::util::{App, Lock, Raw, eventually};

/// Connections that are opened and left alone.
const IDLE: usize = 10_000;
/// Memory of the server with all of them open. A connection costs some 15 KiB in a release build.
const MEMORY_MIB_MAX: u64 = 512;

/// The crowd that has come and does nothing takes no place from those who buy.
#[tokio::test]
async fn ten_thousand_idle_connections_are_in_nobodys_way() {
    let files = rlimit::increase_nofile_limit(IDLE as u64 + 1_000).expect("the limit can be asked for");
    assert!(files > IDLE as u64, "the system allows {files} open files; this test needs more");
    let app = App::options().config("header_read_timeout_ms = 120000").start().await;
    let hall = app.hall(json!({}), &["A-1", "A-2"]).await;
    let (ada, ben) = (app.buyer().await, app.buyer().await);
    let address: SocketAddr =
        app.buyers.base.strip_prefix("http://").and_then(|base| base.parse().ok()).expect("an address");
    let mut idle = Vec::with_capacity(IDLE);
    for _ in 0..IDLE {
        idle.push(TcpStream::connect(address).expect("there is room"));
    }
    open_connections(&app, |open| open >= IDLE as i64).await;
    let hold = ada.hold(&hall, &["A-1"]).await.ok(201);
    let order = ada.pay(&hold).await;
    app.work_until(&ada, &order, "CONFIRMED CAPTURED").await;
    ben.hold(&hall, &["A-1"]).await.problem(409, "seat-unavailable");
    assert_eq!(Raw::to(&app.buyers.base).send("GET /livez HTTP/1.1\r\nhost: x\r\n\r\n").reply().status, 200);
    let memory = app.memory_mib();
    assert!(memory < MEMORY_MIB_MAX, "{memory} MiB");
    drop(idle);
    open_connections(&app, |open| open < 100).await;
    ben.hold(&hall, &["A-2"]).await.ok(201);
    app.finish().await;
}

/// Waits until the number of open connections is right.
async fn open_connections(app: &App, is_right: impl Fn(i64) -> bool) {
    let look = || async {
        let metrics = app.operator.get("/metrics").await;
        let line = metrics.text.lines().find(|line| line.starts_with("onsale_connections_open"));
        let open: i64 = line?.rsplit(' ').next()?.parse().ok()?;
        is_right(open).then_some(())
    };
    eventually("the number of connections is right", look).await;
}

/// A provider that takes every call and is silent for long: whoever pays waits, whoever chooses seats doesn't notice, and
/// nothing is guessed. Afterwards each payment is there once. The two minutes are the server's; the provider's silence is
/// five times the patience of a call.
#[tokio::test]
async fn a_provider_that_hangs_for_two_minutes_keeps_nobody_from_choosing_seats() {
    const BUYERS: usize = 8;
    let options = App::options().workers();
    let app = options.config("[payment]\nconnections_max = 4\nrequest_timeout_ms = 1000").start().await;
    let names: Vec<String> = (1..=2 * BUYERS).map(|seat| format!("A-{seat}")).collect();
    let seats: Vec<&str> = names.iter().map(String::as_str).collect();
    let hall = app.hall(json!({ "hold_ttl_s": 900 }), &seats).await;
    app.provider.script("authorize", &["delay:5000"; BUYERS]).await;
    app.provider.script("query", &["delay:5000"; BUYERS]).await;
    let mut paying = Vec::new();
    for seat in &seats[..BUYERS] {
        let buyer = app.buyer().await;
        let hold = buyer.hold(&hall, &[*seat]).await.ok(201);
        let order = buyer.pay(&hold).await;
        paying.push((buyer, order));
    }
    // All that may call at once wait for an answer, and the rest waits for them.
    let hangs = || async { (app.provider.log().await.len() >= 4).then_some(()) };
    eventually("the provider is asked", hangs).await;
    for seat in &seats[BUYERS..] {
        let buyer = app.buyer().await;
        let hold = buyer.hold(&hall, &[*seat]).await.ok(201);
        buyer.release(&hold).await.ok(204);
    }
    for (buyer, order) in &paying {
        assert_eq!(buyer.order(order).await["order_status"], "AWAITING_PAYMENT");
    }
    app.advance(120_000).await;
    assert!(app.report(&hall).await["orders"].as_i64() == Some(0), "nothing is guessed");
    for (buyer, order) in &paying {
        let paid = || async {
            app.advance(1_000).await;
            let order = buyer.order(order).await;
            (order["order_status"] == "CONFIRMED" && order["payment_status"] == "CAPTURED").then_some(())
        };
        eventually("the payment is there", paid).await;
        assert_eq!(app.provider.money(order).await[1], 2_500, "once");
    }
    app.finish().await;
}

/// Another program locks the database: the first wait for it, and whoever would wait too long is told at once, at the door.
/// Looking goes on, and the door opens again.
#[tokio::test]
async fn who_would_wait_too_long_is_turned_away_at_the_door() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1", "A-2", "A-3"]).await;
    let (ada, ben) = (app.buyer().await, app.buyer().await);
    let hold = ada.hold(&hall, &["A-1"]).await.ok(201);
    let lock = Lock::take(app.data.path());
    let mut waiting = JoinSet::new();
    let refused = loop {
        waiting.spawn(ben.hold(&hall, &["A-2"]).into_future());
        let pause = tokio::time::Duration::from_millis(50);
        if let Ok(Some(reply)) = tokio::time::timeout(pause, waiting.join_next()).await {
            break reply.expect("an answer");
        }
    };
    refused.problem(503, "overloaded");
    // Without a body that could be read, and without a token that anyone would look at.
    let nobody = app.buyers.ask(reqwest::Method::POST, &format!("/v1/events/{}/holds", hall.event_id));
    let told = nobody.await;
    assert!(told.header("retry-after").is_some(), "{}", told.text);
    told.problem(503, "overloaded");
    assert_eq!(app.seat_states(&hall).await, "100");
    ada.hold_now(&hold).await;
    drop(lock);
    while let Some(reply) = waiting.join_next().await {
        let reply = reply.expect("an answer");
        assert!(matches!(reply.status, 201 | 409 | 503), "{}", reply.text);
    }
    let opens = || async { (ada.hold(&hall, &["A-3"]).await.status == 201).then_some(()) };
    eventually("the door opens again", opens).await;
    app.finish().await;
}
