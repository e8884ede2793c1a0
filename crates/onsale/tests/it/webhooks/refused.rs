//! What is no endpoint, and what nobody may ask of one.

use serde_json::{Value, json};

use super::{ORDERS, path_of};
use crate::util::{App, Receiver, text};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn targets_and_types_that_are_none_are_refused_and_named() {
    let app = App::start().await;
    let long = format!("https://shop.example/{}", "a".repeat(2_048));
    let refused = async |body: Value| {
        let problem =
            app.operator.post("/v1/webhook-endpoints", &body).await.problem(422, "validation-failed");
        let errors = problem["errors"].as_array().expect("errors").clone();
        errors.iter().map(|error| text(error, "pointer").to_owned()).collect::<Vec<_>>().join(" ")
    };
    for url in [
        "https://10.0.0.7/hook",
        "https://192.168.1.1/",
        "https://172.20.0.1/",
        "https://169.254.169.254/latest/meta-data/",
        "https://100.64.0.1/",
        "https://[fd00::1]/",
        "https://[fe80::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://0.0.0.0/",
        "https://0xa9fea9fe/",
        "http://shop.example/hook",
        "ftp://shop.example/",
        "https://ada:secret@shop.example/",
        "https://shop.example/#fragment",
        "shop.example",
        "",
        &long,
    ] {
        assert_eq!(refused(json!({ "url": url, "types": ORDERS })).await, "/url", "{url}");
    }
    let url = "https://shop.example/hook";
    for (types, pointer) in [
        (json!([]), "/types"),
        (json!(["order.sold"]), "/types/0"),
        (json!(["order.confirmed", "order.*", "order.confirmed"]), "/types/1 /types/2"),
        (json!(vec!["order.confirmed"; 100]), "/types"),
        (json!("order.confirmed"), "/types"),
        (json!([7]), "/types/0"),
    ] {
        assert_eq!(refused(json!({ "url": url, "types": types })).await, pointer, "{types}");
    }
    assert_eq!(
        refused(json!({ "url": "http://10.0.0.1/", "types": ["x"] })).await,
        "/types/0 /url",
        "every fault"
    );
    assert_eq!(refused(json!({ "url": url, "types": ORDERS, "secret": "whsec_mine" })).await, "/secret");
    assert_eq!(app.operator.get("/v1/webhook-endpoints").await.ok(200), json!({ "endpoints": [] }));
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_operators_change_endpoints_and_there_is_a_bound() {
    let app = App::start().await;
    let receiver = Receiver::start().await;
    let endpoint = app.tell(&receiver, &ORDERS).await;
    let new = json!({ "url": receiver.url, "types": ORDERS });
    let ada = app.buyer().await;
    // Buyers' tokens are for their own things, and the buyers' listener has no such route.
    ada.client.at(&app.operator.base).post("/v1/webhook-endpoints", &new).await.problem(403, "forbidden");
    app.buyers
        .at(&app.operator.base)
        .post("/v1/webhook-endpoints", &new)
        .await
        .problem(401, "unauthenticated");
    app.operator.at(&app.buyers.base).post("/v1/webhook-endpoints", &new).await.problem(404, "not-found");
    let reader = app.operator.post("/v1/keys", &json!({ "role": "reader" })).await.ok(201);
    let reader = app.operator.with_token(text(&reader, "secret"));
    reader.post("/v1/webhook-endpoints", &new).await.problem(403, "forbidden");
    for below in ["/enable", "/secret", "/replay"] {
        reader.post(&path_of(&endpoint, below), &json!({})).await.problem(403, "forbidden");
    }
    reader.delete(&path_of(&endpoint, "")).await.problem(403, "forbidden");

    for (body, pointer) in [
        (json!({}), ""),
        (json!({ "since": "2026-01-01T00:00:00Z", "webhook_id": "msg_00000000000000000000000001" }), ""),
        (json!({ "since": "yesterday" }), "/since"),
        (json!({ "webhook_id": "ord_00000000000000000000000001" }), "/webhook_id"),
        (json!({ "webhook_id": "msg_00000000000000000000000001" }), "/webhook_id"),
        (json!({ "all": true }), "/all"),
    ] {
        let answer = app.operator.post(&path_of(&endpoint, "/replay"), &body).await;
        assert_eq!(answer.problem(422, "validation-failed")["errors"][0]["pointer"], pointer, "{body}");
    }
    for query in ["?status=OPEN", "?limit=0", "?limit=1001", "?limit=-1", "?page=2"] {
        let answer = app.operator.get(&format!("{}{query}", path_of(&endpoint, "/deliveries"))).await;
        answer.problem(422, "validation-failed");
    }
    for unknown in ["whe_00000000000000000000000001", "whe_x", "key_00000000000000000000000001"] {
        let stranger = json!({ "endpoint_id": unknown });
        app.operator.get(&path_of(&stranger, "")).await.problem(404, "not-found");
        app.operator.get(&path_of(&stranger, "/deliveries")).await.problem(404, "not-found");
        app.operator.post(&path_of(&stranger, "/secret"), &json!({})).await.problem(404, "not-found");
    }
    for _ in 1..16 {
        app.tell(&receiver, &ORDERS).await;
    }
    app.operator.post("/v1/webhook-endpoints", &new).await.problem(409, "action-not-possible");
    app.finish().await;
}
