//! Integration tests, one binary: scenarios as text, errands, and every interleaving within bounds. Chance is in `crates/sim`.

mod errand;
mod interleavings;
mod places;
mod scenarios;
mod script;

use onsale_world as world;
