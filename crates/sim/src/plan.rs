//! What a world is like: drawn once, from its seed. Some worlds are quiet and some are cruel, because a fault that always
//! happens hides those that need peace to show.

use std::fmt;
use std::str::FromStr;

use onsale_core::event::{Event, InDoubt, PaymentMode};
use onsale_world::{HALL, event};

use crate::chance::Chance;

macro_rules! troubles {
    ($($(#[doc = $what:literal])+ $name:ident;)*) => {
        /// A kind of trouble that a world may be spared.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Trouble {$($(#[doc = $what])+ $name,)*}

        impl Trouble {
            /// All of them, the greatest simplification first.
            pub const ALL: &[Trouble] = &[$(Trouble::$name,)*];
        }
    };
}

troubles! {
    /// Standing areas.
    Areas;
    /// Allocations and access codes.
    Codes;
    /// Refunds of what was sold.
    Refunds;
    /// More than one process.
    Processes;
    /// More than two buyers.
    Buyers;
    /// More than one purchase of each.
    Purchases;
    /// A day that passes at once.
    Day;
    /// A provider that can't be reached.
    Outage;
    /// Processes that end.
    Crashes;
    /// Transactions that fail.
    StoreFaults;
    /// Looks at rows of a moment ago.
    StaleLooks;
    /// Clocks that are off.
    Skew;
    /// A provider that refuses without a reason.
    Refusals;
    /// Messages lost between clients and processes.
    Losses;
    /// Messages lost between processes and the provider.
    ProviderLosses;
}

/// The troubles that a world is spared.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Spared(u16);

impl Spared {
    /// These, and one more.
    pub fn and(self, trouble: Trouble) -> Spared {
        Spared(self.0 | 1 << trouble as u16)
    }

    fn has(self, trouble: Trouble) -> bool {
        self.0 & 1 << trouble as u16 != 0
    }
}

impl fmt::Display for Spared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Trouble::ALL.iter().filter(|trouble| self.has(**trouble));
        f.write_str(&names.map(|trouble| format!("{trouble:?}")).collect::<Vec<_>>().join(","))
    }
}

impl fmt::Debug for Spared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Spared {
    type Err = String;

    fn from_str(text: &str) -> Result<Spared, String> {
        let mut spared = Spared::default();
        for name in text.split(',').filter(|name| !name.is_empty()) {
            let found = Trouble::ALL.iter().find(|trouble| format!("{trouble:?}") == name);
            let all = || format!("{name} is none of {:?}", Trouble::ALL);
            spared = spared.and(*found.ok_or_else(all)?);
        }
        Ok(spared)
    }
}

pub(crate) struct Plan {
    pub(crate) event: Event,
    pub(crate) charge: bool,
    pub(crate) seats: usize,
    pub(crate) processes: usize,
    pub(crate) buyers: usize,
    /// Purchases each buyer begins at most.
    pub(crate) purchases: u32,
    /// All times are multiples of this, so that in coarse worlds things meet at the same instant.
    pub(crate) grain_ms: i64,
    /// How long faults and buyers go on.
    pub(crate) safety_ms: i64,
    /// Of messages between a client and a process, in percent.
    pub(crate) lost: usize,
    /// Of messages between a process and the provider, in percent.
    pub(crate) provider_lost: usize,
    /// Of refusals of the provider without a reason in its own books, in percent.
    pub(crate) refuses: usize,
    /// Of transactions that fail in one way or another, in permille.
    pub(crate) store_faults: usize,
    /// Of steps after which a process ends, in permille.
    pub(crate) crashes: usize,
    /// Of looks that see rows of a moment ago, in percent.
    pub(crate) stale: usize,
    /// How often the expirer looks. Nothing is promised on its account, so in some worlds it hardly ever does.
    pub(crate) expirer_ms: i64,
    /// Largest difference between a process's clock and the true time.
    pub(crate) skew_ms: i64,
    /// When the provider can't be reached, from the beginning.
    pub(crate) outage: Option<(i64, i64)>,
    /// When a day passes at once, from the beginning.
    pub(crate) day_passes: Option<i64>,
    /// Standing areas: the capacity of each, and over how many buckets it is spread.
    pub(crate) areas: Vec<(u32, u16)>,
    /// How the event sells to some and not to all; none where there is no access code.
    pub(crate) access: Option<Access>,
    /// Whether the operator gives money back.
    pub(crate) refunds: bool,
}

/// Access codes, and what they open.
pub(crate) struct Access {
    /// Tickets that may be had with the code of a party, and with that of the presale.
    pub(crate) tickets_max: [u32; 2],
    /// Seats set aside for the party.
    pub(crate) seats: usize,
    /// When the sale begins for all, from the beginning of the world.
    pub(crate) sale_begins: Option<i64>,
}

impl Plan {
    pub(crate) fn draw(chance: &mut Chance, is_real: bool) -> Plan {
        let mut row = event(HALL);
        let charge = chance.percent(20);
        row.policy.hold_ttl_ms = chance.of(&[20_000, 30_000, 60_000]);
        row.policy.payment_grace_ms = chance.of(&[0, 10_000, 30_000]);
        row.policy.in_doubt = chance.of(&[InDoubt::Keep, InDoubt::Release]);
        row.policy.seats_per_hold_max = 4;
        row.policy.tickets_per_account_max = chance.of(&[3, 4, 6]);
        row.policy.payment_pending_per_account_max = chance.of(&[1, 2]);
        row.policy.payment_pending_max = chance.of(&[2, 3, 50]);
        row.policy.payment = if charge { PaymentMode::Charge } else { PaymentMode::AuthorizeThenCapture };
        let grain_ms = chance.of(&[1, 1, 500, 1_000]);
        let safety_ms = if is_real { 90_000 } else { chance.of(&[120_000, 200_000, 300_000]) };
        let cruel = chance.percent(60);
        let some = |chance: &mut Chance, choices: &[usize]| if cruel { chance.of(choices) } else { 0 };
        let outage = chance.percent(25).then(|| {
            let from = chance.between(20_000, 80_000);
            (from, from + chance.of(&[15_000, 60_000, 120_000]))
        });
        // In the middle of an outage, what waits to be sent grows old.
        let in_outage = outage.map(|(from, to)| (from + to) / 2);
        let at = chance.between(30_000, 100_000);
        let day_passes = chance.percent(30).then(|| in_outage.filter(|_| chance.percent(70)).unwrap_or(at));
        let seats = chance.between(3, 10) as usize;
        let area = |chance: &mut Chance| (chance.between(3, 9) as u32, chance.of(&[1, 2, 3]));
        let areas: Vec<(u32, u16)> = (0..chance.of(&[0, 1, 1, 2])).map(|_| area(chance)).collect();
        if !areas.is_empty() && chance.percent(35) {
            row.policy.ga_max = Some(chance.between(3, 7) as u32);
        }
        let access = chance.percent(60).then(|| Access {
            tickets_max: [chance.between(2, 6) as u32, chance.between(2, 8) as u32],
            seats: 1 + chance.below(seats.min(3)),
            sale_begins: chance.percent(30).then(|| chance.between(5_000, 40_000)),
        });
        let refunds = chance.percent(75);
        row.policy.reentry = chance.percent(50);
        Plan {
            event: row,
            charge,
            seats,
            processes: chance.of(&[1, 2, 2, 3]),
            buyers: chance.between(3, 7) as usize,
            purchases: chance.between(2, 5) as u32,
            grain_ms,
            safety_ms,
            lost: some(chance, &[1, 5, 15]),
            provider_lost: some(chance, &[2, 10, 30, 60]),
            refuses: chance.of(&[0, 2, 5]),
            store_faults: some(chance, &[0, 20, 80]),
            crashes: some(chance, &[0, 6, 20]),
            stale: if is_real { 0 } else { some(chance, &[0, 10, 30]) },
            expirer_ms: chance.of(&[2_500, 2_500, 45_000]),
            skew_ms: some(chance, &[0, 1_000, 3_000]) as i64,
            outage,
            day_passes,
            areas,
            access,
            refunds,
        }
    }

    /// The same world without some of its troubles.
    pub(crate) fn spare(&mut self, spared: Spared) {
        for trouble in Trouble::ALL.iter().filter(|trouble| spared.has(**trouble)) {
            match trouble {
                Trouble::Areas => {
                    self.areas.clear();
                    self.event.policy.ga_max = None;
                }
                Trouble::Codes => self.access = None,
                Trouble::Refunds => self.refunds = false,
                Trouble::Processes => self.processes = 1,
                Trouble::Buyers => self.buyers = self.buyers.min(2),
                Trouble::Purchases => self.purchases = 1,
                Trouble::Day => self.day_passes = None,
                Trouble::Outage => self.outage = None,
                Trouble::Crashes => self.crashes = 0,
                Trouble::StoreFaults => self.store_faults = 0,
                Trouble::StaleLooks => self.stale = 0,
                Trouble::Skew => self.skew_ms = 0,
                Trouble::Refusals => self.refuses = 0,
                Trouble::Losses => self.lost = 0,
                Trouble::ProviderLosses => self.provider_lost = 0,
            }
        }
    }
}
