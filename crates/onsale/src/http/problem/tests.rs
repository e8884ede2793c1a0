//! The table of refusals against the contract, on the wire and as pages.

use std::collections::BTreeSet;

use axum::Router;
use axum::body::to_bytes;
use axum::http::{HeaderMap, Request};
use axum::routing::get;
use tower::ServiceExt;

use super::page::{problem_list, problem_page};
use super::*;

/// The codes and statuses that other programs rely on.
const CONTRACT: [(&str, u16); 29] = [
    ("validation-failed", 422),
    ("unauthenticated", 401),
    ("forbidden", 403),
    ("not-found", 404),
    ("seat-unavailable", 409),
    ("not-enough-available", 409),
    ("hold-expired", 409),
    ("hold-not-active", 409),
    ("account-limit", 409),
    ("too-many-seats", 422),
    ("event-not-on-sale", 409),
    ("event-paused", 503),
    ("admission-required", 403),
    ("admission-invalid", 403),
    ("admission-expired", 403),
    ("price-changed", 409),
    ("too-little-time", 409),
    ("payment-pending", 409),
    ("idempotency-key-missing", 400),
    ("idempotency-key-reused", 422),
    ("idempotency-in-progress", 409),
    ("rate-limited", 429),
    ("overloaded", 503),
    ("authority-unavailable", 503),
    ("outcome-unknown", 503),
    ("payload-too-large", 413),
    ("unsupported-media-type", 415),
    ("gone", 410),
    ("manifest-frozen", 409),
];

async fn parts(response: Response) -> (StatusCode, HeaderMap, String) {
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    (parts.status, parts.headers, String::from_utf8(body.to_vec()).unwrap())
}

fn router() -> Router {
    Router::new()
        .route("/problems", get(problem_list))
        .route("/problems/{code}", get(problem_page))
        .fallback(unknown_route)
        .method_not_allowed_fallback(unknown_method)
}

async fn call(method: &str, path: &str) -> (StatusCode, HeaderMap, String) {
    let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
    parts(router().oneshot(request).await.unwrap()).await
}

#[test]
fn the_table_holds_the_contract() {
    for (slug, status) in CONTRACT {
        let code = Code::from_slug(slug).unwrap_or_else(|| panic!("{slug} is missing"));
        assert_eq!(code.status().as_u16(), status, "{slug}");
    }
    let slugs: BTreeSet<_> = Code::all().map(Code::slug).collect();
    assert_eq!(slugs.len(), TABLE.len(), "a slug is used twice");
    for (index, code) in Code::all().enumerate() {
        assert_eq!(code as usize, index);
        assert_eq!(Code::from_slug(code.slug()), Some(code));
    }
}

#[tokio::test]
async fn every_code_answers_as_its_table_row_says() {
    for code in Code::all() {
        let response = Problem::new(code, "Because.").into_response();
        assert_eq!(response.extensions().get::<Code>(), Some(&code));
        let (status, headers, body) = parts(response).await;
        let body: Value = serde_json::from_str(&body).unwrap();
        let expected = json!({
            "type": format!("/problems/{}", code.slug()),
            "title": code.title(),
            "status": status.as_u16(),
            "detail": "Because.",
            "code": code.slug(),
            "retryable": code.retryable(),
        });
        assert_eq!(body, expected);
        assert_eq!(status, code.status());
        assert_eq!(headers["content-type"], "application/problem+json");
        assert_eq!(headers["cache-control"], "no-store");
        assert_eq!(headers.contains_key("www-authenticate"), status == 401);
        assert_eq!(headers.contains_key("connection"), status == 408 || status == 413);
        let comes_back = status == 503 || status == 429 || code == Code::IdempotencyInProgress;
        assert_eq!(headers.contains_key("retry-after"), comes_back, "{code:?}");
        assert!(code.retryable() || !comes_back, "{code:?} has Retry-After but must not be retried");
    }
}

#[tokio::test]
async fn extensions_follow_the_members_of_every_problem() {
    let problem = Problem::new(Code::SeatUnavailable, "A-1 and A-2 are taken.")
        .with("seats", json!(["A-1", "A-2"]))
        .with("as_of_version", 7);
    let (_, headers, body) = parts(problem.into_response()).await;
    assert!(!headers.contains_key("retry-after"));
    let expected = r#"{"type":"/problems/seat-unavailable","title":"A seat is not available","status":409,"#
        .to_owned()
        + r#""detail":"A-1 and A-2 are taken.","code":"seat-unavailable","retryable":false,"#
        + r#""as_of_version":7,"seats":["A-1","A-2"]}"#;
    assert_eq!(body, expected);
}

#[test]
fn retry_after_is_spread_unless_given() {
    let header = |problem: Problem| problem.into_response().headers()["retry-after"].clone();
    let spread: BTreeSet<_> =
        (0..30).map(|_| header(Problem::new(Code::Overloaded, "")).to_str().unwrap().to_owned()).collect();
    assert!(spread.len() > 1 && spread.iter().all(|value| ["1", "2", "3"].contains(&value.as_str())));
    assert_eq!(header(Problem::new(Code::EventPaused, "").retry_after(60)), "60");
    assert_eq!(header(Problem::new(Code::PaymentPending, "").retry_after(5)), "5");
}

#[test]
fn validation_lists_every_fault() {
    let faults = vec![FieldError::new("/seats/0", "unknown"), FieldError::new("/ga/1/quantity", "is 0")];
    let problem = Problem::validation(faults);
    assert_eq!(problem.detail, "The request has 2 faults.");
    let errors = json!([
        {"pointer": "/seats/0", "detail": "unknown"},
        {"pointer": "/ga/1/quantity", "detail": "is 0"},
    ]);
    assert_eq!(problem.extensions["errors"], errors);
    assert_eq!(Problem::invalid("/name", "is empty").detail, "is empty");
}

#[tokio::test]
async fn every_code_has_a_page_that_loads_nothing() {
    let (status, headers, list) = call("GET", "/problems").await;
    assert_eq!(
        (status, &headers["content-type"]),
        (StatusCode::OK, &"text/html; charset=utf-8".parse().unwrap())
    );
    for code in Code::all() {
        assert!(list.contains(&format!("href=\"/problems/{}\"", code.slug())));
        let (status, _, page) = call("GET", &format!("/problems/{}", code.slug())).await;
        assert_eq!(status, 200);
        assert!(page.contains(&format!("<h1>{}</h1>", code.title().replace('\'', "&#39;"))));
        assert!(!page.contains("//") && !page.contains("src="), "{page}");
    }
    let (status, _, body) = call("GET", "/problems/%3Cscript%3E").await;
    assert_eq!(status, 404);
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap()["code"], "not-found");
}

#[tokio::test]
async fn unknown_routes_and_methods_are_problems() {
    let (status, headers, body) = call("GET", "/v1/nothing").await;
    assert_eq!(
        (status, &headers["content-type"]),
        (StatusCode::NOT_FOUND, &"application/problem+json".parse().unwrap())
    );
    assert!(body.contains(r#""detail":"There is nothing at /v1/nothing.""#), "{body}");
    let (status, headers, body) = call("POST", "/problems").await;
    assert_eq!((status, &headers["allow"]), (StatusCode::METHOD_NOT_ALLOWED, &"GET,HEAD".parse().unwrap()));
    assert!(body.contains(r#""detail":"/problems does not have the method POST.""#), "{body}");
}
