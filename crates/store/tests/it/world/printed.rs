//! The hall as its organiser describes it.

use onsale_core::event::{
    Admission, Event, EventStatus, InDoubt, OrphanSeats, PaymentMode, Policy, QueueOrder,
};
use onsale_core::id::{EventNo, Seed};
use onsale_core::manifest::{Manifest, ManifestSeat, PriceLevel};
use onsale_core::money::Currency;
use onsale_core::time::Timestamp;

use super::START;

/// The product's usual rules.
pub(crate) fn policy() -> Policy {
    Policy {
        hold_ttl_ms: 300_000,
        payment_grace_ms: 120_000,
        seats_per_hold_max: 6,
        tickets_per_account_max: 6,
        payment_pending_per_account_max: 2,
        payment_pending_max: 100,
        admission: Admission::Open,
        queue_order: QueueOrder::Fifo,
        shoppers_max: 10_000,
        in_doubt: InDoubt::Keep,
        orphan_seats: OrphanSeats::Allow,
        payment: PaymentMode::AuthorizeThenCapture,
        ga_max: None,
        reentry: false,
    }
}

pub(crate) fn draft(no: EventNo, policy: Policy) -> Event {
    Event {
        id: Seed::new(no, START, 0).mint(),
        name: format!("hall {}", no.0),
        currency: Currency::parse("EUR").expect("three capital letters"),
        starts_at: START.plus_ms(86_400_000),
        on_sale_at: None,
        off_sale_at: None,
        timezone: "Europe/Vienna".to_owned(),
        created_at: START,
        status: EventStatus::Draft,
        policy,
        epoch: 1,
        clock: Timestamp::ZERO,
        version: 0,
        manifest_version: 0,
        seat_count: 0,
        price_level_count: 0,
        price_version: 0,
        payment_pending: 0,
        area_count: 0,
        ga_in_use: 0,
        allocation_count: 0,
    }
}

pub(crate) fn manifest(seats: u32) -> Manifest {
    let level = |name: &str| PriceLevel { name: name.to_owned(), color: None };
    let seat = |ordinal: u32| ManifestSeat {
        seat_id: format!("S-{ordinal}"),
        section: 0,
        row: (ordinal / 50).to_string(),
        seat: (ordinal % 50).to_string(),
        price_level: (ordinal % 2) as u16,
        x: f64::from(ordinal % 50),
        y: f64::from(ordinal / 50),
        rank: ordinal,
        accessible: false,
        companion_of: None,
        restricted_view: false,
        not_for_sale: false,
    };
    Manifest {
        price_levels: vec![level("stalls"), level("circle")],
        sections: vec!["house".to_owned()],
        seats: (0..seats).map(seat).collect(),
        ga_areas: Vec::new(),
    }
}
