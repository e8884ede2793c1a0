//! Whoever carries messages may end at any moment, and may not be the only one.

use std::collections::BTreeMap;
use std::sync::mpsc;

use onsale_postgres_server::Server;
use serde_json::{Value, json};

use super::{ORDERS, deliveries, sell, told_of};
use crate::util::{App, ProviderProcess, Receiver, Told, eventually, postgres, text};

/// Killed in the middle of its work, with messages on their way and others not even taken note of.
/// mohamedboukari/bunmail#184: what had happened was kept first and its message after it, and a crash between them lost that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_loses_no_message() {
    let provider = ProviderProcess::start();
    let receiver = Receiver::start().await;
    let app = App::options().provider(&provider).start().await;
    let endpoint = app.tell(&receiver, &ORDERS).await;
    let hall = app.hall(json!({}), &["A-1", "A-2", "A-3"]).await;
    let ada = app.buyer().await;
    let mut orders = vec![sell(&app, &ada, &hall, "A-1").await];
    app.worker("dispatcher").await;
    receiver.answer(|_| (500, None));
    orders.push(sell(&app, &ada, &hall, "A-2").await);
    app.worker("dispatcher").await;
    orders.push(sell(&app, &ada, &hall, "A-3").await);
    receiver.answer(|_| (200, None));
    let data = app.kill();

    let app = App::options().provider(&provider).data(data).start().await;
    let open = deliveries(&app, &endpoint, "?status=PENDING").await;
    assert_eq!((open.len(), &open[1]["tries"]), (2, &json!(1)), "what was tried is known");
    app.advance(5_000).await;
    app.worker("dispatcher").await;
    let told = receiver.told();
    for order in &orders {
        assert_eq!(told_of(&told, order), ORDERS, "{order}");
    }
    assert_eq!(app.endpoint(&endpoint).await["undelivered"], 0);
    app.finish().await;
}

/// Killed while a receiver has a message and has not answered yet: nobody knows that it has it, so it gets it again, under the
/// same id, and before what comes after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_message_whose_answer_nobody_heard_comes_again() {
    let provider = ProviderProcess::start();
    let receiver = Receiver::start().await;
    let app = App::options().provider(&provider).start().await;
    let endpoint = app.tell(&receiver, &ORDERS).await;
    let hall = app.hall(json!({}), &["A-1"]).await;
    let order = sell(&app, &app.buyer().await, &hall, "A-1").await;
    let ((arrived, has_arrived), (let_go, may_go)) = (mpsc::channel(), mpsc::channel::<()>());
    receiver.answer(move |told| {
        arrived.send(told.id.clone()).ok();
        may_go.recv().ok();
        (200, None)
    });
    let pass = app.operator.post("/_test/workers/dispatcher", &json!({}));
    let passing = tokio::spawn(pass.try_send());
    let first = tokio::task::block_in_place(|| has_arrived.recv()).expect("it arrives");
    let data = app.kill();
    drop(let_go);
    assert!(passing.await.expect("it ends").is_none(), "the server is gone");

    let app = App::options().provider(&provider).data(data).start().await;
    assert_eq!(app.endpoint(&endpoint).await["undelivered"], 2);
    receiver.answer(|_| (200, None));
    app.worker("dispatcher").await;
    let told = receiver.told();
    assert_eq!(told.iter().filter(|told| told.id == first).count(), 2);
    assert_eq!(told_of(&told, &order), ORDERS);
    assert_eq!(told.len(), 3);
    app.finish().await;
}

/// Several processes on one database, all of which carry messages whenever they are told to, whoever has the duty; and a receiver
/// that takes no message before it comes for the third time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_at_once_lose_nothing_and_keep_each_orders_order() {
    const SALES: usize = 12;
    let url = postgres().create_database().expect("a database");
    let provider = ProviderProcess::start();
    let receiver = Receiver::start().await;
    let start = async || App::options().workers().provider(&provider).database(&url).start().await;
    let (one, other) = (start().await, start().await);
    let mut tries: BTreeMap<String, usize> = BTreeMap::new();
    receiver.answer(move |told| {
        let tries = tries.entry(told.id.clone()).or_default();
        *tries += 1;
        (if *tries < 3 { 500 } else { 204 }, None)
    });
    one.tell(&receiver, &ORDERS).await;
    let seats: Vec<String> = (1..=SALES).map(|seat| format!("A-{seat}")).collect();
    let names: Vec<&str> = seats.iter().map(String::as_str).collect();
    let hall = one.hall(json!({ "tickets_per_account_max": SALES }), &names).await;
    let ada = one.buyer().await;
    let mut orders = Vec::new();
    for seat in &names {
        orders.push(ada.pay(&ada.hold(&hall, &[seat]).await.ok(201)).await);
    }
    for order in &orders {
        ada.await_order(order, "CONFIRMED CAPTURED").await;
    }
    let all_told = || async {
        // Both, at the same time, and beside their own workers.
        tokio::join!(one.worker("dispatcher"), other.worker("dispatcher"));
        one.advance(150_000).await;
        other.advance(150_000).await;
        let endpoints = one.operator.get("/v1/webhook-endpoints").await.ok(200);
        let told = receiver.told();
        let is_all = orders.iter().all(|order| told_of(&told, order).len() == ORDERS.len());
        (is_all && endpoints["endpoints"][0]["undelivered"] == 0).then_some(())
    };
    eventually("everything is told", all_told).await;
    let told: Vec<Told> = receiver.told().into_iter().filter(|told| told.answered < 300).collect();
    for order in &orders {
        assert_eq!(told_of(&told, order), ORDERS, "{order}");
    }
    // What came twice has one id, and what is different has another.
    let mut ids: BTreeMap<&str, &Value> = BTreeMap::new();
    for told in &told {
        assert_eq!(*ids.entry(&told.id).or_insert(&told.body), &told.body);
    }
    assert_eq!(ids.len(), SALES * ORDERS.len());
    one.finish().await;
    other.finish().await;
}

/// Endpoints are the installation's, whatever home an event is at.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_at_other_homes_are_told_too() {
    let [main, west] =
        [(); 2].map(|()| Server::shared().and_then(Server::create_database).expect("a database"));
    let homes = format!("[[database.homes]]\nname = \"west\"\nurl = \"{west}\"\n");
    let app = App::options().database(&main).config(&homes).start().await;
    let receiver = Receiver::start().await;
    let endpoint = app.tell(&receiver, &ORDERS).await;
    let ada = app.buyer().await;
    let mut orders = Vec::new();
    for home in ["main", "west"] {
        let new =
            json!({ "name": home, "currency": "EUR", "starts_at": "2030-05-01T19:30:00Z", "home": home });
        let hall = app.opened(&new, &["A-1"]).await;
        orders.push(sell(&app, &ada, &hall, "A-1").await);
    }
    app.worker("dispatcher").await;
    let told = receiver.told();
    for order in &orders {
        assert_eq!(told_of(&told, order), ORDERS, "{order}");
    }
    assert_eq!(deliveries(&app, &endpoint, "").await.len(), 4);
    let far = told.iter().find(|told| told.order() == orders[1]).expect("it is told").id.clone();
    let path = format!("/v1/webhook-endpoints/{}/replay", text(&endpoint, "endpoint_id"));
    app.operator.post(&path, &json!({ "webhook_id": far })).await.ok(202);
    receiver.news();
    app.worker("dispatcher").await;
    assert_eq!(receiver.told().iter().map(|told| told.id.clone()).collect::<Vec<_>>(), [far]);
    app.finish().await;
}
