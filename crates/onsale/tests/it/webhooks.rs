//! Other systems are told what happens: signed, again until they have it, each order in its order, and nothing is lost.

mod processes;
mod refused;

use serde_json::{Value, json};

use crate::util::{App, Buyer, Hall, Receiver, Told, path_of, text};

const ORDERS: [&str; 2] = ["order.confirmed", "payment.captured"];

/// Sells a seat up to its captured money; the order's id.
async fn sell(app: &App, buyer: &Buyer, hall: &Hall, seat: &str) -> String {
    let hold = buyer.hold(hall, &[seat]).await.ok(201);
    let order = buyer.pay(&hold).await;
    app.passes("payments", 2).await;
    buyer.expect_order(&order, "CONFIRMED CAPTURED").await;
    order
}

/// The types that were told of an order, in the order of their coming, each once.
fn told_of(told: &[Told], order: &str) -> Vec<String> {
    let mut kinds: Vec<String> = Vec::new();
    for told in told.iter().filter(|told| told.order() == order && told.answered < 300) {
        if !kinds.iter().any(|kind| kind == told.kind()) {
            kinds.push(told.kind().to_owned());
        }
    }
    kinds
}

async fn deliveries(app: &App, endpoint: &Value, query: &str) -> Vec<Value> {
    let path = format!("{}{query}", path_of(endpoint, "/deliveries"));
    app.operator.get(&path).await.ok(200)["deliveries"].as_array().expect("deliveries").clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_happens_is_told_signed_and_once() {
    let app = App::start().await;
    let receiver = Receiver::start().await;
    let wants = [
        "sale.opened",
        "hold.placed",
        "hold.released",
        "order.confirmed",
        "payment.captured",
        "order.expired",
    ];
    let endpoint = app.tell(&receiver, &wants).await;
    let secret = text(&endpoint, "secret");
    assert!(secret.starts_with("whsec_") && text(&endpoint, "endpoint_id").starts_with("whe_"), "{endpoint}");
    let hall = app.hall(json!({ "hold_ttl_s": 60 }), &["A-1", "A-2", "A-3"]).await;
    let ada = app.buyer().await;
    let order = sell(&app, &ada, &hall, "A-1").await;
    let given_back = ada.hold(&hall, &["A-2"]).await.ok(201);
    ada.release(&given_back).await.ok(204);
    app.worker("dispatcher").await;
    let told = receiver.told();
    assert!(told.iter().all(|told| told.is_signed_with(secret)), "{told:?}");
    assert!(told.iter().all(|told| told.id.starts_with("msg_") && !told.id.contains('.')), "{told:?}");
    let mut kinds: Vec<&str> = told.iter().map(Told::kind).collect();
    kinds.sort_unstable();
    assert_eq!(
        kinds,
        ["hold.placed", "hold.placed", "hold.released", "order.confirmed", "payment.captured", "sale.opened"]
    );
    assert_eq!(told_of(&told, &order), ORDERS);
    let confirmed = told.iter().find(|told| told.kind() == "order.confirmed").expect("it is told");
    let data = &confirmed.body["data"];
    assert_eq!((text(data, "event_id"), text(data, "order_id")), (&*hall.event_id, &*order));
    assert!(text(data, "hold_id").starts_with("hld_") && data["version"].is_u64());
    assert!(text(&confirmed.body, "timestamp").ends_with('Z'));
    receiver.news();
    app.passes("dispatcher", 2).await;
    assert_eq!(receiver.news(), "", "once");

    // The secret is shown once; who may read reports sees the rest.
    let reader = app.operator.post("/v1/keys", &json!({ "role": "reader" })).await.ok(201);
    let reader = app.operator.with_token(text(&reader, "secret"));
    let listed = reader.get("/v1/webhook-endpoints").await.ok(200);
    assert_eq!(listed["endpoints"][0]["undelivered"], 0);
    assert!(listed["endpoints"][0].get("secret").is_none(), "{listed}");
    let shown = deliveries(&app, &endpoint, "").await;
    assert_eq!(shown.len(), 6);
    assert!(
        shown
            .iter()
            .all(|one| one["status"] == "DELIVERED" && one["tries"] == 1 && one["last_status"] == 204)
    );
    assert_eq!(deliveries(&app, &endpoint, "?status=PENDING").await.len(), 0);
    assert_eq!(deliveries(&app, &endpoint, "?status=DELIVERED&limit=2").await.len(), 2);
    app.finish().await;
}

/// Ten tries, each not before its time and at its time at the latest; then the endpoint is disabled, which is seen everywhere.
/// Enabled again, it is told what it has missed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_taken_is_tried_by_the_schedule_and_then_the_endpoint_is_disabled() {
    const PAUSES_S: [i64; 9] = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];
    let app = App::start().await;
    let receiver = Receiver::start().await;
    receiver.answer(|_| (500, None));
    let endpoint = app.tell(&receiver, &ORDERS).await;
    let hall = app.hall(json!({}), &["A-1", "A-2"]).await;
    let ada = app.buyer().await;
    let order = sell(&app, &ada, &hall, "A-1").await;
    app.worker("dispatcher").await;
    let first = receiver.told().remove(0).id;
    assert_eq!(receiver.news(), "order.confirmed!500", "the capture waits for it");
    for (tries, pause_s) in (1..).zip(PAUSES_S) {
        // A tenth of the pause is left to chance.
        let least_ms = pause_s * 900;
        app.advance(least_ms - 1).await;
        app.worker("dispatcher").await;
        assert_eq!(receiver.news(), "", "{tries}");
        let open = deliveries(&app, &endpoint, "?status=PENDING").await;
        assert_eq!((open.len(), &open[1]["tries"], &open[1]["last_status"]), (2, &json!(tries), &json!(500)));
        app.advance(pause_s * 100 + 1).await;
        app.worker("dispatcher").await;
        let told = receiver.told();
        assert_eq!((told.len(), &told[0].id), (1, &first), "{tries}");
        assert_eq!(receiver.news(), "order.confirmed!500");
    }
    let disabled = app.endpoint(&endpoint).await;
    assert_eq!(
        (&disabled["status"], &disabled["undelivered"]),
        (&json!("DISABLED"), &json!(2)),
        "{disabled}"
    );
    assert!(text(&disabled, "disabled_reason").contains("HTTP 500"), "{disabled}");
    assert_eq!(deliveries(&app, &endpoint, "?status=FAILED").await.len(), 1);
    assert!(app.log_text().contains("Disabled webhook endpoint"), "it is said in the log");
    let metrics = app.operator.get("/metrics").await.text;
    for line in [
        "onsale_webhook_endpoints{status=\"DISABLED\"} 1",
        "onsale_webhook_endpoints{status=\"ENABLED\"} 0",
        "onsale_webhook_deliveries_total{outcome=\"failed\"} 9",
        "onsale_webhook_deliveries_total{outcome=\"given_up\"} 1",
        "onsale_backlog{kind=\"webhooks_undelivered\"} 2",
    ] {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }

    // Ada's session has ended in all that time.
    let other = sell(&app, &app.buyer().await, &hall, "A-2").await;
    receiver.answer(|_| (200, None));
    app.passes("dispatcher", 2).await;
    assert_eq!(receiver.news(), "", "a disabled endpoint is told nothing");
    let enabled = app.operator.post(&path_of(&endpoint, "/enable"), &json!({})).await.ok(200);
    assert_eq!(enabled["status"], "ENABLED");
    app.worker("dispatcher").await;
    let told = receiver.told();
    assert_eq!(
        (told.len(), told_of(&told, &order), told_of(&told, &other)),
        (4, ORDERS.map(str::to_owned).to_vec(), ORDERS.map(str::to_owned).to_vec())
    );
    assert!(told.iter().any(|told| told.id == first), "under its old id");
    app.worker("dispatcher").await;
    assert_eq!(app.endpoint(&endpoint).await["status"], "ENABLED");
    // Requests of days ago are forgotten too.
    app.worker("expirer").await;
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_whose_message_is_not_taken_holds_up_no_other() {
    let app = App::start().await;
    let receiver = Receiver::start().await;
    let endpoint = app.tell(&receiver, &ORDERS).await;
    let hall = app.hall(json!({}), &["A-1", "A-2", "A-3"]).await;
    let ada = app.buyer().await;
    let stuck = sell(&app, &ada, &hall, "A-1").await;
    let others = [sell(&app, &ada, &hall, "A-2").await, sell(&app, &ada, &hall, "A-3").await];
    let order = stuck.clone();
    receiver.answer(move |told| (if told.order() == order { 503 } else { 200 }, None));
    app.worker("dispatcher").await;
    let told = receiver.told();
    for other in &others {
        assert_eq!(told_of(&told, other), ORDERS);
    }
    assert_eq!(
        told.iter().filter(|told| told.order() == stuck).map(Told::kind).collect::<Vec<_>>(),
        [ORDERS[0]]
    );
    assert_eq!(app.endpoint(&endpoint).await["undelivered"], 2);
    receiver.answer(|_| (200, None));
    receiver.news();
    app.advance(5_000).await;
    app.worker("dispatcher").await;
    assert_eq!(receiver.news(), ORDERS.join(" "));
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_may_ask_for_time_and_one_that_is_gone_is_left_alone() {
    let app = App::start().await;
    let (busy, gone) = (Receiver::start().await, Receiver::start().await);
    let (waits, ends) = (app.tell(&busy, &ORDERS).await, app.tell(&gone, &ORDERS).await);
    busy.answer(|_| (429, Some("600")));
    gone.answer(|_| (410, None));
    let hall = app.hall(json!({}), &["A-1", "A-2"]).await;
    let ada = app.buyer().await;
    sell(&app, &ada, &hall, "A-1").await;
    app.worker("dispatcher").await;
    assert_eq!(
        (busy.news(), gone.news()),
        ("order.confirmed!429".to_owned(), "order.confirmed!410".to_owned())
    );
    let ended = app.endpoint(&ends).await;
    assert!(ended["status"] == "DISABLED" && text(&ended, "disabled_reason").contains("410"), "{ended}");
    // Another message would be too much for it as well.
    sell(&app, &ada, &hall, "A-2").await;
    app.advance(599_999).await;
    app.worker("dispatcher").await;
    assert_eq!((busy.news(), gone.news()), (String::new(), String::new()));
    busy.answer(|_| (202, None));
    app.advance(1).await;
    app.worker("dispatcher").await;
    assert_eq!(busy.told().len(), 4);
    assert_eq!(app.endpoint(&waits).await["undelivered"], 0);
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_are_replayed_secrets_rotated_and_endpoints_deleted() {
    let app = App::start().await;
    let receiver = Receiver::start().await;
    let endpoint = app.tell(&receiver, &ORDERS).await;
    let hall = app.hall(json!({}), &["A-1", "A-2", "A-3"]).await;
    let ada = app.buyer().await;
    sell(&app, &ada, &hall, "A-1").await;
    app.worker("dispatcher").await;
    let first = receiver.told();
    app.advance(60_000).await;
    let since = app.operator.get("/_test/clock").await.ok(200);
    sell(&app, &ada, &hall, "A-2").await;
    app.worker("dispatcher").await;
    receiver.news();

    let replay = |body: Value| app.operator.post(&path_of(&endpoint, "/replay"), &body);
    assert_eq!(replay(json!({ "webhook_id": first[0].id })).await.ok(202)["replayed"], 1);
    app.worker("dispatcher").await;
    let again = receiver.told();
    assert_eq!((again.len(), &again[0].id, &again[0].body), (1, &first[0].id, &first[0].body));
    receiver.news();
    assert_eq!(replay(json!({ "since": text(&since, "now") })).await.ok(202)["replayed"], 2);
    app.worker("dispatcher").await;
    assert_eq!(receiver.news(), ORDERS.join(" "));

    // For a day both secrets are good.
    let rotated = app.operator.post(&path_of(&endpoint, "/secret"), &json!({})).await.ok(200);
    let (old, new) = (text(&endpoint, "secret"), text(&rotated, "secret"));
    assert!(old != new && rotated["both_secrets_until"].is_string());
    sell(&app, &ada, &hall, "A-3").await;
    app.worker("dispatcher").await;
    assert!(receiver.told().iter().all(|told| told.is_signed_with(old) && told.is_signed_with(new)));
    receiver.news();
    app.advance(24 * 3_600_000).await;
    replay(json!({ "webhook_id": first[0].id })).await.ok(202);
    app.worker("dispatcher").await;
    assert!(receiver.told().iter().all(|told| !told.is_signed_with(old) && told.is_signed_with(new)));
    receiver.news();

    // What was delivered is kept for three days.
    app.advance(3 * 24 * 3_600_000 + 1).await;
    app.worker("dispatcher").await;
    assert_eq!(deliveries(&app, &endpoint, "").await.len(), 0);
    let problem = replay(json!({ "webhook_id": first[0].id })).await.problem(422, "validation-failed");
    assert_eq!(problem["errors"][0]["pointer"], "/webhook_id");
    replay(json!({ "since": text(&since, "now") })).await.problem(422, "validation-failed");

    app.operator.delete(&path_of(&endpoint, "")).await.ok(204);
    app.operator.delete(&path_of(&endpoint, "")).await.problem(404, "not-found");
    app.operator.get(&path_of(&endpoint, "")).await.problem(404, "not-found");
    replay(json!({ "webhook_id": first[0].id })).await.problem(404, "not-found");
    app.operator.post(&path_of(&endpoint, "/enable"), &json!({})).await.problem(404, "not-found");
    assert_eq!(app.operator.get("/v1/webhook-endpoints").await.ok(200), json!({ "endpoints": [] }));
    app.worker("dispatcher").await;
    assert_eq!(receiver.news(), "");
    app.finish().await;
}
