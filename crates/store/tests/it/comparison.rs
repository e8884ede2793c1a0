//! The provider's books beside these: what is kept of that, and read for it.

use onsale_core::command::{Command, Outcome};
use onsale_core::gateway::{IntentState, Observation};
use onsale_core::id::{CaseId, EventNo, OperationId};
use onsale_core::money::{Currency, Money};
use onsale_core::payment::OperationKind;
use onsale_core::reconcile::{About, CaseAction, CaseKind, CaseStatus, Reconciled};
use onsale_core::time::Timestamp;
use onsale_store::SettlementLine;

use crate::world::{HALL, World, account, ada, done, hall, policy};

/// A sale of one seat under a name, paid and captured.
fn sold(world: &World, buyer: &str, seat: u32, name: &str) -> (onsale_core::id::OrderId, OperationId) {
    let (order, attempt) = world.sell(&account(buyer), &[seat], name);
    let capture = world.live(order, OperationKind::Capture).expect("it is sold").id;
    world.observe(capture, world.observed(order, attempt, name, IntentState::Captured));
    (order, attempt)
}

fn reconcile(world: &World, attempt: OperationId, observation: Option<Observation>) -> Reconciled {
    let view = world.store.read(|db| db.books_of(attempt)).unwrap().expect("it is ours");
    let as_of = view.look(|books| books.moved_at()).expect("an attempt is among its order's operations");
    match world.submit(Command::Reconcile { attempt, observation, as_of }) {
        Outcome::Reconciled(reconciled) => reconciled,
        other => panic!("{other:?}"),
    }
}

/// A difference is one open row however often it is found, and its dismissal is remembered by what was seen.
#[test]
fn a_difference_is_one_case_that_closes_itself() {
    let world = hall(2, policy());
    let (order, attempt) = sold(&world, "ada", 0, "pi_1");
    let seen = |refunded_minor| Observation {
        refunded_minor,
        ..world.observed(order, attempt, "pi_1", IntentState::Captured)
    };
    assert_eq!(reconcile(&world, attempt, Some(seen(0))), Reconciled::Agreed);
    let Reconciled::Differs { case, opened: true } = reconcile(&world, attempt, Some(seen(300))) else {
        panic!("they differ");
    };
    let again = reconcile(&world, attempt, Some(seen(300)));
    assert_eq!(again, Reconciled::Differs { case, opened: false });
    let open = || world.store.read(|db| db.open_cases(CaseKind::RefundMismatch, 10)).unwrap();
    assert_eq!(open().iter().map(|case| case.id).collect::<Vec<_>>(), [case]);
    let kinds = world.store.read(|db| db.open_case_kinds()).unwrap();
    assert_eq!(
        kinds.iter().map(|(kind, count, _)| (&**kind, *count)).collect::<Vec<_>>(),
        [("refund_mismatch", 1)]
    );
    assert_eq!(reconcile(&world, attempt, Some(seen(0))), Reconciled::Agreed);
    assert!(open().is_empty(), "it has closed itself");

    let Reconciled::Differs { case, .. } = reconcile(&world, attempt, None) else { panic!("it is missing") };
    let evidence = world.store.read(|db| db.case(case)).unwrap().expect("it is kept").evidence;
    let is_dismissed =
        |kind, evidence: &str| world.store.read(|db| db.is_dismissed(attempt, kind, evidence)).unwrap();
    assert!(!is_dismissed(CaseKind::MissingAtProvider, &evidence));
    let (note, actor) = ("the old account".to_owned(), "key_7".to_owned());
    let dismissed = world.submit(Command::ResolveCase { case, action: CaseAction::Dismiss, note, actor });
    assert_eq!(dismissed, Outcome::CaseActed);
    assert!(is_dismissed(CaseKind::MissingAtProvider, &evidence));
    assert!(
        !is_dismissed(CaseKind::StateMismatch, &evidence) && !is_dismissed(CaseKind::MissingAtProvider, "x")
    );
    world.finish();
}

/// What is in no book is one question in the house, under an id that follows from its name; it can come back.
#[test]
fn a_stranger_is_one_case_of_the_house() {
    let world = hall(1, policy());
    let find = |name: &str| {
        let about = About::Object(EventNo::HOUSE, name.to_owned());
        let evidence = format!("{name} has money");
        world.submit(Command::OpenCase { about, kind: CaseKind::OrphanPayment, evidence })
    };
    let case = CaseId::about(EventNo::HOUSE, "pi_9");
    assert_eq!(find("pi_9"), Outcome::CaseKept { case, opened: true });
    assert_eq!(find("pi_9"), Outcome::CaseKept { case, opened: false });
    let kept = || world.store.read(|db| db.case(case)).unwrap().expect("it is kept");
    assert_eq!((kept().subject.as_deref(), kept().status), (Some("pi_9"), CaseStatus::Open));
    let settle = || world.submit(Command::SettleCase { case, proof: "it has found its order".to_owned() });
    assert_eq!((settle(), settle()), (Outcome::CaseSettled, Outcome::CaseSettled));
    assert_eq!(kept().resolution.map(|resolution| resolution.action).as_deref(), Some("proof"));
    assert_eq!(find("pi_9"), Outcome::CaseKept { case, opened: true }, "it has money again");
    assert_eq!((kept().status, kept().resolution), (CaseStatus::Open, None));
    world.finish();
}

#[test]
fn our_payments_are_read_by_the_time_of_their_ids() {
    let world = hall(4, policy());
    let mut made = Vec::new();
    for (seat, name) in ["pi_1", "pi_2", "pi_3"].into_iter().enumerate() {
        made.push((sold(&world, &format!("b{seat}"), seat as u32, name).1, name.to_owned()));
        world.pass_ms(1_000);
    }
    world.checkout_as(world.hold(&ada(), &[3]), &ada(), "pi_open");
    let start = crate::world::START;
    let read = |from, to, after, limit| {
        world.store.read(|db| db.paid_attempts(start.plus_ms(from), start.plus_ms(to), after, limit)).unwrap()
    };
    assert_eq!(read(0, 60_000, None, 10), made, "what isn't paid is not among them");
    assert_eq!(read(1_000, 2_000, None, 10), made[1..2]);
    assert_eq!(read(0, 60_000, None, 2), made[..2]);
    assert_eq!(read(0, 60_000, Some(made[1].0), 2), made[2..]);
    assert!(world.store.read(|db| db.books_of(OperationId(1))).unwrap().is_none());
    world.finish();
}

/// Who has paid and has no tickets is found, where somebody issues tickets at all.
#[test]
fn paid_orders_without_tickets_are_found() {
    let world = hall(2, policy());
    let (order, attempt) = sold(&world, "ada", 0, "pi_1");
    let read = |at: Timestamp| world.store.read(|db| db.unticketed(at, 10)).unwrap();
    let later = world.now().plus_ms(1);
    assert!(read(later).is_empty(), "nobody issues tickets here");
    world.raw().execute(&format!(
        "INSERT INTO tickets (ticket_id, event_no, order_id, ordinal, generation, status, inside, admissions, issued_at, version)
         SELECT hold_id, 1, hold_id, 1, 1, 'VALID', 0, 0, 1, 1 FROM holds WHERE event_no = {}", HALL.0
    ));
    assert_eq!(read(later), [(attempt, order)]);
    assert!(read(world.now()).is_empty(), "it was paid just now");
    let wants = || world.store.read(|db| db.wants_tickets(order)).unwrap();
    assert!(wants());
    world.raw().execute("UPDATE orders SET ticketed = 1");
    assert!(read(later).is_empty() && !wants());
    world.raw().execute("UPDATE orders SET ticketed = 0; DELETE FROM tickets");
    world.finish();
}

/// Progress goes on from where it was, by whoever was first.
#[test]
fn progress_is_kept_by_who_was_first() {
    let world = hall(1, policy());
    let keep = |was: Option<&str>, value: &str| {
        let (was, value) = (was.map(str::to_owned), value.to_owned());
        done(world.store.keep_progress("test", was, value, Timestamp::from_millis(7))).unwrap()
    };
    assert!(keep(None, "1"));
    assert!(!keep(None, "2"), "it is begun already");
    assert!(!keep(Some("0"), "2"), "somebody else was first");
    assert!(keep(Some("1"), "2"));
    let kept = world.store.read(|db| db.progress("test")).unwrap();
    assert_eq!(kept, Some(("2".to_owned(), Timestamp::from_millis(7))));
    assert_eq!(world.store.read(|db| db.progress("other")).unwrap(), None);
    world.finish();
}

#[test]
fn an_entry_of_the_account_is_kept_once_and_only_for_events_here() {
    let world = hall(1, policy());
    let (order, attempt) = sold(&world, "ada", 0, "pi_1");
    let line = |id: &str, attempt| SettlementLine {
        id: id.to_owned(),
        order,
        attempt,
        category: "charge".to_owned(),
        amount: Money { amount_minor: -5_000, currency: Currency::parse("EUR").unwrap() },
        fee_minor: 100,
        created_at: Timestamp::from_millis(1),
        available_at: Timestamp::from_millis(2),
    };
    let strange = OperationId(u128::from(HALL.0 + 1) << 56);
    let lines = || vec![line("txn_1", attempt), line("txn_2", attempt), line("txn_3", strange)];
    assert_eq!(done(world.store.keep_settlement_lines(lines())).unwrap(), 2);
    assert_eq!(done(world.store.keep_settlement_lines(lines())).unwrap(), 0);
    let has = |id: &str| world.store.read(|db| db.has_settlement_line(id)).unwrap();
    assert!(has("txn_1") && has("txn_2") && !has("txn_3"));
    world.finish();
}
