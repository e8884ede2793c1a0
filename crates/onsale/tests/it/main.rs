//! Integration tests, one binary: the real program, over HTTP.

mod bad_input;
mod cli;
#[cfg(feature = "fail-points")]
mod crash_points;
mod crashes;
mod disk;
mod gate;
mod homes;
mod manifest;
mod overload;
mod processes;
mod public_reports;
mod routes;
mod sockets;
mod util;
mod webhooks;
