//! The scripted timelines of the source documents, tick by tick, over HTTP and with callbacks as they are
//! signed.

use serde_json::{Value, json};

use crate::util::{App, Buyer, Hall, ProviderProcess, SEAT_PRICE, text};

const AUTHORIZED: &str = "payment_intent.amount_capturable_updated";

/// A server whose clock is told in seconds of a timeline.
struct Timeline {
    app: App,
    zero_ms: i64,
    _provider: ProviderProcess,
}

impl Timeline {
    /// One seat, A-1, held for ten seconds without grace, and the clock decides.
    async fn begin(at_s: i64) -> (Timeline, Hall) {
        let provider = ProviderProcess::start();
        let app = App::options().provider(&provider).start().await;
        let policy = json!({ "hold_ttl_s": 10, "payment_grace_s": 0, "in_doubt": "release" });
        let hall = app.hall(policy, &["A-1"]).await;
        let zero_ms = app.now_ms().await - at_s * 1_000;
        (Timeline { app, zero_ms, _provider: provider }, hall)
    }

    async fn at_ms(&self, ms: i64) {
        self.app.set_clock(self.zero_ms + ms).await;
    }

    async fn at(&self, s: i64) {
        self.at_ms(s * 1_000).await;
    }

    /// The timeline's second of a time that the server has told.
    fn second_of(&self, object: &Value, member: &str) -> f64 {
        let at: jiff::Timestamp = text(object, member).parse().expect("a time");
        (at.as_millisecond() - self.zero_ms) as f64 / 1_000.0
    }

    /// Begins to pay; the provider does its part, but its answer is lost.
    async fn pays_without_an_answer(&self, buyer: &Buyer, hold: &Value) -> String {
        self.app.provider.script("authorize", &["lost_reply"]).await;
        let order_id = buyer.pay(hold).await;
        self.app.worker("payments").await;
        buyer.expect_order(&order_id, "AWAITING_PAYMENT UNKNOWN").await;
        assert_eq!(self.app.provider.money(&order_id).await, [SEAT_PRICE, 0, 0, 0]);
        order_id
    }

    /// The end of both: one sold seat, one paid order, and the loser's money let go.
    async fn ends(self, hall: &Hall, loser: (&Buyer, &str), winner: (&Buyer, &str)) {
        let Timeline { app, .. } = &self;
        app.passes("payments", 3).await;
        loser.0.expect_order(loser.1, "EXPIRED VOIDED").await;
        winner.0.expect_order(winner.1, "CONFIRMED CAPTURED").await;
        assert_eq!(app.seat_states(hall).await, "2");
        let report = app.report(hall).await;
        let figures =
            ["sold", "orders", "orders_expired", "gross_minor", "captured_minor", "returning_minor"];
        assert_eq!(
            figures.map(|figure| report[figure].as_i64().unwrap_or(-1)),
            [1, 1, 1, SEAT_PRICE, SEAT_PRICE, 0]
        );
        assert_eq!(app.provider.money(loser.1).await, [SEAT_PRICE, 0, SEAT_PRICE, 0]);
        assert_eq!(app.provider.money(winner.1).await, [SEAT_PRICE, SEAT_PRICE, 0, 0]);
        for (_, order_id) in [loser, winner] {
            assert_eq!(app.provider.outcomes("authorize", order_id).await, "lost_reply", "asked once");
            assert_eq!(app.provider.outcomes("refund", order_id).await, "", "no refund by itself");
        }
        assert_eq!(app.open_kinds().await, "");
        self.app.finish().await;
    }
}

/// The hold runs out, another takes the seat, and then the first payment turns out to have succeeded. In
/// calcom/cal.diy#11278 both had booked.
#[tokio::test]
async fn a_late_success_never_takes_a_seat_that_has_gone_to_another() {
    let (time, hall) = Timeline::begin(100).await;
    let app = &time.app;
    let (ada, ben) = (app.buyer().await, app.buyer().await);

    time.at(100).await;
    let first = ada.hold(&hall, &["A-1"]).await.ok(201);
    assert_eq!(time.second_of(&first, "expires_at"), 110.0);
    let lost = time.pays_without_an_answer(&ada, &first).await;
    assert_eq!(time.second_of(&ada.hold_now(&first).await, "expires_at"), 110.0, "there is no grace");

    time.at_ms(109_999).await;
    ben.hold(&hall, &["A-1"]).await.problem(409, "seat-unavailable");
    time.at(110).await;
    let second = ben.hold(&hall, &["A-1"]).await.ok(201);
    assert_eq!(time.second_of(&second, "expires_at"), 120.0);
    assert_eq!(ada.hold_now(&first).await["status"], "EXPIRED");
    ada.expect_order(&lost, "EXPIRED VOID_PENDING").await;
    assert_eq!(app.open_kinds().await, "", "nobody knows of any money yet");

    time.at(111).await;
    assert_eq!(app.provider.tell(&lost, AUTHORIZED).await, "refund_pending");
    assert_eq!(app.open_kinds().await, "late_success");
    ada.expect_order(&lost, "EXPIRED VOID_PENDING").await;
    assert_eq!(ben.hold_now(&second).await["status"], "ACTIVE", "the new hold is untouched");
    ada.checkout(&first, "pm_card_visa").await.problem(409, "hold-expired");
    assert_eq!(app.provider.tell(&lost, AUTHORIZED).await, "duplicate");
    assert_eq!(app.provider.tell_anew(&lost, AUTHORIZED).await, "refund_pending");

    let won = time.pays_without_an_answer(&ben, &second).await;
    assert_eq!(app.provider.tell(&won, AUTHORIZED).await, "applied");
    ben.expect_order(&won, "CONFIRMED AUTHORIZED").await;
    assert_eq!(ben.hold_now(&second).await["status"], "CONVERTED");
    time.at(112).await;
    assert_eq!(app.provider.tell(&won, AUTHORIZED).await, "duplicate");
    assert_eq!(app.provider.tell_anew(&won, AUTHORIZED).await, "already_paid_reconcile");
    let (lost, won) = (lost.clone(), won.clone());
    time.ends(&hall, (&ada, &lost), (&ben, &won)).await;
}

/// The same with the buyers of the second document, and messages that name the wrong holder.
#[tokio::test]
async fn who_holds_at_the_payment_wins_and_messages_may_repeat_or_lie() {
    let (time, hall) = Timeline::begin(0).await;
    let app = &time.app;
    let (alice, bob) = (app.buyer().await, app.buyer().await);

    let first = alice.hold(&hall, &["A-1"]).await.ok(201);
    assert_eq!(time.second_of(&first, "expires_at"), 10.0);
    let old = time.pays_without_an_answer(&alice, &first).await;
    time.at(1).await;
    let refused = bob.hold(&hall, &["A-1"]).await.problem(409, "seat-unavailable");
    assert_eq!(refused["seats"], json!(["A-1"]));
    time.at(11).await;
    let second = bob.hold(&hall, &["A-1"]).await.ok(201);
    assert_eq!(time.second_of(&second, "expires_at"), 21.0);

    time.at(12).await;
    assert_eq!(app.provider.tell(&old, AUTHORIZED).await, "refund_pending");
    let case = &app.open_cases().await[0];
    assert_eq!((text(case, "kind"), text(case, "order_id")), ("late_success", old.as_str()));
    let new = time.pays_without_an_answer(&bob, &second).await;
    assert_eq!(app.provider.tell(&new, AUTHORIZED).await, "applied");
    bob.expect_order(&new, "CONFIRMED AUTHORIZED").await;
    assert_eq!(app.provider.tell(&new, AUTHORIZED).await, "duplicate");

    // The same payment, said to be another holder's; first under the id of the genuine message, then under a new one.
    let mut lie = app.provider.event(&new, AUTHORIZED).await;
    lie["data"]["object"]["metadata"]["order_id"] = json!(old);
    assert_eq!(app.callback(&lie).await.ok(200)["outcome"], "conflict");
    lie["id"] = json!("evt_a_lie");
    assert_eq!(app.callback(&lie).await.ok(200)["outcome"], "conflict");
    assert_eq!(app.callback(&lie).await.ok(200)["outcome"], "duplicate");
    bob.expect_order(&new, "CONFIRMED AUTHORIZED").await;
    let cases = app.open_cases().await;
    let conflicts: Vec<&Value> = cases.iter().filter(|case| case["kind"] == "callback_conflict").collect();
    assert_eq!(conflicts.len(), 1, "one question, asked twice: {cases:?}");
    assert_eq!(text(conflicts[0], "order_id"), new);
    app.resolve(conflicts[0], "dismiss", "a test's lie").await.ok(200);

    time.at(13).await;
    app.buyer().await.hold(&hall, &["A-1"]).await.problem(409, "seat-unavailable");
    let (old, new) = (old.clone(), new.clone());
    time.ends(&hall, (&alice, &old), (&bob, &new)).await;
}
