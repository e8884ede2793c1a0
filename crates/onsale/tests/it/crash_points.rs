//! Every fail point, hit by hit: the server is killed there, or the step fails there, or it takes its time there. Then a
//! new server takes over the data, every request is sent again with its key, and the clients' ledger, the books and the
//! provider's ledger must tell the same story, the one of a sale that nobody disturbed. Where the new server comes so
//! late that every deadline has passed, the story is another one, but still the same in all three.
//!
//! A point is visited at a few of its hits, further and further apart, until the script ends unharmed; and with the
//! environment's `ONSALE_CRASH_POINTS=all` at each of its hits.

mod picture;
mod readers;
mod script;
mod stage;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use onsale_store::fail_point::NAMES;
use tempfile::TempDir;

use crate::util::{App, Options, ProviderProcess, run};

use self::stage::{Cast, LONGER_THAN_A_CALL_MS, Ledger, Manner, Stage};

/// Long enough for everybody else to be quicker.
const DELAY_MS: u64 = 150;
/// More hits than any point has, so that a script that doesn't end is noticed.
const HITS_MAX: u64 = 500;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Kill,
    /// Killed, and away for so long that every deadline passes.
    KillForLong,
    Error,
    Delay,
}

impl Action {
    fn is_kill(self) -> bool {
        matches!(self, Action::Kill | Action::KillForLong)
    }
}

macro_rules! every_point {
    ($($test:ident: $name:literal,)*) => {
        const VISITED: &[&str] = &[$($name),*];

        mod kill {
            $(#[tokio::test] async fn $test() { super::visit($name, super::Action::Kill).await; })*
        }
        mod kill_for_long {
            $(#[tokio::test] async fn $test() { super::visit($name, super::Action::KillForLong).await; })*
        }
        mod error {
            $(#[tokio::test] async fn $test() { super::visit($name, super::Action::Error).await; })*
        }
        mod delay {
            $(#[tokio::test] async fn $test() { super::visit($name, super::Action::Delay).await; })*
        }
    };
}

every_point! {
    queue_accepted: "queue.accepted",
    batch_taken: "batch.taken",
    transaction_begun: "transaction.begun",
    rows_read: "rows.read",
    command_decided: "command.decided",
    rows_half_written: "rows.half_written",
    commit_before: "commit.before",
    commit_after: "commit.after",
    publish_before: "publish.before",
    publish_after: "publish.after",
    reply_before: "reply.before",
    checkpoint_before: "checkpoint.before",
    checkpoint_after: "checkpoint.after",
    restart_before: "restart.before",
    restart_after: "restart.after",
    hold_answer: "hold.answer",
    release_answer: "release.answer",
    checkout_answer: "checkout.answer",
    callback_received: "callback.received",
    callback_read_back: "callback.read_back",
    callback_judged: "callback.judged",
    callback_answer: "callback.answer",
    payment_taken_up: "payment.taken_up",
    payment_recorded: "payment.recorded",
    create_before: "provider.create.before",
    create_after: "provider.create.after",
    confirm_before: "provider.confirm.before",
    confirm_after: "provider.confirm.after",
    capture_before: "provider.capture.before",
    capture_after: "provider.capture.after",
    void_before: "provider.void.before",
    void_after: "provider.void.after",
    refund_before: "provider.refund.before",
    refund_after: "provider.refund.after",
    query_before: "provider.query.before",
    query_after: "provider.query.after",
    catalog_sale: "catalog.sale",
    catalog_map: "catalog.map",
    expirer_due: "expirer.due",
    expirer_ended: "expirer.ended",
    issuer_due: "issuer.due",
    issuer_issued: "issuer.issued",
    reconciler_due: "reconciler.due",
}

#[test]
fn every_point_is_visited() {
    assert_eq!(VISITED, NAMES);
}

/// A database before the sale, and those who will play. Each run has a copy.
struct Template {
    data: Arc<TempDir>,
    cast: Cast,
}

/// In memory where there is such a folder: a killed process leaves its files as they are on any.
fn folder() -> Arc<TempDir> {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    Arc::new(made.expect("a folder"))
}

impl Template {
    async fn make() -> Template {
        let app = App::options().data(folder()).start().await;
        let mut halls = Vec::new();
        for (policy, seats) in script::policies().into_iter().zip(script::SEATS) {
            halls.push(app.hall(policy, seats).await);
        }
        let mut buyers = std::collections::BTreeMap::new();
        for name in script::BUYERS {
            buyers.insert(name, app.buyer().await);
        }
        let halls = halls.try_into().ok().expect("three halls");
        Template { data: app.stop(), cast: Cast { halls, buyers } }
    }

    fn copy(&self) -> Arc<TempDir> {
        let copy = folder();
        for entry in std::fs::read_dir(self.data.path()).expect("the folder") {
            let from = entry.expect("a file").path();
            std::fs::copy(&from, copy.path().join(from.file_name().expect("a name"))).expect("a copy");
        }
        copy
    }
}

/// Plays the script with an action at one hit of a point after another, until the point isn't hit so often.
async fn visit(name: &str, action: Action) {
    let template = Template::make().await;
    let all = std::env::var("ONSALE_CRASH_POINTS").is_ok_and(|which| which == "all");
    let (mut at, mut runs) = (1, 1);
    while disturb(&template, name, action, at).await {
        at = match action {
            _ if all => at + 1,
            Action::Kill => at * 4,
            Action::KillForLong => at * 9,
            // What is done about an error, and about a slow step, is much the same at each hit.
            Action::Error | Action::Delay => break,
        };
        runs += 1;
        assert!(at < HITS_MAX, "{name} is hit without end");
    }
    println!("{runs} runs");
}

/// Plays the script on a server that is disturbed at one hit of a point, and then on one that takes over from it;
/// whether the point was hit so often.
async fn disturb(template: &Template, name: &str, action: Action, at: u64) -> bool {
    let (word, manner) = match action {
        Action::Kill | Action::KillForLong => ("kill".to_owned(), Manner::Stepped),
        Action::Error => ("error".to_owned(), Manner::Stepped),
        Action::Delay => (format!("delay:{DELAY_MS}"), Manner::Alive),
    };
    let plan = format!("{name}={word}@{at}");
    println!("{plan}");
    let mut sale = Sale::begin(template);
    let was_hit = sale.play_disturbed(&plan, manner, action.is_kill()).await;
    assert!(was_hit || at > 1, "the script never comes to {name}");
    sale.end(action == Action::KillForLong && was_hit).await;
    was_hit
}

/// A server that is killed each time it has got a step further, and always comes back, sells out all the same.
async fn kill_at_each_step(plan: &str) {
    let template = Template::make().await;
    let mut sale = Sale::begin(&template);
    let mut deaths = 0;
    while sale.play_disturbed(plan, Manner::Stepped, true).await {
        deaths += 1;
        assert!(deaths < HITS_MAX, "it gets no further");
    }
    assert!(deaths > 10, "it was killed {deaths} times");
    sale.end(false).await;
    println!("{deaths} runs");
}

#[tokio::test]
async fn a_server_that_is_killed_after_every_third_commit_gets_to_the_end() {
    // Not after each. What is sent to the provider is written down before, so a step has two commits; and on each new
    // server the message about the stranger's payment is judged once more.
    kill_at_each_step("commit.after=kill@3").await;
}

#[tokio::test]
async fn a_server_that_is_killed_after_each_word_of_the_provider_gets_to_the_end() {
    kill_at_each_step("payment.recorded=kill@1").await;
}

/// A sale on one server after another.
struct Sale<'a> {
    cast: &'a Cast,
    provider: ProviderProcess,
    ledger: Ledger,
    data: Arc<TempDir>,
}

impl Sale<'_> {
    fn begin(template: &Template) -> Sale<'_> {
        let (provider, ledger) = (ProviderProcess::start(), Ledger::default());
        Sale { cast: &template.cast, provider, ledger, data: template.copy() }
    }

    fn server(&self, manner: Manner) -> Options {
        let options = App::options().provider(&self.provider).data(Arc::clone(&self.data));
        if manner == Manner::Alive { options.workers() } else { options }
    }

    fn stage<'a>(&'a self, app: &'a App, manner: Manner, mortal: bool) -> Stage<'a> {
        Stage { app, cast: self.cast, ledger: &self.ledger, manner, mortal }
    }

    /// Plays the script to its end or the server's; whether it came to what was planned.
    async fn play_disturbed(&mut self, plan: &str, manner: Manner, mortal: bool) -> bool {
        let app = self.server(manner).env("ONSALE_FAIL_POINT", plan).start().await;
        let stage = self.stage(&app, manner, mortal);
        stage.take_over(LONGER_THAN_A_CALL_MS).await;
        let played = script::play(&stage).await;
        let ended = app.end();
        let was_hit = ended.log.contains("fail point ");
        assert_eq!(ended.killed, was_hit && mortal, "{plan}:\n{}", ended.log);
        assert!(played.is_ok() || ended.killed, "{plan}: no answer of a living server:\n{}", ended.log);
        self.data = ended.data;
        was_hit
    }

    /// Plays the script to its end on a server that nothing disturbs, or has a late server end what was begun; then
    /// compares and audits.
    async fn end(self, late: bool) {
        let mut app = self.server(Manner::Stepped).start().await;
        app.expect_strangers();
        let stage = self.stage(&app, Manner::Stepped, false);
        let (answered, replays) = (stage.answered(), self.ledger.replays.load(Ordering::SeqCst));
        if late {
            stage.take_over(script::LATER_MS).await;
            script::end_late(&stage).await.expect("nobody kills it");
            picture::consistent(&app, self.cast, &self.ledger).await;
        } else {
            stage.take_over(LONGER_THAN_A_CALL_MS).await;
            script::play(&stage).await.expect("nobody kills it");
            picture::check(&app, self.cast, &self.ledger).await;
        }
        let replays = self.ledger.replays.load(Ordering::SeqCst) - replays;
        assert!(replays >= answered, "{answered} answers were known, {replays} asked for again");
        app.finish().await;
        run(&["audit", "--data", &self.data.path().to_string_lossy()]).ok();
    }
}
