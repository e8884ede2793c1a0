//! What the tests share: a server that is a process of its own, those who call it, and its payment provider.
//!
//! ```ignore
//! let app = App::start().await;           // test mode: the clock stands, no worker runs, no callback comes
//! let hall = app.hall(json!({ "hold_ttl_s": 10 }), &["A-1", "A-2"]).await;   // every seat costs SEAT_PRICE
//! let ada = app.buyer().await;
//! let hold = ada.hold(&hall, &["A-1"]).await.ok(201);
//! let order_id = ada.pay(&hold).await;                 // 202, a good card
//! app.passes("payments", 2).await;                     // authorize; capture
//! ada.expect_order(&order_id, "CONFIRMED CAPTURED").await;
//! app.finish().await;                                  // audit, books, exit; a test that forgets it fails
//! ```

mod at_once;
mod client;
mod database;
mod grounds;
mod ledger;
mod program;
mod provider;
mod raw;
mod receiver;
mod store;
mod test_app;

pub(crate) use at_once::{counts, crowd, tally, together};
pub(crate) use client::{Ask, Buyer, Client, Reply, eventually, fresh_key, text};
pub(crate) use database::{
    DAMAGES, Lock, cut_off, damage, duties, free_in_rows, hide_prices, make_changed, make_newer,
    make_newer_at, off_balance, put_on_its_way, seats_in_rows, set_for,
};
pub(crate) use grounds::PLACE_PRICE;
pub(crate) use program::{Said, finish, program, run};
pub(crate) use provider::{ProviderProcess, WEBHOOK_SECRET, signature};
pub(crate) use raw::Raw;
pub(crate) use receiver::{Receiver, Told, path_of};
pub(crate) use store::{database_name, keep_in, postgres, url_of};
pub(crate) use test_app::{App, Hall, OPERATOR_KEY, Options, SEAT_PRICE, database, wall_seconds};
