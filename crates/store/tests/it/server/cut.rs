//! A commit whose answer never comes, because the connection is cut: before the server has read it, or after it was done.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;

use onsale_core::command::Outcome;
use onsale_core::idempotency::RequestKey;
use onsale_postgres_server::Server;
use onsale_store::{HomeOptions, Store};

use crate::world::{START, TestClock, account, ada, opening, place_hold, policy, request};

/// The next commits, and what becomes of them.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Cut {
    /// The server never reads it.
    Before,
    /// It is done, and nobody hears.
    After,
}

/// A way to a server on which commits get lost.
struct Way {
    folder: tempfile::TempDir,
    /// Commits yet to be cut.
    left: Arc<AtomicI64>,
}

impl Way {
    fn to(server: &Server, cut: Cut) -> Way {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let listener = UnixListener::bind(socket_in(folder.path())).expect("a socket can be made");
        let (target, left) = (socket_in(server.folder()), Arc::new(AtomicI64::new(0)));
        let to_cut = Arc::clone(&left);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), Ok(server)) = (client, UnixStream::connect(&target)) else { continue };
                pass_on(client, server, cut, Arc::clone(&to_cut));
            }
        });
        Way { folder, left }
    }

    fn url(&self, url: &str) -> String {
        let folder = self.folder.path().to_str().expect("it is text").replace('/', "%2F");
        let (_, database) = url.rsplit_once('/').expect("a URL names its database");
        format!("postgresql://postgres@{folder}:5432/{database}")
    }

    fn cut_next(&self, count: i64) {
        self.left.store(count, Ordering::SeqCst);
    }
}

fn socket_in(folder: &Path) -> PathBuf {
    folder.join(".s.PGSQL.5432")
}

/// Passes on what both say. A commit is one message of its own: the type, the length, the text.
fn pass_on(client: UnixStream, server: UnixStream, cut: Cut, left: Arc<AtomicI64>) {
    const COMMIT: &[u8] = b"Q\0\0\0\x0bCOMMIT\0";
    let (mut from_server, mut to_client) =
        (server.try_clone().expect("a handle"), client.try_clone().expect("a handle"));
    let is_cut = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let cutting = Arc::clone(&is_cut);
    thread::spawn(move || {
        let mut bytes = [0; 65_536];
        while let Ok(count @ 1..) = from_server.read(&mut bytes) {
            // What the server says to a commit that is to be lost is not passed on.
            if cutting.load(Ordering::SeqCst) || to_client.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = to_client.shutdown(std::net::Shutdown::Both);
    });
    thread::spawn(move || {
        let (mut client, mut server) = (client, server);
        let mut bytes = [0; 65_536];
        while let Ok(count @ 1..) = client.read(&mut bytes) {
            let said = &bytes[..count];
            let is_commit = said.windows(COMMIT.len()).any(|part| part == COMMIT);
            if is_commit && left.fetch_sub(1, Ordering::SeqCst) > 0 {
                is_cut.store(true, Ordering::SeqCst);
                if cut == Cut::Before {
                    let _ = client.shutdown(std::net::Shutdown::Both);
                    break;
                }
            }
            if server.write_all(said).is_err() {
                break;
            }
        }
        let _ = server.shutdown(std::net::Shutdown::Both);
    });
}

/// Whatever became of it, the caller hears the truth, once, as if nothing had been.
#[test]
fn a_commit_that_was_not_answered_is_asked_about_and_told_as_it_is() {
    let server = Server::shared().expect("a server runs");
    for (cut, times) in [(Cut::Before, 1), (Cut::After, 1), (Cut::Before, 2), (Cut::After, 2)] {
        let url = server.create_database().expect("a database can be made");
        let way = Way::to(server, cut);
        let heard = Arc::new(AtomicI64::new(0));
        let hearing = Arc::clone(&heard);
        let options = HomeOptions::new("main", &way.url(&url), TestClock::new());
        let store = Store::connect(options, move |committed| {
            hearing.fetch_add(committed.log.len() as i64, Ordering::SeqCst);
        });
        let store = store.expect("it opens");
        for command in opening(crate::world::HALL, 3, policy()) {
            store.submit_blocking(request(command, START)).expect("the store decides");
        }
        let before = heard.load(Ordering::SeqCst);
        // With two, the first way of finding out is cut as well.
        way.cut_next(times);
        let mut asked = request(place_hold(&ada(), &[0, 1]), START);
        asked.key = Some(RequestKey { id: 9, digest: 9 });
        let decision = store.submit_blocking(asked.clone()).expect("the truth is found");
        assert!(
            matches!(decision.outcome, Outcome::HoldPlaced(_)) && !decision.replayed,
            "{cut:?}: {decision:?}"
        );
        assert!(way.left.load(Ordering::SeqCst) <= 0, "{cut:?}: no commit was cut");
        assert_eq!(heard.load(Ordering::SeqCst), before + 1, "{cut:?}: who follows hears of it once");
        let again = store.submit_blocking(asked).expect("the store decides");
        assert!(again.replayed && again.outcome == decision.outcome, "{cut:?}: {again:?}");
        let hold = store.submit_blocking(request(place_hold(&account("ben"), &[2]), START));
        assert!(hold.is_ok(), "{cut:?}: service goes on");
        let digits = store.read(|db| db.seat_digits(crate::world::HALL)).unwrap().expect("it exists").digits;
        assert_eq!(digits, b"111", "{cut:?}");
        assert_eq!(store.audit(START).expect("it can be audited").violations(), 0, "{cut:?}");
        store.close();
    }
}
