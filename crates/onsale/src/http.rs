//! The only place with our JSON and HTML: listeners, extractors, problems, and a file for each group of routes.

pub(crate) mod extract;
pub(crate) mod listener;
pub(crate) mod problem;

mod access;
mod callbacks;
mod caller;
pub(crate) mod cases;
mod csv;
mod docs;
mod erasures;
mod events;
mod ga;
mod gate;
mod health;
mod holds;
mod idempotency;
mod keys;
mod manifest;
mod orders;
pub(crate) mod reasons;
mod reconciliation;
mod refunds;
mod reports;
pub(crate) mod router;
mod seats;
mod sessions;
mod test_mode;
mod tickets;
mod webhooks;
pub(crate) mod wire;
