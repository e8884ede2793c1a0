//! Integration tests, one binary: scenarios as text, and chance.

mod chance;
mod scenarios;
mod script;
mod world;
