//! What the provider answers, and does not.

use crate::script::check;

#[test]
fn an_authorized_payment_sells_and_is_captured() {
    check(
        "hall A1 A2 price 1000
        0s ada holds A1 A2 as h1 -> held until 300s
        1s ada pays h1 as o1 -> begun
        1s o1 is referenced pi_1 -> may confirm
        2s o1 answers processing -> nothing
        3s o1 answers requires_action -> applied
        o1 AWAITING_PAYMENT REQUIRES_ACTION; o1 due 23s
        9s o1 answers processing -> applied
        o1 AWAITING_PAYMENT PENDING
        10s o1 answers authorized -> applied
        o1 CONFIRMED AUTHORIZED; A1 A2 sold to o1; h1 CONVERTED; pending 0
        11s o1 capture answers authorized -> already paid, send
        12s o1 capture answers none -> applied
        o1 CONFIRMED AUTHORIZED
        14s o1 capture answers captured -> applied
        o1 CONFIRMED CAPTURED; o1 did authorize SUCCEEDED, capture SUCCEEDED
        15s o1 answers captured -> already paid",
    );
}

/// The tie rule at confirmation, where the clock ends a payment.
#[test]
fn a_success_at_the_deadline_is_late_where_the_clock_decides() {
    let page = "hall A1 price 1000; ttl 10s grace 5s in_doubt release
        0s ada holds A1 as h1 -> held until 10s
        1s ada pays h1 as o1 -> begun
        1s o1 is referenced pi_1 -> may confirm\n";
    check(&format!("{page}14.999s o1 answers authorized -> applied; A1 sold to o1"));
    for late in ["15s", "15.001s"] {
        check(&format!(
            "{page}{late} o1 answers authorized -> money back
            A1 free; h1 EXPIRED; o1 EXPIRED VOID_PENDING; cases late_success o1; pending 0
            20s o1 void answers authorized -> money back, send
            21s o1 void answers voided -> applied
            o1 EXPIRED VOIDED; cases none"
        ));
    }
    check(&format!(
        "{page}14.999s ben holds A1 -> unavailable A1
        14.999s h1 expires -> not due
        15s h1 expires -> expired
        A1 free; o1 EXPIRED VOID_PENDING
        16s o1 void answers declined -> applied, send
        17s o1 void answers voided -> applied
        o1 EXPIRED VOIDED; cases none; o1 did authorize FAILED, void SUCCEEDED"
    ));
    check(&format!(
        "{page}15s ben holds A1 as h2 -> held until 25s
        h1 EXPIRED; o1 EXPIRED VOID_PENDING; pending 0"
    ));
}

/// What never reached the provider is sent again, under its own key, as long as its order awaits it in time.
#[test]
fn an_attempt_that_was_not_confirmed_is_sent_again_in_time() {
    check(
        "hall A1 price 1000; ttl 10s grace 5s
        0s ada holds A1 as h1 -> held until 10s
        1s ada pays h1 as o1 -> begun
        1s o1 is referenced pi_1 -> may confirm
        2s o1 answers none -> applied
        3s o1 answers unconfirmed -> nothing, send
        o1 AWAITING_PAYMENT UNKNOWN
        4s o1 answers requires_action -> applied
        14.999s o1 answers unconfirmed -> nothing, send
        o1 AWAITING_PAYMENT REQUIRES_ACTION
        15s o1 answers unconfirmed -> applied
        o1 AWAITING_PAYMENT VOID_PENDING",
    );
}

const IN_DOUBT: &str = "hall A1 A2 price 1000; ttl 10s grace 5s in_doubt keep
    0s ada holds A1 A2 as h1 -> held until 10s
    1s ada pays h1 as o1 -> begun
    1s o1 is referenced pi_1 -> may confirm
    2s o1 answers none -> applied
    3s o1 answers busy 100s -> nothing
    14.999s h1 expires -> not due
    14.999s ben holds A1 -> unavailable A1
    15s ben holds A1 -> unavailable A1
    15s h1 expires -> in doubt
    h1 PAYMENT_PENDING until 15s in doubt; cases in_doubt o1; o1 due 15s; pending 1
    16s h1 expires -> in doubt
    16s ben holds A2 -> unavailable A2
    16s ada pays h1 -> payment pending
    16s ada releases h1 -> payment pending
    16s operator withholds A1 -> unavailable A1
    cases in_doubt o1\n";

fn in_doubt(rest: &str) {
    check(&format!("{IN_DOUBT}{rest}"));
}

/// R-73, `in_doubt = keep`: the seats stay bound until there is proof, and each proof has its end.
#[test]
fn a_doubt_ends_by_proof() {
    in_doubt(
        "600s o1 answers authorized -> applied
        A1 A2 sold to o1; o1 CONFIRMED AUTHORIZED; cases none; pending 0",
    );
    in_doubt(
        "600s o1 answers declined -> applied
        A1 A2 free; h1 EXPIRED; o1 EXPIRED DECLINED; cases none; pending 0",
    );
    in_doubt(
        "600s o1 answers refused -> applied
        A1 A2 free; o1 EXPIRED DECLINED; cases none",
    );
    in_doubt(
        "600s o1 answers voided -> applied
        A1 A2 free; o1 EXPIRED DECLINED; cases none",
    );
    // What could still become a payment is called off, and the seats are free when that is proven.
    for open in ["requires_action", "unconfirmed"] {
        in_doubt(&format!(
            "600s o1 answers {open} -> applied
            o1 AWAITING_PAYMENT VOID_PENDING; A1 held by h1; cases in_doubt o1
            601s o1 answers {open} -> nothing
            601s o1 void answers {open} -> nothing, send
            602s o1 void answers none -> applied
            603s o1 void answers voided -> applied
            A1 A2 free; h1 EXPIRED; o1 EXPIRED VOIDED; cases none; pending 0"
        ));
    }
    // What the provider is working on is waited for: it can't be called off, and it may yet succeed.
    in_doubt(
        "600s o1 answers processing -> applied
        o1 AWAITING_PAYMENT PENDING; cases in_doubt o1; o1 due 899.500s
        890s o1 answers processing -> nothing
        900s o1 answers authorized -> applied
        A1 A2 sold to o1; cases none",
    );
}

/// Money that is on its way back pays for nothing: otherwise the seats would be sold and their money let go.
#[test]
fn a_success_of_a_payment_already_called_off_does_not_sell() {
    in_doubt(
        "600s o1 answers requires_action -> applied
        601s callback ev1 about pi_1 says authorized -> refund_pending
        A1 A2 free; h1 EXPIRED; o1 EXPIRED VOID_PENDING; cases late_success o1; pending 0
        602s o1 void answers authorized -> money back, send
        603s o1 void answers voided -> applied
        o1 EXPIRED VOIDED; cases none",
    );
}

/// The same when what was read first is recorded last.
#[test]
fn a_success_read_before_the_money_was_let_go_does_not_sell() {
    check(
        "hall A1 price 1000; ttl 300s
        0s ada holds A1 as h1 -> held until 300s
        1s ada pays h1 as o1 -> begun
        1s o1 is referenced pi_1 -> may confirm
        2s callback ev1 about pi_1 claims o1 content odd unread -> parked
        3s callback ev1 about pi_1 claims o1 content other unread -> conflict
        4s operator resolves callback_conflict o1 with void -> acted
        4s o1 is referenced pi_1 -> must not confirm
        5s o1 answers unconfirmed -> nothing
        6s o1 void answers voided -> applied
        h1 ACTIVE until 300s; o1 AWAITING_PAYMENT VOIDED
        7s o1 answers authorized -> nothing
        o1 AWAITING_PAYMENT VOIDED; A1 held by h1; o1 did authorize FAILED, void SUCCEEDED
        8s ada pays h1 -> begun",
    );
}

/// S1's policy: the seats go at the deadline, and money that comes late goes back.
#[test]
fn where_the_clock_decides_a_doubt_frees_the_seats() {
    let page = "hall A1 price 1000; ttl 10s grace 5s in_doubt release
        0s ada holds A1 as h1 -> held until 10s
        1s ada pays h1 as o1 -> begun
        1s o1 is referenced pi_1 -> may confirm
        2s o1 answers none -> applied
        15s h1 expires -> expired
        A1 free; o1 EXPIRED VOID_PENDING; cases none; pending 0\n";
    check(&format!(
        "{page}16s ben holds A1 as h2 -> held until 26s
        17s o1 void answers authorized -> money back, send
        cases late_success o1
        18s o1 void answers voided -> applied
        o1 EXPIRED VOIDED; cases none; A1 held by h2"
    ));
    // Not even free seats are taken by a late success.
    check(&format!("{page}16s o1 answers authorized -> money back; A1 free; cases late_success o1"));
    check(&format!(
        "{page}16s o1 answers declined -> applied
        o1 EXPIRED VOID_PENDING
        17s o1 void answers declined -> nothing, send
        18s o1 void answers voided -> applied
        o1 EXPIRED VOIDED; cases none"
    ));
}

/// A failed attempt ends that attempt, not the order; a success that comes late for it is surplus.
#[test]
fn a_late_success_of_a_failed_attempt_is_surplus() {
    check(
        "hall A1 price 1000
        0s ada holds A1 as h1 -> held until 300s
        1s ada pays h1 as o1 -> begun
        1s o1 is referenced pi_1 -> may confirm
        2s o1 answers declined -> applied
        3s ada pays h1 -> begun
        3s o1 is referenced pi_2 -> may confirm
        4s o1 answers authorized -> applied
        o1 CONFIRMED AUTHORIZED
        5s callback ev1 about pi_1 says authorized -> refund_pending
        cases surplus_authorization o1; o1 CONFIRMED AUTHORIZED; A1 sold to o1
        6s o1#1 void answers authorized -> money back, send
        7s o1#1 void answers voided -> applied
        cases none; o1 CONFIRMED AUTHORIZED
        8s o1#2 capture answers captured -> applied
        o1 CONFIRMED CAPTURED",
    );
}

/// The first attempt succeeds after all while the second is under way: one pays, the other is called off.
#[test]
fn whichever_attempt_succeeds_first_pays() {
    let page = "hall A1 price 1000
        0s ada holds A1 as h1 -> held until 300s
        1s ada pays h1 as o1 -> begun
        1s o1 is referenced pi_1 -> may confirm
        2s o1 answers declined -> applied
        3s ada pays h1 -> begun\n";
    check(&format!(
        "{page}4s o1 is referenced pi_2 -> may confirm
        5s o1#1 answers authorized -> applied
        o1 CONFIRMED AUTHORIZED; o1 did authorize SUCCEEDED, authorize PENDING, capture PENDING, void PENDING
        6s o1#2 is referenced pi_2 -> must not confirm
        7s o1#2 answers authorized -> money back
        cases surplus_authorization o1
        8s o1#2 void answers voided -> applied
        cases none; o1 CONFIRMED AUTHORIZED"
    ));
    check(&format!(
        "{page}5s o1#1 answers authorized -> applied
        o1 CONFIRMED AUTHORIZED; o1 did authorize SUCCEEDED, authorize FAILED, capture PENDING
        6s o1#2 is referenced pi_2 -> must not confirm"
    ));
}

#[test]
fn another_amount_or_currency_pays_for_nothing() {
    let page = "hall A1 price 1000
        0s ada holds A1 as h1 -> held until 300s
        1s ada pays h1 as o1 -> begun
        1s o1 is referenced pi_1 -> may confirm\n";
    for odd in ["amount 900", "amount 1100", "currency USD"] {
        check(&format!(
            "{page}2s o1 answers authorized {odd} -> money back
            cases amount_mismatch o1; o1 AWAITING_PAYMENT VOID_PENDING; h1 ACTIVE until 300s; pending 0
            3s ada pays h1 -> begun
            3s o1 is referenced pi_2 -> may confirm
            4s o1 answers authorized -> applied
            A1 sold to o1; o1 CONFIRMED AUTHORIZED
            5s o1#1 void answers voided -> applied
            cases none; o1 CONFIRMED AUTHORIZED"
        ));
    }
    check(&format!(
        "{page}2s o1 answers captured amount 900 -> money back
        cases amount_mismatch o1; o1 AWAITING_PAYMENT REFUND_PENDING
        3s o1 refund answers captured amount 900 -> money back, send
        4s o1 refund answers captured refunded 900 -> applied
        cases none; o1 AWAITING_PAYMENT REFUNDED"
    ));
    // After the first deadline there is nothing to go back to.
    check(&format!(
        "{page}301s o1 answers authorized amount 900 -> money back
        h1 EXPIRED; A1 free; o1 EXPIRED VOID_PENDING; cases amount_mismatch o1"
    ));
}

#[test]
fn one_batch_may_hold_a_whole_payment() {
    check(
        "hall A1 A2 price 1000; ttl 10s grace 0s in_doubt release
        0s ada holds A1 as h1 -> held until 10s
        0s ben holds A2 as h2 -> held until 10s
        1s ada pays h1 as o1 -> begun
        1s ben pays h2 as o2 -> begun
        1s o2 is referenced pi_2 -> may confirm
        together
        2s o1 is referenced pi_1 -> may confirm
        2s callback ev1 about pi_1 unread -> parked
        2s o1 answers none -> applied
        2s callback ev2 about pi_2 says declined -> applied
        2s ben releases h2 -> released
        2s ben pays h2 -> hold not active
        2s cleo holds A2 as h3 -> held until 12s
        2s callback ev2 about pi_2 says declined -> duplicate
        end
        A2 held by h3; o2 CANCELLED DECLINED
        together
        10s o1 answers authorized -> money back
        10s cleo holds A1 as h4 -> held until 20s
        10s h1 expires -> not due
        10s callback ev1 about pi_1 says authorized -> refund_pending
        end
        A1 held by h4; o1 EXPIRED VOID_PENDING; cases late_success o1",
    );
}
