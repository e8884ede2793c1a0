//! Moving an event from one home to another, while it is being sold.

mod crash;
mod refused;

use std::sync::Arc;

use onsale_core::command::{Answer, Command, Outcome};
use onsale_core::gateway::IntentState;
use onsale_core::id::{EventId, EventNo};
use onsale_core::limits::PARKED_RETRY_MS;
use onsale_core::order::OrderStatus;
use onsale_core::reconcile::Verdict;
use onsale_postgres_server::Server;
use onsale_store::{
    Clock, Home, HomeOptions, Homes, MoveError, Step, Store, SubmitError, cancel_move, move_event,
};

use crate::world::{
    HALL, KEY, Raw, World, account, ada, ask, ben, message, picture, place_hold, policy, request, wait_until,
};

/// The tables that have rows of an event, but for the events' own.
pub(crate) const TABLES: &[&str] = &[
    "access_codes",
    "allocations",
    "callbacks",
    "cases",
    "ga_areas",
    "ga_buckets",
    "holds",
    "idempotency_keys",
    "log",
    "manifest_seats",
    "operations",
    "orders",
    "price_levels",
    "prices",
    "quota_transfers",
    "refunds",
    "scans",
    "seats",
    "sections",
    "settlement_lines",
    "tickets",
    "webhook_deliveries",
    "webhook_progress",
];

/// An installation of three homes; the sale is at the first.
pub(crate) struct Installation {
    pub(crate) world: World,
    /// Name and address of each.
    pub(crate) homes: Vec<(&'static str, String)>,
    stores: Vec<Arc<Store>>,
}

impl Installation {
    pub(crate) fn new() -> Installation {
        let world = World::empty();
        let mut homes = vec![("main", world.url.clone())];
        for name in ["east", "west"] {
            let url = Server::shared().and_then(Server::create_database).expect("a database can be made");
            homes.push((name, url));
        }
        let mut stores = vec![Arc::clone(&world.store)];
        for (name, url) in &homes[1..] {
            let clock = Arc::clone(&world.clock) as Arc<dyn Clock>;
            let store = Store::connect(HomeOptions::new(name, url, clock), |_| ());
            stores.push(Arc::new(store.expect("the home opens")));
        }
        Installation { world, homes, stores }
    }

    pub(crate) fn options(&self) -> Vec<HomeOptions> {
        let clock = || Arc::clone(&self.world.clock) as Arc<dyn Clock>;
        self.homes.iter().map(|(name, url)| HomeOptions::new(name, url, clock())).collect()
    }

    fn url(&self, name: &str) -> &str {
        &self.homes.iter().find(|(known, _)| *known == name).expect("there is such a home").1
    }

    pub(crate) fn raw(&self, name: &str) -> Raw {
        Raw::server(self.url(name))
    }

    /// The store that a program has open on a home.
    pub(crate) fn store(&self, name: &str) -> Arc<Store> {
        let place = self.homes.iter().position(|(known, _)| *known == name);
        Arc::clone(&self.stores[place.expect("there is such a home")])
    }

    pub(crate) fn event(&self) -> EventId {
        self.world.store.read(|db| db.event(HALL)).expect("it can be read").expect("it is here").id
    }

    pub(crate) fn try_move(
        &self,
        event: EventId,
        to: &str,
        told: &mut dyn FnMut(Step),
    ) -> Result<(), MoveError> {
        move_event(&self.options(), event, to, self.world.now(), told)
    }

    pub(crate) fn move_to(&self, event: EventId, to: &str) -> Vec<Step> {
        let mut steps = Vec::new();
        self.try_move(event, to, &mut |step| steps.push(step)).expect("it moves");
        steps
    }

    pub(crate) fn cancel(&self, event: EventId) -> Result<(), MoveError> {
        cancel_move(&self.options(), event, &mut |_| ())
    }

    /// Rows of an event in a home, its own row apart.
    pub(crate) fn rows(&self, name: &str) -> i64 {
        let raw = self.raw(name);
        let count = |table: &&str| raw.number(&format!("SELECT count(*) FROM {table} WHERE event_no = 1"));
        TABLES.iter().map(count).sum()
    }

    /// Where the event is at home: the one place where its row says so.
    pub(crate) fn at_home(&self) -> Vec<&'static str> {
        let is_here = |name: &str| {
            let text = "SELECT count(*) FROM events WHERE event_no = 1 AND elsewhere IS NULL";
            self.raw(name).number(text) == 1
        };
        self.homes.iter().map(|(name, _)| *name).filter(|name| is_here(name)).collect()
    }

    /// The home where the directory sends those who ask.
    pub(crate) fn directed(&self) -> String {
        let directory = self.store("main").read(|db| db.directory()).expect("the directory can be read");
        let line = directory.into_iter().find(|line| line.event == HALL);
        line.map_or("main".to_owned(), |line| line.home)
    }

    /// Goes on at another home.
    pub(crate) fn go_to(&mut self, name: &str) {
        self.world.store = self.store(name);
    }

    /// Ends the test: every home is sound, and the event is at home in one.
    pub(crate) fn finish(self, at: &str) {
        assert_eq!(self.at_home(), [at]);
        assert_eq!(self.directed(), at);
        for (name, _) in &self.homes {
            let audit = self.store(name).audit(self.world.now()).expect("it can be audited");
            assert_eq!(audit.violations(), 0, "{name}: {audit:?}");
        }
        self.world.finish();
    }
}

#[test]
fn an_event_moves_with_all_that_belongs_to_it_and_its_sale_goes_on() {
    let mut all = Installation::new();
    let things = all.world.sell_everything();
    // What nobody could place is the house's, whatever it says of itself: it stays, and is looked at again there.
    all.world.judge(EventNo::HOUSE, message("evt_early", "pi_stranger", Some(things.pending)));
    let (event, before) = (all.event(), picture(&all.world.store, HALL));
    let epoch = all.world.event().epoch;
    let rows = all.rows("main");
    let replayed = all.world.submit_keyed(KEY.0, KEY.1, place_hold(&account("cyd"), &[4])).outcome;
    let old = Arc::clone(&all.world.store);

    let steps = all.move_to(event, "east");
    assert!(steps.contains(&Step::Cleared { place: "main".to_owned(), rows: rows as u64 }), "{steps:?}");
    assert_eq!((all.rows("main"), all.rows("east")), (0, rows));

    all.go_to("east");
    assert_eq!(picture(&all.world.store, HALL), before);
    assert!(all.world.event().epoch > epoch, "what is remembered of before is visibly older");
    let again = all.world.submit_keyed(KEY.0, KEY.1, place_hold(&account("cyd"), &[4])).outcome;
    assert_eq!(again, replayed, "the same key gives the same answer");
    let seen = all.world.observed(things.pending, things.attempt, "pi_cyd", IntentState::Authorized);
    all.world.observe(things.attempt, seen);
    assert_eq!(all.world.order(things.pending).order.status, OrderStatus::Confirmed);
    assert_eq!(all.world.order(things.sold).order.status, OrderStatus::Confirmed);
    all.world.sell(&account("fay"), &[8], "pi_fay");
    let settled = all.world.judge(HALL, message("evt_parked", "pi_stray", Some(things.pending)));
    assert_eq!(settled, Verdict::Parked, "it is known");
    let taken = all.world.place(&account("gus"), &[2]);
    assert!(matches!(taken, Outcome::Refused(_)), "{taken:?}");
    assert_eq!(
        all.world.submit(Command::ReleaseHold { hold: things.held, account: Some(ben()) }),
        Outcome::HoldReleased
    );

    let due = |store: &Store| {
        let far = all.world.now().plus_ms(PARKED_RETRY_MS);
        let due = store.read(|db| db.due_callbacks(far, 100)).expect("callbacks can be read");
        due.into_iter().map(|callback| callback.provider_event_id).collect::<Vec<_>>()
    };
    assert_eq!(
        (due(&old), due(&all.world.store)),
        (vec!["evt_house".to_owned(), "evt_early".to_owned()], vec!["evt_parked".to_owned()])
    );

    // Whoever has not heard of it is told, and nothing is done.
    for command in [
        place_hold(&ada(), &[8]),
        Command::ExpireHold { hold: things.held },
        Command::RecordAnswer { operation: things.attempt, answer: Answer::NoAnswer },
    ] {
        let answer = old.submit_blocking(request(command, all.world.now())).map(|decision| decision.outcome);
        assert_eq!(answer, Err(SubmitError::Elsewhere));
    }
    assert_eq!(all.rows("main"), 0);
    assert_eq!(old.read(|db| db.event(HALL)).expect("it can be read"), None);

    // A program that reads the directory anew asks at the right place.
    let clock = || Arc::clone(&all.world.clock) as Arc<dyn Clock>;
    let store = |(name, url): &(&str, String)| Store::connect(HomeOptions::new(name, url, clock()), |_| ());
    let home =
        |home: &(&str, String)| Home { name: Arc::from(home.0), store: store(home).expect("the home opens") };
    let homes = Homes::new(all.homes.iter().map(home).collect());
    assert_eq!(homes.of(HALL).map(|home| &*home.name), Some("main"), "nothing is known yet");
    homes.refresh().expect("the directory can be read");
    assert_eq!(homes.of(HALL).map(|home| &*home.name), Some("east"));
    drop(homes);
    all.finish("east");
}

#[test]
fn an_event_moves_from_home_to_home_and_back() {
    let mut all = Installation::new();
    all.world.sell_everything();
    all.world.add_event(EventNo(2), 5, policy());
    let event = all.event();
    for (place, to) in ["east", "west", "main", "west", "east", "main", "east"].into_iter().zip(20u128..) {
        let before = picture(&all.world.store, HALL);
        all.move_to(event, place);
        all.go_to(place);
        assert_eq!(picture(&all.world.store, HALL), before);
        let gus = account(&format!("gus_{to}"));
        let hold = all.world.hold(&gus, &[10, 11]);
        all.world.submit(Command::ReleaseHold { hold, account: Some(gus) });
        assert_eq!(all.at_home(), [place]);
        assert_eq!(all.directed(), place);
    }
    // Once more changes nothing.
    let before = picture(&all.world.store, HALL);
    all.move_to(event, "east");
    assert_eq!(picture(&all.world.store, HALL), before);
    let other = all.store("main").read(|db| db.event(EventNo(2))).expect("it can be read");
    assert!(other.is_some(), "what is beside it stays");
    all.finish("east");
}

/// The writer of another process waits for the event's lock while the mover has it: what it finds then is a frozen event.
#[test]
fn a_writer_that_waited_while_the_event_was_frozen_changes_nothing() {
    let all = Installation::new();
    all.world.sell_everything();
    let (event, before) = (all.event(), picture(&all.world.store, HALL));
    let lock = all.world.lock();
    let old = all.world.another_store();
    std::thread::scope(|scope| {
        let mover = scope.spawn(|| all.try_move(event, "east", &mut |_| ()));
        let raw = all.raw("main");
        let waits = |what: &str| {
            raw.number(&format!(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
                   AND query LIKE '{what}'"
            )) == 1
        };
        wait_until("the mover waits for the lock", || waits("UPDATE events SET elsewhere%"));
        let asked = ask(&old, request(place_hold(&ada(), &[8]), all.world.now()), None);
        wait_until("the writer waits for the lock", || waits("SELECT %FOR UPDATE%"));
        drop(lock);
        assert_eq!(asked.answer().map(|decision| decision.outcome), Err(SubmitError::Elsewhere));
        mover.join().expect("it doesn't panic").expect("it moves");
    });
    let mut all = all;
    all.go_to("east");
    assert_eq!(picture(&all.world.store, HALL), before);
    all.finish("east");
}

/// A crowd that asks on while the event moves: each is answered truly, wherever it asked.
#[test]
fn nothing_that_was_acknowledged_is_lost_while_an_event_moves() {
    let mut all = Installation::new();
    all.world.add_event(HALL, 400, policy());
    let event = all.event();
    let (old, now) = (Arc::clone(&all.world.store), all.world.now());
    let held = std::thread::scope(|scope| {
        let buyers = scope.spawn(|| {
            let mut held = Vec::new();
            for seat in 0..400 {
                let command = place_hold(&account(&format!("acc_{seat}")), &[seat]);
                match old.submit_blocking(request(command, now)).map(|decision| decision.outcome) {
                    Ok(Outcome::HoldPlaced(placed)) => held.push(placed.hold.id),
                    Err(SubmitError::Elsewhere) => break,
                    other => panic!("{other:?}"),
                }
            }
            held
        });
        all.move_to(event, "east");
        buyers.join().expect("buyers don't panic")
    });
    all.go_to("east");
    let shown = all.world.digits().bytes().filter(|digit| *digit == b'1').count();
    assert_eq!(shown, held.len());
    held.iter().for_each(|hold| drop(all.world.hold_view(*hold)));
    all.finish("east");
}
