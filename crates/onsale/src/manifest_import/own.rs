//! Reads our own JSON: `price_levels`, `sections` of rows of seats, `ga_areas`.

use onsale_core::manifest::{GaArea, ManifestSeat};
use serde_json::Value;

use super::json::{self, Member, Shape, elements, optional, required, text};
use super::{
    At, Draft, DraftArea, DraftSeat, Fault, GA_AREAS_MAX, Levels, Origin, PRICE_LEVELS_MAX, SEATS_MAX,
    SECTIONS_MAX, Source, check,
};

const ROWS_MAX: usize = 100_000;

const MANIFEST: &[Member] = &[
    optional("price_levels", Shape::Array(&Shape::Object(PRICE_LEVEL), PRICE_LEVELS_MAX)),
    optional("sections", Shape::Array(&Shape::Object(SECTION), SECTIONS_MAX)),
    optional("ga_areas", Shape::Array(&Shape::Object(GA_AREA), GA_AREAS_MAX)),
    optional("focal_point", Shape::Nullable(&Shape::Object(FOCAL_POINT))),
];

const FOCAL_POINT: &[Member] = &[required("x", Shape::Coordinate), required("y", Shape::Coordinate)];

const PRICE_LEVEL: &[Member] =
    &[required("name", Shape::Name), optional("color", Shape::Nullable(&Shape::Text))];

const SECTION: &[Member] =
    &[required("name", Shape::Name), required("rows", Shape::Array(&Shape::Object(ROW), ROWS_MAX))];

const ROW: &[Member] =
    &[required("row", Shape::Text), required("seats", Shape::Array(&Shape::Object(SEAT), SEATS_MAX))];

const SEAT: &[Member] = &[
    required("seat_id", Shape::Id),
    required("seat", Shape::Text),
    required("price_level", Shape::Name),
    optional("x", Shape::Nullable(&Shape::Coordinate)),
    optional("y", Shape::Nullable(&Shape::Coordinate)),
    optional("rank", Shape::Nullable(&Shape::Rank)),
    optional("accessible", Shape::Flag),
    optional("companion_of", Shape::Nullable(&Shape::Id)),
    optional("restricted_view", Shape::Flag),
    optional("not_for_sale", Shape::Flag),
];

const GA_AREA: &[Member] = &[
    required("ga_area", Shape::Id),
    required("capacity", Shape::Capacity),
    required("price_level", Shape::Name),
    optional("buckets", Shape::Buckets),
];

/// Reads a manifest that has `sections` or `ga_areas`.
pub(super) fn read(document: &Value) -> Draft {
    let declared = document.get("price_levels");
    let mut draft = Draft::new(Source::Own, Levels::new(declared.is_some_and(Value::is_array)));
    let sections = elements(document, "sections");
    let rows = || sections.iter().flat_map(|section| elements(section, "rows"));
    let seats: usize = rows().map(|row| elements(row, "seats").len()).sum();
    if seats > SEATS_MAX {
        let at = At::Pointer("/sections".into());
        draft.faults.push(Fault { at, detail: format!("{seats} seats, at most {SEATS_MAX} are allowed") });
        return draft;
    }
    draft.faults = json::check(document, &Shape::Object(MANIFEST)).faults;
    read_price_levels(document, &mut draft);
    draft.focal_point = document.get("focal_point").filter(|point| !point.is_null()).map(|point| {
        let along = |axis| point.get(axis).and_then(Value::as_f64).unwrap_or(0.0);
        (along("x"), along("y"))
    });
    draft.seats.reserve(seats);
    for (section, value) in sections.iter().enumerate().take(SECTIONS_MAX) {
        draft.sections.push(text(value, "name").unwrap_or_default().to_owned());
        for (row, row_value) in elements(value, "rows").iter().enumerate() {
            let label = text(row_value, "row").unwrap_or_default();
            for (seat, value) in elements(row_value, "seats").iter().enumerate() {
                read_seat(
                    &mut draft,
                    Origin { section: section as u32, row: row as u32, seat: seat as u32 },
                    label,
                    value,
                );
            }
        }
    }
    read_ga_areas(document, &mut draft);
    draft
}

fn read_price_levels(document: &Value, draft: &mut Draft) {
    for (index, level) in elements(document, "price_levels").iter().enumerate().take(PRICE_LEVELS_MAX) {
        let color = text(level, "color");
        let usable = color.and_then(check::color);
        if color.is_some() && usable.is_none() {
            let at = At::Pointer(format!("/price_levels/{index}/color"));
            draft.faults.push(Fault { at, detail: "a colour is written #rrggbb".into() });
        }
        let Some(name) = text(level, "name") else { continue };
        if let Err(detail) = draft.levels.declare(name, usable) {
            let at = At::Pointer(format!("/price_levels/{index}/name"));
            draft.faults.push(Fault { at, detail: format!("price level {detail}") });
        }
    }
}

fn read_seat(draft: &mut Draft, origin: Origin, row: &str, value: &Value) {
    let mut fault = |member: &str, detail: String| {
        draft.faults.push(Fault { at: Source::Own.at(origin, member), detail });
    };
    let given = |member: &str| value.get(member).filter(|value| !value.is_null());
    let number = |member: &str| given(member).and_then(Value::as_f64).unwrap_or(0.0);
    let flag =
        |member: &str, unclear: bool| given(member).is_some_and(|value| value.as_bool().unwrap_or(unclear));
    let id = |member: &str| text(value, member).filter(|id| check::id(id).is_ok()).map(str::to_owned);
    match (given("x"), given("y")) {
        (Some(_), None) => fault("", "`x` is given without `y`".into()),
        (None, Some(_)) => fault("", "`y` is given without `x`".into()),
        (Some(_), Some(_)) | (None, None) => {}
    }
    let price_level = match text(value, "price_level").filter(|name| check::name(name).is_ok()) {
        Some(name) => draft.levels.named(name).unwrap_or_else(|detail| {
            fault("/price_level", format!("price level {detail}"));
            0
        }),
        None => 0,
    };
    let seat = ManifestSeat {
        seat_id: id("seat_id").unwrap_or_default(),
        section: origin.section as u16,
        row: row.to_owned(),
        seat: text(value, "seat").unwrap_or_default().to_owned(),
        price_level,
        x: number("x"),
        y: number("y"),
        rank: 0,
        // Unclear counts as accessible, so that one mistake is not reported again at each companion.
        accessible: flag("accessible", true),
        companion_of: id("companion_of"),
        restricted_view: flag("restricted_view", false),
        not_for_sale: flag("not_for_sale", false),
    };
    let rank = given("rank").and_then(|rank| check::rank(rank.as_u64()).ok());
    draft.seats.push(DraftSeat { origin, seat, placed: given("x").is_some(), rank, order: 0 });
}

fn read_ga_areas(document: &Value, draft: &mut Draft) {
    for (index, value) in elements(document, "ga_areas").iter().enumerate().take(GA_AREAS_MAX) {
        let price_level = match text(value, "price_level").filter(|name| check::name(name).is_ok()) {
            Some(name) => draft.levels.named(name).unwrap_or_else(|detail| {
                let at = At::Pointer(format!("/ga_areas/{index}/price_level"));
                draft.faults.push(Fault { at, detail: format!("price level {detail}") });
                0
            }),
            None => 0,
        };
        let ga_area = text(value, "ga_area").unwrap_or_default().to_owned();
        let capacity =
            value.get("capacity").and_then(Value::as_u64).and_then(|capacity| u32::try_from(capacity).ok());
        let buckets =
            value.get("buckets").and_then(Value::as_u64).and_then(|count| u16::try_from(count).ok());
        let (capacity, buckets) = (capacity.unwrap_or_default(), buckets.unwrap_or(1));
        let area = GaArea { ga_area, capacity, price_level, buckets };
        draft.ga_areas.push(DraftArea { index, area });
    }
}
