//! Which seats are wished for: groups of three neighbours in rows that divide into them.

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

/// Seats in a row.
pub(crate) const ROW: usize = 30;
/// Seats in a group.
pub(crate) const GROUP: usize = 3;

/// Every group once, in a random order.
pub(crate) fn shuffled_groups(rows: usize, seed: u64) -> Vec<u32> {
    let mut groups: Vec<u32> = (0..(rows * ROW / GROUP) as u32).collect();
    groups.shuffle(&mut StdRng::seed_from_u64(seed));
    groups
}

/// The body of a wish for a group.
pub(crate) fn wish(group: u32) -> String {
    let first = group as usize * GROUP;
    let (row, seat) = (first / ROW, first % ROW);
    format!(r#"{{"seats":["{row}-{seat}","{row}-{}","{row}-{}"]}}"#, seat + 1, seat + 2)
}

/// Any group, each as likely.
pub(crate) fn any_group(rows: usize, random: &mut StdRng) -> u32 {
    random.random_range(0..(rows * ROW / GROUP) as u32)
}

/// Four in five want the first tenth of the hall.
pub(crate) fn skewed_group(rows: usize, random: &mut StdRng) -> u32 {
    let wanted = if random.random_ratio(4, 5) { rows / 10 } else { rows };
    any_group(wanted.max(1), random)
}
