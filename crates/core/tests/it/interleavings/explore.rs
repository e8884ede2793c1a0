//! The search: breadth first, each state once, until no state is new. What is found wrong is told with the
//! shortest way to it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use onsale_core::command::Outcome;

use super::action::{Action, Sale};
use super::key::Key;
use super::model::State;
use super::rare::{self, Rare};
use super::{moves, properties, telling};

/// States by their keys. It is never iterated, so its order is nobody's matter.
#[allow(clippy::disallowed_types, reason = "it is asked, never iterated")]
pub(super) type Known = std::collections::HashSet<Key>;

/// What a search has come to.
pub(super) struct Explored {
    pub(super) states: usize,
    pub(super) transitions: usize,
    /// States that only occur while a sale is being settled.
    pub(super) settling: usize,
    /// The rare states that were reached, each with a shortest way to it.
    pub(super) rare: Vec<(Rare, Vec<Action>)>,
}

/// How a state was first reached, and what is being tried in it now: enough to tell the way when something is
/// wrong.
#[derive(Default)]
pub(super) struct Way {
    from: Vec<(u32, Action)>,
    at: u32,
    then: Vec<Action>,
}

impl Way {
    /// One more action is tried.
    pub(super) fn then(&mut self, action: Action) {
        self.then.push(action);
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        let mut at = self.at;
        while at > 0 {
            let (parent, action) = self.from[at as usize];
            actions.push(action);
            at = parent;
        }
        actions.reverse();
        actions.extend(&self.then);
        actions
    }
}

/// Goes to every state that can be reached.
pub(super) fn explore(sale: &Sale) -> Explored {
    let way = RefCell::new(Way::default());
    match catch_unwind(AssertUnwindSafe(|| search(sale, &way))) {
        Ok(explored) => explored,
        Err(panic) => {
            let why = panic.downcast_ref::<String>().map(String::as_str);
            let why = why.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no word");
            panic!("{why}\n\n{}", telling::tell(sale, &way.borrow().actions()));
        }
    }
}

fn search(sale: &Sale, way: &RefCell<Way>) -> Explored {
    let mut explored = Explored { states: 1, transitions: 0, settling: 0, rare: Vec::new() };
    let (mut known, mut settled) = (Known::new(), Known::new());
    let start = State::new(sale);
    known.insert(start.key());
    way.borrow_mut().from.push((0, Action::Tick));
    let mut frontier = VecDeque::from([(0, start)]);
    while let Some((at, state)) = frontier.pop_front() {
        let here = state.key();
        for action in moves::all(&state, sale) {
            {
                let mut way = way.borrow_mut();
                way.at = at;
                way.then.clear();
                way.then.push(action);
            }
            let (next, outcome) = state.after(sale, action);
            explored.transitions += 1;
            properties::step(&state, action, outcome.as_ref(), &next, sale);
            let there = if next.shares_rows(&state) { None } else { Some(next.key()) };
            let Some(there) = there.filter(|there| *there != here) else {
                continue;
            };
            assert!(!matches!(outcome, Some(Outcome::Refused(_))), "refused, and yet it changes something");
            for rare in rare::reached(&state, action, outcome.as_ref(), &next) {
                if explored.rare.iter().all(|(known, _)| *known != rare) {
                    explored.rare.push((rare, way.borrow().actions()));
                }
            }
            if !known.insert(there) {
                continue;
            }
            properties::always(&next);
            properties::settles(&next, sale, &mut settled, way);
            let reached = explored.states as u32;
            explored.states += 1;
            way.borrow_mut().from.push((at, action));
            frontier.push_back((reached, next));
        }
    }
    explored.settling = settled.len();
    explored
}
