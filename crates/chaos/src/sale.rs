//! The sale: processes of the application, a payment provider, an operator, buyers, and the ledger of what they were told.

mod buyer;
mod client;
mod crowd;
mod event;
mod ledger;
mod shop;

pub(crate) use client::{Client, Said};
pub(crate) use crowd::Crowd;
pub(crate) use event::Event;
pub(crate) use ledger::{Asking, Ledger, Request};
pub(crate) use shop::{Shop, Store};

/// Whether nothing more happens to an order by itself.
pub(crate) fn is_settled(order: &serde_json::Value) -> bool {
    matches!(order["payment_status"].as_str(), Some("DECLINED" | "CAPTURED" | "VOIDED" | "REFUNDED"))
        || order["order_status"] == "EXPIRED"
}
