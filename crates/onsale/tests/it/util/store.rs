//! Where the servers under test keep their data: in a file each, or, with `ONSALE_TEST_STORE=postgres`, in a PostgreSQL database
//! each. A folder of data stands for its database all the same, so that a test needn't know.
//!
//! Tests that are about the file itself have no second way to run; `.config/nextest.toml` names them, and why.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use onsale_postgres_server::Server;

/// Says in which of them.
const STORE: &str = "ONSALE_TEST_STORE";

/// Whether data is kept on a PostgreSQL server.
pub(crate) fn is_on_postgres() -> bool {
    std::env::var(STORE).is_ok_and(|store| store == "postgres")
}

/// The server that all tests share.
pub(crate) fn postgres() -> &'static Server {
    Server::shared().expect("PostgreSQL runs")
}

/// Says to a program where the data of a folder is.
pub(crate) fn keep_in(command: &mut Command, data: &Path) {
    if let Some(url) = url_of(data) {
        command.env("ONSALE_DATABASE_URL", url);
    }
}

/// The URL of the database that a folder stands for, made when it is first asked for; `None` where it is a file.
pub(crate) fn url_of(data: &Path) -> Option<String> {
    if !is_on_postgres() {
        return None;
    }
    // Not in the folder itself: a program is to find it as it would be otherwise.
    static URLS: Mutex<BTreeMap<PathBuf, String>> = Mutex::new(BTreeMap::new());
    let mut urls = URLS.lock().expect("nothing panics under the lock but a test");
    let url =
        urls.entry(data.to_owned()).or_insert_with(|| postgres().create_database().expect("a database"));
    Some(url.clone())
}

/// The name of the database at a URL of ours.
pub(crate) fn database_name(url: &str) -> &str {
    url.rsplit('/').next().expect("a URL has a path")
}
