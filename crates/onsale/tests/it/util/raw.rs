//! A bare socket, for what no well-behaved client sends.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::Reply;

/// An answer, or the end of a connection, comes long before this, or never.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection to a listener. Its calls block: the server is another process.
pub(crate) struct Raw {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl Raw {
    /// Connects to `http://host:port`.
    pub(crate) fn to(base: &str) -> Raw {
        let address = base.strip_prefix("http://").expect("a base is http");
        let stream = TcpStream::connect(address).expect("the listener accepts");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        Raw { stream, unread: Vec::new() }
    }

    /// Sends bytes; a server that has hung up already is not an error.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Raw {
        self.stream.write_all(bytes.as_ref()).ok();
        self
    }

    /// Says that no more will be sent.
    pub(crate) fn half_close(&mut self) -> &mut Raw {
        self.stream.shutdown(Shutdown::Write).ok();
        self
    }

    /// The next answer on this connection.
    #[track_caller]
    pub(crate) fn reply(&mut self) -> Reply {
        self.try_reply().unwrap_or_else(|| panic!("no whole answer: {:?}", lossy(&self.unread)))
    }

    /// The next answer; `None` when the connection ends without one.
    pub(crate) fn try_reply(&mut self) -> Option<Reply> {
        let head_end = loop {
            if let Some(at) = self.unread.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            self.read_some().filter(|count| *count > 0)?;
        };
        let head = lossy(&self.unread[..head_end]);
        let mut lines = head.lines();
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let mut headers = HeaderMap::new();
        for line in lines.take_while(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':')?;
            headers.append(name.parse::<HeaderName>().ok()?, HeaderValue::from_str(value.trim()).ok()?);
        }
        let length = headers.get("content-length").and_then(|length| length.to_str().ok()?.parse().ok());
        let end = head_end + length.unwrap_or(0);
        while self.unread.len() < end {
            self.read_some().filter(|count| *count > 0)?;
        }
        let text = lossy(&self.unread[head_end..end]);
        self.unread.drain(..end);
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        Some(Reply { what: "raw request".to_owned(), status, headers, text, body })
    }

    /// What comes until the server hangs up, which it must.
    #[track_caller]
    pub(crate) fn read_to_end(&mut self) -> String {
        while self.read_some().expect("the server hangs up") > 0 {}
        lossy(&std::mem::take(&mut self.unread))
    }

    /// How many bytes came; 0 at the end, `None` when nothing comes for long.
    fn read_some(&mut self) -> Option<usize> {
        let mut bytes = [0; 16 * 1024];
        match self.stream.read(&mut bytes) {
            Ok(count) => {
                self.unread.extend_from_slice(&bytes[..count]);
                Some(count)
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Some(0),
            Err(_) => None,
        }
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
