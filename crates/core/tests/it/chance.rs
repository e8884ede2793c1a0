//! Three buyers, four seats, a provider that loses and delays, and chance from a seed. Whatever they do, a batch comes
//! to the same as its requests one by one, what must hold holds, and in the end all money is accounted for.

mod crowd;
mod provider;

use onsale_core::command::Outcome;
use onsale_core::refusal::Refusal;
use onsale_core::time::Timestamp;

use crowd::Crowd;

/// Numbers from a seed, the same on every machine (SplitMix64).
pub(super) struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 up to, but not, the bound.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub(super) fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(super) fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        if of.is_empty() { None } else { of.get(self.below(of.len())) }
    }
}

#[test]
fn batches_and_chance_keep_every_promise() {
    for seed in 0..96 {
        let told = std::panic::catch_unwind(|| one_sale(seed));
        assert!(told.is_ok(), "seed {seed}");
    }
}

fn one_sale(seed: u64) {
    let mut crowd = Crowd::new(Chance(seed));
    let mut singly = crowd.world.clone();
    for _ in 0..90 {
        crowd.pass_time();
        let now = crowd.now;
        let count = 1 + crowd.chance.below(5);
        let requests: Vec<_> = (0..count).filter_map(|_| crowd.request()).collect();
        let decisions = crowd.world.run(&requests, now);
        for (request, decision) in requests.iter().zip(&decisions) {
            let alone = singly.run(std::slice::from_ref(request), now);
            assert_eq!(alone.first(), Some(decision), "{request:?} in a batch and alone");
        }
        assert!(crowd.world == singly, "a batch leaves the rows that its requests leave one by one");
        requests
            .iter()
            .zip(&decisions)
            .for_each(|(request, decision)| crowd.learn(request, &decision.outcome));
    }
    settle(&mut crowd);
}

/// The buyers have gone: the workers go on until nothing is open, and the books are compared with the provider's.
fn settle(crowd: &mut Crowd) {
    crowd.lost_percent = 0;
    for _ in 0..60 {
        crowd.now = Timestamp::from_millis(crowd.now.millis() + 400_000);
        crowd.provider.finish();
        for request in crowd.chores() {
            let decided = crowd.world.run(std::slice::from_ref(&request), crowd.now);
            // A chore before it may have settled the case of this one.
            let refused = matches!(&decided[0].outcome, Outcome::Refused(why) if *why != Refusal::CaseClosed);
            assert!(!refused, "a chore is never refused: {request:?} {decided:?}");
            crowd.learn(&request, &decided[0].outcome);
        }
        if crowd.is_quiet() {
            return crowd.compare_books();
        }
    }
    panic!("something is open for ever: {:#?}", crowd.open());
}
