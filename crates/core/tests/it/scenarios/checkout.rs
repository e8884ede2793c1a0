//! Beginning to pay.

use crate::script::check;

/// PAYMENT_PENDING once, with the one grace; a decline leads back to the first deadline.
#[test]
fn a_declined_card_leaves_the_hold_its_first_deadline() {
    check(
        "hall A1 A2 price 1000; ttl 300s grace 120s
        0s ada holds A1 A2 as h1 -> held until 300s
        10s ada pays h1 as o1 key k1 -> begun
        h1 PAYMENT_PENDING until 420s; o1 AWAITING_PAYMENT PENDING; pending 1
        10s o1 is referenced pi_1 -> may confirm
        20s o1 answers declined -> applied
        h1 ACTIVE until 300s; o1 AWAITING_PAYMENT DECLINED; A1 A2 held by h1; pending 0
        20s ada pays h1 as o1 key k1 -> begun again
        30s ada pays h1 as o1 key k2 -> begun
        h1 ACTIVE until 300s; o1 AWAITING_PAYMENT PENDING; pending 0
        o1 did authorize FAILED, authorize PENDING
        31s o1 is referenced pi_2 -> may confirm
        32s o1 answers authorized -> applied
        o1 CONFIRMED AUTHORIZED; A1 A2 sold to o1; pending 0",
    );
}

#[test]
fn a_decline_after_the_first_deadline_ends_the_hold() {
    check(
        "hall A1 A2 price 1000; ttl 100s grace 100s
        0s ada holds A1 as h1 -> held until 100s
        0s ben holds A2 as h2 -> held until 100s
        10s ada pays h1 as o1 -> begun
        10s ben pays h2 as o2 -> begun
        10s o1 is referenced pi_1 -> may confirm
        10s o2 is referenced pi_2 -> may confirm
        99.999s o1 answers declined -> applied
        h1 ACTIVE until 100s; A1 held by h1
        100s o2 answers declined -> applied
        h2 EXPIRED; o2 EXPIRED DECLINED; A2 free; pending 0
        100s ben pays h2 -> hold expired",
    );
}

/// A second attempt runs within the first deadline, by the plain rule of a hold.
#[test]
fn a_second_attempt_gets_no_second_grace() {
    check(
        "hall A1 price 1000; ttl 100s grace 100s
        0s ada holds A1 as h1 -> held until 100s
        0s ada pays h1 as o1 -> begun
        0s o1 is referenced pi_1 -> may confirm
        1s o1 answers declined -> applied
        95.001s ada pays h1 -> too little time
        95s ada pays h1 as o1 -> begun
        h1 ACTIVE until 100s
        95s o1 is referenced pi_2 -> may confirm
        100s ben holds A1 as h2 -> held until 200s
        h1 EXPIRED; o1 EXPIRED VOID_PENDING
        100s callback ev1 about pi_2 says authorized -> refund_pending
        cases late_success o1
        101s o1#2 void answers voided -> applied
        o1 EXPIRED VOIDED; cases none; A1 held by h2
        o1 did authorize FAILED, authorize SUCCEEDED, void SUCCEEDED",
    );
}

#[test]
fn at_the_deadline_itself_it_is_too_late_to_pay() {
    check(
        "hall A1 A2 price 1000; ttl 10s grace 120s
        0s ada holds A1 as h1 -> held until 10s
        0s ben holds A2 as h2 -> held until 10s
        9.999s ada pays h1 as o1 -> begun
        h1 PAYMENT_PENDING until 130s
        10s ben pays h2 key k1 -> hold expired
        h2 ACTIVE until 10s
        10s ben holds A2 as h3 -> held until 20s
        10s ben pays h2 key k1 -> hold expired again",
    );
}

/// without grace, five seconds before the deadline are the least.
#[test]
fn too_little_time_is_left() {
    check(
        "hall A1 A2 price 1000; ttl 10s grace 0s
        0s ada holds A1 as h1 -> held until 10s
        0s ben holds A2 as h2 -> held until 10s
        5s ada pays h1 as o1 -> begun
        5.001s ben pays h2 key k1 -> too little time
        5.001s ben pays h2 key k1 -> too little time again
        h2 ACTIVE until 10s",
    );
}

#[test]
fn a_hold_is_paid_by_its_owner() {
    check(
        "hall A1 price 1000
        0s ada holds A1 as h1 -> held until 300s
        1s ben pays h1 -> not found
        1s ada pays h1 as o1 -> begun",
    );
}

/// how many payments may be open at once, for an account and for the event.
#[test]
fn open_payments_are_capped() {
    check(
        "hall A1 A2 A3 A4 price 1000; ttl 100s grace 50s account_pending_max 1 pending_max 2
        0s ada holds A1 as h1 -> held until 100s
        0s ada holds A2 as h2 -> held until 100s
        0s ben holds A3 as h3 -> held until 100s
        0s cleo holds A4 as h4 -> held until 100s
        1s ada pays h1 as o1 -> begun
        1s ada pays h2 -> payment pending
        1s ben pays h3 as o3 -> begun
        pending 2
        1s cleo pays h4 key k1 -> payments saturated
        2s o1 is referenced pi_1 -> may confirm
        2s o1 answers declined -> applied
        pending 1
        2s cleo pays h4 as o4 key k1 -> begun
        pending 2
        3s ada pays h1 as o1 -> begun
        3s ada pays h2 -> payments saturated
        pending 2",
    );
}

/// Where a grace ends by the clock, a hold past it stands in nobody's way, swept or not.
#[test]
fn a_payment_past_its_time_counts_for_nothing_where_the_clock_ends_it() {
    check(
        "hall A1 A2 price 1000; ttl 10s grace 0s in_doubt release account_pending_max 1
        0s ada holds A1 as h1 -> held until 10s
        0s ada pays h1 as o1 -> begun
        9s ada holds A2 as h2 -> held until 19s
        9.999s ada pays h2 -> payment pending
        10s ada pays h2 as o2 -> begun
        pending 2
        10s h1 expires -> expired
        pending 1",
    );
}

/// the limit holds again when the order is to be confirmed.
#[test]
fn the_account_limit_holds_from_hold_to_confirmation() {
    check(
        "hall A1 A2 A3 price 1000; tickets_max 2
        0s ada holds A1 A2 as h1 -> held until 300s
        1s ada holds A3 -> account limit, 2 of 2
        ada has 1 from elsewhere
        2s ada pays h1 key k1 -> account limit, 3 of 2
        ada has 0 from elsewhere
        2s ada pays h1 key k1 -> account limit, 3 of 2 again
        3s ada pays h1 as o1 key k2 -> begun
        3s o1 is referenced pi_1 -> may confirm
        ada has 1 from elsewhere
        4s o1 answers authorized -> money back
        cases late_success o1; A1 A2 held by h1; h1 ACTIVE until 300s; o1 AWAITING_PAYMENT VOID_PENDING",
    );
}

#[test]
fn grace_counts_in_the_account_limit() {
    check(
        "hall A1 A2 A3 price 1000; ttl 10s grace 10s tickets_max 2
        0s ada holds A1 A2 as h1 -> held until 10s
        0s ada pays h1 as o1 -> begun
        0s o1 is referenced pi_1 -> may confirm
        15s ada holds A3 -> account limit, 2 of 2
        20s h1 expires -> in doubt
        25s ada holds A3 -> account limit, 2 of 2
        26s o1 answers declined -> applied
        26s ada holds A3 as h2 -> held until 36s",
    );
}

/// INV-5: prices are those of the hold, or the buyer is told.
#[test]
fn a_price_that_has_changed_is_not_paid() {
    check(
        "hall A1 B1 price 1000; ttl 300s
        0s ada holds A1 as h1 -> held until 300s
        0s ben holds B1 as h2 -> held until 300s
        1s operator prices B 1200 -> prices 2
        2s ada pays h1 as o1 -> begun
        2s ben pays h2 key k1 -> price changed
        2s ben releases h2 -> released
        2s ben holds B1 as h3 -> held until 302s
        3s ben pays h3 as o3 -> begun
        3s o1 is referenced pi_1 -> may confirm
        4s operator prices A 1500 -> prices 3
        5s o1 answers authorized -> applied
        o1 CONFIRMED AUTHORIZED
        6s o3 is referenced pi_3 -> may confirm
        6s o3 answers authorized amount 1000 -> money back
        6s o3 answers authorized amount 1200 -> money back
        cases amount_mismatch o3
        7s operator prices C 1 -> not found",
    );
}

#[test]
fn ten_attempts_are_enough() {
    let mut page = String::from(
        "hall A1 price 1000; ttl 300s
        0s ada holds A1 as h1 -> held until 300s\n",
    );
    for attempt in 1..=10 {
        page += &format!("{attempt}s ada pays h1 as o1 -> begun\n{attempt}s o1 answers refused -> applied\n");
    }
    page += "11s ada pays h1 key k1 -> attempts exhausted
        12s ada pays h1 key k1 -> attempts exhausted again
        h1 ACTIVE until 300s; o1 AWAITING_PAYMENT DECLINED
        12s ada releases h1 -> released
        o1 CANCELLED DECLINED";
    check(&page);
}

/// Case C82: one hold, several checkouts at once, each with its own key and card.
#[test]
fn one_hold_has_one_order_and_one_attempt() {
    let copies = |at: &str, from: u32, said: &[&str]| {
        let line = |(number, said): (u32, &&str)| format!("{at} ada pays h1 key k{number} -> {said}\n");
        let lines: String = (from..).zip(said).map(line).collect();
        format!("together\n{lines}end\n")
    };
    let mut said = ["payment pending"; 8];
    said[0] = "begun";
    let page = "hall A1 price 1000; ttl 10s grace 10s
        0s ada holds A1 as h1 -> held until 10s\n";
    check(&format!(
        "{page}{}pending 1\n{}",
        copies("1s", 0, &said),
        copies("2s", 10, &["payment pending"; 2])
    ));

    // Half of them come in the instant in which the hold ends.
    let at_the_end = copies("10s", 4, &["payment pending"; 4]);
    check(&format!("{page}{}{at_the_end}", copies("9.999s", 0, &said[..4])));
    let too_late = copies("10s", 0, &["hold expired"; 4]);
    check(&format!("{page}{too_late}h1 ACTIVE until 10s; pending 0"));
    check(&format!(
        "{page}together
        10s ben holds A1 as h2 -> held until 20s
        10s ada pays h1 key k1 -> hold expired
        10s ada pays h1 key k2 -> hold expired
        end
        A1 held by h2; pending 0"
    ));

    // The same after a decline, when the hold is ACTIVE again and has its order already.
    let declined = "1s ada pays h1 as o1 -> begun
        1s o1 is referenced pi_1 -> may confirm
        2s o1 answers declined -> applied\n";
    let page = format!("{page}{declined}{}", copies("3s", 0, &said));
    check(&format!("{page}o1 did authorize FAILED, authorize PENDING; pending 0"));
}

/// Until the reference is kept nothing can have been paid: such an attempt ends at once.
#[test]
fn an_attempt_that_was_never_sent_ends_with_its_hold() {
    check(
        "hall A1 price 1000; ttl 10s grace 10s
        0s ada holds A1 as h1 -> held until 10s
        1s ada pays h1 as o1 -> begun
        2s o1 answers none -> applied
        o1 AWAITING_PAYMENT UNKNOWN
        20s h1 expires -> expired
        o1 EXPIRED DECLINED; A1 free
        o1 due 4s
        21s o1 is referenced pi_1 -> must not confirm
        o1 did authorize FAILED; o1 due 4s",
    );
}

/// The name of an attempt comes late when the first answer was lost.
#[test]
fn an_attempt_goes_on_when_making_it_brought_no_answer_at_first() {
    check(
        "hall A1 price 1000
        0s ada holds A1 as h1 -> held until 300s
        1s ada pays h1 as o1 -> begun
        2s o1 answers none -> applied
        4s o1 is referenced pi_1 -> may confirm
        5s o1 answers authorized -> applied
        o1 CONFIRMED AUTHORIZED",
    );
}

#[test]
fn an_attempt_has_one_name_and_is_confirmed_in_time() {
    check(
        "hall A1 price 1000; ttl 10s grace 0s
        0s ada holds A1 as h1 -> held until 10s
        1s ada pays h1 as o1 -> begun
        2s o1 is referenced pi_1 -> may confirm
        o1 due 22s
        2s o1 is referenced pi_1 -> may confirm
        2s o1 is referenced pi_2 -> must not confirm
        9.999s o1 is referenced pi_1 -> may confirm
        10s o1 is referenced pi_1 -> must not confirm
        o1 due 10s",
    );
}

/// A declined attempt is over, though its order is still to be paid: a worker that comes late with it is stopped.
#[test]
fn an_attempt_that_has_failed_is_not_confirmed_again() {
    check(
        "hall A1 price 1000
        0s ada holds A1 as h1 -> held until 300s
        1s ada pays h1 as o1 -> begun
        2s o1 is referenced pi_1 -> may confirm
        3s callback ev1 about pi_1 says declined -> applied
        h1 ACTIVE until 300s; o1 AWAITING_PAYMENT DECLINED
        4s o1 is referenced pi_1 -> must not confirm
        5s o1 answers unconfirmed -> nothing",
    );
}

/// Two attempts can't have one name; the second is not confirmed, and nobody else's work is undone by it.
#[test]
fn a_name_that_is_taken_is_not_taken_twice() {
    check(
        "hall A1 A2 price 1000
        0s ada holds A1 as h1 -> held until 300s
        0s ben holds A2 as h2 -> held until 300s
        1s ada pays h1 as o1 -> begun
        1s ben pays h2 as o2 -> begun
        2s o1 is referenced pi_1 -> may confirm
        2s o2 is referenced pi_1 -> must not confirm
        3s o2 answers authorized named pi_1 unmarked -> conflict
        cases callback_conflict o2; o2 AWAITING_PAYMENT PENDING
        4s o1 answers authorized -> applied
        A1 sold to o1; A2 held by h2",
    );
}
