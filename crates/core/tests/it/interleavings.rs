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
fn one_211() {
    run("hall A1 price 1000; ttl 20s grace 20s in_doubt keep", ONE, Left { holds: 2, attempts: 1, faults: 1, of: [1; 6] });
}
#[test]
fn pairs_211() {
    run("hall A1 A2 A3 price 1000; ttl 20s grace 20s in_doubt keep", PAIRS, Left { holds: 2, attempts: 1, faults: 1, of: [1; 6] });
}
#[test]
fn one_212() {
    run("hall A1 price 1000; ttl 20s grace 20s in_doubt keep", ONE, Left { holds: 2, attempts: 1, faults: 2, of: [1; 6] });
}
#[test]
fn pairs_212() {
    run("hall A1 A2 A3 price 1000; ttl 20s grace 20s in_doubt keep", PAIRS, Left { holds: 2, attempts: 1, faults: 2, of: [1; 6] });
}
#[test]
fn one_320() {
    run("hall A1 price 1000; ttl 20s grace 20s in_doubt keep", ONE, Left { holds: 3, attempts: 2, faults: 0, of: [1; 6] });
}
#[test]
fn pairs_320() {
    run("hall A1 A2 A3 price 1000; ttl 20s grace 20s in_doubt keep", PAIRS, Left { holds: 3, attempts: 2, faults: 0, of: [1; 6] });
}
#[test]
fn one_220() {
    run("hall A1 price 1000; ttl 20s grace 20s in_doubt keep", ONE, Left { holds: 2, attempts: 2, faults: 0, of: [1; 6] });
}
#[test]
fn pairs_220() {
    run("hall A1 A2 A3 price 1000; ttl 20s grace 20s in_doubt keep", PAIRS, Left { holds: 2, attempts: 2, faults: 0, of: [1; 6] });
}
#[test]
fn one_221() {
    run("hall A1 price 1000; ttl 20s grace 20s in_doubt keep", ONE, Left { holds: 2, attempts: 2, faults: 1, of: [1; 6] });
}
#[test]
fn pairs_221() {
    run("hall A1 A2 A3 price 1000; ttl 20s grace 20s in_doubt keep", PAIRS, Left { holds: 2, attempts: 2, faults: 1, of: [1; 6] });
}
