//! The organiser's people: they halt the sale, change prices, keep seats back, move capacity, give money back, stand at the
//! gates and act on cases. Once everything is mended they see to every case that is still open.

mod gate;
pub(crate) mod places;

use onsale_core::command::Command;
use onsale_core::event::EventStatus;
use onsale_core::gateway::IntentState;
use onsale_core::order::OrderStatus;
use onsale_core::payment::{Operation, OperationKind};
use onsale_core::reconcile::{Case, CaseAction, CaseKind, CaseStatus};
use onsale_core::time::seconds;
use onsale_world::HALL;

use crate::provider::KEY_LIFE_MS;
use crate::sim::{Event, Sim, ordinals};

/// So long after it was opened a case is seen to at the provider.
const PATIENCE_MS: i64 = seconds(120);

impl Sim {
    pub(crate) fn operate(&mut self) {
        if self.faults {
            self.manage();
            let wait = self.chance.between(1_200, 7_000);
            return self.after(wait, Event::Operator);
        }
        let is_open = |case: &&Case| case.status == CaseStatus::Open;
        let cases: Vec<Case> = self.database.world.cases.values().filter(is_open).cloned().collect();
        for case in cases {
            self.see_to(&case);
        }
        self.send_messages();
        self.after(30_000, Event::Operator);
    }

    fn manage(&mut self) {
        let actor = "olga".to_owned();
        match self.chance.below(22) {
            10..=12 if self.plan.refunds => self.refund(),
            13..=16 => self.manage_places(),
            17..=20 => self.at_the_gate(),
            21 => self.issue_anew(),
            0 => {
                let status = self.chance.of(&[EventStatus::Paused, EventStatus::Closed]);
                self.submit(Command::SetOnSale { event: HALL, status, actor });
            }
            1..=3 => self.submit(Command::SetOnSale { event: HALL, status: EventStatus::Open, actor }),
            4 => {
                let levels = vec![(0, self.chance.between(900, 1_100)), (1, self.chance.of(&[700, 750]))];
                self.submit(Command::SetPrices { event: HALL, manifest_version: 1, levels });
            }
            5 => {
                let all = ordinals(self.plan.seats);
                let seats = vec![all[self.chance.below(all.len())]];
                let not_for_sale = self.chance.percent(30);
                let (event, manifest_version) = (HALL, 1);
                self.submit(Command::SetSeatsStatus { event, manifest_version, seats, not_for_sale, actor });
            }
            _ => self.act_on_a_case(),
        }
    }

    fn act_on_a_case(&mut self) {
        let cases: Vec<Case> = self.database.world.cases.values().cloned().collect();
        let Some(case) = self.chance.pick(&cases).cloned() else {
            return;
        };
        let stuck =
            matches!(case.kind, CaseKind::VoidFailed | CaseKind::RefundFailed | CaseKind::CaptureFailed);
        let action = match self.chance.below(6) {
            0 => CaseAction::Void,
            1 => CaseAction::Refund,
            2 => CaseAction::ConfirmIfBound,
            3 => CaseAction::Release,
            // Whoever dismisses these has seen to them at the provider.
            _ if stuck => CaseAction::Void,
            _ => CaseAction::Dismiss,
        };
        self.resolve(&case, action);
    }

    fn resolve(&mut self, case: &Case, action: CaseAction) {
        let (note, actor) = ("seen to".to_owned(), "olga".to_owned());
        self.submit(Command::ResolveCase { case: case.id, action, note, actor });
    }

    /// What a careful person does about a case.
    fn see_to(&mut self, case: &Case) {
        let Some(attempt) = case.operation else {
            return self.resolve(case, CaseAction::Dismiss);
        };
        if case.kind == CaseKind::CallbackConflict {
            return self.resolve(case, CaseAction::Dismiss);
        }
        if self.now - case.opened_at.millis() < PATIENCE_MS {
            return;
        }
        let world = &self.database.world;
        let name = world.operations[&attempt].reference.clone();
        let live = |kind| {
            world
                .operations
                .values()
                .any(|o| o.kind == kind && o.target == Some(attempt) && o.status.is_live())
        };
        let (voids, refunds, captures) =
            (live(OperationKind::Void), live(OperationKind::Refund), live(OperationKind::Capture));
        let sold = case
            .order
            .and_then(|order| world.orders.get(&order))
            .is_some_and(|order| order.status == OrderStatus::Confirmed && order.paid_by == Some(attempt));
        let is_old = |operation: &&Operation| {
            let refund = operation.kind == OperationKind::Refund && operation.target == Some(attempt);
            refund && operation.status.is_live() && self.now - operation.created_at.millis() >= KEY_LIFE_MS
        };
        let back_minor = world.operations.values().find(is_old).map_or(0, |row| row.amount.amount_minor);
        let state = name.as_ref().and_then(|name| self.provider.observe(name)).map(|seen| seen.state);
        match (case.kind, state, name) {
            // Too old to be sent: it is done by hand, and the provider's word ends it.
            (CaseKind::CaptureFailed, Some(IntentState::Authorized), Some(name)) if captures && sold => {
                self.provider.by_hand(&name, true, 0, self.now, &mut self.chance);
            }
            (CaseKind::VoidFailed | CaseKind::RefundFailed, _, Some(name)) if voids || refunds => {
                self.provider.by_hand(&name, false, back_minor, self.now, &mut self.chance);
            }
            (CaseKind::VoidFailed, ..) if !voids => self.resolve(case, CaseAction::Void),
            // The buyer keeps what was sold, and is told so.
            (CaseKind::RefundFailed, ..) if !refunds && sold => self.resolve(case, CaseAction::Dismiss),
            (CaseKind::RefundFailed, ..) if !refunds => self.resolve(case, CaseAction::Refund),
            _ => {}
        }
    }
}
