//! Integration tests, one binary: a real database in a folder of its own for each.

mod audit;
mod batch;
mod callback;
mod contention;
mod disk;
mod hold;
mod open;
mod payment;
mod read;
mod sale;
mod world;
