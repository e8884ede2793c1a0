//! Whether every answer was one that this API may give: a refusal, an honest "perhaps", an honest "not now".

use super::Verdict;
use crate::sale::{Asking, Ledger, Said};

pub(super) fn check(ledger: &Ledger, verdict: &mut Verdict) {
    for said in ledger.answers() {
        match &said {
            Said::Nothing { .. } => verdict.unanswered += 1,
            Said::Answer { status: 503, retry_after, body, .. } => {
                verdict.unavailable += 1;
                if !retry_after {
                    verdict.wrong.push(format!("a 503 without Retry-After: {body}"));
                }
            }
            Said::Answer { status: 500.., .. } => {
                verdict.wrong.push(format!("an answer that nobody may get: {said:?}"))
            }
            Said::Answer { .. } => {}
        }
    }
    for request in ledger.requests() {
        let mut decided = request.answers.iter().filter(|said| said.is_decision());
        let Some(first) = decided.next() else { continue };
        let expected = match request.asking {
            Asking::Hold => matches!((first.status(), first.code()), (201, _) | (409, "seat-unavailable")),
            Asking::Checkout => {
                matches!((first.status(), first.code()), (202, _) | (409, "hold-expired" | "too-little-time"))
            }
            Asking::Release => matches!((first.status(), first.code()), (204, _)),
        };
        if !expected {
            verdict.wrong.push(format!("{} was answered {first:?}", request.path));
        }
        let done = request.answers.iter().filter(|said| said.is_decision() && said.status() < 300);
        // Two that were sent at once may be answered in either order.
        if request.asking != Asking::Release && done.filter(|said| !said.replayed()).count() > 1 {
            let (path, key) = (&request.path, &request.key);
            verdict.wrong.push(format!("{path} key {key} was done twice: {:?}", request.answers));
        }
        // The same key gives the same answer, on whatever process. A release has no key, and says what is to be.
        for later in decided.filter(|_| request.asking != Asking::Release) {
            let of = |said: &Said| {
                let body = said.body();
                (
                    said.status(),
                    said.code().to_owned(),
                    body["hold_id"].clone(),
                    body["order_id"].clone(),
                    body["seats"].clone(),
                )
            };
            if of(first) != of(later) {
                verdict.wrong.push(format!(
                    "{} key {} was answered {first:?} and then {later:?}",
                    request.path, request.key
                ));
            }
        }
    }
}
