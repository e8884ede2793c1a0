//! What happened in a world, line by line. The same seed gives the same lines, and their hash proves it.

use std::collections::VecDeque;
use std::fmt::{self, Write};

/// Lines kept for a report; the hash is over all of them.
const KEPT_MAX: usize = 400;

pub(crate) struct Trace {
    hash: u64,
    lines: VecDeque<String>,
    pub(crate) count: u64,
    all: bool,
    line: String,
}

impl Trace {
    /// `all` keeps every line, and not only the last.
    pub(crate) fn new(all: bool) -> Trace {
        Trace { hash: 0xcbf2_9ce4_8422_2325, lines: VecDeque::new(), count: 0, all, line: String::new() }
    }

    pub(crate) fn say(&mut self, now: i64, what: fmt::Arguments<'_>) {
        self.line.clear();
        let _ = write!(self.line, "{:>10}.{:03} {what}", now / 1_000, now % 1_000);
        for byte in self.line.bytes().chain([b'\n']) {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.count += 1;
        if !self.all && self.lines.len() >= KEPT_MAX {
            self.lines.pop_front();
        }
        self.lines.push_back(self.line.clone());
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn into_lines(self) -> Vec<String> {
        self.lines.into()
    }
}
