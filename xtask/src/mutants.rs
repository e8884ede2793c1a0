//! The core with one place changed at a time: do the tests notice?

use std::path::Path;

use crate::tools::{answers, cargo, succeed};

/// The least share of the changes, in percent, that some test must notice.
const CAUGHT_MIN: usize = 90;

/// Runs `cargo mutants` with the settings of `.cargo/mutants.toml`, and counts what it wrote down.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    if !answers(&mut cargo(root, &["mutants", "--version"])) {
        succeed(&mut cargo(root, &["install", "cargo-mutants", "--locked"]))?;
    }
    // Where its settings tell it to write.
    let folder = root.join("target");
    // It ends with a failure of its own when any change goes unnoticed; the share decides, not that.
    let ended = succeed(&mut cargo(root, &["mutants", "--package", "onsale-core"]));
    let count = |name: &str| {
        let path = folder.join("mutants.out").join(name);
        std::fs::read_to_string(&path)
            .map(|text| text.lines().count())
            .map_err(|error| format!("{} can't be read ({error}); the run: {ended:?}", path.display()))
    };
    let noticed = count("caught.txt")? + count("timeout.txt")?;
    let missed = count("missed.txt")?;
    let share = share(noticed, missed);
    println!("{noticed} changes noticed, {missed} not: {share}%");
    if share < CAUGHT_MIN { Err(format!("only {share}% of the changes were noticed")) } else { Ok(()) }
}

/// Whole percent, rounded down; nothing tried is nothing noticed.
fn share(noticed: usize, missed: usize) -> usize {
    noticed * 100 / (noticed + missed).max(1)
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn a_share_is_never_rounded_up() {
        assert_eq!([share(899, 101), share(9, 1), share(0, 0), share(1, 0)], [89, 90, 0, 100]);
    }
}
