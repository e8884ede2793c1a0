//! How the cost of a hold and its release grows with the hall and with the number of events.

use rand::RngExt;
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::client::{Answer, write_request};
use crate::hall::{GROUP, ROW, wish};
use crate::load::{self, Asker};
use crate::report::Report;
use crate::server::Server;

use super::Setup;

/// Seats of one event.
const SEATS: [usize; 3] = [10_000, 100_000, 1_000_000];
/// Events, and the seats of each.
const EVENTS: [usize; 4] = [1, 10, 100, 1_000];
const SEATS_OF_EACH: usize = 1_200;

pub(super) async fn run(setup: &Setup, report: &mut Report) -> anyhow::Result<()> {
    let mut smallest = None;
    for seats in SEATS {
        let rate = pairs(setup, report, 1, seats, &format!("{seats} seats")).await?;
        let first = *smallest.get_or_insert(rate);
        report.add(format!("{seats} seats, to {}", SEATS[0]), rate / first, "×", "", None);
    }
    let mut fewest = None;
    for events in EVENTS {
        let rate = pairs(setup, report, events, SEATS_OF_EACH, &format!("{events} events")).await?;
        let first = *fewest.get_or_insert(rate);
        report.add(format!("{events} events, to 1"), rate / first, "×", "", None);
    }
    Ok(())
}

async fn pairs(
    setup: &Setup,
    report: &mut Report,
    events: usize,
    seats: usize,
    name: &str,
) -> anyhow::Result<f64> {
    let server = Server::start(&setup.onsale).await?;
    let mut ids = Vec::new();
    for _ in 0..events {
        ids.push(server.event(seats / ROW).await?);
    }
    let asker = holds_and_releases(ids, seats / GROUP, setup);
    let measured = load::closed(server.buyers, setup.connections, setup.lasts, asker).await?;
    let rate = measured.per_second(measured.count(204));
    let note = format!("{}; p99 {:.1} ms", measured.statuses(), measured.ms(None, 0.99));
    report.add(format!("hold and release, {name}"), rate, "/s", note, None);
    report.add(format!("memory, {name}"), server.memory_mib()?, "MiB", "", None);
    Ok(rate)
}

/// Each connection takes groups of its own share of every hall, so none is in another's way.
fn holds_and_releases(events: Vec<String>, groups: usize, setup: &Setup) -> impl Asker + use<> {
    let mut random = StdRng::seed_from_u64(setup.seed);
    let mut number = 0_u64;
    let mut asking = vec![0; setup.connections];
    let share = groups / setup.connections;
    move |index: usize, last: Option<Answer<'_>>, request: &mut Vec<u8>| {
        let placed = last.as_ref().filter(|last| last.status == 201).and_then(|last| last.text("hold_id"));
        if let Some(hold) = placed {
            let headers = Server::buyer_headers(asking[index]);
            write_request(request, format_args!("DELETE /v1/holds/{hold}"), &headers, "");
            return true;
        }
        number += 1;
        asking[index] = number;
        let event = &events[random.random_range(0..events.len())];
        let group = random.random_range(index * share..(index + 1) * share) as u32;
        let line = format_args!("POST /v1/events/{event}/holds");
        write_request(request, line, &Server::buyer_headers(number), &wish(group));
        true
    }
}
