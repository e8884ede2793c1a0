//! A made-up stadium of any size, for demonstrations, rehearsals and tests: four tiers around a pitch, rows as arcs.

use std::f64::consts::{FRAC_PI_2, TAU};

use onsale_core::manifest::{Manifest, ManifestSeat, PriceLevel};
use serde_json::{Value, json};

const SEAT_SPACING: f64 = 24.0;
const ROW_SPACING: f64 = 30.0;
const TIER_GAP: f64 = 90.0;
const AISLE: f64 = 40.0;
const MARGIN: f64 = 40.0;
const SECTION_SEATS: usize = 350;
/// Sections are called by tier and a number of two digits.
const SECTIONS_PER_TIER_MAX: usize = 99;
const SEATS_PER_ACCESSIBLE: usize = 120;

struct Tier {
    name: &'static str,
    color: &'static str,
    /// Of all seats, in hundredths.
    share: usize,
}

// From the pitch outwards, in colours that the colour-blind tell apart (Okabe and Ito).
const TIERS: [Tier; 4] = [
    Tier { name: "Front", color: "#d55e00", share: 8 },
    Tier { name: "Lower", color: "#e69f00", share: 37 },
    Tier { name: "Middle", color: "#009e73", share: 20 },
    Tier { name: "Upper", color: "#0072b2", share: 35 },
];

const _: () = assert!(TIERS[0].share + TIERS[1].share + TIERS[2].share + TIERS[3].share == 100);

/// A bowl of exactly `seats` seats. The same seed gives the same bowl: its shape, and which seats are accessible.
pub(crate) fn generate(seats: usize, seed: u64) -> Manifest {
    let mut random = SplitMix64(seed);
    let mut bowl = Manifest::default();
    bowl.seats.reserve(seats);
    // The house grows outwards and inwards alike, so that a large one does not become a tower.
    let width = 60.0 + 10.0 * (seats as f64).sqrt();
    let height = width * (0.62 + 0.2 * random.unit());
    let mut depth = 0.0;
    let (mut share_before, mut seats_before) = (0, 0);
    for (number, tier) in TIERS.iter().enumerate() {
        share_before += tier.share;
        let tier_seats = seats * share_before / 100 - seats_before;
        seats_before += tier_seats;
        if tier_seats == 0 {
            continue;
        }
        let price_level = bowl.price_levels.len() as u16;
        bowl.price_levels.push(PriceLevel { name: tier.name.into(), color: Some(tier.color.into()) });
        let mut rings = Vec::new();
        // A small house has four sides too.
        let sections =
            tier_seats.div_ceil(SECTION_SEATS).max((tier_seats / 20).min(4)).min(SECTIONS_PER_TIER_MAX);
        for section in 0..sections {
            let section_seats = tier_seats / sections + usize::from(section < tier_seats % sections);
            let first = bowl.seats.len();
            let span = Span { from: section as f64 / sections as f64, share: 1.0 / sections as f64 };
            let name = format!("{}{:02}", number + 1, section + 1);
            let mut row = 0;
            while bowl.seats.len() - first < section_seats {
                if rings.len() == row {
                    let out = depth + row as f64 * ROW_SPACING;
                    rings.push(Ring::new(width + out, height + out));
                }
                let missing = section_seats - (bowl.seats.len() - first);
                let row_seats = span.capacity(&rings[row]).min(missing);
                add_row(&mut bowl, &name, &row_name(row), price_level, span.places(&rings[row], row_seats));
                row += 1;
            }
            let front_row = span.capacity(&rings[0]).min(section_seats);
            set_accessible(&mut bowl.seats[first..], front_row, &mut random);
            bowl.sections.push(name);
        }
        depth += rings.len() as f64 * ROW_SPACING + TIER_GAP;
    }
    move_into_view(&mut bowl.seats);
    bowl
}

fn add_row(
    bowl: &mut Manifest,
    section: &str,
    row: &str,
    price_level: u16,
    places: impl Iterator<Item = (f64, f64)>,
) {
    for (index, (x, y)) in places.enumerate() {
        let seat = (index + 1).to_string();
        bowl.seats.push(ManifestSeat {
            seat_id: format!("{section}-{row}-{seat}"),
            section: bowl.sections.len() as u16,
            row: row.to_owned(),
            seat,
            price_level,
            x,
            y,
            rank: 0,
            accessible: false,
            companion_of: None,
            restricted_view: false,
            not_for_sale: false,
        });
    }
}

/// Turns pairs of neighbours in a section's front row, which has level access, into a wheelchair place and its
/// companion's.
fn set_accessible(section: &mut [ManifestSeat], front_row: usize, random: &mut SplitMix64) {
    let pairs = front_row / 2;
    if pairs < 2 {
        return;
    }
    let wanted = section.len().div_ceil(SEATS_PER_ACCESSIBLE).min(pairs / 2);
    let start = (random.unit() * pairs as f64) as usize;
    for pair in (0..wanted).map(|number| (start + number * pairs / wanted) % pairs) {
        section[2 * pair].accessible = true;
        section[2 * pair + 1].companion_of = Some(section[2 * pair].seat_id.clone());
    }
}

/// `A` to `Z`, then `AA`.
fn row_name(index: usize) -> String {
    let letter = char::from(b'A' + (index % 26) as u8);
    if index < 26 { letter.to_string() } else { format!("{}{letter}", row_name(index / 26 - 1)) }
}

/// Puts the left upper corner at the margin. A tenth is far below a seat's size, and survives being written as a
/// decimal.
fn move_into_view(seats: &mut [ManifestSeat]) {
    let left = seats.iter().map(|seat| seat.x).fold(f64::INFINITY, f64::min);
    let top = seats.iter().map(|seat| seat.y).fold(f64::INFINITY, f64::min);
    for seat in seats {
        seat.x = ((seat.x - left + MARGIN) * 10.0).round() / 10.0;
        seat.y = ((seat.y - top + MARGIN) * 10.0).round() / 10.0;
    }
}

/// An ellipse that is walked by the length of its arc, so that seats stand equally far apart.
struct Ring {
    width: f64,
    height: f64,
    /// Length from the start to the end of each step.
    lengths: Vec<f64>,
}

impl Ring {
    const STEPS: usize = 720;

    fn new(width: f64, height: f64) -> Ring {
        let mut ring = Ring { width, height, lengths: Vec::with_capacity(Ring::STEPS) };
        let mut length = 0.0;
        let mut from = ring.at_step(0.0);
        for step in 1..=Ring::STEPS {
            let to = ring.at_step(step as f64);
            length += (to.0 - from.0).hypot(to.1 - from.1);
            ring.lengths.push(length);
            from = to;
        }
        ring
    }

    fn length(&self) -> f64 {
        self.lengths[Ring::STEPS - 1]
    }

    /// From the top, clockwise.
    fn at_step(&self, step: f64) -> (f64, f64) {
        let angle = step / Ring::STEPS as f64 * TAU - FRAC_PI_2;
        (self.width * angle.cos(), self.height * angle.sin())
    }

    fn at_length(&self, length: f64) -> (f64, f64) {
        let step = self.lengths.partition_point(|end| *end < length).min(Ring::STEPS - 1);
        let from = if step == 0 { 0.0 } else { self.lengths[step - 1] };
        self.at_step(step as f64 + (length - from) / (self.lengths[step] - from))
    }
}

/// A section's part of each ring of its tier, as shares of the ring's length.
struct Span {
    from: f64,
    share: f64,
}

impl Span {
    fn capacity(&self, ring: &Ring) -> usize {
        // A house of one seat still has a row for it.
        (((ring.length() * self.share - AISLE) / SEAT_SPACING) as usize).max(1)
    }

    /// Places for so many seats around the middle of the span.
    fn places(&self, ring: &Ring, seats: usize) -> impl Iterator<Item = (f64, f64)> {
        let middle = ring.length() * (self.from + self.share / 2.0);
        let first = middle - (seats - 1) as f64 / 2.0 * SEAT_SPACING;
        (0..seats).map(move |seat| ring.at_length(first + seat as f64 * SEAT_SPACING))
    }
}

/// Vigna's splitmix64: enough chance for a stadium, and the same on every machine.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// In `0.0..1.0`.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A manifest as a pretix seating plan. The schema has no room for standing areas, companions and the marks of a seat;
/// all else comes back when the plan is imported, if the seats stand section by section.
pub(crate) fn to_pretix_json(manifest: &Manifest) -> Value {
    let position = |x: f64, y: f64| json!({"x": x, "y": y});
    let mut zones: Vec<Vec<Value>> = vec![Vec::new(); manifest.sections.len()];
    for row in manifest.seats.chunk_by(|a, b| a.section == b.section && a.row == b.row) {
        let seats: Vec<Value> = row
            .iter()
            .map(|seat| {
                json!({
                    "seat_guid": seat.seat_id,
                    "seat_number": seat.seat,
                    "position": position(seat.x, seat.y),
                    "category": manifest.price_levels[usize::from(seat.price_level)].name,
                })
            })
            .collect();
        // Seats keep their places as they are: a sum of parts could be off by a rounding.
        let row_value = json!({"row_number": row[0].row, "position": position(0.0, 0.0), "seats": seats});
        zones[usize::from(row[0].section)].push(row_value);
    }
    let zones: Vec<Value> = manifest
        .sections
        .iter()
        .zip(zones)
        .map(|(name, rows)| json!({"name": name, "zone_id": name, "position": position(0.0, 0.0), "rows": rows}))
        .collect();
    let categories: Vec<Value> = manifest
        .price_levels
        .iter()
        .map(|level| match &level.color {
            Some(color) => json!({"name": level.name, "color": color}),
            None => json!({"name": level.name}),
        })
        .collect();
    let extent =
        |place: fn(&ManifestSeat) -> f64| manifest.seats.iter().map(place).fold(0.0, f64::max) + MARGIN;
    let size =
        json!({"width": extent(|seat| seat.x).ceil() as i64, "height": extent(|seat| seat.y).ceil() as i64});
    json!({"name": "Plan", "size": size, "categories": categories, "zones": zones})
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::manifest_import::{Format, Imported, import};

    #[test]
    fn any_size_has_exactly_its_seats() {
        for seats in (0..300).chain([999, 4_096, 50_000]) {
            let bowl = generate(seats, 7);
            assert_eq!(bowl.seats.len(), seats);
            let ids: HashSet<_> = bowl.seats.iter().map(|seat| &seat.seat_id).collect();
            let places: HashSet<_> =
                bowl.seats.iter().map(|seat| [seat.x, seat.y].map(f64::to_bits)).collect();
            assert_eq!((ids.len(), places.len()), (seats, seats));
        }
    }

    #[test]
    fn a_seed_is_a_bowl() {
        assert_eq!(generate(5_000, 1), generate(5_000, 1));
        assert_ne!(generate(5_000, 1), generate(5_000, 2));
    }

    #[test]
    fn neighbours_are_consecutive_and_a_seat_apart() {
        let bowl = generate(20_000, 3);
        let mut rows = HashSet::new();
        for row in bowl.seats.chunk_by(|a, b| (a.section, &a.row) == (b.section, &b.row)) {
            assert!(rows.insert((row[0].section, &row[0].row)), "row {} is in two parts", row[0].row);
            for (index, pair) in row.windows(2).enumerate() {
                assert_eq!(pair[1].seat, (index + 2).to_string());
                let apart = (pair[1].x - pair[0].x).hypot(pair[1].y - pair[0].y);
                assert!((apart - SEAT_SPACING).abs() < 1.0, "{apart}");
            }
        }
        let first = &bowl.seats[0];
        assert_eq!(
            (&*bowl.sections[0], &*first.seat_id, &*bowl.price_levels[0].name),
            ("101", "101-A-1", "Front")
        );
    }

    #[test]
    fn companions_sit_beside_accessible_seats() {
        let bowl = generate(5_000, 9);
        let companions: Vec<_> =
            bowl.seats.windows(2).filter(|pair| pair[1].companion_of.is_some()).collect();
        assert!(companions.len() >= bowl.sections.len());
        assert_eq!(companions.len(), bowl.seats.iter().filter(|seat| seat.accessible).count());
        for pair in companions {
            assert!(pair[0].accessible && pair[1].companion_of.as_ref() == Some(&pair[0].seat_id));
        }
    }

    #[test]
    fn a_plan_brings_the_same_seats_back() {
        for (seats, seed) in [(1, 0), (7, 1), (120, 2), (1_000, 3), (5_000, 4)] {
            let mut bowl = generate(seats, seed);
            let plan = to_pretix_json(&bowl).to_string();
            let Imported { manifest, warnings } =
                import(Format::Json, plan.as_bytes(), false).expect("should import");
            // A plan has no room for these, and how good a seat is is found out when it is read.
            for (seat, read) in bowl.seats.iter_mut().zip(&manifest.seats) {
                seat.accessible = false;
                seat.companion_of = None;
                seat.rank = read.rank;
            }
            assert_eq!(manifest, bowl);
            assert_eq!(warnings, [""; 0]);
        }
    }

    #[test]
    fn rows_are_lettered() {
        assert_eq!([0, 25, 26, 701, 702].map(row_name), ["A", "Z", "AA", "ZZ", "AAA"]);
    }
}
