//! The program on the command line: what it says and how it ends.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use super::keep_in;
use super::test_app::without_settings;

/// A program that should end by itself does so long before this.
const PATIENCE: Duration = Duration::from_secs(30);

/// The program with arguments, and nothing of the tests' environment that would set it up.
pub(crate) fn program<S: AsRef<OsStr>>(arguments: &[S]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onsale"));
    without_settings(&mut command);
    let folder = arguments.windows(2).find(|pair| pair[0].as_ref() == "--data");
    if let Some([_, data]) = folder {
        keep_in(&mut command, Path::new(data));
    }
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the program to its end.
pub(crate) fn run<S: AsRef<OsStr>>(arguments: &[S]) -> Said {
    finish(program(arguments).spawn().expect("the program starts"))
}

/// Waits until a program ends, which it must; a server that serves instead is ended.
#[track_caller]
pub(crate) fn finish(child: Child) -> Said {
    let id = child.id();
    let (ended, has_ended) = mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        if has_ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            Command::new("kill").args(["-KILL", &id.to_string()]).status().ok();
        }
    });
    let output = child.wait_with_output().expect("it can be waited for");
    drop(ended);
    watch.join().expect("the watch ends");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    Said { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// What a program said.
#[derive(Debug)]
pub(crate) struct Said {
    /// Its exit status; `None` when a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Said {
    /// What it printed, when all went well.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.stdout
    }

    /// That it refused: a status other than 0, a message with these words, nothing printed, no panic.
    #[track_caller]
    pub(crate) fn refused(&self, words: &str) {
        assert!(self.code.is_some_and(|code| code != 0), "{self:?}");
        assert!(self.stderr.contains(words), "{words:?} is not in {self:?}");
        assert!(self.stdout.is_empty() && !self.stderr.contains("panicked"), "{self:?}");
    }
}
