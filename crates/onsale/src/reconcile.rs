//! Book against book: the provider's lists beside our operations, each difference a case. [`run`] goes through a stretch of time,
//! [`schedule`] says when and how far it has come, and [`installation`] is what either needs, of a server or of the command line.
//!
//! What agrees costs a look-up and no more. What doesn't is read again, by itself, and decided by the core: several may do the
//! same at once and come to the same questions.

mod installation;
mod questions;
pub(crate) mod run;
pub(crate) mod schedule;
mod summary;

pub(crate) use installation::{Databases, Installation};
pub(crate) use run::RunError;
pub(crate) use summary::Summary;
