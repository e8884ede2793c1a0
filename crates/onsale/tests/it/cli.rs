//! Every subcommand, through the real program: on a stopped database and on one that is being served.

mod books;
mod cases;
mod events;
mod moving;
mod serve;
mod tickets;

use std::path::Path;

use tempfile::TempDir;

use crate::util::{Said, finish, keep_in, program, run};

/// Runs the program on the database in a folder.
fn at(data: &Path, arguments: &[&str]) -> Said {
    let mut command = program(arguments);
    keep_in(&mut command, data);
    finish(command.env("ONSALE_DATA", data).spawn().expect("the program starts"))
}

#[test]
fn arguments_that_make_no_sense_are_refused_with_a_word_on_what_is_wrong() {
    let folder = TempDir::new().expect("a folder");
    let id = format!("evt_{}", "0".repeat(26));
    let file = folder.path().join("plan.txt").display().to_string();
    let cases: &[(&[&str], &str)] = &[
        (&[], "Usage"),
        (&["sell"], "unrecognized subcommand 'sell'"),
        (&["serve", "--port", "80"], "unexpected argument '--port'"),
        (&["serve", "--listen", "nowhere"], "invalid value 'nowhere' for '--listen"),
        (&["serve", "--workers"], "--test-mode"),
        (&["event"], "Usage"),
        (&["event", "create", "--name", "x"], "--currency"),
        (
            &["event", "create", "--name", "", "--currency", "EU", "--starts-at", "soon"],
            "/currency: must be an ISO 4217 code",
        ),
        (
            &["event", "create", "--name", "", "--currency", "EU", "--starts-at", "soon"],
            "/starts_at: must be a time",
        ),
        (
            &[
                "event",
                "create",
                "--name",
                "x",
                "--currency",
                "EUR",
                "--starts-at",
                "2030-05-01T19:30:00Z",
                "--policy",
                "{",
            ],
            "--policy is not valid",
        ),
        (
            &[
                "event",
                "create",
                "--name",
                "x",
                "--currency",
                "EUR",
                "--starts-at",
                "2030-05-01T19:30:00Z",
                "--policy",
                "{\"ttl\":1}",
            ],
            "unknown field `ttl`",
        ),
        (&["event", "show", "nonsense"], "invalid value 'nonsense'"),
        (&["event", "show", &id], "there is no event"),
        (&["event", "open", &id], "there is no event"),
        (&["event", "prices", &id], "PRICES"),
        (&["event", "prices", &id, "Stalls=1"], "there is no event"),
        (&["import", &file], "--event"),
        (&["import", "--check", "--event", &id, &file], "cannot be used with"),
        (&["import", "--check", &file], "must end in .json or .csv"),
        (&["import", "--check", "nowhere.csv"], "failed to read nowhere.csv"),
        (&["backup"], "<TO>"),
        (&["config"], "Usage"),
        (&["verify-ticket", "ONSALE:0"], "--public-key"),
        (&["verify-ticket", "--public-key", "AAAA", "ONSALE:0"], "32 bytes in base 64"),
        (&["config", "check"], "<FILE>"),
        (&["payment-simulator", "--seed", "x"], "invalid value 'x'"),
    ];
    for (arguments, words) in cases {
        let said = at(folder.path(), arguments);
        said.refused(words);
        assert!(said.code == Some(1) || said.code == Some(2), "{arguments:?}: {said:?}");
    }
}

#[test]
fn settings_are_printed_and_checked() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("onsale.toml").display().to_string();
    let check = |text: &str| {
        std::fs::write(&file, text).expect("a file");
        run(&["config", "check", &file])
    };
    let defaults = run(&["config", "print-default"]).ok();
    let documented =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../config.default.toml"));
    assert!(defaults == documented.expect("it is in the repository"));
    assert_eq!(check(&defaults).ok(), format!("{file} is valid\n"));
    check("").ok();
    check("[http]\ndrain_ms = 0\n").ok();
    for (text, words) in [
        ("][", "is not valid TOML"),
        ("listen = 7", "listen"),
        ("listen = \"everywhere\"", "listen"),
        ("lissten = \"127.0.0.1:1\"", "unknown field `lissten`"),
        ("[http]\nconnections_max = 0\n", "http.connections_max must be 1 to 1000000"),
        ("[http]\nheader_read_timeout_ms = 1\n", "http.header_read_timeout_ms must be 100 to 120000"),
        ("[http]\ndrain_ms = 60001\n", "http.drain_ms must be at most 60000"),
        ("[database]\nsize_mib_max = -1\n", "size_mib_max"),
        ("[database]\nsize_mib_max = 1048577\n", "database.size_mib_max must be at most 1048576"),
        ("[payment]\nrequest_timeout_ms = 999\n", "payment.request_timeout_ms must be 1000 to 20000"),
        ("[payment]\nsecret_key = \"sk_test_x\"\n", "payment.webhook_secrets must not be empty"),
        ("[payment]\nsecret_key_file = \"/nowhere/key\"\n", "failed to read /nowhere/key"),
    ] {
        check(text).refused(words);
    }
    run(&["config", "check", "/nowhere/onsale.toml"]).refused("failed to read /nowhere/onsale.toml");
    std::fs::write(&file, "").expect("a file");
    let child = program(&["config", "check", &file]).env("ONSALE_LISTEN", "x").spawn();
    finish(child.expect("the program starts")).refused("ONSALE_LISTEN must be an address and a port");
}

#[test]
fn the_interface_describes_itself() {
    let document: serde_json::Value = serde_json::from_str(&run(&["openapi"]).ok()).expect("JSON");
    assert!(document["paths"]["/v1/events/{event_id}/holds"]["post"].is_object());
    assert!(run(&["--version"]).ok().starts_with("onsale "));
    assert!(run(&["--help"]).ok().contains("payment-simulator"));
}

/// A setting that kills the program must not be there where it is used.
#[cfg(not(feature = "fail-points"))]
#[test]
fn a_build_for_use_has_no_fail_points() {
    let program = std::fs::read(env!("CARGO_BIN_EXE_onsale")).expect("the program");
    let has = |word: &str| program.windows(word.len()).any(|bytes| bytes == word.as_bytes());
    assert!(has("ONSALE_OPERATOR_KEY"), "names of the environment can be found like this");
    for word in ["ONSALE_FAIL_POINT", "rows.half_written"] {
        assert!(!has(word), "{word} is in the program");
    }
}

/// Where the database is may be said before the subcommand or after it, as the documents do.
#[test]
fn where_the_database_is_may_be_said_anywhere() {
    let folder = TempDir::new().expect("a folder");
    let data = folder.path().display().to_string();
    for arguments in [["event", "--data", &data, "list"], ["event", "list", "--data", &data]] {
        assert!(run(&arguments).ok().contains("event"), "{arguments:?}");
    }
}
