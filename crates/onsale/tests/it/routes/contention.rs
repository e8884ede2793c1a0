//! Many at once: for one seat, for overlapping seats, for one hold, with one key. Someone wins, all others are
//! told.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::util::{App, Ask, Buyer, Hall, Reply, SEAT_PRICE, counts, crowd, tally, text, together};

/// As many buyers as that.
async fn buyers(app: &App, count: usize) -> Vec<Buyer> {
    let mut buyers = Vec::new();
    for _ in 0..count {
        buyers.push(app.buyer().await);
    }
    buyers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_thousand_requests_for_one_seat_one_has_it() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1", "A-2"]).await;
    let wanted = hall.clone();
    let replies = crowd(buyers(&app, 64).await, 32, move |buyer, _| buyer.hold(&wanted, &["A-1"])).await;
    assert_eq!(tally(&replies), counts([("201 ok", 1), ("409 seat-unavailable", 64 * 32 - 1)]));
    for lost in replies.iter().filter(|reply| reply.status == 409) {
        assert_eq!(lost.body["seats"], json!(["A-1"]));
    }
    assert_eq!(app.seat_states(&hall).await, "10");
    let report = app.report(&hall).await;
    assert_eq!((&report["held"], &report["available"]), (&json!(1), &json!(1)));
    app.finish().await;
}

/// Three seats of a ring each, in any order: whoever is refused holds nothing, and no seat has two holders. Where goods
/// were locked in the order of the cart, such wishes ended in deadlocks: django-oscar/django-oscar#4594,
/// magento/magento2#41224.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overlapping_wishes_are_met_whole_or_not_at_all() {
    const RING: usize = 24;
    let app = App::start().await;
    let names: Vec<String> = (0..RING).map(|seat| format!("S-{seat:02}")).collect();
    let seats: Vec<&str> = names.iter().map(String::as_str).collect();
    let hall = app.hall(json!({ "tickets_per_account_max": 100 }), &seats).await;
    let (wanted, ring) = (hall.clone(), names.clone());
    let replies = crowd(buyers(&app, 48).await, 8, move |buyer, turn| {
        let mut wish = [0, 1, 2].map(|step| ring[(turn * 7 + step * (1 + turn % 5)) % RING].as_str());
        wish.rotate_left(turn % 3);
        buyer.hold(&wanted, &wish)
    })
    .await;
    let told = tally(&replies);
    assert_eq!(told.keys().collect::<Vec<_>>(), ["201 ok", "409 seat-unavailable"], "{told:?}");
    let mut taken = HashSet::new();
    for hold in replies.iter().filter(|reply| reply.status == 201).map(|reply| &reply.body) {
        let seats = hold["seats"].as_array().expect("seats");
        assert_eq!((seats.len(), &hold["total_minor"]), (3, &json!(3 * SEAT_PRICE)));
        for seat in seats {
            assert!(taken.insert(text(seat, "seat_id").to_owned()), "{seat} has two holders");
        }
    }
    let states = app.seat_states(&hall).await;
    for (name, state) in names.iter().zip(states.chars()) {
        assert_eq!(state == '1', taken.contains(name), "{name} in {states}");
    }
    app.finish().await;
}

/// C82: one hold, eight checkouts at once, each with its own key and card. Elsewhere all of them were charged
/// (dancerfly/django-brambling#658), or the database gave up on one and the buyer saw an error (medusajs/medusa#3556).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_checkouts_of_one_hold_one_begins() {
    let app = App::start().await;
    for turn in 0..4 {
        let hall = app.hall(json!({}), &["A-1"]).await;
        let ada = app.buyer().await;
        let hold = ada.hold(&hall, &["A-1"]).await.ok(201);
        let (order_id, replies) = pay_at_once(&ada, &hold, 8).await;
        assert_eq!(tally(&replies), counts([("202 ok", 1), ("409 payment-pending", 7)]), "turn {turn}");
        app.passes("payments", 2).await;
        only_one_was_paid(&app, &ada, &hall, &order_id.expect("one has begun")).await;
        let (none, replies) = pay_at_once(&ada, &hold, 8).await;
        assert_eq!((none, tally(&replies)), (None, counts([("409 hold-not-active", 8)])));
    }
    app.finish().await;
}

/// The same while workers run and callbacks come, so that some copies arrive when the seats are sold already.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_checkouts_while_payments_run_one_is_paid() {
    let app = App::options().workers().start().await;
    for _ in 0..4 {
        let hall = app.hall(json!({}), &["A-1"]).await;
        let ada = app.buyer().await;
        let hold = ada.hold(&hall, &["A-1"]).await.ok(201);
        let (order_id, mut replies) = pay_at_once(&ada, &hold, 8).await;
        let order_id = order_id.expect("one has begun");
        ada.await_order(&order_id, "CONFIRMED CAPTURED").await;
        replies.extend(pay_at_once(&ada, &hold, 8).await.1);
        let told = tally(&replies);
        assert_eq!(told.get("202 ok"), Some(&1), "{told:?}");
        let refused = ["409 payment-pending", "409 hold-not-active"].map(|what| told.get(what).unwrap_or(&0));
        assert_eq!(refused.into_iter().sum::<usize>(), 15, "{told:?}");
        only_one_was_paid(&app, &ada, &hall, &order_id).await;
    }
    app.finish().await;
}

/// C82 at the instant in which the hold ends, with another buyer after the same seat: payment or takeover, never both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_the_instant_of_expiry_one_checkout_or_one_takeover_wins() {
    let app = App::start().await;
    for turn in 0..8 {
        let hall = app.hall(json!({ "hold_ttl_s": 10, "payment_grace_s": 30 }), &["A-1"]).await;
        let (ada, ben) = (app.buyer().await, app.buyer().await);
        let hold = ada.hold(&hall, &["A-1"]).await.ok(201);
        let deadline = app.now_ms().await + 10_000;
        app.set_clock(deadline - 1).await;
        // The clock moves in the midst of them.
        let mut asks: Vec<Ask> = (0..8).map(|_| ada.checkout(&hold, "pm_card_visa")).collect();
        asks.insert(turn % 8, app.operator.post("/_test/clock", &json!({ "set": deadline })));
        asks.extend((0..4).map(|_| ben.hold(&hall, &["A-1"])));
        let replies = together(asks).await;
        let paid: Vec<&Reply> = replies.iter().filter(|reply| reply.status == 202).collect();
        let taken = replies.iter().filter(|reply| reply.status == 201).count();
        let told = tally(&replies);
        for what in told.keys() {
            let known = [
                "200 ok",
                "201 ok",
                "202 ok",
                "409 payment-pending",
                "409 hold-expired",
                "409 seat-unavailable",
            ];
            assert!(known.contains(&what.as_str()), "{told:?}");
        }
        assert!(paid.len() + taken <= 1, "{told:?}");
        app.passes("payments", 2).await;
        match paid.first() {
            Some(paid) => {
                assert_eq!(told.get("409 payment-pending"), Some(&7), "{told:?}");
                only_one_was_paid(&app, &ada, &hall, text(&paid.body, "order_id")).await;
            }
            None => assert_eq!(told.get("409 hold-expired"), Some(&8), "{told:?}"),
        }
    }
    let authorized = app.provider.log().await;
    let orders: HashSet<&str> = authorized.iter().filter_map(|call| call["order_id"].as_str()).collect();
    let sent = authorized.iter().filter(|call| call["operation"] == "authorize").count();
    assert_eq!(sent, orders.len(), "one authorization for each order");
    app.finish().await;
}

/// One key, sent 32 times at once, is one wish: one hold, one body; and one payment. A double click was two orders in
/// extcode/cart#33.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_request_at_once_is_done_once() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1", "A-2", "A-3"]).await;
    let ada = app.buyer().await;
    let replies = together((0..32).map(|_| ada.hold_as("one", &hall, &["A-2", "A-1"])).collect()).await;
    let hold = done_once(&replies, 201);
    assert_eq!(app.seat_states(&hall).await, "110");
    let replies = together((0..32).map(|_| ada.checkout_as("one", &hold, "pm_card_visa")).collect()).await;
    let begun = done_once(&replies, 202);
    app.passes("payments", 2).await;
    let order_id = text(&begun, "order_id");
    ada.expect_order(order_id, "CONFIRMED CAPTURED").await;
    assert_eq!(app.provider.outcomes("authorize", order_id).await, "ok");
    assert_eq!(app.provider.ledger().await.len(), 1);
    // A refusal, too, is decided once.
    let ben = app.buyer().await;
    let replies = together((0..32).map(|_| ben.hold_as("one", &hall, &["A-1"])).collect()).await;
    done_once(&replies, 409);
    app.finish().await;
}

/// All have the same status and body, and all but one are marked as repetitions.
fn done_once(replies: &[Reply], status: u16) -> Value {
    let first = &replies[0];
    for reply in replies {
        assert_eq!((reply.status, &reply.text), (status, &first.text));
    }
    assert_eq!(replies.iter().filter(|reply| !reply.replayed()).count(), 1);
    first.body.clone()
}

/// Checks a hold out so many times at once, each with its own key and card: the order that was begun, and all replies.
async fn pay_at_once(buyer: &Buyer, hold: &Value, copies: usize) -> (Option<String>, Vec<Reply>) {
    let asks = (0..copies).map(|copy| buyer.checkout(hold, &format!("pm_card_{copy}"))).collect();
    let replies = together(asks).await;
    let begun = replies.iter().find(|reply| reply.status == 202);
    (begun.map(|reply| text(&reply.body, "order_id").to_owned()), replies)
}

async fn only_one_was_paid(app: &App, buyer: &Buyer, hall: &Hall, order_id: &str) {
    buyer.expect_order(order_id, "CONFIRMED CAPTURED").await;
    assert_eq!(app.seat_states(hall).await, "2");
    assert_eq!(app.provider.calls("authorize", order_id).await.len(), 1);
    assert_eq!(app.provider.money(order_id).await, [SEAT_PRICE, SEAT_PRICE, 0, 0]);
    let report = app.report(hall).await;
    let orders = ["orders", "orders_awaiting_payment", "orders_cancelled", "orders_expired"];
    assert_eq!(orders.map(|member| report[member].as_i64()), [Some(1), Some(0), Some(0), Some(0)]);
    let void = app.provider.calls("void", order_id).await;
    assert!(void.is_empty(), "no second payment to be let go: {void:?}");
}
