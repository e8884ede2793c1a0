//! The onsale program. `cli` is where it begins, `server` is what it starts, `app` is what everything shares.

mod app;
mod audits;
mod auth;
mod bowl;
mod callbacks;
mod catalog;
mod cli;
mod clock;
mod config;
mod demo;
mod desk;
mod erasure;
mod follow;
mod ga_map;
mod gateway;
mod http;
mod manifest_import;
mod metrics;
mod new_event;
mod order_watch;
mod reconcile;
mod seat_map;
mod server;
mod telemetry;
mod tickets;
mod webhooks;
mod worker;

use std::process::ExitCode;

/// Why, and how far it is measured: docs/decisions/0010-allocator.md.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Before any TLS: the one provider of cryptography in this program.
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        eprintln!("onsale: the provider of cryptography was set twice");
        return ExitCode::FAILURE;
    }
    cli::run()
}
