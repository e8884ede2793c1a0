//! Taking money, letting it go and giving it back, and what is asked about until it is known.

use crate::script::check;

const SOLD: &str = "hall A1 A2 price 1000
    0s ada holds A1 A2 as h1 -> held until 300s
    1s ada pays h1 as o1 -> begun
    1s o1 is referenced pi_1 -> may confirm
    2s o1 answers authorized -> applied
    A1 A2 sold to o1\n";

/// a definite no to the capture undoes the sale; no answer does not.
#[test]
fn a_refused_capture_undoes_the_sale() {
    check(&format!(
        "{SOLD}3s o1 capture answers none -> applied
        A1 A2 sold to o1; o1 CONFIRMED AUTHORIZED
        4s o1 capture answers busy 7s -> nothing
        o1 capture due 11s
        5s o1 capture answers refused -> applied
        A1 A2 free; o1 CANCELLED VOID_PENDING; cases capture_failed o1; h1 CONVERTED
        6s ben holds A1 as h2 -> held until 306s
        6s ada holds A2 as h3 -> held until 306s
        7s callback ev1 about pi_1 says authorized -> refund_pending
        8s o1 void answers voided -> applied
        o1 CANCELLED VOIDED; cases none; A1 held by h2"
    ));
}

/// Tickets follow the sale; that less was taken than they cost is a person's question.
#[test]
fn another_amount_taken_than_sold_for_is_a_case() {
    check(&format!(
        "{SOLD}3s o1 capture answers captured amount 1500 -> applied
        A1 A2 sold to o1; o1 CONFIRMED CAPTURED; cases amount_mismatch o1
        4s o1 answers captured amount 1500 -> already paid
        5s operator resolves amount_mismatch o1 with dismiss -> acted
        cases none"
    ));
}

/// A refund of a part leaves the question open; when all of the money is back, nothing is left to ask.
#[test]
fn a_question_about_a_sale_ends_when_all_of_it_is_refunded() {
    check(&format!(
        "{SOLD}3s o1 capture answers captured amount 1500 -> applied
        cases amount_mismatch o1
        4s operator refunds o1 A1 -> begun
        5s o1 refund answers captured amount 1500 refunded 1000 -> applied
        A1 free; A2 sold to o1; o1 CONFIRMED CAPTURED; cases amount_mismatch o1
        6s operator refunds o1 -> begun
        7s o1 refund answers captured amount 1500 refunded 2000 -> applied
        A2 free; o1 CANCELLED REFUNDED; cases none"
    ));
}

/// What was taken can't be called off: such a word is no reason to undo a sale.
#[test]
fn a_paid_order_said_to_be_called_off_is_a_contradiction() {
    check(&format!(
        "{SOLD}3s o1 capture answers captured -> applied
        4s callback ev1 about pi_1 says voided -> conflict
        A1 A2 sold to o1; o1 CONFIRMED CAPTURED; cases callback_conflict o1"
    ));
}

/// What an account has bought counts at once, and no longer when the sale is undone, in one batch too.
#[test]
fn a_sale_and_its_undoing_count_at_once() {
    check(
        "hall A1 A2 A3 price 1000; tickets_max 2
        0s ada holds A1 A2 as h1 -> held until 300s
        1s ada pays h1 as o1 -> begun
        1s o1 is referenced pi_1 -> may confirm
        together
        2s o1 answers authorized -> applied
        2s ada holds A3 -> account limit, 2 of 2
        end
        together
        3s o1 capture answers refused -> applied
        3s ada holds A3 as h2 -> held until 303s
        3s ben holds A1 as h3 -> held until 303s
        end
        o1 CANCELLED VOID_PENDING; A3 held by h2; A1 held by h3; A2 free",
    );
}

#[test]
fn an_authorization_that_lapses_undoes_the_sale() {
    check(&format!(
        "{SOLD}3s o1 capture answers voided -> applied
        A1 A2 free; o1 CANCELLED VOIDED; cases none
        o1 did authorize SUCCEEDED, capture FAILED, void SUCCEEDED"
    ));
}

/// A capture that was refused and yet turns out to be done: the money goes back.
#[test]
fn money_taken_too_late_is_given_back() {
    check(&format!(
        "{SOLD}3s o1 capture answers refused -> applied
        4s o1 void answers captured -> money back
        o1 CANCELLED REFUND_PENDING; cases capture_failed o1
        o1 did authorize SUCCEEDED, capture FAILED, void FAILED, refund PENDING
        5s o1 refund answers captured -> money back, send
        6s o1 refund answers captured refunded 1999 -> money back, send
        7s o1 refund answers captured refunded 2000 -> applied
        o1 CANCELLED REFUNDED; cases none"
    ));
}

/// The same when the void had been refused before.
#[test]
fn money_taken_after_a_refused_void_is_given_back() {
    check(&format!(
        "{SOLD}3s o1 capture answers refused -> applied
        4s o1 void answers refused -> applied
        cases capture_failed o1, void_failed o1; o1 CANCELLED AUTHORIZED
        5s callback ev1 about pi_1 says captured -> refund_pending
        o1 CANCELLED REFUND_PENDING
        6s o1 refund answers refused -> applied
        cases capture_failed o1, refund_failed o1, void_failed o1; o1 CANCELLED CAPTURED
        7s callback ev2 about pi_1 says captured -> refund_pending
        o1 did authorize SUCCEEDED, capture FAILED, void FAILED, refund FAILED
        8s operator resolves refund_failed o1 with refund -> acted
        9s o1 refund answers captured refunded 2000 -> applied
        o1 CANCELLED REFUNDED; cases none"
    ));
}

/// A void that was refused, and then the authorization lapses by itself.
#[test]
fn a_lapse_settles_a_refused_void() {
    check(&format!(
        "{SOLD}3s o1 capture answers refused -> applied
        4s o1 void answers refused -> applied
        5s callback ev1 about pi_1 says voided -> applied
        o1 CANCELLED VOIDED; cases none
        6s callback ev2 about pi_1 says voided -> stale"
    ));
}

/// where the provider can only take money at once, what can't be confirmed is given back.
#[test]
fn money_taken_at_once_is_refunded_when_it_comes_late() {
    let page = "hall A1 price 1000; ttl 10s grace 0s in_doubt release charge
        0s ada holds A1 as h1 -> held until 10s
        1s ada pays h1 as o1 -> begun
        1s o1 is referenced pi_1 -> may confirm\n";
    check(&format!(
        "{page}2s o1 answers captured -> applied
        A1 sold to o1; o1 CONFIRMED CAPTURED; o1 did authorize SUCCEEDED
        3s callback ev1 about pi_1 says captured -> already_paid_reconcile"
    ));
    check(&format!(
        "{page}10s ben holds A1 as h2 -> held until 20s
        o1 EXPIRED VOID_PENDING
        11s o1 void answers captured -> money back
        o1 EXPIRED REFUND_PENDING; cases late_success o1
        o1 did authorize SUCCEEDED, void FAILED, refund PENDING
        12s o1 refund answers none -> applied
        13s o1 refund answers captured -> money back, send
        14s o1 refund answers captured refunded 1000 -> applied
        o1 EXPIRED REFUNDED; cases none; A1 held by h2
        15s callback ev1 about pi_1 says captured refunded 1000 -> refund_pending"
    ));
    // A refund that was refused leaves the money where it is.
    check(&format!(
        "{page}10s h1 expires -> expired
        11s callback ev1 about pi_1 says captured -> refund_pending
        12s o1 refund answers refused -> applied
        o1 EXPIRED CAPTURED; cases late_success o1, refund_failed o1"
    ));
}

/// The money was taken without our asking, while we would only have set it aside.
#[test]
fn money_taken_unasked_counts_as_taken() {
    check(
        "hall A1 price 1000
        0s ada holds A1 as h1 -> held until 300s
        1s ada pays h1 as o1 -> begun
        1s o1 is referenced pi_1 -> may confirm
        2s o1 answers captured -> applied
        A1 sold to o1; o1 CONFIRMED CAPTURED; o1 did authorize SUCCEEDED, capture SUCCEEDED",
    );
}

/// A definite no to a void matters where money was set aside, and nowhere else.
#[test]
fn a_refused_void_of_a_failed_payment_is_no_question() {
    check(
        "hall A1 price 1000; ttl 10s grace 0s in_doubt release
        0s ada holds A1 as h1 -> held until 10s
        1s ada pays h1 as o1 -> begun
        1s o1 is referenced pi_1 -> may confirm
        10s h1 expires -> expired
        11s o1 void answers refused -> applied
        cases void_failed o1
        12s o1 answers requires_action -> applied
        o1 did authorize REQUIRES_ACTION, void FAILED, void PENDING
        13s o1 answers declined -> applied
        cases none
        14s o1 void answers refused -> applied
        cases none; o1 did authorize FAILED, void FAILED, void FAILED",
    );
}

/// What the provider is working on can't be called off: it is not asked to again and again, and when it ends in a
/// success, that is let go.
#[test]
fn a_payment_in_work_is_called_off_once() {
    let page = "hall A1 price 1000; ttl 10s grace 0s in_doubt release
        0s ada holds A1 as h1 -> held until 10s
        1s ada pays h1 as o1 -> begun
        1s o1 is referenced pi_1 -> may confirm
        2s o1 answers processing -> nothing
        10s h1 expires -> expired
        o1 EXPIRED VOID_PENDING
        11s o1 void answers refused -> applied
        cases void_failed o1
        12s o1 answers processing -> nothing
        13s o1 answers processing -> nothing
        o1 did authorize PENDING, void FAILED; o1 EXPIRED PENDING; cases void_failed o1\n";
    check(&format!(
        "{page}14s o1 answers authorized -> money back
        o1 did authorize SUCCEEDED, void FAILED, void PENDING; cases late_success o1, void_failed o1
        15s o1 void answers voided -> applied
        cases none; o1 EXPIRED VOIDED"
    ));
    check(&format!("{page}14s o1 answers declined -> applied; cases none; o1 EXPIRED DECLINED"));
}

/// what isn't known is asked about ever after, and a person is told.
#[test]
fn an_unknown_payment_is_asked_about_and_told() {
    let mut page = String::from(
        "hall A1 price 1000
        0s ada holds A1 as h1 -> held until 300s
        1s ada pays h1 as o1 -> begun
        1s o1 is referenced pi_1 -> may confirm
        2s o1 answers none -> applied; o1 due 4s
        3s o1 answers none -> applied; o1 due 7s\n",
    );
    (4..=7).for_each(|at| page += &format!("{at}s o1 answers none -> applied\n"));
    page += "8s o1 answers none -> applied; o1 due 136s; cases none
        9s o1 answers none -> applied; o1 due 265s; cases payment_unknown o1
        10s o1 answers none -> applied; o1 due 310s; cases payment_unknown o1
        h1 PAYMENT_PENDING until 420s; A1 held by h1\n";
    check(&format!("{page}11s o1 answers authorized -> applied; cases none; A1 sold to o1"));
    // Any word of the provider is an answer.
    // The silence is broken, although the next question was not due yet: its count begins anew.
    check(&format!(
        "{page}11s callback ev1 about pi_1 says processing -> applied; cases none; o1 due 310s
        310s o1 answers none -> applied; cases none; o1 due 312s"
    ));
    check(&format!("{page}11s o1 answers refused -> applied; cases none; h1 ACTIVE until 300s"));
    check(&format!("{page}420s h1 expires -> in doubt; cases in_doubt o1, payment_unknown o1"));
}

/// A question about a capture, a void or a refund is settled by its answer too.
#[test]
fn every_kind_of_unknown_operation_ends_its_case() {
    let unknown = |from: u32, operation: &str| -> String {
        (from..from + 8).map(|at| format!("{at}s {operation} answers none -> applied\n")).collect()
    };
    let capture = unknown(10, "o1 capture");
    check(&format!(
        "{SOLD}{capture}cases payment_unknown o1
        20s o1 capture answers captured -> applied; cases none"
    ));
    let void = unknown(30, "o1 void");
    check(&format!(
        "{SOLD}{capture}20s o1 capture answers refused -> applied; cases capture_failed o1
        {void}cases capture_failed o1, payment_unknown o1
        40s o1 void answers authorized -> money back, send; cases capture_failed o1
        41s o1 void answers voided -> applied; cases none"
    ));
    let refund = unknown(50, "o1 refund");
    check(&format!(
        "{SOLD}20s o1 capture answers refused -> applied
        21s o1 void answers captured -> money back
        {refund}cases capture_failed o1, payment_unknown o1
        60s o1 refund answers refused -> applied; cases capture_failed o1, refund_failed o1"
    ));
    let create = unknown(2, "o1");
    check(&format!(
        "hall A1 price 1000; ttl 10s grace 5s
        0s ada holds A1 as h1 -> held until 10s
        1s ada pays h1 as o1 -> begun
        {create}cases payment_unknown o1
        15s h1 expires -> expired
        A1 free; cases none; o1 did authorize FAILED"
    ));
}

/// The provider forgets a key: past that an operation is only asked about, and a person is told that it isn't done.
#[test]
fn past_the_horizon_of_its_key_nothing_is_sent_again() {
    check(&format!(
        "{SOLD}82801.999s o1 capture answers authorized -> already paid, send
        cases none
        82802s o1 capture answers authorized -> already paid
        cases capture_failed o1; A1 sold to o1; o1 CONFIRMED AUTHORIZED
        82803s o1 capture answers authorized -> already paid
        cases capture_failed o1
        82804s o1 capture answers captured -> applied
        o1 CONFIRMED CAPTURED; cases none"
    ));
    check(&format!(
        "{SOLD}3s o1 capture answers refused -> applied
        82803s o1 void answers authorized -> money back
        cases capture_failed o1, void_failed o1
        82804s o1 void answers voided -> applied
        cases none; o1 CANCELLED VOIDED"
    ));
}

/// No word of the provider makes an operation wait for ever.
#[test]
fn a_busy_provider_is_asked_again_before_long() {
    check(
        "hall A1 price 1000
        0s ada holds A1 as h1 -> held until 300s
        1s ada pays h1 as o1 -> begun
        2s o1 answers busy 0s -> nothing; o1 due 2.001s
        3s o1 answers busy 100000s -> nothing; o1 due 303s",
    );
}

/// The provider's word puts off the next question, and nothing else: what is still to be sent, what was to be asked about
/// later, and what another attempt waits for stay due when they were.
#[test]
fn a_word_puts_off_what_it_answers_alone() {
    check(&format!(
        "{SOLD}3s o1 capture answers refused -> applied
        o1 void due 3s
        4s callback ev1 about pi_1 says authorized -> refund_pending
        o1 void due 3s
        5s o1 void answers none -> applied
        o1 void due 7s
        6s callback ev2 about pi_1 says authorized -> refund_pending
        o1 void due 7s
        9s callback ev3 about pi_1 says authorized -> refund_pending
        o1 void due 12s"
    ));
    check(
        "hall A1 price 1000
        0s ada holds A1 as h1 -> held until 300s
        1s ada pays h1 as o1 -> begun
        1s o1 is referenced pi_1 -> may confirm
        2s o1 answers busy 100s -> nothing
        3s callback ev1 about pi_1 says processing -> stale
        o1 due 102s
        4s o1 answers declined -> applied
        5s ada pays h1 -> begun
        5s o1 is referenced pi_2 -> may confirm
        6s o1#2 answers authorized -> applied
        7s o1#1 answers authorized -> money back
        8s o1#1 void answers none -> applied
        o1#1 void due 10s
        11s o1#2 capture answers authorized -> already paid, send
        o1#1 void due 10s",
    );
}
