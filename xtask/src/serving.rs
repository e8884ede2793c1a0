//! A program that serves while a step runs: started, asked where it listens, and ended however the step ends.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

const READY_MAX: Duration = Duration::from_secs(30);

/// A running program, which ends with this value.
pub(crate) struct Serving(Child);

impl Serving {
    /// Starts a program; the line with which it says that it is ready. Its logs go to standard error, and are of interest only
    /// where a test fails.
    pub(crate) fn start(program: &mut Command) -> Result<(Serving, String), String> {
        let child = program.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut serving = child.map(Serving).map_err(|error| format!("it could not be started: {error}"))?;
        let printed = serving.0.stdout.take().ok_or("its output was read before")?;
        let (found, line) = mpsc::channel();
        // Reads to the end, so that the program can always go on printing.
        thread::spawn(move || announce(printed, &found));
        let line = line.recv_timeout(READY_MAX).map_err(|_| "it did not say where it listens".to_owned())?;
        Ok((serving, line))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended by itself, which the tests have then noticed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn announce(printed: impl Read, found: &mpsc::Sender<String>) {
    for line in BufReader::new(printed).lines().map_while(Result::ok) {
        if line.contains("\"ready\":true") {
            let _ = found.send(line);
        }
    }
}

/// The text of a member of the line.
pub(crate) fn member(line: &str, name: &str) -> Result<String, String> {
    let rest = line.split_once(&format!("\"{name}\":\"")).map(|(_, rest)| rest);
    let text = rest.and_then(|rest| rest.split_once('"')).map(|(text, _)| text.to_owned());
    text.ok_or_else(|| format!("no {name} in {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ready_line_is_found_among_others() {
        let (found, line) = mpsc::channel();
        let printed = "starting\n{\"payment_simulator\":\"127.0.0.1:4242\",\"ready\":true}\nmore\n";
        announce(printed.as_bytes(), &found);
        let line = line.try_recv().unwrap();
        assert_eq!(member(&line, "payment_simulator"), Ok("127.0.0.1:4242".to_owned()));
        assert!(member(&line, "listen").is_err());
        assert!(member("{\"ready\":true,\"payment_simulator\":null}", "payment_simulator").is_err());
    }
}
