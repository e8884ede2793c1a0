//! Every interleaving, within bounds. Two buyers, up to three seats and a provider that delays, loses,
//! repeats and refuses: all that may happen in any order is tried, over the real `decide`, until no state is
//! new.
//!
//! The rows are those of [`crate::world`], whose invariants are checked after every decision. The clock
//! stands at 0, and then at the instant before, at and after each of the two deadlines of a first hold; the
//! grace is as long as a hold lives, so that the second deadline is also that of a hold placed at the first.
//! What is sent to the provider may be done at any later instant, and callbacks come at any instant or never,
//! without being counted. What is counted, by each table below:
//!
//! - holds placed, and attempts to pay, by both buyers together; refunds of what was sold;
//! - faults, all together and of each kind: a request, a reply, a reading or a callback that comes later than
//!   what happens after it; a request or a reply that is lost; a callback that is repeated; a request the
//!   provider refuses for good; a surprise, which is a decline that succeeds after all, or an authorization
//!   that lapses or is taken by somebody at the provider; an act of an operator on a case.
//!
//! In every state that is reached, the sale is also left to its workers: see [`properties::settles`]. And
//! each table names rare states that must have been reached, so that a search which misses them fails.

mod action;
mod explore;
mod key;
mod model;
mod moves;
mod properties;
mod provider;
mod rare;
mod telling;

use action::{FAULTS, Left, Sale};
use explore::explore;
use provider::Standing::{self, Declined, Processing, RequiresAction};
use rare::Rare::{self, *};

/// A search, and what it must come to.
struct Table {
    sale: Sale,
    states_min: usize,
    reaches: &'static [Rare],
}

type Choices = [&'static [&'static [u32]]; 2];

/// Both want the one seat.
const ONE_SEAT: Choices = [&[&[0]], &[&[0]]];
/// Of three seats in a row each wants two, and both want the one in the middle.
const OVERLAPPING: Choices = [&[&[0, 1]], &[&[1, 2]]];
/// The same, but either may also do with the other's outer seat.
const PAIRS: Choices = [&[&[0, 1], &[2]], &[&[1, 2], &[0]]];

/// Whatever an attempt may come to.
const ANY: &[Standing] = &[Declined, RequiresAction, Processing];

/// How many faults there may be, and how many of each kind.
type Faults = (u8, [u8; FAULTS]);

const NONE: Faults = (0, [0; FAULTS]);
const ANY_ONE: Faults = (1, [1; FAULTS]);
const ANY_ONE_BUT_A_DELAY: Faults = (1, [0, 1, 1, 1, 1, 1]);
const TWO_DELAYS: Faults = (2, [2, 0, 0, 0, 0, 0]);
const A_LOSS_OR_A_SURPRISE: Faults = (1, [0, 1, 0, 0, 1, 0]);
const A_REFUSAL: Faults = (1, [0, 0, 0, 1, 0, 0]);

/// What a table bounds: the choices, what an attempt may come to, holds and attempts, faults.
const fn table(
    hall: &'static str,
    choices: Choices,
    outcomes: &'static [Standing],
    (holds, attempts): (u8, u8),
    (faults, of): Faults,
    states_min: usize,
    reaches: &'static [Rare],
) -> Table {
    let limits = Left { holds, attempts, refunds: 0, faults, of };
    let places = [&[] as &[u32]; 2];
    Table { sale: Sale { hall, choices, places, outcomes, limits }, states_min, reaches }
}

/// The same with standing places beside the seats, and refunds.
const fn with_refunds(mut table: Table, places: [&'static [u32]; 2], refunds: u8) -> Table {
    table.sale.places = places;
    table.sale.limits.refunds = refunds;
    table
}

const TABLES: [Table; 12] = [
    ONE_KEEP,
    ONE_RELEASE,
    ONE_KEEP_CHARGE,
    ONE_RELEASE_CHARGE,
    DELAYED,
    SECOND_ATTEMPT,
    SOLD_AGAIN,
    OVERLAPPING_KEEP,
    OVERLAPPING_RELEASE_CHARGE,
    PAIRS_KEEP_CHARGE,
    PAIRS_RELEASE,
    REFUNDED,
];

#[test]
fn every_rare_state_is_looked_for() {
    let looked_for = |rare: &Rare| TABLES.iter().any(|table| table.reaches.contains(rare));
    let forgotten: Vec<Rare> = Rare::ALL.into_iter().filter(|rare| !looked_for(rare)).collect();
    assert!(forgotten.is_empty(), "no table says that it reaches {forgotten:?}");
}

fn run(table: &Table) {
    let explored = explore(&table.sale);
    let reached: Vec<Rare> = explored.rare.iter().map(|(rare, _)| *rare).collect();
    let missed: Vec<&Rare> = table.reaches.iter().filter(|rare| !reached.contains(rare)).collect();
    assert!(missed.is_empty(), "never reached: {missed:?}; reached: {reached:?}");
    let (states, transitions, settling) = (explored.states, explored.transitions, explored.settling);
    println!("{states} states, {transitions} transitions, {settling} states while settling: {reached:?}");
    assert!(states >= table.states_min, "only {states} states were reached, not {}", table.states_min);
    // The ways to them are pages, and a page comes to the same.
    for (_, way) in &explored.rare {
        crate::script::check(&telling::tell(&table.sale, way));
    }
}

const ONE_KEEP: Table = table(
    "hall A1 price 1000; ttl 20s grace 20s in_doubt keep",
    ONE_SEAT,
    ANY,
    (2, 1),
    ANY_ONE,
    11_700,
    &[
        TakenOverAtTheInstant,
        CallbackBeforeReply,
        DuplicateAfterCompletion,
        LapsedBeforeCapture,
        SoldAtTheLastInstant,
        LateSuccessRefused,
        DoubtCompleted,
        DoubtFreedByVoid,
        FreedByAPersonThenPaid,
        VoidFoundItTaken,
        StaleSuccessAfterVoid,
    ],
);

#[test]
fn one_seat_whose_doubts_are_kept() {
    run(&ONE_KEEP);
}

const ONE_RELEASE: Table = table(
    "hall A1 price 1000; ttl 20s grace 20s in_doubt release",
    ONE_SEAT,
    ANY,
    (2, 1),
    ANY_ONE_BUT_A_DELAY,
    5_700,
    &[
        TakenOverAtTheInstant,
        DuplicateAfterCompletion,
        LapsedBeforeCapture,
        SoldAtTheLastInstant,
        LateSuccessRefused,
        RefusedAtTheDeadline,
        VoidFoundItTaken,
        FreedByAPersonThenPaid,
    ],
);

#[test]
fn one_seat_that_the_clock_frees() {
    run(&ONE_RELEASE);
}

const ONE_KEEP_CHARGE: Table = table(
    "hall A1 price 1000; ttl 20s grace 20s in_doubt keep charge",
    ONE_SEAT,
    ANY,
    (2, 1),
    ANY_ONE_BUT_A_DELAY,
    4_400,
    &[
        TakenOverAtTheInstant,
        DuplicateAfterCompletion,
        SoldAtTheLastInstant,
        LateSuccessRefused,
        DoubtCompleted,
        VoidFoundItTaken,
        DoubtFreedByVoid,
        FreedByAPersonThenPaid,
    ],
);

#[test]
fn one_seat_charged_at_once_whose_doubts_are_kept() {
    run(&ONE_KEEP_CHARGE);
}

const ONE_RELEASE_CHARGE: Table = table(
    "hall A1 price 1000; ttl 20s grace 20s in_doubt release charge",
    ONE_SEAT,
    ANY,
    (2, 1),
    ANY_ONE_BUT_A_DELAY,
    5_300,
    &[
        TakenOverAtTheInstant,
        DuplicateAfterCompletion,
        SoldAtTheLastInstant,
        LateSuccessRefused,
        RefusedAtTheDeadline,
        VoidFoundItTaken,
        FreedByAPersonThenPaid,
    ],
);

#[test]
fn one_seat_charged_at_once_that_the_clock_frees() {
    run(&ONE_RELEASE_CHARGE);
}

const DELAYED: Table = table(
    "hall A1 price 1000; ttl 20s grace 20s in_doubt release",
    ONE_SEAT,
    &[],
    (2, 1),
    TWO_DELAYS,
    5_100,
    &[
        TakenOverAtTheInstant,
        CallbackBeforeReply,
        SoldAtTheLastInstant,
        LateSuccessRefused,
        RefusedAtTheDeadline,
        StaleSuccessAfterVoid,
    ],
);

#[test]
fn words_that_overtake_each_other() {
    run(&DELAYED);
}

const SECOND_ATTEMPT: Table = table(
    "hall A1 price 1000; ttl 20s grace 20s in_doubt keep",
    ONE_SEAT,
    &[Declined],
    (2, 2),
    A_LOSS_OR_A_SURPRISE,
    9_700,
    &[
        TakenOverAtTheInstant,
        LapsedBeforeCapture,
        SoldAtTheLastInstant,
        LateSuccessRefused,
        SecondAttemptPays,
        SurplusSuccess,
        DoubtCompleted,
        SecondAttemptExpiredUnknown,
        DoubtFreedByVoid,
        VoidFoundItTaken,
    ],
);

#[test]
fn a_second_attempt() {
    run(&SECOND_ATTEMPT);
}

const SOLD_AGAIN: Table = table(
    "hall A1 price 1000; ttl 20s grace 20s in_doubt release",
    ONE_SEAT,
    &[],
    (3, 2),
    A_REFUSAL,
    2_500,
    &[
        TakenOverAtTheInstant,
        SecondAttemptPays,
        SoldAtTheLastInstant,
        LateSuccessRefused,
        RefusedAtTheDeadline,
        SoldAgainAfterRefusedCapture,
        LapsedBeforeCapture,
    ],
);

#[test]
fn a_seat_sold_again() {
    run(&SOLD_AGAIN);
}

const OVERLAPPING_KEEP: Table = table(
    "hall A1 A2 A3 price 1000; ttl 20s grace 20s in_doubt keep",
    OVERLAPPING,
    &[Declined, Processing],
    (3, 2),
    NONE,
    3_900,
    &[
        TakenOverAtTheInstant,
        SecondAttemptPays,
        SoldAtTheLastInstant,
        LateSuccessRefused,
        DoubtCompleted,
        DoubtFreedByVoid,
    ],
);

#[test]
fn overlapping_pairs_whose_doubts_are_kept() {
    run(&OVERLAPPING_KEEP);
}

const OVERLAPPING_RELEASE_CHARGE: Table = table(
    "hall A1 A2 A3 price 1000; ttl 20s grace 20s in_doubt release charge",
    OVERLAPPING,
    &[Declined],
    (3, 2),
    NONE,
    2_000,
    &[
        TakenOverAtTheInstant,
        SecondAttemptPays,
        SoldAtTheLastInstant,
        LateSuccessRefused,
        RefusedAtTheDeadline,
        VoidFoundItTaken,
    ],
);

#[test]
fn overlapping_pairs_charged_at_once_that_the_clock_frees() {
    run(&OVERLAPPING_RELEASE_CHARGE);
}

const PAIRS_KEEP_CHARGE: Table = table(
    "hall A1 A2 A3 price 1000; ttl 20s grace 20s in_doubt keep charge",
    PAIRS,
    &[],
    (2, 2),
    NONE,
    4_400,
    &[
        TakenOverAtTheInstant,
        SoldAtTheLastInstant,
        DoubtCompleted,
        LateSuccessRefused,
        VoidFoundItTaken,
        DoubtFreedByVoid,
    ],
);

#[test]
fn pairs_and_single_seats_charged_at_once_whose_doubts_are_kept() {
    run(&PAIRS_KEEP_CHARGE);
}

const PAIRS_RELEASE: Table = table(
    "hall A1 A2 A3 price 1000; ttl 20s grace 20s in_doubt release",
    PAIRS,
    &[],
    (2, 2),
    NONE,
    4_700,
    &[TakenOverAtTheInstant, SoldAtTheLastInstant, LateSuccessRefused, RefusedAtTheDeadline],
);

#[test]
fn pairs_and_single_seats_that_the_clock_frees() {
    run(&PAIRS_RELEASE);
}

const REFUNDED: Table = with_refunds(
    table(
        "hall A1 price 1000; pitch 2; ttl 20s grace 20s in_doubt release charge",
        ONE_SEAT,
        &[],
        (2, 2),
        (1, [1, 1, 0, 1, 0, 0]),
        31_200,
        &[
            TakenOverAtTheInstant,
            RefundToldByCallback,
            RefundLostThenDone,
            RefundRefused,
            SoldAgainAfterRefund,
            StaleWordAfterResale,
        ],
    ),
    [&[1], &[1]],
    2,
);

#[test]
fn a_seat_and_a_place_that_are_refunded_and_sold_again() {
    run(&REFUNDED);
}
