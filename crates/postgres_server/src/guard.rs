//! The process that stands between a server and whoever started it: see `guard.sh`.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::Error;
use crate::programs::{self, User};

const SCRIPT: &str = include_str!("guard.sh");

/// A running guard. When this is dropped, or this process ends in whatever way, it stops its server and removes the folder.
pub(crate) struct Guard {
    child: Child,
    /// Closed first when this ends; nothing else has this end of the pipe, since programs don't inherit it.
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// The folder that it made, of the user as whom it runs.
    pub(crate) folder: PathBuf,
}

impl Guard {
    /// Starts a guard, which makes a folder within another.
    pub(crate) fn start(within: &Path, programs: &Path, user: Option<User>) -> Result<Guard, Error> {
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "guard"]).arg(within).arg(programs);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // The user may not be allowed to be where we are. What is sent to our process group is not for the guard: it would end
        // without having cleaned up.
        command.current_dir("/").process_group(0).env("LC_ALL", "C");
        programs::forget_environment(&mut command);
        if let Some(User { uid, gid }) = user {
            command.uid(uid).gid(gid);
        }
        let failed = |error: std::io::Error| {
            Error::new(format!("the guard of a server could not be started: {error}"))
        };
        let mut child = command.spawn().map_err(failed)?;
        let (orders, answers) = (child.stdin.take(), child.stdout.take());
        let answers = BufReader::new(answers.ok_or_else(|| Error::new("the guard has no output"))?);
        let mut guard = Guard { child, orders, answers, folder: PathBuf::new() };
        let answer = guard.answer()?;
        if !answer.starts_with('/') {
            return Err(Error::new(format!("the folder of a server could not be made: {answer}")));
        }
        guard.folder = answer.into();
        Ok(guard)
    }

    /// Gives an order, and waits for its answer.
    pub(crate) fn order(&mut self, order: &str) -> Result<String, Error> {
        let ended = |error: std::io::Error| Error::new(format!("the guard of a server has ended: {error}"));
        let orders = self.orders.as_mut().ok_or_else(|| Error::new("the guard was told to end"))?;
        orders.write_all(format!("{order}\n").as_bytes()).map_err(ended)?;
        self.answer()
    }

    fn answer(&mut self) -> Result<String, Error> {
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(0) => Err(Error::new("the guard of a server has ended")),
            Ok(_) => Ok(line.trim_end().to_owned()),
            Err(error) => Err(Error::new(format!("the guard of a server can't be heard: {error}"))),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.orders.take());
        // It cleans up and ends; if it had ended before, there is nobody left to do so.
        let _ = self.child.wait();
    }
}
