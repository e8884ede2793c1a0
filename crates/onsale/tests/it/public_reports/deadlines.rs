//! Deadlines that move, come at the wrong hour, or never end anything.

use serde_json::json;

use super::{SEAT, set_price};
use crate::util::{App, text};

/// pretix/pretix#1575: a click that changed nothing set the countdown back, so that a ticket could be kept for ever.
#[tokio::test]
async fn nothing_but_the_first_payment_moves_a_deadline() {
    let app = App::start().await;
    let policy = json!({ "hold_ttl_s": 60, "payment_grace_s": 30, "tickets_per_account_max": 2 });
    let hall = app.hall(policy, &["A-1", "A-2", "A-3", "A-4"]).await;
    let (ada, ben) = (app.buyer().await, app.buyer().await);
    let hold = ada.hold_as("one", &hall, SEAT).await.ok(201);
    for _ in 0..5 {
        app.advance(9_000).await;
        let again = ada.hold_as("one", &hall, SEAT).await;
        assert!(again.replayed());
        assert_eq!(again.ok(201), hold);
        ada.hold(&hall, SEAT).await.problem(409, "seat-unavailable");
        ada.hold(&hall, &["A-2", "A-3"]).await.problem(409, "account-limit");
        ada.hold(&hall, &["A-1", "Z-9"]).await.problem(422, "validation-failed");
        let other = ada.hold(&hall, &["A-2"]).await.ok(201);
        ada.release(&other).await.ok(204);
        ada.checkout(&hold, "").await.problem(422, "validation-failed");
        ben.checkout(&hold, "pm_card_visa").await.problem(404, "not-found");
        set_price(&app, &hall, 3_000).await;
        ada.checkout(&hold, "pm_card_visa").await.problem(409, "price-changed");
        assert_eq!(ada.hold_now(&hold).await, hold);
    }
    app.advance(15_000).await;
    assert_eq!(ada.hold_now(&hold).await["status"], "EXPIRED");
    ben.hold(&hall, SEAT).await.ok(201);
    app.finish().await;
}

/// big-neon/bn-api#356: who had let a cart expire could not check out a new one: it was told that its cart had expired.
#[tokio::test]
async fn an_expired_hold_does_not_stand_in_its_buyers_way() {
    let app = App::start().await;
    let policy = json!({ "hold_ttl_s": 60, "tickets_per_account_max": 2 });
    let hall = app.hall(policy, &["A-1", "A-2", "A-3", "A-4"]).await;
    for wanted in [["A-1", "A-2"], ["A-3", "A-4"]] {
        let ada = app.buyer().await;
        let old = ada.hold(&hall, &["A-1", "A-2"]).await.ok(201);
        ada.hold(&hall, &["A-3"]).await.problem(409, "account-limit");
        app.advance(60_000).await;
        // Nothing has swept: the old hold is over by the time in it.
        let new = ada.hold(&hall, &wanted).await.ok(201);
        assert_eq!(ada.hold_now(&old).await["status"], "EXPIRED");
        ada.checkout(&old, "pm_card_visa").await.problem(409, "hold-expired");
        assert_eq!(ada.hold_now(&new).await["status"], "ACTIVE");
        if wanted == ["A-3", "A-4"] {
            let order_id = ada.pay(&new).await;
            app.passes("payments", 2).await;
            ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
        }
        ada.release(&new).await;
    }
    // The map is a hint, and may be behind until something has swept.
    app.worker("expirer").await;
    assert_eq!(app.seat_states(&hall).await, "0022");
    app.finish().await;
}

/// fossasia/open-event-server#2805, the-events-calendar/event-tickets#746: sales began and ended by the clock of a PC or
/// of the server. CoderDojo/community-platform#1222: the change to summer time moved a start by an hour. Here the night in
/// which half past two comes twice.
#[tokio::test]
async fn a_sale_begins_at_an_instant_and_not_at_a_reading_of_a_clock() {
    let app = App::start().await;
    let naive = json!({
        "name": "By the wall clock", "currency": "EUR", "starts_at": "2030-05-01T19:30:00Z",
        "timezone": "Europe/Berlin", "on_sale_at": "2027-10-31T02:30:00",
    });
    let refused = app.operator.post("/v1/events", &naive).await.problem(422, "validation-failed");
    assert_eq!(text(&refused["errors"][0], "pointer"), "/on_sale_at", "{refused}");
    let new = json!({
        "name": "The long night", "currency": "EUR", "starts_at": "2030-05-01T19:30:00+02:00",
        "timezone": "Europe/Berlin",
        "on_sale_at": "2027-10-31T02:30:00+01:00", "off_sale_at": "2027-10-31T03:00:00+01:00",
    });
    let hall = app.opened(&new, &["A-1", "A-2", "A-3"]).await;
    let event = app.buyers.get(&format!("/v1/events/{}", hall.event_id)).await.ok(200);
    for (member, utc) in [
        ("on_sale_at", "2027-10-31T01:30:00.000Z"),
        ("off_sale_at", "2027-10-31T02:00:00.000Z"),
        ("starts_at", "2030-05-01T17:30:00.000Z"),
    ] {
        assert_eq!(text(&event, member), utc, "{event}");
    }
    for (at, seat, sells) in [
        // The first half past two, by summer time, and an hour later the second.
        ("2027-10-31T02:30:00+02:00", "A-1", false),
        ("2027-10-31T02:29:59.999+01:00", "A-1", false),
        ("2027-10-31T02:30:00+01:00", "A-1", true),
        ("2027-10-31T02:59:59.999+01:00", "A-2", true),
        ("2027-10-31T03:00:00+01:00", "A-3", false),
    ] {
        app.operator.post("/_test/clock", &json!({ "set": at })).await.ok(200);
        let reply = app.buyer().await.hold(&hall, &[seat]).await;
        match sells {
            true => drop(reply.ok(201)),
            false => drop(reply.problem(409, "event-not-on-sale")),
        }
    }
    app.finish().await;
}

/// pretix/pretix#5715: whether a cart filled before the end of a sale may be paid after it was decided in one place so and
/// in another otherwise. Decided: a hold placed in time may be paid, with any number of cards, as long as it lives; what
/// is given back is not sold again.
#[tokio::test]
async fn who_held_in_time_may_pay_after_the_end_of_the_sale() {
    let app = App::start().await;
    let ends_ms = app.now_ms().await + 10_000;
    let ends = jiff::Timestamp::from_millisecond(ends_ms).expect("an instant").to_string();
    let new = json!({
        "name": "Ends soon", "currency": "EUR", "starts_at": "2030-05-01T19:30:00Z", "off_sale_at": ends,
    });
    let hall = app.opened(&new, &["A-1", "A-2"]).await;
    let (ada, ben) = (app.buyer().await, app.buyer().await);
    app.set_clock(ends_ms - 1).await;
    let hold = ada.hold(&hall, &["A-1"]).await.ok(201);
    let unwanted = ben.hold(&hall, &["A-2"]).await.ok(201);
    app.set_clock(ends_ms).await;
    ben.release(&unwanted).await.ok(204);
    ben.hold(&hall, &["A-2"]).await.problem(409, "event-not-on-sale");
    app.provider.script("authorize", &["declined"]).await;
    let order_id = ada.pay(&hold).await;
    app.worker("payments").await;
    ada.expect_order(&order_id, "AWAITING_PAYMENT DECLINED").await;
    app.advance(60_000).await;
    assert_eq!(ada.pay(&hold).await, order_id);
    app.passes("payments", 2).await;
    ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    assert_eq!(app.seat_states(&hall).await, "20");
    app.finish().await;
}
