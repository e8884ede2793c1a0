//! The tie rule and the one grace: a millisecond before a deadline, on it, and after it.

use serde_json::{Value, json};

use crate::util::{App, Buyer, Hall};

const SEAT: &[&str] = &["A-1"];

/// An event of one seat that Ada holds.
struct Held {
    hall: Hall,
    ada: Buyer,
    ben: Buyer,
    hold: Value,
    /// The hold's first deadline.
    deadline_ms: i64,
}

async fn held(app: &App, ttl_s: i64, grace_s: i64, in_doubt: &str) -> Held {
    let policy = json!({ "hold_ttl_s": ttl_s, "payment_grace_s": grace_s, "in_doubt": in_doubt });
    let hall = app.hall(policy, SEAT).await;
    let (ada, ben) = (app.buyer().await, app.buyer().await);
    let hold = ada.hold(&hall, SEAT).await.ok(201);
    let deadline_ms = expires_ms(&hold);
    assert_eq!(deadline_ms, app.now_ms().await + ttl_s * 1_000);
    Held { hall, ada, ben, hold, deadline_ms }
}

fn expires_ms(hold: &Value) -> i64 {
    let at: jiff::Timestamp = crate::util::text(hold, "expires_at").parse().expect("a time");
    at.as_millisecond()
}

/// The offsets around a deadline, and whether it has been reached.
const TICKS: [(i64, bool); 3] = [(-1, false), (0, true), (1, true)];

/// Without a sweep as with one. Where expiry was a timer's work, seats stayed reserved for as long as it didn't run:
/// Attendize/Attendize#1000, woocommerce/woocommerce#22206, microsoftarchive/cqrs-journey#274.
#[tokio::test]
async fn a_hold_is_taken_over_from_its_deadline_on() {
    let app = App::start().await;
    for (offset_ms, over) in TICKS {
        for swept in [false, true] {
            let it = held(&app, 10, 120, "keep").await;
            app.set_clock(it.deadline_ms + offset_ms).await;
            if swept {
                app.worker("expirer").await;
            }
            let status = if over { "EXPIRED" } else { "ACTIVE" };
            assert_eq!(it.ada.hold_now(&it.hold).await["status"], status, "{offset_ms} {swept}");
            let wish = it.ben.hold(&it.hall, SEAT).await;
            match over {
                true => drop(wish.ok(201)),
                false => drop(wish.problem(409, "seat-unavailable")),
            }
            assert_eq!(app.seat_states(&it.hall).await, "1");
        }
    }
    app.finish().await;
}

/// What has been given to another is not touched by the expiry, the release or the checkout of the old hold. In
/// be-BOP-io-SA/be-BOP#533 the old cart, touched once more, shut out the new one.
#[tokio::test]
async fn an_old_hold_does_nothing_to_the_new_one() {
    let app = App::start().await;
    let it = held(&app, 10, 120, "keep").await;
    app.set_clock(it.deadline_ms).await;
    let new = it.ben.hold(&it.hall, SEAT).await.ok(201);
    app.worker("expirer").await;
    it.ada.release(&it.hold).await.ok(204);
    it.ada.checkout(&it.hold, "pm_card_visa").await.problem(409, "hold-expired");
    assert_eq!(it.ben.hold_now(&new).await["status"], "ACTIVE");
    assert_eq!(app.seat_states(&it.hall).await, "1");
    let order_id = it.ben.pay(&new).await;
    app.passes("payments", 2).await;
    it.ben.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    app.finish().await;
}

#[tokio::test]
async fn paying_begins_before_the_deadline_or_not_at_all() {
    let app = App::start().await;
    for (offset_ms, over) in TICKS {
        let it = held(&app, 10, 30, "keep").await;
        app.set_clock(it.deadline_ms + offset_ms).await;
        let begun = it.ada.checkout(&it.hold, "pm_card_visa").await;
        match over {
            true => drop(begun.problem(409, "hold-expired")),
            false => {
                drop(begun.ok(202));
                // The grace is counted from the deadline, not from now.
                assert_eq!(expires_ms(&it.ada.hold_now(&it.hold).await), it.deadline_ms + 30_000);
                app.set_clock(it.deadline_ms).await;
                it.ben.hold(&it.hall, SEAT).await.problem(409, "seat-unavailable");
                app.passes("payments", 2).await;
            }
        }
        assert_eq!(app.seat_states(&it.hall).await, if over { "1" } else { "2" });
    }
    app.finish().await;
}

/// An authorization that could not end in time is not begun: five seconds are enough, a millisecond less isn't.
#[tokio::test]
async fn with_too_little_time_nothing_is_begun() {
    let app = App::start().await;
    for (left_ms, begins) in [(5_001, true), (5_000, true), (4_999, false), (1, false)] {
        let it = held(&app, 10, 0, "keep").await;
        app.set_clock(it.deadline_ms - left_ms).await;
        let begun = it.ada.checkout(&it.hold, "pm_card_visa").await;
        match begins {
            true => {
                drop(begun.ok(202));
                app.passes("payments", 2).await;
                assert_eq!(app.seat_states(&it.hall).await, "2");
            }
            false => {
                drop(begun.problem(409, "too-little-time"));
                let now = it.ada.hold_now(&it.hold).await;
                assert_eq!((&now["status"], expires_ms(&now)), (&json!("ACTIVE"), it.deadline_ms));
            }
        }
    }
    app.finish().await;
}

/// A success that comes in around the end of the grace: where the clock decides it is late at the deadline itself;
/// where doubt keeps the seats, it still has them.
#[tokio::test]
async fn a_success_counts_before_the_end_of_the_grace() {
    let app = App::start().await;
    for in_doubt in ["release", "keep"] {
        for (offset_ms, over) in TICKS {
            for swept in [false, true] {
                let it = held(&app, 10, 30, in_doubt).await;
                app.provider.script("authorize", &["lost_reply"]).await;
                let order_id = it.ada.pay(&it.hold).await;
                app.worker("payments").await;
                it.ada.expect_order(&order_id, "AWAITING_PAYMENT UNKNOWN").await;
                app.set_clock(it.deadline_ms + 30_000 + offset_ms).await;
                if swept {
                    app.worker("expirer").await;
                }
                let what = format!("{in_doubt} {offset_ms} {swept}");
                let lost = over && in_doubt == "release";
                let verdict = if lost { "refund_pending" } else { "applied" };
                assert_eq!(app.provider.deliver_of(&order_id).await, verdict, "{what}");
                let end = if lost { "EXPIRED VOIDED" } else { "CONFIRMED CAPTURED" };
                assert_eq!(app.seat_states(&it.hall).await, if lost { "0" } else { "2" }, "{what}");
                app.worker("payments").await;
                it.ada.expect_order(&order_id, end).await;
                assert_eq!(app.open_kinds().await, "", "{what}");
            }
        }
    }
    app.finish().await;
}

/// The grace comes once: a decline leads back to the first deadline, and a second attempt lives within it. That whoever
/// may extend a cart when paying may do so for ever was feared in big-neon/bn-api#342.
#[tokio::test]
async fn the_grace_comes_once() {
    let app = App::start().await;
    let it = held(&app, 60, 30, "keep").await;
    app.provider.script("authorize", &["declined", "declined"]).await;
    let order_id = it.ada.pay(&it.hold).await;
    let pending = it.ada.hold_now(&it.hold).await;
    assert_eq!(
        (&pending["status"], expires_ms(&pending)),
        (&json!("PAYMENT_PENDING"), it.deadline_ms + 30_000)
    );
    app.worker("payments").await;
    it.ada.expect_order(&order_id, "AWAITING_PAYMENT DECLINED").await;
    let back = it.ada.hold_now(&it.hold).await;
    assert_eq!((&back["status"], expires_ms(&back)), (&json!("ACTIVE"), it.deadline_ms));

    app.set_clock(it.deadline_ms - 5_000).await;
    assert_eq!(it.ada.pay(&it.hold).await, order_id, "a hold has one order");
    let second = it.ada.hold_now(&it.hold).await;
    assert_eq!(
        (&second["status"], expires_ms(&second)),
        (&json!("ACTIVE"), it.deadline_ms),
        "no second grace"
    );
    it.ada.checkout(&it.hold, "pm_card_amex").await.problem(409, "payment-pending");
    it.ada.release(&it.hold).await.problem(409, "payment-pending");
    app.worker("payments").await;
    it.ada.expect_order(&order_id, "AWAITING_PAYMENT DECLINED").await;
    app.set_clock(it.deadline_ms - 4_999).await;
    it.ada.checkout(&it.hold, "pm_card_visa").await.problem(409, "too-little-time");

    // A second attempt whose answer comes too late: the first deadline has ended it.
    let it = held(&app, 60, 30, "keep").await;
    app.provider.script("authorize", &["declined", "lost_reply"]).await;
    let order_id = it.ada.pay(&it.hold).await;
    app.worker("payments").await;
    it.ada.pay(&it.hold).await;
    app.worker("payments").await;
    it.ada.expect_order(&order_id, "AWAITING_PAYMENT UNKNOWN").await;
    app.set_clock(it.deadline_ms - 1).await;
    it.ben.hold(&it.hall, SEAT).await.problem(409, "seat-unavailable");
    app.set_clock(it.deadline_ms).await;
    it.ben.hold(&it.hall, SEAT).await.ok(201);
    assert_eq!(app.provider.deliver_of(&order_id).await, "refund_pending");
    app.worker("payments").await;
    it.ada.expect_order(&order_id, "EXPIRED VOIDED").await;
    app.finish().await;
}

/// `in_doubt = keep`: from the end of the grace on nothing new is done, and the seats stay bound until there is proof. In
/// woocommerce/woocommerce#20928 paid orders were cancelled as unpaid, because nobody had asked the provider
/// (woocommerce/woocommerce-gateway-stripe#5759).
#[tokio::test]
async fn a_doubt_keeps_the_seats_until_there_is_proof() {
    let app = App::start().await;
    for (scripted, completed, end, seat) in [
        ("lost_reply", None, "CONFIRMED CAPTURED", "2"),
        ("lost_request", None, "EXPIRED VOIDED", "0"),
        ("requires_action", None, "EXPIRED VOIDED", "0"),
        ("processing", Some("success"), "CONFIRMED CAPTURED", "2"),
        ("processing", Some("failure"), "EXPIRED DECLINED", "0"),
    ] {
        let what = format!("{scripted} {completed:?}");
        let it = held(&app, 10, 30, "keep").await;
        app.provider.script("authorize", &[scripted]).await;
        let order_id = it.ada.pay(&it.hold).await;
        app.worker("payments").await;
        app.set_clock(it.deadline_ms + 30_000).await;
        it.ben.hold(&it.hall, SEAT).await.problem(409, "seat-unavailable");
        app.passes("expirer", 2).await;
        assert_eq!(app.open_kinds().await, "in_doubt", "{what}");
        assert_eq!(it.ada.hold_now(&it.hold).await["status"], "PAYMENT_PENDING", "{what}");
        it.ada.checkout(&it.hold, "pm_card_visa").await.problem(409, "payment-pending");
        it.ada.release(&it.hold).await.problem(409, "payment-pending");
        let withheld = json!({ "seats": SEAT, "status": "NOT_FOR_SALE" });
        let path = format!("/v1/events/{}/seats/status", it.hall.event_id);
        app.operator.put(&path, &withheld).await.problem(409, "seat-unavailable");
        app.advance(60_000).await;
        it.ben.hold(&it.hall, SEAT).await.problem(409, "seat-unavailable");
        if let Some(result) = completed {
            app.provider.complete(&app.provider.intent_of(&order_id).await, result).await;
        }
        app.work_until(&it.ada, &order_id, end).await;
        assert_eq!(app.seat_states(&it.hall).await, seat, "{what}");
        assert_eq!(app.open_kinds().await, "", "{what}: the proof has closed it");
        assert_eq!(
            app.provider.outcomes("authorize", &order_id).await,
            scripted,
            "asked once, whatever came of it"
        );
    }
    app.finish().await;
}

/// seats in their grace, and in doubt after it, count for the account; and there are only so many at once.
#[tokio::test]
async fn what_is_being_paid_counts_and_is_bounded() {
    let app = App::start().await;
    let policy = json!({
        "hold_ttl_s": 10, "payment_grace_s": 10, "tickets_per_account_max": 2, "payment_pending_max": 2,
        "payment_pending_per_account_max": 1,
    });
    let hall = app.hall(policy, &["A-1", "A-2", "A-3", "A-4", "A-5"]).await;
    let (ada, ben, cleo) = (app.buyer().await, app.buyer().await, app.buyer().await);
    let first = ada.hold(&hall, &["A-1"]).await.ok(201);
    let second = ada.hold(&hall, &["A-2"]).await.ok(201);
    app.provider.script("authorize", &["processing", "processing"]).await;
    let order_id = ada.pay(&first).await;
    ada.checkout(&second, "pm_card_visa").await.problem(409, "payment-pending");
    let bens = ben.hold(&hall, &["A-3"]).await.ok(201);
    let bens_order = ben.pay(&bens).await;
    let cleos = cleo.hold(&hall, &["A-4"]).await.ok(201);
    cleo.checkout(&cleos, "pm_card_visa").await.problem(503, "overloaded");
    assert_eq!(cleo.hold_now(&cleos).await["status"], "ACTIVE");
    app.worker("payments").await;

    // Ten seconds on, the plain hold is over; in the grace and after it, the other counts.
    for (advance_ms, in_use) in [(10_000, 1), (10_000, 1), (3_600_000, 1)] {
        app.advance(advance_ms).await;
        app.worker("expirer").await;
        let refused = ada.hold(&hall, &["A-4", "A-5"]).await.problem(409, "account-limit");
        assert_eq!((&refused["in_use"], &refused["limit"]), (&json!(in_use), &json!(2)));
    }
    for (buyer, order_id) in [(&ada, &order_id), (&ben, &bens_order)] {
        app.provider.complete(&app.provider.intent_of(order_id).await, "failure").await;
        assert_eq!(app.provider.deliver_of(order_id).await, "applied");
        buyer.expect_order(order_id, "EXPIRED DECLINED").await;
    }
    ada.hold(&hall, &["A-4", "A-5"]).await.ok(201);
    let cleos = cleo.hold(&hall, &["A-1"]).await.ok(201);
    cleo.pay(&cleos).await;
    app.passes("payments", 2).await;
    assert_eq!(app.seat_states(&hall).await, "20011");
    app.finish().await;
}
