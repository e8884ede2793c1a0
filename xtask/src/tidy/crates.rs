//! Which crate may depend on which.

use super::{Report, Tree};

struct Crate {
    manifest: &'static str,
    /// Crates of this workspace that it may use.
    ours: &'static [&'static str],
    /// May it use crates from elsewhere?
    others: bool,
    why: &'static str,
}

const CRATES: &[Crate] = &[
    Crate {
        manifest: "crates/core/Cargo.toml",
        ours: &["onsale-world"],
        others: false,
        why: "the core decides with the standard library alone: no I/O, no clock, and tests in a second",
    },
    Crate {
        manifest: "crates/faulty_disk/Cargo.toml",
        ours: &[],
        others: true,
        why: "a faulty disk knows files, and nothing of what is kept in them",
    },
    Crate {
        manifest: "crates/postgres_server/Cargo.toml",
        ours: &[],
        others: false,
        why: "a server for tests is used by the automation too, which must be built in a moment",
    },
    Crate {
        manifest: "crates/store/Cargo.toml",
        ours: &["onsale-core", "onsale-faulty-disk", "onsale-postgres-server"],
        others: true,
        why: "the store makes the core's decisions durable, and knows nothing of who asks",
    },
    Crate {
        manifest: "crates/onsale/Cargo.toml",
        ours: &["onsale-core", "onsale-postgres-server", "onsale-store"],
        others: true,
        why: "the program stands on the core and the store",
    },
    Crate {
        manifest: "crates/world/Cargo.toml",
        ours: &["onsale-core"],
        others: false,
        why: "a store in memory, for the core's own tests too",
    },
    Crate {
        manifest: "crates/sim/Cargo.toml",
        ours: &["onsale-core", "onsale-postgres-server", "onsale-store", "onsale-world"],
        others: true,
        why: "simulated worlds drive the core and the store themselves; of the program they need what the core holds",
    },
    Crate {
        manifest: "bench/Cargo.toml",
        ours: &["onsale-postgres-server"],
        others: true,
        why: "the load asks over HTTP, as anyone would; what it asked is judged by the program's own audit",
    },
    Crate {
        manifest: "crates/chaos/Cargo.toml",
        ours: &[],
        others: true,
        why: "who breaks things and keeps the ledger stands outside: over HTTP, and beside the database",
    },
    Crate {
        manifest: "xtask/Cargo.toml",
        ours: &["onsale-postgres-server"],
        others: false,
        why: "the automation must be built in a moment, and before anything else",
    },
];

pub(super) fn check(tree: &Tree, report: &mut Report) {
    let manifests = tree.files.iter().filter(|(path, _)| path.ends_with("/Cargo.toml"));
    for (path, file) in manifests {
        let Some(rules) = CRATES.iter().find(|rules| rules.manifest == path) else {
            let why =
                "a new crate needs a place in the layers: say what it may use in xtask/src/tidy/crates.rs";
            report.fault(path, 0, "is not in the table of crates", why);
            continue;
        };
        for (line, name) in dependencies(&file.text) {
            let allowed = match name.starts_with("onsale") {
                true => rules.ours.contains(&name.as_str()),
                false => rules.others,
            };
            if !allowed {
                report.fault(path, line, format!("depends on {name}"), rules.why);
            }
        }
    }
}

/// Every dependency of a manifest, of whatever kind, with its line.
fn dependencies(manifest: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut inside = false;
    for (at, line) in manifest.lines().enumerate() {
        let line = line.trim();
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            inside = section.ends_with("dependencies");
            // `[dependencies.name]`
            if let Some((_, name)) = section.rsplit_once("dependencies.") {
                found.push((at + 1, name.trim_matches('"').to_owned()));
            }
        } else if let (true, Some((key, value))) = (inside && !line.starts_with('#'), line.split_once('=')) {
            let key = key.trim().split('.').next().unwrap_or_default().trim_matches('"');
            // `key = { package = "name" }`
            let renamed = value.split_once("package").and_then(|(_, rest)| rest.split('"').nth(1));
            found.push((at + 1, renamed.unwrap_or(key).to_owned()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::expect;
    use super::*;

    #[test]
    fn edges_outside_the_table_are_found() {
        let core = "[package]\nname = \"onsale-core\"\n\n[dev-dependencies]\nproptest = \"1\"\n";
        let store = "[dependencies]\nonsale-core.workspace = true\nserde = \"1\"\n\n[target.'cfg(unix)'.dependencies]\n\
                     o = { package = \"onsale\", path = \"../onsale\" }\n";
        let onsale =
            "[dependencies]\nonsale-core.workspace = true\nonsale-store.workspace = true\ntokio = \"1\"\n";
        let xtask =
            "[build-dependencies.onsale-core]\npath = \"../crates/core\"\n[lints]\nworkspace = true\n";
        let files = [
            ("Cargo.toml", "[workspace.dependencies]\nserde = \"1\"\n"),
            ("crates/core/Cargo.toml", core),
            ("crates/store/Cargo.toml", store),
            ("crates/onsale/Cargo.toml", onsale),
            ("crates/new/Cargo.toml", ""),
            ("xtask/Cargo.toml", xtask),
        ];
        let faults = [
            "crates/core/Cargo.toml:5: depends on proptest",
            "crates/new/Cargo.toml:0: is not in the table of crates",
            "crates/store/Cargo.toml:6: depends on onsale",
            "xtask/Cargo.toml:1: depends on onsale-core",
        ];
        expect(check, &files, &faults);
    }
}
