//! A sale with something of everything in it, and a picture of it: what a move must leave as it is.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use onsale_core::command::{Answer, Command, Outcome};
use onsale_core::event::{EventStatus, Policy};
use onsale_core::gateway::IntentState;
use onsale_core::id::{EndpointId, EventNo, HoldId, OperationId, OrderId};
use onsale_core::log::LogKind;
use onsale_core::manifest::{GaArea, Manifest};
use onsale_core::payment::OperationKind;
use onsale_core::reconcile::{Callback, Verdict};
use onsale_core::time::Timestamp;
use onsale_store::{Attempt, Next, Store};

use super::{
    HALL, PRICES, World, account, ada, ben, checkout, done, draft, endpoint, feed, manifest, ordinals,
    place_hold, policy,
};

/// Ids that tests go on with.
#[allow(dead_code, reason = "not every test goes on with each")]
pub(crate) struct Things {
    /// Of ada, who has paid for seats 0 and 1.
    pub(crate) sold: OrderId,
    /// Of ben, who holds seats 2 and 3.
    pub(crate) held: HoldId,
    /// Of cyd, who is paying for seat 4 under the provider's name `pi_cyd`.
    pub(crate) pending: OrderId,
    pub(crate) attempt: OperationId,
}

/// The key under which cyd has placed her hold.
pub(crate) const KEY: (u128, u128) = (11, 1);

/// Twelve seats with names, numbers and places that are hard to copy.
fn ornate() -> Manifest {
    let mut manifest = manifest(12);
    manifest.price_levels[0].name = "tab\tand \\N and \"quotes\"".to_owned();
    manifest.price_levels[0].color = Some("#00ff00".to_owned());
    manifest.sections = vec!["line\nand\r\nline".to_owned()];
    let odd = [0.1, -0.0, 1e-7, 123_456.789_012_345, f64::MAX, f64::MIN_POSITIVE, 1.0 / 3.0, -1e22];
    for (seat, x) in manifest.seats.iter_mut().zip(odd) {
        (seat.x, seat.y) = (x, -x);
    }
    manifest.seats[1].row = "Ränge \u{1f3ab} \u{b}\u{c}\u{8}\u{1}".to_owned();
    manifest.seats[2].companion_of = Some("S-3".to_owned());
    (manifest.seats[2].accessible, manifest.seats[3].restricted_view) = (true, true);
    manifest.ga_areas =
        vec![GaArea { ga_area: "lawn".to_owned(), capacity: 4_000, price_level: 1, buckets: 2 }];
    manifest
}

impl World {
    /// An event with holds, orders, operations, cases and callbacks in every state that they stay in.
    pub(crate) fn sell_everything(&self) -> Things {
        let policy = Policy { hold_ttl_ms: 600_000, ..policy() };
        let mut event = draft(HALL, policy.clone());
        event.name = "It's \\. a \"night\"; DROP TABLE\tevents --".to_owned();
        for command in [
            Command::CreateEvent(Box::new(event)),
            Command::ReplaceManifest { event: HALL, manifest: Arc::new(ornate()) },
            Command::SetPrices { event: HALL, manifest_version: 1, levels: vec![(0, 1)] },
            Command::SetPrices { event: HALL, manifest_version: 1, levels: (0..).zip(PRICES).collect() },
            Command::SetOnSale { event: HALL, status: EventStatus::Open, actor: "test".to_owned() },
        ] {
            let outcome = self.submit(command);
            assert!(!matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
        }
        // Dan's payment came when his hold was over: it goes back, and a case says so.
        let dan = account("dan");
        let (late_order, late) = self.checkout(self.hold(&dan, &[5]), &dan);
        self.pass_ms(policy.hold_ttl_ms + policy.payment_grace_ms);
        self.submit(Command::ExpireHold { hold: self.order(late_order).order.hold });
        self.observe(late, self.observed(late_order, late, "pi_late", IntentState::Authorized));

        let (sold, paid_by) = self.sell(&ada(), &[0, 1], "pi_sold");
        let capture = self.live(sold, OperationKind::Capture).expect("it is sold").id;
        self.observe(capture, self.observed(sold, paid_by, "pi_sold", IntentState::Captured));
        let released = self.hold(&ben(), &[6]);
        self.submit(Command::ReleaseHold { hold: released, account: Some(ben()) });
        let eve = account("eve");
        let (_, declined) = self.checkout_as(self.hold(&eve, &[7]), &eve, "pi_eve");
        self.answer(declined, Answer::Refused("card_declined".to_owned()));
        let held = self.hold(&ben(), &[2, 3]);
        let cyd = account("cyd");
        let placed = self.submit_keyed(KEY.0, KEY.1, place_hold(&cyd, &[4]));
        let Outcome::HoldPlaced(placed) = placed.outcome else { panic!("seat 4 is free") };
        let (pending, attempt) = {
            let Outcome::CheckoutBegun(order) =
                self.submit_keyed(12, 1, checkout(placed.hold.id, &cyd)).outcome
            else {
                panic!("cyd pays")
            };
            (order, self.live(order, OperationKind::Authorize).expect("it is open").id)
        };
        self.submit(Command::RecordReference { operation: attempt, reference: "pi_cyd".to_owned() });
        self.submit(Command::SetSeatsStatus {
            event: HALL,
            manifest_version: 1,
            seats: ordinals(&[9]),
            not_for_sale: true,
            actor: "key_1".to_owned(),
        });
        self.judge(HALL, message("evt_parked", "pi_stray", Some(pending)));
        self.judge(HALL, message("evt_conflict", "pi_sold", Some(pending)));
        self.judge(EventNo::HOUSE, message("evt_house", "pi_nobody", None));
        self.tell_others();
        Things { sold, held, pending, attempt }
    }

    /// One endpoint has had some of what happened, was told in vain of some, and has yet to be told of the rest.
    fn tell_others(&self) {
        let endpoint = self.add_endpoint(1);
        assert!(feed(&self.store, &endpoint) > 4);
        let ends = [Next::Delivered, Next::Again(self.now().plus_ms(5_000)), Next::Failed];
        let attempts = self.due(&endpoint).into_iter().zip(ends).map(|(due, next)| Attempt {
            key: due.key,
            tries: due.tries,
            answer: 500,
            error: "tab\tand \\N".to_owned(),
            next,
        });
        done(self.store.record_webhook_attempts(attempts.collect(), self.now())).expect("it is recorded");
    }

    pub(crate) fn judge(&self, event: EventNo, callback: Callback) -> Verdict {
        let callback = Box::new(callback);
        match self.submit(Command::JudgeCallback { event, callback, observation: None, relevant: true }) {
            Outcome::Judged(verdict) => verdict,
            other => panic!("{other:?}"),
        }
    }
}

/// A message about `reference`, as the provider's adapter hands it over.
pub(crate) fn message(id: &str, reference: &str, claimed_order: Option<OrderId>) -> Callback {
    Callback {
        provider_event_id: id.to_owned(),
        event: EventNo::HOUSE,
        digest: 1,
        kind: "payment_intent.succeeded".to_owned(),
        reference: Some(reference.to_owned()),
        claimed_order,
        verdict: Verdict::Parked,
        received_at: Timestamp::ZERO,
        due_at: Timestamp::ZERO,
        case: None,
    }
}

/// All that can be read of an event, but its epoch.
pub(crate) fn picture(store: &Store, no: EventNo) -> String {
    let far = Timestamp::from_millis(i64::MAX);
    let looked = store.read(|db| {
        let mut out = String::new();
        let mut event = db.event(no)?.expect("the event is at home here");
        event.epoch = 0;
        let digits = db.seat_digits(no)?.expect("the event is here").digits;
        let _ = writeln!(out, "{event:?}\n{digits:?}\n{:?}\n{:?}", db.manifest(no)?, db.report(no)?);
        let (mut holds, mut orders) = (BTreeSet::new(), BTreeSet::new());
        for entry in db.log_after(no, 0, 10_000)? {
            let _ = writeln!(out, "{entry:?}");
            match entry.kind {
                LogKind::HoldPlaced { hold, .. } => drop(holds.insert(hold)),
                LogKind::CheckoutBegun { order, .. } => drop(orders.insert(order)),
                _ => {}
            }
        }
        for hold in holds {
            let _ = writeln!(out, "{:?}", db.hold(hold)?);
        }
        for order in orders {
            let _ = writeln!(out, "{:?}", db.order(order)?);
        }
        for operation in db.due_operations(far, 10_000)? {
            let _ = writeln!(out, "{operation:?}");
        }
        for case in db.cases(None, 10_000)?.into_iter().filter(|case| case.event() == no) {
            let _ = writeln!(out, "{case:?}");
        }
        for delivery in db.webhook_deliveries(EndpointId(1), None, 1_000)? {
            let _ = writeln!(out, "{delivery:?}");
        }
        let behind = db.webhooks_behind(&endpoint(1), None, 1_000)?;
        let _ = writeln!(out, "{:?}", behind.iter().find(|behind| behind.event == no));
        for id in ["evt_parked", "evt_conflict"] {
            let _ = writeln!(out, "{:?}", db.callback(id)?);
        }
        Ok(out)
    });
    looked.expect("everything can be read")
}
