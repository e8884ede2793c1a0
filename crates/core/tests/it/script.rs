//! A page of text is a test: one line for each step, with its time, its action and what must come of it, and lines that
//! say how things stand.
//!
//! ```text
//! hall A1 A2 price 1000; ttl 10s grace 0s in_doubt release      the event; A and B are price levels
//! 100s ada holds A1 as h1 -> held until 110s                    a step
//! 100s ada pays h1 as o1 -> begun; h1 PAYMENT_PENDING until 110s    a step and how things stand after it
//! o1 AWAITING_PAYMENT PENDING; A1 held by h1                    how things stand
//! together                                                      the steps up to `end` share one snapshot, and
//! 101s ben holds A2 -> held until 111s                          must come out as one after the other
//! end
//! ```
//!
//! An unknown word is a fault of the page.

mod action;
mod fact;
mod gate;
mod say;
mod words;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use onsale_core::command::{Command, Decision, Outcome, Request};
use onsale_core::event::{Event, EventStatus, InDoubt, OrphanSeats, PaymentMode};
use onsale_core::id::{AccountId, HoldId, OrderId, SeatOrdinal};
use onsale_core::manifest::{GaArea, Manifest, ManifestSeat, PriceLevel};
use onsale_core::time::Timestamp;

use crate::world::{HALL, World, event};
use action::Step;
use words::Words;

/// Runs a page.
pub(crate) fn check(text: &str) {
    let mut page = Page::default();
    let mut batch: Option<Vec<(Step, &str)>> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split("//").next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let done = catch_unwind(AssertUnwindSafe(|| page.line(line, &mut batch)));
        if let Err(panic) = done {
            let why = panic.downcast_ref::<String>().map(String::as_str);
            let why = why.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no word");
            panic!("line {number}: {line}\n{why}\n\n{}", page.world_text());
        }
    }
    assert!(batch.is_none(), "`together` without `end`");
}

/// What a page has said so far.
pub(crate) struct Page {
    pub(crate) world: World,
    pub(crate) holds: BTreeMap<String, HoldId>,
    pub(crate) orders: BTreeMap<String, OrderId>,
    seats: Vec<String>,
    requests: u64,
}

impl Default for Page {
    fn default() -> Page {
        Page {
            world: World::new(),
            holds: BTreeMap::new(),
            orders: BTreeMap::new(),
            seats: Vec::new(),
            requests: 0,
        }
    }
}

impl Page {
    fn line<'a>(&mut self, line: &'a str, batch: &mut Option<Vec<(Step, &'a str)>>) {
        match (line, batch.take()) {
            ("together", None) => *batch = Some(Vec::new()),
            ("end", Some(steps)) => self.run(steps),
            (line, None) if line.starts_with("hall ") => self.open_hall(Words::of(line)),
            (line, steps) => {
                let (left, right) = line.split_once("->").unwrap_or(("", line));
                let mut facts = right.split(';').map(str::trim);
                if left.is_empty() {
                    assert!(steps.is_none(), "a step is expected");
                    return facts.for_each(|text| self.fact(text));
                }
                let step = self.step(Words::of(left));
                let expected = facts.next().unwrap_or_default();
                match steps {
                    Some(mut steps) => {
                        assert_eq!(facts.next(), None, "facts follow after `end`");
                        steps.push((step, expected));
                        *batch = Some(steps);
                    }
                    None => {
                        self.run(vec![(step, expected)]);
                        facts.for_each(|text| self.fact(text));
                    }
                }
            }
        }
    }

    /// Runs steps over one snapshot, and beside it one after the other: it must come to the same.
    fn run(&mut self, steps: Vec<(Step, &str)>) {
        let now = steps.first().expect("a batch has steps").0.at;
        assert!(steps.iter().all(|(step, _)| step.at == now), "a batch has one time");
        let requests: Vec<Request> = steps.iter().map(|(step, _)| step.request.clone()).collect();
        let mut singly = self.world.clone();
        let before = self.world.clone();
        let decisions = self.world.run(&requests, now);
        self.wakes_who_waits(&before);
        if requests.len() > 1 {
            let expected: Vec<Decision> =
                requests.iter().flat_map(|request| singly.run(std::slice::from_ref(request), now)).collect();
            assert_eq!(decisions, expected, "a batch decides as its requests do one by one");
            assert!(self.world == singly, "a batch leaves the rows that its requests leave one by one");
        }
        for ((step, expected), decision) in steps.into_iter().zip(decisions) {
            let got = self.take_in(step, &decision);
            assert!(got == expected, "expected: {expected}\n     got: {got}");
        }
    }

    /// Whoever waits for an order follows the log: an order never changes without an entry about it.
    fn wakes_who_waits(&self, before: &World) {
        let entries = &self.world.log[before.log.len()..];
        for (id, order) in self.world.orders.iter() {
            let moved = before.orders.get(id) != Some(order);
            let told = entries.iter().any(|entry| entry.kind.order() == Some(*id));
            assert!(told || !moved, "nobody is told that {order:?} has changed: {entries:?}");
        }
    }

    /// Names what a step has made, and says what came of it.
    fn take_in(&mut self, step: Step, decision: &Decision) -> String {
        match (&decision.outcome, step.name) {
            (Outcome::HoldPlaced(placed), Some(name)) => self.name_hold(name, placed.hold.id),
            (Outcome::CheckoutBegun(order), Some(name)) => self.name_order(name, *order),
            _ => {}
        }
        self.say(decision)
    }

    /// Opens a hall or takes a step, and says what came of it: for those who write pages.
    pub(crate) fn tell(&mut self, line: &str) -> String {
        if line.starts_with("hall ") {
            self.open_hall(Words::of(line));
            return String::new();
        }
        let step = self.step(Words::of(line));
        let decision = self.world.run(std::slice::from_ref(&step.request), step.at).remove(0);
        self.take_in(step, &decision)
    }

    fn name_hold(&mut self, name: String, id: HoldId) {
        let known = self.holds.insert(name.clone(), id);
        assert!(known.is_none_or(|known| known == id), "{name} is the name of another hold");
    }

    fn name_order(&mut self, name: String, id: OrderId) {
        let known = self.orders.insert(name.clone(), id);
        assert!(known.is_none_or(|known| known == id), "{name} is the name of another order");
    }

    /// `hall A1 A2 B1 price 1000; ttl 10s grace 0s ...`: makes the event, lays it out, prices and opens it.
    fn open_hall(&mut self, mut words: Words<'_>) {
        words.expect("hall");
        let seats: Vec<String> = words.until("price").into_iter().map(str::to_owned).collect();
        let price = words.number();
        let mut row = event(HALL);
        let (mut draft, mut pitch) = (false, 0);
        while let Some(word) = words.next_if_any() {
            let policy = &mut row.policy;
            match word {
                "ttl" => policy.hold_ttl_ms = words.time().millis(),
                "grace" => policy.payment_grace_ms = words.time().millis(),
                "in_doubt" => {
                    policy.in_doubt = match words.next() {
                        "keep" => InDoubt::Keep,
                        "release" => InDoubt::Release,
                        other => panic!("in_doubt {other}?"),
                    }
                }
                "reentry" => policy.reentry = true,
                "charge" => policy.payment = PaymentMode::Charge,
                "seats_max" => policy.seats_per_hold_max = words.number() as u32,
                "tickets_max" => policy.tickets_per_account_max = words.number() as u32,
                "account_pending_max" => policy.payment_pending_per_account_max = words.number() as u32,
                "pending_max" => policy.payment_pending_max = words.number() as u32,
                "on_sale" => row.on_sale_at = Some(words.time()),
                "off_sale" => row.off_sale_at = Some(words.time()),
                "avoids_orphans" => policy.orphan_seats = OrphanSeats::Avoid,
                "draft" => draft = true,
                "pitch" => pitch = words.number() as u32,
                other => panic!("what is {other}?"),
            }
        }
        self.set_up(row, &seats, pitch, price, draft);
    }

    fn set_up(&mut self, row: Event, seats: &[String], pitch: u32, price: i64, draft: bool) {
        let manifest = manifest(seats, pitch);
        let levels = (0..manifest.price_levels.len() as u16).map(|level| (level, price)).collect();
        let mut commands = vec![
            Command::CreateEvent(Box::new(row)),
            Command::ReplaceManifest { event: HALL, manifest },
            Command::SetPrices { event: HALL, manifest_version: 1, levels },
        ];
        if !draft {
            let actor = "olga".to_owned();
            commands.push(Command::SetOnSale { event: HALL, status: EventStatus::Open, actor });
        }
        for command in commands {
            let request = self.request(command, None, Timestamp::ZERO);
            let decided = self.world.run(&[request], Timestamp::ZERO);
            let refused = matches!(decided[0].outcome, Outcome::Refused(_));
            assert!(!refused, "the hall opens: {decided:?}");
        }
        self.seats = seats.to_vec();
    }

    pub(crate) fn ordinal(&self, label: &str) -> SeatOrdinal {
        let at = self.seats.iter().position(|seat| seat == label);
        SeatOrdinal(at.unwrap_or_else(|| panic!("there is no seat {label}")) as u32)
    }

    pub(crate) fn label(&self, ordinal: SeatOrdinal) -> &str {
        &self.seats[ordinal.0 as usize]
    }
}

/// Seats in the order given; the letter of a seat's label is its price level. A pitch takes so many people beside them, for
/// the first price.
fn manifest(seats: &[String], pitch: u32) -> Arc<Manifest> {
    let mut levels: Vec<char> = Vec::new();
    let mut rows = Vec::new();
    for (rank, label) in (0..).zip(seats) {
        let letter = label.chars().next().expect("a seat has a label");
        let level = levels.iter().position(|known| *known == letter).unwrap_or(levels.len());
        if level == levels.len() {
            levels.push(letter);
        }
        rows.push(ManifestSeat {
            seat_id: label.clone(),
            section: 0,
            row: letter.to_string(),
            seat: label.clone(),
            price_level: level as u16,
            x: 0.0,
            y: 0.0,
            rank,
            accessible: false,
            companion_of: None,
            restricted_view: false,
            not_for_sale: false,
        });
    }
    let price_levels = levels.iter().map(|letter| PriceLevel { name: letter.to_string(), color: None });
    let area = |capacity| GaArea { ga_area: "pitch".to_owned(), capacity, buckets: 1, price_level: 0 };
    let ga_areas = (pitch > 0).then(|| area(pitch)).into_iter();
    Arc::new(Manifest {
        price_levels: price_levels.collect(),
        sections: vec!["stalls".to_owned()],
        seats: rows,
        ga_areas: ga_areas.collect(),
    })
}

pub(crate) fn account(name: &str) -> AccountId {
    AccountId::parse(name).expect("a name is an account id")
}
