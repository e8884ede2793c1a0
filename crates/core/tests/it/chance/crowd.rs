//! The buyers, the workers and the operator, and the messages under way between them and the provider.

use std::sync::Arc;

use onsale_core::command::{Answer, Command, Outcome, Request};
use onsale_core::event::{EventStatus, InDoubt, PaymentMode};
use onsale_core::gateway::{IntentState, Observation};
use onsale_core::hold::Hold;
use onsale_core::id::{OperationId, SeatOrdinal, Seed};
use onsale_core::idempotency::RequestKey;
use onsale_core::manifest::{Manifest, ManifestSeat, PriceLevel};
use onsale_core::order::OrderStatus;
use onsale_core::payment::{Operation, OperationKind};
use onsale_core::reconcile::{Callback, Case, CaseAction, CaseKind, CaseStatus, Verdict};
use onsale_core::time::Timestamp;

use super::Chance;
use super::provider::{Provider, Reply};
use crate::script::account;
use crate::world::{HALL, World, event};

const SEATS: usize = 4;

/// What is under way and may arrive late, or never.
#[derive(Clone, Debug)]
enum Message {
    /// A call to the provider.
    Call(OperationId),
    /// What came of one.
    Answer(OperationId, Answer),
    /// A callback, and what was read back when it came.
    Callback(u64, String, Option<Observation>),
}

pub(super) struct Crowd {
    pub(super) chance: Chance,
    pub(super) now: Timestamp,
    pub(super) world: World,
    pub(super) provider: Provider,
    /// How often no answer comes.
    pub(super) lost_percent: usize,
    under_way: Vec<Message>,
    sent: Vec<(u64, String)>,
    count: u64,
}

impl Crowd {
    pub(super) fn new(mut chance: Chance) -> Crowd {
        let mut row = event(HALL);
        let charge = chance.percent(25);
        row.policy.hold_ttl_ms = 20_000;
        row.policy.payment_grace_ms = [0, 10_000][chance.below(2)];
        row.policy.in_doubt = [InDoubt::Keep, InDoubt::Release][chance.below(2)];
        row.policy.tickets_per_account_max = 3 + chance.below(4) as u32;
        row.policy.payment_pending_per_account_max = 1 + chance.below(2) as u32;
        row.policy.payment_pending_max = 2 + chance.below(2) as u32;
        row.policy.payment = if charge { PaymentMode::Charge } else { PaymentMode::AuthorizeThenCapture };
        let provider = Provider::new(charge);
        let (world, now) = (World::new(), Timestamp::from_millis(1_000));
        let lost_percent = [5, 20, 60][chance.below(3)];
        let (under_way, sent, count) = (Vec::new(), Vec::new(), 0);
        let mut crowd = Crowd { chance, now, world, provider, lost_percent, under_way, sent, count };
        let actor = "olga".to_owned();
        for command in [
            Command::CreateEvent(Box::new(row)),
            Command::ReplaceManifest { event: HALL, manifest: manifest() },
            Command::SetPrices { event: HALL, manifest_version: 1, levels: vec![(0, 1_000), (1, 700)] },
            Command::SetOnSale { event: HALL, status: EventStatus::Open, actor },
        ] {
            let request = crowd.of(command);
            crowd.world.run(&[request], now);
        }
        crowd
    }

    pub(super) fn pass_time(&mut self) {
        let step = [0, 1, 400, 1_500, 3_000, 9_000][self.chance.below(6)];
        // Now and then the shell's clock falls behind.
        let step = if self.chance.percent(3) { -5_000 } else { step };
        self.now = self.now.plus_ms(step);
    }

    fn of(&mut self, command: Command) -> Request {
        self.count += 1;
        let key = match (&command, self.chance.below(3)) {
            (Command::PlaceHold { .. } | Command::Checkout { .. }, 0) => {
                let id = self.chance.below(60) as u128;
                Some(RequestKey { id, digest: format!("{command:?}").len() as u128 })
            }
            _ => None,
        };
        Request { seed: Seed::new(command.event(), self.now, self.count << 8), command, key }
    }

    /// Something that someone does.
    pub(super) fn request(&mut self) -> Option<Request> {
        if let Some(name) = self.provider.stir(&mut self.chance) {
            self.notify(&name);
        }
        let command = match self.chance.below(20) {
            0..=2 => self.place_hold(),
            3..=5 => self.checkout()?,
            6 if self.chance.percent(40) => self.give_back()?,
            6 => Command::ExpireHold { hold: self.a_hold()?.id },
            7..=9 => self.look()?,
            10..=17 => self.arrive()?,
            18 => self.act_on_a_case()?,
            _ => self.manage(),
        };
        Some(self.of(command))
    }

    fn place_hold(&mut self) -> Command {
        let mut seats: Vec<SeatOrdinal> = (0..SEATS as u32).map(SeatOrdinal).collect();
        let count = 1 + self.chance.below(3);
        while seats.len() > count {
            seats.remove(self.chance.below(seats.len()));
        }
        let account = account(["ada", "ben", "cleo"][self.chance.below(3)]);
        Command::PlaceHold { event: HALL, manifest_version: 1, account, seats }
    }

    /// Mostly one of the latest.
    fn a_hold(&mut self) -> Option<Hold> {
        let mut holds: Vec<&Hold> = self.world.holds.values().collect();
        if self.chance.percent(90) {
            holds.retain(|hold| hold.status.is_live());
        }
        self.chance.pick(&holds).map(|hold| (*hold).clone())
    }

    fn checkout(&mut self) -> Option<Command> {
        let hold = self.a_hold()?;
        let account = if self.chance.percent(5) { account("ben") } else { hold.account };
        let payment_method_token = "pm_card".to_owned();
        Some(Command::Checkout {
            hold: hold.id,
            account,
            payment_method_token,
            email: None,
            return_url: None,
        })
    }

    fn give_back(&mut self) -> Option<Command> {
        let hold = self.a_hold()?;
        let account = self.chance.percent(80).then_some(hold.account);
        Some(Command::ReleaseHold { hold: hold.id, account })
    }

    fn manage(&mut self) -> Command {
        let actor = "olga".to_owned();
        match self.chance.below(16) {
            0 => Command::SetOnSale { event: HALL, status: EventStatus::Paused, actor },
            1 => {
                let levels = vec![(self.chance.below(2) as u16, 600 + 100 * self.chance.below(5) as i64)];
                Command::SetPrices { event: HALL, manifest_version: 1, levels }
            }
            2 => {
                let (seats, not_for_sale) = (vec![SeatOrdinal(3)], self.chance.percent(30));
                Command::SetSeatsStatus { event: HALL, manifest_version: 1, seats, not_for_sale, actor }
            }
            _ => Command::SetOnSale { event: HALL, status: EventStatus::Open, actor },
        }
    }

    /// A person acts on a case; what would leave money where it is without a reason is not among it.
    fn act_on_a_case(&mut self) -> Option<Command> {
        let cases: Vec<&Case> =
            self.world.cases.values().filter(|case| case.status == CaseStatus::Open).collect();
        let case = *self.chance.pick(&cases)?;
        let stuck = matches!(case.kind, CaseKind::VoidFailed | CaseKind::RefundFailed);
        let action = match self.chance.below(5) {
            0 => CaseAction::Void,
            1 => CaseAction::Refund,
            2 => CaseAction::ConfirmIfBound,
            3 => CaseAction::Release,
            _ if stuck => CaseAction::Void,
            _ => CaseAction::Dismiss,
        };
        let (note, actor) = ("seen to".to_owned(), "olga".to_owned());
        Some(Command::ResolveCase { case: case.id, action, note, actor })
    }

    /// A worker looks at an operation.
    fn look(&mut self) -> Option<Command> {
        let live: Vec<Operation> =
            self.world.operations.values().filter(|o| o.status.is_live()).cloned().collect();
        let operation = self.chance.pick(&live)?.clone();
        Some(self.look_at(&operation))
    }

    fn look_at(&mut self, operation: &Operation) -> Command {
        let lost = self.chance.percent(self.lost_percent);
        let answer = match &operation.reference {
            _ if self.chance.percent(3) => Answer::Busy(2_000),
            None => {
                let reference = self.provider.create(operation.id, operation.order, operation.amount);
                if !lost {
                    return Command::RecordReference { operation: operation.id, reference };
                }
                Answer::NoAnswer
            }
            Some(_) if lost => Answer::NoAnswer,
            Some(name) => Answer::Observed(self.provider.read(name)),
        };
        Command::RecordAnswer { operation: operation.id, answer }
    }

    /// A message arrives, or calls at the provider.
    fn arrive(&mut self) -> Option<Command> {
        if self.chance.percent(10) {
            let (id, name) = self.chance.pick(&self.sent)?.clone();
            let seen = Some(self.provider.read(&name));
            self.under_way.push(Message::Callback(id, name, seen));
        }
        if self.under_way.is_empty() {
            return None;
        }
        let at = self.chance.below(self.under_way.len());
        let message = self.under_way.remove(at);
        self.deliver(message)
    }

    fn deliver(&mut self, message: Message) -> Option<Command> {
        match message {
            Message::Call(id) => {
                let operation = self.world.operations[&id].clone();
                let name = operation.reference?;
                let answer = match self.provider.act(&name, operation.kind, &mut self.chance) {
                    Reply::Refused => Answer::Refused("refused_by_provider".to_owned()),
                    Reply::Done if self.chance.percent(self.lost_percent) => Answer::NoAnswer,
                    Reply::Done => Answer::Observed(self.provider.read(&name)),
                };
                self.under_way.push(Message::Answer(id, answer));
                self.notify(&name);
                None
            }
            Message::Answer(operation, answer) => Some(Command::RecordAnswer { operation, answer }),
            Message::Callback(id, name, observation) => {
                let callback = Callback {
                    provider_event_id: format!("ev_{id}"),
                    digest: id.into(),
                    kind: "payment.changed".to_owned(),
                    reference: Some(name),
                    claimed_order: None,
                    verdict: Verdict::Parked,
                    received_at: self.now,
                    due_at: self.now,
                    case: None,
                };
                let callback = Box::new(callback);
                Some(Command::JudgeCallback { event: HALL, callback, observation, relevant: true })
            }
        }
    }

    /// The provider sends a callback about an object.
    fn notify(&mut self, name: &str) {
        self.count += 1;
        self.sent.push((self.count, name.to_owned()));
        let seen = (!self.chance.percent(10)).then(|| self.provider.read(name));
        self.under_way.push(Message::Callback(self.count, name.to_owned(), seen));
    }

    /// What the workers do next, now that something was decided.
    pub(super) fn learn(&mut self, request: &Request, outcome: &Outcome) {
        let (Command::RecordReference { operation, .. } | Command::RecordAnswer { operation, .. }) =
            &request.command
        else {
            return;
        };
        if matches!(outcome, Outcome::MayConfirm | Outcome::Recorded { send: true, .. }) {
            self.under_way.push(Message::Call(*operation));
        }
    }

    /// All that the workers have to do now.
    pub(super) fn chores(&mut self) -> Vec<Request> {
        let mut commands = Vec::new();
        while let Some(message) = self.under_way.pop() {
            commands.extend(self.deliver(message));
        }
        let due = |o: &&Operation| o.status.is_live() && o.due_at <= self.now;
        let due: Vec<Operation> = self.world.operations.values().filter(due).cloned().collect();
        commands.extend(due.iter().map(|operation| self.look_at(operation)));
        let live = self.world.holds.values().filter(|hold| hold.status.is_live() && !hold.in_doubt);
        commands.extend(live.map(|hold| Command::ExpireHold { hold: hold.id }));
        for callback in self.world.callbacks.values().filter(|callback| callback.due_at <= self.now) {
            let observation = callback.reference.as_ref().map(|name| self.provider.read(name));
            let callback = Box::new(callback.clone());
            commands.push(Command::JudgeCallback { event: HALL, callback, observation, relevant: true });
        }
        for case in self.world.cases.values().filter(|case| case.status == CaseStatus::Open) {
            let action = match case.kind {
                CaseKind::VoidFailed => CaseAction::Void,
                CaseKind::RefundFailed => CaseAction::Refund,
                _ => continue,
            };
            let is_live = |o: &Operation| o.status.is_live() && Some(o.attempt()) == case.operation;
            if !self.world.operations.values().any(is_live) {
                let (note, actor) = ("again".to_owned(), "olga".to_owned());
                commands.push(Command::ResolveCase { case: case.id, action, note, actor });
            }
        }
        commands.into_iter().map(|command| Request { key: None, ..self.of(command) }).collect()
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.open().is_empty() && self.under_way.is_empty()
    }

    /// What is not at its end.
    pub(super) fn open(&self) -> Vec<String> {
        let operations =
            self.world.operations.values().filter(|o| o.status.is_live()).map(|o| format!("{o:?}"));
        let holds = self.world.holds.values().filter(|h| h.status.is_live()).map(|h| format!("{h:?}"));
        let open = |case: &&Case| case.status == CaseStatus::Open;
        let cases = self.world.cases.values().filter(open).map(|case| format!("{case:?}"));
        let parked = |callback: &&Callback| callback.verdict == Verdict::Parked;
        let callbacks = self.world.callbacks.values().filter(parked).map(|callback| format!("{callback:?}"));
        operations.chain(holds).chain(cases).chain(callbacks).collect()
    }

    /// Our books against the provider's: what was taken is what was sold, and nothing is set aside.
    pub(super) fn compare_books(&self) {
        for (name, intent) in &self.provider.intents {
            let kept = matches!(intent.state, IntentState::Captured) && intent.refunded_minor == 0;
            assert_ne!(intent.state, IntentState::Authorized, "{name} is neither taken nor let go");
            let attempt = self.world.attempt_named(name);
            let pays = attempt.filter(|attempt| {
                let order = &self.world.orders[&attempt.order];
                order.status == OrderStatus::Confirmed && order.paid_by == Some(attempt.id)
            });
            assert_eq!(kept, pays.is_some(), "{name}: {intent:?} {attempt:?}");
            if let Some(attempt) = pays {
                assert_eq!(
                    intent.amount, self.world.orders[&attempt.order].total,
                    "{name} has the order's total"
                );
            }
        }
        let attempts = self.world.operations.values().filter(|o| o.kind == OperationKind::Authorize).count();
        assert!(attempts > 0, "somebody tried to pay");
    }
}

fn manifest() -> Arc<Manifest> {
    let seat = |at: usize| ManifestSeat {
        seat_id: at.to_string(),
        section: 0,
        row: "1".to_owned(),
        seat: at.to_string(),
        price_level: (at % 2) as u16,
        x: 0.0,
        y: 0.0,
        accessible: false,
        companion_of: None,
        restricted_view: false,
        not_for_sale: false,
    };
    let level = |name: &str| PriceLevel { name: name.to_owned(), color: None };
    Arc::new(Manifest {
        price_levels: vec![level("A"), level("B")],
        sections: vec!["stalls".to_owned()],
        seats: (0..SEATS).map(seat).collect(),
        ga_areas: Vec::new(),
    })
}
