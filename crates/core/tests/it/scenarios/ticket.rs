//! Tickets: when there are any, and who gets in with them.

use crate::script::check;

const SOLD: &str = "hall A1 A2 price 1000
    0s ada holds A1 A2 as h1 -> held until 300s
    1s ada pays h1 as o1 -> begun
    1s o1 is referenced pi_1 -> may confirm
    2s o1 answers authorized -> applied\n";

const TICKETED: &str = "hall A1 A2 price 1000; reentry
    0s ada holds A1 A2 as h1 -> held until 300s
    1s ada pays h1 as o1 -> begun
    1s o1 is referenced pi_1 -> may confirm
    2s o1 answers authorized -> applied
    3s o1 capture answers captured -> applied
    4s worker tickets o1 -> issued\n";

/// set aside is not taken, and no answer is no proof.
#[test]
fn tickets_are_made_on_proof_alone_and_once() {
    check(
        "hall A1 A2 price 1000
        0s ada holds A1 A2 as h1 -> held until 300s
        1s ada pays h1 as o1 -> begun
        1s worker tickets o1 -> no tickets
        1s o1 is referenced pi_1 -> may confirm
        2s o1 answers none -> applied
        2s worker tickets o1 -> no tickets
        3s o1 answers authorized -> applied
        o1 CONFIRMED AUTHORIZED
        3s worker tickets o1 -> no tickets
        4s o1 capture answers none -> applied
        4s worker tickets o1 -> no tickets
        tickets o1 none; A1 A2 sold to o1
        9s o1 capture answers captured -> applied
        9s worker tickets o1 -> issued
        tickets o1 A1 VALID 1, A2 VALID 1; log tickets.issued
        10s worker tickets o1 -> issued
        tickets o1 A1 VALID 1, A2 VALID 1; log tickets.issued",
    );
    // Charged at once, the money is there with the sale.
    check(
        "hall A1 price 1000; charge
        0s ada holds A1 as h1 -> held until 300s
        1s ada pays h1 as o1 -> begun
        1s o1 is referenced pi_1 -> may confirm
        2s o1 answers captured -> applied
        2s worker tickets o1 -> issued
        tickets o1 A1 VALID 1",
    );
}

/// what is compensated has no tickets, and its seat's next buyer has their own.
#[test]
fn a_sale_that_is_undone_has_no_tickets() {
    check(&format!(
        "{SOLD}3s o1 capture answers refused -> applied
        4s worker tickets o1 -> no tickets
        5s o1 void answers voided -> applied
        5s worker tickets o1 -> no tickets
        tickets o1 none; o1 CANCELLED VOIDED
        6s ben holds A1 as h2 -> held until 306s
        7s ben pays h2 as o2 -> begun
        7s o2 is referenced pi_2 -> may confirm
        8s o2 answers authorized -> applied
        9s o2 capture answers captured -> applied
        9s worker tickets o2 -> issued
        tickets o2 A1 VALID 1; tickets o1 none"
    ));
}

#[test]
fn one_is_let_in_with_a_ticket_and_a_scan_has_one_answer() {
    check(&format!(
        "{TICKETED}5s gate north scans o1 A1 as s1 -> ADMIT 5s north
        tickets o1 A1 VALID 1 inside, A2 VALID 1; log ticket.scanned
        6s gate south scans o1 A1 as s2 -> ALREADY_USED 5s north
        7s gate north scans o1 A1 as s1 -> ADMIT 5s north
        7s gate south scans o1 A2 as s2 -> key reused
        7s gate north scans o1 A1 as s2 -> key reused
        7s gate south scans o1 A1 as s2 out -> key reused
        7s gate south scans o1 A1 as s2 generation 2 -> key reused
        7s gate south scans o1 A1 as s2 at 5s -> key reused
        8s gate south scans o1 A1 as s2 at 6s -> ALREADY_USED 5s north
        9s gate south scans o1 A2 as s3 elsewhere -> WRONG_EVENT
        together
        10s gate south scans o1 A2 as s4 -> ADMIT 10s south
        10s gate north scans o1 A2 as s5 -> ALREADY_USED 10s south
        10s gate south scans o1 A2 as s4 -> ADMIT 10s south
        end
        tickets o1 A1 VALID 1 inside, A2 VALID 1 inside"
    ));
}

#[test]
fn who_has_left_comes_in_again_where_that_is_allowed() {
    check(&format!(
        "{TICKETED}5s gate north scans o1 A1 as s1 out -> NOT_INSIDE
        6s gate north scans o1 A1 as s2 -> ADMIT 6s north
        7s gate north scans o1 A1 as s3 out -> EXITED
        7s gate north scans o1 A1 as s4 out -> NOT_INSIDE
        8s gate south scans o1 A1 as s5 -> ADMIT 6s north
        9s gate south scans o1 A1 as s6 -> ALREADY_USED 6s north
        9s gate north scans o1 A1 as s3 out -> EXITED
        tickets o1 A1 VALID 1 inside, A2 VALID 1"
    ));
    check(&format!(
        "{}5s gate north scans o1 A1 as s1 -> ADMIT 5s north
        6s gate north scans o1 A1 as s2 out -> EXITED
        7s gate north scans o1 A1 as s3 -> ALREADY_USED 5s north
        tickets o1 A1 VALID 1, A2 VALID 1",
        TICKETED.replace("; reentry", "")
    ));
}

/// The barcodes before are worthless; who is inside is in with the ticket, and not with the paper.
#[test]
fn a_ticket_issued_anew_is_the_one_that_counts() {
    check(&format!(
        "{TICKETED}5s operator reissues o1 A1 generation 1 -> reissued
        tickets o1 A1 VALID 2, A2 VALID 1; log tickets.moved
        5s operator reissues o1 A1 generation 1 -> reissued
        tickets o1 A1 VALID 2, A2 VALID 1
        5s operator reissues o1 A1 generation 3 -> no: the ticket has no such generation
        6s gate north scans o1 A1 as s1 generation 1 -> REVOKED
        6s gate north scans o1 A1 as s2 generation 3 -> REVOKED
        7s gate north scans o1 A1 as s3 generation 2 -> ADMIT 7s north
        8s operator reissues o1 A1 generation 2 -> reissued
        8s operator reissues o1 A1 generation 1 -> reissued
        tickets o1 A1 VALID 3 inside, A2 VALID 1
        9s gate north scans o1 A1 as s4 generation 3 -> ALREADY_USED 7s north
        10s gate north scans o1 A1 as s5 generation 2 out -> EXITED
        11s gate north scans o1 A1 as s6 generation 2 -> REVOKED
        12s gate north scans o1 A1 as s7 generation 3 -> ADMIT 7s north
        tickets o1 A1 VALID 3 inside, A2 VALID 1"
    ));
}

/// The books decide in the order in which they hear of it. Whom a scanner let in by itself stays on record.
#[test]
fn a_scanner_that_could_not_ask_is_believed_and_contradicted() {
    check(&format!(
        "{TICKETED}9s gate north scans o1 A1 as s1 at 7s offline -> ADMIT 9s north
        conflicts none
        10s gate south scans o1 A1 as s2 at 6s offline -> ALREADY_USED 9s north
        conflicts s2
        10s gate south scans o1 A1 as s2 at 6s offline -> ALREADY_USED 9s north
        11s gate south scans o1 A1 as s3 -> ALREADY_USED 9s north
        conflicts s2
        12s gate south scans o1 A1 as s3 offline -> ALREADY_USED 9s north
        conflicts s2, s3
        13s gate south scans o1 A1 as s3 -> ALREADY_USED 9s north
        conflicts s2, s3
        14s gate north scans o1 A2 as s4 -> ADMIT 14s north
        15s gate north scans o1 A2 as s4 offline -> ADMIT 14s north
        conflicts s2, s3
        tickets o1 A1 VALID 1 inside, A2 VALID 1 inside"
    ));
}
