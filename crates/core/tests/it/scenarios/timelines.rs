//! The scripted timelines of the source documents, tick by tick.

use crate::script::check;

/// The hold runs out, another takes the seat, and then the first payment turns out to have succeeded.
#[test]
fn a_late_success_never_takes_a_seat_that_has_gone_to_another() {
    check(
        "hall A1 price 1000; ttl 10s grace 0s in_doubt release
        100s ada holds A1 as h1 -> held until 110s
        100s ada pays h1 as o1 -> begun
        100s o1 is referenced pi_1 -> may confirm
        101s o1 answers none -> applied; o1 AWAITING_PAYMENT UNKNOWN
        109.999s ben holds A1 -> unavailable A1
        110s ben holds A1 as h2 -> held until 120s
        h1 EXPIRED; o1 EXPIRED VOID_PENDING; A1 held by h2; cases none
        111s callback ev1 about pi_1 says authorized -> refund_pending
        A1 held by h2; o1 EXPIRED VOID_PENDING; cases late_success o1
        111s ben pays h2 as o2 -> begun
        111s o2 is referenced pi_2 -> may confirm
        111s callback ev2 about pi_2 says authorized -> applied
        A1 sold to o2; o2 CONFIRMED AUTHORIZED; h2 CONVERTED
        112s callback ev2 about pi_2 says authorized -> duplicate
        112s callback ev3 about pi_2 says authorized -> already_paid_reconcile
        112s callback ev1 about pi_1 says authorized -> duplicate
        112s callback ev4 about pi_1 says authorized -> refund_pending
        113s o1 void answers authorized -> money back, send
        113s o1 void answers voided -> applied; o1 EXPIRED VOIDED; cases none
        113s o2 capture answers captured -> applied; o2 CONFIRMED CAPTURED
        A1 sold to o2; o1 did authorize SUCCEEDED, void SUCCEEDED; o2 did authorize SUCCEEDED, capture SUCCEEDED",
    );
}

/// The same with the buyers of the second document.
#[test]
fn who_holds_at_the_payment_wins_and_messages_may_repeat() {
    check(
        "hall A1 price 1000; ttl 10s grace 0s in_doubt release
        0s alice holds A1 as h1 -> held until 10s
        0s alice pays h1 as o1 -> begun
        0s o1 is referenced pi_old -> may confirm
        1s bob holds A1 -> unavailable A1
        11s bob holds A1 as h2 -> held until 21s
        o1 EXPIRED VOID_PENDING
        12s callback ev1 about pi_old says authorized -> refund_pending
        cases late_success o1
        12s bob pays h2 as o2 -> begun
        12s o2 is referenced pi_new -> may confirm
        12s callback ev2 about pi_new says authorized -> applied
        A1 sold to o2; o2 CONFIRMED AUTHORIZED
        12s callback ev2 about pi_new says authorized -> duplicate
        12s callback ev2 about pi_new claims o1 says authorized -> conflict
        cases callback_conflict o2, late_success o1
        12s callback ev3 about pi_new claims o1 says authorized -> conflict
        cases callback_conflict o2, late_success o1
        13s cleo holds A1 -> unavailable A1
        A1 sold to o2; o2 CONFIRMED AUTHORIZED",
    );
}
