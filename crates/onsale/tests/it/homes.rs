//! Two databases on servers of their own, and events in each: what happens to one is not noticed at the other, and while one is
//! away what is known of its events stays to be looked at.

mod line;

use std::sync::Arc;
use std::time::{Duration, Instant};

use onsale_postgres_server::Server;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use self::line::Line;
use crate::util::{App, Hall, Options, ProviderProcess, SEAT_PRICE, eventually, finish, program, text};

/// A home that is away refuses at once. This leaves room for a busy machine.
const AT_ONCE: Duration = Duration::from_secs(2);

/// An installation with two homes, main and west.
struct Installation {
    main: Server,
    west: Server,
    /// URL of each.
    urls: [String; 2],
    provider: ProviderProcess,
}

impl Installation {
    fn make() -> Installation {
        let [main, west] = [(); 2].map(|()| Server::start().expect("PostgreSQL runs"));
        let urls = [&main, &west].map(|server| server.create_database().expect("a database"));
        Installation { main, west, urls, provider: ProviderProcess::start() }
    }

    /// A process whose workers work when they are told to.
    fn quiet(&self) -> Options {
        let homes = format!("[[database.homes]]\nname = \"west\"\nurl = \"{}\"\n", self.urls[1]);
        App::options().provider(&self.provider).database(&self.urls[0]).config(&homes)
    }

    fn options(&self) -> Options {
        self.quiet().workers()
    }

    async fn start(&self) -> App {
        self.options().start().await
    }
}

async fn hall_at(app: &App, home: &str) -> Hall {
    let new = json!({
        "name": home, "currency": "EUR", "starts_at": "2030-05-01T19:30:00Z", "home": home,
        "policy": { "tickets_per_account_max": 100 },
    });
    app.opened(&new, &["A-1", "A-2", "A-3", "A-4", "A-5", "A-6"]).await
}

fn at(hall: &Hall) -> String {
    format!("/v1/events/{}", hall.event_id)
}

/// Waits until a process says whether an event can be booked.
async fn until_bookable(app: &App, hall: &Hall, is_bookable: bool) {
    let look = || async {
        let event = app.buyers.get(&at(hall)).await.ok(200);
        (event["bookable"] == is_bookable).then_some(())
    };
    eventually(&format!("bookable is {is_bookable}"), look).await;
}

/// The homes that a process says are away.
async fn away(app: &App) -> Vec<String> {
    let ready = app.buyers.get("/readyz").await;
    let homes = ready.body["homes"].as_array().expect("homes").clone();
    let away = homes.iter().filter(|home| home["away"] == true);
    away.map(|home| text(home, "name").to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_home_that_is_away_is_missed_by_nobody_else_and_sells_again_when_it_is_back() {
    let mut installation = Installation::make();
    let app = installation.start().await;
    let (here, far) = (hall_at(&app, "main").await, hall_at(&app, "west").await);
    let ada = app.buyer().await;
    let held = ada.hold(&far, &["A-1"]).await.ok(201);
    let order_id = ada.pay(&ada.hold(&far, &["A-2"]).await.ok(201)).await;
    ada.await_tickets(&order_id).await;
    let before = app.buyers.get(&format!("{}/seats", at(&far))).await.ok(200);
    assert_eq!((&before["states"], &before["bookable"]), (&json!("120000"), &json!(true)));
    app.buyers.get(&format!("{}/manifest", at(&far))).await.ok(200);
    let unread = hall_at(&app, "west").await;
    // Another process, which has read nothing of the events at west.
    let other = installation.start().await;

    installation.west.stop_hard().expect("it is killed");
    // Until then what is left of the server may still take a commit, and not live to say so.
    until_bookable(&app, &far, false).await;
    for turn in 0..20 {
        let begun = Instant::now();
        ada.hold(&far, &["A-3"]).await.problem(503, "authority-unavailable");
        ada.checkout(&held, "pm_card_visa").await.problem(503, "authority-unavailable");
        assert!(begun.elapsed() < AT_ONCE, "turn {turn}: {:?}", begun.elapsed());
        let hold = ada.hold(&here, &["A-1"]).await.ok(201);
        ada.release(&hold).await.ok(204);
    }
    let seats = app.buyers.get(&format!("{}/seats", at(&far))).await;
    assert!(seats.header("etag").expect("an ETag").contains("away"), "another answer, another tag");
    let seats = seats.ok(200);
    assert_eq!(seats["bookable"], false);
    assert_eq!((&seats["states"], &seats["version"]), (&before["states"], &before["version"]));
    let manifest = app.buyers.get(&format!("{}/manifest", at(&far))).await.ok(200);
    assert_eq!(manifest["seats"].as_array().expect("seats").len(), 6);
    assert_eq!(away(&app).await, ["west"]);
    app.buyers.get("/readyz").await.ok(200);
    let metrics = app.operator.get("/metrics").await;
    for line in ["onsale_home_away{home=\"west\"} 1", "onsale_home_away{home=\"main\"} 0"] {
        assert!(metrics.text.contains(line), "{line} is not in {}", metrics.text);
    }
    // What is known stays in the list; what was never read here is not guessed at.
    let listed = app.buyers.get("/v1/events").await.ok(200);
    let listed: Vec<(&str, bool)> = listed["events"]
        .as_array()
        .expect("events")
        .iter()
        .map(|event| (text(event, "home"), event["bookable"] == true))
        .collect();
    assert_eq!(listed, [("west", false), ("west", false), ("main", true)]);
    for path in [at(&unread), format!("{}/seats", at(&unread)), format!("{}/manifest", at(&unread))] {
        other.buyers.get(&path).await.problem(503, "authority-unavailable");
    }
    app.buyers.get(&format!("/v1/orders/{order_id}")).await.problem(401, "unauthenticated");
    ada.client.get(&format!("/v1/orders/{order_id}")).await.problem(503, "authority-unavailable");
    app.operator.get("/v1/reconciliation/cases").await.ok(200);
    // The other home's payments go on.
    let paid = ada.pay(&ada.hold(&here, &["A-4"]).await.ok(201)).await;
    ada.await_order(&paid, "CONFIRMED CAPTURED").await;

    installation.west.start_again().expect("it starts");
    until_bookable(&app, &far, true).await;
    let held_again = || async { (ada.hold(&far, &["A-3"]).await.status == 201).then_some(()) };
    eventually("it sells again", held_again).await;
    // Who asked too early leaves the server alone for a moment, and others with it.
    let order = format!("/v1/orders/{order_id}");
    let shown_again = || async { (ada.client.get(&order).await.status == 200).then_some(()) };
    eventually("its orders are shown again", shown_again).await;
    let order_id = ada.pay(&held).await;
    ada.await_order(&order_id, "CONFIRMED CAPTURED").await;
    assert!(away(&app).await.is_empty());
    other.buyers.get(&at(&unread)).await.ok(200);
    for app in [app, other] {
        app.finish().await;
    }
}

/// A server that is cut off refuses nothing: it just doesn't answer. After a moment that is the same to everyone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_home_that_says_nothing_is_as_away_as_one_that_refuses() {
    let mut installation = Installation::make();
    let line = Line::to(installation.west.folder());
    installation.urls[1] = line.url(&installation.urls[1]);
    let app = installation.start().await;
    let (here, far) = (hall_at(&app, "main").await, hall_at(&app, "west").await);
    let (ada, ben) = (app.buyer().await, app.buyer().await);
    ada.hold(&far, &["A-1"]).await.ok(201);
    app.seat_states(&far).await;
    line.cut();
    // Those who come first wait for it, each as long as a buyer does; nobody else waits with them.
    let first = ada.hold(&far, &["A-2"]);
    let others = async {
        for _ in 0..20 {
            let begun = Instant::now();
            let hold = ben.hold(&here, &["A-1"]).await.ok(201);
            ben.release(&hold).await.ok(204);
            app.buyers.get(&at(&here)).await.ok(200);
            assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
        }
    };
    let (first, ()) = tokio::join!(std::future::IntoFuture::into_future(first), others);
    assert_eq!((first.status, first.header("retry-after").is_some()), (503, true), "{}", first.text);
    until_bookable(&app, &far, false).await;
    for _ in 0..20 {
        let begun = Instant::now();
        ben.hold(&far, &["A-3"]).await.problem(503, "authority-unavailable");
        let seats = app.buyers.get(&format!("{}/seats", at(&far))).await.ok(200);
        assert_eq!((&seats["bookable"], &seats["states"]), (&json!(false), &json!("100000")));
        assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    }
    line.mend();
    let held_again = || async { (ben.hold(&far, &["A-3"]).await.status == 201).then_some(()) };
    eventually("it sells again", held_again).await;
    until_bookable(&app, &far, true).await;
    app.finish().await;
}

/// Whether a message is nobody's can't be said while a home is away. Those that wait behind it are had all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_waits_for_a_home_holds_up_no_other() {
    let mut installation = Installation::make();
    let mut app = installation.quiet().start().await;
    app.expect_strangers();
    let here = hall_at(&app, "main").await;
    let made = app.provider.client.ask(Method::POST, "/v1/payment_intents").body(
        "application/x-www-form-urlencoded",
        "amount=2500&currency=eur&confirm=true&payment_method=pm_card_visa",
    );
    made.await.ok(200);
    let strange = app.provider.client.get("/v1/events?limit=1").await.ok(200)["data"][0].clone();
    assert_eq!(app.callback(&strange).await.ok(200), json!({ "outcome": "parked" }));
    let ada = app.buyer().await;
    app.provider.script("authorize", &["processing"]).await;
    let order_id = ada.pay(&ada.hold(&here, &["A-1"]).await.ok(201)).await;
    app.worker("payments").await;
    app.provider.complete(&app.provider.intent_of(&order_id).await, "success").await;
    app.provider.script("query", &["lost_request"]).await;
    assert_eq!(app.provider.deliver_of(&order_id).await, "parked", "it could not be read back");

    installation.west.stop_hard().expect("it is killed");
    app.advance(11_000).await;
    app.operator.post("/_test/workers/reconciler", &json!({})).await;
    ada.expect_order(&order_id, "CONFIRMED AUTHORIZED").await;

    installation.west.start_again().expect("it starts");
    let passed = || async {
        (app.operator.post("/_test/workers/reconciler", &json!({})).await.status == 200).then_some(())
    };
    eventually("all homes are worked on again", passed).await;
    app.work_until(&ada, &order_id, "CONFIRMED CAPTURED").await;
    app.finish().await;
}

/// The main home has the keys and the directory, and that is all the others need of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_main_home_the_others_sell_on() {
    let mut installation = Installation::make();
    let app = installation.start().await;
    let (here, far) = (hall_at(&app, "main").await, hall_at(&app, "west").await);
    let ada = app.buyer().await;
    installation.main.stop_hard().expect("it is killed");
    until_bookable(&app, &here, false).await;
    ada.hold(&here, &["A-1"]).await.problem(503, "authority-unavailable");
    let order_id = ada.pay(&ada.hold(&far, &["A-1", "A-2"]).await.ok(201)).await;
    ada.await_order(&order_id, "CONFIRMED CAPTURED").await;
    assert_eq!(app.provider.money(&order_id).await, [2 * SEAT_PRICE, 2 * SEAT_PRICE, 0, 0]);
    assert_eq!(away(&app).await, ["main"]);
    app.buyers.get("/readyz").await.ok(200);
    // No key can be made, and no number entered.
    app.operator.post("/v1/keys", &json!({ "role": "reader" })).await.problem(503, "authority-unavailable");
    let new = json!({ "name": "x", "currency": "EUR", "starts_at": "2030-05-01T19:30:00Z", "home": "west" });
    app.operator.post("/v1/events", &new).await.problem(503, "authority-unavailable");
    // With both away nobody can be served, and all that is known can be looked at.
    installation.west.stop_hard().expect("it is killed");
    until_bookable(&app, &far, false).await;
    app.buyers.get("/readyz").await.problem_without_code(503);
    app.buyers.get("/livez").await.ok(200);
    assert_eq!(app.buyers.get("/v1/events").await.ok(200)["events"].as_array().expect("events").len(), 2);

    installation.main.start_again().expect("it starts");
    installation.west.start_again().expect("it starts");
    until_bookable(&app, &here, true).await;
    until_bookable(&app, &far, true).await;
    ada.hold(&here, &["A-1"]).await.ok(201);
    app.finish().await;
}

/// With one home, and that away, there is nothing to sell and still something to look at; and monitoring hears of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_known_of_the_only_home_stays_to_be_looked_at() {
    let mut server = Server::start().expect("PostgreSQL runs");
    let url = server.create_database().expect("a database");
    let app = App::options().workers().database(&url).start().await;
    let hall = app.hall(json!({}), &["A-1", "A-2"]).await;
    let ada = app.buyer().await;
    ada.hold(&hall, &["A-2"]).await.ok(201);
    assert_eq!(app.seat_states(&hall).await, "01");
    server.stop_hard().expect("it is killed");
    until_bookable(&app, &hall, false).await;
    ada.hold(&hall, &["A-1"]).await.problem(503, "authority-unavailable");
    assert_eq!(app.seat_states(&hall).await, "01");
    let listed = app.buyers.get("/v1/events").await.ok(200);
    assert_eq!(listed["events"][0]["bookable"], false, "{listed}");
    app.operator.get("/v1/reconciliation/cases").await.problem(503, "authority-unavailable");
    app.buyers.get("/readyz").await.problem_without_code(503);
    let metrics = app.operator.get("/metrics").await;
    assert!(
        metrics.status == 200 && metrics.text.contains("onsale_home_away{home=\"main\"} 1"),
        "{}",
        metrics.text
    );
    server.start_again().expect("it starts");
    until_bookable(&app, &hall, true).await;
    let held_again = || async { (ada.hold(&hall, &["A-1"]).await.status == 201).then_some(()) };
    eventually("it sells again", held_again).await;
    let cases = || async { (app.operator.get("/v1/reconciliation/cases").await.status == 200).then_some(()) };
    eventually("it is read again", cases).await;
    app.finish().await;
}

/// Where an event is made is said when it is made, once, and every process knows it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_is_made_where_it_is_wanted() {
    let installation = Installation::make();
    let (app, other) = (installation.start().await, installation.start().await);
    let new = |home: Option<&str>| {
        let mut new = json!({ "name": "x", "currency": "EUR", "starts_at": "2030-05-01T19:30:00Z" });
        new.as_object_mut().expect("an object").extend(home.map(|home| ("home".to_owned(), json!(home))));
        new
    };
    let problem = app.operator.post("/v1/events", &new(Some("east"))).await.problem(422, "validation-failed");
    assert_eq!(problem["errors"][0]["pointer"], "/home", "{problem}");
    assert_eq!(app.operator.post("/v1/events", &new(None)).await.ok(201)["home"], "main");
    let make = |app: &App, home| app.operator.post("/v1/events", &new(home)).key("k-1");
    let made = make(&app, Some("west")).await.ok(201);
    assert_eq!((&made["home"], &made["bookable"]), (&json!("west"), &json!(true)));
    for again in [make(&app, Some("west")).await, make(&other, Some("west")).await, make(&other, None).await]
    {
        assert!(again.replayed(), "{}", again.text);
        assert_eq!(again.ok(201), made);
    }
    make(&app, Some("main")).await.problem(422, "idempotency-key-reused");
    // The other process was not there when it was made.
    let path = format!("/v1/events/{}", text(&made, "event_id"));
    assert_eq!(other.buyers.get(&path).await.ok(200)["home"], "west");
    let csv = "seat_id,section,row,seat,category\nA-1,A,1,1,Stalls\n";
    let put = other.operator.ask(Method::PUT, &format!("{path}/manifest"));
    put.body("text/csv", csv).await.ok(200);
    other.buyers.get("/v1/events/evt_00000000000000000000000000").await.problem(404, "not-found");

    // From the command line, with the same settings.
    let config = app.data.path().join("onsale.toml").display().to_string();
    let say = |arguments: &[&str]| {
        let mut command = program(&[arguments, &["--config", &config]].concat());
        command.env("ONSALE_DATABASE_URL", &installation.urls[0]);
        finish(command.spawn().expect("the program starts"))
    };
    let create = ["--name", "y", "--currency", "EUR", "--starts-at", "2030-05-01T19:30:00Z", "--home"];
    let event = |arguments: &[&str]| {
        let mut command = program(&["event", "--config", &config]);
        command.args(arguments).env("ONSALE_DATABASE_URL", &installation.urls[0]);
        finish(command.spawn().expect("the program starts"))
    };
    event(&[&["create"], &create[..], &["east"]].concat()).refused("there is no home \"east\"");
    let id = event(&[&["create"], &create[..], &["west"]].concat()).ok();
    let shown: Value = serde_json::from_str(&event(&["show", id.trim()]).ok()).expect("JSON");
    assert_eq!(shown["home"], "west");
    assert!(event(&["list"]).ok().contains("west"));
    assert_eq!(other.buyers.get(&format!("/v1/events/{}", id.trim())).await.ok(200)["home"], "west");
    assert!(say(&["audit"]).ok().contains("invariants hold"));
    for app in [app, other] {
        app.finish().await;
    }
}

/// A process that was not told of a home refuses what is there, and shows the rest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_home_that_a_process_was_not_told_of_is_not_guessed_at() {
    let installation = Installation::make();
    let app = installation.start().await;
    let (here, far) = (hall_at(&app, "main").await, hall_at(&app, "west").await);
    let alone = App::options().workers().provider(&installation.provider).database(&installation.urls[0]);
    let alone = alone.data(Arc::new(TempDir::new().expect("a folder"))).start().await;
    let ada = alone.buyer().await;
    ada.hold(&here, &["A-1"]).await.ok(201);
    alone.buyers.get(&at(&far)).await.problem(503, "authority-unavailable");
    ada.hold(&far, &["A-1"]).await.problem(503, "authority-unavailable");
    app.finish().await;
    alone.stop();
}
