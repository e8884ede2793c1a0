//! Every fail point, hit by hit: the server is killed there, or the step fails there, or it takes its time there. Then a
//! new server takes over the data, every request is sent again with its key, and the clients' ledger, the books and the
//! provider's ledger must tell the same story, the one of a sale that nobody disturbed. Where the new server comes so
//! late that every deadline has passed, the story is another one, but still the same in all three.
//!
//! A point is visited at its 1st, 3rd, 9th … hit until the script ends unharmed, and with the environment's
//! `ONSALE_CRASH_POINTS=all` at each of its hits.

mod picture;
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
    truncate_before: "truncate.before",
    truncate_after: "truncate.after",
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
    expirer_due: "expirer.due",
    expirer_ended: "expirer.ended",
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
    let mut at = 1;
    let mut runs = 1;
    while play_twice(&template, name, action, at).await {
        // Elsewhere than in a kill the first hit says most: what is done about an error is the same at each.
        if !all && !action.is_kill() {
            println!("{runs} runs");
            return;
        }
        at = if all { at + 1 } else { at * 3 };
        runs += 1;
        assert!(at < HITS_MAX, "{name} is hit without end");
    }
    assert!(at > 1, "the script never comes to {name}");
    println!("{runs} runs");
}

/// Plays the script on a server with a fail point, and once more on the server that takes over from it; whether the
/// point was hit so often.
async fn play_twice(template: &Template, name: &str, action: Action, at: u64) -> bool {
    let (word, manner) = match action {
        Action::Kill | Action::KillForLong => ("kill".to_owned(), Manner::Stepped),
        Action::Error => ("error".to_owned(), Manner::Stepped),
        Action::Delay => (format!("delay:{DELAY_MS}"), Manner::Alive),
    };
    let plan = format!("{name}={word}@{at}");
    println!("{plan}");
    let provider = ProviderProcess::start();
    let ledger = Ledger::default();
    let server = server(&provider, manner).data(template.copy()).env("ONSALE_FAIL_POINT", &plan);
    let app = server.start().await;
    let zero_ms = app.now_ms().await;
    ledger.zero_ms.store(zero_ms, Ordering::SeqCst);
    ledger.clock_ms.store(zero_ms, Ordering::SeqCst);
    let mortal = action.is_kill();
    let played =
        script::play(&Stage { app: &app, cast: &template.cast, ledger: &ledger, manner, mortal }).await;
    let ended = app.end();
    let was_hit = ended.log.contains(&format!("fail point {name}, hit {at}: "));
    assert_eq!(ended.killed, was_hit && mortal, "{plan}:\n{}", ended.log);
    assert!(played.is_ok() || ended.killed, "{plan}: no answer came from a living server:\n{}", ended.log);

    let mut app = server_again(&provider).data(ended.data).start().await;
    app.expect_strangers();
    let stage =
        Stage { app: &app, cast: &template.cast, ledger: &ledger, manner: Manner::Stepped, mortal: false };
    let clock_ms = ledger.clock_ms.load(Ordering::SeqCst).max(app.now_ms().await);
    if action == Action::KillForLong && was_hit {
        stage.set_clock(clock_ms + script::LATER_MS).await.expect("it answers");
        script::end_late(&stage).await.expect("nobody kills it");
        picture::consistent(&app, &template.cast, &ledger).await;
    } else {
        stage.set_clock(clock_ms + LONGER_THAN_A_CALL_MS).await.expect("it answers");
        script::play(&stage).await.expect("nobody kills it");
        picture::check(&app, &template.cast, &ledger).await;
    }
    let data = Arc::clone(&app.data);
    app.finish().await;
    assert!(played.is_err() || ledger.replays.load(Ordering::SeqCst) > 0, "{plan}: nobody asked again");
    run(&["audit", "--data", &data.path().to_string_lossy()]).ok();
    was_hit
}

fn server(provider: &ProviderProcess, manner: Manner) -> Options {
    let options = App::options().provider(provider);
    if manner == Manner::Alive { options.workers() } else { options }
}

fn server_again(provider: &ProviderProcess) -> Options {
    server(provider, Manner::Stepped)
}
