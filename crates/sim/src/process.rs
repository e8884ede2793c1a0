//! A process: its writer, its payments worker, its expirer, its reconciler, and the way of a callback. Each step is an
//! event of its own, so that the process can end between any two.

mod callbacks;
mod payments;
mod writer;

use std::collections::{BTreeMap, VecDeque};

use onsale_core::command::{Command, Request};
use onsale_core::errand::{Errand, Reply};
use onsale_core::id::OperationId;
use onsale_core::idempotency::RequestKey;
use onsale_core::payment::Operation;
use onsale_core::time::Timestamp;
use onsale_world::World;

use crate::Broken;
use crate::buyer::Heard;
use crate::coverage::Sometimes;
use crate::sim::{Event, Sim};
use callbacks::Judging;

pub(crate) use payments::News;

/// What happens by itself, with its period. Longer than in the program: a world has more to do than to look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Worker {
    Payments,
    Expirer,
    Reconciler,
    /// Lets capacity arrive that is on its way.
    Quota,
    /// Makes the tickets of what is paid for.
    Issuer,
}

/// The expirer's period once everything is mended.
const EXPIRER_MS: i64 = 2_500;

impl Worker {
    const ALL: [Worker; 5] =
        [Worker::Payments, Worker::Expirer, Worker::Reconciler, Worker::Quota, Worker::Issuer];

    fn period_ms(self, faults: bool) -> i64 {
        let calm = if faults { 1 } else { 3 };
        calm * match self {
            Worker::Payments => 1_500,
            Worker::Expirer => EXPIRER_MS,
            Worker::Reconciler => 6_000,
            Worker::Quota => 9_000,
            Worker::Issuer => 7_000,
        }
    }
}

#[derive(Default)]
pub(crate) struct Process {
    /// Which of its lives this is: what belongs to an earlier one is gone.
    pub(crate) life: u32,
    pub(crate) up: bool,
    /// How far its clock is from the true time.
    pub(crate) skew: i64,
    jobs: VecDeque<Job>,
    /// Whether the writer is about to take what waits.
    turn: bool,
    /// Rows as they were when the first job came, for a store that reads too early.
    early: Option<World>,
    errands: BTreeMap<OperationId, Errand>,
    waiting: VecDeque<Operation>,
    judgings: BTreeMap<u64, Judging>,
    /// Replies that are waited for.
    awaited: BTreeMap<u64, Waiter>,
}

/// Who waits for a reply of the provider.
#[derive(Clone, Copy, Debug)]
enum Waiter {
    Errand(OperationId),
    Judging(u64),
}

/// A request that waits for the writer.
struct Job {
    request: Request,
    origin: Origin,
    /// What the clock showed when it came.
    came_at: Timestamp,
}

/// Who asked.
#[derive(Clone, Copy, Debug)]
enum Origin {
    Client(u64),
    Errand(OperationId),
    Judging(u64),
    /// The operator, perhaps under a key.
    Operator(Option<RequestKey>),
    /// Nobody waits for the answer.
    Nobody,
}

impl Process {
    /// Whether it has nothing in hand.
    pub(crate) fn is_idle(&self) -> bool {
        self.jobs.is_empty() && self.errands.is_empty() && self.judgings.is_empty()
    }
}

impl Sim {
    pub(crate) fn start(&mut self, process: usize) {
        let one = &mut self.processes[process];
        if one.up {
            return;
        }
        (one.up, one.life) = (true, one.life + 1);
        let life = one.life;
        self.trace.say(self.now, format_args!("process {process} begins, life {life}"));
        for worker in Worker::ALL {
            let most = if worker == Worker::Expirer { self.plan.expirer_ms } else { 1_000 };
            let wait = self.chance.between(0, most);
            self.after(wait, Event::Tick { process, life, worker });
        }
    }

    /// The process ends where it stands. What it had in memory is gone; what it had committed or sent is not.
    pub(crate) fn crash(&mut self, process: usize) {
        let one = &self.processes[process];
        if !one.up {
            return;
        }
        self.trace.say(self.now, format_args!("process {process} ends, life {}", one.life));
        if one.errands.keys().any(|id| self.confirming.contains(id)) {
            self.coverage.saw(Sometimes::CrashAfterConfirm);
        }
        let ended = Process { life: one.life, skew: one.skew, ..Process::default() };
        let ended = std::mem::replace(&mut self.processes[process], ended);
        self.not_acknowledged(ended.judgings.into_values());
        for real in &mut self.database.real {
            real.crash(process);
        }
        let wait = self.chance.of(&[0, 200, 3_000, 15_000, 70_000]);
        self.after(wait, Event::Start { process });
    }

    /// After a step a process may end.
    fn may_end(&mut self, process: usize) {
        if self.faults && self.plan.crashes > 0 && self.chance.permille(self.plan.crashes) {
            self.ending = Some(process);
        }
    }

    /// Whether this is still the process's life.
    fn lives(&self, process: usize, life: u32) -> bool {
        let one = &self.processes[process];
        one.up && one.life == life
    }

    /// How many commits ago the rows are that a look sees.
    fn ago(&mut self) -> usize {
        if self.faults && self.plan.stale > 0 && self.chance.percent(self.plan.stale) {
            return 1 + self.chance.below(5);
        }
        0
    }

    /// Queues a command for the process's writer.
    fn queue(&mut self, process: usize, command: Command, origin: Origin) {
        let key = match origin {
            Origin::Client(call) => self.calls[&call].key,
            Origin::Operator(key) => key,
            _ => None,
        };
        let (seed, came_at) = (self.seed(&command, process), self.clock(process));
        let request = Request { command, key, seed };
        let early = onsale_core::planted!(ReadOutsideLock).then(|| self.database.world.clone());
        let one = &mut self.processes[process];
        one.jobs.push_back(Job { request, origin, came_at });
        if one.turn {
            return;
        }
        (one.turn, one.early) = (true, early);
        let life = one.life;
        // The lock may be another's for a while.
        let wait = match self.chance.below(20) {
            0 if self.faults => self.chance.between(500, 5_000),
            1..=5 => self.chance.between(1, 30),
            _ => 0,
        };
        self.after(wait, Event::Writer { process, life });
    }

    /// A client's request arrives.
    pub(crate) fn request(&mut self, process: usize, call: u64) {
        let Some(command) = self.calls.get(&call).map(|call| call.command.clone()) else {
            return;
        };
        if !self.processes[process].up {
            self.tell(call, Heard::NotDone);
            return;
        }
        self.queue(process, command, Origin::Client(call));
        self.may_end(process);
    }

    /// The operator's command, for whichever process is up.
    pub(crate) fn submit(&mut self, command: Command) {
        self.submit_as(command, None);
    }

    /// The same under a key.
    pub(crate) fn submit_as(&mut self, command: Command, key: Option<RequestKey>) {
        let process = self.chance.below(self.plan.processes);
        if self.processes[process].up {
            self.trace.say(self.now, format_args!("operator: {command:?}"));
            self.queue(process, command, Origin::Operator(key));
        }
    }

    /// A worker looks, and will look again.
    pub(crate) fn tick(&mut self, process: usize, life: u32, worker: Worker) -> Result<(), Broken> {
        if !self.lives(process, life) {
            return Ok(());
        }
        match worker {
            Worker::Payments => self.look_for_payments(process, true)?,
            Worker::Expirer => {
                let now = self.clock(process);
                for hold in self.database.due_holds(process, now)? {
                    self.queue(process, Command::ExpireHold { hold }, Origin::Nobody);
                }
            }
            Worker::Reconciler => self.look_for_callbacks(process)?,
            Worker::Issuer => {
                for order in self.database.orders_to_ticket(process)? {
                    self.queue(process, Command::IssueTickets { order }, Origin::Nobody);
                }
            }
            Worker::Quota => {
                for transfer in self.database.transfers_in_flight(process)? {
                    self.queue(process, Command::EndTransfer { transfer, arrives: true }, Origin::Nobody);
                }
            }
        }
        let period = match worker {
            Worker::Expirer if self.faults => self.plan.expirer_ms,
            _ => worker.period_ms(self.faults),
        };
        let wait = period + self.chance.between(0, period / 2);
        self.after(wait, Event::Tick { process, life, worker });
        self.may_end(process);
        Ok(())
    }

    /// A reply of the provider arrives, or the wait for it ends; whichever comes first.
    pub(crate) fn reply(&mut self, process: usize, life: u32, token: u64, reply: Reply) {
        if !self.lives(process, life) {
            return;
        }
        let Some(waiter) = self.processes[process].awaited.remove(&token) else {
            return;
        };
        self.trace.say(self.now, format_args!("process {process}: reply to {waiter:?}: {reply:?}"));
        match waiter {
            Waiter::Errand(operation) => self.errand_replied(process, operation, reply),
            Waiter::Judging(judging) => self.read_back(process, judging, reply),
        }
        self.may_end(process);
    }
}
