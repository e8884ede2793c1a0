//! What a person may do about a case, and what not.

use crate::script::check;

const KEPT: &str = "no: this payment is what the order's seats were sold for: refund the order instead";
const NOT_BOUND: &str = "no: the seats are not bound to this order any more";
const UNTAKEN: &str = "no: no money has been taken: void it";
const TAKEN: &str = "no: the money has been taken: refund it";
const UNSENT: &str = "no: nothing was ever sent for this payment";
const FAILED: &str = "no: the provider has said that this payment failed";
const OTHER_AMOUNT: &str = "no: the amount paid is not the order's total";
const RETURNING: &str = "no: the money of this payment is on its way back";
const NO_HOLD: &str = "no: the hold binds no seats";

const IN_DOUBT: &str = "hall A1 price 1000; ttl 10s grace 5s
    0s ada holds A1 as h1 -> held until 10s
    1s ada pays h1 as o1 -> begun
    1s o1 is referenced pi_1 -> may confirm
    2s o1 answers none -> applied
    15s h1 expires -> in doubt
    cases in_doubt o1\n";

#[test]
fn a_doubt_may_be_ended_by_a_person() {
    check(&format!(
        "{IN_DOUBT}16s operator resolves in_doubt o1 with refund -> {UNTAKEN}
        17s operator resolves in_doubt o1 with release -> acted
        A1 free; h1 RELEASED; o1 CANCELLED VOID_PENDING; cases none; pending 0
        18s operator resolves in_doubt o1 with release -> case closed
        19s o1 void answers authorized -> money back, send
        cases late_success o1
        20s operator resolves late_success o1 with confirm -> {RETURNING}
        20s operator resolves late_success o1 with refund -> {UNTAKEN}
        20s operator resolves late_success o1 with release -> {NO_HOLD}
        20s operator resolves late_success o1 with void -> acted
        o1 did authorize SUCCEEDED, void PENDING
        21s o1 void answers voided -> applied
        o1 CANCELLED VOIDED; cases none"
    ));
    // To be confirmed by proof: the provider is asked now, and the case stays until it has answered.
    check(&format!(
        "{IN_DOUBT}16s operator resolves in_doubt o1 with confirm -> acted
        cases in_doubt o1; h1 PAYMENT_PENDING until 15s in doubt; o1 AWAITING_PAYMENT UNKNOWN
        17s o1 answers authorized -> applied
        A1 sold to o1; cases none"
    ));
    check(&format!(
        "{IN_DOUBT}16s operator resolves in_doubt o1 with void -> acted
        o1 AWAITING_PAYMENT VOID_PENDING; cases in_doubt o1
        17s operator resolves in_doubt o1 with confirm -> {RETURNING}
        18s o1 void answers voided -> applied
        A1 free; o1 EXPIRED VOIDED; cases none"
    ));
    check(&format!(
        "{IN_DOUBT}16s operator resolves in_doubt o1 with dismiss -> acted
        cases none; h1 PAYMENT_PENDING until 15s in doubt
        17s o1 answers declined -> applied
        A1 free; o1 EXPIRED DECLINED"
    ));
}

#[test]
fn a_late_success_is_never_confirmed_once_its_seats_are_gone() {
    check(&format!(
        "hall A1 price 1000; ttl 10s grace 0s in_doubt release
        0s ada holds A1 as h1 -> held until 10s
        1s ada pays h1 as o1 -> begun
        1s o1 is referenced pi_1 -> may confirm
        11s o1 answers authorized -> money back
        12s o1 void answers refused -> applied
        cases late_success o1, void_failed o1
        13s operator resolves late_success o1 with confirm -> {NOT_BOUND}
        13s operator resolves void_failed o1 with void -> acted
        o1 did authorize SUCCEEDED, void FAILED, void PENDING
        14s o1 void answers voided -> applied
        cases none; o1 EXPIRED VOIDED"
    ));
}

/// Who did what stays with the case; the proof that follows closes it and has no word over a person's.
#[test]
fn what_a_person_did_is_kept_with_the_case() {
    check(&format!(
        "{IN_DOUBT}case in_doubt o1 of worker
        16s operator resolves in_doubt o1 with void -> acted
        log operation.moved; case in_doubt o1 of olga: void by olga; cases in_doubt o1
        17s o1 void answers voided -> applied
        cases none; case in_doubt o1 of olga: void by olga"
    ));
    check(&format!(
        "{IN_DOUBT}16s operator resolves in_doubt o1 with confirm -> acted
        log case.acted; case in_doubt o1 of olga: confirm_if_bound by olga"
    ));
    check(&format!(
        "{IN_DOUBT}16s o1 answers declined -> applied
        cases none; case in_doubt o1 of worker: proof by worker"
    ));
}

/// Money is given back where it was taken, and nowhere else.
#[test]
fn what_was_never_taken_is_not_refunded() {
    check(&format!(
        "hall A1 price 1000
        0s ada holds A1 as h1 -> held until 300s
        1s ada pays h1 as o1 -> begun
        1s o1 is referenced pi_1 -> may confirm
        2s callback ev1 about pi_1 says authorized -> applied
        2s callback ev1 about pi_1 content other unread -> conflict
        3s o1 capture answers refused -> applied
        4s operator resolves capture_failed o1 with refund -> {UNTAKEN}
        5s o1 void answers voided -> applied
        cases callback_conflict o1; o1 CANCELLED VOIDED
        6s operator resolves callback_conflict o1 with refund -> {UNTAKEN}"
    ));
}

/// The one way in which a success that was turned away may still have its seats.
#[test]
fn a_success_turned_away_for_the_limit_may_be_confirmed_when_that_has_passed() {
    check(&format!(
        "hall A1 price 1000; tickets_max 1
        0s ada holds A1 as h1 -> held until 300s
        1s ada pays h1 as o1 -> begun
        1s o1 is referenced pi_1 -> may confirm
        ada has 1 from elsewhere
        2s o1 answers authorized -> money back
        cases late_success o1
        ada has 0 from elsewhere
        3s operator resolves late_success o1 with confirm -> {RETURNING}
        4s o1 void answers refused -> applied
        5s operator resolves late_success o1 with confirm -> acted
        A1 sold to o1; o1 CONFIRMED AUTHORIZED; cases none
        o1 did authorize SUCCEEDED, void FAILED, capture PENDING"
    ));
}

#[test]
fn what_pays_for_seats_is_neither_voided_nor_refunded_by_a_case() {
    check(&format!(
        "hall A1 price 1000
        0s ada holds A1 as h1 -> held until 300s
        1s ada pays h1 as o1 -> begun
        1s o1 is referenced pi_1 -> may confirm
        2s callback ev1 about pi_1 says authorized -> applied
        3s callback ev1 about pi_1 content other unread -> conflict
        4s operator resolves callback_conflict o1 with void -> {KEPT}
        4s operator resolves callback_conflict o1 with refund -> {KEPT}
        4s operator resolves callback_conflict o1 with confirm -> {NOT_BOUND}
        4s operator resolves callback_conflict o1 with release -> {NO_HOLD}
        cases callback_conflict o1
        5s operator resolves callback_conflict o1 with dismiss -> acted
        cases none; log case.closed; A1 sold to o1"
    ));
}

#[test]
fn a_surplus_is_voided_or_refunded_as_its_money_stands() {
    let page = "hall A1 price 1000
        0s ada holds A1 as h1 -> held until 300s
        1s ada pays h1 as o1 -> begun
        1s o1 is referenced pi_1 -> may confirm
        2s o1 answers declined -> applied
        3s ada pays h1 -> begun
        3s o1 is referenced pi_2 -> may confirm
        4s o1 answers authorized -> applied\n";
    check(&format!(
        "{page}5s o1#1 answers authorized -> money back
        6s operator resolves surplus_authorization o1#1 with confirm -> {RETURNING}
        6s operator resolves surplus_authorization o1#1 with refund -> {UNTAKEN}
        6s operator resolves surplus_authorization o1#1 with dismiss -> acted
        cases none; o1 CONFIRMED AUTHORIZED
        7s o1#1 void answers voided -> applied"
    ));
    check(&format!(
        "{page}5s o1#1 answers captured -> money back
        6s o1#1 refund answers refused -> applied
        cases refund_failed o1, surplus_authorization o1
        7s operator resolves refund_failed o1#1 with void -> {TAKEN}
        7s operator resolves refund_failed o1#1 with refund -> acted
        8s o1#1 refund answers captured refunded 1000 -> applied
        cases none; o1 CONFIRMED AUTHORIZED"
    ));
}

#[test]
fn another_amount_is_never_confirmed() {
    check(&format!(
        "hall A1 price 1000
        0s ada holds A1 as h1 -> held until 300s
        1s ada pays h1 as o1 -> begun
        1s o1 is referenced pi_1 -> may confirm
        2s o1 answers authorized amount 900 -> money back
        3s operator resolves amount_mismatch o1 with confirm -> {OTHER_AMOUNT}
        4s operator resolves amount_mismatch o1 with release -> acted
        A1 free; o1 CANCELLED VOID_PENDING; cases none
        5s o1 void answers voided -> applied"
    ));
}

#[test]
fn a_payment_never_sent_is_not_voided_and_a_failed_one_not_confirmed() {
    let mut page = String::from(
        "hall A1 price 1000; ttl 100s
        0s ada holds A1 as h1 -> held until 100s
        1s ada pays h1 as o1 -> begun\n",
    );
    (2..10).for_each(|at| page += &format!("{at}s o1 answers none -> applied\n"));
    check(&format!(
        "{page}cases payment_unknown o1
        11s operator resolves payment_unknown o1 with void -> {UNSENT}
        12s operator resolves payment_unknown o1 with release -> acted
        A1 free; o1 CANCELLED DECLINED; cases none"
    ));
    check(&format!(
        "{page}11s callback ev1 about pi_1 of o1 content x says processing -> applied
        12s callback ev1 about pi_1 content y unread -> conflict
        13s o1 answers declined -> applied
        14s operator resolves callback_conflict o1 with confirm -> {FAILED}
        15s operator resolves callback_conflict o1 with dismiss -> acted"
    ));
}

/// A question that was dismissed comes back as long as there is no answer.
#[test]
fn what_is_still_unknown_is_asked_again_after_a_dismissal() {
    let mut page = String::from(
        "hall A1 price 1000; ttl 100s
        0s ada holds A1 as h1 -> held until 100s
        1s ada pays h1 as o1 -> begun
        1s o1 is referenced pi_1 -> may confirm\n",
    );
    (2..10).for_each(|at| page += &format!("{at}s o1 answers none -> applied\n"));
    check(&format!(
        "{page}10s operator resolves payment_unknown o1 with dismiss -> acted
        cases none
        11s o1 answers none -> applied
        cases payment_unknown o1
        12s o1 answers authorized -> applied
        cases none"
    ));
}
