//! Holds of three neighbouring seats over HTTP. Each is of a buyer of its own and carries a key of its own.

use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::client::write_request;
use crate::hall::{self, any_group, shuffled_groups, skewed_group};
use crate::load::{self, Asker, Measured};
use crate::report::{Must, Report};
use crate::server::Server;

use super::Setup;

/// Rows of the hall: 300,000 seats, so that 100,000 holds of three find seats of their own.
pub(super) const ROWS: usize = 10_000;
/// Holds placed of the evenly spread ones, 201.
pub(crate) const EVEN: &str = "holds of 3, even, placed";

/// Asks for groups that `wished` names, until it names none.
pub(crate) fn holds<W: FnMut() -> Option<u32> + 'static>(event: &str, wished: W) -> impl Asker + use<W> {
    holds_from(event, 0, wished)
}

/// The same, with accounts and keys after a number.
pub(crate) fn holds_from<W: FnMut() -> Option<u32> + 'static>(
    event: &str,
    mut number: u64,
    mut wished: W,
) -> impl Asker + use<W> {
    let line = format!("POST /v1/events/{event}/holds");
    move |_, _, request: &mut Vec<u8>| {
        let Some(group) = wished() else { return false };
        number += 1;
        let headers = Server::buyer_headers(number);
        write_request(request, format_args!("{line}"), &headers, &hall::wish(group));
        true
    }
}

/// Which groups are wished for.
pub(super) struct Spread {
    pub(super) name: &'static str,
    pub(super) wished: fn(u64) -> Box<dyn FnMut() -> Option<u32>>,
}

pub(super) const EACH_ONCE: Spread = Spread {
    name: "even, each group once",
    wished: |seed| {
        let mut groups = shuffled_groups(ROWS, seed).into_iter();
        Box::new(move || groups.next())
    },
};
pub(super) const ALL_WANT_ONE: Spread =
    Spread { name: "all want one group", wished: |_| Box::new(|| Some(0)) };

const SPREADS: [Spread; 4] = [
    EACH_ONCE,
    Spread {
        name: "even, any group",
        wished: |seed| {
            let mut random = StdRng::seed_from_u64(seed);
            Box::new(move || Some(any_group(ROWS, &mut random)))
        },
    },
    Spread {
        name: "80% want 10%",
        wished: |seed| {
            let mut random = StdRng::seed_from_u64(seed);
            Box::new(move || Some(skewed_group(ROWS, &mut random)))
        },
    },
    ALL_WANT_ONE,
];

pub(super) async fn run(setup: &Setup, report: &mut Report) -> anyhow::Result<()> {
    let mut even = None;
    for Spread { name, wished } in SPREADS {
        let server = Server::start(&setup.onsale).await?;
        let event = server.event(ROWS).await?;
        let before = server.worked_s()?;
        let asker = holds(&event, wished(setup.seed));
        let measured = load::closed(server.buyers, setup.connections, setup.lasts, asker).await?;
        let worked = server.worked_s()? - before;
        let answers = measured.per_second(measured.answers());
        if even.is_none() {
            placed(report, &measured);
            let of_holds = worked / measured.count(201) as f64 / warm_up_share(setup.lasts) * 1e6;
            report.add("server's time for each hold", of_holds, "µs", "user and system", None);
        }
        let note = format!("{}; p99 {:.1} ms", measured.statuses(), measured.ms(None, 0.99));
        report.add(format!("answers, {name}"), answers, "/s", note, None);
        let first = *even.get_or_insert(answers);
        if name != EACH_ONCE.name {
            let must = Some(Must::AtLeast(0.8));
            report.add(format!("{name}, to even"), answers / first, "×", "", must);
        }
        report.add(format!("memory, {name}"), server.memory_mib()?, "MiB", "300,000 seats", None);
        server.audit(&setup.onsale)?;
    }
    Ok(())
}

/// The server also worked while the load warmed up; the counts leave that out.
fn warm_up_share(lasts: Duration) -> f64 {
    (lasts + lasts / load::WARM_UP_PART).as_secs_f64() / lasts.as_secs_f64()
}

fn placed(report: &mut Report, measured: &Measured) {
    let rate = measured.per_second(measured.count(201));
    let note = format!("p50 {:.1} ms", measured.ms(Some(201), 0.5));
    report.add(EVEN, rate, "/s", note, Some(Must::AtLeast(8_000.0)));
    let p99 = measured.ms(Some(201), 0.99);
    report.add("holds of 3, even, p99", p99, "ms", "", Some(Must::AtMost(100.0)));
    for (ceiling, name) in
        [(super::ceiling::EMPTY, "to an empty answer"), (super::ceiling::ROWS, "to the rows alone")]
    {
        if let Some(best) = report.value(ceiling) {
            report.add(format!("holds of 3, even, {name}"), rate / best, "×", "", None);
        }
    }
}
