//! Tests of the routes, a file for each group of promises.

mod best_available;
mod callbacks;
mod contention;
mod erasures;
mod events;
mod payments;
mod places;
mod reconciliation;
mod refunds;
mod reports;
mod sale;
mod ties;
mod timelines;
