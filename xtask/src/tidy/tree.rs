//! The files of the repository, read once, for all checks.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::lex::{Rust, lex};

/// Made by programs, and named in .gitignore.
const NOT_OURS: &[&str] = &[".git", "target", "node_modules", "onsale-data"];

pub(super) struct Tree {
    /// By path, with `/` between its parts.
    pub(super) files: BTreeMap<String, File>,
}

pub(super) struct File {
    /// Empty for what is no text.
    pub(super) text: String,
    /// The file taken apart, when it is Rust.
    rust: Option<Rust>,
    /// The line from which it is compiled for tests only; 1 when all of it is.
    tests_from: usize,
}

impl File {
    /// Is this line compiled for tests only?
    pub(super) fn is_test(&self, line: usize) -> bool {
        line >= self.tests_from
    }
}

impl Tree {
    pub(super) fn read(root: &Path) -> Result<Tree, String> {
        let mut files = Vec::new();
        read_folder(root, "", &mut files)?;
        Ok(Tree::new(files))
    }

    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Tree {
        Tree::new(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
    }

    fn new(files: Vec<(String, String)>) -> Tree {
        let mut tree = Tree { files: BTreeMap::new() };
        for (path, text) in files {
            let rust = path.ends_with(".rs").then(|| lex(&text));
            let tests_from = rust.as_ref().map_or(usize::MAX, |rust| tests_from(&path, rust));
            tree.files.insert(path, File { text, rust, tests_from });
        }
        for module in tree.rust().flat_map(|(path, _, rust)| test_modules(path, rust)).collect::<Vec<_>>() {
            let inside = format!("{module}/");
            for (path, file) in &mut tree.files {
                if path.strip_suffix(".rs") == Some(&module) || path.starts_with(&inside) {
                    file.tests_from = 1;
                }
            }
        }
        tree
    }

    pub(super) fn rust(&self) -> impl Iterator<Item = (&str, &File, &Rust)> {
        self.files.iter().filter_map(|(path, file)| Some((path.as_str(), file, file.rust.as_ref()?)))
    }

    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(|file| file.text.as_str())
    }
}

fn read_folder(root: &Path, folder: &str, files: &mut Vec<(String, String)>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("failed to read {folder:?}: {error}");
    for entry in fs::read_dir(root.join(folder)).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let Ok(name) = entry.file_name().into_string() else {
            return Err(format!("a file's name in {folder:?} is no text"));
        };
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        let kind = entry.file_type().map_err(failed)?;
        // In a second working tree `.git` is a file, which says where the repository is.
        if NOT_OURS.contains(&name.as_str()) {
            continue;
        }
        if kind.is_dir() {
            read_folder(root, &path, files)?;
        } else if kind.is_file() {
            let bytes = fs::read(entry.path()).map_err(failed)?;
            files.push((path, String::from_utf8(bytes).unwrap_or_default()));
        }
    }
    Ok(())
}

/// Unit tests stand at the end of a file, which Clippy sees to.
fn tests_from(path: &str, rust: &Rust) -> usize {
    if path.contains("/tests/") || path.ends_with("/tests.rs") {
        return 1;
    }
    let mut lines = rust.lines.iter().enumerate();
    let inline = lines.find(|(at, line)| {
        let next = rust.lines.get(at + 1).map_or("", |next| next.code.trim());
        line.code.trim() == "#[cfg(test)]" && next.starts_with("mod ") && next.ends_with('{')
    });
    inline.map_or(usize::MAX, |(at, _)| at + 1)
}

/// The modules, as paths without `.rs`, that a file declares for tests only.
fn test_modules(path: &str, rust: &Rust) -> Vec<String> {
    let stem = path.strip_suffix(".rs").unwrap_or(path);
    let (folder, name) = stem.rsplit_once('/').unwrap_or(("", stem));
    let folder = if ["main", "lib"].contains(&name) { folder } else { stem };
    let pairs = rust.lines.windows(2).filter(|pair| pair[0].code.trim() == "#[cfg(test)]");
    let names = pairs.filter_map(|pair| pair[1].code.trim().strip_suffix(';')?.split_once("mod "));
    names.map(|(_, name)| format!("{folder}/{name}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compiled_for_tests_only_is_known() {
        let tree = Tree::of(&[
            ("a/src/lib.rs", "#[cfg(test)]\npub(crate) mod world;\nmod plain;\n"),
            ("a/src/world.rs", "//! W.\n"),
            ("a/src/world/deep.rs", "//! D.\n"),
            ("a/src/plain.rs", "//! P.\n\n#[cfg(test)]\nmod tests {\n}\n"),
            ("a/src/plain/tests.rs", "//! T.\n"),
            ("a/tests/it/main.rs", "//! I.\n"),
        ]);
        let check =
            |path: &str, line, is_test| assert_eq!(tree.files[path].is_test(line), is_test, "{path}:{line}");
        check("a/src/lib.rs", 9, false);
        check("a/src/world.rs", 1, true);
        check("a/src/world/deep.rs", 1, true);
        check("a/src/plain.rs", 2, false);
        check("a/src/plain.rs", 3, true);
        check("a/src/plain/tests.rs", 1, true);
        check("a/tests/it/main.rs", 1, true);
    }
}
