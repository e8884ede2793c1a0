//! Buyers: they choose what others want too, click twice, lose patience, ask again under the same key or under another,
//! come back at the last moment, try a second card, and go away in the middle.

use std::sync::Arc;

use onsale_core::best_available::Best;
use onsale_core::command::{self, Command, Outcome, PlacedHold};
use onsale_core::id::{AccountId, AreaNo, OrderId, SeatOrdinal};
use onsale_core::idempotency::RequestKey;
use onsale_core::order::OrderStatus;
use onsale_core::payment::PaymentStatus;
use onsale_core::refusal::Refusal;
use onsale_core::seat_map::SeatStatus;
use onsale_core::time::Timestamp;
use onsale_world::HALL;

use crate::Broken;
use crate::coverage::Sometimes;
use crate::operator::places::CODES;
use crate::provider::success;
use crate::sim::{Event, Sim, ordinals};

/// Cards that a buyer tries.
const CARDS_MAX: u32 = 3;

/// What a client hears.
#[derive(Clone, Debug)]
pub(crate) enum Heard {
    Decided(Box<Outcome>),
    /// It is certain that nothing was done.
    NotDone,
    /// It may or may not have been done.
    Unknown,
}

/// One request of a client on its way.
#[derive(Debug)]
pub(crate) struct Call {
    buyer: usize,
    wish: u64,
    pub(crate) command: Command,
    pub(crate) key: Option<RequestKey>,
}

/// Something that a buyer wants done, however often it has to be asked for.
#[derive(Clone, Debug)]
struct Wish {
    id: u64,
    command: Command,
    key: RequestKey,
    tries: u32,
}

impl Wish {
    fn new(id: u64, command: Command) -> Wish {
        let text = format!("{command:?}");
        let digest = text.bytes().fold(7u128, |sum, byte| sum * 31 % (1 << 100) + u128::from(byte));
        Wish { id, command, key: RequestKey { id: id.into(), digest }, tries: 0 }
    }
}

#[derive(Debug)]
enum Stage {
    Idle,
    /// Has seats and thinks.
    Holding(Box<PlacedHold>),
    /// Waits for the payment.
    Watching {
        hold: Box<PlacedHold>,
        order: OrderId,
        cards: u32,
    },
    Gone,
}

#[derive(Debug)]
pub(crate) struct Buyer {
    account: AccountId,
    purchases: u32,
    stage: Stage,
    wish: Option<Wish>,
    /// Only the last thing planned is done.
    turn: u64,
    /// A seat that is waited for, until its hold is over.
    wants: Option<SeatOrdinal>,
}

impl Buyer {
    pub(crate) fn new(account: AccountId, purchases: u32) -> Buyer {
        Buyer { account, purchases, stage: Stage::Idle, wish: None, turn: 0, wants: None }
    }

    pub(crate) fn is_gone(&self) -> bool {
        matches!(self.stage, Stage::Gone) && self.wish.is_none()
    }
}

impl Sim {
    /// Those who are still there.
    pub(crate) fn waiting_buyers(&self) -> Vec<&Buyer> {
        self.buyers.iter().filter(|buyer| !buyer.is_gone()).collect()
    }

    /// The buyer does what comes next after a while.
    pub(crate) fn wake(&mut self, buyer: usize, wait_ms: i64) {
        let turn = self.turn_of(buyer);
        self.after(wait_ms, Event::Buyer { buyer, turn });
    }

    fn wake_at(&mut self, buyer: usize, at: i64) {
        let turn = self.turn_of(buyer);
        self.at(at, Event::Buyer { buyer, turn });
    }

    fn turn_of(&mut self, buyer: usize) -> u64 {
        self.buyers[buyer].turn += 1;
        self.buyers[buyer].turn
    }

    pub(crate) fn buyer(&mut self, buyer: usize, turn: u64) -> Result<(), Broken> {
        if self.buyers[buyer].turn != turn {
            return Ok(());
        }
        if self.buyers[buyer].wish.is_some() {
            self.ask(buyer);
            return Ok(());
        }
        match std::mem::replace(&mut self.buyers[buyer].stage, Stage::Idle) {
            Stage::Idle => self.choose(buyer),
            Stage::Holding(hold) => self.with_seats(buyer, hold),
            Stage::Watching { hold, order, cards } => return self.watch(buyer, hold, order, cards),
            Stage::Gone => self.buyers[buyer].stage = Stage::Gone,
        }
        Ok(())
    }

    fn choose(&mut self, buyer: usize) {
        if self.buyers[buyer].purchases == 0 || !self.faults {
            self.buyers[buyer].stage = Stage::Gone;
            return;
        }
        let mut seats = Vec::new();
        match self.buyers[buyer].wants.take() {
            Some(seat) => seats.push(seat),
            None if self.chance.percent(30) => {
                // Waits for somebody's seats to come free, at the very instant.
                let held =
                    self.database.world.seats.iter().filter_map(|((_, ordinal), seat)| match seat.status {
                        SeatStatus::Held { expires_at, .. } => Some((*ordinal, expires_at.millis())),
                        _ => None,
                    });
                let held: Vec<_> = held.filter(|(_, at)| *at > self.now).collect();
                if let Some((seat, at)) = self.chance.pick(&held).copied() {
                    self.buyers[buyer].wants = Some(seat);
                    let at = at + self.chance.of(&[0, 0, 0, 1, -1]);
                    return self.wake_at(buyer, at);
                }
            }
            None => {}
        }
        let count = 1 + self.chance.below(3);
        let all = ordinals(self.plan.seats);
        // The front seats are everybody's first choice.
        let front = (all.len() / 2).max(1);
        while seats.len() < count {
            let at =
                if self.chance.percent(70) { self.chance.below(front) } else { self.chance.below(all.len()) };
            if !seats.contains(&all[at]) {
                seats.push(all[at]);
            } else if self.chance.percent(50) {
                break;
            }
        }
        let code = self.code_in_hand(&mut seats);
        let ga = self.places_wished();
        if !ga.is_empty() {
            // Half of those who stand want no seats beside.
            let sits = self.chance.percent(50);
            seats.truncate(if sits { 2 } else { 0 });
        }
        seats.sort();
        self.buyers[buyer].purchases -= 1;
        let account = self.buyers[buyer].account.clone();
        // Some let the house choose.
        let wish = match self.chance.percent(25) {
            true => command::Wish { seats: Vec::new(), ga, best: Some(self.best_wished(count)) },
            false => command::Wish { seats, ga, best: None },
        };
        self.wish(buyer, Command::PlaceHold { event: HALL, manifest_version: 1, account, wish, code });
    }

    fn best_wished(&mut self, count: usize) -> Best {
        Best {
            quantity: count as u32,
            price_level: self.chance.percent(20).then(|| self.chance.below(2) as u16),
            section: None,
            accessible: false,
            split_rows: self.chance.percent(30),
        }
    }

    /// How many places of which areas.
    fn places_wished(&mut self) -> Vec<(AreaNo, u32)> {
        let areas = self.plan.areas.len();
        if areas == 0 || self.chance.percent(45) {
            return Vec::new();
        }
        let first = self.chance.below(areas);
        let mut ga = vec![(AreaNo(first as u16), self.chance.between(1, 3) as u32)];
        if first + 1 < areas && self.chance.percent(30) {
            ga.push((AreaNo(first as u16 + 1), 1));
        }
        ga
    }

    /// A code that the buyer has; with that of the party they want what is set aside for it.
    fn code_in_hand(&mut self, seats: &mut Vec<SeatOrdinal>) -> Option<Arc<str>> {
        self.plan.access.as_ref()?;
        let at = match self.chance.below(10) {
            0..=2 => 0,
            3..=4 => 1,
            _ => return None,
        };
        if at == 0 && self.chance.percent(60) {
            let aside = self.database.world.seats.iter().filter(|(_, seat)| seat.allocation.is_some());
            let aside: Vec<SeatOrdinal> = aside.map(|((_, ordinal), _)| *ordinal).collect();
            if let Some(seat) = self.chance.pick(&aside).copied() {
                *seats = vec![seat];
            }
        }
        Some(CODES[at].into())
    }

    fn with_seats(&mut self, buyer: usize, hold: Box<PlacedHold>) {
        let account = self.buyers[buyer].account.clone();
        match self.chance.below(20) {
            // Forgets about it.
            0..=1 => self.wake(buyer, 5_000),
            2 => self.wish(buyer, Command::ReleaseHold { hold: hold.hold.id, account: Some(account) }),
            _ => self.pay(buyer, hold),
        }
    }

    fn pay(&mut self, buyer: usize, hold: Box<PlacedHold>) {
        let account = self.buyers[buyer].account.clone();
        let card = format!("card_{}", self.fresh());
        let id = hold.hold.id;
        self.buyers[buyer].stage = Stage::Holding(hold);
        let checkout = Command::Checkout {
            hold: id,
            account,
            payment_method_token: card,
            email: None,
            return_url: None,
        };
        self.wish(buyer, checkout);
    }

    /// Looks at the order.
    fn watch(
        &mut self,
        buyer: usize,
        hold: Box<PlacedHold>,
        order: OrderId,
        cards: u32,
    ) -> Result<(), Broken> {
        let seen = self.database.world.orders.get(&order).map(|row| (row.status, row.payment_status));
        let Some((status, payment)) = seen else {
            return Err(Broken::new("client: nothing acknowledged is lost", format!("{order} is nowhere")));
        };
        match (status, payment) {
            (OrderStatus::Confirmed, _) => {
                self.ledger.saw_confirmed(order);
                if cards > 1 {
                    self.coverage.saw(Sometimes::SecondCard);
                }
                self.wake(buyer, 2_000);
            }
            (OrderStatus::Cancelled | OrderStatus::Expired, _) => self.wake(buyer, 2_000),
            (OrderStatus::AwaitingPayment, PaymentStatus::Declined) if cards < CARDS_MAX => {
                self.buyers[buyer].stage = Stage::Watching { hold: hold.clone(), order, cards: cards + 1 };
                let account = self.buyers[buyer].account.clone();
                let card = format!("card_{}", self.fresh());
                let hold = hold.hold.id;
                let checkout = Command::Checkout {
                    hold,
                    account,
                    payment_method_token: card,
                    email: None,
                    return_url: None,
                };
                self.wish(buyer, checkout);
            }
            (OrderStatus::AwaitingPayment, PaymentStatus::RequiresAction) => {
                if self.faults && self.chance.percent(20) {
                    self.elsewhere(buyer, &hold);
                }
                self.act(order);
                self.buyers[buyer].stage = Stage::Watching { hold, order, cards };
                let wait = self.chance.between(500, 6_000);
                self.wake(buyer, wait);
            }
            (OrderStatus::AwaitingPayment, _) => {
                if self.faults && self.chance.percent(12) {
                    self.elsewhere(buyer, &hold);
                }
                // Closes the window, now and then.
                let goes = self.chance.percent(4);
                self.buyers[buyer].stage =
                    if goes { Stage::Idle } else { Stage::Watching { hold, order, cards } };
                let wait = self.chance.between(500, 4_000);
                self.wake(buyer, if self.faults { wait } else { wait * 5 });
            }
        }
        Ok(())
    }

    /// In another window the same buyer pays again, or gives the seats back.
    fn elsewhere(&mut self, buyer: usize, hold: &PlacedHold) {
        let (account, hold) = (self.buyers[buyer].account.clone(), hold.hold.id);
        let command = match self.chance.percent(50) {
            true => Command::ReleaseHold { hold, account: Some(account) },
            false => {
                let card = format!("card_{}", self.fresh());
                Command::Checkout { hold, account, payment_method_token: card, email: None, return_url: None }
            }
        };
        let wish = Wish::new(self.fresh(), command);
        self.send(buyer, &wish);
    }

    /// Proves who they are, where the provider asks for it.
    fn act(&mut self, order: OrderId) {
        if self.chance.percent(40) {
            return;
        }
        let waits = |intent: &crate::provider::Intent| intent.order == order;
        let names: Vec<String> =
            self.provider.intents.iter().filter(|(_, i)| waits(i)).map(|(name, _)| name.clone()).collect();
        let paid = success(self.plan.charge);
        for name in names {
            if self.provider.acted(&name, paid.clone(), self.now, &mut self.chance) {
                self.coverage.saw(Sometimes::ActionDone);
            }
        }
        self.send_messages();
    }

    fn wish(&mut self, buyer: usize, command: Command) {
        self.buyers[buyer].wish = Some(Wish::new(self.fresh(), command));
        self.ask(buyer);
        // Clicks twice.
        if self.faults && self.chance.percent(10) {
            self.ask(buyer);
        }
    }

    /// Asks for what is wished, once more.
    fn ask(&mut self, buyer: usize) {
        let Some(wish) = &mut self.buyers[buyer].wish else {
            return;
        };
        wish.tries += 1;
        if wish.tries > 8 && self.faults {
            self.buyers[buyer].wish = None;
            self.buyers[buyer].stage = Stage::Idle;
            return self.wake(buyer, 5_000);
        }
        let wish = wish.clone();
        let call = self.send(buyer, &wish);
        let patience = self.chance.of(&[3_000, 8_000]);
        self.after(patience, Event::Patience { call });
    }

    /// Puts a request on its way.
    fn send(&mut self, buyer: usize, wish: &Wish) -> u64 {
        let keyed = !matches!(wish.command, Command::ReleaseHold { .. });
        let key = keyed.then_some(wish.key);
        let (wish, command) = (wish.id, wish.command.clone());
        let call = self.fresh();
        self.trace.say(self.now, format_args!("buyer {buyer} asks {call}: {command:?}"));
        self.calls.insert(call, Call { buyer, wish, command, key });
        let lost = if self.faults { self.plan.lost } else { 0 };
        if self.chance.percent(lost) {
            return call;
        }
        let process = self.chance.below(self.plan.processes);
        let wait = self.latency();
        if lost > 0 && self.chance.percent(4) {
            // The network sends it twice.
            let other = self.chance.below(self.plan.processes);
            let again = self.latency();
            self.after(again, Event::Request { process: other, call });
        }
        self.after(wait, Event::Request { process, call });
        call
    }

    /// A process answers a client.
    pub(crate) fn tell(&mut self, call: u64, heard: Heard) {
        let lost = if self.faults { self.plan.lost } else { 0 };
        if self.chance.percent(lost) {
            return;
        }
        let wait = self.latency();
        self.after(wait, Event::Answer { call, heard });
    }

    /// The wish that a call is for, when it is still open.
    fn wish_of(&self, call: u64) -> Option<usize> {
        let call = self.calls.get(&call)?;
        let open = self.buyers[call.buyer].wish.as_ref().is_some_and(|wish| wish.id == call.wish);
        open.then_some(call.buyer)
    }

    /// The client has waited long enough: it may or may not have been done.
    pub(crate) fn patience(&mut self, call: u64) {
        if let Some(buyer) = self.wish_of(call) {
            self.retry(buyer, false);
        }
    }

    fn retry(&mut self, buyer: usize, not_done: bool) {
        let fresh = self.fresh();
        let another = self.chance.percent(if not_done { 40 } else { 8 });
        if another && let Some(wish) = &mut self.buyers[buyer].wish {
            wish.key.id = fresh.into();
        }
        let wait = self.chance.between(100, 2_000);
        self.wake(buyer, wait);
    }

    /// An answer arrives at a client.
    pub(crate) fn answer(&mut self, call: u64, heard: Heard) -> Result<(), Broken> {
        let Some(buyer) = self.wish_of(call) else {
            return Ok(());
        };
        self.trace.say(self.now, format_args!("buyer {buyer} hears {heard:?}"));
        let outcome = match heard {
            Heard::Decided(outcome) => *outcome,
            Heard::NotDone => {
                self.retry(buyer, true);
                return Ok(());
            }
            Heard::Unknown => {
                self.retry(buyer, false);
                return Ok(());
            }
        };
        let chosen =
            |wish: &Wish| matches!(&wish.command, Command::PlaceHold { wish, .. } if wish.best.is_some());
        let chosen = self.buyers[buyer].wish.as_ref().is_some_and(chosen);
        self.buyers[buyer].wish = None;
        match outcome {
            Outcome::HoldPlaced(placed) => {
                let at = self.thinks_until(placed.hold.expires_at);
                self.buyers[buyer].stage = Stage::Holding(Box::new(placed));
                self.wake_at(buyer, at);
            }
            Outcome::CheckoutBegun(order) => {
                let stage = std::mem::replace(&mut self.buyers[buyer].stage, Stage::Idle);
                self.buyers[buyer].stage = match stage {
                    Stage::Holding(hold) => Stage::Watching { hold, order, cards: 1 },
                    other => other,
                };
                self.wake(buyer, 1_000);
            }
            Outcome::Refused(refusal) => {
                match refusal {
                    Refusal::NotEnoughAvailable { area: None } if chosen => {}
                    Refusal::PriceChanged => self.coverage.saw(Sometimes::PriceChanged),
                    Refusal::AccountLimit { .. } => self.coverage.saw(Sometimes::LimitReached),
                    Refusal::PaymentsSaturated => self.coverage.saw(Sometimes::Saturated),
                    Refusal::EventPaused => self.coverage.saw(Sometimes::Paused),
                    Refusal::NotEnoughAvailable { area: Some(_) } => self.coverage.saw(Sometimes::AreaFull),
                    Refusal::NotEnoughAvailable { area: None } => self.coverage.saw(Sometimes::EventFull),
                    Refusal::AccessCodeExhausted { .. } => self.coverage.saw(Sometimes::CodeExhausted),
                    Refusal::AccessCodeInvalid(_) => self.coverage.saw(Sometimes::CodeWithdrawn),
                    Refusal::KeyReused => {
                        return Err(Broken::new("client: a key is its own", format!("{refusal:?}")));
                    }
                    _ => {}
                }
                // What isn't paid is left to its deadline, or tried again.
                if !matches!(self.buyers[buyer].stage, Stage::Watching { .. }) || !self.faults {
                    self.buyers[buyer].stage = Stage::Idle;
                }
                let wait = self.chance.between(500, 8_000);
                self.wake(buyer, wait);
            }
            _ => self.wake(buyer, 3_000),
        }
        Ok(())
    }

    /// Thinks for a moment, or for too long, or until the very end.
    fn thinks_until(&mut self, deadline: Timestamp) -> i64 {
        let at = deadline.millis();
        match self.chance.below(10) {
            0..=4 => self.now + self.chance.between(0, 4_000),
            5..=6 => self.now + self.chance.between(0, (at - self.now).max(1)),
            7..=8 => at + self.chance.of(&[-5_001, -5_000, -4_999, -1, 0, 1]),
            _ => at + self.chance.between(0, 20_000),
        }
    }
}
