//! Callbacks with every verdict, and cases with everything an operator may do about them.

use onsale_core::command::{Answer, Command, Outcome};
use onsale_core::event::{InDoubt, PaymentMode, Policy};
use onsale_core::gateway::{IntentState, Observation};
use onsale_core::id::{CaseId, EventNo, OperationId, OrderId};
use onsale_core::limits::{PARKED_MS_MAX, PARKED_RETRY_MS};
use onsale_core::order::OrderStatus;
use onsale_core::payment::{OperationKind, PaymentStatus};
use onsale_core::reconcile::{Callback, Case, CaseAction, CaseKind, CaseStatus, Verdict};
use onsale_core::refusal::Refusal;
use onsale_core::time::Timestamp;

use crate::world::{HALL, World, ada, ben, hall, policy};

/// A message about `reference`, as the provider's adapter hands it over.
fn message(id: &str, reference: &str, claimed_order: Option<OrderId>) -> Callback {
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

fn judge(
    world: &World,
    event: EventNo,
    callback: Callback,
    observation: Option<Observation>,
    relevant: bool,
) -> Verdict {
    let callback = Box::new(callback);
    match world.submit(Command::JudgeCallback { event, callback, observation, relevant }) {
        Outcome::Judged(verdict) => verdict,
        other => panic!("{other:?}"),
    }
}

fn stored(world: &World, id: &str) -> Option<Verdict> {
    let found = world.store.read(|db| db.callback(id)).expect("callbacks can be read");
    found.map(|(_, verdict)| verdict)
}

fn cases(world: &World) -> Vec<Case> {
    world.store.read(|db| db.cases(None, 100)).expect("cases can be read")
}

fn only_case(world: &World) -> Case {
    let [case] = cases(world).try_into().expect("there is one case");
    case
}

fn resolve(world: &World, case: CaseId, action: CaseAction) -> Outcome {
    let (note, actor) = ("looked into it".to_owned(), "key_7".to_owned());
    world.submit(Command::ResolveCase { case, action, note, actor })
}

fn not_possible(outcome: Outcome) {
    assert!(matches!(outcome, Outcome::Refused(Refusal::ActionNotPossible(_))), "{outcome:?}");
}

/// duplicated and out of order, each is stored once with its verdict.
#[test]
fn a_message_is_applied_once() {
    let world = hall(1, policy());
    let (order, attempt) = world.checkout_as(world.hold(&ada(), &[0]), &ada(), "pi_1");
    let seen = |state| Some(world.observed(order, attempt, "pi_1", state));
    let first = || message("evt_1", "pi_1", Some(order));
    assert_eq!(judge(&world, HALL, message("evt_0", "pi_1", None), None, false), Verdict::Stale);
    assert_eq!(judge(&world, HALL, first(), seen(IntentState::Authorized), true), Verdict::Applied);
    assert_eq!(world.order(order).order.status, OrderStatus::Confirmed);
    assert_eq!(judge(&world, HALL, first(), seen(IntentState::Authorized), true), Verdict::Duplicate);
    assert_eq!(stored(&world, "evt_1"), Some(Verdict::Applied), "the first verdict stays");

    let other = message("evt_2", "pi_1", Some(order));
    let verdict = judge(&world, HALL, other, seen(IntentState::Authorized), true);
    assert_eq!(verdict, Verdict::AlreadyPaidReconcile);
    let late = message("evt_3", "pi_1", Some(order));
    assert_eq!(judge(&world, HALL, late, seen(IntentState::Processing), true), Verdict::Stale);
    assert_eq!(cases(&world).len(), 0);

    let forged = Callback { digest: 2, ..first() };
    assert_eq!(judge(&world, HALL, forged, seen(IntentState::Authorized), true), Verdict::Conflict);
    let case = only_case(&world);
    assert_eq!(
        (case.kind, case.order, case.operation),
        (CaseKind::CallbackConflict, Some(order), Some(attempt))
    );
    assert_eq!(world.store.read(|db| db.callback("evt_1")).unwrap(), Some((1, Verdict::Applied)));
    world.finish();
}

#[test]
fn a_message_for_another_holder_is_a_conflict() {
    let world = hall(2, policy());
    let (order, attempt) = world.checkout_as(world.hold(&ada(), &[0]), &ada(), "pi_1");
    let (theirs, _) = world.checkout_as(world.hold(&ben(), &[1]), &ben(), "pi_2");
    let seen = Some(world.observed(order, attempt, "pi_1", IntentState::Authorized));
    let claims = message("evt_1", "pi_1", Some(theirs));
    assert_eq!(judge(&world, HALL, claims, seen.clone(), true), Verdict::Conflict);
    assert_eq!(world.digits(), "11", "nothing moves");
    let seen = seen.map(|seen| Observation { order: Some(theirs), ..seen });
    let says_so = message("evt_2", "pi_1", Some(order));
    assert_eq!(judge(&world, HALL, says_so, seen, true), Verdict::Conflict);
    assert_eq!((only_case(&world).kind, world.digits().as_str()), (CaseKind::CallbackConflict, "11"));
    world.finish();
}

#[test]
fn a_success_for_an_order_that_is_over_is_given_back() {
    let mut policy = policy();
    policy.in_doubt = InDoubt::Release;
    let world = hall(1, policy.clone());
    let (order, attempt) = world.checkout_as(world.hold(&ada(), &[0]), &ada(), "pi_1");
    world.pass_ms(policy.hold_ttl_ms + policy.payment_grace_ms);
    world.hold(&ben(), &[0]);
    let seen = Some(world.observed(order, attempt, "pi_1", IntentState::Authorized));
    let verdict = judge(&world, HALL, message("evt_1", "pi_1", Some(order)), seen, true);
    assert_eq!(verdict, Verdict::RefundPending);
    assert_eq!((only_case(&world).kind, world.digits().as_str()), (CaseKind::LateSuccess, "1"));
    world.finish();
}

///
#[test]
fn a_message_before_its_order_waits_and_is_applied_when_the_order_appears() {
    let world = hall(1, policy());
    let due = || world.store.read(|db| db.due_callbacks(world.now(), 10)).expect("callbacks can be read");
    let early = || message("evt_1", "pi_1", None);
    assert_eq!(judge(&world, EventNo::HOUSE, early(), None, true), Verdict::Parked);
    assert_eq!(due().len(), 0);
    world.pass_ms(PARKED_RETRY_MS);
    let [parked] = due().try_into().expect("it is due again");
    let came_at = world.now().plus_ms(-PARKED_RETRY_MS);
    assert_eq!((parked.provider_event_id.as_str(), parked.received_at), ("evt_1", came_at));

    let (order, attempt) = world.checkout_as(world.hold(&ada(), &[0]), &ada(), "pi_1");
    let seen = Some(world.observed(order, attempt, "pi_1", IntentState::Authorized));
    assert_eq!(judge(&world, HALL, early(), seen, true), Verdict::Applied);
    assert_eq!(stored(&world, "evt_1"), Some(Verdict::Applied));
    assert_eq!((due().len(), world.digits().as_str()), (0, "2"));
    world.finish();
}

#[test]
fn a_message_that_nobody_can_place_becomes_a_case_of_the_house() {
    let world = hall(1, policy());
    let stray = || message("evt_1", "pi_stray", None);
    assert_eq!(judge(&world, EventNo::HOUSE, stray(), None, true), Verdict::Parked);
    world.pass_ms(PARKED_MS_MAX - 1);
    assert_eq!(judge(&world, EventNo::HOUSE, stray(), None, true), Verdict::Parked);
    assert_eq!(cases(&world).len(), 0);
    world.pass_ms(1);
    assert_eq!(judge(&world, EventNo::HOUSE, stray(), None, true), Verdict::Parked);
    let case = only_case(&world);
    assert_eq!((case.kind, case.event(), case.order), (CaseKind::OrphanPayment, EventNo::HOUSE, None));
    let far = world.now().plus_ms(PARKED_MS_MAX * 1_000);
    assert_eq!(world.store.read(|db| db.due_callbacks(far, 10)).unwrap().len(), 0);
    let read = world.store.read(|db| db.case(case.id)).unwrap();
    assert_eq!(read.as_ref(), Some(&case));

    not_possible(resolve(&world, case.id, CaseAction::Void));
    assert_eq!(resolve(&world, case.id, CaseAction::Dismiss), Outcome::CaseActed);
    assert_eq!(resolve(&world, case.id, CaseAction::Dismiss), Outcome::Refused(Refusal::CaseClosed));
    let closed = only_case(&world);
    let resolution = closed.resolution.expect("who did what is kept");
    assert_eq!(
        (closed.status, resolution.action.as_str(), resolution.actor.as_str()),
        (CaseStatus::Closed, "dismiss", "key_7")
    );
    world.finish();
}

/// a success that can't be verified moves nothing.
#[test]
fn a_message_that_cannot_be_verified_makes_its_payment_due() {
    let world = hall(1, policy());
    let (order, attempt) = world.checkout_as(world.hold(&ada(), &[0]), &ada(), "pi_1");
    let due = || world.store.read(|db| db.due_operations(world.now(), 10)).expect("operations can be read");
    assert_eq!(due().len(), 0);
    assert_eq!(judge(&world, HALL, message("evt_1", "pi_1", Some(order)), None, true), Verdict::Parked);
    assert_eq!(due().into_iter().map(|view| view.operation.id).collect::<Vec<_>>(), [attempt]);
    assert_eq!(world.digits(), "1");
    world.finish();
}

/// A hold whose payment is in doubt, and the case about it.
fn in_doubt(policy: Policy) -> (World, OrderId, OperationId, CaseId) {
    let world = hall(2, policy.clone());
    let (order, attempt) = world.checkout_as(world.hold(&ada(), &[0]), &ada(), "pi_1");
    world.pass_ms(policy.hold_ttl_ms + policy.payment_grace_ms);
    world.submit(Command::ExpireHold { hold: world.order(order).order.hold });
    let case = only_case(&world);
    assert_eq!(
        (case.kind, case.status, case.owner.as_str()),
        (CaseKind::InDoubt, CaseStatus::Open, "worker")
    );
    (world, order, attempt, case.id)
}

#[test]
fn an_operator_releases_the_seats_of_a_payment_in_doubt() {
    let (world, order, attempt, case) = in_doubt(policy());
    assert_eq!(resolve(&world, case, CaseAction::Release), Outcome::CaseActed);
    assert_eq!((world.order(order).order.status, world.digits().as_str()), (OrderStatus::Cancelled, "00"));
    let ended = cases(&world).into_iter().find(|found| found.id == case).expect("it is kept");
    assert_eq!((ended.status, ended.owner.as_str()), (CaseStatus::Closed, "key_7"));
    // The provider says otherwise after all: the money goes back.
    world.observe(attempt, world.observed(order, attempt, "pi_1", IntentState::Authorized));
    assert_eq!(world.order(order).order.payment_status, PaymentStatus::VoidPending);
    assert!(cases(&world).iter().any(|case| case.kind == CaseKind::LateSuccess));
    world.finish();
}

#[test]
fn an_operator_has_a_payment_in_doubt_asked_and_confirmed() {
    let (world, order, attempt, case) = in_doubt(policy());
    not_possible(resolve(&world, case, CaseAction::Refund));
    assert_eq!(resolve(&world, case, CaseAction::ConfirmIfBound), Outcome::CaseActed);
    assert_eq!(world.digits(), "10", "without the provider's word nothing is sold");
    world.observe(attempt, world.observed(order, attempt, "pi_1", IntentState::Authorized));
    let closed = only_case(&world);
    assert_eq!((closed.status, world.digits().as_str()), (CaseStatus::Closed, "20"));
    not_possible_after_close(&world, case);
    world.finish();
}

fn not_possible_after_close(world: &World, case: CaseId) {
    let action = CaseAction::Release;
    assert_eq!(resolve(world, case, action), Outcome::Refused(Refusal::CaseClosed));
}

#[test]
fn an_operator_has_money_set_aside_let_go() {
    let (world, order, attempt, case) = in_doubt(policy());
    assert_eq!(resolve(&world, case, CaseAction::Void), Outcome::CaseActed);
    let void = world.live(order, OperationKind::Void).expect("the void is to be sent");
    assert_eq!(
        world.answer(void.id, Answer::Refused("no_such_payment".to_owned())),
        Outcome::Recorded { effect: onsale_core::command::Effect::Applied, send: false }
    );
    assert!(cases(&world).iter().any(|case| case.kind == CaseKind::VoidFailed));
    assert_eq!(resolve(&world, case, CaseAction::Void), Outcome::CaseActed, "it may be tried again");
    world.observe(attempt, world.observed(order, attempt, "pi_1", IntentState::Voided));
    assert_eq!(world.order(order).order.payment_status, PaymentStatus::Voided);
    assert!(cases(&world).iter().all(|case| case.status == CaseStatus::Closed), "{:?}", cases(&world));
    world.finish();
}

#[test]
fn an_operator_has_money_taken_given_back() {
    let mut policy = policy();
    (policy.payment, policy.in_doubt) = (PaymentMode::Charge, InDoubt::Release);
    let world = hall(1, policy.clone());
    let (order, attempt) = world.checkout_as(world.hold(&ada(), &[0]), &ada(), "pi_1");
    world.pass_ms(policy.hold_ttl_ms + policy.payment_grace_ms);
    world.submit(Command::ExpireHold { hold: world.order(order).order.hold });
    let taken = world.observed(order, attempt, "pi_1", IntentState::Captured);
    world.observe(attempt, taken.clone());
    let refund = world.live(order, OperationKind::Refund).expect("the money goes back");
    world.answer(refund.id, Answer::Refused("charge_disputed".to_owned()));
    let failed = cases(&world).into_iter().find(|case| case.kind == CaseKind::RefundFailed);
    let case = failed.expect("a person is told").id;
    not_possible(resolve(&world, case, CaseAction::ConfirmIfBound));
    not_possible(resolve(&world, case, CaseAction::Void));
    assert_eq!(resolve(&world, case, CaseAction::Refund), Outcome::CaseActed);
    let again = world.live(order, OperationKind::Refund).expect("a new refund").id;
    assert_ne!(again, refund.id);
    world.observe(again, Observation { refunded_minor: taken.amount.amount_minor, ..taken });
    assert_eq!(world.order(order).order.payment_status, PaymentStatus::Refunded);
    assert!(cases(&world).iter().all(|case| case.status == CaseStatus::Closed), "{:?}", cases(&world));
    let nobody = resolve(&world, CaseId(7), CaseAction::Dismiss);
    assert_eq!(nobody, Outcome::Refused(Refusal::NotFound));
    world.finish();
}
