//! The crowd's own books: what each buyer was told, kept apart from the server's memory to be held against it.

use std::sync::{Arc, Mutex};

use super::measures::UNPOISONED;

/// What a buyer was told of one hold and of its order.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub(super) token: Arc<str>,
    pub(super) hold_id: String,
    /// By ordinal, ascending.
    pub(super) seats: Vec<u32>,
    /// On the pitch.
    pub(super) places: u32,
    pub(super) total_minor: i64,
    pub(super) order_id: Option<String>,
    pub(super) told: Told,
}

/// The last thing the buyer was told for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// Nothing yet.
    Open,
    /// The order is confirmed.
    Confirmed,
    /// The hold or the order is over: nothing was sold.
    Over,
}

/// All claims, in the order they were made.
#[derive(Default)]
pub(super) struct Claims(Mutex<Vec<Claim>>);

/// A claim's place in the books.
#[derive(Clone, Copy)]
pub(super) struct ClaimNo(usize);

impl Claims {
    pub(super) fn add(&self, claim: Claim) -> ClaimNo {
        let mut claims = self.0.lock().expect(UNPOISONED);
        claims.push(claim);
        ClaimNo(claims.len() - 1)
    }

    /// An order was acknowledged; the one that was acknowledged before, if that was another.
    pub(super) fn ordered(&self, no: ClaimNo, order_id: &str) -> Option<String> {
        let mut claims = self.0.lock().expect(UNPOISONED);
        let before = claims[no.0].order_id.replace(order_id.to_owned());
        before.filter(|before| before != order_id)
    }

    pub(super) fn told(&self, no: ClaimNo, told: Told) {
        self.0.lock().expect(UNPOISONED)[no.0].told = told;
    }

    /// A copy of all of them.
    pub(super) fn all(&self) -> Vec<Claim> {
        self.0.lock().expect(UNPOISONED).clone()
    }
}
