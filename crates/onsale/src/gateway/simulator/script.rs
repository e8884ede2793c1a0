//! What the next calls do, as a test wants it.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use super::intent::Verdict;
use super::limits::{DELAY_MS_MAX, SCRIPT_QUEUED_MAX};

/// The kinds of operation that can be scripted and are logged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operation {
    /// Confirm, or create with `confirm=true`. A plain create moves nothing and is no operation.
    Authorize,
    Capture,
    Void,
    Refund,
    /// Reading one intent.
    Query,
}

impl Operation {
    const ALL: [Operation; 5] =
        [Operation::Authorize, Operation::Capture, Operation::Void, Operation::Refund, Operation::Query];

    /// The word on the control surface.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Operation::Authorize => "authorize",
            Operation::Capture => "capture",
            Operation::Void => "void",
            Operation::Refund => "refund",
            Operation::Query => "query",
        }
    }

    /// The operation of that name.
    pub(super) fn parse(text: &str) -> Option<Operation> {
        Operation::ALL.into_iter().find(|operation| operation.as_str() == text)
    }
}

/// What one call does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    Ok,
    Declined,
    RequiresAction,
    Processing,
    /// Done, the answer dropped.
    LostReply,
    /// Not done, no answer.
    LostRequest,
    /// Done late, and answered.
    Delay(Duration),
    Error500Done,
    Error500NotDone,
    /// Not done, and kept under the request's key for good, as the provider keeps its own failures.
    Error500Kept,
    AmountMismatch,
}

impl Outcome {
    /// The outcome of that name.
    pub(super) fn parse(text: &str) -> Option<Outcome> {
        Some(match text {
            "ok" => Outcome::Ok,
            "declined" => Outcome::Declined,
            "requires_action" => Outcome::RequiresAction,
            "processing" => Outcome::Processing,
            "lost_reply" => Outcome::LostReply,
            "lost_request" => Outcome::LostRequest,
            "error_500_done" => Outcome::Error500Done,
            "error_500_not_done" => Outcome::Error500NotDone,
            "error_500_kept" => Outcome::Error500Kept,
            "amount_mismatch" => Outcome::AmountMismatch,
            other => Outcome::Delay(parse_delay(other)?),
        })
    }

    /// Whether calls of this kind can end so: only an authorization asks a bank, and a read can't be declined.
    pub(super) fn fits(self, operation: Operation) -> bool {
        match self {
            Outcome::RequiresAction | Outcome::Processing | Outcome::AmountMismatch => {
                operation == Operation::Authorize
            }
            // Reads have no keys.
            Outcome::Declined | Outcome::Error500Kept => operation != Operation::Query,
            Outcome::Ok
            | Outcome::LostReply
            | Outcome::LostRequest
            | Outcome::Delay(_)
            | Outcome::Error500Done
            | Outcome::Error500NotDone => true,
        }
    }

    /// The bank's answer that this outcome wants for an authorization; `None` leaves it to the payment method.
    pub(super) fn verdict(self) -> Option<Verdict> {
        match self {
            Outcome::Ok => Some(Verdict::Approved),
            Outcome::Declined => Some(Verdict::declined()),
            Outcome::RequiresAction => Some(Verdict::ActionRequired),
            Outcome::Processing => Some(Verdict::Processing),
            Outcome::AmountMismatch => Some(Verdict::ApprovedLess),
            Outcome::LostReply
            | Outcome::LostRequest
            | Outcome::Delay(_)
            | Outcome::Error500Done
            | Outcome::Error500NotDone
            | Outcome::Error500Kept => None,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Ok => f.write_str("ok"),
            Outcome::Declined => f.write_str("declined"),
            Outcome::RequiresAction => f.write_str("requires_action"),
            Outcome::Processing => f.write_str("processing"),
            Outcome::LostReply => f.write_str("lost_reply"),
            Outcome::LostRequest => f.write_str("lost_request"),
            Outcome::Delay(delay) => write!(f, "delay:{}", delay.as_millis()),
            Outcome::Error500Done => f.write_str("error_500_done"),
            Outcome::Error500NotDone => f.write_str("error_500_not_done"),
            Outcome::Error500Kept => f.write_str("error_500_kept"),
            Outcome::AmountMismatch => f.write_str("amount_mismatch"),
        }
    }
}

/// `delay:<ms>`, within its limit.
pub(super) fn parse_delay(text: &str) -> Option<Duration> {
    let millis = text.strip_prefix("delay:")?.parse().ok()?;
    (millis <= DELAY_MS_MAX).then(|| Duration::from_millis(millis))
}

/// The outcomes that wait, a queue for each kind of operation.
#[derive(Default)]
pub(super) struct Script([VecDeque<Outcome>; Operation::ALL.len()]);

impl Script {
    /// Queues outcomes behind those that wait; how many wait then, or `None` when they don't fit.
    pub(super) fn push(&mut self, operation: Operation, outcomes: &[Outcome]) -> Option<usize> {
        let queue = &mut self.0[operation as usize];
        if outcomes.len() > SCRIPT_QUEUED_MAX - queue.len() {
            return None;
        }
        queue.extend(outcomes);
        Some(queue.len())
    }

    /// The outcome of the call that came now.
    pub(super) fn pop(&mut self, operation: Operation) -> Option<Outcome> {
        self.0[operation as usize].pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_reads_back_as_written_and_strangers_are_refused() {
        let words = "ok declined requires_action processing lost_reply lost_request delay:250 error_500_done \
                     error_500_not_done error_500_kept amount_mismatch";
        for word in words.split_whitespace() {
            assert_eq!(Outcome::parse(word).map(|outcome| outcome.to_string()).as_deref(), Some(word));
        }
        for stranger in ["", "OK", "delay:", "delay:-1", "delay:600001", "lost"] {
            assert_eq!(Outcome::parse(stranger), None, "{stranger}");
        }
    }

    #[test]
    fn queues_are_apart_in_order_and_bounded() {
        let mut script = Script::default();
        assert_eq!(script.push(Operation::Capture, &[Outcome::Ok, Outcome::LostReply]), Some(2));
        assert_eq!(script.pop(Operation::Void), None);
        assert_eq!(script.pop(Operation::Capture), Some(Outcome::Ok));
        assert_eq!(script.pop(Operation::Capture), Some(Outcome::LostReply));
        assert_eq!(script.pop(Operation::Capture), None);
        assert_eq!(script.push(Operation::Void, &vec![Outcome::Ok; SCRIPT_QUEUED_MAX + 1]), None);
    }
}
