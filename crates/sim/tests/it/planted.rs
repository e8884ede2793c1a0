//! Bugs that somebody could write, planted one by one. Each is found within the seeds of one run, by a check that says
//! what is wrong.

use onsale_core::planted::{Bug, plant};
use onsale_sim::{Beside, Options};

use crate::{SEEDS, SEEDS_ON_SQLITE, in_memory, on_postgres, on_sqlite, search, turn};

/// The bug is found by one of these checks.
fn is_found(bug: Bug, options: Options, checks: &[&str]) {
    let _turn = turn();
    plant(Some(bug));
    let seeds = if options.beside != Beside::Nothing { SEEDS_ON_SQLITE } else { SEEDS };
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
                is_found(Bug::$bug, $options(), &[$($check),+]);
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
    expiry_after_the_deadline: ExpiryAfterDeadline, in_memory, [
        "step: a seat is anyone's from its deadline on", "step: nothing is sold at the deadline or after it"
    ];
    a_hold_that_is_not_rechecked: HoldNotRechecked, in_memory, [
        "step: nothing is sold at the deadline or after it"
    ];
    a_late_success_that_sells: LateSuccessSells, in_memory, [
        "step: an ended order stays ended", "step: nothing is sold at the deadline or after it", "invariants: live holds",
        // Places that nobody holds can't be sold: the count runs below zero.
        "invariants: seats", "panic"
    ];
    a_takeover_that_leaves_the_hold: TakeoverLeavesHold, in_memory, [
        "invariants: live holds", "invariants: seats"
    ];
    a_refusal_that_is_not_remembered: RefusalNotRemembered, in_memory, [
        "client: a key is decided once", "client: the same key has the same answer"
    ];
    a_grace_given_twice: GraceTwice, in_memory, ["step: one grace for each hold"];
    a_limit_that_forgets_other_devices: LimitForgetsHolds, in_memory, ["invariants: counters"];
    a_price_of_now: PriceOfNow, in_memory, ["invariants: orders"];
    a_callback_judged_twice: CallbackJudgedTwice, in_memory, ["provider: a message has its say once"];
    silence_taken_for_a_no: SilenceIsFailure, in_memory, ["step: only the provider's word fails an operation"];
    surplus_money_that_is_kept: SurplusKept, in_memory, [
        "liveness: everything comes to an end", "money: the provider keeps what was sold, and nothing else"
    ];
    a_return_that_a_crash_forgets: ReturnOnlyInMemory, in_memory, [
        "liveness: everything comes to an end", "money: the provider keeps what was sold, and nothing else",
        "provider: no key past its life"
    ];
    a_second_attempt_beside_the_first: SecondAttemptWhileOpen, in_memory, ["invariants: orders"];
    a_cancelled_order_that_keeps_its_seats: CancelledKeepsSeats, in_memory, ["invariants: seats"];
    seats_given_back_while_paid: ReleasedWhilePaid, in_memory, [
        "step: what is being paid is not given back", "step: a doubt keeps the seats"
    ];
    a_clock_that_runs_back: ClockRunsBack, in_memory, ["invariants: log"];
    open_payments_never_counted_down: PendingNeverCountedDown, in_memory, ["invariants: counters"];
    an_amount_that_is_not_compared: AmountNotCompared, in_memory, [
        "money: the provider keeps what was sold, and nothing else", "liveness: everything comes to an end"
    ];
    a_doubt_that_releases_the_seats: DoubtReleasesSeats, in_memory, ["step: a doubt keeps the seats"];
    more_places_than_there_are: AreaOversold, in_memory, ["invariants: places"];
    overdue_places_that_are_counted: OverduePlacesCounted, in_memory, ["step: what is free is anyone's"];
    a_cap_that_is_not_asked: EventCapForgotten, in_memory, ["invariants: places"];
    sold_places_that_stay_held: SoldPlacesStayHeld, in_memory, ["invariants: places"];
    places_that_are_not_given_back: PlacesNotGivenBack, in_memory, ["invariants: places", "invariants: live holds"];
    capacity_that_does_not_arrive: TransferLost, in_memory, ["invariants: places"];
    seats_set_aside_for_anyone: AllocationNotAsked, in_memory, ["invariants: allocations"];
    an_access_code_without_end: CodeNotCounted, in_memory, ["step: an access code allows so many tickets"];
    an_access_code_that_wears_out: CodeNotGivenBack, in_memory, ["invariants: access codes"];
    a_refund_without_bounds: RefundNotBounded, in_memory, ["invariants: refunds"];
    a_refund_taken_for_another: RefundBaseForgotten, in_memory, [
        "step: the money comes back before the seats do", "money: the provider keeps what was sold, and nothing else"
    ];
    seats_freed_before_the_money_is_back: SeatsFreedBeforeRefund, in_memory, [
        "invariants: refunds", "step: the money comes back before the seats do"
    ];
    a_board_that_does_not_follow: BoardNotFollowed, in_memory, [
        "a batch comes to what its requests come to one by one", "step: what is chosen can be had", "panic"
    ];
    a_choice_that_forgets_what_is_over: ChoiceForgetsDue, in_memory, ["step: the best there are are chosen"];
    a_name_that_is_not_kept: NameNotKept, in_memory, ["provider: confirmed only what the books can name"];
    a_key_used_past_its_life: SentPastHorizon, in_memory, ["provider: no key past its life"];
    a_return_given_up_in_silence: SilenceEndsReturn, in_memory, [
        "step: only the provider's word fails an operation"
    ];
    a_new_key_each_time: NewKeyEachTime, in_memory, ["provider: one key for each operation"];
    an_expiry_that_is_not_logged: ExpiryNotLogged, on_sqlite, ["audit"];
    sold_tickets_that_are_not_read: SoldNotRead, on_sqlite, ["the database decides as the store in memory"];
    a_deadline_that_is_not_written: DeadlineNotWritten, on_sqlite, [
        "the database decides as the store in memory", "the database shows what the store in memory shows", "audit"
    ];
    returned_places_that_are_not_written: ReturnedPlacesNotWritten, on_sqlite, [
        "the database decides as the store in memory", "the database shows what the store in memory shows", "audit"
    ];
    returned_places_that_a_server_does_not_write: ReturnedPlacesNotWritten, on_postgres, [
        "the database decides as the store in memory", "the database shows what the store in memory shows", "audit"
    ];
    an_expiry_that_a_server_does_not_log: ExpiryNotLogged, on_postgres, ["audit"];
    sold_tickets_that_a_server_does_not_read: SoldNotRead, on_postgres, ["the database decides as the store in memory"];
    a_deadline_that_a_server_does_not_write: DeadlineNotWritten, on_postgres, [
        "the database decides as the store in memory", "the database shows what the store in memory shows", "audit"
    ];
    rows_read_outside_the_lock: ReadOutsideLock, in_memory, [
        "invariants: log", "invariants: live holds", "invariants: orders", "invariants: seats", "invariants: counters",
        "client: a key is decided once"
    ];
    a_time_read_before_the_lock: TimeBeforeLock, in_memory, ["step: the time is read under the lock"];
    a_key_kept_in_another_transaction: KeyKeptApart, in_memory, [
        "client: a key is decided once", "client: the same key has the same answer"
    ];
    an_answer_before_the_commit: AnsweredBeforeCommit, in_memory, [
        "client: a key is decided once", "client: the same key has the same answer",
        "client: nothing acknowledged is lost", "provider: a message has its say once"
    ];
    an_unknown_commit_told_as_not_done: UnknownIsNotDone, in_memory, [
        "client: what is said to be not done isn't"
    ];
}
