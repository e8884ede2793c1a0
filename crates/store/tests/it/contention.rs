//! Many threads and many programs over one file.

use std::sync::Barrier;
use std::thread;

use onsale_core::command::{Command, Outcome};
use onsale_core::gateway::IntentState;
use onsale_core::id::EventNo;
use onsale_core::reconcile::{Callback, Verdict};
use onsale_core::refusal::Refusal;
use onsale_core::time::Timestamp;

use crate::world::{HALL, account, ada, hall, ordinals, place_hold, policy, request};

/// sixteen threads, each with its own connections and its own writer; one seat; one winner.
#[test]
fn sixteen_programs_want_one_seat() {
    let world = hall(1, policy());
    let start = Barrier::new(16);
    let outcomes: Vec<Outcome> = thread::scope(|scope| {
        let buyer = |number: u32| {
            let (start, world) = (&start, &world);
            scope.spawn(move || {
                let store = world.another_store();
                start.wait();
                let command = place_hold(&account(&format!("acc_{number}")), &[0]);
                store.submit_blocking(request(command, world.now())).expect("the store decides").outcome
            })
        };
        let buyers: Vec<_> = (0..16).map(buyer).collect();
        buyers.into_iter().map(|buyer| buyer.join().expect("a buyer ends well")).collect()
    });
    let lost = Outcome::Refused(Refusal::SeatUnavailable(ordinals(&[0])));
    let (won, others): (Vec<_>, Vec<_>) =
        outcomes.into_iter().partition(|outcome| matches!(outcome, Outcome::HoldPlaced(_)));
    assert_eq!(won.len(), 1, "{won:?}");
    assert_eq!(others, vec![lost; 15]);
    assert_eq!(world.digits(), "1");
    world.finish();
}

/// overlapping triples by many threads over two programs: all or none of each.
#[test]
fn overlapping_triples_are_held_whole_or_not_at_all() {
    const SEATS: u32 = 30;
    let world = hall(SEATS, policy());
    let other = world.another_store();
    let stores = [&*world.store, &other];
    thread::scope(|scope| {
        for number in 0..8_u32 {
            let (store, world) = (stores[number as usize % 2], &world);
            scope.spawn(move || {
                let mut chance = Chance(u64::from(number) + 1);
                let mut mine = Vec::new();
                for round in 0..60 {
                    let triple = chance.triple(SEATS);
                    let buyer = account(&format!("acc_{number}_{round}"));
                    let command = place_hold(&buyer, &triple);
                    let decision = store.submit_blocking(request(command, world.now()));
                    match decision.expect("the store decides").outcome {
                        Outcome::HoldPlaced(placed) => {
                            assert_eq!(placed.hold.seats, ordinals(&triple));
                            mine.push(placed.hold.id);
                        }
                        Outcome::Refused(Refusal::SeatUnavailable(blockers)) => {
                            let asked = ordinals(&triple);
                            assert!(!blockers.is_empty() && blockers.iter().all(|seat| asked.contains(seat)));
                            // Whoever can't have more gives one back, so that the contest goes on.
                            if let Some(hold) = mine.pop() {
                                let command = Command::ReleaseHold { hold, account: None };
                                let released = store.submit_blocking(request(command, world.now()));
                                assert_eq!(
                                    released.expect("the store decides").outcome,
                                    Outcome::HoldReleased
                                );
                            }
                        }
                        other => panic!("{other:?}"),
                    }
                }
            });
        }
    });
    assert_eq!(world.digits().matches('1').count() % 3, 0);
    drop(other);
    world.finish();
}

/// The same message comes to two programs at the same instant: it is applied once.
#[test]
fn a_message_that_comes_twice_at_once_is_applied_once() {
    let world = hall(10, policy());
    let other = world.another_store();
    for seat in 0..10 {
        let name = format!("pi_{seat}");
        let buyer = account(&format!("acc_{seat}"));
        let (order, attempt) = world.checkout_as(world.hold(&buyer, &[seat]), &buyer, &name);
        let callback = Callback {
            provider_event_id: format!("evt_{seat}"),
            event: EventNo::HOUSE,
            digest: 1,
            kind: "payment_intent.succeeded".to_owned(),
            reference: Some(name.clone()),
            claimed_order: Some(order),
            verdict: Verdict::Parked,
            received_at: Timestamp::ZERO,
            due_at: Timestamp::ZERO,
            case: None,
        };
        let observation = Some(world.observed(order, attempt, &name, IntentState::Authorized));
        let command =
            Command::JudgeCallback { event: HALL, callback: Box::new(callback), observation, relevant: true };
        let start = Barrier::new(2);
        let mut verdicts = thread::scope(|scope| {
            let judges = [&*world.store, &other].map(|store| {
                let (start, command, now) = (&start, command.clone(), world.now());
                scope.spawn(move || {
                    start.wait();
                    store.submit_blocking(request(command, now)).expect("the store decides").outcome
                })
            });
            judges.map(|judge| judge.join().expect("a judge ends well"))
        });
        verdicts.sort_by_key(|verdict| *verdict != Outcome::Judged(Verdict::Applied));
        assert_eq!(verdicts, [Verdict::Applied, Verdict::Duplicate].map(Outcome::Judged));
    }
    drop(other);
    assert_eq!(world.digits(), "2".repeat(10));
    world.finish();
}

/// Readers see whole states while writers go on: the log never ends before or after what the seats show.
#[test]
fn readers_see_one_state_while_writers_go_on() {
    let world = hall(20, policy());
    let done = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::SeqCst) {
                    let seats = world.store.read(|db| db.seat_digits(HALL)).unwrap().expect("it exists");
                    let mut shown = [b'0'; 20];
                    let mut version = 0;
                    while version < seats.version {
                        let left = (seats.version - version) as u32;
                        let read = world.store.read(|db| db.seat_changes(HALL, version, left));
                        let changes = read.unwrap().expect("the log reaches back");
                        version = changes.version;
                        changes
                            .changes
                            .iter()
                            .for_each(|(_, seat, digit)| shown[seat.0 as usize] = b'0' + digit);
                    }
                    assert_eq!(shown, *seats.digits);
                }
            });
        }
        for _ in 0..100 {
            let hold = world.hold(&ada(), &[3, 4, 5]);
            world.submit(Command::ReleaseHold { hold, account: None });
        }
        done.store(true, std::sync::atomic::Ordering::SeqCst);
    });
    world.finish();
}

/// Xorshift: chance that is the same on every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % u64::from(bound)) as u32
    }

    fn triple(&mut self, seats: u32) -> Vec<u32> {
        let mut triple = std::collections::BTreeSet::new();
        while triple.len() < 3 {
            triple.insert(self.below(seats));
        }
        triple.into_iter().collect()
    }
}
