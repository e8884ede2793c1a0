//! `cargo xtask tidy`: what no compiler checks. Each fault is printed with its place and the reason of its rule.

mod crates;
mod docs;
mod files;
mod lex;
mod machines;
mod modules;
mod tree;
mod words;

use std::path::Path;

use tree::Tree;

/// Each group of checks is one file, and holds its rules as a table.
const GROUPS: &[fn(&Tree, &mut Report)] =
    &[crates::check, modules::check, words::check, files::check, docs::check, machines::check];

/// What was found.
#[derive(Default)]
struct Report {
    faults: Vec<Fault>,
    /// Worth a look, but no reason to refuse a change.
    notes: Vec<String>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Fault {
    file: String,
    /// From 1; 0 where the file as a whole is meant.
    line: usize,
    what: String,
    why: &'static str,
}

impl Report {
    fn fault(&mut self, file: &str, line: usize, what: impl Into<String>, why: &'static str) {
        self.faults.push(Fault { file: file.to_owned(), line, what: what.into(), why });
    }

    fn note(&mut self, note: String) {
        self.notes.push(note);
    }
}

/// Checks the repository, and prints what it finds.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let tree = Tree::read(root)?;
    let mut report = Report::default();
    for check in GROUPS {
        check(&tree, &mut report);
    }
    report.faults.sort();
    for note in &report.notes {
        println!("note: {note}");
    }
    for Fault { file, line, what, why } in &report.faults {
        println!("{file}:{line}: {what}\n    because {why}");
    }
    match report.faults.len() {
        0 => {
            println!("tidy: {} files, no fault", tree.files.len());
            Ok(())
        }
        count => Err(format!("tidy: faults: {count}")),
    }
}

/// Asks that a check finds exactly these faults, as `file:line: what`, in files given with their text.
#[cfg(test)]
fn expect(check: fn(&Tree, &mut Report), files: &[(&str, &str)], faults: &[&str]) {
    let mut report = Report::default();
    check(&Tree::of(files), &mut report);
    report.faults.sort();
    let found = report.faults.iter().map(|Fault { file, line, what, .. }| format!("{file}:{line}: {what}"));
    assert_eq!(found.collect::<Vec<_>>(), faults);
}
