//! Integration tests, one binary: scenarios as text, chance, and every interleaving within bounds.

mod chance;
mod interleavings;
mod scenarios;
mod script;

use onsale_world as world;
