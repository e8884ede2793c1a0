//! Every interleaving, within bounds.
mod explore;
mod key;
mod model;
mod moves;
mod properties;
mod provider;
mod rare;
mod telling;

use explore::explore;
use model::{Left, Sale};
use rare::Rare;

fn run(hall: &'static str, choices: [&'static [&'static [u32]]; 2], limits: Left) {
    let sale = Sale { hall, choices, limits };
    let explored = explore(&sale);
    let missing: Vec<Rare> = Rare::ALL.into_iter().filter(|rare| explored.rare & rare.bit() == 0).collect();
    eprintln!(
        "{hall} {}{}{}: {} states, {} transitions, {} settling, not reached: {missing:?}",
        limits.holds, limits.attempts, limits.faults, explored.states, explored.transitions, explored.settling
    );
}

const ONE: [&[&[u32]]; 2] = [&[&[0]], &[&[0]]];
const PAIRS: [&[&[u32]]; 2] = [&[&[0, 1], &[2]], &[&[1, 2], &[0]]];

#[test]
#[allow(clippy::disallowed_methods)]
fn tmp() {
    let var = |name: &str, or: &str| std::env::var(name).unwrap_or(or.to_owned());
    let n: Vec<u8> = var("LIM", "2,1,1,1,1,1,1,1,1").split(',').map(|n| n.parse().unwrap()).collect();
    let of = [n[3], n[4], n[5], n[6], n[7], n[8]];
    let limits = Left { holds: n[0], attempts: n[1], faults: n[2], of };
    let pairs = var("PAIRS", "") != "";
    let seats = if pairs { "A1 A2 A3" } else { "A1" };
    let hall = format!("hall {seats} price 1000; ttl 20s grace 20s in_doubt {}", var("POL", "keep"));
    run(Box::leak(hall.into_boxed_str()), if pairs { PAIRS } else { ONE }, limits);
}
