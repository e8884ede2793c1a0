//! The house as the crowd sees it, and how a buyer chooses from it. Pure: chance is an argument.

use std::collections::HashMap;

use rand::{Rng, RngExt};

use super::wire::ManifestSeatSeen;

/// One seat in so many is one that everybody wants.
const POPULAR_ONE_IN: usize = 10;

/// Most tickets in a hold.
const TICKETS_MAX: u32 = 6;

const AVAILABLE: u8 = b'0';

/// What a buyer is after.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    pub(super) seats: usize,
    /// One of the seats that everybody wants, as long as there are any.
    pub(super) popular: bool,
    /// On the pitch: of friends who would rather stand.
    pub(super) places: u32,
}

impl Wish {
    pub(super) fn draw(chance: &mut impl Rng) -> Wish {
        // Most people come in pairs and fours.
        const SEATS: [usize; 12] = [1, 2, 2, 2, 2, 3, 3, 4, 4, 4, 5, 6];
        let seats = SEATS[chance.random_range(0..SEATS.len())];
        let places =
            if chance.random_bool(0.2) { chance.random_range(0..=TICKETS_MAX - seats as u32) } else { 0 };
        Wish { seats, popular: chance.random_bool(0.8), places }
    }
}

/// How many seats are in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) available: usize,
    pub(super) held: usize,
    pub(super) sold: usize,
    /// In a state that no seat of the demo should be in.
    pub(super) other: usize,
}

/// Every seat and the last that was heard of it.
pub(super) struct House {
    seat_ids: Vec<String>,
    ordinals: HashMap<String, u32>,
    /// Where the row of each seat ends: seats before that are its neighbours.
    row_ends: Vec<u32>,
    digits: Vec<u8>,
    version: u64,
    counts: Counts,
    /// Seats that were refused since the map was last heard of. The next map is right again, whatever a refusal that
    /// was long on its way said.
    doubted: Vec<u32>,
    is_doubted: Vec<bool>,
}

impl House {
    /// A house that nothing is known of but its seats.
    pub(super) fn new(seats: Vec<ManifestSeatSeen>) -> House {
        let mut row_ends = vec![0; seats.len()];
        let mut end = seats.len();
        for ordinal in (0..seats.len()).rev() {
            let is_last = seats.get(ordinal + 1).is_none_or(|next| {
                (&next.section, &next.row) != (&seats[ordinal].section, &seats[ordinal].row)
            });
            if is_last {
                end = ordinal + 1;
            }
            row_ends[ordinal] = end as u32;
        }
        let count = seats.len();
        let seat_ids: Vec<String> = seats.into_iter().map(|seat| seat.seat_id).collect();
        let ordinals = seat_ids.iter().cloned().zip(0..).collect();
        House {
            seat_ids,
            ordinals,
            row_ends,
            digits: vec![b'3'; count],
            version: 0,
            counts: Counts { other: count, ..Counts::default() },
            doubted: Vec::new(),
            is_doubted: vec![false; count],
        }
    }

    pub(super) fn len(&self) -> usize {
        self.seat_ids.len()
    }

    pub(super) fn seat_id(&self, ordinal: u32) -> &str {
        &self.seat_ids[ordinal as usize]
    }

    pub(super) fn ordinal(&self, seat_id: &str) -> Option<u32> {
        self.ordinals.get(seat_id).copied()
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    /// The digits as they stand.
    pub(super) fn digits(&self) -> &[u8] {
        &self.digits
    }

    /// Takes a whole map.
    pub(super) fn take_states(&mut self, version: u64, states: &str) -> anyhow::Result<()> {
        anyhow::ensure!(states.len() == self.digits.len(), "the map has {} seats", states.len());
        self.digits.copy_from_slice(states.as_bytes());
        self.version = version;
        let count = |digit| self.digits.iter().filter(|seat| **seat == digit).count();
        let (available, held, sold) = (count(AVAILABLE), count(b'1'), count(b'2'));
        self.counts = Counts { available, held, sold, other: self.digits.len() - available - held - sold };
        self.trust();
        Ok(())
    }

    /// Takes what changed.
    pub(super) fn take_changes(&mut self, version: u64, changes: &[(u32, u8)]) -> anyhow::Result<()> {
        for (ordinal, digit) in changes {
            let seat = self.digits.get_mut(*ordinal as usize);
            let seat = seat.ok_or_else(|| anyhow::anyhow!("the map speaks of seat {ordinal}"))?;
            let before = std::mem::replace(seat, b'0' + digit);
            *self.counts.of(before) -= 1;
            *self.counts.of(b'0' + digit) += 1;
        }
        self.version = version;
        self.trust();
        Ok(())
    }

    fn trust(&mut self) {
        for ordinal in self.doubted.drain(..) {
            self.is_doubted[ordinal as usize] = false;
        }
    }

    /// A seat was refused: the map is behind.
    pub(super) fn doubt(&mut self, ordinal: u32) {
        if !std::mem::replace(&mut self.is_doubted[ordinal as usize], true) {
            self.doubted.push(ordinal);
        }
    }

    fn seems_available(&self, ordinal: u32) -> bool {
        self.digits[ordinal as usize] == AVAILABLE && !self.is_doubted[ordinal as usize]
    }

    /// Seats for a wish: side by side where they are wanted, else side by side anywhere, else what there is.
    pub(super) fn choose(&self, wish: Wish, chance: &mut impl Rng) -> Vec<u32> {
        let popular = (self.len() / POPULAR_ONE_IN) as u32;
        let everywhere = self.len() as u32;
        if self.counts.available == 0 {
            return Vec::new();
        }
        let zones = [popular, everywhere];
        for zone in zones.into_iter().skip(usize::from(!wish.popular || popular == 0)) {
            let start = chance.random_range(0..zone);
            let run = (start..zone).chain(0..start).find(|first| self.is_run(*first, wish.seats));
            if let Some(first) = run {
                return (first..first + wish.seats as u32).collect();
            }
        }
        let start = chance.random_range(0..everywhere);
        let from_there = (start..everywhere).chain(0..start);
        let mut seats: Vec<u32> =
            from_there.filter(|seat| self.seems_available(*seat)).take(wish.seats).collect();
        seats.sort_unstable();
        seats
    }

    fn is_run(&self, first: u32, seats: usize) -> bool {
        let end = first + seats as u32;
        end <= self.row_ends[first as usize] && (first..end).all(|seat| self.seems_available(seat))
    }
}

impl Counts {
    fn of(&mut self, digit: u8) -> &mut usize {
        match digit {
            AVAILABLE => &mut self.available,
            b'1' => &mut self.held,
            b'2' => &mut self.sold,
            _ => &mut self.other,
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    /// Rows of these many seats, all available.
    fn hall(rows: &[usize]) -> House {
        let row = |(row, seats): (usize, &usize)| {
            (0..*seats).map(move |seat| ManifestSeatSeen {
                seat_id: format!("{row}-{seat}"),
                section: "stalls".into(),
                row: row.to_string(),
            })
        };
        let mut house = House::new(rows.iter().enumerate().flat_map(row).collect());
        let states = "0".repeat(house.len());
        house.take_states(1, &states).unwrap();
        house
    }

    fn wish(seats: usize, popular: bool) -> Wish {
        Wish { seats, popular, places: 0 }
    }

    #[test]
    fn neighbours_sit_in_one_row() {
        let house = hall(&[3, 4, 2, 5]);
        let mut chance = StdRng::seed_from_u64(1);
        for _ in 0..200 {
            let seats = house.choose(wish(4, false), &mut chance);
            assert!([[3, 4, 5, 6], [9, 10, 11, 12], [10, 11, 12, 13]].iter().any(|run| seats == run));
        }
    }

    #[test]
    fn what_everybody_wants_is_taken_first_and_then_anything() {
        let mut house = hall(&[10; 10]);
        let mut chance = StdRng::seed_from_u64(2);
        for _ in 0..200 {
            assert!(house.choose(wish(2, true), &mut chance).iter().all(|seat| *seat < 10));
        }
        house.take_changes(2, &(0..10).map(|seat| (seat, 1)).collect::<Vec<_>>()).unwrap();
        assert!(house.choose(wish(2, true), &mut chance).iter().all(|seat| *seat >= 10));
        let left: Vec<(u32, u8)> = (10..100).filter(|seat| seat % 30 != 0).map(|seat| (seat, 2)).collect();
        house.take_changes(3, &left).unwrap();
        assert_eq!(house.choose(wish(4, true), &mut chance), [30, 60, 90], "apart, and fewer than wished");
        assert_eq!(house.counts(), Counts { available: 3, held: 10, sold: 87, other: 0 });
    }

    #[test]
    fn a_refused_seat_is_left_alone_until_the_map_speaks_again() {
        let mut house = hall(&[2]);
        let mut chance = StdRng::seed_from_u64(3);
        house.doubt(0);
        house.doubt(0);
        assert_eq!(house.choose(wish(2, false), &mut chance), [1]);
        house.doubt(1);
        assert_eq!(house.choose(wish(2, false), &mut chance), [0; 0]);
        house.take_changes(2, &[(1, 1)]).unwrap();
        assert_eq!(house.choose(wish(2, false), &mut chance), [0]);
        assert!(house.take_changes(3, &[(2, 1)]).is_err(), "there is no such seat");
        assert!(house.take_states(3, "0").is_err());
    }
}
