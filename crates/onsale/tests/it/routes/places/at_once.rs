//! Many at once, for places: C82 and its variant at the instant of expiry, and a million places while capacity moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::util::{App, Ask, Buyer, counts, off_balance, tally, text, together};

async fn buyers(app: &App, count: usize) -> Vec<Buyer> {
    let mut buyers = Vec::new();
    for _ in 0..count {
        buyers.push(app.buyer().await);
    }
    buyers
}

/// C82: a hundred holds of one place each in an area of a hundred, each checked out twice at once. A peer made 195
/// orders of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_holds_checked_out_twice_are_a_hundred_orders() {
    let app = App::start().await;
    let hall = app.grounds(json!({}), &["A-1"], &[("Floor", 100, 4)]).await;
    let buyers = buyers(&app, 101).await;
    let mut holds = Vec::new();
    for buyer in &buyers[..100] {
        holds.push(buyer.places(&hall, "Floor", 1).await.ok(201));
    }
    buyers[100].places(&hall, "Floor", 1).await.problem(409, "not-enough-available");
    let twice = |(buyer, hold): (&Buyer, &Value)| {
        ["pm_card_visa", "pm_card_mastercard"].map(|card| buyer.checkout(hold, card))
    };
    let replies = together(buyers.iter().zip(&holds).flat_map(twice).collect()).await;
    assert_eq!(tally(&replies), counts([("202 ok", 100), ("409 payment-pending", 100)]));
    app.passes("payments", 8).await;
    let orders: Vec<&str> = replies
        .iter()
        .filter(|reply| reply.status == 202)
        .map(|reply| text(&reply.body, "order_id"))
        .collect();
    one_payment_each(&app, &orders).await;
    let report = app.report(&hall).await;
    assert_eq!((&report["orders"], &report["orders_cancelled"]), (&json!(100), &json!(0)), "{report}");
    let replies = together(buyers.iter().zip(&holds).flat_map(twice).collect()).await;
    assert_eq!(tally(&replies), counts([("409 hold-not-active", 200)]));
    app.finish().await;
}

/// The same with the clock reaching the deadline in the midst of them, and as many others after the same places: each
/// place is paid for once, or taken over, and never both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_the_instant_of_expiry_each_place_has_one_buyer() {
    let app = App::start().await;
    for turn in 0..4 {
        let policy = json!({ "hold_ttl_s": 10, "payment_grace_s": 30 });
        let hall = app.grounds(policy, &["A-1"], &[("Floor", 20, 2)]).await;
        let (early, late) = (buyers(&app, 20).await, buyers(&app, 20).await);
        let mut holds = Vec::new();
        for buyer in &early {
            holds.push(buyer.places(&hall, "Floor", 1).await.ok(201));
        }
        let deadline = app.now_ms().await + 10_000;
        app.set_clock(deadline - 1).await;
        let mut asks: Vec<Ask> = Vec::new();
        for ((buyer, hold), other) in early.iter().zip(&holds).zip(&late) {
            asks.push(buyer.checkout(hold, "pm_card_visa"));
            asks.push(buyer.checkout(hold, "pm_card_mastercard"));
            asks.push(other.places(&hall, "Floor", 1));
        }
        asks.insert(turn * 15, app.operator.post("/_test/clock", &json!({ "set": deadline })));
        let replies = together(asks).await;
        let told = tally(&replies);
        let known = [
            "200 ok",
            "201 ok",
            "202 ok",
            "409 payment-pending",
            "409 hold-expired",
            "409 not-enough-available",
        ];
        assert!(told.keys().all(|what| known.contains(&what.as_str())), "{told:?}");
        let of = |what: &str| told.get(what).copied().unwrap_or(0);
        assert!(of("202 ok") + of("201 ok") <= 20, "{told:?}");
        assert_eq!(of("202 ok") + of("409 payment-pending") + of("409 hold-expired"), 40, "{told:?}");
        app.passes("payments", 4).await;
        let orders: Vec<&str> = replies
            .iter()
            .filter(|reply| reply.status == 202)
            .map(|reply| text(&reply.body, "order_id"))
            .collect();
        one_payment_each(&app, &orders).await;
        assert_eq!(off_balance(app.data.path()), 0);
    }
    app.finish().await;
}

/// Each order was authorized once and captured once, and nothing had to be let go.
async fn one_payment_each(app: &App, orders: &[&str]) {
    let log = app.provider.log().await;
    for order_id in orders {
        let calls = |kind: &str| {
            log.iter().filter(|call| call["operation"] == kind && call["order_id"] == **order_id).count()
        };
        assert_eq!([calls("authorize"), calls("capture"), calls("void")], [1, 1, 0], "{order_id}");
        let order = app.operator.get(&format!("/v1/orders/{order_id}")).await.ok(200);
        assert_eq!((text(&order, "order_status"), text(&order, "payment_status")), ("CONFIRMED", "CAPTURED"));
    }
}

/// Buyers in a crowd, transfers both ways, holds that are given back, paid and overtaken by the clock; the sum closes in
/// each of many consistent reads beside them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_million_places_are_a_million_while_capacity_moves() {
    const STEPS: usize = 60;
    let app = Arc::new(App::start().await);
    let policy = json!({ "hold_ttl_s": 60, "seats_per_hold_max": 50, "tickets_per_account_max": 10_000 });
    let hall = app.grounds(policy, &["A-1"], &[("Field", 1_000_000, 16)]).await;
    let (done, steps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut crowd = JoinSet::new();
    for number in 0..6usize {
        let (app, hall, steps, buyer) =
            (Arc::clone(&app), hall.clone(), Arc::clone(&steps), app.buyer().await);
        crowd.spawn(async move {
            for step in 0..STEPS {
                let quantity = 1 + (number * 7 + step * 3) % 50;
                let hold = buyer.places(&hall, "Field", quantity as u32).await.ok(201);
                match (number + step) % 4 {
                    0 => drop(buyer.release(&hold).await.ok(204)),
                    1 => {
                        // Another may have moved the clock past the deadline in between.
                        let begun = buyer.checkout(&hold, "pm_card_visa").await;
                        assert!(
                            begun.status == 202 || begun.body["code"] == "hold-expired",
                            "{}",
                            begun.text
                        );
                    }
                    _ => {}
                }
                if step % 10 == 9 {
                    app.advance(10_000).await;
                    app.worker("payments").await;
                }
                steps.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    for mover in 0..2u16 {
        let (app, hall, done) = (Arc::clone(&app), hall.clone(), Arc::clone(&done));
        crowd.spawn(async move {
            let mut turn = 0u16;
            while !done.load(Ordering::Relaxed) {
                // One goes up through the buckets, the other down.
                let (a, b) = (turn % 16, (turn + 1 + mover * 14) % 16);
                let reply = app.transfer(&hall, "Field", (a, b), 1 + u32::from(turn) * 97 % 5_000).await;
                assert!(matches!(reply.status, 202 | 409), "{}", reply.text);
                if turn % 3 == mover {
                    app.worker("quota").await;
                }
                turn = turn.wrapping_add(1);
            }
        });
    }
    let mut looks = 0;
    while steps.load(Ordering::Relaxed) < 6 * STEPS {
        assert_eq!(off_balance(app.data.path()), 0, "look {looks}");
        let areas = app.areas(&hall).await;
        assert_eq!(areas["areas"][0]["capacity"], 1_000_000, "{areas}");
        if looks % 5 == 0 {
            app.audit().await;
        }
        looks += 1;
        assert!(!crowd.is_empty());
        if let Some(ended) = crowd.try_join_next() {
            ended.expect("nobody is refused what there is");
        }
    }
    done.store(true, Ordering::Relaxed);
    while let Some(ended) = crowd.join_next().await {
        ended.expect("nobody is refused what there is");
    }
    assert!(looks > 10, "only {looks} looks");
    app.worker("quota").await;
    app.advance(3_600_000).await;
    app.worker("expirer").await;
    let areas = app.areas(&hall).await;
    assert_eq!((&areas["in_flight"], off_balance(app.data.path())), (&json!([]), 0));
    let sum = |member: &str| -> i64 {
        let buckets = areas["areas"][0]["buckets"].as_array().expect("buckets");
        buckets.iter().map(|bucket| bucket[member].as_i64().expect("a count")).sum()
    };
    assert_eq!(sum("capacity"), 1_000_000);
    assert_eq!(1_000_000 - sum("held") - sum("sold"), app.available(&hall, "Field").await);
    println!("{looks} looks");
    app.audit().await;
    Arc::into_inner(app).expect("nobody else has it").stop();
}
