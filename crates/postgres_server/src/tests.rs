//! What a server promises, of real ones.

use std::io::{BufRead, BufReader, Read};

use super::*;

fn server() -> Server {
    Server::start().unwrap()
}

/// The name of a database in its URL.
fn name(url: &str) -> &str {
    url.rsplit_once('/').unwrap().1
}

#[test]
fn databases_are_empty_and_separate() {
    let server = Server::shared().unwrap();
    let (one, two) = (server.create_database().unwrap(), server.create_database().unwrap());
    server.psql(name(&one), "CREATE TABLE a (b int); INSERT INTO a VALUES (1), (2);").unwrap();
    assert_eq!(server.psql(name(&one), "SELECT b, b + 1 FROM a ORDER BY b").unwrap(), "1|2\n2|3");
    let error = server.psql(name(&two), "SELECT 7; SELECT b FROM a; SELECT 8").unwrap_err();
    assert!(error.to_string().contains("relation \"a\" does not exist"), "{error}");
    let copy = server.create_database_from(name(&one)).unwrap();
    assert_eq!(server.psql(name(&copy), "SELECT count(*) FROM a").unwrap(), "2");
}

#[test]
fn it_is_durable_and_takes_settings() {
    let refused = Server::start_with(Place::Disk, &[("work_mem", "'1MB")]).map(drop).unwrap_err();
    assert!(refused.to_string().contains("invalid value for parameter \"work_mem\""), "{refused}");
    let mut server = Server::start_with(Place::Disk, &[("max_connections", "17")]).unwrap();
    let show = |server: &Server, setting: &str| server.psql("postgres", &format!("SHOW {setting}")).unwrap();
    for (setting, value) in [
        ("max_connections", "17"),
        ("fsync", "on"),
        ("full_page_writes", "on"),
        ("synchronous_commit", "on"),
        ("data_checksums", "on"),
        ("listen_addresses", ""),
        ("work_mem", "4MB"),
    ] {
        assert_eq!(show(&server, setting), value, "{setting}");
    }
    server.reload("work_mem", "1MB").unwrap();
    assert_eq!(show(&server, "work_mem"), "1MB");
    let error = server.reload("work_mem", "many").unwrap_err();
    assert!(error.to_string().contains("invalid value"), "{error}");
}

#[test]
fn what_was_committed_is_there_after_a_restart_and_after_a_crash() {
    let mut server = server();
    server.psql("postgres", "CREATE TABLE a (b int); INSERT INTO a VALUES (1);").unwrap();
    server.restart().unwrap();
    server.psql("postgres", "INSERT INTO a VALUES (2);").unwrap();
    server.stop_hard().unwrap();
    assert!(server.psql("postgres", "SELECT 1").is_err());
    server.start_again().unwrap();
    assert_eq!(server.psql("postgres", "SELECT b FROM a ORDER BY b").unwrap(), "1\n2");
}

#[test]
fn the_programs_take_its_url() {
    let server = Server::shared().unwrap();
    let url = server.create_database().unwrap();
    for arguments in [&["-i", "-q"][..], &["-n", "-t", "10", "-M", "prepared"]] {
        let output = server.client("pgbench").args(arguments).arg(&url).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(server.psql(name(&url), "SELECT count(*) FROM pgbench_history").unwrap(), "10");
}

#[test]
fn nothing_is_left_when_it_is_dropped() {
    for stops in [false, true] {
        let mut server = server();
        let (folder, process) = (server.folder().to_owned(), process(&server.folder));
        if stops {
            server.stop_hard().unwrap();
        }
        drop(server);
        assert!(!folder.exists() && !is_running(&process), "{process} in {}", folder.display());
    }
}

#[test]
fn nothing_is_left_when_whoever_started_it_is_killed() {
    const TOLD: &str = "ONSALE_TEST_IS_TO_BE_KILLED";
    if std::env::var_os(TOLD).is_some() {
        let server = server();
        println!("\n{}", server.folder.display());
        let _ = std::io::stdin().read(&mut [0]);
        return;
    }
    let this = std::env::current_exe().unwrap();
    let mut starter = Command::new(this);
    starter.args(["--exact", "--nocapture", "tests::nothing_is_left_when_whoever_started_it_is_killed"]);
    starter.env(TOLD, "yes").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut starter = starter.spawn().unwrap();
    let lines = BufReader::new(starter.stdout.take().unwrap()).lines();
    let folder: PathBuf = lines.map(Result::unwrap).find(|line| line.starts_with('/')).unwrap().into();
    let process = process(&folder);
    assert!(is_running(&process));
    starter.kill().unwrap();
    starter.wait().unwrap();
    assert!(wait_until(START_MAX, || !folder.exists()), "{} is still there", folder.display());
    assert!(!is_running(&process));
}

#[test]
fn the_server_of_another_process_is_not_ended() {
    let server = server();
    let mut other = Server::at(server.folder.clone()).unwrap();
    assert_eq!(other.psql("postgres", "SELECT 1").unwrap(), "1");
    assert!(other.restart().is_err());
    drop(other);
    assert_eq!(server.psql("postgres", "SELECT 1").unwrap(), "1");
    let error = Server::at("/nowhere".into()).map(drop).unwrap_err();
    assert_eq!(error.to_string(), "ONSALE_TEST_POSTGRES is /nowhere, where no server runs");
}

fn process(folder: &Path) -> String {
    let state = fs::read_to_string(folder.join("data/postmaster.pid")).unwrap();
    state.lines().next().unwrap().trim().to_owned()
}
