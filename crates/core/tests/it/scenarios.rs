//! Pages of text, each a test. [`crate::script`] says how to read them.

mod callback;
mod case;
mod checkout;
mod hold;
mod money;
mod payment;
mod sale;
mod timelines;
