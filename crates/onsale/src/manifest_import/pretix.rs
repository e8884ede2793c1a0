//! Reads a pretix seating plan (schema 0.0.1): zones become sections, categories price levels.

use std::collections::HashMap;

use onsale_core::manifest::ManifestSeat;
use serde_json::Value;

use super::json::{self, Member, Shape, elements, older, optional, required, text};
use super::{
    At, Draft, DraftSeat, Fault, Levels, Origin, PRICE_LEVELS_MAX, SEATS_MAX, SECTIONS_MAX, Source, check,
};

const PARTS_MAX: usize = 100_000;

const POSITION: Shape = Shape::Object(&[required("x", Shape::Coordinate), required("y", Shape::Coordinate)]);
const SIZE: &[Member] = &[required("width", Shape::Integer), required("height", Shape::Integer)];
const CATEGORY: &[Member] = &[required("name", Shape::Name), optional("color", Shape::Note)];

const PLAN: &[Member] = &[
    required("name", Shape::Note),
    required("categories", Shape::Array(&Shape::Object(CATEGORY), PRICE_LEVELS_MAX)),
    required("zones", Shape::Array(&Shape::Object(ZONE), SECTIONS_MAX)),
    required("size", Shape::Object(SIZE)),
];

const ZONE: &[Member] = &[
    optional("name", Shape::Text),
    optional("zone_id", Shape::Text),
    optional("uuid", Shape::Note),
    older("displayed", Shape::Flag),
    required("position", POSITION),
    required("rows", Shape::Array(&Shape::Object(ROW), PARTS_MAX)),
    optional("areas", Shape::Array(&Shape::Object(AREA), PARTS_MAX)),
];

const ROW: &[Member] = &[
    required("row_number", Shape::Text),
    optional("row_label", Shape::Nullable(&Shape::Text)),
    optional("seat_label", Shape::Nullable(&Shape::Note)),
    optional("uuid", Shape::Note),
    required("seats", Shape::Array(&Shape::Object(SEAT), SEATS_MAX)),
    optional("row_number_position", Shape::Nullable(&Shape::OneOf(&["start", "end", "both"]))),
    optional("position", POSITION),
    older("number_of_seats", Shape::Integer),
    older("seats_spacing", Shape::Integer),
];

const SEAT: &[Member] = &[
    required("seat_guid", Shape::Id),
    required("seat_number", Shape::Text),
    optional("uuid", Shape::Note),
    optional("start_direction", Shape::Nullable(&Shape::Note)),
    optional("radius", Shape::Number),
    required("position", POSITION),
    // What it must name is checked when it is read.
    required("category", Shape::Note),
];

const AREA: &[Member] = &[
    optional("color", Shape::Note),
    optional("border_color", Shape::Note),
    optional("rotation", Shape::Number),
    optional("position", POSITION),
    optional("uuid", Shape::Note),
    optional("shape", Shape::OneOf(&["polygon", "rectangle", "ellipse", "circle", "text"])),
    optional("polygon", Shape::Object(&[required("points", Shape::Array(&POSITION, PARTS_MAX))])),
    optional("rectangle", Shape::Object(RECTANGLE)),
    optional("ellipse", Shape::Object(&[required("radius", POSITION)])),
    optional("circle", Shape::Object(&[required("radius", Shape::Number)])),
    optional("text", Shape::NoteOr(&Shape::Object(AREA_TEXT))),
    older("width", Shape::Number),
    older("height", Shape::Number),
];

const RECTANGLE: &[Member] = &[required("width", Shape::Number), required("height", Shape::Number)];

const AREA_TEXT: &[Member] = &[
    required("text", Shape::Note),
    optional("color", Shape::Note),
    optional("size", Shape::Number),
    required("position", POSITION),
];

/// Reads a plan that has `zones`.
pub(super) fn read(plan: &Value, prefix_zones: bool) -> Draft {
    let mut draft = Draft::new(Source::Pretix, Levels::new(true));
    let zones = elements(plan, "zones");
    let rows = || zones.iter().flat_map(|zone| elements(zone, "rows"));
    let seats: usize = rows().map(|row| elements(row, "seats").len()).sum();
    if seats > SEATS_MAX {
        let at = At::Pointer("/zones".into());
        draft.faults.push(Fault { at, detail: format!("{seats} seats, at most {SEATS_MAX} are allowed") });
        return draft;
    }
    let report = json::check(plan, &Shape::Object(PLAN));
    draft.faults = report.faults;
    if !report.older.is_empty() {
        let names: Vec<_> = report.older.into_iter().collect();
        draft.warnings.push(format!("members of an older pretix schema are ignored: {}", names.join(", ")));
    }
    read_categories(plan, &mut draft);
    draft.sections = section_names(zones, &mut draft.warnings);
    draft.seats.reserve(seats);
    // Without a list of categories no seat could name one, and the list's own fault says it all.
    let categories_known = plan.get("categories").is_some_and(Value::is_array);
    for (section, zone) in zones.iter().enumerate().take(SECTIONS_MAX) {
        let prefix = prefix_zones.then(|| draft.sections[section].clone());
        for (row, row_value) in elements(zone, "rows").iter().enumerate() {
            let row_label = text(row_value, "row_label").filter(|label| !label.is_empty());
            let row_label = row_label.or(text(row_value, "row_number")).unwrap_or_default();
            let from = sum(position(zone), position(row_value));
            for (seat, value) in elements(row_value, "seats").iter().enumerate() {
                let origin = Origin { section: section as u32, row: row as u32, seat: seat as u32 };
                let mut fault = |member: &str, detail: String| {
                    draft.faults.push(Fault { at: Source::Pretix.at(origin, member), detail });
                };
                let seat_id = seat_id(value, prefix.as_deref()).unwrap_or_else(|detail| {
                    fault("/seat_guid", detail);
                    String::new()
                });
                let (x, y) = sum(from, position(value));
                // A coordinate that is wrong by itself has been noted already, and counts as 0 here.
                if check::coordinate(x).and(check::coordinate(y)).is_err() {
                    fault("/position", format!("zone, row and seat together are at ({x}, {y}): too far out"));
                }
                let price_level = match text(value, "category").filter(|_| categories_known) {
                    Some(category) => draft.levels.named(category).unwrap_or_else(|detail| {
                        fault("/category", format!("category {detail}"));
                        0
                    }),
                    None => 0,
                };
                let seat = ManifestSeat {
                    seat_id,
                    section: section as u16,
                    row: row_label.to_owned(),
                    seat: text(value, "seat_number").unwrap_or_default().to_owned(),
                    price_level,
                    x,
                    y,
                    rank: 0,
                    accessible: false,
                    companion_of: None,
                    restricted_view: false,
                    not_for_sale: false,
                };
                draft.seats.push(DraftSeat { origin, seat, placed: true, rank: None, order: 0 });
            }
        }
    }
    draft
}

fn read_categories(plan: &Value, draft: &mut Draft) {
    for (index, category) in elements(plan, "categories").iter().enumerate().take(PRICE_LEVELS_MAX) {
        let Some(name) = text(category, "name") else { continue };
        let color = text(category, "color");
        let usable = color.and_then(check::color);
        if color.is_some() && usable.is_none() {
            draft
                .warnings
                .push(format!("category {}: its colour is not #rrggbb, and is left out", check::quote(name)));
        }
        if let Err(detail) = draft.levels.declare(name, usable) {
            let at = At::Pointer(format!("/categories/{index}/name"));
            draft.faults.push(Fault { at, detail: format!("category {detail}") });
        }
    }
}

/// The id as it stands, or behind its zone. What is wrong with the bare id has been noted by the walk.
fn seat_id(seat: &Value, prefix: Option<&str>) -> Result<String, String> {
    let Some(guid) = text(seat, "seat_guid").filter(|guid| check::id(guid).is_ok()) else {
        return Ok(String::new());
    };
    let Some(prefix) = prefix else { return Ok(guid.to_owned()) };
    let seat_id = format!("{prefix}-{guid}");
    check::id(&seat_id).map_err(|detail| format!("with its zone in front, the id {detail}"))?;
    Ok(seat_id)
}

/// A different name for each zone: its own, its `zone_id` if others share that or it has none, else its number.
fn section_names(zones: &[Value], warnings: &mut Vec<String>) -> Vec<String> {
    let own: Vec<&str> = zones.iter().map(|zone| text(zone, "name").unwrap_or_default()).collect();
    let own_counts = counts(&own);
    let has_own = |name: &str| !name.is_empty() && own_counts[name] == 1;
    let id = |zone| text(zone, "zone_id").unwrap_or_default();
    let named: Vec<&str> =
        own.iter().zip(zones).map(|(&name, zone)| if has_own(name) { name } else { id(zone) }).collect();
    let named_counts = counts(&named);
    let mut names = Vec::with_capacity(zones.len());
    for (index, (own, named)) in own.into_iter().zip(named).enumerate() {
        let kept = has_own(own) || (!named.is_empty() && named_counts[named] == 1);
        let name = if kept { named.to_owned() } else { (index + 1).to_string() };
        if !own.is_empty() && !has_own(own) {
            let (own, name) = (check::quote(own), check::quote(&name));
            warnings
                .push(format!("several zones are called {own}: zone {} is now section {name}", index + 1));
        }
        names.push(name);
    }
    names
}

fn counts<'a>(names: &[&'a str]) -> HashMap<&'a str, usize> {
    let mut counts = HashMap::new();
    for name in names {
        *counts.entry(*name).or_default() += 1;
    }
    counts
}

/// The position of a zone, row or seat; the origin if it has none.
fn position(value: &Value) -> (f64, f64) {
    let along = |axis| {
        let value = value.get("position").and_then(|position| position.get(axis)).and_then(Value::as_f64);
        value.filter(|value| check::coordinate(*value).is_ok()).unwrap_or(0.0)
    };
    (along("x"), along("y"))
}

fn sum(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    (a.0 + b.0, a.1 + b.1)
}
