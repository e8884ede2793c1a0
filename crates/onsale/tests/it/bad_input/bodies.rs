//! Bodies that are broken, of another type or shape, or too large, at every route that takes JSON.

use reqwest::Method;
use serde_json::{Value, json};

use crate::util::{Ask, Client, OPERATOR_KEY, Raw, fresh_key, text};

use super::Stage;

/// A route that takes JSON, with a body it would take.
struct Route {
    client: Client,
    method: Method,
    path: String,
    good: Value,
}

impl Route {
    fn ask(&self) -> Ask {
        self.client.ask(self.method.clone(), &self.path).key(&fresh_key())
    }

    fn json(&self, body: impl Into<String>) -> Ask {
        self.ask().body("application/json", body.into())
    }
}

/// Every route that takes JSON, but for the manifest and the callbacks, which have formats of their own.
fn routes(stage: &Stage) -> Vec<Route> {
    let (operator, ada) = (&stage.app.operator, &stage.ada.client);
    let case_id = text(&stage.hold, "hold_id").replace("hld_", "cas_");
    let route =
        |client: &Client, method, path: String, good| Route { client: client.clone(), method, path, good };
    vec![
        route(
            operator,
            Method::POST,
            "/v1/events".to_owned(),
            json!({ "name": "x", "currency": "EUR", "starts_at": "2030-05-01T19:30:00Z" }),
        ),
        route(
            operator,
            Method::PUT,
            stage.path("/prices"),
            json!({ "price_levels": [{ "price_level": "Stalls", "amount_minor": 100 }] }),
        ),
        route(operator, Method::PUT, stage.path("/on-sale"), json!({ "state": "paused" })),
        route(
            operator,
            Method::PUT,
            stage.path("/seats/status"),
            json!({ "status": "NOT_FOR_SALE", "seats": ["A-2"] }),
        ),
        route(
            operator,
            Method::POST,
            format!("/v1/reconciliation/cases/{case_id}/resolution"),
            json!({ "action": "dismiss", "note": "x" }),
        ),
        route(operator, Method::POST, "/v1/keys".to_owned(), json!({ "role": "reader" })),
        route(operator, Method::POST, "/_test/clock".to_owned(), json!({ "advance_ms": 1 })),
        route(ada, Method::POST, stage.path("/holds"), json!({ "seats": ["A-2"] })),
        route(
            ada,
            Method::POST,
            stage.hold_path("/checkout"),
            json!({ "payment_method_token": "pm_card_visa" }),
        ),
    ]
}

#[tokio::test]
async fn a_body_that_is_not_the_json_of_its_route_is_refused_everywhere() {
    let stage = Stage::set().await;
    for route in routes(&stage) {
        let good = route.good.to_string();
        let member = route.good.as_object().and_then(|good| good.keys().next()).expect("a member").clone();
        let again = format!("{{\"{member}\":{},{}", route.good[&member], good.trim_start_matches('{'));
        let mut odd = route.good.clone();
        odd["seat s"] = json!(1);
        // Body, and where its fault is.
        let cases = [
            ("", ""),
            ("{", ""),
            ("nonsense", ""),
            ("\u{feff}{}", ""),
            (&format!("{good} {good}"), ""),
            (&good.replace('"', "'"), ""),
            ("7", ""),
            ("null", ""),
            ("\"{}\"", ""),
            (&odd.to_string(), "/seat s"),
            (&again, &format!("/{member}")),
        ];
        for (body, place) in cases {
            stage.faulty(route.json(body), &[place]).await;
        }
        let deep = route.json(format!("{{\"{member}\":{}", "[".repeat(10_000))).await;
        assert_eq!(deep.status, 422, "{}: {}", deep.what, deep.text);
    }
    stage.finish().await;
}

#[tokio::test]
async fn a_member_of_another_type_is_refused_where_it_stands() {
    let stage = Stage::set().await;
    let routes = routes(&stage);
    let cases = [
        ("/v1/events", "name", json!(7), "/name"),
        ("/v1/events", "currency", json!(null), "/currency"),
        ("/v1/events", "starts_at", json!(1_893_456_000), "/starts_at"),
        ("/v1/events", "policy", json!("queue"), "/policy"),
        ("/v1/events", "policy", json!({ "hold_ttl_s": "300" }), "/policy/hold_ttl_s"),
        ("/v1/events", "policy", json!({ "hold_ttl_s": -1 }), "/policy/hold_ttl_s"),
        ("/v1/events", "policy", json!({ "hold_ttl_s": 1.5 }), "/policy/hold_ttl_s"),
        ("/v1/events", "policy", json!({ "shoppers_max": 1_u64 << 40 }), "/policy/shoppers_max"),
        ("/v1/events", "policy", json!({ "hold_ttl": 300 }), "/policy/hold_ttl"),
        ("/prices", "price_levels", json!({}), "/price_levels"),
        ("/prices", "price_levels", json!(["Stalls"]), "/price_levels/0"),
        ("/prices", "price_levels", json!([{ "price_level": "Stalls" }]), "/price_levels/0/amount_minor"),
        ("/on-sale", "state", json!(true), "/state"),
        ("/seats/status", "seats", json!("A-2"), "/seats"),
        ("/seats/status", "seats", json!(["A-2", 7]), "/seats/1"),
        ("/resolution", "action", json!(["void"]), "/action"),
        ("/resolution", "note", json!(null), "/note"),
        ("/keys", "role", json!({}), "/role"),
        ("/keys", "name", json!(1), "/name"),
        ("/_test/clock", "advance_ms", json!("1"), "/advance_ms"),
        ("/holds", "seats", json!("A-2"), "/seats"),
        ("/holds", "seats", json!({ "0": "A-2" }), "/seats"),
        ("/holds", "seats", json!([7]), "/seats/0"),
        ("/holds", "seats", json!(["A-2", null]), "/seats/1"),
        ("/holds", "seats", json!([["A-2"]]), "/seats/0"),
        ("/checkout", "payment_method_token", json!(1), "/payment_method_token"),
        ("/checkout", "email", json!(["ada@example.org"]), "/email"),
        ("/checkout", "return_url", json!(1), "/return_url"),
    ];
    for (path, member, value, place) in cases {
        let route = routes.iter().find(|route| route.path.ends_with(path)).expect("a route");
        let mut body = route.good.clone();
        body[member] = value;
        stage.faulty(route.json(body.to_string()), &[place]).await;
    }
    // Where several are missing, the first is named.
    for (path, place) in [
        ("/v1/events", "/name"),
        ("/prices", "/price_levels"),
        ("/on-sale", "/state"),
        ("/seats/status", "/seats"),
        ("/resolution", "/action"),
        ("/keys", "/role"),
        ("/_test/clock", ""),
        ("/holds", "/seats"),
        ("/checkout", "/payment_method_token"),
    ] {
        let route = routes.iter().find(|route| route.path.ends_with(path)).expect("a route");
        stage.faulty(route.json("{}"), &[place]).await;
    }
    stage.finish().await;
}

#[tokio::test]
async fn a_body_of_another_kind_is_not_read() {
    let stage = Stage::set().await;
    for route in routes(&stage) {
        let good = route.good.to_string();
        for kind in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "application/json; charset=latin1",
            "application/jsonp",
            "",
        ] {
            stage.refuses(route.ask().body(kind, good.clone()), 415, "unsupported-media-type", &[]).await;
        }
        let twice = route.json(good.clone()).header("Content-Type", "text/plain");
        stage.refuses(twice, 415, "unsupported-media-type", &[]).await;
    }
    for kind in ["text/html", "application/xml", "", "multipart/form-data; boundary=x"] {
        let ask = stage.app.operator.ask(Method::PUT, &stage.path("/manifest")).body(kind, "seat_id");
        stage.refuses(ask, 415, "unsupported-media-type", &[]).await;
    }
    stage.finish().await;
}

/// As long as a body may be it is read; one byte more and it isn't, whether or not its length was declared.
#[tokio::test]
async fn a_body_over_its_bound_is_refused() {
    const BODY_BYTES_MAX: usize = 64 * 1024;
    const LIST_BYTES_MAX: usize = 4 * 1024 * 1024;
    // Ten thousand seats, or what was erased.
    const LISTS: [&str; 3] = ["/seats/status", "/seats/allocation", "/erasures/replay"];
    let stage = Stage::set().await;
    for route in routes(&stage) {
        let is_list = LISTS.iter().any(|list| route.path.ends_with(list));
        let bytes_max = if is_list { LIST_BYTES_MAX } else { BODY_BYTES_MAX };
        let good = route.good.to_string();
        let padded = |length: usize| format!("{good}{}", " ".repeat(length - good.len()));
        let large = padded(bytes_max + 1);
        stage.refuses(route.json(large.clone()), 413, "payload-too-large", &[]).await;

        let token = match route.client.base == stage.app.operator.base {
            true => OPERATOR_KEY.to_owned(),
            false => stage.ada_token.clone(),
        };
        let head = format!(
            "{} {} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\nidempotency-key: {}\r\n\
             content-type: application/json\r\n",
            route.method,
            route.path,
            fresh_key()
        );
        let mut chunked = Raw::to(&route.client.base);
        chunked.send(format!("{head}transfer-encoding: chunked\r\n\r\n"));
        for chunk in large.as_bytes().chunks(10_000) {
            chunked.send(format!("{:x}\r\n", chunk.len())).send(chunk).send("\r\n");
        }
        chunked.send("0\r\n\r\n").reply().problem(413, "payload-too-large");

        // Only declared: refused without waiting for what is never sent.
        let mut declared = Raw::to(&route.client.base);
        declared.send(format!("{head}content-length: 99999999\r\n\r\n"));
        declared.reply().problem(413, "payload-too-large");

        let mut broken = Raw::to(&route.client.base);
        broken.send(format!("{head}transfer-encoding: chunked\r\n\r\nzz\r\n{good}\r\n0\r\n\r\n"));
        let answer = broken.try_reply();
        assert!(answer.is_none_or(|reply| (400..500).contains(&reply.status)), "a broken chunk is taken");
    }
    let ada = &stage.ada.client;
    let good = format!("{{\"seats\":[\"A-2\"]}}{}", " ".repeat(BODY_BYTES_MAX - 17));
    assert_eq!(good.len(), BODY_BYTES_MAX);
    ada.ask(Method::POST, &stage.path("/holds"))
        .key(&fresh_key())
        .body("application/json", good)
        .await
        .ok(201);
    stage.finish().await;
}
