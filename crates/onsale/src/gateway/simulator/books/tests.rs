//! Whole calls on the books: faults by script, late answers, replays, and what the log says.

use super::*;
use crate_root::calls;
use crate_root::form::Form;
use crate_root::intent::Status;

use super::super as crate_root;

/// Books and the calls on them, at a time that stands still.
struct Desk {
    books: Books,
    requests: u32,
}

impl Desk {
    fn new() -> Desk {
        Desk { books: Books::new(1), requests: 0 }
    }

    fn request(&mut self, (form, call): (Form, Call), path: &str, key: &str) -> Request {
        self.requests += 1;
        Request {
            id: format!("req_{}", self.requests).into(),
            call,
            idempotency_key: (!key.is_empty()).then(|| key.into()),
            fingerprint: form.fingerprint(path),
            expand_charge: false,
        }
    }

    fn receive(&mut self, call: (Form, Call), path: &str, key: &str) -> Step {
        let request = self.request(call, path, key);
        self.books.receive(&request, 5_000)
    }

    fn answer(&mut self, call: (Form, Call), path: &str, key: &str) -> Answer {
        match self.receive(call, path, key) {
            Step::Done(answer) => answer,
            Step::Later(delay) => panic!("delayed by {delay:?}"),
        }
    }

    /// A new manual intent of 500 for ada's order, not yet confirmed.
    fn intent(&mut self) -> String {
        let call =
            calls::create(form("amount=500&currency=eur&capture_method=manual&metadata[order_id]=ord_ada"));
        match self.answer(call.unwrap(), "/create", "") {
            Answer::Reply(Reply::Intent { intent, .. }) => intent.origin.id.to_string(),
            other => panic!("{other:?}"),
        }
    }

    fn confirm(&mut self, id: &str, key: &str) -> Answer {
        self.answer(calls::confirm(form("payment_method=pm_card_visa"), id).unwrap(), "/confirm", key)
    }

    fn capture(&mut self, id: &str, key: &str) -> Answer {
        self.answer(calls::capture(form(""), id).unwrap(), "/capture", key)
    }

    fn cancel(&mut self, id: &str) -> Answer {
        self.answer(calls::cancel(form(""), id).unwrap(), "/cancel", "")
    }

    fn refund(&mut self, id: &str, amount: &str) -> Answer {
        let form = form(&format!("payment_intent={id}{amount}"));
        self.answer(calls::refund(form).unwrap(), "/refund", "")
    }

    fn query(&mut self, id: &str) -> Answer {
        self.answer((form(""), Call::Query { intent_id: id.into() }), "/query", "")
    }

    fn script(&mut self, operation: Operation, outcome: Outcome) {
        assert!(outcome.fits(operation));
        self.books.script.push(operation, &[outcome]).unwrap();
    }

    fn status(&self, id: &str) -> Status {
        self.books.find(id).unwrap().1.status
    }

    fn outcomes(&self) -> Vec<String> {
        let words = self.books.log.entries().map(|entry| {
            format!("{} {} {}", entry.operation.as_str(), entry.amount.unwrap_or(-1), entry.outcome)
        });
        words.collect()
    }

    fn events(&self) -> Vec<&str> {
        let mut types: Vec<_> =
            self.books.events.newest_first().map(|event| event.transition.event_type()).collect();
        types.reverse();
        types
    }
}

fn form(text: &str) -> Form {
    Form::parse(text.as_bytes()).unwrap()
}

/// `200`, `402 card_declined`, `lost`, with `replayed` in front where it is one.
fn told(answer: &Answer) -> String {
    let (reply, mark) = match answer {
        Answer::Lost => return "lost".into(),
        Answer::Reply(reply) => (reply, ""),
        Answer::Replayed(reply) => (reply, "replayed "),
    };
    match reply {
        Reply::Error(error) => format!("{mark}{} {}", error.status, error.code.unwrap_or(error.kind)),
        Reply::Intent { .. } | Reply::Refund(_) => format!("{mark}{}", reply.status()),
    }
}

#[test]
fn every_fault_of_an_authorization_and_what_its_key_says_afterwards() {
    let table = [
        (Outcome::Ok, "200", Status::RequiresCapture, "replayed 200"),
        (Outcome::Declined, "402 card_declined", Status::RequiresPaymentMethod, "replayed 402 card_declined"),
        (Outcome::RequiresAction, "200", Status::RequiresAction, "replayed 200"),
        (Outcome::Processing, "200", Status::Processing, "replayed 200"),
        (Outcome::AmountMismatch, "200", Status::RequiresCapture, "replayed 200"),
        (Outcome::LostReply, "lost", Status::RequiresCapture, "replayed 200"),
        (Outcome::LostRequest, "lost", Status::RequiresPaymentMethod, "200"),
        (Outcome::Error500Done, "500 api_error", Status::RequiresCapture, "replayed 200"),
        (Outcome::Error500NotDone, "500 api_error", Status::RequiresPaymentMethod, "200"),
    ];
    for (outcome, first, status, second) in table {
        let mut desk = Desk::new();
        let id = desk.intent();
        desk.script(Operation::Authorize, outcome);
        assert_eq!(told(&desk.confirm(&id, "k")), first, "{outcome}");
        assert_eq!(desk.status(&id), status, "{outcome}");
        assert_eq!(told(&desk.confirm(&id, "k")), second, "{outcome}, again");
        let again = if second.starts_with("replayed") { "replayed" } else { "ok" };
        assert_eq!(
            desk.outcomes(),
            [format!("authorize 500 {outcome}"), format!("authorize 500 {again}")],
            "{outcome}"
        );
        assert_eq!(desk.events().len(), 1, "{outcome}: one transition, one event");
        let amount = if outcome == Outcome::AmountMismatch { 499 } else { 500 };
        assert_eq!(desk.books.find(&id).unwrap().1.amount, amount, "{outcome}");
    }
}

#[test]
fn a_delayed_call_holds_its_key_and_is_done_later() {
    let mut desk = Desk::new();
    let id = desk.intent();
    let delay = Duration::from_millis(250);
    desk.script(Operation::Authorize, Outcome::Delay(delay));
    let call = calls::confirm(form("payment_method=pm_card_visa"), &id).unwrap();
    let request = desk.request(call, "/confirm", "k");
    assert!(matches!(desk.books.receive(&request, 5_000), Step::Later(later) if later == delay));
    assert_eq!(told(&desk.confirm(&id, "k")), "409 idempotency_key_in_use");
    assert_eq!(desk.status(&id), Status::RequiresPaymentMethod);
    assert_eq!(told(&desk.books.perform(&request, None, 5_250)), "200");
    assert_eq!(told(&desk.confirm(&id, "k")), "replayed 200");
    assert_eq!(
        desk.outcomes(),
        ["authorize 500 delay:250", "authorize 500 idempotency_key_in_use", "authorize 500 replayed"]
    );
}

#[test]
fn replays_leave_the_script_alone_and_other_parameters_are_refused() {
    let mut desk = Desk::new();
    let id = desk.intent();
    assert_eq!(told(&desk.confirm(&id, "k")), "200");
    desk.script(Operation::Authorize, Outcome::Declined);
    assert_eq!(told(&desk.confirm(&id, "k")), "replayed 200");
    assert_eq!(told(&desk.capture(&id, "k")), "400 idempotency_error");
    let other = desk.intent();
    assert_eq!(told(&desk.confirm(&other, "k2")), "402 card_declined");
    assert_eq!(told(&desk.capture("pi_nobody", "k3")), "404 resource_missing");
    assert_eq!(told(&desk.capture("pi_nobody", "k3")), "404 resource_missing"); // Not executed, so not kept.
}

#[test]
fn refusals_of_capture_void_and_refund() {
    let mut desk = Desk::new();
    let lapsed = desk.intent();
    desk.confirm(&lapsed, "");
    desk.script(Operation::Capture, Outcome::Declined);
    assert_eq!(told(&desk.capture(&lapsed, "c")), "400 charge_expired_for_capture");
    assert_eq!(told(&desk.capture(&lapsed, "c")), "replayed 400 charge_expired_for_capture");
    assert_eq!(desk.status(&lapsed), Status::Canceled);

    let paid = desk.intent();
    desk.confirm(&paid, "");
    desk.script(Operation::Void, Outcome::Declined);
    assert_eq!(told(&desk.cancel(&paid)), "400 payment_intent_unexpected_state");
    assert_eq!(desk.status(&paid), Status::RequiresCapture);
    assert_eq!(told(&desk.capture(&paid, "")), "200");
    desk.script(Operation::Refund, Outcome::Declined);
    let failed = desk.refund(&paid, "");
    assert!(matches!(failed, Answer::Reply(Reply::Refund(refund)) if refund.failed));
    assert_eq!(told(&desk.refund(&paid, "&amount=200")), "200");
    assert_eq!(told(&desk.refund(&paid, "&amount=301")), "400 amount_too_large");
    assert_eq!(told(&desk.query(&paid)), "200");

    assert_eq!(
        desk.events(),
        [
            "payment_intent.amount_capturable_updated",
            "payment_intent.canceled",
            "payment_intent.amount_capturable_updated",
            "payment_intent.succeeded",
            "charge.refunded",
        ]
    );
    let ledger = serde_json::to_value(crate_root::record::ledger(&desk.books.intents)).unwrap();
    assert_eq!(
        ledger,
        serde_json::json!([{
            "order_id": "ord_ada", "currency": "EUR",
            "authorised": 1000, "captured": 500, "voided": 500, "refunded": 200,
        }])
    );
    assert_eq!(
        desk.outcomes(),
        [
            "authorize 500 ok",
            "capture 500 declined",
            "capture 500 replayed",
            "authorize 500 ok",
            "void 500 declined",
            "capture 500 ok",
            "refund 500 declined",
            "refund 200 ok",
            "refund 301 refused",
            "query 500 ok",
        ]
    );
}

#[test]
fn the_log_speaks_the_contracts_words() {
    let mut desk = Desk::new();
    let id = desk.intent();
    desk.confirm(&id, "k");
    let entry = serde_json::to_value(desk.books.log.entries().next().unwrap()).unwrap();
    assert_eq!(
        entry,
        serde_json::json!({
            "at": "1970-01-01T00:00:05.000Z", "operation": "authorize", "idempotency_key": "k",
            "order_id": "ord_ada", "amount_minor": 500, "currency": "EUR", "outcome": "ok",
        })
    );
}
