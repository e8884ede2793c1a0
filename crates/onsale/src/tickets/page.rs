//! The page that a buyer prints or shows: a card for each ticket. It loads nothing and runs nothing.

use std::sync::LazyLock;

use askama::Template;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::tz::TimeZone;
use onsale_core::time::Timestamp;
use sha2::{Digest, Sha256};

use super::qr;

const STYLE: &str = include_str!("../../templates/tickets.css");

/// What the page needs of a browser: this one style, and nothing from anywhere.
pub(crate) static CONTENT_SECURITY_POLICY: LazyLock<String> = LazyLock::new(|| {
    let style = STANDARD.encode(Sha256::digest(STYLE));
    format!(
        "default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
});

/// What one ticket is for.
pub(crate) struct Card {
    ticket_id: String,
    place: Place,
    code: Code,
}

/// Where its bearer goes.
pub(crate) enum Place {
    Seat { section: String, row: String, seat: String },
    Standing { area: String },
}

enum Code {
    /// A drawing, as markup.
    Good(String),
    /// Why there is none.
    None(&'static str),
}

impl Card {
    /// A ticket that is good, with its barcode's text.
    pub(crate) fn good(ticket_id: String, place: Place, barcode: &str) -> Card {
        Card { ticket_id, place, code: Code::Good(qr::svg(barcode)) }
    }

    /// A ticket that nobody is let in with, and why.
    pub(crate) fn void(ticket_id: String, place: Place, why: &'static str) -> Card {
        Card { ticket_id, place, code: Code::None(why) }
    }
}

#[derive(Template)]
#[template(path = "tickets.html")]
struct Page<'a> {
    style: &'static str,
    event: &'a str,
    starts: String,
    order_id: &'a str,
    cards: &'a [Card],
}

/// The page of an order's tickets.
pub(crate) fn tickets(
    event: &str,
    starts_at: Timestamp,
    timezone: &str,
    order_id: &str,
    cards: &[Card],
) -> String {
    let page = Page { style: STYLE, event, starts: in_words(starts_at, timezone), order_id, cards };
    page.render().expect("a String takes what is written")
}

/// An instant as the venue's clocks show it.
fn in_words(at: Timestamp, timezone: &str) -> String {
    let zone = TimeZone::get(timezone).unwrap_or(TimeZone::UTC);
    let at = jiff::Timestamp::from_millisecond(at.millis()).unwrap_or_default().to_zoned_datetime(zone);
    // The zone's own letters, such as CEST, where it has any.
    at.strftime("%A, %-d %B %Y, %H:%M %Z").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BARCODE: &str = "ONSALE:FB0%EGJC29OIH%MJ2RW10L60$Y88IHA-PHK0K-BMANAWEKCE41NNUB94P%6P+XU/K29V6VSOCMCETF5SPQLQKMM/YFLN3PHS7E4 33$J9 +E1*5FD35-3 FJ.1R0NB.BMF0";

    fn seat(text: &str) -> Place {
        Place::Seat { section: text.to_owned(), row: text.to_owned(), seat: text.to_owned() }
    }

    fn opening_night(cards: &[Card]) -> String {
        tickets("Winter Concert", Timestamp::from_millis(1_809_201_600_000), "Europe/Berlin", "ord_1", cards)
    }

    /// fossasia/open-event-server#5607, fossasia/open-event-frontend#5590: the hour on a ticket was not the hour at the venue.
    /// HiEventsDev/Hi.Events#591, fossasia/open-event-server#8260: its time zone was not said.
    #[test]
    fn a_card_says_where_and_when_and_a_void_one_has_no_code() {
        let stalls = Place::Seat { section: "Stalls".into(), row: "12".into(), seat: "7".into() };
        let cards = [
            Card::good("tkt_1".into(), stalls, BARCODE),
            Card::void("tkt_2".into(), Place::Standing { area: "Floor".into() }, "Refunded"),
        ];
        let page = opening_night(&cards);
        let when = "<p>Saturday, 1 May 2027, 22:00 CEST</p>";
        for part in [when, ">Stalls<", ">12<", ">7<", ">Floor<", ">Refunded<", "tkt_1", "tkt_2", "ord_1"] {
            assert!(page.contains(part), "{part}");
        }
        assert_eq!((page.matches("<article>").count(), page.matches("<svg").count()), (2, 1));
        // A strict policy lets all of it be.
        let style =
            page.split("<style>").nth(1).and_then(|rest| rest.split("</style>").next()).expect("a style");
        let digest = STANDARD.encode(Sha256::digest(style));
        assert!(CONTENT_SECURITY_POLICY.contains(&format!("style-src 'sha256-{digest}'")));
        assert!(!page.contains("<script") && !page.contains("style=") && !page.contains("src="));
    }

    #[test]
    fn markup_in_names_is_text() {
        let evil = "<script>alert('x')</script>\" onload=\"y & z";
        let cards = [
            Card::good(evil.into(), seat(evil), BARCODE),
            Card::good(evil.into(), Place::Standing { area: evil.into() }, BARCODE),
        ];
        let page = tickets(evil, Timestamp::ZERO, "Nowhere/<b>", evil, &cards);
        assert!(!page.contains("<script") && !page.contains("\" onload") && !page.contains("<b>"), "{page}");
        assert_eq!(page.matches("&#60;script&#62;").count(), 11, "wherever a name stands");
    }

    #[test]
    fn a_code_is_read_by_a_scanner() {
        let svg = qr::svg(BARCODE);
        // Drawn as it stands, eight pixels a module.
        let side: usize = svg
            .split("viewBox=\"0 0 ")
            .nth(1)
            .and_then(|rest| rest.split(' ').next()?.parse().ok())
            .expect("a side");
        let mut dark = vec![false; side * side];
        let path = svg.rsplit("<path d=\"").next().and_then(|rest| rest.split('"').next()).expect("a path");
        for run in path.split('M').skip(1) {
            let numbers: Vec<usize> =
                run.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect();
            let &[left, top, length, 1, _] = &numbers[..] else { panic!("{run}") };
            dark[top * side + left..][..length].fill(true);
        }
        let shade = |x: usize, y: usize| if dark[y / 8 * side + x / 8] { 0 } else { 255 };
        let mut picture = rqrr::PreparedImage::prepare_from_greyscale(side * 8, side * 8, shade);
        let found = picture.detect_grids();
        let (meta, text) = found[0].decode().expect("it can be read");
        assert_eq!(text, BARCODE);
        // Alphanumeric, or it would be larger: version 6 is 41 modules wide.
        assert_eq!((meta.version.to_size(), side), (41, 49));
    }
}
