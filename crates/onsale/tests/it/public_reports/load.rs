//! Answers that fail because others ask at the same time.

use serde_json::json;
use tokio::task::JoinSet;

use crate::util::{App, SEAT_PRICE, text};

const BUYERS: usize = 12;
const READERS: usize = 4;

/// cachethq/cachet#4620, Arize-ai/phoenix#3949: on the same embedded database, requests at the same time failed with
/// "database is locked". alfio-event/alf.io#1421: a rush brought the server down, and paid tickets stayed pending.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_and_writers_at_once_are_all_answered() {
    let app = App::options().workers().start().await;
    let names: Vec<String> = (0..BUYERS * 3).map(|seat| format!("S-{seat}")).collect();
    let seats: Vec<&str> = names.iter().map(String::as_str).collect();
    let hall = app.hall(json!({}), &seats).await;
    let mut rush = JoinSet::new();
    for wanted in names.chunks(3) {
        let (buyer, hall, wanted) = (app.buyer().await, hall.clone(), wanted.to_vec());
        rush.spawn(async move {
            for seat in &wanted {
                let hold = buyer.hold(&hall, &[seat]).await.ok(201);
                let order_id = buyer.pay(&hold).await;
                buyer.await_order(&order_id, "CONFIRMED CAPTURED").await;
            }
        });
    }
    for _ in 0..READERS {
        let (operator, event_id) = (app.operator.clone(), hall.event_id.clone());
        rush.spawn(async move {
            for _ in 0..25 {
                for what in ["/report", "/seats", "/manifest", ""] {
                    operator.get(&format!("/v1/events/{event_id}{what}")).await.ok(200);
                }
                operator.get("/v1/reconciliation/cases").await.ok(200);
                let audit = operator.get("/_test/audit").await.ok(200);
                assert_eq!(audit["violations"], 0, "{audit}");
            }
        });
    }
    rush.join_all().await;
    let report = app.report(&hall).await;
    let sold = (BUYERS * 3) as i64;
    assert_eq!(report["sold"], sold, "{report}");
    assert_eq!(report["captured_minor"], sold * SEAT_PRICE, "{report}");
    assert_eq!(text(&report, "currency"), "EUR");
    app.finish().await;
}
