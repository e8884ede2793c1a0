//! What a request for a hold wishes for: named seats, standing places, or seats to be chosen.

use std::sync::Arc;

use onsale_core::access::AccessCode;
use onsale_core::best_available::Best;
use onsale_core::command::Wish;
use onsale_core::id::{AreaNo, EventId};

use crate::catalog::ManifestIndex;
use crate::http::problem::{Code, FieldError, Problem};
use crate::http::wire::sale::{BestAvailableJson, NewHoldJson};

/// What a body wishes for, by the organiser's names.
pub(super) struct Wished {
    seats: Vec<String>,
    ga: Vec<(String, u32)>,
    best: Option<BestAvailableJson>,
    pub(super) code: Option<Arc<str>>,
}

impl Wished {
    /// Exactly one kind of wish, or seats and places together; each seat and area once, no more than `limit` tickets.
    pub(super) fn of(body: NewHoldJson, limit: u32) -> Result<Wished, Problem> {
        let mut errors = Vec::new();
        if body.ga.as_ref().is_some_and(Vec::is_empty) {
            errors.push(FieldError::new("/ga", "name at least one standing area, or leave it out"));
        }
        let names_places = body.seats.is_some() || body.ga.is_some();
        let seats = body.seats.unwrap_or_default();
        let ga = body.ga.unwrap_or_default();
        let best = body.best_available;
        match (seats.is_empty() && ga.is_empty(), &best) {
            (true, None) if errors.is_empty() => {
                errors.push(FieldError::new("/seats", "name at least one seat or standing place"));
            }
            (_, Some(_)) if names_places => {
                let why = "seats are named or chosen, not both; standing places are a hold of their own";
                errors.push(FieldError::new("/best_available", why));
            }
            (_, Some(best)) if best.quantity == 0 => {
                errors.push(FieldError::new("/best_available/quantity", "must be 1 or more"));
            }
            (_, Some(_)) | (true | false, None) => {}
        }
        let places = ga.iter().fold(0u64, |sum, wish| sum + u64::from(wish.quantity));
        let chosen = best.as_ref().map_or(0, |best| u64::from(best.quantity));
        if seats.len() as u64 + places + chosen > u64::from(limit) {
            return Err(too_many(limit));
        }
        for (index, wish) in ga.iter().enumerate() {
            if wish.quantity == 0 {
                errors.push(FieldError::new(format!("/ga/{index}/quantity"), "must be 1 or more"));
            }
        }
        twice(&seats, |index| format!("/seats/{index}"), "this seat is named twice", &mut errors);
        let areas: Vec<String> = ga.iter().map(|wish| wish.ga_area.clone()).collect();
        twice(&areas, |index| format!("/ga/{index}/ga_area"), "this area is named twice", &mut errors);
        let code = body.access_code.as_deref().map(AccessCode::parse);
        if code == Some(None) {
            errors.push(FieldError::new("/access_code", "must be 4 to 64 letters, digits and hyphens"));
        }
        if !errors.is_empty() {
            return Err(Problem::validation(errors));
        }
        let ga = ga.into_iter().map(|wish| (wish.ga_area, wish.quantity)).collect();
        Ok(Wished { seats, ga, best, code: code.flatten() })
    }

    /// The same by index.
    pub(super) fn found_in(&self, manifest: &ManifestIndex) -> Result<Wish, Problem> {
        let mut errors = Vec::new();
        let mut wish = Wish::default();
        for (index, name) in self.seats.iter().enumerate() {
            match manifest.ordinal(name) {
                Some(ordinal) => wish.seats.push(ordinal),
                None => errors.push(FieldError::new(format!("/seats/{index}"), "the event has no such seat")),
            }
        }
        for (index, (name, quantity)) in self.ga.iter().enumerate() {
            match manifest.area(name) {
                Some(area) => wish.ga.push((area, *quantity)),
                None => errors.push(FieldError::new(
                    format!("/ga/{index}/ga_area"),
                    "the event has no such standing area",
                )),
            }
        }
        if let Some(best) = &self.best {
            let mut found = |name: &Option<String>, member: &str, why: &str, index: Option<u16>| {
                if name.is_some() && index.is_none() {
                    errors.push(FieldError::new(format!("/best_available/{member}"), why));
                }
                index
            };
            let level = best.price_level.as_deref().and_then(|name| manifest.level(name));
            let section = best.section.as_deref().and_then(|name| manifest.section(name));
            wish.best = Some(Best {
                quantity: best.quantity,
                price_level: found(
                    &best.price_level,
                    "price_level",
                    "the event has no such price level",
                    level,
                ),
                section: found(&best.section, "section", "the event has no such section", section),
                accessible: best.accessible,
                split_rows: best.split_rows,
            });
        }
        wish.seats.sort_unstable();
        wish.ga.sort_unstable();
        if errors.is_empty() { Ok(wish) } else { Err(Problem::validation(errors)) }
    }

    /// What makes this wish this wish, whatever the order it was named in.
    pub(super) fn content(&self, event: EventId, wish: &Wish) -> Vec<Vec<u8>> {
        let seats = wish.seats.iter().flat_map(|seat| seat.0.to_be_bytes()).collect();
        let mut content = vec![event.0.to_be_bytes().to_vec(), seats];
        if !wish.ga.is_empty() || self.code.is_some() || wish.best.is_some() {
            let place = |(area, quantity): &(AreaNo, u32)| {
                area.0.to_be_bytes().into_iter().chain(quantity.to_be_bytes()).collect::<Vec<u8>>()
            };
            content.push(wish.ga.iter().flat_map(place).collect());
            content.push(self.code.as_deref().unwrap_or_default().as_bytes().to_vec());
            content.extend(wish.best.as_ref().map(best_content));
        }
        content
    }
}

fn best_content(best: &Best) -> Vec<u8> {
    let Best { quantity, price_level, section, accessible, split_rows } = best;
    // No index is as large.
    let index = |index: &Option<u16>| index.map_or(u32::MAX, u32::from).to_be_bytes();
    let numbers = [quantity.to_be_bytes(), index(price_level), index(section)].concat();
    [numbers, vec![u8::from(*accessible), u8::from(*split_rows)]].concat()
}

/// Faults for names that were given before.
fn twice(names: &[String], pointer: impl Fn(usize) -> String, why: &str, errors: &mut Vec<FieldError>) {
    let mut sorted: Vec<(usize, &String)> = names.iter().enumerate().collect();
    sorted.sort_by_key(|(index, name)| (*name, *index));
    for pair in sorted.windows(2) {
        if pair[0].1 == pair[1].1 {
            errors.push(FieldError::new(pointer(pair[1].0), why));
        }
    }
}

fn too_many(limit: u32) -> Problem {
    Problem::new(Code::TooManySeats, format!("A hold of this event has at most {limit} seats."))
        .with("limit", limit)
}
