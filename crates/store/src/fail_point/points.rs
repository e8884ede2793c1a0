//! The list of fail points, and what `ONSALE_FAIL_POINT` asks of one of them: `commit.before=kill@3` kills at the third
//! hit of `commit.before`; other actions are `error` and `delay:<ms>`. That it came to this is said on standard error.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Every point, in the order in which a sale meets them.
pub const NAMES: &[&str] = &[
    // A command on its way through the writer.
    "queue.accepted",
    "batch.taken",
    "transaction.begun",
    "rows.read",
    "command.decided",
    "rows.half_written",
    "commit.before",
    "commit.after",
    "publish.before",
    "publish.after",
    "reply.before",
    // The WAL on its way into the database: by its own thread, and by the writer when it has grown long.
    "checkpoint.before",
    "checkpoint.after",
    "restart.before",
    "restart.after",
    // Answers to buyers and to the provider.
    "hold.answer",
    "release.answer",
    "checkout.answer",
    "callback.received",
    "callback.read_back",
    "callback.judged",
    "callback.answer",
    // An operation and its calls to the provider.
    "payment.taken_up",
    "payment.recorded",
    "provider.create.before",
    "provider.create.after",
    "provider.confirm.before",
    "provider.confirm.after",
    "provider.capture.before",
    "provider.capture.after",
    "provider.void.before",
    "provider.void.after",
    "provider.refund.before",
    "provider.refund.after",
    "provider.query.before",
    "provider.query.after",
    // What the server remembers of events, read anew.
    "catalog.sale",
    "catalog.map",
    // The other workers.
    "expirer.due",
    "expirer.ended",
    "issuer.due",
    "issuer.issued",
    "reconciler.due",
];

/// What `ONSALE_FAIL_POINT` asks for.
#[derive(Debug, PartialEq, Eq)]
struct Plan {
    name: String,
    action: Action,
    /// At which hit, from 1; at no other.
    at: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Kill,
    Error,
    Delay(Duration),
}

impl Action {
    fn pause(self) -> Duration {
        match self {
            Action::Kill => LAST_MOMENT,
            Action::Error => Duration::ZERO,
            Action::Delay(delay) => delay,
        }
    }

    fn is_failure(self) -> bool {
        match self {
            Action::Kill => kill(),
            Action::Error => true,
            Action::Delay(_) => false,
        }
    }
}

impl Plan {
    fn parse(text: &str) -> Option<Plan> {
        let (name, rest) = text.split_once('=')?;
        let (action, at) = rest.split_once('@')?;
        let action = match action {
            "kill" => Action::Kill,
            "error" => Action::Error,
            other => Action::Delay(Duration::from_millis(other.strip_prefix("delay:")?.parse().ok()?)),
        };
        let at = at.parse().ok().filter(|at| *at > 0)?;
        NAMES.contains(&name).then(|| Plan { name: name.to_owned(), action, at })
    }

    fn of_the_process() -> Option<&'static Plan> {
        static PLAN: OnceLock<Option<Plan>> = OnceLock::new();
        let read = || {
            let text = std::env::var("ONSALE_FAIL_POINT").ok()?;
            let plan = Plan::parse(&text);
            if plan.is_none() {
                eprintln!("ONSALE_FAIL_POINT is not understood: {text}");
                std::process::exit(2);
            }
            plan
        };
        PLAN.get_or_init(read).as_ref()
    }
}

/// How long a step that is to be killed stands still before: whoever has been told too early hears it meanwhile.
const LAST_MOMENT: Duration = Duration::from_millis(20);

/// Counts a hit; what is to be done at it.
fn hit(name: &str) -> Option<Action> {
    static HITS: AtomicU64 = AtomicU64::new(0);
    assert!(NAMES.contains(&name), "the fail point {name} is not in the list");
    let plan = Plan::of_the_process().filter(|plan| plan.name == name)?;
    if HITS.fetch_add(1, Ordering::SeqCst) + 1 != plan.at {
        return None;
    }
    eprintln!("fail point {name}, hit {}: {:?}", plan.at, plan.action);
    Some(plan.action)
}

/// SIGKILL, as from outside: nothing of the process gets the chance to tidy up.
fn kill() -> bool {
    let sent = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    panic!("a process can kill itself: {sent:?}");
}

/// Whether the step fails here, on a thread that may block.
pub fn fails(name: &str) -> bool {
    let Some(action) = hit(name) else { return false };
    std::thread::sleep(action.pause());
    action.is_failure()
}

/// [`fails`] in async code.
pub async fn fails_async(name: &str) -> bool {
    let Some(action) = hit(name) else { return false };
    tokio::time::sleep(action.pause()).await;
    action.is_failure()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_names_a_point_an_action_and_a_hit() {
        let plan = |action, at| Some(Plan { name: "commit.before".to_owned(), action, at });
        assert_eq!(Plan::parse("commit.before=kill@3"), plan(Action::Kill, 3));
        assert_eq!(Plan::parse("commit.before=error@1"), plan(Action::Error, 1));
        let delay = Action::Delay(Duration::from_millis(150));
        assert_eq!(Plan::parse("commit.before=delay:150@12"), plan(delay, 12));
        for odd in ["", "commit.before", "commit.before=kill", "commit.before=kill@0", "nowhere=kill@1"] {
            assert_eq!(Plan::parse(odd), None, "{odd}");
        }
        for odd in ["commit.before=stop@1", "commit.before=delay:@1", "commit.before=delay:-1@1"] {
            assert_eq!(Plan::parse(odd), None, "{odd}");
        }
    }

    #[test]
    fn no_name_is_there_twice() {
        let distinct: std::collections::BTreeSet<_> = NAMES.iter().collect();
        assert_eq!(distinct.len(), NAMES.len());
    }
}
