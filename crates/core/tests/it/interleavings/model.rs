//! One state of a sale: the stored rows, what the provider has, what is under way between the two, the time,
//! and how much may still happen. What comes of an action in it, by the real `decide`.

use std::collections::{BTreeMap, BTreeSet};

use onsale_core::command::{Answer, Command, Outcome, Request, Wish};
use onsale_core::event::PaymentMode;
use onsale_core::gateway::Observation;
use onsale_core::hold::{Hold, HoldStatus};
use onsale_core::id::{AreaNo, EventNo, HoldId, OperationId, SeatOrdinal, Seed};
use onsale_core::order::{Order, OrderStatus};
use onsale_core::payment::{Operation, OperationKind};
use onsale_core::reconcile::{Callback, Verdict};
use onsale_core::refund::RefundPart;
use onsale_core::time::Timestamp;

use super::action::{Action, BUYERS, FAULTS, Fault, Left, Message, Part, Reply, Sale};
use super::provider::{self, Done, Heard, Standing};
use crate::script::{Page, account};
use crate::world::{HALL, World};

/// Instants of interest: see [`State::now`].
const INSTANTS: usize = 7;

/// Steps of the clock after the last instant of interest, when all that is left is to be settled.
const LATER_MS: i64 = 400_000;

/// A state of the sale.
#[derive(Clone)]
pub(super) struct State {
    pub(super) world: World,
    /// Which instant it is.
    pub(super) at: usize,
    /// What the provider has, by the attempt it was made for.
    pub(super) objects: BTreeMap<OperationId, Standing>,
    /// Operations that the provider has refused, and refuses again under the same key.
    pub(super) refused: BTreeSet<OperationId>,
    /// Refunds of a part that the provider has done, and does once.
    pub(super) refunded: BTreeSet<OperationId>,
    pub(super) under_way: BTreeSet<Message>,
    pub(super) left: Left,
    /// Whether the provider has done what nobody asked of it, which excuses some of what the books don't
    /// know.
    pub(super) surprised: bool,
    /// Commands so far, for new ids.
    pub(super) commands: u64,
}

impl State {
    /// An open sale in which nothing has happened.
    pub(super) fn new(sale: &Sale) -> State {
        let mut page = Page::default();
        page.tell(sale.hall);
        let mut state = State {
            world: page.world,
            at: 0,
            objects: BTreeMap::new(),
            refused: BTreeSet::new(),
            refunded: BTreeSet::new(),
            under_way: BTreeSet::new(),
            left: sale.limits,
            surprised: false,
            commands: 0,
        };
        state.forget();
        state
    }

    /// The instants at which something may end, each with the one before and the one after, and then a later
    /// time.
    pub(super) fn now(&self) -> Timestamp {
        let policy = &self.world.hall().policy;
        let (ttl, end) = (policy.hold_ttl_ms, policy.hold_ttl_ms + policy.payment_grace_ms);
        let instants: [i64; INSTANTS] = [0, ttl - 1, ttl, ttl + 1, end - 1, end, end + 1];
        let late = (self.at + 1).saturating_sub(INSTANTS) as i64;
        Timestamp::from_millis(instants[self.at.min(INSTANTS - 1)] + late * LATER_MS)
    }

    /// Whether the last instant of interest has come.
    pub(super) fn is_late(&self) -> bool {
        self.at + 1 >= INSTANTS
    }

    /// What a payment that succeeds comes to at the provider.
    pub(super) fn paid(&self) -> Standing {
        match self.world.hall().policy.payment {
            PaymentMode::AuthorizeThenCapture => Standing::Authorized,
            PaymentMode::Charge => Standing::Captured,
        }
    }

    pub(super) fn operation(&self, id: OperationId) -> Option<&Operation> {
        self.world.operations.get(&id)
    }

    /// Whether a fault of a kind may still happen.
    pub(super) fn may(&self, fault: Fault) -> bool {
        self.left.faults > 0 && self.left.of[fault as usize] > 0
    }

    fn spend(&mut self, fault: Fault) {
        let left = &mut self.left;
        left.faults = left.faults.saturating_sub(1);
        left.of[fault as usize] = left.of[fault as usize].saturating_sub(1);
        if left.faults == 0 {
            // Which of them have happened makes no difference any more.
            left.of = [0; FAULTS];
        }
    }

    /// What comes of an action, and what was decided, if anything was.
    pub(super) fn after(&self, sale: &Sale, action: Action) -> (State, Option<Outcome>) {
        let mut next = self.clone();
        let outcome = next.apply(sale, action);
        next.forget();
        (next, outcome)
    }

    fn apply(&mut self, sale: &Sale, action: Action) -> Option<Outcome> {
        match action {
            Action::Tick => {
                self.at += 1;
                None
            }
            Action::Hold(buyer, choice) => {
                let seats = sale.choices[buyer][choice].iter().copied().map(SeatOrdinal).collect();
                let places = sale.places[buyer].get(choice).copied().filter(|places| *places > 0);
                let ga = places.map(|places| (AreaNo(0), places)).into_iter().collect();
                let account = account(BUYERS[buyer]);
                let command = Command::PlaceHold {
                    event: HALL,
                    manifest_version: 1,
                    account,
                    wish: Wish { seats, ga, ..Wish::default() },
                    code: None,
                };
                let outcome = self.decide(command);
                self.left.holds -= u8::from(matches!(outcome, Outcome::HoldPlaced(_)));
                Some(outcome)
            }
            Action::Release(hold) => {
                let account = Some(self.world.holds[&hold].account.clone());
                Some(self.decide(Command::ReleaseHold { hold, account }))
            }
            Action::Pay(hold) => {
                let account = self.world.holds[&hold].account.clone();
                let payment_method_token = "pm_card".to_owned();
                let (email, return_url) = (None, None);
                let command = Command::Checkout { hold, account, payment_method_token, email, return_url };
                let outcome = self.decide(command);
                self.left.attempts -= u8::from(matches!(outcome, Outcome::CheckoutBegun(_)));
                Some(outcome)
            }
            Action::Act(case, action) => {
                let (note, actor) = ("seen to".to_owned(), "olga".to_owned());
                let outcome = self.decide(Command::ResolveCase { case, action, note, actor });
                if outcome == Outcome::CaseActed {
                    self.spend(Fault::Act);
                }
                Some(outcome)
            }
            Action::Refund(hold, part) => {
                let hold = &self.world.holds[&hold];
                let part = match part {
                    Part::Rest => RefundPart::Rest,
                    Part::Seats => RefundPart::Places { seats: hold.seats.clone(), ga: Vec::new() },
                };
                let order = hold.order.expect("what was sold has an order");
                let (reason, actor) = ("asked for".to_owned(), "olga".to_owned());
                let command = Command::BeginRefund { order, part, resell: true, reason, actor };
                let outcome = self.decide(command);
                let begun = u8::from(matches!(outcome, Outcome::RefundBegun(_)));
                self.left.refunds = self.left.refunds.saturating_sub(begun);
                Some(outcome)
            }
            Action::Expire(hold) => Some(self.decide(Command::ExpireHold { hold })),
            Action::Begin(attempt, reply) => {
                self.objects.entry(attempt).or_insert(Standing::Unconfirmed);
                match reply {
                    Reply::Kept => return Some(self.name(attempt)),
                    Reply::Delayed => {
                        self.spend(Fault::Delayed);
                        self.under_way.insert(Message::Name(attempt));
                    }
                    Reply::Odd => self.spend(Fault::Lost),
                }
                None
            }
            Action::Take(operation) => {
                self.spend(Fault::Delayed);
                self.under_way.insert(Message::Call(operation));
                None
            }
            Action::Lose(operation) => {
                self.under_way.remove(&Message::Call(operation));
                self.spend(Fault::Lost);
                Some(self.keep(operation, Heard::Silence))
            }
            Action::Reach(operation, done, reply) => {
                self.under_way.remove(&Message::Call(operation));
                let heard = self.reach(operation, done);
                if done == Done::Refused {
                    self.spend(Fault::Refused);
                }
                self.hear(operation, heard, reply)
            }
            Action::Ask(operation, reply) => {
                let heard = Heard::Seen(self.objects[&self.world.operations[&operation].attempt()]);
                self.hear(operation, heard, reply)
            }
            Action::Notify(attempt, reply) => {
                self.commands += 1;
                let (number, seen) = (self.commands, self.objects[&attempt]);
                match reply {
                    Reply::Kept => Some(self.judge(number, attempt, seen)),
                    Reply::Delayed => {
                        self.spend(Fault::Delayed);
                        self.under_way.insert(Message::Callback(number, attempt, seen));
                        None
                    }
                    Reply::Odd => {
                        self.spend(Fault::Repeated);
                        self.under_way.insert(Message::Again(number, attempt));
                        Some(self.judge(number, attempt, seen))
                    }
                }
            }
            Action::Stir(attempt, standing) => {
                let before = self.objects.insert(attempt, standing);
                if matches!(before, Some(Standing::Declined | Standing::Authorized)) {
                    self.spend(Fault::Surprise);
                    self.surprised = true;
                }
                None
            }
            Action::Deliver(message) => {
                self.under_way.remove(&message);
                match message {
                    Message::Call(operation) => {
                        self.apply(sale, Action::Reach(operation, Done::Asked, Reply::Kept))
                    }
                    Message::Name(attempt) => Some(self.name(attempt)),
                    Message::Answer(operation, heard) => Some(self.keep(operation, heard)),
                    Message::Callback(number, attempt, seen) => Some(self.judge(number, attempt, seen)),
                    Message::Again(number, attempt) => {
                        Some(self.judge(number, attempt, self.objects[&attempt]))
                    }
                }
            }
        }
    }

    fn name(&mut self, attempt: OperationId) -> Outcome {
        let command = Command::RecordReference { operation: attempt, reference: name_of(attempt) };
        let outcome = self.decide(command);
        if outcome == Outcome::MayConfirm {
            self.under_way.insert(Message::Call(attempt));
        }
        outcome
    }

    /// A request reaches the provider; what it says.
    pub(super) fn reach(&mut self, operation: OperationId, done: Done) -> Heard {
        let (row, paid) = (&self.world.operations[&operation], self.paid());
        let object = self.objects.get_mut(&row.attempt()).expect("what is acted upon was made");
        let heard = match done == Done::Refused || self.refused.contains(&operation) {
            true => Heard::Refused,
            false if row.kind == OperationKind::Refund && object.has_money() => {
                // A part is given back once for its key, and never more than was taken.
                let taken_minor = self.world.operations[&row.attempt()].amount.amount_minor;
                let asked_minor = row.amount.amount_minor;
                if asked_minor == taken_minor || self.refunded.insert(operation) {
                    let back_minor = object.back_minor(taken_minor) + asked_minor;
                    assert!(back_minor <= taken_minor, "more is asked back than is left: {row:?}");
                    let whole = back_minor == taken_minor;
                    *object = if whole { Standing::Refunded } else { Standing::HalfRefunded };
                }
                Heard::Seen(*object)
            }
            false => provider::reach(object, row.kind, done, paid),
        };
        if heard == Heard::Refused {
            self.refused.insert(operation);
        }
        heard
    }

    fn hear(&mut self, operation: OperationId, heard: Heard, reply: Reply) -> Option<Outcome> {
        match reply {
            Reply::Kept => Some(self.keep(operation, heard)),
            Reply::Delayed => {
                self.spend(Fault::Delayed);
                self.under_way.insert(Message::Answer(operation, heard));
                None
            }
            Reply::Odd => {
                self.spend(Fault::Lost);
                Some(self.keep(operation, Heard::Silence))
            }
        }
    }

    fn keep(&mut self, operation: OperationId, heard: Heard) -> Outcome {
        let answer = match heard {
            Heard::Seen(standing) => {
                let attempt = self.world.operations[&operation].attempt();
                Answer::Observed(self.observation(attempt, standing))
            }
            Heard::Refused => Answer::Refused("refused_by_provider".to_owned()),
            Heard::Silence => Answer::NoAnswer,
        };
        let outcome = self.decide(Command::RecordAnswer { operation, answer });
        if matches!(outcome, Outcome::Recorded { send: true, .. }) {
            self.under_way.insert(Message::Call(operation));
        }
        outcome
    }

    fn judge(&mut self, number: u64, attempt: OperationId, seen: Standing) -> Outcome {
        let callback = Callback {
            provider_event_id: format!("ev{number}"),
            event: EventNo::HOUSE,
            digest: number.into(),
            kind: "payment.changed".to_owned(),
            reference: Some(name_of(attempt)),
            claimed_order: None,
            verdict: Verdict::Parked,
            received_at: self.now(),
            due_at: self.now(),
            case: None,
        };
        let observation = Some(self.observation(attempt, seen));
        let callback = Box::new(callback);
        self.decide(Command::JudgeCallback { event: HALL, callback, observation, relevant: true })
    }

    fn observation(&self, attempt: OperationId, standing: Standing) -> Observation {
        let row = &self.world.operations[&attempt];
        Observation {
            reference: name_of(attempt),
            state: standing.state(),
            amount: row.amount,
            refunded_minor: standing.back_minor(row.amount.amount_minor),
            order: Some(row.order),
            operation: Some(attempt),
        }
    }

    fn decide(&mut self, command: Command) -> Outcome {
        self.commands += 1;
        let now = self.now();
        let request = Request { seed: Seed::new(HALL, now, self.commands << 8), command, key: None };
        self.world.run(&[request], now).remove(0).outcome
    }

    /// Whether nothing is under way and nothing is open but questions.
    pub(super) fn is_settled(&self) -> bool {
        self.under_way.is_empty()
            && !self.world.holds.values().any(|hold| hold.status.is_live())
            && !self.world.operations.values().any(|operation| operation.status.is_live())
    }

    /// The attempts, each with what the provider has of it.
    pub(super) fn attempts(&self) -> impl Iterator<Item = (&Operation, Standing)> {
        self.objects.iter().map(|(attempt, standing)| (&self.world.operations[attempt], *standing))
    }

    /// The live holds.
    pub(super) fn live(&self) -> impl Iterator<Item = &Hold> {
        self.world.holds.values().filter(|hold| hold.status.is_live())
    }

    /// What is sold: the holds with their orders.
    pub(super) fn sold(&self) -> impl Iterator<Item = (&Hold, &Order)> {
        let orders = self.world.orders.values().filter(|order| order.status == OrderStatus::Confirmed);
        orders.map(|order| (&self.world.holds[&order.hold], order))
    }

    /// Whether a hold is paid for: its order stands confirmed.
    pub(super) fn is_sold(&self, hold: &HoldId) -> bool {
        let hold = &self.world.holds[hold];
        let order = hold.order.and_then(|order| self.world.orders.get(&order));
        hold.status == HoldStatus::Converted
            && order.is_some_and(|order| order.status == OrderStatus::Confirmed)
    }
}

/// The provider's name of an attempt's object.
fn name_of(attempt: OperationId) -> String {
    format!("pi_{attempt}")
}

/// Whether an operation is sent without being asked about: it has never been.
pub(super) fn is_to_send(operation: &Operation) -> bool {
    operation.kind != OperationKind::Authorize
        && operation.status == onsale_core::payment::OperationStatus::Pending
}
