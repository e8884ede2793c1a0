//! Tests of the routes, a file for each group of promises.

mod callbacks;
mod contention;
mod payments;
mod sale;
mod ties;
mod timelines;
