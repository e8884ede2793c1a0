//! More than can be answered, and then calm again. The generator shares the machine with the server, so what is "ten
//! times" is what is due; what could not even be sent is told.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use crate::hall::shuffled_groups;
use crate::load;
use crate::report::{Must, Report};
use crate::server::Server;

use super::Setup;
use super::holds::{EVEN, holds, holds_from};

/// 1,000,020 seats: 333,340 holds of three.
const ROWS: usize = 33_334;
/// Connections of the crowd; as many requests can be under way at once: more than the server lets wait.
const CROWD: usize = 10_000;
/// As much of the best rate as a quiet sale asks for.
const CALM: f64 = 0.4;
const TIMES: f64 = 10.0;
/// One look at the latency after the storm, and how many.
const LOOK: Duration = Duration::from_secs(1);
const LOOKS_MAX: u32 = 30;

pub(super) async fn run(setup: &Setup, report: &mut Report) -> anyhow::Result<()> {
    let files = rlimit::increase_nofile_limit(CROWD as u64 + 1_000)?;
    ensure!(files > CROWD as u64, "the system allows {files} open files, and {CROWD} connections are needed");
    let server = Server::start(&setup.onsale).await?;
    let event = server.event(ROWS).await?;
    let mut groups = shuffled_groups(ROWS, setup.seed).into_iter();
    let first: Vec<u32> = groups.by_ref().take(100_000).collect();
    let mut first = first.into_iter();
    let asker = holds(&event, move || first.next());
    let best = load::closed(server.buyers, setup.connections, setup.lasts / 2, asker).await?;
    let capacity = best.per_second(best.count(201));
    report.add("before: holds placed at best", capacity, "/s", best.statuses(), None);
    if let Some(even) = report.value(EVEN) {
        report.add("before, to the same in a hall of 300,000", capacity / even, "×", "", None);
    }
    // The first wishes' keys and accounts must not come again.
    let event = server.event(ROWS).await?;
    let groups = std::rc::Rc::new(std::cell::RefCell::new(shuffled_groups(ROWS, setup.seed).into_iter()));
    let next = || {
        let groups = std::rc::Rc::clone(&groups);
        move || groups.borrow_mut().next()
    };
    let mut offset = 0;
    let mut asker = |next| {
        offset += 100_000_000;
        holds_from(&event, offset, next)
    };
    let calm =
        load::open(server.buyers, setup.connections, capacity * CALM, setup.lasts / 2, asker(next())).await?;
    let calm_ms = calm.ms(Some(201), 0.99);
    report.add("calm, p99", calm_ms, "ms", format!("{:.0} holds/s are due", capacity * CALM), None);
    let storm = load::open(server.buyers, CROWD, capacity * TIMES, setup.lasts, asker(next())).await?;
    let goodput = storm.per_second(storm.count(201));
    let note = format!("{}; {} broken, {} not sent", storm.statuses(), storm.broken, storm.unsent);
    report.add("storm: holds placed", goodput, "/s", note, None);
    report.add("storm: to the best", goodput / capacity, "×", "", Some(Must::AtLeast(0.8)));
    let taken = storm.ms_from_sent(201, 0.99);
    report.add("storm: holds placed, p99", taken, "ms", "from when they were sent", None);
    let refused = storm.ms_from_sent(503, 0.99);
    report.add("storm: refusals, p99", refused, "ms", "from when they were sent", None);
    let mute = storm.without_retry_after as f64;
    report.add("storm: refusals without Retry-After", mute, "", "", Some(Must::AtMost(0.0)));
    let ended = Instant::now();
    let mut normal_after = None;
    for _ in 0..LOOKS_MAX {
        let look = load::open(server.buyers, setup.connections, capacity * CALM, LOOK, asker(next())).await?;
        if look.answers() > 0 && look.ms(None, 0.99) <= (2.0 * calm_ms).max(100.0) {
            normal_after = Some(ended.elapsed());
            break;
        }
    }
    let after = normal_after.context("latency never was normal again")?;
    let must = Some(Must::AtMost(15.0));
    report.add("after: latency is normal within", after.as_secs_f64(), "s", "p99 of one second", must);
    report.add("memory, through the storm", server.memory_mib()?, "MiB", "2 halls of 1,000,020 seats", None);
    server.audit(&setup.onsale)
}
