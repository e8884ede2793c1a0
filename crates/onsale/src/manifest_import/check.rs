//! What must hold for single values, whatever the format, and between the parts of a manifest.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use onsale_core::limits::BUCKETS_PER_AREA_MAX;
use onsale_core::manifest::Manifest;

use super::{At, Draft, DraftSeat, Fault, Imported, Source, layout, ranking};

const ID_BYTES_MAX: usize = 128;
const TEXT_CHARS_MAX: usize = 256;
const COORDINATE_MAX: f64 = 1e7;
const CAPACITY_MAX: u64 = 10_000_000;
const WARNINGS_MAX: usize = 100;
const QUOTE_CHARS_MAX: usize = 64;

/// An id is kept byte for byte, so it only has to be short and printable.
pub(super) fn id(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("is empty".into());
    }
    if text.len() > ID_BYTES_MAX {
        return Err(format!("has {} bytes, at most {ID_BYTES_MAX} are allowed", text.len()));
    }
    if text.chars().any(char::is_control) {
        return Err(format!("{} has a control character", quote(text)));
    }
    Ok(())
}

/// A label. Line breaks are allowed, since spreadsheets make them; NUL is not, since a database may not store it.
pub(super) fn text(text: &str) -> Result<(), String> {
    let chars = text.chars().count();
    if chars > TEXT_CHARS_MAX {
        return Err(format!("has {chars} characters, at most {TEXT_CHARS_MAX} are allowed"));
    }
    if text.chars().any(|char| char.is_control() && !matches!(char, '\t' | '\n' | '\r')) {
        return Err(format!("{} has a control character", quote(text)));
    }
    Ok(())
}

/// A label that something is found by.
pub(super) fn name(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("is empty".into());
    }
    text(name)
}

/// One coordinate, in the plan's own unit.
pub(super) fn coordinate(value: f64) -> Result<(), String> {
    // Written so that NaN fails too.
    if value.abs() <= COORDINATE_MAX {
        return Ok(());
    }
    Err(format!("a coordinate must be a number between -{COORDINATE_MAX} and {COORDINATE_MAX}"))
}

/// How many people a standing area takes.
pub(super) fn capacity(value: Option<u64>) -> Result<(), String> {
    match value {
        Some(1..=CAPACITY_MAX) => Ok(()),
        _ => Err(format!("a capacity must be an integer between 1 and {CAPACITY_MAX}")),
    }
}

/// Over how many buckets an area's capacity is spread.
pub(super) fn buckets(value: Option<u64>) -> Result<(), String> {
    match value {
        Some(count) if (1..=u64::from(BUCKETS_PER_AREA_MAX)).contains(&count) => Ok(()),
        _ => Err(format!("buckets must be an integer between 1 and {BUCKETS_PER_AREA_MAX}")),
    }
}

/// How good a seat is.
pub(super) fn rank(value: Option<u64>) -> Result<u32, String> {
    let rank = value.and_then(|rank| u32::try_from(rank).ok());
    rank.ok_or_else(|| format!("a rank must be an integer between 0, the best, and {}", u32::MAX))
}

/// Text from the file, fit to stand in a message.
pub(super) fn quote(text: &str) -> String {
    match text.char_indices().nth(QUOTE_CHARS_MAX) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// `#rrggbb`, also from `#rgb`. The colour ends up in pages, so nothing else gets through.
pub(super) fn color(text: &str) -> Option<String> {
    let digits =
        text.strip_prefix('#').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    match digits.len() {
        6 => Some(text.to_owned()),
        3 => Some(digits.chars().fold("#".to_owned(), |color, digit| format!("{color}{digit}{digit}"))),
        _ => None,
    }
}

/// Notes the faults between the parts of a draft; a draft without any fault becomes a manifest.
pub(super) fn finish(mut draft: Draft) -> Result<Imported, Vec<Fault>> {
    let mut faults = std::mem::take(&mut draft.faults);
    check_sections(&draft, &mut faults);
    check_seats(&draft, &mut faults);
    check_ga_areas(&draft, &mut faults);
    if faults.is_empty() && draft.seats.is_empty() && draft.ga_areas.is_empty() {
        let at = if draft.source == Source::Csv { At::Line(1) } else { At::Pointer(String::new()) };
        faults.push(Fault { at, detail: "no seats".into() });
    }
    if !faults.is_empty() {
        // Pointers come as the walks found them; lines can be put in order.
        faults.sort_by_key(|fault| if let At::Line(line) = fault.at { line } else { 0 });
        return Err(faults);
    }
    // Past this line the import must succeed.
    draft.seats.sort_by_key(|seat| seat.order);
    draft.warnings.extend(layout::place(&mut draft.seats));
    ranking::rank(&mut draft.seats, draft.focal_point);
    add_warnings(&mut draft);
    Ok(Imported {
        manifest: Manifest {
            price_levels: draft.levels.list,
            sections: draft.sections,
            seats: draft.seats.into_iter().map(|seat| seat.seat).collect(),
            ga_areas: draft.ga_areas.into_iter().map(|area| area.area).collect(),
        },
        warnings: bounded(draft.warnings),
    })
}

fn check_sections(draft: &Draft, faults: &mut Vec<Fault>) {
    let parent = if draft.source == Source::Pretix { "/zones" } else { "/sections" };
    let mut first: HashMap<&str, usize> = HashMap::new();
    for (index, name) in draft.sections.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
        match first.entry(name) {
            Entry::Occupied(earlier) => faults.push(Fault {
                at: At::Pointer(format!("{parent}/{index}/name")),
                detail: format!(
                    "{} is repeated: it first stands at {parent}/{}/name",
                    quote(name),
                    earlier.get()
                ),
            }),
            Entry::Vacant(entry) => {
                entry.insert(index);
            }
        }
    }
}

fn check_seats(draft: &Draft, faults: &mut Vec<Fault>) {
    let source = draft.source;
    let (id_member, first_stands) = match source {
        Source::Pretix => ("/seat_guid", "stands at"),
        Source::Own => ("/seat_id", "stands at"),
        Source::Csv => ("", "stands on"),
    };
    let mut first: HashMap<&str, &DraftSeat> = HashMap::with_capacity(draft.seats.len());
    for seat in draft.seats.iter().filter(|seat| !seat.seat.seat_id.is_empty()) {
        let seat_id = seat.seat.seat_id.as_str();
        match first.entry(seat_id) {
            Entry::Occupied(earlier) => {
                let place = match source.at(earlier.get().origin, id_member) {
                    At::Pointer(pointer) => pointer,
                    At::Line(line) => format!("line {line}"),
                };
                faults.push(Fault {
                    at: source.at(seat.origin, id_member),
                    detail: format!(
                        "seat id {} is repeated: it first {first_stands} {place}",
                        quote(seat_id)
                    ),
                });
            }
            Entry::Vacant(entry) => {
                entry.insert(seat);
            }
        }
    }
    for seat in &draft.seats {
        let Some(other) = seat.seat.companion_of.as_deref() else { continue };
        let detail = match first.get(other) {
            None => format!("there is no seat {}", quote(other)),
            Some(_) if other == seat.seat.seat_id => "a seat cannot be its own companion".into(),
            Some(other) if other.seat.accessible => continue,
            Some(_) => format!("seat {} is not accessible", quote(other)),
        };
        let detail = if source == Source::Csv { format!("companion_of: {detail}") } else { detail };
        faults.push(Fault { at: source.at(seat.origin, "/companion_of"), detail });
    }
}

fn check_ga_areas(draft: &Draft, faults: &mut Vec<Fault>) {
    let mut first: HashMap<&str, usize> = HashMap::new();
    for area in draft.ga_areas.iter().filter(|area| !area.area.ga_area.is_empty()) {
        match first.entry(area.area.ga_area.as_str()) {
            Entry::Occupied(earlier) => faults.push(Fault {
                at: At::Pointer(format!("/ga_areas/{}/ga_area", area.index)),
                detail: format!(
                    "{} is repeated: it first stands at /ga_areas/{}/ga_area",
                    quote(&area.area.ga_area),
                    earlier.get()
                ),
            }),
            Entry::Vacant(entry) => {
                entry.insert(area.index);
            }
        }
    }
}

fn add_warnings(draft: &mut Draft) {
    let Draft { levels, sections, seats, ga_areas, warnings, .. } = draft;
    let mut level_used = vec![false; levels.list.len()];
    let mut section_used = vec![false; sections.len()];
    for seat in seats.iter() {
        level_used[usize::from(seat.seat.price_level)] = true;
        section_used[usize::from(seat.seat.section)] = true;
    }
    for area in ga_areas.iter() {
        level_used[usize::from(area.area.price_level)] = true;
    }
    for (level, _) in levels.list.iter().zip(level_used).filter(|(_, used)| !used) {
        warnings.push(format!("price level {} has no seats", quote(&level.name)));
    }
    for (section, _) in sections.iter().zip(section_used).filter(|(_, used)| !used) {
        warnings.push(format!("section {} has no seats", quote(section)));
    }

    let mut places = HashSet::with_capacity(seats.len());
    // Adding zero makes -0.0 the same place as 0.0.
    let stacked = seats
        .iter()
        .filter(|seat| !places.insert([seat.seat.x + 0.0, seat.seat.y + 0.0].map(f64::to_bits)))
        .count();
    if stacked > 0 {
        warnings.push(format!("seats at the same place as another seat: {stacked}"));
    }
    let spaced = seats.iter().filter(|seat| seat.seat.seat_id.trim() != seat.seat.seat_id).count();
    if spaced > 0 {
        warnings.push(format!("seat ids that begin or end with a space: {spaced}"));
    }
    let as_one = seats.windows(2).filter(|pair| {
        let [one, other] = [&pair[0], &pair[1]];
        let labels = [one, other].map(|seat| (seat.seat.section, &seat.seat.row));
        labels[0] == labels[1] && one.origin.row != other.origin.row
    });
    for pair in as_one {
        let seat = &pair[0].seat;
        let section = quote(&sections[usize::from(seat.section)]);
        warnings.push(format!(
            "section {section} row {}: several rows of this label follow each other, and count as one",
            quote(&seat.row)
        ));
    }
    for row in seats.chunk_by(|a, b| (a.seat.section, a.origin.row) == (b.seat.section, b.origin.row)) {
        if runs_back(row) {
            let seat = &row[0].seat;
            let section = quote(&sections[usize::from(seat.section)]);
            warnings.push(format!(
                "section {section} row {}: the seats do not stand in the order of their places, so neighbours may be wrong",
                quote(&seat.row)
            ));
        }
    }
}

/// Whether a row turns back from one step to the next. Asking where the row goes and not about x alone keeps the curved
/// rows at the sides of a bowl quiet, and seats around a table.
fn runs_back(row: &[DraftSeat]) -> bool {
    row.windows(3).any(|seats| {
        let step = |from: usize| {
            let (from, to) = (&seats[from].seat, &seats[from + 1].seat);
            (to.x - from.x, to.y - from.y)
        };
        let (a, b) = (step(0), step(1));
        // The cosine of the angle between the steps; -1 is straight back.
        a.0 * b.0 + a.1 * b.1 < -0.7 * a.0.hypot(a.1) * b.0.hypot(b.1)
    })
}

fn bounded(mut warnings: Vec<String>) -> Vec<String> {
    if warnings.len() > WARNINGS_MAX {
        let rest = warnings.len() - (WARNINGS_MAX - 1);
        warnings.truncate(WARNINGS_MAX - 1);
        warnings.push(format!("and {rest} more warnings"));
    }
    warnings
}
