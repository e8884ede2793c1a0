//! The simulator over real sockets: what a client and a webhook receiver see.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use reqwest::{Client, Response};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

use super::webhooks::Signer;
use super::*;

const SECRET: &str = "whsec_test";

/// A simulator, a client, and a receiver whose deliveries can be awaited.
struct Stage {
    simulator: Simulator,
    client: Client,
    deliveries: mpsc::UnboundedReceiver<Delivered>,
    _receiver: JoinSet<()>,
}

struct Delivered {
    event: Value,
    signed: bool,
}

impl Delivered {
    fn tells(&self) -> (&str, &str) {
        let object = &self.event["data"]["object"];
        let subject = object["payment_intent"].as_str().or(object["id"].as_str());
        (self.event["type"].as_str().unwrap(), subject.unwrap())
    }
}

impl Stage {
    /// The receiver refuses the first `refusals` deliveries and those that are badly signed.
    async fn new(refusals: usize) -> Stage {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let (sender, deliveries) = mpsc::unbounded_channel();
        let mut receiver = JoinSet::new();
        receiver.spawn(receive(listener, sender, Arc::new(AtomicUsize::new(refusals))));
        let config = SimulatorConfig {
            listen: "127.0.0.1:0".parse().unwrap(),
            webhook_secret: SECRET.into(),
            webhook_url: Some(url),
            seed: 1,
        };
        let simulator = Simulator::start(config).await.unwrap();
        let client = Client::builder().no_proxy().build().unwrap();
        Stage { simulator, client, deliveries, _receiver: receiver }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.simulator.addr)
    }

    async fn post(&self, path: &str, form: &[(&str, &str)], key: &str) -> reqwest::Result<Response> {
        let request = self.client.post(self.url(path)).bearer_auth("sk_test_1").form(form);
        let request = if key.is_empty() { request } else { request.header("Idempotency-Key", key) };
        request.send().await
    }

    async fn get(&self, path: &str) -> Value {
        let request = self.client.get(self.url(path)).bearer_auth("sk_test_1");
        request.send().await.unwrap().json().await.unwrap()
    }

    async fn control(&self, path: &str, body: Value) -> Value {
        let answer = self.client.post(self.url(path)).json(&body).send().await.unwrap();
        let status = answer.status();
        let body = answer.json().await.unwrap();
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// A new intent of ada's, confirmed with this payment method when one is given.
    async fn intent(&self, payment_method: Option<&str>) -> String {
        let mut form = vec![("amount", "500"), ("currency", "eur"), ("capture_method", "manual")];
        form.push(("metadata[order_id]", "ord_ada"));
        if let Some(method) = payment_method {
            form.extend([("payment_method", method), ("confirm", "true")]);
        }
        let answer = self.post("/v1/payment_intents", &form, "").await.unwrap();
        assert_eq!(answer.status(), 200);
        let intent: Value = answer.json().await.unwrap();
        intent["id"].as_str().unwrap().to_owned()
    }

    /// Sends a confirm over a connection of its own and doesn't wait for what comes back.
    async fn send_confirm(&self, id: &str, key: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.simulator.addr).await.unwrap();
        let body = "payment_method=pm_card_visa";
        let request = format!(
            "POST /v1/payment_intents/{id}/confirm HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer sk_1\r\n\
             Idempotency-Key: {key}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    async fn delivered(&mut self) -> Delivered {
        self.deliveries.recv().await.unwrap()
    }

    fn no_more_delivered(&mut self) {
        assert!(self.deliveries.try_recv().is_err());
    }
}

async fn receive(
    listener: TcpListener,
    sender: mpsc::UnboundedSender<Delivered>,
    refusals: Arc<AtomicUsize>,
) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (sender, refusals) = (sender.clone(), refusals.clone());
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let (sender, refusals) = (sender.clone(), refusals.clone());
            async move {
                let header = request.headers()["stripe-signature"].to_str().unwrap().to_owned();
                let body = request.into_body().collect().await.unwrap().to_bytes();
                let second = header[2..].split(',').next().unwrap().parse().unwrap();
                let signed = Signer::new(SECRET).header(second, &body) == header;
                let refused = refusals
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
                    .is_ok();
                let event = serde_json::from_slice(&body).unwrap();
                sender.send(Delivered { event, signed }).ok();
                let answer = if signed { r#"{"outcome":"applied"}"# } else { r#"{"code":"bad-signature"}"# };
                let mut response = hyper::Response::new(Full::new(Bytes::from(answer)));
                *response.status_mut() = (if signed && !refused { 200 } else { 400 }).try_into().unwrap();
                Ok::<_, Infallible>(response)
            }
        });
        connections.spawn(async move {
            http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
        });
    }
}

const AUTHORIZED: &str = "payment_intent.amount_capturable_updated";

#[tokio::test]
async fn a_lost_answer_is_a_closed_connection_without_a_byte() {
    let stage = Stage::new(0).await;
    for outcome in ["lost_reply", "lost_request"] {
        let id = stage.intent(None).await;
        stage.control("/_sim/script", json!({"operation": "authorize", "outcomes": [outcome]})).await;
        let mut stream = stage.send_confirm(&id, outcome).await;
        let mut seen = Vec::new();
        stream.read_to_end(&mut seen).await.unwrap();
        assert!(seen.is_empty(), "{outcome}: {}", String::from_utf8_lossy(&seen));
        let status = stage.get(&format!("/v1/payment_intents/{id}")).await["status"].clone();
        let want = if outcome == "lost_reply" { "requires_capture" } else { "requires_payment_method" };
        assert_eq!(status, want);

        let path = format!("/v1/payment_intents/{id}/confirm");
        let again = stage.post(&path, &[("payment_method", "pm_card_visa")], outcome).await.unwrap();
        let replayed = again.headers().get("idempotent-replayed").is_some();
        assert_eq!((again.status().as_u16(), replayed), (200, outcome == "lost_reply"));
        assert_eq!(again.json::<Value>().await.unwrap()["status"], "requires_capture");
    }
}

#[tokio::test]
async fn a_replay_is_the_same_bytes() {
    let stage = Stage::new(0).await;
    let form = [("amount", "5"), ("currency", "jpy"), ("confirm", "true"), ("payment_method", "pm_1")];
    let first = stage.post("/v1/payment_intents", &form, "k").await.unwrap().bytes().await.unwrap();
    let id = serde_json::from_slice::<Value>(&first).unwrap()["id"].as_str().unwrap().to_owned();
    stage.post("/v1/refunds", &[("payment_intent", &id)], "").await.unwrap();
    let again = stage.post("/v1/payment_intents", &form, "k").await.unwrap();
    assert_eq!(again.headers()["idempotent-replayed"], "true");
    assert_eq!(again.bytes().await.unwrap(), first);
}

#[tokio::test]
async fn a_delayed_call_is_done_though_its_client_hung_up() {
    let mut stage = Stage::new(0).await;
    let id = stage.intent(None).await;
    stage.control("/_sim/script", json!({"operation": "authorize", "outcomes": ["delay:200"]})).await;
    let stream = stage.send_confirm(&id, "k").await;
    while stage.get("/_sim/log").await["entries"].as_array().unwrap().is_empty() {}
    drop(stream);
    assert_eq!(stage.delivered().await.tells(), (AUTHORIZED, &*id));
}

#[tokio::test]
async fn webhook_modes() {
    let mut stage = Stage::new(0).await;
    stage.control("/_sim/webhooks", json!({"mode": "duplicate"})).await;
    let id = stage.intent(Some("pm_1")).await;
    let (first, second) = (stage.delivered().await, stage.delivered().await);
    assert_eq!((first.tells(), first.signed), ((AUTHORIZED, &*id), true));
    assert_eq!(first.event, second.event);

    stage.control("/_sim/webhooks", json!({"mode": "reverse"})).await;
    let (older, newer) = (stage.intent(Some("pm_1")).await, stage.intent(Some("pm_1")).await);
    let order = [stage.delivered().await, stage.delivered().await];
    // Which goes first depends on how soon the second came: the queue's own test holds the clock still.
    assert!(order.iter().any(|delivered| delivered.tells().1 == older));
    assert!(order.iter().any(|delivered| delivered.tells().1 == newer));
    let alone = stage.intent(Some("pm_1")).await;
    assert_eq!(stage.delivered().await.tells().1, alone);

    stage.control("/_sim/webhooks", json!({"mode": "early"})).await;
    let early = stage.intent(Some("pm_1")).await;
    let delivered = stage.deliveries.try_recv().expect("delivered before the reply");
    assert_eq!(delivered.tells(), (AUTHORIZED, &*early));

    stage.control("/_sim/webhooks", json!({"mode": "delay:30"})).await;
    let late = stage.intent(Some("pm_1")).await;
    assert_eq!(stage.delivered().await.tells().1, late);

    stage.control("/_sim/webhooks", json!({"mode": "bad_signature"})).await;
    stage.intent(Some("pm_1")).await;
    assert!(!stage.delivered().await.signed);
}

#[tokio::test]
async fn events_that_were_kept_are_delivered_on_demand() {
    let mut stage = Stage::new(0).await;
    stage.control("/_sim/webhooks", json!({"mode": "off"})).await;
    let id = stage.intent(Some("pm_1")).await;
    stage.post(&format!("/v1/payment_intents/{id}/capture"), &[], "").await.unwrap();
    let wanted = json!({"order_id": "ord_ada", "type": AUTHORIZED});
    let report = stage.control("/_sim/deliver", wanted).await;
    let delivered = stage.delivered().await;
    assert_eq!(delivered.tells(), (AUTHORIZED, &*id));
    let event_id = &delivered.event["id"];
    let receipt =
        json!({"event_id": event_id, "type": AUTHORIZED, "status": 200, "body": {"outcome": "applied"}});
    assert_eq!(report, json!({ "deliveries": [receipt] }));

    let report = stage.control("/_sim/deliver", json!({"event_id": event_id, "new_event_id": true})).await;
    let again = stage.delivered().await;
    assert_ne!(&again.event["id"], event_id);
    assert_eq!(again.event["data"], delivered.event["data"]);
    assert_eq!(report["deliveries"][0]["event_id"], again.event["id"]);
    let kept = stage.get(&format!("/v1/events/{}", again.event["id"].as_str().unwrap())).await;
    assert_eq!(kept, again.event);

    stage.control("/_sim/deliver", json!({"order_id": "ord_ada"})).await;
    assert_eq!(stage.delivered().await.event["id"], again.event["id"], "the latest of the order");
    let missing = stage.client.post(stage.url("/_sim/deliver")).json(&json!({"order_id": "ord_ben"}));
    assert_eq!(missing.send().await.unwrap().status(), 404);
    stage.no_more_delivered();
}

#[tokio::test]
async fn a_refused_delivery_is_tried_again() {
    let mut stage = Stage::new(2).await;
    stage.intent(Some("pm_1")).await;
    let first = stage.delivered().await.event;
    assert_eq!(stage.delivered().await.event, first);
    assert_eq!(stage.delivered().await.event, first);
}

#[tokio::test]
async fn lists_are_newest_first_and_paged() {
    let stage = Stage::new(0).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(stage.intent(None).await);
    }
    let of = |page: &Value| -> Vec<String> {
        page["data"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect()
    };
    let page = stage.get("/v1/payment_intents?limit=2").await;
    assert_eq!((of(&page), &page["has_more"]), (vec![ids[2].clone(), ids[1].clone()], &json!(true)));
    let page = stage.get(&format!("/v1/payment_intents?limit=2&starting_after={}", ids[1])).await;
    assert_eq!((of(&page), &page["has_more"]), (vec![ids[0].clone()], &json!(false)));
    let page = stage.get("/v1/payment_intents?created[lt]=1000").await;
    assert_eq!((of(&page), &page["has_more"]), (vec![], &json!(false)));
    let page = stage.get("/v1/payment_intents?created[gte]=1000&created[lt]=99999999999").await;
    assert_eq!(of(&page).len(), 3);
}

#[tokio::test]
async fn what_is_no_call_is_refused_in_the_providers_shape() {
    let stage = Stage::new(0).await;
    let bare = stage.client.get(stage.url("/v1/payment_intents")).send().await.unwrap();
    assert_eq!(bare.status(), 401);
    assert!(bare.headers().contains_key("request-id"));
    assert_eq!(bare.json::<Value>().await.unwrap()["error"]["type"], "invalid_request_error");
    let unknown = stage.post("/v1/customers", &[], "").await.unwrap();
    assert_eq!(unknown.status(), 404);
    let large = "x".repeat(limits::BODY_BYTES_MAX);
    let large = stage.post("/v1/payment_intents", &[("description", &large)], "").await.unwrap();
    assert_eq!(large.status(), 413);
    for body in [
        json!({"operation": "capture", "outcomes": ["processing"]}),
        json!({"operation": "pay", "outcomes": []}),
        json!({"operation": "void", "outcomes": ["ok", "never"]}),
        json!({"operation": "void", "outcome": ["ok"]}),
    ] {
        let refused = stage.client.post(stage.url("/_sim/script")).json(&body).send().await.unwrap();
        assert_eq!(refused.status(), 400, "{body}");
    }
}

#[tokio::test]
async fn stopped_it_answers_no_more() {
    let stage = Stage::new(0).await;
    stage.intent(None).await;
    let addr = stage.simulator.addr;
    stage.simulator.stop().await;
    assert!(TcpStream::connect(addr).await.is_err());
}
