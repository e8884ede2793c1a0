//! Tables as CSV (RFC 4180, UTF-8): for people who open them in a spreadsheet, which must not run what a buyer has typed.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use hyper::body::Frame;
use onsale_store::{StoreError, chain};
use tokio::sync::mpsc;

use super::problem::Problem;
use super::reasons::not_one_of;

/// Pages that wait for a client which reads slowly.
const PAGES_WAITING: usize = 2;

/// A value of a table.
pub(crate) enum Cell {
    /// A text, whoever wrote it.
    Text(String),
    /// A number, which is never taken for a formula.
    Number(i64),
    /// Nothing.
    Empty,
}

impl Cell {
    pub(crate) fn text(text: impl Into<String>) -> Cell {
        Cell::Text(text.into())
    }

    pub(crate) fn or_empty(text: Option<impl Into<String>>) -> Cell {
        text.map_or(Cell::Empty, |text| Cell::Text(text.into()))
    }

    fn written(&self) -> String {
        match self {
            Cell::Text(text) if is_formula(text) => format!("'{text}"),
            Cell::Text(text) => text.clone(),
            Cell::Number(number) => number.to_string(),
            Cell::Empty => String::new(),
        }
    }
}

/// Whether a spreadsheet may take a text for a formula: by its first character that isn't blank, in any width.
fn is_formula(text: &str) -> bool {
    let is_blank = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '\u{feff}' | '\u{200b}');
    let starts = |text: &str| text.starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']);
    text.starts_with(['\t', '\r', '\n']) || starts(text.trim_start_matches(is_blank))
}

/// Rows as lines.
pub(crate) fn lines(rows: impl IntoIterator<Item = Vec<Cell>>) -> Vec<u8> {
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    for row in rows {
        let cells: Vec<String> = row.iter().map(Cell::written).collect();
        writer.write_record(&cells).expect("a vector takes everything, and all rows are as long");
    }
    writer.into_inner().expect("a vector takes everything")
}

/// The head of a table.
pub(crate) fn head(columns: &[&str]) -> Vec<Cell> {
    columns.iter().map(|column| Cell::text(*column)).collect()
}

/// Whether a table is wanted as CSV: `?format=csv`, or else `Accept: text/csv`.
pub(crate) fn is_wanted(format: Option<&str>, headers: &HeaderMap) -> Result<bool, Problem> {
    match format {
        Some("csv") => Ok(true),
        Some("json") => Ok(false),
        Some(_) => Err(Problem::validation(vec![not_one_of("/query/format", &["json", "csv"])])),
        None => {
            let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
            let mut ranges = accepted.flat_map(|value| value.split(','));
            // The first of the two that the client names.
            let named = ranges.find_map(|range| match range.split(';').next().unwrap_or_default().trim() {
                "text/csv" => Some(true),
                "application/json" => Some(false),
                _ => None,
            });
            Ok(named.unwrap_or(false))
        }
    }
}

/// A table that is sent whole.
pub(crate) fn answer(name: &str, lines: Vec<u8>) -> Response {
    headed(name, Body::from(lines))
}

/// A table that is sent page by page, as it is read. When reading fails it is cut off, and not ended as if it were whole.
pub(crate) fn stream(name: &str) -> (mpsc::Sender<Result<Bytes, StoreError>>, Response) {
    let (pages, reading) = mpsc::channel(PAGES_WAITING);
    (pages, headed(name, Body::new(Pages(reading))))
}

fn headed(name: &str, body: Body) -> Response {
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8; header=present"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{name}.csv\"")) {
        headers.insert(CONTENT_DISPOSITION, value);
    }
    response
}

struct Pages(mpsc::Receiver<Result<Bytes, StoreError>>);

impl hyper::body::Body for Pages {
    type Data = Bytes;
    type Error = StoreError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StoreError>>> {
        self.0.poll_recv(context).map(|page| match page? {
            Ok(page) => Some(Ok(Frame::data(page))),
            Err(error) => {
                tracing::error!(error = chain(&error), "A table could not be read to its end");
                Some(Err(error))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// the-events-calendar/event-tickets#1337, SandeepVashishtha/Eventra#2287: a name that begins like a formula was run by
    /// whoever opened the list. SandeepVashishtha/Eventra#17842: one of two exports was safe.
    #[test]
    fn what_a_spreadsheet_would_run_is_a_text() {
        for text in [
            "=1+1",
            "+49 30 1234",
            "-1",
            "@SUM(A1)",
            "\t=1",
            "\r=1",
            "\n=1",
            "\tx",
            "  =1",
            "\u{feff}=1",
            "\u{a0}@x",
            "＝1+1",
            "＋1",
            "－1",
            "＠x",
            "=HYPERLINK(\"http://x\",\"y\")",
        ] {
            assert!(Cell::text(text).written().starts_with('\''), "{text:?}");
        }
        for text in ["", "A-1", "ada@example.com", "1-2", "'=1", "Straße", "a=b", "–1"] {
            assert_eq!(Cell::text(text).written(), text);
        }
        assert_eq!(Cell::Number(-12).written(), "-12");
    }

    #[test]
    fn lines_are_as_rfc_4180_has_them() {
        let rows = vec![
            head(&["a", "b"]),
            vec![Cell::text("x,\"y\""), Cell::Number(7)],
            vec![Cell::text("two\nlines"), Cell::Empty],
            vec![Cell::Empty, Cell::text("Ränge 🎫")],
        ];
        let text = String::from_utf8(lines(rows)).unwrap();
        assert_eq!(text, "a,b\r\n\"x,\"\"y\"\"\",7\r\n\"two\nlines\",\r\n,Ränge 🎫\r\n");
    }

    #[test]
    fn who_wants_csv_says_so() {
        let accept = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(value));
            headers
        };
        let wanted = |format, headers| is_wanted(format, &headers).ok();
        assert_eq!(wanted(None, HeaderMap::new()), Some(false));
        for (value, is_csv) in [
            ("text/csv", true),
            ("text/csv;q=0.9, application/json", true),
            ("application/json, text/csv", false),
            ("*/*", false),
            ("text/html, text/csv", true),
        ] {
            assert_eq!(wanted(None, accept(value)), Some(is_csv), "{value}");
            assert_eq!(wanted(Some("json"), accept(value)), Some(false));
        }
        assert_eq!(wanted(Some("csv"), accept("application/json")), Some(true));
        assert_eq!(wanted(Some("xml"), HeaderMap::new()), None);
    }
}
