//! A way through a sale as a page that [`crate::script`] can run.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use onsale_core::command::Outcome;
use onsale_core::id::{HoldId, OperationId, OrderId};
use onsale_core::payment::OperationKind;
use onsale_core::reconcile::CaseAction;

use super::action::{Action, BUYERS, Message, Part, Reply, Sale};
use super::model::State;
use super::provider::{Done, Heard, Standing};
use crate::script::Page;

/// Names in the order in which things appear.
#[derive(Default)]
struct Names {
    holds: BTreeMap<HoldId, usize>,
    orders: BTreeMap<OrderId, usize>,
    attempts: BTreeMap<OperationId, (OrderId, usize)>,
}

/// The page. Its last line is where something was wrong; lines that begin with `//` are what is done without
/// us.
pub(super) fn tell(sale: &Sale, actions: &[Action]) -> String {
    let (mut page, mut state, mut names) = (Page::default(), State::new(sale), Names::default());
    let mut lines = vec![sale.hall.to_owned()];
    page.tell(sale.hall);
    for action in actions {
        let time = format!("{}.{:03}s", state.now().millis() / 1_000, state.now().millis() % 1_000);
        let words = names.words(sale, &state, *action);
        let Ok((next, outcome)) = catch_unwind(AssertUnwindSafe(|| state.after(sale, *action))) else {
            lines.extend(words.map(|words| format!("{time} {words} -> ?")));
            break;
        };
        match outcome {
            Some(outcome) => {
                if let Action::Reach(id, done, Reply::Odd) = *action {
                    lines.push(format!(
                        "// {time} the provider's reply is lost: {}",
                        said(state.clone().reach(id, done))
                    ));
                }
                let line = format!("{time} {}", words.unwrap_or_default());
                let said = catch_unwind(AssertUnwindSafe(|| page.tell(&line)));
                lines.push(format!("{line} -> {}", said.as_deref().unwrap_or("?")));
                names.learn(&outcome, &next);
            }
            None => lines.extend(words.map(|words| format!("// {time} {words}"))),
        }
        state = next;
    }
    lines.join("\n")
}

impl Names {
    fn learn(&mut self, outcome: &Outcome, after: &State) {
        match outcome {
            Outcome::HoldPlaced(placed) => {
                let next = self.holds.len() + 1;
                self.holds.insert(placed.hold.id, next);
            }
            Outcome::CheckoutBegun(order) => {
                let next = self.orders.len() + 1;
                self.orders.entry(*order).or_insert(next);
                let attempts = after.world.operations_of(*order);
                let attempts = attempts.into_iter().filter(|o| o.kind == OperationKind::Authorize);
                for (at, attempt) in (1..).zip(attempts) {
                    self.attempts.insert(attempt.id, (*order, at));
                }
            }
            _ => {}
        }
    }

    fn words(&self, sale: &Sale, state: &State, action: Action) -> Option<String> {
        let hold = |id: HoldId| {
            (BUYERS[usize::from(state.world.holds[&id].account.as_str() == "ben")], self.holds[&id])
        };
        let keeps =
            |operation, heard: Heard| format!("{} answers {}", self.operation(state, operation), said(heard));
        Some(match action {
            Action::Tick => return None,
            Action::Hold(buyer, choice) => {
                let seats: Vec<String> =
                    sale.choices[buyer][choice].iter().map(|seat| format!("A{}", seat + 1)).collect();
                let places = sale.places[buyer].get(choice).filter(|places| **places > 0);
                let standing = places.map(|places| format!(" standing {places}")).unwrap_or_default();
                let (seats, next) = (seats.join(" "), self.holds.len() + 1);
                format!("{} holds {seats}{standing} as h{next}", BUYERS[buyer])
            }
            Action::Release(id) => format!("{} releases h{}", hold(id).0, hold(id).1),
            Action::Pay(id) => {
                let known = state.world.holds[&id].order.map(|order| self.orders[&order]);
                let order = known.unwrap_or(self.orders.len() + 1);
                format!("{} pays h{} as o{order}", hold(id).0, hold(id).1)
            }
            Action::Act(case, action) => {
                let case = &state.world.cases[&case];
                let about = case.operation.map_or(String::new(), |attempt| self.attempt(attempt));
                let action = match action {
                    CaseAction::ConfirmIfBound => "confirm",
                    other => other.as_str(),
                };
                format!("operator resolves {} {about} with {action}", case.kind.as_str())
            }
            Action::Refund(id, part) => {
                let hold = &state.world.holds[&id];
                let seats = hold.seats.iter().filter(|_| part == Part::Seats);
                let seats: String = seats.map(|seat| format!(" A{}", seat.0 + 1)).collect();
                format!("operator refunds o{}{seats}", self.orders[&hold.order.expect("it was sold")])
            }
            Action::Expire(id) => format!("h{} expires", self.holds[&id]),
            Action::Begin(id, Reply::Kept) => self.naming(id),
            Action::Begin(id, _) => format!("{} is made at the provider", self.attempt(id)),
            Action::Take(id) => format!("{} is under way to the provider", self.operation(state, id)),
            Action::Lose(id) => keeps(id, Heard::Silence),
            Action::Reach(id, done, reply) => {
                let heard = state.clone().reach(id, done);
                match reply {
                    Reply::Kept => keeps(id, heard),
                    Reply::Delayed => {
                        format!("{} reaches the provider: {}", self.operation(state, id), said(heard))
                    }
                    Reply::Odd => keeps(id, Heard::Silence),
                }
            }
            Action::Ask(id, Reply::Kept) => {
                keeps(id, Heard::Seen(state.objects[&state.world.operations[&id].attempt()]))
            }
            Action::Ask(id, _) => format!("{} is asked about", self.operation(state, id)),
            Action::Notify(id, Reply::Delayed) => format!("a callback about {} is read", self.attempt(id)),
            Action::Notify(id, _) => self.callback(state.commands + 1, id, state.objects[&id]),
            Action::Stir(id, standing) => format!("{} comes to {}", self.attempt(id), standing.word()),
            Action::Deliver(Message::Call(id)) => {
                return self.words(sale, state, Action::Reach(id, Done::Asked, Reply::Kept));
            }
            Action::Deliver(Message::Name(id)) => self.naming(id),
            Action::Deliver(Message::Answer(id, heard)) => keeps(id, heard),
            Action::Deliver(Message::Callback(number, id, seen)) => self.callback(number, id, seen),
            Action::Deliver(Message::Again(number, id)) => self.callback(number, id, state.objects[&id]),
        })
    }

    fn naming(&self, attempt: OperationId) -> String {
        format!("{} is referenced {}", self.attempt(attempt), self.named(attempt))
    }

    fn callback(&self, number: u64, attempt: OperationId, seen: Standing) -> String {
        let (name, of) = (self.named(attempt), self.attempt(attempt));
        format!("callback ev{number} about {name} of {of} says {}", seen.word())
    }

    fn attempt(&self, id: OperationId) -> String {
        let (order, at) = self.attempts[&id];
        format!("o{}#{at}", self.orders[&order])
    }

    fn named(&self, id: OperationId) -> String {
        let at = self.attempts.keys().position(|attempt| *attempt == id);
        format!("pi_{}", at.map_or(0, |at| at + 1))
    }

    fn operation(&self, state: &State, id: OperationId) -> String {
        let row = &state.world.operations[&id];
        let kind = match row.kind {
            OperationKind::Authorize => "",
            OperationKind::Capture => " capture",
            OperationKind::Void => " void",
            OperationKind::Refund => " refund",
        };
        self.attempt(row.attempt()) + kind
    }
}

fn said(heard: Heard) -> &'static str {
    match heard {
        Heard::Seen(standing) => standing.word(),
        Heard::Refused => "refused",
        Heard::Silence => "none",
    }
}
