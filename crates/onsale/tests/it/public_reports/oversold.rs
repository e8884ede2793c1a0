//! One seat, sold or promised to two.

use serde_json::json;

use super::{CAPTURED, SEAT, VOIDED, figures, paying, short};
use crate::util::{App, Buyer, SEAT_PRICE, counts, tally, text, together};

/// Attendize/Attendize#473, eventespresso/event-espresso-core#109, saleor/saleor#543: the last tickets went to everyone
/// who asked for them at the same time. fossasia/eventyay#1359: because the lock was left out while a cart had time to
/// live. odoo/odoo#173809, openfoodfoundation/openfoodnetwork#3925: and each of them was charged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_two_seats_go_to_one_who_alone_can_pay() {
    let app = App::options().workers().start().await;
    let hall = app.hall(json!({}), &["A-1", "A-2"]).await;
    let mut crowd = Vec::new();
    for _ in 0..8 {
        crowd.push(app.buyer().await);
    }
    let replies = together(crowd.iter().map(|buyer| buyer.hold(&hall, &["A-1", "A-2"])).collect()).await;
    assert_eq!(tally(&replies), counts([("201 ok", 1), ("409 seat-unavailable", 7)]));
    let hold = &replies.iter().find(|reply| reply.status == 201).expect("a hold").body;
    let (won, lost): (Vec<Buyer>, Vec<Buyer>) =
        crowd.into_iter().partition(|buyer| hold["account_id"] == buyer.account_id.as_str());
    // All of them press the button; for all but one there is nothing to pay for.
    let presses = won.iter().chain(&lost).map(|buyer| buyer.checkout(hold, "pm_card_visa")).collect();
    let replies = together(presses).await;
    assert_eq!(tally(&replies), counts([("202 ok", 1), ("404 not-found", 7)]));
    let begun = &replies.iter().find(|reply| reply.status == 202).expect("an order").body;
    let order_id = text(begun, "order_id");
    won[0].await_order(order_id, "CONFIRMED CAPTURED").await;
    let sold = figures(&app, &hall, ["sold", "available", "held", "orders", "captured_minor"]).await;
    assert_eq!(sold, [2, 0, 0, 1, 2 * SEAT_PRICE]);
    assert_eq!(app.provider.ledger().await.len(), 1, "nobody else was charged");
    app.finish().await;
}

/// LibreBooking/librebooking#147: of two who reserved at the same instant both saw a confirmation, and only the later
/// one was kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_each_of_two_was_told_stays_true() {
    let app = App::start().await;
    let hall = app.hall(json!({}), &["A-1", "A-2", "A-3", "A-4", "A-5", "A-6"]).await;
    let buyers = [app.buyer().await, app.buyer().await];
    for seat in ["A-1", "A-2", "A-3", "A-4", "A-5", "A-6"] {
        let [ada, ben] = &buyers;
        let (ada_told, ben_told) = tokio::join!(
            ada.hold_as(seat, &hall, &[seat]).into_future(),
            ben.hold_as(seat, &hall, &[seat]).into_future()
        );
        let told = [ada_told, ben_told];
        assert_eq!(tally(&told), counts([("201 ok", 1), ("409 seat-unavailable", 1)]), "{seat}");
        for (buyer, told) in buyers.iter().zip(&told) {
            let again = buyer.hold_as(seat, &hall, &[seat]).await;
            assert!(again.replayed());
            assert_eq!((again.status, &again.text), (told.status, &told.text), "{seat}");
            if told.status == 201 {
                assert_eq!(buyer.hold_now(&told.body).await, told.body, "{seat}");
            }
        }
    }
    assert_eq!(app.seat_states(&hall).await, "111111");
    app.finish().await;
}

/// BroadleafCommerce/BroadleafCommerce#909: a checkout that was refused because another one was under way took away that
/// one's lock, and so a third went through.
#[tokio::test]
async fn a_refused_checkout_frees_nothing() {
    let app = App::start().await;
    let it = paying(&app, json!({}), "processing").await;
    it.ada.expect_order(&it.order_id, "AWAITING_PAYMENT PENDING").await;
    let ben = app.buyer().await;
    for _ in 0..3 {
        it.ada.checkout(&it.hold, "pm_card_mastercard").await.problem(409, "payment-pending");
        it.ada.checkout(&it.hold, "").await.problem(422, "validation-failed");
        it.ada.release(&it.hold).await.problem(409, "payment-pending");
        ben.checkout(&it.hold, "pm_card_visa").await.problem(404, "not-found");
        ben.hold(&it.hall, SEAT).await.problem(409, "seat-unavailable");
    }
    app.provider.complete(&app.provider.intent_of(&it.order_id).await, "success").await;
    app.work_until(&it.ada, &it.order_id, "CONFIRMED CAPTURED").await;
    assert_eq!(app.provider.outcomes("authorize", &it.order_id).await, "processing", "one attempt");
    assert_eq!(app.provider.money(&it.order_id).await, CAPTURED);
    app.finish().await;
}

/// calcom/cal.diy#10789, calcom/cal.diy#29958: who decides by hand could confirm two requests for the same slot. Here an
/// operator frees a seat whose payment is in doubt, it is sold again, and then the first payment turns out to be there.
#[tokio::test]
async fn an_operator_cannot_give_a_seat_to_two() {
    let app = App::start().await;
    let it = paying(&app, short("keep"), "lost_reply").await;
    app.advance(20_000).await;
    app.worker("expirer").await;
    app.resolve(&app.open_case("in_doubt").await, "release", "the buyer gave up").await.ok(200);
    let ben = app.buyer().await;
    let hold = ben.hold(&it.hall, SEAT).await.ok(201);
    assert_eq!(app.provider.deliver_of(&it.order_id).await, "refund_pending");
    let late = app.open_case("late_success").await;
    assert_eq!(text(&late, "order_id"), it.order_id);
    app.resolve(&late, "confirm_if_bound", "paid is paid").await.problem(409, "action-not-possible");
    let order_id = ben.pay(&hold).await;
    app.passes("payments", 2).await;
    ben.expect_order(&order_id, "CONFIRMED CAPTURED").await;
    it.ada.expect_order(&it.order_id, "CANCELLED VOIDED").await;
    app.resolve(&late, "confirm_if_bound", "paid is paid").await.problem(409, "case-closed");
    assert_eq!(app.provider.money(&it.order_id).await, VOIDED);
    assert_eq!(figures(&app, &it.hall, ["sold", "orders", "orders_cancelled"]).await, [1, 1, 1]);
    app.finish().await;
}

/// woocommerce/woocommerce#22489, magento/magento2#9969: a cancelled order went back into stock twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn given_back_many_times_a_seat_is_free_once() {
    let app = App::start().await;
    for turn in 0..4 {
        let hall = app.hall(json!({}), &["A-1", "A-2"]).await;
        let (ada, ben) = (app.buyer().await, app.buyer().await);
        let hold = ada.hold(&hall, SEAT).await.ok(201);
        let mut asks: Vec<_> = (0..6).map(|_| ada.release(&hold)).collect();
        (0..4).for_each(|at| asks.insert(at * 2, ben.hold(&hall, SEAT)));
        let replies = together(asks).await;
        let told = tally(&replies);
        let taken = told.get("201 ok").copied().unwrap_or(0);
        assert!(taken <= 1, "turn {turn}: {told:?}");
        assert_eq!(told.get("204 ok"), Some(&6), "turn {turn}: {told:?}");
        assert_eq!(
            told.get("409 seat-unavailable").copied().unwrap_or(0),
            4 - taken,
            "turn {turn}: {told:?}"
        );
        if taken == 0 {
            ben.hold(&hall, SEAT).await.ok(201);
        }
        ada.release(&hold).await.ok(204);
        assert_eq!(app.seat_states(&hall).await, "10");
        assert_eq!(figures(&app, &hall, ["available", "held"]).await, [1, 1]);
    }
    app.finish().await;
}
