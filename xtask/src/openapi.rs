//! `docs/openapi.json` is what the program says of itself, kept so that a change to the interface is seen in review.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::tools::{onsale, output};

const FILE: &str = "docs/openapi.json";

/// Writes the document.
pub(crate) fn write(root: &Path) -> Result<(), String> {
    let document = document(root)?;
    fs::write(root.join(FILE), document).map_err(|error| format!("failed to write {FILE}: {error}"))?;
    println!("wrote {FILE}");
    Ok(())
}

/// Asks that the document is what the program says now.
pub(crate) fn compare(root: &Path) -> Result<(), String> {
    let document = document(root)?;
    let kept = fs::read_to_string(root.join(FILE))
        .map_err(|error| format!("failed to read {FILE}: {error}; run `cargo xtask openapi`"))?;
    match difference(&kept, &document) {
        None => Ok(()),
        Some(difference) => Err(format!(
            "{difference}\nIf the change is meant, run `cargo xtask openapi`, and take the file into the change."
        )),
    }
}

fn document(root: &Path) -> Result<String, String> {
    output(Command::new(onsale(root)?).arg("openapi"))
}

fn difference(kept: &str, now: &str) -> Option<String> {
    if kept == now {
        return None;
    }
    let (mut kept, mut now, mut line) = (kept.lines(), now.lines(), 0);
    loop {
        line += 1;
        match (kept.next(), now.next()) {
            (Some(kept), Some(now)) if kept == now => {}
            (None, None) => return Some(format!("{FILE} differs in its line ends")),
            (kept, now) => {
                let [kept, now] = [kept, now].map(|side| side.unwrap_or("(nothing)").trim().to_owned());
                return Some(format!("{FILE}:{line}: the file says\n    {kept}\nand the program\n    {now}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_shown_at_its_line() {
        let check = |kept, now, says: Option<&str>| match (difference(kept, now), says) {
            (found, None) => assert_eq!(found, None),
            (found, Some(says)) => {
                assert!(found.as_deref().is_some_and(|found| found.contains(says)), "{found:?}")
            }
        };
        check("{\n}\n", "{\n}\n", None);
        check("{\n  1\n}\n", "{\n  2\n}\n", Some(":2: the file says\n    1\nand the program\n    2"));
        check("{\n", "{\n}\n", Some(":2: the file says\n    (nothing)"));
        check("{\n}", "{\n}\n", Some("line ends"));
    }
}
