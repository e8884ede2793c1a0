//! Standing places where a page can't say it: what was found by simulated worlds.

use std::sync::Arc;

use onsale_core::command::{Command, Outcome, Request, Wish, decide};
use onsale_core::event::{EventStatus, InDoubt};
use onsale_core::id::{AreaNo, HoldId, Seed};
use onsale_core::log::LogEntry;
use onsale_core::manifest::{GaArea, Manifest, PriceLevel};
use onsale_core::snapshot::Snapshot;
use onsale_core::time::Timestamp;

use crate::script::account;
use crate::world::{HALL, World, event};

/// An open sale of one standing area, whose doubts the clock ends.
fn pitch(capacity: u32) -> World {
    let area = GaArea { ga_area: "pitch".to_owned(), capacity, buckets: 2, price_level: 0 };
    let price_levels = vec![PriceLevel { name: "A".to_owned(), color: None }];
    let (sections, seats, ga_areas) = (Vec::new(), Vec::new(), vec![area]);
    let manifest = Arc::new(Manifest { price_levels, sections, seats, ga_areas });
    let (status, actor) = (EventStatus::Open, "olga".to_owned());
    let mut row = event(HALL);
    row.policy.in_doubt = InDoubt::Release;
    let mut world = World::new();
    for command in [
        Command::CreateEvent(Box::new(row)),
        Command::ReplaceManifest { event: HALL, manifest },
        Command::SetPrices { event: HALL, manifest_version: 1, levels: vec![(0, 1_000)] },
        Command::SetOnSale { event: HALL, status, actor },
    ] {
        run(&mut world, 0, 0, command);
    }
    world
}

fn request(at: i64, chance: u64, command: Command) -> Request {
    Request { command, key: None, seed: Seed::new(HALL, Timestamp::from_millis(at), chance << 8) }
}

fn run(world: &mut World, at: i64, chance: u64, command: Command) -> Outcome {
    world.run(&[request(at, chance, command)], Timestamp::from_millis(at)).remove(0).outcome
}

fn holds(name: &str, quantity: u32) -> Command {
    let wish = Wish { seats: Vec::new(), ga: vec![(AreaNo(0), quantity)], best: None };
    Command::PlaceHold { event: HALL, manifest_version: 1, account: account(name), wish, code: None }
}

/// Two holds end at the same instant, and a third takes their places. Their open payments are called off in one order, with
/// the same ids, whichever of them a store read first.
#[test]
fn holds_of_one_instant_end_in_one_order() {
    let mut world = pitch(4);
    for (chance, name) in [(1, "ada"), (2, "ben")] {
        let Outcome::HoldPlaced(placed) = run(&mut world, 0, chance, holds(name, 2)) else {
            panic!("{name} has two places");
        };
        let (hold, payment_method_token) = (placed.hold.id, "pm_card".to_owned());
        let (email, return_url) = (None, None);
        let pays =
            Command::Checkout { hold, account: account(name), payment_method_token, email, return_url };
        run(&mut world, 0, chance + 10, pays);
    }
    let deadlines: Vec<_> = world.holds.values().map(|hold| hold.expires_at).collect();
    assert_eq!(deadlines[0], deadlines[1]);
    let late = request(1_000_000, 3, holds("eve", 4));
    let ids: Vec<HoldId> = world.holds.keys().copied().collect();
    let logs = [ids.clone(), ids.into_iter().rev().collect()].map(|due| -> Vec<LogEntry> {
        let mut snapshot = Snapshot::new([&late], Timestamp::from_millis(1_000_000));
        // What is here already stays: the store's own order is not asked.
        snapshot.load_due(HALL, due);
        world.fill(&mut snapshot);
        let decision = decide(&mut snapshot, &late);
        assert!(matches!(decision.outcome, Outcome::HoldPlaced(_)), "{decision:?}");
        snapshot.log
    });
    assert_eq!(logs[0], logs[1]);
    assert!(logs[0].len() > 3, "both holds end, and a third is placed");
}
