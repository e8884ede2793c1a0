//! The payments worker: the core's errands, carried over a network that loses, doubles and delays.

use onsale_core::command::{Command, Effect, Outcome};
use onsale_core::errand::{Call, Errand, Reply, Step};
use onsale_core::id::OperationId;
use onsale_core::limits::PROVIDER_TIMEOUT_MS;
use onsale_core::reconcile::Verdict;

use crate::Broken;
use crate::coverage::Sometimes;
use crate::provider::{Sent, send};
use crate::sim::{Event, Sim};

use super::{Origin, Waiter};

/// What an errand waits for.
#[derive(Debug)]
pub(crate) enum News {
    /// How its call ended.
    Reply(Reply),
    /// What came of what it had to keep.
    Outcome(Box<Outcome>),
}

/// Operations worked on at once.
const AT_ONCE: usize = 4;

impl Sim {
    /// Takes up what is due, as far as there is room. What was read waits here, and may be old when its turn comes.
    pub(super) fn look_for_payments(&mut self, process: usize, more: bool) -> Result<(), Broken> {
        let now = self.clock(process);
        if more && self.processes[process].waiting.is_empty() {
            let ago = self.ago();
            let look = AT_ONCE + self.processes[process].errands.len();
            let due = self.database.due_operations(process, now, look, ago)?;
            let one = &mut self.processes[process];
            one.waiting = due.into_iter().filter(|o| !one.errands.contains_key(&o.id)).collect();
        }
        while self.processes[process].errands.len() < AT_ONCE
            && let Some(operation) = self.processes[process].waiting.pop_front()
        {
            let id = operation.id;
            if self.processes[process].errands.contains_key(&id) {
                continue;
            }
            if self.database.world.operations.get(&id) != Some(&operation) {
                self.coverage.saw(Sometimes::StaleRow);
            }
            self.trace.say(self.now, format_args!("process {process} takes up {id}"));
            let (errand, step) = Errand::begin(operation, now);
            self.processes[process].errands.insert(id, errand);
            self.act_on(process, id, step);
        }
        Ok(())
    }

    /// What comes back is an event of its own, and now and then long in coming: the process may stand still.
    fn later(&mut self, process: usize, operation: OperationId, news: News) {
        let life = self.processes[process].life;
        let wait = match self.chance.below(100) {
            0..=2 if self.faults => self.chance.between(5_000, 120_000),
            3..=10 => self.chance.between(1, 500),
            _ => 0,
        };
        self.after(wait, Event::Errand { process, life, operation, news });
    }

    /// A worker goes on with an operation.
    pub(crate) fn errand(&mut self, process: usize, life: u32, operation: OperationId, news: News) {
        let now = self.clock(process);
        if !self.lives(process, life) {
            return;
        }
        let Some(errand) = self.processes[process].errands.get_mut(&operation) else {
            return;
        };
        let step = match news {
            News::Reply(reply) => errand.replied(reply, now),
            News::Outcome(outcome) => errand.kept(&outcome, now),
        };
        self.act_on(process, operation, step);
        self.may_end(process);
    }

    fn act_on(&mut self, process: usize, operation: OperationId, step: Step) {
        match step {
            Step::Ask(call) => self.call(process, call, operation),
            Step::Keep(command) => self.queue(process, command, Origin::Errand(operation)),
            Step::Done => self.errand_over(process, operation),
        }
    }

    fn errand_over(&mut self, process: usize, operation: OperationId) {
        self.processes[process].errands.remove(&operation);
        let life = self.processes[process].life;
        if !self.processes[process].waiting.is_empty() {
            self.after(0, Event::Tick { process, life, worker: super::Worker::Payments });
        }
    }

    pub(super) fn errand_replied(&mut self, process: usize, operation: OperationId, reply: Reply) {
        self.later(process, operation, News::Reply(reply));
    }

    /// What was to be kept was decided, or wasn't: then the operation is still due, and is taken up again.
    pub(super) fn errand_kept(&mut self, process: usize, operation: OperationId, outcome: Option<&Outcome>) {
        self.confirming.remove(&operation);
        match outcome {
            Some(outcome) => self.later(process, operation, News::Outcome(Box::new(outcome.clone()))),
            None => self.errand_over(process, operation),
        }
    }

    fn call(&mut self, process: usize, call: Call, operation: OperationId) {
        let again = self.fresh();
        let row = self.processes[process].errands[&operation].operation().clone();
        let sent = send(call, &row, self.plan.charge, again);
        self.ask_provider(process, sent, Waiter::Errand(operation));
    }

    /// Sends a request on its way. The caller waits for the reply so long, and no longer.
    pub(super) fn ask_provider(&mut self, process: usize, sent: Sent, waiter: Waiter) {
        let (token, life) = (self.fresh(), self.processes[process].life);
        self.processes[process].awaited.insert(token, waiter);
        self.trace.say(self.now, format_args!("process {process} asks: {sent:?}"));
        let lost = if self.faults { self.plan.provider_lost } else { 0 };
        if self.is_out() || lost > 0 && self.chance.percent(lost / 4 + 1) {
            if self.is_out() {
                self.coverage.saw(Sometimes::Outage);
            }
            self.after(0, Event::Reply { process, life, token, reply: Reply::NotSent });
            return;
        }
        self.after(PROVIDER_TIMEOUT_MS, Event::Reply { process, life, token, reply: Reply::NoAnswer });
        if self.chance.percent(lost) && self.chance.percent(50) {
            return;
        }
        if lost > 0 && self.chance.percent(5) {
            let wait = self.latency();
            self.after(wait, Event::AtProvider { sent: Box::new(sent.clone()), reply_to: None });
        }
        let wait = self.latency();
        self.after(wait, Event::AtProvider { sent: Box::new(sent), reply_to: Some((process, life, token)) });
    }

    /// Gives money back because the process remembers that it has to. No program may do this; it is planted to be found.
    pub(super) fn return_from_memory(&mut self, process: usize, command: &Command, outcome: &Outcome) {
        let world = &self.database.world;
        let row = match (command, outcome) {
            (
                Command::RecordAnswer { operation, .. },
                Outcome::Recorded { effect: Effect::MoneyBack, .. },
            ) => world.operations.get(operation),
            (Command::JudgeCallback { callback, .. }, Outcome::Judged(Verdict::RefundPending)) => {
                callback.reference.as_ref().and_then(|name| world.attempt_named(name))
            }
            _ => None,
        };
        let Some((row, reference)) = row.cloned().and_then(|row| Some((row.clone(), row.reference?))) else {
            return;
        };
        let call = if self.plan.charge { Call::Refund { reference } } else { Call::Cancel { reference } };
        let again = self.fresh();
        let sent = send(call, &row, self.plan.charge, again);
        self.ask_provider(process, sent, Waiter::Errand(row.id));
    }

    /// A request arrives at the provider.
    pub(crate) fn at_provider(
        &mut self,
        sent: &Sent,
        reply_to: Option<(usize, u32, u64)>,
    ) -> Result<(), Broken> {
        let awaited = reply_to.is_some_and(|(process, life, token)| {
            self.lives(process, life) && self.processes[process].awaited.contains_key(&token)
        });
        if !awaited {
            self.coverage.saw(Sometimes::LateCall);
        }
        let lost = if self.faults { self.plan.provider_lost } else { 0 };
        let reply = if lost > 0 && self.chance.percent(3) {
            let retry_after_s = self.chance.of(&[None, Some(1), Some(30)]);
            Reply::Busy { retry_after_s }
        } else {
            let (world, now) = (&self.database.world, self.now);
            self.provider.execute(sent, now, world, &mut self.chance, &mut self.coverage)?
        };
        if let (Call::Confirm { .. }, Reply::Observed(_)) = (&sent.call, &reply) {
            self.confirming.insert(sent.operation);
        }
        if let (Call::Capture { .. } | Call::Cancel { .. } | Call::Refund { .. }, Reply::Refused(_)) =
            (&sent.call, &reply)
        {
            self.coverage.saw(Sometimes::ReturnRefused);
        }
        self.trace
            .say(self.now, format_args!("provider: {:?} of {} -> {reply:?}", sent.call, sent.operation));
        self.send_messages();
        let Some((process, life, token)) = reply_to else {
            return Ok(());
        };
        if self.chance.percent(lost) {
            return Ok(());
        }
        match self.chance.percent(12).then(|| self.deadline_of(sent)).flatten() {
            // The answer comes at the very end of the hold.
            Some(at) => self.at(at, Event::Reply { process, life, token, reply }),
            None => {
                let wait = self.latency();
                self.after(wait, Event::Reply { process, life, token, reply });
            }
        }
        Ok(())
    }

    /// The deadline of the hold that a request is about, give or take a moment.
    fn deadline_of(&mut self, sent: &Sent) -> Option<i64> {
        let world = &self.database.world;
        let hold = world.holds.get(&world.orders.get(&sent.order)?.hold)?;
        let at = hold.expires_at.millis() - self.processes[0].skew;
        let near = (self.now..self.now + PROVIDER_TIMEOUT_MS).contains(&at);
        near.then(|| at + self.chance.between(-1, 1) * self.plan.grain_ms.min(2))
    }
}
