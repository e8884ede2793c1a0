//! Where PostgreSQL's programs are, and as whom its server runs.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Error;

/// Where Debian keeps the programs, by their major version; it has no server on the path.
const DEBIAN: &str = "/usr/lib/postgresql";
/// What every server needs.
const NEEDED: [&str; 3] = ["initdb", "postgres", "psql"];

/// Whom a server runs as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// The folder with the newest server's programs.
pub fn find() -> Result<PathBuf, Error> {
    let is_whole = |folder: &PathBuf| NEEDED.iter().all(|program| folder.join(program).is_file());
    let versions = fs::read_dir(DEBIAN).into_iter().flatten().flatten().map(|entry| entry.path().join("bin"));
    let newest = versions.filter(is_whole).max_by_key(|folder| major(folder));
    let on_path = || {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let initdb =
            std::env::split_paths(&path).map(|folder| folder.join("initdb")).find(|file| file.is_file());
        // What is on the path may be a link to where the others are.
        let folder = fs::canonicalize(initdb?).ok()?.parent()?.to_owned();
        Some(folder).filter(is_whole)
    };
    newest.or_else(on_path).ok_or_else(|| {
        Error::new(format!(
            "PostgreSQL's server is missing ({} in one folder below {DEBIAN} or on the path): install it (on Debian: \
             `apt-get install postgresql`)",
            NEEDED.join(", ")
        ))
    })
}

/// The version in a path like `/usr/lib/postgresql/15/bin`.
fn major(folder: &Path) -> u32 {
    let version = folder.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    version.and_then(|version| version.split('.').next()?.parse().ok()).unwrap_or_default()
}

/// The user `postgres` if we are root, as whom the server refuses to run; else ourselves.
pub(crate) fn user() -> Result<Option<User>, Error> {
    // A process's folder belongs to whom it runs as.
    let me =
        fs::metadata("/proc/self").map_err(|error| Error::new(format!("who we are is unknown: {error}")))?;
    if me.uid() != 0 {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let user = users.lines().find_map(user_of_line);
    let missing = "we are root, as whom PostgreSQL refuses to run, and there is no user `postgres`";
    user.map(Some).ok_or_else(|| Error::new(missing))
}

fn user_of_line(line: &str) -> Option<User> {
    let mut fields = line.split(':');
    let is_postgres = fields.next()? == "postgres";
    let (uid, gid) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
    is_postgres.then_some(User { uid, gid })
}

/// Takes away what libpq and the server would read in the environment.
pub(crate) fn forget_environment(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("PG")) {
            command.env_remove(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        let check = |path: &str, version| assert_eq!(major(Path::new(path)), version, "{path}");
        check("/usr/lib/postgresql/15/bin", 15);
        check("/usr/lib/postgresql/9.6/bin", 9);
        check("/opt/pg/bin", 0);
    }

    #[test]
    fn the_user_is_found_among_others() {
        let check = |line: &str, user| assert_eq!(user_of_line(line), user, "{line}");
        check(
            "postgres:x:101:104:administrator,,,:/var/lib/postgresql:/bin/bash",
            Some(User { uid: 101, gid: 104 }),
        );
        check("postgres-exporter:x:7:8::/:/bin/sh", None);
        check("postgres:x:", None);
    }
}
