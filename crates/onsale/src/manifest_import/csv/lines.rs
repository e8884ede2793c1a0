//! Where the records of a CSV file start, and which of them the reader would misread without a word.

use crate::manifest_import::{At, Fault};

/// Finds the lines of records. The reader's own count starts a record at the blank lines in front of it.
pub(super) struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
    line: u64,
}

impl<'a> Lines<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Lines<'a> {
        Lines { bytes, at: 0, line: 1 }
    }

    /// The line of the record that follows this offset. Offsets must not go down.
    pub(super) fn of_record(&mut self, start: usize) -> u64 {
        while let Some(byte) = self.bytes.get(self.at) {
            let ends_line = *byte == b'\n' || (*byte == b'\r' && self.bytes.get(self.at + 1) != Some(&b'\n'));
            if self.at >= start && !matches!(byte, b'\r' | b'\n') {
                break;
            }
            self.line += u64::from(ends_line);
            self.at += 1;
        }
        self.line
    }
}

/// The reader forgives a quote that is never closed, and takes the rest of the file for one field.
pub(super) fn quoting_faults(bytes: &[u8]) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut lines = Lines::new(bytes);
    let mut fault = |at: usize, detail: &str| {
        faults.push(Fault { at: At::Line(lines.of_record(at)), detail: detail.into() });
    };
    let (mut at, mut record, mut field_starts) = (0, 0, true);
    while let Some(byte) = bytes.get(at) {
        if *byte != b'"' || !field_starts {
            field_starts = matches!(byte, b',' | b'\r' | b'\n');
            at += 1;
            if matches!(byte, b'\r' | b'\n') {
                record = at;
            }
            continue;
        }
        // Inside quotes, a quote is written twice.
        at += 1;
        loop {
            match (bytes.get(at), bytes.get(at + 1)) {
                (None, _) => {
                    fault(record, "a quoted field is not closed");
                    return faults;
                }
                (Some(b'"'), Some(b'"')) => at += 2,
                (Some(b'"'), _) => break,
                (Some(_), _) => at += 1,
            }
        }
        at += 1;
        field_starts = false;
        if bytes.get(at).is_some_and(|byte| !matches!(byte, b',' | b'\r' | b'\n')) {
            fault(record, "text after the closing quote of a field");
        }
    }
    faults
}
