//! What went wrong in other systems, by their own public reports, done to this one. Each test names its reports as
//! `owner/repository#number` on GitHub. The list, and what was decided, is in `docs/public-reports.md`.

mod codes;
mod deadlines;
mod double;
mod late_money;
mod limits;
mod load;
mod oversold;
mod places;
mod prices;
mod refunds;
mod spent_keys;
mod strangers;

use serde_json::{Value, json};

use crate::util::{App, Buyer, Hall, SEAT_PRICE};

const SEAT: &[&str] = &["A-1"];
const AUTHORIZED: &str = "payment_intent.amount_capturable_updated";
/// Authorised, captured, voided, refunded.
const CAPTURED: [i64; 4] = [SEAT_PRICE, SEAT_PRICE, 0, 0];
const VOIDED: [i64; 4] = [SEAT_PRICE, 0, SEAT_PRICE, 0];

/// A seat that Ada holds and has begun to pay for.
struct Paying {
    hall: Hall,
    ada: Buyer,
    hold: Value,
    order_id: String,
}

/// Begins to pay for the one seat of a hall with these rules, and lets the provider do as scripted.
async fn paying(app: &App, policy: Value, scripted: &str) -> Paying {
    app.provider.script("authorize", &[scripted]).await;
    let hall = app.hall(policy, SEAT).await;
    let ada = app.buyer().await;
    let hold = ada.hold(&hall, SEAT).await.ok(201);
    let order_id = ada.pay(&hold).await;
    app.worker("payments").await;
    Paying { hall, ada, hold, order_id }
}

/// Ten seconds to choose, ten to pay; then the clock decides, or doubt keeps the seats.
fn short(in_doubt: &str) -> Value {
    json!({ "hold_ttl_s": 10, "payment_grace_s": 10, "in_doubt": in_doubt })
}

/// Figures of an event's report.
async fn figures<const N: usize>(app: &App, hall: &Hall, members: [&str; N]) -> [i64; N] {
    let report = app.report(hall).await;
    members.map(|member| report[member].as_i64().unwrap_or_else(|| panic!("no {member} in {report}")))
}

/// Sets the price of an event's one price level.
async fn set_price(app: &App, hall: &Hall, amount_minor: i64) {
    let prices = json!({ "price_levels": [{ "price_level": "Stalls", "amount_minor": amount_minor }] });
    app.operator.put(&format!("/v1/events/{}/prices", hall.event_id), &prices).await.ok(200);
}

/// Has a payment confirmed at the provider by someone other than the server.
async fn confirm_by_hand(app: &App, intent_id: &str) {
    let path = format!("/v1/payment_intents/{intent_id}/confirm");
    let ask = app.provider.client.ask(reqwest::Method::POST, &path);
    ask.body("application/x-www-form-urlencoded", "payment_method=pm_card_visa").await.ok(200);
}
