//! What each listener bears and what it has.

use std::collections::{HashMap, HashSet};

use reqwest::Method;
use serde_json::json;

use crate::util::{App, Raw, eventually, fresh_key, text};

use super::PROBE;

/// One connection too many is told so at once; those that are in are served; nor does a crowd of buyers keep operators
/// out.
#[tokio::test]
async fn connections_over_the_limit_are_told_so_and_the_others_are_served() {
    const CONNECTIONS_MAX: usize = 6;
    let app = App::options().config(&format!("connections_max = {CONNECTIONS_MAX}")).start().await;
    let hall = app.hall(json!({}), &["A-1"]).await;
    let ada = app.buyer().await;
    let mut inside = Vec::new();
    let refused = loop {
        let mut raw = Raw::to(&app.buyers.base);
        let reply = raw.send(PROBE).reply();
        if reply.status != 200 {
            break reply;
        }
        inside.push(raw);
        assert!(inside.len() <= CONNECTIONS_MAX, "all are let in");
    };
    refused.problem(503, "overloaded");
    // Told at once, whether or not it asks for anything.
    for _ in 0..20 {
        Raw::to(&app.buyers.base).reply().problem(503, "overloaded");
    }
    for raw in &mut inside {
        assert_eq!(raw.send(PROBE).reply().status, 200);
    }
    for _ in 0..CONNECTIONS_MAX - 1 {
        // Each a connection of its own.
        let status =
            Raw::to(&app.operator.base).send("GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n").reply().status;
        assert_eq!(status, 200, "buyers keep the operators out");
    }
    inside.clear();
    let look = || async { (Raw::to(&app.buyers.base).send(PROBE).reply().status == 200).then_some(()) };
    eventually("places come free", look).await;
    ada.hold(&hall, &["A-1"]).await.ok(201);
    app.finish().await;
}

#[tokio::test]
async fn operators_routes_are_on_their_listener_alone() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1"]).await;
    let made = app.operator.post("/v1/keys", &json!({ "role": "partner" })).await.ok(201);
    let event = |rest: &str| format!("/v1/events/{}{rest}", hall.event_id);
    let buyers = app.operator.at(&app.buyers.base);
    let before = app.report(&hall).await;
    let csv = "seat_id,section,row,seat,category\nB-1,A,1,1,Stalls\n";
    // Where buyers have a path with another method, the path is there and the method isn't.
    for (method, path, status) in [
        (Method::POST, "/v1/events".to_owned(), 405),
        (Method::PUT, event("/manifest"), 405),
        (Method::PUT, event("/prices"), 404),
        (Method::PUT, event("/on-sale"), 404),
        (Method::PUT, event("/seats/status"), 404),
        (Method::GET, event("/report"), 404),
        (Method::GET, "/v1/reconciliation/cases".to_owned(), 404),
        (Method::POST, format!("/v1/reconciliation/cases/cas_{}/resolution", "0".repeat(26)), 404),
        (Method::POST, "/v1/keys".to_owned(), 404),
        (Method::DELETE, format!("/v1/keys/{}", text(&made, "key_id")), 404),
        (Method::GET, "/metrics".to_owned(), 404),
        (Method::GET, "/_test/clock".to_owned(), 404),
        (Method::POST, "/_test/clock".to_owned(), 404),
        (Method::POST, "/_test/workers/payments".to_owned(), 404),
        (Method::GET, "/_test/audit".to_owned(), 404),
    ] {
        let code = if status == 404 { "not-found" } else { "method-not-allowed" };
        buyers.ask(method.clone(), &path).body("text/csv", csv).await.problem(status, code);
        let there = app.operator.ask(method, &path).await;
        assert!(there.body["code"] != "method-not-allowed", "{}: {}", there.what, there.text);
        assert!(!text_of(&there.body).starts_with("There is nothing at"), "{}: {}", there.what, there.text);
    }
    assert_eq!(app.report(&hall).await, before);
    // An operator's key works on both, a buyer's session too.
    buyers.get(&event("")).await.ok(200);
    let holds = event("/holds");
    let hold =
        buyers.for_account("ada").post(&holds, &json!({ "seats": ["A-1"] })).key(&fresh_key()).await.ok(201);
    let path = format!("/v1/holds/{}", text(&hold, "hold_id"));
    app.operator.for_account("ada").get(&path).await.ok(200);
    for client in [&app.buyers, &app.operator] {
        client.get("/livez").await.ok(200);
        let ready = client.get("/readyz").await.ok(200);
        assert_eq!((&ready["ready"], &ready["test_mode"]), (&json!(true), &json!(true)), "{ready}");
    }
    app.finish().await;
}

fn text_of(problem: &serde_json::Value) -> &str {
    problem["detail"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn the_metrics_are_openmetrics() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1"]).await;
    let ada = app.buyer().await;
    let order_id = ada.pay(&ada.hold(&hall, &["A-1"]).await.ok(201)).await;
    ada.hold(&hall, &["A-1"]).await.problem(409, "seat-unavailable");
    app.passes("payments", 2).await;
    app.provider.deliver_of(&order_id).await;
    app.buyers.get("/nowhere").await.problem(404, "not-found");
    let reply = app.operator.get("/metrics").await;
    assert_eq!(
        reply.header("content-type"),
        Some("application/openmetrics-text; version=1.0.0; charset=utf-8")
    );
    let samples = parse(&reply.text);
    let value =
        |name: &str| *samples.get(name).unwrap_or_else(|| panic!("no {name} in {:#?}", samples.keys()));
    assert_eq!(value("onsale_hold_attempts_total{outcome=\"placed\"}"), 1.0);
    assert_eq!(value("onsale_hold_attempts_total{outcome=\"seat-unavailable\"}"), 1.0);
    assert_eq!(value("onsale_payment_calls_total{outcome=\"answered\"}"), 3.0);
    assert!(value("onsale_connections_open") >= 1.0);
    let holds = "http_server_request_duration_seconds_count{http_request_method=\"POST\",\
                 http_route=\"/v1/events/{event_id}/holds\",http_response_status_code=\"201\"}";
    assert_eq!(value(holds), 1.0);
    assert!(
        !reply.text.contains(&hall.event_id) && !reply.text.contains(&ada.account_id),
        "no label names anyone"
    );
    app.finish().await;
}

/// The samples of an exposition in the OpenMetrics text format, each checked against its family.
fn parse(text: &str) -> HashMap<String, f64> {
    let body = text.strip_suffix("# EOF\n").expect("it ends with its end");
    assert!(!body.contains("# EOF"), "it ends once");
    let mut families: HashMap<&str, &str> = HashMap::new();
    let mut current = "";
    let mut samples = HashMap::new();
    let mut seen = HashSet::new();
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# ") {
            let mut words = rest.splitn(3, ' ');
            let (kind, name, said) = (words.next(), words.next().expect(line), words.next().expect(line));
            match kind {
                Some("TYPE") => {
                    assert!(families.insert(name, said).is_none(), "a family stands twice: {line}");
                    current = name;
                }
                Some("UNIT") => assert!(name.ends_with(&format!("_{said}")), "{line}"),
                Some("HELP") => assert!(!said.is_empty(), "{line}"),
                _ => panic!("{line}"),
            }
            if kind != Some("TYPE") {
                // Help may come before the type: it belongs to what follows or to what came before.
                assert!(seen.insert(line.to_owned()), "{line}");
            }
            continue;
        }
        let (series, value) = line.rsplit_once(' ').expect(line);
        let name = series.split('{').next().expect(line);
        let suffixes: &[&str] = match families[current] {
            "counter" => &["_total"],
            "gauge" => &[""],
            "histogram" => &["_bucket", "_count", "_sum"],
            other => panic!("an unexpected type: {other}"),
        };
        assert!(
            suffixes.iter().any(|suffix| name == format!("{current}{suffix}")),
            "{line} is not of {current}"
        );
        if let Some(labels) = series.strip_prefix(name).filter(|labels| !labels.is_empty()) {
            assert!(labels.starts_with('{') && labels.ends_with("\"}"), "{line}");
        }
        let value: f64 = value.parse().expect(line);
        assert!(value.is_finite() && samples.insert(series.to_owned(), value).is_none(), "{line}");
    }
    samples
}
