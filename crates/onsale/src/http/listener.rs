//! The accept loop: hyper's HTTP/1 server over sockets whose number, header, and patience are bounded.
//!
//! axum's own loop has no limit on connections and no way to answer the one too many, so it is not used.

mod stream;
#[cfg(test)]
pub(crate) mod test_server;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncWrite;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::{sleep, timeout};
use tower::Service;
use tracing::{debug, info, warn};

use self::stream::ClientStream;
use super::problem::{Code, Problem};

/// Connections that wait to be accepted. The usual 128 overflow within milliseconds when a sale opens, and
/// whoever does not fit connects a second later; the kernel lowers this to its own `somaxconn`.
const BACKLOG: u32 = 4_096;
/// Refusals being written at the same time; past this a socket is closed without a word.
const REFUSALS_MAX: usize = 256;
/// A refused client has this long to take its answer.
const REFUSAL_MS_MAX: u64 = 1_000;
/// Long enough for a descriptor to come free, short enough that no buyer notices.
const ACCEPT_PAUSE_MS: u64 = 50;
/// Bounds what hyper buffers for one connection, in each direction.
const BUFFER_BYTES_MAX: usize = 64 * 1024;
const _: () = assert!(BUFFER_BYTES_MAX >= HYPER_BUFFER_BYTES_MIN);
/// hyper panics on a smaller buffer.
const HYPER_BUFFER_BYTES_MIN: usize = 8 * 1024;

/// What one listener puts up with from its clients, and the numbers it keeps about them.
///
/// The number of headers has no field: hyper's own bound of 100 keeps them off the heap, any other does not.
#[derive(Clone, Debug)]
pub(crate) struct ListenerLimits {
    /// Each connection costs a descriptor and some 15 KiB; past this, new ones are told to come back.
    pub(crate) connections_max: usize,
    /// A header must be complete this long after its connection became idle. So it ends both a client that
    /// dribbles and a kept-alive connection that nobody uses; a waiting browser opens a new one cheaply.
    /// A proxy in front must drop its idle connections sooner, or it will now and then use a closed one.
    pub(crate) header_read_timeout_ms: u64,
    /// Cookies and tokens fit many times over; without a bound one client could fill the memory.
    pub(crate) header_bytes_max: usize,
    /// A client that takes no byte of its answer for so long is gone, or means to sit on a connection.
    pub(crate) write_stall_ms_max: u64,
    /// After the last answer, what the client still sends is read away for so long. Closing at once would
    /// reset the connection, and the reset can overtake the answer (a 413, say).
    pub(crate) linger_ms_max: u64,
    /// A stop waits this long for running requests; the supervisor that sent SIGTERM waits little longer.
    pub(crate) shutdown_ms_max: u64,
    /// Kept by the listener, read by the metrics.
    pub(crate) stats: Arc<ConnectionStats>,
}

impl Default for ListenerLimits {
    fn default() -> Self {
        ListenerLimits {
            connections_max: 12_000,
            header_read_timeout_ms: 10_000,
            header_bytes_max: 32 * 1024,
            write_stall_ms_max: 20_000,
            linger_ms_max: 5_000,
            shutdown_ms_max: 20_000,
            stats: Arc::default(),
        }
    }
}

/// What a listener did, for the metrics.
#[derive(Debug, Default)]
pub(crate) struct ConnectionStats {
    /// Connections being served now.
    pub(crate) open: AtomicUsize,
    /// Connections that were served, ever.
    pub(crate) accepted: AtomicU64,
    /// Connections turned away because `connections_max` were open.
    pub(crate) refused: AtomicU64,
    /// Failures of `accept` itself, such as running out of descriptors.
    pub(crate) accept_errors: AtomicU64,
}

/// The address of the connection's other end, an extension of every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PeerAddr(pub(crate) SocketAddr);

/// One of the `connections_max` places, given back on drop, so that a panicking handler returns it too.
struct Slot(Arc<ConnectionStats>);

impl Slot {
    fn take(limits: &ListenerLimits) -> Option<Slot> {
        let stats = &limits.stats;
        let below_max = |open| (open < limits.connections_max).then_some(open + 1);
        stats.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, below_max).ok()?;
        stats.accepted.fetch_add(1, Ordering::Relaxed);
        Some(Slot(stats.clone()))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Binds `addr` (port 0 picks one) with a queue that is long enough for the opening of a sale.
pub(crate) fn bind(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = if addr.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A restart must not wait for the connections of the process before it. Elsewhere than on Unix the option
    // would let a second server take the port.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    socket.listen(BACKLOG)
}

/// Serves `router` until `shutdown` is true (or its sender is gone), then stops accepting and returns when
/// every connection has finished its current request, or has been cut after `shutdown_ms_max`.
///
/// A response that never ends by itself (an event stream) must watch `shutdown` too, or it is cut.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: ListenerLimits,
    mut shutdown: watch::Receiver<bool>,
) {
    // Routes are made ready here, once, rather than at each request.
    let router: Router = router.with_state(());
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(limits.header_read_timeout_ms))
        .max_header_size(limits.header_bytes_max)
        .max_buf_size(BUFFER_BYTES_MAX.max(limits.header_bytes_max));
    let shutdown_max = Duration::from_millis(limits.shutdown_ms_max);
    let refusals = Arc::new(Semaphore::new(REFUSALS_MAX));
    // Nothing is ever sent: the channel closes when the last connection has dropped its sender.
    let (connection_alive, mut connections_gone) = mpsc::channel::<Infallible>(1);
    let mut accept_failing = false;

    loop {
        let accepted = tokio::select! {
            biased;
            () = stopped(&mut shutdown) => break,
            accepted = listener.accept() => accepted,
        };
        let (tcp, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                limits.stats.accept_errors.fetch_add(1, Ordering::Relaxed);
                if !concerns_one_client(&error) {
                    if !accept_failing {
                        warn!(%error, "Failed to accept connections: trying again every {ACCEPT_PAUSE_MS} ms");
                    }
                    accept_failing = true;
                    sleep(Duration::from_millis(ACCEPT_PAUSE_MS)).await;
                }
                continue;
            }
        };
        if accept_failing {
            info!("Accepting connections again");
            accept_failing = false;
        }
        let Some(slot) = Slot::take(&limits) else {
            limits.stats.refused.fetch_add(1, Ordering::Relaxed);
            if let Ok(permit) = refusals.clone().try_acquire_owned() {
                tokio::spawn(async move {
                    let _permit = permit;
                    refuse(tcp).await;
                });
            }
            continue;
        };
        // Answers are written whole, so waiting for more to send could only delay them.
        if let Err(error) = tcp.set_nodelay(true) {
            debug!(%error, "Failed to set TCP_NODELAY");
        }
        let router = router.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(PeerAddr(peer));
            // The router takes `&mut self`; its clone is a count.
            router.clone().call(request.map(Body::new))
        });
        let stream = ClientStream::new(
            tcp,
            Duration::from_millis(limits.write_stall_ms_max),
            Duration::from_millis(limits.linger_ms_max),
        );
        let connection = http.serve_connection(TokioIo::new(stream), service);
        let mut shutdown = shutdown.clone();
        let alive = connection_alive.clone();
        tokio::spawn(async move {
            let _held = (slot, alive);
            let mut connection = pin!(connection);
            let finished = tokio::select! {
                biased;
                finished = connection.as_mut() => finished,
                () = stopped(&mut shutdown) => {
                    connection.as_mut().graceful_shutdown();
                    match timeout(shutdown_max, connection).await {
                        Ok(finished) => finished,
                        Err(_) => return warn!("Cut a connection: its request outlived the shutdown"),
                    }
                }
            };
            // Clients leave, stall and send nonsense all day: no reason to wake anyone.
            if let Err(error) = finished {
                debug!(%error, "A connection ended early");
            }
        });
    }

    // From here the system refuses new connections instead of queueing them for nobody.
    drop(listener);
    drop(connection_alive);
    // Each connection bounds itself; the second bound is for a handler that blocks its thread.
    let _ = timeout(shutdown_max + Duration::from_secs(1), connections_gone.recv()).await;
}

/// Whoever held the sender of `shutdown` and dropped it wanted the end as well.
async fn stopped(shutdown: &mut watch::Receiver<bool>) {
    let _ = shutdown.wait_for(|stop| *stop).await;
}

/// Such a client is gone and the next one can be accepted at once. Everything else (no descriptors, no
/// buffers) would fail again immediately, and the loop would spin.
fn concerns_one_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    )
}

/// Tells a client that it is one too many. The request is not read, so this costs the same for any.
async fn refuse(tcp: TcpStream) {
    let patience = Duration::from_millis(REFUSAL_MS_MAX);
    let mut stream = ClientStream::new(tcp, patience, patience);
    let answer = async {
        // Shorter than any socket's send buffer, so one write takes it all.
        poll_fn(|cx| Pin::new(&mut stream).poll_write(cx, &REFUSAL)).await?;
        poll_fn(|cx| Pin::new(&mut stream).poll_shutdown(cx)).await
    };
    let _ = timeout(patience, answer).await;
}

static REFUSAL: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let detail = "The server has as many connections as it can serve.";
    let body = Problem::new(Code::Overloaded, detail).to_json();
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n\
         content-length: {}\r\nretry-after: 1\r\ncache-control: no-store\r\nconnection: close\r\n\r\n",
        body.len()
    );
    [head.into_bytes(), body].concat()
});
