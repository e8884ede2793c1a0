//! Figures side by side: what was measured, what it is compared with, and what must be reached.

use std::fmt;

use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use serde_json::{Value, json};

/// One figure.
struct Figure {
    name: String,
    value: f64,
    unit: &'static str,
    note: String,
    must: Option<Must>,
}

/// What a figure must reach.
#[derive(Clone, Copy)]
pub(crate) enum Must {
    AtLeast(f64),
    AtMost(f64),
}

impl Must {
    fn is_met(self, value: f64) -> bool {
        match self {
            Must::AtLeast(bound) => value >= bound,
            Must::AtMost(bound) => value <= bound,
        }
    }
}

impl fmt::Display for Must {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Must::AtLeast(bound) => write!(f, "≥ {}", plain(*bound)),
            Must::AtMost(bound) => write!(f, "≤ {}", plain(*bound)),
        }
    }
}

/// All figures of a run.
pub(crate) struct Report {
    machine: String,
    figures: Vec<Figure>,
}

impl Report {
    pub(crate) fn new(machine: String) -> Report {
        Report { machine, figures: Vec::new() }
    }

    /// Adds a figure.
    pub(crate) fn add(
        &mut self,
        name: impl Into<String>,
        value: f64,
        unit: &'static str,
        note: impl Into<String>,
        must: Option<Must>,
    ) {
        let (name, note) = (name.into(), note.into());
        eprintln!("  {name}: {} {unit}  {note}", plain(value));
        self.figures.push(Figure { name, value, unit, note, must });
    }

    /// A figure of this run, for a ratio.
    pub(crate) fn value(&self, name: &str) -> Option<f64> {
        self.figures.iter().find(|figure| figure.name == name).map(|figure| figure.value)
    }

    /// The figures that don't reach what they must.
    pub(crate) fn missed(&self) -> Vec<String> {
        let missed = self.figures.iter().filter_map(|figure| {
            let must = figure.must.filter(|must| !must.is_met(figure.value))?;
            Some(format!("{} {} {} must be {must}", figure.name, plain(figure.value), figure.unit))
        });
        missed.collect()
    }

    pub(crate) fn to_json(&self) -> Value {
        let figures = self.figures.iter().map(|figure| {
            json!({ "name": figure.name, "value": figure.value, "unit": figure.unit, "note": figure.note,
                "must": figure.must.map(|must| must.to_string()) })
        });
        json!({ "machine": self.machine, "figures": figures.collect::<Vec<_>>() })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new();
        table.load_style(UTF8_FULL_CONDENSED).set_header(["", "figure", "unit", "must", "", "note"]);
        for figure in &self.figures {
            let (must, met) = match figure.must {
                Some(must) => (must.to_string(), if must.is_met(figure.value) { "ok" } else { "MISSED" }),
                None => (String::new(), ""),
            };
            let value = plain(figure.value);
            table.add_row([&figure.name, &value, figure.unit, &must, met, &figure.note]);
        }
        writeln!(f, "{}\n{table}", self.machine)
    }
}

/// Three significant digits are more than such a machine repeats.
fn plain(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
