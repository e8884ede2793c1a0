//! What is measured, in the order in which it runs.

mod ceiling;
mod checkouts;
mod demo;
mod growth;
mod holds;
mod overload;
mod postgres;
mod reads;

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use crate::report::Report;

/// What every scenario is told.
pub(crate) struct Setup {
    pub(crate) onsale: PathBuf,
    pub(crate) lasts: Duration,
    pub(crate) connections: usize,
    pub(crate) seed: u64,
}

type Run = for<'a> fn(&'a Setup, &'a mut Report) -> Pin<Box<dyn Future<Output = anyhow::Result<()>> + 'a>>;

/// A scenario.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) run: Run,
}

/// Ceilings come first: what comes after is set against them.
pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "ceiling",
        about: "what the machine does at best: an empty answer over HTTP, the rows of a hold in bare SQLite",
        run: |setup, report| Box::pin(ceiling::run(setup, report)),
    },
    Scenario {
        name: "holds",
        about: "holds of three seats: spread evenly, 80% after 10% of the hall, all after the same three",
        run: |setup, report| Box::pin(holds::run(setup, report)),
    },
    Scenario {
        name: "reads",
        about: "order status and seat map while holds come in",
        run: |setup, report| Box::pin(reads::run(setup, report)),
    },
    Scenario {
        name: "checkouts",
        about: "checkouts accepted, and orders paid",
        run: |setup, report| Box::pin(checkouts::run(setup, report)),
    },
    Scenario {
        name: "overload",
        about: "ten times as many requests as are answered at best, and then calm again",
        run: |setup, report| Box::pin(overload::run(setup, report)),
    },
    Scenario {
        name: "growth",
        about: "holds and releases as halls and events grow",
        run: |setup, report| Box::pin(growth::run(setup, report)),
    },
    Scenario {
        name: "postgres",
        about: "holds on PostgreSQL, beside the same by hand in SQL with pgbench",
        run: |setup, report| Box::pin(postgres::run(setup, report)),
    },
    Scenario {
        name: "demo",
        about: "50,000 seats from open to sold out and paid",
        run: |setup, report| Box::pin(demo::run(setup, report)),
    },
];
