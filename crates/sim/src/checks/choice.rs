//! Seats chosen for a buyer: those that the rows themselves make the best, and none only where there are none.

use std::sync::Arc;

use onsale_core::best_available::choose;
use onsale_core::board::Board;
use onsale_core::command::{Command, Decision, Outcome, Request};
use onsale_core::event::InDoubt;
use onsale_core::hold::HoldStatus;
use onsale_core::id::SeatOrdinal;
use onsale_core::refusal::Refusal;
use onsale_core::seat_map::{Seat, SeatStatus};
use onsale_core::time::Timestamp;
use onsale_world::{HALL, World};

use crate::Broken;
use crate::coverage::{Coverage, Sometimes};

use super::places::opened;

/// What came of a wish that was alone in its batch.
pub(super) fn chosen(
    request: &Request,
    decision: &Decision,
    world: &World,
    now: Timestamp,
    coverage: &mut Coverage,
) -> Result<(), Broken> {
    let Command::PlaceHold { wish, code, .. } = &request.command else {
        return Ok(());
    };
    let Some(best) = wish.best.as_ref().filter(|_| !decision.replayed) else {
        return Ok(());
    };
    let board = board(world, now);
    let orphan_seats = world.hall().policy.orphan_seats;
    let own = opened(world, code).and_then(|own| choose(&board, best, Some(own), orphan_seats));
    let expected = own.or_else(|| choose(&board, best, None, orphan_seats));
    let told = match &decision.outcome {
        Outcome::HoldPlaced(placed) => Some(placed.hold.seats.clone()),
        Outcome::Refused(Refusal::NotEnoughAvailable { area: None }) if wish.ga.is_empty() => None,
        Outcome::Refused(Refusal::SeatUnavailable(seats)) => {
            let what = format!("{:?} at {now:?}: {seats:?}", request.command);
            return Err(Broken::new("step: what is chosen can be had", what));
        }
        _ => return Ok(()),
    };
    coverage.saw(if told.is_some() { Sometimes::Chosen } else { Sometimes::NoneToChoose });
    if told == expected {
        return Ok(());
    }
    let what = format!("{:?} at {now:?}: {told:?}, and {expected:?} were to be had", request.command);
    Err(Broken::new("step: the best there are are chosen", what))
}

/// The seats as who chooses at this time may have them: those of holds that are over are free.
fn board(world: &World, now: Timestamp) -> Board {
    let keeps = world.hall().policy.in_doubt == InDoubt::Keep;
    let digit = |seat: &Seat| match seat.status {
        SeatStatus::Held { hold, expires_at } if expires_at <= now => {
            let pending = world.holds[&hold].status == HoldStatus::PaymentPending;
            if pending && keeps { 1 } else { 0 }
        }
        status => status.digit(),
    };
    let seats = world.seats.range((HALL, SeatOrdinal(0))..=(HALL, SeatOrdinal(u32::MAX)));
    let seats = seats.map(|(_, seat)| (digit(seat), seat.allocation, seat.version));
    let layout = Arc::clone(&world.layouts[&HALL]);
    Board::new(layout, world.hall().version, seats).expect("a row for each seat")
}
