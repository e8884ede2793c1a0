//! Holds through the real database: placed, given back, run out, taken over, repeated.

use onsale_core::command::{Answer, Command, Decision, Expiry, Outcome, PlacedHold};
use onsale_core::gateway::IntentState;
use onsale_core::hold::HoldStatus;
use onsale_core::id::SeatOrdinal;
use onsale_core::limits::ATTEMPTS_PER_ORDER_MAX;
use onsale_core::refusal::Refusal;

use crate::world::{HALL, PRICES, World, account, ada, ben, checkout, hall, ordinals, place_hold, policy};

fn unavailable(seats: &[u32]) -> Outcome {
    Outcome::Refused(Refusal::SeatUnavailable(ordinals(seats)))
}

#[test]
fn a_hold_has_all_its_seats_or_none_and_reads_back_as_it_was_told() {
    let world = hall(5, policy());
    let placed = world.placed(&ada(), &[0, 1]);
    let priced = vec![(SeatOrdinal(0), 0, PRICES[0]), (SeatOrdinal(1), 1, PRICES[1])];
    assert_eq!(placed.seats, priced);
    assert_eq!(placed.hold.total_minor, PRICES[0] + PRICES[1]);
    assert_eq!(placed.hold.expires_at, world.now().plus_ms(policy().hold_ttl_ms));
    let view = world.hold_view(placed.hold.id);
    assert_eq!(PlacedHold { hold: view.hold, seats: view.seats, ga: view.ga }, placed);

    assert_eq!(world.place(&ben(), &[1, 2]), unavailable(&[1]));
    assert_eq!(world.place(&ben(), &[0, 1, 2]), unavailable(&[0, 1]));
    assert_eq!(world.digits(), "11000");
    world.hold(&ben(), &[2]);
    assert_eq!(world.digits(), "11100");
    world.finish();
}

#[test]
fn only_its_account_or_an_operator_gives_a_hold_back() {
    let world = hall(3, policy());
    let (first, second) = (world.hold(&ada(), &[0]), world.hold(&ada(), &[2]));
    let release = |hold, account| world.submit(Command::ReleaseHold { hold, account });
    assert_eq!(release(first, Some(ben())), Outcome::Refused(Refusal::NotFound));
    assert_eq!(world.digits(), "101");
    assert_eq!(release(first, Some(ada())), Outcome::HoldReleased);
    assert_eq!(release(second, None), Outcome::HoldReleased);
    assert_eq!(release(second, None), Outcome::HoldReleased, "again is no error");
    assert_eq!(world.hold_view(first).hold.status, HoldStatus::Released);
    assert_eq!(world.digits(), "000");
    world.finish();
}

/// at the instant itself a hold is over.
#[test]
fn a_hold_ends_at_its_instant_and_not_before() {
    let world = hall(2, policy());
    let hold = world.hold(&ada(), &[0, 1]);
    let end = world.hold_view(hold).hold.expires_at;
    let due = || world.store.read(|db| db.due_holds(world.now(), 10)).expect("holds can be read");
    let expire = || world.submit(Command::ExpireHold { hold });

    world.clock.set(end.plus_ms(-1));
    assert_eq!((expire(), due()), (Outcome::Expiry(Expiry::NotDue), vec![]));
    assert_eq!(world.place(&ben(), &[0]), unavailable(&[0]));
    world.clock.set(end);
    assert_eq!(due(), [hold]);
    assert_eq!(expire(), Outcome::Expiry(Expiry::Expired));
    assert_eq!((expire(), due()), (Outcome::Expiry(Expiry::NotDue), vec![]));
    assert_eq!(world.hold_view(hold).hold.status, HoldStatus::Expired);
    assert_eq!(world.digits(), "00");
    world.finish();
}

/// whoever takes seats over ends the holds that had them, whole, in the same transaction.
#[test]
fn a_takeover_ends_the_overdue_holds_it_meets() {
    let world = hall(4, policy());
    let olds = [world.hold(&ada(), &[0, 1]), world.hold(&account("cyd"), &[2, 3])];
    world.pass_ms(policy().hold_ttl_ms);
    let before = world.event().version;
    let new = world.hold(&ben(), &[1, 2]);
    assert_eq!(world.digits(), "0110");
    for old in olds {
        assert_eq!(world.hold_view(old).hold.status, HoldStatus::Expired);
    }
    let changes = world.store.read(|db| db.seat_changes(HALL, before, 10)).expect("the log can be read");
    let changes = changes.expect("the log reaches back").changes;
    let digits: Vec<(u32, u8)> = changes.iter().map(|(_, seat, digit)| (seat.0, *digit)).collect();
    assert_eq!(digits, [(0, 0), (1, 0), (2, 0), (3, 0), (1, 1), (2, 1)]);

    // a late word about an old hold touches nothing of the new one.
    assert_eq!(world.submit(Command::ExpireHold { hold: olds[0] }), Outcome::Expiry(Expiry::NotDue));
    assert_eq!(world.submit(Command::ReleaseHold { hold: olds[1], account: None }), Outcome::HoldReleased);
    assert_eq!(world.digits(), "0110");
    assert_eq!(world.hold_view(new).hold.status, HoldStatus::Active);
    world.finish();
}

#[test]
fn time_never_runs_backwards_for_an_event() {
    let world = hall(2, policy());
    world.hold(&ada(), &[0]);
    let latest = world.now();
    world.pass_ms(-60_000);
    let placed = world.placed(&ben(), &[1]);
    assert_eq!(placed.hold.created_at, latest);
    assert_eq!(world.event().clock, latest);
    world.finish();
}

///
#[test]
fn a_repeated_request_is_answered_and_not_done_again() {
    let mut world = hall(3, policy());
    let command = || place_hold(&ada(), &[0, 1]);
    let first = world.submit_keyed(7, 70, command());
    let Decision { outcome: Outcome::HoldPlaced(placed), replayed: false } = &first else {
        panic!("{first:?}");
    };
    let version = world.event().version;
    let again = Decision { replayed: true, ..first.clone() };
    assert_eq!(world.submit_keyed(7, 70, command()), again);
    world.reopen_as_it_was();
    assert_eq!(world.submit_keyed(7, 70, command()), again, "across a restart");
    assert_eq!(world.event().version, version, "a replay changes nothing");

    let other = world.submit_keyed(7, 71, place_hold(&ada(), &[2]));
    assert_eq!(other, Decision { outcome: Outcome::Refused(Refusal::KeyReused), replayed: false });
    assert_eq!(world.digits(), "110");

    // The answer stays the one that was given, whatever became of the hold since.
    world.submit(Command::ReleaseHold { hold: placed.hold.id, account: None });
    assert_eq!(world.submit_keyed(7, 70, command()), again);
    assert_eq!(world.digits(), "000");

    // A checkout too.
    let hold = world.hold(&ada(), &[2]);
    let begun = world.submit_keyed(8, 80, checkout(hold, &ada()));
    assert!(matches!(begun.outcome, Outcome::CheckoutBegun(_)), "{begun:?}");
    assert_eq!(world.submit_keyed(8, 80, checkout(hold, &ada())), Decision { replayed: true, ..begun });
    world.finish();
}

/// What is never kept is decided anew.
#[test]
fn a_refusal_that_may_pass_is_not_remembered() {
    let world = hall(8, policy());
    let many = [0, 1, 2, 3, 4, 5, 6];
    let too_many = world.submit_keyed(1, 1, place_hold(&ada(), &many));
    assert_eq!(too_many.outcome, Outcome::Refused(Refusal::TooManySeats { limit: 6 }));
    let kept = world.raw().number("SELECT count(*) FROM idempotency_keys");
    assert_eq!(kept, 0);
    world.finish();
}

/// Every refusal that is kept is written and read back as it was.
#[test]
fn a_kept_refusal_is_given_again_across_a_restart() {
    let mut policy = policy();
    policy.payment_grace_ms = 10_000;
    policy.payment_pending_per_account_max = 20;
    let mut world = hall(40, policy.clone());
    let mut asked = Vec::new();
    {
        let mut ask = |command: Command, refusal: Refusal| {
            let key = asked.len() as u128 + 1;
            let decision = world.submit_keyed(key, key, command.clone());
            assert_eq!(decision, Decision { outcome: Outcome::Refused(refusal.clone()), replayed: false });
            asked.push((command, refusal));
        };
        let full = account("full");
        world.hold(&full, &[0, 1, 2, 3]);
        ask(place_hold(&full, &[4, 5, 6]), Refusal::AccountLimit { limit: 6, in_use: 4 });
        ask(place_hold(&ben(), &[2, 3, 4]), Refusal::SeatUnavailable(ordinals(&[2, 3])));

        let (gone, paid) = (world.hold(&ada(), &[10]), world.hold(&ada(), &[11]));
        world.submit(Command::ReleaseHold { hold: gone, account: None });
        ask(checkout(gone, &ada()), Refusal::HoldNotActive);
        world.checkout(paid, &ada());
        ask(checkout(paid, &ada()), Refusal::PaymentPending);

        let tried = world.hold(&account("eve"), &[20]);
        for number in 0..ATTEMPTS_PER_ORDER_MAX {
            decline(&world, tried, &account("eve"), &format!("pi_{number}"));
        }
        ask(checkout(tried, &account("eve")), Refusal::AttemptsExhausted);

        let late = world.hold(&account("fay"), &[21]);
        decline(&world, late, &account("fay"), "pi_late");
        world.pass_ms(policy.hold_ttl_ms - 4_000);
        ask(checkout(late, &account("fay")), Refusal::TooLittleTime);
        world.pass_ms(4_000);
        ask(checkout(late, &account("fay")), Refusal::HoldExpired);

        let dear = world.hold(&account("gus"), &[22]);
        world.submit(Command::SetPrices { event: HALL, manifest_version: 1, levels: vec![(0, 9_900)] });
        ask(checkout(dear, &account("gus")), Refusal::PriceChanged);
    }
    world.reopen_as_it_was();
    for (key, (command, refusal)) in (1..).zip(asked) {
        let decision = world.submit_keyed(key, key, command);
        assert_eq!(decision, Decision { outcome: Outcome::Refused(refusal), replayed: true });
    }
    world.finish();
}

fn decline(world: &World, hold: onsale_core::id::HoldId, account: &onsale_core::id::AccountId, name: &str) {
    let (order, attempt) = world.checkout_as(hold, account, name);
    let state = IntentState::Declined("card_declined".to_owned());
    let answer = Answer::Observed(world.observed(order, attempt, name, state));
    assert!(matches!(world.answer(attempt, answer), Outcome::Recorded { send: false, .. }));
    assert_eq!(world.hold_view(hold).hold.status, HoldStatus::Active);
}
