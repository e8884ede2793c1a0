//! Pages of text, each a test. [`crate::script`] says how to read them. [`broken_books`] alone needs more than a page can say.

mod broken_books;
mod callback;
mod case;
mod checkout;
mod hold;
mod money;
mod payment;
mod reconcile;
mod sale;
mod ticket;
mod timelines;
