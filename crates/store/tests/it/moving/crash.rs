//! A mover that ends after any of its steps, and what is done about it.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use onsale_core::id::EventId;
use onsale_store::{MoveError, Step, SubmitError, cancel_move};

use crate::world::{HALL, account, picture, place_hold};

use super::{Installation, TABLES};

/// Runs something that tells its steps, to its end or until it has told so many; the last it told, if it was stopped.
fn stopped_after<R>(steps: usize, work: impl FnOnce(&mut dyn FnMut(Step)) -> R) -> Option<Step> {
    let (mut told, mut last) = (0, None);
    let mut tell = |step: Step| {
        told += 1;
        last = Some(step);
        if told == steps {
            // Everything is dropped where it stands, as when the program ends.
            resume_unwind(Box::new(()));
        }
    };
    let done = catch_unwind(AssertUnwindSafe(|| work(&mut tell)));
    if done.is_err() { last } else { None }
}

/// The step at which everything has arrived: the audit, the record and the freezing come first, then a copy of each table.
const ARRIVED: usize = 3 + TABLES.len() + 1 + 1;

fn stopped_move(all: &Installation, event: EventId, to: &str, steps: usize) -> Option<Step> {
    stopped_after(steps, |told| all.try_move(event, to, told).expect("it moves as far as it goes"))
}

/// Where a hold may be placed.
fn deciding(all: &Installation, account_name: &str) -> Vec<&'static str> {
    let takes = |name: &str| {
        let request = all.world.request(place_hold(&account(account_name), &[2]));
        match all.store(name).submit_blocking(request) {
            // Seat 2 is held, so that nothing changes where it is decided.
            Ok(decision) => format!("{:?}", decision.outcome).contains("SeatUnavailable"),
            Err(SubmitError::Elsewhere) => false,
            Err(other) => panic!("{other}"),
        }
    };
    all.homes.iter().map(|(name, _)| *name).filter(|name| takes(name)).collect()
}

#[test]
fn a_move_that_stopped_after_any_step_is_finished() {
    let mut all = Installation::new();
    all.world.sell_everything();
    let (event, before) = (all.event(), picture(&all.world.store, HALL));
    // To and fro, so that what an earlier move has left is there too.
    for (steps, to) in (1..).zip(["east", "main"].into_iter().cycle()) {
        let from = if to == "east" { "main" } else { "east" };
        let Some(last) = stopped_move(&all, event, to, steps) else { break };
        let decides = deciding(&all, "gus");
        let expected: &[&str] = match last {
            Step::Audited { .. } if decides == [from] => &[from],
            Step::Recorded { .. } => &[from],
            Step::Opened { .. } | Step::Cleared { .. } => &[to],
            _ => &[],
        };
        assert_eq!(decides, expected, "after {last:?}");
        all.move_to(event, to);
        all.go_to(to);
        assert_eq!(picture(&all.world.store, HALL), before, "stopped after {last:?}");
        assert_eq!((all.at_home(), all.rows(from)), (vec![to], 0), "stopped after {last:?}");
    }
    let at = all.at_home()[0];
    all.go_to(at);
    all.finish(at);
}

#[test]
fn a_move_that_stopped_before_it_switched_is_undone() {
    let all = Installation::new();
    all.world.sell_everything();
    let (event, before) = (all.event(), picture(&all.world.store, HALL));
    let mut undone = 0;
    for steps in 1.. {
        let last = stopped_move(&all, event, "east", steps).expect("it isn't done yet");
        match (all.cancel(event), &last) {
            (Ok(()), _) => undone += 1,
            // The first step is to look.
            (Err(MoveError::NotUnderWay), Step::Audited { .. }) => {}
            (Err(MoveError::Switched(to)), Step::Switched { .. }) if to == "east" => break,
            (Err(error), last) => panic!("after {last:?}: {error}"),
        }
        assert_eq!(picture(&all.world.store, HALL), before, "undone after {last:?}");
        assert_eq!((all.at_home(), all.rows("east")), (vec!["main"], 0), "undone after {last:?}");
        assert_eq!(deciding(&all, "gus"), ["main"], "undone after {last:?}");
    }
    assert!(undone > 15, "{undone}");
    let mut all = all;
    all.move_to(event, "east");
    all.go_to("east");
    assert_eq!(picture(&all.world.store, HALL), before);
    all.finish("east");
}

#[test]
fn an_undoing_that_stopped_is_done_again_or_the_move_is_resumed() {
    let mut all = Installation::new();
    all.world.sell_everything();
    let (event, before) = (all.event(), picture(&all.world.store, HALL));
    for steps in 1.. {
        // Until everything has arrived.
        let whole = stopped_move(&all, event, "east", ARRIVED).expect("it isn't done yet");
        assert!(matches!(whole, Step::Arrived { .. }), "{whole:?}");
        let undoing =
            |told: &mut dyn FnMut(Step)| cancel_move(&all.options(), event, told).expect("it is undone");
        let Some(last) = stopped_after(steps, undoing) else { break };
        all.cancel(event).expect("it is undone");
        assert_eq!(picture(&all.world.store, HALL), before, "stopped after {last:?}");

        stopped_move(&all, event, "east", ARRIVED);
        stopped_after(steps, |told| cancel_move(&all.options(), event, told).expect("it is undone"));
        all.move_to(event, "east");
        all.go_to("east");
        assert_eq!(picture(&all.world.store, HALL), before, "stopped after {last:?}");
        all.move_to(event, "main");
        all.go_to("main");
        assert_eq!(all.rows("east"), 0);
    }
    all.finish("main");
}
