//! What machine the figures are of.

use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

/// Long enough for a mean that can be trusted to a tenth.
const FSYNC_TIME: Duration = Duration::from_millis(500);

/// Processor, cores, memory, what a durable write costs, how busy others keep it.
pub(crate) fn describe() -> String {
    let first = |path: &str, name: &str| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_once(':').map_or_else(|| "unknown".to_owned(), |(_, value)| value.trim().to_owned())
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let processor = first("/proc/cpuinfo", "model name");
    let memory = first("/proc/meminfo", "MemTotal");
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default().to_owned();
    let fsync = fsync().map_or_else(|_| "unknown".to_owned(), |time| format!("{} µs", time.as_micros()));
    format!("{cores} cores of {processor}, {memory}, 4 KiB written and synced in {fsync}, load {load} before")
}

fn fsync() -> std::io::Result<Duration> {
    let folder = tempfile::tempdir()?;
    let mut file = File::create(folder.path().join("probe"))?;
    let begun = Instant::now();
    let mut count = 0;
    while begun.elapsed() < FSYNC_TIME {
        file.write_all(&[1; 4_096])?;
        file.sync_data()?;
        count += 1;
    }
    Ok(begun.elapsed() / count)
}
