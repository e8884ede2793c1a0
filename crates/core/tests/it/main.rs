//! Integration tests, one binary: scenarios as text, errands, chance, and every interleaving within bounds.

mod chance;
mod errand;
mod interleavings;
mod scenarios;
mod script;

use onsale_world as world;
