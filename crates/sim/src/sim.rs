//! The engine: virtual time, the queue of events, and the three phases.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use onsale_core::command::{Command, Request};
use onsale_core::errand::Reply;
use onsale_core::event::EventStatus;
use onsale_core::ga::TransferStatus;
use onsale_core::id::{AccountId, OperationId, SeatOrdinal, Seed};
use onsale_core::manifest::{GaArea, Manifest, ManifestSeat, PriceLevel};
use onsale_core::reconcile::{CaseStatus, Verdict};
use onsale_core::time::Timestamp;
use onsale_world::HALL;

use crate::buyer::{Buyer, Call, Heard};
use crate::chance::Chance;
use crate::coverage::{Coverage, Sometimes};
use crate::database::{Database, wants_tickets};
use crate::ledger::Ledger;
use crate::plan::Plan;
use crate::process::{News, Process, Worker};
use crate::provider::{Message, Provider, Sent};
use crate::trace::Trace;
use crate::{Beside, Broken, Options, checks};

/// When worlds begin.
pub(crate) const BEGINNING: i64 = 1_800_000_000_000;
/// Everything must have come to an end so long after everything was mended.
const LIVENESS_MS: i64 = 4 * 3_600_000;
/// More events than any world needs.
const STEPS_MAX: u64 = 400_000;
const DAY_MS: i64 = 25 * 3_600_000;

/// Something that happens at an instant.
#[derive(Debug)]
pub(crate) enum Event {
    /// A buyer does what comes next, unless something else came first.
    Buyer { buyer: usize, turn: u64 },
    /// A client's request arrives at a process.
    Request { process: usize, call: u64 },
    /// An answer arrives at a client.
    Answer { call: u64, heard: Heard },
    /// A client has waited long enough.
    Patience { call: u64 },
    /// A process's writer takes what waits.
    Writer { process: usize, life: u32 },
    /// A worker looks.
    Tick { process: usize, life: u32, worker: Worker },
    /// A worker goes on with an operation.
    Errand { process: usize, life: u32, operation: OperationId, news: News },
    /// A request arrives at the provider; where its reply goes, if anybody waits for it.
    AtProvider { sent: Box<Sent>, reply_to: Option<(usize, u32, u64)> },
    /// A reply arrives at a process, or the wait for it ends.
    Reply { process: usize, life: u32, token: u64, reply: Reply },
    /// A message of the provider arrives at a process.
    Deliver { message: Message, attempt: u32 },
    /// A process begins.
    Start { process: usize },
    /// A process's clock changes.
    Clock { process: usize },
    /// The operator does something.
    Operator,
    /// Something happens at the provider by itself.
    Stir,
    /// A day passes.
    Day,
}

pub(crate) struct Sim {
    pub(crate) now: i64,
    /// When this phase is over.
    end: i64,
    queue: BTreeMap<(i64, u64), Event>,
    sequence: u64,
    pub(crate) chance: Chance,
    pub(crate) plan: Plan,
    pub(crate) trace: Trace,
    pub(crate) coverage: Coverage,
    pub(crate) steps: u64,
    pub(crate) database: Database,
    pub(crate) provider: Provider,
    pub(crate) processes: Vec<Process>,
    pub(crate) buyers: Vec<Buyer>,
    pub(crate) calls: BTreeMap<u64, Call>,
    pub(crate) ledger: Ledger,
    /// Operations that were once without an answer.
    pub(crate) once_unknown: BTreeSet<OperationId>,
    /// Operations whose card has arrived and whose answer isn't kept yet.
    pub(crate) confirming: BTreeSet<OperationId>,
    pub(crate) count: u64,
    /// Whether things still go wrong.
    pub(crate) faults: bool,
    /// Set by a fault while an event is being handled: this process ends after it.
    pub(crate) ending: Option<usize>,
}

impl Sim {
    pub(crate) fn new(seed: u64, options: Options) -> Sim {
        let mut chance = Chance::new(seed);
        let mut plan = Plan::draw(&mut chance, options.beside != Beside::Nothing);
        plan.spare(options.spared);
        let database = Database::new(options.beside.databases(plan.processes));
        let buyers = (0..plan.buyers).map(|at| {
            // Every other buyer is somebody's second device.
            let account = AccountId::parse(&format!("acc_{}", at - at % 3 / 2)).expect("letters and digits");
            Buyer::new(account, plan.purchases)
        });
        let provider = Provider::new(plan.refuses);
        Sim {
            now: BEGINNING,
            end: BEGINNING,
            queue: BTreeMap::new(),
            sequence: 0,
            buyers: buyers.collect(),
            processes: (0..plan.processes).map(|_| Process::default()).collect(),
            trace: Trace::new(options.whole_trace),
            chance,
            plan,
            coverage: Coverage::default(),
            steps: 0,
            database,
            provider,
            calls: BTreeMap::new(),
            ledger: Ledger::default(),
            once_unknown: BTreeSet::new(),
            confirming: BTreeSet::new(),
            count: 0,
            faults: true,
            ending: None,
        }
    }

    /// Has something happen after a while, on the world's grain.
    pub(crate) fn after(&mut self, wait_ms: i64, event: Event) {
        let grain = self.plan.grain_ms;
        let at = (self.now + wait_ms + grain - 1) / grain * grain;
        self.at(at, event);
    }

    /// Has something happen at an instant, or now when that is past.
    pub(crate) fn at(&mut self, at: i64, event: Event) {
        self.sequence += 1;
        self.queue.insert((at.max(self.now), self.sequence), event);
    }

    /// How long a message is under way.
    pub(crate) fn latency(&mut self) -> i64 {
        match self.chance.below(20) {
            0 if self.faults => self.chance.between(1_000, 40_000),
            1..=3 => self.chance.between(40, 800),
            4..=10 => 0,
            _ => self.chance.between(1, 40),
        }
    }

    /// What a process's clock shows.
    pub(crate) fn clock(&self, process: usize) -> Timestamp {
        Timestamp::from_millis(self.now + self.processes[process].skew)
    }

    /// A number that is new in this world.
    pub(crate) fn fresh(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    pub(crate) fn seed(&mut self, command: &Command, process: usize) -> Seed {
        let chance = self.fresh() << 8;
        Seed::new(command.event(), self.clock(process), chance)
    }

    /// The provider can't be reached now.
    pub(crate) fn is_out(&self) -> bool {
        let since = self.now - BEGINNING;
        self.faults && self.plan.outage.is_some_and(|(from, to)| (from..to).contains(&since))
    }

    pub(crate) fn run(&mut self) -> Result<(), Broken> {
        self.open()?;
        for process in 0..self.plan.processes {
            self.start(process);
            let wait = self.chance.between(5_000, 60_000);
            self.after(wait, Event::Clock { process });
        }
        for buyer in 0..self.buyers.len() {
            let wait = self.chance.between(0, 15_000);
            self.wake(buyer, wait);
        }
        self.after(5_000, Event::Operator);
        self.after(1_000, Event::Stir);
        if let Some(at) = self.plan.day_passes {
            self.after(at, Event::Day);
        }
        // While things go wrong.
        self.end = self.now + self.plan.safety_ms;
        self.go_on(|sim| sim.now >= sim.end && sim.plan.day_passes.is_none())?;
        self.mend();
        // All that was begun comes to an end.
        self.end = self.now + LIVENESS_MS;
        self.go_on(|sim| sim.now >= sim.end || sim.is_quiet())?;
        checks::ended(self)
    }

    fn go_on(&mut self, done: impl Fn(&Sim) -> bool) -> Result<(), Broken> {
        loop {
            if done(self) {
                return Ok(());
            }
            let Some(((at, _), event)) = self.queue.pop_first() else {
                return Ok(());
            };
            self.now = self.now.max(at);
            self.steps += 1;
            if self.steps > STEPS_MAX {
                return Err(Broken::new("liveness: a world ends", format!("after {STEPS_MAX} events")));
            }
            self.happen(event)?;
            if let Some(process) = self.ending.take() {
                self.crash(process);
            }
        }
    }

    fn happen(&mut self, event: Event) -> Result<(), Broken> {
        match event {
            Event::Buyer { buyer, turn } => self.buyer(buyer, turn),
            Event::Request { process, call } => {
                self.request(process, call);
                Ok(())
            }
            Event::Answer { call, heard } => self.answer(call, heard),
            Event::Patience { call } => {
                self.patience(call);
                Ok(())
            }
            Event::Writer { process, life } => self.writer(process, life),
            Event::Tick { process, life, worker } => self.tick(process, life, worker),
            Event::Errand { process, life, operation, news } => {
                self.errand(process, life, operation, news);
                Ok(())
            }
            Event::AtProvider { sent, reply_to } => self.at_provider(&sent, reply_to),
            Event::Reply { process, life, token, reply } => {
                self.reply(process, life, token, reply);
                Ok(())
            }
            Event::Deliver { message, attempt } => {
                self.deliver(message, attempt);
                Ok(())
            }
            Event::Start { process } => {
                self.start(process);
                Ok(())
            }
            Event::Clock { process } => {
                self.set_clock(process);
                Ok(())
            }
            Event::Operator => {
                self.operate();
                Ok(())
            }
            Event::Stir => {
                self.stir();
                Ok(())
            }
            Event::Day => {
                self.plan.day_passes = None;
                self.coverage.saw(Sometimes::DayPassed);
                self.now += DAY_MS;
                self.end += DAY_MS;
                // No wire keeps a request for a day.
                self.queue.retain(|_, event| !matches!(event, Event::AtProvider { .. }));
                self.trace.say(self.now, format_args!("a day has passed"));
                Ok(())
            }
        }
    }

    /// Makes the event and opens its sale.
    fn open(&mut self) -> Result<(), Broken> {
        let (mut row, actor) = (Box::new(self.plan.event.clone()), "olga".to_owned());
        let sale_begins = self.plan.access.as_ref().and_then(|access| access.sale_begins);
        row.on_sale_at = sale_begins.map(|after| Timestamp::from_millis(BEGINNING + after));
        let mut commands = vec![
            Command::CreateEvent(row),
            Command::ReplaceManifest { event: HALL, manifest: manifest(self.plan.seats, &self.plan.areas) },
            Command::SetPrices { event: HALL, manifest_version: 1, levels: vec![(0, 1_000), (1, 700)] },
        ];
        commands.extend(self.set_aside());
        commands.push(Command::SetOnSale { event: HALL, status: EventStatus::Open, actor });
        for command in commands {
            let seed = self.seed(&command, 0);
            let now = self.clock(0);
            self.database.commit(0, &[Request { command, key: None, seed }], now)?;
        }
        Ok(())
    }

    fn set_clock(&mut self, process: usize) {
        if !self.faults {
            return;
        }
        let (most, grain) = (self.plan.skew_ms, self.plan.grain_ms);
        if most > 0 {
            let before = self.processes[process].skew;
            let far = if self.chance.percent(15) { 20 } else { 1 };
            let skew = self.chance.between(-most * far, most) / grain * grain;
            if skew < before {
                self.coverage.saw(Sometimes::ClockSetBack);
            }
            self.processes[process].skew = skew;
            self.trace.say(self.now, format_args!("clock of {process} is off by {skew} ms"));
        }
        let wait = self.chance.between(5_000, 60_000);
        self.after(wait, Event::Clock { process });
    }

    fn stir(&mut self) {
        let charge = self.plan.charge;
        if !self.faults {
            self.provider.finish(charge, self.now, &mut self.chance);
        }
        self.provider.stir(charge, self.now, &mut self.chance, &mut self.coverage);
        self.send_messages();
        let wait = self.chance.between(500, 4_000);
        let wait = if self.faults { wait } else { wait * 4 };
        self.after(wait, Event::Stir);
    }

    /// Everything works from here on: processes are up, clocks are right, and nothing is lost any more.
    fn mend(&mut self) {
        self.trace.say(self.now, format_args!("everything is mended"));
        self.faults = false;
        self.provider.moody = false;
        self.provider.refuses = 0;
        // No clock may have run ahead of the true time any more.
        let ahead = self.database.world.events.values().map(|event| event.clock.millis()).max();
        self.now = self.now.max(ahead.unwrap_or(0) + 1);
        for process in 0..self.plan.processes {
            self.processes[process].skew = 0;
            if !self.processes[process].up {
                self.start(process);
            }
        }
    }

    /// How long everything has been mended.
    pub(crate) fn settling_ms(&self) -> i64 {
        if self.faults { 0 } else { self.now - (self.end - LIVENESS_MS) }
    }

    /// Whether all that was begun has come to an end.
    pub(crate) fn is_quiet(&self) -> bool {
        let world = &self.database.world;
        self.buyers.iter().all(Buyer::is_gone)
            && self.processes.iter().all(Process::is_idle)
            && world.holds.values().all(|hold| !hold.status.is_live())
            && world.operations.values().all(|operation| !operation.status.is_live())
            && world.cases.values().all(|case| case.status != CaseStatus::Open)
            && !world.orders.values().any(wants_tickets)
            && world.transfers.values().all(|transfer| transfer.status != TransferStatus::InFlight)
            && world.callbacks.values().all(|row| row.verdict != Verdict::Parked || row.case.is_some())
            && self.under_way().is_empty()
    }

    /// Messages that have yet to arrive.
    pub(crate) fn under_way(&self) -> Vec<&Event> {
        let is_message = |event: &&Event| {
            matches!(event, Event::Deliver { .. } | Event::AtProvider { .. } | Event::Request { .. })
        };
        self.queue.values().filter(is_message).collect()
    }
}

fn manifest(seats: usize, areas: &[(u32, u16)]) -> Arc<Manifest> {
    let seat = |at: usize| ManifestSeat {
        seat_id: format!("S-{at}"),
        section: 0,
        row: "1".to_owned(),
        seat: at.to_string(),
        price_level: (at % 2) as u16,
        x: 0.0,
        y: 0.0,
        rank: at as u32,
        accessible: false,
        companion_of: None,
        restricted_view: false,
        not_for_sale: false,
    };
    let area = |(at, (capacity, buckets)): (usize, &(u32, u16))| GaArea {
        ga_area: format!("G-{at}"),
        capacity: *capacity,
        buckets: *buckets,
        price_level: (at % 2) as u16,
    };
    let level = |name: &str| PriceLevel { name: name.to_owned(), color: None };
    Arc::new(Manifest {
        price_levels: vec![level("A"), level("B")],
        sections: vec!["stalls".to_owned()],
        seats: (0..seats).map(seat).collect(),
        ga_areas: areas.iter().enumerate().map(area).collect(),
    })
}

/// The seats of a world.
pub(crate) fn ordinals(seats: usize) -> Vec<SeatOrdinal> {
    (0..seats as u32).map(SeatOrdinal).collect()
}
