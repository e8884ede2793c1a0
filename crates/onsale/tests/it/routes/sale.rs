//! A whole sale, as its contract has it.

use serde_json::json;

use crate::util::App;

#[tokio::test]
async fn smoke() {
    let app = App::start().await;
    let hall = app.hall(json!({ "hold_ttl_s": 10 }), &["A-1", "A-2"]).await;
    let ada = app.buyer().await;
    let hold = ada.hold(&hall, &["A-1"]).await.ok(201);
    let order_id = ada.pay(&hold).await;
    app.passes("payments", 2).await;
    ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    app.finish().await;
}
