//! Readers that overtake each other.

use std::future::IntoFuture;

use serde_json::json;

use crate::util::{App, eventually};

/// A look at the prices that takes its time must not put what it has read in place of what has been read since.
#[tokio::test]
async fn a_slow_look_does_not_bring_old_prices_back() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1"]).await;
    let path = format!("/v1/events/{}", hall.event_id);
    let app =
        App::options().data(app.stop()).env("ONSALE_FAIL_POINT", "catalog.sale=delay:1500@1").start().await;
    let manifest = || app.buyers.get(&format!("{path}/manifest")).into_future();
    let quick = async {
        let stands = || async { app.log_text().contains("fail point catalog.sale").then_some(()) };
        eventually("the slow look has read, and waits", stands).await;
        app.seat_states(&hall).await;
        let prices = json!({ "price_levels": [{ "price_level": "Stalls", "amount_minor": 2_600 }] });
        app.operator.put(&format!("{path}/prices"), &prices).await.ok(200);
        manifest().await.ok(200)
    };
    let (slow, quick) = tokio::join!(manifest(), quick);
    for manifest in [quick, slow.ok(200), manifest().await.ok(200)] {
        assert_eq!(manifest["price_levels"][0]["amount_minor"], 2_600, "{manifest}");
    }
    app.finish().await;
}
