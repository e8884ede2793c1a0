//! One kept connection that sends bytes made beforehand and reads what comes back. It does as little as a client can:
//! on a machine that load and server share, whatever it did more would be taken from the server.

use std::net::SocketAddr;

use anyhow::{Context, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Headers of one answer.
const HEADERS_MAX: usize = 32;
/// A larger answer than any this asks for; past it something is wrong.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What came back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer<'a> {
    pub(crate) status: u16,
    pub(crate) has_retry_after: bool,
    pub(crate) body: &'a [u8],
}

impl Answer<'_> {
    /// A member of the body whose value is a string, found without reading the rest.
    pub(crate) fn text(&self, member: &str) -> Option<&str> {
        let body = std::str::from_utf8(self.body).ok()?;
        let (_, rest) = body.split_once(&format!("\"{member}\":\""))?;
        rest.split_once('"').map(|(value, _)| value)
    }

    /// The body as JSON, if the status is the one that was hoped for.
    pub(crate) fn json(&self, status: u16) -> anyhow::Result<serde_json::Value> {
        if self.status != status {
            bail!("expected {status}, not {}: {}", self.status, String::from_utf8_lossy(self.body));
        }
        Ok(if self.body.is_empty() { serde_json::Value::Null } else { serde_json::from_slice(self.body)? })
    }
}

/// A connection.
pub(crate) struct Connection {
    stream: TcpStream,
    /// What has been read of the answer so far, or the last answer.
    read: Vec<u8>,
}

struct Head {
    status: u16,
    has_retry_after: bool,
    body: std::ops::Range<usize>,
}

impl Connection {
    pub(crate) async fn open(server: SocketAddr) -> anyhow::Result<Connection> {
        let stream = TcpStream::connect(server).await.context("failed to connect")?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream, read: Vec::with_capacity(4_096) })
    }

    /// Sends a request, whole, and reads the answer, whole.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> anyhow::Result<Answer<'_>> {
        self.read.clear();
        self.stream.write_all(request).await?;
        let head = loop {
            if self.stream.read_buf(&mut self.read).await? == 0 {
                bail!("the server closed the connection");
            }
            if let Some(head) = head(&self.read)? {
                break head;
            }
        };
        while self.read.len() < head.body.end {
            if self.stream.read_buf(&mut self.read).await? == 0 {
                bail!("the server closed the connection within an answer");
            }
        }
        Ok(Answer { status: head.status, has_retry_after: head.has_retry_after, body: &self.read[head.body] })
    }
}

fn head(read: &[u8]) -> anyhow::Result<Option<Head>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(begin) = response.parse(read)? else { return Ok(None) };
    let status = response.code.context("an answer without a status")?;
    let mut length = 0;
    let mut has_retry_after = false;
    for header in response.headers {
        if header.name.eq_ignore_ascii_case("content-length") {
            length = std::str::from_utf8(header.value)?.parse()?;
        } else if header.name.eq_ignore_ascii_case("retry-after") {
            has_retry_after = true;
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            bail!("an answer without a length");
        }
    }
    if length > ANSWER_BYTES_MAX {
        bail!("an answer of {length} bytes");
    }
    Ok(Some(Head { status, has_retry_after, body: begin..begin + length }))
}

/// Writes a request into `out`, in place of what was there.
pub(crate) fn write_request(out: &mut Vec<u8>, line: std::fmt::Arguments<'_>, headers: &str, body: &str) {
    use std::io::Write;
    out.clear();
    // Writing to memory doesn't fail.
    let _ = write!(
        out,
        "{line} HTTP/1.1\r\nhost: bench\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    );
}
