//! Holds as a careful engineer writes them in SQL, driven by PostgreSQL's own load: what the program is measured against.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use onsale_postgres_server::Server;

const SCHEMA: &str = include_str!("schema.sql");
const OVERLAPS: &str = include_str!("overlaps.sql");
/// Groups of three in a hall of 50,010 seats.
const GROUPS: u64 = 16_670;
const WARM_UP: Duration = Duration::from_secs(1);
/// As many threads for the load as there are cores to share.
const THREADS: usize = 2;

/// How a hold is written.
pub(super) struct Form {
    pub(super) name: &'static str,
    script: &'static str,
    /// Numbers of clients at once; each waits for its answer.
    clients: &'static [usize],
}

/// Statement by statement, as most programs ask a database.
pub(super) const STATEMENTS: Form =
    Form { name: "statements", script: include_str!("hold.sql"), clients: &[1, 4, 16, 64] };
/// All of it in the database, for one round trip and one sync: more can't be had without batches.
pub(super) const ONE_CALL: Form =
    Form { name: "one call", script: include_str!("hold_in_one_call.sql"), clients: &[16] };

/// Which seats are wanted.
pub(super) struct Spread {
    pub(super) name: &'static str,
    first_seat: fn() -> String,
}

/// Each group in its turn. It comes again when all others have had theirs, which lasts longer than a hold. A run begins half a
/// hall after where the last one ended, whose holds are still there.
pub(super) const EVEN: Spread = Spread {
    name: "even",
    // The factor has no part in common with the number of groups, so all of them come, and neighbours don't follow.
    first_seat: || {
        let turn = ":first + :turn * :clients + :client_id";
        format!("\\set turn :turn + 1\n\\set seat_1 ({turn}) * 7919 % {GROUPS} * 3\n")
    },
};
/// All want the same three.
pub(super) const HOT: Spread =
    Spread { name: "all want one group", first_seat: || "\\set seat_1 0\n".to_owned() };

/// What one run of the load came to.
pub(super) struct Measured {
    pub(super) clients: usize,
    /// Answers a second, refusals included.
    pub(super) per_second: f64,
    /// How long one took in the mean.
    pub(super) mean_ms: f64,
    /// Answers that were holds.
    pub(super) placed: f64,
}

/// Makes the tables; the name of their database.
pub(super) fn make(server: &Server) -> anyhow::Result<String> {
    let url = server.create_database()?;
    let name = url.rsplit_once('/').context("a URL ends with its database")?.1.to_owned();
    server.psql(&name, SCHEMA)?;
    Ok(name)
}

/// Runs the load with each number of clients, and looks whether a seat was ever held twice.
pub(super) fn run(
    server: &Server,
    database: &str,
    form: &Form,
    spread: &Spread,
    lasts: Duration,
) -> anyhow::Result<Vec<Measured>> {
    let folder = tempfile::tempdir()?;
    let script = folder.path().join("hold.sql");
    std::fs::write(&script, (spread.first_seat)() + form.script)?;
    // Plans made while there are no holds yet would read all of them for each.
    load(server, database, &script, form.clients[0], 0, WARM_UP)?;
    server.psql(database, "VACUUM ANALYZE; CHECKPOINT")?;
    let mut all = Vec::new();
    for (clients, halves) in form.clients.iter().copied().zip(1..) {
        let before = placed(server, database)?;
        let first = before + halves * GROUPS / 2;
        let (per_second, mean_ms, answers) = load(server, database, &script, clients, first, lasts)?;
        let placed = (placed(server, database)? - before) as f64 / answers;
        all.push(Measured { clients, per_second, mean_ms, placed });
    }
    let overlaps = server.psql(database, OVERLAPS)?;
    ensure!(overlaps == "0", "the yardstick holds seats twice: {overlaps}");
    Ok(all)
}

fn placed(server: &Server, database: &str) -> anyhow::Result<u64> {
    Ok(server.psql(database, "SELECT count(*) FROM holds")?.parse()?)
}

/// Answers a second, their mean time in milliseconds, their number.
fn load(
    server: &Server,
    database: &str,
    script: &Path,
    clients: usize,
    first: u64,
    lasts: Duration,
) -> anyhow::Result<(f64, f64, f64)> {
    let mut pgbench = server.client("pgbench");
    pgbench.args(["--no-vacuum", "--protocol=prepared", "--define=turn=0"]);
    pgbench.arg(format!("--define=clients={clients}")).arg(format!("--define=first={first}"));
    pgbench.arg(format!("--client={clients}")).arg(format!("--jobs={}", clients.min(THREADS)));
    pgbench.arg(format!("--time={}", lasts.as_secs().max(1)));
    let output = pgbench.arg("--file").arg(script).arg(server.url(database)).output();
    let output = output.context("failed to run pgbench")?;
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "pgbench failed: {errors}");
    let figure = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        let figure = line.split_whitespace().next().and_then(|figure| figure.parse::<f64>().ok());
        figure.with_context(|| format!("pgbench doesn't say `{name}`: {text}"))
    };
    let failed = figure("number of failed transactions: ")?;
    ensure!(failed == 0.0, "pgbench: {failed} transactions failed: {errors}");
    let answers = figure("number of transactions actually processed: ")?;
    Ok((figure("tps = ")?, figure("latency average = ")?, answers))
}
