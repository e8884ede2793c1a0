//! The payment provider: the simulator inside the server, or one that outlives it.

use std::process::{Child, Command, Stdio};

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use super::test_app::{ready_line, without_settings};
use super::{Client, text};

/// What a [`ProviderProcess`] signs its callbacks with; a test may do the same.
pub(crate) const WEBHOOK_SECRET: &str = "whsec_of_the_tests";
/// What its API is called with.
pub(crate) const SECRET_KEY: &str = "sk_test_of_the_tests";

/// The `Stripe-Signature` of a body at a time in Unix seconds.
pub(crate) fn signature(secret: &str, at_s: i64, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(format!("{at_s}.{body}").as_bytes());
    let digits: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={at_s},v1={digits}")
}

/// A payment simulator of its own, killed when dropped. It knows what it knew after a server's restart, and its webhook
/// secret is [`WEBHOOK_SECRET`].
pub(crate) struct ProviderProcess {
    child: Child,
    pub(crate) base: String,
}

impl ProviderProcess {
    pub(crate) fn start() -> ProviderProcess {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onsale"));
        without_settings(&mut command);
        let arguments = ["payment-simulator", "--listen", "127.0.0.1:0", "--webhook-secret", WEBHOOK_SECRET];
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the simulator starts");
        let ready = ready_line(&mut child).expect("the simulator is ready");
        ProviderProcess { child, base: format!("http://{}", text(&ready, "payment_simulator")) }
    }
}

impl Drop for ProviderProcess {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The simulator's control surface and API.
#[derive(Clone)]
pub(crate) struct Provider {
    pub(crate) client: Client,
}

impl Provider {
    pub(crate) fn new(base: String) -> Provider {
        Provider { client: Client::new(base).with_token(SECRET_KEY) }
    }

    /// What the next calls of a kind do.
    pub(crate) async fn script(&self, operation: &str, outcomes: &[&str]) {
        let body = json!({ "operation": operation, "outcomes": outcomes });
        self.client.post("/_sim/script", &body).await.ok(200);
    }

    /// How callbacks come: `normal`, `off`, `duplicate`, `reverse`, `early`, `bad_signature`, `delay:<ms>`.
    pub(crate) async fn webhooks(&self, mode: &str) {
        self.client.post("/_sim/webhooks", &json!({ "mode": mode })).await.ok(200);
    }

    /// Where callbacks go.
    pub(crate) async fn webhook_url(&self, url: &str) {
        self.client.post("/_sim/webhooks", &json!({ "url": url })).await.ok(200);
    }

    /// Delivers the latest event that fits, now, whatever the mode; status and body of the server's answer.
    pub(crate) async fn deliver_raw(&self, wanted: &Value) -> (u64, Value) {
        let said = self.client.post("/_sim/deliver", wanted).await.ok(200);
        let delivery = &said["deliveries"][0];
        let status = delivery["status"].as_u64().unwrap_or_else(|| panic!("not delivered: {said}"));
        (status, delivery["body"].clone())
    }

    /// Delivers the latest event that fits, now, whatever the mode; the verdict.
    pub(crate) async fn deliver(&self, wanted: &Value) -> String {
        let (status, body) = self.deliver_raw(wanted).await;
        assert_eq!(status, 200, "{wanted}: {body}");
        text(&body, "outcome").to_owned()
    }

    /// Delivers an order's latest event again; the verdict.
    pub(crate) async fn deliver_of(&self, order_id: &str) -> String {
        self.deliver(&json!({ "order_id": order_id })).await
    }

    /// Delivers an order's latest event as a new one; the verdict.
    pub(crate) async fn deliver_anew(&self, order_id: &str) -> String {
        self.deliver(&json!({ "order_id": order_id, "new_event_id": true })).await
    }

    /// Delivers an order's latest event of a type again; the verdict.
    pub(crate) async fn tell(&self, order_id: &str, event_type: &str) -> String {
        self.deliver(&json!({ "order_id": order_id, "type": event_type })).await
    }

    /// Delivers an order's latest event of a type as a new one; the verdict.
    pub(crate) async fn tell_anew(&self, order_id: &str, event_type: &str) -> String {
        self.deliver(&json!({ "order_id": order_id, "type": event_type, "new_event_id": true })).await
    }

    /// The buyer finishes (`success`) or abandons (`failure`) what the intent waits for.
    pub(crate) async fn complete(&self, intent_id: &str, result: &str) {
        self.client
            .post(&format!("/_sim/intents/{intent_id}/complete"), &json!({ "result": result }))
            .await
            .ok(200);
    }

    /// Every operation as received.
    pub(crate) async fn log(&self) -> Vec<Value> {
        self.client.get("/_sim/log").await.ok(200)["entries"].as_array().expect("entries").clone()
    }

    /// The operations of one kind for an order, as received, replays included.
    pub(crate) async fn calls(&self, operation: &str, order_id: &str) -> Vec<Value> {
        let mut log = self.log().await;
        log.retain(|entry| entry["operation"] == operation && entry["order_id"] == order_id);
        log
    }

    /// The outcomes of the operations of one kind for an order, in a line.
    pub(crate) async fn outcomes(&self, operation: &str, order_id: &str) -> String {
        let calls = self.calls(operation, order_id).await;
        calls.iter().map(|call| text(call, "outcome")).collect::<Vec<_>>().join(" ")
    }

    /// The money of every order.
    pub(crate) async fn ledger(&self) -> Vec<Value> {
        self.client.get("/_sim/ledger").await.ok(200)["orders"].as_array().expect("orders").clone()
    }

    /// The money of one order: authorised, captured, voided, refunded.
    pub(crate) async fn money(&self, order_id: &str) -> [i64; 4] {
        let ledger = self.ledger().await;
        let entry = ledger.iter().find(|entry| entry["order_id"] == order_id).cloned().unwrap_or_default();
        ["authorised", "captured", "voided", "refunded"].map(|member| entry[member].as_i64().unwrap_or(0))
    }

    /// The latest event of a type about an order, as it is delivered.
    pub(crate) async fn event(&self, order_id: &str, event_type: &str) -> Value {
        let page = self.client.get(&format!("/v1/events?limit=100&type={event_type}")).await.ok(200);
        let about = |event: &&Value| event["data"]["object"]["metadata"]["order_id"] == order_id;
        let found = page["data"].as_array().expect("data").iter().find(about);
        found.unwrap_or_else(|| panic!("no {event_type} about {order_id}")).clone()
    }

    /// The intents made for an order, oldest first.
    pub(crate) async fn intents(&self, order_id: &str) -> Vec<Value> {
        let page = self.client.get("/v1/payment_intents?limit=100").await.ok(200);
        let mut intents = page["data"].as_array().expect("data").clone();
        intents.retain(|intent| intent["metadata"]["order_id"] == order_id);
        intents.reverse();
        intents
    }

    /// The name of the latest intent made for an order.
    pub(crate) async fn intent_of(&self, order_id: &str) -> String {
        let intents = self.intents(order_id).await;
        text(intents.last().unwrap_or_else(|| panic!("no intent for {order_id}")), "id").to_owned()
    }
}
