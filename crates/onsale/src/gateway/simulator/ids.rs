//! Ids as the provider's look: a prefix and 24 letters and digits.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A source of ids; the same seed gives the same ids.
pub(super) struct Ids(StdRng);

impl Ids {
    /// A source from a seed.
    pub(super) fn new(seed: u64) -> Ids {
        Ids(StdRng::seed_from_u64(seed))
    }

    /// The next id: 20 letters of chance behind a mark that tells the simulator's ids from the provider's.
    pub(super) fn mint(&mut self, prefix: &str) -> String {
        let mut id = String::with_capacity(prefix.len() + 24);
        id.push_str(prefix);
        id.push_str("3Sim");
        for _ in 0..2 {
            let mut chance = self.0.next_u64();
            for _ in 0..10 {
                id.push(ALPHABET[(chance % 62) as usize].into());
                chance /= 62;
            }
        }
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_follow_from_the_seed_and_differ() {
        let mut ids = Ids::new(7);
        let (first, second) = (ids.mint("pi_"), ids.mint("pi_"));
        assert_ne!(first, second);
        assert_eq!(first.len(), 27);
        assert_eq!(Ids::new(7).mint("pi_"), first);
        assert_ne!(Ids::new(8).mint("pi_"), first);
    }
}
