//! Bodies, queries and keys, good and bad, each fault with its place.

use axum::Router;
use axum::body::to_bytes;
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::*;
use crate::http::listener::ListenerLimits;
use crate::http::listener::test_server::TestServer;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HoldJson {
    seats: Vec<String>,
    #[serde(default)]
    ga: Vec<GaJson>,
    #[serde(rename = "a/b~c", default)]
    odd: Option<u8>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GaJson {
    ga_area: String,
    quantity: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    limit: u32,
}

fn router() -> Router {
    let hold = |ApiJson(hold): ApiJson<HoldJson>| async move {
        let ga: Vec<_> = hold.ga.iter().map(|ga| (&ga.ga_area, ga.quantity)).collect();
        json!([hold.seats, ga, hold.odd]).to_string()
    };
    let echo = |LimitedBytes(bytes): LimitedBytes<1024>| async move { bytes };
    let impatient = |request: Request| async move {
        let body = read_body(request.into_body(), 1024, Duration::from_millis(200)).await?;
        Ok::<_, Problem>(body)
    };
    Router::new()
        .route("/hold", post(hold))
        .route("/echo", post(echo))
        .route("/impatient", post(impatient))
        .route("/key", get(|IdempotencyKey(key): IdempotencyKey| async move { key }))
        .route("/page", get(|ApiQuery(page): ApiQuery<Page>| async move { page.limit.to_string() }))
}

/// Status and body of one call without a socket.
async fn call(method: &str, path: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> (u16, String) {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = router().oneshot(request.body(body.into()).unwrap()).await.unwrap();
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

fn problem(code: Code, detail: &str) -> Value {
    serde_json::from_slice(&Problem::new(code, detail).to_json()).unwrap()
}

fn invalid(pointer: &str, detail: &str) -> Value {
    json!({
        "type": "/problems/validation-failed",
        "title": "The request is not valid",
        "status": 422,
        "detail": detail,
        "code": "validation-failed",
        "retryable": false,
        "errors": [{"pointer": pointer, "detail": detail}],
    })
}

#[tokio::test]
async fn json_is_parsed() {
    let body = r#" {"seats": ["007"], "ga": [{"ga_area": "floor", "quantity": 2}], "a/b~c": 1} "#;
    for content_type in
        ["application/json", "Application/JSON; charset=UTF-8", "application/json;charset=\"utf-8\""]
    {
        let answer = call("POST", "/hold", &[("content-type", content_type)], body).await;
        assert_eq!(answer, (200, r#"[["007"],[["floor",2]],1]"#.to_owned()), "{content_type}");
    }
}

#[tokio::test]
async fn each_json_fault_is_named_with_its_place() {
    let cases = [
        ("", "", "The body is empty; JSON is needed."),
        ("{", "", "The body is not JSON: EOF while parsing an object at line 1 column 1."),
        ("{\n  \"seats\": [,]}", "", "The body is not JSON: expected value at line 2 column 13."),
        (r#"{"seats": []} x"#, "", "The body is not JSON: trailing characters at line 1 column 15."),
        ("7", "", "invalid type: integer `7`, expected struct HoldJson"),
        ("{}", "/seats", "missing field `seats`"),
        (r#"{"seats": "A-1"}"#, "/seats", r#"invalid type: string "A-1", expected a sequence"#),
        (r#"{"seats": ["A-1", 7]}"#, "/seats/1", "invalid type: integer `7`, expected a string"),
        (r#"{"seats": [], "seats": []}"#, "/seats", "duplicate field `seats`"),
        (
            r#"{"seats": [], "seat": 1}"#,
            "/seat",
            "unknown field `seat`, expected one of `seats`, `ga`, `a/b~c`",
        ),
        (r#"{"seats": [], "ga": [{"ga_area": "floor"}]}"#, "/ga/0/quantity", "missing field `quantity`"),
        (
            r#"{"seats": [], "ga": [{"ga_area": "floor", "quantity": -1}]}"#,
            "/ga/0/quantity",
            "invalid value: integer `-1`, expected u32",
        ),
        (
            r#"{"seats": [], "ga": [{"ga_area": "floor", "qty": 1}]}"#,
            "/ga/0/qty",
            "unknown field `qty`, expected `ga_area` or `quantity`",
        ),
        (r#"{"seats": [], "a/b~c": 300}"#, "/a~1b~0c", "invalid value: integer `300`, expected u8"),
    ];
    for (body, pointer, detail) in cases {
        let (status, answer) = call("POST", "/hold", &[("content-type", "application/json")], body).await;
        assert_eq!(serde_json::from_str::<Value>(&answer).unwrap(), invalid(pointer, detail), "{body}");
        assert_eq!(status, 422, "{body}");
    }
}

#[tokio::test]
async fn a_long_quotation_is_shortened() {
    let body = format!(r#"{{"seats": "{}"}}"#, "ä".repeat(5_000));
    let (_, answer) = call("POST", "/hold", &[("content-type", "application/json")], body).await;
    assert!(answer.len() < 3_000 && answer.contains('…'), "{answer}");
}

#[tokio::test]
async fn other_content_types_are_refused() {
    let detail = "The Content-Type must be application/json.";
    let cases: [&[(&str, &str)]; 6] = [
        &[],
        &[("content-type", "text/plain")],
        &[("content-type", "application/jsonp")],
        &[("content-type", "application/json; charset=latin1")],
        &[("content-type", "application/json; profile=x")],
        &[("content-type", "application/json"), ("content-type", "text/plain")],
    ];
    for headers in cases {
        let (status, answer) = call("POST", "/hold", headers, r#"{"seats": []}"#).await;
        let expected = problem(Code::UnsupportedMediaType, detail);
        assert_eq!((status, serde_json::from_str::<Value>(&answer).unwrap()), (415, expected), "{headers:?}");
    }
}

#[tokio::test]
async fn a_body_may_have_exactly_the_limit() {
    assert_eq!(call("POST", "/echo", &[], vec![b'x'; 1024]).await.0, 200);
    let (status, answer) = call("POST", "/echo", &[], vec![b'x'; 1025]).await;
    let expected = problem(Code::PayloadTooLarge, "The body must not exceed 1024 bytes.");
    assert_eq!((status, serde_json::from_str::<Value>(&answer).unwrap()), (413, expected));
    let json = [("content-type", "application/json")];
    assert_eq!(call("POST", "/hold", &json, vec![b' '; JSON_BYTES_MAX + 1]).await.0, 413);
}

#[tokio::test]
async fn idempotency_keys_are_normalised() {
    let longest = "k".repeat(255);
    for (header, key) in [
        ("8e03978e-40d5", "8e03978e-40d5"),
        (r#""8e03978e-40d5""#, "8e03978e-40d5"),
        (r#""a\"b\\c""#, r#"a"b\c"#),
        (&longest, &longest),
        (&format!("\"{longest}\""), &longest),
    ] {
        let answer = call("GET", "/key", &[("idempotency-key", header)], "").await;
        assert_eq!(answer, (200, key.to_owned()), "{header}");
    }
}

#[tokio::test]
async fn bad_idempotency_keys_are_refused() {
    let (status, answer) = call("GET", "/key", &[], "").await;
    let expected = problem(Code::IdempotencyKeyMissing, "This call needs an Idempotency-Key header.");
    assert_eq!((status, serde_json::from_str::<Value>(&answer).unwrap()), (400, expected));

    let pointer = "/headers/Idempotency-Key";
    let form = "An Idempotency-Key is 1 to 255 visible ASCII characters, bare or quoted.";
    let too_long = "k".repeat(256);
    let bad = [
        "",
        "\"",
        "\"\"",
        "\"k",
        "a b",
        "\"a b\"",
        r#""a"b""#,
        r#""a\""#,
        r#""a\n""#,
        "\"k\";v=1",
        "kä",
        &too_long,
    ];
    for header in bad {
        let (status, answer) = call("GET", "/key", &[("idempotency-key", header)], "").await;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!((status, answer), (422, invalid(pointer, form)), "{header}");
    }
    let twice = [("idempotency-key", "a"), ("idempotency-key", "a")];
    let (status, answer) = call("GET", "/key", &twice, "").await;
    let expected = invalid(pointer, "There must be one Idempotency-Key, not several.");
    assert_eq!((status, serde_json::from_str::<Value>(&answer).unwrap()), (422, expected));
}

#[tokio::test]
async fn each_query_fault_is_named_with_its_place() {
    assert_eq!(call("GET", "/page?limit=5", &[], "").await, (200, "5".to_owned()));
    for (query, pointer, detail) in [
        ("", "/query/limit", "missing field `limit`"),
        ("?limit=x", "/query/limit", "invalid digit found in string"),
        ("?limit=1&limit=2", "/query/limit", "duplicate field `limit`"),
        ("?limit=1&page=2", "/query/page", "unknown field `page`, expected `limit`"),
    ] {
        let (status, answer) = call("GET", &format!("/page{query}"), &[], "").await;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!((status, answer), (422, invalid(pointer, detail)), "{query}");
    }
}

#[test]
fn a_body_that_stops_is_cut() {
    let server = TestServer::start(router(), ListenerLimits::default());
    let mut ada = server.connect();
    ada.send("POST /impatient HTTP/1.1\r\nhost: test\r\ncontent-length: 10\r\n\r\nabc");
    let answer = ada.read_to_close();
    assert!(answer.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{answer}");
    assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    let expected = problem(Code::RequestTimeout, "The body did not arrive within 200ms.");
    assert!(answer.ends_with(&format!("\r\n\r\n{}", reordered(&answer, &expected))), "{answer}");
}

/// The answer's own text of its body, once it is known to say what is expected.
fn reordered<'a>(answer: &'a str, expected: &Value) -> &'a str {
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    assert_eq!(&serde_json::from_str::<Value>(body).unwrap(), expected);
    body
}

#[test]
fn a_declared_length_is_refused_before_it_is_read() {
    let server = TestServer::start(router(), ListenerLimits::default());
    let mut ada = server.connect();
    ada.send("POST /echo HTTP/1.1\r\nhost: test\r\ncontent-length: 10000000000\r\n\r\n");
    assert!(ada.read_to_close().starts_with("HTTP/1.1 413 Payload Too Large\r\n"));
}

#[test]
fn a_client_that_sends_too_much_still_gets_its_answer() {
    let server = TestServer::start(router(), ListenerLimits::default());
    let mut ada = server.connect();
    ada.send("POST /echo HTTP/1.1\r\nhost: test\r\ncontent-length: 500000\r\n\r\n");
    ada.send(vec![b'x'; 500_000]);
    assert!(ada.read_to_close().starts_with("HTTP/1.1 413 Payload Too Large\r\n"));
}

#[test]
fn a_chunked_body_is_refused_when_it_reaches_the_limit() {
    let server = TestServer::start(router(), ListenerLimits::default());
    let mut ada = server.connect();
    ada.send("POST /echo HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n");
    // The end of the body is never sent.
    for _ in 0..3 {
        ada.send(format!("200\r\n{}\r\n", "x".repeat(512)));
    }
    assert!(ada.read_to_close().starts_with("HTTP/1.1 413 Payload Too Large\r\n"));

    let mut ben = server.connect();
    ben.send("POST /echo HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n");
    ben.send("3\r\nabc\r\n0\r\n\r\n");
    assert!(ben.read_answer().ends_with("abc"));
}

#[test]
fn broken_chunks_are_a_fault_of_the_request() {
    let server = TestServer::start(router(), ListenerLimits::default());
    let mut ada = server.connect();
    ada.send("POST /echo HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\nnot a size\r\n");
    let answer = ada.read_to_close();
    assert!(answer.starts_with("HTTP/1.1 422 "), "{answer}");
    reordered(&answer, &invalid("", "The body is incomplete."));
}
