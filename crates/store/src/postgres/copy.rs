//! Rows in bulk, in the server's own text: a row is a line, a tab stands between its values. They come and go in chunks, so that
//! the memory they take doesn't grow with their number.

use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use futures_util::{SinkExt, StreamExt};
use tokio_postgres::{CopyInSink, CopyOutStream};

use crate::limits::COPY_CHUNK;
use crate::look::Parsed;

use super::Link;

/// Rows on their way out of a table.
pub(crate) struct CopyOut<'a> {
    link: &'a Link,
    stream: Pin<Box<CopyOutStream>>,
    has_ended: bool,
}

impl<'a> CopyOut<'a> {
    /// Begins a `COPY … TO STDOUT`.
    pub(crate) fn begin(link: &'a Link, text: &str) -> Parsed<CopyOut<'a>> {
        let stream = Box::pin(link.wait(link.client().copy_out(text))?);
        Ok(CopyOut { link, stream, has_ended: false })
    }

    /// Some whole lines, until there are no more.
    pub(crate) fn next(&mut self) -> Parsed<Option<Bytes>> {
        if self.has_ended {
            return Ok(None);
        }
        let (stream, has_ended) = (&mut self.stream, &mut self.has_ended);
        let chunk = self.link.wait(async {
            // The server sends each line by itself.
            let mut chunk = BytesMut::new();
            while chunk.len() < COPY_CHUNK {
                match stream.next().await {
                    Some(lines) => chunk.extend_from_slice(&lines?),
                    None => {
                        *has_ended = true;
                        break;
                    }
                }
            }
            Ok(chunk)
        })?;
        Ok((!chunk.is_empty()).then(|| chunk.freeze()))
    }
}

/// Rows on their way into a table. Nothing of them is there unless they are [finished](CopyIn::finish).
pub(crate) struct CopyIn<'a> {
    link: &'a Link,
    sink: Pin<Box<CopyInSink<Bytes>>>,
}

impl<'a> CopyIn<'a> {
    /// Begins a `COPY … FROM STDIN`.
    pub(crate) fn begin(link: &'a Link, text: &str) -> Parsed<CopyIn<'a>> {
        let sink = Box::pin(link.wait(link.client().copy_in(text))?);
        Ok(CopyIn { link, sink })
    }

    /// Sends some lines.
    pub(crate) fn send(&mut self, lines: Bytes) -> Parsed<()> {
        let sent = self.link.wait(self.sink.send(lines));
        // Where the server has refused a row, only the end of it all tells why.
        sent.map_err(|error| self.link.wait(self.sink.as_mut().finish()).err().unwrap_or(error))
    }

    /// Tells that these were all; how many.
    pub(crate) fn finish(mut self) -> Parsed<u64> {
        self.link.wait(self.sink.as_mut().finish())
    }
}
