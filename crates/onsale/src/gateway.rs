//! The payment provider: the adapter that speaks its protocol, and a simulator that answers in it.

pub(crate) mod simulator;
pub(crate) mod stripe;
