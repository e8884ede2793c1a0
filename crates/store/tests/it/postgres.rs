//! The same tests over a PostgreSQL server, a database of its own for each, and those that only a server can have.

mod batch;
mod best_available;
mod callback;
mod comparison;
mod contention;
mod hold;
mod moving;
mod outbox;
mod payment;
mod places;
mod read;
mod sale;
mod server;
mod ticket;
mod world;

/// Whether this is the program that tests the store on a server: the same files are part of both.
const ON_POSTGRES: bool = true;
