//! Nothing in the repository may depend on the machine where it was written.

use super::{Report, Tree};

struct Rule {
    words: &'static [&'static str],
    /// Files by the end of their path; all where empty.
    files: &'static [&'static str],
    in_tests: bool,
    why: &'static str,
}

const RULES: &[Rule] = &[
    Rule {
        words: &["/work/", "/workspace/", "/root/", "/home/", "/Users/"],
        files: &[],
        in_tests: false,
        why: "a path of one machine is wrong on every other",
    },
    Rule {
        words: &["/tmp/"],
        files: &[],
        in_tests: true,
        why: "a path of one machine is wrong on every other: ask the system for a folder",
    },
    Rule {
        words: &[
            "registry.npmjs.org",
            "registry.yarnpkg.com",
            "npmmirror.com",
            "index.crates.io",
            "static.crates.io",
        ],
        files: &[],
        in_tests: false,
        why: "which registry or mirror is asked is the user's setting",
    },
    Rule {
        words: &["artifactory", "jfrog.io", "/nexus/", ".internal", ".corp/"],
        files: &[],
        in_tests: false,
        why: "others can't reach a private registry",
    },
    Rule {
        words: &["\"resolved\": \"http"],
        files: &["package-lock.json", "npm-shrinkwrap.json"],
        in_tests: false,
        why: "the digest says what is wanted; where it comes from is the user's setting (npm's omit-lockfile-registry-resolved)",
    },
    Rule {
        words: &["[source", "replace-with", "registry =", "[registries"],
        files: &[".cargo/config.toml", ".npmrc"],
        in_tests: false,
        why: "which registry or mirror is asked is the user's setting",
    },
    Rule {
        words: &["source = \"git+", "source = \"sparse+", "source = \"registry+file"],
        files: &["Cargo.lock"],
        in_tests: false,
        why: "dependencies come from crates.io, so that everyone can build them",
    },
];

/// The rules themselves, and faults planted to test them.
const HERE: &str = "xtask/src/tidy/";

pub(super) fn check(tree: &Tree, report: &mut Report) {
    for (path, file) in tree.files.iter().filter(|(path, _)| !path.starts_with(HERE)) {
        for (at, line) in file.text.lines().enumerate() {
            let is_test = path.contains("/tests/") || file.is_test(at + 1);
            for rule in RULES {
                let applies = rule.files.is_empty() || rule.files.iter().any(|end| path.ends_with(end));
                if !applies || (rule.in_tests && is_test) {
                    continue;
                }
                for word in rule.words.iter().filter(|word| line.contains(*word)) {
                    report.fault(path, at + 1, format!("says `{word}`"), rule.why);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    #[test]
    fn traces_of_a_machine_are_found() {
        let lock = "{\n  \"resolved\": \"http://mirror.example/a.tgz\"\n}\n";
        let files = [
            ("docs/a.md", "see\n/home/ada/notes and /tmp/x\n"),
            ("a/src/b.rs", "f(\"/tmp/x\");\n#[cfg(test)]\nmod tests {\n    f(\"/tmp/x\", \"/root/x\");\n}\n"),
            ("a/tests/c.mjs", "'/tmp/x'\n"),
            ("a/package-lock.json", lock),
            ("a/other.json", lock),
            (".cargo/config.toml", "[source.crates-io]\n"),
            (
                "Cargo.lock",
                "source = \"registry+https://github.com/rust-lang/crates.io-index\"\nsource = \"git+https://x\"\n",
            ),
            (".github/a.yml", "npm --registry https://registry.npmjs.org\n"),
            ("xtask/src/tidy/machines.rs", "/root/\n"),
        ];
        let faults = [
            ".cargo/config.toml:1: says `[source`",
            ".github/a.yml:1: says `registry.npmjs.org`",
            "Cargo.lock:2: says `source = \"git+`",
            "a/package-lock.json:2: says `\"resolved\": \"http`",
            "a/src/b.rs:1: says `/tmp/`",
            "a/src/b.rs:4: says `/root/`",
            "docs/a.md:2: says `/home/`",
            "docs/a.md:2: says `/tmp/`",
        ];
        expect(check, &files, &faults);
    }
}
