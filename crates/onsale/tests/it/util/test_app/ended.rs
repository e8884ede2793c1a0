//! Servers that may end by themselves.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::Arc;

use tempfile::TempDir;

use super::App;

const SIGKILL: i32 = 9;

/// How a server ended.
pub(crate) struct Ended {
    /// Its data, for a restart.
    pub(crate) data: Arc<TempDir>,
    /// Whether SIGKILL ended it; it ended well otherwise.
    pub(crate) killed: bool,
    /// All that it wrote.
    pub(crate) log: String,
}

impl App {
    /// Ends the server, unless it has ended by itself; how that was.
    pub(crate) fn end(mut self) -> Ended {
        // Until it is waited for, a process that has ended can still be sent a signal.
        let sent = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "SIGTERM can be sent");
        let status = self.wait();
        let killed = status.signal() == Some(SIGKILL);
        assert!(killed || status.code() == Some(0), "the server did not end well: {status}");
        self.log_reader.take().map(|reader| reader.join().ok());
        Ended { data: Arc::clone(&self.data), killed, log: self.log_text() }
    }
}
