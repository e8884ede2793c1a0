//! Manifest import: a pretix seating plan, our own JSON or our own CSV becomes a [`Manifest`], all or nothing.
//!
//! A reader ([`pretix`], [`own`], [`csv`]) turns bytes into a [`Draft`] and notes what is wrong with single members or
//! lines; [`check`] then notes what is wrong between them, and only a draft without any fault becomes a manifest.

use std::collections::HashMap;

use onsale_core::manifest::{GaArea, Manifest, ManifestSeat, PriceLevel};

mod check;
mod csv;
mod json;
mod layout;
mod own;
mod pretix;
mod ranking;
#[cfg(test)]
mod tests;

/// Seats of one manifest.
pub(crate) const SEATS_MAX: usize = 1_200_000;
/// Standing areas of one manifest.
pub(crate) const GA_AREAS_MAX: usize = 1_000;
/// Price levels of one manifest.
pub(crate) const PRICE_LEVELS_MAX: usize = 1_000;
/// Sections of one manifest.
pub(crate) const SECTIONS_MAX: usize = 10_000;

// A seat names its section and its price level by a 16-bit index.
const _: () = assert!(SECTIONS_MAX <= u16::MAX as usize);
const _: () = assert!(PRICE_LEVELS_MAX <= u16::MAX as usize);

/// One thing that is wrong with the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fault {
    pub at: At,
    pub detail: String,
}

/// Where a fault stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum At {
    /// An RFC 6901 pointer. A missing member is a fault of the object that lacks it.
    Pointer(String),
    /// A line of a CSV file, from 1: the line where its record starts.
    Line(u64),
}

/// A manifest that may be used, and what its organiser should look at nevertheless.
#[derive(Debug)]
pub(crate) struct Imported {
    pub manifest: Manifest,
    pub warnings: Vec<String>,
}

/// What the bytes claim to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    Json,
    Csv,
}

/// Reads a manifest. All or nothing; every fault, none left out.
///
/// `prefix_zones` makes the seat ids of a pretix plan unique by putting the zone's name in front of them.
pub(crate) fn import(format: Format, bytes: &[u8], prefix_zones: bool) -> Result<Imported, Vec<Fault>> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut draft = match format {
        Format::Csv => csv::read(bytes),
        Format::Json => read_json(bytes, prefix_zones)?,
    };
    if prefix_zones && draft.source != Source::Pretix {
        draft.warnings.push("prefix_zones changes nothing here: only a pretix plan has zones".into());
    }
    check::finish(draft)
}

fn read_json(bytes: &[u8], prefix_zones: bool) -> Result<Draft, Vec<Fault>> {
    let root = |detail: String| vec![Fault { at: At::Pointer(String::new()), detail }];
    let document: serde_json::Value =
        serde_json::from_slice(bytes).map_err(|error| root(format!("not JSON: {error}")))?;
    let Some(members) = document.as_object() else {
        return Err(root(format!("expected an object, found {}", json::kind(&document))));
    };
    let mut draft = if members.contains_key("zones") {
        pretix::read(&document, prefix_zones)
    } else if members.contains_key("sections") || members.contains_key("ga_areas") {
        own::read(&document)
    } else {
        return Err(root("neither a pretix plan (`zones`) nor a manifest (`sections`, `ga_areas`)".into()));
    };
    // A `Value` silently keeps only the last of two members of one name, which could lose half a house.
    draft.faults.extend(json::repeated_members(bytes));
    Ok(draft)
}

/// What a reader made of the file. Parts that could not be read are left out, and `faults` says so.
struct Draft {
    source: Source,
    levels: Levels,
    sections: Vec<String>,
    seats: Vec<DraftSeat>,
    ga_areas: Vec<DraftArea>,
    /// The place that the best seats are near to.
    focal_point: Option<(f64, f64)>,
    faults: Vec<Fault>,
    warnings: Vec<String>,
}

impl Draft {
    fn new(source: Source, levels: Levels) -> Draft {
        Draft {
            source,
            levels,
            sections: Vec::new(),
            seats: Vec::new(),
            ga_areas: Vec::new(),
            focal_point: None,
            faults: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Pretix,
    Own,
    Csv,
}

struct DraftSeat {
    origin: Origin,
    /// Its `seat_id` is empty if it could not be read.
    seat: ManifestSeat,
    /// Whether the file says where the seat is.
    placed: bool,
    /// How good the organiser says it is: 0 is the best.
    rank: Option<u32>,
    /// Seats are sorted by this, ties as they were read.
    order: u64,
}

struct DraftArea {
    index: usize,
    area: GaArea,
}

/// Where a seat was read. A pointer for each of a million seats would outweigh the seats, so it is written on demand.
#[derive(Clone, Copy)]
struct Origin {
    section: u32,
    /// JSON: index in the section. CSV: number of the row among all rows of the file.
    row: u32,
    /// JSON: index in the row. CSV: the line.
    seat: u32,
}

impl Source {
    /// Where `member` of the seat read at `origin` stands.
    fn at(self, origin: Origin, member: &str) -> At {
        let Origin { section, row, seat } = origin;
        match self {
            Source::Pretix => At::Pointer(format!("/zones/{section}/rows/{row}/seats/{seat}{member}")),
            Source::Own => At::Pointer(format!("/sections/{section}/rows/{row}/seats/{seat}{member}")),
            Source::Csv => At::Line(seat.into()),
        }
    }
}

/// The price levels read so far, by name.
struct Levels {
    list: Vec<PriceLevel>,
    index: HashMap<String, u16>,
    /// Whether the file declares its levels; if not, a level exists once a seat names it.
    declared: bool,
}

impl Levels {
    fn new(declared: bool) -> Levels {
        Levels { list: Vec::new(), index: HashMap::new(), declared }
    }

    /// Adds a level that the file declares.
    fn declare(&mut self, name: &str, color: Option<String>) -> Result<u16, String> {
        if self.index.contains_key(name) {
            return Err(format!("{} is declared twice", check::quote(name)));
        }
        if self.list.len() == PRICE_LEVELS_MAX {
            return Err(format!("more than {PRICE_LEVELS_MAX} price levels"));
        }
        let index = self.list.len() as u16;
        self.list.push(PriceLevel { name: name.to_owned(), color });
        self.index.insert(name.to_owned(), index);
        Ok(index)
    }

    /// The index of the level that a seat or an area names.
    fn named(&mut self, name: &str) -> Result<u16, String> {
        match self.index.get(name) {
            Some(index) => Ok(*index),
            None if self.declared => Err(format!("{} is not declared", check::quote(name))),
            None => self.declare(name, None),
        }
    }
}
