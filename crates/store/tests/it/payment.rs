//! Payments through the real database, from checkout to the last word about the money.

use onsale_core::command::{Answer, Command, Effect, Expiry, Outcome};
use onsale_core::event::{InDoubt, PaymentMode};
use onsale_core::gateway::{IntentState, Observation};
use onsale_core::hold::HoldStatus;
use onsale_core::id::{OperationId, OrderId};
use onsale_core::limits::{PROVIDER_TIMEOUT_MS, QUERIES_BEFORE_CASE, QUERY_BACKOFF_MS_MAX};
use onsale_core::money::Money;
use onsale_core::order::OrderStatus;
use onsale_core::payment::{OperationKind, OperationStatus, PaymentStatus};
use onsale_core::reconcile::{CaseKind, CaseStatus};
use onsale_core::refusal::Refusal;

use crate::world::{World, account, ada, ben, checkout, hall, policy};

fn recorded(effect: Effect, send: bool) -> Outcome {
    Outcome::Recorded { effect, send }
}

/// What the provider says of an order's attempt moves the books so.
fn observe(
    world: &World,
    order: OrderId,
    attempt: OperationId,
    state: IntentState,
    expected: (Effect, OrderStatus, PaymentStatus),
) {
    let observation = world.observed(order, attempt, &name_of(attempt), state.clone());
    let outcome = world.observe(attempt, observation);
    let row = world.order(order).order;
    let Outcome::Recorded { effect, .. } = outcome else { panic!("{state:?}: {outcome:?}") };
    assert_eq!((effect, row.status, row.payment_status), expected, "{state:?}");
}

fn name_of(attempt: OperationId) -> String {
    format!("pi_{attempt}")
}

/// Begins to pay for new seats of an account.
fn begin(world: &World, buyer: &str, seats: &[u32]) -> (OrderId, OperationId) {
    let account = account(buyer);
    let (order, attempt) = world.checkout(world.hold(&account, seats), &account);
    let reference = name_of(attempt);
    assert_eq!(world.submit(Command::RecordReference { operation: attempt, reference }), Outcome::MayConfirm);
    (order, attempt)
}

/// Every case: what it is about and whether it is open.
fn cases(world: &World) -> Vec<(CaseKind, CaseStatus)> {
    let cases = world.store.read(|db| db.cases(None, 100)).expect("cases can be read");
    cases.into_iter().map(|case| (case.kind, case.status)).collect()
}

#[test]
fn a_sale_goes_from_hold_to_captured_money() {
    let world = hall(3, policy());
    let hold = world.hold(&ada(), &[0, 2]);
    let (order, attempt) = world.checkout(hold, &ada());
    let held = world.hold_view(hold).hold;
    assert_eq!((held.status, held.order, held.grace_used), (HoldStatus::PaymentPending, Some(order), true));
    assert_eq!(held.expires_at, held.first_expires_at.plus_ms(policy().payment_grace_ms));
    assert_eq!(world.event().payment_pending, 1);

    let due = || world.store.read(|db| db.due_operations(world.now(), 10)).expect("operations can be read");
    let [view] = due().try_into().expect("one operation is due");
    assert_eq!(view.operation.id, attempt);
    assert_eq!(view.operation.payment_method_token.as_deref(), Some("pm_card"));
    assert_eq!(view.return_url.as_deref(), Some("https://hall.example/back"));
    assert_eq!((view.order_status, view.charge), (OrderStatus::AwaitingPayment, false));

    let refer = |name: &str| {
        world.submit(Command::RecordReference { operation: attempt, reference: name.to_owned() })
    };
    assert_eq!(refer("pi_1"), Outcome::MayConfirm);
    assert_eq!(refer("pi_1"), Outcome::MayConfirm, "again is no harm");
    assert_eq!(refer("pi_2"), Outcome::MustNotConfirm);
    assert_eq!(due().len(), 0, "in flight, nobody else looks at it");
    world.pass_ms(PROVIDER_TIMEOUT_MS);
    assert_eq!(due().len(), 1);
    assert_eq!(world.store.read(|db| db.attempt("pi_1")).unwrap(), Some(attempt));

    let url = "https://bank.example/3ds".to_owned();
    let action = IntentState::RequiresAction(Some(url.clone()));
    let outcome = world.observe(attempt, world.observed(order, attempt, "pi_1", action));
    assert_eq!(outcome, recorded(Effect::Applied, false));
    let view = world.order(order);
    assert_eq!(view.next_action_url, Some(url));
    assert_eq!(view.order.payment_status, PaymentStatus::RequiresAction);
    assert_eq!(view.order.email.as_deref(), Some("ada@example.org"));

    let authorized = || world.observed(order, attempt, "pi_1", IntentState::Authorized);
    assert_eq!(world.observe(attempt, authorized()), recorded(Effect::Applied, false));
    let view = world.order(order);
    assert_eq!((view.order.status, view.next_action_url), (OrderStatus::Confirmed, None));
    assert_eq!((view.order.paid_by, view.order.confirmed_at), (Some(attempt), Some(world.now())));
    assert_eq!(view.order.payment_status, PaymentStatus::Authorized);
    assert_eq!(view.seats.iter().map(|(_, _, price)| price).sum::<i64>(), view.order.total.amount_minor);
    assert_eq!(world.digits(), "202");
    assert_eq!(
        (world.hold_view(hold).hold.status, world.event().payment_pending),
        (HoldStatus::Converted, 0)
    );

    let capture = world.live(order, OperationKind::Capture).expect("the money is to be taken");
    assert_eq!((capture.target, capture.payment_method_token), (Some(attempt), None));
    assert_eq!(world.observe(capture.id, authorized()), recorded(Effect::AlreadyPaid, true));
    let captured = world.observed(order, attempt, "pi_1", IntentState::Captured);
    assert_eq!(world.observe(capture.id, captured), recorded(Effect::Applied, false));
    assert_eq!(world.order(order).order.payment_status, PaymentStatus::Captured);
    assert_eq!((due().len(), cases(&world).len()), (0, 0));
    assert_eq!(
        world.submit(Command::ReleaseHold { hold, account: Some(ada()) }),
        Outcome::Refused(Refusal::HoldNotActive)
    );
    world.finish();
}

/// R-70; a success that comes late for a declined attempt is surplus.
#[test]
fn a_declined_payment_returns_the_hold_and_another_card_pays() {
    let world = hall(1, policy());
    let (order, first) = begin(&world, "ada", &[0]);
    let hold = world.order(order).order.hold;
    let declined = IntentState::Declined("card_declined".to_owned());
    let awaiting = OrderStatus::AwaitingPayment;
    observe(&world, order, first, declined, (Effect::Applied, awaiting, PaymentStatus::Declined));
    let held = world.hold_view(hold).hold;
    assert_eq!((held.status, held.expires_at), (HoldStatus::Active, held.first_expires_at));

    let (same, second) = world.checkout(hold, &ada());
    assert_eq!(same, order, "a hold has one order");
    assert_eq!(world.hold_view(hold).hold.status, HoldStatus::Active, "the grace comes once");
    let both = Outcome::Refused(Refusal::PaymentPending);
    assert_eq!(world.submit(checkout(hold, &ada())), both);
    assert_eq!(world.submit(Command::ReleaseHold { hold, account: None }), both);
    let confirmed = OrderStatus::Confirmed;
    let authorized = || IntentState::Authorized;
    observe(&world, order, second, authorized(), (Effect::Applied, confirmed, PaymentStatus::Authorized));

    observe(&world, order, first, authorized(), (Effect::MoneyBack, confirmed, PaymentStatus::Authorized));
    assert_eq!(cases(&world), [(CaseKind::SurplusAuthorization, CaseStatus::Open)]);
    let void = world.live(order, OperationKind::Void).expect("the surplus is let go");
    assert_eq!(void.target, Some(first));
    observe(
        &world,
        order,
        first,
        IntentState::Voided,
        (Effect::Applied, confirmed, PaymentStatus::Authorized),
    );
    assert_eq!(cases(&world), [(CaseKind::SurplusAuthorization, CaseStatus::Closed)]);
    world.finish();
}

/// no answer is neither success nor failure.
#[test]
fn silence_is_asked_about_until_there_is_proof() {
    let world = hall(2, policy());
    let (order, attempt) = begin(&world, "ada", &[0]);
    for tries in 1..=QUERIES_BEFORE_CASE {
        assert_eq!(cases(&world), [], "after {tries} questions");
        assert_eq!(world.answer(attempt, Answer::NoAnswer), recorded(Effect::Applied, false));
        world.pass_ms(1_000);
    }
    assert_eq!(world.order(order).order.payment_status, PaymentStatus::Unknown);
    assert_eq!(cases(&world), [(CaseKind::PaymentUnknown, CaseStatus::Open)]);
    let [_, unknown, ..] = world.store.read(|db| db.backlog(world.now())).unwrap();
    assert_eq!((unknown.0, unknown.1), ("payment_unknown", 1));
    world.answer(attempt, Answer::Busy(60_000));
    let due_at = world.live(order, OperationKind::Authorize).expect("it is live").due_at;
    assert_eq!(due_at, world.now().plus_ms(60_000));

    world.pass_ms(policy().hold_ttl_ms + policy().payment_grace_ms);
    let hold = world.order(order).order.hold;
    assert_eq!(world.submit(Command::ExpireHold { hold }), Outcome::Expiry(Expiry::InDoubt));
    assert!(world.hold_view(hold).hold.in_doubt);
    assert_eq!(world.store.read(|db| db.due_holds(world.now(), 10)).unwrap(), []);
    assert!(matches!(world.place(&ben(), &[0]), Outcome::Refused(Refusal::SeatUnavailable(_))));
    let paid = (Effect::Applied, OrderStatus::Confirmed, PaymentStatus::Authorized);
    observe(&world, order, attempt, IntentState::Authorized, paid);
    assert!(cases(&world).iter().all(|(_, status)| *status == CaseStatus::Closed), "{:?}", cases(&world));
    assert_eq!(world.digits(), "20");
    world.finish();
}

/// where doubt releases the seats, a late success takes none.
#[test]
fn a_success_after_the_seats_have_gone_is_given_back() {
    let mut policy = policy();
    policy.in_doubt = InDoubt::Release;
    let world = hall(1, policy.clone());
    let (order, attempt) = begin(&world, "ada", &[0]);
    world.pass_ms(policy.hold_ttl_ms + policy.payment_grace_ms);
    let new = world.hold(&ben(), &[0]);
    let expired = OrderStatus::Expired;
    assert_eq!(world.order(order).order.status, expired);
    assert_eq!(world.event().payment_pending, 0);
    let late = (Effect::MoneyBack, expired, PaymentStatus::VoidPending);
    observe(&world, order, attempt, IntentState::Authorized, late);
    assert_eq!(cases(&world), [(CaseKind::LateSuccess, CaseStatus::Open)]);
    assert_eq!(world.hold_view(new).hold.status, HoldStatus::Active);
    let voided = (Effect::Applied, expired, PaymentStatus::Voided);
    observe(&world, order, attempt, IntentState::Voided, voided);
    assert_eq!(cases(&world), [(CaseKind::LateSuccess, CaseStatus::Closed)]);
    world.finish();
}

///
#[test]
fn a_refused_capture_undoes_the_sale() {
    let world = hall(2, policy());
    let (order, attempt) = world.sell(&ada(), &[0, 1], "pi_1");
    let capture = world.live(order, OperationKind::Capture).expect("the money is to be taken");
    let refused = world.answer(capture.id, Answer::Refused("expired_card".to_owned()));
    assert_eq!(refused, recorded(Effect::Applied, false));
    let row = world.order(order).order;
    assert_eq!((row.status, row.payment_status), (OrderStatus::Cancelled, PaymentStatus::VoidPending));
    assert_eq!(
        (world.digits().as_str(), cases(&world)),
        ("00", vec![(CaseKind::CaptureFailed, CaseStatus::Open)])
    );
    world.hold(&ben(), &[0]);
    world.observe(attempt, world.observed(order, attempt, "pi_1", IntentState::Voided));
    assert_eq!(world.order(order).order.payment_status, PaymentStatus::Voided);
    assert_eq!(cases(&world), [(CaseKind::CaptureFailed, CaseStatus::Closed)]);
    world.finish();
}

#[test]
fn an_authorization_that_lapses_before_its_capture_undoes_the_sale() {
    let world = hall(1, policy());
    let (order, attempt) = world.sell(&ada(), &[0], "pi_1");
    let capture = world.live(order, OperationKind::Capture).expect("the money is to be taken");
    let lapsed = world.observed(order, attempt, "pi_1", IntentState::Voided);
    assert_eq!(world.observe(capture.id, lapsed), recorded(Effect::Applied, false));
    assert_eq!((world.order(order).order.status, world.digits().as_str()), (OrderStatus::Cancelled, "0"));
    world.finish();
}

///
#[test]
fn where_money_is_taken_at_once_it_is_refunded() {
    let mut policy = policy();
    (policy.payment, policy.in_doubt) = (PaymentMode::Charge, InDoubt::Release);
    let world = hall(2, policy.clone());
    let (order, attempt) = begin(&world, "ada", &[0]);
    let paid = (Effect::Applied, OrderStatus::Confirmed, PaymentStatus::Captured);
    observe(&world, order, attempt, IntentState::Captured, paid);
    assert_eq!(world.live(order, OperationKind::Capture), None);

    let (late, attempt) = begin(&world, "ben", &[1]);
    world.pass_ms(policy.hold_ttl_ms + policy.payment_grace_ms);
    world.submit(Command::ExpireHold { hold: world.order(late).order.hold });
    world.observe(attempt, world.observed(late, attempt, &name_of(attempt), IntentState::Captured));
    assert_eq!(world.order(late).order.payment_status, PaymentStatus::RefundPending);
    let refund = world.live(late, OperationKind::Refund).expect("the money goes back");
    let captured = world.observed(late, attempt, &name_of(attempt), IntentState::Captured);
    let refunded = Observation { refunded_minor: refund.amount.amount_minor, ..captured.clone() };
    assert_eq!(world.observe(refund.id, captured), recorded(Effect::MoneyBack, true));
    assert_eq!(world.observe(refund.id, refunded), recorded(Effect::Applied, false));
    assert_eq!(world.order(late).order.payment_status, PaymentStatus::Refunded);
    assert_eq!(cases(&world), [(CaseKind::LateSuccess, CaseStatus::Closed)]);
    world.finish();
}

#[test]
fn another_amount_than_the_orders_buys_nothing() {
    let world = hall(1, policy());
    let (order, attempt) = begin(&world, "ada", &[0]);
    let right = world.observed(order, attempt, &name_of(attempt), IntentState::Authorized);
    let amount = Money { amount_minor: right.amount.amount_minor - 1, ..right.amount };
    let outcome = world.observe(attempt, Observation { amount, ..right });
    assert_eq!(outcome, recorded(Effect::MoneyBack, false));
    assert_eq!(cases(&world), [(CaseKind::AmountMismatch, CaseStatus::Open)]);
    let void = world.live(order, OperationKind::Void).expect("the money goes back");
    assert_eq!((void.amount, world.digits().as_str()), (amount, "1"));
    world.finish();
}

/// payments under way are counted for each account and each event.
#[test]
fn payments_under_way_are_bounded() {
    let mut policy = policy();
    (policy.payment_pending_per_account_max, policy.payment_pending_max) = (1, 2);
    let world = hall(4, policy.clone());
    let (a, also_a) = (world.hold(&ada(), &[0]), world.hold(&ada(), &[1]));
    let (b, c) = (world.hold(&ben(), &[2]), world.hold(&account("cyd"), &[3]));
    world.checkout(a, &ada());
    assert_eq!(world.submit(checkout(also_a, &ada())), Outcome::Refused(Refusal::PaymentPending));
    world.checkout(b, &ben());
    let saturated = Outcome::Refused(Refusal::PaymentsSaturated);
    assert_eq!(world.submit(checkout(c, &account("cyd"))), saturated);
    assert_eq!(world.submit(checkout(a, &ben())), Outcome::Refused(Refusal::NotFound));
    world.pass_ms(policy.hold_ttl_ms + policy.payment_grace_ms);
    // Nothing was ever sent for it, so the clock ends it.
    assert_eq!(world.submit(Command::ExpireHold { hold: a }), Outcome::Expiry(Expiry::Expired));
    assert_eq!(world.event().payment_pending, 1);
    assert!(!world.store.read(|db| db.has_operation(OperationId(1))).unwrap());
    world.finish();
}

/// what the provider never named was never sent, and a word that comes nonetheless finds its attempt.
#[test]
fn an_attempt_without_a_name_is_found_by_what_was_attached_to_it() {
    let world = hall(1, policy());
    let (order, attempt) = world.checkout(world.hold(&ada(), &[0]), &ada());
    let outcome = world.observe(attempt, world.observed(order, attempt, "pi_9", IntentState::Processing));
    assert!(matches!(outcome, Outcome::Recorded { send: false, .. }), "{outcome:?}");
    assert_eq!(world.store.read(|db| db.attempt("pi_9")).unwrap(), Some(attempt));
    let again = world.observed(order, attempt, "pi_8", IntentState::Authorized);
    assert_eq!(world.observe(attempt, again), recorded(Effect::Conflict, false));
    assert_eq!(cases(&world), [(CaseKind::CallbackConflict, CaseStatus::Open)]);
    let live = world.live(order, OperationKind::Authorize).expect("the attempt goes on");
    assert_eq!(live.status, OperationStatus::Pending);
    assert!(live.due_at <= world.now().plus_ms(QUERY_BACKOFF_MS_MAX));
    world.finish();
}
