//! Reads our CSV: a seat per line, or a range of seats of one row per line.

use std::collections::HashMap;
use std::str::from_utf8;

use ::csv::{ByteRecord, ReaderBuilder};
use onsale_core::manifest::ManifestSeat;

use super::{At, Draft, DraftSeat, Fault, Levels, Origin, SEATS_MAX, SECTIONS_MAX, Source, check};

use lines::Lines;

mod lines;
#[cfg(test)]
mod tests;

const COLUMNS: [&str; 15] = [
    "seat_id",
    "section",
    "row",
    "seat",
    "category",
    "x",
    "y",
    "rank",
    "accessible",
    "companion_of",
    "restricted_view",
    "blocked",
    "ordinal",
    "seat_from",
    "seat_to",
];
const RANGE_SEATS_MAX: u64 = 2_000;
/// Of a seat number in a range, so that it fits `u64`.
const RANGE_DIGITS_MAX: usize = 18;

/// Reads a file whose byte order mark has been taken off.
pub(super) fn read(bytes: &[u8]) -> Draft {
    let mut reading = Reading {
        draft: Draft::new(Source::Csv, Levels::new(false)),
        columns: HashMap::new(),
        sections: HashMap::new(),
        rows: Vec::new(),
        rows_count: 0,
        ordinals: HashMap::new(),
        lines_without_ordinal: Vec::new(),
    };
    reading.draft.faults.extend(lines::quoting_faults(bytes));
    let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes);
    let mut lines = Lines::new(bytes);
    let mut record = ByteRecord::new();
    let mut header_fields = None;
    loop {
        let start = reader.position().byte() as usize;
        // Reading from memory cannot fail, and a flexible reader of bytes refuses nothing.
        if !reader.read_byte_record(&mut record).unwrap_or(false) {
            break;
        }
        let line = lines.of_record(start);
        let Some(fields) = record.iter().map(|field| from_utf8(field).ok()).collect::<Option<Vec<&str>>>()
        else {
            reading.fault(line, "not valid UTF-8".into());
            // Without its names no line can be read.
            if header_fields.is_none() {
                return reading.draft;
            }
            continue;
        };
        match header_fields {
            None => {
                reading.header(line, &fields);
                header_fields = Some(fields.len());
            }
            Some(expected) if fields.len() != expected => {
                reading.fault(line, format!("{} fields, the header has {expected}", fields.len()));
            }
            Some(_) => reading.line(line, &fields),
        }
    }
    if header_fields.is_none() {
        reading.fault(1, "the header is missing".into());
    }
    reading.finish()
}

struct Reading {
    draft: Draft,
    columns: HashMap<&'static str, usize>,
    sections: HashMap<String, u16>,
    /// For each section, the numbers of its rows by label.
    rows: Vec<HashMap<String, u32>>,
    rows_count: u32,
    /// The line on which an ordinal first stands.
    ordinals: HashMap<u64, u64>,
    lines_without_ordinal: Vec<u64>,
}

/// The seats of one line: ids and labels.
type Labels = Vec<(String, String)>;

impl Reading {
    fn fault(&mut self, line: u64, detail: String) {
        self.draft.faults.push(Fault { at: At::Line(line), detail });
    }

    /// Notes what is wrong with a value and goes on without it.
    fn noted<T>(&mut self, line: u64, column: &str, result: Result<T, String>) -> Option<T> {
        result.map_err(|detail| self.fault(line, format!("{column}: {detail}"))).ok()
    }

    fn header(&mut self, line: u64, fields: &[&str]) {
        for (index, name) in fields.iter().enumerate() {
            match COLUMNS.iter().find(|column| *column == name) {
                None => self.fault(line, format!("unknown column {}", check::quote(name))),
                Some(column) if self.columns.contains_key(column) => {
                    self.fault(line, format!("column {column} is repeated"));
                }
                Some(column) => {
                    self.columns.insert(column, index);
                }
            }
        }
        let has = |name| self.columns.contains_key(name);
        let ranges_only = (has("seat_from") || has("seat_to")) && !has("seat_id") && !has("seat");
        let singles_only = !has("seat_from") && !has("seat_to");
        let mut required = vec!["section", "row", "category"];
        if !ranges_only {
            required.extend(["seat_id", "seat"]);
        }
        if !singles_only {
            required.extend(["seat_from", "seat_to"]);
        }
        required.retain(|name| !has(name));
        let half_place = has("x") != has("y");
        for name in required {
            self.fault(line, format!("column {name} is missing"));
        }
        if half_place {
            self.fault(line, "x and y go together: one of the columns is missing".into());
        }
    }

    fn line(&mut self, line: u64, fields: &[&str]) {
        let columns = std::mem::take(&mut self.columns);
        // A missing column has been noted at the header, and is not a fault of each line.
        let cell = |name: &str| columns.get(name).map(|index| fields[*index]);
        self.seats_of_line(line, cell);
        self.columns = columns;
    }

    fn seats_of_line<'a>(&mut self, line: u64, cell: impl Fn(&str) -> Option<&'a str>) {
        let filled = |name: &str| cell(name).filter(|text| !text.is_empty());
        let is_range = filled("seat_from").or(filled("seat_to")).is_some();
        for column in ["section", "category"] {
            self.noted(line, column, cell(column).map_or(Ok(()), check::name));
        }
        self.noted(line, "row", cell("row").map_or(Ok(()), check::text));
        let (section, row) = self.row(line, filled("section"), cell("row").unwrap_or_default());
        let price_level = match filled("category").map(|name| self.draft.levels.named(name)) {
            Some(level) => self.noted(line, "category", level).unwrap_or(0),
            None => 0,
        };
        let mut flag = |name| self.noted(line, name, boolean(cell(name).unwrap_or_default()));
        // Unclear counts as accessible, so that one mistake is not reported again at each companion.
        let accessible = flag("accessible").unwrap_or(true);
        let restricted_view = flag("restricted_view").unwrap_or(false);
        let not_for_sale = flag("blocked").unwrap_or(false);
        let companion_of = filled("companion_of")
            .and_then(|id| self.noted(line, "companion_of", check::id(id).map(|()| id.to_owned())));
        let has_places = cell("x").and(cell("y")).is_some();
        let place_in = |axis| filled(axis).filter(|_| has_places);
        let place = self.place(line, place_in("x"), place_in("y"), is_range);
        let rank = filled("rank").and_then(|rank| self.noted(line, "rank", check::rank(rank.parse().ok())));
        let order = self.order(line, filled("ordinal"), cell("ordinal").is_some()).unwrap_or(u64::from(row));
        let labels = if is_range {
            if filled("seat_id").or(filled("seat")).is_some() {
                self.fault(line, "a line has either seat_id and seat or seat_from and seat_to".into());
            }
            let prefix =
                filled("section").map(|section| format!("{section}-{}-", cell("row").unwrap_or_default()));
            match (cell("seat_from"), cell("seat_to")) {
                (Some(from), Some(to)) => self.range(line, prefix.as_deref(), from, to),
                _ => Vec::new(),
            }
        } else {
            self.noted(line, "seat", cell("seat").map_or(Ok(()), check::name));
            let seat_id = cell("seat_id").map_or(Ok(""), |id| check::id(id).map(|()| id));
            let seat_id = self.noted(line, "seat_id", seat_id).unwrap_or_default();
            if !self.has_room(line, 1) {
                return;
            }
            vec![(seat_id.to_owned(), cell("seat").unwrap_or_default().to_owned())]
        };
        for (seat_id, seat) in labels {
            let seat = ManifestSeat {
                seat_id,
                section,
                row: cell("row").unwrap_or_default().to_owned(),
                seat,
                price_level,
                x: place.map_or(0.0, |(x, _)| x),
                y: place.map_or(0.0, |(_, y)| y),
                rank: 0,
                accessible,
                companion_of: companion_of.clone(),
                restricted_view,
                not_for_sale,
            };
            let origin = Origin { section: section.into(), row, seat: line as u32 };
            self.draft.seats.push(DraftSeat { origin, seat, placed: place.is_some(), rank, order });
        }
    }

    /// The section's index and the row's number, new ones if this line is the first to name them.
    fn row(&mut self, line: u64, section: Option<&str>, row: &str) -> (u16, u32) {
        let Some(section) = section else { return (0, 0) };
        let index = match self.sections.get(section) {
            Some(index) => *index,
            None if self.rows.len() == SECTIONS_MAX => {
                self.fault(line, format!("section: more than {SECTIONS_MAX} sections"));
                return (0, 0);
            }
            None => {
                let index = self.rows.len() as u16;
                self.sections.insert(section.to_owned(), index);
                self.draft.sections.push(section.to_owned());
                self.rows.push(HashMap::new());
                index
            }
        };
        let rows = &mut self.rows[usize::from(index)];
        let number = match rows.get(row) {
            Some(number) => *number,
            None => {
                rows.insert(row.to_owned(), self.rows_count);
                self.rows_count += 1;
                self.rows_count - 1
            }
        };
        (index, number)
    }

    fn place(&mut self, line: u64, x: Option<&str>, y: Option<&str>, is_range: bool) -> Option<(f64, f64)> {
        if is_range && x.or(y).is_some() {
            self.fault(line, "a range of seats has no single x and y".into());
        }
        match (x, y) {
            (Some(_), None) => self.fault(line, "x is given without y".into()),
            (None, Some(_)) => self.fault(line, "y is given without x".into()),
            (Some(_), Some(_)) | (None, None) => {}
        }
        let x = x.and_then(|x| self.noted(line, "x", coordinate(x)));
        let y = y.and_then(|y| self.noted(line, "y", coordinate(y)));
        x.zip(y)
    }

    fn order(&mut self, line: u64, ordinal: Option<&str>, has_column: bool) -> Option<u64> {
        let Some(ordinal) = ordinal else {
            if has_column {
                self.lines_without_ordinal.push(line);
            }
            return None;
        };
        let parsed = ordinal.parse().map_err(|_| format!("{} is not a whole number", check::quote(ordinal)));
        let ordinal = self.noted(line, "ordinal", parsed)?;
        let first = *self.ordinals.entry(ordinal).or_insert(line);
        if first != line {
            self.fault(line, format!("ordinal: {ordinal} is repeated: it first stands on line {first}"));
        }
        Some(ordinal)
    }

    fn range(&mut self, line: u64, prefix: Option<&str>, from: &str, to: &str) -> Labels {
        let from_number = self.noted(line, "seat_from", seat_number(from));
        let to_number = self.noted(line, "seat_to", seat_number(to));
        let (Some(first), Some(last)) = (from_number, to_number) else { return Vec::new() };
        if first > last {
            self.fault(line, format!("seat_from {first} is above seat_to {last}"));
            return Vec::new();
        }
        if last - first >= RANGE_SEATS_MAX {
            self.fault(line, format!("{} seats, a line may have {RANGE_SEATS_MAX}", last - first + 1));
            return Vec::new();
        }
        if !self.has_room(line, (last - first + 1) as usize) {
            return Vec::new();
        }
        // Without its section the seats have no ids; that has been noted.
        let Some(prefix) = prefix else { return Vec::new() };
        // Only a leading zero asks for padding; without one the numbers grow as they are counted.
        let width = if from.starts_with('0') { from.len() } else { 0 };
        let labels: Labels = (first..=last)
            .map(|number| format!("{number:0width$}"))
            .map(|number| (format!("{prefix}{number}"), number))
            .collect();
        // The ids differ only in their number, and the last one is the longest.
        let longest = labels.last().map_or(Ok(()), |(id, _)| check::id(id));
        if self.noted(line, "the range's seat ids", longest).is_none() {
            return Vec::new();
        }
        labels
    }

    /// Asked before seats are made: a small file of ranges could name billions.
    fn has_room(&mut self, line: u64, seats: usize) -> bool {
        let has_room = self.draft.seats.len() + seats <= SEATS_MAX;
        if !has_room {
            self.fault(line, format!("more than {SEATS_MAX} seats"));
        }
        has_room
    }

    fn finish(mut self) -> Draft {
        if !self.ordinals.is_empty() {
            for line in std::mem::take(&mut self.lines_without_ordinal) {
                self.fault(line, "ordinal: is empty, while other lines have one".into());
            }
        } else if self.draft.seats.windows(2).any(|pair| pair[0].order > pair[1].order) {
            let warning = "some rows are scattered over the file: their seats were put together";
            self.draft.warnings.push(warning.into());
        }
        self.draft
    }
}

fn boolean(text: &str) -> Result<bool, String> {
    let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    match () {
        () if is(&["true", "1", "yes"]) => Ok(true),
        () if is(&["false", "0", "no", ""]) => Ok(false),
        () => Err(format!("{} is none of true, false, 1, 0, yes, no", check::quote(text))),
    }
}

fn coordinate(text: &str) -> Result<f64, String> {
    let value = text.parse().map_err(|_| format!("{} is not a number", check::quote(text)))?;
    check::coordinate(value).map(|()| value)
}

fn seat_number(text: &str) -> Result<u64, String> {
    if text.is_empty() {
        return Err("is empty".into());
    }
    if text.len() > RANGE_DIGITS_MAX || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!(
            "{} is not a whole number of at most {RANGE_DIGITS_MAX} digits",
            check::quote(text)
        ));
    }
    text.parse().map_err(|_| "is not a whole number".into())
}
