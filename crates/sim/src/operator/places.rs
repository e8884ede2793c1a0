//! What the organiser does about standing areas, parties and refunds.

use onsale_core::access::AccessCode;
use onsale_core::command::Command;
use onsale_core::ga::{Bucket, TransferStatus, by_area};
use onsale_core::id::{AllocationNo, AreaNo, OrderId, SeatOrdinal, TransferId};
use onsale_core::idempotency::RequestKey;
use onsale_core::order::OrderStatus;
use onsale_core::payment::PaymentStatus;
use onsale_core::refund::RefundPart;
use onsale_core::time::Timestamp;
use onsale_world::HALL;

use crate::sim::{BEGINNING, Sim, ordinals};

/// The one party for which seats and places are set aside.
pub(crate) const PARTY: AllocationNo = AllocationNo(1);
/// The code of the party, and that of the presale.
pub(crate) const CODES: [&str; 2] = ["PARTY-1", "EARLY-1"];

fn actor() -> String {
    "olga".to_owned()
}

impl Sim {
    /// Before the sale begins: seats and a bucket for a party, and the codes.
    pub(crate) fn set_aside(&mut self) -> Vec<Command> {
        let Some(access) = &self.plan.access else {
            return Vec::new();
        };
        let seats: Vec<SeatOrdinal> = ordinals(self.plan.seats).into_iter().take(access.seats).collect();
        let (manifest_version, allocation) = (1, Some(PARTY));
        let mut commands = vec![
            Command::MakeAllocation { event: HALL, name: "party".to_owned(), actor: actor() },
            Command::SetSeatsAside { event: HALL, manifest_version, seats, allocation, actor: actor() },
        ];
        if !self.plan.areas.is_empty() {
            commands.push(Command::AddBucket { event: HALL, area: AreaNo(0), allocation, actor: actor() });
        }
        let codes = [0, 1].map(|at| self.code(at, false));
        commands.extend(codes.map(|code| Command::SetAccessCode { event: HALL, code, actor: actor() }));
        commands
    }

    /// A code as the plan has it, or with other bounds.
    fn code(&mut self, at: usize, changed: bool) -> AccessCode {
        let allowed = self.plan.access.as_ref().map_or([0; 2], |access| access.tickets_max)[at];
        let now = Timestamp::from_millis(self.now);
        AccessCode {
            code: CODES[at].into(),
            allocation: (at == 0).then_some(PARTY),
            presale: true,
            tickets_max: if changed { self.chance.between(1, 8) as u32 } else { allowed },
            tickets_in_use: 0,
            valid_from: None,
            valid_until: (changed && self.chance.percent(20)).then(|| now.plus_ms(10_000)),
            revoked_at: (changed && self.chance.percent(25)).then_some(now),
            created_at: Timestamp::from_millis(BEGINNING),
        }
    }

    pub(super) fn manage_places(&mut self) {
        match self.chance.below(8) {
            0 => self.set_capacity(),
            1..=2 => self.begin_transfer(),
            3..=4 => self.end_transfer(),
            5 if self.plan.access.is_some() => {
                let at = self.chance.below(2);
                let code = self.code(at, true);
                self.submit(Command::SetAccessCode { event: HALL, code, actor: actor() });
            }
            6 if self.plan.access.is_some() => {
                let all = ordinals(self.plan.seats);
                let seats = vec![all[self.chance.below(all.len())]];
                let allocation = self.chance.percent(60).then_some(PARTY);
                let (event, manifest_version) = (HALL, 1);
                self.submit(Command::SetSeatsAside {
                    event,
                    manifest_version,
                    seats,
                    allocation,
                    actor: actor(),
                });
            }
            _ => {}
        }
    }

    fn set_capacity(&mut self) {
        let areas: Vec<(AreaNo, u32)> =
            self.database.world.areas.values().map(|area| (area.no, area.capacity)).collect();
        let Some((area, capacity)) = self.chance.pick(&areas).copied() else {
            return;
        };
        let capacity = (i64::from(capacity) + self.chance.between(-4, 3)).max(1) as u32;
        self.submit(Command::SetCapacity { event: HALL, area, capacity, actor: actor() });
    }

    fn begin_transfer(&mut self) {
        let buckets: Vec<Bucket> = self.database.world.buckets.values().cloned().collect();
        let Some(from) = self.chance.pick(&buckets).cloned() else {
            return;
        };
        let others = buckets.iter().filter(|bucket| bucket.area == from.area && bucket.no != from.no);
        let others: Vec<_> = others.map(|bucket| bucket.no).collect();
        let Some(to) = self.chance.pick(&others).copied() else {
            return;
        };
        let (area, from, free) = (from.area, from.no, i64::from(from.free()));
        let quantity = self.chance.between(1, free.max(1) + 1) as u32;
        self.twice(Command::BeginTransfer { event: HALL, area, from, to, quantity, actor: actor() });
    }

    /// Somebody sees to a transfer before the worker does, or after it.
    fn end_transfer(&mut self) {
        let transfers: Vec<TransferId> = self.database.world.transfers.keys().copied().collect();
        let on_its_way =
            |id: &&TransferId| self.database.world.transfers[*id].status == TransferStatus::InFlight;
        let Some(transfer) = transfers.iter().find(on_its_way).or(transfers.last()).copied() else {
            return;
        };
        let arrives = self.chance.percent(30);
        self.submit(Command::EndTransfer { transfer, arrives });
    }

    /// Under a key, and now and then once more.
    fn twice(&mut self, command: Command) {
        let id = u128::from(self.fresh());
        let key = Some(RequestKey { id, digest: id });
        if self.chance.percent(25) {
            self.submit_as(command.clone(), key);
        }
        self.submit_as(command, key);
    }

    /// Gives money back for something that was sold; seldom for what wasn't.
    pub(super) fn refund(&mut self) {
        let world = &self.database.world;
        let is_sold = |id: &&OrderId| world.orders[*id].status == OrderStatus::Confirmed;
        let is_taken = |id: &&OrderId| world.orders[*id].payment_status == PaymentStatus::Captured;
        let all: Vec<OrderId> = world.orders.keys().copied().collect();
        let sold: Vec<OrderId> = all.iter().filter(is_sold).copied().collect();
        let taken: Vec<OrderId> = sold.iter().filter(is_taken).copied().collect();
        let among = match self.chance.below(20) {
            0 => all,
            1..=3 => sold,
            _ => taken,
        };
        let Some(order) = self.chance.pick(&among).copied() else {
            return;
        };
        let part = self.part(order);
        let (resell, reason) = (self.chance.percent(75), "asked for".to_owned());
        self.twice(Command::BeginRefund { order, part, resell, reason, actor: actor() });
    }

    /// A part of an order: what is left of it, some of what it was for, or some money.
    fn part(&mut self, order: OrderId) -> RefundPart {
        let row = self.database.world.orders[&order].clone();
        let hold = self.database.world.holds[&row.hold].clone();
        match self.chance.below(10) {
            0..=2 => RefundPart::Rest,
            3..=4 => RefundPart::Amount(match self.chance.percent(80) {
                true => self.chance.between(1, 300),
                false => self.chance.between(1, row.total.amount_minor + 100),
            }),
            _ => {
                let is_left = |seat: &SeatOrdinal| !row.returned_seats.contains(seat);
                let mostly = self.chance.percent(90);
                let seats = hold.seats.into_iter().filter(|seat| !mostly || is_left(seat));
                let seats: Vec<SeatOrdinal> = seats.filter(|_| self.chance.percent(50)).collect();
                let areas = by_area(&hold.ga).into_iter();
                let ga = areas.filter_map(|(area, quantity)| {
                    let quantity = self.chance.between(0, i64::from(quantity)) as u32;
                    (quantity > 0).then_some((area, quantity))
                });
                RefundPart::Places { seats, ga: ga.collect() }
            }
        }
    }
}
