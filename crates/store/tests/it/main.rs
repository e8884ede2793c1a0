//! Integration tests, one binary: a real database in a folder of its own for each.

mod audit;
mod batch;
mod best_available;
mod callback;
mod comparison;
mod contention;
mod disk;
mod file;
mod hold;
mod open;
mod outbox;
mod payment;
mod places;
mod read;
mod sale;
mod ticket;
mod to_postgres;
mod wal;
mod world;

/// Whether this is the program that tests the store on a server: the same files are part of both.
const ON_POSTGRES: bool = false;
