//! The result, as a table.

use std::fmt;
use std::time::Duration;

use comfy_table::Table;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;

use crate::verdict::Verdict;

/// What came of one fault.
pub(crate) struct Line {
    pub(crate) fault: &'static str,
    /// The longest time without an acknowledged hold, from the fault's beginning to the doors' closing.
    pub(crate) gap: Duration,
    /// Until it had taken effect, and until it was healed.
    pub(crate) effect: Duration,
    pub(crate) healed: Duration,
    /// Holds acknowledged before and after the fault began.
    pub(crate) before: usize,
    pub(crate) after: usize,
    pub(crate) verdict: Verdict,
}

impl Line {
    pub(crate) fn is_good(&self) -> bool {
        self.verdict.is_good()
    }

    fn word(&self) -> String {
        let Verdict { lost, twice, wrong, .. } = &self.verdict;
        match self.is_good() {
            true => "good".to_owned(),
            false => format!("{} wrong", lost.len() + twice.len() + wrong.len()),
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Line { gap, before, after, .. } = self;
        write!(f, "{}; {before} + {after} holds, the longest gap {:.1} s", self.word(), gap.as_secs_f64())
    }
}

pub(crate) fn table(lines: &[Line]) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY);
    let header = [
        "fault",
        "effect s",
        "gap s",
        "healed s",
        "acknowledged",
        "503",
        "no answer",
        "unknown",
        "lost",
        "twice",
        "verdict",
    ];
    table.set_header(header);
    for line in lines {
        let seconds = |time: Duration| format!("{:.1}", time.as_secs_f64());
        let verdict = &line.verdict;
        table.add_row([
            line.fault.to_owned(),
            seconds(line.effect),
            seconds(line.gap),
            seconds(line.healed),
            format!("{} + {}", line.before, line.after),
            verdict.unavailable.to_string(),
            verdict.unanswered.to_string(),
            format!("{} done, {} not", verdict.done, verdict.not_done),
            verdict.lost.len().to_string(),
            verdict.twice.len().to_string(),
            line.word(),
        ]);
    }
    table.to_string()
}
