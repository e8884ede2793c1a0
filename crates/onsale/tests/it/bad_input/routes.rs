//! Paths that don't exist, methods they don't have, and questions with odd parameters.

use reqwest::Method;

use super::Stage;

#[tokio::test]
async fn an_unknown_path_is_a_problem_too() {
    let stage = Stage::set().await;
    for client in [&stage.app.buyers, &stage.app.operator, &stage.ada.client] {
        for path in [
            "/",
            "/v1",
            "/v1/",
            "/v1/event",
            "/v1/events/",
            "/v2/events",
            "/V1/events",
            "/v1//events",
            "/v1/payment-callbacks",
            "/v1/queue/entries",
            "/.git/config",
            "/%00",
            "/%ff",
            "/etc/passwd",
            "/index.php?x=1",
        ] {
            for method in [Method::GET, Method::POST] {
                stage.refuses(client.ask(method, path), 404, "not-found", &[]).await;
            }
        }
    }
    let long = format!("/{}", "x".repeat(8_000));
    let problem = stage.refuses(stage.app.buyers.get(&long), 404, "not-found", &[]).await;
    assert!(problem.to_string().len() < 9_000, "an answer grows no further than its request");
    stage.finish().await;
}

#[tokio::test]
async fn a_path_names_the_methods_it_has() {
    let stage = Stage::set().await;
    let cases = [
        (&stage.app.buyers, "/v1/sessions".to_owned(), "POST"),
        (&stage.app.buyers, "/v1/events".to_owned(), "GET,HEAD"),
        (&stage.app.buyers, stage.path(""), "GET,HEAD"),
        (&stage.app.buyers, stage.path("/manifest"), "GET,HEAD"),
        (&stage.app.buyers, stage.path("/seats"), "GET,HEAD"),
        (&stage.app.buyers, stage.path("/holds"), "POST"),
        (&stage.app.buyers, stage.hold_path(""), "DELETE,GET,HEAD"),
        (&stage.app.buyers, stage.hold_path("/checkout"), "POST"),
        (&stage.app.buyers, "/v1/payment-callbacks/stripe".to_owned(), "POST"),
        (&stage.app.buyers, "/livez".to_owned(), "GET,HEAD"),
        (&stage.app.buyers, "/problems/not-found".to_owned(), "GET,HEAD"),
        (&stage.app.operator, "/v1/events".to_owned(), "GET,HEAD,POST"),
        (&stage.app.operator, stage.path("/manifest"), "GET,HEAD,PUT"),
        (&stage.app.operator, stage.path("/prices"), "PUT"),
        (&stage.app.operator, stage.path("/on-sale"), "PUT"),
        (&stage.app.operator, stage.path("/report"), "GET,HEAD"),
        (&stage.app.operator, "/v1/keys".to_owned(), "POST"),
        (&stage.app.operator, "/metrics".to_owned(), "GET,HEAD"),
        (&stage.app.operator, "/_test/clock".to_owned(), "GET,HEAD,POST"),
    ];
    for (client, path, allowed) in cases {
        for method in
            [Method::PATCH, Method::PUT, Method::DELETE, Method::GET, Method::OPTIONS, Method::TRACE]
        {
            if allowed.split(',').any(|allowed| allowed == method.as_str()) {
                continue;
            }
            let reply = client.ask(method.clone(), &path).await;
            let allow = reply.header("allow").unwrap_or_default();
            let mut named: Vec<&str> = allow.split(',').map(str::trim).collect();
            named.sort_unstable();
            assert_eq!(named.join(","), allowed, "{method} {path}");
            stage.refuses(client.ask(method, &path), 405, "method-not-allowed", &[]).await;
        }
    }
    stage.finish().await;
}

#[tokio::test]
async fn a_parameter_is_known_and_of_its_type() {
    let stage = Stage::set().await;
    let (ada, operator) = (&stage.ada.client, &stage.app.operator);
    let order_id = stage.ada.pay(&stage.hold).await;
    let order = |query: &str| ada.get(&format!("/v1/orders/{order_id}?{query}"));
    let seats = |query: &str| ada.get(&stage.path(&format!("/seats?{query}")));
    let cases = |query: &str| operator.get(&format!("/v1/reconciliation/cases?{query}"));
    let manifest = |query: &str| {
        operator.ask(Method::PUT, &stage.path(&format!("/manifest?{query}"))).body("text/csv", "seat_id")
    };
    for (ask, place) in [
        (order("wait_s=31"), "/query/wait_s"),
        (order("wait_s=-1"), "/query/wait_s"),
        (order("wait_s="), "/query/wait_s"),
        (order("wait_s=1e1"), "/query/wait_s"),
        (order("wait=1"), "/query/wait"),
        (seats("since=x"), "/query/since"),
        (seats("since=-1"), "/query/since"),
        (seats("since=99999999999999999999"), "/query/since"),
        (seats("sinse=1"), "/query/sinse"),
        (cases("status=open"), "/query/status"),
        (cases("status="), "/query/status"),
        (cases("state=OPEN"), "/query/state"),
        (manifest("prefix_zones=maybe"), "/query/prefix_zones"),
        (manifest("prefix_zone=true"), "/query/prefix_zone"),
    ] {
        stage.faulty(ask, &[place]).await;
    }
    stage.refuses(seats("since=999999"), 410, "gone", &[]).await;
    stage.app.passes("payments", 2).await;
    stage.finish().await;
}
