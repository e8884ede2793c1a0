//! The manifest, as read back and as taken.

use onsale_core::manifest::Manifest;
use serde::Serialize;
use utoipa::ToSchema;

/// A manifest as read back.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ManifestJson<'a> {
    pub(crate) event_id: String,
    pub(crate) version: u32,
    pub(crate) price_version: u32,
    pub(crate) currency: &'a str,
    pub(crate) price_levels: Vec<PriceLevelJson<'a>>,
    pub(crate) sections: Vec<SectionJson<'a>>,
    /// In ordinal order.
    pub(crate) seats: Vec<ManifestSeatJson<'a>>,
    pub(crate) ga_areas: Vec<GaAreaJson<'a>>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PriceLevelJson<'a> {
    pub(crate) price_level: &'a str,
    pub(crate) color: Option<&'a str>,
    pub(crate) amount_minor: Option<i64>,
}

/// A section with its rows, in order.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SectionJson<'a> {
    pub(crate) section: &'a str,
    pub(crate) rows: Vec<&'a str>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ManifestSeatJson<'a> {
    seat_id: &'a str,
    section: &'a str,
    row: &'a str,
    seat: &'a str,
    x: f64,
    y: f64,
    price_level: &'a str,
    #[serde(skip_serializing_if = "is_false")]
    accessible: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    companion_of: Option<&'a str>,
    #[serde(skip_serializing_if = "is_false")]
    restricted_view: bool,
}

fn is_false(value: &bool) -> bool {
    !*value
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GaAreaJson<'a> {
    ga_area: &'a str,
    capacity: u32,
    price_level: &'a str,
}

impl<'a> ManifestJson<'a> {
    pub(crate) fn of(
        event_id: String,
        currency: &'a str,
        version: u32,
        price_version: u32,
        manifest: &'a Manifest,
        prices: &[Option<i64>],
    ) -> Self {
        let level =
            |level: u16| manifest.price_levels.get(level as usize).map_or("", |level| level.name.as_str());
        let mut sections: Vec<SectionJson<'a>> =
            manifest.sections.iter().map(|section| SectionJson { section, rows: Vec::new() }).collect();
        for seat in &manifest.seats {
            if let Some(section) = sections.get_mut(seat.section as usize)
                && section.rows.last().is_none_or(|row| *row != seat.row)
            {
                section.rows.push(&seat.row);
            }
        }
        let seats = manifest.seats.iter().map(|seat| ManifestSeatJson {
            seat_id: &seat.seat_id,
            section: manifest.sections.get(seat.section as usize).map_or("", String::as_str),
            row: &seat.row,
            seat: &seat.seat,
            x: seat.x,
            y: seat.y,
            price_level: level(seat.price_level),
            accessible: seat.accessible,
            companion_of: seat.companion_of.as_deref(),
            restricted_view: seat.restricted_view,
        });
        let price_levels = manifest.price_levels.iter().enumerate().map(|(index, level)| PriceLevelJson {
            price_level: &level.name,
            color: level.color.as_deref(),
            amount_minor: prices.get(index).copied().flatten(),
        });
        let ga_areas = manifest.ga_areas.iter().map(|area| GaAreaJson {
            ga_area: &area.ga_area,
            capacity: area.capacity,
            price_level: level(area.price_level),
        });
        ManifestJson {
            event_id,
            version,
            price_version,
            currency,
            price_levels: price_levels.collect(),
            sections,
            seats: seats.collect(),
            ga_areas: ga_areas.collect(),
        }
    }
}

/// A manifest that was taken.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ManifestTakenJson {
    pub(crate) seats: usize,
    pub(crate) ga_areas: usize,
    pub(crate) price_levels: Vec<String>,
    pub(crate) warnings: Vec<String>,
    pub(crate) version: u32,
}
