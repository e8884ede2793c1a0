//! The rules of an on-sale.
//!
//! One function, [`decide`](command::decide), takes the rows a command touches, the command and a time, and answers
//! with an outcome; the rows it was given move on. It does no I/O, reads no clock and draws no chance, so the store,
//! the simulator and the tests all run the very same rules.
//!
//! Reading order: the words ([`id`], [`money`], [`time`], [`limits`]), what is sold ([`manifest`], [`event`],
//! [`seat_map`], [`ga`], [`access`]), the lifecycles ([`hold`], [`order`], [`payment`], [`refund`], [`ticket`],
//! [`reconcile`]) and the provider's books beside ours ([`comparison`]), how seats are chosen ([`layout`], [`board`],
//! [`best_available`]), then how a decision is made ([`snapshot`], [`command`]), and what a worker does about what was
//! decided ([`errand`]).

#[cfg(feature = "planted-bugs")]
pub mod planted;

/// Whether a bug of `planted` is in force: never, in any program that sells.
#[cfg(feature = "planted-bugs")]
#[macro_export]
macro_rules! planted {
    ($bug:ident) => {
        $crate::planted::is_planted($crate::planted::Bug::$bug)
    };
}

/// Whether a planted bug is in force: there are none in this build.
#[cfg(not(feature = "planted-bugs"))]
#[macro_export]
macro_rules! planted {
    ($bug:ident) => {
        false
    };
}

pub mod id;
pub mod limits;
pub mod money;
pub mod time;

pub mod access;
pub mod event;
pub mod ga;
pub mod gateway;
pub mod manifest;
pub mod seat_map;

pub mod hold;
pub mod idempotency;
pub mod log;
pub mod order;
pub mod payment;
pub mod reconcile;
pub mod refund;
pub mod refusal;
pub mod ticket;

pub mod best_available;
pub mod board;
pub mod comparison;
pub mod layout;

pub mod snapshot;

pub mod command;
mod decide;

pub mod errand;
