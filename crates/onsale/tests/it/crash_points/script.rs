//! The script: a small sale with everything in it that can happen to a seat and to money. It is played from its
//! beginning on every server; what a server before has answered must be answered the same.

use reqwest::Method;
use serde_json::{Value, json};

use crate::util::text;

use super::stage::{Gone, Manner, Stage};

pub(super) const BUYERS: [&str; 9] = ["ada", "ben", "cy", "dan", "eve", "fay", "gus", "hal", "ida"];
/// The seats of each hall.
pub(super) const SEATS: [&[&str]; 3] =
    [&["A-1", "A-2", "A-3", "A-4", "A-5", "A-6", "A-7"], &["B-1"], &["C-1", "C-2"]];
/// What the seat map shows in the end.
const SOLD: [&str; 3] = ["2222222", "0", "20"];
const NEW_PRICE: i64 = 2_717;
/// Of another shop, at the same provider.
pub(super) const STRANGER: &str = "of_another_shop";

const GOOD: &str = "pm_card_visa";
const BAD: &str = "pm_card_chargeDeclined";
const ASKS: &str = "pm_card_threeDSecure2Required";
/// Past every deadline of a hold that was placed before.
pub(super) const LATER_MS: i64 = 2 * 3_600_000;

/// The rules of each hall.
pub(super) fn policies() -> [Value; 3] {
    let policy = |payment, in_doubt| json!({ "hold_ttl_s": 3_600, "payment_grace_s": 600, "payment": payment, "in_doubt": in_doubt });
    [
        policy("authorize_then_capture", "keep"),
        policy("authorize_then_capture", "release"),
        policy("charge", "release"),
    ]
}

fn answered(payment_status: &str) -> bool {
    !matches!(payment_status, "PENDING" | "UNKNOWN")
}

/// Plays it to its end, or to the server's.
pub(super) async fn play(stage: &Stage<'_>) -> Result<(), Gone> {
    let ada = stage.hold("ada", "ada-holds", 0, &["A-1", "A-2", "A-3"]).await?;
    let taken = json!({ "seats": ["A-3", "A-4"] });
    let path = format!("/v1/events/{}/holds", stage.cast.halls[0].event_id);
    stage.ask("ben", "ben-is-late", (Method::POST, &path, Some(&taken)), 409).await?;
    let ben = stage.hold("ben", "ben-holds", 0, &["A-4", "A-5"]).await?;
    let fay = stage.hold("fay", "fay-holds", 0, &["A-6"]).await?;
    let path = format!("/v1/holds/{}", text(&fay, "hold_id"));
    stage.ask("fay", "fay-releases", (Method::DELETE, &path, None), 204).await?;
    let cy = stage.hold("cy", "cy-holds", 0, &["A-6"]).await?;
    // Who never pays.
    stage.hold("dan", "dan-holds", 0, &["A-7"]).await?;
    let eve = stage.hold("eve", "eve-holds", 1, &["B-1"]).await?;
    let gus = stage.hold("gus", "gus-holds", 2, &["C-1"]).await?;
    let hal = stage.hold("hal", "hal-holds", 2, &["C-2"]).await?;

    if stage.manner == Manner::Alive {
        tokio::try_join!(
            one_card(stage, "ada", "ada-pays", &ada),
            two_cards(stage, &ben),
            proves_who_it_is(stage, &cy),
            has_to_prove(stage, "eve", "eve-pays", &eve),
            one_card(stage, "gus", "gus-pays", &gus),
            has_to_prove(stage, "hal", "hal-pays", &hal),
        )?;
    } else {
        one_card(stage, "ada", "ada-pays", &ada).await?;
        two_cards(stage, &ben).await?;
        proves_who_it_is(stage, &cy).await?;
        has_to_prove(stage, "eve", "eve-pays", &eve).await?;
        one_card(stage, "gus", "gus-pays", &gus).await?;
        has_to_prove(stage, "hal", "hal-pays", &hal).await?;
    }
    stranger(stage).await?;

    // Two buyers prove who they are when their seats have gone, and nobody has heard of it before that.
    let (eve, hal) = (order_of(stage, "eve"), order_of(stage, "hal"));
    let later_ms = stage.ledger.zero_ms.load(std::sync::atomic::Ordering::SeqCst) + LATER_MS;
    if stage.manner == Manner::Alive {
        stage.app.provider.webhooks("off").await;
        stage.complete(&eve).await;
        stage.complete(&hal).await;
        stage.set_clock(later_ms).await?;
    } else {
        stage.set_clock(later_ms).await?;
        stage.complete(&eve).await;
        stage.complete(&hal).await;
    }
    stage.pass("expirer").await?;
    stage.settle("eve", &eve, |status| status == "VOIDED").await?;
    stage.settle("hal", &hal, |status| status == "REFUNDED").await?;
    // The seat of who never paid is free again.
    let ida = stage.hold("ida", "ida-holds", 0, &["A-7"]).await?;
    one_card(stage, "ida", "ida-pays", &ida).await?;
    for who in ["eve", "hal", "ida"] {
        stage.deliver(&order_of(stage, who)).await?;
    }
    stage.pass("issuer").await?;
    stage.lets_in("ada").await?;
    stage.pass("reconciler").await?;
    // Everyone sees what has become of the seats, and what the next ones will cost.
    for (hall, states) in SOLD.iter().enumerate() {
        stage.shows(hall, "seats", |seats| text(seats, "states") == *states).await?;
    }
    stage.price(1, NEW_PRICE).await?;
    stage.shows(1, "manifest", |manifest| manifest.to_string().contains(&format!(":{NEW_PRICE}"))).await
}

/// What comes of it on a server that was away until every deadline had passed, and whose buyers and provider were not.
pub(super) async fn end_late(stage: &Stage<'_>) -> Result<(), Gone> {
    let orders = stage.ledger.orders.lock().expect("the ledger").clone();
    for order_id in orders.values() {
        stage.complete(order_id).await;
    }
    stage.ask_all_again().await?;
    let orders = stage.ledger.orders.lock().expect("the ledger").clone();
    stage.pass("expirer").await?;
    for (who, order_id) in &orders {
        stage.settle(who, order_id, is_over).await?;
    }
    stage.pass("issuer").await?;
    stage.pass("reconciler").await?;
    // What has been answered once more is still so when all is over.
    stage.ask_all_again().await
}

fn is_over(payment_status: &str) -> bool {
    matches!(payment_status, "CAPTURED" | "DECLINED" | "VOIDED" | "REFUNDED")
}

pub(super) fn order_of(stage: &Stage<'_>, who: &str) -> String {
    stage.ledger.orders.lock().expect("the ledger")[who].clone()
}

async fn one_card(stage: &Stage<'_>, who: &'static str, key: &'static str, hold: &Value) -> Result<(), Gone> {
    let order_id = stage.pay(who, key, hold, GOOD).await?;
    stage.settle(who, &order_id, |status| status == "CAPTURED").await?;
    stage.deliver(&order_id).await
}

async fn two_cards(stage: &Stage<'_>, hold: &Value) -> Result<(), Gone> {
    let order_id = stage.pay("ben", "ben-pays-badly", hold, BAD).await?;
    stage.settle("ben", &order_id, answered).await?;
    one_card(stage, "ben", "ben-pays", hold).await
}

async fn proves_who_it_is(stage: &Stage<'_>, hold: &Value) -> Result<(), Gone> {
    let order_id = stage.pay("cy", "cy-pays", hold, ASKS).await?;
    stage.settle("cy", &order_id, answered).await?;
    stage.complete(&order_id).await;
    stage.deliver(&order_id).await?;
    stage.settle("cy", &order_id, |status| status == "CAPTURED").await
}

async fn has_to_prove(
    stage: &Stage<'_>,
    who: &'static str,
    key: &'static str,
    hold: &Value,
) -> Result<(), Gone> {
    let order_id = stage.pay(who, key, hold, ASKS).await?;
    stage.settle(who, &order_id, answered).await
}

/// A payment that is none of ours, and its callback.
async fn stranger(stage: &Stage<'_>) -> Result<(), Gone> {
    let form =
        format!("amount=700&currency=eur&confirm=true&payment_method={GOOD}&metadata[order_id]={STRANGER}");
    let made = stage.app.provider.client.ask(Method::POST, "/v1/payment_intents").key(STRANGER);
    made.body("application/x-www-form-urlencoded", form).await.ok(200);
    stage.deliver(STRANGER).await
}
