//! Connections over real sockets: the slow, the greedy, the many, and how a stop treats them.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::mpsc as std_mpsc;

use axum::Extension;
use axum::routing::get;
use tokio::sync::Notify;

use super::test_server::{ANY_PORT, TestServer, eventually};
use super::*;

const REQUEST: &str = "GET / HTTP/1.1\r\nhost: test\r\n\r\n";

fn hello() -> Router {
    Router::new().route("/", get(|| async { "hello" }))
}

fn open(server: &TestServer) -> usize {
    server.stats.open.load(Ordering::Relaxed)
}

#[test]
fn a_connection_is_kept_for_more_requests() {
    let server = TestServer::start(hello(), ListenerLimits::default());
    let mut ada = server.connect();
    for _ in 0..3 {
        let answer = ada.get("/");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("hello"), "{answer}");
    }
    assert_eq!(server.stats.accepted.load(Ordering::Relaxed), 1);
    drop(ada);
    eventually("the slot is free again", || open(&server) == 0);
}

#[test]
fn a_handler_sees_the_peer_address() {
    let peer = |Extension(PeerAddr(peer)): Extension<PeerAddr>| async move { peer.to_string() };
    let server = TestServer::start(Router::new().route("/", get(peer)), ListenerLimits::default());
    let mut ada = server.connect();
    let addr = ada.stream.local_addr().unwrap().to_string();
    assert!(ada.get("/").ends_with(&addr));
}

#[test]
fn a_header_that_stops_is_cut() {
    let limits = ListenerLimits { header_read_timeout_ms: 200, ..Default::default() };
    let server = TestServer::start(hello(), limits);
    let mut ada = server.connect();
    ada.send("GET / HTTP/1.1\r\nhost: te");
    assert_eq!(ada.read_to_close(), "");
    eventually("the slot is free again", || open(&server) == 0);
}

#[test]
fn a_header_that_dribbles_is_cut() {
    let limits = ListenerLimits { header_read_timeout_ms: 200, ..Default::default() };
    let server = TestServer::start(hello(), limits);
    let mut ada = server.connect();
    ada.stream.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
    ada.send("GET / HTTP/1.1\r\nx-slow: ");
    let mut bytes_sent = 0;
    // Each byte waits for an answer in vain, until the server has had enough.
    while ada.stream.write_all(b"a").is_ok() {
        bytes_sent += 1;
        match ada.stream.read(&mut [0]) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Ok(0) | Err(_) => break,
            Ok(_) => panic!("no answer was due"),
        }
        assert!(bytes_sent < 1_000, "still accepted");
    }
    assert!(bytes_sent > 1);
}

#[test]
fn an_idle_connection_is_cut_by_the_same_limit() {
    let limits = ListenerLimits { header_read_timeout_ms: 200, ..Default::default() };
    let server = TestServer::start(hello(), limits);
    let mut silent = server.connect();
    let mut kept_alive = server.connect();
    kept_alive.get("/");
    assert_eq!(kept_alive.read_to_close(), "");
    assert_eq!(silent.read_to_close(), "");
}

#[test]
fn an_oversized_header_is_refused() {
    let server = TestServer::start(hello(), ListenerLimits::default());
    let mut ada = server.connect();
    let cookie = "c".repeat(40 * 1024);
    ada.send(format!("GET / HTTP/1.1\r\nhost: test\r\ncookie: {cookie}\r\n\r\n"));
    let answer = ada.read_to_close();
    assert!(answer.starts_with("HTTP/1.1 431 Request Header Fields Too Large\r\n"), "{answer}");

    let mut ben = server.connect();
    let many: String = (0..101).map(|n| format!("x-{n}: 1\r\n")).collect();
    ben.send(format!("GET / HTTP/1.1\r\n{many}\r\n"));
    assert!(ben.read_to_close().starts_with("HTTP/1.1 431 "));
}

#[test]
fn one_connection_too_many_is_told_so() {
    let limits = ListenerLimits { connections_max: 1, ..Default::default() };
    let server = TestServer::start(hello(), limits);
    let mut ada = server.connect();
    ada.get("/");

    let body = r#"{"type":"/problems/overloaded","title":"The server is overloaded","status":503,"#
        .to_owned()
        + r#""detail":"The server has as many connections as it can serve.","code":"overloaded","retryable":true}"#;
    let refusal = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n\
         content-length: {}\r\nretry-after: 1\r\ncache-control: no-store\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let mut silent = server.connect();
    assert_eq!(silent.read_to_close(), refusal);
    // What a client had already sent must not turn its answer into a reset.
    let mut eager = server.connect();
    eager.send(REQUEST);
    assert_eq!(eager.read_to_close(), refusal);
    assert_eq!(server.stats.refused.load(Ordering::Relaxed), 2);

    assert_eq!(open(&server), 1);
    assert!(ada.get("/").ends_with("hello"));
    drop(ada);
    eventually("the slot is free again", || open(&server) == 0);
    assert!(server.connect().get("/").ends_with("hello"));
}

#[test]
fn refused_clients_that_stay_do_not_pile_up() {
    let limits = ListenerLimits { connections_max: 0, ..Default::default() };
    let server = TestServer::start(hello(), limits);
    let clients: Vec<_> = (0..REFUSALS_MAX + 50).map(|_| server.connect()).collect();
    // None of them closes or reads until now, and all of them are let go.
    for mut client in clients {
        client.read_to_close();
    }
    assert_eq!(server.stats.refused.load(Ordering::Relaxed), (REFUSALS_MAX + 50) as u64);
    assert_eq!(open(&server), 0);
}

#[test]
fn a_stop_finishes_what_runs_and_refuses_what_comes() {
    let (entered, handler_entered) = std_mpsc::channel();
    let release = Arc::new(Notify::new());
    let released = release.clone();
    let slow = || async move {
        entered.send(()).unwrap();
        released.notified().await;
        "done"
    };
    let router = hello().route("/slow", get(slow));
    let server = TestServer::start(router, ListenerLimits::default());
    let mut ada = server.connect();
    ada.send("GET /slow HTTP/1.1\r\nhost: test\r\n\r\n");
    handler_entered.recv().unwrap();
    let mut ben = server.connect();
    ben.get("/");

    server.stop();
    assert_eq!(ben.read_to_close(), "", "an idle connection is closed");
    drop(ben);
    eventually("new connections are refused", || std::net::TcpStream::connect(server.addr).is_err());
    eventually("only the running request is left", || open(&server) == 1);
    release.notify_one();
    let answer = ada.read_to_close();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("done"), "{answer}");
    drop(ada);
    server.finished();
}

#[test]
fn a_request_that_outlives_the_stop_is_cut() {
    let (entered, handler_entered) = std_mpsc::channel();
    let endless = || async move {
        entered.send(()).unwrap();
        std::future::pending::<()>().await;
    };
    let limits = ListenerLimits { shutdown_ms_max: 100, ..Default::default() };
    let server = TestServer::start(Router::new().route("/", get(endless)), limits);
    let mut ada = server.connect();
    ada.send(REQUEST);
    handler_entered.recv().unwrap();
    server.stop();
    assert_eq!(ada.read_to_close(), "");
    server.finished();
}

#[test]
fn a_client_that_does_not_read_is_cut() {
    // More than the kernel buffers for one socket.
    let large = || async { vec![b'x'; 64 * 1024 * 1024] };
    let limits = ListenerLimits { write_stall_ms_max: 200, ..Default::default() };
    let server = TestServer::start(Router::new().route("/", get(large)), limits);
    let mut ada = server.connect();
    ada.send(REQUEST);
    eventually("the request is accepted", || server.stats.accepted.load(Ordering::Relaxed) == 1);
    eventually("the slot is free again", || open(&server) == 0);
}

#[tokio::test]
async fn a_burst_of_clients_waits_to_be_accepted() {
    let listener = bind(ANY_PORT).unwrap();
    let addr = listener.local_addr().unwrap();
    // Nobody accepts. What does not fit into the queue gets no answer and would time out.
    let connect = || std::net::TcpStream::connect_timeout(&addr, Duration::from_secs(5)).unwrap();
    let clients: Vec<_> = (0..500).map(|_| connect()).collect();
    assert_eq!(clients.len(), 500);
}

#[test]
fn a_client_that_still_sends_is_not_reset() {
    let limits = ListenerLimits { linger_ms_max: 20_000, ..Default::default() };
    let server = TestServer::start(hello(), limits);
    let mut ada = server.connect();
    ada.send("POST / HTTP/1.1\r\nhost: test\r\ncontent-length: 1000000\r\n\r\n");
    assert!(ada.read_to_close().starts_with("HTTP/1.1 405 "));
    // The first of these would be answered by a reset, and the second would fail.
    for _ in 0..10 {
        ada.send([b'x'; 10_000]);
    }
    drop(ada);
    eventually("the slot is free again", || open(&server) == 0);
}

#[test]
fn a_client_that_does_not_close_is_let_go() {
    let limits = ListenerLimits { linger_ms_max: 100, ..Default::default() };
    let server = TestServer::start(hello(), limits);
    let mut ada = server.connect();
    ada.send("GET / HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
    assert!(ada.read_to_close().ends_with("hello"));
    eventually("the slot is free again", || open(&server) == 0);
    ada.stream.shutdown(Shutdown::Both).ok();
}

#[test]
fn a_panicking_handler_gives_its_slot_back() {
    let broken = || async {
        if true {
            panic!("a bug")
        }
    };
    let server = TestServer::start(hello().route("/bug", get(broken)), ListenerLimits::default());
    let mut ada = server.connect();
    ada.send("GET /bug HTTP/1.1\r\nhost: test\r\n\r\n");
    assert_eq!(ada.read_to_close(), "");
    eventually("the slot is free again", || open(&server) == 0);
    assert!(server.connect().get("/").ends_with("hello"));
}

#[test]
fn only_a_lost_client_lets_accept_go_on_at_once() {
    assert!(concerns_one_client(&ErrorKind::ConnectionAborted.into()));
    const EMFILE: i32 = 24;
    const ENOBUFS: i32 = 105;
    for code in [EMFILE, ENOBUFS] {
        assert!(!concerns_one_client(&io::Error::from_raw_os_error(code)));
    }
}
