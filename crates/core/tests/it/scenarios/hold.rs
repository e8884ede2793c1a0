//! Placing holds, giving them back, and their end.

use crate::script::check;

#[test]
fn a_group_gets_all_its_seats_or_none() {
    check(
        "hall A1 A2 A3 A4 price 1000; ttl 10s
        1s ada holds A2 A3 as h1 -> held until 11s
        2s ben holds A1 A2 A3 A4 -> unavailable A2 A3
        A1 A4 free; A2 A3 held by h1
        2s ben holds A1 A4 as h2 -> held until 12s
        3s ada holds A1 -> unavailable A1
        3s operator withholds A1 -> unavailable A1",
    );
}

#[test]
fn what_a_hold_may_be_is_bounded() {
    check(
        "hall A1 A2 A3 A4 price 1000; seats_max 2 tickets_max 3
        1s ada holds A1 A2 A3 -> too many seats, 2 at most
        1s ada holds -> too many seats, 2 at most
        1s ada holds A1 A2 as h1 -> held until 301s
        1s ada holds A3 A4 -> account limit, 2 of 3
        1s ada holds A3 as h2 -> held until 301s
        1s ada holds A4 -> account limit, 3 of 3
        2s ada releases h1 -> released
        2s ada holds A1 A4 as h3 -> held until 302s",
    );
}

#[test]
fn the_best_seats_are_chosen_in_the_same_step_that_holds_them() {
    check(
        "hall A1 A2 A3 A4 A5 A6 B1 B2 B3 price 1000; ttl 10s
        1s ada holds best 2 as h1 -> held until 11s; A1 A2 held by h1
        together
        1s ben holds best 2 as h2 -> held until 11s
        1s cleo holds A5 as h3 -> held until 11s
        1s dora holds best 2 as h4 -> held until 11s
        1s ada releases h1 -> released
        1s emil holds best 3 -> not enough available
        1s emil holds best 1 of A as h5 -> held until 11s
        end
        A3 A4 held by h2; A5 held by h3; B1 B2 held by h4; A1 held by h5; A2 A6 B3 free
        2s fay holds best 2 of B -> not enough available
        2s fay holds best 1 of B as h6 -> held until 12s; B3 held by h6",
    );
}

#[test]
fn a_choice_is_bounded_and_repeated_like_any_hold() {
    check(
        "hall A1 A2 A3 A4 price 1000; ttl 10s seats_max 2 tickets_max 3
        1s ada holds best 3 -> too many seats, 2 at most
        1s ada holds best 0 -> too many seats, 2 at most
        1s ada holds best 2 as h1 key k1 -> held until 11s
        1s ada holds best 2 -> account limit, 2 of 3
        2s ada holds best 2 key k1 -> held until 11s again
        2s ben holds best 2 as h2 -> held until 12s
        2s cleo holds best 1 key k2 -> not enough available
        2s ada releases h1 -> released
        // The refusal was this request's answer: another request has the seat.
        3s cleo holds best 1 key k2 -> not enough available again
        3s cleo holds best 1 as h3 key k3 -> held until 13s; A1 held by h3",
    );
}

/// who chooses doesn't wait for the expirer, and ends no hold whose seats are left alone.
#[test]
fn a_choice_takes_over_what_is_over() {
    check(
        "hall A1 A2 A3 A4 price 1000; ttl 10s avoids_orphans
        1s ada holds A1 A2 as h1 -> held until 11s
        2s ben holds A3 A4 as h2 -> held until 12s
        10.999s cleo holds best 2 -> not enough available
        11s cleo holds best 2 as h3 -> held until 21s
        h1 EXPIRED; A1 A2 held by h3; A3 A4 held by h2
        12s dora holds best 3 -> not enough available
        h2 ACTIVE until 12s; A3 held by h2",
    );
}

/// at the deadline itself a hold is over, for all alike.
#[test]
fn at_the_deadline_itself_the_seat_is_anyones() {
    check(
        "hall A1 price 1000; ttl 10s
        100s ada holds A1 as h1 -> held until 110s
        109.999s ben holds A1 -> unavailable A1
        109.999s h1 expires -> not due
        110s ben holds A1 as h2 -> held until 120s
        h1 EXPIRED; A1 held by h2
        120.001s cleo holds A1 as h3 -> held until 130.001s
        h2 EXPIRED; A1 held by h3
        130.001s h3 expires -> expired
        A1 free; h3 EXPIRED",
    );
}

#[test]
fn late_repeated_and_foreign_expiry_messages_touch_nothing_else() {
    check(
        "hall A1 A2 price 1000; ttl 10s
        100s ada holds A1 A2 as h1 -> held until 110s
        110s h1 expires -> expired
        log hold.expired
        110s ben holds A1 as h2 -> held until 120s
        111s h1 expires -> not due
        120s h1 expires -> not due
        A1 held by h2; A2 free
        120s ada releases h1 -> released
        A1 held by h2",
    );
}

#[test]
fn a_takeover_of_one_seat_ends_the_whole_hold_and_its_order() {
    check(
        "hall A1 A2 A3 price 1000; ttl 10s grace 0s in_doubt release
        100s ada holds A1 A2 A3 as h1 -> held until 110s
        100s ada pays h1 as o1 -> begun
        110s ben holds A2 as h2 -> held until 120s
        h1 EXPIRED; A1 A3 free; A2 held by h2
        o1 EXPIRED DECLINED; o1 did authorize FAILED; pending 0
        110s ben holds A1 A3 as h3 -> held until 120s",
    );
}

#[test]
fn one_hold_takes_over_several() {
    check(
        "hall A1 A2 A3 price 1000; ttl 10s
        100s ada holds A1 as h1 -> held until 110s
        100s ben holds A2 A3 as h2 -> held until 110s
        110s cleo holds A1 A2 as h3 -> held until 120s
        h1 EXPIRED; h2 EXPIRED; A1 A2 held by h3; A3 free",
    );
}

/// whether an expired hold has been swept makes no difference to its account.
#[test]
fn a_hold_past_its_time_counts_for_nothing() {
    check(
        "hall A1 A2 A3 price 1000; ttl 10s tickets_max 2
        100s ada holds A1 A2 as h1 -> held until 110s
        109.999s ada holds A3 -> account limit, 2 of 2
        110s ada holds A3 as h2 -> held until 120s
        h1 ACTIVE until 110s
        110s ada holds A1 as h3 -> held until 120s
        h1 EXPIRED; A2 free",
    );
}

/// an id is never used again, and what was paid for the old hold doesn't pay for the new one.
#[test]
fn the_same_buyer_with_the_same_seat_has_a_new_hold() {
    check(
        "hall A1 price 1000; ttl 10s grace 0s in_doubt release
        100s ada holds A1 as h1 -> held until 110s
        100s ada pays h1 as o1 -> begun
        100s o1 is referenced pi_1 -> may confirm
        110s ada holds A1 as h2 -> held until 120s
        111s callback ev1 about pi_1 says authorized -> refund_pending
        A1 held by h2; h2 ACTIVE until 120s; cases late_success o1
        112s ada pays h2 as o2 -> begun
        112s o2 is referenced pi_2 -> may confirm
        113s o2 answers authorized -> applied
        A1 sold to o2; o1 EXPIRED VOID_PENDING",
    );
}

#[test]
fn a_hold_is_given_back_once_and_by_its_owner() {
    check(
        "hall A1 A2 price 1000; ttl 10s
        1s ada holds A1 as h1 -> held until 11s
        2s ben releases h1 -> not found
        2s ada releases h1 -> released
        A1 free; h1 RELEASED; log hold.released
        2s ada releases h1 -> released
        3s ben holds A1 as h2 -> held until 13s
        4s operator releases h2 -> released
        5s ada holds A1 as h3 -> held until 15s
        15s ada releases h3 -> released
        h3 EXPIRED; A1 free; log hold.expired
        15s ada pays h3 -> hold expired
        15s ada pays h1 -> hold not active",
    );
}

#[test]
fn a_hold_with_an_open_payment_is_not_given_back() {
    check(
        "hall A1 price 1000; ttl 100s
        1s ada holds A1 as h1 -> held until 101s
        1s ada pays h1 as o1 -> begun
        1s o1 is referenced pi_1 -> may confirm
        2s ada releases h1 -> payment pending
        3s o1 answers declined -> applied
        h1 ACTIVE until 101s
        4s ada pays h1 -> begun
        4s ada releases h1 -> payment pending
        5s o1 answers refused -> applied
        5s ada releases h1 -> released
        h1 RELEASED; o1 CANCELLED DECLINED; A1 free
        6s ada releases h1 -> released",
    );
}

#[test]
fn a_sold_hold_is_not_given_back() {
    check(
        "hall A1 price 1000; ttl 100s
        1s ada holds A1 as h1 -> held until 101s
        1s ada pays h1 as o1 -> begun
        1s o1 is referenced pi_1 -> may confirm
        2s o1 answers authorized -> applied
        3s ada releases h1 -> hold not active
        200s h1 expires -> not due
        200s ben holds A1 -> unavailable A1
        A1 sold to o1",
    );
}

/// the same request has the same answer, whatever became of the hold since.
#[test]
fn a_repeated_request_has_its_first_answer() {
    check(
        "hall A1 A2 price 1000; ttl 10s
        1s ada holds A1 as h1 key k1 -> held until 11s
        2s ada holds A1 as h1 key k1 -> held until 11s again
        2s ada holds A2 key k1 -> key reused
        3s ada releases h1 -> released
        4s ada holds A1 as h1 key k1 -> held until 11s again
        A1 free
        4s ben holds A1 as h2 key k2 -> held until 14s
        5s ada holds A1 key k3 -> unavailable A1
        6s ben releases h2 -> released
        7s ada holds A1 key k3 -> unavailable A1 again
        7s ada holds A1 as h3 key k4 -> held until 17s
        20s ada holds A1 as h1 key k1 -> held until 11s again
        20s ada holds A1 as h3 key k4 -> held until 17s again",
    );
}

/// A repeated answer shows the hold as it was placed, not the payment it has come to since.
#[test]
fn a_repeated_hold_is_shown_as_it_was_placed() {
    check(
        "hall A1 price 1000; ttl 10s grace 10s
        1s ada holds A1 as h1 key k1 -> held until 11s
        1s ada pays h1 as o1 -> begun
        1s o1 is referenced pi_1 -> may confirm
        21s h1 expires -> in doubt
        22s ada holds A1 as h1 key k1 -> held until 11s again",
    );
}

/// What was never decided about the seats may be asked again with the same key.
#[test]
fn what_passes_by_itself_is_not_remembered() {
    check(
        "hall A1 price 1000; ttl 10s
        1s operator pauses -> set
        1s ada holds A1 key k1 -> paused
        2s operator opens -> set
        2s ada holds A1 as h1 key k1 -> held until 12s
        3s operator closes -> set
        3s ada holds A1 as h1 key k1 -> held until 12s again",
    );
}

#[test]
fn requests_of_one_batch_see_each_other() {
    check(
        "hall A1 A2 A3 price 1000; ttl 10s tickets_max 2
        together
        1s ada holds A1 A2 as h1 key k1 -> held until 11s
        1s ben holds A2 A3 -> unavailable A2
        1s ada holds A1 A2 as h1 key k1 -> held until 11s again
        1s ada holds A3 key k1 -> key reused
        1s ada holds A3 -> account limit, 2 of 2
        1s cleo holds A3 as h2 -> held until 11s
        end
        A1 A2 held by h1; A3 held by h2
        together
        11s ben holds A1 as h3 -> held until 21s
        11s h1 expires -> not due
        11s cleo holds A2 as h4 -> held until 21s
        11s h2 expires -> expired
        11s h2 expires -> not due
        11s ada releases h1 -> released
        11s ada holds A3 as h5 -> held until 21s
        end
        h1 EXPIRED; h2 EXPIRED; A1 held by h3; A2 held by h4; A3 held by h5",
    );
}

/// The event's own time decides when the shell's clock has fallen behind it.
#[test]
fn the_clock_never_runs_backwards() {
    check(
        "hall A1 A2 price 1000; ttl 10s
        100s ada holds A1 as h1 -> held until 110s
        50s ben holds A2 as h2 -> held until 110s
        110s ben holds A1 as h3 -> held until 120s
        105s h2 expires -> expired
        105s ada pays h1 -> hold expired
        105s ben pays h2 -> hold expired
        119s cleo holds A1 key k1 -> unavailable A1
        90s ada holds A2 as h4 -> held until 129s",
    );
}
