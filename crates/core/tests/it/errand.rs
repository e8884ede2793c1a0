//! What a worker does next about an operation, call by call.

use onsale_core::command::{Answer, Command, Effect, Outcome};
use onsale_core::errand::{Call, Errand, Reply, Step};
use onsale_core::gateway::{IntentState, Observation};
use onsale_core::id::{EventNo, OperationId, OrderId, Seed};
use onsale_core::limits::KEY_HORIZON_MS;
use onsale_core::money::Money;
use onsale_core::payment::{Operation, OperationKind, OperationStatus};
use onsale_core::time::Timestamp;

use crate::world::{HALL, euro};

const MADE: Timestamp = Timestamp::from_millis(1_000_000);
const SOON: Timestamp = MADE.plus_ms(1_000);
const LATE: Timestamp = MADE.plus_ms(KEY_HORIZON_MS);

fn operation(kind: OperationKind, status: OperationStatus, reference: Option<&str>) -> Operation {
    let mut seed = Seed::new(HALL, MADE, 7);
    let (id, attempt): (OperationId, OperationId) = (seed.mint(), seed.mint());
    Operation {
        id,
        order: seed.mint(),
        seq: 0,
        kind,
        status,
        target: (kind != OperationKind::Authorize).then_some(attempt),
        reference: reference.map(str::to_owned),
        amount: Money { amount_minor: 700, currency: euro() },
        base_minor: 0,
        payment_method_token: Some("card".to_owned()),
        next_action_url: None,
        failure_code: None,
        created_at: MADE,
        updated_at: MADE,
        due_at: MADE,
        tries: 2,
    }
}

fn seen(state: IntentState) -> Reply {
    Reply::Observed(Observation {
        reference: "obj".to_owned(),
        state,
        amount: Money { amount_minor: 700, currency: euro() },
        refunded_minor: 0,
        order: None::<OrderId>,
        operation: None,
    })
}

/// A step in a word.
fn word(step: &Step) -> String {
    match step {
        Step::Ask(Call::Create) => "create".to_owned(),
        Step::Ask(Call::Query { .. }) => "query".to_owned(),
        Step::Ask(Call::Confirm { .. }) => "confirm".to_owned(),
        Step::Ask(Call::Capture { .. }) => "capture".to_owned(),
        Step::Ask(Call::Cancel { .. }) => "cancel".to_owned(),
        Step::Ask(Call::Refund { .. }) => "refund".to_owned(),
        Step::Keep(Command::RecordReference { .. }) => "name".to_owned(),
        Step::Keep(Command::RecordAnswer { answer, .. }) => match answer {
            Answer::Observed(observation) => format!("seen {:?}", observation.state),
            Answer::Refused(code) => format!("refused {code}"),
            Answer::NoAnswer => "no answer".to_owned(),
            Answer::Busy(wait_ms) => format!("busy {wait_ms}"),
        },
        Step::Keep(other) => format!("{other:?}"),
        Step::Done => "done".to_owned(),
    }
}

fn kept(send: bool) -> Outcome {
    Outcome::Recorded { effect: Effect::Nothing, send }
}

#[test]
fn the_name_is_kept_before_the_card_is_sent() {
    let attempt = operation(OperationKind::Authorize, OperationStatus::Pending, None);
    let (mut errand, first) = Errand::begin(attempt, SOON);
    assert_eq!(word(&first), "create");
    assert_eq!(word(&errand.replied(seen(IntentState::Unconfirmed), SOON)), "name");
    assert_eq!(word(&errand.kept(&Outcome::MayConfirm, SOON)), "confirm");
    assert_eq!(word(&errand.replied(seen(IntentState::Authorized), SOON)), "seen Authorized");
    assert_eq!(word(&errand.kept(&kept(false), SOON)), "done");
}

#[test]
fn an_attempt_that_is_over_is_not_confirmed() {
    let attempt = operation(OperationKind::Authorize, OperationStatus::Pending, None);
    let (mut errand, _) = Errand::begin(attempt, SOON);
    errand.replied(seen(IntentState::Unconfirmed), SOON);
    assert_eq!(word(&errand.kept(&Outcome::MustNotConfirm, SOON)), "done");
}

#[test]
fn what_could_not_be_made_is_made_later_and_a_no_is_a_no() {
    for (reply, expected) in [
        (Reply::NoAnswer, "busy 4000"),
        (Reply::NotSent, "busy 4000"),
        (Reply::Busy { retry_after_s: Some(9) }, "busy 9000"),
        (Reply::Refused("bad_card".to_owned()), "refused bad_card"),
    ] {
        let attempt = operation(OperationKind::Authorize, OperationStatus::Pending, None);
        let (mut errand, _) = Errand::begin(attempt, SOON);
        assert_eq!(word(&errand.replied(reply, SOON)), expected);
    }
}

#[test]
fn what_was_once_silent_is_asked_about_and_sent_when_it_was_not_done() {
    let capture = operation(OperationKind::Capture, OperationStatus::Unknown, Some("obj"));
    let (mut errand, first) = Errand::begin(capture, SOON);
    assert_eq!(word(&first), "query");
    assert_eq!(word(&errand.replied(seen(IntentState::Authorized), SOON)), "seen Authorized");
    assert_eq!(word(&errand.kept(&kept(true), SOON)), "capture");
    assert_eq!(word(&errand.replied(Reply::NoAnswer, SOON)), "no answer");
}

#[test]
fn a_refusal_is_believed_only_where_the_object_stands_as_it_stood() {
    for (after, expected) in
        [(IntentState::Authorized, "refused no"), (IntentState::Captured, "seen Captured")]
    {
        let capture = operation(OperationKind::Capture, OperationStatus::Pending, Some("obj"));
        let (mut errand, first) = Errand::begin(capture, SOON);
        assert_eq!(word(&first), "capture");
        assert_eq!(word(&errand.replied(Reply::Refused("no".to_owned()), SOON)), "query");
        assert_eq!(word(&errand.replied(seen(after), SOON)), expected);
    }
}

#[test]
fn silence_while_the_buyer_acts_is_no_doubt() {
    let attempt = operation(OperationKind::Authorize, OperationStatus::RequiresAction, Some("obj"));
    let (mut errand, first) = Errand::begin(attempt, SOON);
    assert_eq!(word(&first), "query");
    assert_eq!(word(&errand.replied(Reply::NoAnswer, SOON)), "busy 10000");
}

#[test]
fn past_the_horizon_nothing_is_sent() {
    let void = operation(OperationKind::Void, OperationStatus::Pending, Some("obj"));
    let (_, first) = Errand::begin(void, LATE);
    assert_eq!(word(&first), "query");

    // The machine sleeps for a day between two steps.
    let capture = operation(OperationKind::Capture, OperationStatus::Unknown, Some("obj"));
    let (mut errand, _) = Errand::begin(capture, SOON);
    errand.replied(seen(IntentState::Authorized), SOON);
    assert_eq!(word(&errand.kept(&kept(true), LATE)), "done");
    let attempt = operation(OperationKind::Authorize, OperationStatus::Pending, None);
    let (mut errand, _) = Errand::begin(attempt, SOON);
    errand.replied(seen(IntentState::Unconfirmed), SOON);
    assert_eq!(word(&errand.kept(&Outcome::MayConfirm, LATE)), "done");
}

#[test]
fn a_return_of_what_was_never_made_has_nothing_to_act_on() {
    let void = operation(OperationKind::Void, OperationStatus::Pending, None);
    let (errand, first) = Errand::begin(void, SOON);
    assert_eq!(word(&first), "refused no_payment");
    assert_eq!(errand.operation().id.event(), EventNo(1));
}
