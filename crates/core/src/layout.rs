//! What a choice of seats needs to know of a manifest: who sits beside whom, who behind whom, and which seat is better.
//!
//! A row is a run of consecutive ordinals with one section and one label. Neighbours are neighbours because the manifest
//! puts them so; a printed number says nothing about it, since houses number their seats by twos, and from the middle.

use std::collections::BTreeMap;

use crate::id::SeatOrdinal;
use crate::manifest::Manifest;

/// A manifest's seats in rows. Made once for each version of a manifest, and shared.
#[derive(Clone, PartialEq, Debug)]
pub struct Layout {
    places: Vec<Place>,
    rows: Vec<Row>,
    /// Indexes of rows, the one with the best seat first.
    rows_by_rank: Vec<u32>,
    /// Companions' seats with the accessible seats they belong to, ascending.
    companions: Vec<(u32, u32)>,
    /// The same the other way round, ascending.
    companions_of: Vec<(u32, u32)>,
    price_levels: usize,
}

/// Where one seat is. There may be more than a million of them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Place {
    /// Index of its row.
    pub row: u32,
    /// 0 is the best seat of the house.
    pub rank: u32,
    /// Index of its price level.
    pub price_level: u16,
    /// For whom it is kept.
    pub kept: Kept,
    /// On the plan: enough digits to tell near from far.
    x: f32,
    y: f32,
}

/// For whom a seat is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    /// For nobody in particular.
    ForAnyone,
    /// For someone in a wheelchair.
    Accessible,
    /// For who comes with someone in a wheelchair.
    Companion,
}

/// A row: the ordinals from `first` to before `end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// Its first seat.
    pub first: u32,
    /// One past its last seat.
    pub end: u32,
    /// Index of its section.
    pub section: u16,
    /// The price level of all its seats, when they have one.
    pub price_level: Option<u16>,
    /// The rank of its best seat.
    pub best_rank: u32,
    /// Whether a seat of it is accessible.
    pub has_accessible: bool,
}

impl Row {
    /// Whether two rows lie behind each other when one follows the other.
    pub(crate) fn is_beside(&self, next: &Row) -> bool {
        self.section == next.section
    }
}

/// A seat to lay out, as the manifest has it.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "as in the manifest")]
pub struct Printed<'a> {
    pub seat_id: &'a str,
    pub section: u16,
    pub row: &'a str,
    pub price_level: u16,
    pub x: f64,
    pub y: f64,
    pub rank: u32,
    pub accessible: bool,
    pub companion_of: Option<&'a str>,
}

/// A layout in the making: seats are added one after the other, so that a store needs no whole manifest for it.
#[derive(Debug, Default)]
pub struct Drawing {
    places: Vec<Place>,
    rows: Vec<Row>,
    /// The last row's.
    label: String,
    /// Accessible seats by id.
    accessible: BTreeMap<String, u32>,
    /// Companions' seats with the ids of the accessible ones.
    companions: Vec<(u32, String)>,
}

impl Drawing {
    /// Adds the next seat.
    pub fn add(&mut self, seat: Printed<'_>) {
        let ordinal = self.places.len() as u32;
        let kept = match seat.companion_of {
            _ if seat.accessible => {
                self.accessible.insert(seat.seat_id.to_owned(), ordinal);
                Kept::Accessible
            }
            Some(other) => {
                self.companions.push((ordinal, other.to_owned()));
                Kept::Companion
            }
            None => Kept::ForAnyone,
        };
        match self.rows.last_mut().filter(|row| row.section == seat.section && self.label == seat.row) {
            Some(row) => {
                row.end = ordinal + 1;
                row.price_level = row.price_level.filter(|level| *level == seat.price_level);
                row.best_rank = row.best_rank.min(seat.rank);
                row.has_accessible |= seat.accessible;
            }
            None => {
                seat.row.clone_into(&mut self.label);
                self.rows.push(Row {
                    first: ordinal,
                    end: ordinal + 1,
                    section: seat.section,
                    price_level: Some(seat.price_level),
                    best_rank: seat.rank,
                    has_accessible: seat.accessible,
                });
            }
        }
        self.places.push(Place {
            row: self.rows.len() as u32 - 1,
            rank: seat.rank,
            price_level: seat.price_level,
            kept,
            x: seat.x as f32,
            y: seat.y as f32,
        });
    }

    /// The layout of the seats that were added.
    pub fn finish(self) -> Layout {
        let Drawing { places, rows, accessible, companions, .. } = self;
        let mut rows_by_rank: Vec<u32> = (0..rows.len() as u32).collect();
        rows_by_rank.sort_by_key(|row| rows[*row as usize].best_rank);
        let belongs = |(seat, other): (u32, String)| Some((seat, *accessible.get(&other)?));
        let companions: Vec<(u32, u32)> = companions.into_iter().filter_map(belongs).collect();
        let mut companions_of: Vec<(u32, u32)> = companions.iter().map(|(a, b)| (*b, *a)).collect();
        companions_of.sort_unstable();
        let price_levels = places.iter().map(|place| usize::from(place.price_level) + 1).max().unwrap_or(0);
        Layout { places, rows, rows_by_rank, companions, companions_of, price_levels }
    }
}

impl Layout {
    /// The rows of a manifest.
    pub fn of(manifest: &Manifest) -> Layout {
        let mut drawing = Drawing::default();
        for seat in &manifest.seats {
            drawing.add(Printed {
                seat_id: &seat.seat_id,
                section: seat.section,
                row: &seat.row,
                price_level: seat.price_level,
                x: seat.x,
                y: seat.y,
                rank: seat.rank,
                accessible: seat.accessible,
                companion_of: seat.companion_of.as_deref(),
            });
        }
        drawing.finish()
    }

    /// How many seats there are.
    pub fn seat_count(&self) -> usize {
        self.places.len()
    }

    /// How many price levels its seats have: one more than the highest index.
    pub fn price_level_count(&self) -> usize {
        self.price_levels
    }

    /// Its rows, in the manifest's order.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Its rows, the one with the best seat first.
    pub(crate) fn rows_by_rank(&self) -> impl Iterator<Item = &Row> {
        self.rows_by_rank.iter().map(|row| &self.rows[*row as usize])
    }

    /// Where a seat is; `None` beyond the last.
    pub fn place(&self, seat: SeatOrdinal) -> Option<&Place> {
        self.places.get(seat.0 as usize)
    }

    pub(crate) fn at(&self, ordinal: u32) -> &Place {
        &self.places[ordinal as usize]
    }

    /// The accessible seat whose companion sits at `companion`.
    pub fn accessible_of(&self, companion: SeatOrdinal) -> Option<SeatOrdinal> {
        let found = self.companions.binary_search_by_key(&companion.0, |(companion, _)| *companion);
        found.ok().map(|at| SeatOrdinal(self.companions[at].1))
    }

    /// The seats of an accessible seat's companions, ascending.
    pub fn companions_of(&self, accessible: SeatOrdinal) -> impl Iterator<Item = SeatOrdinal> {
        let from = self.companions_of.partition_point(|(other, _)| *other < accessible.0);
        let to = self.companions_of.partition_point(|(other, _)| *other <= accessible.0);
        self.companions_of[from..to].iter().map(|(_, companion)| SeatOrdinal(*companion))
    }

    /// How far apart two seats are on the plan.
    pub(crate) fn distance(&self, one: (f32, f32), other: (f32, f32)) -> f32 {
        (one.0 - other.0).hypot(one.1 - other.1)
    }

    /// The middle between two seats of one row.
    pub(crate) fn middle(&self, first: u32, last: u32) -> (f32, f32) {
        let (first, last) = (self.at(first), self.at(last));
        ((first.x + last.x) / 2.0, (first.y + last.y) / 2.0)
    }
}
