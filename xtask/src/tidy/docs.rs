//! The documents: that they hold together, and say what the code says.

use std::collections::BTreeSet;

use super::{Report, Tree};

/// The code says what there is, the document says what it means, of each thing and of nothing else.
struct Pair {
    document: &'static str,
    /// A file, and whatever is in the folder of its name.
    code: &'static str,
    /// What the code has, with files and lines.
    things: fn(&Tree, &str) -> Vec<Thing>,
    /// Is a word of the document the name of such a thing, existing or not?
    is_name: fn(&str) -> bool,
    why: &'static str,
}

/// File, line and name.
type Thing = (String, usize, String);

const PAIRS: &[Pair] = &[
    Pair {
        document: "docs/invariants.md",
        code: "crates/store/src/audit.rs",
        things: invariants,
        is_name: is_invariant,
        why: "an invariant is explained in the document and checked by the auditor, or it is none",
    },
    Pair {
        document: "docs/http-api.md",
        code: "crates/onsale/src/http/problem.rs",
        things: problem_codes,
        is_name: |_| false, // any word may be in the document
        why: "whoever is refused looks up the code",
    },
];

const MUST_EXIST: &[(&str, &str)] = &[("CHANGELOG.md", "who upgrades reads what has changed")];

pub(super) fn check(tree: &Tree, report: &mut Report) {
    for (path, why) in MUST_EXIST.iter().filter(|(path, _)| tree.text(path).is_none()) {
        report.fault(path, 0, "does not exist", why);
    }
    for pair in PAIRS {
        compare(tree, pair, report);
    }
    for (path, file) in tree.files.iter().filter(|(path, _)| path.ends_with(".md")) {
        let mut titles = 0;
        for (line, text) in prose(&file.text) {
            if text.starts_with("# ") {
                titles += 1;
                if titles > 1 {
                    report.fault(path, line, "has a second title", "a document is about one thing");
                }
            }
            for target in links(text).filter(|target| !leads(tree, path, target)) {
                report.fault(
                    path,
                    line,
                    format!("links to {target}, which does not exist"),
                    "a link leads somewhere",
                );
            }
        }
        if titles == 0 {
            report.fault(path, 0, "has no title", "the first line says what a document is about");
        }
    }
}

fn compare(tree: &Tree, pair: &Pair, report: &mut Report) {
    let things = (pair.things)(tree, pair.code);
    if things.is_empty() {
        report.fault(pair.code, 0, format!("has nothing that {} could explain", pair.document), pair.why);
    }
    let Some(document) = tree.text(pair.document) else {
        report.fault(pair.document, 0, "does not exist", pair.why);
        return;
    };
    let lines = document.lines().enumerate();
    let said: Vec<(usize, &str)> = lines
        .flat_map(|(at, line)| {
            line.split(|c: char| !c.is_alphanumeric() && c != '-').map(move |w| (at + 1, w))
        })
        .collect();
    let words: BTreeSet<&str> = said.iter().map(|(_, word)| *word).collect();
    for (file, line, name) in things.iter().filter(|(.., name)| !words.contains(name.as_str())) {
        report.fault(file, *line, format!("has {name}, which {} does not explain", pair.document), pair.why);
    }
    for (line, word) in said.iter().filter(|(_, word)| (pair.is_name)(word)) {
        if !things.iter().any(|(.., name)| name == word) {
            report.fault(
                pair.document,
                *line,
                format!("names {word}, which {} does not have", pair.code),
                pair.why,
            );
        }
    }
}

fn is_invariant(word: &str) -> bool {
    word.strip_prefix("I-")
        .is_some_and(|number| !number.is_empty() && number.chars().all(|c| c.is_ascii_digit()))
}

fn invariants(tree: &Tree, path: &str) -> Vec<Thing> {
    literals(tree, path, |text, _| is_invariant(text))
}

/// A line of the table begins `Code "slug" STATUS`.
fn problem_codes(tree: &Tree, path: &str) -> Vec<Thing> {
    literals(tree, path, |text, code| {
        let slug = !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        let mut words = code.split_whitespace();
        let name = words.next().is_some_and(|word| word.chars().all(char::is_alphanumeric));
        let status = |word: &str| word.chars().all(|c| c.is_ascii_uppercase() || c == '_');
        slug && name && words.next() == Some("\"\"") && words.next().is_some_and(status)
    })
}

/// The literals of a file and of those in the folder of its name, outside tests, that are wanted for themselves and for the code
/// of their line.
fn literals(tree: &Tree, path: &str, wanted: fn(&str, &str) -> bool) -> Vec<Thing> {
    let folder = format!("{}/", path.trim_end_matches(".rs"));
    let mut found = Vec::new();
    for (name, file, rust) in tree.rust().filter(|(name, ..)| *name == path || name.starts_with(&folder)) {
        let outside = rust.literals.iter().filter(|literal| !file.is_test(literal.line));
        let wanted = outside.filter(|literal| wanted(&literal.text, &rust.lines[literal.line - 1].code));
        found.extend(wanted.map(|literal| (name.to_owned(), literal.line, literal.text.clone())));
    }
    found
}

/// Lines outside of fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fence && !fenced).then_some((at + 1, line))
    })
}

/// What the links of a line lead to, `[like](this)`, outside of `code`.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let outside = line.split('`').step_by(2);
    outside.flat_map(|text| text.split("](").skip(1)).filter_map(|rest| rest.split([')', ' ']).next())
}

fn leads(tree: &Tree, from: &str, target: &str) -> bool {
    if target.contains("://") || target.starts_with("mailto:") || target.starts_with('#') {
        return true;
    }
    let target = target.split('#').next().unwrap_or_default();
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.pop().is_none() => return false,
            ".." => {}
            part => parts.push(part),
        }
    }
    let path = parts.join("/");
    let inside = format!("{path}/");
    tree.files.contains_key(&path) || tree.files.keys().any(|file| file.starts_with(&inside))
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    const AUDIT: &str =
        "const CHECKS: X = &[\n    (\"I-1\", \"a\", \"SELECT I-9\"),\n    (\"I-2\", \"b\", \"\"),\n];\n";
    const PROBLEM: &str = "codes! {\n    Gone \"gone\" GONE false \"Gone\"\n        \"It is gone.\";\n    \
                           TooMany \"too-many\" CONFLICT true \"Too many\"\n        \"no\";\n}\nfn f() { g(\"other\") }\n";

    #[test]
    fn documents_that_say_other_than_the_code_are_found() {
        let files = [
            ("crates/store/src/audit.rs", "fn f() {}\n"),
            ("crates/store/src/audit/sale.rs", AUDIT),
            ("crates/onsale/src/http/problem.rs", PROBLEM),
            ("CHANGELOG.md", "# Changes\n"),
            ("docs/invariants.md", "# Invariants\n\n| I-1 | a |\n| I-3 | c |\n"),
            ("docs/http-api.md", "# API\n\n`gone`, and not-too-many\n"),
        ];
        let faults = [
            "crates/onsale/src/http/problem.rs:4: has too-many, which docs/http-api.md does not explain",
            "crates/store/src/audit/sale.rs:3: has I-2, which docs/invariants.md does not explain",
            "docs/invariants.md:4: names I-3, which crates/store/src/audit.rs does not have",
        ];
        expect(check, &files, &faults);
    }

    #[test]
    fn missing_documents_and_unreadable_tables_are_found() {
        let files =
            [("crates/store/src/audit.rs", AUDIT), ("crates/onsale/src/http/problem.rs", "codes! {}\n")];
        let faults = [
            "CHANGELOG.md:0: does not exist",
            "crates/onsale/src/http/problem.rs:0: has nothing that docs/http-api.md could explain",
            "docs/http-api.md:0: does not exist",
            "docs/invariants.md:0: does not exist",
        ];
        expect(check, &files, &faults);
    }

    #[test]
    fn titles_and_links_are_checked() {
        let page = "# A\n[b](b.md#x) [up](../README.md) [out](https://a.example) [here](#y) [folder](../crates)\n\
                    [gone](c.md) `[code](d.md)`\n```sh\n# no title\n[no](link.md)\n```\n# B\n";
        let files = [
            ("crates/store/src/audit.rs", "(\"I-1\")"),
            ("crates/onsale/src/http/problem.rs", "A \"a\" B"),
            ("README.md", "[a](docs/a.md)\n[above](../x.md)\n"),
            ("CHANGELOG.md", "# C\n"),
            ("docs/a.md", page),
            ("docs/b.md", "# B\n"),
            ("docs/invariants.md", "# I-1\n"),
            ("docs/http-api.md", "# a\n"),
        ];
        let faults = [
            "README.md:0: has no title",
            "README.md:2: links to ../x.md, which does not exist",
            "docs/a.md:3: links to c.md, which does not exist",
            "docs/a.md:8: has a second title",
        ];
        expect(check, &files, &faults);
    }
}
