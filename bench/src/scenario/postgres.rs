//! The program on PostgreSQL, beside the best that hand-written SQL does on the same server in the same run.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use onsale_postgres_server::{Place, Server as Postgres};

use crate::load::{self, Measured};
use crate::report::{Must, Report};
use crate::server::Server;

use super::Setup;
use super::holds::{ALL_WANT_ONE, EACH_ONCE, ROWS, Spread, holds};
use yardstick::{EVEN, HOT, ONE_CALL, STATEMENTS};

mod yardstick;

/// As it is installed, on the disk, with memory for all that is measured here.
const SETTINGS: &[(&str, &str)] = &[("shared_buffers", "256MB")];
/// What a load that asks over HTTP must do of what pgbench does on a socket, and is to do.
const TO_PGBENCH: f64 = 1.0;
const TO_PGBENCH_GOAL: f64 = 3.0;

/// What is measured with both: which seats are wanted, of the yardstick and of the program.
const PAIRS: [(&yardstick::Spread, &Spread); 2] = [(&EVEN, &EACH_ONCE), (&HOT, &ALL_WANT_ONE)];

pub(super) async fn run(setup: &Setup, report: &mut Report) -> anyhow::Result<()> {
    let postgres = Postgres::start_with(Place::Disk, SETTINGS)?;
    for (theirs, ours) in PAIRS {
        // Either begins with tables of its own, and is alone on the machine.
        let best = yardsticks(setup, report, &postgres, theirs)?;
        let server = Server::start_on(&setup.onsale, vec![postgres.create_database()?]).await?;
        let event = server.event(ROWS).await?;
        let before = server.worked_s()?;
        let measured = of_event(setup, server.buyers, &event, setup.connections, ours).await?;
        let worked = server.worked_s()? - before;
        let answers = measured.per_second(measured.answers());
        let note = format!(
            "{}; p99 {:.1} ms; server's time without PostgreSQL's {worked:.1} s",
            measured.statuses(),
            measured.ms(None, 0.99)
        );
        report.add(format!("on PostgreSQL: answers, {}", ours.name), answers, "/s", note, None);
        let goal = if answers / best >= TO_PGBENCH_GOAL { "reached" } else { "not reached" };
        let note = format!("the goal of {TO_PGBENCH_GOAL} is {goal}");
        let name = format!("on PostgreSQL: {}, to pgbench", ours.name);
        report.add(name, answers / best, "×", note, Some(Must::AtLeast(TO_PGBENCH)));
        server.audit(&setup.onsale)?;
    }
    drop(postgres);
    homes(setup, report).await
}

/// Two events, at one home and then at two: the same load in all.
async fn homes(setup: &Setup, report: &mut Report) -> anyhow::Result<()> {
    let mut rates = Vec::new();
    for count in [1, 2] {
        let servers = (0..count).map(|_| Postgres::start_with(Place::Disk, SETTINGS));
        let servers = servers.collect::<Result<Vec<_>, _>>()?;
        let urls = servers.iter().map(Postgres::create_database).collect::<Result<Vec<_>, _>>()?;
        let server = Server::start_on(&setup.onsale, urls).await?;
        let first = server.event(ROWS).await?;
        let second = server.event_at((count == 2).then_some("1"), ROWS).await?;
        let half = setup.connections / 2;
        let load = |event| of_event(setup, server.buyers, event, half, &EACH_ONCE);
        let (one, other) = tokio::try_join!(load(&first), load(&second))?;
        let rate = one.per_second(one.answers()) + other.per_second(other.answers());
        let note = format!("{}; {}", one.statuses(), other.statuses());
        report.add(format!("on PostgreSQL: two events, homes: {count}"), rate, "/s", note, None);
        server.audit(&setup.onsale)?;
        rates.push(rate);
    }
    let note = "on one machine both homes share its cores and its disk".to_owned();
    report.add("on PostgreSQL: two homes, to one".to_owned(), rates[1] / rates[0], "×", note, None);
    Ok(())
}

/// The load on one event, by so many connections.
async fn of_event(
    setup: &Setup,
    buyers: SocketAddr,
    event: &str,
    connections: usize,
    spread: &Spread,
) -> anyhow::Result<Measured> {
    let asker = holds(event, (spread.wished)(setup.seed));
    load::closed(buyers, connections, setup.lasts, asker).await
}

/// The most answers a second that statements by hand come to, whatever the number of clients. A function in the database is
/// shown beside, as what is left of the way to it.
fn yardsticks(
    setup: &Setup,
    report: &mut Report,
    postgres: &Postgres,
    spread: &yardstick::Spread,
) -> anyhow::Result<f64> {
    let mut bests = Vec::new();
    for form in [STATEMENTS, ONE_CALL] {
        let database = yardstick::make(postgres)?;
        let lasts = (setup.lasts * 3 / 4).max(Duration::from_secs(1));
        let measured = yardstick::run(postgres, &database, &form, spread, lasts)?;
        let rates = measured.iter().map(|run| format!("{} at once {:.0}", run.clients, run.per_second));
        let rates = rates.collect::<Vec<_>>().join(", ");
        let most = measured.iter().max_by(|one, other| one.per_second.total_cmp(&other.per_second));
        let most = most.context("each form is run")?;
        let (best, placed) = (most.per_second, most.placed * 100.0);
        let note = format!("{rates}; at best {:.1} ms in the mean, {placed:.1}% placed", most.mean_ms);
        report.add(format!("pgbench, {}, {}", spread.name, form.name), best, "/s", note, None);
        bests.push(best);
    }
    Ok(bests[0])
}
