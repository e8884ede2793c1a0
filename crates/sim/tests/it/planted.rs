//! Bugs that somebody could write, planted one by one. Each is found within the seeds of one run, by a check that says
//! what is wrong.

use onsale_core::planted::{Bug, plant};
use onsale_sim::Options;

use crate::{IN_MEMORY, ON_SQLITE, SEEDS, SEEDS_ON_SQLITE, search, turn};

/// The bug is found by one of these checks.
fn is_found(bug: Bug, options: Options, checks: &[&str]) {
    let _turn = turn();
    plant(Some(bug));
    let seeds = if options.on_sqlite { SEEDS_ON_SQLITE } else { SEEDS };
    let (_, found) = search(seeds, options);
    plant(None);
    let found = found.unwrap_or_else(|| panic!("{bug:?} was not found: {}", bug.what()));
    let broken = found.broken.expect("only what is broken is found");
    println!("{bug:?} at seed {} by \"{}\": {}", found.seed, broken.check, broken.what);
    assert!(checks.contains(&broken.check), "{bug:?} was found by \"{}\": {}", broken.check, broken.what);
}

macro_rules! planted {
    ($($name:ident: $bug:ident, $options:ident, [$($check:literal),+];)*) => {
        $(
            #[test]
            fn $name() {
                is_found(Bug::$bug, $options, &[$($check),+]);
            }
        )*

        #[test]
        fn every_bug_has_its_test() {
            let tested = [$(Bug::$bug),*];
            let untested: Vec<_> = Bug::ALL.iter().filter(|bug| !tested.contains(bug)).collect();
            assert!(untested.is_empty(), "{untested:?}");
        }
    };
}

planted! {
    expiry_after_the_deadline: ExpiryAfterDeadline, IN_MEMORY, [
        "step: a seat is anyone's from its deadline on", "step: nothing is sold at the deadline or after it"
    ];
    a_hold_that_is_not_rechecked: HoldNotRechecked, IN_MEMORY, [
        "step: nothing is sold at the deadline or after it"
    ];
    a_late_success_that_sells: LateSuccessSells, IN_MEMORY, [
        "step: an ended order stays ended", "step: nothing is sold at the deadline or after it", "invariants"
    ];
    a_takeover_that_leaves_the_hold: TakeoverLeavesHold, IN_MEMORY, ["invariants"];
    a_refusal_that_is_not_remembered: RefusalNotRemembered, IN_MEMORY, ["client: the same key has the same answer"];
    a_grace_given_twice: GraceTwice, IN_MEMORY, ["step: one grace for each hold"];
    a_limit_that_forgets_other_devices: LimitForgetsHolds, IN_MEMORY, ["invariants"];
    a_price_of_now: PriceOfNow, IN_MEMORY, ["invariants"];
    a_callback_judged_twice: CallbackJudgedTwice, IN_MEMORY, ["provider: a message has its say once"];
    silence_taken_for_a_no: SilenceIsFailure, IN_MEMORY, ["step: only the provider's word fails an operation"];
    surplus_money_that_is_kept: SurplusKept, IN_MEMORY, [
        "liveness: everything comes to an end", "money: the provider keeps what was sold, and nothing else"
    ];
    a_second_attempt_beside_the_first: SecondAttemptWhileOpen, IN_MEMORY, ["invariants"];
    a_cancelled_order_that_keeps_its_seats: CancelledKeepsSeats, IN_MEMORY, ["invariants"];
    seats_given_back_while_paid: ReleasedWhilePaid, IN_MEMORY, ["step: what is being paid is not given back"];
    a_clock_that_runs_back: ClockRunsBack, IN_MEMORY, ["invariants"];
    open_payments_never_counted_down: PendingNeverCountedDown, IN_MEMORY, ["invariants"];
    an_amount_that_is_not_compared: AmountNotCompared, IN_MEMORY, [
        "money: the provider keeps what was sold, and nothing else", "invariants"
    ];
    a_doubt_that_releases_the_seats: DoubtReleasesSeats, IN_MEMORY, ["step: a doubt keeps the seats"];
    a_name_that_is_not_kept: NameNotKept, IN_MEMORY, ["provider: confirmed only what the books can name"];
    a_key_used_past_its_life: SentPastHorizon, IN_MEMORY, ["provider: no key past its life"];
    a_return_given_up_in_silence: SilenceEndsReturn, IN_MEMORY, ["step: only the provider's word fails an operation"];
    a_new_key_each_time: NewKeyEachTime, IN_MEMORY, ["provider: one key for each operation"];
    an_expiry_that_is_not_logged: ExpiryNotLogged, ON_SQLITE, ["audit"];
    sold_tickets_that_are_not_read: SoldNotRead, ON_SQLITE, ["SQLite decides as the store in memory"];
    a_deadline_that_is_not_written: DeadlineNotWritten, ON_SQLITE, [
        "SQLite decides as the store in memory", "SQLite shows what the store in memory shows", "audit"
    ];
    rows_read_outside_the_lock: ReadOutsideLock, IN_MEMORY, ["invariants"];
    a_time_read_before_the_lock: TimeBeforeLock, IN_MEMORY, ["step: the time is read under the lock"];
    a_key_kept_in_another_transaction: KeyKeptApart, IN_MEMORY, ["client: the same key has the same answer"];
    an_answer_before_the_commit: AnsweredBeforeCommit, IN_MEMORY, [
        "client: the same key has the same answer", "client: nothing acknowledged is lost"
    ];
    an_unknown_commit_told_as_not_done: UnknownIsNotDone, IN_MEMORY, [
        "client: what is said to be not done isn't"
    ];
}
