//! What comes over a socket that no well-behaved client sends, and what each listener has.

mod listeners;
mod pages;

use serde_json::json;

use crate::util::{App, Buyer, Hall, Raw, eventually, fresh_key, text};

/// A request that is served whenever the service goes on.
const PROBE: &str = "GET /v1/events HTTP/1.1\r\nhost: x\r\n\r\n";

/// Checks that a listener serves someone who comes now.
#[track_caller]
fn is_served(app: &App) {
    let reply = Raw::to(&app.buyers.base).send(PROBE).reply();
    assert_eq!(reply.status, 200, "{}", reply.text);
}

/// The bytes of a request for a seat, whole.
fn hold_request(hall: &Hall, token: &str, key: &str, seat: &str, version: &str) -> String {
    let body = json!({ "seats": [seat] }).to_string();
    format!(
        "POST /v1/events/{}/holds HTTP/{version}\r\nhost: x\r\nauthorization: Bearer {token}\r\n\
         idempotency-key: {key}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        hall.event_id,
        body.len()
    )
}

/// A buyer and its token.
async fn buyer(app: &App) -> (Buyer, String) {
    let session = app.buyers.post("/v1/sessions", &json!({})).await.ok(201);
    let token = text(&session, "session_token").to_owned();
    let account_id = text(&session, "account_id").to_owned();
    (Buyer { client: app.buyers.with_token(&token), account_id }, token)
}

/// Waits until no more than `count` connections are open on the buyers' side.
async fn open_connections(app: &App, at_most: i64) {
    let look = || async {
        let metrics = app.operator.get("/metrics").await;
        let line = metrics.text.lines().find(|line| line.starts_with("onsale_connections_open"));
        let open: i64 = line?.rsplit(' ').next()?.parse().ok()?;
        (open <= at_most).then_some(())
    };
    eventually("connections are closed", look).await;
}

/// Clients that are slow, broken or hostile are cut or told so; whoever comes meanwhile is served.
#[tokio::test]
async fn slow_and_broken_requests_are_cut_and_others_are_served() {
    let app = App::options().config("header_read_timeout_ms = 300").start().await;
    let hall = app.hall(json!({}), &["A-1", "A-2", "A-3", "A-4"]).await;
    let (ada, token) = buyer(&app).await;
    let base = &app.buyers.base;

    // A body that never ends: it has its own, longer patience, so its answer is looked for at the end.
    let whole = hold_request(&hall, &token, &fresh_key(), "A-1", "1.1");
    let mut slow_body = Raw::to(base);
    slow_body.send(&whole[..whole.len() - 3]);

    let mut silent = Raw::to(base);
    let mut slow_header = Raw::to(base);
    slow_header.send("GET /livez HTTP/1.1\r\nhost: te");
    let mut idle = Raw::to(base);
    assert_eq!(idle.send(PROBE).reply().status, 200);
    is_served(&app);
    for cut in [&mut silent, &mut slow_header, &mut idle] {
        assert_eq!(cut.read_to_end(), "");
    }

    let large = format!("GET /livez HTTP/1.1\r\nhost: x\r\nx-large: {}\r\n\r\n", "x".repeat(33 * 1024));
    assert_eq!(Raw::to(base).send(large).reply().status, 431);
    let many: String = (0..101).map(|number| format!("x-{number}: 1\r\n")).collect();
    assert_eq!(Raw::to(base).send(format!("GET /livez HTTP/1.1\r\n{many}\r\n")).reply().status, 431);
    let long = format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "x".repeat(33 * 1024));
    let status = Raw::to(base).send(long).reply().status;
    assert!(matches!(status, 414 | 431), "{status}");

    // What follows a good request may be another one, or rubbish.
    let mut pipelined = Raw::to(base);
    pipelined.send(format!("{PROBE}GET /livez HTTP/1.1\r\nhost: x\r\n\r\n\u{1}\u{2} rubbish\r\n\r\n{PROBE}"));
    assert_eq!(
        [pipelined.reply().status, pipelined.reply().status, pipelined.reply().status],
        [200, 200, 400]
    );
    assert_eq!(pipelined.read_to_end(), "", "after rubbish nothing is read");
    for rubbish in [
        "rubbish\r\n\r\n",
        "\u{0}\u{0}\u{0}\u{0}",
        "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}\u{1}\u{fc}\u{3}\u{3}",
        "GET /livez HTTP/9.9\r\n\r\n",
        "GET /livez\r\n\r\n",
        "GET /live z HTTP/1.1\r\n\r\n",
        "GET /livez HTTP/1.1\r\nno colon\r\n\r\n",
        "GET /livez HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        "GET /livez HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let said = Raw::to(base).send(rubbish).read_to_end();
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 400 "), "{rubbish:?}: {said}");
    }
    is_served(&app);

    // The oldest clients.
    let mut old = Raw::to(base);
    assert_eq!(old.send("GET /livez HTTP/1.0\r\n\r\n").reply().status, 200);
    assert_eq!(old.read_to_end(), "");
    let mut old = Raw::to(base);
    old.send(hold_request(&hall, &token, &fresh_key(), "A-2", "1.0")).reply().ok(201);
    assert_eq!(old.read_to_end(), "");

    slow_body.reply().problem(408, "request-timeout");
    slow_body.read_to_end();
    ada.hold(&hall, &["A-1"]).await.ok(201);
    open_connections(&app, 4).await;
    app.finish().await;
}

/// Who hangs up in the middle is not waited for; whether it was done is told to whoever asks again.
#[tokio::test]
async fn who_hangs_up_in_the_middle_may_ask_again() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1", "A-2", "A-3"]).await;
    let (ada, token) = buyer(&app).await;
    let base = &app.buyers.base;
    assert!(Raw::to(base).half_close().read_to_end().is_empty());
    for (seat, key) in [("A-1", "k-1"), ("A-2", "k-2")] {
        let request = hold_request(&hall, &token, key, seat, "1.1");
        let mut raw = Raw::to(base);
        raw.send(&request).half_close();
        let told = raw.try_reply();
        let truth = ada.hold_as(key, &hall, &[seat]).await;
        if let Some(told) = told {
            assert!(truth.replayed(), "an answer that was given is an answer");
            assert_eq!(told.ok(201), truth.body);
        }
        truth.ok(201);
    }
    // Half a header, and half a body.
    let request = hold_request(&hall, &token, "k-3", "A-3", "1.1");
    for part in [40, request.len() - 5] {
        let mut raw = Raw::to(base);
        raw.send(&request[..part]).half_close();
        let told = raw.try_reply();
        assert!(told.is_none_or(|reply| (400..500).contains(&reply.status)));
    }
    for _ in 0..50 {
        Raw::to(base).send(&request[..request.len() - 5]);
    }
    assert_eq!(app.seat_states(&hall).await, "110");
    let fresh = ada.hold_as("k-3", &hall, &["A-3"]).await;
    assert!(!fresh.replayed());
    fresh.ok(201);
    open_connections(&app, 4).await;
    app.finish().await;
}
