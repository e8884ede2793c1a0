//! Every hold that was acknowledged is there, on every process, in a state that can follow from what was acknowledged.

use anyhow::{Context, bail};
use reqwest::Method;
use serde_json::Value;
use tokio::task::JoinSet;

use super::{Accounts, Verdict};
use crate::sale::{Asking, Client, Request, Said, Shop};

/// Questions at once.
const AT_ONCE: usize = 8;

pub(super) async fn check(shop: &Shop, accounts: &Accounts, verdict: &mut Verdict) -> anyhow::Result<()> {
    let holds = accounts.values().filter_map(|requests| Some((requests, acknowledged(requests)?)));
    let holds: Vec<(&Vec<Request>, &Value)> = holds.collect();
    let paths =
        holds.iter().map(|(_, hold)| format!("/v1/holds/{}", hold["hold_id"].as_str().unwrap_or_default()));
    let paths: Vec<String> = paths.collect();
    for (number, process) in shop.processes.iter().enumerate() {
        for (said, (requests, hold)) in get_all(&process.operator, &paths).await?.into_iter().zip(&holds) {
            match said.status() {
                200 => {
                    if let Err(error) = compare(hold, said.body(), requests) {
                        verdict
                            .wrong
                            .push(format!("process {number}: {error:#}: {hold} is now {}", said.body()));
                    }
                }
                404 => verdict.lost.push(format!("process {number} does not know the hold {hold}")),
                _ => bail!("process {number} says of the hold {hold}: {said:?}"),
            }
        }
    }
    Ok(())
}

/// The hold that an account was told it has.
pub(super) fn acknowledged(requests: &[Request]) -> Option<&Value> {
    let placed = requests.iter().find(|request| request.asking == Asking::Hold)?.decision()?;
    (placed.status() == 201).then(|| placed.body())
}

fn compare(then: &Value, now: &Value, requests: &[Request]) -> anyhow::Result<()> {
    for member in ["hold_id", "seats", "total_minor"] {
        anyhow::ensure!(then[member] == now[member], "{member} is another");
    }
    let asked = |asking: Asking| requests.iter().filter(move |request| request.asking == asking);
    let released = asked(Asking::Release).next();
    let acknowledged = released.and_then(Request::decision).is_some_and(|said| said.status() == 204);
    let status = now["status"].as_str().context("no status")?;
    let follows = match status {
        "RELEASED" => released.is_some_and(|request| !request.is_refused()),
        "EXPIRED" => true,
        "ACTIVE" => !acknowledged,
        "PAYMENT_PENDING" | "CONVERTED" => asked(Asking::Checkout).any(|request| !request.is_refused()),
        _ => false,
    };
    anyhow::ensure!(follows, "{status} does not follow from what was acknowledged");
    Ok(())
}

/// Asks for all of these, in their order.
pub(super) async fn get_all(process: &Client, paths: &[String]) -> anyhow::Result<Vec<Said>> {
    let mut said: Vec<Option<Said>> = paths.iter().map(|_| None).collect();
    let mut asking = JoinSet::new();
    let mut waiting = paths.iter().cloned().enumerate();
    loop {
        while asking.len() < AT_ONCE
            && let Some((index, path)) = waiting.next()
        {
            let process = process.clone();
            asking.spawn(async move { (index, patient(&process, &path).await) });
        }
        let Some(answered) = asking.join_next().await else { break };
        let (index, answer) = answered?;
        said[index] = Some(answer);
    }
    said.into_iter().collect::<Option<_>>().context("a question without an answer")
}

/// A healed service may be busy all the same.
async fn patient(process: &Client, path: &str) -> Said {
    let mut said = process.ask(Method::GET, path, None, None).await;
    for _ in 0..3 {
        if said.is_decision() {
            break;
        }
        said = process.ask(Method::GET, path, None, None).await;
    }
    said
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(asking: Asking, answers: &[u16]) -> Request {
        let said = |status: &u16| match status {
            0 => Said::Nothing { why: "reset".to_owned() },
            status => Said::Answer {
                status: *status,
                replayed: false,
                retry_after: true,
                body: json!({ "code": "overloaded" }),
            },
        };
        let text = || String::from("x");
        let answers = answers.iter().map(said).collect();
        Request { asking, token: text(), account: text(), path: text(), key: text(), body: None, answers }
    }

    #[test]
    fn a_state_must_follow_from_what_was_acknowledged() {
        let check = |status: &str, requests: &[Request], follows: bool| {
            let then = json!({ "hold_id": "h", "seats": ["A"], "total_minor": 5, "status": "ACTIVE" });
            let now = json!({ "hold_id": "h", "seats": ["A"], "total_minor": 5, "status": status });
            assert_eq!(compare(&then, &now, requests).is_ok(), follows, "{status} {requests:?}");
        };
        check("ACTIVE", &[], true);
        check("EXPIRED", &[], true);
        check("RELEASED", &[], false);
        check("CONVERTED", &[], false);
        check("RELEASED", &[asked(Asking::Release, &[204])], true);
        check("ACTIVE", &[asked(Asking::Release, &[204])], false);
        // Unknown may be one or the other; refused must be the other.
        check("RELEASED", &[asked(Asking::Release, &[0])], true);
        check("ACTIVE", &[asked(Asking::Release, &[0])], true);
        check("RELEASED", &[asked(Asking::Release, &[503])], false);
        check("CONVERTED", &[asked(Asking::Checkout, &[202])], true);
        check("CONVERTED", &[asked(Asking::Checkout, &[503])], false);
    }

    #[test]
    fn a_hold_keeps_its_seats() {
        let then = json!({ "hold_id": "h", "seats": ["A", "B"], "total_minor": 5 });
        let now = json!({ "hold_id": "h", "seats": ["A"], "total_minor": 5, "status": "ACTIVE" });
        assert!(compare(&then, &now, &[]).is_err());
    }
}
