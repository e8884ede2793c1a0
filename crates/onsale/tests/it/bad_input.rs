//! Requests that can't be right: each is refused with its status, its code and its places, changes nothing, and the
//! service goes on.

mod bodies;
mod callers;
mod gates;
mod halls;
mod holds;
mod keys;
mod routes;
mod times;

use serde_json::{Value, json};

use crate::util::{App, Ask, Buyer, Hall, text};

/// The seats of the stage; `007` is a text and not a number.
const SEATS: [&str; 10] = ["A-1", "A-2", "A-3", "A-4", "A-5", "A-6", "A-7", "A-8", "A-9", "007"];
/// A place that stands for the `Idempotency-Key`.
const KEY: &str = "/headers/Idempotency-Key";

/// A server with a hall, in which ada holds a seat.
struct Stage {
    app: App,
    hall: Hall,
    ada: Buyer,
    ada_token: String,
    hold: Value,
}

impl Stage {
    async fn set() -> Stage {
        let app = App::start().await;
        let hall = app.hall(json!({}), &SEATS).await;
        let session = app.buyers.post("/v1/sessions", &json!({})).await.ok(201);
        let ada_token = text(&session, "session_token").to_owned();
        let account_id = text(&session, "account_id").to_owned();
        let ada = Buyer { client: app.buyers.with_token(&ada_token), account_id };
        let hold = ada.hold(&hall, &["A-1"]).await.ok(201);
        Stage { app, hall, ada, ada_token, hold }
    }

    /// The path of something of the hall.
    fn path(&self, rest: &str) -> String {
        format!("/v1/events/{}{rest}", self.hall.event_id)
    }

    /// The path of something of ada's hold.
    fn hold_path(&self, rest: &str) -> String {
        format!("/v1/holds/{}{rest}", text(&self.hold, "hold_id"))
    }

    /// Checks a refusal and that nothing has changed. `places` are the pointers of its faults, in order.
    async fn refuses(&self, ask: Ask, status: u16, code: &str, places: &[&str]) -> Value {
        let before = self.truth().await;
        let reply = ask.await;
        let shown = format!("{}: {}", reply.what, reply.text);
        let problem = reply.problem(status, code);
        let faults = problem["errors"].as_array().cloned().unwrap_or_default();
        let found: Vec<&str> = faults.iter().map(|fault| text(fault, "pointer")).collect();
        assert_eq!(found, places, "{shown}");
        assert!(faults.iter().all(|fault| !text(fault, "detail").is_empty()), "{shown}");
        assert_eq!(self.truth().await, before, "changed by {shown}");
        problem
    }

    /// That a request is faulty at these places.
    async fn faulty(&self, ask: Ask, places: &[&str]) -> Value {
        self.refuses(ask, 422, "validation-failed", places).await
    }

    /// All that a refused request must leave as it was. The list of events has the version of each.
    async fn truth(&self) -> Value {
        let app = &self.app;
        json!([
            app.operator.get("/v1/events").await.ok(200),
            app.report(&self.hall).await,
            app.seat_states(&self.hall).await,
            app.open_cases().await,
            self.ada.hold_now(&self.hold).await,
            app.now_ms().await,
        ])
    }

    /// The service goes on: a buyer buys. Then the end.
    async fn finish(self) {
        let ben = self.app.buyer().await;
        let hold = ben.hold(&self.hall, &["007"]).await.ok(201);
        let order_id = ben.pay(&hold).await;
        self.app.passes("payments", 2).await;
        ben.expect_order(&order_id, "CONFIRMED CAPTURED").await;
        self.app.finish().await;
    }
}
