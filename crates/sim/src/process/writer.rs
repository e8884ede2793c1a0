//! A process's writer: takes what waits, has it decided in one transaction, and answers after the commit. Here the
//! database fails.

use std::rc::Rc;

use onsale_core::command::{Decision, Outcome, Request};
use onsale_core::id::{HoldId, OrderId};
use onsale_core::planted;
use onsale_core::time::Timestamp;

use crate::buyer::Heard;
use crate::coverage::Sometimes;
use crate::sim::{Event, Sim};
use crate::{Broken, checks};

use super::{Job, Origin, Worker};

/// Requests in one transaction.
const TOGETHER_MAX: usize = 6;

/// What becomes of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Done,
    /// It could not begin, or was undone.
    NotDone,
    /// The commit failed, and it is there all the same.
    UnknownDone,
    /// The commit failed, and nothing of it is there.
    UnknownNotDone,
    /// The process ends before it.
    CrashBefore,
    /// The process ends after it, and nobody is answered.
    CrashAfter,
}

impl Sim {
    fn fate(&mut self) -> Fate {
        if !self.faults {
            return Fate::Done;
        }
        if self.plan.crashes > 0 && self.chance.permille(self.plan.crashes) {
            return self.chance.of(&[Fate::CrashBefore, Fate::CrashAfter]);
        }
        if self.plan.store_faults > 0 && self.chance.permille(self.plan.store_faults) {
            return self.chance.of(&[Fate::NotDone, Fate::UnknownDone, Fate::UnknownNotDone]);
        }
        Fate::Done
    }

    /// The writer has the lock.
    pub(crate) fn writer(&mut self, process: usize, life: u32) -> Result<(), Broken> {
        if !self.lives(process, life) {
            return Ok(());
        }
        let one = &mut self.processes[process];
        let count = one.jobs.len().min(TOGETHER_MAX);
        let jobs: Vec<Job> = one.jobs.drain(..count).collect();
        one.turn = !one.jobs.is_empty();
        if one.turn {
            self.after(0, Event::Writer { process, life });
        }
        let fate = self.fate();
        let locked_at = self.clock(process);
        let now = match planted!(TimeBeforeLock) {
            true => jobs.iter().map(|job| job.came_at).min().unwrap_or(locked_at),
            false => locked_at,
        };
        self.trace.say(self.now, format_args!("process {process}: {count} together at {now:?}: {fate:?}"));
        let is_early = planted!(AnsweredBeforeCommit);
        if is_early {
            let requests: Vec<Request> = jobs.iter().map(|job| job.request.clone()).collect();
            let decisions = self.database.world.clone().run(&requests, now);
            self.answer_all(process, &jobs, &decisions)?;
        }
        match fate {
            Fate::CrashBefore => self.ending = Some(process),
            Fate::NotDone => {
                self.coverage.saw(Sometimes::BatchUndone);
                self.fail_all(process, jobs, Heard::NotDone)?;
            }
            Fate::UnknownNotDone => {
                self.coverage.saw(Sometimes::UnknownCommitNotDone);
                self.fail_all(process, jobs, unknown())?;
            }
            Fate::UnknownDone => {
                self.coverage.saw(Sometimes::UnknownCommitDone);
                self.commit(process, &jobs, now, locked_at)?;
                self.fail_all(process, jobs, unknown())?;
            }
            Fate::CrashAfter => {
                self.coverage.saw(Sometimes::CrashAfterCommit);
                self.commit(process, &jobs, now, locked_at)?;
                if planted!(KeyKeptApart) {
                    // It was to be kept next.
                    let keys = Rc::make_mut(&mut self.database.world.keys);
                    let is_theirs =
                        |id: u128| jobs.iter().any(|job| job.request.key.is_some_and(|k| k.id == id));
                    keys.retain(|(_, id), _| !is_theirs(*id));
                }
                self.ending = Some(process);
            }
            Fate::Done => {
                let decisions = self.commit(process, &jobs, now, locked_at)?;
                if !is_early {
                    self.answer_all(process, &jobs, &decisions)?;
                }
            }
        }
        self.may_end(process);
        Ok(())
    }

    fn commit(
        &mut self,
        process: usize,
        jobs: &[Job],
        now: Timestamp,
        locked_at: Timestamp,
    ) -> Result<Vec<Decision>, Broken> {
        let requests: Vec<Request> = jobs.iter().map(|job| job.request.clone()).collect();
        let before = self.database.world.clone();
        let early = self.processes[process].early.take();
        let decisions = match early {
            Some(rows) => self.database.commit_over(&rows, &requests, now)?,
            None => self.database.commit(process, &requests, now)?,
        };
        if requests.len() > 1 {
            self.coverage.saw(Sometimes::Batch);
        }
        for (request, decision) in requests.iter().zip(&decisions) {
            self.trace.say(self.now, format_args!("decided {:?} -> {decision:?}", request.command));
        }
        checks::committed(self, &before, &requests, &decisions, locked_at)?;
        // Whoever follows the log hears of payments at once.
        let log = &self.database.world.log[before.log.len()..];
        if log.iter().any(|entry| entry.kind.order().is_some()) {
            let life = self.processes[process].life;
            self.look_soon(process, life);
        }
        Ok(decisions)
    }

    fn look_soon(&mut self, process: usize, life: u32) {
        if self.chance.percent(80) {
            self.after(0, Event::Tick { process, life, worker: Worker::Payments });
        }
    }

    fn answer_all(&mut self, process: usize, jobs: &[Job], decisions: &[Decision]) -> Result<(), Broken> {
        for (job, decision) in jobs.iter().zip(decisions) {
            if planted!(ReturnOnlyInMemory) {
                self.return_from_memory(process, &job.request.command, &decision.outcome);
            }
            match job.origin {
                Origin::Client(call) => {
                    if let Some(key) = job.request.key {
                        self.ledger.answered(key.id, &decision.outcome)?;
                    }
                    if decision.replayed {
                        self.coverage.saw(Sometimes::Replayed);
                    }
                    self.tell(call, Heard::Decided(Box::new(decision.outcome.clone())));
                }
                Origin::Errand(operation) => self.errand_kept(process, operation, Some(&decision.outcome)),
                Origin::Judging(judging) => {
                    let Outcome::Judged(verdict) = decision.outcome else {
                        unreachable!("a callback is judged and nothing else: {:?}", decision.outcome);
                    };
                    self.judged(process, judging, Some(verdict))?;
                }
                Origin::Operator(key) => {
                    if let Some(key) = key {
                        self.ledger.answered(key.id, &decision.outcome)?;
                    }
                    if decision.replayed {
                        self.coverage.saw(Sometimes::OperatorReplayed);
                    }
                }
                Origin::Nobody => {}
            }
        }
        Ok(())
    }

    fn fail_all(&mut self, process: usize, jobs: Vec<Job>, heard: Heard) -> Result<(), Broken> {
        for job in jobs {
            if matches!(heard, Heard::NotDone) {
                self.was_not_done(&job.request)?;
            }
            match job.origin {
                Origin::Client(call) => self.tell(call, heard.clone()),
                Origin::Errand(operation) => self.errand_kept(process, operation, None),
                Origin::Judging(judging) => self.judged(process, judging, None)?,
                Origin::Operator(_) | Origin::Nobody => {}
            }
        }
        Ok(())
    }

    /// What is said to be not done has left nothing behind: none of the ids that it might have given away.
    fn was_not_done(&self, request: &Request) -> Result<(), Broken> {
        let (mut seed, world) = (request.seed, &self.database.world);
        for _ in 0..2 {
            let id: u128 = seed.mint();
            if world.holds.contains_key(&HoldId(id)) || world.orders.contains_key(&OrderId(id)) {
                let what = format!("{:?} was said to be not done", request.command);
                return Err(Broken::new("client: what is said to be not done isn't", what));
            }
        }
        Ok(())
    }
}

fn unknown() -> Heard {
    if planted!(UnknownIsNotDone) { Heard::NotDone } else { Heard::Unknown }
}
