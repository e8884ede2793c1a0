//! How the sale goes, while it goes: a bar on a terminal, a line now and then elsewhere.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::crowd::Crowd;
use super::measures::Counted;

const LINE_EVERY: Duration = Duration::from_secs(2);
const BAR_EVERY: Duration = Duration::from_millis(250);

/// Says how the sale goes for as long as it is polled.
pub(super) async fn show(crowd: &Arc<Crowd>, seats: usize) {
    let is_terminal = std::io::stdout().is_terminal();
    let bar = is_terminal.then(|| bar(seats));
    let every = if is_terminal { BAR_EVERY } else { LINE_EVERY };
    let begun = Instant::now();
    let (mut holds_before, mut looked) = (0, begun);
    loop {
        tokio::time::sleep(every).await;
        let holds = crowd.measures.counted(Counted::Holds);
        let rate = (holds - holds_before) as f64 / looked.elapsed().as_secs_f64();
        (holds_before, looked) = (holds, Instant::now());
        let p99_ms = crowd.measures.hold_p99_lately() as f64 / 1_000.0;
        let counts = crowd.with_house(|house| house.counts());
        let line = format!(
            "held {:>5}, available {:>6}, {rate:>6.0} holds/s, p99 {p99_ms:.1} ms",
            counts.held, counts.available
        );
        match &bar {
            Some(bar) => {
                bar.set_position(counts.sold as u64);
                bar.set_message(line);
            }
            None => println!("{:>5.1} s  sold {:>6}, {line}", begun.elapsed().as_secs_f64(), counts.sold),
        }
    }
}

fn bar(seats: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{elapsed:>4} {bar:40.cyan/blue} {pos}/{len} sold, {msg}");
    let bar = ProgressBar::with_draw_target(Some(seats as u64), ProgressDrawTarget::stdout());
    // Left as it is when the sale ends, for the summary to stand under.
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        .with_finish(indicatif::ProgressFinish::Abandon)
}
