//! A listener on port 0 for tests, and a client that sends exactly the bytes it is told to.
//!
//! Clients are blocking: the test's own thread plays the client while the server has its runtime.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use axum::Router;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::{ConnectionStats, ListenerLimits, bind, serve};

pub(crate) const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// Only a broken server makes a test wait so long.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct TestServer {
    runtime: Runtime,
    pub(crate) addr: SocketAddr,
    pub(crate) stats: Arc<ConnectionStats>,
    shutdown: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl TestServer {
    pub(crate) fn start(router: Router, limits: ListenerLimits) -> TestServer {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let listener = runtime.block_on(async { bind(ANY_PORT) }).unwrap();
        let addr = listener.local_addr().unwrap();
        let stats = limits.stats.clone();
        let (shutdown, stop) = watch::channel(false);
        let serving = runtime.spawn(serve(listener, router, limits, stop));
        TestServer { runtime, addr, stats, shutdown, serving }
    }

    pub(crate) fn connect(&self) -> TestClient {
        let stream = TcpStream::connect(self.addr).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        TestClient { stream }
    }

    pub(crate) fn stop(&self) {
        self.shutdown.send(true).unwrap();
    }

    /// Waits until `serve` has returned.
    pub(crate) fn finished(self) {
        let finished = async { tokio::time::timeout(PATIENCE, self.serving).await };
        self.runtime.block_on(finished).expect("serve returns").unwrap();
    }
}

pub(crate) struct TestClient {
    pub(crate) stream: TcpStream,
}

impl TestClient {
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    pub(crate) fn get(&mut self, path: &str) -> String {
        self.send(format!("GET {path} HTTP/1.1\r\nhost: test\r\n\r\n"));
        self.read_answer()
    }

    /// Reads one answer by its content-length and leaves the connection open.
    pub(crate) fn read_answer(&mut self) -> String {
        let mut answer = Vec::new();
        let mut byte = [0];
        while !answer.ends_with(b"\r\n\r\n") {
            self.stream.read_exact(&mut byte).unwrap();
            answer.push(byte[0]);
        }
        let head = String::from_utf8(answer).unwrap();
        let len = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; len.map_or(0, |len| len.parse().unwrap())];
        self.stream.read_exact(&mut body).unwrap();
        head + &String::from_utf8(body).unwrap()
    }

    /// Everything that comes until the server closes; a reset is an error.
    pub(crate) fn read_to_close(&mut self) -> String {
        let mut all = String::new();
        self.stream.read_to_string(&mut all).unwrap();
        all
    }
}

/// Waits for a state that another thread reaches.
pub(crate) fn eventually(what: &str, mut reached: impl FnMut() -> bool) {
    let started = Instant::now();
    while !reached() {
        assert!(started.elapsed() < PATIENCE, "never happened: {what}");
        thread::yield_now();
    }
}
