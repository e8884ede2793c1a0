//! The provider's books beside ours: what agrees is left alone, what is behind is brought in, and what differs is one question
//! for as long as it differs.

use crate::script::check;

const BEGUN: &str = "hall A1 A2 price 1000; ttl 100s grace 50s
    0s ada holds A1 as h1 -> held until 100s
    1s ada pays h1 as o1 -> begun
    1s o1 is referenced pi_1 -> may confirm\n";

const PAID: &str = "2s o1 answers authorized -> applied
    3s o1 capture answers captured -> applied
    o1 CONFIRMED CAPTURED; cases none\n";

fn begun(rest: &str) {
    check(&format!("{BEGUN}{rest}"));
}

fn paid(rest: &str) {
    check(&format!("{BEGUN}{PAID}{rest}"));
}

#[test]
fn what_agrees_is_left_alone() {
    paid("9s list o1 says captured -> agreed; o1 CONFIRMED CAPTURED; cases none");
    begun("2s list o1 says unconfirmed -> agreed; o1 AWAITING_PAYMENT PENDING");
    begun(
        "2s o1 answers authorized -> applied
        9s list o1 says authorized -> agreed; o1 CONFIRMED AUTHORIZED",
    );
    begun(
        "2s o1 answers declined -> applied
        9s list o1 says declined -> agreed; o1 AWAITING_PAYMENT DECLINED",
    );
    begun(
        "2s o1 answers declined -> applied
        9s list o1 misses -> agreed; cases none",
    );
}

/// The callback was lost, and nobody asks any more about an attempt that has failed: the list brings it to its end.
#[test]
fn a_decline_that_was_taken_back_sells_or_goes_back() {
    begun(
        "2s o1 answers declined -> applied
        9s list o1 says authorized -> moved
        o1 CONFIRMED AUTHORIZED; A1 sold to o1; cases none",
    );
    begun(
        "2s o1 answers declined -> applied
        3s ada releases h1 -> released
        9s list o1 says authorized -> moved
        o1 CANCELLED VOID_PENDING; A1 free; cases late_success o1
        10s o1 void answers voided -> applied
        o1 CANCELLED VOIDED; cases none
        11s list o1 says voided -> agreed",
    );
    begun(
        "2s o1 answers declined -> applied
        3s ada releases h1 -> released
        9s list o1 says captured -> moved
        o1 CANCELLED REFUND_PENDING; cases late_success o1
        10s o1 refund answers captured refunded 1000 -> applied
        o1 CANCELLED REFUNDED; cases none
        11s list o1 says captured refunded 1000 -> agreed",
    );
    // Under way again, and not decided: it is asked about until it is.
    begun(
        "2s o1 answers declined -> applied
        3s list o1 says processing -> state_mismatch opened
        4s list o1 says requires_action -> state_mismatch again
        5s list o1 says authorized -> moved; o1 CONFIRMED AUTHORIZED; cases none",
    );
}

#[test]
fn what_the_books_are_behind_of_is_brought_in() {
    begun("9s list o1 says authorized -> moved; o1 CONFIRMED AUTHORIZED; A1 sold to o1");
    begun("9s list o1 says requires_action -> moved; o1 AWAITING_PAYMENT REQUIRES_ACTION");
    begun("9s list o1 says voided -> moved; o1 AWAITING_PAYMENT DECLINED");
    begun(
        "2s o1 answers authorized -> applied
        9s list o1 says captured -> moved; o1 CONFIRMED CAPTURED; cases none",
    );
    // It lapsed before it could be taken: the sale is undone.
    begun(
        "2s o1 answers authorized -> applied
        9s list o1 says voided -> moved; o1 CANCELLED VOIDED; A1 free; cases none",
    );
}

/// A refund that somebody made in the provider's own pages, and one that a bank has sent back.
#[test]
fn refunds_that_the_books_do_not_have_are_a_question_until_they_do() {
    paid(
        "9s list o1 says captured refunded 400 -> refund_mismatch opened
        o1 CONFIRMED CAPTURED; A1 sold to o1; cases refund_mismatch o1
        10s list o1 says captured refunded 400 -> refund_mismatch again
        11s list o1 says captured refunded 1000 -> refund_mismatch again
        cases refund_mismatch o1
        12s list o1 says captured -> agreed; cases none
        13s list o1 says captured refunded 400 -> refund_mismatch opened
        14s operator resolves refund_mismatch o1 with dismiss -> acted; cases none",
    );
    begun(
        "2s o1 answers declined -> applied
        3s ada releases h1 -> released
        4s list o1 says captured -> moved
        5s o1 refund answers captured refunded 1000 -> applied
        o1 CANCELLED REFUNDED; cases none
        9s list o1 says captured -> refund_mismatch opened; o1 CANCELLED REFUNDED
        10s list o1 says captured refunded 1000 -> agreed; cases none",
    );
}

#[test]
fn a_state_that_cannot_be_is_a_question() {
    paid(
        "9s list o1 says authorized -> state_mismatch opened
        10s list o1 says captured refunded 1 -> refund_mismatch opened; cases refund_mismatch o1
        11s list o1 says captured -> agreed; cases none",
    );
    paid("9s list o1 says declined -> state_mismatch opened");
    paid("9s list o1 says unconfirmed -> state_mismatch opened");
    paid(
        "9s list o1 says voided -> callback_conflict opened; o1 CONFIRMED CAPTURED
        10s list o1 says voided -> callback_conflict again",
    );
    begun(
        "2s o1 answers declined -> applied
        3s ada releases h1 -> released
        4s list o1 says authorized -> moved
        5s o1 void answers voided -> applied
        6s list o1 says authorized -> state_mismatch opened; o1 CANCELLED VOIDED
        7s list o1 says voided -> agreed; cases none",
    );
    // Let go here before there was any money, and there all the same.
    check(
        "hall A1 price 1000; ttl 100s grace 50s in_doubt release
        0s ada holds A1 as h1 -> held until 100s
        1s ada pays h1 as o1 -> begun
        1s o1 is referenced pi_1 -> may confirm
        150s h1 expires -> expired
        151s o1 void answers voided -> applied
        o1 EXPIRED VOIDED; cases none
        152s list o1 says authorized -> state_mismatch opened
        153s list o1 says captured -> moved; o1 EXPIRED REFUND_PENDING",
    );
}

#[test]
fn other_amounts_other_currencies_and_other_owners() {
    paid("9s list o1 says captured amount 900 -> amount_mismatch opened; cases amount_mismatch o1");
    paid("9s list o1 says captured currency USD -> amount_mismatch opened");
    begun(
        "2s o1 answers authorized -> applied
        9s list o1 says authorized amount 900 -> amount_mismatch opened
        10s list o1 says authorized amount 900 -> amount_mismatch again",
    );
    paid("9s list o1 says captured named pi_2 -> callback_conflict opened; cases callback_conflict o1");
    paid(
        "3s ben holds A2 as h2 -> held until 103s
        3s ben pays h2 as o2 -> begun
        9s list o1 says captured claiming o2 -> callback_conflict opened; cases callback_conflict o1",
    );
    // What carries nothing of ours is known by its name.
    paid("9s list o1 says captured unmarked -> agreed");
}

#[test]
fn money_that_the_provider_does_not_know_is_a_question() {
    paid(
        "9s list o1 misses -> missing_at_provider opened; o1 CONFIRMED CAPTURED; cases missing_at_provider o1
        10s list o1 misses -> missing_at_provider again
        11s list o1 says captured -> agreed; cases none",
    );
    begun("9s list o1 misses -> agreed; cases none");
}

/// Between the question and its answer the books may have moved: then nothing can be said of a difference.
#[test]
fn what_was_read_before_the_books_moved_says_nothing() {
    paid("9s list stale o1 says authorized -> overtaken; cases none");
    paid("9s list stale o1 misses -> overtaken; cases none");
}

/// One question for an object, whoever finds it and however often; it closes when the payment finds its order.
#[test]
fn a_payment_that_is_nobodys_is_one_question() {
    begun(
        "9s list finds pi_9 -> orphan_payment opened; cases orphan_payment
        10s list finds pi_9 -> orphan_payment again
        11s list finds pi_8 -> orphan_payment opened; cases orphan_payment, orphan_payment
        12s list settles pi_9 -> settled; cases orphan_payment
        13s list settles pi_9 -> settled
        14s list finds pi_9 -> orphan_payment opened; cases orphan_payment, orphan_payment
        15s list settles pi_7 -> not found",
    );
    // A callback about it and the list come to the same question, in either order.
    begun(
        "2s callback ev1 about pi_9 unread -> parked
        602s callback ev1 about pi_9 unread -> parked
        ev1 parked due never with a case; cases orphan_payment
        603s list finds pi_9 -> orphan_payment again; cases orphan_payment",
    );
    begun(
        "2s callback ev1 about pi_9 unread -> parked
        9s list finds pi_9 -> orphan_payment opened
        602s callback ev1 about pi_9 unread -> parked
        ev1 parked due never with a case; cases orphan_payment",
    );
    // What a person has dismissed stays so.
    begun(
        "9s list finds pi_9 -> orphan_payment opened
        10s operator resolves orphan_payment with dismiss -> acted; cases none
        11s list finds pi_9 -> orphan_payment again; cases none",
    );
}
