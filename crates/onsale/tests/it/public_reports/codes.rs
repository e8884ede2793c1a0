//! Access codes: good for more than they say, used up by what came to nothing, or opening what is not theirs.

use serde_json::{Value, json};

use crate::util::{App, Hall, counts, tally, together};

async fn with_code(app: &App, tickets_max: u32) -> Hall {
    let hall = app.grounds(json!({ "hold_ttl_s": 60 }), &["A-1"], &[("Floor", 100, 4)]).await;
    app.code(&hall, &json!({ "code": "FANS-2030", "presale": true, "tickets_max": tickets_max })).await;
    hall
}

fn wish(quantity: u32) -> Value {
    json!({ "ga": [{ "ga_area": "Floor", "quantity": quantity }], "access_code": "FANS-2030" })
}

/// fossasia/eventyay#1398, saleor/saleor#544, shopware/shopware#11245, django-oscar/django-oscar#4612,
/// PrestaShop/PrestaShop#29493: a code was looked at before the lock, so that all who came at once had it.
/// beyondcode/laravel-vouchers#30: each other user could use it once more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_code_for_three_lets_three_in() {
    let app = App::start().await;
    for _ in 0..4 {
        let hall = with_code(&app, 3).await;
        let mut asks = Vec::new();
        for _ in 0..16 {
            asks.push(app.buyer().await.wish(&hall, &wish(1)));
        }
        assert_eq!(tally(&together(asks).await), counts([("201 ok", 3), ("409 access-code-exhausted", 13)]));
        assert_eq!(app.code_in_use(&hall, "FANS-2030").await, 3);
        app.buyer().await.wish(&hall, &wish(1)).await.problem(409, "access-code-exhausted");
    }
    app.finish().await;
}

/// big-neon/bn-api#1679: counted by orders, a code let whole crowds in with each.
#[tokio::test]
async fn a_code_counts_tickets_and_not_orders() {
    let app = App::start().await;
    let hall = with_code(&app, 5).await;
    let ada = app.buyer().await;
    ada.wish(&hall, &wish(4)).await.ok(201);
    let problem = app.buyer().await.wish(&hall, &wish(2)).await.problem(409, "access-code-exhausted");
    assert_eq!((&problem["limit"], &problem["in_use"]), (&json!(5), &json!(4)));
    app.buyer().await.wish(&hall, &wish(1)).await.ok(201);
    app.finish().await;
}

/// saleor/saleor#15855: two checkouts of one cart, each counting its code: the loser's refund took back the winner's money.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_code_is_counted_with_the_hold_and_not_with_the_payment() {
    let app = App::start().await;
    let hall = with_code(&app, 1).await;
    let ada = app.buyer().await;
    let hold = ada.wish(&hall, &wish(1)).await.ok(201);
    let replies = together((0..8).map(|_| ada.checkout(&hold, "pm_card_visa")).collect()).await;
    assert_eq!(tally(&replies), counts([("202 ok", 1), ("409 payment-pending", 7)]));
    app.passes("payments", 3).await;
    let begun = replies.iter().find(|reply| reply.status == 202).expect("one begins");
    let order_id = crate::util::text(&begun.body, "order_id");
    ada.expect_order(order_id, "CONFIRMED CAPTURED").await;
    assert_eq!(app.provider.outcomes("refund", order_id).await, "");
    assert_eq!(app.code_in_use(&hall, "FANS-2030").await, 1);
    app.finish().await;
}

/// woocommerce/woocommerce#27673, awesomemotive/easy-digital-downloads#3859, Adyen/adyen-magento2#113,
/// magento/magento2#19545, paynl/magento2-plugin#176, Sylius/Sylius#10125: a payment that failed, or an order that was
/// cancelled, used its code up.
#[tokio::test]
async fn what_came_to_nothing_uses_no_code_up() {
    let app = App::start().await;
    let hall = with_code(&app, 1).await;
    let (ada, ben) = (app.buyer().await, app.buyer().await);
    let hold = ada.wish(&hall, &wish(1)).await.ok(201);
    app.provider.script("authorize", &["declined", "requires_action"]).await;
    let order_id = ada.pay(&hold).await;
    app.worker("payments").await;
    ada.expect_order(&order_id, "AWAITING_PAYMENT DECLINED").await;
    // Her own hold is no obstacle to her second card, and nobody else's chance yet.
    ben.wish(&hall, &wish(1)).await.problem(409, "access-code-exhausted");
    ada.pay(&hold).await;
    app.worker("payments").await;
    ada.expect_order(&order_id, "AWAITING_PAYMENT REQUIRES_ACTION").await;
    app.provider.complete(&app.provider.intent_of(&order_id).await, "failure").await;
    app.work_until(&ada, &order_id, "AWAITING_PAYMENT DECLINED").await;
    ada.release(&hold).await.ok(204);
    assert_eq!(app.code_in_use(&hall, "FANS-2030").await, 0);
    let hold = ben.wish(&hall, &wish(1)).await.ok(201);
    let order_id = ben.pay(&hold).await;
    app.passes("payments", 2).await;
    ben.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    app.finish().await;
}

/// fossasia/open-event-server#2961: any code showed all that was hidden. big-neon/bn-api#1029: what was kept for the
/// holders of a code was shown to everyone.
#[tokio::test]
async fn a_code_opens_its_own_door_alone() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1", "A-2", "A-3"]).await;
    app.set_aside(&hall, "Press", &["A-1"]).await;
    app.set_aside(&hall, "Staff", &["A-2"]).await;
    for (code, allocation) in [("PRESS-1", "Press"), ("STAFF-1", "Staff")] {
        app.code(&hall, &json!({ "code": code, "allocation": allocation, "tickets_max": 9 })).await;
    }
    assert_eq!(app.seat_states(&hall).await, "330");
    let ada = app.buyer().await;
    let with = |seat: &str, code: &str| ada.wish(&hall, &json!({ "seats": [seat], "access_code": code }));
    with("A-2", "PRESS-1").await.problem(409, "seat-unavailable");
    with("A-1", "STAFF-1").await.problem(409, "seat-unavailable");
    ada.hold(&hall, &["A-1"]).await.problem(409, "seat-unavailable");
    with("A-1", "PRESS-1").await.ok(201);
    assert_eq!(app.seat_states(&hall).await, "130");
    app.finish().await;
}
