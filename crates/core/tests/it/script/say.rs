//! Outcomes and the whole world in the words of a page.

use onsale_core::command::{Decision, Effect, Expiry, Outcome};
use onsale_core::hold::{Hold, HoldStatus};
use onsale_core::id::{CaseId, HoldId, OrderId, SeatOrdinal};
use onsale_core::order::{Order, OrderStatus};
use onsale_core::payment::{Operation, OperationStatus, PaymentStatus};
use onsale_core::reconcile::{Case, CaseStatus, Reconciled, Verdict};
use onsale_core::refusal::Refusal;
use onsale_core::seat_map::SeatStatus;

use super::Page;
use super::words::time_text;

impl Page {
    /// What came of a step.
    pub(super) fn say(&self, decision: &Decision) -> String {
        let again = if decision.replayed { " again" } else { "" };
        let said = match &decision.outcome {
            Outcome::EventCreated => "created".to_owned(),
            Outcome::ManifestReplaced { version } => format!("manifest {version}"),
            Outcome::PricesSet { price_version } => format!("prices {price_version}"),
            Outcome::OnSaleSet | Outcome::SeatsStatusSet => "set".to_owned(),
            Outcome::HoldPlaced(placed) => {
                let seats: Vec<SeatOrdinal> = placed.seats.iter().map(|seat| seat.0).collect();
                assert_eq!(seats, placed.hold.seats, "every seat is told with its price");
                let seats: i64 = placed.seats.iter().map(|seat| seat.2).sum();
                let ga: i64 =
                    placed.ga.iter().map(|(_, quantity, _, price)| i64::from(*quantity) * price).sum();
                let total = seats + ga;
                assert_eq!(total, placed.hold.total_minor, "the prices make the total");
                let Hold { status, order, grace_used, in_doubt, .. } = &placed.hold;
                let fresh =
                    (*status, *order, *grace_used, *in_doubt) == (HoldStatus::Active, None, false, false);
                assert!(fresh, "a hold is told as it was placed: {placed:?}");
                format!("held until {}", time_text(placed.hold.expires_at))
            }
            Outcome::HoldReleased => "released".to_owned(),
            Outcome::Expiry(Expiry::NotDue) => "not due".to_owned(),
            Outcome::Expiry(Expiry::Expired) => "expired".to_owned(),
            Outcome::Expiry(Expiry::InDoubt) => "in doubt".to_owned(),
            Outcome::CheckoutBegun(_) => "begun".to_owned(),
            Outcome::MayConfirm => "may confirm".to_owned(),
            Outcome::MustNotConfirm => "must not confirm".to_owned(),
            Outcome::Recorded { effect, send } => {
                let send = if *send { ", send" } else { "" };
                let effect = match effect {
                    Effect::Applied => "applied",
                    Effect::Nothing => "nothing",
                    Effect::AlreadyPaid => "already paid",
                    Effect::MoneyBack => "money back",
                    Effect::Conflict => "conflict",
                };
                format!("{effect}{send}")
            }
            Outcome::Judged(verdict) => verdict_text(*verdict).to_owned(),
            Outcome::Reconciled(reconciled) => match reconciled {
                Reconciled::Agreed => "agreed".to_owned(),
                Reconciled::Moved => "moved".to_owned(),
                Reconciled::Overtaken => "overtaken".to_owned(),
                Reconciled::Differs { case, opened } => self.kept(*case, *opened),
            },
            Outcome::CaseKept { case, opened } => self.kept(*case, *opened),
            Outcome::CaseSettled => "settled".to_owned(),
            Outcome::CaseActed => "acted".to_owned(),
            Outcome::TicketsIssued => "issued".to_owned(),
            Outcome::TicketsNotDue => "no tickets".to_owned(),
            Outcome::TicketReissued => "reissued".to_owned(),
            Outcome::TicketScanned(scanned) => self.scanned_text(scanned),
            Outcome::AllocationMade(no) => format!("allocation {}", no.0),
            Outcome::BucketAdded(no) => format!("bucket {}", no.0),
            Outcome::SeatsSetAside | Outcome::AccessCodeSet | Outcome::CapacitySet => "set".to_owned(),
            Outcome::TransferBegun(_) | Outcome::RefundBegun(_) => "begun".to_owned(),
            Outcome::TransferEnded => "ended".to_owned(),
            Outcome::Refused(refusal) => self.refusal_text(refusal),
        };
        said + again
    }

    fn kept(&self, case: CaseId, opened: bool) -> String {
        format!("{} {}", self.world.cases[&case].kind.as_str(), if opened { "opened" } else { "again" })
    }

    fn refusal_text(&self, refusal: &Refusal) -> String {
        let plain = match refusal {
            Refusal::TooManySeats { limit } => return format!("too many seats, {limit} at most"),
            Refusal::AccountLimit { limit, in_use } => return format!("account limit, {in_use} of {limit}"),
            Refusal::SeatUnavailable(seats) => {
                let labels: Vec<&str> = seats.iter().map(|seat| self.label(*seat)).collect();
                return format!("unavailable {}", labels.join(" "));
            }
            Refusal::NotReady(why) | Refusal::ActionNotPossible(why) => return format!("no: {why}"),
            Refusal::AccessCodeInvalid(why) | Refusal::NotRefundable(why) => return format!("no: {why}"),
            Refusal::AccessCodeExhausted { limit, in_use } => {
                return format!("code used up, {in_use} of {limit}");
            }
            Refusal::RefundTooLarge { left_minor } => return format!("too large, {left_minor} left"),
            Refusal::NotEnoughAvailable { .. } => "not enough available",
            Refusal::RefundPending => "refund pending",
            Refusal::KeyReused => "key reused",
            Refusal::NotFound => "not found",
            Refusal::EventPaused => "paused",
            Refusal::NotOnSale => "not on sale",
            Refusal::ManifestChanged => "manifest changed",
            Refusal::ManifestFrozen => "manifest frozen",
            Refusal::HoldExpired => "hold expired",
            Refusal::HoldNotActive => "hold not active",
            Refusal::PaymentPending => "payment pending",
            Refusal::PriceChanged => "price changed",
            Refusal::TooLittleTime => "too little time",
            Refusal::AttemptsExhausted => "attempts exhausted",
            Refusal::PaymentsSaturated => "payments saturated",
            Refusal::CaseClosed => "case closed",
        };
        plain.to_owned()
    }

    pub(super) fn seat_text(&self, ordinal: SeatOrdinal) -> String {
        match self.world.seats[&(crate::world::HALL, ordinal)].status {
            SeatStatus::Available => "free".to_owned(),
            SeatStatus::NotForSale => "not for sale".to_owned(),
            SeatStatus::Held { hold, .. } => format!("held by {}", self.hold_name(hold)),
            SeatStatus::Sold { order, .. } => format!("sold to {}", self.order_name(order)),
        }
    }

    pub(super) fn hold_text(&self, id: HoldId) -> String {
        let hold = &self.world.holds[&id];
        let doubt = if hold.in_doubt { " in doubt" } else { "" };
        let until = time_text(hold.expires_at);
        match hold.status {
            HoldStatus::Active => format!("ACTIVE until {until}"),
            HoldStatus::PaymentPending => format!("PAYMENT_PENDING until {until}{doubt}"),
            HoldStatus::Converted => "CONVERTED".to_owned(),
            HoldStatus::Released => "RELEASED".to_owned(),
            HoldStatus::Expired => "EXPIRED".to_owned(),
        }
    }

    pub(super) fn order_text(&self, order: &Order) -> String {
        let status = match order.status {
            OrderStatus::AwaitingPayment => "AWAITING_PAYMENT",
            OrderStatus::Confirmed => "CONFIRMED",
            OrderStatus::Cancelled => "CANCELLED",
            OrderStatus::Expired => "EXPIRED",
        };
        let payment = match order.payment_status {
            PaymentStatus::Pending => "PENDING",
            PaymentStatus::RequiresAction => "REQUIRES_ACTION",
            PaymentStatus::Unknown => "UNKNOWN",
            PaymentStatus::Authorized => "AUTHORIZED",
            PaymentStatus::Declined => "DECLINED",
            PaymentStatus::Captured => "CAPTURED",
            PaymentStatus::VoidPending => "VOID_PENDING",
            PaymentStatus::Voided => "VOIDED",
            PaymentStatus::RefundPending => "REFUND_PENDING",
            PaymentStatus::Refunded => "REFUNDED",
        };
        format!("{status} {payment}")
    }

    /// An order's operations in the order in which they were made.
    pub(super) fn operations_text(&self, order: OrderId) -> String {
        let text = |operation: &&Operation| {
            let status = match operation.status {
                OperationStatus::Pending => "PENDING",
                OperationStatus::RequiresAction => "REQUIRES_ACTION",
                OperationStatus::Unknown => "UNKNOWN",
                OperationStatus::Succeeded => "SUCCEEDED",
                OperationStatus::Failed => "FAILED",
            };
            format!("{} {status}", format!("{:?}", operation.kind).to_lowercase())
        };
        let operations = self.world.operations_of(order);
        operations.iter().map(text).collect::<Vec<_>>().join(", ")
    }

    /// Open cases by kind and order.
    pub(super) fn cases_text(&self) -> String {
        let text = |case: &Case| match case.order {
            Some(order) => format!("{} {}", case.kind.as_str(), self.order_name(order)),
            None => case.kind.as_str().to_owned(),
        };
        let open = self.world.cases.values().filter(|case| case.status == CaseStatus::Open);
        let mut cases: Vec<String> = open.map(text).collect();
        cases.sort();
        if cases.is_empty() { "none".to_owned() } else { cases.join(", ") }
    }

    /// Whose a case is, and what was done about it last.
    pub(super) fn case_text(&self, id: CaseId) -> String {
        let case = &self.world.cases[&id];
        match &case.resolution {
            None => format!("of {}", case.owner),
            Some(done) => format!("of {}: {} by {}", case.owner, done.action, done.actor),
        }
    }

    pub(super) fn hold_name(&self, id: HoldId) -> String {
        let name = self.holds.iter().find(|(_, known)| **known == id).map(|(name, _)| name.clone());
        name.unwrap_or_else(|| id.to_string())
    }

    pub(super) fn order_name(&self, id: OrderId) -> String {
        let name = self.orders.iter().find(|(_, known)| **known == id).map(|(name, _)| name.clone());
        name.unwrap_or_else(|| id.to_string())
    }

    /// The whole world, for a page that fails.
    pub(super) fn world_text(&self) -> String {
        let world = &self.world;
        let mut lines = Vec::new();
        if let Some(event) = world.events.get(&crate::world::HALL) {
            let (clock, pending) = (time_text(event.clock), event.payment_pending);
            lines.push(format!("{:?} at {clock}, pending {pending}", event.status));
        }
        let labels = (0..).zip(&self.seats);
        lines.extend(labels.map(|(at, label)| format!("{label} {}", self.seat_text(SeatOrdinal(at)))));
        for (id, hold) in world.holds.iter() {
            let (name, account, text) = (self.hold_name(*id), &hold.account, self.hold_text(*id));
            lines.push(format!(
                "{name} of {account}: {text}, first until {}",
                time_text(hold.first_expires_at)
            ));
        }
        for (id, order) in world.orders.iter() {
            lines.push(format!("{} of {}: {}", self.order_name(*id), order.account, self.order_text(order)));
            lines.extend(world.operations_of(*id).iter().map(|operation| format!("  {operation:?}")));
        }
        lines.extend(world.cases.values().map(|case| format!("{case:?}")));
        lines.extend(world.callbacks.values().map(|callback| format!("{callback:?}")));
        lines.join("\n")
    }
}

pub(super) fn verdict_text(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Applied => "applied",
        Verdict::Duplicate => "duplicate",
        Verdict::Stale => "stale",
        Verdict::Conflict => "conflict",
        Verdict::AlreadyPaidReconcile => "already_paid_reconcile",
        Verdict::RefundPending => "refund_pending",
        Verdict::Parked => "parked",
    }
}
