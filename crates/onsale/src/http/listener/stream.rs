//! A client's socket that does not wait for ever: neither for a reader that stopped nor for a goodbye.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// What is read away after the last answer: twice the largest body, so that a client which sends it all before it listens
/// still hears that it was too large.
const LINGER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A socket with a bound on stalled writes and a lingering close.
pub(super) struct ClientStream {
    tcp: TcpStream,
    write_stall_max: Duration,
    linger_max: Duration,
    /// Made only when a write has to wait or the socket closes, which most connections never see.
    deadline: Option<Pin<Box<Sleep>>>,
    /// `None` while open; once our side is closed, the bytes that may still be read away.
    linger_bytes_left: Option<usize>,
}

impl ClientStream {
    pub(super) fn new(tcp: TcpStream, write_stall_max: Duration, linger_max: Duration) -> ClientStream {
        ClientStream { tcp, write_stall_max, linger_max, deadline: None, linger_bytes_left: None }
    }

    /// Passes a write's result on, unless the write has been waiting for too long.
    fn bound_write<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.deadline = None;
            return written;
        }
        let stall_max = self.write_stall_max;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(stall_max)));
        ready!(deadline.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_read(cx, buf)
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.tcp).poll_write(cx, buf);
        self.bound_write(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.tcp).poll_write_vectored(cx, bufs);
        self.bound_write(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    /// Closes our side, then reads until the client closes its own or a bound is reached.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.linger_bytes_left.is_none() {
            ready!(Pin::new(&mut this.tcp).poll_shutdown(cx))?;
            this.linger_bytes_left = Some(LINGER_BYTES_MAX);
            this.deadline = Some(Box::pin(sleep(this.linger_max)));
        }
        let (Some(bytes_left), Some(deadline)) = (&mut this.linger_bytes_left, &mut this.deadline) else {
            return Poll::Ready(Ok(()));
        };
        let mut scratch = [0; 4096];
        while deadline.as_mut().poll(cx).is_pending() {
            let mut read = ReadBuf::new(&mut scratch);
            // Our answer is out; how the client's half ends is its own affair.
            let Ok(()) = ready!(Pin::new(&mut this.tcp).poll_read(cx, &mut read)) else { break };
            let len = read.filled().len();
            *bytes_left = bytes_left.saturating_sub(len);
            if len == 0 || *bytes_left == 0 {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }
}
