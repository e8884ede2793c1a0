//! The adapter against a stub that answers what it was told and remembers what it was asked.

mod lists;
mod spent_keys;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::response::Response;
use onsale_core::gateway::IntentState;
use onsale_core::money::Currency;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};

use super::*;

const OPERATION: OperationId = OperationId(11);
const ORDER: OrderId = OrderId(7 << 56);

type Shared<T> = Arc<Mutex<T>>;

enum Answer {
    Json(u16, Value),
    Raw(u16, &'static [(&'static str, &'static str)], String),
}

struct Asked {
    line: String,
    parameters: Vec<(String, String)>,
    headers: axum::http::HeaderMap,
}

struct Stub {
    stripe: Stripe,
    asked: Shared<Vec<Asked>>,
}

fn stripe_at(address: impl fmt::Display, request_timeout_ms: u64) -> Stripe {
    // The program does this when it starts. Another test may have been first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Stripe::new(StripeConfig {
        base_url: format!("http://{address}"),
        secret_key: "sk_test_hall".into(),
        webhook_secrets: vec!["whsec_hall".into()],
        request_timeout_ms,
        connections_max: 4,
    })
    .unwrap()
}

impl Stub {
    async fn new(answers: impl IntoIterator<Item = Answer>) -> Stub {
        let answers = Arc::new(Mutex::new(answers.into_iter().collect()));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stripe = stripe_at(listener.local_addr().unwrap(), 30_000);
        let log = asked.clone();
        let router = Router::new().fallback(move |request| answer(request, log.clone(), answers.clone()));
        tokio::spawn(async { axum::serve(listener, router).await });
        Stub { stripe, asked }
    }

    /// The requests so far, as `METHOD path key parameter=value …`.
    #[track_caller]
    fn check_asked(&self, expected: &[&str]) {
        let lines: Vec<String> = self.asked.lock().unwrap().iter().map(Asked::text).collect();
        assert_eq!(lines, expected);
    }
}

async fn answer(request: Request, log: Shared<Vec<Asked>>, answers: Shared<VecDeque<Answer>>) -> Response {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, 65_536).await.unwrap();
    let query = head.uri.query().unwrap_or_default();
    let form = std::str::from_utf8(&body).unwrap();
    let pairs = reqwest::Url::parse(&format!("http://stub/?{query}&{form}")).unwrap();
    log.lock().unwrap().push(Asked {
        line: format!("{} {}", head.method, head.uri.path()),
        parameters: pairs.query_pairs().into_owned().collect(),
        headers: head.headers,
    });
    let next = answers.lock().unwrap().pop_front().expect("one request more than expected");
    let (status, headers, body): (u16, &[_], _) = match next {
        Answer::Json(status, body) => (status, &[], body.to_string()),
        Answer::Raw(status, headers, body) => (status, headers, body),
    };
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(Body::from(body)).unwrap()
}

impl Asked {
    fn text(&self) -> String {
        let mut text = self.line.clone();
        text.extend(self.headers.get("idempotency-key").map(|key| format!(" {}", key.to_str().unwrap())));
        for (name, value) in &self.parameters {
            text += &format!(" {name}={value}");
        }
        text
    }
}

fn money(amount_minor: i64, code: &str) -> Money {
    Money { amount_minor, currency: Currency::parse(code).unwrap() }
}

fn eur(amount_minor: i64) -> Money {
    money(amount_minor, "EUR")
}

fn intent(status: &str) -> Value {
    json!({
        "id": "pi_1", "object": "payment_intent", "status": status, "currency": "eur",
        "amount": 1250, "amount_capturable": 1250, "amount_received": 1250, "latest_charge": "ch_1",
        "metadata": {"order_id": ORDER.to_string(), "operation_id": OPERATION.to_string()},
    })
}

fn observation(state: IntentState, refunded_minor: i64) -> Observation {
    Observation {
        reference: "pi_1".into(),
        state,
        amount: eur(1250),
        refunded_minor,
        order: Some(ORDER),
        operation: Some(OPERATION),
    }
}

fn refunded_intent(amount_refunded: i64) -> Value {
    let mut intent = intent("succeeded");
    intent["latest_charge"] = json!({"id": "ch_1", "captured": true, "amount": 1250, "amount_captured": 1250,
        "amount_refunded": amount_refunded});
    intent
}

/// A payment's refunds, newest first as the provider lists them: what became of each, and how much it is.
fn refunds(all: &[(&str, i64)]) -> Value {
    let refund = |(number, (status, amount)): (usize, &(&str, i64))| {
        json!({ "id": format!("re_{}", number + 1), "object": "refund", "status": status, "amount": amount,
            "payment_intent": "pi_1", "failure_reason": null })
    };
    let data: Vec<Value> = all.iter().enumerate().map(refund).collect();
    json!({ "object": "list", "has_more": false, "data": data })
}

fn error(members: Value) -> Value {
    json!({ "error": members })
}

fn refused(status: u16, code: &str, message: &str) -> GatewayError {
    GatewayError::Refused { status, code: code.into(), message: message.into() }
}

#[tokio::test]
async fn each_operation_sends_its_form_under_its_key() {
    let stub = Stub::new([
        Answer::Json(200, intent("requires_payment_method")),
        Answer::Json(200, intent("requires_confirmation")),
        Answer::Json(200, intent("requires_capture")),
        Answer::Json(200, intent("processing")),
        Answer::Json(200, intent("succeeded")),
        Answer::Json(200, intent("canceled")),
        Answer::Json(200, json!({"id": "re_1", "object": "refund", "status": "succeeded"})),
        Answer::Json(200, refunded_intent(300)),
        Answer::Json(200, refunds(&[("succeeded", 300)])),
        Answer::Json(200, refunded_intent(1250)),
        Answer::Json(200, refunds(&[("succeeded", 300), ("succeeded", 950)])),
    ])
    .await;
    let stripe = &stub.stripe;
    let mut new =
        NewIntent { operation: OPERATION, order: ORDER, amount: eur(1250), capture: CaptureMode::Manual };
    assert_eq!(stripe.create(&new).await, Ok(observation(IntentState::Unconfirmed, 0)));
    (new.capture, new.amount) = (CaptureMode::Automatic, money(12, "ISK"));
    assert_eq!(stripe.create(&new).await, Ok(observation(IntentState::Unconfirmed, 0)));

    let url = "https://hall.example/r?a=1&b=2 3";
    let seen = stripe.confirm("pi_1", OPERATION, "pm_card_visa", Some(url)).await;
    assert_eq!(seen, Ok(observation(IntentState::Authorized, 0)));
    let seen = stripe.confirm("pi_1", OPERATION, "pm_card_visa", None).await;
    assert_eq!(seen, Ok(observation(IntentState::Processing, 0)));
    let seen = stripe.capture("pi_1", OPERATION, eur(1250)).await;
    assert_eq!(seen, Ok(observation(IntentState::Captured, 0)));
    assert_eq!(stripe.cancel("pi_1", OPERATION).await, Ok(observation(IntentState::Voided, 0)));
    let seen = stripe.refund("pi_1", OPERATION, eur(300), 0).await;
    assert_eq!(seen, Ok(observation(IntentState::Captured, 300)));
    assert_eq!(stripe.query("pi_1").await, Ok(observation(IntentState::Captured, 1250)));

    let op = OPERATION;
    stub.check_asked(&[
        &format!(
            "POST /v1/payment_intents {op}:create amount=1250 currency=eur capture_method=manual \
             payment_method_types[0]=card metadata[order_id]={ORDER} metadata[operation_id]={op}"
        ),
        &format!(
            "POST /v1/payment_intents {op}:create amount=1200 currency=isk capture_method=automatic \
             payment_method_types[0]=card metadata[order_id]={ORDER} metadata[operation_id]={op}"
        ),
        &format!(
            "POST /v1/payment_intents/pi_1/confirm {op}:confirm payment_method=pm_card_visa \
             return_url=https://hall.example/r?a=1&b=2 3"
        ),
        &format!("POST /v1/payment_intents/pi_1/confirm {op}:confirm payment_method=pm_card_visa"),
        &format!("POST /v1/payment_intents/pi_1/capture {op}:capture amount_to_capture=1250"),
        &format!("POST /v1/payment_intents/pi_1/cancel {op}:cancel"),
        &format!("POST /v1/refunds {op}:refund payment_intent=pi_1 amount=300 metadata[operation_id]={op}"),
        "GET /v1/payment_intents/pi_1 expand[]=latest_charge",
        "GET /v1/refunds payment_intent=pi_1 limit=100",
        "GET /v1/payment_intents/pi_1 expand[]=latest_charge",
        "GET /v1/refunds payment_intent=pi_1 limit=100",
    ]);
    for asked in stub.asked.lock().unwrap().iter() {
        assert_eq!(asked.headers["authorization"], "Bearer sk_test_hall");
        assert_eq!(asked.headers["stripe-version"], "2026-10-28.endive");
        let is_form = asked.headers.get("content-type").map(|kind| kind.as_bytes());
        let posted =
            asked.line.starts_with("POST").then_some(b"application/x-www-form-urlencoded".as_slice());
        assert_eq!(is_form, posted, "{}", asked.line);
    }
    assert!(!format!("{stripe:?}").contains("hall"), "{stripe:?}");
}

#[tokio::test]
async fn a_declined_card_is_an_observation() {
    let card_error = |intent: Value| {
        error(json!({"type": "card_error", "code": "card_declined", "decline_code": "insufficient_funds",
            "message": "No funds.", "payment_intent": intent}))
    };
    let declined = || Ok(observation(IntentState::Declined("insufficient_funds".into()), 0));
    let no_funds = || Err(refused(402, "card_declined", "No funds."));
    for (body, expected) in [
        (card_error(intent("requires_payment_method")), declined()),
        (card_error(intent("canceled")), declined()),
        (card_error(intent("requires_capture")), Ok(observation(IntentState::Authorized, 0))),
        (card_error(json!(null)), no_funds()),
        (
            error(json!({"type": "card_error", "code": "expired_card",
                "payment_intent": intent("requires_payment_method")})),
            Ok(observation(IntentState::Declined("expired_card".into()), 0)),
        ),
        (
            error(json!({"type": "api_error", "message": "?", "payment_intent": intent("canceled")})),
            Err(refused(402, "api_error", "?")),
        ),
    ] {
        let stub = Stub::new([Answer::Json(402, body.clone())]).await;
        assert_eq!(stub.stripe.confirm("pi_1", OPERATION, "pm_x", None).await, expected, "{body}");
    }

    let stub = Stub::new([Answer::Json(402, card_error(intent("requires_capture")))]).await;
    assert_eq!(stub.stripe.capture("pi_1", OPERATION, eur(1250)).await, no_funds());
}

#[tokio::test]
async fn endings_are_told_apart() {
    let json = |status, members| Answer::Json(status, error(members));
    let no_answer = |text: &str| GatewayError::NoAnswer(text.into());
    let misread = |text: &str| GatewayError::Misconfigured(text.into());
    let busy = |retry_after_s| GatewayError::Busy { retry_after_s };
    let long = "x".repeat(ANSWER_BYTES_MAX + 1);
    let oversized = "an answer of more than 262144 bytes";
    for (answer, expected) in [
        (json(500, json!({"type": "api_error"})), no_answer("HTTP 500")),
        (Answer::Raw(502, &[], long.clone()), no_answer("HTTP 502")),
        (
            json(409, json!({"code": "idempotency_key_in_use", "message": "Wait."})),
            no_answer("HTTP 409: Wait."),
        ),
        (Answer::Raw(409, &[], "".into()), no_answer("HTTP 409: without a reason")),
        (json(400, json!({"type": "idempotency_error", "message": "Other."})), no_answer("HTTP 400: Other.")),
        (Answer::Raw(429, &[("retry-after", "7")], "{}".into()), busy(Some(7))),
        (Answer::Raw(429, &[("retry-after", "Fri, 31 Dec 1999 23:59:59 GMT")], "".into()), busy(None)),
        (json(429, json!({"type": "invalid_request_error", "code": "lock_timeout"})), busy(None)),
        (json(409, json!({"type": "invalid_request_error", "code": "lock_timeout"})), busy(None)),
        (
            json(
                400,
                json!({"type": "invalid_request_error", "code": "payment_intent_unexpected_state",
                "message": "It is canceled."}),
            ),
            refused(400, "payment_intent_unexpected_state", "It is canceled."),
        ),
        (
            json(404, json!({"type": "invalid_request_error"})),
            refused(404, "invalid_request_error", "the provider gave no reason"),
        ),
        (json(401, json!({"message": "Bad key."})), misread("HTTP 401: Bad key.")),
        (Answer::Raw(403, &[], "".into()), misread("HTTP 403: without a reason")),
        (Answer::Raw(404, &[], "<html>".into()), misread("HTTP 404 that isn't the provider's")),
        (Answer::Raw(302, &[("location", "/")], "".into()), misread("HTTP 302 that isn't the provider's")),
        (Answer::Raw(200, &[], long.clone()), misread(oversized)),
        (Answer::Raw(400, &[], long), misread(oversized)),
    ] {
        let stub = Stub::new([answer]).await;
        assert_eq!(
            stub.stripe.capture("pi_1", OPERATION, eur(1250)).await,
            Err(expected.clone()),
            "{expected}"
        );
        assert_eq!(stub.asked.lock().unwrap().len(), 1, "{expected}");
    }
    for body in ["", "{", "{}", "[]", r#"{"id":"pi_1","status":"new","amount":1,"currency":"eur"}"#] {
        let stub = Stub::new([Answer::Raw(200, &[], body.into())]).await;
        let seen = stub.stripe.query("pi_1").await;
        assert!(matches!(seen, Err(GatewayError::Misconfigured(_))), "{body}: {seen:?}");
    }
}

#[tokio::test]
async fn silence_is_no_answer_and_a_closed_door_is_not_sent() {
    // The system takes the connection, nobody reads from it.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = stripe_at(listener.local_addr().unwrap(), 300).cancel("pi_1", OPERATION).await;
    assert!(matches!(silent, Err(GatewayError::NoAnswer(_))), "{silent:?}");

    // Hung up on: after the request, and in the middle of the answer.
    for beginning in ["", "HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{"] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stripe = stripe_at(listener.local_addr().unwrap(), 30_000);
        let hang_up = async {
            let (mut connection, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                request.push(connection.read_u8().await.unwrap());
            }
            connection.write_all(beginning.as_bytes()).await.unwrap();
        };
        let (cut, ()) = tokio::join!(stripe.query("pi_1"), hang_up);
        assert!(matches!(cut, Err(GatewayError::NoAnswer(_))), "{beginning:?}: {cut:?}");
    }

    // Bound, so that nobody else takes the port, but not listening.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let stripe = stripe_at(socket.local_addr().unwrap(), 30_000);
    assert_eq!(stripe.cancel("pi_1", OPERATION).await, Err(GatewayError::NotSent));
}

#[tokio::test]
async fn an_answer_kept_from_before_is_not_taken_for_the_present() {
    let decline = error(json!({"type": "card_error", "code": "card_declined",
        "payment_intent": intent("requires_payment_method")}));
    for (status, body) in [(200, intent("processing")), (402, decline)] {
        let kept = Answer::Raw(status, &[("idempotent-replayed", "true")], body.to_string());
        let list = Answer::Json(200, refunds(&[("succeeded", 1250)]));
        let stub = Stub::new([kept, Answer::Json(200, refunded_intent(1250)), list]).await;
        let seen = stub.stripe.confirm("pi_1", OPERATION, "pm_x", None).await;
        assert_eq!(seen, Ok(observation(IntentState::Captured, 1250)));
    }
}

#[tokio::test]
async fn refunds_end_by_their_own_status_and_are_read_back() {
    let refund = |status| json!({"id": "re_1", "status": status, "failure_reason": null});
    for (answer, expected) in [
        (refund("failed"), refused(200, "failed", "refund re_1 is failed")),
        (refund("canceled"), refused(200, "canceled", "refund re_1 is canceled")),
        (
            json!({"id": "re_1", "status": "failed", "failure_reason": "expired_or_canceled_card"}),
            refused(200, "expired_or_canceled_card", "refund re_1 is failed"),
        ),
        (refund("odd"), GatewayError::Misconfigured("re_1: unknown status \"odd\"".into())),
    ] {
        let stub = Stub::new([Answer::Json(200, answer)]).await;
        assert_eq!(stub.stripe.refund("pi_1", OPERATION, eur(1), 0).await, Err(expected));
    }

    // Money was given back, whatever becomes of the look at it.
    for (status, body) in [
        (500, json!({})),
        (429, json!({})),
        (401, json!({})),
        (404, error(json!({"code": "resource_missing"}))),
        (200, json!({})),
    ] {
        let stub = Stub::new([Answer::Json(200, refund("succeeded")), Answer::Json(status, body)]).await;
        let seen = stub.stripe.refund("pi_1", OPERATION, eur(1), 0).await;
        assert!(matches!(seen, Err(GatewayError::NoAnswer(_))), "{status}: {seen:?}");
    }
}

/// The provider counts a refund from the moment it is asked for. It is back when it has succeeded, and not before (R-91).
#[tokio::test]
async fn a_refund_that_is_only_promised_is_not_given_back() {
    let pending = || Answer::Json(200, json!({"id": "re_2", "object": "refund", "status": "pending"}));
    let stub = Stub::new([
        pending(),
        Answer::Json(200, refunds(&[("succeeded", 300), ("pending", 950)])),
        Answer::Json(200, refunded_intent(1250)),
        Answer::Json(200, refunds(&[("succeeded", 300), ("pending", 950)])),
    ])
    .await;
    let seen = stub.stripe.refund("pi_1", OPERATION, eur(950), 300).await;
    assert_eq!(seen, Ok(observation(IntentState::Captured, 300)));

    // Sent again under the same key, the answer is what it was; the list says what has become of it.
    for ended in ["failed", "canceled"] {
        let list = Answer::Json(200, refunds(&[("succeeded", 300), (ended, 950)]));
        let stub = Stub::new([pending(), list]).await;
        let seen = stub.stripe.refund("pi_1", OPERATION, eur(950), 300).await;
        assert_eq!(seen, Err(refused(200, ended, "refund re_2 came to nothing")));
    }

    // Money may be on its way, whatever becomes of the look at it.
    let stub = Stub::new([pending(), Answer::Json(500, json!({}))]).await;
    let seen = stub.stripe.refund("pi_1", OPERATION, eur(950), 300).await;
    assert!(matches!(seen, Err(GatewayError::NoAnswer(_))), "{seen:?}");
}

#[tokio::test]
async fn what_can_not_be_asked_is_not_sent() {
    let stub = Stub::new([]).await;
    for reference in ["", "pi_1/capture", "../v1/refunds", "pi_1?x=1", "pi 1", &"p".repeat(256)] {
        let seen = stub.stripe.query(reference).await;
        assert!(matches!(seen, Err(GatewayError::Misconfigured(_))), "{reference}: {seen:?}");
        let seen = stub.stripe.refund(reference, OPERATION, eur(1), 0).await;
        assert!(matches!(seen, Err(GatewayError::Misconfigured(_))), "{reference}: {seen:?}");
    }
    let seen = stub.stripe.capture("pi_1", OPERATION, money(1255, "KWD")).await;
    assert!(matches!(seen, Err(GatewayError::Misconfigured(_))), "{seen:?}");
    stub.check_asked(&[]);
}
