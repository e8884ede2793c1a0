//! Parties in several rows.

use std::collections::BTreeMap;

use onsale_core::best_available::Best;
use onsale_core::event::OrphanSeats::{Allow, Avoid};

use super::hall::{Chance, Hall};
use super::{brute, check, check_where, wish};

fn split(quantity: u32) -> Best {
    Best { split_rows: true, ..wish(quantity) }
}

#[test]
fn a_party_is_split_only_when_asked_and_when_no_row_has_room() {
    check(&wish(4), &["x..x", "x..x"], &["x..x", "x..x"]);
    check(&split(4), &["x..x", "x..x"], &["xOOx", "xOOx"]);
    check(&split(4), &["x..x", "x..x", "...."], &["x..x", "x..x", "OOOO"]);
    // One row across two levels is still one row.
    check(&split(4), &["x..x", "x..x", "..,,"], &["x..x", "x..x", "OOOO"]);
}

#[test]
fn rows_lie_behind_each_other_in_one_section() {
    check(&split(4), &["x..x", "--", "x..x"], &["x..x", "--", "x..x"]);
    check(&split(4), &["x..x", "xxxx", "x..x"], &["x..x", "xxxx", "x..x"]);
    check(&split(6), &["..x", "..x", "..x"], &["OOx", "OOx", "OOx"]);
    check(&split(8), &["..", "..", "..", ".."], &["OO"; 4]);
    check(&split(10), &["..", "..", "..", "..", ".."], &["..", "..", "..", "..", ".."]);
}

#[test]
fn parts_are_even_and_nobody_of_four_sits_alone() {
    check(&split(5), &["x...x", "x..xx"], &["xOOOx", "xOOxx"]);
    check(&split(5), &["x..xx", "x...x"], &["xOOxx", "xOOOx"]);
    check(&split(6), &["....", "..x."], &["OOOO", "OOx."]);
    check(&split(4), &["...x", ".xxx"], &["...x", ".xxx"]);
    check(&split(3), &["..x", ".xx"], &["OOx", "Oxx"]);
    check(&split(2), &[".xx", ".xx"], &["Oxx", "Oxx"]);
    check(&split(7), &["..x", "...", "..x"], &["OOx", "OOO", "OOx"]);
}

#[test]
fn parts_are_near_each_other() {
    let left = "..xxxxxxxxxxxxxxx..";
    let right = "xxxxxxxxxxxxxxxxx..";
    check(&split(4), &[right, left], &["xxxxxxxxxxxxxxxxxOO", "..xxxxxxxxxxxxxxxOO"]);
    check(&split(4), &[left, right], &["..xxxxxxxxxxxxxxxOO", "xxxxxxxxxxxxxxxxxOO"]);
    // Far apart is better than not at all.
    check(&split(4), &["..xxxxxxxxxxxxxxxxx", right], &["OOxxxxxxxxxxxxxxxxx", "xxxxxxxxxxxxxxxxxOO"]);
}

#[test]
fn single_seats_and_price_levels_matter_here_too() {
    let rows = ["...x", "..xx", "x..x", "x..x"];
    check_where(Avoid, &split(4), &rows, &["...x", "OOxx", "xOOx", "x..x"]);
    check_where(Allow, &split(4), &rows, &[".OOx", "OOxx", "x..x", "x..x"]);
    check_where(Avoid, &split(4), &["...x", "..xx"], &[".OOx", "OOxx"]);
    check(&split(4), &["x..x", "x,,x", "x,,x"], &["x..x", "xOOx", "xOOx"]);
    check(&split(4), &["x..x", "x,,x"], &["xOOx", "xOOx"]);
    check(&Best { price_level: Some(0), ..split(4) }, &["x..x", "x,,x"], &["x..x", "x,,x"]);
}

#[test]
fn one_part_has_the_wheelchair() {
    let accessible = |quantity| Best { accessible: true, ..split(quantity) };
    check(&accessible(4), &["wcx", "..x"], &["OOx", "OOx"]);
    check(&accessible(4), &["..x", "wcx"], &["OOx", "OOx"]);
    check(&accessible(4), &["..x", "..x"], &["..x", "..x"]);
    check(&accessible(4), &["Wcx", "..x", "w.x"], &["Wcx", "OOx", "OOx"]);
    check(&split(4), &["wcx", "..x"], &["wcx", "..x"]);
}

/// Parts by row.
fn by_row(hall: &Hall, chosen: &[usize]) -> BTreeMap<usize, Vec<usize>> {
    let mut parts: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    chosen.iter().for_each(|seat| parts.entry(hall.seats[*seat].row).or_default().push(*seat));
    parts
}

/// Every way to split a party of no wheelchair over two rows, with the single seats it leaves.
fn pairs(hall: &Hall, best: &Best) -> Vec<(Vec<usize>, usize)> {
    let least = if best.quantity >= 4 { 2 } else { 1 };
    let quantity = best.quantity as usize;
    let mut pairs = Vec::new();
    for size in least..=quantity - least {
        let runs = |size: usize| {
            (0..hall.seats.len())
                .map(move |first| (first..first + size).collect::<Vec<_>>())
                .filter(|run| brute::is_allowed(hall, best, run))
        };
        for one in runs(size) {
            for other in runs(quantity - size) {
                let (front, back) = (&hall.seats[one[0]], &hall.seats[other[0]]);
                if front.row + 1 == back.row && front.section == back.section {
                    let left = brute::orphans(hall, &one) + brute::orphans(hall, &other);
                    pairs.push(([one.clone(), other].concat(), left));
                }
            }
        }
    }
    pairs
}

#[test]
fn every_split_is_one() {
    let mut chance = Chance(6);
    let (mut splits, mut none) = (0, 0);
    for _ in 0..40_000 {
        let hall = chance.hall();
        let best = Best { split_rows: true, quantity: 2 + chance.below(5) as u32, ..chance.wish() };
        let single = brute::best(&hall, &best, true);
        let chosen = hall.choose(&best, Avoid);
        if single.is_some() {
            assert_eq!(chosen, single, "{best:?} {hall:?}");
            continue;
        }
        let pairs = if best.accessible { Vec::new() } else { pairs(&hall, &best) };
        let Some(chosen) = chosen else {
            none += 1;
            assert_eq!(pairs, [], "{best:?} {hall:?}");
            continue;
        };
        splits += 1;
        let case = format!("{chosen:?} {best:?} {hall:?}");
        assert_eq!(chosen.len(), best.quantity as usize, "{case}");
        let parts = by_row(&hall, &chosen);
        let rows: Vec<usize> = parts.keys().copied().collect();
        assert!(
            (2..=4).contains(&rows.len()) && rows.windows(2).all(|pair| pair[0] + 1 == pair[1]),
            "{case}"
        );
        assert!(
            chosen.iter().all(|seat| hall.seats[*seat].section == hall.seats[chosen[0]].section),
            "{case}"
        );
        assert!(best.quantity < 4 || parts.values().all(|part| part.len() >= 2), "{case}");
        let plain = Best { accessible: false, ..best.clone() };
        let wheelchairs = parts.values().filter(|part| !brute::is_allowed(&hall, &plain, part));
        let wheelchairs: Vec<&Vec<usize>> = wheelchairs.collect();
        assert_eq!(wheelchairs.len(), usize::from(best.accessible), "{case}");
        assert!(wheelchairs.iter().all(|part| brute::is_allowed(&hall, &best, part)), "{case}");
        assert!(parts.values().all(|part| part.windows(2).all(|pair| pair[0] + 1 == pair[1])), "{case}");
        // As few rows as can be, and no single seat that another two rows would have spared.
        let level = hall.seats[chosen[0]].level;
        let is_of_one_level = chosen.iter().all(|seat| hall.seats[*seat].level == level);
        let alike = |pair: &&(Vec<usize>, usize)| {
            !is_of_one_level
                || pair.0.iter().all(|seat| hall.seats[*seat].level == hall.seats[pair.0[0]].level)
        };
        let left: usize = parts.values().map(|part| brute::orphans(&hall, part)).sum();
        let fewest = pairs.iter().filter(alike).map(|(_, left)| *left).min();
        assert!(left == 0 || fewest.is_none_or(|fewest| fewest > 0), "{case}");
        assert!(rows.len() == 2 || fewest.is_none_or(|fewest| fewest > left), "{case}");
    }
    assert!(splits > 1_000 && none > 1_000, "{splits} {none}");
}
