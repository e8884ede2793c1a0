//! Callbacks come twice, in any order, too early, too late, and about others' money.

use crate::script::check;

const BEGUN: &str = "hall A1 A2 price 1000; ttl 100s grace 50s
    0s ada holds A1 as h1 -> held until 100s
    1s ada pays h1 as o1 -> begun
    1s o1 is referenced pi_1 -> may confirm\n";

fn begun(rest: &str) {
    check(&format!("{BEGUN}{rest}"));
}

#[test]
fn the_same_message_counts_once() {
    begun(
        "2s callback ev1 about pi_1 says authorized -> applied
        ev1 applied due never; o1 CONFIRMED AUTHORIZED
        3s callback ev1 about pi_1 says authorized -> duplicate
        4s callback ev1 about pi_1 content other says authorized -> conflict
        cases callback_conflict o1; ev1 applied due never
        5s callback ev1 about pi_1 content other says authorized -> conflict
        cases callback_conflict o1
        6s callback ev1 about pi_1 says authorized -> duplicate",
    );
    begun(
        "together
        2s callback ev1 about pi_1 says authorized -> applied
        2s callback ev1 about pi_1 says authorized -> duplicate
        2s callback ev2 about pi_1 says authorized -> already_paid_reconcile
        2s callback ev1 about pi_1 content other unread -> conflict
        end
        A1 sold to o1; cases callback_conflict o1",
    );
}

/// The same message about a payment that isn't ours leaves a trace, once.
#[test]
fn a_message_that_has_changed_its_payment_is_kept() {
    begun(
        "2s callback ev1 about pi_1 says authorized -> applied
        3s callback ev1 about pi_9 unread -> conflict
        ev1 applied due never with a case; cases callback_conflict
        4s callback ev1 about pi_9 unread -> conflict
        cases callback_conflict
        5s operator resolves callback_conflict with dismiss -> acted
        6s callback ev1 about pi_9 unread -> conflict
        7s callback ev1 about pi_1 says authorized -> duplicate
        cases none
        8s callback ev2 about pi_9 unread -> parked
        8s callback ev2 about pi_8 unread -> conflict
        ev2 parked due 18s; cases none",
    );
}

/// A callback is a trigger: what is read back counts, so old messages can't turn anything back.
#[test]
fn reversed_messages_come_to_the_same() {
    begun(
        "2s callback ev3 about pi_1 says captured -> applied
        o1 CONFIRMED CAPTURED
        3s callback ev2 about pi_1 says authorized -> already_paid_reconcile
        4s callback ev1 about pi_1 says requires_action -> stale
        5s callback ev0 about pi_1 says declined -> stale
        6s callback ev9 about pi_1 says unconfirmed -> stale
        o1 CONFIRMED CAPTURED; A1 sold to o1; cases none",
    );
}

#[test]
fn a_message_moves_an_order_in_each_of_its_states() {
    // AWAITING_PAYMENT
    begun("2s callback ev1 about pi_1 says processing -> stale; h1 PAYMENT_PENDING until 150s");
    begun("2s callback ev1 about pi_1 says requires_action -> applied; o1 AWAITING_PAYMENT REQUIRES_ACTION");
    begun("2s callback ev1 about pi_1 says declined -> applied; o1 AWAITING_PAYMENT DECLINED");
    begun("2s callback ev1 about pi_1 says voided -> applied; o1 AWAITING_PAYMENT DECLINED");
    // CONFIRMED
    begun(
        "2s o1 answers authorized -> applied
        3s callback ev1 about pi_1 says authorized -> already_paid_reconcile
        3s callback ev2 about pi_1 says captured -> applied
        3s callback ev3 about pi_1 says captured -> already_paid_reconcile",
    );
    begun(
        "2s o1 answers authorized -> applied
        3s callback ev1 about pi_1 says voided -> applied
        A1 free; o1 CANCELLED VOIDED
        4s callback ev2 about pi_1 says voided -> stale",
    );
    // CANCELLED
    begun(
        "2s o1 answers declined -> applied
        3s ada releases h1 -> released
        o1 CANCELLED DECLINED
        4s callback ev1 about pi_1 says declined -> stale
        5s callback ev2 about pi_1 says authorized -> refund_pending
        cases late_success o1; o1 CANCELLED VOID_PENDING; A1 free",
    );
    // EXPIRED
    begun(
        "2s o1 answers declined -> applied
        100s ben holds A1 as h2 -> held until 200s
        o1 EXPIRED DECLINED
        101s callback ev1 about pi_1 says authorized -> refund_pending
        102s callback ev2 about pi_1 says authorized -> refund_pending
        103s callback ev3 about pi_1 says voided -> applied
        104s callback ev4 about pi_1 says voided -> stale
        o1 EXPIRED VOIDED; cases none; A1 held by h2",
    );
}

/// the message may come before the answer that tells us the payment's name.
#[test]
fn an_early_message_finds_its_order_by_what_we_attached() {
    check(
        "hall A1 A2 price 1000
        0s ada holds A1 as h1 -> held until 300s
        1s ada pays h1 as o1 -> begun
        2s callback ev1 about pi_1 of o1 says unconfirmed -> stale
        3s o1 is referenced pi_1 -> may confirm
        4s callback ev2 about pi_1 says authorized -> applied
        A1 sold to o1",
    );
    check(
        "hall A1 price 1000
        0s ada holds A1 as h1 -> held until 300s
        1s ada pays h1 as o1 -> begun
        2s callback ev1 about pi_1 of o1 says authorized -> applied
        A1 sold to o1
        3s o1 is referenced pi_1 -> must not confirm",
    );
    // In one batch with what it makes known.
    check(
        "hall A1 price 1000
        0s ada holds A1 as h1 -> held until 300s
        1s ada pays h1 as o1 -> begun
        together
        2s callback ev1 about pi_1 of o1 says unconfirmed -> stale
        2s callback ev2 about pi_1 of o1 unread -> parked
        2s o1 is referenced pi_1 -> may confirm
        end
        ev2 parked due 12s; o1 due 2s",
    );
}

/// A parked message is judged anew until it finds its order.
#[test]
fn a_message_without_an_order_waits_for_it() {
    check(
        "hall A1 price 1000
        0s ada holds A1 as h1 -> held until 300s
        1s ada pays h1 as o1 -> begun
        2s callback ev1 about pi_1 unread -> parked
        ev1 parked due 12s; cases none
        3s o1 is referenced pi_1 -> may confirm
        12s callback ev1 about pi_1 says authorized -> applied
        ev1 applied due never; A1 sold to o1; cases none
        13s callback ev1 about pi_1 says authorized -> duplicate",
    );
}

/// a success that can't be read back moves nothing, but the worker is sent to look.
#[test]
fn an_unreadable_message_moves_nothing() {
    begun(
        "2s callback ev1 about pi_1 unread -> parked
        ev1 parked due 12s; o1 AWAITING_PAYMENT PENDING; o1 due 2s
        12s callback ev1 about pi_1 unread -> parked
        ev1 parked due 22s
        700s callback ev1 about pi_1 unread -> parked
        ev1 parked due 710s; cases none
        710s callback ev1 about pi_1 says authorized -> applied
        ev1 applied due never; A1 sold to o1",
    );
    // What is due already is not put off by it, and what is done is not looked at again.
    begun(
        "30s callback ev1 about pi_1 unread -> parked
        o1 due 21s
        31s o1 answers authorized -> applied
        o1 due 46s
        32s callback ev2 about pi_1 unread -> parked
        o1 due 46s",
    );
}

#[test]
fn a_message_of_no_interest_is_stale() {
    begun(
        "2s callback ev1 about pi_1 irrelevant -> stale
        2s callback ev2 irrelevant -> stale
        2s callback ev2 irrelevant -> duplicate
        ev1 stale due never; ev2 stale due never; o1 AWAITING_PAYMENT PENDING",
    );
}

/// A payment nobody can place becomes a case, once.
#[test]
fn an_orphan_becomes_a_case_in_the_end() {
    check(
        "hall A1 price 1000
        10s callback ev1 about pi_9 says authorized -> parked
        ev1 parked due 20s
        609.999s callback ev1 about pi_9 says authorized -> parked
        cases none
        610s callback ev1 about pi_9 unread -> parked
        ev1 parked due never with a case; cases orphan_payment
        700s callback ev1 about pi_9 says authorized -> parked
        cases orphan_payment
        701s operator resolves orphan_payment with void -> no: the case has no payment of ours: settle it with the provider, then dismiss it
        702s operator resolves orphan_payment with dismiss -> acted
        cases none
        703s operator resolves orphan_payment with dismiss -> case closed
        704s callback ev1 about pi_9 says authorized -> parked
        cases none",
    );
}

/// A payment that became a case and finds its order after all is no orphan any more.
#[test]
fn an_orphan_that_finds_its_order_settles_its_case() {
    check(
        "hall A1 price 1000; ttl 1000s
        0s ada holds A1 as h1 -> held until 1000s
        1s ada pays h1 as o1 -> begun
        2s callback ev1 about pi_1 at hall unread -> parked
        602s callback ev1 about pi_1 at hall unread -> parked
        ev1 parked due never with a case; cases orphan_payment
        603s o1 is referenced pi_1 -> may confirm
        604s callback ev1 about pi_1 unread -> parked
        ev1 parked due 614s; cases none
        614s callback ev1 about pi_1 says authorized -> applied
        A1 sold to o1",
    );
}

/// An order of an installation that isn't this one.
#[test]
fn a_message_for_an_event_that_is_not_here_is_not_judged() {
    begun("2s callback ev1 about pi_7 at nowhere says authorized -> not found");
}

/// one payment, two claims.
#[test]
fn a_message_that_claims_anothers_order_is_a_conflict() {
    begun(
        "1s ben holds A2 as h2 -> held until 101s
        1s ben pays h2 as o2 -> begun
        1s o2 is referenced pi_2 -> may confirm
        2s callback ev1 about pi_1 claims o2 says authorized -> conflict
        cases callback_conflict o1; A1 held by h1; A2 held by h2
        2s callback ev2 about pi_1 claims o1 says authorized -> applied
        2s callback ev3 about pi_2 says authorized claiming o1 -> conflict
        cases callback_conflict o1, callback_conflict o2; o2 AWAITING_PAYMENT PENDING; A2 held by h2",
    );
}

/// A payment that contradicts the books is neither sent on nor asked about without pause.
#[test]
fn a_contradiction_is_left_to_a_person() {
    begun(
        "30s o1 answers unconfirmed claiming o1 named pi_7 -> conflict
        cases callback_conflict o1; o1 due 44.500s
        31s operator resolves callback_conflict o1 with release -> acted
        h1 RELEASED; o1 CANCELLED VOID_PENDING; A1 free; cases none
        32s o1 void answers authorized named pi_7 -> conflict
        cases callback_conflict o1; o1 void due 33s",
    );
}

/// What belongs to an event is not decided in the house, which has no say over its rows.
#[test]
fn a_message_that_went_to_the_wrong_place_is_sent_on() {
    begun(
        "2s callback ev1 about pi_1 at house says authorized -> parked
        ev1 parked due 12s; o1 AWAITING_PAYMENT PENDING; cases none
        700s callback ev1 about pi_1 at house says authorized -> parked
        ev1 parked due 710s; cases none
        700s callback ev1 about pi_1 says authorized -> applied
        ev1 applied due never; A1 sold to o1
        701s callback ev1 about pi_1 content other at house says authorized -> conflict",
    );
}
