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

fn run(hall: &'static str, wants: [&'static [u32]; 2], limits: Left) {
    let sale = Sale { hall, wants, limits };
    let start = std::time::SystemTime::UNIX_EPOCH;
    let _ = start;
    let explored = explore(&sale);
    let missing: Vec<Rare> = Rare::ALL.into_iter().filter(|rare| explored.rare & rare.bit() == 0).collect();
    eprintln!(
        "{hall}: {} states, {} transitions, {} settling, not reached: {missing:?}",
        explored.states, explored.transitions, explored.settling
    );
}

const ONE: [&[u32]; 2] = [&[0], &[0]];
const PAIRS: [&[u32]; 2] = [&[0, 1], &[1, 2]];

#[test]
fn one_keep() {
    run("hall A1 price 1000; ttl 20s grace 20s in_doubt keep", ONE, LIMITS);
}

const LIMITS: Left = Left { holds: 3, attempts: 2, faults: 1, of: [1, 1, 1, 1, 1, 1] };

#[test]
fn one_release() {
    run("hall A1 price 1000; ttl 20s grace 20s in_doubt release", ONE, LIMITS);
}

#[test]
fn pairs_keep() {
    run("hall A1 A2 A3 price 1000; ttl 20s grace 20s in_doubt keep", PAIRS, LIMITS);
}
