//! `onsale serve --database-url`: when it refuses to start, and what it says then.

use std::path::Path;

use tempfile::TempDir;

use crate::util::{Said, finish, make_newer_at, postgres, program, set_for};

use super::own_server;

/// Starts a server that must refuse.
fn refusal(data: &Path, url: &str) -> Said {
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--operator-listen", "127.0.0.1:0"];
    let mut command = program(&arguments);
    command.arg("--data").arg(data).env("ONSALE_DATABASE_URL", url).env("ONSALE_LOG", "debug");
    finish(command.spawn().expect("the program starts"))
}

/// That it refused in one line with these words, and made nothing.
#[track_caller]
fn refused(url: &str, words: &str) -> String {
    let folder = TempDir::new().expect("a folder");
    let data = folder.path().join("data");
    let said = refusal(&data, url);
    said.refused(words);
    let last = said.stderr.lines().last().expect("a line").to_owned();
    assert!(last.starts_with("onsale: ") && last.contains(words), "{said:?}");
    assert!(!data.exists(), "nothing has been made");
    said.stderr
}

#[test]
fn what_is_no_address_of_a_database_is_refused() {
    refused("mysql://localhost/onsale", "the address of the home main is not a PostgreSQL URL");
    refused("postgresql://ada:secret-word@localhost:port/onsale", "is not a PostgreSQL URL");
    let stderr = refused("postgresql://ada:secret-word@%2Fnowhere/onsale", "failed to open the home main");
    assert!(!stderr.contains("secret-word"), "{stderr}");
    let url = postgres().url("no_such_database");
    refused(&url, "database \"no_such_database\" does not exist");
}

#[test]
fn a_wrong_password_is_refused_and_not_repeated() {
    let mut server = own_server();
    let url = server.create_database().expect("a database");
    server.psql("postgres", "CREATE ROLE ada LOGIN PASSWORD 'right-word'").expect("a role");
    let file = server.folder().join("data/pg_hba.conf");
    let rules = std::fs::read_to_string(&file).expect("the rules");
    std::fs::write(&file, format!("local all ada scram-sha-256\n{rules}")).expect("the rules");
    server.reload("log_min_messages", "log").expect("it is read");
    let url = url.replace("postgres@", "ada:secret-word@");
    let stderr = refused(&url, "password authentication failed for user \"ada\"");
    assert!(!stderr.contains("secret-word"), "{stderr}");
}

#[test]
fn a_server_that_would_not_keep_a_commit_is_refused() {
    for (setting, value, words) in [
        ("synchronous_commit", "off", "synchronous_commit = off, but on or remote_apply is needed"),
        ("synchronous_commit", "local", "synchronous_commit = local, but on or remote_apply is needed"),
        ("default_transaction_read_only", "on", "failed to open the home main"),
    ] {
        let url = postgres().create_database().expect("a database");
        set_for(&url, setting, Some(value));
        refused(&url, words);
    }
    let server = own_server();
    let url = server.create_database().expect("a database");
    server.psql("postgres", "ALTER ROLE postgres SET synchronous_commit = off").expect("it is set");
    refused(&url, "synchronous_commit = off, but on or remote_apply is needed");
}

#[test]
fn a_database_of_a_newer_program_is_refused() {
    let url = postgres().create_database().expect("a database");
    let at = |arguments: &[&str]| {
        finish(program(arguments).env("ONSALE_DATABASE_URL", &url).spawn().expect("the program starts"))
    };
    at(&["event", "list"]).ok();
    make_newer_at(&url);
    refused(&url, "use the newer program");
    at(&["event", "list"]).refused("use the newer program");
    at(&["audit"]).refused("use the newer program");
    let folder = TempDir::new().expect("a folder");
    let copy = folder.path().join("copy.db").display().to_string();
    at(&["backup", &copy]).refused("backed up with its own tools");
}
