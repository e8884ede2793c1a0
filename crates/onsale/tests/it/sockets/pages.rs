//! Pages for people: the description of the interface, and a page for each problem. Nothing in them is loaded from
//! outside.

use crate::util::{App, Client};

/// The codes of the contract; a program may meet each of them.
const CODES: &[&str] = &[
    "validation-failed",
    "unauthenticated",
    "forbidden",
    "not-found",
    "seat-unavailable",
    "not-enough-available",
    "hold-expired",
    "hold-not-active",
    "account-limit",
    "too-many-seats",
    "event-not-on-sale",
    "event-paused",
    "admission-required",
    "admission-invalid",
    "admission-expired",
    "price-changed",
    "too-little-time",
    "payment-pending",
    "idempotency-key-missing",
    "idempotency-key-reused",
    "idempotency-in-progress",
    "rate-limited",
    "overloaded",
    "authority-unavailable",
    "outcome-unknown",
    "payload-too-large",
    "unsupported-media-type",
    "method-not-allowed",
    "request-timeout",
    "manifest-frozen",
    "action-not-possible",
    "internal",
    "gone",
];

/// What a page's attributes lead to.
fn links(page: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for attribute in ["src=\"", "href=\"", "src='", "href='", "url(", "@import "] {
        let ends: &[char] = &['"', '\'', ')', ';'];
        found.extend(page.split(attribute).skip(1).map(|rest| rest.split(ends).next().unwrap_or_default()));
    }
    found
}

#[tokio::test]
async fn every_problem_has_its_page() {
    let app = App::start().await;
    for client in [&app.buyers, &app.operator] {
        let list = client.get("/problems").await;
        assert_eq!((list.status, list.header("content-type")), (200, Some("text/html; charset=utf-8")));
        let listed: Vec<&str> = links(&list.text);
        for code in CODES {
            assert!(listed.contains(&format!("/problems/{code}").as_str()), "{code} is not listed");
        }
        for path in listed {
            let page = client.get(path).await;
            assert_eq!(
                (page.status, page.header("content-type")),
                (200, Some("text/html; charset=utf-8")),
                "{path}"
            );
            let code = path.rsplit('/').next().expect("a code");
            assert!(page.text.contains(&format!("<code>{code}</code>")), "{path}");
            assert!(
                links(&page.text).iter().all(|link| link.starts_with("/problems")),
                "{path}: {}",
                page.text
            );
            let policy = page.header("content-security-policy").unwrap_or_default();
            assert!(policy.starts_with("default-src 'none'"), "{path}");
        }
        let unknown = client.get("/problems/%3Cscript%3E").await.problem(404, "not-found");
        assert!(unknown.to_string().len() < 1_000);
    }
    app.finish().await;
}

/// Gets what a page of the documentation loads; its text.
async fn load(client: &Client, path: &str) -> String {
    let reply = client.get(path).await;
    assert_eq!(reply.status, 200, "{path}");
    assert!(!reply.text.is_empty(), "{path}");
    reply.text
}

#[tokio::test]
async fn the_documentation_loads_nothing_from_outside() {
    let app = App::start().await;
    for client in [&app.buyers, &app.operator] {
        let document = client.get("/openapi.json").await.ok(200);
        assert!(document["paths"]["/v1/events/{event_id}/holds"]["post"].is_object());
        let page = load(client, "/docs/").await;
        let mut assets: Vec<String> = Vec::new();
        for link in links(&page) {
            assert!(!link.contains("//") && !link.contains(':'), "{link}");
            assets.push(format!("/docs/{}", link.trim_start_matches("./")));
        }
        assert!(
            assets.iter().any(|path| path.ends_with(".js"))
                && assets.iter().any(|path| path.ends_with(".css"))
        );
        for path in &assets {
            let text = load(client, path).await;
            if path.ends_with(".css") {
                let outside = |link: &&str| link.starts_with("http") || link.starts_with("//");
                assert_eq!(links(&text).iter().find(|link| outside(link)), None, "{path}");
            }
        }
        // Left to itself, the page would show a badge from a validator on the internet.
        let start = load(client, "/docs/swagger-initializer.js").await;
        assert!(start.contains("/openapi.json") && start.contains("\"validatorUrl\": \"none\""), "{start}");
        assert!(!start.contains("http://") && !start.contains("https://"), "{start}");
        client.get("/docs/nothing.js").await.ok(404);
    }
    app.finish().await;
}
