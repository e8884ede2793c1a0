//! Another amount, or another currency, than the buyer was shown.

use std::fmt::Write as _;

use reqwest::Method;
use serde_json::{Value, json};

use super::{SEAT, figures, paying, set_price};
use crate::util::{App, Ask, Hall, SEAT_PRICE, fresh_key, text};

/// A draft with a seat for each price level: seat S-0 of level L0, and so on.
async fn draft(app: &App, currency: &str, seats: usize) -> Hall {
    let new = json!({ "name": "Priced", "currency": currency, "starts_at": "2030-05-01T19:30:00Z" });
    let event_id = text(&app.operator.post("/v1/events", &new).await.ok(201), "event_id").to_owned();
    let mut csv = String::from("seat_id,section,row,seat,category\n");
    for seat in 0..seats {
        let _ = writeln!(csv, "S-{seat},S,1,{seat},L{seat}");
    }
    let ask = app.operator.ask(Method::PUT, &format!("/v1/events/{event_id}/manifest"));
    ask.body("text/csv", csv).await.ok(200);
    Hall { event_id }
}

fn put_prices(app: &App, hall: &Hall, amounts: &[i64]) -> Ask {
    let level = |(level, amount)| json!({ "price_level": format!("L{level}"), "amount_minor": amount });
    let levels: Vec<Value> = amounts.iter().enumerate().map(level).collect();
    app.operator.put(&format!("/v1/events/{}/prices", hall.event_id), &json!({ "price_levels": levels }))
}

async fn open(app: &App, hall: &Hall) {
    let path = format!("/v1/events/{}/on-sale", hall.event_id);
    app.operator.put(&path, &json!({ "state": "open" })).await.ok(200);
}

/// spree/spree#11801, swipestripe/silverstripe-swipestripe#102: goods in a cart were sold at the price from before a
/// change. svthalia/concrexit#787: a member was to pay more than what it had agreed to. Here neither is charged unseen.
#[tokio::test]
async fn a_changed_price_is_told_before_anything_is_charged() {
    let app = App::start().await;
    let hall = app.hall(json!({}), SEAT).await;
    let ada = app.buyer().await;
    let hold = ada.hold(&hall, SEAT).await.ok(201);
    for amount_minor in [SEAT_PRICE + 500, SEAT_PRICE - 500] {
        set_price(&app, &hall, amount_minor).await;
        ada.checkout(&hold, "pm_card_visa").await.problem(409, "price-changed");
        assert_eq!(ada.hold_now(&hold).await, hold, "what was promised is still told");
    }
    assert!(app.provider.log().await.is_empty(), "nothing was asked of the provider");
    // Released and held anew the seat has its new price, and that is charged.
    ada.release(&hold).await.ok(204);
    let hold = ada.hold(&hall, SEAT).await.ok(201);
    assert_eq!(hold["total_minor"], SEAT_PRICE - 500);
    let order_id = ada.pay(&hold).await;
    app.passes("payments", 2).await;
    ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    let paid = SEAT_PRICE - 500;
    assert_eq!(app.provider.money(&order_id).await, [paid, paid, 0, 0]);
    app.finish().await;
}

/// PrestaShop/PrestaShop#11507: a price changed while the buyer was at the bank, and the paid order became a payment
/// error. chobbledotcom/tickets#227: or was refunded. Here what the buyer agreed to when paying began is sold.
#[tokio::test]
async fn a_price_that_changes_during_the_payment_comes_too_late() {
    let app = App::start().await;
    let it = paying(&app, json!({}), "requires_action").await;
    set_price(&app, &it.hall, 9_900).await;
    app.provider.complete(&app.provider.intent_of(&it.order_id).await, "success").await;
    let order = app.work_until(&it.ada, &it.order_id, "CONFIRMED CAPTURED").await;
    assert_eq!(order["total_minor"], SEAT_PRICE);
    assert_eq!(app.provider.money(&it.order_id).await, [SEAT_PRICE, SEAT_PRICE, 0, 0]);
    assert_eq!(figures(&app, &it.hall, ["gross_minor", "captured_minor"]).await, [SEAT_PRICE; 2]);

    // After a decline nothing is under way: a second try is told of the new price.
    let it = paying(&app, json!({}), "declined").await;
    set_price(&app, &it.hall, 9_900).await;
    it.ada.checkout(&it.hold, "pm_card_visa").await.problem(409, "price-changed");
    it.ada.release(&it.hold).await.ok(204);
    it.ada.expect_order(&it.order_id, "CANCELLED DECLINED").await;
    assert_eq!(app.provider.calls("authorize", &it.order_id).await.len(), 1);
    app.finish().await;
}

/// cartalyst/stripe#59, Paymenter/Paymenter#1258: yen were charged a hundredfold. WordPress/wordcamp.org#1320: tickets in
/// Ugandan shillings at a hundredth. woocommerce/woocommerce-gateway-stripe#2720: dinars of three decimals at a tenth.
#[tokio::test]
async fn an_amount_is_charged_in_the_units_of_its_currency() {
    let app = App::start().await;
    for (currency, at_provider) in [
        ("EUR", 2_500),
        ("JPY", 2_500),
        ("KRW", 2_500),
        ("KWD", 2_500),
        ("BHD", 2_500),
        ("ISK", 250_000),
        ("UGX", 250_000),
        ("MGA", 25),
    ] {
        let hall = draft(&app, currency, 1).await;
        put_prices(&app, &hall, &[2_500]).await.ok(200);
        open(&app, &hall).await;
        let ada = app.buyer().await;
        let hold = ada.hold(&hall, &["S-0"]).await.ok(201);
        assert_eq!((&hold["total_minor"], &hold["currency"]), (&json!(2_500), &json!(currency)));
        let order_id = ada.pay(&hold).await;
        app.passes("payments", 2).await;
        let order = ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
        assert_eq!((&order["total_minor"], &order["currency"]), (&json!(2_500), &json!(currency)));
        let intent = &app.provider.intents(&order_id).await[0];
        for member in ["amount", "amount_received"] {
            assert_eq!(intent[member], at_provider, "{currency}");
        }
        assert_eq!(intent["currency"], currency.to_ascii_lowercase());
        assert_eq!(figures(&app, &hall, ["gross_minor", "captured_minor"]).await, [2_500; 2], "{currency}");
    }
    // The provider's ledger is in its own units, which aren't ours for all of these.
    app.audit().await;
    app.stop();
}

/// woocommerce/woocommerce-gateway-stripe#2674, odoo/odoo#227688: a shop took prices that its provider then refused at
/// every checkout. Decided: what can't be charged exactly can't become a price.
#[tokio::test]
async fn a_price_that_cannot_be_charged_is_refused_when_it_is_set() {
    let app = App::start().await;
    for (currency, wrong, right) in [("KWD", 12_345, 12_340), ("MGA", 2_550, 2_500), ("BHD", 1, 10)] {
        let hall = draft(&app, currency, 2).await;
        let refused = put_prices(&app, &hall, &[right, wrong]).await.problem(422, "validation-failed");
        assert_eq!(refused["errors"].as_array().map(Vec::len), Some(1), "{refused}");
        assert_eq!(text(&refused["errors"][0], "pointer"), "/price_levels/1/amount_minor", "{refused}");
        put_prices(&app, &hall, &[right, right]).await.ok(200);
    }
    // Gold, and the code for no currency: nothing can be priced in them.
    for currency in ["XAU", "XXX"] {
        let new = json!({ "name": "Priced", "currency": currency, "starts_at": "2030-05-01T19:30:00Z" });
        let refused = app.operator.post("/v1/events", &new).await.problem(422, "validation-failed");
        assert_eq!(text(&refused["errors"][0], "pointer"), "/currency", "{refused}");
    }
    app.finish().await;
}

/// ingenesis/shopp#3217, Automattic/woocommerce-payments#91, BasedHardware/omi#10158: prices such as 9.95, 8.20 and 19.99
/// were charged a cent short, having been multiplied as floats.
#[tokio::test]
async fn sums_of_awkward_prices_are_exact() {
    const PRICES: [i64; 6] = [995, 820, 1_999, 456, 829, 777];
    let app = App::start().await;
    let hall = draft(&app, "USD", PRICES.len()).await;
    put_prices(&app, &hall, &PRICES).await.ok(200);
    open(&app, &hall).await;
    let ada = app.buyer().await;
    let hold = ada.hold(&hall, &["S-0", "S-1", "S-2", "S-3", "S-4", "S-5"]).await.ok(201);
    let sum = PRICES.iter().sum::<i64>();
    assert_eq!(hold["total_minor"], sum);
    let order_id = ada.pay(&hold).await;
    app.passes("payments", 2).await;
    ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    assert_eq!(app.provider.money(&order_id).await, [sum, sum, 0, 0]);
    assert_eq!(figures(&app, &hall, ["gross_minor", "captured_minor"]).await, [sum; 2]);
    app.finish().await;
}

/// evershopcommerce/evershop#1033: the amount to be charged was taken from the buyer's own cart. bagisto/bagisto#4246,
/// Automattic/woocommerce-payments#3329: and the currency from what the buyer had switched to, without conversion.
#[tokio::test]
async fn a_buyer_names_neither_amount_nor_currency() {
    let app = App::start().await;
    let hall = app.hall(json!({}), SEAT).await;
    let ada = app.buyer().await;
    let holds = format!("/v1/events/{}/holds", hall.event_id);
    for member in ["total_minor", "amount_minor", "currency", "price_version"] {
        let wish = json!({ "seats": SEAT, member: 1 });
        let refused =
            ada.client.post(&holds, &wish).key(&fresh_key()).await.problem(422, "validation-failed");
        assert_eq!(text(&refused["errors"][0], "pointer"), format!("/{member}"), "{refused}");
    }
    let hold = ada.hold(&hall, SEAT).await.ok(201);
    let checkout = format!("/v1/holds/{}/checkout", text(&hold, "hold_id"));
    for (member, value) in [
        ("total_minor", json!(1)),
        ("amount_minor", json!(1)),
        ("currency", json!("HUF")),
        ("price_version", json!(1)),
        ("seats", json!([])),
    ] {
        let body = json!({ "payment_method_token": "pm_card_visa", member: value });
        let refused = ada.client.post(&checkout, &body).key(&fresh_key()).await;
        let refused = refused.problem(422, "validation-failed");
        assert_eq!(text(&refused["errors"][0], "pointer"), format!("/{member}"), "{refused}");
    }
    assert_eq!(ada.hold_now(&hold).await, hold);
    let order_id = ada.pay(&hold).await;
    app.passes("payments", 2).await;
    ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    let intent = &app.provider.intents(&order_id).await[0];
    assert_eq!((&intent["amount"], &intent["currency"]), (&json!(SEAT_PRICE), &json!("eur")));
    app.finish().await;
}
