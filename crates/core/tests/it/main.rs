//! Integration tests, one binary: scenarios as text, errands, every interleaving within bounds, and choices of seats in halls
//! that chance makes. Sales by chance are in `crates/sim`.

mod best_available;
mod errand;
mod interleavings;
mod places;
mod scenarios;
mod script;

use onsale_world as world;
