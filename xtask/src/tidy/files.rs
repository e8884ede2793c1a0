//! What a file of Rust is called, how it begins, and how long it and its lines are.

use super::{Report, Tree};

const LINES_MAX: usize = 600;
/// From here on, look twice.
const LINES_NOTED: usize = 400;
const COLUMNS_MAX: usize = 130;
/// For lines with a text in quotes, which is better not broken.
const QUOTED_COLUMNS_MAX: usize = 180;

/// Names that say nothing of what is inside.
const EMPTY_NAMES: &[&str] = &["util", "utils", "common", "helper", "helpers", "types", "misc"];

pub(super) fn check(tree: &Tree, report: &mut Report) {
    for (path, file, rust) in tree.rust() {
        let mut fault = |line: usize, what: String, why: &'static str| report.fault(path, line, what, why);
        if path.ends_with("/mod.rs") {
            fault(
                0,
                "is called mod.rs".to_owned(),
                "a module is in `name.rs`, and its parts in `name/`: tabs in editors say which",
            );
        }
        let (stem, in_tests) = (path.trim_end_matches(".rs"), path.contains("/tests/"));
        if let Some(name) = stem.split('/').find(|part| !in_tests && EMPTY_NAMES.contains(part)) {
            fault(
                0,
                format!("has the name {name}"),
                "a module is named for what it does; such a name collects everything",
            );
        }
        if !file.text.starts_with("//! ") {
            fault(1, "does not begin with `//! `".to_owned(), "the first line of a file says what it is for");
        }
        if !file.text.is_empty() && !file.text.ends_with('\n') {
            fault(rust.lines.len(), "has no line end at its end".to_owned(), "each line ends");
        }
        for (at, (line, parts)) in file.text.lines().zip(&rust.lines).enumerate() {
            if line.ends_with(char::is_whitespace) {
                fault(at + 1, "ends with white space".to_owned(), "nobody sees it, and it makes differences");
            }
            if line.contains('\t') {
                fault(at + 1, "has a tab".to_owned(), "every editor shows it in another width");
            }
            let (columns, most) =
                (line.chars().count(), if parts.quoted { QUOTED_COLUMNS_MAX } else { COLUMNS_MAX });
            if columns > most {
                fault(
                    at + 1,
                    format!("has {columns} columns, over {most}"),
                    "two files fit beside each other",
                );
            }
        }
        let lines = file.text.lines().count();
        if lines > LINES_MAX {
            fault(
                0,
                format!("has {lines} lines, over {LINES_MAX}"),
                "a file is read in one go: split it by meaning",
            );
        } else if lines > LINES_NOTED {
            report.note(format!("{path} has {lines} lines, over {LINES_NOTED}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    #[test]
    fn planted_faults_of_form_are_found() {
        let long =
            |columns: usize| format!("//! A.\n{}\n\"{}\"\n", "a".repeat(columns), "b".repeat(columns - 2));
        let (within, over_plain, over_both) = (long(130), long(131), long(181));
        let (lines, many_lines) = ("//! A.\n".repeat(600), "//! A.\n".repeat(601));
        let files = [
            ("a/src/within.rs", within.as_str()),
            ("a/src/plain.rs", &over_plain),
            ("a/src/both.rs", &over_both),
            ("a/src/lines.rs", &lines),
            ("a/src/many_lines.rs", &many_lines),
            ("a/src/space.rs", "//! A. \n\tfn f() {}\nno end"),
            ("a/src/silent.rs", "use x;\n"),
            ("a/src/empty.rs", ""),
            ("a/src/b/mod.rs", "//! A.\n"),
            ("a/src/util/c.rs", "//! A.\n"),
            ("a/src/types.rs", "//! A.\n"),
            ("a/tests/it/util.rs", "//! A.\n"),
            ("a/notes.txt", "\t \n"),
        ];
        let faults = [
            "a/src/b/mod.rs:0: is called mod.rs",
            "a/src/both.rs:2: has 181 columns, over 130",
            "a/src/both.rs:3: has 181 columns, over 180",
            "a/src/empty.rs:1: does not begin with `//! `",
            "a/src/many_lines.rs:0: has 601 lines, over 600",
            "a/src/plain.rs:2: has 131 columns, over 130",
            "a/src/silent.rs:1: does not begin with `//! `",
            "a/src/space.rs:1: ends with white space",
            "a/src/space.rs:2: has a tab",
            "a/src/space.rs:3: has no line end at its end",
            "a/src/types.rs:0: has the name types",
            "a/src/util/c.rs:0: has the name util",
        ];
        expect(check, &files, &faults);
    }
}
