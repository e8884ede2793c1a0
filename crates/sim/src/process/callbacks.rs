//! The way of a callback, as in the program's `callbacks`: a look whether it is known, a look at the provider, a look
//! whose it is, and the judgement.

use onsale_core::command::Command;
use onsale_core::errand::{Call, Reply};
use onsale_core::gateway::Observation;
use onsale_core::id::{EventNo, OperationId, OrderId};
use onsale_core::money::Money;
use onsale_core::reconcile::{Callback, Verdict};
use onsale_world::euro;

use crate::Broken;
use crate::coverage::Sometimes;
use crate::provider::{Message, Sent};
use crate::sim::{Event, Sim};

use super::{Origin, Waiter};

/// Deliveries of one message at most, as the provider's patience has it.
const ATTEMPTS_MAX: u32 = 8;

pub(crate) struct Judging {
    message: Message,
    callback: Callback,
    /// Which delivery this is; none for a callback that was parked and is looked at again.
    attempt: Option<u32>,
}

impl Sim {
    /// Sends what the provider has to tell: now, late, twice, in another order, or never.
    pub(crate) fn send_messages(&mut self) {
        for message in std::mem::take(&mut self.provider.outbox) {
            let lost = self.faults && self.chance.percent(8 + self.plan.provider_lost / 2);
            if lost && !message.lasting {
                continue;
            }
            if self.faults && self.chance.percent(15) {
                let wait = self.chance.between(0, 60_000);
                self.after(wait, Event::Deliver { message: message.clone(), attempt: 0 });
            }
            let wait = self.latency();
            self.after(wait, Event::Deliver { message, attempt: 0 });
        }
        // An old message comes once more.
        if self.faults
            && self.chance.percent(4)
            && let Some(message) = self.chance.pick(&self.provider.sent).cloned()
        {
            self.after(0, Event::Deliver { message, attempt: 0 });
        }
    }

    fn deliver_again(&mut self, message: Message, attempt: u32) {
        if attempt < ATTEMPTS_MAX || message.lasting {
            let wait = 2_000 << attempt.min(ATTEMPTS_MAX);
            self.after(wait, Event::Deliver { message, attempt: attempt + 1 });
        }
    }

    /// The process has ended and the provider had no answer: it sends the messages again.
    pub(super) fn not_acknowledged(&mut self, judgings: impl Iterator<Item = Judging>) {
        for judging in judgings {
            if let Some(attempt) = judging.attempt {
                self.deliver_again(judging.message, attempt);
            }
        }
    }

    /// A message of the provider arrives.
    pub(crate) fn deliver(&mut self, message: Message, attempt: u32) {
        let process = self.chance.below(self.plan.processes);
        if !self.processes[process].up {
            return self.deliver_again(message, attempt);
        }
        let now = self.clock(process);
        let callback = Callback {
            provider_event_id: message.id.clone(),
            event: EventNo::HOUSE,
            digest: message.digest,
            kind: "payment.changed".to_owned(),
            reference: Some(message.name.clone()),
            claimed_order: message.claimed,
            verdict: Verdict::Parked,
            received_at: now,
            due_at: now,
            case: None,
        };
        self.trace.say(self.now, format_args!("process {process} is told {message:?}"));
        self.judge(process, Judging { message, callback, attempt: Some(attempt) });
    }

    /// Parked callbacks are looked at again.
    pub(super) fn look_for_callbacks(&mut self, process: usize) -> Result<(), Broken> {
        let now = self.clock(process);
        for callback in self.database.due_callbacks(process, now)? {
            let message = Message {
                id: callback.provider_event_id.clone(),
                digest: callback.digest,
                name: callback.reference.clone().unwrap_or_default(),
                claimed: callback.claimed_order,
                lasting: false,
            };
            self.judge(process, Judging { message, callback, attempt: None });
        }
        Ok(())
    }

    fn judge(&mut self, process: usize, judging: Judging) {
        let (id, ago) = (self.fresh(), self.ago());
        let known = self.database.rows(ago).callbacks.get(judging.message.id.as_str());
        let settled = known.is_some_and(|row| row.verdict != Verdict::Parked);
        let name = judging.message.name.clone();
        self.processes[process].judgings.insert(id, judging);
        if settled && !onsale_core::planted!(CallbackJudgedTwice) {
            return self.place(process, id, None);
        }
        let sent = Sent {
            call: Call::Query { reference: name },
            operation: OperationId(0),
            order: OrderId(0),
            amount: Money { amount_minor: 0, currency: euro() },
            charge: self.plan.charge,
            key: None,
        };
        self.ask_provider(process, sent, Waiter::Judging(id));
    }

    pub(super) fn read_back(&mut self, process: usize, judging: u64, reply: Reply) {
        let observation = match reply {
            Reply::Observed(observation) => Some(observation),
            _ => None,
        };
        self.place(process, judging, observation);
    }

    fn place(&mut self, process: usize, id: u64, observation: Option<Observation>) {
        let ago = self.ago();
        let Some(judging) = self.processes[process].judgings.get(&id) else {
            return;
        };
        let named = self.database.attempt_named(&judging.message.name, ago);
        let attached = observation.as_ref().and_then(|observation| observation.operation);
        let attached = attached.filter(|id| self.database.rows(ago).operations.contains_key(id));
        let event = named.or(attached).map_or(EventNo::HOUSE, OperationId::event);
        let callback = Box::new(judging.callback.clone());
        let command = Command::JudgeCallback { event, callback, observation, relevant: true };
        self.queue(process, command, Origin::Judging(id));
    }

    pub(super) fn judged(
        &mut self,
        process: usize,
        judging: u64,
        verdict: Option<Verdict>,
    ) -> Result<(), Broken> {
        let Some(Judging { message, attempt, .. }) = self.processes[process].judgings.remove(&judging) else {
            return Ok(());
        };
        let Some(verdict) = verdict else {
            if let Some(attempt) = attempt {
                self.deliver_again(message, attempt);
            }
            return Ok(());
        };
        self.trace.say(self.now, format_args!("{} is {verdict:?}", message.id));
        match verdict {
            Verdict::Applied | Verdict::RefundPending => self.coverage.saw(Sometimes::CallbackFirst),
            Verdict::AlreadyPaidReconcile | Verdict::Stale => self.coverage.saw(Sometimes::CallbackAfter),
            Verdict::Duplicate => self.coverage.saw(Sometimes::CallbackTwice),
            Verdict::Parked => self.coverage.saw(Sometimes::CallbackParked),
            Verdict::Conflict => self.coverage.saw(Sometimes::CallbackConflict),
        }
        self.ledger.judged(&message, verdict)
    }
}
