//! The best seats, chosen in the transaction that holds them, on boards that are kept between batches.

use std::collections::BTreeSet;
use std::sync::Arc;

use onsale_core::access::AccessCode;
use onsale_core::best_available::{Best, choose};
use onsale_core::board::Board;
use onsale_core::command::{Command, Outcome, Wish};
use onsale_core::event::{EventStatus, OrphanSeats, Policy};
use onsale_core::hold::HoldStatus;
use onsale_core::id::{AccountId, AllocationNo, EventNo, HoldId};
use onsale_core::layout::Layout;
use onsale_core::manifest::{Manifest, ManifestSeat, PriceLevel};
use onsale_core::refusal::Refusal;
use onsale_store::{BOARD_ENTRIES_MAX, Store, SubmitError};

use crate::world::{HALL, World, account, ada, ask, ben, draft, ordinals, place_hold, policy, request};

fn avoiding() -> Policy {
    Policy { orphan_seats: OrphanSeats::Avoid, ..policy() }
}

/// Rows of seats at one price, the middle of the first the best.
fn rows(rows: u32, places: u32) -> Manifest {
    let seat = |ordinal: u32| {
        let (row, place) = (ordinal / places, ordinal % places);
        ManifestSeat {
            seat_id: format!("S-{ordinal}"),
            section: 0,
            row: row.to_string(),
            seat: (2 * place).to_string(),
            price_level: 0,
            x: f64::from(place),
            y: f64::from(row),
            rank: 20 * row + (2 * place + 1).abs_diff(places),
            accessible: false,
            companion_of: None,
            restricted_view: false,
            not_for_sale: false,
        }
    };
    Manifest {
        price_levels: vec![PriceLevel { name: "all".to_owned(), color: None }],
        sections: vec!["stalls".to_owned()],
        seats: (0..rows * places).map(seat).collect(),
        ga_areas: Vec::new(),
    }
}

fn sale(manifest: &Manifest, policy: Policy) -> World {
    let world = World::empty();
    let actor = || "test".to_owned();
    let levels = (0..manifest.price_levels.len() as u16).map(|level| (level, 5_000)).collect();
    for command in [
        Command::CreateEvent(Box::new(draft(HALL, policy))),
        Command::ReplaceManifest { event: HALL, manifest: Arc::new(manifest.clone()) },
        Command::SetPrices { event: HALL, manifest_version: 1, levels },
        Command::SetOnSale { event: HALL, status: EventStatus::Open, actor: actor() },
    ] {
        let outcome = world.submit(command);
        assert!(!matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
    }
    world
}

fn best(quantity: u32) -> Best {
    Best { quantity, price_level: None, section: None, accessible: false, split_rows: false }
}

fn wish_with(account: &AccountId, best: Best, code: Option<&str>) -> Command {
    Command::PlaceHold {
        event: HALL,
        manifest_version: 1,
        account: account.clone(),
        wish: Wish { best: Some(best), ..Wish::default() },
        code: code.map(Arc::from),
    }
}

fn wish(account: &AccountId, quantity: u32) -> Command {
    wish_with(account, best(quantity), None)
}

#[track_caller]
fn chosen(outcome: Outcome) -> Vec<u32> {
    let Outcome::HoldPlaced(placed) = outcome else { panic!("no seats were chosen: {outcome:?}") };
    placed.hold.seats.iter().map(|seat| seat.0).collect()
}

const NOT_ENOUGH: Outcome = Outcome::Refused(Refusal::NotEnoughAvailable { area: None });

#[test]
fn a_hundred_who_ask_at_once_are_given_a_hundred_runs() {
    let world = sale(&rows(10, 40), avoiding());
    let lock = world.lock();
    let buyers: Vec<AccountId> = (0..101).map(|buyer| account(&format!("b{buyer}"))).collect();
    let asked: Vec<_> =
        buyers.iter().map(|buyer| ask(&world.store, world.request(wish(buyer, 4)), None)).collect();
    drop(lock);
    let mut taken = BTreeSet::new();
    let mut outcomes: Vec<Outcome> = asked.into_iter().map(|asked| asked.outcome()).collect();
    // There are seats for a hundred.
    assert_eq!(outcomes.pop(), Some(NOT_ENOUGH));
    for outcome in outcomes {
        let seats = chosen(outcome);
        assert!(
            seats.windows(2).all(|pair| pair[0] + 1 == pair[1] && pair[0] / 40 == pair[1] / 40),
            "{seats:?}"
        );
        taken.extend(seats);
    }
    assert_eq!((taken.len(), world.digits()), (400, "1".repeat(400)));
    world.finish();
}

#[test]
fn the_same_key_gives_the_same_answer() {
    let world = sale(&rows(1, 10), avoiding());
    let first = world.submit_keyed(1, 1, wish(&ada(), 4));
    let others = chosen(world.submit(wish(&ben(), 4)));
    let again = world.submit_keyed(1, 1, wish(&ada(), 4));
    assert!(again.replayed && !first.replayed);
    assert_eq!(again.outcome, first.outcome);
    assert!(chosen(again.outcome).iter().all(|seat| !others.contains(seat)));
    assert_eq!(world.submit_keyed(2, 2, wish(&account("c"), 3)).outcome, NOT_ENOUGH);
    // By now there would be seats, but the request had its answer.
    world.pass_ms(policy().hold_ttl_ms);
    let again = world.submit_keyed(2, 2, wish(&account("c"), 3));
    assert_eq!((again.outcome, again.replayed), (NOT_ENOUGH, true));
    chosen(world.submit_keyed(3, 3, wish(&account("c"), 3)).outcome);
    world.finish();
}

#[test]
fn a_choice_takes_over_what_is_over_and_leaves_the_rest() {
    let world = sale(&rows(2, 2), avoiding());
    let front = world.hold(&ada(), &[0, 1]);
    world.pass_ms(1_000);
    let back = world.hold(&ben(), &[2, 3]);
    world.pass_ms(policy().hold_ttl_ms - 1_001);
    assert_eq!(world.submit(wish(&account("c"), 2)), NOT_ENOUGH);
    world.pass_ms(1);
    assert_eq!(chosen(world.submit(wish(&account("c"), 2))), [0, 1]);
    let status = |hold: HoldId| world.hold_view(hold).hold.status;
    assert_eq!((status(front), status(back)), (HoldStatus::Expired, HoldStatus::Active));
    world.finish();
}

#[test]
fn seats_set_aside_are_chosen_for_those_with_their_code_first() {
    let world = sale(&rows(3, 4), avoiding());
    let actor = || "test".to_owned();
    let make = Command::MakeAllocation { event: HALL, name: "friends".to_owned(), actor: actor() };
    let Outcome::AllocationMade(allocation) = world.submit(make) else { panic!("it can be made") };
    let code = AccessCode {
        code: "FRIENDS".into(),
        allocation: Some(allocation),
        presale: false,
        tickets_max: 100,
        tickets_in_use: 0,
        valid_from: None,
        valid_until: None,
        revoked_at: None,
        created_at: world.now(),
    };
    assert_eq!(
        world.submit(Command::SetAccessCode { event: HALL, code, actor: actor() }),
        Outcome::AccessCodeSet
    );
    let set_aside = |seats: &[u32], allocation: Option<AllocationNo>| {
        let seats = ordinals(seats);
        world.submit(Command::SetSeatsAside {
            event: HALL,
            manifest_version: 1,
            seats,
            allocation,
            actor: actor(),
        })
    };
    // The board is there before anything is set aside.
    assert_eq!(chosen(world.submit(wish(&ada(), 4))), [0, 1, 2, 3]);
    assert_eq!(set_aside(&[4, 5, 6, 7, 8, 9], Some(allocation)), Outcome::SeatsSetAside);
    assert_eq!(world.submit(wish(&ben(), 4)), NOT_ENOUGH);
    let with_code =
        |who: &str, quantity| world.submit(wish_with(&account(who), best(quantity), Some("FRIENDS")));
    assert_eq!(chosen(with_code("c", 4)), [4, 5, 6, 7]);
    assert_eq!(chosen(world.submit(wish(&ben(), 2))), [10, 11]);
    // Those set aside first, then anyone's.
    assert_eq!(set_aside(&[9], None), Outcome::SeatsSetAside);
    assert_eq!(chosen(with_code("d", 1)), [8]);
    assert_eq!(chosen(with_code("e", 1)), [9]);
    assert_eq!(with_code("f", 1), NOT_ENOUGH);
    world.finish();
}

#[test]
fn what_is_printed_is_read_with_the_board() {
    let mut manifest = rows(2, 4);
    manifest.seats[1].accessible = true;
    manifest.seats[2].companion_of = Some("S-1".to_owned());
    manifest.price_levels.push(PriceLevel { name: "back".to_owned(), color: None });
    manifest.sections.push("balcony".to_owned());
    for seat in &mut manifest.seats[4..] {
        (seat.section, seat.price_level) = (1, 1);
    }
    let world = sale(&manifest, policy());
    let ask = |who: &str, best| world.submit(wish_with(&account(who), best, None));
    assert_eq!(ask("a", Best { section: Some(0), ..best(2) }), NOT_ENOUGH);
    assert_eq!(chosen(ask("b", Best { price_level: Some(1), ..best(2) })), [5, 6]);
    assert_eq!(chosen(ask("c", Best { accessible: true, ..best(2) })), [1, 2]);
    assert_eq!(chosen(ask("d", Best { price_level: Some(0), ..best(1) })), [0]);
    world.finish();
}

#[test]
fn where_nothing_is_on_sale_nothing_is_chosen() {
    let world = World::empty();
    let event = Command::CreateEvent(Box::new(draft(HALL, policy())));
    assert_eq!(world.submit(event), Outcome::EventCreated);
    assert_eq!(world.submit(wish(&ada(), 1)), Outcome::Refused(Refusal::NotOnSale));
    let elsewhere = Command::PlaceHold {
        event: EventNo(7),
        manifest_version: 1,
        account: ada(),
        wish: Wish { best: Some(best(1)), ..Wish::default() },
        code: None,
    };
    assert_eq!(world.submit(elsewhere), Outcome::Refused(Refusal::NotFound));
    world.finish();
}

/// Seats laid out anew make the board that was kept one of another house.
#[test]
fn a_manifest_that_is_replaced_replaces_the_board() {
    let world = World::empty();
    assert_eq!(world.submit(Command::CreateEvent(Box::new(draft(HALL, policy())))), Outcome::EventCreated);
    for (version, manifest) in [(1, rows(1, 3)), (2, rows(2, 2))] {
        let seats = Arc::new(manifest);
        let outcome = world.submit(Command::ReplaceManifest { event: HALL, manifest: seats });
        assert_eq!(outcome, Outcome::ManifestReplaced { version });
        // Refused, but not before the board has been read.
        assert_eq!(world.submit(wish(&ada(), 2)), Outcome::Refused(Refusal::NotOnSale));
    }
    let prices = Command::SetPrices { event: HALL, manifest_version: 2, levels: vec![(0, 3_000)] };
    assert!(matches!(world.submit(prices), Outcome::PricesSet { .. }));
    let open = Command::SetOnSale { event: HALL, status: EventStatus::Open, actor: String::new() };
    assert_eq!(world.submit(open), Outcome::OnSaleSet);
    let Command::PlaceHold { event, account, wish, code, .. } = wish(&ada(), 2) else { unreachable!() };
    let place = Command::PlaceHold { event, manifest_version: 2, account, wish, code };
    assert_eq!(chosen(world.submit(place)), [0, 1]);
    world.finish();
}

/// What `choose` gives on the seats as they are stored.
fn expected(world: &World, layout: &Arc<Layout>, best: &Best) -> Option<Vec<u32>> {
    let seats = world.digits().into_bytes().into_iter().map(|digit| (digit - b'0', None, 1));
    let board = Board::new(Arc::clone(layout), 1, seats).expect("a digit for each seat");
    let seats = choose(&board, best, None, OrphanSeats::Avoid)?;
    Some(seats.into_iter().map(|seat| seat.0).collect())
}

/// Two processes change the same event by turns; the board of each has what the other did.
#[test]
fn a_board_that_is_behind_catches_up() {
    let manifest = rows(6, 20);
    let layout = Arc::new(Layout::of(&manifest));
    let world = sale(&manifest, avoiding());
    let other = world.another_store();
    let submit = |store: &Store, command| {
        store.submit_blocking(request(command, world.now())).expect("the store decides").outcome
    };
    let mut holds: Vec<HoldId> = Vec::new();
    let mut chance = 1u64;
    let mut draw = |bound: u64| {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (chance >> 33) % bound
    };
    let (mut found, mut none) = (0, 0);
    for step in 0..400 {
        let store = if draw(2) == 0 { &*world.store } else { &other };
        let buyer = account(&format!("b{step}"));
        let seat = draw(120) as u32;
        match draw(10) {
            0..=4 => {
                let split_rows = draw(3) == 0;
                let best = Best { split_rows, ..best(1 + draw(6) as u32) };
                let expected = expected(&world, &layout, &best);
                let outcome = submit(store, wish_with(&buyer, best, None));
                if let Outcome::HoldPlaced(placed) = &outcome {
                    holds.push(placed.hold.id);
                    found += 1;
                } else {
                    none += 1;
                }
                match expected {
                    Some(seats) => assert_eq!(chosen(outcome), seats, "step {step}"),
                    None => assert_eq!(outcome, NOT_ENOUGH, "step {step}"),
                }
            }
            5 | 6 => {
                if let Outcome::HoldPlaced(placed) = submit(store, place_hold(&buyer, &[seat])) {
                    holds.push(placed.hold.id);
                }
            }
            7 | 8 if !holds.is_empty() => {
                let hold = holds.swap_remove(draw(holds.len() as u64) as usize);
                submit(store, Command::ReleaseHold { hold, account: None });
            }
            _ => {
                let not_for_sale = draw(2) == 0;
                submit(store, set_status(seat, not_for_sale));
            }
        }
    }
    assert!(found > 50 && none > 10, "{found} {none}");
    other.close();
    world.finish();
}

fn set_status(seat: u32, not_for_sale: bool) -> Command {
    let (seats, actor) = (ordinals(&[seat]), "test".to_owned());
    Command::SetSeatsStatus { event: HALL, manifest_version: 1, seats, not_for_sale, actor }
}

/// Further behind than the log is worth reading.
#[test]
fn a_board_that_is_far_behind_is_read_anew() {
    let world = sale(&rows(2, 4), policy());
    assert_eq!(chosen(world.submit(wish(&ada(), 4))), [0, 1, 2, 3]);
    let other = world.another_store();
    let change = |at: u64| set_status(4, at.is_multiple_of(2));
    let asked: Vec<_> =
        (0..BOARD_ENTRIES_MAX + 100).map(|at| ask(&other, request(change(at), world.now()), None)).collect();
    asked.into_iter().for_each(|asked| assert_eq!(asked.outcome(), Outcome::SeatsStatusSet));
    assert_eq!(chosen(world.submit(wish(&ben(), 4))), [4, 5, 6, 7]);
    other.close();
    world.finish();
}

/// A board that is wrong costs a batch and no more: its rows are not what is stored, and the next reads anew.
#[test]
fn a_wrong_board_sells_nothing() {
    let world = sale(&rows(2, 4), policy());
    assert_eq!(chosen(world.submit(wish(&ada(), 4))), [0, 1, 2, 3]);
    // Behind the log's back.
    world.raw().execute("UPDATE seats SET status = 3 WHERE ordinal = 4");
    let refused = world.try_submit(wish(&ben(), 4));
    assert!(matches!(refused, Err(SubmitError::Unavailable(_))), "{refused:?}");
    assert_eq!(world.submit(wish(&ben(), 4)), NOT_ENOUGH);
    assert_eq!(chosen(world.submit(wish(&ben(), 3))), [5, 6, 7]);
    world.finish();
}
